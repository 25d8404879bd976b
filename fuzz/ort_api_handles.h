// The handles that the target `ort_api` calls the interface with, how they are drawn, and the calls
// that are about values.
#pragma once

#include <cstring>
#include <deque>
#include <iterator>
#include <vector>

#include "choices.h"
#include "ort_api_parts.h"
#include "target.h"

namespace sardonyx::fuzzing {

using namespace ort_api;

inline constexpr const char* names[] = {"x", "w", "y", "z", "s",       "i",
                                        "m", "o", "a", "b", "nothing", ""};

// Handles of one kind.
template <class T>
struct Pool {
  void (*release)(T*);
  std::vector<T*> held;

  explicit Pool(void (*function)(T*)) : release(function) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() {
    for (T* one : held) release(one);
  }
  void release_one(size_t i) {
    release(held[i]);
    held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
  }
};

// By reference: it is written when the call that makes the status has run.
template <class T>
void take(OrtStatus* status, T* const& made) {
  if (status == nullptr) return;
  const OrtErrorCode code = table().GetErrorCode(status);
  require(made == nullptr, "a call that fails leaves its result alone");
  require(code >= ORT_FAIL && code <= ORT_NOT_FOUND, "a failure has a code of the interface");
  require(std::strlen(table().GetErrorMessage(status)) > 0, "a failure has a message");
  table().ReleaseStatus(status);
}

inline void take(OrtStatus* status) {
  constexpr const void* nothing = nullptr;
  take(status, nothing);
}

inline void must(OrtStatus* status) {
  if (status == nullptr) return;
  std::fprintf(stderr, "fuzz: %s\n", table().GetErrorMessage(status));
  require(false, "a call that can't fail succeeds");
}

// Of the caller's, which outputs must not lie in: it frees what it gave as an input and goes on
// with what it got.
struct Range {
  const char* begin = nullptr;
  size_t bytes = 0;
};

// All of a value or type, which must be readable.
void read(OrtValue* value, const Range& callers = {});
void read_type(const OrtTypeInfo* info);
// Empty for other values.
std::vector<float> floats_in(const OrtValue* value);

class Handles {
 public:
  Handles(const uint8_t* data, size_t size) : choices_(data, size) {}

 protected:
  template <class T>
  T* any(const Pool<T>& pool) {  // seldom null
    if (pool.held.empty() || choices_.one_in(12)) return nullptr;
    return pool.held[choices_.below(pool.held.size())];
  }
  template <class T>
  T** place(T*& made) {
    return choices_.one_in(24) ? nullptr : &made;
  }
  template <class T>
  T* keep(OrtStatus* status, T*& made, Pool<T>& pool) {
    take(status, made);
    if (made != nullptr) pool.held.push_back(made);
    return made;
  }
  const char* name() {
    return choices_.one_in(32) ? nullptr : names[choices_.below(std::size(names))];
  }
  OrtAllocator* allocator() {
    if (choices_.one_in(24)) return nullptr;
    if (choices_.one_in(4) && !allocators_.held.empty()) return any(allocators_);
    return choices_.below(3) == 0 ? callers_memory() : default_memory();
  }
  // No truth values: memory that is drawn has others than 0 and 1 in it, which callers must not
  // have.
  ONNXTensorElementDataType element() {
    constexpr int common[] = {1, 1, 1, 7, 8, 2, 11, 6}, truth = 9, byte = 2;
    const int type =
        choices_.one_in(3) ? static_cast<int>(choices_.below(30)) - 1 : common[choices_.below(8)];
    return static_cast<ONNXTensorElementDataType>(type == truth ? byte : type);
  }
  std::vector<int64_t> shape() {
    std::vector<int64_t> dims(choices_.below(4));
    for (int64_t& one : dims) {
      one = static_cast<int64_t>(choices_.below(4));
      if (choices_.one_in(40)) one = choices_.one_in(2) ? INT64_MAX : -1;
    }
    return dims;
  }
  // Memory that stays as it is.
  std::vector<int64_t>& indices() {
    std::vector<int64_t>& made = kept_.emplace_back(choices_.below(6));
    for (int64_t& one : made)
      one = choices_.one_in(16) ? choices_.integer() : static_cast<int64_t>(choices_.below(5));
    return made;
  }
  void give_text(OrtStatus* status, OrtAllocator* from, char*& text) {
    take(status, text);
    if (text == nullptr) return;
    require(std::strlen(text) < 100000, "a text ends");
    must(table().AllocatorFree(from, text));
  }
  void make_tensor();
  void view_memory();
  void combine();
  void make_sparse();
  // `dims`: of the values, which are strings or lie in `memory_`.
  void fill_sparse(OrtValue* value, bool strings, const std::vector<int64_t>& dims);
  void write(OrtValue* value);
  void read_any();
  void use_memory();
  void use_type_info();
  // One that fits the type, as far as that says what fits; the pool has it.
  OrtValue* made_for(const OrtTypeInfo* info);
  // Memory that runs may write to, of no input.
  OrtValue* output_memory();

  Choices choices_;
  int64_t size_ = 0;  // of what a run's inputs leave open
  // What inputs lie in: small integers, and floats that are some.
  alignas(64) char memory_[512] = {0, 0,  0, 0, 0,   0,  0, 0, 1,   0,   0, 0,    0,   0,  0,
                                   0, 2,  0, 0, 0,   0,  0, 0, 0,   0,   0, -128, 63,  0,  0,
                                   0, 64, 0, 0, -32, 64, 0, 0, -32, -64, 0, 0,    -64, 127};
  std::deque<std::vector<int64_t>> kept_;
  // Released in the other order.
  Pool<OrtAllocator> allocators_{table().ReleaseAllocator};
  Pool<OrtEnv> environments_{table().ReleaseEnv};
  Pool<OrtMemoryInfo> infos_{table().ReleaseMemoryInfo};
  Pool<OrtLoraAdapter> adapters_{table().ReleaseLoraAdapter};
  Pool<OrtKeyValuePairs> pairs_{table().ReleaseKeyValuePairs};
  Pool<OrtRunOptions> run_options_{table().ReleaseRunOptions};
  Pool<OrtSessionOptions> options_{table().ReleaseSessionOptions};
  Pool<OrtPrepackedWeightsContainer> containers_{table().ReleasePrepackedWeightsContainer};
  Pool<OrtValue> values_{table().ReleaseValue}, outputs_{table().ReleaseValue};
  Pool<OrtSession> sessions_{table().ReleaseSession};
  std::vector<OrtSession*> bound_;  // of each binding
  Pool<OrtIoBinding> bindings_{table().ReleaseIoBinding}, orphans_{table().ReleaseIoBinding};
};

}  // namespace sardonyx::fuzzing
