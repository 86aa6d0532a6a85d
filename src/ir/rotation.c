/* Fast application of the residual rotation: signs, Q over runs of as many elements as its order, butterflies over runs of runs. */
#include "ir/rotation.h"

#include <math.h>
#include <string.h>

#include "base/hot.h"
#include "base/memory.h"

enum { LANES = 16, MAX_ORDER = 255 };

struct rotation {
  uint32_t size, order; /* size = order * a power of two */
  uint32_t padded;      /* order, rounded up to LANES */
  float* signs;         /* [size], with both normalisations in them */
  float* base;          /* Q: [order][padded], not normalised */
};

/* SplitMix64's finaliser: a fixed, well mixed bit for each index. */
static float sign_of(uint64_t index) {
  uint64_t z = (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return (z ^ z >> 31) & 1 ? -1.0f : 1.0f;
}

/* Without the values of Q. */
static genai_status* create(uint32_t size, uint32_t order, rotation** out) {
  rotation* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  self->size = size;
  self->order = order;
  self->padded = (order + LANES - 1) / LANES * LANES;
  self->signs = mem_calloc(size, sizeof *self->signs);
  self->base = mem_calloc((size_t)self->order * self->padded, sizeof *self->base);
  if (!self->signs || !self->base) {
    rotation_destroy(self);
    return genai_status_out_of_memory();
  }
  double norm = 1.0 / sqrt((double)size);
  for (uint32_t i = 0; i < size; i++) self->signs[i] = sign_of(i) * (float)norm;
  *out = self;
  return NULL;
}

static uint32_t odd_part(uint32_t size) {
  return size / (size & (~size + 1));
}

genai_status* rotation_create(uint32_t size, rotation** out) {
  if (!size) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "a rotation needs a size of at least 1");
  uint32_t odd = odd_part(size);
  if (odd > MAX_ORDER)
    return genai_status_create(GENAI_ERROR_UNSUPPORTED, "a hidden size of %u = %u x %u has an odd part above %d; it cannot be rotated fast",
                               size, size / odd, odd, MAX_ORDER);
  rotation* self;
  GENAI_TRY(create(size, odd, &self));
  for (uint32_t i = 0; i < odd; i++) {
    for (uint32_t j = 0; j < odd; j++) {
      double angle = 2.0 * 3.14159265358979323846 * ((double)i * j / odd);
      self->base[(size_t)i * self->padded + j] = (float)(cos(angle) + sin(angle));
    }
  }
  *out = self;
  return NULL;
}

static bool is_prime(uint32_t n) {
  for (uint32_t i = 2; i * i <= n; i++) {
    if (n % i == 0) return false;
  }
  return n > 1;
}

/* 1 for squares modulo the prime q, -1 for others, 0 for 0. */
static float character(uint32_t n, uint32_t q) {
  for (uint32_t i = 1; i < q && n; i++) {
    if (i * i % q == n) return 1.0f;
  }
  return n ? -1.0f : 0.0f;
}

/* The prime that Paley's first (order q + 1, q = 3 mod 4) or second (order 2 (q + 1), q = 1 mod 4) construction of this order needs; 0: none. */
static uint32_t paley_prime(uint32_t order) {
  if (order >= 4 && order % 4 == 0 && is_prime(order - 1)) return order - 1;
  if (order >= 4 && order % 4 == 0 && order / 2 % 4 == 2 && is_prime(order / 2 - 1)) return order / 2 - 1;
  return 0;
}

/* Entry of the conference matrix: 0 on the diagonal, characters of differences, and a border of 1 above and of 1 (q = 1 mod 4: symmetric)
 * or -1 (q = 3 mod 4: skew) at the left. */
static float conference(uint32_t row, uint32_t column, uint32_t q) {
  if (row == column) return 0;
  if (row == 0) return 1;
  if (column == 0) return q % 4 == 1 ? 1.0f : -1.0f;
  return character((row + q - column) % q, q);
}

static float paley_entry(uint32_t row, uint32_t column, uint32_t q) {
  if (q % 4 == 3) return row == column ? 1.0f : conference(row, column, q);
  float entry = conference(row / 2, column / 2, q);
  bool corner = row % 2 && column % 2;
  if (entry == 0) return row % 2 == 0 && column % 2 == 0 ? 1.0f : -1.0f;
  return corner ? -entry : entry;
}

genai_status* rotation_create_flat(uint32_t size, rotation** out) {
  if (!size) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "a rotation needs a size of at least 1");
  uint32_t order = odd_part(size), q = 0;
  while (order > 1 && order <= MAX_ORDER && size % order == 0 && !(q = paley_prime(order))) order *= 2;
  if (order > 1 && !q)
    return genai_status_create(GENAI_ERROR_UNSUPPORTED,
                               "a hidden size of %u has no Hadamard matrix among those of Paley's constructions up to order %d", size,
                               MAX_ORDER);
  rotation* self;
  GENAI_TRY(create(size, order, &self));
  for (uint32_t i = 0; i < order; i++) {
    for (uint32_t j = 0; j < order; j++) self->base[(size_t)i * self->padded + j] = order > 1 ? paley_entry(i, j, q) : 1.0f;
  }
  *out = self;
  return NULL;
}

void rotation_destroy(rotation* self) {
  if (!self) return;
  mem_free(self->signs);
  mem_free(self->base);
  mem_free(self);
}

size_t rotation_scratch(const rotation* self) {
  return self->order;
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

/* Each run of `order` elements times Q, LANES outputs at a time. Results go to a buffer first: a store of whole LANES spills
 * into the next run, which overwrites it with its own. */
BASE_HOT static void base_runs(const rotation* self, float* x) {
  enum { BUFFER = 4096 };
  float buffer[BUFFER + LANES];
  size_t order = self->order, padded = self->padded, piece = BUFFER / order * order;
  for (size_t begin = 0; begin < self->size; begin += piece) {
    size_t length = self->size - begin < piece ? self->size - begin : piece;
    for (size_t start = 0; start < length; start += order) {
      const float* run = x + begin + start;
      for (size_t first = 0; first < order; first += LANES) {
        const float* line = self->base + first;
        lanes sum = {0};
        for (size_t i = 0; i < order; i++, line += padded) sum += *(const lanes*)(const void*)line * run[i];
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
    if (self->order > 1) base_runs(self, x);
    butterflies(x, self->size, self->order);
  }
}

BASE_HOT static void base_columns(const rotation* self, float* run, float* scratch, size_t width) {
  size_t order = self->order;
  memset(scratch, 0, order * width * sizeof *scratch);
  for (size_t j = 0; j < order; j++) {
    for (size_t i = 0; i < order; i++) {
      float factor = self->base[i * self->padded + j];
      for (size_t c = 0; c < width; c++) scratch[j * width + c] += factor * run[i * width + c];
    }
  }
  memcpy(run, scratch, order * width * sizeof *run);
}

void rotation_apply_columns(const rotation* self, float* matrix, size_t width, float* scratch) {
  for (size_t i = 0; i < self->size; i++) {
    for (size_t c = 0; c < width; c++) matrix[i * width + c] *= self->signs[i];
  }
  for (size_t start = 0; self->order > 1 && start < self->size; start += self->order)
    base_columns(self, matrix + start * width, scratch, width);
  butterflies(matrix, self->size * width, self->order * width);
}
