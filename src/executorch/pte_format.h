/* The parts of a .pte that are not flatbuffers: the extended header, the delegate payload's header, and the scalar type codes.
 * Byte tables: docs/formats/pte.md. */
#ifndef GENAI_EXECUTORCH_PTE_FORMAT_H
#define GENAI_EXECUTORCH_PTE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "genai/status.h"
#include "ir/ir.h"

enum {
  PTE_ROOT_SIZE = 8,             /* root offset and file identifier, before the extended header */
  PTE_EXTENDED_HEADER_SIZE = 32, /* a multiple of 16, the largest alignment that the schema forces */
  PTE_SEGMENT_ALIGNMENT = 128,
  PTE_PAYLOAD_HEADER_SIZE = 256
};

#define PTE_QNN_DELEGATE "QnnBackend"

/* Where the parts of the file lie. */
typedef struct pte_layout {
  uint64_t program_size; /* the flatbuffer with the extended header inside */
  uint64_t segment_base; /* 0 and 0: no segments */
  uint64_t segment_size;
} pte_layout;

void pte_layout_encode(const pte_layout* layout, uint8_t out[PTE_EXTENDED_HEADER_SIZE]);
/* Reads the layout of a file of `size` bytes and checks that all parts lie inside it. A file without extended header is all program. */
genai_status* pte_layout_decode(const uint8_t* file, size_t size, const char* path, pte_layout* out) GENAI_MUST_USE;

void pte_payload_encode(int64_t signature, uint64_t binary_size, uint8_t out[PTE_PAYLOAD_HEADER_SIZE]);
/* Unwraps the delegate's payload; `*binary` points into it. `path` and `method` name the place in errors. */
genai_status* pte_payload_decode(const uint8_t* payload, size_t size, const char* path, const char* method, int64_t* signature,
                                 const uint8_t** binary, size_t* binary_size) GENAI_MUST_USE;

/* The scalar type code of a storage type, and back; false: there is none. */
int32_t pte_scalar_type_of(ir_dtype type);
bool pte_scalar_type_to_dtype(int32_t scalar_type, ir_dtype* out);

#endif
