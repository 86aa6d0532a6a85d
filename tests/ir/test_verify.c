/* The verifier: each operator accepted in its right form and refused in each wrong one. Shapes are QNN's, worked out by hand. */
#include "ir/ir.h"
#include "support.h"

typedef struct shape {
  uint32_t rank, dims[IR_MAX_RANK];
} shape;
#define SHAPE(...)                                          \
  {                                                         \
    sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), { \
      __VA_ARGS__                                           \
    }                                                       \
  }

typedef struct op_case {
  const char* name;
  ir_op_kind kind;
  uint32_t n_inputs;
  shape inputs[4];
  shape output;
  ir_op attributes;  /* attr only */
  uint32_t statics;  /* bit i: input i is static */
  uint32_t integers; /* bit i: input i is i32 */
  const char* fault; /* NULL: accepted */
} op_case;

static const op_case cases[] = {
    {"gather", IR_GATHER, 2, {SHAPE(10, 4), SHAPE(1, 3)}, SHAPE(1, 3, 4), {0}, 1, 2, NULL},
    {"gather of reals", IR_GATHER, 2, {SHAPE(10, 4), SHAPE(1, 3)}, SHAPE(1, 3, 4), {0}, 1, 0, "indices must be i32"},
    {"gather on axis 1", IR_GATHER, 2, {SHAPE(10, 4), SHAPE(1, 3)}, SHAPE(1, 3, 4), {.attr.axis = 1}, 1, 2, "axis must be 0"},
    {"gather too deep", IR_GATHER, 2, {SHAPE(10, 4, 4, 4), SHAPE(1, 1, 3)}, SHAPE(1, 3, 4), {0}, 1, 2, "too many dimensions"},
    {"rms norm", IR_RMS_NORM, 3, {SHAPE(1, 1, 2, 8), SHAPE(8), SHAPE(8)}, SHAPE(1, 1, 2, 8), {.attr.epsilon = 1e-6f}, 6, 0, NULL},
    {"norm without beta", IR_RMS_NORM, 2, {SHAPE(1, 1, 2, 8), SHAPE(8)}, SHAPE(1, 1, 2, 8), {0}, 2, 0, "2 inputs, expected 3"},
    {"norm of other length", IR_LAYER_NORM, 3, {SHAPE(1, 2, 8), SHAPE(8), SHAPE(4)}, SHAPE(1, 2, 8), {0}, 6, 0, "is [4], expected [8]"},
    {"norm, epsilon", IR_LAYER_NORM, 3, {SHAPE(2, 8), SHAPE(8), SHAPE(8)}, SHAPE(2, 8), {.attr.epsilon = -1}, 6, 0, "epsilon"},
    {"conv", IR_CONV2D, 3, {SHAPE(1, 1, 5, 3), SHAPE(1, 1, 3, 7), SHAPE(7)}, SHAPE(1, 1, 5, 7), {0}, 6, 0, NULL},
    {"conv without bias", IR_CONV2D, 2, {SHAPE(1, 4, 5, 3), SHAPE(1, 1, 3, 7)}, SHAPE(1, 4, 5, 7), {0}, 2, 0, NULL},
    {"conv, inner", IR_CONV2D, 2, {SHAPE(1, 1, 5, 4), SHAPE(1, 1, 3, 7)}, SHAPE(1, 1, 5, 7), {0}, 2, 0, "[1,1,3,7]"},
    {"conv, dynamic weight", IR_CONV2D, 2, {SHAPE(1, 1, 5, 3), SHAPE(1, 1, 3, 7)}, SHAPE(1, 1, 5, 7), {0}, 0, 0, "expected a static"},
    {"conv, bias", IR_CONV2D, 3, {SHAPE(1, 1, 5, 3), SHAPE(1, 1, 3, 7), SHAPE(3)}, SHAPE(1, 1, 5, 7), {0}, 6, 0, "bias"},
    {"conv, rank", IR_CONV2D, 2, {SHAPE(5, 3), SHAPE(1, 1, 3, 7)}, SHAPE(5, 7), {0}, 2, 0, "[1,H,W,K]"},
    {"conv, output",
     IR_CONV2D,
     2,
     {SHAPE(1, 1, 5, 3), SHAPE(1, 1, 3, 7)},
     SHAPE(1, 1, 5, 8),
     {0},
     2,
     0,
     "is [1,1,5,8], its inputs make [1,1,5,7]"},
    {"matmul", IR_MATMUL, 2, {SHAPE(1, 2, 3, 4), SHAPE(1, 2, 4, 5)}, SHAPE(1, 2, 3, 5), {0}, 0, 0, NULL},
    {"matmul, both transposed", IR_MATMUL, 2, {SHAPE(2, 4, 3), SHAPE(2, 5, 4)}, SHAPE(2, 3, 5), {.attr.matmul = {true, true}}, 0, 0, NULL},
    {"matmul, inner", IR_MATMUL, 2, {SHAPE(1, 2, 3, 4), SHAPE(1, 2, 5, 4)}, SHAPE(1, 2, 3, 4), {0}, 0, 0, "inner dimension"},
    {"matmul, heads do not broadcast", IR_MATMUL, 2, {SHAPE(1, 9, 3, 4), SHAPE(1, 3, 4, 5)}, SHAPE(1, 9, 3, 5), {0}, 0, 0, "batch"},
    {"add", IR_ADD, 2, {SHAPE(2, 3, 4), SHAPE(2, 3, 4)}, SHAPE(2, 3, 4), {0}, 0, 0, NULL},
    {"add, broadcast", IR_ADD, 2, {SHAPE(3, 2, 4, 5), SHAPE(1, 1, 4, 5)}, SHAPE(3, 2, 4, 5), {0}, 0, 0, NULL},
    {"multiply by a scalar", IR_MULTIPLY, 2, {SHAPE(3, 2, 4, 5), SHAPE(1)}, SHAPE(3, 2, 4, 5), {0}, 2, 0, NULL},
    {"subtract, both broadcast", IR_SUBTRACT, 2, {SHAPE(3, 1), SHAPE(1, 5)}, SHAPE(3, 5), {0}, 0, 0, NULL},
    {"add, unequal", IR_ADD, 2, {SHAPE(2, 3), SHAPE(2, 4)}, SHAPE(2, 3), {0}, 0, 0, "do not broadcast"},
    {"sigmoid", IR_SIGMOID, 1, {SHAPE(2, 3)}, SHAPE(2, 3), {0}, 0, 0, NULL},
    {"tanh, reshaped", IR_TANH, 1, {SHAPE(2, 3)}, SHAPE(6), {0}, 0, 0, "is [6], its inputs make [2,3]"},
    {"softmax of two", IR_SOFTMAX, 2, {SHAPE(2, 3), SHAPE(2, 3)}, SHAPE(2, 3), {0}, 0, 0, "inputs"},
    {"concat", IR_CONCAT, 3, {SHAPE(1, 2, 3), SHAPE(1, 2, 4), SHAPE(1, 2, 1)}, SHAPE(1, 2, 8), {.attr.axis = 2}, 0, 0, NULL},
    {"concat, others differ", IR_CONCAT, 2, {SHAPE(1, 2, 3), SHAPE(1, 3, 4)}, SHAPE(1, 2, 7), {.attr.axis = 2}, 0, 0, "outside the axis"},
    {"concat, axis", IR_CONCAT, 2, {SHAPE(2, 3), SHAPE(2, 4)}, SHAPE(2, 7), {.attr.axis = 2}, 0, 0, "axis"},
    {"slice", IR_SLICE, 1, {SHAPE(4, 6)}, SHAPE(4, 2), {.attr.slice = {{0, 3}, {4, 5}}}, 0, 0, NULL},
    {"slice past the end", IR_SLICE, 1, {SHAPE(4, 6)}, SHAPE(4, 4), {.attr.slice = {{0, 3}, {4, 7}}}, 0, 0, "range"},
    {"empty slice", IR_SLICE, 1, {SHAPE(4, 6)}, SHAPE(4, 1), {.attr.slice = {{0, 3}, {4, 3}}}, 0, 0, "range"},
    {"reshape", IR_RESHAPE, 1, {SHAPE(4, 6)}, SHAPE(2, 12), {0}, 0, 0, NULL},
    {"reshape, count", IR_RESHAPE, 1, {SHAPE(4, 6)}, SHAPE(2, 11), {0}, 0, 0, "cannot become [2,11]"},
    {"transpose", IR_TRANSPOSE, 1, {SHAPE(1, 2, 3, 4)}, SHAPE(1, 3, 2, 4), {.attr.perm = {0, 2, 1, 3}}, 0, 0, NULL},
    {"transpose twice the same", IR_TRANSPOSE, 1, {SHAPE(2, 2)}, SHAPE(2, 2), {.attr.perm = {1, 1}}, 0, 0, "permutation"},
    {"transpose outside", IR_TRANSPOSE, 1, {SHAPE(2, 2)}, SHAPE(2, 2), {.attr.perm = {0, 2}}, 0, 0, "permutation"},
    {"convert", IR_CONVERT, 1, {SHAPE(2, 3)}, SHAPE(2, 3), {0}, 0, 0, NULL},
};

