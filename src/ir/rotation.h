/* The orthogonal matrix R that rotates the residual stream: R = D (H ⊗ Q), where n = 2^k m with m odd, H is the Walsh-Hadamard matrix of order
 * 2^k, Q the discrete Hartley matrix of order m (both normalised, symmetric, orthogonal) and D a diagonal of fixed pseudo-random signs. Any
 * size has one, it is applied in n (k + m) steps, and it spreads a single large channel over all of them.
 *
 * Hadamard rotations against outliers: Ashkboos et al. 2024 (QuaRot), Liu et al. 2024 (SpinQuant, R1). */
#ifndef GENAI_IR_ROTATION_H
#define GENAI_IR_ROTATION_H

#include <stddef.h>
#include <stdint.h>

#include "genai/status.h"

typedef struct rotation rotation; /* the tables for one size */

/* GENAI_ERROR_UNSUPPORTED when the odd part of `size` is above 255. */
genai_status* rotation_create(uint32_t size, rotation** out) GENAI_MUST_USE;
/* A rotation whose entries all have one magnitude, so that a weight of any number of bits holds it exactly: Q is a Hadamard matrix of Paley's
 * two constructions (Paley 1933), of order m 2^j. GENAI_ERROR_UNSUPPORTED when they give none whose order divides `size` by a power of two. */
genai_status* rotation_create_flat(uint32_t size, rotation** out) GENAI_MUST_USE;
void rotation_destroy(rotation* self); /* accepts NULL */

/* x <- x R for each of `count` rows of `size` elements. */
void rotation_apply_rows(const rotation* self, float* rows, size_t count);
/* The same for each column of a dense matrix [size][width]: W <- R^T W. `scratch` holds rotation_scratch(self) * width floats. */
void rotation_apply_columns(const rotation* self, float* matrix, size_t width, float* scratch);
size_t rotation_scratch(const rotation* self);

#endif
