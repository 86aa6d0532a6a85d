/* Recipes: the shipped ones, and reading and writing them as JSON. What a recipe does to a graph is in assign.c. */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "ir/feedback.h"
#include "quantize/quantize.h"

/* Measured: docs/recipes.md. */
#define COMMON                                                                                                           \
  .activation_bits = 16, .head_bits = 8, .kv_bits = 16, .embedding_bits = 8, .rotate_residual = true, .rotate_qk = true, \
  .split_neurons = true, .feedback = 3, .range_margin = 1.1f
static const recipe shipped[] = {
    {.name = "16a8w", COMMON, .weight_bits = 8},
    {.name = "16a4w", COMMON, .weight_bits = 4, .weight_search = true},
    {.name = "16a4w_block", COMMON, .weight_bits = 4, .weight_block = 32, .weight_search = true},
};

size_t recipe_count(void) {
  return sizeof shipped / sizeof shipped[0];
}

const recipe* recipe_at(size_t index) {
  return index < recipe_count() ? &shipped[index] : NULL;
}

static genai_status* validate(const recipe* self, const char* source) {
  const struct {
    const char* field;
    uint32_t value;
    uint32_t allowed[5];
    size_t n;
  } rules[] = {
      {"activation_bits", self->activation_bits, {16}, 1},
      {"weight_bits", self->weight_bits, {4, 8}, 2},
      {"weight_block", self->weight_block, {0, 16, 32, 64, 128}, 5},
      {"head_bits", self->head_bits, {4, 8}, 2},
      {"kv_bits", self->kv_bits, {8, 16}, 2},
      {"embedding_bits", self->embedding_bits, {8, 16}, 2},
  };
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
    bool found = false;
    text allowed = {0};
    genai_status* status = NULL;
    for (size_t j = 0; j < rules[i].n && !status; j++) {
      found = found || rules[i].allowed[j] == rules[i].value;
      status = text_printf(&allowed, "%s%u", j ? ", " : "", rules[i].allowed[j]);
    }
    if (!status && !found)
      status = genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "%s: %s is %u, expected one of %s", source, rules[i].field,
                                   rules[i].value, allowed.data);
    text_deinit(&allowed);
    if (status) return status;
  }
  if (self->weight_block && self->weight_bits != 4)
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "%s: weight_block is %u with weight_bits %u; blocks need weight_bits 4",
                               source, self->weight_block, self->weight_bits);
  if (self->feedback > IR_FEEDBACK_MAX_DIRECTIONS)
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "%s: feedback is %u, expected 0 to %d directions", source, self->feedback,
                               IR_FEEDBACK_MAX_DIRECTIONS);
  if (!(self->range_margin >= 1.0f && self->range_margin <= 4.0f))
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "%s: range_margin is %g, expected 1 to 4", source,
                               (double)self->range_margin);
  return NULL;
}

typedef struct field {
  const char* name;
  size_t offset;
  enum { FIELD_UINT, FIELD_BOOL, FIELD_FLOAT } type;
} field;

#define FIELD(member, kind) \
  { #member, offsetof(recipe, member), kind }
static const field fields[] = {
    FIELD(activation_bits, FIELD_UINT), FIELD(weight_bits, FIELD_UINT),   FIELD(weight_block, FIELD_UINT),
    FIELD(head_bits, FIELD_UINT),       FIELD(kv_bits, FIELD_UINT),       FIELD(embedding_bits, FIELD_UINT),
    FIELD(rotate_residual, FIELD_BOOL), FIELD(rotate_qk, FIELD_BOOL),     FIELD(split_neurons, FIELD_BOOL),
    FIELD(feedback, FIELD_UINT),        FIELD(range_margin, FIELD_FLOAT), FIELD(weight_search, FIELD_BOOL),
};
enum { N_FIELDS = sizeof fields / sizeof fields[0] };

static genai_status* read_member(recipe* out, const char* source, text_view key, json_value value) {
  char name[64];
  if (key.length >= sizeof name) return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "%s: a member's name is too long", source);
  memcpy(name, key.data, key.length);
  name[key.length] = 0;
  if (!strcmp(name, "base")) return NULL;
  if (!strcmp(name, "name")) {
    text_view given = json_string(value);
    if (!given.data || given.length >= sizeof out->name)
      return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "%s: name must be a string of at most %zu bytes", source,
                                 sizeof out->name - 1);
    memset(out->name, 0, sizeof out->name);
    memcpy(out->name, given.data, given.length);
    return NULL;
  }
  const char* names[N_FIELDS];
  for (size_t i = 0; i < N_FIELDS; i++) {
    names[i] = fields[i].name;
    if (strcmp(name, fields[i].name)) continue;
    uint8_t* target = (uint8_t*)out + fields[i].offset;
    json_type type = json_type_of(value);
    if (fields[i].type == FIELD_BOOL && type == JSON_BOOL) {
      *(bool*)target = json_bool(value, false);
      return NULL;
    }
    if (fields[i].type == FIELD_UINT && type == JSON_INTEGER && json_integer(value, -1) >= 0 && json_integer(value, -1) <= 1024) {
      *(uint32_t*)(void*)target = (uint32_t)json_integer(value, 0);
      return NULL;
    }
    if (fields[i].type == FIELD_FLOAT && (type == JSON_NUMBER || type == JSON_INTEGER)) {
      *(float*)(void*)target = (float)json_number(value, 0);
      return NULL;
    }
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "%s: %s must be a %s", source, name,
                               fields[i].type == FIELD_BOOL   ? "boolean"
                               : fields[i].type == FIELD_UINT ? "small whole number"
                                                              : "number");
  }
  const char* nearest = text_nearest(name, names, N_FIELDS);
  return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "%s: unknown member \"%s\"%s%s%s", source, name,
                             nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
}

