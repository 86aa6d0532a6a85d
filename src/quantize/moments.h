/* Second moments of the inputs of linear layers, as their weights' rounding needs them (ir/feedback.h): the strongest directions and the
 * diagonal. A running sketch: rows come in over several passes and are not kept. Internal to the room. */
#ifndef GENAI_QUANTIZE_MOMENTS_H
#define GENAI_QUANTIZE_MOMENTS_H

#include "ir/feedback.h"

typedef struct moments {
  uint32_t directions, cols;
  float* strong;   /* [directions][cols]: unit directions times the root of their moment, strongest first; zeros where there are fewer */
  float* diagonal; /* [cols]: moments of the single inputs */
} moments;

genai_status* moments_create(uint32_t cols, uint32_t directions, moments** out) GENAI_MUST_USE;
void moments_destroy(moments* self); /* accepts NULL */
/* Takes in rows[count][cols] of tokens at `places` in their texts. A quarter of the weight goes to the tokens at place 0: attention uses the first
 * token as a sink, so that nearly every other token reads its keys and values. At most some hundred rows are looked at. */
genai_status* moments_add(moments* self, const float* rows, const int32_t* places, size_t count) GENAI_MUST_USE;
/* The error feedback along the strong directions; NULL when all inputs were zero. */
genai_status* moments_feedback(const moments* self, arena* memory, const ir_feedback** out) GENAI_MUST_USE;

#endif
