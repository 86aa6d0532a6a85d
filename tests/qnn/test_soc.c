/* The SoC table. Expected architectures and VTCM sizes come from Qualcomm's library: a binary compiled for the SoC, with VTCM left to the
 * library, records both. */
#include "qnn/qnn_support.h"

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
      cmocka_unit_test(finds_by_either_name),        cmocka_unit_test(offers_the_nearest),       cmocka_unit_test(names_and_ids_are_unique),
      cmocka_unit_test(library_agrees_on_every_soc), cmocka_unit_test(unknown_model_is_refused),
  };
  return cmocka_run_group_tests(tests, open_test_library, close_test_library);
}
