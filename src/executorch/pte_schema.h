/* The flatbuffers of a .pte as plain C structs. pte_schema.cpp is the only C++ of this room: it moves these structs into and out of
 * FlatBuffers and judges nothing beyond the flatbuffer being well formed. Indices, offsets and sizes are checked in pte_read.c. */
#ifndef GENAI_EXECUTORCH_PTE_SCHEMA_H
#define GENAI_EXECUTORCH_PTE_SCHEMA_H

#include "executorch/pte.h"

/* Scalar type codes of the format that have a storage type here. */
enum {
  PTE_SCALAR_BYTE = 0,
  PTE_SCALAR_CHAR = 1,
  PTE_SCALAR_SHORT = 2,
  PTE_SCALAR_INT = 3,
  PTE_SCALAR_HALF = 5,
  PTE_SCALAR_FLOAT = 6,
  PTE_SCALAR_UINT16 = 27
};

typedef struct pte_raw_tensor {
  int32_t scalar_type;
  uint32_t rank;
  const int32_t* sizes;
  uint32_t n_dim_order;
  const uint8_t* dim_order;
  int32_t storage_offset;
  int32_t shape_dynamism; /* 0: static */
} pte_raw_tensor;

typedef enum pte_raw_value_kind { PTE_RAW_OTHER, PTE_RAW_SCALAR, PTE_RAW_TENSOR } pte_raw_value_kind;
typedef struct pte_raw_value {
  pte_raw_value_kind kind;
  union {
    pte_scalar scalar;
    pte_raw_tensor tensor;
  } as;
} pte_raw_value;

typedef struct pte_raw_delegate {
  const char* id;
  bool in_segment; /* else in the list of inlined blobs */
  uint32_t index;
  const uint8_t* options; /* value of the compile spec "qnn_compile_spec"; NULL: there is none */
  size_t options_size;
} pte_raw_delegate;

typedef struct pte_raw_instruction {
  bool is_delegate_call; /* the fields below are set for these only */
  int32_t delegate;
  uint32_t n_args;
  const int32_t* args;
} pte_raw_instruction;

typedef struct pte_raw_plan {
  const char* name;
  const char* input_tree; /* not read back */
  const char* output_tree;
  uint32_t n_values, n_inputs, n_outputs, n_delegates, n_instructions;
  pte_raw_value* values;
  const int32_t* inputs;
  const int32_t* outputs;
  pte_raw_delegate* delegates;
  pte_raw_instruction* instructions; /* of all chains, in order */
  uint32_t n_buffer_sizes;           /* written as zeros; not read back */
} pte_raw_plan;

typedef struct pte_raw_segment {
  uint64_t offset, size;
} pte_raw_segment;

typedef struct pte_raw_blob {
  const uint8_t* data;
  size_t size;
} pte_raw_blob;

typedef struct pte_raw_program {
  uint32_t version;
  uint32_t n_plans, n_segments, n_inline;
  pte_raw_plan* plans;
  pte_raw_segment* segments;
  pte_raw_blob* inline_data;
} pte_raw_program;

/* Verifies the flatbuffer that starts at data[0] (aligned to 16) and describes it in structs that live in `memory` and point into `data`.
 * `path` names the file in errors. Lists that share bytes are refused: they could make a small file need any amount of memory. */
genai_status* pte_schema_read(const void* data, size_t size, const char* path, arena* memory, pte_raw_program* out) GENAI_MUST_USE;
/* Appends the flatbuffer, with file identifier. Equal programs give equal bytes. Inlined blobs are not written. */
genai_status* pte_schema_write(const pte_raw_program* program, text* out) GENAI_MUST_USE;

typedef struct pte_raw_options {
  pte_delegate_options delegate;
  int32_t backend; /* 2: HTP */
  bool online_prepare;
} pte_raw_options;

/* The delegate's option block; `data` aligned to 4. Absent tables leave zeros. */
genai_status* pte_options_read(const void* data, size_t size, const char* path, pte_raw_options* out) GENAI_MUST_USE;
genai_status* pte_options_write(const pte_delegate_options* options, text* out) GENAI_MUST_USE;

#endif
