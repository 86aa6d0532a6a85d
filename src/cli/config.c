/* The file of a run's options: JSON to arguments and back. What options mean is not here. */
#include "cli/config.h"

#include <string.h>

#include "base/file.h"
#include "base/memory.h"

enum { MAX_CONFIG = 64 << 20 };

/* Options of the command line that say what to do with a configuration, not what it is. */
static bool belongs_in_file(const option_spec* option) {
  static const char* const others[] = {"--config", "--print-config", "--set", "--json", "--verbose"};
  if (!option->name) return false;
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    if (!strcmp(option->name, others[i])) return false;
  }
  return true;
}

/* "--prefill-ar" is the key "prefill_ar". */
static bool is_key_of(const option_spec* option, const char* key) {
  if (!belongs_in_file(option)) return false;
  const char* name = option->name + 2;
  for (; *name && *key; name++, key++) {
    if ((*name == '-' ? '_' : *name) != *key) return false;
  }
  return !*name && !*key;
}

/* ---- Reading ---- */
static genai_status* unknown_key(const config* self, const char* path, const char* key) {
  const command_spec* command = self->merged.command;
  const char** names = mem_calloc(command->n_options + 2, sizeof *names);
  arena memory = {0};
  if (!names) return genai_status_out_of_memory();
  size_t n = 0;
  names[n++] = "model";
  names[n++] = "options";
  genai_status* status = NULL;
  for (size_t i = 0; !status && i < command->n_options; i++) {
    if (!belongs_in_file(&command->options[i])) continue;
    char* name = arena_strdup(&memory, command->options[i].name + 2);
    if (!name) status = genai_status_out_of_memory();
    for (char* c = name; c && *c; c++) *c = *c == '-' ? '_' : *c;
    names[n++] = name;
  }
  const char* nearest = status ? NULL : text_nearest(key, names, n);
  if (!status)
    status =
        nearest ? genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "\"%s\": unknown key \"%s\"; did you mean \"%s\"?", path, key, nearest)
                : genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "\"%s\": unknown key \"%s\"; genai %s --print-config shows the keys",
                                      path, key, command->name);
  arena_deinit(&memory);
  mem_free(names);
  return status;
}

static genai_status* wrong_type(const char* path, const char* key, const char* expected) {
  return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "\"%s\": key \"%s\" holds another type of value than expected: %s", path, key,
                             expected);
}

/* A string, number or boolean as the command line would have it. */
static genai_status* scalar(config* self, const char* path, const char* key, json_value value, const char** out) {
  text_view string = json_string(value);
  *out = NULL;
  text digits = {0};
  json_writer writer;
  switch (json_type_of(value)) {
    case JSON_STRING:
      if (memchr(string.data, 0, string.length)) return wrong_type(path, key, "text without NUL characters");
      *out = arena_printf(&self->memory, "%.*s", (int)string.length, string.data);
      break;
    case JSON_BOOL:
      *out = json_bool(value, false) ? "true" : "false";
      break;
    case JSON_INTEGER:
      *out = arena_printf(&self->memory, "%lld", (long long)json_integer(value, 0));
      break;
    case JSON_NUMBER: /* the shortest form that reads back equal */
      json_writer_init(&writer, &digits, false);
      json_write_number(&writer, json_number(value, 0));
      genai_status* status = json_writer_finish(&writer);
      if (!status) *out = arena_strdup(&self->memory, digits.data);
      text_deinit(&digits);
      if (status) return status;
      break;
    default:
      return wrong_type(path, key, "text, a number, true or false");
  }
  return *out ? NULL : genai_status_out_of_memory();
}

static genai_status* append(config* self, size_t option, const char* value) {
  void* grown = mem_realloc_array(self->merged.given, self->merged.count + 1, sizeof self->merged.given[0]);
  if (!grown) return genai_status_out_of_memory();
  self->merged.given = grown;
  self->merged.given[self->merged.count].option = option;
  self->merged.given[self->merged.count++].value = value;
  return NULL;
}

