/* Which format a path is taken for, llama2.c files, and the fingerprint. */
#include "checkpoint_support.h"

static void test_stories260k(void** state) {
  (void)state;
  const char* path = shared_file("fixtures/checkpoints/stories260K.bin");
  skip_unless_file(path);
  checkpoint* f = NULL;
  assert_ok(checkpoint_open(path, &f));
  assert_int_equal(checkpoint_format_of(f), CHECKPOINT_LLAMA2C);
  /* The header's seven numbers, as documented with the model: dim 64, 5 layers, 8 heads, 4 KV heads, 512 tokens. */
  assert_true(text_view_equal_cstr(checkpoint_metadata_string(f, "general.architecture"), "llama"));
  assert_int_equal(checkpoint_metadata_integer(f, "llama.embedding_length", 0), 64);
  assert_int_equal(checkpoint_metadata_integer(f, "llama.feed_forward_length", 0), 172);
  assert_int_equal(checkpoint_metadata_integer(f, "llama.block_count", 0), 5);
  assert_int_equal(checkpoint_metadata_integer(f, "llama.attention.head_count", 0), 8);
  assert_int_equal(checkpoint_metadata_integer(f, "llama.attention.head_count_kv", 0), 4);
  assert_int_equal(checkpoint_metadata_integer(f, "llama.vocab_size", 0), 512);
  assert_int_equal(checkpoint_metadata_integer(f, "llama.context_length", 0), 512);
  assert_int_equal(checkpoint_metadata_integer(f, "llama.rope.dimension_count", 0), 8);
  assert_true(checkpoint_metadata_number(f, "llama.rope.freq_base", 0) == 10000);
  assert_true((float)checkpoint_metadata_number(f, "llama.attention.layer_norm_rms_epsilon", 0) == 1e-5f);
  assert_int_equal(checkpoint_tensor_count(f), 2 + 5 * 9);
  assert_null(checkpoint_find(f, "output.weight")); /* the vocabulary size is positive: the head is the embedding */
  /* Offsets in floats, added up by hand: embedding 512*64; norms 5*64; wq 5*64*64; wk 5*32*64; ... */
  static const struct {
    const char* name;
    uint64_t rows, columns, at;
  } samples[] = {
      {"token_embd.weight", 512, 64, 0},
      {"blk.0.attn_norm.weight", 64, 0, 32768},
      {"blk.4.attn_norm.weight", 64, 0, 32768 + 4 * 64},
      {"blk.0.attn_q.weight", 64, 64, 33088},
      {"blk.3.attn_q.weight", 64, 64, 33088 + 3 * 4096},
      {"blk.1.attn_k.weight", 32, 64, 53568 + 2048},
      {"blk.2.attn_v.weight", 32, 64, 63808 + 2 * 2048},
      {"blk.4.attn_output.weight", 64, 64, 74048 + 4 * 4096},
      {"blk.0.ffn_norm.weight", 64, 0, 94528},
      {"blk.1.ffn_gate.weight", 172, 64, 94848 + 11008},
      {"blk.2.ffn_down.weight", 64, 172, 149888 + 2 * 11008},
      {"blk.4.ffn_up.weight", 172, 64, 204928 + 4 * 11008},
      {"output_norm.weight", 64, 0, 259968},
  };
  mapped_file file;
  assert_ok(mapped_file_open(path, &file));
  for (size_t i = 0; i < sizeof samples / sizeof samples[0]; ++i) {
    const checkpoint_tensor* tensor = checkpoint_find(f, samples[i].name);
    assert_non_null(tensor);
    assert_int_equal(tensor->type, ELEMENT_F32);
    assert_int_equal(tensor->rank, samples[i].columns ? 2 : 1);
    assert_int_equal(tensor->dims[0], samples[i].rows);
    if (samples[i].columns) assert_int_equal(tensor->dims[1], samples[i].columns);
    assert_memory_equal(tensor->data, file.data + 28 + 4 * samples[i].at, tensor->bytes);
  }
  mapped_file_close(&file);
  checkpoint_close(f);
}

