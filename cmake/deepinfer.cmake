# Compiler settings, and the two functions that every folder uses: di_library and di_test.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# A compiler cache where there is one. A precompiled header is safe to cache once its time stamps
# are ignored and its contents are hashed (-fpch-preprocess below). Paths inside this tree count
# from the build folder, so that build folders with equal flags share objects.
find_program(DI_CCACHE ccache)
if(DI_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${DI_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${DI_CCACHE})
endif()

# Results must not depend on which products the compiler fuses: FMA is written where meant.
set(di_cxx_options -Wall -Wextra -Wno-missing-field-initializers -ffp-contract=off -fno-math-errno)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND di_cxx_options -fpch-preprocess -Wno-psabi)
elseif(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  list(APPEND di_cxx_options "SHELL:-Xclang -fno-pch-timestamp")
endif()
if(DI_SANITIZE)
  list(APPEND di_cxx_options
    -fsanitize=${DI_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${DI_SANITIZE})
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")  # quick to build, with lines in reports
endif()
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${di_cxx_options}>")

# di_library(<folder> SOURCES a.cc ... [DEPS targets...])
#   The one library of a folder under src/. A folder reaches only the targets in DEPS.
function(di_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${name} PUBLIC ${ARG_DEPS})
  target_precompile_headers(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src/base/pch.h)
endfunction()

set(DI_TEST_ROOT "${PROJECT_SOURCE_DIR}" CACHE STRING
  "Where tests find this tree; \".\": in the folder where they are started, for tests that travel")

# di_test(<name> SOURCES a_test.cc ... DEPS targets... [LABELS cpu slow ...] [TIMEOUT s])
#   One GoogleTest program; every TEST in it becomes one ctest. Labels default to cpu.
function(di_test name)
  if(NOT DI_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS cpu)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE DI_SOURCE_DIR="${DI_TEST_ROOT}")
  target_precompile_headers(${name} PRIVATE <gtest/gtest.h> ${PROJECT_SOURCE_DIR}/src/base/pch.h)
  # CMake lists lose ';' in PROPERTIES, so the labels are escaped once.
  string(REPLACE ";" "\\;" labels "${ARG_LABELS}")
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    PROPERTIES LABELS "${labels}" TIMEOUT ${ARG_TIMEOUT} SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\]")
endfunction()

# di_cuda_sources(<target> files.cu ...)
#   Adds them to a CUDA build; nothing otherwise.
function(di_cuda_sources target)
  if(DEEPINFER_ACCELERATOR STREQUAL "nvidia")
    target_sources(${target} PRIVATE ${ARGN})
  endif()
endfunction()
