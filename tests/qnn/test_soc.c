/* The SoC table, a user's file beside it, and the rules of architectures. Expected architectures and VTCM sizes come from Qualcomm's library:
 * a binary compiled for the SoC, with VTCM left to the library, records both; what a SoC cannot compute is what that library refuses. Ids of
 * devices are those of the Linux kernel's bindings (include/dt-bindings/arm/qcom,ids.h). */
#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "qnn/qnn_support.h"
#include "qnn/rules.h"

static void finds_by_either_name(void** state) {
  (void)state;
  const qnn_soc* soc;
  assert_ok(qnn_soc_find("sm8650", &soc));
  assert_string_equal(soc->name, "SM8650");
  assert_int_equal(soc->model, 57);
  assert_int_equal(soc->htp_arch, 75);
  assert_ok(qnn_soc_find("snapdragon 8 gen 3", &soc));
  assert_string_equal(soc->name, "SM8650");
}

static void offers_the_nearest(void** state) {
  (void)state;
  const qnn_soc* soc;
  assert_fails(qnn_soc_find("SM8560", &soc), GENAI_ERROR_CONFIG_VALIDATION, "SM8650 (Snapdragon 8 Gen 3)");
  assert_fails(qnn_soc_find("SM8560", &soc), GENAI_ERROR_CONFIG_VALIDATION, "SM8550 (Snapdragon 8 Gen 2)");
  assert_fails(qnn_soc_find("8 Elite Gen 5", &soc), GENAI_ERROR_CONFIG_VALIDATION, "are SM8850");
  assert_fails(qnn_soc_find("", &soc), GENAI_ERROR_CONFIG_VALIDATION, "unknown SoC ''");
}

static char last_warning[512];
static void keep_warning(void* user, log_level level, const char* message) {
  (void)user;
  if (level == LOG_WARNING) snprintf(last_warning, sizeof last_warning, "%s", message);
}

static const qnn_soc* found(const char* wanted) {
  const qnn_soc* soc;
  last_warning[0] = 0;
  assert_ok(qnn_soc_find(wanted, &soc));
  return soc;
}

static void finds_by_id(void** state) {
  (void)state;
  log_set_sink(keep_warning, NULL, LOG_WARNING);
  assert_string_equal(found("57")->name, "SM8650");
  assert_string_equal(found("57:v75")->name, "SM8650");
  assert_string_equal(found("557")->name, "SM8650"); /* QCOM_ID_SM8650 */
  assert_string_equal(found("577")->name, "SM8650"); /* QCOM_ID_SM8650P */
  assert_string_equal(found("530")->name, "SM8475");
  assert_string_equal(last_warning, "");
  log_set_sink(NULL, NULL, LOG_ERROR);
}

static void maps_an_unknown_id_to_the_nearest_of_its_architecture(void** state) {
  (void)state;
  const qnn_soc* soc;
  log_set_sink(keep_warning, NULL, LOG_WARNING);
  assert_string_equal(found("639")->name, "SM8750"); /* what the owner of an SM8750P found to work */
  assert_non_null(strstr(last_warning, "SoC id 639 (HTP v79) is not in the table: taken as SM8750"));
  assert_string_equal(found("4711:v75")->name, "QCS8300"); /* 674 is the largest id of a v75 */
  assert_string_equal(found("44:V69")->name, "SM8475");    /* 42 */
  assert_non_null(strstr(last_warning, "44"));
  assert_string_equal(found("62")->name, "SA8295"); /* QNN_SOC_MODEL_SA8540, v68: the v68s have 30, 35, 37, 39 and 93 */
  log_set_sink(NULL, NULL, LOG_ERROR);
  assert_fails(qnn_soc_find("4711", &soc), GENAI_ERROR_CONFIG_VALIDATION, "4711:v79");
  assert_fails(qnn_soc_find("103", &soc), GENAI_ERROR_CONFIG_VALIDATION, "no known SoC has that architecture");
  assert_fails(qnn_soc_find("4711:v99", &soc), GENAI_ERROR_CONFIG_VALIDATION, "HTP v99");
  assert_fails(qnn_soc_find("57:v79", &soc), GENAI_ERROR_CONFIG_VALIDATION, "id 57 is SM8650 (Snapdragon 8 Gen 3) with HTP v75");
  assert_fails(qnn_soc_find("57:75", &soc), GENAI_ERROR_CONFIG_VALIDATION, "unknown SoC '57:75'");
  assert_fails(qnn_soc_find("99999999999999999999", &soc), GENAI_ERROR_CONFIG_VALIDATION, "unknown SoC");
}