const recipe* recipe_find(const char* name) {
  for (size_t i = 0; i < recipe_count(); i++) {
    if (!strcmp(shipped[i].name, name)) return &shipped[i];
  }
  return NULL;
}

static genai_status* unknown_recipe(const char* name) {
  const char* names[sizeof shipped / sizeof shipped[0]];
  for (size_t i = 0; i < recipe_count(); i++) names[i] = shipped[i].name;
  const char* nearest = text_nearest(name, names, recipe_count());
  return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION,
                             "unknown recipe \"%s\"%s%s%s; shipped recipes: 16a8w, 16a4w, 16a4w_block; or give the path of a JSON file",
                             name, nearest ? ", did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
}

genai_status* recipe_load(const char* name_or_path, recipe* out) {
  const recipe* known = recipe_find(name_or_path);
  if (known) {
    *out = *known;
    return NULL;
  }
  if (!file_exists(name_or_path) || path_is_directory(name_or_path)) return unknown_recipe(name_or_path);
  json_document* document = NULL;
  genai_status* status = json_parse_file(name_or_path, 1 << 20, &document);
  if (status) return genai_status_wrap(status, GENAI_ERROR_CONFIG_VALIDATION, "recipe file \"%s\" cannot be read", name_or_path);
  recipe result = shipped[0];
  json_value root = json_root(document);
  if (json_type_of(root) != JSON_OBJECT) {
    status = genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "recipe file \"%s\" holds no JSON object", name_or_path);
    goto done;
  }
  text_view base = json_string(json_get(root, "base"));
  if (base.data) {
    char* name = mem_strndup(base.data, base.length);
    if (!name) {
      status = genai_status_out_of_memory();
      goto done;
    }
    known = recipe_find(name);
    status = known ? NULL : unknown_recipe(name);
    mem_free(name);
    if (status) goto done;
    result = *known;
  }
  memset(result.name, 0, sizeof result.name);
  memcpy(result.name, "custom", sizeof "custom");
  json_iterator iterator = json_iterate(root);
  text_view key;
  json_value value;
  while (!status && json_next(&iterator, &key, &value)) status = read_member(&result, name_or_path, key, value);
  if (!status) status = validate(&result, name_or_path);
  if (!status) *out = result;
done:
  json_free(document);
  return status;
}

void recipe_adapt(recipe* self, const model* source) {
  model_info info;
  model_get_info(source, &info);
  if (self->rotate_qk && info.head_dim & (info.head_dim - 1)) {
    log_write(LOG_WARNING, "recipe %s: queries and keys are not rotated, the head size %u is not a power of two", self->name,
              info.head_dim);
    self->rotate_qk = false;
  }
}

genai_status* recipe_write_json(const recipe* self, text* out) {
  json_writer writer;
  json_writer_init(&writer, out, true);
  json_begin_object(&writer);
  json_key(&writer, "name");
  json_write_string(&writer, self->name);
  for (size_t i = 0; i < N_FIELDS; i++) {
    const uint8_t* source = (const uint8_t*)self + fields[i].offset;
    json_key(&writer, fields[i].name);
    switch (fields[i].type) {
      case FIELD_BOOL:
        json_write_bool(&writer, *(const bool*)source);
        break;
      case FIELD_UINT:
        json_write_unsigned(&writer, *(const uint32_t*)(const void*)source);
        break;
      case FIELD_FLOAT:
        json_write_number(&writer, (double)*(const float*)(const void*)source);
        break;
    }
  }
  json_end_object(&writer);
  return json_writer_finish(&writer);
}
