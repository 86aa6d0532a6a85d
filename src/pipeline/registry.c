/* The registry of (stage, engine) pairs, the process default, and the engine proxy. */
#include <pthread.h>
#include <string.h>

#include "pipeline/executorch.h"
#include "pipeline/internal.h"
#include "pipeline/qairt.h"

typedef struct registry_row {
  genai_stage_kind stage;
  char* engine;
  genai_strategy_constructor strategy;
  genai_stage_constructor stage_constructor;
  void* user;
} registry_row;

struct genai_registry {
  pthread_mutex_t lock; /* the process default may be filled and used from several threads */
  size_t count;
  registry_row* rows;
};

genai_status* genai_registry_create(bool with_defaults, genai_registry** out) {
  genai_registry* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  pthread_mutex_init(&self->lock, NULL);
  genai_status* status = with_defaults ? executorch_register(self) : NULL;
  if (!status && with_defaults) status = qairt_register(self);
  if (status) {
    genai_registry_destroy(self);
    return status;
  }
  *out = self;
  return NULL;
}

void genai_registry_destroy(genai_registry* self) {
  if (!self) return;
  for (size_t i = 0; i < self->count; i++) mem_free(self->rows[i].engine);
  mem_free(self->rows);
  pthread_mutex_destroy(&self->lock);
  mem_free(self);
}

static genai_registry* process_default;

#if defined(__GNUC__)
/* A program that unloads the library again leaves nothing of it behind. */
__attribute__((destructor)) static void forget_default(void) {
  genai_registry_destroy(process_default);
  process_default = NULL;
}
#endif

genai_registry* genai_registry_default(void) {
  static pthread_mutex_t creation = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&creation);
  if (!process_default) genai_status_free(genai_registry_create(true, &process_default));
  genai_registry* result = process_default;
  pthread_mutex_unlock(&creation);
  return result;
}

static registry_row* find_row(const genai_registry* self, genai_stage_kind stage, const char* engine) {
  for (size_t i = 0; i < self->count; i++) {
    if (self->rows[i].stage == stage && !strcmp(self->rows[i].engine, engine)) return &self->rows[i];
  }
  return NULL;
}

static genai_status* add_row(genai_registry* self, registry_row row, const char* engine) {
  registry_row* existing = find_row(self, row.stage, engine);
  if (existing) {
    row.engine = existing->engine;
    *existing = row;
    return NULL;
  }
  row.engine = mem_strdup(engine);
  registry_row* grown = mem_realloc_array(self->rows, self->count + 1, sizeof *grown);
  if (grown) self->rows = grown;
  if (!row.engine || !grown) {
    mem_free(row.engine);
    return genai_status_out_of_memory();
  }
  self->rows[self->count++] = row;
  return NULL;
}

genai_status* genai_registry_register(genai_registry* self, genai_stage_kind stage, const char* engine, genai_strategy_constructor strategy,
                                      genai_stage_constructor stage_constructor, void* user) {
  if ((unsigned)stage >= GENAI_STAGE_COUNT || text_is_blank(engine) || !strategy)
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "a registry row needs a stage, an engine's name and a strategy constructor");
  pthread_mutex_lock(&self->lock);
  genai_status* status = add_row(self, (registry_row){stage, NULL, strategy, stage_constructor, user}, engine);
  pthread_mutex_unlock(&self->lock);
  return status;
}

bool genai_registry_has(const genai_registry* self, genai_stage_kind stage, const char* engine) {
  pthread_mutex_t* lock = (pthread_mutex_t*)(uintptr_t)&self->lock;
  pthread_mutex_lock(lock);
  bool found = find_row(self, stage, engine) != NULL;
  pthread_mutex_unlock(lock);
  return found;
}

static genai_status* missing_pair(const genai_registry* self, genai_stage_kind stage, const char* engine) {
  text engines = {0};
  genai_status* status = NULL;
  for (size_t i = 0; !status && i < self->count; i++) {
    if (self->rows[i].stage == stage) status = text_printf(&engines, "%s%s", engines.length ? ", " : "", self->rows[i].engine);
  }
  if (!status)
    status = genai_status_create(GENAI_ERROR_ENGINE_NOT_AVAILABLE,
                                 "no engine \"%s\" is registered for stage %s (registered there: %s); register it with "
                                 "genai_registry_register or choose another",
                                 engine, genai_stage_name(stage), engines.length ? engines.data : "none");
  text_deinit(&engines);
  return status;
}

genai_status* genai_registry_create_stage(const genai_registry* self, genai_stage_kind stage, const char* engine,
                                          const genai_adapters* adapters, genai_stage** out) {
  if ((unsigned)stage >= GENAI_STAGE_COUNT) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "there is no stage %d", (int)stage);
  pthread_mutex_t* lock = (pthread_mutex_t*)(uintptr_t)&self->lock;
  pthread_mutex_lock(lock);
  const registry_row* found = find_row(self, stage, engine);
  registry_row row = found ? *found : (registry_row){0};
  genai_status* status = found ? NULL : missing_pair(self, stage, engine);
  pthread_mutex_unlock(lock);
  if (status) return status;
  genai_strategy* strategy;
  GENAI_TRY(row.strategy(row.user, adapters, &strategy));
  status = row.stage_constructor ? row.stage_constructor(row.user, stage, strategy, out) : genai_stage_create(stage, strategy, out);
  if (status && strategy && strategy->vtable && strategy->vtable->destroy) strategy->vtable->destroy(strategy);
  return status;
}

/* ---- EngineProxy ---- */
struct genai_engine_proxy {
  char* engines[GENAI_STAGE_COUNT];
  genai_backend backend;
};

static genai_status* fill_proxy(genai_engine_proxy* self, const genai_engine_choice* choices, size_t count) {
  for (size_t i = 0; i < count; i++) {
    genai_stage_kind stage;
    GENAI_TRY(genai_stage_find(choices[i].stage, &stage));
    if (text_is_blank(choices[i].engine))
      return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "the engine of stage %s is blank, expected a name such as executorch",
                                 choices[i].stage);
    char* copy = mem_strdup(choices[i].engine);
    if (!copy) return genai_status_out_of_memory();
    mem_free(self->engines[stage]);
    self->engines[stage] = copy;
  }
  for (size_t i = 0; i < GENAI_STAGE_COUNT; i++) {
    if (!self->engines[i] && !(self->engines[i] = mem_strdup("executorch"))) return genai_status_out_of_memory();
  }
  return qairt_check_engines(self->engines[GENAI_STAGE_COMPILATION], self->engines[GENAI_STAGE_INFERENCE]);
}

genai_status* genai_engine_proxy_create(const genai_engine_choice* choices, size_t count, genai_backend backend, genai_engine_proxy** out) {
  if (!genai_backend_name(backend))
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "backend type %d is unknown, expected htp, gpu or lpai", (int)backend);
  genai_engine_proxy* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  self->backend = backend;
  genai_status* status = fill_proxy(self, choices, count);
  if (status) {
    genai_engine_proxy_destroy(self);
    return status;
  }
  *out = self;
  return NULL;
}

void genai_engine_proxy_destroy(genai_engine_proxy* self) {
  if (!self) return;
  for (size_t i = 0; i < GENAI_STAGE_COUNT; i++) mem_free(self->engines[i]);
  mem_free(self);
}

const char* genai_engine_proxy_engine(const genai_engine_proxy* self, genai_stage_kind stage) {
  return (unsigned)stage < GENAI_STAGE_COUNT ? self->engines[stage] : NULL;
}

genai_backend genai_engine_proxy_backend(const genai_engine_proxy* self) {
  return self->backend;
}