/* ---- A user's file ---- */
static char folder[64];

static int make_folder(void** state) {
  strcpy(folder, "/tmp/genai.XXXXXX");
  if (!mkdtemp(folder)) return -1;
  return open_test_library(state);
}

static int remove_folder(void** state) {
  char path[128];
  snprintf(path, sizeof path, "%s/genai/socs.json", folder);
  unlink(path);
  snprintf(path, sizeof path, "%s/genai", folder);
  rmdir(path);
  snprintf(path, sizeof path, "%s/socs.json", folder);
  unlink(path);
  rmdir(folder);
  return close_test_library(state);
}

static const char* write_file(const char* content) {
  static char path[128];
  snprintf(path, sizeof path, "%s/socs.json", folder);
  assert_ok(file_write_atomic(path, content, strlen(content)));
  return path;
}

#define ONE(members) "{\"socs\": [{" members "}]}"
#define GOOD "\"name\": \"SM9999\", \"soc_id\": 69, \"htp_arch\": 79, \"vtcm_mb\": 4"

static void a_users_file_extends_the_table(void** state) {
  (void)state;
  qnn_soc_table* table;
  const qnn_soc* soc;
  assert_ok(qnn_soc_table_open(
      write_file("[{\"name\": \"SM8750P\", \"marketing\": \"Elite (P)\", \"soc_id\": 69, \"htp_arch\": 79, \"vtcm_mb\": 8, \"device_ids\": "
                 "[639, 4711]}, {\"name\": \"sm8650\", \"soc_id\": 57, \"htp_arch\": 75, \"vtcm_mb\": 2, \"lpai_version\": 5, \"float16\": "
                 "false}]"),
      &table));
  assert_int_equal(qnn_soc_table_count(table), qnn_soc_count() + 1); /* one of the two stands in for genai's own */
  assert_true(qnn_soc_table_is_users(table, 1));
  assert_false(qnn_soc_table_is_users(table, 2));
  assert_string_equal(qnn_soc_table_at(table, 0)->name, "SM8750P");
  assert_null(qnn_soc_table_at(table, qnn_soc_table_count(table)));
  assert_ok(qnn_soc_table_find(table, "4711", &soc));
  assert_string_equal(soc->name, "SM8750P");
  assert_ok(qnn_soc_table_find(table, "639", &soc));
  assert_string_equal(soc->name, "SM8750P");
  assert_true(soc->float16);
  assert_ok(qnn_soc_table_find(table, "elite (p)", &soc));
  assert_string_equal(soc->name, "SM8750P");
  assert_ok(qnn_soc_table_find(table, "69", &soc));
  assert_string_equal(soc->name, "SM8750");
  assert_ok(qnn_soc_table_find(table, "SM8650", &soc));
  assert_int_equal(soc->vtcm_mb, 2);
  assert_int_equal(soc->lpai_version, 5);
  assert_false(soc->float16);
  assert_fails(qnn_soc_table_find(table, "SM8750Q", &soc), GENAI_ERROR_CONFIG_VALIDATION, "SM8750P (Elite (P))");
  qnn_soc_table_close(table);
}

static void the_default_file_is_read_when_it_is_there(void** state) {
  (void)state;
  qnn_soc_table* table;
  const qnn_soc* soc;
  char path[128];
  setenv("XDG_CONFIG_HOME", folder, 1);
  assert_ok(qnn_soc_table_open(NULL, &table));
  assert_int_equal(qnn_soc_table_count(table), qnn_soc_count());
  qnn_soc_table_close(table);
  snprintf(path, sizeof path, "%s/genai", folder);
  assert_ok(directory_create(path));
  snprintf(path, sizeof path, "%s/genai/socs.json", folder);
  assert_ok(file_write_atomic(path, ONE(GOOD), strlen(ONE(GOOD))));
  assert_ok(qnn_soc_table_open(NULL, &table));
  assert_ok(qnn_soc_table_find(table, "SM9999", &soc));
  assert_int_equal(soc->vtcm_mb, 4);
  qnn_soc_table_close(table);
  assert_ok(file_write_atomic(path, "{", 1));
  assert_fails(qnn_soc_table_open(NULL, &table), GENAI_ERROR_CONFIG_VALIDATION, "genai/socs.json");
  unsetenv("XDG_CONFIG_HOME");
}

