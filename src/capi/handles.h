// What the handles of the C interface hold, and how errors become statuses.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "sardonyx/custom.h"
#include "sardonyx/infer.h"
#include "sardonyx/sardonyx.h"
#include "sardonyx/session.h"

struct sardonyx_status {
  sardonyx_code code;
  std::string message, location;
};

struct sardonyx_value {
  sardonyx::Value value;
  bool writable = false;  // by its holder, as long as nothing else shares the elements
};

struct sardonyx_model {
  sardonyx::Model model;
};

struct sardonyx_threads {
  sardonyx::Threads threads;
};

struct sardonyx_operators {
  std::shared_ptr<sardonyx::CustomOperators> operators;
};

struct sardonyx_cancel {
  std::atomic<bool> wanted = false;
};

namespace sardonyx::capi {

// Calls the caller's function when nothing uses its memory any more.
struct Released {
  void (*release)(void*) = nullptr;
  void* user = nullptr;
  Released() = default;
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;
  ~Released() {
    if (release != nullptr) release(user);
  }
};

// Of the exception that is being handled; never throws.
sardonyx_status* status_of_exception() noexcept;

// The error that a status tells of, which is released.
Error error_of(sardonyx_status* status);

// What `call` throws becomes a status.
template <class Call>
sardonyx_status* guarded(const Call& call) noexcept {
  try {
    call();
    return nullptr;
  } catch (...) {
    return status_of_exception();
  }
}

// An argument that must not be null.
template <class T>
T& required(T* argument, const char* name) {
  if (argument == nullptr) fail(ErrorCode::bad_input, "the argument '{}' is NULL", name);
  return *argument;
}

// The caller's struct as this library knows it: what an older caller does not know is zero, what a
// newer one knows beyond is left out.
template <class Options>
Options known_part(const Options* given) {
  Options options{};
  options.size = sizeof(Options);
  if (given == nullptr) return options;
  if (given->size < sizeof(size_t))
    fail(ErrorCode::bad_input, "the field 'size' of the options is not set; SARDONYX_INIT sets it");
  std::memcpy(static_cast<void*>(&options), given, std::min(given->size, sizeof(Options)));
  options.size = sizeof(Options);
  return options;
}

// Writes what the caller has room for.
template <class Struct>
void fill(Struct* to, Struct from) {
  const size_t size = required(to, "info").size;
  if (size < sizeof(size_t))
    fail(ErrorCode::bad_input, "the field 'size' of the result is not set; SARDONYX_INIT sets it");
  from.size = std::min(size, sizeof(Struct));
  std::memcpy(static_cast<void*>(to), &from, from.size);
}

// A limit of bytes; Error (bad_input) where it is negative.
int64_t limit_of(int64_t bytes);

// A list of texts of the caller's; `names` may be null where there are none.
std::vector<std::string> texts(const char* const* names, size_t count, const char* argument);

Shape shape_of(size_t rank, const int64_t* dims);

// The value of a handle; Error (bad_input) for NULL.
const Value& value_of(const sardonyx_value* handle, const char* argument);
sardonyx_value* new_value(Value value, bool writable = false);

// Whether nothing but the handle holds the elements of its tensor.
bool is_alone(const sardonyx_value& handle);

LoadOptions load_options(const sardonyx_load_options* given);

// What a description points to.
struct Description {
  std::string name, graph, type;
  Value::Kind kind = Value::Kind::tensor;
  ElementType element = ElementType::undefined;
  bool has_rank = false, optional = false;
  std::vector<int64_t> dims;
  std::vector<std::string> dim_names;
  std::vector<const char*> dim_name_texts;  // of dim_names, which must not move any more

  void finish();
  sardonyx_value_info info() const;
};

}  // namespace sardonyx::capi
