/* Registers an engine of its own: `neighbours` answers a token with the token whose embedding is nearest. All four stages are its own, small
 * enough to read: the embedding table of a checkpoint, quantized to 8 bits, written as a file, searched.
 *
 *   engine CHECKPOINT_DIRECTORY DIRECTORY IDS
 *
 * For each id of IDS, such as 1,22,333, one id goes to standard output. Valid C17 and C++17. */
#include <errno.h>
#include <genai/genai.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_IDS = 256, PATH_SIZE = 4096, HEADER_LIMIT = 1 << 20 };
#define ENGINE "neighbours"

/* ---- What the stages hand on ---- */
typedef struct table {
  uint32_t rows, columns;
  float* values;   /* of the prepared model */
  int8_t* numbers; /* of the quantized one: value = number * scale of its row, which a cosine does not need */
} table;

static void table_destroy(void* payload) {
  table* self = (table*)payload;
  genai_free(self->values);
  genai_free(self->numbers);
  genai_free(self);
}
static const genai_object_type table_type = {"neighbours.table", table_destroy};

static genai_status* table_create(uint32_t rows, uint32_t columns, genai_object** object, table** out) {
  table* self = (table*)genai_alloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  self->rows = rows;
  self->columns = columns;
  genai_status* status = genai_object_create(&table_type, self, object);
  if (status) genai_free(self);
  *out = self;
  return status;
}

/* ---- model_preparation ---- */
/* safetensors: 8 bytes of length, a JSON header of that length, data. A program with a JSON library would use it here. */
static genai_status* read_table(FILE* file, const char* path, const char* name, genai_object** out) {
  uint64_t length = 0;
  unsigned rows = 0, columns = 0;
  unsigned long long begin = 0, end = 0;
  if (fread(&length, sizeof length, 1, file) != 1 || !length || length > HEADER_LIMIT)
    return genai_status_create(GENAI_ERROR_BAD_FILE, "\"%s\" does not begin as a safetensors file", path);
  char* header = (char*)genai_alloc((size_t)length + 1, 1);
  if (!header) return genai_status_out_of_memory();
  bool whole = fread(header, 1, (size_t)length, file) == length;
  const char* entry = whole ? strstr(header, name) : NULL;
  bool found = entry && strstr(entry, "\"shape\":[") && strstr(entry, "\"data_offsets\":[") && strstr(entry, "\"F32\"") &&
               sscanf(strstr(entry, "\"shape\":["), "\"shape\":[%u,%u]", &rows, &columns) == 2 &&
               sscanf(strstr(entry, "\"data_offsets\":["), "\"data_offsets\":[%llu,%llu]", &begin, &end) == 2;
  genai_free(header);
  if (!found || end - begin != (unsigned long long)rows * columns * sizeof(float))
    return genai_status_create(GENAI_ERROR_BAD_FILE, "\"%s\" has no float32 matrix %s", path, name);
  table* self = NULL;
  GENAI_TRY(table_create(rows, columns, out, &self));
  self->values = (float*)genai_alloc((size_t)rows * columns, sizeof(float));
  if (!self->values) return genai_status_out_of_memory();
  if (fseek(file, (long)(sizeof length + length + begin), SEEK_SET) ||
      fread(self->values, sizeof(float), (size_t)rows * columns, file) != (size_t)rows * columns)
    return genai_status_create(GENAI_ERROR_BAD_FILE, "\"%s\" ends within %s", path, name);
  return NULL;
}

static genai_status* prepare(genai_strategy* self, const genai_context* context, const genai_model_preparation_input* input,
                             genai_model_preparation_output* output) {
  (void)self;
  (void)context;
  char path[PATH_SIZE];
  snprintf(path, sizeof path, "%s/model.safetensors", input->model);
  FILE* file = fopen(path, "rb");
  if (!file) return genai_status_create(GENAI_ERROR_NOT_FOUND, "cannot open \"%s\": %s", path, strerror(errno));
  genai_status* status = read_table(file, path, "\"model.embed_tokens.weight\"", &output->model);
  fclose(file);
  return status; /* what the output already holds is freed by the stage */
}

/* ---- quantization ---- */
static genai_status* quantize(genai_strategy* self, const genai_context* context, const genai_quantization_input* input,
                              genai_quantization_output* output) {
  (void)self;
  (void)context;
  const table* source = (const table*)genai_object_payload(input->model, &table_type);
  if (!source) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "the model is not of engine " ENGINE);
  table* result = NULL;
  GENAI_TRY(table_create(source->rows, source->columns, &output->model, &result));
  result->numbers = (int8_t*)genai_alloc((size_t)source->rows * source->columns, 1);
  if (!result->numbers) return genai_status_out_of_memory();
  for (uint32_t row = 0; row < source->rows; row++) {
    const float* values = source->values + (size_t)row * source->columns;
    float largest = 0;
    for (uint32_t i = 0; i < source->columns; i++) largest = fabsf(values[i]) > largest ? fabsf(values[i]) : largest;
    for (uint32_t i = 0; largest > 0 && i < source->columns; i++)
      result->numbers[(size_t)row * source->columns + i] = (int8_t)lrintf(values[i] / largest * 127);
  }
  return NULL;
}

