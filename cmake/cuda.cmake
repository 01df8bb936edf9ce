# The CUDA language: nvcc 13.0 or newer, code for Hopper (sm_90a), the runtime linked statically so
# that the program starts on a machine without driver or GPU. build.sh sets CUDACXX to the compiler.
set(CMAKE_CUDA_ARCHITECTURES 90a-real)
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
enable_language(CUDA)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 13.0)
  message(FATAL_ERROR "${CMAKE_CUDA_COMPILER} is release ${CMAKE_CUDA_COMPILER_VERSION}, 13.0 or "
          "newer is needed; DEEPINFER_ACCELERATOR=cpu ./build.sh builds without CUDA")
endif()
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 stops at C++17
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_EXTENSIONS OFF)
set(di_cuda_options -Xcompiler=-Wall,-Wno-psabi --expt-relaxed-constexpr)
add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:${di_cuda_options}>")
