/* The functions every template can call: jinja2's defaults and those that transformers adds. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tokenizer/jinja_evaluate.h"

#define FUNCTION(name) static genai_status* name(jinja_machine* machine, const jinja_call* call, jinja_value* out)

enum { MAX_RANGE = 100000 }; /* jinja2.sandbox.MAX_RANGE */

FUNCTION(function_range) {
  int64_t first, second, step;
  GENAI_TRY(jinja_integer_argument(machine, call->arguments[0], "range's first argument", 0, &first));
  GENAI_TRY(jinja_integer_argument(machine, call->arguments[1], "range's second argument", 0, &second));
  GENAI_TRY(jinja_integer_argument(machine, call->arguments[2], "range's step", 1, &step));
  bool one = !jinja_given(call->arguments[1]);
  int64_t start = one ? 0 : first, stop = one ? first : second;
  if (!step) return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "range: the step cannot be zero");
  bool empty = step > 0 ? start >= stop : start <= stop;
  uint64_t span = step > 0 ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
  uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
  uint64_t count = empty ? 0 : (span - 1) / stride + 1;
  if (count > MAX_RANGE) {
    return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "range: %llu items, more than the %d that the sandbox allows",
                      (unsigned long long)count, MAX_RANGE);
  }
  jinja_range* range = jinja_alloc(&machine->heap, 1, sizeof *range);
  if (!range) return jinja_heap_status(&machine->heap);
  *range = (jinja_range){.start = start, .stop = stop, .step = step, .count = (size_t)count};
  *out = (jinja_value){.kind = JINJA_RANGE, .as.range = range};
  return NULL;
}

/* dict(mapping or pairs, **keywords) */
static genai_status* fill_dict(jinja_machine* machine, const jinja_call* call, jinja_dict* dict) {
  const jinja_arguments* given = call->given;
  if (given->count > 1) return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "dict and namespace take at most one positional argument");
  if (given->count && given->items[0].kind == JINJA_DICT) {
    GENAI_TRY(jinja_dict_copy(machine, given->items[0].as.dict, dict));
  } else if (given->count) {
    jinja_iterator iterator;
    GENAI_TRY(jinja_iterate(machine, given->items[0], &iterator));
    for (;;) {
      jinja_value pair;
      bool done;
      GENAI_TRY(jinja_next(machine, &iterator, &pair, &done));
      if (done) break;
      GENAI_TRY(jinja_to_list(machine, pair, &pair));
      if (pair.as.list->count != 2) return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "dict: expected pairs of a key and a value");
      GENAI_TRY(jinja_dict_set(machine, dict, pair.as.list->items[0], pair.as.list->items[1]));
    }
  }
  return given->keywords ? jinja_dict_copy(machine, given->keywords, dict) : NULL;
}

FUNCTION(function_dict) {
  GENAI_TRY(jinja_new_dict(&machine->heap, JINJA_DICT, out));
  return fill_dict(machine, call, out->as.dict);
}

FUNCTION(function_namespace) {
  GENAI_TRY(jinja_new_dict(&machine->heap, JINJA_NAMESPACE, out));
  GENAI_TRY(fill_dict(machine, call, out->as.dict));
  for (size_t i = 0; i < out->as.dict->count; i++) {
    jinja_value name = out->as.dict->entries[i].key;
    if (name.kind == JINJA_STRING && name.as.string->length && name.as.string->data[0] == '_') {
      return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "a namespace cannot have the attribute '%.*s': names that start with _ are refused",
                        name.as.string->length > 100 ? 100 : (int)name.as.string->length, name.as.string->data);
    }
  }
  return NULL;
}

FUNCTION(function_cycler) {
  if (!call->given->count || call->given->keywords) return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "cycler needs at least one value");
  jinja_cycler* cycler = jinja_alloc(&machine->heap, 1, sizeof *cycler);
  if (!cycler) return jinja_heap_status(&machine->heap);
  *cycler = (jinja_cycler){.items = call->given->items, .count = call->given->count};
  *out = (jinja_value){.kind = JINJA_CYCLER, .as.cycler = cycler};
  return NULL;
}

