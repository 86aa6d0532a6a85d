/* The provenance record: through a .pte and back, and compared with what is around it. */
#include "pipeline/provenance.h"
#include "support.h"

static const provenance_encoding keys[] = {{0.5f, -128}, {0.25f, -3}};
static const provenance_encoding values[] = {{1.0f / 3, -1}, {2, 0}};

static provenance example(void) {
  return (provenance){.genai_version = "0.1.0",
                      .simulator = true,
                      .soc = "SM8650",
                      .soc_model = 57,
                      .htp_arch = 75,
                      .vtcm_mb = 8,
                      .library_build_id = "v2.49.40.1",
                      .mode = "kv",
                      .context_length = 16,
                      .n_graphs = 1,
                      .graphs = {{"kv_forward", 1}},
                      .layers = 2,
                      .vocab_size = 32,
                      .kv_dtype = "u8",
                      .n_kv = 2,
                      .keys = keys,
                      .values = values,
                      .recipe_name = "16a8w",
                      .recipe_sha256 = "aa",
                      .checkpoint_name = "tiny \"model\"",
                      .checkpoint_sha256 = "bb",
                      .tokenizer_sha256 = "cc",
                      .bos_id = 1,
                      .eos_id = -1,
                      .n_stop_ids = 2,
                      .stop_ids = {2, 31}};
}

/* Ports of a decoder of 2 layers, 1 head of 4, AR 1, context 16. */
static executor_port port(ir_dtype dtype, uint32_t rank, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return (executor_port){.name = "x", .layer = -1, .dtype = dtype, .rank = rank, .dims = {a, b, c, d}, .scale = 1};
}

static void write_program(const char* path, const char* record) {
  executor_port inputs[] = {port(IR_I32, 2, 1, 1, 0, 0), port(IR_U16, 4, 1, 1, 1, 16), port(IR_I32, 2, 1, 1, 0, 0),
                            port(IR_U8, 4, 1, 1, 4, 15), port(IR_U8, 4, 1, 1, 4, 15),  port(IR_U8, 4, 1, 1, 15, 4),
                            port(IR_U8, 4, 1, 1, 15, 4)};
  executor_port outputs[] = {port(IR_U16, 3, 1, 1, 32, 0), port(IR_U8, 4, 1, 1, 4, 1), port(IR_U8, 4, 1, 1, 4, 1),
                             port(IR_U8, 4, 1, 1, 1, 4), port(IR_U8, 4, 1, 1, 1, 4)};
  pte_method method = {.name = "kv_forward", .n_inputs = 7, .n_outputs = 5, .inputs = inputs, .outputs = outputs};
  pte_scalar value = {PTE_STRING, {.s = record}};
  pte_constant constant = {PTE_PROVENANCE_METHOD, 1, &value};
  pte_program program = {.n_methods = 1,
                         .methods = &method,
                         .n_constants = record ? 1 : 0,
                         .constants = &constant,
                         .options = {.soc_model = 57, .htp_arch = 75, .vtcm_mb = 8, .performance_mode = 2},
                         .context_binary = "not a binary",
                         .context_binary_size = 12};
  assert_ok(pte_write(path, &program));
}

static const char* scratch_file(void) {
  static char path[64];
  snprintf(path, sizeof path, "/tmp/genai-provenance-%d.pte", (int)getpid());
  return path;
}

static genai_status* read_record(const char* record, provenance* out, bool* found) {
  pte_file* file;
  write_program(scratch_file(), record);
  assert_ok(pte_open(scratch_file(), &file));
  genai_status* status = provenance_read(file, out, found);
  pte_close(file);
  unlink(scratch_file());
  return status;
}

static void a_record_survives_the_file(void** state) {
  (void)state;
  provenance written = example(), got;
  bool found;
  text record = {0};
  assert_ok(provenance_write(&written, &record));
  assert_ok(read_record(record.data, &got, &found));
  assert_true(found);
  assert_string_equal(got.genai_version, "0.1.0");
  assert_true(got.simulator);
  assert_string_equal(got.soc, "SM8650");
  assert_int_equal(got.soc_model, 57);
  assert_int_equal(got.htp_arch, 75);
  assert_int_equal(got.vtcm_mb, 8);
  assert_string_equal(got.library_build_id, "v2.49.40.1");
  assert_string_equal(got.mode, "kv");
  assert_int_equal(got.context_length, 16);
  assert_int_equal(got.n_graphs, 1);
  assert_string_equal(got.graphs[0].name, "kv_forward");
  assert_int_equal(got.graphs[0].ar_length, 1);
  assert_int_equal(got.layers, 2);
  assert_int_equal(got.vocab_size, 32);
  assert_string_equal(got.kv_dtype, "u8");
  assert_int_equal(got.n_kv, 2);
  assert_memory_equal(got.keys, keys, sizeof keys);
  assert_memory_equal(got.values, values, sizeof values); /* a third comes back bit for bit */
  assert_string_equal(got.recipe_name, "16a8w");
  assert_string_equal(got.checkpoint_name, "tiny \"model\"");
  assert_string_equal(got.checkpoint_sha256, "bb");
  assert_string_equal(got.tokenizer_sha256, "cc");
  assert_int_equal(got.bos_id, 1);
  assert_int_equal(got.eos_id, -1);
  assert_int_equal(got.n_stop_ids, 2);
  assert_int_equal(got.stop_ids[1], 31);
  provenance_deinit(&got);
  text_deinit(&record);
}

