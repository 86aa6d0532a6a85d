/* Damaged GGUF files: each must be refused with a message that says what is wrong, or read in full, without a crash, a hang, or an allocation
 * that the file does not justify. The cases are those reported against other readers (llama.cpp, gguf-tools, ggml); expectations follow the
 * format's specification. */
#include "checkpoint_support.h"

static const uint64_t dims_2x4[] = {4, 2};

/* A sound file with one F32 tensor [2, 4], which the cases below damage. */
static void sound_file(bytes* b) {
  gguf_begin(b, 1, 1);
  gguf_pair_u32(b, "general.alignment", 32);
  gguf_tensor(b, "weight", 2, dims_2x4, 0, 0);
  pad_to(b, 32);
  for (int i = 0; i < 32; ++i) put(b, "\0", 1);
}

static void test_sound(void** state) {
  (void)state;
  bytes b = {0};
  sound_file(&b);
  assert_ok(try_gguf(&b));
}

static void one_tensor(bytes* b, uint32_t rank, const uint64_t* dims, uint32_t type, uint64_t offset, size_t data) {
  gguf_begin(b, 1, 0);
  gguf_tensor(b, "blk.0.big", rank, dims, type, offset);
  pad_to(b, 32);
  for (size_t i = 0; i < data; ++i) put(b, "\0", 1);
}

static void test_dimensions(void** state) {
  (void)state;
  bytes b = {0};
  one_tensor(&b, 2, (const uint64_t[]){32, 4398046511105u}, 0, 0, 64); /* 2^42+1: llama.cpp pull request 18674 */
  assert_fails(try_gguf(&b), GENAI_ERROR_BAD_FILE, "tensor \"blk.0.big\" needs 562949953421440 bytes");
  one_tensor(&b, 2, (const uint64_t[]){1ull << 32, 1ull << 32}, 0, 0, 64);
  assert_fails(try_gguf(&b), GENAI_ERROR_BAD_FILE, "tensor \"blk.0.big\" has the shape [4294967296, 4294967296], which is too large");
  one_tensor(&b, 1, (const uint64_t[]){1ull << 62}, 0, 0, 64); /* elements fit, bytes do not */
  assert_fails(try_gguf(&b), GENAI_ERROR_BAD_FILE, "too large");
  one_tensor(&b, 4, (const uint64_t[]){UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}, 0, 0, 64);
  assert_fails(try_gguf(&b), GENAI_ERROR_BAD_FILE, "too large");
  one_tensor(&b, 2, (const uint64_t[]){33, 2}, 2, 0, 64); /* Q4_0 rows come in blocks of 32 */
  assert_fails(try_gguf(&b), GENAI_ERROR_BAD_FILE, "not a multiple of 32 as Q4_0 needs");
  one_tensor(&b, 3, (const uint64_t[]){0, 1ull << 40, 1ull << 40}, 0, 0, 0); /* nothing, but its row count must not wrap */
  assert_fails(try_gguf(&b), GENAI_ERROR_BAD_FILE, "too large");
  one_tensor(&b, 2, (const uint64_t[]){0, 5}, 0, 0, 0);
  assert_ok(try_gguf(&b));
  one_tensor(&b, 0, NULL, 0, 0, 4);
  assert_ok(try_gguf(&b));
}

