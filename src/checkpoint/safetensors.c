/* One safetensors file: its JSON header and the checks that make every later access safe. Which files make up a model is hugging_face.c. Layout
 * and limits: docs/formats/safetensors.md. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "checkpoint/checkpoint_internal.h"

/* The cap of the reference implementation (safetensors/src/tensor.rs, MAX_HEADER_SIZE). */
#define MAX_HEADER_BYTES 100000000u

enum { MAX_RANK = 16 };

/* What becomes of a stored type: listed, passed over (masks and position ids that models do not need), or a sign of a quantized checkpoint. */
typedef enum dtype_use { DTYPE_FLOAT, DTYPE_PASSED_OVER, DTYPE_QUANTIZED, DTYPE_UNSUPPORTED } dtype_use;
typedef struct dtype {
  const char* name;
  uint32_t bits;
  dtype_use use;
  element_type type; /* for DTYPE_FLOAT */
} dtype;

static const dtype dtypes[] = {
    {"F32", 32, DTYPE_FLOAT, ELEMENT_F32},  {"F16", 16, DTYPE_FLOAT, ELEMENT_F16},  {"BF16", 16, DTYPE_FLOAT, ELEMENT_BF16},
    {"BOOL", 8, DTYPE_PASSED_OVER, 0},      {"U8", 8, DTYPE_PASSED_OVER, 0},        {"I16", 16, DTYPE_PASSED_OVER, 0},
    {"U16", 16, DTYPE_PASSED_OVER, 0},      {"I32", 32, DTYPE_PASSED_OVER, 0},      {"U32", 32, DTYPE_PASSED_OVER, 0},
    {"I64", 64, DTYPE_PASSED_OVER, 0},      {"U64", 64, DTYPE_PASSED_OVER, 0},      {"I8", 8, DTYPE_QUANTIZED, 0},
    {"F8_E4M3", 8, DTYPE_QUANTIZED, 0},     {"F8_E5M2", 8, DTYPE_QUANTIZED, 0},     {"F8_E8M0", 8, DTYPE_QUANTIZED, 0},
    {"F8_E4M3FNUZ", 8, DTYPE_QUANTIZED, 0}, {"F8_E5M2FNUZ", 8, DTYPE_QUANTIZED, 0}, {"F6_E2M3", 6, DTYPE_QUANTIZED, 0},
    {"F6_E3M2", 6, DTYPE_QUANTIZED, 0},     {"F4", 4, DTYPE_QUANTIZED, 0},          {"F64", 64, DTYPE_UNSUPPORTED, 0},
    {"C64", 64, DTYPE_UNSUPPORTED, 0},
};

typedef struct entry {
  const char* name;
  uint64_t begin, end; /* in the data that follows the header */
  bool listed;
  checkpoint_tensor tensor; /* if listed */
} entry;

/* The file while it is read. */
typedef struct reader {
  checkpoint* out;
  const char* source;
  const uint8_t* data; /* after the header */
  uint64_t data_size;
  entry* entries;
  size_t entry_count;
} reader;

static genai_status* bad_entry(const reader* r, const char* name, const char* what) {
  return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: tensor \"%s\" %s; the file is damaged", r->source, quote_cstr(name).text, what);
}

static const dtype* find_dtype(text_view name) {
  for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; ++i) {
    if (text_view_equal_cstr(name, dtypes[i].name)) return &dtypes[i];
  }
  return NULL;
}

/* Packed weights of bitsandbytes, GPTQ, AWQ and compressed-tensors come in types that plain models use for masks. */
static bool is_packed_weight(const char* name) {
  return name_ends_with(name, ".weight") || name_ends_with(name, "qweight") || name_ends_with(name, "qzeros") ||
         name_ends_with(name, "weight_packed");
}

static genai_status* read_shape(const reader* r, json_value value, const char* name, uint64_t dims[MAX_RANK], uint32_t* rank,
                                uint64_t* elements) {
  if (json_type_of(value) != JSON_ARRAY) return bad_entry(r, name, "has no \"shape\" list");
  if (json_count(value) > MAX_RANK) return bad_entry(r, name, "has more than 16 dimensions");
  *rank = 0;
  *elements = 1;
  json_iterator iterator = json_iterate(value);
  json_value item;
  while (json_next(&iterator, NULL, &item)) {
    int64_t extent = json_type_of(item) == JSON_INTEGER ? json_integer(item, -1) : -1;
    if (extent < 0) return bad_entry(r, name, "has a dimension that is not a whole number of at least 0");
    if (!u64_mul(*elements, (uint64_t)extent, elements)) return bad_entry(r, name, "has a shape whose product does not fit in 64 bits");
    dims[(*rank)++] = (uint64_t)extent;
  }
  return NULL;
}

