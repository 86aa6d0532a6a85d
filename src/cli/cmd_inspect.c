/* genai inspect: what is in a checkpoint or an artifact. Which of the two a file is, is read off its first bytes. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/inspect.h"
#include "pipeline/qairt.h"

static const option_spec options[] = {
    {"--all", NULL, false, "every tensor, every metadata value, every constant method"},
    {"--qnn-dir", "DIR", false, "folder of Qualcomm's libraries, which read context binaries (searched: genai doctor)"},
    OPTIONS_OUTPUT,
};

static bool is_program(const char* path) {
  unsigned char head[8] = {0};
  FILE* file = path_is_directory(path) ? NULL : fopen(path, "rb");
  if (!file) return false;
  bool found = fread(head, 1, sizeof head, file) == sizeof head && !memcmp(head + 4, "ET12", 4);
  fclose(file);
  return found;
}

static genai_status* run(cli* app, const arguments* given) {
  const char* path = given->positionals[0];
  text out = {0};
  inspection how = {
      .path = path, .qnn_dir = argument_value(given, "--qnn-dir"), .all = argument_given(given, "--all"), .json = app->json, .out = &out};
  json_writer_init(&how.writer, &out, false);
  char* bundle;
  genai_status* status = qairt_bundle_find(path, &bundle);
  if (!status) status = bundle ? inspect_bundle(&how, bundle) : is_program(path) ? inspect_program(&how) : inspect_checkpoint(&how);
  mem_free(bundle);
  if (app->json) {
    genai_status* written = status ? json_writer_finish(&how.writer) : cli_print_json(&how.writer, &out);
    if (status) {
      genai_status_free(written);
    } else {
      status = written;
    }
  } else {
    if (!status) cli_print(&out);
    genai_status_free(json_writer_finish(&how.writer));
  }
  text_deinit(&out);
  return status;
}

const command_spec command_inspect = {
    .name = "inspect",
    .positionals = "FILE",
    .min_positionals = 1,
    .max_positionals = 1,
    .summary = "what is in a GGUF, a Hugging Face directory, a .pte or a Genie bundle",
    .details =
        "A .pte is explained with its methods, tensors, encodings (read out of the context binary), delegate options and provenance.",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .run = run,
};
