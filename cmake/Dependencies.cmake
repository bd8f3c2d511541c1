# All dependencies come from the system; nothing is downloaded. The README says what each is for.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
# The header alone, so that the library needs no libfmt. Sanitizers would instrument it in every file, which takes
# ten seconds each, so their builds link it.
if(FERRITE_SANITIZE)
  set(FERRITE_FMT fmt::fmt)
else()
  set(FERRITE_FMT fmt::fmt-header-only)
endif()
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(ZLIB)
