/* What calibration saw: a table by tensor name, and the same as bytes. Seeing is calibrate.c's. */
#include "quantize/calibration.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static uint64_t hash_name(const char* name) {
  uint64_t hash = 14695981039346656037u; /* FNV-1a */
  for (; *name; name++) hash = (hash ^ (uint8_t)*name) * 1099511628211u;
  return hash;
}

static observed* slot_of(observed* table, size_t capacity, const char* name) {
  for (size_t i = hash_name(name) & (capacity - 1);; i = (i + 1) & (capacity - 1)) {
    if (!table[i].name || !strcmp(table[i].name, name)) return &table[i];
  }
}

static genai_status* grow(calibration* self) {
  size_t capacity = self->capacity ? self->capacity * 2 : 1024;
  observed* table = mem_calloc(capacity, sizeof *table);
  if (!table) return genai_status_out_of_memory();
  for (size_t i = 0; i < self->capacity; i++) {
    if (self->table[i].name) *slot_of(table, capacity, self->table[i].name) = self->table[i];
  }
  mem_free(self->table);
  self->table = table;
  self->capacity = capacity;
  return NULL;
}

genai_status* calibration_entry(calibration* self, const char* tensor, observed** out) {
  if (2 * (self->count + 1) > self->capacity) GENAI_TRY(grow(self));
  observed* slot = slot_of(self->table, self->capacity, tensor);
  if (!slot->name) {
    char* name = arena_strdup(&self->names, tensor);
    if (!name) return genai_status_out_of_memory();
    *slot = (observed){.name = name, .low = INFINITY, .high = -INFINITY};
    self->count++;
  }
  *out = slot;
  return NULL;
}

static const observed* find(const calibration* self, const char* tensor) {
  if (!self->capacity) return NULL;
  const observed* slot = slot_of(self->table, self->capacity, tensor);
  return slot->name ? slot : NULL;
}

bool calibration_range(const calibration* self, const char* tensor, float* low, float* high) {
  const observed* found = find(self, tensor);
  if (!found || found->low > found->high) return false;
  *low = found->low;
  *high = found->high;
  return true;
}

const moments* calibration_moments(const calibration* self, const char* tensor) {
  const observed* found = find(self, tensor);
  return found ? found->inputs : NULL;
}

genai_status* calibration_add_neuron(calibration* self, const char* product, uint32_t channel) {
  outlier_neuron* grown = mem_realloc_array(self->neurons, self->n_neurons + 1, sizeof *grown);
  if (!grown) return genai_status_out_of_memory();
  self->neurons = grown;
  char* name = arena_strdup(&self->names, product);
  if (!name) return genai_status_out_of_memory();
  grown[self->n_neurons++] = (outlier_neuron){name, channel};
  return NULL;
}

void calibration_destroy(calibration* self) {
  if (!self) return;
  for (size_t i = 0; i < self->capacity; i++) moments_destroy(self->table[i].inputs);
  arena_deinit(&self->names);
  mem_free(self->table);
  mem_free(self->neurons);
  mem_free(self);
}

uint64_t calibration_tokens(const calibration* self) {
  return self->tokens;
}

double calibration_seconds(const calibration* self) {
  return self->seconds;
}

/* As bytes: a header, then entries and neurons, each a fixed part, its name and its floats. */
static const char magic[8] = "genaical";
enum { FORMAT = 2 };

/* A member more must be written and read below, else a resumed run would quantize in another way than an undisturbed one. */
static_assert(sizeof(calibration) ==
                  sizeof(arena) + sizeof(observed*) + sizeof(outlier_neuron*) + 3 * sizeof(size_t) + sizeof(uint64_t) + sizeof(double),
              "calibration_write and calibration_read know every member");

typedef struct calibration_header {
  char magic[8];
  uint32_t format, reserved;
  uint64_t count, neurons, tokens;
  double seconds;
} calibration_header;

typedef struct entry_header {
  uint32_t name_length;
  float low, high;
  uint32_t cols, directions; /* 0: no moments */
} entry_header;

typedef struct neuron_header {
  uint32_t name_length, channel;
} neuron_header;

static genai_status* write_entry(const observed* item, text* out) {
  const moments* inputs = item->inputs;
  entry_header entry = {(uint32_t)strlen(item->name), item->low, item->high, inputs ? inputs->cols : 0, inputs ? inputs->directions : 0};
  GENAI_TRY(text_append(out, (const char*)&entry, sizeof entry));
  GENAI_TRY(text_append(out, item->name, entry.name_length));
  if (!inputs) return NULL;
  GENAI_TRY(text_append(out, (const char*)inputs->strong, (size_t)inputs->cols * inputs->directions * sizeof(float)));
  return text_append(out, (const char*)inputs->diagonal, inputs->cols * sizeof(float));
}

