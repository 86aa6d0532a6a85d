/* The qairt engine's host runner: a bundle, generated from by libGenie on the simulator. */
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "genie/genie.h"
#include "pipeline/executorch_strategy.h"
#include "pipeline/internal.h"
#include "pipeline/qairt.h"

typedef struct genie_generator {
  generator base;
  qnn_library* base_library;
  genie_library* library;
  genie_bundle bundle;
  genie_dialog* dialog;
  provenance record;
  bool has_record;
  uint32_t widest; /* AR length; 0: unknown */
} genie_generator;

static genai_status* generate_with_genie(generator* base, const int32_t* prompt, size_t count, const generate_options* options,
                                         generate_token_sink sink, void* user, generate_result* out) {
  genie_generator* self = (genie_generator*)base;
  return genie_dialog_generate(self->dialog, self->widest, prompt, count, options, sink, user, out);
}

static void close_bundle(generator* base) {
  genie_generator* self = (genie_generator*)base;
  genie_dialog_destroy(self->dialog);
  genie_library_close(self->library);
  qnn_library_close(self->base_library);
  genie_bundle_deinit(&self->bundle);
  if (self->has_record) provenance_deinit(&self->record);
  mem_free(self);
}

static genai_status* check_loadable(const genie_generator* self, const char* path) {
  qnn_library_info library;
  qnn_library_get_info(self->base_library, &library);
  if (library.is_simulator && !self->record.simulator && self->record.n_graphs > 1)
    return genai_status_create(
        GENAI_ERROR_UNSUPPORTED,
        "the bundle of \"%s\" is for a device: its graphs share weights, which the x86-64 simulator cannot load; run the "
        "one in the folder that ends in " QAIRT_SIMULATOR_SUFFIX " instead",
        path);
  if (self->record.library_build_id && strcmp(self->record.library_build_id, library.build_id))
    log_write(LOG_WARNING, "the bundle of \"%s\" was compiled by libraries %s, these are %s; older ones refuse newer binaries", path,
              self->record.library_build_id, library.build_id);
  return NULL;
}

static genai_status* open(genie_generator* self, const char* path, const genai_options* options) {
  GENAI_TRY(genie_bundle_open(path, &self->bundle));
  GENAI_TRY(qairt_bundle_verify(path));
  GENAI_TRY(qairt_bundle_record(path, &self->record, &self->has_record));
  GENAI_TRY(qnn_library_open(genai_options_get(options, "qnn_dir"), &self->base_library));
  if (self->has_record) GENAI_TRY(check_loadable(self, path));
  for (size_t i = 0; i < self->record.n_graphs; i++) {
    if (self->record.graphs[i].ar_length > self->widest) self->widest = self->record.graphs[i].ar_length;
  }
  GENAI_TRY(genie_library_open(self->base_library, &self->library));
  const sampling_options sampling = executorch_sampling(options);
  return genie_dialog_create(self->library, &self->bundle, &sampling, &self->dialog);
}

static genai_status* open_bundle(const char* path, const genai_options* options, generator** out) {
  static const generator_vtable vtable = {generate_with_genie, close_bundle};
  genie_generator* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  double begun = clock_seconds();
  genai_status* status = open(self, path, options);
  if (status) {
    close_bundle(&self->base);
    return status;
  }
  uint32_t context = self->bundle.context_length, slots = self->widest ? self->widest : 1;
  self->base = (generator){.vtable = &vtable,
                           .record = self->has_record ? &self->record : NULL,
                           .context_length = context,
                           .vocab_size = self->bundle.vocab_size,
                           .longest_prompt = slots < context ? context - slots : 0,
                           .load_seconds = clock_seconds() - begun};
  *out = &self->base;
  return NULL;
}

genai_status* qairt_host_runner_create(genai_device_runner** out) {
  static const runner_format format = {
      "a Genie bundle's " GENIE_CONFIG_FILE, {QAIRT_SIMULATOR_SUFFIX "/" GENIE_CONFIG_FILE, GENIE_CONFIG_FILE}, open_bundle};
  return host_runner_create(&format, out);
}