static void what_is_wrong_with_a_file_is_named(void** state) {
  (void)state;
  static const struct {
    const char* content;
    const char* message;
  } cases[] = {
      {"", "socs.json"},
      {"{\"socs\": {}}", "has no list \"socs\""},
      {"7", "the top is a whole number"},
      {"[7]", "entry 1 is a whole number, expected an object"},
      {"[{\"soc_id\": 1}]", "entry 1: member \"name\" is missing"},
      {"[{\"name\": 5}]", "entry 1: member \"name\" is a whole number"},
      {"[{\"name\": \"\"}]", "entry 1: member \"name\" has 0 bytes"},
      {"[{\"name\": \"../x\"}]", "entry 1: member \"name\" is \"../x\", expected a letter"},
      {"[{\"name\": \"57\"}]", "expected a letter"},
      {"[{\"name\": \"A23456789012345678901234567890123\"}]", "has 33 bytes"},
      {"[{" GOOD "}, {\"name\": \"B\"}]", "entry 2 (B): member \"soc_id\" is missing, expected a whole number from 1 to 65535"},
      {ONE("\"name\": \"B\", \"soc_id\": \"57\""), "entry 1 (B): member \"soc_id\" is a string"},
      {ONE("\"name\": \"B\", \"soc_id\": 0"), "member \"soc_id\" is 0"},
      {ONE("\"name\": \"B\", \"soc_id\": 57, \"htp_arch\": 66"), "member \"htp_arch\" is 66, expected a whole number from 68 to 200"},
      {ONE("\"name\": \"B\", \"soc_id\": 57, \"htp_arch\": 75.5"), "member \"htp_arch\" is a fraction"},
      {ONE("\"name\": \"B\", \"soc_id\": 57, \"htp_arch\": 75, \"vtcm_mb\": -8"), "member \"vtcm_mb\" is -8"},
      {ONE(GOOD ", \"vtcm_m\": 8"), "entry 1 (SM9999): unknown member \"vtcm_m\"; did you mean \"vtcm_mb\"?"},
      {ONE(GOOD ", \"float16\": 1"), "member \"float16\" is a whole number, expected true or false"},
      {ONE(GOOD ", \"lpai_version\": \"v6\""), "member \"lpai_version\" is a string"},
      {ONE(GOOD ", \"marketing\": \"a\\u0000b\""), "member \"marketing\" has a NUL byte"},
      {ONE(GOOD ", \"device_ids\": 5"), "member \"device_ids\" is a whole number"},
      {ONE(GOOD ", \"device_ids\": [0]"), "member \"device_ids\" holds something else"},
      {ONE(GOOD ", \"device_ids\": [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]"), "member \"device_ids\" has more entries"},
      {"[{" GOOD "}, {\"name\": \"sm9999\", \"soc_id\": 1, \"htp_arch\": 73, \"vtcm_mb\": 1}]",
       "entry 2 has the name \"sm9999\" of entry 1"},
  };
  qnn_soc_table* table;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
    assert_fails(qnn_soc_table_open(write_file(cases[i].content), &table), GENAI_ERROR_CONFIG_VALIDATION, cases[i].message);
  assert_fails(qnn_soc_table_open("/nonexistent/socs.json", &table), GENAI_ERROR_CONFIG_VALIDATION, "/nonexistent/socs.json");
}

static void every_failed_allocation_of_a_file_is_a_status(void** state) {
  (void)state;
  const char* path = write_file("[{" GOOD ", \"marketing\": \"m\", \"device_ids\": [1, 2]}]");
  qnn_soc_table* table = NULL;
  uint64_t n = 1;
  for (; n < 200; ++n) {
    mem_inject_failure(n);
    genai_status* status = qnn_soc_table_open(path, &table);
    mem_inject_failure(0);
    if (!status) break;
    genai_status_free(status);
  }
  assert_in_range(n, 4, 100);
  qnn_soc_table_close(table);
}

static void names_and_ids_are_unique(void** state) {
  (void)state;
  assert_true(qnn_soc_count() >= 22);
  assert_null(qnn_soc_at(qnn_soc_count()));
  for (size_t i = 0; i < qnn_soc_count(); ++i) {
    const qnn_soc* a = qnn_soc_at(i);
    for (size_t j = 0; j < i; ++j) {
      const qnn_soc* b = qnn_soc_at(j);
      assert_string_not_equal(a->name, b->name);
      assert_string_not_equal(a->marketing, b->marketing);
      assert_int_not_equal(a->model, b->model);
    }
  }
}

