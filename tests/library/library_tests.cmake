# Tests of the library as others use it: through dlopen, from C++, and from an installed prefix. They link libgenai.so, never the rooms.

function(library_test_settings name target)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_test(NAME library.${name} COMMAND ${target})
  set_tests_properties(library.${name} PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)
endfunction()

# Flags that a careful caller may have: the headers must not break them.
set(strict -Wall -Wextra -Wconversion -Wshadow -Wpedantic -Werror)

# C, but linked as C++: a sanitizer's runtime is the program's, and the library's C++ asks for all of it.
add_executable(test_library_dlopen ${CMAKE_CURRENT_LIST_DIR}/test_dlopen.c)
add_dependencies(test_library_dlopen genai_library)
target_include_directories(test_library_dlopen PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_compile_definitions(test_library_dlopen PRIVATE GENAI_LIBRARY="$<TARGET_FILE:genai_library>"
  GENAI_EXPECTED_VERSION="${PROJECT_VERSION}" GENAI_TEST_DATA="" GENAI_SHARED="")
target_link_libraries(test_library_dlopen PRIVATE genai_flags PkgConfig::CMOCKA ${CMAKE_DL_LIBS})
set_target_properties(test_library_dlopen PROPERTIES LINKER_LANGUAGE CXX)
library_test_settings(dlopen test_library_dlopen)

file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/include/genai/*.h)
foreach(header ${headers})
  string(MAKE_C_IDENTIFIER ${header} stem)
  foreach(language c cpp)
    set(alone ${PROJECT_BINARY_DIR}/headers/${stem}.${language})
    file(CONFIGURE OUTPUT ${alone} CONTENT "#include \"${header}\"\n#include \"${header}\"\nint ${stem}_${language};\n")
    list(APPEND each_alone ${alone})
  endforeach()
endforeach()
add_executable(test_library_cplusplus ${CMAKE_CURRENT_LIST_DIR}/test_cplusplus.cpp ${each_alone})
target_include_directories(test_library_cplusplus PRIVATE ${PROJECT_SOURCE_DIR}/include)
target_compile_options(test_library_cplusplus PRIVATE ${strict})
target_link_libraries(test_library_cplusplus PRIVATE genai_library)
if(GENAI_SANITIZE)
  target_link_options(test_library_cplusplus PRIVATE -fsanitize=${GENAI_SANITIZE})
endif()
library_test_settings(cplusplus test_library_cplusplus)

# A sanitized library does not serve programs that are not sanitized.
if(NOT GENAI_SANITIZE AND TARGET genai)
  find_program(PYTHON3 python3 REQUIRED)
  add_test(NAME library.install COMMAND ${PYTHON3} ${CMAKE_CURRENT_LIST_DIR}/test_install.py ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
  set_tests_properties(library.install PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77)
endif()
