/* ExecuTorch program files (.pte) whose methods are QNN delegates, and constant methods: writing, reading, explaining.
 * Format: docs/formats/pte.md. */
#ifndef GENAI_EXECUTORCH_PTE_H
#define GENAI_EXECUTORCH_PTE_H

#include "base/file.h"
#include "ir/executor.h"

/* ---- Constant methods ---- */
typedef enum pte_constant_kind { PTE_INT, PTE_BOOL, PTE_DOUBLE, PTE_STRING } pte_constant_kind;
typedef struct pte_scalar {
  pte_constant_kind kind;
  union {
    int64_t i;
    bool b;
    double d;
    const char* s;
  } as;
} pte_scalar;
/* A method without inputs that returns its values. */
typedef struct pte_constant {
  const char* method;
  size_t count;
  const pte_scalar* values;
} pte_constant;

/* ---- What the delegate's option block (QnnExecuTorchOptions) says ---- */
typedef struct pte_delegate_options {
  uint32_t soc_model, htp_arch, vtcm_mb;
  bool fp16;
  bool weight_sharing;
  bool shared_buffer;
  uint32_t performance_mode; /* 2 = burst */
  uint32_t profile_level;    /* 0 off, 2 detailed: the runtime notes each operator's cycles in its ETDump */
  bool gpu;                  /* for the GPU, prepared on the device: the payload is a DLC, not a context binary for the HTP */
} pte_delegate_options;

/* ---- Writing ---- */
/* A method executed by the QNN delegate: ports in the order of the plan; the binary's outputs are in the same order. */
typedef struct pte_method {
  const char* name; /* also the graph's name in the context binary */
  uint32_t n_inputs, n_outputs;
  const executor_port* inputs;
  const executor_port* outputs;
  const uint32_t* binary_output_order; /* plan output index of each output of the binary, [n_outputs]; NULL: the same order */
  const uint32_t* binary_input_order;  /* plan input index of each input of the binary (the <n> of its `input_<n>_` names), [n_inputs];
                                          NULL: the same order */
} pte_method;

typedef struct pte_program {
  size_t n_methods;
  const pte_method* methods;
  size_t n_constants;
  const pte_constant* constants;
  pte_delegate_options options;
  const void* context_binary; /* one binary for all methods; with options.gpu a DLC */
  size_t context_binary_size;
} pte_program;

/* Writes the file whole or not at all. The delegate's signature is derived from the content, so that equal programs give equal bytes.
 * Method names must be unique, ports of rank 1 to 5 without empty dimensions, orders permutations: else GENAI_ERROR_INVALID_ARGUMENT. */
genai_status* pte_write(const char* path, const pte_program* program) GENAI_MUST_USE;

/* The constant method that carries genai's provenance record (a JSON string, see docs/formats/provenance.md). */
#define PTE_PROVENANCE_METHOD "get_genai_provenance"

/* ---- Reading ---- */
typedef struct pte_file pte_file;
/* Maps the file and verifies it (flatbuffer verifier, header, segments, delegate payload, indices) before anything is used. What breaks the
 * format is GENAI_ERROR_BAD_FILE; a QNN method that the runtime could not drive (types, ranks, other backends than HTP, no context binary)
 * is GENAI_ERROR_UNSUPPORTED. Methods that are not QNN delegates are listed, but not looked into. */
genai_status* pte_open(const char* path, pte_file** out) GENAI_MUST_USE;
/* The same on bytes that the caller keeps (aligned to 16) until the file is closed; `name` stands for the path in errors. */
genai_status* pte_open_buffer(const void* data, size_t size, const char* name, pte_file** out) GENAI_MUST_USE;
void pte_close(pte_file* self); /* accepts NULL */

typedef struct pte_method_view {
  const char* name;
  bool is_delegate;        /* the method is one call of one delegate; false: constant or other method */
  const char* delegate_id; /* "QnnBackend"; NULL when is_delegate is false */
  uint32_t n_inputs, n_outputs;
  const executor_port*
      inputs; /* QNN delegates only, else NULL. name: "value <n>", role none, scale 1: the plan has no names or encodings */
  const executor_port* outputs;     /* in plan order */
  const uint32_t* delegate_outputs; /* plan output index for each output argument of the delegate call, [n_outputs] */
  const void* context_binary;       /* in the map; NULL when it is not a QNN delegate, or one that is prepared on the device */
  size_t context_binary_size;
  int64_t signature;
  pte_delegate_options options;
  size_t n_values; /* constant method: what it returns */
  const pte_scalar* values;
  const uint32_t* delegate_inputs; /* plan input index for each input argument of the delegate call, [n_inputs]: argument i is the binary's
                                      `input_<i>_`. Upstream's order differs from the plan's. */
} pte_method_view;

size_t pte_method_count(const pte_file* self);
const pte_method_view* pte_method_at(const pte_file* self, size_t index);
const pte_method_view* pte_find_method(const pte_file* self, const char* name); /* NULL when absent */
bool pte_get_int(const pte_file* self, const char* constant_method, int64_t* out);
const char* pte_get_string(const pte_file* self, const char* constant_method); /* NULL when absent */

#endif
