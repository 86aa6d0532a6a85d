/* The reading half of json.h: simdjson's DOM parser behind a C face. The parsed tape is turned into one array of nodes and one block of
 * string bytes, so that everything of simdjson is gone when json_parse returns. No exception leaves this file. Writing is json_writer.c. */
#include <simdjson.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

extern "C" {
#include "base/file.h"
#include "base/json.h"
#include "base/json_internal.h"
#include "base/memory.h"
}

namespace {

/* Nodes stand in document order; a container is followed by its members (in objects: key node, value node), and knows where they end. */
struct node {
  union {
    int64_t integer; /* JSON_INTEGER, and 0 or 1 for JSON_BOOL */
    double number;
    size_t string; /* offset in the document's string bytes */
    size_t end;    /* containers: index of the first node that is not inside */
  };
  uint32_t count; /* string: bytes; containers: members */
  uint8_t type;   /* json_type */
};
static_assert(sizeof(node) == 16, "the parse figure in docs/architecture.md counts on 16 bytes");

}  // namespace

struct json_document {
  node* nodes;
  size_t node_count;
  size_t node_capacity;
  char* strings;
  size_t string_size;
};

namespace {

const size_t max_depth = simdjson::DEFAULT_MAX_DEPTH; /* also bounds the recursion of builder::value */

struct builder {
  json_document* out;

  bool append(node value) {
    if (out->node_count == out->node_capacity) {
      size_t capacity = out->node_capacity ? out->node_capacity * 2 : 64;
      void* grown = mem_realloc_array(out->nodes, capacity, sizeof(node));
      if (!grown) return false;
      out->nodes = static_cast<node*>(grown);
      out->node_capacity = capacity;
    }
    out->nodes[out->node_count++] = value;
    return true;
  }

  /* The block holds as many bytes as the source, and no string grows by being unescaped. */
  bool string(std::string_view bytes) {
    node value = {};
    value.string = out->string_size;
    value.count = static_cast<uint32_t>(bytes.size());
    value.type = JSON_STRING;
    memcpy(out->strings + out->string_size, bytes.data(), bytes.size());
    out->string_size += bytes.size();
    return append(value);
  }

  bool close(size_t at, size_t count) {
    out->nodes[at].end = out->node_count;
    out->nodes[at].count = static_cast<uint32_t>(count);
    return true;
  }

  bool value(simdjson::dom::element element) {
    node value_node = {};
    size_t at = out->node_count;
    size_t count = 0;
    switch (element.type()) {
      case simdjson::dom::element_type::ARRAY:
        value_node.type = JSON_ARRAY;
        if (!append(value_node)) return false;
        for (simdjson::dom::element child : simdjson::dom::array(element.get_array().value_unsafe())) {
          if (!value(child)) return false;
          ++count;
        }
        return close(at, count);
      case simdjson::dom::element_type::OBJECT:
        value_node.type = JSON_OBJECT;
        if (!append(value_node)) return false;
        for (simdjson::dom::key_value_pair member : simdjson::dom::object(element.get_object().value_unsafe())) {
          if (!string(member.key) || !value(member.value)) return false;
          ++count;
        }
        return close(at, count);
      case simdjson::dom::element_type::STRING:
        return string(element.get_string().value_unsafe());
      case simdjson::dom::element_type::INT64:
        value_node.type = JSON_INTEGER;
        value_node.integer = element.get_int64().value_unsafe();
        break;
      case simdjson::dom::element_type::UINT64: /* simdjson uses this type only beyond int64 */
        value_node.type = JSON_NUMBER;
        value_node.number = static_cast<double>(element.get_uint64().value_unsafe());
        break;
      case simdjson::dom::element_type::DOUBLE:
        value_node.type = JSON_NUMBER;
        value_node.number = element.get_double().value_unsafe();
        break;
      case simdjson::dom::element_type::BOOL:
        value_node.type = JSON_BOOL;
        value_node.integer = element.get_bool().value_unsafe();
        break;
      case simdjson::dom::element_type::NULL_VALUE:
        value_node.type = JSON_NULL;
        break;
    }
    return append(value_node);
  }
};

/* Writes `data` to `out` with "e0" behind every integer whose magnitude is beyond 2^63, which makes it a double; returns the new size. `out` may be
 * null to measure. simdjson refuses integers beyond 64 bits, but Hugging Face writes 1000000000000000019884624838656 into
 * tokenizer_config.json ("model_max_length"). */
size_t mark_long_integers(const char* data, size_t size, char* out) {
  size_t length = 0;
  bool in_string = false;
  for (size_t i = 0; i < size;) {
    size_t start = i;
    char c = data[i++];
    if (in_string) {
      if (c == '\\' && i < size) ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c >= '0' && c <= '9') {
      while (i < size && data[i] >= '0' && data[i] <= '9') ++i;
    }
    if (out) memcpy(out + length, data + start, i - start);
    length += i - start;
    bool whole = i == size || !strchr(".eE", data[i]);
    bool after_point = start > 0 && strchr(".eE+", data[start - 1]);
    bool after_exponent_sign = start > 1 && data[start - 1] == '-' && strchr("eE", data[start - 2]);
    size_t digits = i - start;
    bool beyond = digits > 19 || (digits == 19 && memcmp(data + start, "9223372036854775808", 19) > 0);
    if (!in_string && beyond && whole && !after_point && !after_exponent_sign) {
      if (out) memcpy(out + length, "e0", 2);
      length += 2;
    }
  }
  return length;
}

genai_status* refuse(const char* data, size_t size, const char* name, const char* reason) {
  const char* expected = nullptr;
  size_t at = json_locate_error(data, size, max_depth, &expected);
  if (!expected) return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: not usable as JSON: %s", name, reason);
  size_t line = 1;
  size_t column = 1;
  for (size_t i = 0; i < at; ++i) {
    bool newline = data[i] == '\n';
    line += newline;
    column = newline ? 1 : column + 1;
  }
  char found[32];
  if (at >= size) {
    snprintf(found, sizeof found, "the end of the text");
  } else if (data[at] > 0x20 && data[at] < 0x7F) {
    snprintf(found, sizeof found, "'%c'", data[at]);
  } else {
    snprintf(found, sizeof found, "byte 0x%02X", static_cast<unsigned char>(data[at]));
  }
  return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: not valid JSON at line %zu, column %zu (byte %zu): expected %s, found %s", name,
                             line, column, at, expected, found);
}

