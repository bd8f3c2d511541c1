# Headers of other libraries that most files include are parsed once, not once per file. Ferrite's own headers are not among them: a
# change to one would compile everything again. Files include what they use all the same: ./dev check includes
# sets CMAKE_DISABLE_PRECOMPILE_HEADERS, and so shows what is missing.
set(FERRITE_PRECOMPILED <algorithm> <array> <atomic> <bit> <chrono> <cmath> <concepts> <cstdint> <cstring> <filesystem> <fstream>
                        <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <set> <span> <string> <string_view>
                        <thread> <unordered_map> <utility> <variant> <vector>)

# ferrite_precompile(TARGET GROUP [HEADER...]): the targets of a group are compiled with the same options and share the headers, which
# are compiled with the first of them.
function(ferrite_precompile target group)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")  # ccache does not keep what has a time inside
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
  get_property(owner GLOBAL PROPERTY ferrite_precompiled_${group})
  if(owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  else()
    target_precompile_headers(${target} PRIVATE ${FERRITE_PRECOMPILED} ${ARGN})
    set_property(GLOBAL PROPERTY ferrite_precompiled_${group} ${target})
  endif()
endfunction()
