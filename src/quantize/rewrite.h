/* Steps that passes over a float graph share. Internal to the room. */
#ifndef GENAI_QUANTIZE_REWRITE_H
#define GENAI_QUANTIZE_REWRITE_H

#include "ir/ir.h"

/* The weight of the projections that rotate what norms write to the residual stream (rotate.c). */
#define ROTATION_WEIGHT "residual_rotation.weight"

/* Whether the graph's residual stream is rotated between norms. Calibration and ranges are more careful then (docs/recipes.md): for models without
 * norms behind their blocks the same care brought nothing that was measurable. */
bool rotated_between_norms(const ir_graph* graph);

/* Adds an operator and puts it at *position, which then stands behind it. `out` may be NULL. */
genai_status* rewrite_insert(ir_graph* graph, ir_op_kind kind, const char* name, const int32_t* inputs, uint32_t n_inputs, int32_t output,
                             int32_t* position, ir_op** out) GENAI_MUST_USE;
/* All values of a static, in the graph's arena. */
genai_status* rewrite_read(ir_graph* graph, const ir_tensor* tensor, float** out) GENAI_MUST_USE;
/* Makes a static hold constants of the same shape; `values` are in the graph's arena. */
void rewrite_constants(ir_tensor* tensor, const float* values);

#endif
