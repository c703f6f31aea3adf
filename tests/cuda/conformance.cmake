# Tests of the cuda delegate through the emulation: msrt_cuda_emulation is the library of the emulated driver with the kernels' host form.
# tests/cuda/CMakeLists.txt includes this file.
add_library(msrt_cuda_environment STATIC cuda_environment.cc)
target_link_libraries(msrt_cuda_environment PUBLIC msrt_pipeline msrt_cuda_emulation)
target_include_directories(msrt_cuda_environment SYSTEM PUBLIC ${MSRT_CUDA_INCLUDE})

msrt_test(cuda_cases_test conformance_cases_test.cc)
target_link_libraries(cuda_cases_test PRIVATE msrt_cuda_environment msrt_op_case)
msrt_test(cuda_device_test conformance_device_test.cc)
target_link_libraries(cuda_device_test PRIVATE msrt_cuda_environment msrt_op_case)
msrt_thread_test(cuda_device_test)
msrt_test(cuda_library_test cuda_library_test.cc)
target_include_directories(cuda_library_test SYSTEM PRIVATE ${MSRT_CUDA_INCLUDE})
target_compile_definitions(cuda_library_test PRIVATE MSRT_CUDA_LIBRARIES="${MSRT_CUDA_INCLUDE}/../lib")
