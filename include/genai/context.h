/* What one run of the pipeline is about: the context and its builder, options, the cancellation token, and callbacks.
 *
 * Every `_create` and `_build` gives the caller one reference or object, which the matching `_destroy` or `_release` ends; both accept NULL.
 * Strings and arrays handed in are copied; strings handed out live as long as the object they came from. */
#ifndef GENAI_CONTEXT_H
#define GENAI_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "genai/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Memory that crosses the interface ---- */
/* Allocates what a record's `_deinit` will free. NULL when memory is out. */
GENAI_API void* genai_alloc(size_t count, size_t size); /* zeroed */
GENAI_API char* genai_strdup(const char* text);
GENAI_API void genai_free(void* pointer);

/* A list of owned strings (paths, mostly). Zero-initialise to start. */
typedef struct genai_string_list {
  size_t count;
  char** items;
} genai_string_list;
GENAI_API genai_status* genai_string_list_add(genai_string_list* list, const char* text) GENAI_MUST_USE;
GENAI_API void genai_string_list_deinit(genai_string_list* list);

/* ---- Cancellation ---- */
typedef struct genai_cancel genai_cancel;
GENAI_API genai_status* genai_cancel_create(genai_cancel** out) GENAI_MUST_USE;
GENAI_API void genai_cancel_destroy(genai_cancel* self);
GENAI_API void genai_cancel_request(genai_cancel* self); /* from any thread, and from a signal handler */
GENAI_API bool genai_cancel_requested(const genai_cancel* self);

/* ---- Log and progress ---- */
typedef enum genai_log_level { GENAI_LOG_ERROR = 1, GENAI_LOG_WARNING = 2, GENAI_LOG_INFO = 3, GENAI_LOG_DEBUG = 4 } genai_log_level;
typedef void (*genai_log_sink)(void* user, genai_log_level level, const char* message);
/* Where log lines go, for the whole process. NULL (the default) drops them. Call before threads start. */
GENAI_API void genai_log_set_sink(genai_log_sink sink, void* user, genai_log_level most_verbose);

/* Progress of one long step. `done` and `total` are in `unit`; total 0 means unknown. */
typedef struct genai_progress {
  const char* step; /* such as "calibrating" */
  const char* unit; /* such as "tokens" */
  uint64_t done;
  uint64_t total;
  double seconds; /* since the step began */
  bool finished;  /* the last event of the step */
} genai_progress;
typedef void (*genai_progress_callback)(void* user, const genai_progress* event);

/* Generated text as it appears. `prompt` counts the run's prompts from 0; `text` is whole UTF-8 characters, `finished` marks the end. */
typedef void (*genai_text_callback)(void* user, size_t prompt, const char* text, size_t length, bool finished);

/* ---- Options ---- */
/* Key/value pairs in the order they were first set. */
typedef struct genai_options genai_options;
GENAI_API genai_status* genai_options_create(genai_options** out) GENAI_MUST_USE;
GENAI_API void genai_options_destroy(genai_options* self);
GENAI_API genai_status* genai_options_set(genai_options* self, const char* key, const char* value) GENAI_MUST_USE; /* last one wins */
GENAI_API size_t genai_options_count(const genai_options* self);
GENAI_API const char* genai_options_key(const genai_options* self, size_t index);
GENAI_API const char* genai_options_value(const genai_options* self, size_t index);
GENAI_API const char* genai_options_get(const genai_options* self, const char* key); /* NULL when it was not set */
/* Values that a genai_option_spec has checked; the fallback when the option was not set. */
GENAI_API int64_t genai_options_integer(const genai_options* self, const char* key, int64_t fallback);
GENAI_API double genai_options_number(const genai_options* self, const char* key, double fallback);
GENAI_API bool genai_options_flag(const genai_options* self, const char* key, bool fallback);
GENAI_API const char* genai_options_text(const genai_options* self, const char* key, const char* fallback);

