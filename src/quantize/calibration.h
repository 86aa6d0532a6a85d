/* What calibration saw, as the passes take it. Internal to the room. */
#ifndef GENAI_QUANTIZE_CALIBRATION_H
#define GENAI_QUANTIZE_CALIBRATION_H

#include "quantize/moments.h"
#include "quantize/neurons.h"
#include "quantize/quantize.h"

typedef struct observed {
  const char* name;
  float low, high; /* low > high: no range was taken */
  moments* inputs; /* of a tensor that linear layers read; else NULL */
} observed;

struct calibration {
  arena names;
  observed* table; /* open addressing, power of two */
  size_t capacity, count;
  outlier_neuron* neurons; /* grouped by product */
  size_t n_neurons;
  uint64_t tokens;
  double seconds;
};

/* The entry of a tensor, made when it is new. */
genai_status* calibration_entry(calibration* self, const char* tensor, observed** out) GENAI_MUST_USE;
/* Moments of a tensor that linear layers read; NULL when none were taken. */
const moments* calibration_moments(const calibration* self, const char* tensor);
genai_status* calibration_add_neuron(calibration* self, const char* product, uint32_t channel) GENAI_MUST_USE;

#endif
