/* Every operator of the IR, quantized, compiled for SM8650, loaded back and executed in Qualcomm's HTP simulator. Expected values: the
 * double-precision reference of reference.h on the reals that the inputs and statics hold. Errors count in steps (LSB) of the output's
 * encoding; the bounds are what the HTP was measured to keep, rounded up, and the same in QAIRT 2.47 to 2.51. The simulating host executor,
 * which quantization is tuned on, must be as near: it rounds the exact result, so half a step more is allowed. */
#include "cpu/cpu.h"
#include "qnn/reference.h"

typedef struct op_case {
  const char* name;
  void (*build)(ir_graph* graph);
  double max_lsb, rms_lsb;
} op_case;

static uint64_t seed = 1;

static float* random_values(size_t count, float reach) {
  static float values[1 << 16];
  assert_true(count <= sizeof values / sizeof *values);
  for (size_t i = 0; i < count; ++i) values[i] = reach * test_random(&seed);
  return values;
}

static ir_tensor* input16(ir_graph* graph, const char* name, double reach, uint32_t rank, const uint32_t* dims) {
  return add_encoded(graph, name, IR_INPUT, IR_U16, -reach, reach, rank, dims);
}

static ir_tensor* output16(ir_graph* graph, double low, double high, uint32_t rank, const uint32_t* dims) {
  return add_encoded(graph, "y", IR_OUTPUT, IR_U16, low, high, rank, dims);
}

/* ---- Linear layers ---- */
static ir_tensor* linear_weight(ir_graph* graph, uint32_t n, uint32_t k, uint32_t bits, uint32_t block) {
  float* values = random_values((size_t)n * k, 0.3f);
  ir_tensor* weight = add_constants(graph, "w", DIMS(1, 1, k, n), n, k, values);
  float top = (float)((1u << (bits - 1)) - 1);
  weight->dtype = IR_S8;
  ir_encoding* encoding = &weight->encoding;
  *encoding = (ir_encoding){.kind = block ? IR_ENCODING_BLOCK_EXPANSION : IR_ENCODING_PER_CHANNEL, .bits = (uint8_t)bits, .axis = 3};
  encoding->channels = n;
  encoding->blocks = block ? k / block : 0;
  float* scales = arena_calloc(&graph->memory, n, sizeof *scales);
  uint8_t* block_scales = arena_calloc(&graph->memory, n, encoding->blocks + 1);
  for (uint32_t c = 0; c < n; ++c) {
    scales[c] = 0.3f / top * (1 + 0.02f * (float)(c % 7));
    if (block) scales[c] /= 16;
    for (uint32_t b = 0; b < encoding->blocks; ++b) block_scales[c * encoding->blocks + b] = (uint8_t)(16 - (c + b) % 4);
  }
  encoding->scales = scales;
  encoding->block_scales = block ? block_scales : NULL;
  return weight;
}

static void build_conv(ir_graph* graph, uint32_t m, uint32_t k, uint32_t n, uint32_t bits, uint32_t block, bool bias) {
  ir_tensor* x = input16(graph, "x", 1, DIMS(1, 1, m, k));
  ir_tensor* w = linear_weight(graph, n, k, bits, block);
  ir_tensor* y = output16(graph, -3, 2.5, DIMS(1, 1, m, n));
  if (!bias) {
    add_op(graph, IR_CONV2D, "conv", y, INPUTS(x, w));
    return;
  }
  ir_tensor* b = add_constants(graph, "b", DIMS(n), n, 1, random_values(n, 0.5f));
  float* scales = arena_calloc(&graph->memory, n, sizeof *scales);
  for (uint32_t c = 0; c < n; ++c) scales[c] = x->encoding.scale * w->encoding.scales[c];
  b->dtype = IR_S32;
  b->encoding = (ir_encoding){.kind = IR_ENCODING_PER_CHANNEL, .bits = 32, .axis = 0, .channels = n, .scales = scales};
  add_op(graph, IR_CONV2D, "conv", y, INPUTS(x, w, b));
}

