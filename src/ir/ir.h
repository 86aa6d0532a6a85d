/* The intermediate representation: a static graph whose operators are QNN's.
 *
 * A graph is a list of tensors and a list of operators in execution order (producers before consumers). Shapes are row-major, outermost
 * first. A freshly built graph is float: every activation is F32, tokens and positions are I32. Quantization then gives tensors an
 * encoding and a storage type; nothing else in the graph changes its meaning. Operator semantics are those of the QNN operators of the
 * same name (docs/architecture.md, "Operators"); src/cpu defines them numerically and src/qnn/lower maps them one to one.
 *
 * Everything in a graph lives in its arena; pointers handed in are copied unless said otherwise. Tensor and operator ids are indices. */
#ifndef GENAI_IR_IR_H
#define GENAI_IR_IR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/text.h"
#include "genai/status.h"

enum { IR_MAX_RANK = 5, IR_NO_TENSOR = -1 };

typedef enum ir_dtype {
  IR_F32,
  IR_F16,
  IR_I32,
  IR_U8,  /* unsigned fixed point, 8 bits (QNN UFIXED_POINT_8) */
  IR_U16, /* unsigned fixed point, 16 bits (UFIXED_POINT_16) */
  IR_S8,  /* signed fixed point, 8 bits; also the container of 4-bit weights, one per byte */
  IR_S16,
  IR_S32 /* biases */
} ir_dtype;

size_t ir_dtype_size(ir_dtype type);
const char* ir_dtype_name(ir_dtype type); /* "f32", "u16" ... */

/* How stored integers mean reals: real = scale * (q + offset). This is QNN's sign convention: offset = -zero_point, in [-(2^bits-1), 0]
 * for unsigned types and 0 for signed ones. */
typedef enum ir_encoding_kind {
  IR_ENCODING_NONE,
  IR_ENCODING_PER_TENSOR,
  IR_ENCODING_PER_CHANNEL,    /* symmetric: scales[channel], offset 0, along `axis` */
  IR_ENCODING_BLOCK_EXPANSION /* LPBQ: scale of block b of channel c = scales[c] * block_scales[c * blocks + b], block scales 1..16 */
} ir_encoding_kind;

typedef struct ir_encoding {
  ir_encoding_kind kind;
  uint8_t bits;                /* 4, 8, 16 or 32 */
  int32_t axis;                /* PER_CHANNEL, BLOCK_EXPANSION */
  float scale;                 /* PER_TENSOR */
  int32_t offset;              /* PER_TENSOR */
  uint32_t channels;           /* PER_CHANNEL, BLOCK_EXPANSION */
  uint32_t blocks;             /* BLOCK_EXPANSION: blocks per channel, along the input dimension */
  const float* scales;         /* [channels]; in the graph's arena */
  const uint8_t* block_scales; /* [channels][blocks]; in the graph's arena */
} ir_encoding;

bool ir_encoding_equal(const ir_encoding* a, const ir_encoding* b);

/* Where a static tensor's reals come from: a slice of rows of a checkpoint tensor, permuted and scaled, or constants.
 * The logical value is a matrix [rows, cols], row-major, F32. Statics are never held whole in F32 unless someone asks for all rows. */
typedef enum ir_row_order {
  IR_ROWS_AS_STORED,
  /* Rows of each head are stored with interleaved rotary pairs (GGUF llama, Meta): logical row i of a head comes from stored row
   * 2*i (i < rotary/2) or 2*(i-rotary/2)+1 (i < rotary); rows past `rotary` are as stored. */
  IR_ROWS_ROTARY_INTERLEAVED
} ir_row_order;

struct checkpoint_tensor;               /* src/checkpoint/checkpoint.h */
struct rotation;                        /* src/ir/rotation.h */
typedef struct ir_feedback ir_feedback; /* src/ir/feedback.h */

typedef struct ir_static {
  const struct checkpoint_tensor* tensor; /* NULL: `constants` */
  const float* constants;                 /* [rows][cols], in the graph's arena */
  uint64_t rows, cols;
  uint64_t first_row; /* of the stored matrix, before the order below is applied */
  ir_row_order row_order;
  uint32_t head_dim, rotary_dim; /* for IR_ROWS_ROTARY_INTERLEAVED */
  /* Fused projections that interleave their parts: logical rows [g * group_rows, (g + 1) * group_rows) start at stored row
   * first_row + g * group_stride. group_rows 0: one group. The head order above applies before, to logical rows. */
  uint64_t group_rows, group_stride;
  float scale, add; /* value = stored * scale + add */
  /* Rows and columns that are zero instead (src/quantize/neurons.c); in the graph's arena. */
  const uint32_t *dropped_rows, *dropped_columns;
  uint32_t n_dropped_rows, n_dropped_columns;
  /* Folded into the values afterwards, in this order (src/quantize/rotate.c). */
  const float* column_scale;             /* [cols], in the graph's arena: each column times this; NULL: none */
  const struct rotation* rotate_columns; /* row <- row R; NULL: none; belongs to the graph */
  const struct rotation* rotate_rows;    /* matrix <- R^T matrix; such a static is read through a view only */
  const float* row_scale;                /* [rows], in the graph's arena: each row times this; NULL: none */
} ir_static;

