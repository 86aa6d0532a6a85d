/* The wire format's four encodings. What fields mean is known to those who read them. */
#include "tokenizer/protobuf.h"

#include <string.h>

static bool read_varint(protobuf_reader* reader, uint64_t* out) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && reader->at < reader->size; shift += 7) {
    uint8_t byte = reader->data[reader->at++];
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) {
      *out = value;
      return true;
    }
  }
  return false;
}

static bool read_fixed(protobuf_reader* reader, size_t size, uint64_t* out) {
  if (reader->size - reader->at < size) return false;
  uint64_t value = 0;
  for (size_t i = 0; i < size; i++) value |= (uint64_t)reader->data[reader->at + i] << (8 * i);
  reader->at += size;
  *out = value;
  return true;
}

static bool read_field(protobuf_reader* reader, protobuf_field* out) {
  uint64_t tag;
  if (!read_varint(reader, &tag) || tag >> 3 == 0 || tag >> 32) return false;
  *out = (protobuf_field){.number = (uint32_t)(tag >> 3), .wire = (protobuf_wire)(tag & 7)};
  switch (out->wire) {
    case PROTOBUF_VARINT:
      return read_varint(reader, &out->value);
    case PROTOBUF_FIXED64:
      return read_fixed(reader, 8, &out->value);
    case PROTOBUF_FIXED32:
      return read_fixed(reader, 4, &out->value);
    case PROTOBUF_BYTES:
      break;
    default:
      return false;
  }
  uint64_t length;
  if (!read_varint(reader, &length) || length > reader->size - reader->at) return false;
  out->bytes = reader->data + reader->at;
  out->length = (size_t)length;
  reader->at += (size_t)length;
  return true;
}

bool protobuf_next(protobuf_reader* reader, protobuf_field* out) {
  if (reader->broken || reader->at >= reader->size) return false;
  if (read_field(reader, out)) return true;
  reader->broken = true;
  return false;
}

float protobuf_float(const protobuf_field* field) {
  uint32_t bits = (uint32_t)field->value;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
