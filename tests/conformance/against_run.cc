#include "against_run.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <unordered_set>
#include <vector>

#include "base/thread_pool.h"
#include "eval/eval.h"
#include "ir/origin.h"
#include "ops/shared/fixed_point.h"

namespace sardonyx::conformance {
namespace {

// Stands for a float that is no number of units, or of too many.
constexpr int64_t no_units = INT64_MIN;

// The sizes of a run, learned value by value.
class Bindings {
 public:
  explicit Bindings(const InferredModel& model)
      : model_(model), sizes_(static_cast<size_t>(model.symbols.size()), INT64_MIN) {}

  // An error where `dim` can't be `actual`.
  std::optional<std::string> learn(const ir::Dim& inferred, int64_t actual) {
    const ir::Dim dim = model_.symbols.resolved(inferred);
    if (const ir::Symbol* symbol = dim.as_symbol()) {
      int64_t& bound = sizes_[static_cast<size_t>(symbol->id)];
      if (bound == INT64_MIN) {
        bound = actual;
        if (symbol->is_size && actual < 0) return fmt::format("{} is {}", symbol->name, actual);
        if (!symbol->upper) return std::nullopt;
        const auto upper = model_.symbols.resolved(*symbol->upper).evaluate(sizes_);
        if (upper && *upper < actual) {
          return fmt::format("{} is {}, its bound {} is {}", symbol->name, actual,
                             symbol->upper->to_string(), *upper);
        }
        return std::nullopt;
      }
    }
    const auto low = dim.lower(), high = dim.upper();
    const bool below = low && *low > actual && actual != no_units;
    if (below || (high && *high < actual))
      return fmt::format("{} should lie in [{}, {}]; the run makes {}", dim.to_string(),
                         low.value_or(INT64_MIN), high.value_or(INT64_MAX), actual);
    const auto value = dim.evaluate(sizes_);
    if (!value) {
      ++unevaluable;
      return std::nullopt;
    }
    if (*value != actual)
      return fmt::format("{} is {}, the run makes {}", dim.to_string(), *value, actual);
    return std::nullopt;
  }

  int64_t unevaluable = 0;

 private:
  const InferredModel& model_;
  std::vector<int64_t> sizes_;
};

std::optional<int64_t> integer_at(const Tensor& tensor, int64_t i) {
  const void* data = tensor.data();
  switch (tensor.element_type()) {
    case ElementType::int64: return static_cast<const int64_t*>(data)[i];
    case ElementType::int32: return static_cast<const int32_t*>(data)[i];
    case ElementType::int16: return static_cast<const int16_t*>(data)[i];
    case ElementType::int8: return static_cast<const int8_t*>(data)[i];
    case ElementType::uint8: return static_cast<const uint8_t*>(data)[i];
    case ElementType::uint16: return static_cast<const uint16_t*>(data)[i];
    case ElementType::uint32: return static_cast<const uint32_t*>(data)[i];
    case ElementType::boolean: return static_cast<const uint8_t*>(data)[i];
    default: return std::nullopt;
  }
}

// In the units in which inference knows floats.
int64_t in_units(double value) {
  const double units = value * static_cast<double>(ops::float_unit);
  return units == std::floor(units) && std::fabs(units) < 9e18 ? static_cast<int64_t>(units)
                                                               : no_units;
}

// The element as inference knows it; nullopt for types whose elements it does not follow.
std::optional<int64_t> known_at(const Tensor& tensor, int64_t i) {
  if (tensor.element_type() == ElementType::float32)
    return in_units(static_cast<const float*>(tensor.data())[i]);
  if (tensor.element_type() == ElementType::float64)
    return in_units(static_cast<const double*>(tensor.data())[i]);
  return integer_at(tensor, i);
}

bool same_floats(const Tensor& a, const Tensor& b) {
  return a.element_type() == b.element_type() && a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.byte_size()) == 0;
}

std::optional<std::string> compare(const infer::ValueFacts& known, const Value& value,
                                   Bindings& bindings, Checked& totals) {
  const ir::ValueType actual = ir::type_of(value);
  if (!known.type.is_known() || !actual.is_known()) return std::nullopt;
  if (known.type.kind != actual.kind)
    return fmt::format("{} was inferred, the run makes {}", known.type.to_string(),
                       actual.to_string());
  if (!value.is_tensor()) return std::nullopt;
  const Tensor& tensor = value.tensor();
  if (known.type.element != ElementType::undefined && known.type.element != tensor.element_type()) {
    return fmt::format("{} was inferred, the run makes {}", known.type.to_string(),
                       actual.to_string());
  }
  if (known.type.shape) {
    if (known.type.shape->size() != tensor.shape().size())
      return fmt::format("shape {} was inferred, the run makes {}",
                         ir::to_string(*known.type.shape), to_string(tensor.shape()));
    for (size_t d = 0; d < tensor.shape().size(); ++d) {
      ++totals.sizes;
      if (const auto wrong = bindings.learn((*known.type.shape)[d], tensor.shape()[d]))
        return fmt::format("dimension {} of {}: {}", d, known.type.to_string(), *wrong);
    }
  }
  if (known.constant && ops::has_float_elements(tensor.element_type()) &&
      !same_floats(*known.constant, tensor))
    return "the floats that were inferred are others than those the run makes";
  if (known.elements) {
    if (static_cast<int64_t>(known.elements->size()) != tensor.size())
      return fmt::format("{} elements were inferred, the run makes {}", known.elements->size(),
                         tensor.size());
    for (int64_t i = 0; i < tensor.size(); ++i) {
      const auto element = known_at(tensor, i);
      if (!element) break;
      ++totals.elements;
      if (const auto wrong = bindings.learn((*known.elements)[static_cast<size_t>(i)], *element))
        return fmt::format("element {}: {}", i, *wrong);
    }
  }
  return std::nullopt;
}

// Integers divided by 0 have no value that inference could be held against, and of floats it takes
// what divides for sizes above 0.
void refuse_division_by_zero(const ir::Node& node, const eval::Frame& frame,
                             const InferredModel& made) {
  if (node.op_type != "Div" && node.op_type != "Mod") return;
  const Value* divisor = frame.find(node.inputs[1]);
  if (divisor == nullptr || !divisor->is_tensor()) return;
  const Tensor& tensor = divisor->tensor();
  const infer::ValueFacts* quotient = made.scope.find_here(node.outputs[0]);
  const bool is_followed = quotient != nullptr && quotient->elements;
  if (ops::has_float_elements(tensor.element_type()) && !is_followed) return;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (known_at(tensor, i) == 0)
      throw Error(ErrorCode::run_failed, "divides by 0", ir::place_of(node));
  }
}

