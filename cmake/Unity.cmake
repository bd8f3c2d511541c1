# Several files of a target are compiled as one. What they include is then parsed, and templates that they share are compiled, once for
# all of them (docs/performance.md). The price is that after a change to one file those of its group are compiled too, and that a file
# may miss an include that another of its group has; -DFERRITE_UNITY=OFF compiles each alone, and ./dev check includes finds such files.
# Kernels for a GPU that is there are compiled one by one too.
#
# Names in the unnamed namespaces of files that are listed together must differ. Where they are alike for a reason (`rows` of every
# table of builtins), files are compiled one by one.
option(FERRITE_UNITY "Compile several files of a target as one" ON)

# ferrite_unity(NAME LIST): replaces files in the list, which has paths from this folder, by files that include about eight of them
# each. Those that are to be compiled alone stay. Unlike CMake's UNITY_BUILD: a new file changes no group but its own, for groups follow
# from names; ccache serves other clones, for no path of this one is inside; and CUDA can be compiled so (CMake: from 3.31 on).
function(ferrite_unity name list)
  if(NOT FERRITE_UNITY)
    return()
  endif()
  set(together "")
  set(files "")
  foreach(file ${${list}})
    get_source_file_property(own ${file} FERRITE_ALONE)
    if(own)
      list(APPEND files ${file})
    else()
      list(APPEND together ${file})
    endif()
  endforeach()
  list(LENGTH together count)
  set(groups 1)
  while(count GREATER 10)
    math(EXPR groups "2 * ${groups}")
    math(EXPR count "${count} / 2")
  endwhile()
  set(used "")
  foreach(file ${together})
    get_filename_component(file_name ${file} NAME)
    string(MD5 hash ${file_name})
    string(SUBSTRING ${hash} 0 6 digits)
    math(EXPR group "0x${digits} % ${groups}")
    get_filename_component(language ${file} LAST_EXT)
    list(APPEND used ${group}${language})
    string(APPEND includes_${group}${language} "#include \"${file}\"\n")
  endforeach()
  list(REMOVE_DUPLICATES used)
  foreach(group ${used})
    set(file ${CMAKE_CURRENT_BINARY_DIR}/unity/${name}_${group})
    file(CONFIGURE OUTPUT ${file} CONTENT "${includes_${group}}" @ONLY)
    list(APPEND files ${file})
  endforeach()
  set(${list} ${files} PARENT_SCOPE)
endfunction()

# For a target that is made of such files.
function(ferrite_unity_options target)
  if(FERRITE_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)  # it takes unnamed namespaces of included files for mistakes
  endif()
endfunction()

# Files that have options of their own, or names of others, are compiled alone. To be called before their target is made.
function(ferrite_compile_alone)
  set_source_files_properties(${ARGN} PROPERTIES FERRITE_ALONE ON)
endfunction()
