/* Tokens that are cut out of the text before the model sees it: leftmost, longest, with the strip and word rules of the reference
 * (tokenizers, added_vocabulary.rs). */
#include "base/memory.h"
#include "tokenizer/tokenizer_internal.h"

genai_status* added_tokens_add(added_tokens* self, const added_token* options, text_view content) {
  /* A text is valid UTF-8, so what is not cannot stand in it; matching it could only cut a character apart. */
  if (!content.length || !utf8_is_valid(content.data, content.length)) return NULL;
  if (self->count == self->capacity) {
    size_t capacity = self->capacity ? self->capacity * 2 : 16;
    added_token* items = mem_realloc_array(self->items, capacity, sizeof *items);
    if (!items) return genai_status_out_of_memory();
    self->items = items;
    self->capacity = capacity;
  }
  added_token token = *options;
  token.pattern = mem_strndup(content.data, content.length);
  token.pattern_length = content.length;
  if (!token.pattern) return genai_status_out_of_memory();
  self->items[self->count++] = token;
  return NULL;
}

genai_status* added_tokens_build(added_tokens* self, const normalizer* normalize, const unicode_classes* classes) {
  text out = {0}, spare = {0};
  genai_status* status = NULL;
  for (size_t i = self->built; i < self->count && !status; i++) {
    added_token* token = &self->items[i];
    if (token->normalized && !token->as_is && normalize->count) {
      text_view result;
      status = normalizer_run(normalize, classes, (text_view){token->pattern, token->pattern_length}, &out, &spare, &result);
      if (status) break;
      char* pattern = mem_strndup(result.data, result.length);
      if (!pattern) {
        status = genai_status_out_of_memory();
        break;
      }
      mem_free(token->pattern);
      token->pattern = pattern;
      token->pattern_length = result.length;
    }
    status =
        prefix_set_add(token->normalized ? &self->normalized : &self->raw, (text_view){token->pattern, token->pattern_length}, (int32_t)i);
  }
  if (!status) status = prefix_set_build(&self->raw);
  if (!status) status = prefix_set_build(&self->normalized);
  if (!status) self->built = self->count;
  text_deinit(&out);
  text_deinit(&spare);
  return status;
}

void added_tokens_deinit(added_tokens* self) {
  for (size_t i = 0; i < self->count; i++) {
    mem_free(self->items[i].pattern);
    mem_free(self->items[i].decoded);
  }
  mem_free(self->items);
  prefix_set_deinit(&self->raw);
  prefix_set_deinit(&self->normalized);
  *self = (added_tokens){0};
}

static bool stands_alone(const unicode_classes* classes, text_view in, size_t begin, size_t end) {
  const uint8_t* data = (const uint8_t*)in.data;
  size_t length;
  if (begin > 0 && unicode_is_word(classes, utf8_next(utf8_previous(data, data + begin), &length))) return false;
  return end == in.length || !unicode_is_word(classes, utf8_next(data + end, &length));
}

bool added_tokens_next(const added_tokens* self, const prefix_set* set, const unicode_classes* classes, text_view in, size_t* from,
                       size_t floor, bool parse_special, added_match* out) {
  if (!set->count) return false;
  const uint8_t* data = (const uint8_t*)in.data;
  size_t at = *from;
  while (at < in.length) {
    if (!set->first[data[at]]) {
      at++;
      continue;
    }
    const prefix_entry* entry = prefix_set_longest(set, in.data + at, in.length - at);
    if (!entry) {
      at++;
      continue;
    }
    const added_token* token = &self->items[entry->value];
    size_t begin = at, end = at + entry->key.length, length;
    at = end; /* a match that is discarded below still hides what lies inside it, as in the reference */
    if (token->special && !parse_special) continue;
    if (token->single_word && !stands_alone(classes, in, begin, end)) continue;
    if (token->strip_left) {
      while (begin > floor) {
        const uint8_t* before = utf8_previous(data, data + begin);
        if (!unicode_is(classes, utf8_next(before, &length), UNICODE_SPACES)) break;
        begin = (size_t)(before - data);
      }
      if (begin < floor) begin = floor;
    }
    if (token->strip_right) {
      while (end < in.length && unicode_is(classes, utf8_next(data + end, &length), UNICODE_SPACES)) end += length;
    }
    if (begin >= end) continue; /* all of it is white space that the one before has taken along */
    *from = at;
    *out = (added_match){begin, end, token};
    return true;
  }
  *from = at;
  return false;
}