static uint64_t count_of(const shape* s) {
  uint64_t count = 1;
  for (uint32_t i = 0; i < s->rank; ++i) count *= s->dims[i];
  return count;
}

static ir_graph* build_case(const op_case* c) {
  ir_graph* graph;
  ir_op* op;
  ir_tensor *inputs[4], *output;
  int32_t ids[4];
  assert_ok(ir_graph_create("case", &graph));
  for (uint32_t i = 0; i < c->n_inputs; ++i) {
    char name[8] = {'i', (char)('0' + i), 0};
    const shape* s = &c->inputs[i];
    if (c->statics & 1u << i) {
      bool linear = s->rank == 4 && s->dims[0] == 1;
      ir_static source = {.rows = linear ? s->dims[3] : 1, .cols = linear ? s->dims[2] : count_of(s), .scale = 1};
      source.constants = arena_calloc(&graph->memory, (size_t)count_of(s), sizeof(float));
      assert_ok(ir_graph_add_static(graph, name, s->rank, s->dims, &source, &inputs[i]));
    } else {
      assert_ok(ir_graph_add_tensor(graph, name, IR_INPUT, c->integers & 1u << i ? IR_I32 : IR_F32, s->rank, s->dims, &inputs[i]));
    }
    ids[i] = inputs[i]->id;
  }
  assert_ok(ir_graph_add_tensor(graph, "y", IR_OUTPUT, IR_F32, c->output.rank, c->output.dims, &output));
  assert_ok(ir_graph_add_op(graph, c->kind, "op", ids, c->n_inputs, output->id, &op));
  op->attr = c->attributes.attr;
  return graph;
}

