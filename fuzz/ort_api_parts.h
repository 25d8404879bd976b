// What the target `ort_api` calls the interface with: models, an adapter, an operator and an
// allocator of the caller's.
#pragma once

#include <cstddef>
#include <vector>

#include "ort_api/types.h"

namespace sardonyx::fuzzing {

const ort_api::OrtApi& table();
ort_api::OrtAllocator* default_memory();
const ort_api::OrtMemoryInfo* cpu_memory_info();

inline constexpr size_t model_count = 13;
std::vector<char> model_bytes(size_t model);
std::vector<char> adapter_bytes();

// A domain with one operator, test.Foo, which adds 1 and fails for 7.
ort_api::OrtCustomOpDomain* domain();

// Of the caller's, which counts what it gives.
struct CallersAllocator {
  static inline int live = 0;
  static inline int failing_in =
      -1;  // that many times it gives memory, and then no more; -1: always
};
ort_api::OrtAllocator* callers_memory();

void read_log(void* param, ort_api::OrtLoggingLevel severity, const char* category,
              const char* logid, const char* place, const char* message);

}  // namespace sardonyx::fuzzing
