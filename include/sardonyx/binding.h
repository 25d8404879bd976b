// Inputs and outputs of a session bound once, for many runs.
//
//   sardonyx::Binding binding(session);
//   binding.bind_input("image", TensorRef::of<float>(pixels, {1, 3, 224, 224}));
//   binding.bind_output("scores", MutableTensorRef::of<float>(scores, {1, 1000}));
//   for (…) { fill(pixels); binding.run(); use(scores); }
//
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "sardonyx/session.h"
#include "sardonyx/tensor_ref.h"
#include "sardonyx/value.h"

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

// A run with sizes like the one before allocates nothing, where outputs are bound to memory or
// nobody else holds those of the run before. For one thread at a time; a session may have any
// number of bindings, whose runs may go on at the same time. Keeps what it needs of the session,
// which may be moved or destroyed. Move-only.
class Binding {
 public:
  explicit Binding(const Session& session);
  ~Binding();
  Binding(Binding&&) noexcept;
  Binding& operator=(Binding&&) noexcept;

  // Throws Error (bad_input) for a name that the session does not have. Type and shape are looked
  // at by the run.
  void bind_input(std::string_view name, Value value);
  // Memory that each run reads anew, where it is dense, and that must stay until it is unbound;
  // strided memory is copied now. Throws Error as tensor_of().
  void bind_input(std::string_view name, const TensorRef& memory);
  void unbind_input(std::string_view name);

  // The run writes the output where the caller wants it; the memory must stay as long as it is
  // bound, and must be no other output's. Where an input lies in it, too, the output is made
  // elsewhere and put there when the run is over. Throws Error (bad_input) for a name
  // that the session does not have, memory that is too small, not dense, or not aligned for its
  // type, and for strings. A run throws Error (bad_input) where its output has another type or
  // shape; the memory may have been written to then.
  void bind_output(std::string_view name, const MutableTensorRef& memory);
  // The run allocates the output, as it does for outputs that are never bound: where that of the
  // run before lies, unless somebody else holds it still; then it makes a new one.
  void bind_output(std::string_view name);

  // As Session::run. After an error outputs that the run allocates are of kind none.
  void run(const RunOptions& options = {});

  // What the last run made, in the session's order; of kind none before the first. Copies of these
  // values are never written to by later runs, but for those of memory that is bound.
  std::span<const Value> outputs() const;
  const Value& output(std::string_view name) const;

 private:
  struct [[gnu::visibility("hidden")]] Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace sardonyx

#pragma GCC visibility pop