static void test_operators(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    ir_graph* graph = build_case(&cases[i]);
    genai_status* status = ir_graph_verify(graph);
    char message[1024] = "";
    genai_status_format(status, message, sizeof message);
    if (!cases[i].fault && status) fail_msg("%s: refused: %s", cases[i].name, message);
    if (cases[i].fault && !status) fail_msg("%s: accepted", cases[i].name);
    if (cases[i].fault && !strstr(message, cases[i].fault)) fail_msg("%s: \"%s\" not in: %s", cases[i].name, cases[i].fault, message);
    if (status) assert_int_equal(genai_status_kind(status), GENAI_ERROR_INVALID_ARGUMENT);
    genai_status_free(status);
    ir_graph_destroy(graph);
  }
}

/* A convolution whose tensors get encodings. */
static void test_encodings(void** state) {
  (void)state;
  static const op_case conv = {"", IR_CONV2D, 3, {SHAPE(1, 1, 1, 32), SHAPE(1, 1, 32, 2), SHAPE(2)}, SHAPE(1, 1, 1, 2), {0}, 6, 0, NULL};
  ir_graph* graph = build_case(&conv);
  ir_tensor *x = graph->tensors[0], *w = graph->tensors[1], *b = graph->tensors[2];
  float scales[2] = {0.5f, 0.25f};
  uint8_t blocks[4] = {1, 16, 3, 4};

  x->dtype = IR_U16;
  assert_fails(ir_graph_verify(graph), GENAI_ERROR_INVALID_ARGUMENT, "needs an encoding");
  x->encoding = (ir_encoding){.kind = IR_ENCODING_PER_TENSOR, .bits = 16, .scale = 0.1f, .offset = -65535};
  assert_ok(ir_graph_verify(graph));
  x->encoding.offset = -65536;
  assert_fails(ir_graph_verify(graph), GENAI_ERROR_INVALID_ARGUMENT, "zero be represented");
  x->encoding.offset = 1;
  assert_fails(ir_graph_verify(graph), GENAI_ERROR_INVALID_ARGUMENT, "zero be represented");
  x->encoding.offset = 0;
  x->encoding.scale = 0;
  assert_fails(ir_graph_verify(graph), GENAI_ERROR_INVALID_ARGUMENT, "positive");
  x->encoding.scale = 1;
  x->dtype = IR_U8;
  assert_fails(ir_graph_verify(graph), GENAI_ERROR_INVALID_ARGUMENT, "more bits");
  x->dtype = IR_F32;
  assert_fails(ir_graph_verify(graph), GENAI_ERROR_INVALID_ARGUMENT, "fixed-point");
  x->dtype = IR_U16;

  w->dtype = IR_S8;
  w->encoding = (ir_encoding){.kind = IR_ENCODING_PER_CHANNEL, .bits = 8, .axis = 3, .channels = 2, .scales = scales};
  assert_ok(ir_graph_verify(graph));
  w->encoding.channels = 1;
  assert_fails(ir_graph_verify(graph), GENAI_ERROR_INVALID_ARGUMENT, "one scale per channel");
  w->encoding.axis = 4;
  assert_fails(ir_graph_verify(graph), GENAI_ERROR_INVALID_ARGUMENT, "axis");
  w->encoding = (ir_encoding){
      .kind = IR_ENCODING_BLOCK_EXPANSION, .bits = 4, .axis = 3, .channels = 2, .blocks = 2, .scales = scales, .block_scales = blocks};
  assert_ok(ir_graph_verify(graph));
  w->encoding.blocks = 3;
  assert_fails(ir_graph_verify(graph), GENAI_ERROR_INVALID_ARGUMENT, "divide");
  w->encoding.blocks = 2;
  blocks[3] = 17;
  assert_fails(ir_graph_verify(graph), GENAI_ERROR_INVALID_ARGUMENT, "1 to 16");
  blocks[3] = 0;
  assert_fails(ir_graph_verify(graph), GENAI_ERROR_INVALID_ARGUMENT, "1 to 16");
  blocks[3] = 1;
  b->dtype = IR_S32;
  b->encoding = (ir_encoding){.kind = IR_ENCODING_PER_CHANNEL, .bits = 32, .axis = 0, .channels = 2, .scales = scales};
  assert_ok(ir_graph_verify(graph));
  x->encoding = w->encoding;
  x->dtype = IR_S8;
  assert_fails(ir_graph_verify(graph), GENAI_ERROR_INVALID_ARGUMENT, "only statics");
  ir_graph_destroy(graph);
}