/* What a boundary tensor is for. The runtime binds by role and layer, never by name. */
typedef enum ir_role {
  IR_ROLE_NONE,
  IR_ROLE_TOKENS,       /* [1, AR] I32 */
  IR_ROLE_POSITIONS,    /* [1, AR] I32: absolute positions */
  IR_ROLE_MASK,         /* [1, 1, AR, C]: 0 attends, very negative does not */
  IR_ROLE_MASK_SLIDING, /* the same with the sliding window applied */
  IR_ROLE_KEY_IN,       /* [1, KV, D, C-AR] of `layer` */
  IR_ROLE_VALUE_IN,     /* [1, KV, C-AR, D] */
  IR_ROLE_KEY_OUT,      /* [1, KV, D, AR] */
  IR_ROLE_VALUE_OUT,    /* [1, KV, AR, D] */
  IR_ROLE_LOGITS        /* [1, AR, V] */
} ir_role;

const char* ir_role_name(ir_role role);

typedef enum ir_tensor_kind { IR_INPUT, IR_OUTPUT, IR_STATIC, IR_INTERMEDIATE } ir_tensor_kind;

typedef struct ir_tensor {
  int32_t id;
  const char* name; /* unique in the graph; the same across AR lengths for the same value */
  ir_tensor_kind kind;
  ir_dtype dtype;
  uint32_t rank;
  uint32_t dims[IR_MAX_RANK];
  ir_encoding encoding;
  ir_role role;
  int32_t layer;               /* -1 where it has no meaning */
  ir_static* source;           /* IR_STATIC of float meaning, else NULL */
  const int32_t* integers;     /* IR_STATIC of I32 (constants), else NULL */
  const ir_feedback* feedback; /* linear weights: how rounding errors are passed on, in the graph's arena; NULL: to the nearest */
  int32_t producer;            /* operator id, or -1 */
} ir_tensor;

uint64_t ir_tensor_elements(const ir_tensor* tensor);

/* Operators. Inputs and outputs by position. x, y: activations; W, B: statics. */
typedef enum ir_op_kind {
  IR_GATHER,     /* table [V, ...], indices I32 -> [indices..., ...]; axis attribute, 0 here */
  IR_RMS_NORM,   /* x, gamma [E], beta [E] (zeros; QNN before 2.49 needs it) -> y; epsilon; over the last axis */
  IR_LAYER_NORM, /* x, gamma [E], beta [E] -> y; epsilon; over the last axis */
  IR_CONV2D,     /* x [1,H,W,K], W [1,1,K,N] (see below), optional bias [N] -> y [1,H,W,N]; 1x1, stride 1: a linear layer.
                     The static's logical matrix is [N rows, K cols] (as checkpoints store it); the QNN layout is its transpose. */
  IR_MATMUL,     /* a [..., M, K] (or transposed), b [..., K, N] (or transposed) -> [..., M, N]; batch dims equal */
  IR_ADD,        /* broadcasting, as the next two */
  IR_SUBTRACT,
  IR_MULTIPLY,
  IR_SIGMOID,
  IR_TANH,
  IR_GELU,    /* exact (erf) form; the tanh form is built from IR_TANH where a family needs it and QNN's op differs */
  IR_SOFTMAX, /* over the last axis; y = softmax(x * beta), beta 1 */
  IR_CONCAT,  /* n inputs; axis */
  IR_SLICE,   /* StridedSlice with stride 1: begin[rank], end[rank] */
  IR_RESHAPE,
  IR_TRANSPOSE, /* perm[rank]: output dim i is input dim perm[i] */
  IR_CONVERT,   /* same reals, other encoding (and storage type); identity in float */
  IR_OP_KIND_COUNT
} ir_op_kind;

const char* ir_op_kind_name(ir_op_kind kind); /* QNN's operator name, such as "ElementWiseAdd" */

typedef struct ir_op {
  int32_t id;
  const char* name; /* unique, such as "layer3.attention.q_proj" */
  ir_op_kind kind;
  uint32_t n_inputs;
  int32_t* inputs; /* tensor ids */
  int32_t output;  /* every operator here has one output */
  union {
    float epsilon; /* norms */
    int32_t axis;  /* concat, gather */
    struct {
      bool transpose_a, transpose_b;
    } matmul;
    struct {
      uint32_t begin[IR_MAX_RANK], end[IR_MAX_RANK];
    } slice;
    uint32_t perm[IR_MAX_RANK];
  } attr;
} ir_op;

