# Installs the build tree BUILD into a prefix below WORK, moves the prefix (an installation must not remember where it was made), and builds
# and runs the README's program against it, with a model that MSCONVERT makes. Arguments: SOURCE, BUILD, WORK, GENERATOR, C_COMPILER, C_FLAGS,
# MSCONVERT.
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY OUTPUT_VARIABLE output ECHO_OUTPUT_VARIABLE ECHO_ERROR_VARIABLE)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/first)
file(RENAME ${WORK}/first ${WORK}/prefix)

file(GLOB_RECURSE headers RELATIVE ${WORK}/prefix/include ${WORK}/prefix/include/*)
if(NOT headers STREQUAL "msrt.h;msrt_plugin.h")
  message(FATAL_ERROR "msrt.h and msrt_plugin.h alone should be installed, but: ${headers}")
endif()

run(${CMAKE_COMMAND} -DREADME=${SOURCE}/README.md -DOUT=${WORK}/readme.c -P ${SOURCE}/tests/install/extract_c.cmake)
run(${CMAKE_COMMAND} -S ${SOURCE}/tests/install -B ${WORK}/build -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${WORK}/prefix
  -DREADME_PROGRAM=${WORK}/readme.c -DCMAKE_C_COMPILER=${C_COMPILER} -DCMAKE_C_FLAGS=${C_FLAGS})
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${MSCONVERT} zoo:lenet ${WORK}/lenet.msrt)
foreach(kind shared static)
  message(STATUS "readme_${kind}:")
  run(${WORK}/build/readme_${kind} ${WORK}/lenet.msrt)
endforeach()