/* A llama2.c file: width 4, feed-forward 6, 1 layer, 2 heads, 1 KV head, 3 tokens, context 5. Element k holds k. */
static size_t tiny_llama2c(bytes* b, bool untied) {
  static const int32_t header[7] = {4, 6, 1, 2, 1, 3, 5};
  b->size = 0;
  put(b, header, sizeof header);
  if (untied) memcpy(b->data + 20, &(int32_t){-3}, 4);
  size_t elements = 3 * 4 + 4 + 16 + 8 + 8 + 16 + 4 + 24 + 24 + 24 + 4 + 5 * 1 + 5 * 1 + (untied ? 3 * 4 : 0);
  for (size_t i = 0; i < elements; ++i) put(b, &(float){(float)i}, 4);
  return elements;
}

static void test_llama2c_untied_head(void** state) {
  (void)state;
  bytes b = {0};
  size_t elements = tiny_llama2c(&b, true);
  scratch_write("tiny.bin", b.data, b.size);
  checkpoint* f = NULL;
  assert_ok(checkpoint_open(scratch("tiny.bin"), &f));
  assert_int_equal(checkpoint_metadata_integer(f, "llama.vocab_size", 0), 3);
  assert_int_equal(checkpoint_metadata_integer(f, "llama.rope.dimension_count", 0), 2);
  float row[4];
  const checkpoint_tensor* head = checkpoint_find(f, "output.weight");
  assert_non_null(head);
  assert_ok(checkpoint_read_rows(head, 0, 1, row));
  assert_true(row[0] == (float)(elements - 12)); /* behind the two rotary tables */
  assert_ok(checkpoint_read_rows(checkpoint_find(f, "output_norm.weight"), 0, 1, row));
  assert_true(row[0] == 140);
  checkpoint_close(f);
  tiny_llama2c(&b, false);
  scratch_write("tiny.bin", b.data, b.size);
  assert_ok(checkpoint_open(scratch("tiny.bin"), &f));
  assert_null(checkpoint_find(f, "output.weight"));
  checkpoint_close(f);
}

static void test_llama2c_damage(void** state) {
  (void)state;
  bytes b = {0};
  tiny_llama2c(&b, false);
  size_t whole = b.size;
  scratch_write("cut.bin", b.data, whole - 1);
  char expected[80];
  snprintf(expected, sizeof expected, "a llama2.c checkpoint of %zu bytes, but the file has %zu", whole, whole - 1);
  assert_open_fails(scratch("cut.bin"), GENAI_ERROR_BAD_FILE, expected);
  put(&b, "\0\0\0\0", 4);
  scratch_write("long.bin", b.data, b.size);
  assert_open_fails(scratch("long.bin"), GENAI_ERROR_BAD_FILE, "a llama2.c checkpoint of");
  /* Every header byte changed, every length: refused, or (for the sign of the vocabulary) refused by size. */
  for (size_t at = 0; at < 28; ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      tiny_llama2c(&b, false);
      b.data[at] ^= (uint8_t)(1u << bit);
      uint64_t size;
      if (llama2c_recognise(b.data, b.size, &size)) fail_msg("byte %zu bit %u accepted", at, bit);
    }
  }
  tiny_llama2c(&b, false);
  uint64_t size;
  for (size_t length = 0; length < whole; ++length) assert_false(llama2c_recognise(b.data, length, &size));
  static const int32_t extreme[] = {INT32_MIN, INT32_MAX, 0, -1, -2};
  for (size_t field = 0; field < 7; ++field) {
    for (size_t i = 0; i < 5; ++i) {
      tiny_llama2c(&b, false);
      memcpy(b.data + 4 * field, &extreme[i], 4);
      assert_false(llama2c_recognise(b.data, b.size, &size));
    }
  }
}