static void a_file_without_a_record_has_none(void** state) {
  (void)state;
  provenance got;
  bool found = true;
  assert_ok(read_record(NULL, &got, &found));
  assert_false(found);
}

static void unknown_members_are_ignored_and_newer_formats_refused(void** state) {
  (void)state;
  provenance got;
  bool found;
  assert_ok(read_record("{\"format\": 1, \"weather\": {\"sun\": [1, 2]}, \"soc\": {\"name\": \"X\"}}", &got, &found));
  assert_string_equal(got.soc, "X");
  assert_null(got.recipe_name);
  provenance_deinit(&got);
  assert_fails(read_record("{\"format\": 2}", &got, &found), GENAI_ERROR_UNSUPPORTED, "format 2");
  assert_fails(read_record("{}", &got, &found), GENAI_ERROR_BAD_FILE, "does not say its format");
  assert_fails(read_record("[1]", &got, &found), GENAI_ERROR_BAD_FILE, "");
  assert_fails(read_record("{\"format\": 1, \"kv\": {\"key\": [[1, 0]], \"value\": []}}", &got, &found), GENAI_ERROR_BAD_FILE,
               "1 key and 0 value");
}

/* What the context binary of the program above would say. */
typedef struct fake_binary {
  qnn_tensor_info inputs[7];
  qnn_graph_info graph;
  qnn_binary_info info;
} fake_binary;

static void fake_binary_init(fake_binary* self) {
  static const char* const names[] = {"input_5_layer0_value", "input_0_tokens",     "input_1_mask",        "input_2_positions",
                                      "input_3_layer0_key",   "input_4_layer1_key", "input_6_layer1_value"};
  *self = (fake_binary){0};
  for (size_t i = 0; i < 7; i++) self->inputs[i].name = names[i];
  const struct {
    size_t index;
    provenance_encoding encoding;
  } encodings[] = {{4, keys[0]}, {5, keys[1]}, {0, values[0]}, {6, values[1]}};
  for (size_t i = 0; i < 4; i++) {
    self->inputs[encodings[i].index].quantized = true;
    self->inputs[encodings[i].index].scale = encodings[i].encoding.scale;
    self->inputs[encodings[i].index].offset = encodings[i].encoding.offset;
  }
  self->graph = (qnn_graph_info){.name = "kv_forward", .n_inputs = 7, .n_outputs = 5, .inputs = self->inputs};
  self->info = (qnn_binary_info){.soc_model = 57, .htp_arch = 75, .n_graphs = 1, .graphs = &self->graph};
}

static void expect_difference(const provenance* record, const pte_file* file, const fake_binary* binary, const char* needle) {
  text differences = {0};
  assert_ok(provenance_compare(record, file, &binary->info, &differences));
  if (!differences.data || !strstr(differences.data, needle))
    fail_msg("\"%s\" not in \"%s\"", needle, differences.data ? differences.data : "");
  text_deinit(&differences);
}

static void each_difference_is_named(void** state) {
  (void)state;
  pte_file* file;
  fake_binary binary;
  text differences = {0};
  provenance record = example();
  write_program(scratch_file(), NULL);
  assert_ok(pte_open(scratch_file(), &file));
  fake_binary_init(&binary);
  assert_ok(provenance_compare(&record, file, &binary.info, &differences));
  assert_null(differences.data);
  record.soc_model = 43;
  expect_difference(&record, file, &binary, "soc.model: recorded 43, found 57");
  record = example();
  record.htp_arch = 73;
  expect_difference(&record, file, &binary, "soc.htp_arch: recorded 73, found 75");
  record = example();
  record.context_length = 32;
  expect_difference(&record, file, &binary, "context_length: recorded 32, found 16");
  record = example();
  record.graphs[0].ar_length = 4;
  expect_difference(&record, file, &binary, "kv_forward: recorded 4, found 1");
  record = example();
  record.graphs[0].name = "prefill_forward";
  expect_difference(&record, file, &binary, "recorded a graph \"prefill_forward\"");
  record = example();
  record.layers = 3;
  expect_difference(&record, file, &binary, "layers: recorded 3, found 2");
  record = example();
  static const provenance_encoding other[] = {{0.5f, -128}, {0.25f, -4}};
  record.keys = other;
  expect_difference(&record, file, &binary, "kv.key of layer 1: recorded scale 0.25 offset -4, found scale 0.25 offset -3");
  record = example();
  binary.inputs[0].scale = 0.3f;
  expect_difference(&record, file, &binary, "kv.value of layer 0");
  pte_close(file);
  unlink(scratch_file());
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_record_survives_the_file),
      cmocka_unit_test(a_file_without_a_record_has_none),
      cmocka_unit_test(unknown_members_are_ignored_and_newer_formats_refused),
      cmocka_unit_test(each_difference_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
