/* A graph under construction: small helpers over ir.h that name, shape and connect one operator each. Used by build*.c only.
 *
 * Every operator has one output tensor of the same name. A builder remembers its first failure; later calls do nothing and return NULL,
 * and NULL inputs are accepted, so that a sequence of calls reads as the formula it builds. builder_finish hands the failure out. */
#ifndef GENAI_MODEL_BUILDER_H
#define GENAI_MODEL_BUILDER_H

#include "model_internal.h"

typedef struct builder {
  const model* model;
  const model_graph_options* options;
  ir_graph* graph;
  genai_status* status;
  uint32_t ar, context;
  int32_t layer;    /* -1 outside layers; prefixes names */
  const char* part; /* "attention", "feed_forward" or NULL; the second part of names */
  bool sliding;     /* the graph has a sliding mask */
  ir_tensor *mask, *mask_sliding;
  ir_tensor *cosines[2], *sines[2];                           /* [1, 1, AR, rotary / 2] by rotary base */
  ir_tensor **keys_in, **values_in, **keys_out, **values_out; /* [layers], in the graph's arena */
} builder;

typedef struct builder_name {
  char text[96];
} builder_name;

/* "layer3.attention.NAME", or less outside layers and parts. */
builder_name builder_name_of(const builder* self, const char* name);
void builder_fail(builder* self, genai_status* status);
bool builder_ok(const builder* self);

ir_tensor* builder_input(builder* self, const char* name, ir_dtype dtype, ir_role role, int32_t layer, uint32_t rank, const uint32_t* dims);
/* One operator with up to 4 inputs (NULL-terminated by count). `*op` (may be NULL) receives it for its attributes. */
ir_tensor* builder_op(builder* self, ir_op_kind kind, const char* name, ir_tensor* const* inputs, uint32_t n_inputs, uint32_t rank,
                      const uint32_t* dims, ir_op** op);

ir_tensor* builder_unary(builder* self, ir_op_kind kind, const char* name, ir_tensor* x);
/* The second operand broadcasts into the first one's shape. */
ir_tensor* builder_binary(builder* self, ir_op_kind kind, const char* name, ir_tensor* x, ir_tensor* y);
ir_tensor* builder_reshape(builder* self, const char* name, ir_tensor* x, uint32_t rank, const uint32_t* dims);
ir_tensor* builder_transpose(builder* self, const char* name, ir_tensor* x, const uint32_t* perm);
/* Elements [begin, end) of the last but `from_last` axis (0: the last). */
ir_tensor* builder_slice(builder* self, const char* name, ir_tensor* x, uint32_t axis, uint32_t begin, uint32_t end);
ir_tensor* builder_concat(builder* self, const char* name, ir_tensor* const* inputs, uint32_t n_inputs, int32_t axis);

/* A scalar [1] shared by all operators that need this value. */
ir_tensor* builder_scalar(builder* self, const char* name, float value);
/* A shared constant: the tensor of this name, made from `values` (copied) the first time. */
ir_tensor* builder_constant(builder* self, const char* name, uint32_t rank, const uint32_t* dims, uint64_t rows, uint64_t cols,
                            const float* values);

/* A slice of a linear layer's rows. */
typedef struct linear_part {
  model_slot slot;
  uint64_t rows;
  uint64_t first_row;
  uint64_t group_rows, group_stride; /* ir_static */
  bool interleaved;                  /* rows of heads with interleaved rotary pairs */
  double scale;                      /* of weight and bias */
} linear_part;

/* x [1, 1, M, K] -> [1, 1, M, rows]; the bias when the checkpoint has one. */
ir_tensor* builder_linear(builder* self, const char* name, ir_tensor* x, const linear_part* part);
/* The family's norm over the last axis with the slot's gamma (and beta) times `scale`. `interleaved`: gamma follows rows of heads. */
ir_tensor* builder_norm(builder* self, const char* name, ir_tensor* x, model_slot slot, double scale, bool interleaved);

/* x: [1, 1, AR, hidden], normed if the family norms before. `output_scale` goes into the output projection. */
ir_tensor* build_attention(builder* self, ir_tensor* x, double output_scale);
ir_tensor* build_feed_forward(builder* self, ir_tensor* x, double output_scale);

#endif