static void test_what_is_no_checkpoint(void** state) {
  (void)state;
  static const struct {
    const char* name;
    const char* content;
    size_t size;
    genai_error_kind kind;
    const char* message;
  } samples[] = {
      {"a.gguf", "", 0, GENAI_ERROR_BAD_FILE, "a.gguf: the file is empty (0 bytes)"},
      {"a.bin", "", 0, GENAI_ERROR_BAD_FILE, "empty"},
      {"a.gguf", "version https://git-lfs.github.com/spec/v1\n", 43, GENAI_ERROR_BAD_FILE, "git lfs pull"},
      {"a.safetensors", "version https://git-lfs.github.com/spec/v1\n", 43, GENAI_ERROR_BAD_FILE, "git lfs pull"},
      {"pytorch_model.bin", "PK\3\4....", 8, GENAI_ERROR_UNSUPPORTED, "is a PyTorch checkpoint"},
      {"consolidated.00.pth", "\x80\2....", 6, GENAI_ERROR_UNSUPPORTED, "is a Python pickle"},
      {"ggml-model.bin", "tjgg\3\0\0\0", 8, GENAI_ERROR_UNSUPPORTED, "GGJT file from before GGUF"},
      {"ggml-model.bin", "lmgg\3\0\0\0", 8, GENAI_ERROR_UNSUPPORTED, "GGML file from before GGUF"},
      {"v1.bin", "24ka\1\0\0\0", 8, GENAI_ERROR_UNSUPPORTED, "export.py --version 0"},
      {"model.pte", "\x10\0\0\0ET12", 8, GENAI_ERROR_UNSUPPORTED, "genai generate"},
      {"a.gguf", "<!DOCTYPE html>", 15, GENAI_ERROR_UNSUPPORTED, "is a web page"},
      {"config.json", "{\"a\":1}", 7, GENAI_ERROR_UNSUPPORTED, "pass the directory that holds it"},
      {"a.gguf", "GGML", 4, GENAI_ERROR_UNSUPPORTED, "it begins with \"GGML\""},
      {"a.dat", "\1\2", 2, GENAI_ERROR_UNSUPPORTED, "it begins with \"\\x01\\x02\""},
  };
  for (size_t i = 0; i < sizeof samples / sizeof samples[0]; ++i) {
    scratch_write(samples[i].name, samples[i].content, samples[i].size);
    assert_open_fails(scratch(samples[i].name), samples[i].kind, samples[i].message);
  }
  assert_open_fails(scratch("absent"), GENAI_ERROR_NOT_FOUND, "absent");
}

