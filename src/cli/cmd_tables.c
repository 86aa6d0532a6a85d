/* genai soc, recipes, models: the tables that genai knows. */
#include <stdio.h>

#include "cli/cli.h"
#include "model/model.h"
#include "qnn/qnn.h"
#include "quantize/quantize.h"

static const option_spec options[] = {OPTIONS_OUTPUT};

static genai_status* print_socs(cli* app, const arguments* given) {
  (void)given;
  if (!app->json) printf("%-12s %-34s %6s %5s %8s\n", "SoC", "marketing name", "soc id", "HTP", "VTCM MB");
  text out = {0};
  json_writer writer;
  json_writer_init(&writer, &out, false);
  json_begin_array(&writer);
  for (size_t i = 0; i < qnn_soc_count(); i++) {
    const qnn_soc* soc = qnn_soc_at(i);
    if (!app->json) {
      printf("%-12s %-34s %6u  v%-4u %7u\n", soc->name, soc->marketing, soc->model, soc->htp_arch, soc->vtcm_mb);
      continue;
    }
    json_begin_object(&writer);
    json_key(&writer, "name");
    json_write_string(&writer, soc->name);
    json_key(&writer, "marketing");
    json_write_string(&writer, soc->marketing);
    json_key(&writer, "soc_id");
    json_write_unsigned(&writer, soc->model);
    json_key(&writer, "htp_arch");
    json_write_unsigned(&writer, soc->htp_arch);
    json_key(&writer, "vtcm_mb");
    json_write_unsigned(&writer, soc->vtcm_mb);
    json_key(&writer, "lpai_version");
    json_write_unsigned(&writer, soc->lpai_version);
    json_end_object(&writer);
  }
  json_end_array(&writer);
  genai_status* status = app->json ? cli_print_json(&writer, &out) : json_writer_finish(&writer);
  text_deinit(&out);
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

static genai_status* print_models(cli* app, const arguments* given) {
  (void)given;
  text out = {0};
  json_writer writer;
  json_writer_init(&writer, &out, false);
  json_begin_array(&writer);
  for (size_t i = 0; i < model_family_count(); i++) {
    if (!app->json) {
      printf("%-14s %s\n", model_family_name(i), model_family_note(i));
      continue;
    }
    json_begin_object(&writer);
    json_key(&writer, "family");
    json_write_string(&writer, model_family_name(i));
    json_key(&writer, "note");
    json_write_string(&writer, model_family_note(i));
    json_end_object(&writer);
  }
  json_end_array(&writer);
  genai_status* status = app->json ? cli_print_json(&writer, &out) : json_writer_finish(&writer);
  text_deinit(&out);
  return status;
}

#define TABLE_COMMAND(command, print, line) \
  { .name = command, .positionals = "", .summary = line, .options = options, .n_options = sizeof options / sizeof options[0], .run = print }

const command_spec command_soc = TABLE_COMMAND("soc", print_socs, "the chips that genai knows");
const command_spec command_recipes = TABLE_COMMAND("recipes", print_recipes, "the quantization recipes that come with genai");
const command_spec command_models = TABLE_COMMAND("models", print_models, "the model families that genai builds");
