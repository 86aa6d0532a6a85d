/* Opening models: what is read from config.json and GGUF metadata, and what is refused with which words. Expected values are those of the
 * fixtures' config.json and of the reference implementation's defaults. */
#include "variant.h"

static void test_information(void** state) {
  (void)state;
  static const struct {
    const char *fixture, *family;
    uint32_t layers, heads, kv_heads, head_dim, feed_forward, context, window;
    bool tied;
    uint64_t parameters; /* of the safetensors file, an untied head counted, a tied one not */
  } expected[] = {
      {"llama", "llama", 2, 4, 2, 16, 160, 256, 0, false, 127296},
      {"llama-sharded-f16", "llama", 2, 4, 2, 16, 160, 256, 0, true, 106816},
      {"qwen3", "qwen3", 2, 4, 2, 32, 160, 256, 0, true, 131520},
      {"gemma2", "gemma2", 2, 4, 2, 32, 160, 256, 8, true, 131648},
      {"mistral-sliding", "mistral", 2, 4, 2, 16, 160, 256, 8, false, 127296},
      {"codegen", "codegen", 2, 4, 4, 16, 256, 256, 0, false, 140608},
  };
  for (size_t i = 0; i < sizeof expected / sizeof *expected; ++i) {
    char path[256];
    checkpoint* file;
    model* m;
    model_info info;
    snprintf(path, sizeof path, "checkpoints/%s", expected[i].fixture);
    assert_ok(checkpoint_open(test_data(path), &file));
    assert_ok(model_open(file, &m));
    model_get_info(m, &info);
    assert_string_equal(info.family, expected[i].family);
    assert_string_equal(info.name, expected[i].fixture);
    assert_int_equal(info.layers, expected[i].layers);
    assert_int_equal(info.hidden, 64);
    assert_int_equal(info.heads, expected[i].heads);
    assert_int_equal(info.kv_heads, expected[i].kv_heads);
    assert_int_equal(info.head_dim, expected[i].head_dim);
    assert_int_equal(info.feed_forward, expected[i].feed_forward);
    assert_int_equal(info.vocab, 320);
    assert_int_equal(info.trained_context, expected[i].context);
    assert_int_equal(info.sliding_window, expected[i].window);
    assert_int_equal(info.tied_embeddings, expected[i].tied);
    assert_int_equal(info.parameters, expected[i].parameters);
    model_close(m);
    checkpoint_close(file);
  }
}

static void test_families_are_listed(void** state) {
  (void)state;
  assert_true(model_family_count() >= 15);
  for (size_t i = 0; i < model_family_count(); ++i) {
    assert_non_null(model_family_name(i));
    assert_true(strlen(model_family_note(i)) > 3);
    for (size_t j = 0; j < i; ++j) assert_string_not_equal(model_family_name(i), model_family_name(j));
  }
  assert_null(model_family_name(model_family_count()));
  assert_null(model_family_note(model_family_count()));
}

static void described(const char* path, const char* expected) {
  checkpoint* file;
  model* m;
  text words = {0};
  assert_ok(checkpoint_open(test_data(path), &file));
  assert_ok(model_open(file, &m));
  assert_ok(model_describe(m, &words));
  assert_string_equal(words.data, expected);
  text_deinit(&words);
  model_close(m);
  checkpoint_close(file);
}

/* What the fixtures' config.json files say. */
static void test_descriptions(void** state) {
  (void)state;
  described("checkpoints/llama", "rotary base 10000");
  described("checkpoints/llama-tied-rope3-bf16",
            "rotary base 500000, llama3 scaling by 32 of 64 positions\nlogits use the embedding's weights");
  described("checkpoints/phi4-mini-partial-longrope",
            "rotary base 10000, LongRoPE by 4 of 64 positions, on 12 of 16 dimensions\nlogits use the embedding's weights");
  described("checkpoints/gemma3",
            "rotary base 1000000\nin layers with a window: rotary base 10000\nsliding window 8 in 3 of 4 layers\n"
            "logits use the embedding's weights");
  described("checkpoints/gemma2",
            "rotary base 10000\nsliding window 8 in 1 of 2 layers\nscores capped at 50\nlogits capped at 30\n"
            "logits use the embedding's weights");
  described("checkpoints/smollm3-nope", "rotary base 2000000\nno rotary embedding in 1 of 4 layers\nlogits use the embedding's weights");
  for (size_t i = 0; i < model_family_count(); ++i) {
    text words = {0};
    assert_ok(model_family_describe(i, &words));
    assert_non_null(strstr(words.data, " norm "));
    assert_non_null(model_family_type(i, 0));
    assert_null(model_family_type(i, 4));
    text_deinit(&words);
  }
  text none = {0};
  assert_fails(model_family_describe(model_family_count(), &none), GENAI_ERROR_INVALID_ARGUMENT, "no family");
}

