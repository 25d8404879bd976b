// Memory of the caller's for what runs give.
//
//   class Pinned : public sardonyx::Allocator { … };
//   sardonyx::Session session("model.onnx", {.output_allocator = std::make_shared<Pinned>()});
//
#pragma once

#include <cstddef>

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

// Where the outputs of a session's runs lie: those that are dense tensors of numbers or truth
// values, which the caller does not bring memory for. Strings, sequences, maps, optionals and
// sparse tensors have the library's memory, and so have weights and what a run needs for itself.
//
// Runs at the same time ask at the same time, from the threads that call them; memory is released
// from whichever thread lets go of the last tensor in it. A session and every tensor in its memory
// keep the allocator. RunOptions::memory_limit counts the bytes before they are asked for.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // `bytes` bytes, more than 0, at a multiple of `alignment`, a power of two. Null where there are
  // none: the run throws Error (out_of_memory); it throws Error (bad_input), and gives the memory
  // back, where that lies at no such multiple. What this throws passes through the run.
  virtual void* allocate(size_t bytes, size_t alignment) = 0;
  // Of memory that allocate() gave, once, with the same number of bytes.
  virtual void release(void* memory, size_t bytes) noexcept = 0;
};

}  // namespace sardonyx

#pragma GCC visibility pop
