#include "ops/infer_context.h"

#include <algorithm>
#include <iterator>

#include "base/checked.h"
#include "ops/shared/fixed_point.h"

namespace sardonyx::ops {
namespace {

std::shared_ptr<const Dims> small_elements(const Tensor& tensor) {
  if (tensor.size() > max_known_elements) return nullptr;
  auto elements = std::make_shared<Dims>();
  elements->reserve(static_cast<size_t>(tensor.size()));
  const auto add = [&](const auto* data) {
    for (int64_t i = 0; i < tensor.size(); ++i)
      elements->push_back(Dim(static_cast<int64_t>(data[i])));
  };
  switch (tensor.element_type()) {
    case ElementType::int64: add(static_cast<const int64_t*>(tensor.data())); break;
    case ElementType::int32: add(static_cast<const int32_t*>(tensor.data())); break;
    case ElementType::int16: add(static_cast<const int16_t*>(tensor.data())); break;
    case ElementType::int8: add(static_cast<const int8_t*>(tensor.data())); break;
    case ElementType::uint8: add(static_cast<const uint8_t*>(tensor.data())); break;
    case ElementType::uint16: add(static_cast<const uint16_t*>(tensor.data())); break;
    case ElementType::uint32: add(static_cast<const uint32_t*>(tensor.data())); break;
    case ElementType::boolean: add(static_cast<const uint8_t*>(tensor.data())); break;
    default: return float_elements(tensor);
  }
  return elements;
}

}  // namespace

ValueFacts::ValueFacts() = default;

ValueFacts ValueFacts::of(Tensor tensor) {
  ValueFacts known;
  known.type.kind = ir::TypeProto::Kind::tensor;
  known.type.element = tensor.element_type();
  known.type.shape.emplace(tensor.shape().begin(), tensor.shape().end());
  known.elements = small_elements(tensor);
  known.constant = std::make_shared<const Tensor>(std::move(tensor));
  return known;
}

ValueFacts ValueFacts::of(std::span<const int64_t> list) {
  ValueFacts known;
  known.type.kind = ir::TypeProto::Kind::tensor;
  known.type.element = ElementType::int64;
  known.type.shape.emplace({Dim(static_cast<int64_t>(list.size()))});
  known.elements = std::make_shared<const Dims>(list.begin(), list.end());
  return known;
}

namespace {

template <class T>
Tensor integer_tensor(ElementType element, const Dims& values, Shape shape) {
  Tensor tensor(element, std::move(shape));
  T* out = static_cast<T*>(tensor.mutable_data());
  for (size_t i = 0; i < values.size(); ++i) out[i] = static_cast<T>(*values[i].value());
  return tensor;
}

}  // namespace

std::optional<Tensor> tensor_of_elements(const ValueFacts& known) {
  if (!known.elements || !known.type.is_tensor()) return std::nullopt;
  const auto& elements = *known.elements;
  if (!std::ranges::all_of(elements, &Dim::is_constant)) return std::nullopt;
  const auto shape = known.type.concrete_shape();
  if (!shape || checked_count(*shape) != static_cast<int64_t>(elements.size())) return std::nullopt;
  switch (known.type.element) {
    case ElementType::int64: return integer_tensor<int64_t>(ElementType::int64, elements, *shape);
    case ElementType::int32: return integer_tensor<int32_t>(ElementType::int32, elements, *shape);
    case ElementType::boolean:
      return integer_tensor<uint8_t>(ElementType::boolean, elements, *shape);
    case ElementType::float32:
    case ElementType::float64: return float_tensor(known.type.element, elements, *shape);
    default: return std::nullopt;
  }
}

const Tensor* MadeConstants::of(const ValueFacts& known) {
  if (known.constant) return known.constant.get();
  std::optional<Tensor> made = tensor_of_elements(known);
  return made ? &made_.emplace_front(std::move(*made)) : nullptr;
}

namespace {

// How many values a sequence or an optional holds, as held_count() tells it; null for others.
std::shared_ptr<const Dims> counts_of(const Value& value) {
  if (value.kind() == Value::Kind::sequence)
    return std::make_shared<const Dims>(Dims{Dim(std::ssize(value.sequence().items))});
  if (value.kind() != Value::Kind::optional) return nullptr;
  const auto& held = value.optional().held;
  Dims counts = {Dim(held != nullptr ? 1 : 0)};
  if (held != nullptr && held->kind() == Value::Kind::sequence)
    counts.emplace_back(std::ssize(held->sequence().items));
  return std::make_shared<const Dims>(std::move(counts));
}

}  // namespace

ValueFacts ValueFacts::of(const Value& value) {
  if (value.is_tensor()) return of(value.tensor());
  ValueFacts known = of(ir::type_of(value));
  known.elements = counts_of(value);
  return known;
}

const ValueFacts InferContext::nothing_known;

std::optional<int64_t> InferContext::rank(int i) const {
  const auto& shape = type(i).shape;
  return shape ? std::optional(static_cast<int64_t>(shape->size())) : std::nullopt;
}

const Tensor* InferContext::constant(int i) const {
  const ValueFacts& value = known(i);
  if (mode_.symbolic_values) return made_constants_.of(value);
  return value.constant.get();
}

std::optional<std::vector<int64_t>> InferContext::integers(int i) const {
  const Dims* expressions = elements(i);
  if (expressions == nullptr || is_floating(element(i))) return std::nullopt;
  std::vector<int64_t> numbers;
  numbers.reserve(expressions->size());
  for (const Dim& dim : *expressions) {
    if (!dim.is_constant()) return std::nullopt;
    numbers.push_back(*dim.value());
  }
  return numbers;
}

namespace {

// The values an integer or boolean type can hold, as far as int64 goes.
struct Limits {
  int64_t low, high;
};
std::optional<Limits> limits_of(ElementType type) {
  if (type == ElementType::boolean) return Limits{0, 1};
  if (type == ElementType::int64) return Limits{INT64_MIN, INT64_MAX};
  if (type == ElementType::uint64) return Limits{0, INT64_MAX};
  if (!is_integer(type)) return std::nullopt;
  const int bits = bit_width(type);
  if (name_of(type).starts_with("uint")) return Limits{0, (int64_t{1} << bits) - 1};
  return Limits{-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1};
}

// True where the type holds the element as it is. Sizes are taken to fit 32 bits where a model
// puts them there.
bool fits(const Dim& element, ElementType type, const Limits& limits) {
  if (element.is_constant())
    return *element.value() >= limits.low && *element.value() <= limits.high;
  if (type == ElementType::int64 || type == ElementType::int32) return true;
  if (const ir::Symbol* symbol = element.as_symbol(); symbol && !symbol->is_size) return true;
  const auto low = element.lower(), high = element.upper();
  return low && *low >= limits.low && high && *high <= limits.high;
}

}  // namespace

Dim InferContext::definite(const Dim& dim) {
  const auto high = dim.upper();
  return high && *high >= 0 ? unknown(Dim(*high)) : unknown();
}

void InferContext::settle(ValueFacts& output) {
  if (output.type.shape) {
    for (Dim& dim : *output.type.shape) {
      if (dim.is_indefinite()) dim = definite(dim);
    }
  }
  if (!output.elements) return;
  using Kind = ir::TypeProto::Kind;
  if (output.type.kind == Kind::sequence || output.type.kind == Kind::optional) {
    if (std::ranges::any_of(*output.elements, &Dim::is_indefinite)) output.elements = nullptr;
    return;
  }
  if (output.type.is_tensor() && has_float_elements(output.type.element)) {
    const auto is_definite = [](const Dim& element) { return !element.is_indefinite(); };
    if (output.constant) return;
    if (!mode_.symbolic_values || output.elements->size() > max_known_floats ||
        !std::all_of(output.elements->begin(), output.elements->end(), is_definite))
      output.elements = nullptr;
    return;
  }
  const auto limits =
      output.type.is_tensor() ? limits_of(output.type.element) : std::optional<Limits>();
  const auto is_sound = [&](const Dim& element) {
    return limits && !element.is_indefinite() && fits(element, output.type.element, *limits);
  };
  const auto& elements = *output.elements;
  if (std::all_of(elements.begin(), elements.end(), is_sound)) return;
  if (!limits || !mode_.symbolic_values) {
    output.elements = nullptr;
    return;
  }
  auto named = std::make_shared<Dims>(elements);
  for (Dim& element : *named) {
    if (!is_sound(element)) element = *unknown_element();
  }
  output.elements = std::move(named);
}

void InferContext::settle_outputs() {
  for (ValueFacts& output : outputs_) settle(output);
}

void InferContext::set(int i, ValueType type) {
  if (i < static_cast<int>(outputs_.size())) output(i).type = std::move(type);
}

void InferContext::set_elements(int i, Dims elements) {
  if (i < static_cast<int>(outputs_.size())) {
    output(i).elements = std::make_shared<const Dims>(std::move(elements));
  }
}

void InferContext::set_constant(int i, Tensor tensor) {
  if (i < static_cast<int>(outputs_.size())) output(i) = ValueFacts::of(std::move(tensor));
}

void InferContext::set_known(int i, ValueFacts known) {
  if (i < static_cast<int>(outputs_.size())) output(i) = std::move(known);
}

Dim InferContext::unknown(std::optional<Dim> upper) {
  return Dim(symbols_.unknown(upper ? std::make_shared<const Dim>(std::move(*upper)) : nullptr));
}

std::optional<Dim> InferContext::unknown_element() {
  return mode_.symbolic_values ? std::optional(Dim(symbols_.unknown_value())) : std::nullopt;
}

Dims InferContext::unknown_shape(int64_t rank) {
  Dims shape;
  for (int64_t i = 0; i < rank; ++i) shape.push_back(unknown());
  return shape;
}

void InferContext::require_equal(const Dim& a, const Dim& b, std::string_view what) {
  if (a == b) return;
  const Dim difference = a - b;
  const auto low = difference.lower(), high = difference.upper();
  if ((low && *low > 0) || (high && *high < 0)) {
    fail("{}: {} and {} differ", what, a.to_string(), b.to_string());
  }
  if (!constraints_) return;
  if (mode_.symbolic_values) return static_cast<void>(symbols_.learn_equal(a, b));
  constraints_->push_back({Constraint::Kind::equal, a, b, fmt::format("{}: {}", place(), what)});
}

void InferContext::require_at_least(const Dim& a, const Dim& b, std::string_view what) {
  const Dim difference = a - b;
  const auto low = difference.lower(), high = difference.upper();
  if ((low && *low >= 0) || surely_at_least(a, b)) return;
  if (high && *high < 0) fail("{}: {} is less than {}", what, a.to_string(), b.to_string());
  if (constraints_ && !mode_.symbolic_values)
    constraints_->push_back(
        {Constraint::Kind::at_least, a, b, fmt::format("{}: {}", place(), what)});
}

Dims InferContext::broadcast(std::span<const Dim> a, std::span<const Dim> b) {
  const size_t rank = std::max(a.size(), b.size());
  Dims result;
  result.reserve(rank);
  for (size_t i = 0; i < rank; ++i) {
    const Dim x = i + a.size() >= rank ? a[i + a.size() - rank] : Dim(1);
    const Dim y = i + b.size() >= rank ? b[i + b.size() - rank] : Dim(1);
    if (x.is_constant() && y.is_constant() && x != y && x != Dim(1) && y != Dim(1)) {
      fail("shapes {} and {} do not broadcast: {} against {} (axis {} from the right)",
           ir::to_string(a), ir::to_string(b), x.to_string(), y.to_string(), rank - i);
    }
    result.push_back(ir::broadcast(x, y));
    if (constraints_ && !mode_.symbolic_values && !(x == y) && x != Dim(1) && y != Dim(1)) {
      constraints_->push_back({Constraint::Kind::broadcast, x, y,
                               fmt::format("{}: shapes {} and {} must broadcast", place(),
                                           ir::to_string(a), ir::to_string(b))});
    }
  }
  return result;
}

std::vector<ValueFacts> InferContext::infer_subgraph(const ir::Graph& graph,
                                                     std::span<const ValueFacts> inputs) {
  if (subgraph_ == nullptr || !*subgraph_) fail("a subgraph cannot be inferred here");
  return (*subgraph_)(graph, inputs);
}

}  // namespace sardonyx::ops
