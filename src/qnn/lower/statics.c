/* The bytes of statics, made once for all graphs of a compilation. Graphs of one model differ in AR length alone, so that their statics are
 * equal; making them (dequantizing the checkpoint, rotating, quantizing) costs seconds where handing them over costs none. The first graph's
 * are kept until the last graph is built. */
#include <string.h>

#include "ir/feedback.h"
#include "qnn/lower/lower.h"

bool qnn_static_is_unsigned(const ir_tensor* tensor) {
  return tensor->dtype == IR_S8 && tensor->rank == 4 && tensor->encoding.kind == IR_ENCODING_PER_CHANNEL && tensor->encoding.bits == 8;
}

static genai_status* make_bytes(const ir_tensor* tensor, thread_pool* pool, void** out) {
  size_t count = (size_t)ir_tensor_elements(tensor); /* the caller has checked that bytes fit 32 bits */
  uint8_t* data = mem_alloc(count * ir_dtype_size(tensor->dtype));
  if (!data) return genai_status_out_of_memory();
  genai_status* status = ir_static_materialize(tensor, pool, data);
  if (status) {
    mem_free(data);
    return status;
  }
  if (qnn_static_is_unsigned(tensor)) {
    for (size_t i = 0; i < count; ++i) data[i] ^= 0x80; /* q + 128 */
  }
  *out = data;
  return NULL;
}

static bool same_floats(const float* a, const float* b, uint64_t count) {
  return !a == !b && (!a || memcmp(a, b, (size_t)count * sizeof *a) == 0);
}

static bool same_indices(const uint32_t* a, uint32_t n_a, const uint32_t* b, uint32_t n_b) {
  return n_a == n_b && (!n_a || memcmp(a, b, n_a * sizeof *a) == 0);
}

static bool same_feedback(const ir_feedback* a, const ir_feedback* b, uint64_t cols) {
  if (!a || !b) return a == b;
  uint64_t count = a->directions * cols;
  return a->directions == b->directions && same_floats(a->inputs, b->inputs, count) && same_floats(a->moves, b->moves, count);
}

/* The rotation of a size is always the same one, so that only its presence counts. */
static bool same_source(const ir_static* a, const ir_static* b) {
  static_assert(sizeof(ir_static) == 136, "a field that is new in ir_static must be compared here");
  return a->tensor == b->tensor && a->rows == b->rows && a->cols == b->cols && a->first_row == b->first_row &&
         a->row_order == b->row_order && a->head_dim == b->head_dim && a->rotary_dim == b->rotary_dim && a->group_rows == b->group_rows &&
         a->group_stride == b->group_stride && a->scale == b->scale && a->add == b->add && !a->rotate_columns == !b->rotate_columns &&
         !a->rotate_rows == !b->rotate_rows && same_floats(a->constants, b->constants, a->rows * a->cols) &&
         same_floats(a->column_scale, b->column_scale, a->cols) && same_floats(a->row_scale, b->row_scale, a->rows) &&
         same_indices(a->dropped_rows, a->n_dropped_rows, b->dropped_rows, b->n_dropped_rows) &&
         same_indices(a->dropped_columns, a->n_dropped_columns, b->dropped_columns, b->n_dropped_columns);
}

static bool same_static(const ir_tensor* a, const ir_tensor* b) {
  return a->kind == IR_STATIC && a->source && b->source && a->dtype == b->dtype && a->rank == b->rank &&
         memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0 && ir_encoding_equal(&a->encoding, &b->encoding) &&
         same_source(a->source, b->source) && same_feedback(a->feedback, b->feedback, a->source->cols);
}

genai_status* qnn_statics_init(qnn_statics* self, const ir_graph* first) {
  *self = (qnn_statics){.first = first};
  self->bytes = mem_calloc(first->n_tensors, sizeof *self->bytes);
  return self->bytes ? NULL : genai_status_out_of_memory();
}

void qnn_statics_deinit(qnn_statics* self) {
  for (uint32_t i = 0; self->bytes && i < self->first->n_tensors; ++i) mem_free(self->bytes[i]);
  mem_free(self->bytes);
  *self = (qnn_statics){0};
}

genai_status* qnn_static_bytes(qnn_statics* kept, const ir_graph* graph, const ir_tensor* tensor, thread_pool* pool, const void** out,
                               void** owned) {
  *owned = NULL;
  void* data;
  if (kept && graph == kept->first) {
    GENAI_TRY(make_bytes(tensor, pool, &data));
    kept->bytes[tensor->id] = data;
  } else {
    const ir_tensor* twin = kept ? ir_graph_find(kept->first, tensor->name) : NULL;
    if (twin && kept->bytes[twin->id] && same_static(twin, tensor)) {
      *out = kept->bytes[twin->id];
      return NULL;
    }
    GENAI_TRY(make_bytes(tensor, pool, &data));
    *owned = data;
  }
  *out = data;
  return NULL;
}