static void conv_8bit(ir_graph* graph) {
  build_conv(graph, 8, 64, 48, 8, 0, false);
}
static void conv_8bit_decode(ir_graph* graph) {
  build_conv(graph, 1, 64, 48, 8, 0, false);
}
static void conv_8bit_bias(ir_graph* graph) {
  build_conv(graph, 8, 64, 48, 8, 0, true);
}
static void conv_4bit(ir_graph* graph) {
  build_conv(graph, 8, 64, 48, 4, 0, false);
}
static void conv_4bit_bias(ir_graph* graph) {
  build_conv(graph, 8, 64, 48, 4, 0, true);
}
static void conv_block16(ir_graph* graph) {
  build_conv(graph, 8, 64, 48, 4, 16, false);
}
static void conv_block32(ir_graph* graph) {
  build_conv(graph, 8, 64, 48, 4, 32, false);
}
static void conv_block64(ir_graph* graph) {
  build_conv(graph, 8, 128, 48, 4, 64, false);
}
static void conv_block32_bias(ir_graph* graph) {
  build_conv(graph, 8, 64, 48, 4, 32, true);
}

/* The HTP turns the right side into signed bytes: 8 bits around the middle (offset -128) survive exactly. With any other offset, columns
 * whose values leave -128..127 after the offset lose their last bit. */
static void encode_right(ir_tensor* b, ir_dtype type, double low, double high) {
  encode_range(b, type, low, high);
  if (low == -high && type == IR_U8) b->encoding.scale = (float)(high / 127), b->encoding.offset = -128;
}

static void build_matmul(ir_graph* graph, ir_dtype right, bool transpose_b, double low) {
  ir_tensor* a = input16(graph, "a", 1, DIMS(1, 2, 8, 32));
  ir_tensor* b =
      transpose_b ? add_plain(graph, "b", IR_INPUT, right, DIMS(1, 2, 24, 32)) : add_plain(graph, "b", IR_INPUT, right, DIMS(1, 2, 32, 24));
  encode_right(b, right, low, 1);
  add_op(graph, IR_MATMUL, "matmul", output16(graph, -8, 8, DIMS(1, 2, 8, 24)), INPUTS(a, b))->attr.matmul.transpose_b = transpose_b;
}
static void matmul_u8(ir_graph* graph) {
  build_matmul(graph, IR_U8, false, -1);
}
static void matmul_u8_transposed(ir_graph* graph) {
  build_matmul(graph, IR_U8, true, -1);
}
static void matmul_u8_asymmetric(ir_graph* graph) {
  build_matmul(graph, IR_U8, false, -0.7);
}
static void matmul_s8(ir_graph* graph) {
  build_matmul(graph, IR_S8, false, -1);
}
static void matmul_u16(ir_graph* graph) {
  build_matmul(graph, IR_U16, false, -1);
}
static void matmul_u16_transposed(ir_graph* graph) {
  build_matmul(graph, IR_U16, true, -1);
}
static void matmul_transpose_a(ir_graph* graph) {
  ir_tensor* a = input16(graph, "a", 1, DIMS(1, 2, 32, 8));
  ir_tensor* b = add_plain(graph, "b", IR_INPUT, IR_U8, DIMS(1, 2, 32, 24));
  encode_right(b, IR_U8, -1, 1);
  add_op(graph, IR_MATMUL, "matmul", output16(graph, -8, 8, DIMS(1, 2, 8, 24)), INPUTS(a, b))->attr.matmul.transpose_a = true;
}
/* Attention weights: products of a softmax with values. */
static void build_attention_value(ir_graph* graph, ir_dtype right) {
  ir_tensor* a = add_encoded(graph, "a", IR_INPUT, IR_U16, 0, 1, DIMS(1, 2, 8, 64));
  ir_tensor* b = add_plain(graph, "b", IR_INPUT, right, DIMS(1, 2, 64, 32));
  encode_right(b, right, -1, 1);
  add_op(graph, IR_MATMUL, "matmul", output16(graph, -20, 20, DIMS(1, 2, 8, 32)), INPUTS(a, b));
}
static void attention_value_u8(ir_graph* graph) {
  build_attention_value(graph, IR_U8);
}
static void attention_value_u16(ir_graph* graph) {
  build_attention_value(graph, IR_U16);
}
/* A constant right side: the rotation by a Hadamard matrix. */
static void build_rotation(ir_graph* graph, ir_dtype right) {
  enum { D = 32 };
  float matrix[D * D];
  for (int i = 0; i < D * D; ++i) matrix[i] = (__builtin_popcount((unsigned)(i / D & i % D)) & 1 ? -1.0f : 1.0f) / sqrtf(D);
  ir_tensor* a = input16(graph, "a", 1, DIMS(1, 2, 8, D));
  ir_tensor* h = add_constants(graph, "h", DIMS(1, 1, D, D), D, D, matrix);
  encode_range(h, right, -1 / sqrt(D), 1 / sqrt(D));
  if (right == IR_S8) { /* a linear layer */
    float* scales = arena_calloc(&graph->memory, D, sizeof *scales);
    for (int i = 0; i < D; ++i) scales[i] = h->encoding.scale;
    h->encoding = (ir_encoding){.kind = IR_ENCODING_PER_CHANNEL, .bits = 8, .axis = 3, .channels = D, .scales = scales};
  }
  add_op(graph, IR_CONV2D, "rotate", output16(graph, -4, 4, DIMS(1, 2, 8, D)), INPUTS(a, h));
}
static void rotation_s8(ir_graph* graph) {
  build_rotation(graph, IR_S8);
}

