/* What built graphs look like: boundary, names, folded factors, masks, rotary layouts. The facts come from ir.h and from each family's
 * reference implementation in transformers; that the numbers are right is tested in tests/cpu. */
#include <math.h>

#include "base/log.h"
#include "model/model_internal.h"
#include "variant.h"

typedef struct built {
  checkpoint* file;
  model* m;
  ir_graph* graph;
} built;

static built build(const char* path, model_graph_options options) {
  built b;
  options.name = options.name ? options.name : "g";
  assert_ok(checkpoint_open(test_data(path), &b.file));
  assert_ok(model_open(b.file, &b.m));
  assert_ok(model_build_graph(b.m, &options, &b.graph));
  return b;
}

static void drop(built* b) {
  ir_graph_destroy(b->graph);
  model_close(b->m);
  checkpoint_close(b->file);
}

static const ir_static* source_of(const built* b, const char* name) {
  const ir_tensor* tensor = ir_graph_find(b->graph, name);
  if (!tensor) fail_msg("no tensor %s", name);
  assert_int_equal(tensor->kind, IR_STATIC);
  return tensor->source;
}

static int count_ops(const built* b, ir_op_kind kind) {
  int count = 0;
  for (uint32_t i = 0; i < b->graph->n_ops; ++i) count += b->graph->ops[i]->kind == kind;
  return count;
}

static void expect_boundary(const built* b, const char* const* inputs, const char* const* outputs) {
  for (uint32_t i = 0; i < b->graph->n_inputs; ++i) {
    assert_non_null(inputs[i]);
    assert_string_equal(b->graph->tensors[b->graph->inputs[i]]->name, inputs[i]);
  }
  assert_null(inputs[b->graph->n_inputs]);
  for (uint32_t i = 0; i < b->graph->n_outputs; ++i) {
    assert_non_null(outputs[i]);
    assert_string_equal(b->graph->tensors[b->graph->outputs[i]]->name, outputs[i]);
  }
  assert_null(outputs[b->graph->n_outputs]);
}

static const char* const outputs[] = {"logits", "layer0.key_out", "layer1.key_out", "layer0.value_out", "layer1.value_out", NULL};

static void test_boundary(void** state) {
  (void)state;
  built b = build("checkpoints/llama", (model_graph_options){.name = "kv_forward", .ar_length = 8, .context_length = 32});
  static const char* const cached[] = {"tokens",          "mask", "positions", "layer0.key_in", "layer1.key_in", "layer0.value_in",
                                       "layer1.value_in", NULL};
  expect_boundary(&b, cached, outputs);
  assert_string_equal(b.graph->name, "kv_forward");
  const ir_tensor* key = ir_graph_find_role(b.graph, IR_ROLE_KEY_IN, 1);
  assert_memory_equal(key->dims, ((uint32_t[]){1, 2, 16, 24}), 16);
  const ir_tensor* logits = ir_graph_find_role(b.graph, IR_ROLE_LOGITS, -1);
  assert_memory_equal(logits->dims, ((uint32_t[]){1, 8, 320}), 12);
  drop(&b);
  b = build("checkpoints/llama", (model_graph_options){.ar_length = 8, .context_length = 8});
  static const char* const plain[] = {"tokens", "mask", "positions", NULL};
  expect_boundary(&b, plain, outputs);
  drop(&b);
}