static void test_rank(void** state) {
  (void)state;
  static const uint32_t ranks[] = {5, 9, 1000000, 0xFFFFFFFF};
  static const uint64_t dims[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  for (size_t i = 0; i < 4; ++i) {
    bytes b = {0};
    one_tensor(&b, ranks[i], dims, 0, 0, 64);
    char expected[80];
    snprintf(expected, sizeof expected, "tensor \"blk.0.big\" has %u dimensions, expected at most 4", ranks[i]);
    assert_fails(try_gguf(&b), GENAI_ERROR_BAD_FILE, expected);
  }
}

static void test_lengths_beyond_the_file(void** state) {
  (void)state;
  static const uint64_t lengths[] = {1000, 1ull << 31, 1ull << 63, UINT64_MAX};
  for (size_t i = 0; i < 4; ++i) {
    bytes b = {0};
    gguf_begin(&b, 0, 1);
    put_u64(&b, lengths[i]);
    put(&b, "short key", 9);
    put(&b, "\0\0\0\0\0\0\0\0", 8);
    assert_fails(try_gguf(&b), GENAI_ERROR_BAD_FILE, "a metadata key at byte 24 says it has");
    gguf_begin(&b, 0, 1);
    put_string(&b, "general.name");
    put_u32(&b, GGUF_STRING);
    put_u64(&b, lengths[i]);
    put(&b, "name", 4);
    assert_fails(try_gguf(&b), GENAI_ERROR_BAD_FILE, "a metadata string at byte");
    gguf_begin(&b, 0, 1);
    put_string(&b, "tokens");
    put_u32(&b, GGUF_ARRAY);
    put_u32(&b, GGUF_STRING);
    put_u64(&b, lengths[i]);
    put(&b, "name", 4);
    assert_fails(try_gguf(&b), GENAI_ERROR_BAD_FILE, "metadata \"tokens\" says it has");
    b.data[b.size - 4 - 8 - 4] = GGUF_F64;
    assert_fails(try_gguf(&b), GENAI_ERROR_BAD_FILE, "metadata \"tokens\" says it has");
  }
}

static void test_counts_beyond_the_file(void** state) {
  (void)state;
  static const uint64_t counts[] = {100, 1ull << 32, 1ull << 60, UINT64_MAX};
  for (size_t i = 0; i < 4; ++i) {
    bytes b = {0};
    sound_file(&b);
    memcpy(b.data + 8, &counts[i], 8);
    assert_fails(try_gguf(&b), GENAI_ERROR_BAD_FILE, "the header announces 1 metadata pairs");
    sound_file(&b);
    memcpy(b.data + 16, &counts[i], 8);
    assert_fails(try_gguf(&b), GENAI_ERROR_BAD_FILE, "more than");
  }
}

static void test_alignment(void** state) {
  (void)state;
  static const uint32_t refused[] = {0, 3, 33, 0xFFFFFFFF};
  for (size_t i = 0; i < 4; ++i) {
    bytes b = {0};
    sound_file(&b);
    memcpy(b.data + 24 + 8 + 17 + 4, &refused[i], 4);
    char expected[64];
    snprintf(expected, sizeof expected, "general.alignment is %u", refused[i]);
    assert_fails(try_gguf(&b), GENAI_ERROR_BAD_FILE, expected);
  }
  bytes b = {0};
  sound_file(&b);
  uint32_t huge = 1u << 31; /* padding to it goes beyond the file */
  memcpy(b.data + 24 + 8 + 17 + 4, &huge, 4);
  assert_fails(try_gguf(&b), GENAI_ERROR_BAD_FILE, "inside the padding before the tensor data");
  gguf_begin(&b, 0, 1); /* of another type */
  put_string(&b, "general.alignment");
  put_u32(&b, GGUF_STRING);
  put_string(&b, "32");
  assert_fails(try_gguf(&b), GENAI_ERROR_BAD_FILE, "expected a power of two of type uint32");
  one_tensor(&b, 1, (const uint64_t[]){4}, 0, 16, 64);
  assert_fails(try_gguf(&b), GENAI_ERROR_BAD_FILE, "at offset 16, expected a multiple of the alignment 32");
}

static void test_types(void** state) {
  (void)state;
  static const uint32_t unknown[] = {4, 5, 31, 38, 42, 1000, 0x80000000, 0xFFFFFFFF};
  bytes b = {0};
  for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; ++i) {
    one_tensor(&b, 1, (const uint64_t[]){256}, unknown[i], 0, 1024);
    char expected[64];
    snprintf(expected, sizeof expected, "tensor \"blk.0.big\" has element type %u,", unknown[i]);
    assert_fails(try_gguf(&b), GENAI_ERROR_BAD_FILE, expected);
  }
  one_tensor(&b, 1, (const uint64_t[]){256}, 16, 0, 1024);
  assert_fails(try_gguf(&b), GENAI_ERROR_UNSUPPORTED, "IQ2_XXS, which is not read; take a GGUF of");
  static const uint32_t types[] = {13, 255, 0xFFFFFFFF};
  for (size_t i = 0; i < 3; ++i) {
    gguf_begin(&b, 0, 1);
    put_string(&b, "key");
    put_u32(&b, types[i]);
    put_u64(&b, 0);
    assert_fails(try_gguf(&b), GENAI_ERROR_BAD_FILE, "metadata \"key\" has type");
    gguf_begin(&b, 0, 1);
    put_string(&b, "key");
    put_u32(&b, GGUF_ARRAY);
    put_u32(&b, types[i]);
    put_u64(&b, 0);
    assert_fails(try_gguf(&b), GENAI_ERROR_BAD_FILE, "metadata \"key\" has array element type");
  }
  gguf_begin(&b, 0, 1);
  put_string(&b, "key");
  put_u32(&b, GGUF_ARRAY);
  put_u32(&b, GGUF_ARRAY);
  put_u64(&b, 0);
  assert_fails(try_gguf(&b), GENAI_ERROR_UNSUPPORTED, "array of arrays");
  gguf_begin(&b, 0, 1);
  put_string(&b, "key");
  put_u32(&b, GGUF_BOOL);
  put(&b, "\2", 1);
  assert_fails(try_gguf(&b), GENAI_ERROR_BAD_FILE, "metadata \"key\" is a bool with the byte 2");
}