static void test_unknown_architectures(void** state) {
  (void)state;
  variant_fails("llama", GENAI_ERROR_UNSUPPORTED, "model_type \"lama\" is not a family genai knows (did you mean \"llama\"?)",
                {"\"model_type\": \"llama\"", "\"model_type\": \"lama\""});
  variant_fails("llama", GENAI_ERROR_UNSUPPORTED, "is not a family genai knows; known families: llama, mistral",
                {"\"model_type\": \"llama\"", "\"model_type\": \"whisper_for_dolphins\""});
  variant_fails("llama", GENAI_ERROR_UNSUPPORTED, "model_type \"gemma4\" is not built: it has an embedding for each layer",
                {"\"model_type\": \"llama\"", "\"model_type\": \"gemma4\""});
  variant_fails("llama", GENAI_ERROR_UNSUPPORTED, "model_type \"qwen3_moe\" is not built: it is a mixture of experts",
                {"\"model_type\": \"llama\"", "\"model_type\": \"qwen3_moe\""});
  variant_fails("llama", GENAI_ERROR_BAD_FILE, "model_type is missing", {"\"model_type\"", "\"kind\""});
  variant_fails("llama", GENAI_ERROR_BAD_FILE, "model_type is missing", {"\"model_type\": \"llama\"", "\"model_type\": 7"});
}

static void test_tensors_are_checked(void** state) {
  (void)state;
  variant_fails("llama", GENAI_ERROR_BAD_FILE, "tensor model.layers.2.input_layernorm.weight is missing; expected one of shape [64]",
                {"\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3"});
  variant_fails("llama", GENAI_ERROR_BAD_FILE, "tensor model.layers.0.mlp.gate_proj.weight has shape [160, 64], expected [161, 64]",
                {"\"intermediate_size\": 160", "\"intermediate_size\": 161"});
  variant_fails("llama", GENAI_ERROR_BAD_FILE, "model.embed_tokens.weight has shape [320, 64], expected [321, 64]",
                {"\"vocab_size\": 320", "\"vocab_size\": 321"});
  variant_fails("llama", GENAI_ERROR_BAD_FILE, "model.layers.0.self_attn.q_proj.bias is missing",
                {"\"attention_bias\": false", "\"attention_bias\": true"});
  variant_fails("llama-tied-rope3-bf16", GENAI_ERROR_BAD_FILE, "tensor lm_head.weight is missing",
                {"\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false"});
  variant_fails("phi3", GENAI_ERROR_BAD_FILE, "qkv_proj.weight has shape [128, 64], expected [192, 64]",
                {"\"num_key_value_heads\": 2", "\"num_key_value_heads\": 4"});
  /* A biased head matrix, a norm without its tensor. */
  variant v = variant_open("olmo2", NULL, (const edit[]){{"self_attn.k_norm", "self_attn.k_norn"}, {NULL, NULL}});
  model* m;
  assert_fails(model_open(v.file, &m), GENAI_ERROR_BAD_FILE,
               "model.layers.0.self_attn.k_norm.weight is missing; expected one of shape [32]");
  variant_close(&v);
}

/* Qwen3-4B has hidden 2560 and 32 heads of 128, not of 80: the head size comes from config.json, or is the reference's default of 128. */
static void test_head_size_is_not_hidden_over_heads(void** state) {
  (void)state;
  variant_fails("qwen3", GENAI_ERROR_BAD_FILE, "q_proj.weight has shape [128, 64], expected [64, 64]",
                {"\"head_dim\": 32", "\"head_dim\": 16"});
  variant_fails("qwen3", GENAI_ERROR_BAD_FILE, "q_proj.weight has shape [128, 64], expected [512, 64]",
                {"\"head_dim\": 32", "\"other\": 32"});
}

