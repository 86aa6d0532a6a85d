/* genai report: a page about a run that was made before. Finds the run's record, lets the artifact be inspected, builds the run's graphs once
 * more, measures, and writes the page. What is on the page is src/report. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/inspect.h"
#include "cli/model_session.h"
#include "cli/pipeline_run.h"
#include "genie/genie.h"
#include "pipeline/internal.h"
#include "pipeline/qairt.h"
#include "report/report.h"

#define RECORD_SUFFIX ".run.json"

enum { MAX_RECORD_BYTES = 64 << 20, MAX_TOKENS = 256, MAX_GRAPHS = 2 };

static const char default_text[] =
    "Water moves around the Earth in a cycle that never ends. The sun warms the sea, and some of the water rises into the air as vapour. "
    "High "
    "above the ground it cools, gathers into clouds, and falls again as rain or snow. Some of it runs in rivers back to the sea; some "
    "sinks into "
    "the soil, feeds the roots of trees, and comes up years later in a spring. A farmer in 1850 knew as much: \"What the field gives to "
    "the "
    "sky,\" she said, \"the sky gives back to the field.\" def area(width, height): return width * height";

static const option_spec options[] = {
    {"--out", "FILE", false, "where the page goes (NAME.SOC.report.html beside the record)"},
    {"--prompt", "TEXT", false, "text to measure quality on (a paragraph of English that comes with genai)"},
    {"--ids", "LIST", false, "token ids in place of a text, such as 1,22,333"},
    {"--no-quality", NULL, false, "leave out the measurement of each layer, which calibrates once more"},
    {"--qnn-dir", "DIR", false, "folder of Qualcomm's libraries, which read context binaries (searched: genai doctor)"},
    {"--threads", "N", false, "worker threads; 0 is one per processor (0)"},
    OPTIONS_OUTPUT,
};

typedef struct job {
  cli* app;
  const arguments* given;
  text record_path;
  json_document* record;
  text artifact_json;
  json_document* artifact;
  text no_artifact, not_measured;
  model_session* session;
  const genai_context* context; /* the session's */
  size_t n_graphs;
  report_graph graphs[MAX_GRAPHS];
  report_quality quality;
  bool has_quality;
} job;

static void deinit(job* self) {
  report_quality_deinit(&self->quality);
  model_session_close(self->session);
  text_deinit(&self->no_artifact);
  text_deinit(&self->not_measured);
  json_free(self->artifact);
  text_deinit(&self->artifact_json);
  json_free(self->record);
  text_deinit(&self->record_path);
}

/* ---- The record ---- */
static bool ends_with(const char* string, const char* suffix) {
  size_t length = strlen(string), tail = strlen(suffix);
  return length > tail && !strcmp(string + length - tail, suffix);
}

static genai_status* find_in_folder(const char* folder, text* out) {
  DIR* entries = opendir(folder);
  if (!entries) return genai_status_create(GENAI_ERROR_IO, "cannot read the folder \"%s\": %s", folder, strerror(errno));
  genai_status* status = NULL;
  size_t found = 0;
  text names = {0};
  for (const struct dirent* entry; !status && (entry = readdir(entries));) {
    if (!ends_with(entry->d_name, RECORD_SUFFIX)) continue;
    char* path;
    status = text_printf(&names, "%s%s", found++ ? ", " : "", entry->d_name);
    if (status || (status = path_join(folder, entry->d_name, &path))) break;
    text_clear(out);
    status = text_append_cstr(out, path);
    mem_free(path);
  }
  closedir(entries);
  if (!status && found != 1)
    status = found ? genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "\"%s\" has the records of several runs: name one of %s", folder,
                                         names.data)
                   : genai_status_create(GENAI_ERROR_NOT_FOUND,
                                         "\"%s\" has no record of a run (*" RECORD_SUFFIX
                                         "); genai run writes it beside the artifacts, and genai run --json > FILE gives the same",
                                         folder);
  text_deinit(&names);
  return status;
}