static void test_versions_and_magic(void** state) {
  (void)state;
  bytes b = {0};
  sound_file(&b);
  memcpy(b.data + 4, "\0\0\0\3", 4);
  assert_fails(try_gguf(&b), GENAI_ERROR_UNSUPPORTED, "big-endian GGUF file (version 3)");
  assert_open_fails(test_data("gguf/big-endian.gguf"), GENAI_ERROR_UNSUPPORTED, "big-endian"); /* written by the gguf package */
  static const uint32_t versions[] = {0, 1, 4, 0xFFFF};
  for (size_t i = 0; i < 4; ++i) {
    memcpy(b.data + 4, &versions[i], 4);
    assert_fails(try_gguf(&b), GENAI_ERROR_UNSUPPORTED, "expected 2 or 3");
  }
  sound_file(&b);
  b.data[3] = 'G';
  assert_fails(try_gguf(&b), GENAI_ERROR_BAD_FILE, "begins with \"GGUG\", expected \"GGUF\"");
}

static void test_names(void** state) {
  (void)state;
  bytes b = {0};
  gguf_begin(&b, 0, 2);
  gguf_pair_u32(&b, "same", 1);
  gguf_pair_u32(&b, "same", 2);
  assert_fails(try_gguf(&b), GENAI_ERROR_BAD_FILE, "metadata key \"same\" is there twice");
  gguf_begin(&b, 2, 0);
  gguf_tensor(&b, "w", 1, (const uint64_t[]){8}, 0, 0);
  gguf_tensor(&b, "w", 1, (const uint64_t[]){8}, 0, 32);
  pad_to(&b, 32);
  for (int i = 0; i < 64; ++i) put(&b, "\0", 1);
  assert_fails(try_gguf(&b), GENAI_ERROR_BAD_FILE, "tensor \"w\" is there twice");
  gguf_begin(&b, 0, 1);
  gguf_pair_u32(&b, "", 1);
  assert_fails(try_gguf(&b), GENAI_ERROR_BAD_FILE, "expected a name without NUL bytes");
  gguf_begin(&b, 0, 1);
  put_u64(&b, 3);
  put(&b, "a\0b", 3);
  put_u32(&b, GGUF_U32);
  put_u32(&b, 1);
  assert_fails(try_gguf(&b), GENAI_ERROR_BAD_FILE, "\"a\\x00b\", expected a name without NUL bytes");
}

static void test_overlap_and_end(void** state) {
  (void)state;
  bytes b = {0};
  gguf_begin(&b, 2, 0);
  gguf_tensor(&b, "first", 1, (const uint64_t[]){16}, 0, 0);
  gguf_tensor(&b, "second", 1, (const uint64_t[]){8}, 0, 32);
  pad_to(&b, 32);
  for (int i = 0; i < 96; ++i) put(&b, "\0", 1);
  assert_fails(try_gguf(&b), GENAI_ERROR_BAD_FILE, "tensors \"first\" and \"second\" overlap");
  one_tensor(&b, 1, (const uint64_t[]){8}, 0, 32, 32);
  assert_fails(try_gguf(&b), GENAI_ERROR_BAD_FILE,
               "needs 32 bytes at offset 32 of the data, but the file has only 32 there; it is truncated");
  one_tensor(&b, 1, (const uint64_t[]){8}, 0, UINT64_MAX - 31, 32);
  assert_fails(try_gguf(&b), GENAI_ERROR_BAD_FILE, "it is truncated");
}

