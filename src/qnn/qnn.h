/* Qualcomm's QNN libraries through their C API: finding and loading them, compiling graphs into context binaries, executing binaries.
 * The declarations of the API are ours (qnn_api.h), written from the recorded facts; no vendor header is used. */
#ifndef GENAI_QNN_QNN_H
#define GENAI_QNN_QNN_H

#include "base/log.h"
#include "base/pool.h"
#include "ir/executor.h"
#include "qnn/soc.h"

/* ---- Libraries ---- */
typedef struct qnn_library qnn_library;

typedef struct qnn_library_info {
  const char* directory;
  const char* build_id; /* as backendGetBuildId says: "v2.49.40.26..." */
  uint32_t core_major, core_minor, core_patch;
  uint32_t backend_major, backend_minor, backend_patch;
  bool is_simulator; /* x86-64 host: contexts execute in the functional simulator */
} qnn_library_info;

/* Loads libQnnHtp.so and libQnnSystem.so. Searched in order, the first folder that has libQnnHtp.so wins: `directory` (if not NULL, alone);
 * $GENAI_QNN_DIR; $QNN_SDK_ROOT/lib/x86_64-linux-clang; the cache that `make setup` fills ($XDG_CACHE_HOME or ~/.cache, genai/qnn/...);
 * the loader's own path. Dependencies beside it (../onnxruntime_qnn.libs) are loaded first, so LD_LIBRARY_PATH need not be set.
 * Failure is GENAI_ERROR_ENGINE_NOT_AVAILABLE and lists every place searched, the loader's reason, and how to get the libraries. */
genai_status* qnn_library_open(const char* directory, qnn_library** out) GENAI_MUST_USE;
void qnn_library_close(qnn_library* self); /* accepts NULL; the vendor's code stays mapped */
void qnn_library_get_info(const qnn_library* self, qnn_library_info* out);
/* Every folder that qnn_library_open(NULL) looks at, one a line, with what was found there: for `genai doctor`. */
genai_status* qnn_library_describe_search(text* out) GENAI_MUST_USE;

/* The vendor prints on the caller's streams; between begin and end, what goes to `descriptor` (STDOUT_FILENO or STDERR_FILENO) goes to
 * the debug log instead. Nests, also across threads. */
void qnn_quiet_begin(int descriptor);
void qnn_quiet_end(int descriptor);

/* ---- Compiling ---- */
enum { QNN_NAME_SIZE = 64 };
typedef struct qnn_compile_options {
  const qnn_soc* soc;
  bool weight_sharing;         /* one copy of equal weights in the binary; the x86-64 simulator cannot reload such a binary */
  uint32_t optimization_level; /* 1, 2 or 3; 0 = 3 */
  uint32_t vtcm_mb;            /* 0 = the SoC's */
  bool float16;                /* float graphs computed in half precision */
  thread_pool* pool;           /* quantizes the weights; NULL: the calling thread */
  const progress_sink* progress;
  const cancel_token* cancel;       /* polled between vendor calls: none of them can be interrupted */
  void (*sources_read)(void* user); /* called once, when no static will be read any more; NULL: none */
  void* sources_read_user;
  /* Names a boundary tensor otherwise than by qnn_compile's rule; NULL: by the rule. */
  void (*name_boundary)(const ir_tensor* tensor, char name[QNN_NAME_SIZE]);
} qnn_compile_options;

typedef struct qnn_binary {
  uint8_t* data;
  size_t size;
  double build_seconds, finalize_seconds, serialize_seconds; /* building nodes; the vendor's finalize calls; getBinary */
  uint32_t n_graphs;
  struct {
    const char* name;
    uint32_t nodes;
    double finalize_seconds;
  } graphs[8]; /* names point to the ir graphs */
} qnn_binary;

/* Lowers every graph (float or with encodings on all tensors) into one context, finalizes in order and serialises. Boundary tensors are
 * named `input_<position>_<name>` and `output_<position>_<name>`; positions index the graph's boundary lists.
 * What the binary records of SoC and arch is read back and compared: a difference is an error. */
genai_status* qnn_compile(qnn_library* library, const ir_graph* const* graphs, size_t n_graphs, const qnn_compile_options* options,
                          qnn_binary* out) GENAI_MUST_USE;
void qnn_binary_deinit(qnn_binary* binary);

/* ---- What a binary says of itself ---- */
typedef struct qnn_tensor_info {
  const char* name;
  ir_dtype dtype;
  uint32_t rank, dims[IR_MAX_RANK];
  bool quantized;
  float scale;
  int32_t offset;
} qnn_tensor_info;
typedef struct qnn_graph_info {
  const char* name;
  uint32_t n_inputs, n_outputs;
  const qnn_tensor_info* inputs; /* in the binary's order */
  const qnn_tensor_info* outputs;
  uint64_t spill_fill_bytes;
  uint32_t vtcm_bytes, optimization_level;
} qnn_graph_info;
typedef struct qnn_binary_info {
  char* build_id;
  uint32_t soc_model, htp_arch;
  uint32_t blob_major, blob_minor, blob_patch;
  uint64_t blob_size;
  uint32_t n_graphs;
  qnn_graph_info* graphs;
  arena memory; /* all of the above */
} qnn_binary_info;
genai_status* qnn_binary_inspect(qnn_library* library, const void* data, size_t size, qnn_binary_info* out) GENAI_MUST_USE;
void qnn_binary_info_deinit(qnn_binary_info* info);

/* ---- Executing ---- */
typedef struct qnn_context qnn_context;
/* Loads a binary. `data` must stay valid until the context is closed. The SoC is the one the binary names. */
genai_status* qnn_context_open(qnn_library* library, const void* data, size_t size, qnn_context** out) GENAI_MUST_USE;
void qnn_context_close(qnn_context* self); /* accepts NULL; close its executors first */
const qnn_binary_info* qnn_context_info(const qnn_context* self);
/* An executor for one graph, ports in the binary's order except that inputs and outputs named by qnn_compile's rule (and upstream's
 * `input_<n>_`) are sorted by their number. Roles are IR_ROLE_NONE: the caller assigns them (executor_port is writable through
 * qnn_executor_ports). */
genai_status* qnn_context_executor(qnn_context* self, const char* graph, executor** out) GENAI_MUST_USE;
void qnn_executor_ports(executor* self, executor_port** inputs, executor_port** outputs);

#endif
