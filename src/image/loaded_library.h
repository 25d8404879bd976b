// Libraries of rare formats, loaded when the first image of theirs is met: with all that they
// need themselves they would take longer to load than the rest of a program takes to start.
#pragma once

#include <dlfcn.h>

#include <string_view>

#include "base/fail.h"

namespace sardonyx::image {

// Stays loaded as long as the process. Throws Error (unsupported) where the library, or a function
// of it, is not there.
class LoadedLibrary {
 public:
  LoadedLibrary(const char* file, std::string_view format)
      : handle_(dlopen(file, RTLD_NOW | RTLD_LOCAL)), file_(file) {
    if (handle_ == nullptr) {
      fail(ErrorCode::unsupported, "{} images are read by {}, which cannot be loaded: {}", format,
           file, dlerror());
    }
  }

  void* find(const char* name) const {
    void* found = dlsym(handle_, name);
    if (found == nullptr) fail(ErrorCode::unsupported, "{} has no function {}", file_, name);
    return found;
  }

 private:
  void* handle_;
  const char* file_;
};

// A function of a library, called as its declaration says.
template <class Declared>
class LoadedFunction {
 public:
  LoadedFunction(const LoadedLibrary& library, const char* name)
      : function_(reinterpret_cast<Declared*>(library.find(name))) {}

  template <class... Args>
  auto operator()(Args... args) const {
    return function_(args...);
  }

 private:
  Declared* function_;
};

}  // namespace sardonyx::image
