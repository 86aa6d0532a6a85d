/* The public face of chat templates: messages, tools and options become the variables of a Jinja template, as transformers'
 * apply_chat_template prepares them. The language itself is in the jinja_ files. */
#include "tokenizer/chat_template.h"

#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "tokenizer/jinja_evaluate.h"

struct chat_template {
  jinja_tree tree;
};

enum { TREE_MEMORY = 64 << 20, RENDER_MEMORY = 256 << 20 };

genai_status* chat_template_parse(const char* source, size_t length, chat_template** out) {
  chat_template* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  self->tree.heap.limit = TREE_MEMORY;
  genai_status* status = jinja_parse(source, length, &self->tree);
  if (status) {
    chat_template_free(self);
    return status;
  }
  *out = self;
  return NULL;
}

void chat_template_free(chat_template* self) {
  if (!self) return;
  jinja_tree_deinit(&self->tree);
  mem_free(self);
}

/* Strings stay in the document, which outlives the rendering. */
static genai_status* from_json(jinja_machine* machine, json_value json, unsigned depth, jinja_value* out) {
  if (depth > JINJA_MAX_VALUE_DEPTH) {
    return genai_status_create(GENAI_ERROR_LIMIT, "messages, tools or variables of a chat template nested more than %d deep",
                               JINJA_MAX_VALUE_DEPTH);
  }
  switch (json_type_of(json)) {
    case JSON_BOOL:
      *out = jinja_bool(json_bool(json, false));
      return NULL;
    case JSON_INTEGER:
      *out = jinja_integer(json_integer(json, 0));
      return NULL;
    case JSON_NUMBER:
      *out = jinja_real(json_number(json, 0));
      return NULL;
    case JSON_STRING: {
      text_view string = json_string(json);
      return jinja_borrow_string(&machine->heap, string.data, string.length, out);
    }
    case JSON_ARRAY:
    case JSON_OBJECT:
      break;
    default:
      *out = JINJA_VALUE_NONE;
      return NULL;
  }
  bool is_array = json_type_of(json) == JSON_ARRAY;
  json_iterator iterator = json_iterate(json);
  text_view key;
  json_value member;
  if (is_array) {
    GENAI_TRY(jinja_new_list(&machine->heap, JINJA_LIST, json_count(json), out));
  } else {
    GENAI_TRY(jinja_new_dict(&machine->heap, JINJA_DICT, out));
  }
  while (json_next(&iterator, &key, &member)) {
    jinja_value value, name;
    GENAI_TRY(from_json(machine, member, depth + 1, &value));
    if (is_array) {
      GENAI_TRY(jinja_append(&machine->heap, out->as.list, value));
    } else {
      GENAI_TRY(jinja_borrow_string(&machine->heap, key.data, key.length, &name));
      GENAI_TRY(jinja_dict_set(machine, out->as.dict, name, value));
    }
  }
  return NULL;
}

static genai_status* set(jinja_machine* machine, const char* name, jinja_value value) {
  jinja_value key;
  GENAI_TRY(jinja_static_string(&machine->heap, name, &key));
  return jinja_dict_set(machine, machine->variables, key, value);
}

static genai_status* set_text(jinja_machine* machine, const char* name, const char* value) {
  jinja_value string;
  if (!value || !*value) return NULL; /* a tokenizer without this token has no such variable */
  if (!utf8_is_valid(value, strlen(value))) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "chat template: %s is not valid UTF-8", name);
  }
  GENAI_TRY(jinja_static_string(&machine->heap, value, &string));
  return set(machine, name, string);
}

static bool is_given(json_value value) {
  return value.document != NULL && json_type_of(value) != JSON_ABSENT;
}

static genai_status* set_options(jinja_machine* machine, const chat_render_options* options) {
  static const chat_render_options NONE;
  if (!options) options = &NONE;
  machine->now = options->now ? options->now : (int64_t)time(NULL);
  jinja_value tools = JINJA_VALUE_NONE;
  if (is_given(options->tools)) GENAI_TRY(from_json(machine, options->tools, 0, &tools));
  GENAI_TRY(set(machine, "tools", tools));
  GENAI_TRY(set(machine, "documents", JINJA_VALUE_NONE));
  GENAI_TRY(set(machine, "add_generation_prompt", jinja_bool(options->add_generation_prompt)));
  GENAI_TRY(set_text(machine, "bos_token", options->bos_token));
  GENAI_TRY(set_text(machine, "eos_token", options->eos_token));
  if (!is_given(options->extra)) return NULL;
  jinja_value extra;
  GENAI_TRY(from_json(machine, options->extra, 0, &extra));
  if (extra.kind != JINJA_DICT) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "chat template: the extra variables must be a JSON object");
  }
  for (size_t i = 0; i < extra.as.dict->count; i++) {
    const jinja_dict_entry* entry = &extra.as.dict->entries[i];
    if (jinja_string_is(entry->key.as.string, "messages")) {
      return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "chat template: 'messages' cannot be an extra variable; pass the messages");
    }
    GENAI_TRY(jinja_dict_set(machine, machine->variables, entry->key, entry->value));
  }
  return NULL;
}

