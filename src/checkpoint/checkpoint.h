/* A checkpoint: named tensors and metadata from a GGUF file, a Hugging Face directory (config.json and safetensors) or a llama2.c file.
 * Files are mapped; nothing is read before it is asked for. */
#ifndef GENAI_CHECKPOINT_CHECKPOINT_H
#define GENAI_CHECKPOINT_CHECKPOINT_H

#include "base/file.h"
#include "base/json.h"
#include "genai/status.h"

/* Element types of stored tensors. Block types follow ggml's layouts (docs/formats/gguf.md). */
typedef enum element_type {
  ELEMENT_F32,
  ELEMENT_F16,
  ELEMENT_BF16,
  ELEMENT_Q4_0,
  ELEMENT_Q4_1,
  ELEMENT_Q5_0,
  ELEMENT_Q5_1,
  ELEMENT_Q8_0,
  ELEMENT_Q2_K,
  ELEMENT_Q3_K,
  ELEMENT_Q4_K,
  ELEMENT_Q5_K,
  ELEMENT_Q6_K,
  ELEMENT_IQ4_NL,
  ELEMENT_IQ4_XS,
  ELEMENT_MXFP4,
  ELEMENT_TYPE_COUNT
} element_type;

const char* element_type_name(element_type type);
uint32_t element_block_size(element_type type);  /* elements in a block: 1, 32 or 256 */
uint32_t element_block_bytes(element_type type); /* bytes of a block */

typedef struct checkpoint_tensor {
  const char* name;
  element_type type;
  uint32_t rank;
  uint64_t dims[4];    /* row-major, outermost first: a linear layer is [out, in] in every format */
  const uint8_t* data; /* in the map; not aligned in general */
  uint64_t bytes;
} checkpoint_tensor;

typedef enum checkpoint_format { CHECKPOINT_GGUF, CHECKPOINT_HUGGING_FACE, CHECKPOINT_LLAMA2C } checkpoint_format;

typedef struct checkpoint checkpoint;

/* Opens a file or a directory; the format is recognised from its content. Pass a shard of a split GGUF or of sharded safetensors and its siblings
 * are found; a safetensors file takes the config.json beside it. Weights that are quantized already are refused, except GGUF's block types.
 *
 * llama2.c files are presented as a GGUF of the llama architecture: the keys below and the names "blk.N.attn_q.weight" ... Their q and k rows
 * are in interleaved rotary order (rows 2i and 2i+1 of a head are a rotated pair), as in a GGUF of that architecture. */
genai_status* checkpoint_open(const char* path, checkpoint** out) GENAI_MUST_USE;

/* What any file of a model can be instead of itself: empty, or the pointer that Git LFS leaves where the content was not fetched. */
genai_status* checkpoint_check_is_there(const char* path, const uint8_t* data, size_t size) GENAI_MUST_USE;
void checkpoint_close(checkpoint* file); /* accepts NULL */
/* The pages that were read leave this process's memory until they are read again. */
void checkpoint_release_pages(const checkpoint* file);

checkpoint_format checkpoint_format_of(const checkpoint* file);
const char* checkpoint_path(const checkpoint* file);
size_t checkpoint_tensor_count(const checkpoint* file);
const checkpoint_tensor* checkpoint_tensor_at(const checkpoint* file, size_t index); /* in file order */
const checkpoint_tensor* checkpoint_find(const checkpoint* file, const char* name);  /* NULL when absent; hashed */

/* Rows [row, row+count) of the tensor seen as a matrix [product of outer dims, last dim], widened to float exactly as ggml and PyTorch do. */
genai_status* checkpoint_read_rows(const checkpoint_tensor* tensor, uint64_t row, uint64_t count, float* out) GENAI_MUST_USE;

/* Metadata of a Hugging Face directory: config.json and generation_config.json (absent value when there is none). */
json_value checkpoint_config(const checkpoint* file);
json_value checkpoint_generation_config(const checkpoint* file);

/* Metadata of a GGUF file. llama2.c files present their header under the same keys ("llama.block_count" ...), so that one reader serves. */
typedef enum gguf_type {
  GGUF_U8,
  GGUF_I8,
  GGUF_U16,
  GGUF_I16,
  GGUF_U32,
  GGUF_I32,
  GGUF_F32,
  GGUF_BOOL,
  GGUF_STRING,
  GGUF_ARRAY,
  GGUF_U64,
  GGUF_I64,
  GGUF_F64
} gguf_type; /* the file's codes, 0..12 */

typedef struct gguf_value {
  const char* key;
  gguf_type type;
  gguf_type element; /* for arrays */
  uint64_t count;    /* for arrays */
  union {
    uint64_t u;
    int64_t i;
    double f;
    bool b;
    text_view s;
    const void* items; /* array of numbers: packed little-endian elements, possibly unaligned; array of strings: const text_view[count] */
  } as;
} gguf_value;

size_t checkpoint_metadata_count(const checkpoint* file);
const gguf_value* checkpoint_metadata_at(const checkpoint* file, size_t index);
const gguf_value* checkpoint_metadata(const checkpoint* file, const char* key); /* NULL when absent; hashed */
/* Any integer or bool type as int64, any number as double; `fallback` when absent or of another type. */
int64_t checkpoint_metadata_integer(const checkpoint* file, const char* key, int64_t fallback);
double checkpoint_metadata_number(const checkpoint* file, const char* key, double fallback);
text_view checkpoint_metadata_string(const checkpoint* file, const char* key); /* {NULL,0} when absent or not a string */
/* Element `index` of a numeric array. */
double gguf_array_number(const gguf_value* array, uint64_t index);

/* Identifies the checkpoint in artifacts, as lower-case hex. One file: its SHA-256. Several (config.json, generation_config.json, the index and
 * the safetensors files that are used; the parts of a split GGUF): the SHA-256 of the lines "DIGEST  NAME\n" in name order, which is what
 * `sha256sum NAMES | sha256sum` prints. Reads everything once. */
genai_status* checkpoint_fingerprint(const checkpoint* file, char hex[65]) GENAI_MUST_USE;

#endif
