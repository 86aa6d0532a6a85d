/* The built-in calibration set: texts written for this project, covering what prompts look like (prose, dialogue, code, numbers, lists,
 * several scripts), so that calibration needs no download and is the same everywhere. */
#ifndef GENAI_QUANTIZE_CALIBRATION_TEXT_H
#define GENAI_QUANTIZE_CALIBRATION_TEXT_H

#include <stddef.h>

typedef struct calibration_sample {
  const char* user;  /* NULL: `reply` is plain text, to be tokenized as it is */
  const char* reply; /* with `user`: what the assistant answers; put both through the chat template where the model has one */
} calibration_sample;

/* The set, most useful first; lives as long as the program. */
const calibration_sample* calibration_samples(size_t* count);

#endif
