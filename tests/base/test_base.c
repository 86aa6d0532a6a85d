/* Base: statuses, arenas, text, files, SHA-256 (FIPS 180-4 and NIST example vectors), the thread pool. */
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/text.h"
#include "support.h"

static void test_status_chain(void** state) {
  (void)state;
  genai_status* cause = genai_status_create(GENAI_ERROR_IO, "disk %s", "full");
  genai_status* outer = genai_status_wrap_stage(cause, "compilation", "cannot write %d bytes", 7);
  char buffer[256];
  size_t length = genai_status_format(outer, buffer, sizeof buffer);
  assert_string_equal(buffer, "[compilation] cannot write 7 bytes (caused by IoError: disk full)");
  assert_int_equal(length, strlen(buffer));
  assert_int_equal(genai_status_kind(outer), GENAI_ERROR_STAGE);
  assert_ptr_equal(genai_status_wrap_stage(outer, "inference", "again"), outer);
  char small[10];
  assert_int_equal(genai_status_format(outer, small, sizeof small), length);
  assert_string_equal(small, "[compilat");
  genai_status_free(outer);
}

static void test_status_survives_allocation_failure(void** state) {
  (void)state;
  for (uint64_t n = 1; n <= 3; n++) {
    genai_status* cause = genai_status_create(GENAI_ERROR_IO, "x");
    mem_inject_failure(n);
    genai_status* status = genai_status_wrap_stage(cause, "inference", "y");
    mem_inject_failure(0);
    assert_int_equal(genai_status_kind(status), GENAI_ERROR_OUT_OF_MEMORY);
    genai_status_free(status);
  }
}

static void test_arena(void** state) {
  (void)state;
  arena region = {0};
  for (size_t i = 0; i < 1000; i++) {
    uint8_t* block = arena_alloc(&region, i * 37 % 5000);
    assert_non_null(block);
    assert_int_equal((uintptr_t)block % 16, 0);
    for (size_t j = 0; j < i * 37 % 5000; j++) assert_int_equal(block[j], 0);
    memset(block, 0xFF, i * 37 % 5000);
  }
  assert_null(arena_calloc(&region, SIZE_MAX / 2, 3));
  assert_null(arena_alloc(&region, SIZE_MAX - 3));
  assert_string_equal(arena_printf(&region, "%d-%s", 5, "x"), "5-x");
  arena_deinit(&region);
}

