/* Hugging Face directories: which files make up a model, and what is refused with which advice. Tensor values are compared with what safetensors
 * and torch read (tests/tools/make_safetensors_data.py). */
#include "checkpoint_support.h"

static const char f32_a[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
static const char f32_b[] = "{\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";

static void write_tensors(const char* name, const char* header, size_t data) {
  bytes b = {0};
  safetensors_file(&b, header, data);
  scratch_write(name, b.data, b.size);
}

static void test_values(void** state) {
  (void)state;
  FILE* list = fopen(test_data("safetensors/widened.txt"), "r");
  assert_non_null(list);
  char model[64], name[128], type[8], shape[64], digest[65], opened[64] = "";
  checkpoint* file = NULL;
  size_t compared = 0, expected_count = 0;
  while (fscanf(list, "%63s %127s %7s %63s %64s", model, name, type, shape, digest) == 5) {
    if (strcmp(model, opened)) {
      if (file) assert_int_equal(checkpoint_tensor_count(file), expected_count);
      checkpoint_close(file);
      char path[128];
      snprintf(path, sizeof path, "checkpoints/%s", model);
      assert_ok(checkpoint_open(test_data(path), &file));
      assert_int_equal(checkpoint_format_of(file), CHECKPOINT_HUGGING_FACE);
      strcpy(opened, model);
      expected_count = 0;
    }
    const checkpoint_tensor* tensor = checkpoint_find(file, name);
    assert_non_null(tensor);
    assert_string_equal(element_type_name(tensor->type), type);
    char got_shape[64] = "", got[65];
    for (uint32_t i = 0; i < tensor->rank; ++i)
      snprintf(got_shape + strlen(got_shape), sizeof got_shape - strlen(got_shape), i ? "x%llu" : "%llu",
               (unsigned long long)tensor->dims[i]);
    assert_string_equal(got_shape, shape);
    tensor_digest(tensor, got);
    if (strcmp(got, digest)) fail_msg("%s %s", model, name);
    ++compared;
    ++expected_count;
  }
  assert_int_equal(checkpoint_tensor_count(file), expected_count);
  checkpoint_close(file);
  fclose(list);
  assert_int_equal(compared, 61);
}

static void test_configs(void** state) {
  (void)state;
  checkpoint* f = NULL;
  assert_ok(checkpoint_open(test_data("checkpoints/llama"), &f));
  assert_string_equal(checkpoint_path(f), test_data("checkpoints/llama"));
  assert_int_equal(json_integer(json_get(checkpoint_config(f), "vocab_size"), 0), 320);
  assert_int_equal(json_type_of(checkpoint_generation_config(f)), JSON_OBJECT);
  assert_int_equal(checkpoint_metadata_count(f), 0);
  assert_null(checkpoint_metadata(f, "general.architecture"));
  checkpoint_close(f);
}

static void assert_tensors(const char* path, size_t count) {
  checkpoint* f = NULL;
  assert_ok(checkpoint_open(path, &f));
  assert_int_equal(checkpoint_tensor_count(f), count);
  checkpoint_close(f);
}

static void test_a_file_stands_for_its_directory(void** state) {
  (void)state;
  assert_tensors(test_data("checkpoints/llama/model.safetensors"), 21);
  assert_tensors(test_data("checkpoints/llama-sharded-f16/model-00002-of-00002.safetensors"), 20); /* listed in the index */
  scratch_write_text("config.json", "{}");
  write_tensors("x-00001-of-00002.safetensors", f32_a, 4);
  write_tensors("x-00002-of-00002.safetensors", f32_b, 4);
  write_tensors("other.safetensors", f32_a, 4);
  assert_tensors(scratch("x-00002-of-00002.safetensors"), 2); /* no index: their numbering */
  assert_tensors(scratch("other.safetensors"), 1);
  unlink(scratch("config.json"));
  assert_open_fails(scratch("other.safetensors"), GENAI_ERROR_NOT_FOUND, "other.safetensors: no config.json beside it");
}

static void test_without_index(void** state) {
  (void)state;
  scratch_write_text("config.json", "{}");
  write_tensors("b.safetensors", f32_b, 4);
  write_tensors("a.safetensors", f32_a, 4);
  write_tensors("consolidated.safetensors", f32_a, 4); /* Mistral repositories hold the weights twice */
  write_tensors("adapter_model.safetensors", f32_a, 4);
  assert_tensors(scratch_directory, 2);
  write_tensors("model.safetensors", f32_b, 4);
  assert_tensors(scratch_directory, 1);
}

static void test_without_index_a_number_missing(void** state) {
  (void)state;
  scratch_write_text("config.json", "{}");
  write_tensors("model-00001-of-00003.safetensors", f32_a, 4);
  write_tensors("model-00003-of-00003.safetensors", f32_b, 4);
  assert_open_fails(scratch_directory, GENAI_ERROR_NOT_FOUND,
                    "1 of the 3 files that their numbering asks for are missing: model-00002-of-00003.safetensors");
}

static void test_twice_in_two_files(void** state) {
  (void)state;
  scratch_write_text("config.json", "{}");
  write_tensors("a.safetensors", f32_a, 4);
  write_tensors("b.safetensors", f32_a, 4);
  assert_open_fails(scratch_directory, GENAI_ERROR_BAD_FILE, "b.safetensors: tensor \"a\" is there twice");
}

static const char index_name[] = "model.safetensors.index.json";

static void test_index(void** state) {
  (void)state;
  scratch_write_text("config.json", "{}");
  scratch_write_text(index_name, "{\"metadata\":{\"total_size\":8},\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"two.safetensors\"}}");
  write_tensors("one.safetensors", f32_a, 4);
  write_tensors("two.safetensors", f32_b, 4);
  write_tensors("three.safetensors", f32_b, 4); /* not listed, not opened */
  assert_tensors(scratch_directory, 2);
  /* A tensor that the index does not list is used, with a warning. */
  write_tensors(
      "two.safetensors",
      "{\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"c\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8);
  capture_log();
  assert_tensors(scratch_directory, 3);
  log_set_sink(NULL, NULL, LOG_ERROR);
  assert_non_null(strstr(captured_log, "1 tensors are in the files but not in the index"));
  /* A mask that is passed over still counts as found. */
  write_tensors("two.safetensors", "{\"b\":{\"dtype\":\"BOOL\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4);
  assert_tensors(scratch_directory, 1);
  write_tensors("two.safetensors", "{}", 0);
  assert_open_fails(scratch_directory, GENAI_ERROR_BAD_FILE, "tensor \"b\" is said to be in two.safetensors, but no file holds it");
  scratch_write("two.safetensors", "", 0);
  assert_open_fails(scratch_directory, GENAI_ERROR_BAD_FILE, "two.safetensors: the file is empty");
  scratch_write_text("two.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 4\n");
  assert_open_fails(scratch_directory, GENAI_ERROR_BAD_FILE, "two.safetensors is a Git LFS pointer");
  unlink(scratch("two.safetensors"));
  assert_open_fails(scratch_directory, GENAI_ERROR_NOT_FOUND,
                    "1 of the 2 files that model.safetensors.index.json asks for are missing: two.safetensors");
}

static void test_bad_index(void** state) {
  (void)state;
  scratch_write_text("config.json", "{}");
  static const char* const indexes[] = {"{}", "{\"weight_map\":{}}", "{\"weight_map\":[]}"};
  for (size_t i = 0; i < 3; ++i) {
    scratch_write_text(index_name, indexes[i]);
    assert_open_fails(scratch_directory, GENAI_ERROR_BAD_FILE, "no \"weight_map\" object");
  }
  static const char* const names[] = {"{\"weight_map\":{\"a\":\"../x.safetensors\"}}", "{\"weight_map\":{\"a\":5}}",
                                      "{\"weight_map\":{\"a\":\"\"}}"};
  for (size_t i = 0; i < 3; ++i) {
    scratch_write_text(index_name, names[i]);
    assert_open_fails(scratch_directory, GENAI_ERROR_BAD_FILE, "tensor \"a\" is said to be in \"");
  }
  scratch_write_text(index_name, "{\"weight_map\":");
  assert_open_fails(scratch_directory, GENAI_ERROR_BAD_FILE, "model.safetensors.index.json: not valid JSON");
}

static void test_config_damage(void** state) {
  (void)state;
  write_tensors("model.safetensors", f32_a, 4);
  scratch_write_text("config.json", "{\"hidden_size\": 64,}");
  assert_open_fails(scratch_directory, GENAI_ERROR_BAD_FILE, "config.json: not valid JSON at line 1, column 20");
  scratch_write_text("config.json", "[]");
  assert_open_fails(scratch_directory, GENAI_ERROR_BAD_FILE, "config.json: not a JSON object");
  scratch_write_text("config.json", "{}");
  scratch_write_text("generation_config.json", "");
  assert_open_fails(scratch_directory, GENAI_ERROR_BAD_FILE, "generation_config.json: the file is empty");
  unlink(scratch("generation_config.json"));
  checkpoint* f = NULL;
  assert_ok(checkpoint_open(scratch_directory, &f));
  assert_int_equal(json_type_of(checkpoint_generation_config(f)), JSON_ABSENT);
  checkpoint_close(f);
}

static void test_quantized_is_refused(void** state) {
  (void)state;
  write_tensors("model.safetensors", f32_a, 4);
  scratch_write_text("config.json", "{\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4}}");
  assert_open_fails(scratch_directory, GENAI_ERROR_UNSUPPORTED, "\"quantization_config\" (gptq): the checkpoint is quantized already");
  scratch_write_text("config.json", "{\"text_config\":{\"quantization_config\":{\"bits\":4}}}");
  assert_open_fails(scratch_directory, GENAI_ERROR_UNSUPPORTED, "(no quant_method)");
  scratch_write_text("config.json", "{\"compression_config\":{\"quant_method\":\"compressed-tensors\"}}");
  assert_open_fails(scratch_directory, GENAI_ERROR_UNSUPPORTED, "compressed-tensors");
  scratch_write_text("config.json", "{\"quantization_config\":null}");
  assert_tensors(scratch_directory, 1);
}

static void test_other_layouts(void** state) {
  (void)state;
  assert_open_fails(scratch_directory, GENAI_ERROR_NOT_FOUND, "no config.json; expected a Hugging Face checkpoint");
  scratch_write_text("adapter_config.json", "{}");
  assert_open_fails(scratch_directory, GENAI_ERROR_UNSUPPORTED, "LoRA adapter");
  scratch_write_text("model.Q4_0.gguf", "GGUF");
  assert_open_fails(scratch_directory, GENAI_ERROR_NOT_FOUND, "pass the file itself, such as");
  scratch_write_text("params.json", "{}");
  scratch_write_text("consolidated.00.pth", "PK");
  assert_open_fails(scratch_directory, GENAI_ERROR_UNSUPPORTED, "Meta's own layout (consolidated.*.pth); convert it with");
  scratch_write_text("config.json", "{}");
  assert_open_fails(scratch_directory, GENAI_ERROR_UNSUPPORTED, "PyTorch pickles");
  unlink(scratch("consolidated.00.pth"));
  assert_open_fails(scratch_directory, GENAI_ERROR_NOT_FOUND, "but no .safetensors file");
  scratch_write_text("pytorch_model-00001-of-00002.bin", "PK");
  assert_open_fails(scratch_directory, GENAI_ERROR_UNSUPPORTED, "save_pretrained(..., safe_serialization=True)");
}

static void test_allocation_failures(void** state) {
  (void)state;
  for (unsigned nth = 1, succeeded = 0; succeeded < 40; ++nth) { /* JSON may fail to shrink its blocks without harm */
    checkpoint* file = NULL;
    mem_inject_failure(nth);
    genai_status* status = checkpoint_open(test_data("checkpoints/llama-sharded-f16"), &file);
    mem_inject_failure(0);
    if (status) {
      succeeded = 0;
      assert_null(file);
      assert_int_equal(genai_status_kind(status), GENAI_ERROR_OUT_OF_MEMORY);
      genai_status_free(status);
    } else {
      ++succeeded;
      checkpoint_close(file);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_values),
      cmocka_unit_test(test_configs),
      cmocka_unit_test_setup_teardown(test_a_file_stands_for_its_directory, scratch_create, scratch_remove),
      cmocka_unit_test_setup_teardown(test_without_index, scratch_create, scratch_remove),
      cmocka_unit_test_setup_teardown(test_without_index_a_number_missing, scratch_create, scratch_remove),
      cmocka_unit_test_setup_teardown(test_twice_in_two_files, scratch_create, scratch_remove),
      cmocka_unit_test_setup_teardown(test_index, scratch_create, scratch_remove),
      cmocka_unit_test_setup_teardown(test_bad_index, scratch_create, scratch_remove),
      cmocka_unit_test_setup_teardown(test_config_damage, scratch_create, scratch_remove),
      cmocka_unit_test_setup_teardown(test_quantized_is_refused, scratch_create, scratch_remove),
      cmocka_unit_test_setup_teardown(test_other_layouts, scratch_create, scratch_remove),
      cmocka_unit_test(test_allocation_failures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