typedef struct ir_graph {
  arena memory;
  const char* name; /* such as "kv_forward" */
  uint32_t n_tensors, tensor_capacity;
  ir_tensor** tensors; /* stable pointers */
  uint32_t n_ops, op_capacity;
  ir_op** ops; /* in execution order; op->id equals its index */
  uint32_t n_inputs, n_outputs;
  int32_t* inputs;  /* tensor ids in boundary order: tokens, mask(s), positions, keys by layer, values by layer */
  int32_t* outputs; /* logits, keys by layer, values by layer */
  uint32_t ar_length, context_length;
  /* Open-addressing tables from name to index + 1 (0: free); graph.c keeps them. */
  uint32_t *tensor_table, *op_table;
  uint32_t tensor_table_size, op_table_size;
  struct rotation* residual_rotation; /* of the residual stream; NULL: none. Owned */
} ir_graph;

genai_status* ir_graph_create(const char* name, ir_graph** out) GENAI_MUST_USE;
void ir_graph_destroy(ir_graph* graph); /* accepts NULL */

/* Adds a tensor; the graph owns it. Names must be new. Kind INPUT and OUTPUT are appended to the boundary lists in call order. */
genai_status* ir_graph_add_tensor(ir_graph* graph, const char* name, ir_tensor_kind kind, ir_dtype dtype, uint32_t rank,
                                  const uint32_t* dims, ir_tensor** out) GENAI_MUST_USE;
/* A static whose reals are described by `source` (copied). dims must hold source->rows * source->cols elements. */
genai_status* ir_graph_add_static(ir_graph* graph, const char* name, uint32_t rank, const uint32_t* dims, const ir_static* source,
                                  ir_tensor** out) GENAI_MUST_USE;
/* Marks an intermediate as an output, appended to the boundary. */
genai_status* ir_graph_mark_output(ir_graph* graph, ir_tensor* tensor, ir_role role, int32_t layer) GENAI_MUST_USE;
/* Adds an operator that writes `output`. Attributes are zero: set them on *out. */
genai_status* ir_graph_add_op(ir_graph* graph, ir_op_kind kind, const char* name, const int32_t* inputs, uint32_t n_inputs, int32_t output,
                              ir_op** out) GENAI_MUST_USE;
ir_tensor* ir_graph_find(const ir_graph* graph, const char* name); /* NULL when absent */
ir_op* ir_graph_find_op(const ir_graph* graph, const char* name);  /* NULL when absent */
ir_tensor* ir_graph_find_role(const ir_graph* graph, ir_role role, int32_t layer);
/* Takes an operator out: its consumers read `replacement` instead of its output. The output tensor must not be a boundary tensor unless
 * `replacement` takes its place there. Ids of later operators move down by one. */
genai_status* ir_graph_remove_op(ir_graph* graph, int32_t op, int32_t replacement) GENAI_MUST_USE;

/* Moves an operator to another place in the execution order; those between shift by one. The caller keeps producers before consumers. */
void ir_graph_move_op(ir_graph* graph, int32_t op, int32_t position);

/* Checks names, ids, order, shapes and attributes of every operator, roles of the boundary, and encodings against storage types. */
genai_status* ir_graph_verify(const ir_graph* graph) GENAI_MUST_USE;
/* A readable listing, one operator a line. */
genai_status* ir_graph_print(const ir_graph* graph, text* out) GENAI_MUST_USE;

/* Whether a static has the shape of a linear weight, [1, 1, K, N] over a logical matrix [N, K]. */
bool ir_static_is_linear(const ir_tensor* tensor);

/* Reads rows [row, row + count) of the logical matrix into out[count][cols]. A stored vector serves as a matrix of one row or, when
 * cols is 1, of one column. */
genai_status* ir_static_read(const ir_static* source, uint64_t row, uint64_t count, float* out) GENAI_MUST_USE;

/* Rows of any static, also of one whose rows are rotated: that one is read whole when the view is opened (rows * cols floats) and served from
 * memory; others are read as asked for. Reading is safe from several threads. `pool` may be NULL. */
struct thread_pool;
typedef struct ir_static_view {
  const ir_static* source;
  float* whole; /* NULL: read as asked for */
} ir_static_view;
genai_status* ir_static_view_open(const ir_static* source, struct thread_pool* pool, ir_static_view* out) GENAI_MUST_USE;
genai_status* ir_static_view_read(const ir_static_view* view, uint64_t row, uint64_t count, float* out) GENAI_MUST_USE;
void ir_static_view_close(ir_static_view* view); /* accepts a zeroed value */

/* Bytes of a static in storage type and layout: quantized with its encoding (round half to even, clamped to the symmetric range for
 * signed types), or F32/F16/I32 as is. A static of dims [1, 1, K, N] is a linear weight: its rows are output channels and it is stored
 * transposed, K outermost, as QNN wants it; PER_CHANNEL and BLOCK_EXPANSION encodings then lie along axis 3, that is, along rows.
 * `out` holds ir_tensor_elements * ir_dtype_size bytes. `pool` may be NULL. */
genai_status* ir_static_materialize(const ir_tensor* tensor, struct thread_pool* pool, void* out) GENAI_MUST_USE;

#endif
