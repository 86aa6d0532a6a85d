/* Well-formed GGUF files: metadata, tensors, block types, split files. The files and the expected numbers were written by the `gguf` Python
 * package (tests/tools/make_gguf_data.py), an implementation independent of ours. */
#include <math.h>

#include "checkpoint_support.h"

static checkpoint* open_data(const char* name) {
  checkpoint* file = NULL;
  assert_ok(checkpoint_open(test_data(name), &file));
  assert_int_equal(checkpoint_format_of(file), CHECKPOINT_GGUF);
  return file;
}

static void test_block_types(void** state) {
  (void)state;
  static const struct {
    const char* name;
    element_type type;
  } samples[] = {
      {"q4_0", ELEMENT_Q4_0},     {"q4_1", ELEMENT_Q4_1},     {"q5_0", ELEMENT_Q5_0},   {"q5_1", ELEMENT_Q5_1}, {"q8_0", ELEMENT_Q8_0},
      {"q2_k", ELEMENT_Q2_K},     {"q3_k", ELEMENT_Q3_K},     {"q4_k", ELEMENT_Q4_K},   {"q5_k", ELEMENT_Q5_K}, {"q6_k", ELEMENT_Q6_K},
      {"iq4_nl", ELEMENT_IQ4_NL}, {"iq4_xs", ELEMENT_IQ4_XS}, {"mxfp4", ELEMENT_MXFP4},
  };
  checkpoint* file = open_data("gguf/dequantize.gguf");
  for (size_t s = 0; s < sizeof samples / sizeof samples[0]; ++s) {
    char expected_name[32];
    snprintf(expected_name, sizeof expected_name, "%s.expected", samples[s].name);
    const checkpoint_tensor* tensor = checkpoint_find(file, samples[s].name);
    const checkpoint_tensor* expected = checkpoint_find(file, expected_name);
    assert_non_null(tensor);
    assert_non_null(expected);
    assert_int_equal(tensor->type, samples[s].type);
    assert_int_equal(tensor->rank, 2);
    assert_int_equal(tensor->dims[0], 3);
    assert_int_equal(tensor->dims[1], 512);
    float got[2 * 512], want[2 * 512];
    assert_ok(checkpoint_read_rows(tensor, 1, 2, got));
    assert_ok(checkpoint_read_rows(expected, 1, 2, want));
    for (size_t i = 0; i < 2 * 512; ++i) {
      float a = got[i], b = want[i];
      /* Random scales can be NaN; which NaN comes out of arithmetic is not defined. */
      if (memcmp(&a, &b, sizeof a) && !(isnan(a) && isnan(b)))
        fail_msg("%s element %zu: %.9g, expected %.9g", samples[s].name, i, (double)a, (double)b);
    }
  }
  checkpoint_close(file);
}

static void test_block_sizes(void** state) {
  (void)state;
  /* gguf.constants.GGML_QUANT_SIZES */
  static const uint32_t sizes[ELEMENT_TYPE_COUNT][2] = {{1, 4},     {1, 2},   {1, 2},     {32, 18},   {32, 20},   {32, 22},
                                                        {32, 24},   {32, 34}, {256, 84},  {256, 110}, {256, 144}, {256, 176},
                                                        {256, 210}, {32, 18}, {256, 136}, {32, 17}};
  static const char* const names[] = {"F32",  "F16",  "BF16", "Q4_0", "Q4_1", "Q5_0",   "Q5_1",   "Q8_0",
                                      "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4"};
  for (int i = 0; i < ELEMENT_TYPE_COUNT; ++i) {
    assert_string_equal(element_type_name((element_type)i), names[i]);
    assert_int_equal(element_block_size((element_type)i), sizes[i][0]);
    assert_int_equal(element_block_bytes((element_type)i), sizes[i][1]);
  }
}

static void assert_pair(const checkpoint* file, const char* key, gguf_type element, double first, double second) {
  const gguf_value* value = checkpoint_metadata(file, key);
  assert_non_null(value);
  assert_int_equal(value->type, GGUF_ARRAY);
  assert_int_equal(value->element, element);
  assert_int_equal(value->count, 2);
  if (gguf_array_number(value, 0) != first || gguf_array_number(value, 1) != second)
    fail_msg("%s: %.17g %.17g", key, gguf_array_number(value, 0), gguf_array_number(value, 1));
  assert_true(gguf_array_number(value, 2) == 0); /* beyond the end */
}

