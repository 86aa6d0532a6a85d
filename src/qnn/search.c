/* Where Qualcomm's libraries may lie on this machine. Only looks; loading is library.c. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "qnn/qnn_internal.h"

#if defined(__aarch64__)
#if defined(__ANDROID__)
#define SDK_FOLDER "lib/aarch64-android"
#else
#define SDK_FOLDER "lib/aarch64-oe-linux-gcc11.2"
#endif
#else
#define SDK_FOLDER "lib/x86_64-linux-clang"
#endif

/* The folder name inside the PyPI wheel. */
#define WHEEL_FOLDER "onnxruntime_qnn"
/* Preferred among several cached wheels: QAIRT 2.49.40, the one that stock ExecuTorch 1.5.1 works with. */
#define PREFERRED_WHEEL "2.5.0"

enum { MAX_CACHED = 32 };

typedef struct place_list {
  arena* memory;
  qnn_place* places;
  size_t count, capacity;
} place_list;

static genai_status* place_add(place_list* list, const char* directory, const char* origin) {
  if (list->count == list->capacity) {
    size_t capacity = list->capacity ? 2 * list->capacity : 8;
    qnn_place* grown = arena_calloc(list->memory, capacity, sizeof *grown);
    if (!grown) return genai_status_out_of_memory();
    if (list->count) memcpy(grown, list->places, list->count * sizeof *grown);
    list->places = grown;
    list->capacity = capacity;
  }
  char* copy = NULL;
  if (directory) {
    copy = arena_strdup(list->memory, directory);
    if (!copy) return genai_status_out_of_memory();
  }
  list->places[list->count++] = (qnn_place){.directory = copy, .origin = origin};
  return NULL;
}

/* A folder that a person names may be the one with the libraries or the unpacked wheel around it. */
static genai_status* place_add_named(place_list* list, const char* directory, const char* origin) {
  char* inner = arena_printf(list->memory, "%s/" WHEEL_FOLDER, directory);
  if (!inner) return genai_status_out_of_memory();
  const qnn_place outer = {.directory = directory};
  return place_add(list, path_is_directory(inner) && !qnn_place_has(&outer, "libQnnHtp.so") ? inner : directory, origin);
}

static int compare_newest_first(const void* a, const void* b) {
  const char* const* left = a;
  const char* const* right = b;
  bool left_preferred = strcmp(*left, PREFERRED_WHEEL) == 0, right_preferred = strcmp(*right, PREFERRED_WHEEL) == 0;
  if (left_preferred != right_preferred) return left_preferred ? -1 : 1;
  return strverscmp(*right, *left);
}

/* CACHE/genai/qnn itself, then CACHE/genai/qnn/VERSION, the preferred version first and then the newest. */
static genai_status* add_cache(place_list* list) {
  static const char origin[] = "the cache of `make setup`";
  const char* cache = getenv("XDG_CACHE_HOME");
  const char* home = getenv("HOME");
  char* root;
  if (cache && *cache) {
    root = arena_printf(list->memory, "%s/genai/qnn", cache);
  } else if (home && *home) {
    root = arena_printf(list->memory, "%s/.cache/genai/qnn", home);
  } else {
    return NULL;
  }
  if (!root) return genai_status_out_of_memory();
  GENAI_TRY(place_add_named(list, root, origin));
  DIR* folder = opendir(root);
  if (!folder) return NULL;
  char* names[MAX_CACHED];
  size_t count = 0;
  genai_status* status = NULL;
  for (const struct dirent* entry; count < MAX_CACHED && (entry = readdir(folder));) {
    if (entry->d_name[0] == '.' || strncmp(entry->d_name, WHEEL_FOLDER, strlen(WHEEL_FOLDER)) == 0) continue;
    names[count] = arena_strdup(list->memory, entry->d_name);
    if (!names[count]) {
      status = genai_status_out_of_memory();
      break;
    }
    ++count;
  }
  closedir(folder);
  if (status) return status;
  qsort(names, count, sizeof *names, compare_newest_first);
  for (size_t i = 0; i < count; ++i) {
    char* path = arena_printf(list->memory, "%s/%s", root, names[i]);
    if (!path) return genai_status_out_of_memory();
    if (path_is_directory(path)) GENAI_TRY(place_add_named(list, path, origin));
  }
  return NULL;
}

genai_status* qnn_search_places(const char* directory, arena* memory, qnn_place** out, size_t* count) {
  place_list list = {.memory = memory};
  if (directory) {
    GENAI_TRY(place_add_named(&list, directory, "the given folder"));
  } else {
    const char* named = getenv("GENAI_QNN_DIR");
    if (named && *named) GENAI_TRY(place_add_named(&list, named, "$GENAI_QNN_DIR"));
    const char* sdk = getenv("QNN_SDK_ROOT");
    if (sdk && *sdk) {
      char* path = arena_printf(memory, "%s/" SDK_FOLDER, sdk);
      if (!path) return genai_status_out_of_memory();
      GENAI_TRY(place_add(&list, path, "$QNN_SDK_ROOT"));
    }
    GENAI_TRY(add_cache(&list));
    GENAI_TRY(place_add(&list, NULL, "the loader's path"));
  }
  *out = list.places;
  *count = list.count;
  return NULL;
}

bool qnn_place_has(const qnn_place* place, const char* file) {
  if (!place->directory) return false;
  char* path;
  genai_status* status = path_join(place->directory, file, &path);
  if (status) {
    genai_status_free(status);
    return false;
  }
  bool found = file_exists(path);
  mem_free(path);
  return found;
}

genai_status* qnn_place_describe(const qnn_place* place, text* out) {
  if (!place->directory) return text_printf(out, "%s (LD_LIBRARY_PATH and the system's folders)", place->origin);
  const char* found = qnn_place_has(place, "libQnnHtp.so")  ? "libQnnHtp.so found"
                      : path_is_directory(place->directory) ? "no libQnnHtp.so"
                                                            : "no such folder";
  return text_printf(out, "%s (%s): %s", place->directory, place->origin, found);
}

genai_status* qnn_library_describe_search(text* out) {
  arena memory = {0};
  qnn_place* places;
  size_t count;
  genai_status* status = qnn_search_places(NULL, &memory, &places, &count);
  for (size_t i = 0; !status && i < count; ++i) {
    status = qnn_place_describe(&places[i], out);
    if (!status) status = text_append_char(out, '\n');
  }
  arena_deinit(&memory);
  return status;
}
