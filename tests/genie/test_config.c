/* Bundle configurations: what is written against the members that Genie's documentation prescribes (GenieDialog, QnnHtp backend, basic dialog),
 * and every way in which a bundle can be incomplete. That Genie itself takes what is written is test_dialog.c's business. */
#include <limits.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "genie/genie.h"
#include "support.h"

static char folder[64];

static int make_folder(void** state) {
  (void)state;
  strcpy(folder, "/tmp/genai-genie-XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void** state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command);
}

static const char* in_folder(const char* name) {
  return test_path(folder, name);
}

static void write_file(const char* name, const char* content) {
  assert_ok(file_write_atomic(in_folder(name), content, strlen(content)));
}

static json_value at(json_value value, const char* path) {
  char copy[128];
  snprintf(copy, sizeof copy, "%s", path);
  for (char* part = strtok(copy, "/"); part; part = strtok(NULL, "/")) value = json_get(value, part);
  return value;
}

static const int32_t stops[] = {2, 32007};
static genie_config example(void) {
  return (genie_config){.context_length = 64,
                        .vocab_size = 320,
                        .head_dim = 16,
                        .bos_id = 1,
                        .stop_ids = stops,
                        .n_stop_ids = 2,
                        .binary = "model.bin",
                        .tokenizer = "tokenizer.json"};
}

static void a_configuration_has_what_genie_prescribes(void** state) {
  (void)state;
  genie_config config = example();
  text out = {0};
  json_document* document;
  assert_ok(genie_config_write(&config, &out));
  assert_ok(json_parse(out.data, out.length, "config", &document));
  json_value dialog = json_get(json_root(document), "dialog");
  static const char* const versioned[] = {
      "context", "sampler", "tokenizer", "engine", "engine/backend", "engine/backend/QnnHtp", "engine/model", "engine/model/binary"};
  assert_int_equal(json_integer(json_get(dialog, "version"), 0), 1);
  for (size_t i = 0; i < sizeof versioned / sizeof versioned[0]; i++) {
    char path[64];
    snprintf(path, sizeof path, "%s/version", versioned[i]);
    if (json_integer(at(dialog, path), 0) != 1) fail_msg("%s", path);
  }
  static const struct {
    const char* path;
    const char* value;
  } strings[] = {{"type", "basic"},
                 {"tokenizer/path", "tokenizer.json"},
                 {"engine/backend/type", "QnnHtp"},
                 {"engine/model/type", "binary"},
                 {"engine/model/positional-encoding/type", "absolute"}};
  for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
    if (!text_view_equal_cstr(json_string(at(dialog, strings[i].path)), strings[i].value)) fail_msg("%s", strings[i].path);
  }
  assert_int_equal(json_integer(at(dialog, "context/size"), 0), 64);
  assert_int_equal(json_integer(at(dialog, "context/n-vocab"), 0), 320);
  assert_int_equal(json_integer(at(dialog, "context/bos-token"), 0), 1);
  assert_int_equal(json_count(at(dialog, "context/eos-token")), 2);
  assert_int_equal(json_integer(at(dialog, "engine/backend/QnnHtp/kv-dim"), 0), 16);
  assert_int_equal(json_count(at(dialog, "engine/model/binary/ctx-bins")), 1);
  assert_int_equal(json_type_of(at(dialog, "engine/backend/extensions")), JSON_ABSENT); /* the simulator needs none */
  json_free(document);
  text_deinit(&out);
}

static void a_device_gets_the_settings_of_its_chip(void** state) {
  (void)state;
  const qnn_soc* soc;
  assert_ok(qnn_soc_find("SM8650", &soc));
  text out = {0};
  json_document* document;
  assert_ok(genie_extensions_write(soc, true, &out));
  assert_ok(json_parse(out.data, out.length, "extensions", &document));
  json_value device;
  json_iterator devices = json_iterate(json_get(json_root(document), "devices"));
  assert_true(json_next(&devices, NULL, &device));
  assert_int_equal(json_integer(json_get(device, "soc_model"), 0), 57); /* QNN's id of SM8650 */
  assert_true(text_view_equal_cstr(json_string(json_get(device, "dsp_arch")), "v75"));
  assert_true(json_bool(at(json_root(document), "context/weight_sharing_enabled"), false));
  json_free(document);
  text_deinit(&out);
}

/* ---- Reading ---- */
static void write_bundle(void) {
  genie_config config = example();
  text out = {0};
  assert_ok(genie_config_write(&config, &out));
  assert_ok(file_write_atomic(in_folder("genie_config.json"), out.data, out.length));
  text_deinit(&out);
  write_file("model.bin", "binary");
  write_file("tokenizer.json", "{}");
}

