/* Fuzz target: pte_open_buffer on any bytes, then a walk over everything it shows. */
#include <string.h>

#include "executorch/pte.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

static volatile uint8_t sink;

static void touch(const void* data, size_t size) {
  for (size_t i = 0; i < size; i++) sink ^= ((const uint8_t*)data)[i];
}

static void touch_method(const pte_method_view* method) {
  touch(method->name, strlen(method->name));
  for (size_t i = 0; i < method->n_values; i++) {
    if (method->values[i].kind == PTE_STRING) touch(method->values[i].as.s, strlen(method->values[i].as.s));
  }
  if (method->is_delegate) touch(method->delegate_id, strlen(method->delegate_id));
  if (!method->context_binary) return;
  touch(method->context_binary, method->context_binary_size);
  touch(method->delegate_inputs, method->n_inputs * sizeof *method->delegate_inputs);
  touch(method->delegate_outputs, method->n_outputs * sizeof *method->delegate_outputs);
  for (uint32_t i = 0; i < method->n_inputs; i++) touch(method->inputs[i].name, strlen(method->inputs[i].name));
  for (uint32_t i = 0; i < method->n_outputs; i++) touch(method->outputs[i].name, strlen(method->outputs[i].name));
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uint8_t* aligned = mem_alloc_aligned(16, size);
  if (!aligned) return 0;
  if (size) memcpy(aligned, data, size);
  pte_file* file;
  genai_status* status = pte_open_buffer(aligned, size, "fuzz.pte", &file);
  if (!status) {
    int64_t number;
    for (size_t i = 0; i < pte_method_count(file); i++) {
      touch_method(pte_method_at(file, i));
      pte_get_int(file, pte_method_at(file, i)->name, &number);
    }
    pte_close(file);
  }
  genai_status_free(status);
  mem_free(aligned);
  return 0;
}