typedef enum genai_option_kind {
  GENAI_OPTION_TEXT,
  GENAI_OPTION_INTEGER,
  GENAI_OPTION_NUMBER,
  GENAI_OPTION_FLAG,  /* true or false */
  GENAI_OPTION_CHOICE /* one of `choices` */
} genai_option_kind;

/* An option that a strategy takes. */
typedef struct genai_option_spec {
  const char* name;
  genai_option_kind kind;
  unsigned stages;           /* bit 1 << genai_stage_kind for each stage that takes it */
  double minimum, maximum;   /* INTEGER and NUMBER, inclusive */
  const char* choices;       /* CHOICE: names separated by '|' */
  const char* default_value; /* for people; NULL: none */
  const char* help;
} genai_option_spec;

/* Checks each pair of `options` against the lists: an unknown key or a value out of range is GENAI_ERROR_CONFIG_VALIDATION that names the
 * nearest known option or what is allowed. */
GENAI_API genai_status* genai_options_validate(const genai_options* options, const genai_option_spec* const* lists, const size_t* counts,
                                               size_t n_lists) GENAI_MUST_USE;
/* The pairs that `specs` gives to `stage` (a genai_stage_kind): what may reach that stage's adapters. */
GENAI_API genai_status* genai_options_filter(const genai_options* options, const genai_option_spec* specs, size_t count, unsigned stage,
                                             genai_options** out) GENAI_MUST_USE;

/* ---- Chipsets ---- */
typedef struct genai_chipset {
  const char* name;      /* "SM8650" */
  const char* marketing; /* "Snapdragon 8 Gen 3" */
  uint32_t soc_id;       /* 57 */
  uint32_t htp_arch;     /* 75 */
  uint32_t vtcm_mb;      /* 8 */
  uint32_t lpai_version; /* 0: none */
  bool float16;          /* the HTP computes in half precision */
} genai_chipset;
/* By name, marketing name or id (QNN's, or the one Linux gives the chip on a device), in genai's own table. Unknown:
 * GENAI_ERROR_CONFIG_VALIDATION that offers the nearest names. An unknown id of a known architecture ("99", or "4711:v79") is mapped to the
 * nearest SoC of that architecture, with a warning. */
GENAI_API genai_status* genai_chipset_find(const char* name, genai_chipset* out) GENAI_MUST_USE;

/* ---- Context ---- */
struct genai_sample_stream; /* genai/adapters.h */

/* Immutable once built. */
typedef struct genai_context genai_context;
typedef struct genai_context_builder genai_context_builder;

GENAI_API genai_status* genai_context_builder_create(genai_context_builder** out) GENAI_MUST_USE;
GENAI_API void genai_context_builder_destroy(genai_context_builder* self);

/* Required: a checkpoint's path, the SoC's name, and at least one prompt. */
GENAI_API genai_status* genai_context_builder_set_model(genai_context_builder* self, const char* model) GENAI_MUST_USE;
GENAI_API genai_status* genai_context_builder_set_soc(genai_context_builder* self, const char* soc) GENAI_MUST_USE;
/* One prompt, in place of all earlier ones. A blank one is refused by build. */
GENAI_API genai_status* genai_context_builder_set_prompt(genai_context_builder* self, const char* prompt) GENAI_MUST_USE;
/* A list, in place of all earlier ones. Blank prompts are dropped by build; an empty or all-blank list is refused there. */
GENAI_API genai_status* genai_context_builder_set_prompts(genai_context_builder* self, const char* const* prompts,
                                                          size_t count) GENAI_MUST_USE;
/* One more prompt, already as token ids: no chat template, no begin token, no tokenizer. */
GENAI_API genai_status* genai_context_builder_add_prompt_ids(genai_context_builder* self, const int32_t* ids, size_t count) GENAI_MUST_USE;
/* Says that this run ends before inference: no prompt is required then. */
GENAI_API genai_status* genai_context_builder_set_no_inference(genai_context_builder* self) GENAI_MUST_USE;

