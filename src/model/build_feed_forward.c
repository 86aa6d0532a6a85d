/* The feed-forward block: gated or plain, with SiLU or one of the two GELU forms. */
#include "builder.h"

/* silu(x) = x sigmoid(x). The tanh form of GELU is x sigmoid(2u) with u = sqrt(2 / pi) (x + 0.044715 x^3), because
 * (1 + tanh(u)) / 2 = sigmoid(2u): exact, one operator fewer, and the factor's range is [0, 1] whatever x is. */
static ir_tensor* activate(builder* self, ir_tensor* x) {
  const double twice_root = 1.5957691216057308; /* 2 sqrt(2 / pi) */
  ir_tensor* inner = x;
  switch (self->model->activation) {
    case ACTIVATION_GELU_ERF:
      return builder_unary(self, IR_GELU, "activation", x);
    case ACTIVATION_GELU_TANH: {
      ir_tensor* square = builder_binary(self, IR_MULTIPLY, "activation_square", x, x);
      ir_tensor* cubic = builder_scalar(self, "gelu_cubic", (float)(twice_root * 0.044715));
      ir_tensor* slope = builder_binary(self, IR_MULTIPLY, "activation_cubic", square, cubic);
      slope = builder_binary(self, IR_ADD, "activation_slope", slope, builder_scalar(self, "gelu_linear", (float)twice_root));
      inner = builder_binary(self, IR_MULTIPLY, "activation_inner", slope, x);
      break;
    }
    case ACTIVATION_SILU:
      break;
  }
  return builder_binary(self, IR_MULTIPLY, "activation", x, builder_unary(self, IR_SIGMOID, "sigmoid", inner));
}

ir_tensor* build_feed_forward(builder* self, ir_tensor* x, double output_scale) {
  const model* m = self->model;
  self->part = "feed_forward";
  linear_part gate = {.slot = SLOT_GATE, .rows = m->feed_forward, .scale = 1.0}, up = gate;
  up.slot = SLOT_UP;
  ir_tensor* inner;
  if (m->family->features & PLAIN_FEED_FORWARD) {
    inner = activate(self, builder_linear(self, "up_proj", x, &up));
  } else {
    if (tensors_fused_gate_up(m, (uint32_t)self->layer)) {
      gate.slot = up.slot = SLOT_GATE_UP;
      up.first_row = m->feed_forward;
    }
    ir_tensor* gated = builder_linear(self, "gate_proj", x, &gate);
    ir_tensor* values = builder_linear(self, "up_proj", x, &up);
    inner = builder_binary(self, IR_MULTIPLY, "gated", activate(self, gated), values);
  }
  linear_part down = {.slot = SLOT_DOWN, .rows = m->hidden, .scale = output_scale};
  ir_tensor* y = builder_linear(self, "down_proj", inner, &down);
  self->part = NULL;
  return y;
}