static void test_hyper_parameters_are_checked(void** state) {
  (void)state;
  variant_fails("llama", GENAI_ERROR_BAD_FILE, "config.json: num_hidden_layers is missing",
                {"\"num_hidden_layers\": 2", "\"num_hidden_layers\": null"});
  variant_fails("llama", GENAI_ERROR_BAD_FILE, "hidden_size is 0, expected a positive whole number",
                {"\"hidden_size\": 64", "\"hidden_size\": 0"});
  variant_fails("llama", GENAI_ERROR_BAD_FILE, "hidden_size is 64.5", {"\"hidden_size\": 64", "\"hidden_size\": 64.5"});
  variant_fails("llama", GENAI_ERROR_BAD_FILE, "hidden_size is -64", {"\"hidden_size\": 64", "\"hidden_size\": -64"});
  variant_fails("llama", GENAI_ERROR_BAD_FILE, "hidden_size is of another type", {"\"hidden_size\": 64", "\"hidden_size\": \"64\""});
  variant_fails("llama", GENAI_ERROR_BAD_FILE, "4 attention heads cannot share 3",
                {"\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3"});
  variant_fails("llama", GENAI_ERROR_BAD_FILE, "no plausible decoder", {"\"head_dim\": 16", "\"head_dim\": 100000"});
  variant_fails("llama", GENAI_ERROR_BAD_FILE, "9999999 layers", {"\"num_hidden_layers\": 2", "\"num_hidden_layers\": 9999999"});
  variant_fails("llama", GENAI_ERROR_UNSUPPORTED, "hidden_act is \"relu6\"", {"\"hidden_act\": \"silu\"", "\"hidden_act\": \"relu6\""});
  variant_fails("llama", GENAI_ERROR_UNSUPPORTED, "a mixture of 8 experts",
                {"\"vocab_size\": 320", "\"vocab_size\": 320, \"num_local_experts\": 8"});
  variant_fails("stablelm", GENAI_ERROR_UNSUPPORTED, "qk_layernorm is true", {"\"qk_layernorm\": false", "\"qk_layernorm\": true"});
}

/* Found by fuzzing: a file whose embedding has no rows says nothing of a vocabulary. */
static void test_an_empty_vocabulary_is_refused(void** state) {
  (void)state;
  checkpoint* file;
  model* m;
  assert_ok(checkpoint_open(test_data("fuzz/model_fuzz/empty_vocabulary.gguf"), &file));
  assert_fails(model_open(file, &m), GENAI_ERROR_BAD_FILE, "\"token_embd.weight\" has no rows");
  checkpoint_close(file);
}

static void test_rotary_rules_are_checked(void** state) {
  (void)state;
  static const char* const plain = "\"rope_type\": \"default\"";
  variant_fails("llama", GENAI_ERROR_BAD_FILE, "rotary scaling factor 0", {plain, "\"rope_type\": \"dynamic\""});
  variant_fails("llama", GENAI_ERROR_UNSUPPORTED, "rotary scaling \"spiral\" is unknown", {plain, "\"rope_type\": \"spiral\""});
  variant_fails("llama", GENAI_ERROR_UNSUPPORTED, "rotary scaling \"spiral\" is unknown", {plain, "\"type\": \"spiral\""});
  variant_fails("llama", GENAI_ERROR_BAD_FILE, "rotary scaling factor 0", {plain, "\"rope_type\": \"linear\""});
  variant_fails("llama", GENAI_ERROR_BAD_FILE, "rotary base -5", {"\"rope_theta\": 10000.0", "\"rope_theta\": -5"});
  variant_fails("phi4-mini-partial-longrope", GENAI_ERROR_BAD_FILE, "partial_rotary_factor 1.5",
                {"\"partial_rotary_factor\": 0.75", "\"partial_rotary_factor\": 1.5"});
  variant_fails("llama", GENAI_ERROR_BAD_FILE, "low_freq_factor 4",
                {plain, "\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 4, \"high_freq_factor\": 4"});
  variant_fails("phi4-mini-partial-longrope", GENAI_ERROR_BAD_FILE, "has 6 entries, expected one per rotary pair (4)",
                {"\"partial_rotary_factor\": 0.75", "\"partial_rotary_factor\": 0.5"});
}

static void test_stop_ids_unite_all_files(void** state) {
  (void)state;
  variant v = variant_open("llama", (const edit[]){{"\"eos_token_id\": 2", "\"eos_token_id\": [11, 12, 13]"}, {NULL, NULL}}, NULL);
  checkpoint_close(v.file);
  char path[1024];
  snprintf(path, sizeof path, "%s/generation_config.json", v.directory);
  static const char generation[] = "{\"eos_token_id\": [13, 14, -1]}";
  variant_write(path, generation, sizeof generation - 1);
  assert_ok(checkpoint_open(v.directory, &v.file));
  model* m;
  assert_ok(model_open(v.file, &m));
  int32_t ids[8];
  assert_int_equal(model_stop_ids(m, ids, 8), 4);
  for (int i = 0; i < 4; ++i) assert_int_equal(ids[i], 11 + i);
  assert_int_equal(model_stop_ids(m, ids, 2), 2);
  model_close(m);
  variant_close(&v);
}

