/* The operators of the IR in double precision on reals: what they mean, without any rounding between them. Statics count with the values
 * that their encodings can express. Written for the tests, independently of src/cpu. */
#ifndef GENAI_TESTS_QNN_REFERENCE_H
#define GENAI_TESTS_QNN_REFERENCE_H

#include "qnn/qnn_support.h"

/* Reals of a static in its layout in the graph (linear weights: [1, 1, K, N]). */
static inline double* reference_static(const ir_tensor* tensor) {
  uint64_t count = ir_tensor_elements(tensor);
  double* out = mem_calloc(count, sizeof *out);
  if (tensor->integers) {
    for (uint64_t i = 0; i < count; ++i) out[i] = tensor->integers[i];
    return out;
  }
  void* stored = mem_calloc(count, ir_dtype_size(tensor->dtype));
  assert_ok(ir_static_materialize(tensor, NULL, stored));
  const ir_encoding* encoding = &tensor->encoding;
  uint64_t inner = 1;
  for (uint32_t i = (uint32_t)encoding->axis + 1; i < tensor->rank; ++i) inner *= tensor->dims[i];
  for (uint64_t i = 0; i < count; ++i) {
    executor_port plain = {.dtype = tensor->dtype, .scale = 1};
    if (tensor->dtype == IR_S32) {
      out[i] = ((const int32_t*)stored)[i];
    } else {
      out[i] = executor_port_read(&plain, stored, i);
    }
    if (encoding->kind == IR_ENCODING_PER_TENSOR) out[i] = (double)encoding->scale * (out[i] + encoding->offset);
    uint64_t channel = encoding->channels ? i / inner % encoding->channels : 0;
    if (encoding->kind == IR_ENCODING_PER_CHANNEL) out[i] *= encoding->scales[channel];
    if (encoding->kind == IR_ENCODING_BLOCK_EXPANSION) { /* a linear weight: blocks along K */
      uint64_t rows_per_block = tensor->dims[2] / encoding->blocks, block = i / tensor->dims[3] / rows_per_block;
      out[i] *= (double)encoding->scales[channel] * encoding->block_scales[channel * encoding->blocks + block];
    }
  }
  mem_free(stored);
  return out;
}

static inline uint64_t last_dim(const ir_tensor* tensor) {
  return tensor->dims[tensor->rank - 1];
}

/* Flat index of `index` (of a tensor with `rank`, `dims`) in `tensor`, which may have fewer dims, or dims of 1 that repeat. */
static inline uint64_t broadcast_index(const ir_tensor* tensor, uint32_t rank, const uint32_t* index) {
  uint64_t flat = 0;
  for (uint32_t i = 0; i < tensor->rank; ++i) {
    uint32_t at = index[rank - tensor->rank + i];
    flat = flat * tensor->dims[i] + (tensor->dims[i] == 1 ? 0 : at);
  }
  return flat;
}

static inline bool next_index(uint32_t rank, const uint32_t* dims, uint32_t* index) {
  for (uint32_t i = rank; i-- > 0;) {
    if (++index[i] < dims[i]) return true;
    index[i] = 0;
  }
  return false;
}

static inline void reference_norm(const ir_op* op, const ir_tensor* x, const double* in, const double* gamma, const double* beta,
                                  double* out) {
  uint64_t width = last_dim(x), rows = ir_tensor_elements(x) / width;
  for (uint64_t r = 0; r < rows; ++r, in += width, out += width) {
    double mean = 0, square = 0;
    for (uint64_t i = 0; i < width; ++i) mean += in[i] / (double)width;
    if (op->kind == IR_RMS_NORM) mean = 0;
    for (uint64_t i = 0; i < width; ++i) square += (in[i] - mean) * (in[i] - mean) / (double)width;
    double scale = 1 / sqrt(square + (double)op->attr.epsilon);
    for (uint64_t i = 0; i < width; ++i) out[i] = (in[i] - mean) * scale * gamma[i] + beta[i];
  }
}

static inline void reference_matmul(const ir_op* op, const ir_tensor* a, const ir_tensor* b, const ir_tensor* y, const double* left,
                                    const double* right, double* out) {
  uint64_t m = y->dims[y->rank - 2], n = last_dim(y), k = a->dims[a->rank - (op->attr.matmul.transpose_a ? 2 : 1)];
  uint64_t batches = ir_tensor_elements(y) / (m * n), b_step = ir_tensor_elements(b) == batches * k * n ? k * n : 0;
  for (uint64_t batch = 0; batch < batches; ++batch) {
    const double *l = left + batch * m * k, *r = right + batch * b_step;
    for (uint64_t i = 0; i < m; ++i) {
      for (uint64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (uint64_t s = 0; s < k; ++s) {
          sum += l[op->attr.matmul.transpose_a ? s * m + i : i * k + s] * r[op->attr.matmul.transpose_b ? j * k + s : s * n + j];
        }
        out[batch * m * n + i * n + j] = sum;
      }
    }
  }
}

