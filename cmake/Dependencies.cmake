# All dependencies come from the system; nothing is downloaded. The README says what each is for.
find_package(Threads REQUIRED)
# fmt is compiled once, from its headers (src/core/fmt.cpp), and linked into everything that formats: the library needs no libfmt.
find_package(fmt 9 REQUIRED)
add_library(ferrite_fmt OBJECT ${PROJECT_SOURCE_DIR}/src/core/fmt.cpp)
target_include_directories(ferrite_fmt SYSTEM PUBLIC $<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
