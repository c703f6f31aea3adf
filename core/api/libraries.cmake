# The libraries that users link, both from the same objects: msrt::msrt (shared, exporting msrt_* alone) and msrt::msrt_static. Included by
# the root once every component is known.
add_library(msrt SHARED ${MSRT_OBJECTS})
add_library(msrt_static STATIC ${MSRT_OBJECTS})
add_library(msrt::msrt ALIAS msrt)
add_library(msrt::msrt_static ALIAS msrt_static)

set_target_properties(msrt PROPERTIES
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}
  LINK_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/msrt.map)
if(PROJECT_IS_TOP_LEVEL)
  set_target_properties(msrt PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
endif()
target_link_options(msrt PRIVATE -Wl,--version-script=${CMAKE_CURRENT_LIST_DIR}/msrt.map)
if(MSRT_SANITIZE)
  target_link_options(msrt PRIVATE -fsanitize=${MSRT_SANITIZE})
else()
  target_link_options(msrt PRIVATE -Wl,-z,defs)
endif()
set_target_properties(msrt_static PROPERTIES OUTPUT_NAME msrt)
foreach(engine mpi gloo)  # loaded at run time
  if(TARGET msrt_comm_${engine})
    add_dependencies(msrt msrt_comm_${engine})
  endif()
endforeach()
if(TARGET msrt_images)  # loaded at run time
  add_dependencies(msrt msrt_images)
endif()

foreach(library msrt msrt_static)
  target_include_directories(${library} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/core/abi>)
endforeach()

# The archive's libraries are for linking only, so that applications inherit no compile options; package.cmake names those of the installed
# one. The C++ library is among them, so that a project in C alone can link the archive.
set(MSRT_CXX_LIBRARIES ${CMAKE_CXX_IMPLICIT_LINK_LIBRARIES})
list(REMOVE_ITEM MSRT_CXX_LIBRARIES ${CMAKE_C_IMPLICIT_LINK_LIBRARIES})
foreach(library ${MSRT_LIBRARIES} ${MSRT_CXX_LIBRARIES})
  target_link_libraries(msrt_static INTERFACE $<BUILD_INTERFACE:$<LINK_ONLY:${library}>>)
endforeach()
# The shared library links a shared oneDNN as a file: the installed package would mention a target, which its users do not have.
foreach(library ${MSRT_LIBRARIES})
  if(library STREQUAL DNNL::dnnl AND MSRT_DNNL_TYPE STREQUAL SHARED_LIBRARY)
    set(library $<TARGET_FILE:DNNL::dnnl>)
  endif()
  target_link_libraries(msrt PRIVATE ${library})
endforeach()
