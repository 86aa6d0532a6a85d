/* Reading Protocol Buffers' wire format (protobuf.dev, "Encoding"): fields one after the other, unknown ones skipped. */
#ifndef GENAI_TOKENIZER_PROTOBUF_H
#define GENAI_TOKENIZER_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum protobuf_wire { PROTOBUF_VARINT = 0, PROTOBUF_FIXED64 = 1, PROTOBUF_BYTES = 2, PROTOBUF_FIXED32 = 5 } protobuf_wire;

typedef struct protobuf_field {
  uint32_t number;
  protobuf_wire wire;
  uint64_t value;       /* VARINT, FIXED64, FIXED32 */
  const uint8_t* bytes; /* BYTES */
  size_t length;
} protobuf_field;

typedef struct protobuf_reader {
  const uint8_t* data;
  size_t size, at;
  bool broken; /* the data ended inside a field, or a field is malformed */
} protobuf_reader;

/* The next field; false at the end and when the data is broken. */
bool protobuf_next(protobuf_reader* reader, protobuf_field* out);

float protobuf_float(const protobuf_field* field); /* of a FIXED32 */

#endif