static ir_graph* small_graph(void) {
  ir_graph* graph;
  assert_ok(ir_graph_create("small", &graph));
  ir_tensor* x = add_encoded(graph, "x", IR_INPUT, IR_U16, -1, 1, DIMS(1, 4, 32));
  ir_tensor* y = add_encoded(graph, "y", IR_OUTPUT, IR_U16, -2, 2, DIMS(1, 4, 32));
  add_op(graph, IR_ADD, "add", y, INPUTS(x, x));
  return graph;
}

/* ---- Rules ---- */
static ir_graph* product_graph(void) {
  ir_graph* graph;
  assert_ok(ir_graph_create("product", &graph));
  ir_tensor* a = add_encoded(graph, "a", IR_INPUT, IR_U16, -1, 1, DIMS(1, 2, 4, 32));
  ir_tensor* b = add_encoded(graph, "b", IR_INPUT, IR_U16, -1, 1, DIMS(1, 2, 32, 16));
  ir_tensor* y = add_encoded(graph, "y", IR_OUTPUT, IR_U16, -4, 4, DIMS(1, 2, 4, 16));
  add_op(graph, IR_MATMUL, "scores", y, INPUTS(a, b));
  return graph;
}

static ir_graph* linear_graph(bool blocks) {
  enum { K = 64, N = 32, BLOCKS = 2 };
  ir_graph* graph;
  assert_ok(ir_graph_create("linear", &graph));
  float weights[N * K];
  uint64_t seed = 1;
  for (int i = 0; i < N * K; ++i) weights[i] = test_random(&seed);
  bool half = !blocks;
  ir_tensor* x =
      half ? add_plain(graph, "x", IR_INPUT, IR_F32, DIMS(1, 1, 4, K)) : add_encoded(graph, "x", IR_INPUT, IR_U16, -1, 1, DIMS(1, 1, 4, K));
  ir_tensor* w = add_constants(graph, "w", DIMS(1, 1, K, N), N, K, weights);
  ir_tensor* y = half ? add_plain(graph, "y", IR_OUTPUT, IR_F32, DIMS(1, 1, 4, N))
                      : add_encoded(graph, "y", IR_OUTPUT, IR_U16, -20, 20, DIMS(1, 1, 4, N));
  if (blocks) {
    float* scales = arena_calloc(&graph->memory, N, sizeof *scales);
    uint8_t* steps = arena_calloc(&graph->memory, N * BLOCKS, 1);
    for (int i = 0; i < N; ++i) scales[i] = 1.0f / 7 / 16;
    memset(steps, 16, N * BLOCKS);
    w->dtype = IR_S8;
    w->encoding = (ir_encoding){.kind = IR_ENCODING_BLOCK_EXPANSION,
                                .bits = 4,
                                .axis = 3,
                                .channels = N,
                                .blocks = BLOCKS,
                                .scales = scales,
                                .block_scales = steps};
  }
  add_op(graph, IR_CONV2D, "projection", y, INPUTS(x, w));
  return graph;
}

static void graphs_are_checked_against_the_architecture(void** state) {
  (void)state;
  const qnn_soc* v68 = found("SM8350");
  const qnn_soc* v69 = found("SM8450");
  const qnn_soc* v73 = found("SM8550");
  ir_graph* product = product_graph();
  ir_graph* blocks = linear_graph(true);
  assert_ok(qnn_check_graph(v73, product));
  assert_fails(qnn_check_graph(v69, product), GENAI_ERROR_CONFIG_VALIDATION, "scores needs products of two 16-bit activations");
  assert_fails(qnn_check_graph(v69, product), GENAI_ERROR_CONFIG_VALIDATION, "takes HTP v73 or newer; SM8450 has v69");
  assert_ok(qnn_check_graph(v69, blocks));
  assert_fails(qnn_check_graph(v68, blocks), GENAI_ERROR_CONFIG_VALIDATION, "LPBQ");
  assert_fails(qnn_soc_require(v69, QNN_FEATURE_WEIGHT_SHARING, "x"), GENAI_ERROR_CONFIG_VALIDATION, "v73");
  assert_fails(qnn_soc_require(found("QCM6490"), QNN_FEATURE_FLOAT16, "a float graph"), GENAI_ERROR_CONFIG_VALIDATION,
               "a float graph needs half precision, which the HTP of QCM6490 (v68) does not have: quantize");
  ir_graph_destroy(product);
  ir_graph_destroy(blocks);
}