/* [1, 2, 3] as "1,2,3"; `out` stays NULL for another list. */
static genai_status* id_list(config* self, json_value list, const char** out) {
  text ids = {0};
  genai_status* status = NULL;
  json_value item;
  bool numbers = json_type_of(list) == JSON_ARRAY && json_count(list);
  for (json_iterator it = json_iterate(list); numbers && json_next(&it, NULL, &item);) numbers = json_type_of(item) == JSON_INTEGER;
  for (json_iterator it = json_iterate(list); numbers && !status && json_next(&it, NULL, &item);)
    status = text_printf(&ids, "%s%lld", ids.length ? "," : "", (long long)json_integer(item, 0));
  if (!status && numbers && !(*out = arena_strdup(&self->memory, ids.data))) status = genai_status_out_of_memory();
  text_deinit(&ids);
  return status;
}

/* One element of an option that may be given several times. */
static genai_status* append_element(config* self, const char* path, const char* key, size_t option, json_value value) {
  const char* converted = NULL;
  if (!strcmp(key, "ids")) GENAI_TRY(id_list(self, value, &converted));
  if (!converted) GENAI_TRY(scalar(self, path, key, value, &converted));
  return append(self, option, converted);
}

/* {"compilation": "qairt"} as "compilation=qairt". */
static genai_status* append_members(config* self, const char* path, const char* key, size_t option, json_value object) {
  text_view name;
  json_value value;
  for (json_iterator it = json_iterate(object); json_next(&it, &name, &value);) {
    const char* converted;
    GENAI_TRY(scalar(self, path, key, value, &converted));
    const char* pair = arena_printf(&self->memory, "%.*s=%s", (int)name.length, name.data, converted);
    if (!pair) return genai_status_out_of_memory();
    GENAI_TRY(append(self, option, pair));
  }
  return NULL;
}

static genai_status* read_option(config* self, const char* path, const char* key, size_t option, json_value value) {
  const option_spec* spec = &self->merged.command->options[option];
  json_type type = json_type_of(value);
  if (type == JSON_NULL) return NULL; /* as if it were not there */
  if (!spec->value) {
    if (type != JSON_BOOL) return wrong_type(path, key, "true or false");
    return json_bool(value, false) ? append(self, option, NULL) : NULL;
  }
  if (spec->repeats && type == JSON_OBJECT) return append_members(self, path, key, option, value);
  const char* one_list = NULL; /* "ids": [1, 2, 3] is one prompt, "ids": [[1, 2], [3]] are two */
  if (!strcmp(key, "ids")) GENAI_TRY(id_list(self, value, &one_list));
  if (!spec->repeats || type != JSON_ARRAY || one_list) return append_element(self, path, key, option, value);
  json_value item;
  for (json_iterator it = json_iterate(value); json_next(&it, NULL, &item);) GENAI_TRY(append_element(self, path, key, option, item));
  return NULL;
}

/* Prompts of the command line take the place of the file's, in whichever form. */
static bool command_line_has(const arguments* given, const char* option) {
  if (!strcmp(option, "--prompt") || !strcmp(option, "--ids")) return argument_given(given, "--prompt") || argument_given(given, "--ids");
  return argument_given(given, option);
}

static genai_status* read_key(config* self, const arguments* given, const char* path, const char* key, json_value value) {
  const command_spec* command = self->merged.command;
  if (json_type_of(value) == JSON_NULL && (!strcmp(key, "model") || !strcmp(key, "options"))) return NULL; /* as if it were not there */
  if (!strcmp(key, "model")) {
    const char* model;
    GENAI_TRY(scalar(self, path, key, value, &model));
    if (!self->merged.n_positionals) self->merged.positionals[self->merged.n_positionals++] = model;
    return NULL;
  }
  if (!strcmp(key, "options")) {
    if (json_type_of(value) != JSON_OBJECT) return wrong_type(path, key, "an object of the pipeline's options");
    text_view name;
    json_value member;
    for (json_iterator it = json_iterate(value); json_next(&it, &name, &member);) {
      const char* converted;
      const char* copy = arena_printf(&self->memory, "%.*s", (int)name.length, name.data);
      if (!copy) return genai_status_out_of_memory();
      if (json_type_of(member) == JSON_NULL) continue;
      GENAI_TRY(scalar(self, path, copy, member, &converted));
      GENAI_TRY(genai_options_set(self->options, copy, converted));
    }
    return NULL;
  }
  for (size_t i = 0; i < command->n_options; i++) {
    if (!is_key_of(&command->options[i], key)) continue;
    return command_line_has(given, command->options[i].name) ? NULL : read_option(self, path, key, i, value);
  }
  return unknown_key(self, path, key);
}