static void test_utf8(void** state) {
  (void)state;
  /* Every code point survives encode and decode; surrogates, overlong forms and values past U+10FFFF are refused (RFC 3629). */
  for (uint32_t c = 0; c <= 0x10FFFF; c++) {
    if (c == 0xD800) c = 0xE000;
    text t = {0};
    assert_ok(text_append_codepoint(&t, c));
    uint32_t back = 0;
    assert_int_equal(utf8_decode(t.data, t.length, &back), t.length);
    assert_int_equal(back, c);
    for (size_t cut = 1; cut < t.length; cut++) assert_int_equal(utf8_complete_prefix(t.data, cut), 0);
    assert_int_equal(utf8_complete_prefix(t.data, t.length), t.length);
    text_deinit(&t);
  }
  static const char* const bad[] = {"\xC0\x80",         "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                                    "\xF0\x80\x80\x80", "\xFF",         "\x80",         "\xC3"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) assert_false(utf8_is_valid(bad[i], strlen(bad[i])));
  assert_true(utf8_is_valid("a\xC3\xA9\xF0\x9F\xA6\x99", 7));
  assert_int_equal(utf8_complete_prefix("ab\xED\xA0", 4), 4); /* can never become valid: not held back */
}

static void test_nearest(void** state) {
  (void)state;
  static const char* const names[] = {"SM8650", "SM8550", "SM8750"};
  assert_string_equal(text_nearest("sm8560", names, 3), "SM8650");
  assert_null(text_nearest("entirely different", names, 3));
  assert_int_equal(text_distance("kitten", "sitting"), 3);
}

static void test_sha256(void** state) {
  (void)state;
  char hex[65];
  sha256_hex("abc", 3, hex);
  assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  sha256_hex("", 0, hex);
  assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  sha256 hash;
  uint8_t digest[32];
  sha256_init(&hash);
  for (size_t i = 0; i < 1000000; i++) sha256_update(&hash, "a", 1);
  sha256_final(&hash, digest);
  sha256_digest_hex(digest, hex);
  assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void test_atomic_file(void** state) {
  (void)state;
  char directory[] = "/tmp/genai-test-XXXXXX";
  assert_non_null(mkdtemp(directory));
  char* path;
  assert_ok(path_join(directory, "file", &path));
  assert_ok(file_write_atomic(path, "one", 3));
  atomic_file writer;
  assert_ok(atomic_file_create(path, &writer));
  assert_ok(atomic_file_write(&writer, "two-and-more", 12));
  atomic_file_abort(&writer);
  text content = {0};
  assert_ok(file_read_all(path, 100, &content));
  assert_string_equal(content.data, "one");
  text_deinit(&content);
  assert_fails(file_read_all(path, 2, &content), GENAI_ERROR_LIMIT, "larger than 2");
  text_deinit(&content);
  /* A file-size limit stands in for a full disk: the write fails, nothing is left. */
  struct rlimit old, low;
  getrlimit(RLIMIT_FSIZE, &old);
  low = old;
  low.rlim_cur = 4;
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &low);
  genai_status* status = file_write_atomic(path, "longer than four", 16);
  setrlimit(RLIMIT_FSIZE, &old);
  assert_int_equal(genai_status_kind(status), GENAI_ERROR_IO);
  genai_status_free(status);
  char command[200];
  snprintf(command, sizeof command, "test \"$(ls %s)\" = file", directory);
  assert_int_equal(system(command), 0);
  assert_ok(atomic_file_create(path, &writer));
  atomic_file_remove_all();
  atomic_file_abort(&writer);
  assert_int_equal(system(command), 0);
  mapped_file map;
  assert_ok(mapped_file_open(path, &map));
  assert_int_equal(map.size, 3);
  assert_memory_equal(map.data, "one", 3);
  mapped_file_close(&map);
  assert_fails(mapped_file_open(directory, &map), GENAI_ERROR_INVALID_ARGUMENT, "a directory");
  assert_fails(mapped_file_open("/nonexistent/x", &map), GENAI_ERROR_NOT_FOUND, "/nonexistent/x");
  unlink(path);
  mem_free(path);
  assert_ok(path_join(directory, "a/b/c", &path));
  assert_ok(directory_create(path));
  assert_true(path_is_directory(path));
  assert_fails(directory_create("/proc/nothing/here"), GENAI_ERROR_NOT_FOUND, "/proc/nothing");
  mem_free(path);
  snprintf(command, sizeof command, "rm -r %s", directory);
  assert_int_equal(system(command), 0);
}

static void add_range(void* user, size_t begin, size_t end) {
  atomic_uint* hits = user;
  for (size_t i = begin; i < end; i++) atomic_fetch_add(&hits[i], 1);
}

static void test_pool_covers_each_index_once(void** state) {
  (void)state;
  static atomic_uint hits[5000];
  for (size_t threads = 1; threads <= 4; threads++) {
    thread_pool* pool;
    assert_ok(thread_pool_create(threads, &pool));
    for (size_t count = 0; count < 5000; count = count * 2 + 1) {
      for (size_t grain = 0; grain < 70; grain += 23) {
        for (size_t i = 0; i < 5000; i++) atomic_store(&hits[i], 0);
        thread_pool_for(pool, count, grain, add_range, hits);
        for (size_t i = 0; i < 5000; i++) assert_int_equal(atomic_load(&hits[i]), i < count);
      }
    }
    thread_pool_destroy(pool);
  }
  genai_status* status = thread_pool_create(100000, &(thread_pool*){NULL});
  assert_int_equal(genai_status_kind(status), GENAI_ERROR_INVALID_ARGUMENT);
  genai_status_free(status);
}

static void test_file_sha256(void** state) {
  (void)state;
  char path[] = "/tmp/genai-test-XXXXXX", hex[65];
  int descriptor = mkstemp(path);
  uint64_t size = 0;
  close(descriptor);
  assert_ok(file_write_atomic(path, "abc", 3)); /* FIPS 180-4's example */
  assert_ok(file_sha256(path, &size, hex));
  assert_int_equal(size, 3);
  assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  /* A million times "a" (NIST's third example), more than one piece. */
  char* million = malloc(1000000);
  memset(million, 'a', 1000000);
  assert_ok(file_write_atomic(path, million, 1000000));
  assert_ok(file_sha256(path, NULL, hex));
  assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  free(million);
  unlink(path);
  assert_fails(file_sha256(path, NULL, hex), GENAI_ERROR_NOT_FOUND, path);
  assert_fails(file_sha256("/tmp", NULL, hex), GENAI_ERROR_IO, "\"/tmp\": Is a directory");
}

static size_t files_in(const char* directory) {
  char line[256];
  size_t count = 0;
  snprintf(line, sizeof line, "ls -A %s | wc -l", directory);
  FILE* pipe = popen(line, "r");
  if (fscanf(pipe, "%zu", &count) != 1) count = SIZE_MAX;
  pclose(pipe);
  return count;
}

/* Create, write, flush, close and rename: each fails once, and the file keeps its old content with nothing beside it. */
static void test_every_failed_operation_of_a_file(void** state) {
  (void)state;
  char directory[] = "/tmp/genai-test-XXXXXX", path[64];
  assert_non_null(mkdtemp(directory));
  snprintf(path, sizeof path, "%s/file", directory);
  assert_ok(file_write_atomic(path, "old", 3));
  uint64_t before = file_operation_count();
  assert_ok(file_write_atomic(path, "old", 3));
  uint64_t operations = file_operation_count() - before;
  assert_int_equal(operations, 5);
  for (uint64_t n = 1; n <= operations; n++) {
    text content = {0};
    file_inject_failure(n);
    assert_fails(file_write_atomic(path, "new", 3), GENAI_ERROR_IO, "/file\": No space left on device; free disk space");
    file_inject_failure(0);
    assert_ok(file_read_all(path, 16, &content));
    assert_string_equal(content.data, "old");
    assert_int_equal(files_in(directory), 1);
    text_deinit(&content);
  }
  snprintf(path, sizeof path, "%s/a/b", directory);
  file_inject_failure(4); /* of /, /tmp, its folder, a and b: "a" */
  assert_fails(directory_create(path), GENAI_ERROR_IO, "create the folder");
  file_inject_failure(0);
  assert_ok(directory_create(path));
  snprintf(path, sizeof path, "rm -rf %s", directory);
  assert_int_equal(system(path), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_status_chain),
      cmocka_unit_test(test_status_survives_allocation_failure),
      cmocka_unit_test(test_arena),
      cmocka_unit_test(test_utf8),
      cmocka_unit_test(test_nearest),
      cmocka_unit_test(test_sha256),
      cmocka_unit_test(test_atomic_file),
      cmocka_unit_test(test_pool_covers_each_index_once),
      cmocka_unit_test(test_every_failed_operation_of_a_file),
      cmocka_unit_test(test_file_sha256),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
