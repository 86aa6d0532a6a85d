/* Context binaries as files from elsewhere: what they say of themselves, executors and their port order, and damaged input. Upstream's
 * reference file (made by ExecuTorch's own flow) is the independent example. */
#include "base/file.h"
#include "qnn/qnn_support.h"

/* y = x + x and z = bias in 16 bits. */
static ir_graph* two_outputs(const char* name) {
  ir_graph* graph;
  assert_ok(ir_graph_create(name, &graph));
  ir_tensor* x = add_encoded(graph, "some.x", IR_INPUT, IR_U16, -1, 1, DIMS(1, 4, 32));
  ir_tensor* bias = add_encoded(graph, "bias", IR_INPUT, IR_U8, -1, 1, DIMS(1, 4, 32));
  ir_tensor* y = add_encoded(graph, "y", IR_OUTPUT, IR_U16, -2, 2, DIMS(1, 4, 32));
  ir_tensor* z = add_encoded(graph, "z", IR_OUTPUT, IR_U16, -1, 1, DIMS(1, 4, 32));
  add_op(graph, IR_ADD, "add", y, INPUTS(x, x));
  add_op(graph, IR_CONVERT, "widen", z, INPUTS(bias));
  return graph;
}

static qnn_binary compiled;

static int compile_example(void** state) {
  int failed = open_test_library(state);
  if (failed || !test_library) return failed;
  ir_graph* first = two_outputs("first");
  ir_graph* second = two_outputs("second");
  const ir_graph* graphs[] = {first, second};
  const qnn_compile_options options = {.soc = test_soc()};
  assert_ok(qnn_compile(test_library, graphs, 2, &options, &compiled));
  ir_graph_destroy(first);
  ir_graph_destroy(second);
  return 0;
}

static int drop_example(void** state) {
  qnn_binary_deinit(&compiled);
  return close_test_library(state);
}

static void tells_graphs_and_tensors(void** state) {
  (void)state;
  need_library();
  assert_int_equal(compiled.n_graphs, 2);
  assert_int_equal(compiled.graphs[0].nodes, 2);
  assert_true(compiled.finalize_seconds > 0 && compiled.serialize_seconds > 0);
  qnn_binary_info info;
  assert_ok(qnn_binary_inspect(test_library, compiled.data, compiled.size, &info));
  assert_int_equal(info.soc_model, 57);
  assert_int_equal(info.htp_arch, 75);
  assert_true(info.blob_major >= 3);
  assert_int_equal(info.n_graphs, 2);
  assert_string_equal(info.graphs[0].name, "first");
  assert_string_equal(info.graphs[1].name, "second");
  assert_int_equal(info.graphs[1].optimization_level, 3);
  assert_int_equal(info.graphs[1].vtcm_bytes, 8 << 20);
  assert_int_equal(info.graphs[0].n_inputs, 2);
  assert_int_equal(info.graphs[0].n_outputs, 2);
  assert_string_equal(info.graphs[0].inputs[0].name, "input_0_some_x");
  assert_string_equal(info.graphs[0].inputs[1].name, "input_1_bias");
  assert_string_equal(info.graphs[0].outputs[0].name, "output_0_y");
  const qnn_tensor_info* y = &info.graphs[0].outputs[0];
  assert_int_equal(y->dtype, IR_U16);
  assert_int_equal(y->rank, 3);
  assert_int_equal(y->dims[2], 32);
  assert_true(y->quantized);
  assert_true(y->scale == (float)(4 / 65535.0));
  assert_int_equal(y->offset, -32768);
  qnn_binary_info_deinit(&info);
}

