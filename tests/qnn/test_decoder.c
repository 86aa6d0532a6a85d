/* A small decoder (the llama fixture) through calibration, quantization and compilation: prefill and decode graphs in the HTP simulator
 * against the host executor that simulates the same encodings, and the weight-shared binary that a device would get. */
#include "cpu/cpu.h"
#include "model/model.h"
#include "qnn/qnn_support.h"
#include "quantize/quantize.h"

enum { AR = 8, CONTEXT = 24, CALIBRATION_TOKENS = 20 };

typedef struct fixture {
  checkpoint* file;
  model* source;
  model_info info;
  ir_graph *prefill, *decode;
} fixture;

static void build(const fixture* self, const recipe* how, uint32_t ar, ir_graph** out) {
  const model_graph_options options = {
      .name = ar == 1 ? "kv_forward" : "prefill_forward", .ar_length = ar, .context_length = CONTEXT, .rotate_qk = how->rotate_qk};
  assert_ok(model_build_graph(self->source, &options, out));
}

static int32_t token(const fixture* self, uint32_t position) {
  return (int32_t)((position * 37 + 5) % self->info.vocab);
}

static void open_model(const char* checkpoint_name, fixture* self) {
  char path[256];
  snprintf(path, sizeof path, "checkpoints/%s", checkpoint_name);
  assert_ok(checkpoint_open(test_data(path), &self->file));
  assert_ok(model_open(self->file, &self->source));
  model_get_info(self->source, &self->info);
}

static void fixture_open(const char* checkpoint_name, const recipe* how, fixture* self) {
  open_model(checkpoint_name, self);
  int32_t ids[CALIBRATION_TOKENS];
  for (uint32_t i = 0; i < CALIBRATION_TOKENS; ++i) ids[i] = token(self, i);
  const int32_t* sequences[] = {ids};
  const size_t lengths[] = {CALIBRATION_TOKENS};
  const calibration_options options = {.how = how, .max_tokens_per_pass = CALIBRATION_TOKENS};
  calibration* ranges;
  assert_ok(calibrate(self->source, sequences, lengths, 1, &options, &ranges));
  build(self, how, AR, &self->prefill);
  build(self, how, 1, &self->decode);
  assert_ok(quantize_graph(self->prefill, ranges, how, NULL));
  assert_ok(quantize_graph_like(self->decode, self->prefill));
  calibration_destroy(ranges);
}

static void fixture_close(fixture* self) {
  ir_graph_destroy(self->prefill);
  ir_graph_destroy(self->decode);
  model_close(self->source);
  checkpoint_close(self->file);
}

/* The inputs and outputs of one call. */
typedef struct call {
  void* inputs[32];
  void* outputs[32];
} call;

static void call_init(call* self, const executor* run) {
  assert_true(run->n_inputs <= 32 && run->n_outputs <= 32);
  for (uint32_t i = 0; i < run->n_inputs; ++i) self->inputs[i] = mem_calloc(1, executor_port_bytes(&run->inputs[i]));
  for (uint32_t i = 0; i < run->n_outputs; ++i) self->outputs[i] = mem_calloc(1, executor_port_bytes(&run->outputs[i]));
}

static void call_deinit(call* self) {
  for (int i = 0; i < 32; ++i) {
    mem_free(self->inputs[i]);
    mem_free(self->outputs[i]);
  }
}

