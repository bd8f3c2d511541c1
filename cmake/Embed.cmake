# Files as strings of a program, so that it finds them wherever it is installed. As a script, `cmake -DNAME=... -DHEADER=... -DOUT=...
# -P` writes one such string, of a file (FILE) or of what `git describe` says about a folder (FOLDER).
if(CMAKE_SCRIPT_MODE_FILE)
  if(FILE)
    file(READ ${FILE} text)
  else()
    # Of this project alone: its folder may lie in a repository of somebody else.
    set(text unknown)
    execute_process(COMMAND git -C ${FOLDER} rev-parse --show-toplevel OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE
                    ERROR_QUIET)
    if("${top}" STREQUAL "${FOLDER}")
      execute_process(COMMAND git -C ${FOLDER} describe --always --dirty --abbrev=12 OUTPUT_VARIABLE described
                      OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
      if(described)
        set(text ${described})
      endif()
    endif()
  endif()
  set(source "#include \"${HEADER}\"\n\nconst std::string_view ${NAME} = R\"embedded(${text})embedded\";\n")
  if(EXISTS ${OUT})
    file(READ ${OUT} before)
  endif()
  if(NOT "${source}" STREQUAL "${before}")  # an unchanged file is not compiled again
    file(WRITE ${OUT} "${source}")
  endif()
  return()
endif()

set(FERRITE_EMBED ${CMAKE_CURRENT_LIST_FILE})
# ferrite_embed(TARGET HEADER NAME FILE): defines the std::string_view NAME, which HEADER declares, with the text of FILE.
function(ferrite_embed target header name file)
  get_filename_component(stem ${file} NAME)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/embedded/${stem}.cpp)
  add_custom_command(OUTPUT ${out} DEPENDS ${file} ${FERRITE_EMBED} VERBATIM
                     COMMAND ${CMAKE_COMMAND} -DFILE=${CMAKE_CURRENT_SOURCE_DIR}/${file} -DHEADER=${header} -DNAME=${name} -DOUT=${out}
                             -P ${FERRITE_EMBED})
  target_sources(${target} PRIVATE ${out})
  set_source_files_properties(${out} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# The same with the commit; every build looks whether it is another.
function(ferrite_embed_commit target header name)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/embedded/commit.cpp)
  add_custom_target(${target}_commit BYPRODUCTS ${out} VERBATIM COMMENT "Looking up the commit"
                    COMMAND ${CMAKE_COMMAND} -DFOLDER=${PROJECT_SOURCE_DIR} -DHEADER=${header} -DNAME=${name} -DOUT=${out}
                            -P ${FERRITE_EMBED})
  target_sources(${target} PRIVATE ${out})
  add_dependencies(${target} ${target}_commit)
  set_source_files_properties(${out} PROPERTIES GENERATED ON SKIP_PRECOMPILE_HEADERS ON)
endfunction()