static void test_metadata(void** state) {
  (void)state;
  checkpoint* f = open_data("gguf/metadata.gguf");
  assert_int_equal(checkpoint_metadata_count(f), 28);
  assert_string_equal(checkpoint_metadata_at(f, 0)->key, "general.architecture");
  assert_true(text_view_equal_cstr(checkpoint_metadata_string(f, "general.architecture"), "test"));
  assert_int_equal(checkpoint_metadata_integer(f, "u8", 0), 200);
  assert_int_equal(checkpoint_metadata_integer(f, "i8", 0), -100);
  assert_int_equal(checkpoint_metadata_integer(f, "u16", 0), 60000);
  assert_int_equal(checkpoint_metadata_integer(f, "i16", 0), -30000);
  assert_int_equal(checkpoint_metadata_integer(f, "u32", 0), 4000000000);
  assert_int_equal(checkpoint_metadata_integer(f, "i32", 0), -2000000000);
  assert_int_equal(checkpoint_metadata_integer(f, "i64", 0), INT64_MIN);
  assert_int_equal(checkpoint_metadata_integer(f, "u64", -7), -7); /* does not fit */
  assert_true(checkpoint_metadata(f, "u64")->as.u == UINT64_MAX);
  assert_true(checkpoint_metadata_number(f, "u64", 0) == 0x1p64);
  assert_true(checkpoint_metadata_number(f, "f32", 0) == (double)0.1f);
  assert_true(checkpoint_metadata_number(f, "f64", 0) == 0.1);
  assert_int_equal(checkpoint_metadata_integer(f, "f64", 3), 3); /* not an integer */
  assert_true(checkpoint_metadata_number(f, "i16", 0) == -30000);
  assert_int_equal(checkpoint_metadata_integer(f, "yes", 5), 1);
  assert_int_equal(checkpoint_metadata_integer(f, "no", 5), 0);
  assert_true(text_view_equal_cstr(checkpoint_metadata_string(f, "string"), "na\xC3\xAFve \xF0\x9F\xA6\x99\n"));
  assert_int_equal(checkpoint_metadata(f, "empty string")->as.s.length, 0);
  assert_null(checkpoint_metadata_string(f, "u8").data);
  assert_null(checkpoint_metadata(f, "absent"));
  assert_int_equal(checkpoint_metadata_integer(f, "absent", 11), 11);
  assert_int_equal(checkpoint_metadata_integer(f, "string", 12), 12);
  assert_true(checkpoint_metadata_number(f, "string", 1.5) == 1.5);
  assert_pair(f, "u8s", GGUF_U8, 0, 255);
  assert_pair(f, "i8s", GGUF_I8, -128, 127);
  assert_pair(f, "u16s", GGUF_U16, 1, 65535);
  assert_pair(f, "i16s", GGUF_I16, -32768, 5);
  assert_pair(f, "u32s", GGUF_U32, 7, 4294967295.0);
  assert_pair(f, "i32s", GGUF_I32, -2147483648.0, 9);
  assert_pair(f, "f32s", GGUF_F32, 1.5, -0.25);
  assert_pair(f, "u64s", GGUF_U64, 0x1p53, 3);
  assert_pair(f, "i64s", GGUF_I64, -0x1p53, 4);
  assert_pair(f, "f64s", GGUF_F64, 0.1, -1e300);
  assert_pair(f, "bools", GGUF_BOOL, 1, 0);
  const gguf_value* strings = checkpoint_metadata(f, "strings");
  assert_int_equal(strings->element, GGUF_STRING);
  assert_int_equal(strings->count, 3);
  static const char* const expected[] = {"a", "bc", "d\303\251f"};
  for (size_t i = 0; i < 3; ++i) assert_true(text_view_equal_cstr(((const text_view*)strings->as.items)[i], expected[i]));
  assert_true(gguf_array_number(strings, 0) == 0);
  assert_int_equal(json_type_of(checkpoint_config(f)), JSON_ABSENT);
  assert_int_equal(json_type_of(checkpoint_generation_config(f)), JSON_ABSENT);
  checkpoint_close(f);
}

