/* What the files of this room share: the loaded library, vendor errors, the vendor's log, its output on stdout, and type mappings. */
#ifndef GENAI_QNN_QNN_INTERNAL_H
#define GENAI_QNN_QNN_INTERNAL_H

#include "base/memory.h"
#include "qnn/qnn.h"
#include "qnn/qnn_api.h"

struct qnn_library {
  char* directory;
  void* htp; /* dlopen handles; never closed, because the vendor's threads and exit handlers may outlive us */
  void* system;
  const qnn_api_interface* api;
  const qnn_api_system_interface* system_api;
  qnn_api_handle log;
  qnn_api_handle backend;
  char* build_id;
};

/* ---- library.c ---- */
/* Loads what the wheel keeps beside `directory` for its libraries. */
void qnn_preload_dependencies(const char* directory, arena* memory);

/* ---- search.c ---- */
typedef struct qnn_place {
  const char* directory; /* NULL: the loader's own path */
  const char* origin;    /* why it is looked at, such as "$GENAI_QNN_DIR" */
} qnn_place;

/* The places of qnn_library_open in order; everything lives in `memory`. */
genai_status* qnn_search_places(const char* directory, arena* memory, qnn_place** out, size_t* count) GENAI_MUST_USE;
/* True when `place` holds the file; always false for the loader's path. */
bool qnn_place_has(const qnn_place* place, const char* file);
/* Appends one line for `place`: its origin, its folder, what was found. */
genai_status* qnn_place_describe(const qnn_place* place, text* out) GENAI_MUST_USE;

/* ---- vendor_log.c ---- */
void qnn_vendor_log(const char* format, uint32_t level, uint64_t timestamp, va_list arguments);
void qnn_vendor_log_clear(void);
/* Appends the error lines since the last clear, separated by "; "; nothing when there were none. */
genai_status* qnn_vendor_log_append(text* out) GENAI_MUST_USE;
/* GENAI_ERROR_VENDOR: the formatted text, the code with the vendor's words for it, and its error lines. */
genai_status* qnn_vendor_error(const qnn_library* library, uint64_t code, const char* format, ...) GENAI_PRINTF(3, 4) GENAI_MUST_USE;

/* ---- types.c ---- */
bool qnn_dtype_from_ir(ir_dtype type, bool quantized, uint32_t* out);
bool qnn_dtype_to_ir(uint32_t type, ir_dtype* out);

/* ---- device.c ---- */
/* A device handle for this SoC. */
genai_status* qnn_device_create(const qnn_library* library, uint32_t soc_model, qnn_api_handle* out) GENAI_MUST_USE;
void qnn_device_free(const qnn_library* library, qnn_api_handle device); /* accepts NULL */

/* ---- inspect.c ---- */
/* The tensors of one graph as the API wants them back for execution, with names, dims and ids; in the binary's order. */
typedef struct qnn_graph_tensors {
  qnn_api_tensor* inputs;
  qnn_api_tensor* outputs;
} qnn_graph_tensors;
/* qnn_binary_inspect that also hands out `tensors[n_graphs]` (NULL: not wanted), in out->memory. */
genai_status* qnn_binary_read(const qnn_library* library, const void* data, size_t size, qnn_binary_info* out,
                              qnn_graph_tensors** tensors) GENAI_MUST_USE;

#endif
