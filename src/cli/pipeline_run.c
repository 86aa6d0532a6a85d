/* From parsed arguments to a pipeline's context, and from its result to what people and programs read. */
#include "cli/pipeline_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "pipeline/qairt.h"

genai_status* run_set_prompts(cli* app, const arguments* given, bool required, genai_context_builder* builder) {
  (void)app;
  size_t n_texts = argument_count(given, "--prompt"), n_ids = argument_count(given, "--ids");
  if (!n_texts && !n_ids) {
    if (!required) return genai_context_builder_set_no_inference(builder);
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "a prompt is missing: give --prompt TEXT or --ids LIST%s",
                               !strcmp(given->command->name, "run") ? ", or stop before inference with --until compilation" : "");
  }
  const char** texts = mem_calloc(n_texts + 1, sizeof *texts);
  if (!texts) return genai_status_out_of_memory();
  for (size_t i = 0; i < n_texts; i++) texts[i] = argument_at(given, "--prompt", i);
  genai_status* status = n_texts == 1 && !n_ids ? genai_context_builder_set_prompt(builder, texts[0])
                                                : genai_context_builder_set_prompts(builder, texts, n_texts);
  mem_free(texts);
  for (size_t i = 0; !status && i < n_ids; i++) {
    int32_t* ids;
    size_t count;
    GENAI_TRY(parse_ids("--ids", argument_at(given, "--ids", i), &ids, &count));
    status = genai_context_builder_add_prompt_ids(builder, ids, count);
    mem_free(ids);
  }
  return status;
}

static genai_status* set_pairs(const arguments* given, genai_context_builder* builder) {
  for (size_t i = 0; i < argument_count(given, "--set"); i++) {
    const char* pair = argument_at(given, "--set", i);
    size_t length = strcspn(pair, "=");
    if (!length || !pair[length])
      return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "--set is \"%s\", expected key=value, such as max_new_tokens=64", pair);
    char* key = mem_strndup(pair, length);
    if (!key) return genai_status_out_of_memory();
    genai_status* status = genai_context_builder_set_option(builder, key, pair + length + 1);
    mem_free(key);
    if (status) return status;
  }
  return NULL;
}

genai_status* run_set_generation(cli* app, const arguments* given, genai_context_builder* builder) {
  static const option_mapping mappings[] = {{"--max-new-tokens", "max_new_tokens"},
                                            {"--system", "system_prompt"},
                                            {"--raw", "raw_prompt"},
                                            {"--temperature", "temperature"},
                                            {"--top-k", "top_k"},
                                            {"--top-p", "top_p"},
                                            {"--repetition-penalty", "repetition_penalty"},
                                            {"--seed", "seed"},
                                            {"--device", "device"},
                                            {"--soc-file", "soc_file"},
                                            {"--qnn-dir", "qnn_dir"}};
  GENAI_TRY(cli_map_options(given, mappings, sizeof mappings / sizeof mappings[0], builder));
  const char* path = argument_value(given, "--chat-template");
  if (path) {
    text source = {0};
    genai_status* status = file_read_all(path, 16 << 20, &source);
    if (!status) status = genai_context_builder_set_option(builder, "chat_template", source.data ? source.data : "");
    text_deinit(&source);
    if (status) return status;
  }
  GENAI_TRY(set_pairs(given, builder));
  GENAI_TRY(genai_context_builder_set_cancel(builder, app->cancel));
  GENAI_TRY(genai_context_builder_set_progress(builder, cli_progress, app));
  return genai_context_builder_set_text(builder, cli_text, app);
}

/* NAME for every stage, or STAGE=NAME. */
typedef struct engine_list {
  genai_engine_choice choices[16];
  char names[16][2][32];
  size_t count;
} engine_list;

static genai_status* add_engine(engine_list* self, const char* stage, size_t stage_length, const char* engine, size_t engine_length) {
  if (self->count == 16 || stage_length >= sizeof self->names[0][0] || engine_length >= sizeof self->names[0][1])
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION,
                               "--engine is \"%.*s=%.60s\", expected NAME or STAGE=NAME, separated by commas", (int)stage_length, stage,
                               engine);
  char(*names)[32] = self->names[self->count];
  memcpy(names[0], stage, stage_length);
  memcpy(names[1], engine, engine_length);
  names[0][stage_length] = names[1][engine_length] = 0;
  self->choices[self->count++] = (genai_engine_choice){names[0], names[1]};
  return NULL;
}