static genai_status* read_offsets(const reader* r, json_value value, entry* e) {
  int64_t offsets[2] = {-1, -1};
  json_iterator iterator = json_iterate(value);
  json_value item;
  for (int i = 0; i < 2 && json_next(&iterator, NULL, &item); ++i)
    offsets[i] = json_type_of(item) == JSON_INTEGER ? json_integer(item, -1) : -1;
  if (json_type_of(value) != JSON_ARRAY || json_count(value) != 2 || offsets[0] < 0 || offsets[1] < 0)
    return bad_entry(r, e->name, "has no \"data_offsets\" pair of whole numbers");
  if (offsets[0] > offsets[1]) return bad_entry(r, e->name, "ends before it begins (\"data_offsets\")");
  e->begin = (uint64_t)offsets[0];
  e->end = (uint64_t)offsets[1];
  if (e->end > r->data_size)
    return genai_status_create(GENAI_ERROR_BAD_FILE,
                               "%s: tensor \"%s\" ends at byte %llu of the data, but the file has only %llu there; it is truncated, "
                               "download it again",
                               r->source, quote_cstr(e->name).text, (unsigned long long)e->end, (unsigned long long)r->data_size);
  return NULL;
}

/* Notes a tensor that is in the file but not listed, so that an index that mentions it is not called wrong. */
static genai_status* pass_over(const reader* r, const char* name) {
  bool added;
  GENAI_TRY(name_table_add(&r->out->passed_over, name, 0, &added));
  return added ? NULL : bad_entry(r, name, "is there twice");
}

static genai_status* read_entry(reader* r, text_view key, json_value value) {
  if (!key.length || memchr(key.data, 0, key.length))
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: a tensor is named \"%s\", expected a name without NUL bytes", r->source,
                               quote_name(key.data, key.length).text);
  char* name = arena_alloc(&r->out->memory, key.length + 1);
  if (!name) return genai_status_out_of_memory();
  memcpy(name, key.data, key.length);
  name[key.length] = 0;
  entry* e = &r->entries[r->entry_count++];
  e->name = name;
  GENAI_TRY(read_offsets(r, json_get(value, "data_offsets"), e));
  uint64_t dims[MAX_RANK];
  uint64_t elements = 0;
  uint32_t rank = 0;
  GENAI_TRY(read_shape(r, json_get(value, "shape"), name, dims, &rank, &elements));
  text_view type_name = json_string(json_get(value, "dtype"));
  const dtype* type = find_dtype(type_name);
  if (!type) {
    /* Written by some training frameworks for a tied output head. The model builder knows whether the tensor is needed. */
    if (e->begin != e->end)
      return genai_status_create(GENAI_ERROR_UNSUPPORTED,
                                 "%s: tensor \"%s\" has dtype \"%s\", which is not known; expected F32, F16 or BF16", r->source,
                                 quote_cstr(name).text, quote_name(type_name.data, type_name.length).text);
    log_write(LOG_WARNING, "%s: tensor \"%s\" has dtype \"%s\" and no data; it is ignored", r->source, quote_cstr(name).text,
              quote_name(type_name.data, type_name.length).text);
    return pass_over(r, name);
  }
  uint64_t bits;
  if (!u64_mul(elements, type->bits, &bits) || bits % 8 || bits / 8 != e->end - e->begin)
    return genai_status_create(GENAI_ERROR_BAD_FILE,
                               "%s: tensor \"%s\" of shape %s and dtype %s has %llu bytes of data; the file is damaged", r->source,
                               quote_cstr(name).text, describe_shape(dims, rank).text, type->name, (unsigned long long)(e->end - e->begin));
  if (type->use == DTYPE_QUANTIZED || (type->use == DTYPE_PASSED_OVER && is_packed_weight(name)))
    return genai_status_create(GENAI_ERROR_UNSUPPORTED,
                               "%s: tensor \"%s\" has dtype %s: the checkpoint is quantized already, and genai quantizes itself; "
                               "take the original checkpoint in BF16, F16 or F32",
                               r->source, quote_cstr(name).text, type->name);
  if (type->use == DTYPE_UNSUPPORTED)
    return genai_status_create(GENAI_ERROR_UNSUPPORTED, "%s: tensor \"%s\" has dtype %s, expected F32, F16 or BF16; convert the checkpoint",
                               r->source, quote_cstr(name).text, type->name);
  if (type->use == DTYPE_PASSED_OVER || rank > 4) {
    log_write(LOG_DEBUG, "%s: tensor \"%s\" (%s, rank %u) is passed over", r->source, quote_cstr(name).text, type->name, rank);
    return pass_over(r, name);
  }
  e->listed = true;
  e->tensor = (checkpoint_tensor){.name = name, .type = type->type, .rank = rank, .data = r->data + e->begin, .bytes = e->end - e->begin};
  memcpy(e->tensor.dims, dims, rank * sizeof dims[0]);
  return NULL;
}

