/* genai soc, recipes, models: the tables that genai knows. */
#include <stdio.h>

#include "cli/cli.h"
#include "model/model.h"
#include "qnn/qnn.h"
#include "quantize/quantize.h"

static const option_spec options[] = {OPTIONS_OUTPUT};

/* The features that not every SoC of the table has, for people: what differs is what they choose by. */
static void list_gaps(const qnn_soc* soc, char gaps[96]) {
  size_t length = 0;
  gaps[0] = 0;
  for (unsigned f = 0; f < QNN_FEATURE_COUNT; f++) {
    if (!qnn_soc_supports(soc, (qnn_feature)f))
      length += (size_t)snprintf(gaps + length, 96 - length, "%s%s", length ? ", " : "", qnn_feature_name((qnn_feature)f));
  }
}

static void write_soc(json_writer* writer, const qnn_soc* soc, bool users) {
  const struct {
    const char* key;
    uint32_t value;
  } numbers[] = {{"soc_id", soc->model}, {"htp_arch", soc->htp_arch}, {"vtcm_mb", soc->vtcm_mb}, {"lpai_version", soc->lpai_version}};
  json_begin_object(writer);
  json_key(writer, "name");
  json_write_string(writer, soc->name);
  json_key(writer, "marketing");
  json_write_string(writer, soc->marketing);
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    json_key(writer, numbers[i].key);
    json_write_unsigned(writer, numbers[i].value);
  }
  json_key(writer, "float16");
  json_write_bool(writer, soc->float16);
  json_key(writer, "features");
  json_begin_array(writer);
  for (unsigned f = 0; f < QNN_FEATURE_COUNT; f++) {
    if (qnn_soc_supports(soc, (qnn_feature)f)) json_write_string(writer, qnn_feature_name((qnn_feature)f));
  }
  json_end_array(writer);
  json_key(writer, "user");
  json_write_bool(writer, users);
  json_end_object(writer);
}

static void print_soc(const qnn_soc* soc, bool users) {
  char gaps[96], lpai[16] = "-";
  list_gaps(soc, gaps);
  if (soc->lpai_version) snprintf(lpai, sizeof lpai, "v%u", soc->lpai_version);
  printf("%-12s %-34s %6u  v%-4u %7u %5s  %s%s\n", soc->name, soc->marketing, soc->model, soc->htp_arch, soc->vtcm_mb, lpai,
         *gaps ? gaps : "-", users ? " (your file)" : "");
}

static genai_status* print_socs(cli* app, const arguments* given) {
  qnn_soc_table* socs;
  const qnn_soc* only = NULL;
  text out = {0};
  json_writer writer;
  GENAI_TRY(qnn_soc_table_open(argument_value(given, "--soc-file"), &socs));
  genai_status* status = given->n_positionals ? qnn_soc_table_find(socs, given->positionals[0], &only) : NULL;
  if (status) {
    qnn_soc_table_close(socs);
    return status;
  }
  if (!app->json) printf("%-12s %-34s %6s %5s %8s %5s  %s\n", "SoC", "marketing name", "soc id", "HTP", "VTCM MB", "LPAI", "without");
  json_writer_init(&writer, &out, false);
  json_begin_array(&writer);
  for (size_t i = 0; i < qnn_soc_table_count(socs); i++) {
    const qnn_soc* soc = qnn_soc_table_at(socs, i);
    if (only && soc != only) continue;
    if (app->json) {
      write_soc(&writer, soc, qnn_soc_table_is_users(socs, i));
    } else {
      print_soc(soc, qnn_soc_table_is_users(socs, i));
    }
  }
  json_end_array(&writer);
  status = app->json ? cli_print_json(&writer, &out) : json_writer_finish(&writer);
  text_deinit(&out);
  qnn_soc_table_close(socs);
  return status;
}

