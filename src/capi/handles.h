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
#include "sardonyx/check.h"
#include "sardonyx/custom.h"
#include "sardonyx/infer.h"
#include "sardonyx/sardonyx.h"
#include "sardonyx/session.h"

namespace sardonyx::capi {

// The first member of each handle: says what it is until it is released, so that a handle of
// another kind, or one that was released, is told as long as nothing else lies in its memory.
template <uint32_t kind>
class Tag {
 public:
  Tag() = default;
  Tag(const Tag&) = delete;
  Tag& operator=(const Tag&) = delete;
  ~Tag() { kind_ = 0; }
  bool is_right() const { return kind_ == kind; }

 private:
  volatile uint32_t kind_ = kind;  // its last write is read by nobody who is right
};

// Bits that no counter or address is likely to have.
constexpr uint32_t tag_of(char a, char b) {
  return 0xa5c30000u | static_cast<uint32_t>(a) << 8 | static_cast<uint32_t>(b);
}

}  // namespace sardonyx::capi

#define SARDONYX_TAG(a, b) sardonyx::capi::Tag<sardonyx::capi::tag_of(a, b)> tag = {}

struct sardonyx_status {
  SARDONYX_TAG('s', 't');
  sardonyx_code code;
  std::string message, location;
};

struct sardonyx_value {
  SARDONYX_TAG('v', 'a');
  sardonyx::Value value;
  bool writable = false;  // by its holder, as long as nothing else shares the elements
};

struct sardonyx_model {
  SARDONYX_TAG('m', 'o');
  sardonyx::Model model;
};

struct sardonyx_threads {
  SARDONYX_TAG('t', 'h');
  sardonyx::Threads threads;
};

struct sardonyx_operators {
  SARDONYX_TAG('o', 'p');
  std::shared_ptr<sardonyx::CustomOperators> operators;
};

struct sardonyx_bytes {
  SARDONYX_TAG('b', 'y');
  std::string bytes;
};

struct sardonyx_cancel {
  SARDONYX_TAG('c', 'a');
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

// Whether a handle is there, and what it ought to be.
template <class T>
bool is_usable(const T* handle) {
  return handle != nullptr && handle->tag.is_right();
}

[[noreturn]] void refuse_null(const char* name);
[[noreturn]] void refuse_handle(const char* name);

// An argument that must not be null, nor a handle of another kind.
template <class T>
T& required(T* argument, const char* name) {
  if (argument == nullptr) refuse_null(name);
  if constexpr (requires { argument->tag; }) {
    if (!argument->tag.is_right()) refuse_handle(name);
  }
  return *argument;
}

// Where a handle may be left out.
template <class T>
T* if_given(T* argument, const char* name) {
  return argument == nullptr ? nullptr : &required(argument, name);
}

// Gives the caller a handle of the text that `make` returns.
template <class Make>
void give_bytes(sardonyx_bytes** text, const Make& make) {
  required(text, "text");
  *text = new sardonyx_bytes{{}, make()};
}

// What a release function does. A handle that was released already stays so.
template <class T>
void release_handle(T* handle) {
  if (is_usable(handle)) delete handle;
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
void fill(Struct* to, const char* argument, Struct from) {
  const size_t size = required(to, argument).size;
  if (size < sizeof(size_t))
    fail(ErrorCode::bad_input, "the field 'size' of '{}' is not set; SARDONYX_INIT sets it",
         argument);
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

// Of a tensor that an output is to be written to.
void refuse_string_output(const Tensor& tensor, const std::string& output);

// The form of a field of options that is 1 more; Error (bad_input) for other numbers.
ModelForm form_given(int number);
LoadOptions load_options(const sardonyx_load_options* given);

sardonyx_report* new_report(const CheckReport& report);

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