static void executes_each_graph(void** state) {
  (void)state;
  need_library();
  qnn_context* context;
  assert_ok(qnn_context_open(test_library, compiled.data, compiled.size, &context));
  assert_int_equal(qnn_context_info(context)->n_graphs, 2);
  executor *first, *second, *nothing;
  assert_ok(qnn_context_executor(context, "first", &first));
  assert_ok(qnn_context_executor(context, "second", &second));
  assert_fails(qnn_context_executor(context, "third", &nothing), GENAI_ERROR_NOT_FOUND, "no graph 'third'; it has 'first', 'second'");
  executor_port* ports;
  qnn_executor_ports(second, &ports, NULL);
  ports[0].role = IR_ROLE_MASK;
  assert_int_equal(second->inputs[0].role, IR_ROLE_MASK);
  assert_int_equal(second->inputs[1].dtype, IR_U8);
  uint16_t x[128], y[128], z[128], only_z[128];
  uint8_t bias[128];
  for (int i = 0; i < 128; ++i) {
    x[i] = (uint16_t)(500 * i);
    bias[i] = (uint8_t)(2 * i);
  }
  const void* inputs[] = {x, bias};
  assert_ok(executor_run(first, inputs, (void*[]){y, z}));
  assert_ok(executor_run(second, inputs, (void*[]){NULL, only_z})); /* an output that no one wants */
  for (int i = 0; i < 128; ++i) {
    float real_x = executor_port_read(&first->inputs[0], x, (size_t)i), real_b = executor_port_read(&first->inputs[1], bias, (size_t)i);
    assert_true(fabsf(executor_port_read(&first->outputs[0], y, (size_t)i) - 2 * real_x) <= 1.01f * first->outputs[0].scale);
    assert_true(fabsf(executor_port_read(&first->outputs[1], z, (size_t)i) - real_b) <= 1.01f * first->outputs[1].scale);
    assert_int_equal(z[i], only_z[i]);
  }
  assert_fails(executor_run(first, (const void*[]){x, NULL}, (void*[]){y, z}), GENAI_ERROR_INVALID_ARGUMENT, "'input_1_bias'");
  executor_destroy(first);
  executor_destroy(second);
  qnn_context_close(context);
}

static void damaged_binaries_are_refused(void** state) {
  (void)state;
  need_library();
  qnn_binary_info info;
  qnn_context* context;
  const size_t cuts[] = {0, 1, 4, 16, 56, 64, 512, 1024, 4096, 16384, compiled.size / 2, compiled.size - 4096, compiled.size - 1};
  for (size_t i = 0; i < sizeof cuts / sizeof *cuts; ++i) {
    uint8_t* cut = mem_alloc(cuts[i]); /* its own block, so that a read past the end is seen */
    memcpy(cut, compiled.data, cuts[i]);
    assert_fails(qnn_binary_inspect(test_library, cut, cuts[i], &info), GENAI_ERROR_BAD_FILE, "cannot be read");
    assert_fails(qnn_context_open(test_library, cut, cuts[i], &context), GENAI_ERROR_BAD_FILE, "cannot be read");
    mem_free(cut);
  }
  uint64_t random = 7;
  uint8_t* garbage = mem_calloc(1, compiled.size);
  assert_fails(qnn_binary_inspect(test_library, garbage, compiled.size, &info), GENAI_ERROR_BAD_FILE, "cannot be read");
  for (size_t i = 0; i < compiled.size; ++i) garbage[i] = (uint8_t)(128 + 127 * test_random(&random));
  assert_fails(qnn_context_open(test_library, garbage, compiled.size, &context), GENAI_ERROR_BAD_FILE, "cannot be read");
  mem_free(garbage);
}

static void shared_weights_are_explained(void** state) {
  (void)state;
  need_library();
#if defined(__x86_64__)
  ir_graph* graphs[2];
  float weights[64 * 64];
  uint64_t random = 3;
  for (int i = 0; i < 64 * 64; ++i) weights[i] = test_random(&random);
  for (uint32_t g = 0; g < 2; ++g) {
    assert_ok(ir_graph_create(g ? "decode" : "prefill", &graphs[g]));
    ir_tensor* x = add_encoded(graphs[g], "x", IR_INPUT, IR_U16, -1, 1, DIMS(1, 1, g ? 1 : 8, 64));
    ir_tensor* w = add_constants(graphs[g], "w", DIMS(1, 1, 64, 64), 64, 64, weights);
    float* scales = arena_calloc(&graphs[g]->memory, 64, sizeof *scales);
    for (int i = 0; i < 64; ++i) scales[i] = 1.0f / 127;
    w->dtype = IR_S8;
    w->encoding = (ir_encoding){.kind = IR_ENCODING_PER_CHANNEL, .bits = 8, .axis = 3, .channels = 64, .scales = scales};
    ir_tensor* y = add_encoded(graphs[g], "y", IR_OUTPUT, IR_U16, -20, 20, DIMS(1, 1, g ? 1 : 8, 64));
    add_op(graphs[g], IR_CONV2D, "linear", y, INPUTS(x, w));
  }
  const qnn_compile_options options = {.soc = test_soc(), .weight_sharing = true};
  qnn_binary binary;
  assert_ok(qnn_compile(test_library, (const ir_graph* const*)graphs, 2, &options, &binary));
  qnn_binary_info info;
  assert_ok(qnn_binary_inspect(test_library, binary.data, binary.size, &info));
  assert_int_equal(info.n_graphs, 2);
  qnn_binary_info_deinit(&info);
  qnn_context* context;
  assert_fails(qnn_context_open(test_library, binary.data, binary.size, &context), GENAI_ERROR_UNSUPPORTED,
               "the x86-64 simulator cannot load a binary whose graphs share weights");
  qnn_binary_deinit(&binary);
  ir_graph_destroy(graphs[0]);
  ir_graph_destroy(graphs[1]);
#endif
}