/* ---- Norms ---- */
static void build_norm(ir_graph* graph, ir_op_kind kind, double reach, ir_dtype parameters) {
  enum { E = 64 };
  ir_tensor* x = input16(graph, "x", reach, DIMS(1, 8, E));
  float values[E];
  for (int i = 0; i < E; ++i) values[i] = 1 + 0.5f * test_random(&seed);
  ir_tensor* gamma = add_constants(graph, "gamma", DIMS(E), E, 1, values);
  encode_range(gamma, parameters, 0, 1.5);
  if (kind == IR_LAYER_NORM && parameters == IR_U16) { /* 16 bits must lie around the middle here */
    gamma->encoding.scale = 1.5f / 32767;
    gamma->encoding.offset = -32768;
  }
  for (int i = 0; i < E; ++i) values[i] = kind == IR_RMS_NORM ? 0 : 0.2f * test_random(&seed);
  ir_tensor* beta = add_constants(graph, "beta", DIMS(E), E, 1, values);
  encode_range(beta, parameters, -0.25, 0.25);
  add_op(graph, kind, "norm", output16(graph, -3.5, 3.5, DIMS(1, 8, E)), INPUTS(x, gamma, beta))->attr.epsilon = 1e-5f;
}
static void rms_norm(ir_graph* graph) {
  build_norm(graph, IR_RMS_NORM, 2, IR_U16);
}
static void rms_norm_large(ir_graph* graph) {
  build_norm(graph, IR_RMS_NORM, 300, IR_U16);
}
static void rms_norm_small(ir_graph* graph) {
  build_norm(graph, IR_RMS_NORM, 0.02, IR_U16);
}
static void rms_norm_u8(ir_graph* graph) {
  build_norm(graph, IR_RMS_NORM, 2, IR_U8);
}
static void layer_norm(ir_graph* graph) {
  build_norm(graph, IR_LAYER_NORM, 2, IR_U8);
}
static void layer_norm_u16(ir_graph* graph) {
  build_norm(graph, IR_LAYER_NORM, 2, IR_U16);
}

/* ---- Element by element ---- */
static void build_binary(ir_graph* graph, ir_op_kind kind, bool broadcast) {
  ir_tensor* a = input16(graph, "a", 1, DIMS(1, 4, 8, 32));
  ir_tensor* b = broadcast ? input16(graph, "b", 2, DIMS(1, 1, 8, 32)) : input16(graph, "b", 2, DIMS(1, 4, 8, 32));
  add_op(graph, kind, "op", output16(graph, -3, 3, DIMS(1, 4, 8, 32)), INPUTS(a, b));
}
static void add(ir_graph* graph) {
  build_binary(graph, IR_ADD, false);
}
static void add_broadcast(ir_graph* graph) {
  build_binary(graph, IR_ADD, true);
}
static void subtract(ir_graph* graph) {
  build_binary(graph, IR_SUBTRACT, false);
}
static void multiply(ir_graph* graph) {
  build_binary(graph, IR_MULTIPLY, false);
}
static void multiply_broadcast(ir_graph* graph) {
  build_binary(graph, IR_MULTIPLY, true);
}
static void add_last_dim(ir_graph* graph) {
  ir_tensor* a = input16(graph, "a", 1, DIMS(1, 4, 8, 32));
  ir_tensor* b = input16(graph, "b", 2, DIMS(1, 4, 8, 1));
  add_op(graph, IR_ADD, "op", output16(graph, -3, 3, DIMS(1, 4, 8, 32)), INPUTS(a, b));
}
static void add_mask(ir_graph* graph) {
  ir_tensor* a = input16(graph, "a", 10, DIMS(1, 4, 8, 32));
  ir_tensor* b = add_encoded(graph, "mask", IR_INPUT, IR_U16, -255, 0, DIMS(1, 1, 8, 32));
  add_op(graph, IR_ADD, "op", output16(graph, -255, 10, DIMS(1, 4, 8, 32)), INPUTS(a, b));
}
static void multiply_static(ir_graph* graph) {
  ir_tensor* a = input16(graph, "a", 1, DIMS(1, 4, 32));
  float value = 0.25f;
  ir_tensor* b = add_constants(graph, "half", DIMS(1), 1, 1, &value);
  encode_range(b, IR_U16, 0, 0.25);
  add_op(graph, IR_MULTIPLY, "op", output16(graph, -0.25, 0.25, DIMS(1, 4, 32)), INPUTS(a, b));
}