/* Gemma 3 with vision keeps the decoder's keys in text_config and its tensors behind language_model. */
static void test_decoder_inside_a_larger_model(void** state) {
  (void)state;
  variant v = variant_open("gemma3",
                           (const edit[]){{"{\n  \"_sliding", "{\"model_type\": \"gemma3\", \"text_config\": {\n  \"_sliding"},
                                          {"\"vocab_size\": 320", "\"vocab_size\": 320}"},
                                          {NULL, NULL}},
                           (const edit[]){{"\"model.", "\"language_model.model."}, {NULL, NULL}});
  model* m;
  model_info info;
  assert_ok(model_open(v.file, &m));
  model_get_info(m, &info);
  assert_string_equal(info.family, "gemma3");
  assert_int_equal(info.layers, 4);
  assert_int_equal(info.sliding_window, 8);
  model_close(m);
  variant_close(&v);
}

static model_info open_variant(const char* fixture, const edit* config, const edit* tensors) {
  variant v = variant_open(fixture, config, tensors);
  model* m;
  model_info info;
  assert_ok(model_open(v.file, &m));
  model_get_info(m, &info);
  model_close(m);
  variant_close(&v);
  return info;
}

/* transformers 5 ties two matrices only where the file has one of them, whatever config.json says (PreTrainedModel.tie_weights); and in a
 * model with other parts the whole's key decides: LLaVA's kin write tie_word_embeddings false in text_config and mean the default, true. */
static void test_what_is_tied(void** state) {
  (void)state;
  static const edit says_tied[] = {{"\"tie_word_embeddings\": false", "\"tie_word_embeddings\": true"}, {NULL, NULL}};
  model_info info = open_variant("llama", says_tied, NULL);
  assert_false(info.tied_embeddings);
  assert_int_equal(info.parameters, 127296); /* both counted */
  info = open_variant("llama-tied-rope3-bf16",
                      (const edit[]){{"{\n  \"architectures\"", "{\"tie_word_embeddings\": true, \"text_config\": {\n  \"architectures\""},
                                     {"\"tie_word_embeddings\": true,\n", "\"tie_word_embeddings\": false,\n"},
                                     {"\"vocab_size\": 320", "\"vocab_size\": 320}"},
                                     {NULL, NULL}},
                      (const edit[]){{"\"model.", "\"model.text_model."}, {NULL, NULL}}); /* SmolVLM's prefix */
  assert_true(info.tied_embeddings);
  info = open_variant("llama-tied-rope3-bf16",
                      (const edit[]){{"{\n  \"architectures\"", "{\"tie_word_embeddings\": false, \"text_config\": {\n  \"architectures\""},
                                     {"\"vocab_size\": 320", "\"vocab_size\": 320}"},
                                     {NULL, NULL}},
                      NULL);
  assert_true(info.tied_embeddings);
}

/* The same tensors with another mask: EmbeddingGemma and other encoders made from decoders. */
static void test_encoders_are_refused(void** state) {
  (void)state;
  variant_fails("gemma3", GENAI_ERROR_UNSUPPORTED, "use_bidirectional_attention is set",
                {"\"use_bidirectional_attention\": false", "\"use_bidirectional_attention\": true"});
  variant_fails("gemma3", GENAI_ERROR_UNSUPPORTED, "use_bidirectional_attention is set",
                {"\"use_bidirectional_attention\": false", "\"use_bidirectional_attention\": \"all\""});
  variant_fails("llama", GENAI_ERROR_UNSUPPORTED, "is_causal is false",
                {"\"vocab_size\": 320", "\"vocab_size\": 320, \"is_causal\": false"});
}

