/* Tensors of the IR as tensors of the API: types, encodings, boundary names. Where the bytes of statics come from is statics.c. */
#include <stdio.h>
#include <string.h>

#include "qnn/lower/lower.h"

/* `input_<position>_<name>`: upstream's runner sorts inputs by the number, and takes a binary's tensors for boundary by the prefix. */
static char* boundary_name(qnn_lowering* self, const ir_tensor* tensor) {
  if (self->name_boundary) {
    char own[QNN_NAME_SIZE];
    self->name_boundary(tensor, own);
    return arena_printf(&self->memory, "%s", own);
  }
  bool input = tensor->kind == IR_INPUT;
  const int32_t* list = input ? self->ir->inputs : self->ir->outputs;
  uint32_t count = input ? self->ir->n_inputs : self->ir->n_outputs, position = 0;
  while (position < count && list[position] != tensor->id) ++position;
  char* name = arena_printf(&self->memory, "%s_%u_%s", input ? "input" : "output", position, tensor->name);
  for (char* c = name; c && *c; ++c) {
    bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
    if (!plain) *c = '_';
  }
  return name;
}

static genai_status* per_channel(qnn_lowering* self, const ir_encoding* encoding, bool narrow, qnn_api_quantize* out) {
  if (narrow) {
    out->encoding = QNN_API_BW_AXIS_SCALE_OFFSET;
    out->as.bw_axis = (qnn_api_bw_axis_scale_offset){
        .bits = encoding->bits, .axis = encoding->axis, .count = encoding->channels, .scales = (float*)(uintptr_t)encoding->scales};
    return NULL; /* the API takes the scales as writable, but only reads them */
  }
  qnn_api_scale_offset* values = arena_calloc(&self->memory, encoding->channels, sizeof *values);
  if (!values) return genai_status_out_of_memory();
  for (uint32_t i = 0; i < encoding->channels; ++i) values[i].scale = encoding->scales[i];
  out->encoding = QNN_API_AXIS_SCALE_OFFSET;
  out->as.axis = (qnn_api_axis_scale_offset){.axis = encoding->axis, .count = encoding->channels, .values = values};
  return NULL;
}

static genai_status* block_expansion(qnn_lowering* self, const ir_encoding* encoding, qnn_api_quantize* out) {
  qnn_api_scale_offset* values = arena_calloc(&self->memory, encoding->channels, sizeof *values);
  qnn_api_blockwise_expansion* expansion = arena_alloc(&self->memory, sizeof *expansion);
  if (!values || !expansion) return genai_status_out_of_memory();
  for (uint32_t i = 0; i < encoding->channels; ++i) values[i].scale = encoding->scales[i];
  *expansion = (qnn_api_blockwise_expansion){.axis = encoding->axis,
                                             .channels = values,
                                             .blocks_per_axis = encoding->blocks,
                                             .block_scale_bits = 4,
                                             .block_scale_storage = 0,
                                             .block_scales = (uint8_t*)(uintptr_t)encoding->block_scales};
  out->encoding = QNN_API_BLOCKWISE_EXPANSION;
  out->as.expansion = expansion;
  return NULL;
}

static genai_status* fill_encoding(qnn_lowering* self, const ir_tensor* tensor, qnn_api_quantize* out) {
  const ir_encoding* encoding = &tensor->encoding;
  bool narrow = encoding->bits != 8 * ir_dtype_size(tensor->dtype);
  *out = (qnn_api_quantize){.definition = QNN_API_DEFINED, .encoding = QNN_API_UNDEFINED};
  switch (encoding->kind) {
    case IR_ENCODING_NONE:
      out->definition = QNN_API_UNDEFINED;
      return NULL;
    case IR_ENCODING_PER_TENSOR:
      if (narrow) {
        out->encoding = QNN_API_BW_SCALE_OFFSET;
        out->as.bw = (qnn_api_bw_scale_offset){.bits = encoding->bits, .scale = encoding->scale, .offset = encoding->offset};
      } else {
        out->encoding = QNN_API_SCALE_OFFSET;
        out->as.scale_offset = (qnn_api_scale_offset){.scale = encoding->scale, .offset = encoding->offset};
      }
      return NULL;
    case IR_ENCODING_PER_CHANNEL:
      return per_channel(self, encoding, narrow, out);
    case IR_ENCODING_BLOCK_EXPANSION:
      return block_expansion(self, encoding, out);
  }
  return genai_status_create(GENAI_ERROR_INTERNAL, "tensor '%s' has encoding kind %d", tensor->name, encoding->kind);
}

