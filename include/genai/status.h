/* Status: how every function of genai reports failure.
 *
 * A function that can fail returns `genai_status*`. NULL means success; anything else is owned by the caller, who frees it with
 * genai_status_free or hands it on (returning it, or wrapping it as a cause). No function prints, exits or sets global state.
 *
 * A message names the thing (file, tensor, option), the value found, what was expected, and what to do next. */
#ifndef GENAI_STATUS_H
#define GENAI_STATUS_H

#include <stdarg.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define GENAI_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define GENAI_MUST_USE __attribute__((warn_unused_result))
#define GENAI_API __attribute__((visibility("default")))
#else
#define GENAI_PRINTF(fmt, args)
#define GENAI_MUST_USE
#define GENAI_API
#endif

typedef enum genai_error_kind {
  GENAI_ERROR_NONE = 0,
  GENAI_ERROR_INVALID_ARGUMENT,     /* a call's arguments break its contract */
  GENAI_ERROR_CONFIG_VALIDATION,    /* an option of a run is wrong; found before any stage runs */
  GENAI_ERROR_ENGINE_NOT_AVAILABLE, /* an engine, its library or its device is missing */
  GENAI_ERROR_STAGE,                /* a pipeline stage failed; see genai_status_stage and the cause */
  GENAI_ERROR_PIPELINE,             /* the pipeline itself failed */
  GENAI_ERROR_NOT_FOUND,            /* a file, tensor, key or method does not exist */
  GENAI_ERROR_BAD_FILE,             /* a file's content breaks its format */
  GENAI_ERROR_UNSUPPORTED,          /* well formed, but genai does not handle it */
  GENAI_ERROR_IO,                   /* the operating system refused a read, write, map or rename */
  GENAI_ERROR_OUT_OF_MEMORY,        /* an allocation failed */
  GENAI_ERROR_VENDOR,               /* a vendor library returned an error code */
  GENAI_ERROR_LIMIT,                /* input exceeds a limit of the artifact, such as its context length */
  GENAI_ERROR_TEMPLATE,             /* a chat template raised an error */
  GENAI_ERROR_CANCELLED,            /* cancelled by the caller or a signal */
  GENAI_ERROR_INTERNAL              /* a bug in genai */
} genai_error_kind;

typedef struct genai_status genai_status;

/* A new status. Never returns NULL: when memory is out, a static out-of-memory status is returned, which genai_status_free accepts. */
GENAI_API genai_status* genai_status_create(genai_error_kind kind, const char* format, ...) GENAI_PRINTF(2, 3) GENAI_MUST_USE;

/* A new status with `cause` (owned by the result from now on; may be NULL) beneath it. */
GENAI_API genai_status* genai_status_wrap(genai_status* cause, genai_error_kind kind, const char* format, ...)
    GENAI_PRINTF(3, 4) GENAI_MUST_USE;

/* Like genai_status_wrap with kind GENAI_ERROR_STAGE and a stage name; a cause that already is a stage error is returned unchanged. */
GENAI_API genai_status* genai_status_wrap_stage(genai_status* cause, const char* stage, const char* format, ...)
    GENAI_PRINTF(3, 4) GENAI_MUST_USE;

/* The static out-of-memory status. */
GENAI_API genai_status* genai_status_out_of_memory(void) GENAI_MUST_USE;

GENAI_API genai_error_kind genai_status_kind(const genai_status* status);     /* GENAI_ERROR_NONE for NULL */
GENAI_API const char* genai_status_message(const genai_status* status);       /* "" for NULL; lives as long as the status */
GENAI_API const char* genai_status_stage(const genai_status* status);         /* NULL when no stage is recorded */
GENAI_API const genai_status* genai_status_cause(const genai_status* status); /* NULL at the end of the chain */
GENAI_API const char* genai_error_kind_name(genai_error_kind kind);           /* such as "BadFile" */

/* Writes the whole chain as one line, `[stage] message (caused by KIND: text)`, NUL-terminated, truncated to `capacity`.
 * Returns the length the whole text has (as snprintf does). */
GENAI_API size_t genai_status_format(const genai_status* status, char* buffer, size_t capacity);

GENAI_API void genai_status_free(genai_status* status);

/* Returns from the enclosing function when `expression` fails. */
#define GENAI_TRY(expression)                        \
  do {                                               \
    genai_status* genai_try_status_ = (expression);  \
    if (genai_try_status_) return genai_try_status_; \
  } while (0)

/* Sets `status` and jumps to `label` when `expression` fails: for functions with a cleanup ladder. */
#define GENAI_TRY_GOTO(status, expression, label) \
  do {                                            \
    (status) = (expression);                      \
    if (status) goto label;                       \
  } while (0)

#ifdef __cplusplus
}
#endif
#endif