static inline double reference_unary(ir_op_kind kind, double x) {
  if (kind == IR_SIGMOID) return 1 / (1 + exp(-x));
  if (kind == IR_TANH) return tanh(x);
  if (kind == IR_GELU) return 0.5 * x * (1 + erf(x / sqrt(2.0)));
  return x;
}

/* values[id] for every tensor; inputs are given, the rest is computed here (mem_free each). */
static inline void reference_run(const ir_graph* graph, double** values) {
  for (uint32_t i = 0; i < graph->n_tensors; ++i) {
    if (graph->tensors[i]->kind == IR_STATIC) values[i] = reference_static(graph->tensors[i]);
  }
  for (uint32_t o = 0; o < graph->n_ops; ++o) {
    const ir_op* op = graph->ops[o];
    const ir_tensor *y = graph->tensors[op->output], *a = graph->tensors[op->inputs[0]];
    const ir_tensor* b = op->n_inputs > 1 ? graph->tensors[op->inputs[1]] : NULL;
    const double *in = values[a->id], *second = b ? values[b->id] : NULL;
    uint64_t count = ir_tensor_elements(y);
    double* out = values[y->id] = mem_calloc(count, sizeof *out);
    uint32_t index[IR_MAX_RANK] = {0};
    switch (op->kind) {
      case IR_GATHER: {
        uint64_t row = ir_tensor_elements(a) / a->dims[0];
        for (uint64_t i = 0; i < count; ++i) out[i] = in[(uint64_t)second[i / row] * row + i % row];
        break;
      }
      case IR_RMS_NORM:
      case IR_LAYER_NORM:
        reference_norm(op, a, in, second, values[op->inputs[2]], out);
        break;
      case IR_CONV2D: {
        uint64_t k = b->dims[2], n = b->dims[3];
        for (uint64_t i = 0; i < count; ++i) {
          for (uint64_t s = 0; s < k; ++s) out[i] += in[i / n * k + s] * second[s * n + i % n];
          if (op->n_inputs > 2) out[i] += values[op->inputs[2]][i % n];
        }
        break;
      }
      case IR_MATMUL:
        reference_matmul(op, a, b, y, in, second, out);
        break;
      case IR_ADD:
      case IR_SUBTRACT:
      case IR_MULTIPLY:
        for (uint64_t i = 0; i < count; ++i) {
          double left = in[broadcast_index(a, y->rank, index)], right = second[broadcast_index(b, y->rank, index)];
          out[i] = op->kind == IR_ADD ? left + right : op->kind == IR_SUBTRACT ? left - right : left * right;
          next_index(y->rank, y->dims, index);
        }
        break;
      case IR_SOFTMAX: {
        uint64_t width = last_dim(a);
        for (uint64_t r = 0; r < count; r += width) {
          double top = -INFINITY, sum = 0;
          for (uint64_t i = 0; i < width; ++i) top = fmax(top, in[r + i]);
          for (uint64_t i = 0; i < width; ++i) sum += out[r + i] = exp(in[r + i] - top);
          for (uint64_t i = 0; i < width; ++i) out[r + i] /= sum;
        }
        break;
      }
      case IR_CONCAT: {
        uint64_t inner = 1, at = 0;
        for (uint32_t i = (uint32_t)op->attr.axis + 1; i < y->rank; ++i) inner *= y->dims[i];
        uint64_t whole = y->dims[op->attr.axis] * inner;
        for (uint32_t p = 0; p < op->n_inputs; ++p) {
          const ir_tensor* part = graph->tensors[op->inputs[p]];
          uint64_t run = part->dims[op->attr.axis] * inner;
          for (uint64_t i = 0; i < ir_tensor_elements(part); ++i) out[i / run * whole + at + i % run] = values[part->id][i];
          at += run;
        }
        break;
      }
      case IR_SLICE:
        for (uint64_t i = 0; i < count; ++i) {
          uint64_t flat = 0;
          for (uint32_t d = 0; d < a->rank; ++d) flat = flat * a->dims[d] + index[d] + op->attr.slice.begin[d];
          out[i] = in[flat];
          next_index(y->rank, y->dims, index);
        }
        break;
      case IR_TRANSPOSE:
        for (uint64_t i = 0; i < count; ++i) {
          uint32_t from[IR_MAX_RANK];
          for (uint32_t d = 0; d < a->rank; ++d) from[op->attr.perm[d]] = index[d];
          out[i] = in[broadcast_index(a, a->rank, from)];
          next_index(y->rank, y->dims, index);
        }
        break;
      case IR_RESHAPE:
      case IR_CONVERT:
      case IR_SIGMOID:
      case IR_TANH:
      case IR_GELU:
        for (uint64_t i = 0; i < count; ++i) out[i] = reference_unary(op->kind, in[i]);
        break;
      case IR_OP_KIND_COUNT:
        break;
    }
  }
}

#endif