FUNCTION(function_joiner) {
  jinja_value separator;
  GENAI_TRY(jinja_static_string(&machine->heap, ", ", &separator));
  if (jinja_given(call->arguments[0])) GENAI_TRY(jinja_str(machine, call->arguments[0], &separator));
  jinja_joiner* joiner = jinja_alloc(&machine->heap, 1, sizeof *joiner);
  if (!joiner) return jinja_heap_status(&machine->heap);
  joiner->separator = separator.as.string;
  *out = (jinja_value){.kind = JINJA_JOINER, .as.joiner = joiner};
  return NULL;
}

FUNCTION(function_raise_exception) {
  jinja_value message;
  unsigned line, column;
  (void)out;
  GENAI_TRY(jinja_str(machine, call->arguments[0], &message));
  jinja_position(machine->source, machine->at, &line, &column);
  return genai_status_create(GENAI_ERROR_TEMPLATE, "the chat template refuses these messages: %.*s (line %u, column %u)",
                             message.as.string->length > 4096 ? 4096 : (int)message.as.string->length, message.as.string->data, line,
                             column);
}

/* datetime.strftime of a local time without a zone: %f are microseconds, %z and %Z are empty; the rest is the C library's. */
FUNCTION(function_strftime_now) {
  const jinja_string* format;
  time_t now = (time_t)machine->now;
  struct tm local;
  jinja_builder builder = {.machine = machine};
  GENAI_TRY(jinja_string_argument(machine, call->arguments[0], "strftime_now's format", &format));
  if (!localtime_r(&now, &local))
    return jinja_fail(machine, GENAI_ERROR_INVALID_ARGUMENT, "the time %lld has no calendar date", (long long)now);
  for (size_t at = 0; at < format->length; at++) {
    char directive[8] = "%", buffer[256];
    if (format->data[at] != '%' || at + 1 == format->length) {
      GENAI_TRY(jinja_put(&builder, format->data + at, 1));
      continue;
    }
    size_t used = 1;
    do { /* flags, width and modifiers of glibc's strftime */
      directive[used++] = format->data[++at];
    } while (used < 6 && at + 1 < format->length && directive[used - 1] && strchr("-_0^#123456789EO", directive[used - 1]));
    char last = directive[used - 1];
    if (last == 'f') {
      GENAI_TRY(jinja_put_text(&builder, "000000"));
    } else if (last != 'z' && last != 'Z') {
      size_t length = strftime(buffer, sizeof buffer, directive, &local);
      GENAI_TRY(jinja_put(&builder, buffer, length));
    }
  }
  return jinja_take(&builder, out);
}

static const jinja_definition FUNCTIONS[] = {
    {"range", function_range, {"start", "stop", "step"}, 1, JINJA_POSITIONAL_ONLY},
    {"dict", function_dict, {0}, 0, JINJA_VARIADIC},
    {"namespace", function_namespace, {0}, 0, JINJA_VARIADIC},
    {"cycler", function_cycler, {0}, 0, JINJA_VARIADIC},
    {"joiner", function_joiner, {"sep"}, 0, 0},
    {"lipsum", NULL, {0}, 0, JINJA_VARIADIC},
    {"raise_exception", function_raise_exception, {"message"}, 1, 0},
    {"strftime_now", function_strftime_now, {"format"}, 1, 0},
};

genai_status* jinja_add_functions(jinja_machine* machine, jinja_dict* variables) {
  for (size_t i = 0; i < sizeof FUNCTIONS / sizeof *FUNCTIONS; i++) {
    jinja_value name;
    GENAI_TRY(jinja_static_string(&machine->heap, FUNCTIONS[i].name, &name));
    GENAI_TRY(jinja_dict_set(machine, variables, name, (jinja_value){.kind = JINJA_FUNCTION, .as.function = &FUNCTIONS[i]}));
  }
  return NULL;
}
