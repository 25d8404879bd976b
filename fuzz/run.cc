// A session of whatever can be read, run on small inputs, planned and plain: either both refuse, or
// both give the same types and shapes.
#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "sardonyx/session.h"
#include "target.h"

namespace {

using namespace sardonyx;

constexpr int64_t largest_tensor = 1 << 16;

// Small numbers: one as integers are written, which many a Loop takes as its count; floats far
// below one.
void fill_with_ones(Tensor& tensor) {
  const auto width = static_cast<size_t>(std::max(bit_width(tensor.element_type()) / 8, 1));
  auto* bytes = static_cast<uint8_t*>(tensor.mutable_data());
  for (size_t i = 0; i < tensor.byte_size(); ++i) bytes[i] = i % width == 0 ? 1 : 0;
}

// Ones for each input that needs a value; nothing where an input is not a small tensor of numbers.
std::optional<std::vector<NamedValue>> inputs_of(const Session& session) {
  std::vector<NamedValue> values;
  for (const ValueDescription& input : session.inputs()) {
    if (input.optional) continue;
    if (input.kind != Value::Kind::tensor || input.element_type == ElementType::string) return {};
    Shape shape;
    int64_t size = 1;
    if (input.shape) {
      for (const auto& dimension : *input.shape) {
        shape.push_back(std::max<int64_t>(dimension.size.value_or(2), 0));
        if (shape.back() > largest_tensor || (size *= shape.back()) > largest_tensor) return {};
      }
    }
    Tensor tensor(input.element_type, shape);
    fill_with_ones(tensor);
    values.emplace_back(input.name, tensor);
  }
  return values;
}

std::optional<std::vector<Value>> outputs_of(const Model& model, bool plain) {
  SessionOptions options;
  options.threads = 1;
  options.reference = plain;
  RunOptions limits;
  limits.memory_limit = 64 << 20;
  limits.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  try {
    const Session session(model, options);
    const auto inputs = inputs_of(session);
    if (!inputs) return {};
    return session.run(*inputs, limits);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const Model model(data, size);
    const auto planned = outputs_of(model, false);
    const auto plain = outputs_of(model, true);
    // One alone may meet a limit of time or memory.
    if (!planned || !plain) return 0;
    require(planned->size() == plain->size(), "planned and plain give as many outputs");
    for (size_t i = 0; i < plain->size(); ++i) {
      const Value &a = (*planned)[i], &b = (*plain)[i];
      require(a.kind() == b.kind(), "planned and plain give the same kinds");
      if (!a.is_tensor()) continue;
      require(a.tensor().element_type() == b.tensor().element_type(), "the same element types");
      require(a.tensor().shape() == b.tensor().shape(), "the same shapes");
    }
  } catch (const Error&) {
  }
  return 0;
}
