#include "train/step_method.h"

#include <algorithm>

#include "ir/dimension.h"
#include "run/input_match.h"
#include "session/describe.h"

namespace sardonyx::train {
namespace {

bool has_open_sizes(const std::vector<ValueDescription>& inputs) {
  return std::ranges::any_of(inputs, [](const ValueDescription& input) {
    return !input.shape ||
           std::ranges::any_of(*input.shape, [](const auto& dimension) { return !dimension.size; });
  });
}

// The numbers that shapes give to the names of sizes.
using Sizes = std::map<std::string, int64_t, std::less<>>;

void set_sizes(ir::ValueInfo& info, const Sizes& sizes) {
  if (!info.type || !info.type->shape) return;
  for (ir::Dimension& dim : info.type->shape->dims) {
    const auto size = sizes.find(ir::declared_name(dim));
    if (size != sizes.end() && !ir::declared_name(dim).empty()) ir::set_number(dim, size->second);
  }
}

// Shapes that do not fit are left to the plan to refuse.
void learn(const ir::ValueInfo& info, const Shape& shape, Sizes& sizes) {
  if (!info.type || !info.type->shape || info.type->shape->dims.size() != shape.size()) return;
  for (size_t d = 0; d < shape.size(); ++d) {
    const std::string_view name = ir::declared_name(info.type->shape->dims[d]);
    if (!name.empty()) sizes.emplace(name, shape[d]);
  }
}

}  // namespace

StepMethod::StepMethod(MethodModel model, const StateTable& table, Make make)
    : table_(table), make_(std::move(make)) {
  const ir::Graph& graph = *model.model.graph;
  for (size_t i = 0; i + model.states.size() < graph.inputs.size(); ++i)
    inputs_.push_back(describe(graph.inputs[i]));
  for (const ir::ValueInfo& output : graph.outputs) outputs_.push_back(describe(output));
  if (!has_open_sizes(inputs_)) {
    all_sizes_ = make_(std::move(model));
    return;
  }
  try {
    all_sizes_ = make_(model);
  } catch (const Error& error) {
    // Some gradients need to know sizes; others do not exist, which a step then says.
    if (error.code() != ErrorCode::unsupported) throw;
    model_ = std::move(model);
  }
}

std::shared_ptr<const Method> StepMethod::for_inputs(const std::vector<NamedValue>& inputs) const {
  if (all_sizes_) return all_sizes_;
  // What does not fit is no reason to plan.
  const auto& declared = model_.model.graph->inputs;
  run::match_inputs(std::span(declared).first(inputs_.size()), in_order(inputs_, table_, inputs));
  Shapes shapes;
  for (const auto& [name, value] : inputs) {
    if (value.is_tensor()) shapes[name] = value.tensor().shape();
  }
  const std::lock_guard lock(mutex_);  // who needs the same plan waits for it
  const auto found = std::ranges::find(sized_, shapes, &Sized::shapes);
  if (found != sized_.end()) {
    sized_.splice(sized_.begin(), sized_, found);
    return found->method;
  }
  auto made = made_for(shapes);
  sized_.push_front({std::move(shapes), made});
  if (sized_.size() > max_plans) sized_.pop_back();
  return made;
}

std::shared_ptr<const Method> StepMethod::made_for(const Shapes& shapes) const {
  MethodModel model = model_;
  ir::Graph& graph = *model.model.graph;
  Sizes sizes;
  for (ir::ValueInfo& input : graph.inputs) {
    const auto given = shapes.find(input.name);
    if (given == shapes.end()) continue;
    if (input.type && input.type->kind == ir::TypeProto::Kind::tensor && !input.type->shape) {
      ir::TensorShape& shape = input.type->shape.emplace();
      for (const int64_t size : given->second) ir::set_number(shape.dims.emplace_back(), size);
    }
    learn(input, given->second, sizes);
  }
  for (auto* list : {&graph.inputs, &graph.outputs, &graph.value_info}) {
    for (ir::ValueInfo& info : *list) set_sizes(info, sizes);
  }
  return make_(std::move(model));
}

}  // namespace sardonyx::train
