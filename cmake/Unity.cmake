# Several files of a target are compiled as one. What they include is then parsed, and templates that they share are compiled, once for
# all of them (docs/performance.md). The price is that after a change to one file its neighbours are compiled too;
# -DFERRITE_UNITY=OFF compiles each alone. So does ./dev check tsan, which shows includes that a file forgot, in the layers that it
# builds. Kernels for a GPU that is there are compiled one by one too.
#
# Names in the unnamed namespaces of such files must differ. Where files have names alike for a reason (`rows` of every table of
# builtins, `run` of every command), their target is compiled file by file.
option(FERRITE_UNITY "Compile several files of a target as one" ON)
set(files_together 8)

function(ferrite_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${FERRITE_UNITY} UNITY_BUILD_BATCH_SIZE ${files_together})
  if(FERRITE_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)  # it takes unnamed namespaces of included files for mistakes
  endif()
endfunction()

# The same for CUDA, which CMake does from 3.31 on: replaces the files in a list by ones that include them.
function(ferrite_unity_cuda list)
  set(joined "")
  list(LENGTH ${list} left)
  while(left GREATER 0)
    list(SUBLIST ${list} 0 ${files_together} files)
    list(REMOVE_ITEM ${list} ${files})
    list(TRANSFORM files REPLACE "(.+)" "#include \"\\1\"\n")
    string(JOIN "" content ${files})
    list(LENGTH joined number)
    set(file ${CMAKE_CURRENT_BINARY_DIR}/unity_${number}.cu)
    file(CONFIGURE OUTPUT ${file} CONTENT "${content}" @ONLY)
    list(APPEND joined ${file})
    list(LENGTH ${list} left)
  endwhile()
  set(${list} ${joined} PARENT_SCOPE)
endfunction()