static void test_bytes_after_the_end_are_mentioned(void** state) {
  (void)state;
  bytes b = {0};
  sound_file(&b);
  put(&b, "more", 4);
  capture_log();
  assert_ok(try_gguf(&b));
  log_set_sink(NULL, NULL, LOG_ERROR);
  assert_non_null(strstr(captured_log, "4 bytes follow the last tensor"));
}

/* The whole of a small file that has every kind of metadata and two tensors, made by the gguf package. */
static void load_sample(bytes* b) {
  mapped_file file;
  assert_ok(mapped_file_open(test_data("gguf/metadata.gguf"), &file));
  put(b, file.data, file.size);
  mapped_file_close(&file);
}

static size_t refused_with_words(genai_status* status) {
  if (!status) return 0;
  genai_error_kind kind = genai_status_kind(status);
  assert_true(kind == GENAI_ERROR_BAD_FILE || kind == GENAI_ERROR_UNSUPPORTED);
  assert_true(strlen(genai_status_message(status)) > 20);
  genai_status_free(status);
  return 1;
}

static void test_every_byte_changed(void** state) {
  (void)state;
  bytes b = {0};
  load_sample(&b);
  size_t refused = 0, tried = 0;
  for (size_t at = 0; at < b.size; ++at) {
    for (unsigned bit = 0; bit < 10; ++bit, ++tried) {
      uint8_t before = b.data[at];
      b.data[at] = (uint8_t)(bit < 8 ? before ^ 1u << bit : bit == 8 ? 0xFFu : ~(unsigned)before);
      refused += refused_with_words(try_gguf(&b));
      b.data[at] = before;
    }
  }
  assert_ok(try_gguf(&b));
  assert_true(refused > tried / 10 && refused < tried); /* text and numbers may change freely; structure may not */
}

static void test_every_length(void** state) {
  (void)state;
  bytes b = {0};
  load_sample(&b);
  size_t needed = b.size;
  while (needed && b.data[needed - 1] == 0) --needed; /* the last tensor ends in the byte 4D of 23.0; what follows is padding */
  for (size_t size = 0; size < b.size; ++size) {
    genai_status* status = parse_and_drop(gguf_parse, b.data, size);
    if (size < needed && !status) fail_msg("accepted %zu of %zu bytes", size, needed);
    refused_with_words(status);
  }
}

static void test_allocation_failures(void** state) {
  (void)state;
  bytes b = {0};
  load_sample(&b);
  for (unsigned nth = 1;; ++nth) {
    mem_inject_failure(nth);
    genai_status* status = try_gguf(&b);
    mem_inject_failure(0);
    if (!status) {
      assert_true(nth > 5);
      break;
    }
    assert_int_equal(genai_status_kind(status), GENAI_ERROR_OUT_OF_MEMORY);
    genai_status_free(status);
  }
  for (unsigned nth = 1;; ++nth) {
    checkpoint* file = NULL;
    mem_inject_failure(nth);
    genai_status* status = checkpoint_open(test_data("gguf/split-00002-of-00003.gguf"), &file);
    mem_inject_failure(0);
    if (!status) {
      assert_true(nth > 20);
      checkpoint_close(file);
      break;
    }
    assert_null(file);
    assert_int_equal(genai_status_kind(status), GENAI_ERROR_OUT_OF_MEMORY);
    genai_status_free(status);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sound),
      cmocka_unit_test(test_dimensions),
      cmocka_unit_test(test_rank),
      cmocka_unit_test(test_lengths_beyond_the_file),
      cmocka_unit_test(test_counts_beyond_the_file),
      cmocka_unit_test(test_alignment),
      cmocka_unit_test(test_types),
      cmocka_unit_test(test_versions_and_magic),
      cmocka_unit_test(test_names),
      cmocka_unit_test(test_overlap_and_end),
      cmocka_unit_test(test_bytes_after_the_end_are_mentioned),
      cmocka_unit_test(test_every_byte_changed),
      cmocka_unit_test(test_every_length),
      cmocka_unit_test(test_allocation_failures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