genai_status* calibration_write(const calibration* self, text* out) {
  calibration_header header = {
      .format = FORMAT, .count = self->count, .neurons = self->n_neurons, .tokens = self->tokens, .seconds = self->seconds};
  memcpy(header.magic, magic, sizeof magic);
  GENAI_TRY(text_append(out, (const char*)&header, sizeof header));
  for (size_t i = 0; i < self->capacity; i++) {
    if (self->table[i].name) GENAI_TRY(write_entry(&self->table[i], out));
  }
  for (size_t i = 0; i < self->n_neurons; i++) {
    neuron_header neuron = {(uint32_t)strlen(self->neurons[i].product), self->neurons[i].channel};
    GENAI_TRY(text_append(out, (const char*)&neuron, sizeof neuron));
    GENAI_TRY(text_append(out, self->neurons[i].product, neuron.name_length));
  }
  return NULL;
}

typedef struct byte_reader {
  const uint8_t* data;
  size_t size;
} byte_reader;

static genai_status* cut_short(void) {
  return genai_status_create(GENAI_ERROR_BAD_FILE, "the stored calibration is cut short");
}

static genai_status* read_bytes(byte_reader* from, void* out, size_t size) {
  if (size > from->size) return cut_short();
  memcpy(out, from->data, size);
  from->data += size;
  from->size -= size;
  return NULL;
}

/* `out` is freed by the caller. */
static genai_status* read_name(byte_reader* from, uint32_t length, char** out) {
  if (length > from->size || memchr(from->data, 0, length)) return cut_short();
  *out = mem_strndup((const char*)from->data, length);
  if (!*out) return genai_status_out_of_memory();
  from->data += length;
  from->size -= length;
  return NULL;
}

static genai_status* read_moments(byte_reader* from, const entry_header* header, observed* item) {
  uint64_t floats = (uint64_t)header->cols * header->directions + header->cols;
  if (!header->cols || header->directions < 1 || header->directions > IR_FEEDBACK_MAX_DIRECTIONS || floats > from->size / sizeof(float))
    return cut_short();
  GENAI_TRY(moments_create(header->cols, header->directions, &item->inputs));
  GENAI_TRY(read_bytes(from, item->inputs->strong, (size_t)header->cols * header->directions * sizeof(float)));
  return read_bytes(from, item->inputs->diagonal, header->cols * sizeof(float));
}

static genai_status* read_entry(byte_reader* from, calibration* self) {
  entry_header header;
  char* name = NULL;
  observed* item;
  GENAI_TRY(read_bytes(from, &header, sizeof header));
  GENAI_TRY(read_name(from, header.name_length, &name));
  size_t before = self->count;
  genai_status* status = calibration_entry(self, name, &item);
  if (!status && self->count == before)
    status = genai_status_create(GENAI_ERROR_BAD_FILE, "the stored calibration has tensor \"%s\" twice", name);
  mem_free(name);
  if (status) return status;
  item->low = header.low;
  item->high = header.high;
  return header.cols || header.directions ? read_moments(from, &header, item) : NULL;
}

static genai_status* read_neuron(byte_reader* from, calibration* self) {
  neuron_header header;
  char* name = NULL;
  GENAI_TRY(read_bytes(from, &header, sizeof header));
  GENAI_TRY(read_name(from, header.name_length, &name));
  genai_status* status = calibration_add_neuron(self, name, header.channel);
  mem_free(name);
  return status;
}

genai_status* calibration_read(const void* data, size_t size, calibration** out) {
  byte_reader from = {data, size};
  calibration_header header;
  GENAI_TRY(read_bytes(&from, &header, sizeof header));
  if (memcmp(header.magic, magic, sizeof magic) || header.format != FORMAT)
    return genai_status_create(GENAI_ERROR_BAD_FILE, "the stored calibration has another format than %d", FORMAT);
  calibration* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  self->tokens = header.tokens;
  self->seconds = header.seconds;
  genai_status* status = NULL;
  for (uint64_t i = 0; i < header.count && !status; i++) status = read_entry(&from, self);
  for (uint64_t i = 0; i < header.neurons && !status; i++) status = read_neuron(&from, self);
  if (!status && from.size) status = genai_status_create(GENAI_ERROR_BAD_FILE, "the stored calibration has %zu bytes too many", from.size);
  if (status) {
    calibration_destroy(self);
    return status;
  }
  *out = self;
  return NULL;
}