static void build_unary(ir_graph* graph, ir_op_kind kind, double reach, double low, double high) {
  ir_tensor* x = input16(graph, "x", reach, DIMS(1, 8, 64));
  add_op(graph, kind, "op", output16(graph, low, high, DIMS(1, 8, 64)), INPUTS(x));
}
static void sigmoid(ir_graph* graph) {
  build_unary(graph, IR_SIGMOID, 6, 0, 1);
}
static void sigmoid_wide(ir_graph* graph) {
  build_unary(graph, IR_SIGMOID, 60, 0, 1);
}
static void tanh_case(ir_graph* graph) {
  build_unary(graph, IR_TANH, 3, -1, 1);
}
static void gelu(ir_graph* graph) {
  build_unary(graph, IR_GELU, 4, -0.2, 4);
}
static void softmax(ir_graph* graph) {
  ir_tensor* x = input16(graph, "x", 8, DIMS(1, 2, 8, 64));
  add_op(graph, IR_SOFTMAX, "op", output16(graph, 0, 1, DIMS(1, 2, 8, 64)), INPUTS(x));
}
static void softmax_masked(ir_graph* graph) {
  ir_tensor* x = add_encoded(graph, "x", IR_INPUT, IR_U16, -255, 20, DIMS(1, 2, 8, 64));
  add_op(graph, IR_SOFTMAX, "op", output16(graph, 0, 1, DIMS(1, 2, 8, 64)), INPUTS(x));
}

/* ---- Moves ---- */
static ir_tensor* like(ir_graph* graph, ir_tensor* x, uint32_t rank, const uint32_t* dims) {
  ir_tensor* y = add_plain(graph, "y", IR_OUTPUT, x->dtype, rank, dims);
  y->encoding = x->encoding;
  return y;
}
static void reshape(ir_graph* graph) {
  ir_tensor* x = input16(graph, "x", 1, DIMS(1, 8, 64));
  add_op(graph, IR_RESHAPE, "op", like(graph, x, DIMS(1, 8, 4, 16)), INPUTS(x));
}
static void reshape_rank5(ir_graph* graph) {
  ir_tensor* x = input16(graph, "x", 1, DIMS(1, 8, 64));
  add_op(graph, IR_RESHAPE, "op", like(graph, x, DIMS(1, 8, 4, 2, 8)), INPUTS(x));
}
static void transpose(ir_graph* graph) {
  ir_tensor* x = input16(graph, "x", 1, DIMS(1, 8, 4, 16));
  ir_op* op = add_op(graph, IR_TRANSPOSE, "op", like(graph, x, DIMS(1, 4, 16, 8)), INPUTS(x));
  memcpy(op->attr.perm, (uint32_t[]){0, 2, 3, 1}, 16);
}
static void transpose_rank5(ir_graph* graph) {
  ir_tensor* x = add_encoded(graph, "x", IR_INPUT, IR_U8, -1, 1, DIMS(1, 8, 4, 2, 8));
  ir_op* op = add_op(graph, IR_TRANSPOSE, "op", like(graph, x, DIMS(1, 4, 2, 8, 8)), INPUTS(x));
  memcpy(op->attr.perm, (uint32_t[]){0, 2, 3, 1, 4}, 20);
}
static void slice(ir_graph* graph) {
  ir_tensor* x = input16(graph, "x", 1, DIMS(1, 4, 8, 16));
  ir_op* op = add_op(graph, IR_SLICE, "op", like(graph, x, DIMS(1, 4, 3, 8)), INPUTS(x));
  memcpy(op->attr.slice.begin, (uint32_t[]){0, 0, 2, 8}, 16);
  memcpy(op->attr.slice.end, (uint32_t[]){1, 4, 5, 16}, 16);
}
static void concat(ir_graph* graph) {
  ir_tensor* a = add_encoded(graph, "a", IR_INPUT, IR_U8, -1, 1, DIMS(1, 2, 12, 16));
  ir_tensor* b = add_encoded(graph, "b", IR_INPUT, IR_U8, -1, 1, DIMS(1, 2, 4, 16));
  add_op(graph, IR_CONCAT, "op", like(graph, a, DIMS(1, 2, 16, 16)), INPUTS(a, b))->attr.axis = 2;
}
static void concat_last_u16(ir_graph* graph) {
  ir_tensor* a = input16(graph, "a", 1, DIMS(1, 2, 16, 12));
  ir_tensor* b = input16(graph, "b", 1, DIMS(1, 2, 16, 4));
  add_op(graph, IR_CONCAT, "op", like(graph, a, DIMS(1, 2, 16, 16)), INPUTS(a, b))->attr.axis = 3;
}
static void concat_rescaling(ir_graph* graph) {
  ir_tensor* a = input16(graph, "a", 1, DIMS(1, 4, 16));
  ir_tensor* b = input16(graph, "b", 2, DIMS(1, 4, 16));
  add_op(graph, IR_CONCAT, "op", output16(graph, -2, 2, DIMS(1, 4, 32)), INPUTS(a, b))->attr.axis = 2;
}
static void build_gather(ir_graph* graph, ir_dtype type) {
  ir_tensor* table = add_constants(graph, "table", DIMS(50, 32), 50, 32, random_values(50 * 32, 1));
  encode_range(table, type, -1, 1);
  ir_tensor* ids = add_plain(graph, "ids", IR_INPUT, IR_I32, DIMS(1, 8));
  add_op(graph, IR_GATHER, "op", like(graph, table, DIMS(1, 8, 32)), INPUTS(table, ids));
}
static void gather_u16(ir_graph* graph) {
  build_gather(graph, IR_U16);
}
static void gather_u8(ir_graph* graph) {
  build_gather(graph, IR_U8);
}
static void gather_s8(ir_graph* graph) {
  build_gather(graph, IR_S8);
}

