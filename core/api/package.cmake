# Installation and archive: a tree that works wherever it is moved. No file in it names a folder of the build, programs and libraries find
# each other relative to themselves, and oneDNN is part of it. OpenMP (libgomp.so.1) is the system's: a process that has loaded one already
# would start a second team of threads with a second copy.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/msrt)
set(notices_dir ${CMAKE_INSTALL_DATADIR}/doc/msrt)
file(RELATIVE_PATH bin_to_lib /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
file(RELATIVE_PATH pc_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" pc_to_prefix ${pc_to_prefix})

# System libraries of the installed archive, by name, because an imported target would have to be found again.
set(system_libraries ${MSRT_CXX_LIBRARIES} ${CMAKE_DL_LIBS} pthread ${OpenMP_CXX_LIB_NAMES})
list(REMOVE_DUPLICATES system_libraries)
foreach(library ${system_libraries})
  target_link_libraries(msrt_static INTERFACE $<INSTALL_INTERFACE:${library}>)
endforeach()
list(TRANSFORM system_libraries PREPEND -l OUTPUT_VARIABLE static_link_flags)

# oneDNN: its shared library alone, in a file of the name that the loader asks for. One that is not bundled is found as the package dnnl.
set(msrt_bundled_dnnl "")
set(msrt_needs_dnnl OFF)
if(dnnl_FOUND)
  if(MSRT_BUNDLE_ONEDNN AND MSRT_DNNL_TYPE STREQUAL SHARED_LIBRARY)
    set(msrt_bundled_dnnl $<TARGET_SONAME_FILE_NAME:DNNL::dnnl>)
    target_link_libraries(msrt_static INTERFACE $<INSTALL_INTERFACE:msrt::dnnl>)
    list(PREPEND static_link_flags -l:${msrt_bundled_dnnl})
    install(PROGRAMS $<TARGET_FILE:DNNL::dnnl> DESTINATION ${CMAKE_INSTALL_LIBDIR} RENAME ${msrt_bundled_dnnl})
    file(GLOB dnnl_notices ${MSRT_DNNL_DIR}/../../../share/doc/one[Dd][Nn][Nn]/LICENSE
      ${MSRT_DNNL_DIR}/../../../share/doc/one[Dd][Nn][Nn]/THIRD-PARTY-PROGRAMS)
    install(FILES ${dnnl_notices} DESTINATION ${notices_dir}/oneDNN)
  else()
    set(msrt_needs_dnnl ON)
    target_link_libraries(msrt_static INTERFACE $<INSTALL_INTERFACE:DNNL::dnnl>)
    list(PREPEND static_link_flags -ldnnl)
  endif()
endif()

set_target_properties(msrt PROPERTIES INSTALL_RPATH $ORIGIN)
install(TARGETS msrt EXPORT msrt_shared DESTINATION ${CMAKE_INSTALL_LIBDIR} INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS msrt_static EXPORT msrt_static DESTINATION ${CMAKE_INSTALL_LIBDIR} INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
foreach(header msrt.h msrt_device.h msrt_plugin.h msrt_train.h)
  install(FILES ${PROJECT_SOURCE_DIR}/core/abi/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endforeach()
# The image module is loaded from beside the library, or from there by the tools. The libraries that it links are the system's.
if(TARGET msrt_images)
  install(TARGETS msrt_images DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(MSRT_TOOLS)
  set_target_properties(msrun msconvert PROPERTIES INSTALL_RPATH $ORIGIN/${bin_to_lib})
  install(TARGETS msrun msconvert DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# The CMake package has two export sets: the shared library is usable where a package that the static one names is missing.
install(EXPORT msrt_shared NAMESPACE msrt:: DESTINATION ${package_dir} FILE msrt-shared.cmake)
install(EXPORT msrt_static NAMESPACE msrt:: DESTINATION ${package_dir} FILE msrt-static.cmake)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/msrt-config.cmake.in ${PROJECT_BINARY_DIR}/package/msrt-config.cmake.in
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/package/msrt-config.cmake INPUT ${PROJECT_BINARY_DIR}/package/msrt-config.cmake.in)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/msrt-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/msrt-config.cmake ${PROJECT_BINARY_DIR}/package/msrt-config-version.cmake
  DESTINATION ${package_dir})

# pkg-config: where both libraries are, -lmsrt is the shared one, with --static too, so the archive has its own file.
list(JOIN static_link_flags " " static_link_flags)
function(msrt_pkg_config pc_name pc_libs pc_libs_private)
  configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/msrt.pc.in ${PROJECT_BINARY_DIR}/package/${pc_name}.pc.in @ONLY)
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/package/${pc_name}.pc INPUT ${PROJECT_BINARY_DIR}/package/${pc_name}.pc.in)
  install(FILES ${PROJECT_BINARY_DIR}/package/${pc_name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
msrt_pkg_config(msrt "-L\${libdir} -lmsrt" "${static_link_flags}")
msrt_pkg_config(msrt-static "-L\${libdir} -l:libmsrt.a ${static_link_flags}" "")

# Licences: ours, and those of the libraries whose code is inside the binaries, where the system keeps them as Debian does.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${notices_dir})
foreach(package libflatbuffers-dev libxxhash-dev libprotobuf-dev libcli11-dev nlohmann-json3-dev)
  install(FILES /usr/share/doc/${package}/copyright DESTINATION ${notices_dir}/third-party RENAME ${package}.txt OPTIONAL)
endforeach()

# msrt-<version>-linux-x86_64.tar.gz: cmake --build build/release --target package
if(PROJECT_IS_TOP_LEVEL)
  string(TOLOWER msrt-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR} CPACK_PACKAGE_FILE_NAME)
  set(CPACK_GENERATOR TGZ)
  set(CPACK_VERBATIM_VARIABLES ON)
  include(CPack)
endif()
