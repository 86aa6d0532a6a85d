/* llama2.c's checkpoint: seven int32 and float32 arrays without names (export version 0, "legacy_export" of llama2.c's export.py). Presented as
 * a GGUF of the llama architecture, with the same metadata keys and tensor names, each layer's part of an array as its own tensor. Like GGUF's,
 * the rows of wq and wk are in interleaved rotary order: rows 2i and 2i+1 of a head are one rotated pair. */
#include <string.h>

#include "checkpoint/checkpoint_internal.h"

enum { HEADER_BYTES = 7 * 4, MAX_LAYERS = 1024 };

typedef struct header {
  uint64_t width, feed_forward, layers, heads, kv_heads, vocabulary, context;
  uint64_t head_width, kv_width;
  bool untied; /* written as a negative vocabulary size */
} header;

/* The arrays in file order. A part that is not `per_layer` occurs once. */
typedef struct part {
  const char* name; /* GGUF's, after "blk.N." where it is per layer; NULL for what is skipped */
  bool per_layer;
  uint32_t rank;
  uint64_t dims[2];
} part;
enum { PART_COUNT = 14 };

static void list_parts(const header* h, part parts[PART_COUNT]) {
  const part list[PART_COUNT] = {
      {"token_embd.weight", false, 2, {h->vocabulary, h->width}},
      {"attn_norm.weight", true, 1, {h->width}},
      {"attn_q.weight", true, 2, {h->width, h->width}},
      {"attn_k.weight", true, 2, {h->kv_width, h->width}},
      {"attn_v.weight", true, 2, {h->kv_width, h->width}},
      {"attn_output.weight", true, 2, {h->width, h->width}},
      {"ffn_norm.weight", true, 1, {h->width}},
      {"ffn_gate.weight", true, 2, {h->feed_forward, h->width}},
      {"ffn_down.weight", true, 2, {h->width, h->feed_forward}},
      {"ffn_up.weight", true, 2, {h->feed_forward, h->width}},
      {"output_norm.weight", false, 1, {h->width}},
      {NULL, false, 2, {h->context, h->head_width / 2}}, /* freq_cis_real: recomputed from rope.freq_base */
      {NULL, false, 2, {h->context, h->head_width / 2}}, /* freq_cis_imag */
      {"output.weight", false, 2, {h->untied ? h->vocabulary : 0, h->width}},
  };
  memcpy(parts, list, sizeof list);
}

/* False when the numbers are not those of a model. The limits are far above any real one and keep every product below within 64 bits. */
static bool read_header(const uint8_t* data, size_t size, header* h) {
  int32_t fields[7];
  if (size < HEADER_BYTES) return false;
  memcpy(fields, data, sizeof fields);
  *h = (header){.untied = fields[5] < 0};
  if (fields[5] == INT32_MIN) return false;
  if (h->untied) fields[5] = -fields[5];
  static const int32_t limits[7] = {1 << 17, 1 << 20, MAX_LAYERS, 1 << 12, 1 << 12, 1 << 24, 1 << 24};
  for (int i = 0; i < 7; ++i) {
    if (fields[i] < 1 || fields[i] > limits[i]) return false;
  }
  h->width = (uint64_t)fields[0];
  h->feed_forward = (uint64_t)fields[1];
  h->layers = (uint64_t)fields[2];
  h->heads = (uint64_t)fields[3];
  h->kv_heads = (uint64_t)fields[4];
  h->vocabulary = (uint64_t)fields[5];
  h->context = (uint64_t)fields[6];
  if (h->width % h->heads || h->heads % h->kv_heads || h->width / h->heads % 2) return false;
  h->head_width = h->width / h->heads;
  h->kv_width = h->head_width * h->kv_heads;
  return true;
}

static uint64_t part_elements(const part* p) {
  return p->rank == 1 ? p->dims[0] : p->dims[0] * p->dims[1];
}

bool llama2c_recognise(const uint8_t* data, size_t size, uint64_t* expected_size) {
  header h;
  *expected_size = 0;
  if (!read_header(data, size, &h)) return false;
  part parts[PART_COUNT];
  list_parts(&h, parts);
  uint64_t elements = 0;
  for (int i = 0; i < PART_COUNT; ++i) elements += part_elements(&parts[i]) * (parts[i].per_layer ? h.layers : 1);
  *expected_size = HEADER_BYTES + elements * sizeof(float);
  return *expected_size == size;
}

static genai_status* add_metadata(checkpoint* out, const header* h, const char* path) {
  const struct {
    const char* key;
    gguf_value value;
  } list[] = {
      {"general.architecture", {.type = GGUF_STRING, .as.s = text_view_of("llama")}},
      {"llama.block_count", {.type = GGUF_U32, .as.u = h->layers}},
      {"llama.embedding_length", {.type = GGUF_U32, .as.u = h->width}},
      {"llama.feed_forward_length", {.type = GGUF_U32, .as.u = h->feed_forward}},
      {"llama.attention.head_count", {.type = GGUF_U32, .as.u = h->heads}},
      {"llama.attention.head_count_kv", {.type = GGUF_U32, .as.u = h->kv_heads}},
      {"llama.vocab_size", {.type = GGUF_U32, .as.u = h->vocabulary}},
      {"llama.context_length", {.type = GGUF_U32, .as.u = h->context}},
      {"llama.rope.dimension_count", {.type = GGUF_U32, .as.u = h->head_width}},
      /* Constants of llama2.c's run.c. */
      {"llama.attention.layer_norm_rms_epsilon", {.type = GGUF_F32, .as.f = (double)1e-5f}},
      {"llama.rope.freq_base", {.type = GGUF_F32, .as.f = 10000}},
  };
  for (size_t i = 0; i < sizeof list / sizeof list[0]; ++i) {
    gguf_value value = list[i].value;
    value.key = list[i].key;
    GENAI_TRY(checkpoint_add_metadata(out, &value, path));
  }
  return NULL;
}

genai_status* llama2c_parse(checkpoint* out, const uint8_t* data, size_t size, const char* path) {
  uint64_t expected = 0;
  if (!llama2c_recognise(data, size, &expected))
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: %zu bytes, expected %llu for the sizes in its llama2.c header", path, size,
                               (unsigned long long)expected);
  header h;
  read_header(data, size, &h);
  out->format = CHECKPOINT_LLAMA2C;
  GENAI_TRY(add_metadata(out, &h, path));
  part parts[PART_COUNT];
  list_parts(&h, parts);
  const uint8_t* at = data + HEADER_BYTES;
  for (int i = 0; i < PART_COUNT; ++i) {
    uint64_t bytes = part_elements(&parts[i]) * sizeof(float);
    for (uint64_t layer = 0; layer < (parts[i].per_layer ? h.layers : 1); ++layer, at += bytes) {
      if (!parts[i].name || !bytes) continue;
      checkpoint_tensor tensor = {.type = ELEMENT_F32, .rank = parts[i].rank, .data = at, .bytes = bytes};
      memcpy(tensor.dims, parts[i].dims, sizeof parts[i].dims);
      tensor.name =
          parts[i].per_layer ? arena_printf(&out->memory, "blk.%llu.%s", (unsigned long long)layer, parts[i].name) : parts[i].name;
      if (!tensor.name) return genai_status_out_of_memory();
      GENAI_TRY(checkpoint_add_tensor(out, &tensor, path));
    }
  }
  return NULL;
}

genai_status* llama2c_open(checkpoint* out, const char* path) {
  const mapped_file* file;
  GENAI_TRY(checkpoint_map(out, path, &file));
  return llama2c_parse(out, file->data, file->size, path);
}
