/* What a context binary records of itself: the vendor's reader walks it, and everything is copied and checked here. */
#include <string.h>

#include "qnn/qnn_internal.h"

enum { MAX_GRAPHS = 64, MAX_BOUNDARY = 4096 };

static genai_status* bad_binary(const char* what, uint64_t found, const char* expected) {
  return genai_status_create(GENAI_ERROR_BAD_FILE, "context binary: %s is %llu, expected %s", what, (unsigned long long)found, expected);
}

/* Copies what execution needs of a tensor; encodings other than a scale and an offset do not occur at a graph's boundary. */
static genai_status* copy_tensor(const qnn_api_tensor* from, arena* memory, qnn_api_tensor* to) {
  if (from->version != 1 && from->version != 2) return bad_binary("a tensor's version", from->version, "1 or 2");
  const qnn_api_tensor_v1* source = &from->as.v1; /* version 2 begins alike */
  const char* name = source->name ? source->name : "";
  if (source->rank == 0 || source->rank > IR_MAX_RANK || !source->dims) {
    return genai_status_create(GENAI_ERROR_UNSUPPORTED, "context binary: tensor '%s' has rank %u; 1 to %d are handled", name, source->rank,
                               IR_MAX_RANK);
  }
  qnn_api_tensor_v1* copy = &to->as.v1;
  to->version = 1;
  copy->id = source->id;
  copy->type = source->type;
  copy->format = source->format;
  copy->dtype = source->dtype;
  copy->rank = source->rank;
  copy->name = arena_strdup(memory, name);
  copy->dims = arena_dup(memory, source->dims, source->rank * sizeof *source->dims);
  copy->quantize = (qnn_api_quantize){.definition = QNN_API_UNDEFINED, .encoding = QNN_API_UNDEFINED};
  if (!copy->name || !copy->dims) return genai_status_out_of_memory();
  if (source->quantize.definition == QNN_API_DEFINED) {
    if (source->quantize.encoding == QNN_API_SCALE_OFFSET || source->quantize.encoding == QNN_API_BW_SCALE_OFFSET) {
      copy->quantize = source->quantize;
    } else if (source->quantize.encoding != QNN_API_UNDEFINED) {
      return genai_status_create(GENAI_ERROR_UNSUPPORTED,
                                 "context binary: tensor '%s' has an encoding of kind %u; only a scale and an offset are handled", name,
                                 source->quantize.encoding);
    }
  }
  return NULL;
}

static genai_status* describe_tensor(const qnn_api_tensor_v1* tensor, qnn_tensor_info* out) {
  if (!qnn_dtype_to_ir(tensor->dtype, &out->dtype)) {
    return genai_status_create(GENAI_ERROR_UNSUPPORTED, "context binary: tensor '%s' has element type 0x%x, which is not handled",
                               tensor->name, tensor->dtype);
  }
  out->name = tensor->name;
  out->rank = tensor->rank;
  uint64_t elements = 1;
  for (uint32_t i = 0; i < tensor->rank; ++i) {
    out->dims[i] = tensor->dims[i];
    if (!u64_mul(elements, tensor->dims[i], &elements)) elements = UINT64_MAX;
  }
  /* The API counts a buffer's bytes in 32 bits. */
  if (elements == 0 || elements > UINT32_MAX / ir_dtype_size(out->dtype)) {
    return genai_status_create(GENAI_ERROR_BAD_FILE, "context binary: tensor '%s' has %llu elements of %s", tensor->name,
                               (unsigned long long)elements, ir_dtype_name(out->dtype));
  }
  out->scale = 1;
  if (tensor->quantize.definition == QNN_API_DEFINED) {
    out->quantized = true;
    bool narrow = tensor->quantize.encoding == QNN_API_BW_SCALE_OFFSET;
    out->scale = narrow ? tensor->quantize.as.bw.scale : tensor->quantize.as.scale_offset.scale;
    out->offset = narrow ? tensor->quantize.as.bw.offset : tensor->quantize.as.scale_offset.offset;
  }
  return NULL;
}

static genai_status* read_tensors(const qnn_api_tensor* list, uint32_t count, arena* memory, const qnn_tensor_info** info,
                                  qnn_api_tensor** raw) {
  if (count > MAX_BOUNDARY || (count && !list)) return bad_binary("a graph's number of inputs or outputs", count, "at most 4096");
  qnn_tensor_info* described = arena_calloc(memory, count, sizeof *described);
  qnn_api_tensor* copies = arena_calloc(memory, count, sizeof *copies);
  if (!described || !copies) return genai_status_out_of_memory();
  for (uint32_t i = 0; i < count; ++i) {
    GENAI_TRY(copy_tensor(&list[i], memory, &copies[i]));
    GENAI_TRY(describe_tensor(&copies[i].as.v1, &described[i]));
  }
  *info = described;
  *raw = copies;
  return NULL;
}