static genai_status* add_engines(engine_list* self, const char* value) {
  for (const char* item = value;; item++) {
    size_t length = strcspn(item, ","), stage = strcspn(item, "=");
    if (stage < length) {
      GENAI_TRY(add_engine(self, item, stage, item + stage + 1, length - stage - 1));
    } else {
      for (unsigned s = 0; s < GENAI_STAGE_COUNT; s++) {
        const char* name = genai_stage_name((genai_stage_kind)s);
        GENAI_TRY(add_engine(self, name, strlen(name), item, length));
      }
    }
    item += length;
    if (!*item) return NULL;
  }
}

genai_status* run_set_engine(const arguments* given, genai_engine_proxy** out) {
  engine_list engines = {.count = 0};
  genai_backend backend = GENAI_BACKEND_HTP;
  if (argument_value(given, "--backend")) GENAI_TRY(genai_backend_find(argument_value(given, "--backend"), &backend));
  for (size_t i = 0; i < argument_count(given, "--engine"); i++) GENAI_TRY(add_engines(&engines, argument_at(given, "--engine", i)));
  return genai_engine_proxy_create(engines.choices, engines.count, backend, out);
}

/* ---- What came of it ---- */
static uint64_t file_bytes(const char* path) {
  struct stat info;
  return stat(path, &info) ? 0 : (uint64_t)info.st_size;
}

static const char* state_name(genai_stage_state state) {
  static const char* const names[] = {"skipped", "not reached", "completed", "failed", "reused"};
  return names[state];
}

static double rate(uint64_t tokens, double seconds) {
  return seconds > 0 ? (double)tokens / seconds : 0;
}

static void print_metrics(cli* app, const genai_inference_output* output) {
  const genai_metrics* m = &output->run.metrics;
  char memory[32];
  format_bytes(m->peak_memory_bytes, memory);
  /* The first token of each answer comes out of prefill. */
  uint64_t decoded = m->new_tokens > output->run.n_generations ? m->new_tokens - output->run.n_generations : 0;
  cli_line(app, "inference  load %.2f s, first token after %.2f s, prefill %.2f tok/s (%llu tokens), decode %.3f tok/s (%llu tokens)",
           m->load_seconds, m->ttft_seconds, rate(m->prompt_tokens, m->prefill_seconds), (unsigned long long)m->prompt_tokens,
           rate(decoded, m->decode_seconds), (unsigned long long)m->new_tokens);
  for (size_t i = 0; i < output->run.n_generations; i++) {
    if (output->run.n_generations > 1 || strcmp(output->run.generations[i].end, "stop token"))
      cli_line(app, "answer %zu ended: %s", i + 1, output->run.generations[i].end);
  }
  if (m->simulated) cli_line(app, "This ran on the x86-64 simulator: its speed says nothing about the speed of a device.");
}

static void print_summary(cli* app, const genai_pipeline_report* report, const genai_inference_output* output) {
  char size[32];
  cli_line(app, "%s", "");
  for (size_t i = 0; i < report->artifacts.count; i++) {
    format_bytes(file_bytes(report->artifacts.items[i]), size);
    cli_line(app, "artifact   %s  %s", report->artifacts.items[i], size);
  }
  if (report->etrecord) {
    format_bytes(file_bytes(report->etrecord), size);
    cli_line(app, "etrecord   %s  %s", report->etrecord, size);
  }
  if (report->runtime_tokenizer) {
    format_bytes(file_bytes(report->runtime_tokenizer), size);
    cli_line(app, "tokenizer  %s  %s", report->runtime_tokenizer, size);
  }
  for (unsigned i = 0; i < GENAI_STAGE_COUNT; i++) {
    const genai_stage_timing* stage = &report->stages[i];
    if (stage->state == GENAI_STAGE_SKIPPED || stage->state == GENAI_STAGE_NOT_REACHED) continue;
    format_bytes(stage->peak_memory_bytes, size);
    cli_line(app, "stage      %-18s %8.3f s  peak memory %s%s%s", genai_stage_name((genai_stage_kind)i), stage->seconds, size,
             stage->state == GENAI_STAGE_FAILED   ? "  failed"
             : stage->state == GENAI_STAGE_REUSED ? "  reused from "
                                                  : "",
             stage->reused_from ? stage->reused_from : "");
  }
  format_bytes(memory_peak_bytes(), size);
  double twin_memory = 0;
  bool twin = genai_statistics_get(&report->statistics, "twin.peak_memory_bytes", &twin_memory);
  char twin_size[32];
  format_bytes((uint64_t)twin_memory, twin_size);
  cli_line(app, "total      %.1f s, peak memory %s%s%s", report->seconds, size,
           twin ? ", and in the process that compiled for the simulator " : "", twin ? twin_size : "");
  if (output->run.n_generations) print_metrics(app, output);
}