/* Tokens `past` to past + ar - 1; cached ones in columns [0, past), new ones at the window's end. Caches are left as they are. */
static void fill_inputs(const fixture* self, const executor* run, uint32_t past, call* to) {
  uint32_t ar = run->ar_length;
  for (uint32_t i = 0; i < run->n_inputs; ++i) {
    const executor_port* port = &run->inputs[i];
    if (port->role == IR_ROLE_TOKENS || port->role == IR_ROLE_POSITIONS) {
      for (uint32_t j = 0; j < ar; ++j) {
        ((int32_t*)to->inputs[i])[j] = port->role == IR_ROLE_TOKENS ? token(self, past + j) : (int32_t)(past + j);
      }
    } else if (port->role == IR_ROLE_MASK) {
      for (uint32_t row = 0; row < ar; ++row) {
        for (uint32_t column = 0; column < CONTEXT; ++column) {
          bool seen = column < past || (column >= CONTEXT - ar && column - (CONTEXT - ar) <= row);
          executor_port_write(port, to->inputs[i], row * CONTEXT + column, seen ? 0.0f : -255.0f);
        }
      }
    }
  }
}

/* Copies the first `count` columns of a call's new keys and values into the caches of another's inputs, bit for bit, at column 0. */
static void carry_cache(const executor* from, const call* source, const executor* to, call* target, uint32_t count) {
  for (uint32_t i = 0; i < to->n_inputs; ++i) {
    const executor_port* cache = &to->inputs[i];
    bool key = cache->role == IR_ROLE_KEY_IN;
    if (!key && cache->role != IR_ROLE_VALUE_IN) continue;
    uint32_t o = 0;
    while (from->outputs[o].role != (key ? IR_ROLE_KEY_OUT : IR_ROLE_VALUE_OUT) || from->outputs[o].layer != cache->layer) ++o;
    const executor_port* fresh = &from->outputs[o];
    assert_true(fresh->dtype == cache->dtype && fresh->scale == cache->scale && fresh->offset == cache->offset);
    size_t bytes = ir_dtype_size(cache->dtype);
    uint32_t heads = cache->dims[1], size = cache->dims[key ? 2 : 3];
    uint32_t columns = cache->dims[key ? 3 : 2], made = fresh->dims[key ? 3 : 2];
    for (uint32_t h = 0; h < heads; ++h) {
      for (uint32_t c = 0; c < count; ++c) {
        for (uint32_t d = 0; d < size; ++d) {
          size_t at = key ? ((size_t)h * size + d) * columns + c : ((size_t)h * columns + c) * size + d;
          size_t of = key ? ((size_t)h * size + d) * made + c : ((size_t)h * made + c) * size + d;
          memcpy((uint8_t*)target->inputs[i] + at * bytes, (const uint8_t*)source->outputs[o] + of * bytes, bytes);
        }
      }
    }
  }
}

/* Signal-to-noise ratio of `got` against `expected`, in dB. */
static double sqnr(const executor_port* port, const void* got, const void* expected) {
  size_t count = executor_port_bytes(port) / ir_dtype_size(port->dtype);
  double signal = 0, noise = 1e-30;
  for (size_t i = 0; i < count; ++i) {
    double e = (double)executor_port_read(port, expected, i), d = (double)executor_port_read(port, got, i) - e;
    signal += e * e;
    noise += d * d;
  }
  return 10 * log10(signal / noise);
}

/* Largest difference in steps of the port's encoding. */
static double largest_step(const executor_port* port, const void* got, const void* expected) {
  size_t count = executor_port_bytes(port) / ir_dtype_size(port->dtype);
  double largest = 0;
  for (size_t i = 0; i < count; ++i) {
    largest = fmax(largest, fabs((double)executor_port_read(port, expected, i) - (double)executor_port_read(port, got, i)));
  }
  return largest / (double)port->scale;
}

typedef struct agreement {
  double logits_db;   /* SQNR of the logits */
  double cache_steps; /* largest difference in the new keys and values */
} agreement;