static genai_status* print_recipes(cli* app, const arguments* given) {
  (void)given;
  text out = {0};
  genai_status* status = NULL;
  if (!app->json)
    printf("%-14s %11s %8s %6s %5s %9s %9s %s\n", "recipe", "activations", "weights", "block", "head", "KV cache", "rotation",
           "weight search");
  for (size_t i = 0; !status && i < recipe_count(); i++) {
    const recipe* r = recipe_at(i);
    if (!app->json) {
      char block[16] = "-";
      if (r->weight_block) snprintf(block, sizeof block, "%u", r->weight_block);
      printf("%-14s %11u %8u %6s %5u %9u %9s %s\n", r->name, r->activation_bits, r->weight_bits, block, r->head_bits, r->kv_bits,
             r->rotate_qk ? "yes" : "no", r->weight_search ? "yes" : "no");
      continue;
    }
    status = text_append_cstr(&out, i ? ",\n" : "[");
    if (!status) status = recipe_write_json(r, &out);
  }
  if (!status && app->json) status = text_append_cstr(&out, "]\n");
  if (!status && app->json) cli_print(&out);
  text_deinit(&out);
  return status;
}

static genai_status* print_family(size_t index, text* out) {
  GENAI_TRY(text_printf(out, "%-12s %s\n%13s", model_family_name(index), model_family_note(index), "in files "));
  for (size_t nth = 0; model_family_type(index, nth); nth++) {
    GENAI_TRY(text_printf(out, "%s%s", nth ? ", " : "", model_family_type(index, nth)));
  }
  GENAI_TRY(text_append_cstr(out, "; "));
  GENAI_TRY(model_family_describe(index, out));
  return text_append_cstr(out, "\n");
}

static genai_status* write_family(size_t index, json_writer* writer) {
  text facts = {0};
  genai_status* status = model_family_describe(index, &facts);
  json_begin_object(writer);
  json_key(writer, "family");
  json_write_string(writer, model_family_name(index));
  json_key(writer, "note");
  json_write_string(writer, model_family_note(index));
  json_key(writer, "types");
  json_begin_array(writer);
  for (size_t nth = 0; model_family_type(index, nth); nth++) json_write_string(writer, model_family_type(index, nth));
  json_end_array(writer);
  json_key(writer, "traits");
  json_write_string(writer, facts.data);
  json_end_object(writer);
  text_deinit(&facts);
  return status;
}

static genai_status* print_models(cli* app, const arguments* given) {
  (void)given;
  text out = {0};
  json_writer writer;
  genai_status* status = NULL;
  json_writer_init(&writer, &out, false);
  if (app->json) json_begin_array(&writer);
  for (size_t i = 0; i < model_family_count() && !status; i++) {
    status = app->json ? write_family(i, &writer) : print_family(i, &out);
  }
  if (app->json && !status) {
    json_end_array(&writer);
    status = cli_print_json(&writer, &out);
  } else if (!status) {
    status = text_append_cstr(&out,
                              "\nEvery family compiles to prefill and decode graphs with every recipe. Rotary scaling: linear, llama3, "
                              "yarn and longrope; dynamic up\n"
                              "to the trained context, because a static graph has one base. Mixtures of experts are refused.\n");
    if (!status) cli_print(&out);
  }
  text_deinit(&out);
  return status;
}

#define TABLE_COMMAND(command, print, line) \
  { .name = command, .positionals = "", .summary = line, .options = options, .n_options = sizeof options / sizeof options[0], .run = print }

static const option_spec soc_options[] = {
    {"--soc-file", "FILE", false, "SoCs of your own ($XDG_CONFIG_HOME/genai/socs.json when there is one)"},
    OPTIONS_OUTPUT,
};
const command_spec command_soc = {
    .name = "soc",
    .positionals = "[NAME]",
    .max_positionals = 1,
    .summary = "the chips that genai knows, and those of your own file",
    .details =
        "NAME is what --soc takes: a name, a marketing name, QNN's id, or the id that Linux gives the chip (/sys/devices/soc0/soc_id); an\n"
        "unknown id with its architecture, such as 4711:v79, stands for the nearest SoC of that architecture.",
    .options = soc_options,
    .n_options = sizeof soc_options / sizeof soc_options[0],
    .run = print_socs,
};
const command_spec command_recipes = TABLE_COMMAND("recipes", print_recipes, "the quantization recipes that come with genai");
const command_spec command_models = TABLE_COMMAND("models", print_models, "the model families that genai builds");