static ir_graph* boundary_graph(void) {
  ir_graph* graph;
  ir_tensor *in, *out;
  ir_op* op;
  assert_ok(ir_graph_create("boundary", &graph));
  graph->ar_length = 2;
  graph->context_length = 8;
  assert_ok(ir_graph_add_tensor(graph, "key_in", IR_INPUT, IR_F32, 4, (uint32_t[]){1, 3, 4, 6}, &in));
  assert_ok(ir_graph_add_tensor(graph, "y", IR_OUTPUT, IR_F32, 4, (uint32_t[]){1, 3, 4, 6}, &out));
  assert_ok(ir_graph_add_op(graph, IR_TANH, "y", &in->id, 1, out->id, &op));
  return graph;
}

static void test_boundary(void** state) {
  (void)state;
  ir_graph* graph = boundary_graph();
  ir_tensor* key = graph->tensors[0];
  key->role = IR_ROLE_KEY_IN;
  key->layer = 0;
  assert_ok(ir_graph_verify(graph));
  key->role = IR_ROLE_VALUE_IN; /* wants [1, KV, C - AR, D] */
  assert_fails(ir_graph_verify(graph), GENAI_ERROR_INVALID_ARGUMENT, "value_in");
  key->role = IR_ROLE_TOKENS;
  assert_fails(ir_graph_verify(graph), GENAI_ERROR_INVALID_ARGUMENT, "tokens");
  key->role = IR_ROLE_KEY_IN;
  ir_tensor* twin;
  assert_ok(ir_graph_add_tensor(graph, "twin", IR_INPUT, IR_F32, 4, key->dims, &twin));
  twin->role = IR_ROLE_KEY_IN;
  twin->layer = 0;
  assert_fails(ir_graph_verify(graph), GENAI_ERROR_INVALID_ARGUMENT, "two boundary tensors");
  twin->layer = 1;
  assert_ok(ir_graph_verify(graph));
  twin->dtype = IR_I32;
  assert_fails(ir_graph_verify(graph), GENAI_ERROR_INVALID_ARGUMENT, "i32");
  twin->dtype = IR_F32;
  graph->ar_length = 9;
  assert_fails(ir_graph_verify(graph), GENAI_ERROR_INVALID_ARGUMENT, "more than the context");
  ir_graph_destroy(graph);
}

static void test_order(void** state) {
  (void)state;
  ir_graph* graph = boundary_graph();
  ir_tensor *late, *early;
  ir_op* op;
  assert_ok(ir_graph_add_tensor(graph, "late", IR_INTERMEDIATE, IR_F32, 1, (uint32_t[]){1}, &late));
  assert_ok(ir_graph_add_tensor(graph, "early", IR_INTERMEDIATE, IR_F32, 1, (uint32_t[]){1}, &early));
  assert_ok(ir_graph_add_op(graph, IR_TANH, "early", &late->id, 1, early->id, &op));
  assert_fails(ir_graph_verify(graph), GENAI_ERROR_INVALID_ARGUMENT, "late is not computed before it");
  ir_tensor* output;
  assert_ok(ir_graph_add_tensor(graph, "unwritten", IR_OUTPUT, IR_F32, 1, (uint32_t[]){1}, &output));
  assert_fails(ir_graph_verify(graph), GENAI_ERROR_INVALID_ARGUMENT, "no operator writes this output");
  ir_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_operators), cmocka_unit_test(test_encodings), cmocka_unit_test(test_boundary),
                                     cmocka_unit_test(test_order)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
