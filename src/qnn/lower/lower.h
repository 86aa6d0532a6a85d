/* Lowering: one graph of the IR into one graph of the API, operator by operator. Internal to this room. */
#ifndef GENAI_QNN_LOWER_LOWER_H
#define GENAI_QNN_LOWER_LOWER_H

#include "qnn/qnn_internal.h"

/* ---- statics.c ---- */
/* The statics of a compilation's first graph, for those that follow. */
typedef struct qnn_statics {
  const ir_graph* first;
  void** bytes; /* [first->n_tensors]; NULL where not made */
} qnn_statics;

genai_status* qnn_statics_init(qnn_statics* self, const ir_graph* first) GENAI_MUST_USE;
void qnn_statics_deinit(qnn_statics* self); /* accepts a zeroed value */
/* The bytes of `tensor` as the API gets them: those of `kept` (may be NULL) when they are equal, else made now. The caller frees `*owned`,
 * which is NULL when `kept` has them. */
genai_status* qnn_static_bytes(qnn_statics* kept, const ir_graph* graph, const ir_tensor* tensor, thread_pool* pool, const void** out,
                               void** owned) GENAI_MUST_USE;
/* Linear weights of 8 bits per channel go over as unsigned bytes, q + 128 with offset -128. This is the HTP's own form of such weights: of
 * signed ones the library makes a second copy that lives until the context dies, and the binary comes out the same, byte for byte. */
bool qnn_static_is_unsigned(const ir_tensor* tensor);

typedef struct qnn_lowering {
  const qnn_library* library;
  qnn_api_handle graph;
  const ir_graph* ir;
  thread_pool* pool;
  /* As in qnn_compile_options. */
  void (*name_boundary)(const ir_tensor* tensor, char name[QNN_NAME_SIZE]);
  qnn_statics* statics;    /* NULL: nothing is kept for other graphs */
  qnn_api_tensor* tensors; /* [ir->n_tensors]; version 0 until created */
  uint32_t nodes;          /* operators added so far */
  arena memory;            /* names, dims, encodings and tables, for as long as the lowering lives */
} qnn_lowering;

genai_status* qnn_lowering_init(qnn_lowering* self, const qnn_library* library, qnn_api_handle graph, const ir_graph* ir) GENAI_MUST_USE;
void qnn_lowering_deinit(qnn_lowering* self);

/* Boundary tensors in boundary order, then every operator. */
genai_status* qnn_lowering_run(qnn_lowering* self, const cancel_token* cancel) GENAI_MUST_USE;

/* ---- tensor.c ---- */
/* The API's tensor for tensor `id`, created in the graph on first use. */
genai_status* qnn_lowering_tensor(qnn_lowering* self, int32_t id, qnn_api_tensor* out) GENAI_MUST_USE;

/* ---- node.c: parameters and operators ---- */
qnn_api_param qnn_param_u32(const char* name, uint32_t value);
qnn_api_param qnn_param_i32(const char* name, int32_t value);
qnn_api_param qnn_param_f32(const char* name, float value);
qnn_api_param qnn_param_bool(const char* name, bool value);
/* A tensor parameter of 32-bit integers, named after the operator. `type` is QNN_API_UINT_32 or QNN_API_INT_32. */
genai_status* qnn_param_table(qnn_lowering* self, const ir_op* op, const char* name, qnn_api_dtype type, uint32_t rank,
                              const uint32_t* dims, const void* values, qnn_api_param* out) GENAI_MUST_USE;
/* Adds `op` as an operator `type` with the IR's inputs in order and its output. */
genai_status* qnn_lowering_add(qnn_lowering* self, const ir_op* op, const char* type, qnn_api_param* params,
                               uint32_t n_params) GENAI_MUST_USE;

static inline const ir_tensor* qnn_lowering_input(const qnn_lowering* self, const ir_op* op, uint32_t index) {
  return self->ir->tensors[op->inputs[index]];
}
static inline const ir_tensor* qnn_lowering_output(const qnn_lowering* self, const ir_op* op) {
  return self->ir->tensors[op->output];
}

/* ---- One function per operator, in the files of their groups ---- */
genai_status* qnn_lower_conv2d(qnn_lowering* self, const ir_op* op) GENAI_MUST_USE; /* linear.c */
genai_status* qnn_lower_matmul(qnn_lowering* self, const ir_op* op) GENAI_MUST_USE;
genai_status* qnn_lower_rms_norm(qnn_lowering* self, const ir_op* op) GENAI_MUST_USE; /* norm.c */
genai_status* qnn_lower_layer_norm(qnn_lowering* self, const ir_op* op) GENAI_MUST_USE;
genai_status* qnn_lower_elementwise(qnn_lowering* self, const ir_op* op) GENAI_MUST_USE; /* elementwise.c */
genai_status* qnn_lower_softmax(qnn_lowering* self, const ir_op* op) GENAI_MUST_USE;
genai_status* qnn_lower_gather(qnn_lowering* self, const ir_op* op) GENAI_MUST_USE; /* shape.c */
genai_status* qnn_lower_concat(qnn_lowering* self, const ir_op* op) GENAI_MUST_USE;
genai_status* qnn_lower_slice(qnn_lowering* self, const ir_op* op) GENAI_MUST_USE;
genai_status* qnn_lower_reshape(qnn_lowering* self, const ir_op* op) GENAI_MUST_USE;
genai_status* qnn_lower_transpose(qnn_lowering* self, const ir_op* op) GENAI_MUST_USE;
genai_status* qnn_lower_convert(qnn_lowering* self, const ir_op* op) GENAI_MUST_USE; /* convert.c */

#endif
