// Values of Python and of the engine.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <string_view>
#include <vector>

#include "sardonyx/session.h"
#include "sardonyx/value.h"

namespace sardonyx::python {

namespace nb = nanobind;

// What an input asks for; everything may be open.
struct Wanted {
  Value::Kind kind = Value::Kind::none;
  ElementType element = ElementType::undefined;
  std::string_view type = {};  // in full: "map(int64,float[])", "seq(float[n])"
};
Wanted wanted_of(const ValueDescription& input);

// Objects that live as long as a call, whoever else lets go of them meanwhile.
class KeptObjects {
 public:
  void append(nb::handle object) {
    if (count_ < first_.size())
      first_[count_++] = nb::borrow(object);
    else
      more_.push_back(nb::borrow(object));
  }

 private:
  std::array<nb::object, 8> first_;  // most calls have no more, and need no memory for them
  size_t count_ = 0;
  std::vector<nb::object> more_;
};

// A value that keeps what it views alive, for as long as it lives.
Value value_from(nb::handle object, const Wanted& wanted);
// A value for the time of a call: `object` itself is kept alive by the caller, and what had to be
// made for it (a contiguous copy, an array of a list) by `made`. Arrays of numpy that lie as a
// tensor does are viewed.
Value borrowed_value_from(nb::handle object, const Wanted& wanted, KeptObjects& made);

// numpy's array, None, a list, a dict or a sparse tensor. An array takes over the memory of a
// tensor that nothing else uses, and is a copy otherwise: whoever writes into it changes no
// weights.
nb::object object_from(Value&& value);
// An array that views the tensor, whoever else does; read-only unless `writable`.
nb::object view_of(const Tensor& tensor, bool writable);

}  // namespace sardonyx::python
