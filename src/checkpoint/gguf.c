/* One GGUF file (versions 2 and 3): metadata, tensor directory, and the checks that make every later access safe. Files that belong together
 * are gguf_split.c. Layout and limits: docs/formats/gguf.md. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "checkpoint/checkpoint_internal.h"

enum {
  GGUF_MIN_PAIR_BYTES = 8 + 4 + 1,      /* key length, type, one byte of value */
  GGUF_MIN_TENSOR_BYTES = 8 + 4 + 4 + 8 /* name length, rank, type, offset */
};

typedef struct cursor {
  const uint8_t* data;
  size_t size;
  size_t at;
  const char* name;
} cursor;

static genai_status* truncated(const cursor* c, const char* what) {
  return genai_status_create(GENAI_ERROR_BAD_FILE,
                             "%s: the file ends at byte %zu, inside %s; it is truncated or damaged, download it again", c->name, c->size,
                             what);
}

static genai_status* take(cursor* c, size_t size, const char* what, const uint8_t** out) {
  if (size > c->size - c->at) return truncated(c, what);
  *out = c->data + c->at;
  c->at += size;
  return NULL;
}

static genai_status* take_u32(cursor* c, const char* what, uint32_t* out) {
  const uint8_t* p = NULL;
  GENAI_TRY(take(c, 4, what, &p));
  *out = load_u32(p);
  return NULL;
}

static genai_status* take_u64(cursor* c, const char* what, uint64_t* out) {
  const uint8_t* p = NULL;
  GENAI_TRY(take(c, 8, what, &p));
  *out = load_u64(p);
  return NULL;
}

static genai_status* take_string(cursor* c, const char* what, text_view* out) {
  uint64_t length = 0;
  const uint8_t* p = NULL;
  GENAI_TRY(take_u64(c, what, &length));
  if (length > c->size - c->at)
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: %s at byte %zu says it has %llu bytes, but only %zu follow in the file", c->name,
                               what, c->at - 8, (unsigned long long)length, c->size - c->at);
  GENAI_TRY(take(c, (size_t)length, what, &p));
  *out = (text_view){(const char*)p, (size_t)length};
  return NULL;
}

/* A key or tensor name: copied, so that it ends in a NUL. */
static genai_status* take_name(cursor* c, checkpoint* out, const char* what, const char** name) {
  text_view view = {0};
  GENAI_TRY(take_string(c, what, &view));
  if (!view.length || memchr(view.data, 0, view.length))
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: %s at byte %zu is \"%s\", expected a name without NUL bytes", c->name, what,
                               c->at - view.length - 8, quote_name(view.data, view.length).text);
  char* copy = arena_alloc(&out->memory, view.length + 1);
  if (!copy) return genai_status_out_of_memory();
  memcpy(copy, view.data, view.length);
  copy[view.length] = 0;
  *name = copy;
  return NULL;
}

/* Bytes of a scalar of each type; 0 for strings and arrays. */
static const uint8_t scalar_bytes[GGUF_F64 + 1] = {
    [GGUF_U8] = 1,  [GGUF_I8] = 1,   [GGUF_U16] = 2, [GGUF_I16] = 2, [GGUF_U32] = 4, [GGUF_I32] = 4,
    [GGUF_F32] = 4, [GGUF_BOOL] = 1, [GGUF_U64] = 8, [GGUF_I64] = 8, [GGUF_F64] = 8,
};

static float load_f32(const uint8_t* p) {
  float value;
  memcpy(&value, p, sizeof value);
  return value;
}

static double load_f64(const uint8_t* p) {
  double value;
  memcpy(&value, p, sizeof value);
  return value;
}

