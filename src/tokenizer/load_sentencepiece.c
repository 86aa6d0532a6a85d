/* SentencePiece models (tokenizer.model, spiece.model): a serialized ModelProto (sentencepiece, src/sentencepiece_model.proto) with pieces,
 * scores and the normalizer's rules; BPE and unigram. */
#include <math.h>

#include "base/memory.h"
#include "tokenizer/protobuf.h"
#include "tokenizer/tokenizer_internal.h"

enum { PIECE_NORMAL = 1, PIECE_UNKNOWN, PIECE_CONTROL, PIECE_USER_DEFINED, PIECE_UNUSED, PIECE_BYTE };
enum { TYPE_UNIGRAM = 1, TYPE_BPE = 2 };

typedef struct model_proto {
  const char* name;
  tokenizer* self;
  float* scores;
  size_t score_capacity;
  int64_t type;
  bool whitespace_suffix, byte_fallback;
  int64_t bos, eos;
  text_view bos_piece, eos_piece;
  text_view charsmap;
  bool add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces;
} model_proto;

static genai_status* broken(const model_proto* m, const char* where) {
  return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: the SentencePiece model is damaged in its %s", m->name, where);
}

static genai_status* read_piece(model_proto* m, const protobuf_field* message) {
  protobuf_reader reader = {.data = message->bytes, .size = message->length};
  text_view piece = {"", 0};
  float score = 0;
  int64_t type = PIECE_NORMAL;
  for (protobuf_field field; protobuf_next(&reader, &field);) {
    if (field.number == 1 && field.wire == PROTOBUF_BYTES) piece = (text_view){(const char*)field.bytes, field.length};
    if (field.number == 2 && field.wire == PROTOBUF_FIXED32) score = protobuf_float(&field);
    if (field.number == 3 && field.wire == PROTOBUF_VARINT) type = (int64_t)field.value;
  }
  int32_t id = m->self->tokens.count;
  if (reader.broken || !piece.length || id == VOCABULARY_LIMIT) return broken(m, "pieces");
  if ((size_t)id == m->score_capacity) {
    size_t capacity = m->score_capacity ? m->score_capacity * 2 : 1024;
    float* scores = mem_realloc_array(m->scores, capacity, sizeof *scores);
    if (!scores) return genai_status_out_of_memory();
    m->scores = scores;
    m->score_capacity = capacity;
  }
  m->scores[id] = score;
  unsigned flags = 0;
  added_token added = {.id = id};
  switch (type) {
    case PIECE_UNKNOWN:
      m->self->unknown_id = id; /* fall through */
    case PIECE_CONTROL:
      flags = TOKEN_SPECIAL | TOKEN_ADDED | TOKEN_OUTSIDE;
      added.special = true;
      break;
    case PIECE_USER_DEFINED:
      flags = TOKEN_ADDED | TOKEN_OUTSIDE;
      break;
    case PIECE_UNUSED:
      flags = TOKEN_UNUSED;
      break;
    case PIECE_BYTE:
      flags = TOKEN_BYTE;
      break;
    default:
      break;
  }
  GENAI_TRY(vocabulary_set(&m->self->tokens, id, piece.data, piece.length, (uint8_t)flags));
  return added.special ? added_tokens_add(&m->self->added, &added, piece) : NULL;
}

static genai_status* read_trainer(model_proto* m, const protobuf_field* message) {
  protobuf_reader reader = {.data = message->bytes, .size = message->length};
  for (protobuf_field field; protobuf_next(&reader, &field);) {
    text_view bytes = {(const char*)field.bytes, field.length};
    switch (field.number) {
      case 3:
        m->type = (int64_t)field.value;
        break;
      case 24:
        m->whitespace_suffix = field.value != 0;
        break;
      case 35:
        m->byte_fallback = field.value != 0;
        break;
      case 41:
        m->bos = (int32_t)field.value;
        break;
      case 42:
        m->eos = (int32_t)field.value;
        break;
      case 46:
        m->bos_piece = bytes;
        break;
      case 47:
        m->eos_piece = bytes;
        break;
      default:
        break;
    }
  }
  return reader.broken ? broken(m, "trainer_spec") : NULL;
}