/* transformers drops a message's members that are null, and gives its reasoning under every name that templates read it by. */
static genai_status* normalise_message(jinja_machine* machine, jinja_value message, jinja_value* out) {
  static const char* const REASONING[] = {"reasoning_content", "thinking", "reasoning"};
  const jinja_value* reasoning = NULL;
  for (size_t i = 0; i < 3 && !reasoning; i++) {
    reasoning = jinja_dict_find_text(message.as.dict, REASONING[i]);
    if (reasoning && reasoning->kind == JINJA_NONE) reasoning = NULL;
  }
  jinja_value name;
  GENAI_TRY(jinja_new_dict(&machine->heap, JINJA_DICT, out));
  if (reasoning) {
    GENAI_TRY(jinja_static_string(&machine->heap, "thinking", &name));
    GENAI_TRY(jinja_dict_set(machine, out->as.dict, name, *reasoning));
  }
  for (size_t i = 0; i < message.as.dict->count; i++) {
    const jinja_dict_entry* entry = &message.as.dict->entries[i];
    if (entry->value.kind != JINJA_NONE) GENAI_TRY(jinja_dict_set(machine, out->as.dict, entry->key, entry->value));
  }
  if (!reasoning) return NULL;
  GENAI_TRY(jinja_static_string(&machine->heap, "reasoning_content", &name));
  return jinja_dict_set(machine, out->as.dict, name, *reasoning);
}

static genai_status* no_messages(void) {
  return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "chat template: there are no messages; pass at least one");
}

static genai_status* messages_from_json(jinja_machine* machine, json_value json, jinja_value* out) {
  jinja_value messages;
  if (!is_given(json) || json_type_of(json) != JSON_ARRAY) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "chat template: the messages must be a JSON array of objects");
  }
  GENAI_TRY(from_json(machine, json, 0, &messages));
  if (!messages.as.list->count) return no_messages();
  GENAI_TRY(jinja_new_list(&machine->heap, JINJA_LIST, messages.as.list->count, out));
  for (size_t i = 0; i < messages.as.list->count; i++) {
    jinja_value message = messages.as.list->items[i];
    if (message.kind != JINJA_DICT) {
      return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "chat template: message %zu is no JSON object; expected one with a role", i);
    }
    GENAI_TRY(normalise_message(machine, message, &message));
    GENAI_TRY(jinja_append(&machine->heap, out->as.list, message));
  }
  return NULL;
}

static genai_status* messages_from_array(jinja_machine* machine, const chat_message* messages, size_t count, jinja_value* out) {
  if (!count) return no_messages();
  GENAI_TRY(jinja_new_list(&machine->heap, JINJA_LIST, count, out));
  for (size_t i = 0; i < count; i++) {
    jinja_value message, key, value;
    const char *names[2] = {"role", "content"}, *values[2] = {messages[i].role, messages[i].content};
    GENAI_TRY(jinja_new_dict(&machine->heap, JINJA_DICT, &message));
    for (int j = 0; j < 2; j++) {
      if (!values[j]) continue;
      if (!utf8_is_valid(values[j], strlen(values[j]))) {
        return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "chat template: the %s of message %zu is not valid UTF-8", names[j], i);
      }
      GENAI_TRY(jinja_static_string(&machine->heap, names[j], &key));
      GENAI_TRY(jinja_static_string(&machine->heap, values[j], &value));
      GENAI_TRY(jinja_dict_set(machine, message.as.dict, key, value));
    }
    GENAI_TRY(jinja_append(&machine->heap, out->as.list, message));
  }
  return NULL;
}

static genai_status* render(jinja_machine* machine, const chat_template* self, const chat_message* messages, size_t n_messages,
                            json_value json, const chat_render_options* options, text* out) {
  jinja_value variables, list, rendered;
  GENAI_TRY(jinja_new_dict(&machine->heap, JINJA_DICT, &variables));
  machine->variables = variables.as.dict;
  GENAI_TRY(jinja_add_functions(machine, machine->variables));
  if (messages) {
    GENAI_TRY(messages_from_array(machine, messages, n_messages, &list));
  } else {
    GENAI_TRY(messages_from_json(machine, json, &list));
  }
  GENAI_TRY(set_options(machine, options));
  GENAI_TRY(set(machine, "messages", list));
  machine->steps = 0; /* what the caller passed is not the template's to pay for */
  GENAI_TRY(jinja_render(machine, &self->tree, &rendered));
  return text_append(out, rendered.as.string->data, rendered.as.string->length);
}

static genai_status* start(const chat_template* self, const chat_message* messages, size_t n_messages, json_value json,
                           const chat_render_options* options, text* out) {
  jinja_machine machine = {.heap = {.limit = RENDER_MEMORY}, .source = self->tree.source};
  genai_status* status = render(&machine, self, messages, n_messages, json, options, out);
  arena_deinit(&machine.heap.region);
  return status;
}

genai_status* chat_template_render(const chat_template* self, const chat_message* messages, size_t n_messages,
                                   const chat_render_options* options, text* out) {
  if (!messages) return no_messages();
  return start(self, messages, n_messages, (json_value){0}, options, out);
}

genai_status* chat_template_render_json(const chat_template* self, json_value messages, const chat_render_options* options, text* out) {
  return start(self, NULL, 0, messages, options, out);
}