static genai_status* read_graph(const qnn_api_graph_info* graph, arena* memory, qnn_graph_info* out, qnn_graph_tensors* tensors) {
  if (graph->version < 1 || graph->version > 3) return bad_binary("a graph's record version", graph->version, "1 to 3");
  out->name = arena_strdup(memory, graph->v3.name ? graph->v3.name : "");
  if (!out->name) return genai_status_out_of_memory();
  out->n_inputs = graph->v3.n_inputs;
  out->n_outputs = graph->v3.n_outputs;
  GENAI_TRY(read_tensors(graph->v3.inputs, graph->v3.n_inputs, memory, &out->inputs, &tensors->inputs));
  GENAI_TRY(read_tensors(graph->v3.outputs, graph->v3.n_outputs, memory, &out->outputs, &tensors->outputs));
  if (graph->version >= 3 && graph->v3.blob_info && graph->v3.blob_info_size >= sizeof(qnn_api_htp_graph_info)) {
    const qnn_api_htp_graph_info* htp = graph->v3.blob_info;
    if (htp->version == 1) {
      out->spill_fill_bytes = htp->spill_fill_bytes;
      out->vtcm_bytes = htp->vtcm_bytes;
      out->optimization_level = htp->optimization_level;
    }
  }
  return NULL;
}

static genai_status* read_info(const qnn_api_binary_info* record, qnn_binary_info* out, qnn_graph_tensors** tensors) {
  if (record->version != 3) return bad_binary("the record's version", record->version, "3 (as QAIRT 2.47 and later write)");
  if (record->v3.backend_id != QNN_API_BACKEND_HTP) return bad_binary("the backend", record->v3.backend_id, "6, the HTP");
  if (record->v3.n_graphs == 0 || record->v3.n_graphs > MAX_GRAPHS || !record->v3.graphs) {
    return bad_binary("the number of graphs", record->v3.n_graphs, "1 to 64");
  }
  out->build_id = arena_strdup(&out->memory, record->v3.build_id ? record->v3.build_id : "");
  out->soc_model = record->v3.soc_model;
  out->blob_major = record->v3.blob.major;
  out->blob_minor = record->v3.blob.minor;
  out->blob_patch = record->v3.blob.patch;
  out->blob_size = record->v3.blob_size;
  if (record->v3.meta && record->v3.meta_size >= sizeof(qnn_api_htp_context_info)) {
    const qnn_api_htp_context_info* htp = record->v3.meta;
    if (htp->version == 1) out->htp_arch = htp->dsp_arch;
  }
  out->n_graphs = record->v3.n_graphs;
  out->graphs = arena_calloc(&out->memory, out->n_graphs, sizeof *out->graphs);
  *tensors = arena_calloc(&out->memory, out->n_graphs, sizeof **tensors);
  if (!out->build_id || !out->graphs || !*tensors) return genai_status_out_of_memory();
  for (uint32_t i = 0; i < out->n_graphs; ++i) GENAI_TRY(read_graph(&record->v3.graphs[i], &out->memory, &out->graphs[i], &(*tensors)[i]));
  return NULL;
}

genai_status* qnn_binary_read(const qnn_library* library, const void* data, size_t size, qnn_binary_info* out,
                              qnn_graph_tensors** tensors) {
  qnn_vendor_log_clear();
  qnn_api_handle reader = NULL;
  uint64_t code = library->system_api->context_create(&reader);
  if (code) return qnn_vendor_error(library, code, "cannot create a reader of context binaries");
  const qnn_api_binary_info* record = NULL;
  uint64_t record_size = 0;
  qnn_binary_info info = {0};
  qnn_graph_tensors* copies = NULL;
  genai_status* status = NULL;
  /* The API takes the buffer as writable, but only reads it. */
  code = library->system_api->context_get_binary_info(reader, (void*)(uintptr_t)data, size, &record, &record_size);
  if (code || !record) {
    status = qnn_vendor_error(library, code, "the %zu bytes are not a QNN context binary that this library can read", size);
    status = genai_status_wrap(status, GENAI_ERROR_BAD_FILE,
                               "context binary of %zu bytes cannot be read; it is damaged or of a newer version", size);
  } else {
    status = read_info(record, &info, &copies);
  }
  library->system_api->context_free(reader);
  if (status) {
    qnn_binary_info_deinit(&info);
    return status;
  }
  *out = info;
  if (tensors) *tensors = copies;
  return NULL;
}

genai_status* qnn_binary_inspect(qnn_library* library, const void* data, size_t size, qnn_binary_info* out) {
  return qnn_binary_read(library, data, size, out, NULL);
}

void qnn_binary_info_deinit(qnn_binary_info* info) {
  arena_deinit(&info->memory);
  *info = (qnn_binary_info){0};
}
