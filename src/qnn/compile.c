/* Graphs of the IR into a context binary: context, graphs, the vendor's finalize, serialisation, and the check of what came out. How
 * operators map is in lower/. */
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "qnn/lower/lower.h"
#include "qnn/rules.h"

enum { MAX_GRAPHS = sizeof((qnn_binary*)0)->graphs / sizeof *((qnn_binary*)0)->graphs };

typedef struct compilation {
  const qnn_library* library;
  const qnn_compile_options* options;
  qnn_api_handle device;
  qnn_api_handle context;
  qnn_statics statics; /* while graphs are built, when there are several */
} compilation;

static genai_status* create_context(compilation* self) {
  const qnn_api_htp_context sharing = {.option = QNN_API_HTP_CONTEXT_WEIGHT_SHARING, .as.bool8 = 1};
  const qnn_api_config custom = {.option = QNN_API_CONFIG_CUSTOM, .as.pointer = &sharing};
  const qnn_api_config* configuration[] = {&custom, NULL};
  uint64_t code = self->library->api->context_create(self->library->backend, self->device,
                                                     self->options->weight_sharing ? configuration : NULL, &self->context);
  if (code) return qnn_vendor_error(self->library, code, "cannot create a context");
  return NULL;
}

static genai_status* create_graph(compilation* self, const ir_graph* ir, qnn_api_handle* out) {
  const qnn_compile_options* options = self->options;
  uint32_t level = options->optimization_level ? options->optimization_level : 3;
  qnn_api_htp_graph blocks[3] = {
      {.option = QNN_API_HTP_GRAPH_OPTIMIZATION, .as.optimization = {QNN_API_HTP_OPTIMIZATION_LEVEL, (float)level}},
      {.option = QNN_API_HTP_GRAPH_VTCM_MB, .as.u32 = options->vtcm_mb ? options->vtcm_mb : options->soc->vtcm_mb},
      {.option = QNN_API_HTP_GRAPH_PRECISION, .as.u32 = QNN_API_HTP_PRECISION_FLOAT16},
  };
  qnn_api_config custom[3];
  const qnn_api_config* configuration[4] = {0};
  for (int i = 0; i < (options->float16 ? 3 : 2); ++i) {
    custom[i] = (qnn_api_config){.option = QNN_API_CONFIG_CUSTOM, .as.pointer = &blocks[i]};
    configuration[i] = &custom[i];
  }
  uint64_t code = self->library->api->graph_create(self->context, ir->name, configuration, out);
  if (code) return qnn_vendor_error(self->library, code, "cannot create graph '%s'", ir->name);
  qnn_vendor_log_clear(); /* QAIRT 2.51 reports an error about settings of its own here, and succeeds */
  return NULL;
}

static genai_status* build_graph(compilation* self, const ir_graph* ir, qnn_api_handle graph, uint32_t* nodes) {
  qnn_lowering lowering;
  genai_status* status = qnn_lowering_init(&lowering, self->library, graph, ir);
  if (!status) {
    lowering.pool = self->options->pool;
    lowering.name_boundary = self->options->name_boundary;
    lowering.statics = self->statics.bytes ? &self->statics : NULL;
    status = qnn_lowering_run(&lowering, self->options->cancel);
  }
  *nodes = lowering.nodes;
  qnn_lowering_deinit(&lowering);
  return status;
}

static genai_status* finalize_graph(compilation* self, const ir_graph* ir, qnn_api_handle graph) {
  qnn_quiet_begin(STDOUT_FILENO);
  uint64_t code = self->library->api->graph_finalize(graph, NULL, NULL);
  qnn_quiet_end(STDOUT_FILENO);
  if (!code) return NULL;
  genai_status* status = qnn_vendor_error(self->library, code, "graph '%s' (%u operators) cannot be finalized for %s", ir->name, ir->n_ops,
                                          self->options->soc->name);
  return (code & 0xffff) == 1002
             ? genai_status_wrap(status, GENAI_ERROR_VENDOR,
                                 "the HTP has no kernel for one of the operators of graph '%s' with these element types and "
                                 "shapes (the log names it)",
                                 ir->name)
             : status;
}

static genai_status* compile_graph(compilation* self, const ir_graph* ir, size_t index, bool last, qnn_binary* out) {
  GENAI_TRY(cancel_check(self->options->cancel));
  qnn_vendor_log_clear();
  double begun = clock_seconds();
  qnn_api_handle graph = NULL;
  GENAI_TRY(create_graph(self, ir, &graph));
  uint32_t nodes = 0;
  GENAI_TRY(build_graph(self, ir, graph, &nodes));
  if (last) {
    qnn_statics_deinit(&self->statics);
    if (self->options->sources_read) self->options->sources_read(self->options->sources_read_user);
  }
  double built = clock_seconds();
  GENAI_TRY(cancel_check(self->options->cancel));
  GENAI_TRY(finalize_graph(self, ir, graph));
  double finalized = clock_seconds();
  log_write(LOG_DEBUG, "graph '%s': %u operators added in %.2f s, finalized in %.2f s; %llu MB resident", ir->name, nodes, built - begun,
            finalized - built, (unsigned long long)(memory_resident_bytes() >> 20));
  out->graphs[index].name = ir->name;
  out->graphs[index].nodes = nodes;
  out->graphs[index].finalize_seconds = finalized - built;
  out->build_seconds += built - begun;
  out->finalize_seconds += finalized - built;
  out->n_graphs = (uint32_t)index + 1;
  return NULL;
}