/* Optional. */
GENAI_API genai_status* genai_context_builder_set_artifact_directory(genai_context_builder* self, const char* path) GENAI_MUST_USE;
GENAI_API genai_status* genai_context_builder_set_option(genai_context_builder* self, const char* key, const char* value) GENAI_MUST_USE;
/* An artifact of an earlier run, for inference when compilation does not run. */
GENAI_API genai_status* genai_context_builder_add_artifact(genai_context_builder* self, const char* path) GENAI_MUST_USE;
/* Calibration and training data that win over what adapters would generate. The builder takes a reference of its own; NULL takes it back. */
GENAI_API genai_status* genai_context_builder_set_calibration_data(genai_context_builder* self,
                                                                   struct genai_sample_stream* data) GENAI_MUST_USE;
GENAI_API genai_status* genai_context_builder_set_training_data(genai_context_builder* self,
                                                                struct genai_sample_stream* data) GENAI_MUST_USE;
/* Borrowed: must outlive every run of the context. Callbacks come from the thread that runs the pipeline. */
GENAI_API genai_status* genai_context_builder_set_cancel(genai_context_builder* self, const genai_cancel* cancel) GENAI_MUST_USE;
GENAI_API genai_status* genai_context_builder_set_progress(genai_context_builder* self, genai_progress_callback callback,
                                                           void* user) GENAI_MUST_USE;
GENAI_API genai_status* genai_context_builder_set_text(genai_context_builder* self, genai_text_callback callback,
                                                       void* user) GENAI_MUST_USE;

/* Reports everything that is missing or wrong in one GENAI_ERROR_CONFIG_VALIDATION, each with the setter that supplies it. The builder
 * stays usable. */
GENAI_API genai_status* genai_context_builder_build(const genai_context_builder* self, genai_context** out) GENAI_MUST_USE;

GENAI_API void genai_context_destroy(genai_context* self);
GENAI_API const char* genai_context_model(const genai_context* self);
GENAI_API const char* genai_context_soc(const genai_context* self);
/* What that name stands for, in genai's table and the user's: the file of option soc_file, else $XDG_CONFIG_HOME/genai/socs.json when there
 * is one (docs/formats/socs.md). Strings live as long as the context. Errors as genai_chipset_find's. */
GENAI_API genai_status* genai_context_chipset(const genai_context* self, genai_chipset* out) GENAI_MUST_USE;
GENAI_API const char* genai_context_artifact_directory(const genai_context* self); /* "./genai_artifacts" unless set */
GENAI_API const genai_options* genai_context_options(const genai_context* self);
/* A prompt is text or, when `*ids` is set, token ids. */
GENAI_API size_t genai_context_prompt_count(const genai_context* self);
GENAI_API const char* genai_context_prompt_text(const genai_context* self, size_t index);                  /* NULL for ids */
GENAI_API const int32_t* genai_context_prompt_ids(const genai_context* self, size_t index, size_t* count); /* NULL for text */
GENAI_API size_t genai_context_artifact_count(const genai_context* self);
GENAI_API const char* genai_context_artifact(const genai_context* self, size_t index);
GENAI_API struct genai_sample_stream* genai_context_calibration_data(const genai_context* self); /* NULL: none; no new reference */
GENAI_API struct genai_sample_stream* genai_context_training_data(const genai_context* self);
GENAI_API const genai_cancel* genai_context_cancel(const genai_context* self); /* NULL: never cancelled */
/* GENAI_ERROR_CANCELLED when the context's token was set. For strategies and adapters, between long steps. */
GENAI_API genai_status* genai_context_check_cancelled(const genai_context* self) GENAI_MUST_USE;
GENAI_API void genai_context_report_progress(const genai_context* self, const genai_progress* event);
GENAI_API void genai_context_report_text(const genai_context* self, size_t prompt, const char* text, size_t length, bool finished);

#ifdef __cplusplus
}
#endif
#endif