/* A mask is an input only if a layer reads it; a window that holds the whole context needs none of its own. */
static void test_masks(void** state) {
  (void)state;
  static const struct {
    const char* fixture;
    uint32_t context;
    bool full, sliding;
  } cases[] = {{"checkpoints/llama", 32, true, false},          {"checkpoints/mistral-sliding", 32, false, true},
               {"checkpoints/mistral-sliding", 8, true, false}, {"checkpoints/gemma2", 32, true, true},
               {"checkpoints/gemma2", 8, true, false},          {"checkpoints/exaone4", 9, false, true},
               {"checkpoints/qwen2", 32, true, false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    built b = build(cases[i].fixture, (model_graph_options){.ar_length = 4, .context_length = cases[i].context});
    assert_int_equal(ir_graph_find_role(b.graph, IR_ROLE_MASK, -1) != NULL, cases[i].full);
    assert_int_equal(ir_graph_find_role(b.graph, IR_ROLE_MASK_SLIDING, -1) != NULL, cases[i].sliding);
    drop(&b);
  }
}

/* Every operator has one name in all graphs of a model, and statics are the same: encodings carry over. */
static void test_names_agree_across_lengths(void** state) {
  (void)state;
  static const char* const fixtures[] = {"checkpoints/llama", "checkpoints/gemma3", "checkpoints/codegen", "checkpoints/smollm3-nope"};
  for (size_t f = 0; f < 4; ++f) {
    built one = build(fixtures[f], (model_graph_options){.ar_length = 1, .context_length = 32});
    built many = build(fixtures[f], (model_graph_options){.ar_length = 8, .context_length = 32});
    built whole = build(fixtures[f], (model_graph_options){.ar_length = 32, .context_length = 32});
    assert_int_equal(one.graph->n_tensors, many.graph->n_tensors);
    assert_int_equal(one.graph->n_ops, many.graph->n_ops);
    for (uint32_t i = 0; i < one.graph->n_tensors; ++i) {
      const ir_tensor *a = one.graph->tensors[i], *b = many.graph->tensors[i];
      assert_string_equal(a->name, b->name);
      if (a->kind == IR_STATIC) assert_memory_equal(a->dims, b->dims, a->rank * sizeof *a->dims);
    }
    for (uint32_t i = 0; i < whole.graph->n_tensors; ++i) assert_non_null(ir_graph_find(many.graph, whole.graph->tensors[i]->name));
    for (uint32_t i = 0; i < whole.graph->n_ops; ++i) {
      const ir_op* op = whole.graph->ops[i];
      assert_string_equal(op->name, whole.graph->tensors[op->output]->name);
    }
    drop(&one);
    drop(&many);
    drop(&whole);
  }
}

static void test_score_scale_is_folded(void** state) {
  (void)state;
  const model_graph_options options = {.ar_length = 4, .context_length = 16};
  built b = build("checkpoints/llama", options); /* head size 16 */
  assert_float_equal(source_of(&b, "layer0.attention.q_proj.weight")->scale, 0.25f, 1e-7f);
  assert_float_equal(source_of(&b, "layer0.attention.k_proj.weight")->scale, 1.0f, 0);
  drop(&b);
  b = build("checkpoints/qwen2", options); /* the bias too */
  assert_float_equal(source_of(&b, "layer1.attention.q_proj.bias")->scale, 0.25f, 1e-7f);
  drop(&b);
  b = build("checkpoints/qwen3", options); /* head size 32, behind a norm */
  assert_float_equal(source_of(&b, "layer0.attention.q_proj.weight")->scale, 1.0f, 0);
  assert_float_equal(source_of(&b, "layer0.attention.q_norm.weight")->scale, (float)(1 / sqrt(32)), 1e-7f);
  assert_float_equal(source_of(&b, "layer0.attention.k_norm.weight")->scale, 1.0f, 0);
  drop(&b);
  b = build("checkpoints/granite", options); /* attention 0.125, residual 0.22, logits / 4, embedding * 6 */
  assert_float_equal(source_of(&b, "layer0.attention.q_proj.weight")->scale, 0.125f, 0);
  assert_float_equal(source_of(&b, "layer0.attention.o_proj.weight")->scale, 0.22f, 1e-7f);
  assert_float_equal(source_of(&b, "layer0.feed_forward.down_proj.weight")->scale, 0.22f, 1e-7f);
  assert_float_equal(source_of(&b, "lm_head.weight")->scale, 0.25f, 0);
  assert_float_equal(source_of(&b, "embedding.weight")->scale, 6.0f, 0);
  drop(&b);
  b = build("checkpoints/gemma2", options); /* query_pre_attn_scalar 32 and caps 50 and 30 */
  assert_float_equal(source_of(&b, "layer0.attention.q_proj.weight")->scale, (float)(1 / sqrt(32) / 50), 1e-8f);
  assert_float_equal(source_of(&b, "lm_head.weight")->scale, (float)(1.0 / 30), 1e-8f);
  assert_float_equal(source_of(&b, "attention_cap")->constants[0], 50.0f, 0);
  assert_float_equal(source_of(&b, "embedding.weight")->scale, 8.0f, 0);
  drop(&b);
}

/* dynamic (NTK) scaling changes nothing up to max_position_embeddings (_compute_dynamic_ntk_parameters of transformers), 256 here; beyond it
 * no static graph is right. */
static void test_dynamic_scaling_ends_with_the_trained_context(void** state) {
  (void)state;
  static const edit dynamic[] = {{"\"rope_type\": \"default\"", "\"rope_type\": \"dynamic\", \"factor\": 4.0"}, {NULL, NULL}};
  variant v = variant_open("llama", dynamic, NULL);
  built b = {.file = v.file}, plain = build("checkpoints/llama", (model_graph_options){.ar_length = 4, .context_length = 256});
  model_graph_options options = {.name = "g", .ar_length = 4, .context_length = 256};
  assert_ok(model_open(v.file, &b.m));
  assert_ok(model_build_graph(b.m, &options, &b.graph));
  const ir_static *want = source_of(&plain, "rope_cos.weight"), *got = source_of(&b, "rope_cos.weight");
  assert_memory_equal(got->constants, want->constants, want->rows * want->cols * sizeof *want->constants);
  ir_graph* none;
  options.context_length = 257;
  assert_fails(model_build_graph(b.m, &options, &none), GENAI_ERROR_UNSUPPORTED, "context length 257 is beyond the 256 that");
  drop(&plain);
  ir_graph_destroy(b.graph);
  model_close(b.m);
  variant_close(&v);
}

/* Granite's scale of the scores, where config.json does not say, is 1 (GraniteConfig in transformers), not that of the head size. */
static void test_granite_scores_are_not_scaled_by_default(void** state) {
  (void)state;
  variant v = variant_open("granite", (const edit[]){{"\"attention_multiplier\"", "\"unknown\""}, {NULL, NULL}}, NULL);
  built b = {.file = v.file};
  const model_graph_options options = {.name = "g", .ar_length = 4, .context_length = 16};
  assert_ok(model_open(v.file, &b.m));
  assert_ok(model_build_graph(b.m, &options, &b.graph));
  assert_float_equal(source_of(&b, "layer0.attention.q_proj.weight")->scale, 1.0f, 0);
  ir_graph_destroy(b.graph);
  model_close(b.m);
  variant_close(&v);
}

/* Gemma 1 to 3 store w and use 1 + w; GGUF converters add the 1 already. Other families use w. */
static void test_gemma_norms(void** state) {
  (void)state;
  const model_graph_options options = {.ar_length = 4, .context_length = 16};
  static const char* const added[] = {"checkpoints/gemma", "checkpoints/gemma2", "checkpoints/gemma3"};
  static const char* const stored[] = {"model/tiny/gemma.gguf", "model/tiny/gemma2.gguf", "model/tiny/gemma3.gguf", "checkpoints/qwen3"};
  for (size_t i = 0; i < 3; ++i) {
    built b = build(added[i], options);
    assert_float_equal(source_of(&b, "layer0.attention_norm.weight")->add, 1.0f, 0);
    assert_float_equal(source_of(&b, "final_norm.weight")->add, 1.0f, 0);
    if (i == 2) { /* times the score scale, which lies on the query norm */
      assert_float_equal(source_of(&b, "layer0.attention.q_norm.weight")->add, (float)(1 / sqrt(32)), 1e-7f);
      assert_float_equal(source_of(&b, "layer0.attention.k_norm.weight")->add, 1.0f, 0);
    }
    drop(&b);
  }
  for (size_t i = 0; i < 4; ++i) {
    built b = build(stored[i], options);
    assert_float_equal(source_of(&b, "layer0.attention_norm.weight")->add, 0.0f, 0);
    drop(&b);
  }
}

static void test_query_and_key_norms(void** state) {
  (void)state;
  const model_graph_options options = {.ar_length = 4, .context_length = 16};
  built b = build("checkpoints/qwen3", options);
  const ir_tensor* gamma = ir_graph_find(b.graph, "layer0.attention.q_norm.weight");
  assert_memory_equal(gamma->dims, ((uint32_t[]){32}), 4);
  const ir_op *norm = ir_graph_find_op(b.graph, "layer0.attention.q_norm"),
              *rope = ir_graph_find_op(b.graph, "layer0.attention.q_rope.low");
  assert_true(norm->id < rope->id);
  assert_float_equal(norm->attr.epsilon, 1e-6f, 0);
  assert_null(ir_graph_find(b.graph, "layer0.attention.q_proj.bias"));
  drop(&b);
  b = build("checkpoints/qwen2", options);
  assert_null(ir_graph_find(b.graph, "layer0.attention.q_norm"));
  assert_non_null(ir_graph_find(b.graph, "layer0.attention.q_proj.bias"));
  assert_non_null(ir_graph_find(b.graph, "layer0.attention.k_proj.bias"));
  assert_non_null(ir_graph_find(b.graph, "layer0.attention.v_proj.bias"));
  assert_null(ir_graph_find(b.graph, "layer0.attention.o_proj.bias"));
  drop(&b);
  b = build("checkpoints/olmo2", options); /* over the whole projection */
  gamma = ir_graph_find(b.graph, "layer0.attention.k_norm.weight");
  assert_memory_equal(gamma->dims, ((uint32_t[]){32}), 4);
  gamma = ir_graph_find(b.graph, "layer0.attention.q_norm.weight");
  assert_memory_equal(gamma->dims, ((uint32_t[]){64}), 4);
  drop(&b);
}

static void expect_rows(const built* b, const char* name, ir_row_order order, uint64_t rows, uint64_t first, uint64_t group) {
  const ir_static* source = source_of(b, name);
  assert_int_equal(source->row_order, order);
  assert_int_equal(source->rows, rows);
  assert_int_equal(source->first_row, first);
  assert_int_equal(source->group_rows, group);
}

/* Interleaved rotary pairs are brought into half-split order by the head, with as many heads as each projection has. */
static void test_stored_row_orders(void** state) {
  (void)state;
  const model_graph_options options = {.ar_length = 4, .context_length = 16};
  built b = build("model/tiny/llama.gguf", options);
  expect_rows(&b, "layer0.attention.q_proj.weight", IR_ROWS_ROTARY_INTERLEAVED, 32, 0, 0);
  expect_rows(&b, "layer0.attention.k_proj.weight", IR_ROWS_ROTARY_INTERLEAVED, 16, 0, 0);
  expect_rows(&b, "layer0.attention.v_proj.weight", IR_ROWS_AS_STORED, 16, 0, 0);
  assert_int_equal(source_of(&b, "layer0.attention.k_proj.weight")->head_dim, 8);
  drop(&b);
  b = build("checkpoints/llama", options);
  expect_rows(&b, "layer0.attention.q_proj.weight", IR_ROWS_AS_STORED, 64, 0, 0);
  drop(&b);
  b = build("checkpoints/glm4", options); /* half of each head is rotary */
  expect_rows(&b, "layer0.attention.k_proj.bias", IR_ROWS_ROTARY_INTERLEAVED, 32, 0, 0);
  assert_int_equal(source_of(&b, "layer0.attention.k_proj.bias")->rotary_dim, 8);
  expect_rows(&b, "layer0.feed_forward.up_proj.weight", IR_ROWS_AS_STORED, 160, 160, 0);
  drop(&b);
  b = build("checkpoints/phi3", options);
  expect_rows(&b, "layer1.attention.k_proj.weight", IR_ROWS_AS_STORED, 32, 64, 0);
  expect_rows(&b, "layer1.attention.v_proj.weight", IR_ROWS_AS_STORED, 32, 96, 0);
  drop(&b);
  b = build("checkpoints/codegen", options); /* query, value, key in each of four groups */
  expect_rows(&b, "layer0.attention.q_proj.weight", IR_ROWS_ROTARY_INTERLEAVED, 64, 0, 16);
  expect_rows(&b, "layer0.attention.v_proj.weight", IR_ROWS_AS_STORED, 64, 16, 16);
  expect_rows(&b, "layer0.attention.k_proj.weight", IR_ROWS_ROTARY_INTERLEAVED, 64, 32, 16);
  assert_int_equal(source_of(&b, "layer0.attention.k_proj.weight")->group_stride, 48);
  drop(&b);
}

static void test_layers_without_rotary_embedding(void** state) {
  (void)state;
  const model_graph_options options = {.ar_length = 4, .context_length = 16};
  built b = build("checkpoints/smollm3-nope", options);
  assert_non_null(ir_graph_find(b.graph, "layer2.attention.q_rope"));
  assert_null(ir_graph_find(b.graph, "layer3.attention.q_rope"));
  drop(&b);
  b = build("checkpoints/gemma3", options); /* two bases; layer 2 is the full one */
  assert_non_null(ir_graph_find(b.graph, "rope_cos_local.weight"));
  const ir_op *local = ir_graph_find_op(b.graph, "layer0.attention.q_rope.first_cos"),
              *full = ir_graph_find_op(b.graph, "layer2.attention.q_rope.first_cos");
  assert_int_equal(local->inputs[1], ir_graph_find(b.graph, "rope_cos_local_rows")->id);
  assert_int_equal(full->inputs[1], ir_graph_find(b.graph, "rope_cos_rows")->id);
  drop(&b);
}

/* Phi-4-mini: 12 of 16 dimensions turn, the rest passes. */
static void test_partial_rotary(void** state) {
  (void)state;
  built b = build("checkpoints/phi4-mini-partial-longrope", (model_graph_options){.ar_length = 4, .context_length = 16});
  const ir_tensor* rest = ir_graph_find(b.graph, "layer0.attention.k_rope.rest");
  assert_memory_equal(rest->dims, ((uint32_t[]){1, 2, 4, 4}), 16);
  assert_memory_equal(ir_graph_find(b.graph, "rope_cos.weight")->dims, ((uint32_t[]){16, 6}), 8);
  drop(&b);
}

static void test_activations(void** state) {
  (void)state;
  const model_graph_options options = {.ar_length = 4, .context_length = 16};
  built b = build("checkpoints/gemma", options);
  assert_int_equal(count_ops(&b, IR_GELU), 0);
  assert_int_equal(count_ops(&b, IR_SIGMOID), 2);
  assert_non_null(ir_graph_find(b.graph, "layer0.feed_forward.activation_inner"));
  drop(&b);
  /* Early Gemma files say "gelu" and mean the tanh form; others mean erf. */
  static const edit gelu[] = {{"\"gelu_pytorch_tanh\"", "\"gelu\""}, {NULL, NULL}}, silu[] = {{"\"silu\"", "\"gelu\""}, {NULL, NULL}};
  variant v = variant_open("gemma", gelu, NULL);
  assert_ok(model_open(v.file, &b.m));
  assert_int_equal(b.m->activation, ACTIVATION_GELU_TANH);
  model_close(b.m);
  variant_close(&v);
  v = variant_open("llama", silu, NULL);
  assert_ok(model_open(v.file, &b.m));
  assert_ok(model_build_graph(b.m, &(model_graph_options){.name = "g", .ar_length = 1, .context_length = 4}, &b.graph));
  assert_int_equal(count_ops(&b, IR_GELU), 2);
  ir_graph_destroy(b.graph);
  model_close(b.m);
  variant_close(&v);
}

static void test_hadamard_rotation(void** state) {
  (void)state;
  built b = build("checkpoints/llama", (model_graph_options){.ar_length = 4, .context_length = 16, .rotate_qk = true});
  const ir_op *query = ir_graph_find_op(b.graph, "layer0.attention.q_rotate"),
              *key = ir_graph_find_op(b.graph, "layer1.attention.k_rotate");
  assert_int_equal(query->inputs[1], key->inputs[1]);
  const ir_static* matrix = source_of(&b, "hadamard.weight");
  for (int i = 0; i < 16; ++i) { /* orthonormal, entries of one size */
    for (int j = 0; j < 16; ++j) {
      double product = 0;
      for (int k = 0; k < 16; ++k) product += (double)matrix->constants[i * 16 + k] * (double)matrix->constants[j * 16 + k];
      assert_true(fabs(product - (i == j)) < 1e-6);
      assert_float_equal(fabsf(matrix->constants[i * 16 + j]), 0.25f, 1e-7f);
    }
  }
  ir_graph* graph;
  b.m->head_dim = 24;
  model_graph_options options = {.name = "g", .ar_length = 4, .context_length = 16, .rotate_qk = true};
  assert_fails(model_build_graph(b.m, &options, &graph), GENAI_ERROR_UNSUPPORTED, "power of two, this is 24");
  drop(&b);
}

static void test_options_are_checked(void** state) {
  (void)state;
  built b = build("checkpoints/llama", (model_graph_options){.ar_length = 4, .context_length = 16});
  ir_graph* graph;
  model_graph_options options = {.name = "g", .ar_length = 0, .context_length = 16};
  assert_fails(model_build_graph(b.m, &options, &graph), GENAI_ERROR_INVALID_ARGUMENT, "AR length 0");
  options.ar_length = 17;
  assert_fails(model_build_graph(b.m, &options, &graph), GENAI_ERROR_INVALID_ARGUMENT, "AR length 17 and context length 16");
  options = (model_graph_options){.ar_length = 1, .context_length = 16};
  assert_fails(model_build_graph(b.m, &options, &graph), GENAI_ERROR_INVALID_ARGUMENT, "name");
  drop(&b);
}

/* The old form of config.json (rope_theta and rope_scaling at the top, "type") builds the tables that the new one builds. */
static void test_old_rotary_keys(void** state) {
  (void)state;
  static const edit old[] = {{"\"rope_parameters\": {\n    \"rope_theta\": 10000.0,\n    \"rope_type\": \"default\"\n  }",
                              "\"rope_theta\": 50000.0, \"rope_scaling\": {\"type\": \"linear\", \"factor\": 2.0}"},
                             {NULL, NULL}};
  static const edit new[] = {{"\"rope_theta\": 10000.0", "\"rope_theta\": 50000.0"},
                             {"\"rope_type\": \"default\"", "\"rope_type\": \"linear\", \"factor\": 2.0"},
                             {NULL, NULL}};
  float tables[2][2 * 9 * 8];
  for (int i = 0; i < 2; ++i) {
    variant v = variant_open("llama", i ? new : old, NULL);
    model* m;
    assert_ok(model_open(v.file, &m));
    assert_int_equal(m->ropes[0].kind, ROPE_LINEAR);
    assert_ok(rope_tables(&m->ropes[0], 9, 9, tables[i], tables[i] + 9 * 8));
    model_close(m);
    variant_close(&v);
  }
  assert_memory_equal(tables[0], tables[1], sizeof tables[0]);
  assert_float_equal(tables[0][8 * 8], (float)cos(8 / 2.0), 1e-6f);
}

static int long_rope_warnings;
static void count_long_rope(void* user, log_level level, const char* message) {
  (void)user;
  long_rope_warnings += level == LOG_WARNING && strstr(message, "LongRoPE's original 64") != NULL;
}

/* Which of its two lists of factors a LongRoPE graph has follows its context length, and the long one is worth a word. */
static void test_long_rope_is_chosen_by_context(void** state) {
  (void)state;
  log_set_sink(count_long_rope, NULL, LOG_WARNING);
  for (uint32_t context = 64; context <= 65; ++context) {
    built b = build("checkpoints/phi4-mini-partial-longrope", (model_graph_options){.ar_length = 1, .context_length = context});
    assert_int_equal(long_rope_warnings, context > 64);
    static float first[6];
    float row[6];
    assert_ok(ir_static_read(source_of(&b, "rope_cos.weight"), 1, 1, row));
    if (context > 64) assert_memory_not_equal(row, first, sizeof row);
    memcpy(first, row, sizeof row);
    drop(&b);
  }
  log_set_sink(NULL, NULL, LOG_ERROR);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_boundary),
      cmocka_unit_test(test_masks),
      cmocka_unit_test(test_names_agree_across_lengths),
      cmocka_unit_test(test_score_scale_is_folded),
      cmocka_unit_test(test_dynamic_scaling_ends_with_the_trained_context),
      cmocka_unit_test(test_granite_scores_are_not_scaled_by_default),
      cmocka_unit_test(test_gemma_norms),
      cmocka_unit_test(test_query_and_key_norms),
      cmocka_unit_test(test_stored_row_orders),
      cmocka_unit_test(test_layers_without_rotary_embedding),
      cmocka_unit_test(test_partial_rotary),
      cmocka_unit_test(test_activations),
      cmocka_unit_test(test_hadamard_rotation),
      cmocka_unit_test(test_options_are_checked),
      cmocka_unit_test(test_old_rotary_keys),
      cmocka_unit_test(test_long_rope_is_chosen_by_context),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