static ir_tensor* inner_tensor(ir_graph* graph, const char* name, ir_tensor* encoding, uint32_t rank, const uint32_t* dims) {
  ir_tensor* tensor = add_plain(graph, name, IR_INTERMEDIATE, encoding->dtype, rank, dims);
  tensor->encoding = encoding->encoding;
  return tensor;
}
/* An embedding of 8 bits with a scale per row: a byte table and a table of scales, gathered and multiplied. */
static void build_scaled_gather(ir_graph* graph, ir_dtype type) {
  enum { V = 50, E = 32 };
  float values[V * E], scales[V];
  for (int v = 0; v < V; ++v) {
    scales[v] = 0.02f + 0.98f * (float)v / V;
    for (int e = 0; e < E; ++e) values[v * E + e] = test_random(&seed);
  }
  ir_tensor* table = add_constants(graph, "table", DIMS(V, E), V, E, values);
  encode_range(table, type, -1, 1);
  ir_tensor* rows = add_constants(graph, "scales", DIMS(V, 1), V, 1, scales);
  encode_range(rows, IR_U16, 0, 1);
  ir_tensor* ids = add_plain(graph, "ids", IR_INPUT, IR_I32, DIMS(1, 8));
  ir_tensor* row = inner_tensor(graph, "row", table, DIMS(1, 8, E));
  ir_tensor* scale = inner_tensor(graph, "scale", rows, DIMS(1, 8, 1));
  add_op(graph, IR_GATHER, "gather", row, INPUTS(table, ids));
  add_op(graph, IR_GATHER, "gather_scale", scale, INPUTS(rows, ids));
  ir_tensor* wide = add_encoded(graph, "wide", IR_INTERMEDIATE, IR_U16, -1, 1, DIMS(1, 8, E));
  add_op(graph, IR_CONVERT, "widen", wide, INPUTS(row));
  add_op(graph, IR_MULTIPLY, "multiply", output16(graph, -1, 1, DIMS(1, 8, E)), INPUTS(wide, scale));
}
/* A vocabulary's size and 128 tokens, in the shape that quantization gives the product: [1, tokens, 1, width]. As [1, tokens, width] the HTP
 * scales tokens from the 33rd on with wrong factors when the tables are this large. */