/* Windows and key-value heads by the defaults of the reference's configuration classes. */
static void test_defaults_of_the_reference(void** state) {
  (void)state;
  model_info info = open_variant("exaone4", (const edit[]){{"\"sliding_window\": 8,", ""}, {NULL, NULL}}, NULL);
  assert_int_equal(info.sliding_window, 4096);
  info = open_variant("exaone4", (const edit[]){{"\"sliding_window\": 8,", "\"sliding_window\": null,"}, {NULL, NULL}}, NULL);
  assert_int_equal(info.sliding_window, 0);
  info = open_variant("glm4", (const edit[]){{"\"num_key_value_heads\": 2,", ""}, {NULL, NULL}}, NULL);
  assert_int_equal(info.kv_heads, 2);
  info = open_variant("codegen",
                      (const edit[]){{"\"vocab_size\": 320", "\"vocab_size\": 320, \"num_key_value_heads\": null"}, {NULL, NULL}}, NULL);
  assert_int_equal(info.kv_heads, 4);
  /* SmolLM3 has a window where a layer has no rotary embedding, if at all; layer_types go before. */
  static const char* const none = "\"sliding_window\": null";
  static const edit renamed = {"\"layer_types\"", "\"other_types\""};
  info = open_variant("smollm3-nope", (const edit[]){{none, "\"sliding_window\": 8"}, renamed, {NULL, NULL}}, NULL);
  assert_int_equal(info.sliding_window, 0);
  info = open_variant(
      "smollm3-nope",
      (const edit[]){
          {none, "\"sliding_window\": 8"}, renamed, {"\"use_sliding_window\": false", "\"use_sliding_window\": true"}, {NULL, NULL}},
      NULL);
  assert_int_equal(info.sliding_window, 8);
  variant_fails("gemma3", GENAI_ERROR_UNSUPPORTED, "layer_types has \"linear_attention\"",
                {"\"full_attention\",", "\"linear_attention\","});
}

/* Copies a small GGUF file with some bytes changed (same length). */
static checkpoint* open_gguf(const char* from, const char* to, char path[1024]) {
  size_t size = 0;
  char* data = variant_read(test_data("model/tiny/llama.gguf"), &size);
  size_t before = size;
  data = variant_replace(data, &size, from, to);
  assert_int_equal(size, before);
  snprintf(path, 1024, "%s/genai_model_XXXXXX", P_tmpdir);
  int descriptor = mkstemp(path);
  assert_true(descriptor >= 0);
  assert_int_equal(write(descriptor, data, size), (ssize_t)size);
  close(descriptor);
  free(data);
  checkpoint* file;
  assert_ok(checkpoint_open(path, &file));
  return file;
}

static void gguf_fails(const char* from, const char* to, genai_error_kind kind, const char* needle) {
  char path[1024];
  model* m;
  checkpoint* file = open_gguf(from, to, path);
  assert_fails(model_open(file, &m), kind, needle);
  checkpoint_close(file);
  unlink(path);
}

static void test_gguf_is_checked(void** state) {
  (void)state;
  gguf_fails("llama.block_count", "llama.block_cound", GENAI_ERROR_BAD_FILE, "llama.block_count is missing");
  gguf_fails("llama", "llamb", GENAI_ERROR_UNSUPPORTED,
             "general.architecture \"llamb\" is not a family genai knows (did you mean \"llama\"?)");
  gguf_fails("blk.1.ffn_down.weight", "blk.1.ffn_dawn.weight", GENAI_ERROR_BAD_FILE,
             "blk.1.ffn_down.weight is missing; expected one of shape [32, 48]");
}

/* Every allocation on the way to a graph may fail: no crash, no leak, the right kind. */
static void test_allocations_may_fail(void** state) {
  (void)state;
  checkpoint* file;
  assert_ok(checkpoint_open(test_data("checkpoints/phi4-mini-partial-longrope"), &file));
  for (uint64_t nth = 1;; ++nth) {
    model* m = NULL;
    ir_graph* graph = NULL;
    mem_inject_failure(nth);
    genai_status* status = model_open(file, &m);
    if (!status) {
      model_graph_options options = {.name = "g", .ar_length = 2, .context_length = 8, .rotate_qk = true};
      status = model_build_graph(m, &options, &graph);
    }
    mem_inject_failure(0);
    bool done = !status;
    if (status) assert_int_equal(genai_status_kind(status), GENAI_ERROR_OUT_OF_MEMORY);
    genai_status_free(status);
    ir_graph_destroy(graph);
    model_close(m);
    if (done) {
      assert_true(nth > 20);
      break;
    }
  }
  checkpoint_close(file);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_information),
      cmocka_unit_test(test_families_are_listed),
      cmocka_unit_test(test_descriptions),
      cmocka_unit_test(test_unknown_architectures),
      cmocka_unit_test(test_tensors_are_checked),
      cmocka_unit_test(test_head_size_is_not_hidden_over_heads),
      cmocka_unit_test(test_hyper_parameters_are_checked),
      cmocka_unit_test(test_an_empty_vocabulary_is_refused),
      cmocka_unit_test(test_rotary_rules_are_checked),
      cmocka_unit_test(test_stop_ids_unite_all_files),
      cmocka_unit_test(test_decoder_inside_a_larger_model),
      cmocka_unit_test(test_what_is_tied),
      cmocka_unit_test(test_encoders_are_refused),
      cmocka_unit_test(test_defaults_of_the_reference),
      cmocka_unit_test(test_gguf_is_checked),
      cmocka_unit_test(test_allocations_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
