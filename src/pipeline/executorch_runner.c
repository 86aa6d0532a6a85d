/* The executorch engine's host runner: a .pte file, whose graphs the decoder of the runtime drives on the simulator. */
#include "base/memory.h"
#include "pipeline/executorch.h"
#include "pipeline/generator.h"
#include "pipeline/session.h"

typedef struct pte_generator {
  generator base;
  session* session;
} pte_generator;

static genai_status* generate_with_session(generator* base, const int32_t* prompt, size_t count, const generate_options* options,
                                           generate_token_sink sink, void* user, generate_result* out) {
  decoder* sequence = session_decoder(((pte_generator*)base)->session);
  decoder_reset(sequence);
  return generate(sequence, prompt, count, options, sink, user, out);
}

static void close_session(generator* base) {
  session_close(((pte_generator*)base)->session);
  mem_free(base);
}

static genai_status* open_pte(const char* path, const genai_options* options, generator** out) {
  static const generator_vtable vtable = {generate_with_session, close_session};
  pte_generator* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  genai_status* status = session_open_pte(path, genai_options_get(options, "qnn_dir"), &self->session);
  if (status) {
    mem_free(self);
    return status;
  }
  decoder* sequence = session_decoder(self->session);
  self->base = (generator){.vtable = &vtable,
                           .record = session_provenance(self->session),
                           .context_length = decoder_context_length(sequence),
                           .vocab_size = decoder_vocab_size(sequence),
                           .longest_prompt = decoder_context_length(sequence),
                           .load_seconds = session_load_seconds(self->session)};
  *out = &self->base;
  return NULL;
}

genai_status* executorch_host_runner_create(genai_device_runner** out) {
  static const runner_format format = {"a .pte file", {".sim.pte", ".pte"}, open_pte};
  return host_runner_create(&format, out);
}
