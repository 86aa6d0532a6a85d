/* The part of Genie's C API that is called, declared anew from its documentation and checked by experiment (QAIRT 2.47 to 2.51). Handles are
 * opaque pointers, enumerations and status codes 32-bit integers. */
#ifndef GENAI_GENIE_GENIE_API_H
#define GENAI_GENIE_GENIE_API_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

typedef const void* genie_handle;
typedef int32_t genie_code;

/* Codes above 0 are warnings: the call did its work, or part of it. */
enum {
  GENIE_SUCCESS = 0,
  GENIE_WARNING_ABORTED = 1,
  GENIE_WARNING_BOUND_HANDLE = 2,
  GENIE_WARNING_PAUSED = 3,
  GENIE_WARNING_CONTEXT_EXCEEDED = 4,
  GENIE_ERROR_GENERAL = -1,
  GENIE_ERROR_INVALID_ARGUMENT = -2,
  GENIE_ERROR_MEM_ALLOC = -3,
  GENIE_ERROR_INVALID_CONFIG = -4,
  GENIE_ERROR_INVALID_HANDLE = -5,
  GENIE_ERROR_QUERY_FAILED = -6,
  GENIE_ERROR_JSON_FORMAT = -7,
  GENIE_ERROR_JSON_SCHEMA = -8,
  GENIE_ERROR_JSON_VALUE = -9,
  GENIE_ERROR_GENERATE_FAILED = -10,
  GENIE_ERROR_GET_HANDLE_FAILED = -11,
  GENIE_ERROR_APPLY_CONFIG_FAILED = -12,
  GENIE_ERROR_SET_PARAMS_FAILED = -13,
  GENIE_ERROR_BOUND_HANDLE = -14
};

enum { GENIE_LOG_ERROR = 1, GENIE_LOG_WARNING = 2, GENIE_LOG_INFO = 3, GENIE_LOG_VERBOSE = 4 };
enum {
  GENIE_SENTENCE_COMPLETE = 0,
  GENIE_SENTENCE_BEGIN = 1,
  GENIE_SENTENCE_CONTINUE = 2,
  GENIE_SENTENCE_END = 3,
  GENIE_SENTENCE_ABORT = 4
};
enum { GENIE_ACTION_ABORT = 1 };

typedef void (*genie_log_callback)(genie_handle log, const char* format, int32_t level, uint64_t timestamp, va_list arguments);
typedef void (*genie_token_callback)(const uint32_t* ids, uint32_t count, int32_t sentence_code, const void* user);

/* Every function that is looked up, with the member that holds it. */
typedef struct genie_api {
  uint32_t (*version_major)(void);
  uint32_t (*version_minor)(void);
  uint32_t (*version_patch)(void);
  genie_code (*log_create)(genie_handle config, genie_log_callback callback, int32_t level, genie_handle* out);
  genie_code (*log_free)(genie_handle log);
  genie_code (*config_create)(const char* json, genie_handle* out);
  genie_code (*config_bind_logger)(genie_handle config, genie_handle log);
  genie_code (*config_free)(genie_handle config);
  genie_code (*dialog_create)(genie_handle config, genie_handle* out);
  genie_code (*dialog_free)(genie_handle dialog);
  genie_code (*dialog_reset)(genie_handle dialog);
  genie_code (*dialog_set_max_tokens)(genie_handle dialog, uint32_t count);
  genie_code (*dialog_token_query)(genie_handle dialog, const uint32_t* ids, uint32_t count, int32_t sentence_code,
                                   genie_token_callback callback, const void* user);
  genie_code (*dialog_signal)(genie_handle dialog, int32_t action);
} genie_api;

#endif