static genai_status* read_file(config* self, const arguments* given, const char* path) {
  json_document* document = NULL;
  text content = {0};
  genai_status* status = file_read_all(path, MAX_CONFIG, &content); /* not mapped: another program may write it into a pipe */
  if (!status) status = json_parse(content.data ? content.data : "", content.length, path, &document);
  text_deinit(&content);
  if (status) return status;
  if (json_type_of(json_root(document)) != JSON_OBJECT)
    status = genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "\"%s\" is no JSON object; genai %s --print-config writes one", path,
                                 given->command->name);
  text_view name;
  json_value value;
  for (json_iterator it = json_iterate(json_root(document)); !status && json_next(&it, &name, &value);) {
    const char* key = arena_printf(&self->memory, "%.*s", (int)name.length, name.data);
    status = key ? read_key(self, given, path, key, value) : genai_status_out_of_memory();
  }
  json_free(document);
  return status;
}

genai_status* config_merge(const arguments* given, config* out) {
  config self = {.merged = *given};
  self.merged.given = mem_dup(given->given, (given->count + 1) * sizeof given->given[0]);
  self.merged.positionals = mem_calloc(given->n_positionals + 1, sizeof *self.merged.positionals);
  genai_status* status = self.merged.given && self.merged.positionals ? genai_options_create(&self.options) : genai_status_out_of_memory();
  for (size_t i = 0; !status && i < given->n_positionals; i++) self.merged.positionals[i] = given->positionals[i];
  if (!status && argument_given(given, "--config")) status = read_file(&self, given, argument_value(given, "--config"));
  if (status) {
    config_deinit(&self);
    return status;
  }
  *out = self;
  return NULL;
}

void config_deinit(config* self) {
  mem_free(self->merged.given);
  mem_free(self->merged.positionals);
  genai_options_destroy(self->options);
  arena_deinit(&self->memory);
  *self = (config){0};
}

/* ---- Writing ---- */
static genai_status* write_value(json_writer* writer, const genai_option_spec* spec, const char* value) {
  switch (spec->kind) {
    case GENAI_OPTION_INTEGER:
    case GENAI_OPTION_NUMBER: {
      json_document* number; /* its own text is JSON once it was validated, but for forms such as "+1" */
      genai_status* status = json_parse(value, strlen(value), spec->name, &number);
      bool whole = !status && json_type_of(json_root(number)) == JSON_INTEGER;
      if (whole) {
        json_write_integer(writer, json_integer(json_root(number), 0));
      } else if (!status && json_type_of(json_root(number)) == JSON_NUMBER) {
        json_write_number(writer, json_number(json_root(number), 0));
      } else {
        json_write_string(writer, value);
      }
      if (status && genai_status_kind(status) == GENAI_ERROR_OUT_OF_MEMORY) return status;
      if (!status) json_free(number);
      genai_status_free(status);
      return NULL;
    }
    case GENAI_OPTION_FLAG:
      json_write_bool(writer, !strcmp(value, "true") || !strcmp(value, "1"));
      return NULL;
    case GENAI_OPTION_TEXT:
    case GENAI_OPTION_CHOICE:
      break;
  }
  json_write_string(writer, value);
  return NULL;
}

typedef struct option_tables {
  const genai_option_spec* lists[GENAI_STAGE_COUNT + 1];
  size_t counts[GENAI_STAGE_COUNT + 1];
  size_t n;
} option_tables;

/* The tables of a pipeline, each once. */
static option_tables tables_of(const genai_pipeline* pipeline) {
  option_tables tables = {{genai_pipeline_option_table}, {GENAI_PIPELINE_OPTION_COUNT}, 1};
  for (unsigned i = 0; i < GENAI_STAGE_COUNT; i++) {
    genai_stage* stage = genai_pipeline_stage(pipeline, (genai_stage_kind)i);
    if (!stage || !genai_stage_strategy(stage)->vtable->options) continue;
    const genai_strategy_vtable* vtable = genai_stage_strategy(stage)->vtable;
    bool known = false;
    for (size_t j = 0; j < tables.n; j++) known |= tables.lists[j] == vtable->options;
    if (known) continue;
    tables.lists[tables.n] = vtable->options;
    tables.counts[tables.n++] = vtable->n_options;
  }
  return tables;
}