/* Everything but type, name and data. */
static genai_status* describe(qnn_lowering* self, const ir_tensor* tensor, qnn_api_tensor* out) {
  *out = (qnn_api_tensor){.version = 1};
  qnn_api_tensor_v1* v1 = &out->as.v1;
  bool quantized = tensor->encoding.kind != IR_ENCODING_NONE;
  if (!qnn_dtype_from_ir(tensor->dtype, quantized, &v1->dtype)) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT,
                               "graph '%s': tensor '%s' of type %s has %s encoding; quantize the whole graph or none of it", self->ir->name,
                               tensor->name, ir_dtype_name(tensor->dtype), quantized ? "an" : "no");
  }
  v1->rank = tensor->rank;
  v1->dims = arena_dup(&self->memory, tensor->dims, tensor->rank * sizeof *tensor->dims);
  if (!v1->dims) return genai_status_out_of_memory();
  return fill_encoding(self, tensor, &v1->quantize);
}

static genai_status* create(qnn_lowering* self, const char* name, qnn_api_tensor* tensor) {
  uint64_t code = self->library->api->tensor_create_graph_tensor(self->graph, tensor);
  if (code) return qnn_vendor_error(self->library, code, "graph '%s': tensor '%s' is refused", self->ir->name, name);
  /* The vendor has copied a static's bytes; ours go away now. */
  tensor->as.v1.buffer = (qnn_api_client_buffer){0};
  return NULL;
}

static genai_status* create_static(qnn_lowering* self, const ir_tensor* tensor, qnn_api_tensor* out) {
  uint64_t bytes;
  if (!u64_mul(ir_tensor_elements(tensor), ir_dtype_size(tensor->dtype), &bytes) || bytes > UINT32_MAX) {
    return genai_status_create(GENAI_ERROR_LIMIT, "tensor '%s' is larger than the 4 GiB that the QNN API can describe", tensor->name);
  }
  if (tensor->integers) {
    out->as.v1.buffer = (qnn_api_client_buffer){.data = (void*)(uintptr_t)tensor->integers, .size = (uint32_t)bytes};
    return create(self, tensor->name, out);
  }
  const void* data;
  void* owned;
  GENAI_TRY(qnn_static_bytes(self->statics, self->ir, tensor, self->pool, &data, &owned));
  if (qnn_static_is_unsigned(tensor)) {
    out->as.v1.dtype = QNN_API_UFIXED_8;
    for (uint32_t i = 0; i < tensor->encoding.channels; ++i) out->as.v1.quantize.as.axis.values[i].offset = -128;
  }
  out->as.v1.buffer = (qnn_api_client_buffer){.data = (void*)(uintptr_t)data, .size = (uint32_t)bytes};
  genai_status* status = create(self, tensor->name, out);
  mem_free(owned);
  return status;
}

genai_status* qnn_lowering_tensor(qnn_lowering* self, int32_t id, qnn_api_tensor* out) {
  qnn_api_tensor* slot = &self->tensors[id];
  if (slot->version == 0) {
    const ir_tensor* tensor = self->ir->tensors[id];
    bool boundary = tensor->kind == IR_INPUT || tensor->kind == IR_OUTPUT;
    qnn_api_tensor created;
    GENAI_TRY(describe(self, tensor, &created));
    created.as.v1.name = boundary ? boundary_name(self, tensor) : tensor->name;
    if (!created.as.v1.name) return genai_status_out_of_memory();
    created.as.v1.type = tensor->kind == IR_INPUT    ? QNN_API_APP_WRITE
                         : tensor->kind == IR_OUTPUT ? QNN_API_APP_READ
                         : tensor->kind == IR_STATIC ? QNN_API_STATIC
                                                     : QNN_API_NATIVE;
    if (tensor->kind == IR_STATIC) {
      GENAI_TRY(create_static(self, tensor, &created));
    } else {
      GENAI_TRY(create(self, created.as.v1.name, &created));
    }
    *slot = created;
  }
  *out = *slot;
  return NULL;
}