/* Fills `out` from `size` bytes at `padded`, which SIMDJSON_PADDING more bytes follow. */
simdjson::error_code build(const char* padded, size_t size, json_document* out) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  simdjson::error_code error = parser.parse(padded, size, false).get(root);
  if (error) return error;
  out->strings = static_cast<char*>(mem_alloc(size));
  if (!out->strings) return simdjson::MEMALLOC;
  builder b = {out};
  if (!b.value(root)) return simdjson::MEMALLOC;
  /* Give back what was reserved and not used; a failure to shrink does no harm. */
  void* nodes = mem_realloc_array(out->nodes, out->node_count, sizeof(node));
  if (nodes) out->nodes = static_cast<node*>(nodes);
  void* strings = mem_realloc_array(out->strings, out->string_size ? out->string_size : 1, 1);
  if (strings) out->strings = static_cast<char*>(strings);
  return simdjson::SUCCESS;
}

genai_status* parse(const char* data, size_t size, const char* name, json_document* out) {
  size_t padded_size = 0;
  if (!size_add(size, simdjson::SIMDJSON_PADDING, &padded_size)) return genai_status_out_of_memory();
  char* padded = static_cast<char*>(mem_alloc(padded_size));
  if (!padded) return genai_status_out_of_memory();
  if (size) memcpy(padded, data, size);
  memset(padded + size, 0, padded_size - size);
  simdjson::error_code error = simdjson::UNEXPECTED_ERROR;
  try {
    error = build(padded, size, out);
    size_t marked = error == simdjson::NUMBER_ERROR ? mark_long_integers(data, size, nullptr) : size;
    if (marked != size) {
      mem_free(padded);
      padded = static_cast<char*>(mem_alloc(marked + simdjson::SIMDJSON_PADDING));
      if (!padded) return genai_status_out_of_memory();
      mark_long_integers(data, size, padded);
      memset(padded + marked, 0, simdjson::SIMDJSON_PADDING);
      error = build(padded, marked, out);
    }
  } catch (const std::bad_alloc&) {
    error = simdjson::MEMALLOC;
  } catch (...) {
    error = simdjson::UNEXPECTED_ERROR;
  }
  mem_free(padded);
  if (error == simdjson::SUCCESS) return nullptr;
  if (error == simdjson::MEMALLOC) return genai_status_out_of_memory();
  return refuse(data, size, name, simdjson::error_message(error));
}

const json_document* document_of(json_value value) {
  return static_cast<const json_document*>(value.document);
}

const node* node_of(json_value value) {
  return value.document ? &document_of(value)->nodes[value.index] : nullptr;
}

bool is_container(const node* n) {
  return n && (n->type == JSON_ARRAY || n->type == JSON_OBJECT);
}

size_t after(const json_document* document, size_t index) {
  const node* n = &document->nodes[index];
  return is_container(n) ? n->end : index + 1;
}