static void a_bundle_is_run_with_absolute_paths_its_sampling_and_no_begin_token(void** state) {
  (void)state;
  write_bundle();
  genie_bundle by_folder, by_file;
  assert_ok(genie_bundle_open(folder, &by_folder));
  assert_ok(genie_bundle_open(in_folder("genie_config.json"), &by_file));
  const sampling_options sampling = {.temperature = 0.5f, .top_k = 40, .top_p = 0.5f, .repetition_penalty = 1.5f, .seed = 7};
  text first = {0}, second = {0};
  assert_ok(genie_bundle_configuration(&by_folder, &sampling, &first));
  assert_ok(genie_bundle_configuration(&by_file, &sampling, &second));
  assert_string_equal(first.data, second.data);
  assert_int_equal(by_folder.context_length, 64);
  assert_int_equal(by_folder.vocab_size, 320);
  json_document* document;
  assert_ok(json_parse(first.data, first.length, "bundle", &document));
  json_value dialog = json_get(json_root(document), "dialog"), bin;
  assert_int_equal(json_integer(at(dialog, "context/bos-token"), 0), -1);
  char expected[PATH_MAX], resolved[PATH_MAX];
  assert_non_null(realpath(folder, resolved));
  snprintf(expected, sizeof expected, "%.4000s/tokenizer.json", resolved);
  assert_true(text_view_equal_cstr(json_string(at(dialog, "tokenizer/path")), expected));
  json_iterator bins = json_iterate(at(dialog, "engine/model/binary/ctx-bins"));
  assert_true(json_next(&bins, NULL, &bin));
  snprintf(expected, sizeof expected, "%.4000s/model.bin", resolved);
  assert_true(text_view_equal_cstr(json_string(bin), expected));
  assert_int_equal(json_integer(at(dialog, "sampler/top-k"), 0), 40);
  assert_int_equal(json_integer(at(dialog, "sampler/seed"), 0), 7);
  assert_true(json_number(at(dialog, "sampler/temp"), 0) == 0.5);
  assert_true(json_number(at(dialog, "sampler/top-p"), 0) == 0.5);
  assert_true(json_number(at(dialog, "sampler/token-penalty/repetition-penalty"), 0) == 1.5);
  /* Everything else is as it was. */
  assert_int_equal(json_integer(at(dialog, "engine/backend/QnnHtp/kv-dim"), 0), 16);
  text_deinit(&first);
  text_deinit(&second);
  json_free(document);
  genie_bundle_deinit(&by_folder);
  genie_bundle_deinit(&by_file);
}

static void an_incomplete_or_damaged_bundle_is_refused_by_name(void** state) {
  (void)state;
  genie_bundle bundle;
  assert_fails(genie_bundle_open("/nonexistent/x.sim.genie", &bundle), GENAI_ERROR_NOT_FOUND, "/nonexistent/x.sim.genie");
  write_bundle();
  unlink(in_folder("model.bin"));
  assert_fails(genie_bundle_open(folder, &bundle), GENAI_ERROR_NOT_FOUND, "the context binary");
  write_file("model.bin", "");
  assert_fails(genie_bundle_open(folder, &bundle), GENAI_ERROR_BAD_FILE, "is empty");
  write_bundle();
  unlink(in_folder("tokenizer.json"));
  assert_fails(genie_bundle_open(folder, &bundle), GENAI_ERROR_NOT_FOUND, "the tokenizer");
  static const struct {
    const char* content;
    const char* says;
  } damaged[] = {
      {"{", ""},
      {"[]", "no object \"dialog\""},
      {"{\"dialog\":{}}", "context.size"},
      {"{\"dialog\":{\"context\":{\"size\":64}}}", "n-vocab"},
      {"{\"dialog\":{\"context\":{\"size\":-5,\"n-vocab\":9}}}", "size"},
      {"{\"dialog\":{\"context\":{\"size\":64,\"n-vocab\":9}}}", "ctx-bins"},
      {"{\"dialog\":{\"context\":{\"size\":64,\"n-vocab\":9},\"engine\":{\"model\":{\"binary\":{\"ctx-bins\":[]}}}}}", "ctx-bins"},
      {"{\"dialog\":{\"context\":{\"size\":64,\"n-vocab\":9},\"engine\":{\"model\":{\"binary\":{\"ctx-bins\":[\"model.bin\"]}}}}}",
       "no tokenizer"},
  };
  write_bundle();
  for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
    write_file("genie_config.json", damaged[i].content);
    assert_fails(genie_bundle_open(folder, &bundle), GENAI_ERROR_BAD_FILE, damaged[i].says);
  }
  text deep = {0};
  assert_ok(text_append_cstr(&deep,
                             "{\"dialog\":{\"context\":{\"size\":64,\"n-vocab\":9},\"tokenizer\":{\"path\":\"tokenizer.json\"},"
                             "\"engine\":{\"model\":{\"binary\":{\"ctx-bins\":[\"model.bin\"]}}},\"x\":"));
  for (int i = 0; i < 40; i++) assert_ok(text_append_char(&deep, '['));
  for (int i = 0; i < 40; i++) assert_ok(text_append_char(&deep, ']'));
  assert_ok(text_append_cstr(&deep, "}}"));
  write_file("genie_config.json", deep.data);
  assert_fails(genie_bundle_open(folder, &bundle), GENAI_ERROR_BAD_FILE, "nests deeper");
  text_deinit(&deep);
}

static void every_failed_allocation_is_an_error(void** state) {
  (void)state;
  write_bundle();
  genie_bundle bundle;
  uint64_t before = mem_allocation_count();
  assert_ok(genie_bundle_open(folder, &bundle));
  genie_bundle_deinit(&bundle);
  uint64_t allocations = mem_allocation_count() - before;
  assert_true(allocations > 5);
  for (uint64_t n = 1; n <= allocations; n++) {
    mem_inject_failure(n);
    genai_status* status = genie_bundle_open(folder, &bundle);
    mem_inject_failure(0);
    if (!status) {
      genie_bundle_deinit(&bundle);
    } else {
      assert_int_equal(genai_status_kind(status), GENAI_ERROR_OUT_OF_MEMORY);
    }
    genai_status_free(status);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_configuration_has_what_genie_prescribes),
      cmocka_unit_test(a_device_gets_the_settings_of_its_chip),
      cmocka_unit_test(a_bundle_is_run_with_absolute_paths_its_sampling_and_no_begin_token),
      cmocka_unit_test(an_incomplete_or_damaged_bundle_is_refused_by_name),
      cmocka_unit_test(every_failed_allocation_is_an_error),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
