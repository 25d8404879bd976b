#include "steps.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace driver {
namespace {

using sardonyx::ElementType;
using sardonyx::NamedValue;
using sardonyx::Shape;
using sardonyx::Tensor;

// What follows the first dot of "past_key_values.0.key", where a name begins so; else nothing.
std::string_view behind(std::string_view name, std::string_view beginning) {
  return name.starts_with(beginning) && name.find('.') != std::string_view::npos
             ? name.substr(name.find('.') + 1)
             : std::string_view();
}

// A mask that sees everything, `more` places longer.
Tensor longer_mask(const Tensor& mask, int64_t more) {
  Shape shape = mask.shape();
  shape.back() += more;
  Tensor longer(ElementType::int64, shape);
  std::ranges::fill(longer.mutable_elements<int64_t>(), 1);
  return longer;
}

Tensor later_places(const Tensor& places, int64_t more) {
  Tensor later(ElementType::int64, places.shape());
  std::ranges::transform(places.elements<int64_t>(), later.mutable_elements<int64_t>().begin(),
                         [more](int64_t place) { return place + more; });
  return later;
}

}  // namespace

Steps::Steps(const std::vector<NamedValue>& inputs, const std::vector<std::string>& outputs,
             int count)
    : count_(static_cast<size_t>(count)) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string_view rest = behind(inputs[i].first, "past");
    if (rest.empty()) continue;
    const auto output = std::ranges::find_if(
        outputs, [rest](const std::string& name) { return behind(name, "present") == rest; });
    if (output == outputs.end()) {  // no decoder that goes on by itself
      carried_.clear();
      return;
    }
    carried_.push_back({i, static_cast<size_t>(output - outputs.begin())});
  }
  if (carried_.empty()) return;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto& [name, value] = inputs[i];
    const bool is_mask = name == "attention_mask";
    if (!is_mask && name != "position_ids") continue;
    Counted counted{i, {}};
    for (int step = 0; step < count; ++step)
      counted.of_step.push_back(is_mask ? longer_mask(value.tensor(), step)
                                        : later_places(value.tensor(), step));
    counted_.push_back(std::move(counted));
  }
}

}  // namespace driver
