# cmake -DFOLDER=src/request/page -DFILES=index.html,main.js,... -DOUT=page_files.cc -P embed.cmake
# Writes PageFiles() of request/page.h: the files as text, with their types and digests.
set(types
  "html=text/html" "css=text/css" "js=text/javascript" "svg=image/svg+xml")

set(entries "")
string(REPLACE "," ";" names "${FILES}")
foreach(name IN LISTS names)
  file(READ ${FOLDER}/${name} text)
  file(SHA256 ${FOLDER}/${name} digest)
  string(SUBSTRING ${digest} 0 16 digest)
  string(REGEX REPLACE ".*\\." "" extension ${name})
  if(NOT types MATCHES "(^|;)${extension}=([^;]*)")
    message(FATAL_ERROR "${name}: no content type for .${extension}; add it to `types` above")
  endif()
  set(type "${CMAKE_MATCH_2}; charset=utf-8")
  string(FIND "${text}" ")page\"" at)
  if(NOT at EQUAL -1)
    message(FATAL_ERROR "${name}: holds the end of a raw string, )page\"")
  endif()
  set(path "/page/${name}")
  if(name STREQUAL "index.html")
    set(path "/")
  endif()
  string(APPEND entries
    "    {\"${path}\", \"${type}\", R\"(\"${digest}\")\", R\"page(${text})page\"},\n")
endforeach()

file(WRITE ${OUT} "// Written by src/request/page/embed.cmake.
#include \"request/page.h\"

namespace deepinfer {
namespace {

constexpr PageFile kFiles[] = {
${entries}};

}  // namespace

std::span<const PageFile> PageFiles() { return kFiles; }

}  // namespace deepinfer
")