double gguf_array_number(const gguf_value* array, uint64_t index) {
  if (array->type != GGUF_ARRAY || index >= array->count || !scalar_bytes[array->element]) return 0;
  const uint8_t* p = (const uint8_t*)array->as.items + index * scalar_bytes[array->element];
  switch (array->element) {
    case GGUF_U8:
    case GGUF_BOOL:
      return *p;
    case GGUF_I8:
      return (int8_t)*p;
    case GGUF_U16:
      return load_u16(p);
    case GGUF_I16:
      return (int16_t)load_u16(p);
    case GGUF_U32:
      return load_u32(p);
    case GGUF_I32:
      return (int32_t)load_u32(p);
    case GGUF_F32:
      return (double)load_f32(p);
    case GGUF_U64:
      return (double)load_u64(p);
    case GGUF_I64:
      return (double)(int64_t)load_u64(p);
    default:
      return load_f64(p);
  }
}

static genai_status* bad_type(const cursor* c, const gguf_value* value, const char* what, uint32_t type) {
  return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: metadata \"%s\" has %s %u, expected 0 to 12; the file is damaged", c->name,
                             quote_cstr(value->key).text, what, type);
}

static genai_status* take_array(cursor* c, checkpoint* out, gguf_value* value) {
  uint32_t element = 0;
  GENAI_TRY(take_u32(c, "the element type of a metadata array", &element));
  if (element > GGUF_F64) return bad_type(c, value, "array element type", element);
  if (element == GGUF_ARRAY)
    return genai_status_create(GENAI_ERROR_UNSUPPORTED, "%s: metadata \"%s\" is an array of arrays, which no known model uses", c->name,
                               quote_cstr(value->key).text);
  value->element = (gguf_type)element;
  GENAI_TRY(take_u64(c, "the length of a metadata array", &value->count));
  size_t least = element == GGUF_STRING ? 8 : scalar_bytes[element]; /* an empty string is its length */
  if (value->count > (c->size - c->at) / least)
    return genai_status_create(GENAI_ERROR_BAD_FILE,
                               "%s: metadata \"%s\" says it has %llu elements, more than the %zu bytes that follow can hold", c->name,
                               quote_cstr(value->key).text, (unsigned long long)value->count, c->size - c->at);
  size_t count = (size_t)value->count;
  const uint8_t* items = NULL;
  if (element != GGUF_STRING) {
    GENAI_TRY(take(c, count * least, "a metadata array", &items));
    value->as.items = items;
    return NULL;
  }
  text_view* strings = arena_calloc(&out->memory, count ? count : 1, sizeof *strings);
  if (!strings) return genai_status_out_of_memory();
  for (size_t i = 0; i < count; ++i) GENAI_TRY(take_string(c, "a string of a metadata array", &strings[i]));
  value->as.items = strings;
  return NULL;
}

static genai_status* take_value(cursor* c, checkpoint* out, gguf_value* value) {
  uint32_t type = 0;
  GENAI_TRY(take_u32(c, "the type of a metadata value", &type));
  if (type > GGUF_F64) return bad_type(c, value, "type", type);
  value->type = (gguf_type)type;
  if (value->type == GGUF_STRING) return take_string(c, "a metadata string", &value->as.s);
  if (value->type == GGUF_ARRAY) return take_array(c, out, value);
  const uint8_t* p = NULL;
  GENAI_TRY(take(c, scalar_bytes[type], "a metadata value", &p));
  switch (value->type) {
    case GGUF_U8:
      value->as.u = *p;
      break;
    case GGUF_I8:
      value->as.i = (int8_t)*p;
      break;
    case GGUF_U16:
      value->as.u = load_u16(p);
      break;
    case GGUF_I16:
      value->as.i = (int16_t)load_u16(p);
      break;
    case GGUF_U32:
      value->as.u = load_u32(p);
      break;
    case GGUF_I32:
      value->as.i = (int32_t)load_u32(p);
      break;
    case GGUF_F32:
      value->as.f = (double)load_f32(p);
      break;
    case GGUF_BOOL:
      if (*p > 1)
        return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: metadata \"%s\" is a bool with the byte %u, expected 0 or 1", c->name,
                                   quote_cstr(value->key).text, *p);
      value->as.b = *p;
      break;
    case GGUF_U64:
      value->as.u = load_u64(p);
      break;
    case GGUF_I64:
      value->as.i = (int64_t)load_u64(p);
      break;
    default:
      value->as.f = load_f64(p);
      break;
  }
  return NULL;
}

