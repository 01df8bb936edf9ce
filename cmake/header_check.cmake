# Target header_check: compiles each of our headers alone, without the precompiled header, so that
# none leans on what its includers happened to include first. Not part of the ordinary build.
file(GLOB_RECURSE headers RELATIVE ${PROJECT_SOURCE_DIR}
  ${PROJECT_SOURCE_DIR}/src/*.h ${PROJECT_SOURCE_DIR}/include/*.h)
foreach(header IN LISTS headers)
  string(REGEX REPLACE "^(src|include)/" "" name ${header})
  string(MAKE_C_IDENTIFIER ${name} file)
  set(source ${PROJECT_BINARY_DIR}/header_check/${file}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${name}\"\n")
  list(APPEND header_sources ${source})
endforeach()
add_library(header_check OBJECT EXCLUDE_FROM_ALL ${header_sources})
target_link_libraries(header_check PRIVATE apps)
target_compile_options(header_check PRIVATE -O0 -mavx2 -mfma -mf16c)
# What di_test() gives to tests and so to their headers.
target_compile_definitions(header_check PRIVATE DI_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
