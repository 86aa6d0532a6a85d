/* Embeds libgenai: compiles a checkpoint with calibration data of its own and runs the artifact through a device runner of its own.
 *
 *   embed CHECKPOINT DIRECTORY GENAI IDS
 *
 * GENAI is the program genai: the runner hands it the artifact, as another one would hand it to a machine in a lab. IDS is the prompt as token
 * ids, such as 1,22,333; the ids of the answer go to standard output. Valid C17 and C++17. */
#include <errno.h>
#include <genai/genai.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SAMPLES = 3, SAMPLE_LENGTH = 40, MOST_IDS = 256, NEW_TOKENS = 16, PATH_SIZE = 4096 };

/* ---- Calibration data ---- */
/* A stream of samples. Yours would read text that looks like what your users write, and tokenize it. */
typedef struct samples {
  size_t delivered, count, length;
  int32_t ids[SAMPLE_LENGTH];
} samples;

static size_t smaller(size_t a, size_t b) {
  return a < b ? a : b;
}

static genai_status* samples_next(void* self, genai_sample* out, bool* end) {
  samples* stream = (samples*)self;
  if (stream->delivered == stream->count) {
    *end = true;
    return NULL;
  }
  for (size_t i = 0; i < stream->length; i++) stream->ids[i] = (int32_t)(3 + (stream->delivered * 97 + i * 13) % 300);
  stream->delivered++;
  out->ids = stream->ids;
  out->n_ids = stream->length;
  return NULL;
}

static void samples_destroy(void* self) {
  genai_free(self);
}

static genai_status* generate_samples(genai_calibration_data* self, const genai_context* context, const genai_data_request* request,
                                      genai_sample_stream** out) {
  static const genai_sample_stream_vtable vtable = {samples_next, samples_destroy};
  (void)self;
  (void)context;
  samples* stream = (samples*)genai_alloc(1, sizeof *stream);
  if (!stream) return genai_status_out_of_memory();
  stream->count = smaller(SAMPLES, request->n_samples); /* at most what was asked for */
  stream->length = smaller(SAMPLE_LENGTH, request->sequence_length);
  genai_status* status = genai_sample_stream_create(&vtable, stream, out);
  if (status) genai_free(stream);
  return status;
}

/* ---- Device runner ---- */
/* The interface comes first, so that a pointer to it is a pointer to the whole. */
typedef struct lab_runner {
  genai_device_runner base;
  const char* program;
  char artifact[PATH_SIZE]; /* empty before push */
} lab_runner;

static genai_status* push(genai_device_runner* base, const genai_context* context, const genai_push_request* request) {
  static const char wanted[] = ".sim.pte"; /* the lab's machine is this one: the artifact for the simulator */
  lab_runner* self = (lab_runner*)base;
  (void)context;
  for (size_t i = 0; i < request->n_artifacts; i++) {
    size_t length = strlen(request->artifacts[i]);
    if (length < sizeof wanted || length >= sizeof self->artifact || strcmp(request->artifacts[i] + length - sizeof wanted + 1, wanted))
      continue;
    strcpy(self->artifact, request->artifacts[i]); /* a real lab copies the file here */
    return NULL;
  }
  return genai_status_create(GENAI_ERROR_NOT_FOUND, "none of the %zu artifacts ends in %s", request->n_artifacts, wanted);
}

static void write_ids(const int32_t* ids, size_t count, char* text, size_t capacity) {
  size_t length = 0;
  for (size_t i = 0; i < count && length < capacity; i++)
    length += (size_t)snprintf(text + length, capacity - length, "%s%d", i ? "," : "", (int)ids[i]);
}

static size_t read_ids(const char* text, int32_t ids[MOST_IDS]) {
  size_t count = 0;
  for (char* end; *text && count < MOST_IDS; text = *end == ',' ? end + 1 : end) {
    long id = strtol(text, &end, 10);
    if (end == text) break;
    ids[count++] = (int32_t)id;
  }
  return count;
}

/* Runs the program on one prompt and reads the line it prints. */
static genai_status* run_program(const lab_runner* self, const char* prompt, char* answer, size_t capacity) {
  int ends[2];
  char new_tokens[16];
  snprintf(new_tokens, sizeof new_tokens, "%d", NEW_TOKENS);
  if (pipe(ends)) return genai_status_create(GENAI_ERROR_IO, "cannot open a pipe: %s", strerror(errno));
  pid_t child = fork();
  if (!child) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execl(self->program, self->program, "generate", self->artifact, "--ids", prompt, "--max-new-tokens", new_tokens, (char*)NULL);
    _exit(127);
  }
  close(ends[1]);
  size_t length = 0;
  for (ssize_t got; child > 0 && length < capacity - 1 && (got = read(ends[0], answer + length, capacity - 1 - length)) > 0;)
    length += (size_t)got;
  answer[length] = 0;
  close(ends[0]);
  int result = -1;
  if (child > 0) waitpid(child, &result, 0);
  if (!WIFEXITED(result) || WEXITSTATUS(result))
    return genai_status_create(GENAI_ERROR_IO, "\"%s generate %s\" failed with code %d", self->program, self->artifact,
                               WIFEXITED(result) ? WEXITSTATUS(result) : -1);
  return NULL;
}