/* The file's codes of element types (enum ggml_type). Types that are known but not read are named, so that the message can say which. */
static const struct {
  const char* name; /* NULL: never used, or removed from the format */
  int type;         /* element_type, or -1 */
} tensor_types[] = {
    [0] = {"F32", ELEMENT_F32},
    [1] = {"F16", ELEMENT_F16},
    [2] = {"Q4_0", ELEMENT_Q4_0},
    [3] = {"Q4_1", ELEMENT_Q4_1},
    [6] = {"Q5_0", ELEMENT_Q5_0},
    [7] = {"Q5_1", ELEMENT_Q5_1},
    [8] = {"Q8_0", ELEMENT_Q8_0},
    [9] = {"Q8_1", -1},
    [10] = {"Q2_K", ELEMENT_Q2_K},
    [11] = {"Q3_K", ELEMENT_Q3_K},
    [12] = {"Q4_K", ELEMENT_Q4_K},
    [13] = {"Q5_K", ELEMENT_Q5_K},
    [14] = {"Q6_K", ELEMENT_Q6_K},
    [15] = {"Q8_K", -1},
    [16] = {"IQ2_XXS", -1},
    [17] = {"IQ2_XS", -1},
    [18] = {"IQ3_XXS", -1},
    [19] = {"IQ1_S", -1},
    [20] = {"IQ4_NL", ELEMENT_IQ4_NL},
    [21] = {"IQ3_S", -1},
    [22] = {"IQ2_S", -1},
    [23] = {"IQ4_XS", ELEMENT_IQ4_XS},
    [24] = {"I8", -1},
    [25] = {"I16", -1},
    [26] = {"I32", -1},
    [27] = {"I64", -1},
    [28] = {"F64", -1},
    [29] = {"IQ1_M", -1},
    [30] = {"BF16", ELEMENT_BF16},
    [34] = {"TQ1_0", -1},
    [35] = {"TQ2_0", -1},
    [39] = {"MXFP4", ELEMENT_MXFP4},
    [40] = {"NVFP4", -1},
    [41] = {"Q1_0", -1},
};

static genai_status* check_tensor_type(const cursor* c, const char* name, uint32_t code, element_type* out) {
  bool listed = code < sizeof tensor_types / sizeof tensor_types[0] && tensor_types[code].name;
  if (!listed)
    return genai_status_create(GENAI_ERROR_BAD_FILE,
                               "%s: tensor \"%s\" has element type %u, which is not a type of this format; the file is damaged "
                               "or newer than this program",
                               c->name, quote_cstr(name).text, code);
  if (tensor_types[code].type < 0)
    return genai_status_create(GENAI_ERROR_UNSUPPORTED,
                               "%s: tensor \"%s\" has element type %s, which is not read; take a GGUF of F16, BF16, Q8_0, "
                               "Q6_K, Q5_K or Q4_K",
                               c->name, quote_cstr(name).text, tensor_types[code].name);
  *out = (element_type)tensor_types[code].type;
  return NULL;
}

/* One entry of the tensor directory. Until the data section's place is known, tensor->data holds nothing and `*offset` the stored offset. */
static genai_status* take_tensor(cursor* c, checkpoint* out, checkpoint_tensor* tensor, uint64_t* offset) {
  GENAI_TRY(take_name(c, out, "a tensor's name", &tensor->name));
  GENAI_TRY(take_u32(c, "a tensor's rank", &tensor->rank));
  if (tensor->rank > 4)
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: tensor \"%s\" has %u dimensions, expected at most 4; the file is damaged",
                               c->name, quote_cstr(tensor->name).text, tensor->rank);
  for (uint32_t i = tensor->rank; i-- > 0;) GENAI_TRY(take_u64(c, "a tensor's dimensions", &tensor->dims[i])); /* stored innermost first */
  uint32_t code = 0;
  GENAI_TRY(take_u32(c, "a tensor's element type", &code));
  GENAI_TRY(take_u64(c, "a tensor's offset", offset));
  GENAI_TRY(check_tensor_type(c, tensor->name, code, &tensor->type));
  if (!tensor_bytes(tensor->type, tensor->dims, tensor->rank, &tensor->bytes))
    return genai_status_create(GENAI_ERROR_BAD_FILE,
                               "%s: tensor \"%s\" has the shape %s, which is too large or whose last dimension is not a multiple "
                               "of %u as %s needs",
                               c->name, quote_cstr(tensor->name).text, describe_shape(tensor->dims, tensor->rank).text,
                               element_block_size(tensor->type), element_type_name(tensor->type));
  return NULL;
}