static genai_status* find_record(job* self) {
  const char* given = self->given->positionals[0];
  size_t length = strlen(given);
  while (length > 1 && given[length - 1] == '/') length--;
  char* path = mem_strndup(given, length);
  if (!path) return genai_status_out_of_memory();
  genai_status* status;
  if (ends_with(path, QAIRT_DEVICE_SUFFIX) || ends_with(path, QAIRT_DEVICE_SUFFIX "/" GENIE_CONFIG_FILE) || ends_with(path, ".pte")) {
    status = run_record_path(path, &self->record_path);
  } else {
    status = path_is_directory(path) ? find_in_folder(path, &self->record_path) : text_append_cstr(&self->record_path, path);
  }
  mem_free(path);
  return status;
}

static genai_status* open_record(job* self) {
  GENAI_TRY(find_record(self));
  genai_status* status = json_parse_file(self->record_path.data, MAX_RECORD_BYTES, &self->record);
  if (status)
    return genai_status_wrap(status, genai_status_kind(status),
                             "the run's record cannot be read; genai run writes it beside the artifacts (NAME.SOC" RECORD_SUFFIX ")");
  json_value root = json_root(self->record);
  if (json_type_of(json_get(root, "stages")) == JSON_ARRAY && json_string(json_get(root, "model")).data) return NULL;
  return genai_status_create(GENAI_ERROR_BAD_FILE,
                             "\"%s\" is not the record of a run: it has no \"model\" and \"stages\"; expected what genai run --json prints",
                             self->record_path.data);
}

static char* member(const job* self, const char* key) {
  text_view value = json_string(json_get(json_root(self->record), key));
  return value.data ? mem_strndup(value.data, value.length) : NULL;
}

/* ---- The artifact ---- */
/* A path of the record: as it stands there, or, when the folder was moved, beside the record. */
static genai_status* locate(const job* self, const char* recorded, char** out) {
  if (file_exists(recorded)) {
    *out = mem_strdup(recorded);
    return *out ? NULL : genai_status_out_of_memory();
  }
  char* folder = mem_strndup(self->record_path.data, (size_t)(path_base_name(self->record_path.data) - self->record_path.data));
  if (!folder) return genai_status_out_of_memory();
  genai_status* status = path_join(*folder ? folder : ".", path_base_name(recorded), out);
  mem_free(folder);
  return status;
}

static genai_status* inspect(job* self, const char* path) {
  inspection how = {.path = path, .qnn_dir = argument_value(self->given, "--qnn-dir"), .json = true, .out = &self->artifact_json};
  json_writer_init(&how.writer, &self->artifact_json, false);
  genai_status* status = inspect_program(&how);
  genai_status* written = json_writer_finish(&how.writer);
  if (status) {
    genai_status_free(written);
    return status;
  }
  return written ? written : json_parse(self->artifact_json.data, self->artifact_json.length, path, &self->artifact);
}

/* What cannot be read is said on the page: the rest of it is still of use. */
static genai_status* explain(text* out, const char* what, genai_status* status) {
  char message[1024];
  genai_status_format(status, message, sizeof message);
  genai_status_free(status);
  return text_printf(out, "%s: %s", what, message);
}

static genai_status* read_artifact(job* self) {
  json_value first;
  json_iterator artifacts = json_iterate(json_get(json_root(self->record), "artifacts"));
  text_view recorded = {0};
  if (json_next(&artifacts, NULL, &first)) recorded = json_string(json_get(first, "path"));
  if (!recorded.data) return text_append_cstr(&self->no_artifact, "The run ended before compilation.");
  char* name = mem_strndup(recorded.data, recorded.length);
  char* path = NULL;
  if (!name) return genai_status_out_of_memory();
  genai_status* status = locate(self, name, &path);
  if (!status && ends_with(path, ".pte")) {
    status = inspect(self, path);
    if (status && genai_status_kind(status) != GENAI_ERROR_OUT_OF_MEMORY)
      status = explain(&self->no_artifact, "The artifact cannot be inspected", status);
  } else if (!status) {
    status = text_printf(&self->no_artifact, "%s is not an ExecuTorch program.", path);
  }
  mem_free(path);
  mem_free(name);
  return status;
}

