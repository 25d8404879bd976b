#include "session/given_inputs.h"

#include <map>
#include <string>
#include <string_view>

#include "base/fail.h"
#include "infer/conversion_advice.h"
#include "ir/tensor.h"

namespace sardonyx {
namespace {

std::string place(const ValueDescription& input) { return fmt::format("input '{}'", input.name); }

void check_type(const ValueDescription& input, const Value& given) {
  if (input.type == "?") return;
  if (given.kind() != input.kind)
    fail_at(place(input), ErrorCode::bad_input, "is a {}, the model takes {}",
            name_of(given.kind()), input.type);
  if (!given.is_tensor() || input.element_type == ElementType::undefined ||
      given.tensor().element_type() == input.element_type)
    return;
  const ElementType type = given.tensor().element_type();
  fail_at(place(input), ErrorCode::bad_input, "holds {}, the model takes {}{}", name_of(type),
          input.type, infer::conversion_advice(type, input.element_type));
}

void check_shape(const ValueDescription& input, const Shape& shape,
                 std::map<std::string_view, int64_t>& sizes) {
  const auto complain = [&](const std::string& why) {
    fail_at(place(input), ErrorCode::bad_input, "has shape {}, the model takes {}: {}",
            to_string(shape), input.type, why);
  };
  if (shape.size() != input.shape->size())
    complain(fmt::format("rank {} instead of {}", shape.size(), input.shape->size()));
  for (size_t d = 0; d < shape.size(); ++d) {
    const ValueDescription::Dimension& dim = (*input.shape)[d];
    if (dim.size && *dim.size != shape[d])
      complain(fmt::format("dimension {} must be {}", d, *dim.size));
    if (dim.size || dim.name.empty()) continue;
    const int64_t size = sizes.try_emplace(dim.name, shape[d]).first->second;
    if (size != shape[d])
      complain(
          fmt::format("dimension {} is {}, but '{}' is {} elsewhere", d, shape[d], dim.name, size));
  }
}

}  // namespace

void check_given(std::span<const ValueDescription* const> inputs, std::span<const Value> given) {
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i].kind() != Value::Kind::none) check_type(*inputs[i], given[i]);
  }
  std::map<std::string_view, int64_t> sizes;
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i].is_tensor() && inputs[i]->shape)
      check_shape(*inputs[i], given[i].tensor().shape(), sizes);
  }
}

}  // namespace sardonyx
