#include "ops/step_memory.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/fail.h"
#include "ir/origin.h"

namespace sardonyx::ops {
namespace {

int64_t text_bytes(const std::string& text) {
  static const size_t inside = std::string().capacity();
  return text.size() <= inside ? 0 : static_cast<int64_t>(text.size()) + 1;
}

std::span<const std::string> strings_of(const Slot& slot) {
  if (slot.element != ElementType::string || slot.data == nullptr || slot.count <= 0) return {};
  return {static_cast<const std::string*>(slot.data), static_cast<size_t>(slot.count)};
}

bool holds_values(const Slot& slot) {
  return slot.value.kind() != Value::Kind::none && !slot.value.is_tensor();
}

int64_t text_bytes(const Slot& slot) {
  return holds_values(slot) ? ops::text_bytes(slot.value) : ops::text_bytes(strings_of(slot));
}

// Of the strings that a node brings along: labels, categories, values of constants.
int64_t longest_attribute(const ir::Node& node) {
  int64_t longest = 0;
  const auto take = [&](const auto& text) {
    longest = std::max(longest, static_cast<int64_t>(text.size()) + 1);
  };
  for (const ir::Attribute& attribute : node.attributes) {
    if (attribute.s) take(*attribute.s);
    for (const auto& text : attribute.strings) take(text);
    if (attribute.t) {
      for (const auto& text : attribute.t->string_data) take(text);
    }
  }
  return longest;
}

int64_t product(int64_t a, int64_t b) {
  int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? std::numeric_limits<int64_t>::max() : result;
}

template <size_t n>
bool is_one_of(const ir::Node& node, const std::array<std::string_view, n>& names) {
  return node.domain.empty() && std::ranges::find(names, node.op_type) != names.end();
}

// No step makes more than this of texts.
int64_t max_text(const ir::Node& node, bool allocates, std::span<Slot* const> inputs,
                 std::span<Slot* const> outputs) {
  int64_t given = 0, given_count = 0, made_count = 0, longest = longest_attribute(node);
  for (const Slot* input : inputs) {
    if (input == nullptr) continue;
    given += text_bytes(*input);
    for (const std::string& text : strings_of(*input))
      longest = std::max(longest, text_bytes(text));
    if (input->element == ElementType::string) given_count += input->count;
  }
  // Steps that find out sizes as they run choose among their strings or cut them into parts.
  if (allocates) return given;
  for (const Slot* output : outputs) {
    if (output != nullptr && output->element == ElementType::string) made_count += output->count;
  }
  // Those that take each string once, or all of them equally often, are known to the byte; others,
  // as Gather, may take the longest every time.
  static constexpr std::array<std::string_view, 11> once = {
      "Concat",  "Identity",  "Transpose", "Slice",        "Split",       "Reshape",
      "Squeeze", "Unsqueeze", "Flatten",   "DepthToSpace", "SpaceToDepth"};
  static constexpr std::array<std::string_view, 2> repeating = {"Expand", "Tile"};
  if (is_one_of(node, once)) return given;
  if (is_one_of(node, repeating) && given_count > 0)
    return product(given, std::max<int64_t>(made_count / given_count, 1));
  return product(made_count, longest);
}

}  // namespace

int64_t text_bytes(std::span<const std::string> strings) {
  int64_t bytes = 0;
  for (const std::string& text : strings) bytes += text_bytes(text);
  return bytes;
}

int64_t text_bytes(const Value& value) {
  const auto of_tensor = [](const Tensor& tensor) {
    return tensor.element_type() == ElementType::string ? text_bytes(tensor.elements<std::string>())
                                                        : int64_t{0};
  };
  const auto sum = [](const std::vector<Value>& items) {
    int64_t bytes = 0;
    for (const Value& item : items) bytes += text_bytes(item);
    return bytes;
  };
  switch (value.kind()) {
    case Value::Kind::tensor: return of_tensor(value.tensor());
    case Value::Kind::sequence: return sum(value.sequence().items);
    case Value::Kind::map: return of_tensor(value.map().keys) + sum(value.map().values);
    case Value::Kind::optional:
      return value.optional().held ? text_bytes(*value.optional().held) : 0;
    case Value::Kind::sparse_tensor: return of_tensor(value.sparse_tensor().values);
    default: return 0;
  }
}

TextCharge::TextCharge(const ir::Node& node, bool allocates, std::span<Slot* const> inputs,
                       std::span<Slot* const> outputs, RunEnvironment& environment)
    : environment_(environment) {
  if (environment.memory_limit == std::numeric_limits<int64_t>::max()) return;
  const auto is_string = [](const Slot* slot) {
    return slot != nullptr && slot->element == ElementType::string;
  };
  if (std::ranges::none_of(outputs, is_string)) return;
  if (node.op_type == "StringConcat") return;  // charges each text before it makes it
  counts_ = true;
  environment.require(max_text(node, allocates, inputs, outputs));
}

void TextCharge::made(std::span<Slot* const> inputs, std::span<Slot* const> outputs) const {
  if (!counts_) return;
  for (const Slot* output : outputs) {
    if (output == nullptr || output->element != ElementType::string) continue;
    const bool shared = std::ranges::any_of(
        inputs, [&](const Slot* input) { return input != nullptr && input->data == output->data; });
    if (!shared) environment_.charge(text_bytes(*output));
  }
}

void fail_for_memory(const ir::Node& node) {
  fail_at(
      ir::place_of(node), ErrorCode::out_of_memory,
      "there is no memory for what the node needs; run smaller inputs, or allow for more memory");
}

}  // namespace sardonyx::ops