/* ---- The graphs ---- */
static genai_status* fill_context(job* self, const char* checkpoint_path, genai_context_builder* builder) {
  text_view key;
  json_value value;
  char* soc = member(self, "soc");
  GENAI_TRY(genai_context_builder_set_model(builder, checkpoint_path));
  genai_status* status = genai_context_builder_set_soc(builder, soc ? soc : "SM8650");
  mem_free(soc);
  if (!status) status = genai_context_builder_set_no_inference(builder);
  for (json_iterator it = json_iterate(json_get(json_root(self->record), "options")); !status && json_next(&it, &key, &value);) {
    text_view string = json_string(value);
    char* name = mem_strndup(key.data, key.length);
    char* copy = string.data ? mem_strndup(string.data, string.length) : NULL;
    if (!name || (string.data && !copy)) status = genai_status_out_of_memory();
    if (!status && copy) status = genai_context_builder_set_option(builder, name, copy);
    mem_free(name);
    mem_free(copy);
  }
  if (!status && argument_given(self->given, "--threads"))
    status = genai_context_builder_set_option(builder, "threads", argument_value(self->given, "--threads"));
  if (!status) status = genai_context_builder_set_cancel(builder, self->app->cancel);
  return status ? status : genai_context_builder_set_progress(builder, cli_progress, self->app);
}

static bool was_quantized(const job* self) {
  json_value stage;
  for (json_iterator it = json_iterate(json_get(json_root(self->record), "stages")); json_next(&it, NULL, &stage);) {
    if (!text_view_equal_cstr(json_string(json_get(stage, "stage")), "quantization")) continue;
    return !text_view_equal_cstr(json_string(json_get(stage, "state")), "skipped");
  }
  return true;
}

static genai_status* open_session(job* self, const char* checkpoint_path, bool simulated) {
  genai_context_builder* builder;
  genai_context* context = NULL;
  GENAI_TRY(genai_context_builder_create(&builder));
  genai_status* status = fill_context(self, checkpoint_path, builder);
  if (!status) status = genai_context_builder_build(builder, &context);
  genai_context_builder_destroy(builder);
  if (!status) status = model_session_open_context(self->app, context, simulated, &self->session);
  if (status) genai_context_destroy(context);
  if (!status) self->context = context;
  return status;
}

static genai_status* find_ids(const job* self, token_list* out) {
  const char* list = argument_value(self->given, "--ids");
  const char* string = argument_value(self->given, "--prompt");
  const tokenizer* words = model_session_tokenizer(self->session);
  if (list) return parse_ids("--ids", list, &out->ids, &out->count);
  if (!words)
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "the model has no tokenizer: give the text to measure on as --ids LIST");
  if (!string) string = default_text;
  return tokenizer_encode(words, string, strlen(string), (tokenizer_encode_options){true, true}, out);
}

static genai_status* measure(job* self, const ir_graph* graph) {
  token_list ids = {0};
  model_info info;
  const executorch_model* loaded = model_session_model(self->session);
  model_get_info(loaded->decoder, &info);
  GENAI_TRY(find_ids(self, &ids));
  size_t count = ids.count < MAX_TOKENS ? ids.count : MAX_TOKENS;
  if (count > graph->context_length) count = graph->context_length;
  genai_status* status = NULL;
  for (size_t i = 0; !status && i < count; i++) {
    if (ids.ids[i] < 0 || (uint32_t)ids.ids[i] >= info.vocab)
      status = genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "id %d at position %zu is outside the vocabulary of %u", ids.ids[i], i,
                                   info.vocab);
  }
  progress_sink sink = context_progress_sink(self->context);
  report_quality_options how = {loaded->pool, info.sliding_window, &sink, cli_cancel_token(self->app)};
  if (!status) status = report_measure_quality(graph, ids.ids, count, &how, &self->quality);
  self->has_quality = !status;
  token_list_deinit(&ids);
  return status;
}