static void write_metrics(json_writer* writer, const genai_metrics* m) {
  const struct {
    const char* key;
    double value;
  } numbers[] = {{"load_seconds", m->load_seconds},
                 {"ttft_seconds", m->ttft_seconds},
                 {"prefill_seconds", m->prefill_seconds},
                 {"decode_seconds", m->decode_seconds},
                 {"execute_seconds", m->execute_seconds}};
  json_begin_object(writer);
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    json_key(writer, numbers[i].key);
    json_write_number(writer, numbers[i].value);
  }
  json_key(writer, "prompt_tokens");
  json_write_unsigned(writer, m->prompt_tokens);
  json_key(writer, "new_tokens");
  json_write_unsigned(writer, m->new_tokens);
  json_key(writer, "peak_memory_bytes");
  json_write_unsigned(writer, m->peak_memory_bytes);
  json_key(writer, "simulated");
  json_write_bool(writer, m->simulated);
  json_end_object(writer);
}

static void write_generation(json_writer* writer, const genai_generation* generation) {
  json_begin_object(writer);
  json_key(writer, "prompt");
  json_write_string(writer, generation->prompt);
  json_key(writer, "text");
  json_write_string(writer, generation->text);
  json_key(writer, "ids");
  json_begin_array(writer);
  for (size_t i = 0; i < generation->n_ids; i++) json_write_integer(writer, generation->ids[i]);
  json_end_array(writer);
  json_key(writer, "end");
  json_write_string(writer, generation->end);
  json_key(writer, "metrics");
  write_metrics(writer, &generation->metrics);
  json_end_object(writer);
}

static void write_stages(json_writer* writer, const genai_pipeline_report* report) {
  json_key(writer, "stages");
  json_begin_array(writer);
  for (unsigned i = 0; i < GENAI_STAGE_COUNT; i++) {
    const genai_stage_timing* stage = &report->stages[i];
    json_begin_object(writer);
    json_key(writer, "stage");
    json_write_string(writer, genai_stage_name((genai_stage_kind)i));
    json_key(writer, "state");
    json_write_string(writer, state_name(stage->state));
    json_key(writer, "seconds");
    json_write_number(writer, stage->seconds);
    json_key(writer, "peak_memory_bytes");
    json_write_unsigned(writer, stage->peak_memory_bytes);
    if (stage->reused_from) {
      json_key(writer, "reused_from");
      json_write_string(writer, stage->reused_from);
    }
    json_end_object(writer);
  }
  json_end_array(writer);
}

static void write_chipset(json_writer* writer, const genai_context* context) {
  genai_chipset chip;
  genai_status* status = genai_context_chipset(context, &chip);
  genai_status_free(status); /* a run has found it before */
  if (status) return;
  const struct {
    const char* key;
    uint32_t value;
  } numbers[] = {{"soc_id", chip.soc_id}, {"htp_arch", chip.htp_arch}, {"vtcm_mb", chip.vtcm_mb}, {"lpai_version", chip.lpai_version}};
  json_key(writer, "chipset");
  json_begin_object(writer);
  json_key(writer, "name");
  json_write_string(writer, chip.name);
  json_key(writer, "marketing");
  json_write_string(writer, chip.marketing);
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    json_key(writer, numbers[i].key);
    json_write_unsigned(writer, numbers[i].value);
  }
  json_end_object(writer);
}