static void gather_u8_scaled_large(ir_graph* graph) {
  enum { V = 32000, E = 576, T = 128 };
  float* values = mem_calloc(V * E, sizeof *values);
  float* scales = mem_calloc(V, sizeof *scales);
  for (int i = 0; i < V * E; ++i) values[i] = test_random(&seed);
  for (int v = 0; v < V; ++v) scales[v] = 0.02f + 0.98f * (float)(v * 7919 % V) / V;
  ir_tensor* table = add_constants(graph, "table", DIMS(V, E), V, E, values);
  ir_tensor* rows = add_constants(graph, "scales", DIMS(V, 1), V, 1, scales);
  mem_free(values);
  mem_free(scales);
  encode_range(table, IR_U8, -1, 1);
  encode_range(rows, IR_U16, 0, 1);
  ir_tensor* ids = add_plain(graph, "ids", IR_INPUT, IR_I32, DIMS(1, T));
  ir_tensor* row = inner_tensor(graph, "row", table, DIMS(1, T, E));
  ir_tensor* row_apart = inner_tensor(graph, "row_apart", table, DIMS(1, T, 1, E));
  ir_tensor* scale = inner_tensor(graph, "scale", rows, DIMS(1, T, 1));
  ir_tensor* scale_apart = inner_tensor(graph, "scale_apart", rows, DIMS(1, T, 1, 1));
  ir_tensor* wide = add_encoded(graph, "wide", IR_INTERMEDIATE, IR_U16, -1, 1, DIMS(1, T, 1, E));
  add_op(graph, IR_GATHER, "gather", row, INPUTS(table, ids));
  add_op(graph, IR_RESHAPE, "gather_apart", row_apart, INPUTS(row));
  add_op(graph, IR_CONVERT, "widen", wide, INPUTS(row_apart));
  add_op(graph, IR_GATHER, "gather_scale", scale, INPUTS(rows, ids));
  add_op(graph, IR_RESHAPE, "gather_scale_apart", scale_apart, INPUTS(scale));
  add_op(graph, IR_MULTIPLY, "multiply", output16(graph, -1, 1, DIMS(1, T, 1, E)), INPUTS(wide, scale_apart));
}
static void gather_u8_scaled(ir_graph* graph) {
  build_scaled_gather(graph, IR_U8);
}
static void gather_s8_scaled(ir_graph* graph) {
  build_scaled_gather(graph, IR_S8);
}

/* ---- Convert ---- */
static void build_convert(ir_graph* graph, ir_dtype from, ir_dtype to, double reach) {
  ir_tensor* x = add_encoded(graph, "x", IR_INPUT, from, -1, 1, DIMS(1, 8, 32));
  ir_tensor* y = add_encoded(graph, "y", IR_OUTPUT, to, -reach, reach, DIMS(1, 8, 32));
  add_op(graph, IR_CONVERT, "op", y, INPUTS(x));
}
static void convert_rescale(ir_graph* graph) {
  build_convert(graph, IR_U16, IR_U16, 1.5);
}
static void convert_narrow(ir_graph* graph) {
  build_convert(graph, IR_U16, IR_U8, 1);
}
static void convert_clamping(ir_graph* graph) {
  build_convert(graph, IR_U16, IR_U8, 0.75);
}
static void convert_widen(ir_graph* graph) {
  build_convert(graph, IR_U8, IR_U16, 1);
}
static void convert_signed(ir_graph* graph) {
  build_convert(graph, IR_S8, IR_U16, 1);
}
static void convert_same(ir_graph* graph) {
  build_convert(graph, IR_U16, IR_U16, 1);
}