static genai_status* answer_prompt(const lab_runner* self, const genai_context* context, size_t prompt, genai_generation* out) {
  size_t n_prompt = 0;
  const int32_t* prompt_ids = genai_context_prompt_ids(context, prompt, &n_prompt);
  if (!prompt_ids) return genai_status_create(GENAI_ERROR_UNSUPPORTED, "this example takes prompts as token ids");
  char question[MOST_IDS * 12], answer[MOST_IDS * 12];
  write_ids(prompt_ids, n_prompt, question, sizeof question);
  GENAI_TRY(run_program(self, question, answer, sizeof answer));
  int32_t ids[MOST_IDS];
  out->n_ids = read_ids(answer, ids);
  out->ids = (int32_t*)genai_alloc(out->n_ids + 1, sizeof *out->ids);
  if (!out->ids) return genai_status_out_of_memory();
  memcpy(out->ids, ids, out->n_ids * sizeof ids[0]);
  out->end = out->n_ids == NEW_TOKENS ? "token limit" : "stop token";
  return NULL;
}

static genai_status* execute(genai_device_runner* base, const genai_context* context, const genai_execute_request* request,
                             genai_execute_result* out) {
  lab_runner* self = (lab_runner*)base;
  (void)request;
  if (!*self->artifact) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "DeviceRunner.execute was called before push");
  size_t count = genai_context_prompt_count(context);
  out->generations = (genai_generation*)genai_alloc(count, sizeof *out->generations);
  if (!out->generations) return genai_status_out_of_memory();
  out->n_generations = count;
  for (size_t i = 0; i < count; i++) {
    genai_status* status = genai_context_check_cancelled(context);
    if (!status) status = answer_prompt(self, context, i, &out->generations[i]);
    if (!status) continue;
    genai_execute_result_deinit(out);
    return status;
  }
  return NULL;
}

/* Nothing to fetch: the answers came through the pipe. */
static genai_status* pull(genai_device_runner* base, const genai_context* context, const char* directory, genai_string_list* files) {
  (void)context;
  (void)directory;
  (void)files;
  if (*((lab_runner*)base)->artifact) return NULL;
  return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "DeviceRunner.pull was called before push");
}

/* ---- The run ---- */
static void log_line(void* user, genai_log_level level, const char* message) {
  (void)user;
  (void)level;
  fprintf(stderr, "%s\n", message);
}

static genai_status* fill(genai_context_builder* builder, char* const* arguments) {
  static const char* const options[][2] = {{"context", "64"}, {"prefill_ar", "8"}};
  int32_t ids[MOST_IDS];
  size_t count = read_ids(arguments[4], ids);
  GENAI_TRY(genai_context_builder_set_model(builder, arguments[1]));
  GENAI_TRY(genai_context_builder_set_artifact_directory(builder, arguments[2]));
  GENAI_TRY(genai_context_builder_set_soc(builder, "SM8650"));
  GENAI_TRY(genai_context_builder_add_prompt_ids(builder, ids, count));
  for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
    GENAI_TRY(genai_context_builder_set_option(builder, options[i][0], options[i][1]));
  return NULL;
}

static genai_status* run(char* const* arguments) {
  static const genai_calibration_data_vtable calibration_vtable = {generate_samples, NULL};
  static const genai_device_runner_vtable runner_vtable = {push, execute, pull, NULL};
  genai_calibration_data calibration = {&calibration_vtable};
  lab_runner runner = {{&runner_vtable}, arguments[3], ""};

  /* Injected adapters, per stage. They outlive the pipeline and are never destroyed by it. */
  genai_adapters preparation, inference;
  memset(&preparation, 0, sizeof preparation);
  memset(&inference, 0, sizeof inference);
  preparation.calibration_data = &calibration;
  inference.runner = &runner.base;
  genai_pipeline_options how;
  memset(&how, 0, sizeof how);
  how.adapters[GENAI_STAGE_MODEL_PREPARATION] = &preparation;
  how.adapters[GENAI_STAGE_INFERENCE] = &inference;

  genai_context_builder* builder = NULL;
  genai_context* context = NULL;
  genai_engine_proxy* proxy = NULL;
  genai_pipeline* pipeline = NULL;
  genai_inference_output output;
  memset(&output, 0, sizeof output);
  genai_status* status = genai_context_builder_create(&builder);
  if (!status) status = fill(builder, arguments);
  if (!status) status = genai_context_builder_build(builder, &context);
  if (!status) status = genai_engine_proxy_create(NULL, 0, GENAI_BACKEND_HTP, &proxy);
  if (!status) status = genai_pipeline_from_proxy(proxy, &how, &pipeline);
  if (!status) status = genai_pipeline_invoke(pipeline, context, &output, NULL);
  if (!status) {
    char answer[MOST_IDS * 12] = "";
    write_ids(output.run.generations[0].ids, output.run.generations[0].n_ids, answer, sizeof answer);
    printf("%s\n", answer);
  }
  genai_inference_output_deinit(&output);
  genai_pipeline_destroy(pipeline);
  genai_engine_proxy_destroy(proxy);
  genai_context_destroy(context);
  genai_context_builder_destroy(builder);
  return status;
}

int main(int argc, char** argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: embed CHECKPOINT DIRECTORY GENAI IDS\n");
    return 2;
  }
  genai_log_set_sink(log_line, NULL, GENAI_LOG_INFO);
  genai_status* status = run(argv);
  if (!status) return 0;
  char text[2048];
  genai_status_format(status, text, sizeof text);
  fprintf(stderr, "embed: %s\n", text);
  genai_status_free(status);
  return 1;
}