/* ---- compilation ---- */
static genai_status* write_table(const table* self, const char* path) {
  char temporary[PATH_SIZE + 8];
  snprintf(temporary, sizeof temporary, "%s.part", path);
  FILE* file = fopen(temporary, "wb");
  bool written = file && fwrite(&self->rows, sizeof self->rows, 1, file) == 1 &&
                 fwrite(&self->columns, sizeof self->columns, 1, file) == 1 &&
                 fwrite(self->numbers, self->columns, self->rows, file) == self->rows;
  if (file && fclose(file)) written = false;
  if (written && !rename(temporary, path)) return NULL; /* whole or not at all */
  genai_status* status = genai_status_create(GENAI_ERROR_IO, "cannot write \"%s\": %s", path, strerror(errno));
  remove(temporary);
  return status;
}

static genai_status* compile(genai_strategy* self, const genai_context* context, const genai_compilation_input* input,
                             genai_compilation_output* output) {
  (void)self;
  (void)context;
  const table* source = (const table*)genai_object_payload(input->quantized_model, &table_type);
  if (!source) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "engine " ENGINE " compiles its own quantized model alone");
  char path[PATH_SIZE];
  snprintf(path, sizeof path, "%s/neighbours.table", input->artifact_directory);
  GENAI_TRY(write_table(source, path));
  return genai_string_list_add(&output->artifacts, path);
}

/* ---- inference ---- */
static genai_status* load_table(const char* path, genai_object** out) {
  FILE* file = fopen(path, "rb");
  if (!file) return genai_status_create(GENAI_ERROR_NOT_FOUND, "cannot open \"%s\": %s", path, strerror(errno));
  uint32_t size[2] = {0, 0};
  table* self = NULL;
  genai_status* status = NULL;
  if (fread(size, sizeof size, 1, file) != 1 || !size[0] || !size[1] || (uint64_t)size[0] * size[1] > 1u << 30)
    status = genai_status_create(GENAI_ERROR_BAD_FILE, "\"%s\" is not a table of engine " ENGINE, path);
  if (!status) status = table_create(size[0], size[1], out, &self);
  if (!status) {
    self->numbers = (int8_t*)genai_alloc((size_t)size[0] * size[1], 1);
    if (!self->numbers) {
      status = genai_status_out_of_memory();
    } else if (fread(self->numbers, size[1], size[0], file) != size[0]) {
      status = genai_status_create(GENAI_ERROR_BAD_FILE, "\"%s\" is cut short", path);
    }
  }
  fclose(file);
  return status;
}

static double product(const table* self, uint32_t a, uint32_t b) {
  const int8_t* left = self->numbers + (size_t)a * self->columns;
  const int8_t* right = self->numbers + (size_t)b * self->columns;
  int64_t sum = 0;
  for (uint32_t i = 0; i < self->columns; i++) sum += (int64_t)left[i] * right[i];
  return (double)sum;
}

static genai_status* nearest(const table* self, int32_t id, int32_t* out) {
  if (id < 0 || (uint32_t)id >= self->rows)
    return genai_status_create(GENAI_ERROR_LIMIT, "token id %d is outside the vocabulary of %u", (int)id, (unsigned)self->rows);
  double best = -2;
  for (uint32_t row = 0; row < self->rows; row++) {
    double cosine = product(self, (uint32_t)id, row) / sqrt(product(self, (uint32_t)id, (uint32_t)id) * product(self, row, row));
    if (row == (uint32_t)id || !(cosine > best)) continue;
    best = cosine;
    *out = (int32_t)row;
  }
  return NULL;
}

static genai_status* answer(const table* self, const genai_context* context, genai_generation* out) {
  size_t count = 0;
  const int32_t* ids = genai_context_prompt_ids(context, 0, &count);
  if (!ids) return genai_status_create(GENAI_ERROR_UNSUPPORTED, "engine " ENGINE " takes prompts as token ids");
  out->end = "token limit";
  out->ids = (int32_t*)genai_alloc(count, sizeof *out->ids);
  if (!out->ids) return genai_status_out_of_memory();
  out->n_ids = count;
  for (size_t i = 0; i < count; i++) GENAI_TRY(nearest(self, ids[i], &out->ids[i]));
  return NULL;
}

static genai_status* infer(genai_strategy* self, const genai_context* context, const genai_inference_input* input,
                           genai_inference_output* output) {
  (void)self;
  if (!input->n_artifacts) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "there is no artifact to run");
  genai_object* object = NULL;
  genai_status* status = load_table(input->artifacts[0], &object);
  if (!status) {
    output->run.generations = (genai_generation*)genai_alloc(1, sizeof *output->run.generations);
    output->run.n_generations = output->run.generations ? 1 : 0;
    status = output->run.generations ? answer((const table*)genai_object_payload(object, &table_type), context, &output->run.generations[0])
                                     : genai_status_out_of_memory();
  }
  genai_object_release(object);
  return status;
}