static int by_place(const void* a, const void* b) {
  const entry* x = a;
  const entry* y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return x->end < y->end ? -1 : x->end > y->end;
}

/* The tensors must fill the data exactly, in any order: a hole or an overlap is a sign of damage, or of bytes hidden from other readers. */
static genai_status* check_places(const reader* r) {
  qsort(r->entries, r->entry_count, sizeof *r->entries, by_place);
  uint64_t end = 0;
  for (size_t i = 0; i < r->entry_count; ++i) {
    const entry* e = &r->entries[i];
    if (e->begin < end)
      return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: tensors \"%s\" and \"%s\" overlap; the file is damaged", r->source,
                                 quote_cstr(r->entries[i - 1].name).text, quote_cstr(e->name).text);
    if (e->begin > end)
      return genai_status_create(GENAI_ERROR_BAD_FILE,
                                 "%s: no tensor covers bytes %llu to %llu of the data, before tensor \"%s\"; the file is damaged",
                                 r->source, (unsigned long long)end, (unsigned long long)e->begin, quote_cstr(e->name).text);
    end = e->end;
  }
  if (end != r->data_size)
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: %llu bytes follow the last tensor; the file is damaged", r->source,
                               (unsigned long long)(r->data_size - end));
  return NULL;
}

static genai_status* read_entries(reader* r, json_value root) {
  size_t count = json_count(root);
  r->entries = mem_calloc(count, sizeof *r->entries);
  if (!r->entries) return genai_status_out_of_memory();
  GENAI_TRY(checkpoint_reserve_tensors(r->out, count));
  json_iterator iterator = json_iterate(root);
  text_view key;
  json_value value;
  while (json_next(&iterator, &key, &value)) {
    if (!text_view_equal_cstr(key, "__metadata__")) GENAI_TRY(read_entry(r, key, value));
  }
  GENAI_TRY(check_places(r));
  for (size_t i = 0; i < r->entry_count; ++i) {
    if (r->entries[i].listed) GENAI_TRY(checkpoint_add_tensor(r->out, &r->entries[i].tensor, r->source));
  }
  return NULL;
}

genai_status* safetensors_parse(checkpoint* out, const uint8_t* data, size_t size, const char* name) {
  if (size < 8)
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: %zu bytes, too short for a safetensors file; download it again", name, size);
  uint64_t header = load_u64(data);
  if (header > MAX_HEADER_BYTES)
    return genai_status_create(GENAI_ERROR_BAD_FILE,
                               "%s: the header says it has %llu bytes, more than the %u that the safetensors format allows; this is "
                               "no safetensors file, or a damaged one",
                               name, (unsigned long long)header, MAX_HEADER_BYTES);
  if (header > size - 8)
    return genai_status_create(GENAI_ERROR_BAD_FILE,
                               "%s: the header says it has %llu bytes, but only %zu follow; the file is truncated, download it again", name,
                               (unsigned long long)header, size - 8);
  if (!header || data[8] != '{')
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: the header is not a JSON object; this is no safetensors file, or a damaged one",
                               name);
  json_document* document;
  genai_status* status = json_parse((const char*)data + 8, (size_t)header, name, &document);
  if (status) return genai_status_wrap(status, genai_status_kind(status), "%s: the safetensors header cannot be read", name);
  reader r = {.out = out, .source = name, .data = data + 8 + header, .data_size = size - 8 - header};
  status = read_entries(&r, json_root(document));
  mem_free(r.entries);
  json_free(document);
  return status;
}
