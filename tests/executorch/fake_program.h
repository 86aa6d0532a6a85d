/* A small program with every feature that pte_write knows, around bytes that stand for a context binary. */
#ifndef GENAI_TESTS_EXECUTORCH_FAKE_PROGRAM_H
#define GENAI_TESTS_EXECUTORCH_FAKE_PROGRAM_H

#include "executorch/pte.h"
#include "scratch.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const executor_port fake_prefill_inputs[] = {
    {.name = "tokens", .dtype = IR_I32, .rank = 2, .dims = {1, 32}, .scale = 1},
    {.name = "mask", .dtype = IR_U16, .rank = 4, .dims = {1, 1, 32, 128}, .scale = 1},
    {.name = "k0", .dtype = IR_U8, .rank = 4, .dims = {1, 3, 64, 96}, .scale = 1},
};
static const executor_port fake_prefill_outputs[] = {
    {.name = "logits", .dtype = IR_U16, .rank = 3, .dims = {1, 32, 512}, .scale = 1},
    {.name = "k0_new", .dtype = IR_U8, .rank = 4, .dims = {1, 3, 64, 32}, .scale = 1},
    {.name = "v0_new", .dtype = IR_S8, .rank = 4, .dims = {1, 3, 32, 64}, .scale = 1},
};
static const executor_port fake_decode_inputs[] = {
    {.name = "x", .dtype = IR_F32, .rank = 5, .dims = {1, 2, 3, 4, 5}, .scale = 1},
    {.name = "h", .dtype = IR_F16, .rank = 1, .dims = {7}, .scale = 1},
};
static const executor_port fake_decode_outputs[] = {{.name = "y", .dtype = IR_S16, .rank = 1, .dims = {9}, .scale = 1}};

static const uint32_t fake_output_order[] = {2, 0, 1};
static const uint32_t fake_input_order[] = {1, 2, 0};

static const pte_method fake_methods[] = {
    {.name = "prefill_forward",
     .n_inputs = COUNT(fake_prefill_inputs),
     .n_outputs = COUNT(fake_prefill_outputs),
     .inputs = fake_prefill_inputs,
     .outputs = fake_prefill_outputs,
     .binary_output_order = fake_output_order,
     .binary_input_order = fake_input_order},
    {.name = "kv_forward",
     .n_inputs = COUNT(fake_decode_inputs),
     .n_outputs = COUNT(fake_decode_outputs),
     .inputs = fake_decode_inputs,
     .outputs = fake_decode_outputs},
};

static const pte_scalar fake_layers[] = {{PTE_INT, {.i = 30}}};
static const pte_scalar fake_cache[] = {{PTE_BOOL, {.b = true}}};
static const pte_scalar fake_attributes[] = {
    {PTE_DOUBLE, {.d = 0.0012867999030277133}}, {PTE_INT, {.i = -5}}, {PTE_INT, {.i = INT64_MAX}}, {PTE_STRING, {.s = "torch.int32"}}};
static const pte_scalar fake_provenance[] = {{PTE_STRING, {.s = "{\"soc\": \"SM8650\"}"}}};

static const pte_constant fake_constants[] = {{"get_n_layers", 1, fake_layers},
                                              {"get_use_kv_cache", 1, fake_cache},
                                              {"get_kv_output_0_quant_attr", COUNT(fake_attributes), fake_attributes},
                                              {PTE_PROVENANCE_METHOD, 1, fake_provenance}};

static uint8_t fake_binary[1000];

static pte_program fake_program(void) {
  for (size_t i = 0; i < sizeof fake_binary; i++) fake_binary[i] = (uint8_t)(i * 7 + 3);
  return (pte_program){
      .n_methods = COUNT(fake_methods),
      .methods = fake_methods,
      .n_constants = COUNT(fake_constants),
      .constants = fake_constants,
      .options = {.soc_model = 57, .htp_arch = 75, .vtcm_mb = 8, .weight_sharing = true, .shared_buffer = true, .performance_mode = 2},
      .context_binary = fake_binary,
      .context_binary_size = sizeof fake_binary};
}

#endif
