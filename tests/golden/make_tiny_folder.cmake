# cmake -DMAKE_TINY=program -DSOURCE=tests/golden/tiny -DOUT=dir -P make_tiny_folder.cmake
file(REMOVE_RECURSE ${OUT})
file(MAKE_DIRECTORY ${OUT})
file(COPY ${SOURCE}/outputs.safetensors ${SOURCE}/limits.json DESTINATION ${OUT})
execute_process(COMMAND ${MAKE_TINY} tiny ${OUT}/checkpoint COMMAND_ERROR_IS_FATAL ANY)
