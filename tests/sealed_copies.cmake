# A copy of the kernels for one instruction set shows nothing but its table, and runs nothing before it is chosen:
# cmake -DNM=nm -DOBJDUMP=objdump -DOBJECTS="a.o;b.o" -P sealed_copies.cmake
foreach(object ${OBJECTS})
  get_filename_component(table ${object} NAME_WE)
  execute_process(COMMAND ${NM} --extern-only --defined-only --format=posix ${object} OUTPUT_VARIABLE names COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX REPLACE "\n$" "" names "${names}")
  if(NOT names MATCHES "^${table} [DR][^\n]*$")
    message(SEND_ERROR "${object} shows more than ${table}:\n${names}")
  endif()
  execute_process(COMMAND ${OBJDUMP} -h ${object} OUTPUT_VARIABLE sections COMMAND_ERROR_IS_FATAL ANY)
  if(sections MATCHES "[.](init_array|ctors)")
    message(SEND_ERROR "${object} has initialisers, which every machine would run")
  endif()
endforeach()
