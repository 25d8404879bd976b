// The functions of ONNX Runtime's C interface that the benchmarks call, declared here by their
// places in the table that OrtGetApiBase() of its shared library gives. Places never change: ONNX
// Runtime only adds to the end.
//
//   const ort::Library library("…/libonnxruntime.so.1.31.1");
//   library.require(library.call<ort::CreateSession>(env, path, options, &session));
//
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace ort {

// Opaque to us.
struct Env;
struct Status;
struct MemoryInfo;
struct IoBinding;
struct Session;
struct Value;
struct RunOptions;
struct SessionOptions;
struct TensorInfo;
struct Allocator;

// Element types are numbered as the standard numbers them.
enum ValueType { tensor = 1, sequence = 2, map = 3, sparse = 5, optional = 6 };
inline constexpr int log_errors = 3;
inline constexpr int device_allocator = 0, default_memory = 0;

// One function: its place in the table and its type.
template <size_t place_, class Function>
struct Entry {
  static constexpr size_t place = place_;
  using Type = Function*;
};

using GetErrorMessage = Entry<2, const char*(const Status*)>;
using CreateEnv = Entry<3, Status*(int, const char*, Env**)>;
using DisableTelemetryEvents = Entry<6, Status*(const Env*)>;
using CreateSession = Entry<7, Status*(const Env*, const char*, const SessionOptions*, Session**)>;
using Run = Entry<9, Status*(Session*, const RunOptions*, const char* const*, const Value* const*,
                             size_t, const char* const*, size_t, Value**)>;
using CreateSessionOptions = Entry<10, Status*(SessionOptions**)>;
using SetIntraOpNumThreads = Entry<24, Status*(SessionOptions*, int)>;
using SetInterOpNumThreads = Entry<25, Status*(SessionOptions*, int)>;
using SessionGetInputCount = Entry<30, Status*(const Session*, size_t*)>;
using SessionGetOutputCount = Entry<31, Status*(const Session*, size_t*)>;
using SessionGetInputName = Entry<36, Status*(const Session*, size_t, Allocator*, char**)>;
using SessionGetOutputName = Entry<37, Status*(const Session*, size_t, Allocator*, char**)>;
using CreateTensorAsOrtValue = Entry<48, Status*(Allocator*, const int64_t*, size_t, int, Value**)>;
using CreateTensorWithDataAsOrtValue =
    Entry<49, Status*(const MemoryInfo*, void*, size_t, const int64_t*, size_t, int, Value**)>;
using GetTensorMutableData = Entry<51, Status*(Value*, void**)>;
using FillStringTensor = Entry<52, Status*(Value*, const char* const*, size_t)>;
using GetStringTensorDataLength = Entry<53, Status*(const Value*, size_t*)>;
using GetStringTensorContent = Entry<54, Status*(const Value*, void*, size_t, size_t*, size_t)>;
using GetTensorElementType = Entry<60, Status*(const TensorInfo*, int*)>;
using GetDimensionsCount = Entry<61, Status*(const TensorInfo*, size_t*)>;
using GetDimensions = Entry<62, Status*(const TensorInfo*, int64_t*, size_t)>;
using GetTensorTypeAndShape = Entry<65, Status*(const Value*, TensorInfo**)>;
using GetValueType = Entry<67, Status*(const Value*, int*)>;
using CreateCpuMemoryInfo = Entry<69, Status*(int, int, MemoryInfo**)>;
using AllocatorFree = Entry<76, Status*(Allocator*, void*)>;
using GetAllocatorWithDefaultOptions = Entry<78, Status*(Allocator**)>;
using GetValue = Entry<80, Status*(const Value*, int, Allocator*, Value**)>;
using GetValueCount = Entry<81, Status*(const Value*, size_t*)>;
using ReleaseEnv = Entry<92, void(Env*)>;
using ReleaseStatus = Entry<93, void(Status*)>;
using ReleaseMemoryInfo = Entry<94, void(MemoryInfo*)>;
using ReleaseSession = Entry<95, void(Session*)>;
using ReleaseValue = Entry<96, void(Value*)>;
using ReleaseTensorTypeAndShapeInfo = Entry<99, void(TensorInfo*)>;
using ReleaseSessionOptions = Entry<100, void(SessionOptions*)>;

// The shared library. It stays loaded until the process ends. Throws std::runtime_error.
class Library {
 public:
  explicit Library(const std::string& path) {
    struct Base {  // the one thing that the library exports
      const void* (*table)(uint32_t version);
      const char* (*version)();
    };
    void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) throw std::runtime_error(dlerror());
    const auto get_base = reinterpret_cast<const Base* (*)()>(dlsym(handle, "OrtGetApiBase"));
    if (get_base == nullptr) throw std::runtime_error(path + " has no OrtGetApiBase");
    constexpr uint32_t oldest = 16;  // has all that is declared above
    table_ = static_cast<void* const*>(get_base()->table(oldest));
    version_ = get_base()->version();
    if (table_ == nullptr)
      throw std::runtime_error(path + " does not serve version 16 of its interface");
  }

  const std::string& version() const { return version_; }

  template <class Function, class... Arguments>
  auto call(Arguments... arguments) const {
    return reinterpret_cast<typename Function::Type>(table_[Function::place])(arguments...);
  }
  // Throws with the message of a status that is none of success.
  void require(Status* status) const {
    if (status == nullptr) return;
    const std::string message = call<GetErrorMessage>(status);
    call<ReleaseStatus>(status);
    throw std::runtime_error(message);
  }

 private:
  void* const* table_ = nullptr;
  std::string version_;
};

}  // namespace ort
