/* A copy of the `llama` fixture that a test may change, with a small tokenizer, which the fixture itself has not. */
#ifndef GENAI_TESTS_PIPELINE_MODEL_COPY_H
#define GENAI_TESTS_PIPELINE_MODEL_COPY_H

#include <sys/stat.h>

#include "base/file.h"
#include "support.h"

static inline void copy_file(const char* from, const char* to) {
  text content = {0};
  assert_ok(file_read_all(from, 64 << 20, &content));
  assert_ok(file_write_atomic(to, content.data, content.length));
  text_deinit(&content);
}

/* A tokenizer of the letters a to z and the space. */
static inline void write_letter_tokenizer(const char* path) {
  text content = {0};
  assert_ok(text_append_cstr(&content,
                             "{\"version\":\"1.0\",\"added_tokens\":[],\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"ByteLevel\","
                             "\"add_prefix_space\":false,\"use_regex\":true},\"post_processor\":null,\"decoder\":{\"type\":\"ByteLevel\"},"
                             "\"model\":{\"type\":\"BPE\",\"unk_token\":null,\"merges\":[],\"vocab\":{"));
  for (char c = 'a'; c <= 'z'; c++) assert_ok(text_printf(&content, "\"%c\":%d,", c, c - 'a' + 3));
  for (int id = 41; id < 320; id++) assert_ok(text_printf(&content, "\"unused%d\":%d,", id, id)); /* as many as the model has */
  assert_ok(text_append_cstr(&content, "\"\xc4\xa0\":40}}}"));
  assert_ok(file_write_atomic(path, content.data, content.length));
  text_deinit(&content);
}

static inline void make_model(const char* directory) {
  static const char* const files[] = {"config.json", "generation_config.json", "model.safetensors"};
  char from[64], to[256];
  mkdir(directory, 0777);
  for (size_t i = 0; i < 3; i++) {
    snprintf(from, sizeof from, "checkpoints/llama/%s", files[i]);
    snprintf(to, sizeof to, "%s/%s", directory, files[i]);
    copy_file(test_data(from), to);
  }
  snprintf(to, sizeof to, "%s/tokenizer.json", directory);
  write_letter_tokenizer(to);
}

#endif