/* The vendor frees a lot in small pieces, and its demand peaks in serialisation: what is free goes back to the system before and after. */
static void return_free_memory(void) {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

static genai_status* serialize(compilation* self, qnn_binary* out) {
  double begun = clock_seconds();
  return_free_memory();
  uint64_t size = 0, written = 0;
  uint64_t code = self->library->api->context_get_binary_size(self->context, &size);
  if (code || size == 0) return qnn_vendor_error(self->library, code, "the context does not tell the size of its binary");
  out->data = mem_alloc(size);
  if (!out->data) return genai_status_out_of_memory();
  qnn_quiet_begin(STDOUT_FILENO);
  code = self->library->api->context_get_binary(self->context, out->data, size, &written);
  qnn_quiet_end(STDOUT_FILENO);
  if (code || written == 0 || written > size) {
    return qnn_vendor_error(self->library, code, "the context does not serialise (%llu of %llu bytes written)", (unsigned long long)written,
                            (unsigned long long)size);
  }
  out->size = written;
  out->serialize_seconds = clock_seconds() - begun;
  return NULL;
}

/* A device configuration that the library ignores yields a binary for another chip without any error, so the binary is asked. */
static genai_status* check_binary(compilation* self, const qnn_binary* binary) {
  const qnn_soc* soc = self->options->soc;
  qnn_binary_info info;
  GENAI_TRY(qnn_binary_read(self->library, binary->data, binary->size, &info, NULL));
  genai_status* status = NULL;
  if (info.soc_model != soc->model || info.htp_arch != soc->htp_arch) {
    status =
        genai_status_create(GENAI_ERROR_VENDOR,
                            "the compiled binary is for SoC model %u, HTP v%u, but %s is model %u, HTP v%u: library %s does not know this "
                            "SoC or ignored the choice",
                            info.soc_model, info.htp_arch, soc->name, soc->model, soc->htp_arch, self->library->build_id);
  } else if (info.n_graphs != binary->n_graphs) {
    status = genai_status_create(GENAI_ERROR_VENDOR, "the compiled binary holds %u graphs, expected %u", info.n_graphs, binary->n_graphs);
  }
  qnn_binary_info_deinit(&info);
  return status;
}

static genai_status* compile(compilation* self, const ir_graph* const* graphs, size_t n_graphs, qnn_binary* out) {
  progress step;
  progress_begin(&step, self->options->progress, "compiling graphs", "graphs", n_graphs);
  GENAI_TRY(qnn_device_create(self->library, self->options->soc->model, &self->device));
  GENAI_TRY(create_context(self));
  if (n_graphs > 1) GENAI_TRY(qnn_statics_init(&self->statics, graphs[0]));
  for (size_t i = 0; i < n_graphs; ++i) {
    progress_update(&step, i);
    GENAI_TRY(compile_graph(self, graphs[i], i, i == n_graphs - 1, out));
  }
  progress_end(&step, n_graphs);
  GENAI_TRY(cancel_check(self->options->cancel));
  progress_begin(&step, self->options->progress, "serialising the binary", "bytes", 0);
  GENAI_TRY(serialize(self, out));
  progress_end(&step, out->size);
  return NULL;
}

genai_status* qnn_compile(qnn_library* library, const ir_graph* const* graphs, size_t n_graphs, const qnn_compile_options* options,
                          qnn_binary* out) {
  if (n_graphs == 0 || n_graphs > MAX_GRAPHS) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "%zu graphs to compile; a context takes 1 to %d", n_graphs, (int)MAX_GRAPHS);
  }
  if (options->optimization_level > 3) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "optimization level %u; the HTP has 1, 2 and 3", options->optimization_level);
  }
  if (options->vtcm_mb > options->soc->vtcm_mb) { /* the library would take it without a word */
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "%u MB of VTCM asked for, but %s has %u MB", options->vtcm_mb,
                               options->soc->name, options->soc->vtcm_mb);
  }
  if (options->float16) GENAI_TRY(qnn_soc_require(options->soc, QNN_FEATURE_FLOAT16, "a float graph"));
  for (size_t i = 0; i < n_graphs; ++i) GENAI_TRY(qnn_check_graph(options->soc, graphs[i]));
  compilation self = {.library = library, .options = options};
  qnn_binary binary = {0};
  genai_status* status = compile(&self, graphs, n_graphs, &binary);
  qnn_statics_deinit(&self.statics);
  if (self.context) library->api->context_free(self.context, NULL);
  qnn_device_free(library, self.device);
  return_free_memory();
  if (!status) status = check_binary(&self, &binary);
  if (status) {
    qnn_binary_deinit(&binary);
  } else {
    *out = binary;
  }
  return status;
}

void qnn_binary_deinit(qnn_binary* binary) {
  mem_free(binary->data);
  *binary = (qnn_binary){0};
}
