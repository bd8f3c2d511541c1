# What computes on the CPU (backend_cpu, the executors of kernels, priors) is compiled once for each instruction set, and the library
# chooses among the copies when it starts (src/core/isa.cpp). Each copy is linked into one object file of which only the name of its
# table can be seen (src/core/isa_table.hpp). So no function of a copy, not even one of the standard library, can end up in code
# that runs on a machine which would not understand it.
option(FERRITE_NATIVE "Compile the CPU kernels for this machine alone" OFF)
set(FERRITE_ISA_OPTIONS_x86_64_v2 -march=x86-64-v2)
set(FERRITE_ISA_OPTIONS_x86_64_v3 -march=x86-64-v3)
set(FERRITE_ISA_OPTIONS_x86_64_v4 -march=x86-64-v4 -mprefer-vector-width=512)
set(FERRITE_ISA_OPTIONS_sve -march=armv8.2-a+sve)
string(TOLOWER "${CMAKE_SYSTEM_PROCESSOR}" processor)
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag(-march=native FERRITE_HAS_MARCH_NATIVE)
if(FERRITE_HAS_MARCH_NATIVE)
  set(FERRITE_ISA_OPTIONS_native -march=native)
else()
  set(FERRITE_ISA_OPTIONS_native -mcpu=native)  # all that clang 14 knows on Arm
endif()
if(FERRITE_NATIVE)
  set(isas native)
elseif(processor MATCHES "^(x86_64|amd64)$")
  set(isas x86_64_v2 x86_64_v3 x86_64_v4)
elseif(processor MATCHES "^(aarch64|arm64)$")
  set(isas neon sve)
else()
  set(isas portable)
endif()
# The copies need GNU's ld or its like. Sanitizers look for errors, which no instruction set adds.
if(FERRITE_SANITIZE OR NOT CMAKE_SYSTEM_NAME STREQUAL "Linux" OR NOT CMAKE_OBJCOPY OR NOT CMAKE_LINKER)
  list(GET isas 0 isas)
endif()
set(FERRITE_ISAS "" CACHE STRING "Instruction sets of the CPU kernels, the plainest first; empty: all of this kind of processor")
if(FERRITE_NATIVE OR NOT FERRITE_ISAS)
  set(FERRITE_ISAS ${isas})
endif()
foreach(isa IN LISTS FERRITE_ISAS)
  if(NOT isa IN_LIST isas)
    message(FATAL_ERROR "FERRITE_ISAS: ${isa} is none of ${isas}")
  endif()
endforeach()
message(STATUS "CPU kernels for: ${FERRITE_ISAS}")
list(TRANSFORM FERRITE_ISAS REPLACE "(.+)" "f(\\1, __VA_ARGS__)" OUTPUT_VARIABLE each_isa)
list(JOIN each_isa " " each_isa)
set(FERRITE_GENERATED ${PROJECT_BINARY_DIR}/generated)
file(CONFIGURE OUTPUT ${FERRITE_GENERATED}/core/isa_list.hpp CONTENT "#define FERRITE_EACH_ISA(f, ...) @each_isa@\n" @ONLY)

# ferrite_compile_per_isa(LAYER SOURCES source... [OPTIONS option...]): compiles sources of the target ferrite_LAYER, which must leave
# them out, once per set. FERRITE_ISA_OBJECTS lists what comes of it.
function(ferrite_compile_per_isa layer)
  cmake_parse_arguments(given "" "" "SOURCES;OPTIONS" ${ARGN})
  list(LENGTH FERRITE_ISAS isa_count)
  foreach(isa IN LISTS FERRITE_ISAS)
    set(target ferrite_${layer}_${isa})
    add_library(${target} OBJECT ${given_SOURCES})
    target_compile_features(${target} PRIVATE cxx_std_20)
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${FERRITE_GENERATED})
    target_compile_definitions(${target} PRIVATE FERRITE_ISA=${isa})
    target_compile_options(${target} PRIVATE ${FERRITE_KERNEL_OPTIONS} ${FERRITE_ISA_OPTIONS_${isa}} ${given_OPTIONS})
    target_link_libraries(${target} PRIVATE ferrite_options ferrite_fmt Eigen3::Eigen)
    ferrite_precompile(${target} ${target} <fmt/format.h>)
    set(objects $<FILTER:$<TARGET_OBJECTS:${target}>,EXCLUDE,[.][gp]ch$>)  # CMake lists precompiled headers too
    if(isa_count GREATER 1)
      if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        target_compile_options(${target} PRIVATE -fno-gnu-unique)  # such a name would be seen
      endif()
      set(parts ${objects})
      set(objects ${CMAKE_CURRENT_BINARY_DIR}/${target}.o)
      add_custom_command(OUTPUT ${objects}
        COMMAND ${CMAKE_LINKER} -r --force-group-allocation -o ${objects}.all ${parts}
        COMMAND ${CMAKE_OBJCOPY} --keep-global-symbol=ferrite_${layer}_${isa} ${objects}.all ${objects}
        DEPENDS ${parts} COMMAND_EXPAND_LISTS VERBATIM)
      set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
      add_custom_target(${target}_object DEPENDS ${objects})
      add_dependencies(ferrite_${layer} ${target}_object)
    endif()
    target_link_libraries(ferrite_${layer} INTERFACE ${objects})  # for programs that are made of some layers
    list(APPEND FERRITE_ISA_OBJECTS ${objects})
  endforeach()
  set(FERRITE_ISA_OBJECTS ${FERRITE_ISA_OBJECTS} PARENT_SCOPE)
endfunction()