/* Statics of one name are made once for all graphs, but only where they are equal: here the second graph's differ in values, or in scale. */
static void unequal_statics_stay_apart(void** state) {
  (void)state;
  need_library();
  ir_graph* graphs[3];
  for (int g = 0; g < 3; ++g) {
    char name[16];
    snprintf(name, sizeof name, "graph%d", g);
    assert_ok(ir_graph_create(name, &graphs[g]));
    ir_tensor* x = add_encoded(graphs[g], "x", IR_INPUT, IR_U16, -1, 1, DIMS(1, 4, 32));
    float values[32];
    for (int i = 0; i < 32; ++i) values[i] = g == 1 ? -0.5f : 0.5f;
    ir_tensor* w = add_constants(graphs[g], "w", DIMS(32), 32, 1, values);
    encode_range(w, IR_U16, -1, g == 2 ? 3 : 1);
    add_op(graphs[g], IR_MULTIPLY, "scale", add_encoded(graphs[g], "y", IR_OUTPUT, IR_U16, -1, 1, DIMS(1, 4, 32)), INPUTS(x, w));
  }
  const qnn_compile_options options = {.soc = test_soc()};
  qnn_binary binary;
  assert_ok(qnn_compile(test_library, (const ir_graph* const*)graphs, 3, &options, &binary));
  qnn_context* context;
  assert_ok(qnn_context_open(test_library, binary.data, binary.size, &context));
  for (int g = 0; g < 3; ++g) {
    executor* run;
    assert_ok(qnn_context_executor(context, graphs[g]->name, &run));
    uint16_t x[128], y[128];
    for (int i = 0; i < 128; ++i) x[i] = (uint16_t)(500 * i);
    assert_ok(executor_run(run, (const void*[]){x}, (void*[]){y}));
    for (size_t i = 0; i < 128; ++i) {
      float expected = (g == 1 ? -0.5f : 0.5f) * executor_port_read(&run->inputs[0], x, i);
      assert_true(fabsf(executor_port_read(&run->outputs[0], y, i) - expected) < 2 * run->outputs[0].scale);
    }
    executor_destroy(run);
  }
  qnn_context_close(context);
  qnn_binary_deinit(&binary);
  for (int g = 0; g < 3; ++g) ir_graph_destroy(graphs[g]);
}

/* Upstream's file: magic 0x5678ABCD, a signature, the size, zeros to 256 bytes, then the binary. */
static const uint8_t* find_upstream_binary(const mapped_file* file, size_t* size) {
  static const uint8_t magic[4] = {0xcd, 0xab, 0x78, 0x56};
  const uint8_t* at = memmem(file->data, file->size, magic, sizeof magic);
  if (!at) return NULL;
  uint64_t length;
  memcpy(&length, at + 12, sizeof length);
  assert_true(length <= file->size - (size_t)(at - file->data) - 256);
  *size = (size_t)length;
  return at + 256;
}