static void test_tensors(void** state) {
  (void)state;
  checkpoint* f = open_data("gguf/metadata.gguf");
  assert_int_equal(checkpoint_tensor_count(f), 2);
  const checkpoint_tensor* matrix = checkpoint_find(f, "matrix");
  assert_ptr_equal(matrix, checkpoint_tensor_at(f, 0));
  assert_int_equal(matrix->rank, 2);
  assert_int_equal(matrix->dims[0], 2); /* outermost first */
  assert_int_equal(matrix->dims[1], 3);
  assert_int_equal(matrix->bytes, 24);
  assert_int_equal((uintptr_t)matrix->data % 64, 0); /* general.alignment of this file */
  float row[24];
  assert_ok(checkpoint_read_rows(matrix, 1, 1, row));
  for (int i = 0; i < 3; ++i) assert_true(row[i] == (float)(3 + i));
  const checkpoint_tensor* cube = checkpoint_find(f, "cube");
  assert_int_equal(cube->rank, 3);
  assert_int_equal(cube->dims[0] * 100 + cube->dims[1] * 10 + cube->dims[2], 234);
  assert_ok(checkpoint_read_rows(cube, 0, 6, row)); /* rows run over both outer dimensions */
  for (int i = 0; i < 24; ++i) assert_true(row[i] == (float)i);
  assert_ok(checkpoint_read_rows(cube, 6, 0, row));
  assert_fails(checkpoint_read_rows(cube, 6, 1, row), GENAI_ERROR_INVALID_ARGUMENT, "rows 6 to 7 of tensor \"cube\"");
  assert_fails(checkpoint_read_rows(cube, 1, UINT64_MAX, row), GENAI_ERROR_INVALID_ARGUMENT, "has 6");
  assert_null(checkpoint_find(f, "absent"));
  checkpoint_close(f);
}

static void test_version_2_is_the_same(void** state) {
  (void)state;
  mapped_file file;
  assert_ok(mapped_file_open(test_data("gguf/metadata.gguf"), &file));
  uint8_t* copy = malloc(file.size);
  memcpy(copy, file.data, file.size);
  copy[4] = 2;
  checkpoint out = {0};
  assert_ok(parse_exact(gguf_parse, copy, file.size, &out));
  assert_int_equal(out.metadata_count, 28);
  assert_int_equal(out.tensor_count, 2);
  checkpoint_deinit(&out);
  free(copy);
  mapped_file_close(&file);
}

static void assert_whole_model(const char* path) {
  checkpoint* f = NULL;
  assert_ok(checkpoint_open(path, &f));
  assert_int_equal(checkpoint_tensor_count(f), 5);
  assert_int_equal(checkpoint_metadata_integer(f, "llama.block_count", 0), 1);
  for (int i = 0; i < 5; ++i) {
    char name[16];
    snprintf(name, sizeof name, "tensor.%d", i);
    const checkpoint_tensor* tensor = checkpoint_find(f, name);
    assert_non_null(tensor);
    assert_ptr_equal(tensor, checkpoint_tensor_at(f, (size_t)i));
    float row[4];
    assert_ok(checkpoint_read_rows(tensor, 1, 1, row));
    for (int j = 0; j < 4; ++j) assert_true(row[j] == (float)i);
  }
  checkpoint_close(f);
}

static const char* const parts[] = {"split-00001-of-00003.gguf", "split-00002-of-00003.gguf", "split-00003-of-00003.gguf"};

static const char* part_path(int i) {
  char name[64];
  snprintf(name, sizeof name, "gguf/%s", parts[i]);
  return test_data(name);
}

static void test_split_opens_from_any_part(void** state) {
  (void)state;
  for (int i = 0; i < 3; ++i) assert_whole_model(part_path(i));
}

static void test_split_without_a_part(void** state) {
  (void)state;
  scratch_copy(part_path(0), parts[0]);
  scratch_copy(part_path(2), parts[2]);
  assert_open_fails(scratch(parts[0]), GENAI_ERROR_NOT_FOUND,
                    "1 of the 3 parts of this split model are missing: split-00002-of-00003.gguf");
  assert_open_fails(scratch(parts[2]), GENAI_ERROR_NOT_FOUND, "split-00002-of-00003.gguf");
}

static void test_split_with_an_empty_part(void** state) {
  (void)state;
  scratch_copy(part_path(0), parts[0]);
  scratch_write(parts[1], "", 0);
  scratch_copy(part_path(2), parts[2]);
  assert_open_fails(scratch(parts[0]), GENAI_ERROR_BAD_FILE, "part 2 of 3");
  assert_open_fails(scratch(parts[0]), GENAI_ERROR_BAD_FILE, "empty (0 bytes)");
  assert_open_fails(scratch(parts[1]), GENAI_ERROR_BAD_FILE, "split-00002-of-00003.gguf: the file is empty");
  scratch_write(parts[1], "GGUF\3\0\0", 7);
  assert_open_fails(scratch(parts[0]), GENAI_ERROR_BAD_FILE, "part 2 of 3");
}

static void test_split_with_parts_exchanged(void** state) {
  (void)state;
  scratch_copy(part_path(0), parts[0]);
  scratch_copy(part_path(1), parts[2]);
  scratch_copy(part_path(2), parts[1]);
  assert_open_fails(scratch(parts[0]), GENAI_ERROR_BAD_FILE, "by its name part 2 of 3, by its metadata part 3 of 3");
  scratch_copy(part_path(1), parts[0]);
  assert_open_fails(scratch(parts[0]), GENAI_ERROR_BAD_FILE, "not the first of 3 parts");
}