static void test_a_safetensors_file_by_content(void** state) {
  (void)state;
  bytes b = {0};
  safetensors_file(&b, "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4);
  scratch_write("weights", b.data, b.size);
  assert_open_fails(scratch("weights"), GENAI_ERROR_NOT_FOUND, "no config.json beside it");
  scratch_write_text("config.json", "{}");
  checkpoint* f = NULL;
  assert_ok(checkpoint_open(scratch("weights"), &f));
  assert_non_null(checkpoint_find(f, "a"));
  checkpoint_close(f);
}

/* Bytes of this process in memory, page cache that it has mapped included. */
static size_t resident_bytes(void) {
  unsigned long size, resident;
  FILE* file = fopen("/proc/self/statm", "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%lu %lu", &size, &resident), 2);
  fclose(file);
  return resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* Two gigabytes of weights, as a file with a hole: opening touches the header, reading rows touches their pages. */
static void large_files_stay_on_disk(const char* name, const bytes* header, uint64_t size) {
  enum { LEEWAY = 4 << 20 };
  scratch_write(name, header->data, header->size);
  assert_int_equal(truncate(scratch(name), (off_t)size), 0);
  size_t before = resident_bytes();
  checkpoint* f = NULL;
  assert_ok(checkpoint_open(scratch(name), &f));
  const checkpoint_tensor* tensor = checkpoint_find(f, "large");
  assert_non_null(tensor);
  assert_int_equal(tensor->bytes, 2ull << 30);
  static float row[4096];
  row[4095] = 1;
  assert_ok(checkpoint_read_rows(tensor, tensor->dims[0] - 1, 1, row));
  assert_true(row[0] == 0 && row[4095] == 0);
  if (resident_bytes() > before + LEEWAY) fail_msg("%zu bytes more in memory", resident_bytes() - before);
  assert_ok(checkpoint_read_rows(tensor, 1000, 1, row));
  assert_true(resident_bytes() <= before + LEEWAY);
  checkpoint_close(f);
}

static void test_large_safetensors_stay_on_disk(void** state) {
  (void)state;
  bytes b = {0};
  safetensors_file(&b, "{\"large\":{\"dtype\":\"BF16\",\"shape\":[262144,4096],\"data_offsets\":[0,2147483648]}}", 0);
  scratch_write_text("config.json", "{}");
  large_files_stay_on_disk("model.safetensors", &b, b.size + (2ull << 30));
}

static void test_large_gguf_stays_on_disk(void** state) {
  (void)state;
  bytes b = {0};
  gguf_begin(&b, 1, 0);
  gguf_tensor(&b, "large", 2, (const uint64_t[]){4096, 262144}, 1, 0); /* F16 */
  pad_to(&b, 32);
  large_files_stay_on_disk("model.gguf", &b, b.size + (2ull << 30));
}

static void test_fingerprint(void** state) {
  (void)state;
  char hex[65];
  checkpoint* f = NULL;
  assert_ok(checkpoint_open(test_data("gguf/metadata.gguf"), &f));
  assert_ok(checkpoint_fingerprint(f, hex));
  assert_string_equal(hex, "c557bd9194add77af3fc588da3a0dc9d9e0140322a6b161c721bee41189755d8"); /* sha256sum metadata.gguf */
  checkpoint_close(f);
  assert_ok(checkpoint_open(test_data("checkpoints/llama-sharded-f16"), &f));
  assert_ok(checkpoint_fingerprint(f, hex));
  /* LC_ALL=C; sha256sum config.json generation_config.json model* | sha256sum */
  assert_string_equal(hex, "afed5365cd9344484a400206aae616f4581b8e979aa615a74efcc0ddf443b0d5");
  checkpoint_close(f);
}

static void test_many_names(void** state) {
  (void)state;
  name_table table = {0};
  static char names[3000][16];
  bool added;
  size_t index;
  assert_false(name_table_find(&table, "nothing", &index));
  for (size_t i = 0; i < 3000; ++i) {
    snprintf(names[i], sizeof names[i], "blk.%zu", i);
    assert_ok(name_table_add(&table, names[i], i, &added));
    assert_true(added);
  }
  for (size_t i = 0; i < 3000; ++i) {
    assert_true(name_table_find(&table, names[i], &index));
    assert_int_equal(index, i);
    assert_ok(name_table_add(&table, names[i], 9, &added));
    assert_false(added);
  }
  assert_false(name_table_find(&table, "blk.3000", &index));
  name_table_deinit(&table);
}

static void test_quoting(void** state) {
  (void)state;
  assert_string_equal(quote_name("a\0\n\xC3\xA9z", 6).text, "a\\x00\\x0A\\xC3\\xA9z");
  char longer[300];
  memset(longer, 'n', sizeof longer);
  assert_int_equal(strlen(quote_name(longer, sizeof longer).text), 135);
  memset(longer, 1, sizeof longer);
  assert_int_equal(strlen(quote_name(longer, sizeof longer).text), 135);
  assert_string_equal(quote_name(longer, sizeof longer).text + 132, "...");
  assert_string_equal(quote_name(longer, 0).text, "");
  uint64_t dims[] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
  assert_string_equal(describe_shape(dims, 4).text,
                      "[18446744073709551615, 18446744073709551615, 18446744073709551615, 18446744073709551615]");
  assert_string_equal(describe_shape(dims, 0).text, "[]");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_stories260k),
      cmocka_unit_test_setup_teardown(test_llama2c_untied_head, scratch_create, scratch_remove),
      cmocka_unit_test_setup_teardown(test_llama2c_damage, scratch_create, scratch_remove),
      cmocka_unit_test_setup_teardown(test_what_is_no_checkpoint, scratch_create, scratch_remove),
      cmocka_unit_test_setup_teardown(test_a_safetensors_file_by_content, scratch_create, scratch_remove),
      cmocka_unit_test_setup_teardown(test_large_safetensors_stay_on_disk, scratch_create, scratch_remove),
      cmocka_unit_test_setup_teardown(test_large_gguf_stays_on_disk, scratch_create, scratch_remove),
      cmocka_unit_test(test_fingerprint),
      cmocka_unit_test(test_many_names),
      cmocka_unit_test(test_quoting),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
