#include "session/custom.h"

#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "base/fail.h"
#include "base/os.h"

namespace sardonyx {
namespace {

// Collects what a library adds, and keeps the library loaded as long as any of it is in use.
class LibraryRegistry final : public CustomRegistry {
 public:
  explicit LibraryRegistry(std::shared_ptr<const void> library) : library_(std::move(library)) {}

  void add(std::string_view domain, std::string_view signature,
           std::shared_ptr<const CustomOperator> op) override {
    table_.add(domain, signature, std::move(op), library_);
  }
  const ops::CustomTable& table() const { return table_; }

 private:
  const std::shared_ptr<const void> library_;
  ops::CustomTable table_;
};

std::shared_ptr<const void> opened(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(os::path(path), error))
    fail_at(path, ErrorCode::unreadable, "there is no such file");
  // A bare name would be looked for where the system keeps its libraries.
  const bool bare = path.find_first_of(os::separators) == std::string::npos;
  std::string problem;
  void* const handle = os::load_library(bare ? "./" + path : path, problem);
  if (handle == nullptr)
    fail_at(path, ErrorCode::unreadable, "the library cannot be loaded: {}", problem);
  return {handle, [](const void* held) { os::unload_library(const_cast<void*>(held)); }};
}

template <class T>
T* exported(const std::string& path, const void* library, const char* name) {
  void* const found = os::find_symbol(const_cast<void*>(library), name);
  if (found == nullptr) {
    fail_at(path, ErrorCode::unreadable,
            "it is no library of operators: it exports no {}; SARDONYX_OPERATOR_LIBRARY of "
            "sardonyx/custom.h defines all that is needed",
            name);
  }
  return reinterpret_cast<T*>(found);
}

void require_same_build(const std::string& path, const void* library) {
  const int32_t abi = *exported<const int32_t>(path, library, "sardonyx_operators_abi");
  if (abi != custom_operators_abi) {
    fail_at(path, ErrorCode::unsupported,
            "it was built for version {} of the interface of operators, this Sardonyx has version "
            "{}; build it again with the headers of Sardonyx {}",
            abi, custom_operators_abi, SARDONYX_VERSION);
  }
  const std::string_view cxx =
      *exported<const char* const>(path, library, "sardonyx_operators_cxx");
  if (cxx != custom_operators_cxx) {
    fail_at(path, ErrorCode::unsupported,
            "it was built with {}, this Sardonyx with {}; build it with the same C++ library", cxx,
            custom_operators_cxx);
  }
}

void add_library(const std::string& path, ops::CustomTable& table) {
  const std::shared_ptr<const void> library = opened(path);
  require_same_build(path, library.get());
  auto* const add = exported<void(CustomRegistry&)>(path, library.get(), "sardonyx_add_operators");
  LibraryRegistry registry(library);
  try {
    add(registry);
    table.add_all(registry.table());
  } catch (const Error& error) {
    throw error.within(path);
  } catch (const std::exception& error) {
    fail_at(path, ErrorCode::bad_input, "the library failed to add its operators: {}",
            error.what());
  } catch (...) {
    fail_at(
        path, ErrorCode::bad_input,
        "the library failed to add its operators: it threw something that is no std::exception");
  }
}

}  // namespace

CustomOperators::CustomOperators() : implementation_(std::make_unique<Implementation>()) {}
CustomOperators::~CustomOperators() = default;

void CustomOperators::add(std::string_view domain, std::string_view signature,
                          std::shared_ptr<const CustomOperator> op) {
  implementation_->table.add(domain, signature, std::move(op), nullptr);
}

void CustomOperators::load(const std::string& path) { add_library(path, implementation_->table); }

ops::CustomTable custom_table(const CustomOperators* given,
                              const std::vector<std::string>& libraries) {
  ops::CustomTable table;
  if (given != nullptr) table.add_all(given->implementation().table);
  for (const std::string& path : libraries) add_library(path, table);
  return table;
}

}  // namespace sardonyx