static void upstream_binary_executes(void** state) {
  (void)state;
  need_library();
  const char* path = shared_file("fixtures/pte/stories260k_hybrid_llama_qnn.pte");
  skip_unless_file(path);
  mapped_file file;
  assert_ok(mapped_file_open(path, &file));
  size_t size = 0;
  const uint8_t* binary = find_upstream_binary(&file, &size);
  assert_non_null(binary);
  qnn_context* context;
  assert_ok(qnn_context_open(test_library, binary, size, &context));
  const qnn_binary_info* info = qnn_context_info(context);
  for (uint32_t g = 0; g < info->n_graphs; ++g) {
    executor* run;
    assert_ok(qnn_context_executor(context, info->graphs[g].name, &run));
    void *inputs[64] = {0}, *outputs[64] = {0};
    assert_true(run->n_inputs <= 64 && run->n_outputs <= 64);
    for (uint32_t i = 0; i < run->n_inputs; ++i) {
      char prefix[32];
      snprintf(prefix, sizeof prefix, "input_%u_", i); /* sorted by number */
      assert_true(strncmp(run->inputs[i].name, prefix, strlen(prefix)) == 0);
      inputs[i] = mem_calloc(1, executor_port_bytes(&run->inputs[i]));
    }
    assert_non_null(strstr(run->inputs[1].name, "tokens"));
    assert_non_null(strstr(run->inputs[4].name, "atten_mask"));
    assert_non_null(strstr(run->inputs[12].name, "args_9"));
    for (uint32_t i = 0; i < run->n_outputs; ++i) {
      /* not numbered: the binary's order */
      assert_string_equal(run->outputs[i].name, info->graphs[g].outputs[i].name);
      outputs[i] = mem_calloc(1, executor_port_bytes(&run->outputs[i]));
    }
    assert_ok(executor_run(run, (const void* const*)inputs, outputs));
    executor_destroy(run);
    for (int i = 0; i < 64; ++i) {
      mem_free(inputs[i]);
      mem_free(outputs[i]);
    }
  }
  qnn_context_close(context);
  mapped_file_close(&file);
}

static void allocation_failures_are_reported(void** state) {
  (void)state;
  need_library();
  for (uint64_t n = 1;; ++n) {
    qnn_context* context = NULL;
    executor* run = NULL;
    mem_inject_failure(n);
    genai_status* status = qnn_context_open(test_library, compiled.data, compiled.size, &context);
    if (!status) status = qnn_context_executor(context, "first", &run);
    mem_inject_failure(0);
    executor_destroy(run);
    qnn_context_close(context);
    if (!status) {
      assert_true(n > 3);
      break;
    }
    assert_int_equal(genai_status_kind(status), GENAI_ERROR_OUT_OF_MEMORY);
    genai_status_free(status);
  }
}

static void compile_allocation_failures_are_reported(void** state) {
  (void)state;
  need_library();
  ir_graph* graphs[2];
  float values[32] = {0};
  for (int g = 0; g < 2; ++g) { /* with a static that the second takes from the first */
    assert_ok(ir_graph_create(g ? "second" : "first", &graphs[g]));
    ir_tensor* x = add_encoded(graphs[g], "x", IR_INPUT, IR_U16, -1, 1, DIMS(1, 4, 32));
    ir_tensor* w = add_constants(graphs[g], "w", DIMS(32), 32, 1, values);
    encode_range(w, IR_U16, -1, 1);
    add_op(graphs[g], IR_MULTIPLY, "scale", add_encoded(graphs[g], "y", IR_OUTPUT, IR_U16, -1, 1, DIMS(1, 4, 32)), INPUTS(x, w));
  }
  const qnn_compile_options options = {.soc = test_soc()};
  for (uint64_t n = 1;; ++n) {
    qnn_binary binary = {0};
    mem_inject_failure(n);
    genai_status* status = qnn_compile(test_library, (const ir_graph* const*)graphs, 2, &options, &binary);
    mem_inject_failure(0);
    if (!status) {
      qnn_binary_deinit(&binary);
      assert_true(n > 5);
      break;
    }
    assert_int_equal(genai_status_kind(status), GENAI_ERROR_OUT_OF_MEMORY);
    genai_status_free(status);
  }
  ir_graph_destroy(graphs[0]);
  ir_graph_destroy(graphs[1]);
}