// Inference takes what is computed from sizes for a size, but where it is -1 Reshape does not.
void refuse_computed_minus_one(const ir::Node& node, const eval::Frame& frame,
                               const InferredModel& made) {
  if (node.op_type != "Reshape") return;
  const infer::ValueFacts* asked = made.scope.find_here(node.inputs[1]);
  const Value* value = frame.find(node.inputs[1]);
  if (asked == nullptr || !asked->elements || value == nullptr) return;
  for (int64_t i = 0; i < value->tensor().size(); ++i) {
    const ir::Dim& size = (*asked->elements)[static_cast<size_t>(i)];
    if (integer_at(value->tensor(), i) == -1 && !size.is_constant() && size.as_symbol() == nullptr)
      throw Error(ErrorCode::run_failed, "a size is computed to be -1", ir::place_of(node));
  }
}

}  // namespace

std::optional<std::string> check_run(std::span<const Value> inputs, const InferredModel& made,
                                     Checked& totals, int64_t memory_limit) {
  Bindings bindings(made);
  eval::Frame frame;
  std::optional<std::string> wrong;
  const auto check = [&](const std::string& name, const Value& value) {
    const infer::ValueFacts* known = made.scope.find_here(name);
    if (wrong || known == nullptr) return;
    if (const auto found = compare(*known, value, bindings, totals))
      wrong = fmt::format("'{}': {}", name, *found);
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].kind() == Value::Kind::none) continue;
    check(made.graph.inputs[i].name, inputs[i]);
    frame.set(made.graph.inputs[i].name, inputs[i]);
  }
  std::unordered_set<const ir::Node*> own;
  for (const ir::Node& node : made.graph.nodes) own.insert(&node);
  ThreadPool pool(1);
  eval::Environment environment(pool);
  environment.memory_limit = memory_limit;
  eval::Options options;
  options.observe = [&](const ir::Node& node, size_t output, const Value& value) {
    if (!own.contains(&node)) return;
    refuse_division_by_zero(node, frame, made);
    refuse_computed_minus_one(node, frame, made);
    if (!node.outputs[output].empty()) check(node.outputs[output], value);
  };
  eval::run_graph(made.graph, frame, environment, options);
  totals.unevaluable += bindings.unevaluable;
  return wrong;
}

}  // namespace sardonyx::conformance
