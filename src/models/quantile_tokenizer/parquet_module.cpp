// Finds the reader of Parquet files. It is a module beside the library, loaded when the first such file is
// opened: linked, Apache Arrow would make every program start later, and none would start without it. A
// static library has the reader inside.
#include <dlfcn.h>
#include <fmt/format.h>

#include "ferrite/core/error.hpp"
#include "models/quantile_tokenizer/table_sources.hpp"

namespace ferrite::quantile_tokenizer {

#ifndef FERRITE_PARQUET_INSIDE

namespace {

struct Reader {
  decltype(&ferrite_open_parquet) open = nullptr;
  std::string reason;  // why there is none

  Reader() {
    Dl_info library;
    if (dladdr(reinterpret_cast<void*>(&open_parquet_table), &library) == 0) return;
    const auto module = std::filesystem::path(library.dli_fname).parent_path() /
                        ("libferrite_parquet-" FERRITE_VERSION ".so");
    std::error_code ignored;
    if (!std::filesystem::exists(module, ignored)) {
      reason =
          "this ferrite was built without Apache Arrow, which reads Parquet; run ./dev setup and build it "
          "again";
      return;
    }
    void* const handle = dlopen(module.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: tables may be open
    if (handle != nullptr) open = reinterpret_cast<decltype(open)>(dlsym(handle, "ferrite_open_parquet"));
    if (open == nullptr)
      reason = fmt::format(
          "Apache Arrow cannot be loaded: {}; install what is missing, or build ferrite again", dlerror());
  }

  static const Reader& get() {
    static const Reader reader;
    return reader;
  }
};

}  // namespace

std::unique_ptr<TableSource> open_parquet_table(const std::filesystem::path& path,
                                                const TableConfig& config) {
  const Reader& reader = Reader::get();
  if (reader.open == nullptr) throw IoError(fmt::format("[open_table] {}: {}", path.string(), reader.reason));
  return std::unique_ptr<TableSource>(reader.open(path, config));
}

std::string parquet_unavailable_reason() { return Reader::get().reason; }

#else

std::unique_ptr<TableSource> open_parquet_table(const std::filesystem::path& path,
                                                const TableConfig& config) {
  return std::unique_ptr<TableSource>(ferrite_open_parquet(path, config));
}

std::string parquet_unavailable_reason() { return ""; }

#endif

}  // namespace ferrite::quantile_tokenizer