static genai_status* read_graphs(job* self) {
  char* path = member(self, "model_path");
  char* checkpoint_path = path && file_exists(path) ? mem_strdup(path) : member(self, "model");
  mem_free(path);
  if (!checkpoint_path) return genai_status_out_of_memory();
  bool measured = !argument_given(self->given, "--no-quality") && was_quantized(self);
  genai_status* status = file_exists(checkpoint_path) || path_is_directory(checkpoint_path)
                             ? open_session(self, checkpoint_path, was_quantized(self) && measured)
                             : genai_status_create(GENAI_ERROR_NOT_FOUND, "the checkpoint \"%s\" is not there any more", checkpoint_path);
  mem_free(checkpoint_path);
  if (status && cli_exit_code(status) != EXIT_CANCELLED && genai_status_kind(status) != GENAI_ERROR_OUT_OF_MEMORY) {
    /* Its model, recipe or calibration text is not what the run had any more: the rest of the page is. */
    GENAI_TRY(explain(&self->not_measured, "Not measured", status));
    log_write(LOG_WARNING, "the page goes without graphs and quality: %s", self->not_measured.data);
    return NULL;
  }
  GENAI_TRY(status);
  const ir_graph* widest = NULL;
  for (const ir_graph* graph; self->n_graphs < MAX_GRAPHS && (graph = model_session_graph(self->session, self->n_graphs));) {
    report_graph_statistics(graph, &self->graphs[self->n_graphs++]);
    if (!widest || graph->ar_length > widest->ar_length) widest = graph;
  }
  if (measured && widest) return measure(self, widest);
  return text_append_cstr(&self->not_measured, was_quantized(self)
                                                   ? "Not measured: --no-quality. Weights are shown as floats, before quantization."
                                                   : "Not measured: the run did not quantize, so there is nothing to compare.");
}

/* ---- Writing ---- */
static genai_status* page_path(const job* self, text* out) {
  const char* given = argument_value(self->given, "--out");
  if (given) return text_append_cstr(out, given);
  const char* record = self->record_path.data;
  size_t length = strlen(record);
  static const char* const suffixes[] = {RECORD_SUFFIX, ".json"};
  for (size_t i = 0; i < 2; i++) {
    if (!ends_with(record, suffixes[i])) continue;
    length -= strlen(suffixes[i]);
    break;
  }
  GENAI_TRY(text_append(out, record, length));
  return text_append_cstr(out, ".report.html");
}

static genai_status* print_facts(const report_input* input, const char* path) {
  text out = {0};
  json_writer writer;
  json_writer_init(&writer, &out, false);
  json_begin_object(&writer);
  json_key(&writer, "page");
  json_write_string(&writer, path);
  json_key(&writer, "report");
  report_write_json(input, &writer);
  json_end_object(&writer);
  genai_status* status = cli_print_json(&writer, &out);
  text_deinit(&out);
  return status;
}

static genai_status* write_page(job* self) {
  const char* prompt = argument_value(self->given, "--prompt");
  const char* ids = argument_value(self->given, "--ids");
  report_input input = {.run = json_root(self->record),
                        .artifact = self->artifact ? json_root(self->artifact) : json_get(json_root(self->record), "no such member"),
                        .no_artifact = self->no_artifact.length ? self->no_artifact.data : NULL,
                        .n_graphs = self->n_graphs,
                        .graphs = self->graphs,
                        .quality = self->has_quality ? &self->quality : NULL,
                        .text = ids      ? ids
                                : prompt ? prompt
                                         : default_text,
                        .not_measured = self->not_measured.length ? self->not_measured.data : NULL};
  text page = {0}, path = {0};
  genai_status* status = report_write_page(&input, &page);
  if (!status) status = page_path(self, &path);
  if (!status) status = file_write_atomic(path.data, page.data, page.length);
  if (!status) {
    char size[32];
    format_bytes(page.length, size);
    cli_line(self->app, "page       %s  %s", path.data, size);
    if (self->app->json) status = print_facts(&input, path.data);
  }
  text_deinit(&path);
  text_deinit(&page);
  return status;
}

static genai_status* run(cli* app, const arguments* given) {
  job self = {.app = app, .given = given};
  if (argument_given(given, "--prompt") && argument_given(given, "--ids"))
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "give either --prompt or --ids");
  genai_status* status = open_record(&self);
  if (!status) status = read_artifact(&self);
  if (!status) status = read_graphs(&self);
  if (!status) status = write_page(&self);
  deinit(&self);
  return status;
}

const command_spec command_report = {
    .name = "report",
    .positionals = "RUN",
    .min_positionals = 1,
    .max_positionals = 1,
    .summary = "one self-contained HTML page about a run",
    .details =
        "RUN is a run's record (NAME.SOC.run.json, or what genai run --json printed), an artifact that it lies beside, or the folder of "
        "both.\n"
        "The page has stages, memory, files, graphs, quality by layer, generated text, provenance and options.",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .run = run,
};
