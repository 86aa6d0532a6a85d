# Registers the tests that are not C programs, and tells every test where the third-party files are that tools/setup.sh fetched. The caller's
# environment wins over the cache. A test whose files are absent skips.

set(cache $ENV{XDG_CACHE_HOME})
if(NOT cache)
  set(cache $ENV{HOME}/.cache)
endif()
set(cache ${cache}/genai)

set(environment GENAI_BUILD_DIR=${PROJECT_BINARY_DIR} LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/lsan.supp:print_suppressions=0)
foreach(pair GENAI_QNN_DIR=qnn/2.5.0/onnxruntime_qnn GENAI_QNN_VERSIONS_DIR=qnn GENAI_MODEL_GGUF=models/SmolLM2-135M-Instruct.Q4_1.gguf
        GENAI_GEMMA_GGUF=models/gemma-3-270m-q4_k_m.gguf GENAI_VOCABULARIES_DIR=vocabularies GENAI_TEMPLATES_DIR=templates
        GENAI_TEST_VENV=test-venv)
  string(REGEX MATCH "^[^=]+" variable ${pair})
  string(REGEX REPLACE "^[^=]+=" "" place ${pair})
  if(DEFINED ENV{${variable}})
    list(APPEND environment ${variable}=$ENV{${variable}})
  else()
    list(APPEND environment ${variable}=${cache}/${place})
  endif()
endforeach()

find_program(PYTHON3 python3 REQUIRED)
add_test(NAME project.include_order COMMAND ${PYTHON3} ${PROJECT_SOURCE_DIR}/tests/test_include_order.py)

file(GLOB interop CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/interop/test_*.py)
foreach(source ${interop})
  get_filename_component(name ${source} NAME_WE)
  string(REGEX REPLACE "^test_" "" name ${name})
  add_test(NAME interop.${name} COMMAND ${PROJECT_SOURCE_DIR}/tests/interop/run.sh ${source})
  set_tests_properties(interop.${name} PROPERTIES LABELS interop TIMEOUT 2400 SKIP_RETURN_CODE 77)
endforeach()

get_property(all DIRECTORY PROPERTY TESTS)
foreach(test ${all})
  set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT ${environment})
endforeach()