static void test_split_with_other_names(void** state) {
  (void)state;
  scratch_copy(part_path(0), "model.gguf");
  assert_open_fails(scratch("model.gguf"), GENAI_ERROR_BAD_FILE, "part 1 of a model split into 3 files");
  scratch_copy(part_path(0), "model-00001-of-00002.gguf");
  assert_open_fails(scratch("model-00001-of-00002.gguf"), GENAI_ERROR_BAD_FILE, "part 1 of a model split into 3 files");
}

static void test_split_joined_with_cat(void** state) {
  (void)state;
  bytes all = {0};
  for (int i = 0; i < 3; ++i) {
    mapped_file file;
    assert_ok(mapped_file_open(part_path(i), &file));
    put(&all, file.data, file.size);
    mapped_file_close(&file);
  }
  scratch_write("joined.gguf", all.data, all.size);
  assert_open_fails(scratch("joined.gguf"), GENAI_ERROR_BAD_FILE, "another GGUF file begins at byte 352");
}

static void test_name_of_one_part_is_complete(void** state) {
  (void)state;
  scratch_copy(test_data("gguf/metadata.gguf"), "model-00001-of-00001.gguf");
  checkpoint* f = NULL;
  assert_ok(checkpoint_open(scratch("model-00001-of-00001.gguf"), &f));
  assert_int_equal(checkpoint_tensor_count(f), 2);
  checkpoint_close(f);
}

static void test_tensors_missing_by_count(void** state) {
  (void)state;
  mapped_file file;
  bytes first = {0};
  assert_ok(mapped_file_open(part_path(0), &file));
  put(&first, file.data, file.size);
  mapped_file_close(&file);
  uint8_t* key = memmem(first.data, first.size, "split.tensors.count", 19);
  assert_non_null(key);
  key[19 + 4] = 6; /* after the type code */
  scratch_write(parts[0], first.data, first.size);
  scratch_copy(part_path(1), parts[1]);
  scratch_copy(part_path(2), parts[2]);
  assert_open_fails(scratch(parts[0]), GENAI_ERROR_BAD_FILE, "the 3 parts hold 5 tensors, expected 6");
}

static void test_smollm2(void** state) {
  (void)state;
  const char* path = test_environment("GENAI_MODEL_GGUF");
  skip_unless_file(path);
  FILE* list = fopen(test_data("gguf/smollm2.txt"), "r");
  assert_non_null(list);
  char fingerprint[65], expected[65];
  assert_int_equal(fscanf(list, "%64s", expected), 1);
  checkpoint* f = NULL;
  assert_ok(checkpoint_open(path, &f));
  assert_ok(checkpoint_fingerprint(f, fingerprint));
  if (strcmp(fingerprint, expected)) {
    fclose(list);
    checkpoint_close(f);
    print_message("skipped: %s is another model\n", path);
    skip();
  }
  char name[64], type[16], digest[65];
  unsigned long long rows;
  size_t compared = 0;
  while (fscanf(list, "%63s %15s %llu %64s", name, type, &rows, digest) == 4) {
    const checkpoint_tensor* tensor = checkpoint_find(f, name);
    assert_non_null(tensor);
    assert_string_equal(element_type_name(tensor->type), type);
    assert_int_equal(tensor->dims[0], rows);
    char got[65];
    tensor_digest(tensor, got);
    assert_string_equal(got, digest);
    ++compared;
  }
  assert_int_equal(compared, 5);
  fclose(list);
  checkpoint_close(f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_block_types),
      cmocka_unit_test(test_block_sizes),
      cmocka_unit_test(test_metadata),
      cmocka_unit_test(test_tensors),
      cmocka_unit_test(test_version_2_is_the_same),
      cmocka_unit_test(test_split_opens_from_any_part),
      cmocka_unit_test_setup_teardown(test_split_without_a_part, scratch_create, scratch_remove),
      cmocka_unit_test_setup_teardown(test_split_with_an_empty_part, scratch_create, scratch_remove),
      cmocka_unit_test_setup_teardown(test_split_with_parts_exchanged, scratch_create, scratch_remove),
      cmocka_unit_test_setup_teardown(test_split_with_other_names, scratch_create, scratch_remove),
      cmocka_unit_test_setup_teardown(test_split_joined_with_cat, scratch_create, scratch_remove),
      cmocka_unit_test_setup_teardown(test_name_of_one_part_is_complete, scratch_create, scratch_remove),
      cmocka_unit_test_setup_teardown(test_tensors_missing_by_count, scratch_create, scratch_remove),
      cmocka_unit_test(test_smollm2),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
