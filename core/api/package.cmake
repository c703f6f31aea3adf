# The libraries that users link, both from the same objects, and their installation: find_package(msrt) gives msrt::msrt (shared,
# exporting msrt_* alone) and msrt::msrt_static. Included by the root once every component is known.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

add_library(msrt SHARED ${MSRT_OBJECTS})
add_library(msrt_static STATIC ${MSRT_OBJECTS})
set_target_properties(msrt PROPERTIES
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib
  LINK_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/msrt.map
  INSTALL_RPATH "$ORIGIN;$<$<TARGET_EXISTS:DNNL::dnnl>:$<TARGET_FILE_DIR:DNNL::dnnl>>")  # oneDNN may stand in a prefix of its own
target_link_options(msrt PRIVATE -Wl,--version-script=${CMAKE_CURRENT_LIST_DIR}/msrt.map)
if(MSRT_SANITIZE)
  target_link_options(msrt PRIVATE -fsanitize=${MSRT_SANITIZE})
else()
  target_link_options(msrt PRIVATE -Wl,-z,defs)
endif()
# Named, so that a project in C alone can link the archive.
target_link_libraries(msrt_static INTERFACE stdc++ m)
foreach(library msrt msrt_static)
  target_link_libraries(${library} PRIVATE ${MSRT_LIBRARIES})
  target_include_directories(${library} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()

# Two export sets: whoever links the shared library needs none of the packages that the static one names.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/msrt)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/msrt.h ${CMAKE_CURRENT_LIST_DIR}/msrt_plugin.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS msrt EXPORT msrt_shared DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS msrt_static EXPORT msrt_static DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT msrt_shared NAMESPACE msrt:: DESTINATION ${package_dir} FILE msrt-shared.cmake)
install(EXPORT msrt_static NAMESPACE msrt:: DESTINATION ${package_dir} FILE msrt-static.cmake)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/msrt-config.cmake.in ${PROJECT_BINARY_DIR}/msrt-config.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/msrt-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/msrt-config.cmake ${PROJECT_BINARY_DIR}/msrt-config-version.cmake DESTINATION ${package_dir})