static genai_status* read_normalizer(model_proto* m, const protobuf_field* message) {
  protobuf_reader reader = {.data = message->bytes, .size = message->length};
  for (protobuf_field field; protobuf_next(&reader, &field);) {
    switch (field.number) {
      case 2:
        if (field.wire == PROTOBUF_BYTES) m->charsmap = (text_view){(const char*)field.bytes, field.length};
        break;
      case 3:
        m->add_dummy_prefix = field.value != 0;
        break;
      case 4:
        m->remove_extra_whitespaces = field.value != 0;
        break;
      case 5:
        m->escape_whitespaces = field.value != 0;
        break;
      default:
        break;
    }
  }
  return reader.broken ? broken(m, "normalizer_spec") : NULL;
}

static genai_status* read_model(model_proto* m, const uint8_t* data, size_t size) {
  protobuf_reader reader = {.data = data, .size = size};
  GENAI_TRY(vocabulary_reserve(&m->self->tokens, 1024, size / 2 < 1 << 20 ? size / 2 : 1 << 20));
  for (protobuf_field field; protobuf_next(&reader, &field);) {
    if (field.wire != PROTOBUF_BYTES) continue;
    if (field.number == 1) GENAI_TRY(read_piece(m, &field));
    if (field.number == 2) GENAI_TRY(read_trainer(m, &field));
    if (field.number == 3) GENAI_TRY(read_normalizer(m, &field));
  }
  if (reader.broken || !m->self->tokens.count) return broken(m, "fields: is this a SentencePiece model?");
  return vocabulary_index(&m->self->tokens);
}

static genai_status* set_normalizer(model_proto* m) {
  normalizer_step* step = normalizer_add(&m->self->normalize, NORMALIZE_SENTENCEPIECE);
  if (!step) return genai_status_out_of_memory();
  step->add_dummy_prefix = m->add_dummy_prefix;
  step->remove_extra_whitespaces = m->remove_extra_whitespaces;
  step->escape_whitespaces = m->escape_whitespaces;
  step->whitespace_suffix = m->whitespace_suffix;
  step->keep = &m->self->keep;
  if (!m->charsmap.length) return NULL;
  step->blob = mem_dup(m->charsmap.data, m->charsmap.length);
  if (!step->blob) return genai_status_out_of_memory();
  step->blob_length = m->charsmap.length;
  return charsmap_open(step->blob, step->blob_length, &step->map);
}

static genai_status* set_unigram(model_proto* m) {
  tokenizer* self = m->self;
  unigram_model* unigram = &self->unigram;
  self->model = MODEL_UNIGRAM;
  unigram->single_precision = true;
  unigram->unknown_id = self->unknown_id;
  unigram->byte_fallback = m->byte_fallback;
  if (m->byte_fallback) tokenizer_find_byte_tokens(&self->tokens, unigram->byte_ids);
  unigram->scores = mem_calloc((size_t)self->tokens.count, sizeof *unigram->scores);
  if (!unigram->scores) return genai_status_out_of_memory();
  unigram->lowest = INFINITY;
  for (int32_t id = 0; id < self->tokens.count; id++) {
    double score = m->scores[id];
    unigram->scores[id] = score;
    unsigned flags = self->tokens.flags[id];
    if (!(flags & (TOKEN_ADDED | TOKEN_BYTE | TOKEN_UNUSED)) && score < unigram->lowest) unigram->lowest = score;
    if (flags & (TOKEN_SPECIAL | TOKEN_BYTE | TOKEN_UNUSED)) continue;
    GENAI_TRY(prefix_set_add(&unigram->pieces, vocabulary_text(&self->tokens, id), id));
  }
  return prefix_set_build(&unigram->pieces);
}