/* Runs both executors on the same inputs. Ports of the binary get the graph's roles by position: the names carry it. */
static agreement compare(const fixture* self, executor* qnn, executor* host, const ir_graph* graph, uint32_t past, call* on_qnn,
                         call* on_host) {
  executor_port *inputs, *outputs;
  qnn_executor_ports(qnn, &inputs, &outputs);
  assert_int_equal(qnn->n_inputs, host->n_inputs);
  assert_int_equal(qnn->n_outputs, host->n_outputs);
  for (uint32_t i = 0; i < qnn->n_inputs; ++i) {
    inputs[i].role = graph->tensors[graph->inputs[i]]->role;
    inputs[i].layer = graph->tensors[graph->inputs[i]]->layer;
    assert_int_equal(executor_port_bytes(&inputs[i]), executor_port_bytes(&host->inputs[i]));
    assert_true(inputs[i].scale == host->inputs[i].scale && inputs[i].offset == host->inputs[i].offset);
  }
  for (uint32_t i = 0; i < qnn->n_outputs; ++i) {
    outputs[i].role = graph->tensors[graph->outputs[i]]->role;
    outputs[i].layer = graph->tensors[graph->outputs[i]]->layer;
    assert_true(outputs[i].scale == host->outputs[i].scale && outputs[i].offset == host->outputs[i].offset);
  }
  qnn->ar_length = host->ar_length;
  fill_inputs(self, host, past, on_host);
  for (uint32_t i = 0; i < qnn->n_inputs; ++i) memcpy(on_qnn->inputs[i], on_host->inputs[i], executor_port_bytes(&inputs[i]));
  assert_ok(executor_run(host, (const void* const*)on_host->inputs, on_host->outputs));
  assert_ok(executor_run(qnn, (const void* const*)on_qnn->inputs, on_qnn->outputs));
  agreement result = {0};
  for (uint32_t i = 0; i < qnn->n_outputs; ++i) {
    const void *got = on_qnn->outputs[i], *expected = on_host->outputs[i];
    if (outputs[i].role == IR_ROLE_LOGITS) {
      result.logits_db = sqnr(&outputs[i], got, expected);
    } else {
      result.cache_steps = fmax(result.cache_steps, largest_step(&outputs[i], got, expected));
    }
  }
  print_message("  %s: logits %.1f dB, cache within %.0f steps\n", graph->name, result.logits_db, result.cache_steps);
  return result;
}

/* Compiles both graphs, runs prefill and one decode step on both executors; returns the size of the binary. */
static size_t check_graphs(const fixture* self, cpu_mode mode, const qnn_compile_options* options, double least_db, double most_steps) {
  const ir_graph* graphs[] = {self->decode, self->prefill};
  qnn_binary binary;
  assert_ok(qnn_compile(test_library, graphs, 2, options, &binary));
  qnn_context* context;
  assert_ok(qnn_context_open(test_library, binary.data, binary.size, &context));
  const cpu_options host_options = {.mode = mode, .weight_cache_bytes = 1 << 28};
  executor *qnn_prefill, *qnn_decode, *host_prefill, *host_decode;
  assert_ok(qnn_context_executor(context, "prefill_forward", &qnn_prefill));
  assert_ok(qnn_context_executor(context, "kv_forward", &qnn_decode));
  assert_ok(cpu_executor_create(self->prefill, &host_options, &host_prefill));
  assert_ok(cpu_executor_create(self->decode, &host_options, &host_decode));
  call calls[4] = {0};
  call_init(&calls[0], qnn_prefill);
  call_init(&calls[1], host_prefill);
  call_init(&calls[2], qnn_decode);
  call_init(&calls[3], host_decode);

  agreement first = compare(self, qnn_prefill, host_prefill, self->prefill, 0, &calls[0], &calls[1]);
  carry_cache(host_prefill, &calls[1], host_decode, &calls[3], AR); /* both decode from the same cache */
  agreement second = compare(self, qnn_decode, host_decode, self->decode, AR, &calls[2], &calls[3]);
  assert_true(first.logits_db >= least_db && second.logits_db >= least_db);
  assert_true(fmax(first.cache_steps, second.cache_steps) < most_steps + 0.01);

  for (int i = 0; i < 4; ++i) call_deinit(&calls[i]);
  executor_destroy(qnn_prefill);
  executor_destroy(qnn_decode);
  executor_destroy(host_prefill);
  executor_destroy(host_decode);
  qnn_context_close(context);
  size_t size = binary.size;
  qnn_binary_deinit(&binary);
  return size;
}

