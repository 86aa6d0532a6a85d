# libgenai.so: every room below the program in one shared library that exports the public interface alone, with headers and a pkg-config file.
# The program itself is linked from the rooms, so that it needs no installed library.

include(GNUInstallDirs)

add_library(genai_library SHARED)
get_property(rooms GLOBAL PROPERTY GENAI_ROOMS)
foreach(room ${rooms})
  get_target_property(kind genai_${room} TYPE)
  if(kind STREQUAL "STATIC_LIBRARY" AND NOT room MATCHES "^(cli|serve|report)$") # the program's own
    target_sources(genai_library PRIVATE $<TARGET_OBJECTS:genai_${room}>)
  endif()
endforeach()
# All objects are in already: what this adds is the libraries that the rooms stand on.
target_link_libraries(genai_library PRIVATE genai_pipeline)
# The C++ that some rooms are written in instantiates templates with default visibility, so hidden visibility alone would let them out.
target_link_options(genai_library PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/genai.map -Wl,--exclude-libs,ALL)
if(NOT GENAI_SANITIZE)
  target_link_options(genai_library PRIVATE -Wl,-z,defs)
endif()
set_target_properties(genai_library PROPERTIES
  OUTPUT_NAME genai VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINKER_LANGUAGE CXX
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/genai.map)

# Relative to the file itself, so that an installed tree can be moved.
file(RELATIVE_PATH GENAI_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" GENAI_PC_PREFIX ${GENAI_PC_PREFIX})
configure_file(${PROJECT_SOURCE_DIR}/cmake/genai.pc.in ${PROJECT_BINARY_DIR}/genai.pc @ONLY)

install(TARGETS genai_library LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/genai DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_BINARY_DIR}/genai.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