static const op_case cases[] = {
    {"Conv2d 8 bit", conv_8bit, 1, 0.5},
    {"Conv2d 8 bit, one row", conv_8bit_decode, 1, 0.5},
    {"Conv2d 8 bit, bias", conv_8bit_bias, 1, 0.5},
    {"Conv2d 4 bit", conv_4bit, 8, 4},
    {"Conv2d 4 bit, bias", conv_4bit_bias, 12, 6},
    {"Conv2d LPBQ 16", conv_block16, 1, 0.5},
    {"Conv2d LPBQ 32", conv_block32, 1, 0.5},
    {"Conv2d LPBQ 64", conv_block64, 1, 0.5},
    {"Conv2d LPBQ 32, bias", conv_block32_bias, 1, 0.5},
    {"Conv2d Hadamard s8", rotation_s8, 1, 0.5},
    {"MatMul u16 x u8", matmul_u8, 1, 0.5},
    {"MatMul u16 x u8 transposed", matmul_u8_transposed, 1, 0.5},
    {"MatMul u16 transposed x u8", matmul_transpose_a, 1, 0.5},
    {"MatMul u16 x u8, offset", matmul_u8_asymmetric, 150, 40},
    {"MatMul u16 x s8", matmul_s8, 1, 0.5},
    {"MatMul u16 x u16", matmul_u16, 12, 1.5},
    {"MatMul u16 x u16 transposed", matmul_u16_transposed, 12, 1.5},
    {"MatMul softmax x u8", attention_value_u8, 1, 0.5},
    {"MatMul softmax x u16", attention_value_u16, 12, 1.5},
    {"RmsNorm", rms_norm, 1.1, 0.7},
    {"RmsNorm, large x", rms_norm_large, 1.1, 0.7},
    {"RmsNorm, small x", rms_norm_small, 1.1, 0.7},
    {"RmsNorm, u8 parameters", rms_norm_u8, 1.1, 0.7},
    {"LayerNorm, u8 parameters", layer_norm, 1.5, 0.6},
    {"LayerNorm, u16 parameters", layer_norm_u16, 1.5, 0.6},
    {"Add", add, 1, 0.5},
    {"Add, broadcast", add_broadcast, 1, 0.5},
    {"Add, broadcast last", add_last_dim, 1, 0.5},
    {"Add, mask", add_mask, 1.6, 0.7},
    {"Subtract", subtract, 1, 0.5},
    {"Multiply", multiply, 1, 0.5},
    {"Multiply, broadcast", multiply_broadcast, 1, 0.5},
    {"Multiply by a static", multiply_static, 1, 0.5},
    {"Sigmoid", sigmoid, 4, 1.3},
    {"Sigmoid, wide", sigmoid_wide, 4, 1.3},
    {"Tanh", tanh_case, 4, 1.2},
    {"Gelu", gelu, 22, 9},
    {"Softmax", softmax, 3, 0.7},
    {"Softmax, masked range", softmax_masked, 6, 0.6},
    {"Reshape", reshape, 0, 0},
    {"Reshape to rank 5", reshape_rank5, 0, 0},
    {"Transpose", transpose, 0, 0},
    {"Transpose rank 5", transpose_rank5, 0, 0},
    {"StridedSlice", slice, 0, 0},
    {"Concat u8", concat, 0, 0},
    {"Concat u16, last axis", concat_last_u16, 0, 0},
    {"Concat with rescaling", concat_rescaling, 1, 0.5},
    {"Gather u16", gather_u16, 0, 0},
    {"Gather u8", gather_u8, 0, 0},
    {"Gather s8", gather_s8, 0, 0},
    {"Gather u8, scaled per row", gather_u8_scaled, 1, 0.5},
    {"Gather u8, scaled, large", gather_u8_scaled_large, 1, 0.5},
    {"Gather s8, scaled per row", gather_s8_scaled, 1.1, 0.5},
    {"Convert u16 to u16", convert_rescale, 1, 0.5},
    {"Convert u16 to u8", convert_narrow, 1, 0.5},
    {"Convert u16 to u8, clamping", convert_clamping, 1, 0.5},
    {"Convert u8 to u16", convert_widen, 0.5, 0.3},
    {"Convert s8 to u16", convert_signed, 1, 0.5},
    {"Convert to the same", convert_same, 0, 0},
};
enum { CASE_COUNT = sizeof cases / sizeof *cases };

/* Random integers of every level; token ids below 50. */
static void fill_input(const executor_port* port, void* buffer) {
  size_t count = executor_port_bytes(port) / ir_dtype_size(port->dtype);
  for (size_t i = 0; i < count; ++i) {
    double unit = ((double)test_random(&seed) + 1) / 2;
    if (port->dtype == IR_I32) ((int32_t*)buffer)[i] = (int32_t)(unit * 50);
    if (port->dtype == IR_U16) ((uint16_t*)buffer)[i] = (uint16_t)(unit * 65536);
    if (port->dtype == IR_U8) ((uint8_t*)buffer)[i] = (uint8_t)(unit * 256);
    if (port->dtype == IR_S8) ((int8_t*)buffer)[i] = (int8_t)(unit * 255 - 127.5);
    if (port->dtype == IR_F32) ((float*)buffer)[i] = (float)(2 * unit - 1);
  }
}

