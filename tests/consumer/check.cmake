# Installs the build tree into a fresh prefix, then configures, builds and runs a project that uses it.
file(REMOVE_RECURSE ${WORK})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_CXX_COMPILER=${CXX}
                        -DCMAKE_CXX_FLAGS=${FLAGS}
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK}/build COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${WORK}/build/consumer COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${WORK}/prefix/bin/ferrite --version COMMAND_ERROR_IS_FATAL ANY)

# An op with kernels of its own, outside the library: compared with its composition, and fused in a profile.
file(COPY ${EXAMPLE} DESTINATION ${WORK})
execute_process(COMMAND ${CMAKE_COMMAND} -S ${WORK}/custom_op -B ${WORK}/custom_op/build -DCMAKE_PREFIX_PATH=${WORK}/prefix
                        -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_FLAGS=${FLAGS} -DMISH_CUDA=${CUDA} -DCMAKE_CUDA_COMPILER=${NVCC}
                        -DCMAKE_CUDA_ARCHITECTURES=80
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK}/custom_op/build COMMAND_ERROR_IS_FATAL ANY)
foreach(backend cpu parity)
  execute_process(COMMAND ${WORK}/custom_op/build/custom_op --backend ${backend} --steps 3 COMMAND_ERROR_IS_FATAL ANY)
endforeach()
execute_process(COMMAND nvidia-smi -L RESULT_VARIABLE no_gpu OUTPUT_QUIET ERROR_QUIET)
if(CUDA AND no_gpu EQUAL 0)
  execute_process(COMMAND ${WORK}/custom_op/build/custom_op --backend cuda-parity --steps 3 COMMAND_ERROR_IS_FATAL ANY)
endif()

# It needs no library of the CUDA toolkit, which a user's loader may not find.
find_program(OBJDUMP objdump)
file(GLOB libraries ${WORK}/prefix/lib*/libferrite.so)
if(OBJDUMP AND libraries)
  execute_process(COMMAND ${OBJDUMP} -p ${libraries} OUTPUT_VARIABLE sections COMMAND_ERROR_IS_FATAL ANY)
  if(sections MATCHES "NEEDED +(libcu[^\n]*)")
    message(FATAL_ERROR "libferrite.so needs ${CMAKE_MATCH_1}")
  endif()
endif()
