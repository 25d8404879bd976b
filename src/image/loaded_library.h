// Libraries of image formats, loaded when the first image of theirs is met: with all that they
// need themselves they would take longer to load than the rest of a program takes to start, and
// who reads no images needs none of them.
#pragma once

#include <string>
#include <string_view>

#include "base/fail.h"
#include "base/os.h"

namespace sardonyx::image {

// What a LoadedFunction is given of a library that this one is linked to where it is
// (SARDONYX_LINK_IMAGES).
#ifdef SARDONYX_LINK_IMAGES
#define SARDONYX_LINKED(function) function
#else
#define SARDONYX_LINKED(function) nullptr
#endif

// Stays loaded as long as the process. Throws Error (unsupported) where the library, or a function
// of it, is not there. An empty name stands for a library that this one is linked to.
class LoadedLibrary {
 public:
  LoadedLibrary(const char* file, std::string_view format) : file_(file) {
    std::string problem;
    if (*file != 0) handle_ = os::load_library(file, problem);
    if (handle_ == nullptr && *file != 0) {
      fail(ErrorCode::unsupported, "{} images are read by {}, which cannot be loaded: {}", format,
           file, problem);
    }
  }

  void* find(const char* name) const {
    void* found = os::find_symbol(handle_, name);
    if (found == nullptr) fail(ErrorCode::unsupported, "{} has no function {}", file_, name);
    return found;
  }

 private:
  void* handle_ = nullptr;
  const char* file_;
};

// A function of a library, called as its declaration says.
template <class Declared>
class LoadedFunction {
 public:
  LoadedFunction(const LoadedLibrary& library, const char* name, Declared* linked = nullptr)
      : function_(linked != nullptr ? linked : reinterpret_cast<Declared*>(library.find(name))) {}

  template <class... Args>
  auto operator()(Args... args) const {
    return function_(args...);
  }

 private:
  Declared* function_;
};

}  // namespace sardonyx::image