/* What a device gets: equal weights once. The simulator cannot load it, so its record is read. */
static void check_shared(const fixture* self, size_t unshared_size) {
  const ir_graph* graphs[] = {self->decode, self->prefill};
  const qnn_compile_options options = {.soc = test_soc(), .weight_sharing = true};
  qnn_binary binary;
  assert_ok(qnn_compile(test_library, graphs, 2, &options, &binary));
  qnn_binary_info info;
  assert_ok(qnn_binary_inspect(test_library, binary.data, binary.size, &info));
  assert_int_equal(info.soc_model, 57);
  assert_int_equal(info.htp_arch, 75);
  assert_int_equal(info.n_graphs, 2);
  assert_string_equal(info.graphs[0].name, "kv_forward");
  assert_int_equal(info.graphs[0].n_inputs, self->decode->n_inputs);
  print_message("  shared %zu bytes, unshared %zu\n", binary.size, unshared_size);
  assert_true(binary.size < unshared_size);
  qnn_binary_info_deinit(&info);
  qnn_binary_deinit(&binary);
}

static void check_model(const char* name, const char* recipe_name, uint32_t kv_bits, double least_db, double most_steps) {
  recipe how;
  assert_ok(recipe_load(recipe_name, &how));
  how.kv_bits = kv_bits;
  print_message("%s, %s, %u-bit cache\n", name, recipe_name, kv_bits);
  fixture self = {0};
  fixture_open(name, &how, &self);
  const qnn_compile_options options = {.soc = test_soc()};
  check_shared(&self, check_graphs(&self, CPU_SIMULATED, &options, least_db, most_steps));
  fixture_close(&self);
}

static void llama_8bit(void** state) {
  (void)state;
  need_library();
  check_model("llama", "16a8w", 8, 40, 1);
}

static void llama_16bit_cache(void** state) {
  (void)state;
  need_library();
  check_model("llama", "16a8w", 16, 40, 40);
}

static void llama_4bit(void** state) {
  (void)state;
  need_library();
  check_model("llama", "16a4w", 8, 40, 1);
}

static void llama_blocks(void** state) {
  (void)state;
  need_library();
  check_model("llama", "16a4w_block", 8, 40, 1);
}

/* Biases, norms of queries and keys, GELU: other operators in place. */
static void other_families(void** state) {
  (void)state;
  need_library();
  check_model("qwen2", "16a8w", 8, 40, 1);
  check_model("qwen3", "16a8w", 8, 40, 1);
  check_model("gemma", "16a8w", 8, 40, 1);
  check_model("stablelm", "16a8w", 8, 40, 1);
}

/* Float graphs, which the HTP computes in half precision, against the host executor in single precision. */
static void float_decoders(void** state) {
  (void)state;
  need_library();
  const char* const names[] = {"llama", "stablelm"};
  const recipe plain = {0};
  for (int n = 0; n < 2; ++n) {
    fixture self = {0};
    open_model(names[n], &self);
    build(&self, &plain, AR, &self.prefill);
    build(&self, &plain, 1, &self.decode);
    const qnn_compile_options options = {.soc = test_soc(), .float16 = true};
    print_message("%s, float\n", names[n]);
    check_graphs(&self, CPU_FLOAT, &options, 50, 1e30); /* the cache's steps mean nothing in float */
    fixture_close(&self);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(llama_8bit),   cmocka_unit_test(llama_16bit_cache), cmocka_unit_test(llama_4bit),
      cmocka_unit_test(llama_blocks), cmocka_unit_test(other_families),    cmocka_unit_test(float_decoders),
  };
  return cmocka_run_group_tests(tests, open_test_library, close_test_library);
}