typedef struct placed_tensor {
  uint64_t offset;
  size_t index;
} placed_tensor;

static int by_offset(const void* a, const void* b) {
  const placed_tensor* x = a;
  const placed_tensor* y = b;
  if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
  return x->index < y->index ? -1 : x->index > y->index;
}

/* Sets every tensor's data pointer after checking that it lies in the data section, aligned, and apart from the others. `places` is in file
 * order on entry. Bytes after the last tensor are reported in *end_of_tensors. */
static genai_status* place_tensors(const cursor* c, checkpoint* out, size_t first, placed_tensor* places, size_t count, size_t data_at,
                                   uint64_t alignment, size_t* end_of_tensors) {
  size_t available = c->size - data_at;
  for (size_t i = 0; i < count; ++i) {
    checkpoint_tensor* tensor = &out->tensors[first + i];
    uint64_t offset = places[i].offset;
    if (offset % alignment)
      return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: tensor \"%s\" is at offset %llu, expected a multiple of the alignment %llu",
                                 c->name, quote_cstr(tensor->name).text, (unsigned long long)offset, (unsigned long long)alignment);
    if (offset > available || tensor->bytes > available - offset)
      return genai_status_create(GENAI_ERROR_BAD_FILE,
                                 "%s: tensor \"%s\" needs %llu bytes at offset %llu of the data, but the file has only %zu there; "
                                 "it is truncated, download it again",
                                 c->name, quote_cstr(tensor->name).text, (unsigned long long)tensor->bytes, (unsigned long long)offset,
                                 available);
    tensor->data = c->data + data_at + offset;
  }
  qsort(places, count, sizeof *places, by_offset);
  *end_of_tensors = data_at;
  for (size_t i = 0; i < count; ++i) {
    const checkpoint_tensor* tensor = &out->tensors[places[i].index];
    size_t begin = data_at + (size_t)places[i].offset;
    if (tensor->bytes && begin < *end_of_tensors)
      return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: tensors \"%s\" and \"%s\" overlap; the file is damaged", c->name,
                                 quote_cstr(out->tensors[places[i - 1].index].name).text, quote_cstr(tensor->name).text);
    if (tensor->bytes) *end_of_tensors = begin + (size_t)tensor->bytes;
  }
  return NULL;
}

static genai_status* read_alignment(const cursor* c, const checkpoint* out, uint64_t* alignment) {
  *alignment = 32; /* what a file without the key uses */
  const gguf_value* value = checkpoint_metadata(out, "general.alignment");
  if (!value) return NULL;
  if (value->type != GGUF_U32 || !value->as.u || (value->as.u & (value->as.u - 1)))
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: general.alignment is %llu (type %u), expected a power of two of type uint32",
                               c->name, (unsigned long long)value->as.u, value->type);
  *alignment = value->as.u;
  return NULL;
}

