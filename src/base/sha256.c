/* SHA-256 (FIPS 180-4) through nettle, which uses the processor's SHA instructions where it has them. */
#include <assert.h>
#include <nettle/sha2.h>
#include <string.h>

/* nettle's header renames its functions to nettle_*; the short names are ours. */
#undef sha256_init
#undef sha256_update
#undef sha256_digest

#include "base/file.h"

static_assert(sizeof(struct sha256_ctx) <= sizeof(((sha256*)0)->state), "nettle's context fits");

void sha256_init(sha256* hash) {
  nettle_sha256_init((struct sha256_ctx*)hash->state);
}

void sha256_update(sha256* hash, const void* data, size_t size) {
  nettle_sha256_update((struct sha256_ctx*)hash->state, size, data);
}

void sha256_final(sha256* hash, uint8_t digest[32]) {
  nettle_sha256_digest((struct sha256_ctx*)hash->state, 32, digest);
}

void sha256_digest_hex(const uint8_t digest[32], char hex[65]) {
  static const char digits[] = "0123456789abcdef";
  for (size_t i = 0; i < 32; i++) {
    hex[2 * i] = digits[digest[i] >> 4];
    hex[2 * i + 1] = digits[digest[i] & 15];
  }
  hex[64] = 0;
}

void sha256_hex(const void* data, size_t size, char hex[65]) {
  sha256 hash;
  uint8_t digest[32];
  sha256_init(&hash);
  sha256_update(&hash, data, size);
  sha256_final(&hash, digest);
  sha256_digest_hex(digest, hex);
}
