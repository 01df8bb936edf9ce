# The files of the page, as one source of the library `request`: ${page_files_cc}.
set(page_files
  index.html
  api.js
  base.css
  calculator.js
  call_view.js
  chat.css
  chat.js
  chat_view.js
  conversation.js
  dashboard.css
  dashboard.js
  dom.js
  fenced_text.js
  keyboard.js
  main.js
  mark.svg
  message_view.js
  plot.js
  settings.js
  sse.js
  stats.js
  store.js
  theme.js
  tools.js
  turn.js)

list(JOIN page_files "," page_files_joined)
list(TRANSFORM page_files PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
set(page_files_cc ${CMAKE_CURRENT_BINARY_DIR}/page_files.cc)
add_custom_command(
  OUTPUT ${page_files_cc}
  COMMAND ${CMAKE_COMMAND} -DFOLDER=${CMAKE_CURRENT_LIST_DIR} -DFILES=${page_files_joined}
          -DOUT=${page_files_cc} -P ${CMAKE_CURRENT_LIST_DIR}/embed.cmake
  DEPENDS ${page_files} ${CMAKE_CURRENT_LIST_DIR}/embed.cmake
  VERBATIM)
