# Target xgrammar: the grammar library, used by src/tokens/grammar.cc alone. tools/xgrammar.sh
# fetches and builds it once, while the first build folder is configured.
execute_process(
  COMMAND ${PROJECT_SOURCE_DIR}/tools/xgrammar.sh
  OUTPUT_VARIABLE di_xgrammar_folder OUTPUT_STRIP_TRAILING_WHITESPACE
  RESULT_VARIABLE di_xgrammar_status)
if(NOT di_xgrammar_status EQUAL 0)
  message(FATAL_ERROR "tools/xgrammar.sh failed; its reason stands above")
endif()
add_library(xgrammar STATIC IMPORTED GLOBAL)
set_target_properties(xgrammar PROPERTIES
  IMPORTED_LOCATION ${di_xgrammar_folder}/libxgrammar.a
  INTERFACE_INCLUDE_DIRECTORIES ${di_xgrammar_folder}/include)
target_link_libraries(xgrammar INTERFACE Threads::Threads)
# A deleted library, or another release of it, is built anew.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  ${di_xgrammar_folder}/libxgrammar.a ${PROJECT_SOURCE_DIR}/tools/xgrammar.sh)
