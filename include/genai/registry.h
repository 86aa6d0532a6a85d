/* Engines: which strategy serves which stage, and how strategies are found. */
#ifndef GENAI_REGISTRY_H
#define GENAI_REGISTRY_H

#include "genai/stage.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes the strategy of one (stage, engine) pair. `adapters` (may be NULL) holds what was injected; `user` is the row's own. */
typedef genai_status* (*genai_strategy_constructor)(void* user, const genai_adapters* adapters, genai_strategy** out);
/* Makes the stage object around it; takes the strategy on success. NULL in a row: genai_stage_create. */
typedef genai_status* (*genai_stage_constructor)(void* user, genai_stage_kind kind, genai_strategy* strategy, genai_stage** out);

typedef struct genai_registry genai_registry;

/* A registry of the caller's own, empty or with genai's engines. */
GENAI_API genai_status* genai_registry_create(bool with_defaults, genai_registry** out) GENAI_MUST_USE;
GENAI_API void genai_registry_destroy(genai_registry* self); /* not for the process default */
/* The process default, with genai's engines; thread safe. NULL only when memory was out on first use. */
GENAI_API genai_registry* genai_registry_default(void);

/* Adds or replaces the row of (stage, engine). The name is copied; `user` is borrowed. */
GENAI_API genai_status* genai_registry_register(genai_registry* self, genai_stage_kind stage, const char* engine,
                                                genai_strategy_constructor strategy, genai_stage_constructor stage_constructor,
                                                void* user) GENAI_MUST_USE;
/* GENAI_ERROR_ENGINE_NOT_AVAILABLE that names stage and engine, and the engines that stage has, when there is no such row. */
GENAI_API genai_status* genai_registry_create_stage(const genai_registry* self, genai_stage_kind stage, const char* engine,
                                                    const genai_adapters* adapters, genai_stage** out) GENAI_MUST_USE;
GENAI_API bool genai_registry_has(const genai_registry* self, genai_stage_kind stage, const char* engine);

/* ---- EngineProxy ---- */
/* Stage -> engine, and the backend type. Stages that are not mentioned use "executorch". */
typedef struct genai_engine_proxy genai_engine_proxy;
typedef struct genai_engine_choice {
  const char* stage;
  const char* engine;
} genai_engine_choice;
/* An unknown stage is GENAI_ERROR_CONFIG_VALIDATION with the valid names; so is a blank engine name. */
GENAI_API genai_status* genai_engine_proxy_create(const genai_engine_choice* choices, size_t count, genai_backend backend,
                                                  genai_engine_proxy** out) GENAI_MUST_USE;
GENAI_API void genai_engine_proxy_destroy(genai_engine_proxy* self);
GENAI_API const char* genai_engine_proxy_engine(const genai_engine_proxy* self, genai_stage_kind stage);
GENAI_API genai_backend genai_engine_proxy_backend(const genai_engine_proxy* self);

#ifdef __cplusplus
}
#endif
#endif