text_view string_of(const json_document* document, const node* n) {
  return text_view{document->strings + n->string, n->count};
}

}  // namespace

extern "C" {

genai_status* json_parse(const char* data, size_t size, const char* name, json_document** out) {
  if (size >= 3 && !memcmp(data, "\xEF\xBB\xBF", 3)) { /* a byte order mark: RFC 8259 lets a parser skip it */
    data += 3;
    size -= 3;
  }
  if (!size) return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: empty, where JSON is expected", name);
  json_document* document = static_cast<json_document*>(mem_calloc(1, sizeof(json_document)));
  if (!document) return genai_status_out_of_memory();
  genai_status* status = parse(data, size, name, document);
  if (status) {
    json_free(document);
    return status;
  }
  *out = document;
  return nullptr;
}

genai_status* json_parse_file(const char* path, size_t max_size, json_document** out) {
  mapped_file file;
  GENAI_TRY(mapped_file_open(path, &file));
  genai_status* status = nullptr;
  if (file.size > max_size) {
    status = genai_status_create(GENAI_ERROR_LIMIT, "%s: %zu bytes, more than the %zu that a JSON file of this kind may have", path,
                                 file.size, max_size);
  } else {
    status = json_parse(reinterpret_cast<const char*>(file.data), file.size, path, out);
  }
  mapped_file_close(&file);
  return status;
}

void json_free(json_document* document) {
  if (!document) return;
  mem_free(document->nodes);
  mem_free(document->strings);
  mem_free(document);
}

json_value json_root(const json_document* document) {
  return json_value{document, 0};
}

json_type json_type_of(json_value value) {
  const node* n = node_of(value);
  return n ? static_cast<json_type>(n->type) : JSON_ABSENT;
}

json_value json_get(json_value object, const char* key) {
  json_value found = {nullptr, 0};
  const node* n = node_of(object);
  if (!n || n->type != JSON_OBJECT) return found;
  const json_document* document = document_of(object);
  size_t length = strlen(key);
  for (size_t i = object.index + 1; i < n->end; i = after(document, i + 1)) {
    text_view name = string_of(document, &document->nodes[i]);
    if (name.length == length && !memcmp(name.data, key, length)) found = json_value{document, i + 1};
  }
  return found;
}

bool json_bool(json_value value, bool fallback) {
  const node* n = node_of(value);
  return n && n->type == JSON_BOOL ? n->integer != 0 : fallback;
}

int64_t json_integer(json_value value, int64_t fallback) {
  const node* n = node_of(value);
  if (n && n->type == JSON_INTEGER) return n->integer;
  /* 2^63 is a double and INT64_MAX is not, so the upper bound is open. */
  if (n && n->type == JSON_NUMBER && n->number >= -0x1p63 && n->number < 0x1p63 && n->number == std::trunc(n->number))
    return static_cast<int64_t>(n->number);
  return fallback;
}

double json_number(json_value value, double fallback) {
  const node* n = node_of(value);
  if (n && n->type == JSON_INTEGER) return static_cast<double>(n->integer);
  return n && n->type == JSON_NUMBER ? n->number : fallback;
}

text_view json_string(json_value value) {
  const node* n = node_of(value);
  return n && n->type == JSON_STRING ? string_of(document_of(value), n) : text_view{nullptr, 0};
}

size_t json_count(json_value array_or_object) {
  const node* n = node_of(array_or_object);
  return is_container(n) ? n->count : 0;
}

json_iterator json_iterate(json_value array_or_object) {
  const node* n = node_of(array_or_object);
  json_iterator iterator = {array_or_object, 0, 0};
  if (is_container(n)) {
    iterator.next = array_or_object.index + 1;
    iterator.end = n->end;
  }
  return iterator;
}

bool json_next(json_iterator* iterator, text_view* key, json_value* value) {
  if (iterator->next >= iterator->end) return false;
  const json_document* document = document_of(iterator->container);
  size_t at = iterator->next;
  bool in_object = node_of(iterator->container)->type == JSON_OBJECT;
  if (key) *key = in_object ? string_of(document, &document->nodes[at]) : text_view{nullptr, 0};
  at += in_object;
  if (value) *value = json_value{document, at};
  iterator->next = after(document, at);
  return true;
}

size_t json_format_number(double value, char out[32]) {
  if (value == 0 && std::signbit(value)) { /* "-0" would read back as the integer 0 */
    memcpy(out, "-0.0", 4);
    return 4;
  }
  std::to_chars_result result = std::to_chars(out, out + 32, value);
  return static_cast<size_t>(result.ptr - out);
}

}  // extern "C"