static double stored_value(const executor_port* port, const void* buffer, size_t index) {
  double q = port->dtype == IR_U16   ? ((const uint16_t*)buffer)[index]
             : port->dtype == IR_U8  ? ((const uint8_t*)buffer)[index]
             : port->dtype == IR_S8  ? ((const int8_t*)buffer)[index]
             : port->dtype == IR_I32 ? ((const int32_t*)buffer)[index]
                                     : (double)((const float*)buffer)[index];
  return (double)port->scale * (q + port->offset);
}

static double representable(const executor_port* port, double value) {
  double levels = port->dtype == IR_U16 ? 65535 : 255;
  double low = port->dtype == IR_S8 ? -127 * (double)port->scale : (double)port->scale * port->offset;
  double high = port->dtype == IR_S8 ? 127 * (double)port->scale : (double)port->scale * (levels + port->offset);
  return value < low ? low : value > high ? high : value;
}

/* Largest and root-mean-square difference of the run's first output from the reference, in steps. */
static void compare_reference(const ir_graph* graph, const test_run* run, double* largest, double* rms) {
  double** values = mem_calloc(graph->n_tensors, sizeof *values);
  for (uint32_t i = 0; i < graph->n_inputs; ++i) {
    const executor_port* port = &run->executor->inputs[i];
    size_t count = executor_port_bytes(port) / ir_dtype_size(port->dtype);
    double* reals = values[graph->inputs[i]] = mem_calloc(count, sizeof *reals);
    for (size_t j = 0; j < count; ++j) reals[j] = stored_value(port, run->inputs[i], j);
  }
  reference_run(graph, values);
  const executor_port* port = &run->executor->outputs[0];
  size_t count = executor_port_bytes(port) / ir_dtype_size(port->dtype);
  double sum = 0;
  *largest = 0;
  for (size_t j = 0; j < count; ++j) {
    double expected = representable(port, values[graph->outputs[0]][j]);
    double difference = fabs(stored_value(port, run->outputs[0], j) - expected) / (double)port->scale;
    *largest = fmax(*largest, difference);
    sum += difference * difference;
  }
  *rms = sqrt(sum / (double)count);
  for (uint32_t i = 0; i < graph->n_tensors; ++i) mem_free(values[i]);
  mem_free(values);
}

/* Largest difference of the run's first output from the simulating host executor's, in steps. */
static double compare_host(const ir_graph* graph, const test_run* run) {
  const cpu_options options = {.mode = CPU_SIMULATED, .weight_cache_bytes = 1 << 24};
  executor* host;
  assert_ok(cpu_executor_create(graph, &options, &host));
  const executor_port* port = &host->outputs[0];
  void* output = mem_calloc(1, executor_port_bytes(port));
  assert_ok(executor_run(host, (const void* const*)run->inputs, (void*[]){output}));
  size_t count = executor_port_bytes(port) / ir_dtype_size(port->dtype);
  double largest = 0;
  for (size_t i = 0; i < count; ++i) {
    largest = fmax(largest, fabs(stored_value(port, output, i) - stored_value(port, run->outputs[0], i)) / (double)port->scale);
  }
  mem_free(output);
  executor_destroy(host);
  return largest;
}

static void operators_keep_their_bounds(void** state) {
  (void)state;
  need_library();
  unsigned failures = 0;
  for (int i = 0; i < CASE_COUNT; ++i) {
    const op_case* one = &cases[i];
    ir_graph* graph;
    assert_ok(ir_graph_create("conformance", &graph));
    seed = 1;
    one->build(graph);
    assert_ok(ir_graph_verify(graph));
    test_run run = {0};
    run_prepare(&run, graph, false);
    for (uint32_t p = 0; p < graph->n_inputs; ++p) fill_input(&run.executor->inputs[p], run.inputs[p]);
    run_execute(&run);
    double largest, rms;
    compare_reference(graph, &run, &largest, &rms);
    double host = compare_host(graph, &run);
    /* the slack covers float scales in the reference */
    bool held = largest <= one->max_lsb + 1e-3 && rms <= one->rms_lsb + 1e-3 && host <= one->max_lsb + 0.5 + 1e-3;
    print_message("%-28s max %8.3f rms %8.3f host %3.0f LSB%s\n", one->name, largest, rms, host, held ? "" : "  <- beyond its bound");
    failures += !held;
    run_destroy(&run);
    ir_graph_destroy(graph);
  }
  assert_int_equal(failures, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(operators_keep_their_bounds)};
  return cmocka_run_group_tests(tests, open_test_library, close_test_library);
}
