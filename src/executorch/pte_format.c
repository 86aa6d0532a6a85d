/* Encoding and decoding of the fixed-layout parts of a .pte: extended header, delegate payload header, scalar type codes. The flatbuffer
 * in between is pte_schema.cpp's. */
#include "executorch/pte_format.h"

#include <string.h>

#include "executorch/pte_schema.h"

static const char file_identifier[4] = "ET12";
static const char extended_magic[4] = "eh00";
static const uint32_t payload_magic = 0x5678ABCD;

enum { OLD_EXTENDED_HEADER_SIZE = 24 /* without segment_size */ };

/* The format is little-endian, as are all hosts that genai runs on (pte_schema.cpp asserts it). */
static void put(uint8_t* at, const void* value, size_t size) {
  memcpy(at, value, size);
}

static uint32_t get_u32(const uint8_t* at) {
  uint32_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

static uint64_t get_u64(const uint8_t* at) {
  uint64_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

void pte_layout_encode(const pte_layout* layout, uint8_t out[PTE_EXTENDED_HEADER_SIZE]) {
  const uint32_t length = PTE_EXTENDED_HEADER_SIZE;
  put(out, extended_magic, 4);
  put(out + 4, &length, 4);
  put(out + 8, &layout->program_size, 8);
  put(out + 16, &layout->segment_base, 8);
  put(out + 24, &layout->segment_size, 8);
}

genai_status* pte_layout_decode(const uint8_t* file, size_t size, const char* path, pte_layout* out) {
  if (size < PTE_ROOT_SIZE + 4) {
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: %zu bytes are too few for an ExecuTorch program; the file is cut off", path,
                               size);
  }
  if (memcmp(file + 4, file_identifier, 4)) {
    return genai_status_create(GENAI_ERROR_BAD_FILE,
                               "%s: file identifier %02x %02x %02x %02x at byte 4, expected \"ET12\"; this is not an ExecuTorch program",
                               path, file[4], file[5], file[6], file[7]);
  }
  const uint8_t* header = file + PTE_ROOT_SIZE;
  if (memcmp(header, extended_magic, 4)) {
    *out = (pte_layout){.program_size = size};
    return NULL;
  }
  const uint32_t length = size >= PTE_ROOT_SIZE + OLD_EXTENDED_HEADER_SIZE ? get_u32(header + 4) : 0;
  if (length < OLD_EXTENDED_HEADER_SIZE || length > size - PTE_ROOT_SIZE) {
    return genai_status_create(GENAI_ERROR_BAD_FILE,
                               "%s: extended header of %u bytes in a file of %zu, expected 24 or more; the file is %s", path, length, size,
                               length ? "damaged" : "cut off");
  }
  pte_layout layout = {get_u64(header + 8), get_u64(header + 16), 0};
  if (layout.program_size < PTE_ROOT_SIZE + (uint64_t)length || layout.program_size > size) {
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: program of %llu bytes in a file of %zu; the file is cut off or damaged", path,
                               (unsigned long long)layout.program_size, size);
  }
  if (layout.segment_base) {
    if (layout.segment_base < layout.program_size || layout.segment_base > size) {
      return genai_status_create(
          GENAI_ERROR_BAD_FILE,
          "%s: segments start at byte %llu, expected between %llu (end of the program) and %zu (end of the file); the "
          "file is cut off or damaged",
          path, (unsigned long long)layout.segment_base, (unsigned long long)layout.program_size, size);
    }
    const uint64_t available = size - layout.segment_base;
    layout.segment_size = length >= PTE_EXTENDED_HEADER_SIZE ? get_u64(header + 24) : available;
    if (layout.segment_size > available) {
      return genai_status_create(GENAI_ERROR_BAD_FILE,
                                 "%s: the header announces %llu bytes of segments, the file holds %llu; the file is cut off or damaged",
                                 path, (unsigned long long)layout.segment_size, (unsigned long long)available);
    }
  }
  *out = layout;
  return NULL;
}

void pte_payload_encode(int64_t signature, uint64_t binary_size, uint8_t out[PTE_PAYLOAD_HEADER_SIZE]) {
  memset(out, 0, PTE_PAYLOAD_HEADER_SIZE);
  put(out, &payload_magic, 4);
  put(out + 4, &signature, 8);
  put(out + 12, &binary_size, 8);
}

genai_status* pte_payload_decode(const uint8_t* payload, size_t size, const char* path, const char* method, int64_t* signature,
                                 const uint8_t** binary, size_t* binary_size) {
  if (size < PTE_PAYLOAD_HEADER_SIZE) {
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: method %s: QNN payload of %zu bytes, expected at least its header of %d", path,
                               method, size, PTE_PAYLOAD_HEADER_SIZE);
  }
  if (get_u32(payload) != payload_magic) {
    return genai_status_create(
        GENAI_ERROR_BAD_FILE,
        "%s: method %s: QNN payload starts with 0x%08x, expected 0x%08x; the file is damaged or holds no context binary", path, method,
        get_u32(payload), payload_magic);
  }
  const uint64_t announced = get_u64(payload + 12);
  if (announced == 0 || announced != size - PTE_PAYLOAD_HEADER_SIZE) {
    return genai_status_create(GENAI_ERROR_BAD_FILE,
                               "%s: method %s: context binary of %llu bytes, expected the %zu that follow its header; the file is damaged",
                               path, method, (unsigned long long)announced, size - PTE_PAYLOAD_HEADER_SIZE);
  }
  *signature = (int64_t)get_u64(payload + 4);
  *binary = payload + PTE_PAYLOAD_HEADER_SIZE;
  *binary_size = (size_t)announced;
  return NULL;
}

static const struct {
  ir_dtype dtype;
  int32_t scalar_type;
} scalar_types[] = {
    {IR_F32, PTE_SCALAR_FLOAT}, {IR_F16, PTE_SCALAR_HALF},   {IR_I32, PTE_SCALAR_INT},   {IR_U8, PTE_SCALAR_BYTE},
    {IR_S8, PTE_SCALAR_CHAR},   {IR_U16, PTE_SCALAR_UINT16}, {IR_S16, PTE_SCALAR_SHORT}, {IR_S32, PTE_SCALAR_INT},
};

int32_t pte_scalar_type_of(ir_dtype type) {
  for (size_t i = 0; i < sizeof scalar_types / sizeof *scalar_types; i++) {
    if (scalar_types[i].dtype == type) return scalar_types[i].scalar_type;
  }
  return -1;
}

bool pte_scalar_type_to_dtype(int32_t scalar_type, ir_dtype* out) {
  for (size_t i = 0; i < sizeof scalar_types / sizeof *scalar_types; i++) {
    if (scalar_types[i].scalar_type == scalar_type) {
      *out = scalar_types[i].dtype;
      return true;
    }
  }
  return false;
}