static void bad_calls_are_refused(void** state) {
  (void)state;
  need_library();
  ir_graph* graph = two_outputs("first");
  qnn_binary binary;
  const qnn_compile_options options = {.soc = test_soc()};
  assert_fails(qnn_compile(test_library, NULL, 0, &options, &binary), GENAI_ERROR_INVALID_ARGUMENT, "0 graphs");
  const qnn_compile_options level = {.soc = test_soc(), .optimization_level = 4};
  assert_fails(qnn_compile(test_library, (const ir_graph* const*)&graph, 1, &level, &binary), GENAI_ERROR_INVALID_ARGUMENT, "level 4");
  cancel_token cancel;
  atomic_init(&cancel.requested, true);
  const qnn_compile_options cancelled = {.soc = test_soc(), .cancel = &cancel};
  assert_fails(qnn_compile(test_library, (const ir_graph* const*)&graph, 1, &cancelled, &binary), GENAI_ERROR_CANCELLED, "");
  ir_graph_find(graph, "y")->encoding.kind = IR_ENCODING_NONE; /* half quantized */
  assert_fails(qnn_compile(test_library, (const ir_graph* const*)&graph, 1, &options, &binary), GENAI_ERROR_INVALID_ARGUMENT,
               "'y' of type u16 has no encoding");
  ir_graph_destroy(graph);
}

/* The HTP has no kernel for u16 x s16: found only by the vendor's finalize. */
static void missing_kernel_is_explained(void** state) {
  (void)state;
  need_library();
  ir_graph* graph;
  assert_ok(ir_graph_create("odd", &graph));
  ir_tensor* a = add_encoded(graph, "a", IR_INPUT, IR_U16, -1, 1, DIMS(1, 2, 8, 32));
  ir_tensor* b = add_encoded(graph, "b", IR_INPUT, IR_S16, -1, 1, DIMS(1, 2, 32, 16));
  add_op(graph, IR_MATMUL, "product", add_encoded(graph, "y", IR_OUTPUT, IR_U16, -8, 8, DIMS(1, 2, 8, 16)), INPUTS(a, b));
  const qnn_compile_options options = {.soc = test_soc()};
  qnn_binary binary;
  assert_fails(qnn_compile(test_library, (const ir_graph* const*)&graph, 1, &options, &binary), GENAI_ERROR_VENDOR, "no kernel");
  ir_graph_destroy(graph);
  /* and one that is refused at once: heads that do not agree */
  assert_ok(ir_graph_create("uneven", &graph));
  a = add_encoded(graph, "a", IR_INPUT, IR_U16, -1, 1, DIMS(1, 9, 8, 32));
  b = add_encoded(graph, "b", IR_INPUT, IR_U8, -1, 1, DIMS(1, 3, 32, 16));
  add_op(graph, IR_MATMUL, "product", add_encoded(graph, "y", IR_OUTPUT, IR_U16, -8, 8, DIMS(1, 9, 8, 16)), INPUTS(a, b));
  assert_fails(qnn_compile(test_library, (const ir_graph* const*)&graph, 1, &options, &binary), GENAI_ERROR_VENDOR,
               "operator 'product' (MatMul: u16[1x9x8x32], u8[1x3x32x16] -> u16[1x9x8x16]) is refused");
  ir_graph_destroy(graph);
  /* 16 bits on the right of a product must lie around the middle */
  assert_ok(ir_graph_create("aside", &graph));
  a = add_encoded(graph, "a", IR_INPUT, IR_U16, -1, 1, DIMS(1, 2, 8, 32));
  b = add_encoded(graph, "b", IR_INPUT, IR_U16, -0.7, 1, DIMS(1, 2, 32, 16));
  add_op(graph, IR_MATMUL, "product", add_encoded(graph, "y", IR_OUTPUT, IR_U16, -8, 8, DIMS(1, 2, 8, 16)), INPUTS(a, b));
  assert_fails(qnn_compile(test_library, (const ir_graph* const*)&graph, 1, &options, &binary), GENAI_ERROR_VENDOR,
               "expected equal to -32768");
  ir_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tells_graphs_and_tensors),
      cmocka_unit_test(executes_each_graph),
      cmocka_unit_test(damaged_binaries_are_refused),
      cmocka_unit_test(shared_weights_are_explained),
      cmocka_unit_test(unequal_statics_stay_apart),
      cmocka_unit_test(upstream_binary_executes),
      cmocka_unit_test(allocation_failures_are_reported),
      cmocka_unit_test(compile_allocation_failures_are_reported),
      cmocka_unit_test(bad_calls_are_refused),
      cmocka_unit_test(missing_kernel_is_explained),
  };
  return cmocka_run_group_tests(tests, compile_example, drop_example);
}