/* What was asked for, with what, and when: a report is made of it later, from another folder. */
static void write_request(json_writer* writer, const genai_context* context) {
  char finished[32];
  time_t now = time(NULL);
  struct tm parts;
  strftime(finished, sizeof finished, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
  json_key(writer, "genai");
  json_write_string(writer, genai_version());
  json_key(writer, "finished");
  json_write_string(writer, finished);
  char* path = realpath(genai_context_model(context), NULL);
  json_key(writer, "model_path");
  json_write_string(writer, path);
  free(path); /* realpath's own allocation */
  write_chipset(writer, context);
  const genai_options* options = genai_context_options(context);
  json_key(writer, "options");
  json_begin_object(writer);
  for (size_t i = 0; i < genai_options_count(options); i++) {
    json_key(writer, genai_options_key(options, i));
    json_write_string(writer, genai_options_value(options, i));
  }
  json_end_object(writer);
}

static void write_facts(json_writer* writer, const genai_context* context, const genai_pipeline_report* report,
                        const genai_inference_output* output) {
  json_begin_object(writer);
  json_key(writer, "model");
  json_write_string(writer, genai_context_model(context));
  json_key(writer, "soc");
  json_write_string(writer, genai_context_soc(context));
  write_request(writer, context);
  json_key(writer, "artifacts");
  json_begin_array(writer);
  for (size_t i = 0; i < report->artifacts.count; i++) {
    json_begin_object(writer);
    json_key(writer, "path");
    json_write_string(writer, report->artifacts.items[i]);
    json_key(writer, "bytes");
    json_write_unsigned(writer, file_bytes(report->artifacts.items[i]));
    json_end_object(writer);
  }
  json_end_array(writer);
  json_key(writer, "etrecord");
  json_write_string(writer, report->etrecord);
  json_key(writer, "tokenizer");
  json_write_string(writer, report->runtime_tokenizer);
  write_stages(writer, report);
  json_key(writer, "seconds");
  json_write_number(writer, report->seconds);
  json_key(writer, "peak_memory_bytes");
  json_write_unsigned(writer, memory_peak_bytes());
  json_key(writer, "statistics");
  json_begin_object(writer);
  for (size_t i = 0; i < report->statistics.count; i++) {
    json_key(writer, report->statistics.items[i].name);
    json_write_number(writer, report->statistics.items[i].value);
  }
  json_end_object(writer);
  json_key(writer, "results");
  json_begin_array(writer);
  for (size_t i = 0; i < output->run.n_generations; i++) write_generation(writer, &output->run.generations[i]);
  json_end_array(writer);
  json_key(writer, "files");
  json_begin_array(writer);
  for (size_t i = 0; i < output->files.count; i++) json_write_string(writer, output->files.items[i]);
  json_end_array(writer);
  if (output->run.n_generations) {
    json_key(writer, "metrics");
    write_metrics(writer, &output->run.metrics);
  }
  json_end_object(writer);
}

static genai_status* print_facts(const genai_context* context, const genai_pipeline_report* report, const genai_inference_output* output) {
  text out = {0};
  json_writer writer;
  json_writer_init(&writer, &out, false);
  write_facts(&writer, context, report, output);
  genai_status* status = cli_print_json(&writer, &out);
  text_deinit(&out);
  return status;
}

/* The same facts in a file beside the artifacts, NAME.SOC.run.json: what `genai report` starts from. */
static genai_status* store_record(const genai_context* context, const genai_pipeline_report* report, const genai_inference_output* output) {
  if (!report->artifacts.count) return NULL;
  text out = {0}, path = {0};
  json_writer writer;
  json_writer_init(&writer, &out, true);
  write_facts(&writer, context, report, output);
  genai_status* status = json_writer_finish(&writer);
  if (!status) status = text_append_char(&out, '\n');
  if (!status) status = run_record_path(report->artifacts.items[0], &path);
  if (!status) status = file_write_atomic(path.data, out.data, out.length);
  text_deinit(&path);
  text_deinit(&out);
  return status;
}

genai_status* run_record_path(const char* artifact, text* out) {
  size_t length = strlen(artifact);
  const char* name = path_base_name(artifact);
  size_t folder = name > artifact ? (size_t)(name - artifact) - 1 : 0, tail = strlen(QAIRT_DEVICE_SUFFIX);
  if (folder > tail && !memcmp(artifact + folder - tail, QAIRT_DEVICE_SUFFIX, tail))
    length = folder; /* a file of a bundle: beside the bundle */
  static const char* const suffixes[] = {".sim.pte", ".pte", QAIRT_SIMULATOR_SUFFIX, QAIRT_DEVICE_SUFFIX};
  for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
    size_t suffix = strlen(suffixes[i]);
    if (length <= suffix || memcmp(artifact + length - suffix, suffixes[i], suffix)) continue;
    length -= suffix;
    break;
  }
  GENAI_TRY(text_append(out, artifact, length));
  return text_append_cstr(out, ".run.json");
}

static void print_ids(const genai_inference_output* output) {
  for (size_t i = 0; i < output->run.n_generations; i++) {
    const genai_generation* generation = &output->run.generations[i];
    if (generation->text) continue;
    for (size_t j = 0; j < generation->n_ids; j++) printf("%s%d", j ? "," : "", generation->ids[j]);
    putchar('\n');
  }
  fflush(stdout);
}

genai_status* run_pipeline(cli* app, genai_pipeline* pipeline, const genai_context* context) {
  genai_inference_output output = {0};
  genai_pipeline_report report = {0};
  genai_status* status = genai_pipeline_invoke(pipeline, context, &output, &report);
  if (!status && !app->json) print_ids(&output);
  bool ran = false;
  for (unsigned i = 0; i < GENAI_STAGE_COUNT; i++) ran |= report.stages[i].state > GENAI_STAGE_NOT_REACHED;
  if (ran) print_summary(app, &report, &output);
  if (!status) status = store_record(context, &report, &output);
  if (!status && app->json) status = print_facts(context, &report, &output);
  genai_pipeline_report_deinit(&report);
  genai_inference_output_deinit(&output);
  return status;
}