/* The id of a begin or end piece: by name, then by number. */
static int32_t control_id(const model_proto* m, text_view piece, int64_t id) {
  int32_t named = vocabulary_find(&m->self->tokens, piece.data, piece.length);
  if (named < 0 && id >= 0 && id < m->self->tokens.count) named = (int32_t)id;
  return named >= 0 && m->self->tokens.flags[named] & TOKEN_SPECIAL ? named : -1;
}

static genai_status* set_model(model_proto* m) {
  tokenizer* self = m->self;
  if (m->type != TYPE_BPE && m->type != TYPE_UNIGRAM) {
    return genai_status_create(GENAI_ERROR_UNSUPPORTED, "%s: SentencePiece model type %lld; genai reads unigram (1) and BPE (2)", m->name,
                               (long long)m->type);
  }
  for (int32_t id = 0; id < self->tokens.count; id++) {
    unsigned flags = self->tokens.flags[id];
    if (flags & TOKEN_ADDED && !(flags & TOKEN_SPECIAL)) GENAI_TRY(prefix_set_add(&self->keep, vocabulary_text(&self->tokens, id), id));
  }
  GENAI_TRY(prefix_set_build(&self->keep));
  if (m->type == TYPE_UNIGRAM) {
    GENAI_TRY(set_unigram(m));
  } else {
    self->bpe.byte_fallback = m->byte_fallback;
    self->bpe.fuse_unknown = !m->byte_fallback; /* a run of unknown characters is one unknown piece */
    self->bpe.unknown_id = self->unknown_id;
    if (m->byte_fallback) tokenizer_find_byte_tokens(&self->tokens, self->bpe.byte_ids);
    GENAI_TRY(bpe_build_from_scores(self, m->scores));
    for (int32_t id = 0; id < self->tokens.count; id++) {
      unsigned flags = self->tokens.flags[id];
      const added_token token = {.id = id, .normalized = true, .as_is = true};
      if (flags & TOKEN_ADDED && !(flags & TOKEN_SPECIAL)) {
        GENAI_TRY(added_tokens_add(&self->added, &token, vocabulary_text(&self->tokens, id)));
      }
    }
  }
  GENAI_TRY(decoder_set_pieces(&self->decode, m->byte_fallback ? BYTE_RUN_CHARACTERS : BYTE_RUN_NONE));
  if (m->remove_extra_whitespaces)
    GENAI_TRY(decoder_set_strip(&self->decode, text_view_of(" "), SIZE_MAX, 0, false));
  else if (m->add_dummy_prefix)
    GENAI_TRY(decoder_set_strip(&self->decode, text_view_of(" "), 1, 0, false));
  self->bos_id = control_id(m, m->bos_piece, m->bos);
  self->eos_id = control_id(m, m->eos_piece, m->eos);
  /* Language models that come with such a file (Llama, Mistral, Gemma) start with their begin token; tokenizer_config.json overrides. */
  if (self->bos_id >= 0) GENAI_TRY(template_append(&self->prefix, self->bos_id));
  return tokenizer_set_kind(self, "SentencePiece %s", m->type == TYPE_BPE ? "BPE" : "unigram");
}

genai_status* tokenizer_load_sentencepiece(const uint8_t* data, size_t size, const char* name, tokenizer** out) {
  model_proto m = {
      .name = name,
      .type = TYPE_UNIGRAM,
      .bos = 1,
      .eos = 2,
      .bos_piece = {"<s>", 3},
      .eos_piece = {"</s>", 4},
      .add_dummy_prefix = true,
      .remove_extra_whitespaces = true,
      .escape_whitespaces = true,
  };
  GENAI_TRY(tokenizer_create(&m.self));
  genai_status* status = read_model(&m, data, size);
  if (!status) status = set_normalizer(&m);
  if (!status) status = set_model(&m);
  if (!status) status = tokenizer_finish(m.self);
  mem_free(m.scores);
  if (status) {
    tokenizer_close(m.self);
    return status;
  }
  *out = m.self;
  return NULL;
}