/* ---- Resuming ---- */
/* What each result depends on: when none of it has changed, a later run takes the stored artifact. */
static genai_status* fingerprint_model(genai_strategy* self, const genai_context* context, const genai_fingerprint_request* request,
                                       genai_fingerprint* out) {
  (void)self;
  (void)request;
  char path[PATH_SIZE];
  snprintf(path, sizeof path, "%s/model.safetensors", genai_context_model(context));
  return genai_fingerprint_add_file(out, "model", path);
}

static genai_status* fingerprint_code(genai_strategy* self, const genai_context* context, const genai_fingerprint_request* request,
                                      genai_fingerprint* out) {
  (void)self;
  (void)context;
  (void)request;
  return genai_fingerprint_add(out, ENGINE, "1"); /* to be counted up when the code gives other bytes */
}

/* ---- The rows of the registry ---- */
/* A strategy without state: one vtable per stage, given as the row's `user`. */
static genai_status* create_strategy(void* user, const genai_adapters* adapters, genai_strategy** out) {
  (void)adapters;
  *out = (genai_strategy*)user;
  return NULL;
}

static genai_status* register_engine(genai_registry* registry) {
  static genai_strategy_vtable vtables[GENAI_STAGE_COUNT];
  static genai_strategy strategies[GENAI_STAGE_COUNT];
  vtables[GENAI_STAGE_MODEL_PREPARATION].prepare = prepare;
  vtables[GENAI_STAGE_QUANTIZATION].quantize = quantize;
  vtables[GENAI_STAGE_COMPILATION].compile = compile;
  vtables[GENAI_STAGE_INFERENCE].infer = infer;
  vtables[GENAI_STAGE_MODEL_PREPARATION].fingerprint = fingerprint_model;
  vtables[GENAI_STAGE_QUANTIZATION].fingerprint = fingerprint_code;
  vtables[GENAI_STAGE_COMPILATION].fingerprint = fingerprint_code;
  for (int i = 0; i < GENAI_STAGE_COUNT; i++) {
    genai_stage_kind kind = (genai_stage_kind)i;
    vtables[i].stage = kind;
    vtables[i].engine = ENGINE;
    strategies[i].vtable = &vtables[i];
    GENAI_TRY(genai_registry_register(registry, kind, ENGINE, create_strategy, NULL, &strategies[i]));
  }
  return NULL;
}

/* ---- The run ---- */
static void log_line(void* user, genai_log_level level, const char* message) {
  (void)user;
  (void)level;
  fprintf(stderr, "%s\n", message);
}

static genai_status* fill(genai_context_builder* builder, char* const* arguments) {
  int32_t ids[MOST_IDS];
  size_t count = 0;
  for (char *next = arguments[3], *end; *next && count < MOST_IDS; next = *end == ',' ? end + 1 : end) {
    ids[count++] = (int32_t)strtol(next, &end, 10);
    if (end == next) return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "\"%s\" is not a list of ids", arguments[3]);
  }
  GENAI_TRY(genai_context_builder_set_model(builder, arguments[1]));
  GENAI_TRY(genai_context_builder_set_artifact_directory(builder, arguments[2]));
  GENAI_TRY(genai_context_builder_set_soc(builder, "SM8650"));
  return genai_context_builder_add_prompt_ids(builder, ids, count);
}

static genai_status* run(char* const* arguments) {
  genai_engine_choice choices[GENAI_STAGE_COUNT];
  for (int i = 0; i < GENAI_STAGE_COUNT; i++) {
    choices[i].stage = genai_stage_name((genai_stage_kind)i);
    choices[i].engine = ENGINE;
  }
  genai_context_builder* builder = NULL;
  genai_context* context = NULL;
  genai_engine_proxy* proxy = NULL;
  genai_pipeline* pipeline = NULL;
  genai_inference_output output;
  memset(&output, 0, sizeof output);
  genai_status* status = register_engine(genai_registry_default());
  if (!status) status = genai_context_builder_create(&builder);
  if (!status) status = fill(builder, arguments);
  if (!status) status = genai_context_builder_build(builder, &context);
  if (!status) status = genai_engine_proxy_create(choices, GENAI_STAGE_COUNT, GENAI_BACKEND_HTP, &proxy);
  if (!status) status = genai_pipeline_from_proxy(proxy, NULL, &pipeline);
  if (!status) status = genai_pipeline_invoke(pipeline, context, &output, NULL);
  for (size_t i = 0; !status && i < output.run.generations[0].n_ids; i++)
    printf("%s%d", i ? "," : "", (int)output.run.generations[0].ids[i]);
  if (!status) printf("\n");
  genai_inference_output_deinit(&output);
  genai_pipeline_destroy(pipeline);
  genai_engine_proxy_destroy(proxy);
  genai_context_destroy(context);
  genai_context_builder_destroy(builder);
  return status;
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: engine CHECKPOINT_DIRECTORY DIRECTORY IDS\n");
    return 2;
  }
  genai_log_set_sink(log_line, NULL, GENAI_LOG_INFO);
  genai_status* status = run(argv);
  if (!status) return 0;
  char text[2048];
  genai_status_format(status, text, sizeof text);
  fprintf(stderr, "engine: %s\n", text);
  genai_status_free(status);
  return 1;
}
