/* From ids to text. There is one implementation, the streaming one; tokenizer_decode feeds it everything, so both give the same text. */
#include "base/memory.h"
#include "tokenizer/tokenizer_internal.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */
#define LOWER_BLOCK "\xe2\x96\x81" /* U+2581 */

void decoder_deinit(decoder* self) {
  for (size_t i = 0; i < self->replace_count; i++) {
    mem_free(self->replace[i].from);
    mem_free(self->replace[i].to);
  }
  mem_free(self->strip);
  *self = (decoder){0};
}

genai_status* decoder_add_replacement(decoder* self, text_view from, text_view to) {
  if (self->replace_count == MAX_REPLACEMENTS) {
    return genai_status_create(GENAI_ERROR_UNSUPPORTED, "a decoder with more than %d replacements", MAX_REPLACEMENTS);
  }
  char* copy_from = mem_strndup(from.data, from.length);
  char* copy_to = mem_strndup(to.data, to.length);
  if (!copy_from || !copy_to) {
    mem_free(copy_from);
    mem_free(copy_to);
    return genai_status_out_of_memory();
  }
  self->replace[self->replace_count].from = copy_from;
  self->replace[self->replace_count++].to = copy_to;
  return NULL;
}

genai_status* decoder_set_strip(decoder* self, text_view content, size_t start, size_t stop, bool each) {
  mem_free(self->strip);
  self->strip = mem_strndup(content.data, content.length);
  if (!self->strip) return genai_status_out_of_memory();
  self->strip_start = start;
  self->strip_stop = stop;
  self->strip_each = each;
  return NULL;
}

genai_status* decoder_set_pieces(decoder* self, byte_run bytes) {
  self->kind = DECODE_PIECES;
  self->bytes = bytes;
  return decoder_add_replacement(self, text_view_of(LOWER_BLOCK), text_view_of(" "));
}

/* Bytes of the longest valid or truncated UTF-8 sequence at `p` that is not a whole code point: what one U+FFFD stands for (the "maximal
 * subpart" of the Unicode standard, as Rust's from_utf8_lossy has it). `*truncated`: more bytes could complete it. */
static size_t broken_sequence(const uint8_t* p, size_t length, bool* truncated) {
  *truncated = false;
  unsigned needed = p[0] >= 0xc2 && p[0] <= 0xdf ? 2 : p[0] >= 0xe0 && p[0] <= 0xef ? 3 : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4 : 0;
  if (!needed) return 1;
  uint8_t low = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80, high = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
  size_t i = 1;
  for (; i < needed && i < length; i++) {
    if (p[i] < low || p[i] > high) return i;
    low = 0x80;
    high = 0xbf;
  }
  *truncated = true;
  return i;
}

/* Moves what is certain from `pending` to `out`: whole code points, and U+FFFD for what can no longer become one (each byte of it when
 * `every_byte`). With `final` nothing is held back. */
static genai_status* drain_bytes(text* pending, bool every_byte, bool final, text* out) {
  if (!pending->length) return NULL;
  size_t at = 0, copied = 0;
  const uint8_t* data = (const uint8_t*)pending->data;
  while (at < pending->length) {
    uint32_t codepoint;
    size_t length = utf8_decode(pending->data + at, pending->length - at, &codepoint);
    if (length) {
      at += length;
      continue;
    }
    bool truncated;
    size_t broken = broken_sequence(data + at, pending->length - at, &truncated);
    if (truncated && !final) break;
    GENAI_TRY(text_append(out, pending->data + copied, at - copied));
    for (size_t i = 0; i < (every_byte ? broken : 1); i++) GENAI_TRY(text_append_cstr(out, REPLACEMENT));
    at += broken;
    copied = at;
  }
  if (at > copied) GENAI_TRY(text_append(out, pending->data + copied, at - copied));
  memmove(pending->data, pending->data + at, pending->length - at);
  pending->length -= at;
  return NULL;
}

/* Appends text that is a whole token or a run of bytes, without what is stripped at the start of the text. */
static genai_status* emit(token_stream* stream, const char* data, size_t length, text* out) {
  const decoder* decode = &stream->tokenizer->decode;
  if (decode->strip) {
    size_t size = strlen(decode->strip);
    size_t* left = &stream->strip_left;
    if (decode->strip_each) *left = decode->strip_start;
    while (*left && length >= size && memcmp(data, decode->strip, size) == 0) {
      data += size;
      length -= size;
      (*left)--;
    }
    if (length && !decode->strip_each) *left = 0;
    if (decode->strip_each) {
      for (size_t i = 0; i < decode->strip_stop && length >= size && memcmp(data + length - size, decode->strip, size) == 0; i++)
        length -= size;
    }
  }
  return text_append(out, data, length);
}

