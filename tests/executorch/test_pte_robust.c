/* Damaged files, failing allocations and failing writes: every one ends in a clear error or, where the damage says nothing, in the content
 * that was written. */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "fake_program.h"

/* Reads everything a view shows, which a sanitizer checks, and returns its hash. */
static void hash_file(const pte_file* file, uint8_t digest[32]) {
  sha256 hash;
  sha256_init(&hash);
  for (size_t m = 0; m < pte_method_count(file); m++) {
    const pte_method_view* view = pte_method_at(file, m);
    sha256_update(&hash, view->name, strlen(view->name) + 1);
    sha256_update(&hash, &view->n_inputs, sizeof view->n_inputs);
    sha256_update(&hash, &view->n_outputs, sizeof view->n_outputs);
    for (size_t v = 0; v < view->n_values; v++) {
      const pte_scalar* value = &view->values[v];
      sha256_update(&hash, &value->kind, sizeof value->kind);
      if (value->kind == PTE_INT) sha256_update(&hash, &value->as.i, sizeof value->as.i);
      if (value->kind == PTE_BOOL) sha256_update(&hash, &value->as.b, sizeof value->as.b);
      if (value->kind == PTE_DOUBLE) sha256_update(&hash, &value->as.d, sizeof value->as.d);
      if (value->kind == PTE_STRING) sha256_update(&hash, value->as.s, strlen(value->as.s));
    }
    if (!view->is_delegate) continue;
    sha256_update(&hash, view->delegate_id, strlen(view->delegate_id) + 1);
    for (uint32_t i = 0; view->inputs && i < view->n_inputs; i++) {
      sha256_update(&hash, &view->inputs[i].dims, sizeof view->inputs[i].dims);
      sha256_update(&hash, &view->delegate_inputs[i], sizeof view->delegate_inputs[i]);
    }
    for (uint32_t i = 0; view->outputs && i < view->n_outputs; i++) {
      sha256_update(&hash, &view->outputs[i].dims, sizeof view->outputs[i].dims);
      sha256_update(&hash, &view->delegate_outputs[i], sizeof view->delegate_outputs[i]);
    }
    sha256_update(&hash, &view->options.soc_model, sizeof view->options.soc_model);
    if (view->context_binary) sha256_update(&hash, view->context_binary, view->context_binary_size);
  }
  sha256_final(&hash, digest);
}

/* A written file in memory; `bytes` is a copy to damage, aligned as pte_open_buffer wants. */
typedef struct sample {
  text whole;
  uint8_t* bytes;
  uint64_t program_size, segment_base;
  uint8_t digest[32];
} sample;

static sample make_sample(void) {
  const pte_program program = fake_program();
  const char* path = scratch_path("sample.pte");
  sample out = {0};
  assert_ok(pte_write(path, &program));
  assert_ok(file_read_all(path, 1 << 20, &out.whole));
  unlink(path);
  out.bytes = mem_alloc_aligned(16, out.whole.length);
  memcpy(out.bytes, out.whole.data, out.whole.length);
  memcpy(&out.program_size, out.bytes + 16, 8);
  memcpy(&out.segment_base, out.bytes + 24, 8);
  pte_file* file;
  assert_ok(pte_open_buffer(out.bytes, out.whole.length, "sample", &file));
  hash_file(file, out.digest);
  pte_close(file);
  return out;
}

static void free_sample(sample* file) {
  text_deinit(&file->whole);
  mem_free(file->bytes);
}

static void test_truncated_at_every_length(void** state) {
  (void)state;
  sample file = make_sample();
  for (size_t length = 0; length < file.whole.length; length++) {
    /* A block of exactly this length, so that a sanitizer sees any read beyond. */
    uint8_t* cut = mem_alloc_aligned(16, length);
    memcpy(cut, file.bytes, length);
    pte_file* opened;
    assert_fails(pte_open_buffer(cut, length, "cut.pte", &opened), GENAI_ERROR_BAD_FILE, "cut.pte");
    mem_free(cut);
  }
  free_sample(&file);
}

/* Opens the damaged bytes; true when they opened and show the content that was written. */
static bool opens_unharmed(const sample* file, bool* opened) {
  pte_file* damaged;
  genai_status* status = pte_open_buffer(file->bytes, file->whole.length, "damaged.pte", &damaged);
  *opened = !status;
  if (status) {
    const genai_error_kind kind = genai_status_kind(status);
    assert_true(kind == GENAI_ERROR_BAD_FILE || kind == GENAI_ERROR_UNSUPPORTED);
    assert_non_null(strstr(genai_status_message(status), "damaged.pte"));
    genai_status_free(status);
    return false;
  }
  uint8_t digest[32];
  hash_file(damaged, digest);
  pte_close(damaged);
  return !memcmp(digest, file->digest, sizeof digest);
}

static void test_every_header_byte_flipped(void** state) {
  (void)state;
  sample file = make_sample();
  size_t refused = 0;
  const size_t payload = (size_t)file.segment_base;
  for (size_t i = 0; i < payload + 256; i++) {
    const bool is_header = i < 40 || i >= payload;
    for (unsigned bit = 0; is_header && bit < 9; bit++) { /* each bit, then the whole byte */
      const uint8_t mask = (uint8_t)(bit < 8 ? 1u << bit : 0xff);
      file.bytes[i] ^= mask;
      bool opened;
      if (!opens_unharmed(&file, &opened)) {
        if (opened) fail_msg("byte %zu with mask %02x opens as another program", i, mask);
        refused++;
      }
      file.bytes[i] ^= mask;
    }
  }
  /* Identifier, extended magic, payload magic: no flip of theirs can pass; sizes and offsets almost never. */
  assert_true(refused > 12 * 9);
  free_sample(&file);
}

