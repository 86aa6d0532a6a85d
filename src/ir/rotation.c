/* Fast application of the residual rotation: signs, the Hartley part over runs of m elements, butterflies over runs of runs. */
#include "ir/rotation.h"

#include <math.h>
#include <string.h>

#include "base/hot.h"
#include "base/memory.h"

enum { LANES = 16, MAX_ODD = 255 };

struct rotation {
  uint32_t size, odd; /* size = odd * a power of two */
  uint32_t padded;    /* odd, rounded up to LANES */
  float* signs;       /* [size], with both normalisations in them */
  float* hartley;     /* [odd][padded], not normalised */
};

/* SplitMix64's finaliser: a fixed, well mixed bit for each index. */
static float sign_of(uint64_t index) {
  uint64_t z = (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return (z ^ z >> 31) & 1 ? -1.0f : 1.0f;
}

genai_status* rotation_create(uint32_t size, rotation** out) {
  if (!size) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "a rotation needs a size of at least 1");
  uint32_t power = size & (~size + 1), odd = size / power;
  if (odd > MAX_ODD)
    return genai_status_create(GENAI_ERROR_UNSUPPORTED, "a hidden size of %u = %u x %u has an odd part above %d; it cannot be rotated fast",
                               size, power, odd, MAX_ODD);
  rotation* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  self->size = size;
  self->odd = odd;
  self->padded = (odd + LANES - 1) / LANES * LANES;
  self->signs = mem_calloc(size, sizeof *self->signs);
  self->hartley = mem_calloc((size_t)self->odd * self->padded, sizeof *self->hartley);
  if (!self->signs || !self->hartley) {
    rotation_destroy(self);
    return genai_status_out_of_memory();
  }
  double norm = 1.0 / sqrt((double)size);
  for (uint32_t i = 0; i < size; i++) self->signs[i] = sign_of(i) * (float)norm;
  for (uint32_t i = 0; i < self->odd; i++) {
    for (uint32_t j = 0; j < self->odd; j++) {
      double angle = 2.0 * 3.14159265358979323846 * ((double)i * j / self->odd);
      self->hartley[(size_t)i * self->padded + j] = (float)(cos(angle) + sin(angle));
    }
  }
  *out = self;
  return NULL;
}

void rotation_destroy(rotation* self) {
  if (!self) return;
  mem_free(self->signs);
  mem_free(self->hartley);
  mem_free(self);
}

size_t rotation_scratch(const rotation* self) {
  return self->odd;
}

BASE_HOT static void butterflies(float* x, size_t size, size_t run) {
  for (size_t half = run; half < size; half *= 2) {
    for (size_t start = 0; start < size; start += 2 * half) {
      float *a = x + start, *b = x + start + half;
      for (size_t i = 0; i < half; i++) {
        float sum = a[i] + b[i], difference = a[i] - b[i];
        a[i] = sum;
        b[i] = difference;
      }
    }
  }
}

/* LANES sums side by side, which the compiler keeps in registers. */
typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float))));

/* Each run of `odd` elements times the Hartley matrix, LANES outputs at a time. Results go to a buffer first: a store of whole LANES spills
 * into the next run, which overwrites it with its own. */
BASE_HOT static void hartley_runs(const rotation* self, float* x) {
  enum { BUFFER = 4096 };
  float buffer[BUFFER + LANES];
  size_t odd = self->odd, padded = self->padded, piece = BUFFER / odd * odd;
  for (size_t begin = 0; begin < self->size; begin += piece) {
    size_t length = self->size - begin < piece ? self->size - begin : piece;
    for (size_t start = 0; start < length; start += odd) {
      const float* run = x + begin + start;
      for (size_t first = 0; first < odd; first += LANES) {
        const float* line = self->hartley + first;
        lanes sum = {0};
        for (size_t i = 0; i < odd; i++, line += padded) sum += *(const lanes*)(const void*)line * run[i];
        *(lanes*)(void*)(buffer + start + first) = sum;
      }
    }
    memcpy(x + begin, buffer, length * sizeof *buffer);
  }
}

void rotation_apply_rows(const rotation* self, float* rows, size_t count) {
  for (size_t r = 0; r < count; r++) {
    float* x = rows + r * self->size;
    for (size_t i = 0; i < self->size; i++) x[i] *= self->signs[i];
    if (self->odd > 1) hartley_runs(self, x);
    butterflies(x, self->size, self->odd);
  }
}

BASE_HOT static void hartley_columns(const rotation* self, float* run, float* scratch, size_t width) {
  size_t odd = self->odd;
  memset(scratch, 0, odd * width * sizeof *scratch);
  for (size_t j = 0; j < odd; j++) {
    for (size_t i = 0; i < odd; i++) {
      float factor = self->hartley[i * self->padded + j];
      for (size_t c = 0; c < width; c++) scratch[j * width + c] += factor * run[i * width + c];
    }
  }
  memcpy(run, scratch, odd * width * sizeof *run);
}

void rotation_apply_columns(const rotation* self, float* matrix, size_t width, float* scratch) {
  for (size_t i = 0; i < self->size; i++) {
    for (size_t c = 0; c < width; c++) matrix[i * width + c] *= self->signs[i];
  }
  for (size_t start = 0; self->odd > 1 && start < self->size; start += self->odd)
    hartley_columns(self, matrix + start * width, scratch, width);
  butterflies(matrix, self->size * width, self->odd * width);
}
