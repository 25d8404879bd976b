// The initialization of a training model.
#include <algorithm>
#include <cmath>

#include "ops/upgrade_context.h"
#include "train/draft.h"

namespace sardonyx::train {
namespace {

using Role = Parameter::Role;

class Initialization {
 public:
  Initialization(const TrainableOptions& options, ElementType element, NamePool& names)
      : options_(options), builder_(graph_, names, element) {
    graph_.name = "initialization";
  }

  void draw(const Parameter& p) {
    const std::string kind = p.random.empty() ? kind_of(p) : p.random;
    if (kind == "keep") return;
    if (kind == "weight" && p.shape.size() >= 2) {
      const double bound = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(p.fan_in, 1)));
      const auto f = [](const char* name, double value) {
        return ops::float_attribute(name, static_cast<float>(value));
      };
      // A seed of its own, so that every reader's initialization gives the same each time.
      const double seed = static_cast<double>((options_.seed * 1009 + ++drawn_) % 16'777'216);
      bind(p.name,
           builder_.add("RandomUniform", {},
                        {ops::ints_attribute("shape", p.shape), f("low", -bound), f("high", bound),
                         f("seed", seed),
                         ops::int_attribute("dtype", static_cast<int64_t>(builder_.element()))},
                        p.name + "_drawn"),
           builder_.element(), p.shape);
      return;
    }
    fill(p.name, scalar(builder_.element(), kind == "ones" ? 1 : 0), p.shape);
  }

  void fill(const std::string& state, const Tensor& value, const Shape& shape) {
    const Tensor one = value.reshaped({1});
    bind(state,
         builder_.add("ConstantOfShape", {builder_.integers(shape)},
                      {ops::tensor_attribute("value", one)}, state + "_start"),
         value.element_type(), shape);
  }

  ir::TrainingInfo take() {
    ir::TrainingInfo info;
    info.initialization_binding = std::move(bindings_);
    info.initialization = std::move(graph_);
    return info;
  }

 private:
  std::string kind_of(const Parameter& p) const {
    if (options_.initial_weights == InitialWeights::keep) return "keep";
    return p.role == Role::weight ? "weight" : p.role == Role::scale ? "ones" : "zeros";
  }

  void bind(const std::string& state, const std::string& value, ElementType element,
            const Shape& shape) {
    bindings_.push_back({state, value, {}});
    builder_.output(value, element, shape);
  }

  const TrainableOptions& options_;
  ir::Graph graph_;
  GraphBuilder builder_;
  std::vector<ir::StringEntry> bindings_;
  uint64_t drawn_ = 0;
};

}  // namespace

ir::TrainingInfo initialization_of(const ir::Graph& main, const ir::Graph& algorithm,
                                   const std::vector<Parameter>& parameters,
                                   const std::vector<RunningStatistics>& statistics,
                                   const Updates& updates, const std::string& scale,
                                   const TrainableOptions& options, ElementType element,
                                   NamePool& names) {
  Initialization made(options, element, names);
  for (const Parameter& parameter : parameters) made.draw(parameter);
  if (options.initial_weights == InitialWeights::random) {
    for (size_t i = 0; i < statistics.size(); ++i) {  // means and variances take turns
      const auto tensor =
          std::ranges::find(main.initializers, statistics[i].state, &ir::TensorProto::name);
      made.fill(statistics[i].state, scalar(tensor->element_type(), i % 2 == 0 ? 0 : 1),
                tensor->dims);
    }
  }
  for (const std::string& state : updates.reset_to_zero) {
    const auto tensor = std::ranges::find(algorithm.initializers, state, &ir::TensorProto::name);
    const ElementType type = tensor->element_type();
    made.fill(state, type == ElementType::int64 ? Tensor::scalar<int64_t>(0) : scalar(type, 0),
              tensor->dims);
  }
  if (!scale.empty()) made.fill(scale, scalar(element, options.loss_scale), {});
  return made.take();
}

}  // namespace sardonyx::train