static void test_every_program_byte_flipped(void** state) {
  (void)state;
  sample file = make_sample();
  size_t refused = 0;
  for (size_t i = 40; i < file.program_size; i++) {
    for (unsigned bit = 0; bit < 9; bit++) {
      const uint8_t mask = (uint8_t)(bit < 8 ? 1u << bit : 0xff);
      file.bytes[i] ^= mask;
      bool opened;
      (void)opens_unharmed(&file, &opened); /* a value may change; nothing may break */
      refused += !opened;
      file.bytes[i] ^= mask;
    }
  }
  assert_true(refused > file.program_size);
  free_sample(&file);
}

static void test_not_a_pte(void** state) {
  (void)state;
  pte_file* file;
  assert_fails(pte_open(scratch_path("absent.pte"), &file), GENAI_ERROR_NOT_FOUND, "absent.pte");
  assert_fails(pte_open(scratch_folder, &file), GENAI_ERROR_INVALID_ARGUMENT, "directory");
  const char* path = scratch_path("other.bin");
  assert_ok(file_write_atomic(path, "", 0));
  assert_fails(pte_open(path, &file), GENAI_ERROR_BAD_FILE, "0 bytes");
  const char gguf[] = "GGUF\3\0\0\0and much more that follows";
  assert_ok(file_write_atomic(path, gguf, sizeof gguf));
  assert_fails(pte_open(path, &file), GENAI_ERROR_BAD_FILE, "not an ExecuTorch program");
  unlink(path);
  _Alignas(16) static const uint8_t bytes[32];
  assert_fails(pte_open_buffer(bytes + 1, 31, "odd", &file), GENAI_ERROR_INVALID_ARGUMENT, "aligned");
}

/* ---- Failing allocations ---- */

static void test_every_allocation_of_writing_fails_once(void** state) {
  (void)state;
  const pte_program program = fake_program();
  const char* path = scratch_path("a.pte");
  const uint64_t before = mem_allocation_count();
  assert_ok(pte_write(path, &program));
  const uint64_t allocations = mem_allocation_count() - before;
  unlink(path);
  assert_true(allocations > 10);
  for (uint64_t nth = 1; nth <= allocations; nth++) {
    mem_inject_failure(nth);
    genai_status* status = pte_write(path, &program);
    mem_inject_failure(0);
    assert_int_equal(genai_status_kind(status), GENAI_ERROR_OUT_OF_MEMORY);
    genai_status_free(status);
    assert_false(file_exists(path));
  }
}

static void test_every_allocation_of_reading_fails_once(void** state) {
  (void)state;
  const pte_program program = fake_program();
  const char* path = scratch_path("a.pte");
  assert_ok(pte_write(path, &program));
  pte_file* file;
  const uint64_t before = mem_allocation_count();
  assert_ok(pte_open(path, &file));
  const uint64_t allocations = mem_allocation_count() - before;
  pte_close(file);
  assert_true(allocations >= 3);
  for (uint64_t nth = 1; nth <= allocations; nth++) {
    mem_inject_failure(nth);
    genai_status* status = pte_open(path, &file);
    mem_inject_failure(0);
    assert_int_equal(genai_status_kind(status), GENAI_ERROR_OUT_OF_MEMORY);
    genai_status_free(status);
  }
  unlink(path);
}

/* ---- Failing writes ---- */

/* A full disk, played by the limit on file size: writing stops after `limit` bytes. */
static genai_status* write_with_limit(const char* path, const pte_program* program, rlim_t limit) {
  struct rlimit saved;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &saved), 0);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){limit, saved.rlim_max}), 0);
  genai_status* status = pte_write(path, program);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &saved), 0);
  return status;
}

static void test_disk_full_at_any_point(void** state) {
  (void)state;
  assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
  const pte_program program = fake_program();
  const char* path = scratch_path("a.pte");
  assert_ok(pte_write(path, &program));
  struct stat info;
  assert_int_equal(stat(path, &info), 0);
  const char old[] = "what was there before";
  assert_ok(file_write_atomic(path, old, sizeof old));
  for (off_t limit = 0; limit < info.st_size; limit += limit < 64 ? 1 : 97) {
    assert_fails(write_with_limit(path, &program, (rlim_t)limit), GENAI_ERROR_IO, "a.pte");
    text kept = {0};
    assert_ok(file_read_all(path, 1 << 20, &kept));
    assert_int_equal(kept.length, sizeof old);
    assert_memory_equal(kept.data, old, sizeof old);
    text_deinit(&kept);
  }
  assert_ok(write_with_limit(path, &program, (rlim_t)info.st_size));
  unlink(path);
}

static void test_folder_absent(void** state) {
  (void)state;
  const pte_program program = fake_program();
  assert_fails(pte_write(scratch_path("no/such/folder/a.pte"), &program), GENAI_ERROR_NOT_FOUND, "no/such/folder");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_truncated_at_every_length),
      cmocka_unit_test(test_every_header_byte_flipped),
      cmocka_unit_test(test_every_program_byte_flipped),
      cmocka_unit_test(test_not_a_pte),
      cmocka_unit_test(test_every_allocation_of_writing_fails_once),
      cmocka_unit_test(test_every_allocation_of_reading_fails_once),
      cmocka_unit_test(test_disk_full_at_any_point),
      cmocka_unit_test(test_folder_absent),
  };
  return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
