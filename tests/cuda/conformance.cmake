# Tests of the cuda delegate through the emulation. tests/cuda/CMakeLists.txt includes this file.
# The delegate's kernels as C++.
get_property(kernels GLOBAL PROPERTY MSRT_CUDA_KERNELS)
list(TRANSFORM kernels PREPEND ${PROJECT_SOURCE_DIR}/delegates/cuda/kernels/)
list(TRANSFORM kernels APPEND .cu)
add_library(cuda_host_kernels OBJECT ${kernels})
set_source_files_properties(${kernels} PROPERTIES LANGUAGE CXX)
target_link_libraries(cuda_host_kernels PRIVATE msrt_flags)

add_library(msrt_cuda_environment STATIC cuda_environment.cc)
target_link_libraries(msrt_cuda_environment PUBLIC msrt_pipeline)
target_include_directories(msrt_cuda_environment SYSTEM PUBLIC ${MSRT_CUDA_INCLUDE})

# msrt_cuda_delegate_test(name sources...): a test of the delegate on the emulated driver.
function(msrt_cuda_delegate_test name)
  msrt_test(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE msrt_cuda_environment cuda_emulation msrt_op_case)
  target_sources(${name} PRIVATE $<TARGET_OBJECTS:cuda_host_kernels>)
endfunction()
msrt_cuda_delegate_test(cuda_cases_test conformance_cases_test.cc)
msrt_cuda_delegate_test(cuda_device_test conformance_device_test.cc)
msrt_thread_test(cuda_device_test)

msrt_test(cuda_library_test cuda_library_test.cc)
target_include_directories(cuda_library_test SYSTEM PRIVATE ${MSRT_CUDA_INCLUDE})
target_compile_definitions(cuda_library_test PRIVATE MSRT_CUDA_LIBRARIES="${MSRT_CUDA_INCLUDE}/../lib")