static genai_status* flush_bytes(token_stream* stream, bool final, text* out) {
  text* pending = &stream->pending;
  if (!pending->length) return NULL;
  text run = {0};
  genai_status* status = NULL;
  if (stream->tokenizer->decode.bytes == BYTE_RUN_CHARACTERS) {
    status = drain_bytes(pending, true, final, &run);
  } else if (final) {
    if (utf8_is_valid(pending->data, pending->length)) {
      status = text_append(&run, pending->data, pending->length);
    } else {
      for (size_t i = 0; i < pending->length && !status; i++) status = text_append_cstr(&run, REPLACEMENT);
    }
    text_clear(pending);
  }
  if (!status && run.length) status = emit(stream, run.data, run.length, out);
  text_deinit(&run);
  return status;
}

static genai_status* push_piece(token_stream* stream, text_view token, text* out) {
  const decoder* decode = &stream->tokenizer->decode;
  int byte = decode->bytes == BYTE_RUN_NONE ? -1 : byte_token_value(token.data, token.length);
  if (byte >= 0) {
    stream->at_start = false;
    GENAI_TRY(text_append_char(&stream->pending, (char)byte));
    return decode->bytes == BYTE_RUN_CHARACTERS ? flush_bytes(stream, false, out) : NULL;
  }
  GENAI_TRY(flush_bytes(stream, true, out));
  text piece = {0};
  genai_status* status = text_append(&piece, token.data, token.length);
  for (size_t r = 0; r < decode->replace_count && !status; r++) {
    const char *from = decode->replace[r].from, *to = decode->replace[r].to;
    size_t size = strlen(from), at = 0;
    if (!size) continue;
    if (r == 0 && decode->drop_in_first && stream->at_start) to = "";
    text replaced = {0};
    while (!status) {
      const char* found = piece.length - at >= size ? memmem(piece.data + at, piece.length - at, from, size) : NULL;
      size_t end = found ? (size_t)(found - piece.data) : piece.length;
      status = text_append(&replaced, piece.data + at, end - at);
      if (!found || status) break;
      status = text_append_cstr(&replaced, to);
      at = end + size;
    }
    text_deinit(&piece);
    piece = replaced;
  }
  stream->at_start = false;
  if (!status) status = emit(stream, piece.data, piece.length, out);
  text_deinit(&piece);
  return status;
}

/* The normalized form of an added token, which is what the reference decodes. There are few of these. */
static text_view renormalized(const tokenizer* self, int32_t id) {
  size_t i = 0;
  while (self->added.items[i].id != id) i++;
  const added_token* token = &self->added.items[i];
  return token->decoded && self->decode.kind == DECODE_BYTE_LEVEL ? (text_view){token->decoded, token->decoded_length}
                                                                  : (text_view){token->pattern, token->pattern_length};
}

void token_stream_init(token_stream* stream, const tokenizer* self, bool keep_special) {
  *stream = (token_stream){.tokenizer = self, .keep_special = keep_special, .at_start = true, .strip_left = self->decode.strip_start};
}

genai_status* token_stream_push(token_stream* stream, int32_t id, text* out) {
  const tokenizer* self = stream->tokenizer;
  if (id < 0 || id >= self->tokens.count) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "token id %d is outside the vocabulary (0..%d)", (int)id,
                               (int)self->tokens.count - 1);
  }
  text_view token = vocabulary_text(&self->tokens, id);
  unsigned flags = self->tokens.flags[id];
  if (!token.data || (!stream->keep_special && flags & TOKEN_SPECIAL)) return NULL;
  if (flags & TOKEN_RENORMALIZED) token = renormalized(self, id);
  switch (self->decode.kind) {
    case DECODE_BYTE_LEVEL:
      if (!(flags & TOKEN_RENORMALIZED)) token = vocabulary_text(&self->bytes, id);
      if (stream->pending.length || !utf8_is_valid(token.data, token.length)) {
        GENAI_TRY(text_append(&stream->pending, token.data, token.length));
        return drain_bytes(&stream->pending, false, false, out);
      }
      return text_append(out, token.data, token.length);
    case DECODE_SPACED:
      if (!stream->at_start) GENAI_TRY(text_append_char(out, ' '));
      stream->at_start = false;
      return text_append(out, token.data, token.length);
    case DECODE_PIECES:
      break;
  }
  return push_piece(stream, token, out);
}

genai_status* token_stream_finish(token_stream* stream, text* out) {
  if (stream->tokenizer->decode.kind == DECODE_BYTE_LEVEL) return drain_bytes(&stream->pending, false, true, out);
  return flush_bytes(stream, true, out);
}

void token_stream_deinit(token_stream* stream) {
  text_deinit(&stream->pending);
}

genai_status* tokenizer_decode(const tokenizer* self, const int32_t* ids, size_t count, bool keep_special, text* out) {
  token_stream stream;
  token_stream_init(&stream, self, keep_special);
  size_t begin = out->length;
  genai_status* status = text_append(out, "", 0); /* "" rather than NULL when nothing comes out */
  for (size_t i = 0; i < count && !status; i++) status = token_stream_push(&stream, ids[i], out);
  if (!status) status = token_stream_finish(&stream, out);
  token_stream_deinit(&stream);
  if (status) {
    out->length = begin;
    if (out->data) out->data[begin] = 0;
  }
  return status;
}