static genai_status* write_options(json_writer* writer, const option_tables* tables, const genai_options* options) {
  json_key(writer, "options");
  json_begin_object(writer);
  for (size_t table = 0; table < tables->n; table++) {
    for (size_t i = 0; i < tables->counts[table]; i++) {
      const genai_option_spec* spec = &tables->lists[table][i];
      bool repeated = !strcmp(spec->name, "from") || !strcmp(spec->name, "soc_file"); /* keys of their own */
      for (size_t earlier = 0; earlier < table; earlier++) {
        for (size_t j = 0; j < tables->counts[earlier]; j++) repeated |= !strcmp(tables->lists[earlier][j].name, spec->name);
      }
      const char* value = genai_options_get(options, spec->name);
      if (repeated || (!value && !spec->default_value)) continue;
      json_key(writer, spec->name);
      GENAI_TRY(write_value(writer, spec, value ? value : spec->default_value));
    }
  }
  json_end_object(writer);
  return NULL;
}

static void write_texts(json_writer* writer, const char* key, const arguments* merged, const char* option) {
  json_key(writer, key);
  json_begin_array(writer);
  for (size_t i = 0; i < argument_count(merged, option); i++) json_write_string(writer, argument_at(merged, option, i));
  json_end_array(writer);
}

static void write_prompts(json_writer* writer, const genai_context* context) {
  json_key(writer, "prompt");
  json_begin_array(writer);
  for (size_t i = 0; i < genai_context_prompt_count(context); i++) {
    if (genai_context_prompt_text(context, i)) json_write_string(writer, genai_context_prompt_text(context, i));
  }
  json_end_array(writer);
  json_key(writer, "ids");
  json_begin_array(writer);
  for (size_t i = 0; i < genai_context_prompt_count(context); i++) {
    size_t count = 0;
    const int32_t* ids = genai_context_prompt_ids(context, i, &count);
    if (!ids) continue;
    json_begin_array(writer);
    for (size_t j = 0; j < count; j++) json_write_integer(writer, ids[j]);
    json_end_array(writer);
  }
  json_end_array(writer);
}

static void write_strings(json_writer* writer, const arguments* merged, const genai_engine_proxy* proxy, const genai_context* context) {
  const struct {
    const char* key;
    const char* value;
  } strings[] = {{"model", genai_context_model(context)},
                 {"soc", genai_context_soc(context)},
                 {"soc_file", argument_value(merged, "--soc-file")},
                 {"artifact_dir", genai_context_artifact_directory(context)},
                 {"backend", genai_backend_name(genai_engine_proxy_backend(proxy))},
                 {"from", argument_value(merged, "--from")},
                 {"until", argument_value(merged, "--until")}};
  for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
    json_key(writer, strings[i].key);
    json_write_string(writer, strings[i].value);
  }
}

genai_status* config_print(const arguments* merged, const genai_engine_proxy* proxy, const genai_pipeline* pipeline,
                           const genai_context* context) {
  const genai_options* options = genai_context_options(context);
  option_tables tables = tables_of(pipeline);
  GENAI_TRY(genai_options_validate(options, tables.lists, tables.counts, tables.n));
  text out = {0};
  json_writer writer;
  json_writer_init(&writer, &out, true);
  json_begin_object(&writer);
  write_strings(&writer, merged, proxy, context);
  write_texts(&writer, "skip", merged, "--skip");
  json_key(&writer, "engine");
  json_begin_object(&writer);
  for (unsigned i = 0; i < GENAI_STAGE_COUNT; i++) {
    json_key(&writer, genai_stage_name((genai_stage_kind)i));
    json_write_string(&writer, genai_engine_proxy_engine(proxy, (genai_stage_kind)i));
  }
  json_end_object(&writer);
  write_prompts(&writer, context);
  genai_status* status = write_options(&writer, &tables, options);
  json_end_object(&writer);
  genai_status* finished = status ? NULL : cli_print_json(&writer, &out);
  text_deinit(&out);
  return status ? status : finished;
}