/* Through the library itself, without the check: does it take the graph for this SoC? */
static bool library_takes(const qnn_soc* soc, const ir_graph* graph, bool half) {
  qnn_soc unchecked = *soc;
  unchecked.float16 = true;
  unchecked.htp_arch = 1000; /* passes every rule; the binary is then said to be for another SoC, which tells that there is one */
  const qnn_compile_options options = {.soc = &unchecked, .float16 = half};
  qnn_binary binary = {0};
  genai_status* status = qnn_compile(test_library, &graph, 1, &options, &binary);
  assert_non_null(status);
  bool taken = strstr(genai_status_message(status), "the compiled binary is for SoC model") != NULL;
  genai_status_free(status);
  return taken;
}

static void library_agrees_on_the_rules(void** state) {
  (void)state;
  need_library();
  ir_graph* product = product_graph();
  ir_graph* half = linear_graph(false);
  for (size_t i = 0; i < qnn_soc_count(); ++i) {
    const qnn_soc* soc = qnn_soc_at(i);
    if (library_takes(soc, half, true) != soc->float16) fail_msg("%s: half precision is %d in the table", soc->name, soc->float16);
    if (library_takes(soc, product, false) != qnn_soc_supports(soc, QNN_FEATURE_MATMUL_16)) fail_msg("%s: 16-bit products", soc->name);
  }
  ir_graph_destroy(product);
  ir_graph_destroy(half);
}

static void library_agrees_on_every_soc(void** state) {
  (void)state;
  need_library();
  ir_graph* graph = small_graph();
  for (size_t i = 0; i < qnn_soc_count(); ++i) {
    qnn_soc soc = *qnn_soc_at(i);
    uint32_t vtcm_mb = soc.vtcm_mb;
    soc.vtcm_mb = 0; /* the library's choice */
    const qnn_compile_options options = {.soc = &soc};
    qnn_binary binary;
    assert_ok(qnn_compile(test_library, (const ir_graph* const*)&graph, 1, &options, &binary)); /* compares model and architecture */
    qnn_binary_info info;
    assert_ok(qnn_binary_inspect(test_library, binary.data, binary.size, &info));
    if (info.graphs[0].vtcm_bytes != vtcm_mb << 20) {
      fail_msg("%s: VTCM of %u bytes, the table says %u MB", soc.name, info.graphs[0].vtcm_bytes, vtcm_mb);
    }
    qnn_binary_info_deinit(&info);
    qnn_binary_deinit(&binary);
  }
  ir_graph_destroy(graph);
}

static void unknown_model_is_refused(void** state) {
  (void)state;
  need_library();
  ir_graph* graph = small_graph();
  qnn_binary binary;
  /* The library compiles for a SoC it does not know without an error; the binary then names no architecture. */
  const qnn_soc unknown = {.name = "SM0001", .marketing = "", .model = 3, .htp_arch = 75, .vtcm_mb = 8};
  const qnn_compile_options options = {.soc = &unknown};
  assert_fails(qnn_compile(test_library, (const ir_graph* const*)&graph, 1, &options, &binary), GENAI_ERROR_VENDOR,
               "is for SoC model 3, HTP v0, but SM0001 is model 3, HTP v75");
  const qnn_soc zero = {.name = "SM0000", .marketing = "", .model = 0, .htp_arch = 75, .vtcm_mb = 8};
  const qnn_compile_options refused = {.soc = &zero};
  assert_fails(qnn_compile(test_library, (const ir_graph* const*)&graph, 1, &refused, &binary), GENAI_ERROR_VENDOR, "SoC model 0");
  const qnn_compile_options greedy = {.soc = test_soc(), .vtcm_mb = 16};
  assert_fails(qnn_compile(test_library, (const ir_graph* const*)&graph, 1, &greedy, &binary), GENAI_ERROR_CONFIG_VALIDATION,
               "SM8650 has 8 MB");
  ir_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(finds_by_either_name),
      cmocka_unit_test(offers_the_nearest),
      cmocka_unit_test(finds_by_id),
      cmocka_unit_test(maps_an_unknown_id_to_the_nearest_of_its_architecture),
      cmocka_unit_test(names_and_ids_are_unique),
      cmocka_unit_test(a_users_file_extends_the_table),
      cmocka_unit_test(the_default_file_is_read_when_it_is_there),
      cmocka_unit_test(what_is_wrong_with_a_file_is_named),
      cmocka_unit_test(every_failed_allocation_of_a_file_is_a_status),
      cmocka_unit_test(graphs_are_checked_against_the_architecture),
      cmocka_unit_test(library_agrees_on_the_rules),
      cmocka_unit_test(library_agrees_on_every_soc),
      cmocka_unit_test(unknown_model_is_refused),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
