/* Rounding of a linear weight's rows that passes its errors on.
 *
 * Rounding each weight w_j to the nearest q_j leaves the layer's output off by sum_j e_j x_j, e = q - w. For inputs x = sum_i a_i u_i + noise
 * with few strong directions u_i (the token that attention uses as a sink, above all) the sum is made small along these: columns are
 * rounded in turn, the error so far along each direction, r_i = sum_j e_j u_ij, is kept, and the columns to come are moved by
 *
 *   d_j = -(1 / D_j) u_j^T (I + sum_{j' to come} u_j' u_j'^T / D_j')^-1 r
 *
 * before they are rounded: the least-squares answer for the second moment H = diag(D) + sum_i u_i u_i^T of the inputs. It is the recursion of
 * GPTQ (Frantar et al. 2022, equation 3) for such an H, where it needs the directions alone and no Cholesky factor, so that a row can be
 * rounded whenever it is read. Errors are handed on after runs of IR_FEEDBACK_RUN columns, at
 * the end of the row after ever shorter ones. */
#ifndef GENAI_IR_FEEDBACK_H
#define GENAI_IR_FEEDBACK_H

#include "ir/ir.h"

enum { IR_FEEDBACK_RUN = 16, IR_FEEDBACK_MAX_DIRECTIONS = 16 };

struct ir_feedback {
  uint32_t directions;
  const float* inputs; /* u: [directions][cols] */
  const float* moves;  /* what a unit of r moves each column by: [directions][cols] */
};

/* Works out `moves` for `inputs` and `diagonal` (D, [cols], all > 0). Everything is put into `memory`. */
genai_status* ir_feedback_create(arena* memory, uint32_t directions, const float* inputs, const float* diagonal, size_t cols,
                                 const ir_feedback** out) GENAI_MUST_USE;

genai_status* ir_feedback_copy(arena* memory, const ir_feedback* source, size_t cols, const ir_feedback** out) GENAI_MUST_USE;

/* The values of row `channel` of the linear weight, moved to points of its encoding's grid; unchanged without feedback. Rounding them to
 * the nearest then changes nothing. */
void ir_feedback_apply(const ir_tensor* weight, uint64_t channel, float* row);

#endif