static genai_status* take_header(cursor* c, uint64_t* tensor_count, uint64_t* pair_count) {
  const uint8_t* magic = NULL;
  uint32_t version = 0;
  GENAI_TRY(take(c, 4, "the magic", &magic));
  if (memcmp(magic, "GGUF", 4))
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: begins with \"%s\", expected \"GGUF\"", c->name,
                               quote_name((const char*)magic, 4).text);
  GENAI_TRY(take_u32(c, "the version", &version));
  if (version && !(version & 0xFFFF))
    return genai_status_create(GENAI_ERROR_UNSUPPORTED,
                               "%s: a big-endian GGUF file (version %u); convert it with gguf-py's gguf_convert_endian.py, or "
                               "take the usual little-endian file",
                               c->name, __builtin_bswap32(version));
  if (version != 2 && version != 3)
    return genai_status_create(GENAI_ERROR_UNSUPPORTED,
                               "%s: GGUF version %u, expected 2 or 3; convert the model again with a current llama.cpp", c->name, version);
  GENAI_TRY(take_u64(c, "the tensor count", tensor_count));
  GENAI_TRY(take_u64(c, "the metadata count", pair_count));
  size_t left = c->size - c->at;
  if (*pair_count > left / GGUF_MIN_PAIR_BYTES || *tensor_count > left / GGUF_MIN_TENSOR_BYTES)
    return genai_status_create(GENAI_ERROR_BAD_FILE,
                               "%s: the header announces %llu metadata pairs and %llu tensors, more than %zu bytes can hold; the "
                               "file is truncated or damaged",
                               c->name, (unsigned long long)*pair_count, (unsigned long long)*tensor_count, left);
  return NULL;
}

static genai_status* take_tensors(cursor* c, checkpoint* out, size_t count) {
  uint64_t alignment = 0;
  GENAI_TRY(read_alignment(c, out, &alignment));
  GENAI_TRY(checkpoint_reserve_tensors(out, count));
  placed_tensor* places = mem_calloc(count, sizeof *places);
  if (!places) return genai_status_out_of_memory();
  genai_status* status = NULL;
  size_t first = out->tensor_count;
  for (size_t i = 0; i < count; ++i) {
    checkpoint_tensor tensor = {0};
    places[i].index = first + i;
    GENAI_TRY_GOTO(status, take_tensor(c, out, &tensor, &places[i].offset), done);
    GENAI_TRY_GOTO(status, checkpoint_add_tensor(out, &tensor, c->name), done);
  }
  /* The alignment is below 2^32 and the position below 2^63, so this cannot wrap. */
  uint64_t data_at = ((uint64_t)c->at + alignment - 1) & ~(alignment - 1);
  if (!count) goto done;
  if (data_at > c->size) {
    status = truncated(c, "the padding before the tensor data");
    goto done;
  }
  size_t end = 0;
  GENAI_TRY_GOTO(status, place_tensors(c, out, first, places, count, (size_t)data_at, alignment, &end), done);
  uint64_t padded_end = ((uint64_t)end + alignment - 1) & ~(alignment - 1);
  if (c->size > padded_end) {
    const uint8_t* rest = c->data + padded_end;
    if (c->size - padded_end >= 4 && !memcmp(rest, "GGUF", 4)) {
      status = genai_status_create(
          GENAI_ERROR_BAD_FILE,
          "%s: another GGUF file begins at byte %llu, after the last tensor; the parts of a split model "
          "were joined byte by byte. Keep them apart and pass the first, or merge them with \"llama-gguf-split --merge\"",
          c->name, (unsigned long long)padded_end);
      goto done;
    }
    log_write(LOG_WARNING, "%s: %llu bytes follow the last tensor", c->name, (unsigned long long)(c->size - padded_end));
  }
done:
  mem_free(places);
  return status;
}

genai_status* gguf_parse(checkpoint* out, const uint8_t* data, size_t size, const char* name) {
  cursor c = {.data = data, .size = size, .name = name};
  uint64_t tensor_count = 0, pair_count = 0;
  GENAI_TRY(take_header(&c, &tensor_count, &pair_count));
  GENAI_TRY(checkpoint_reserve_metadata(out, (size_t)pair_count));
  for (uint64_t i = 0; i < pair_count; ++i) {
    gguf_value value = {0};
    GENAI_TRY(take_name(&c, out, "a metadata key", &value.key));
    GENAI_TRY(take_value(&c, out, &value));
    GENAI_TRY(checkpoint_add_metadata(out, &value, name));
  }
  out->format = CHECKPOINT_GGUF;
  return take_tensors(&c, out, (size_t)tensor_count);
}
