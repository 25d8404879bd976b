#include "passes/pass_manager.h"

#include <fmt/format.h>

#include <chrono>
#include <stdexcept>
#include <utility>

#include "base/fail.h"
#include "passes/verify.h"

namespace sardonyx::passes {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::map<std::string, int> operators_of(const ir::Graph& graph) {
  std::map<std::string, int> counts;
  for (const ir::Node& node : graph.nodes)
    ++counts[node.domain.empty() ? node.op_type : node.domain + "." + node.op_type];
  return counts;
}

}  // namespace

PassContext::PassContext(PassManager& manager, ir::Graph& graph, const EnterGraph& enter,
                         std::string place)
    : manager_(manager), graph_(graph), enter_(enter), place_(std::move(place)) {}

bool PassContext::infer(bool keep_dequantize, bool inside) {
  drop_uses();
  scope_ = enter_();
  FoldingOptions folding{.keep_dequantize = keep_dequantize, .subgraph = {}};
  if (inside) {
    folding.subgraph = [&](ir::Graph& graph, const EnterGraph& enter, const std::string& place) {
      manager_.run(graph, enter, place);
    };
  }
  const bool changed = manager_.folder_.fold(graph_, *scope_, folding);
  valid_ = types;
  return changed;
}

void PassContext::require(const Facts& facts) {
  if (!facts.uses) drop_uses();
  if ((facts.types && !valid_.types) || (facts.constants && !valid_.constants))
    manager_.watched(*this, "infer-types", [&] { return infer(false, false); });
  if (facts.uses && !uses_) uses_.emplace(graph_, *scope_);
}

void PassContext::keep(const Facts& facts) {
  valid_.constants &= facts.constants;
  valid_.types &= facts.types;
  if (!facts.uses) drop_uses();
}

void PassContext::drop_uses() {
  if (!uses_) return;
  uses_->compact();
  for (const auto& [name, known] : uses_->added()) scope_->set(name, known);
  uses_.reset();
}

template <class Step>
bool PassManager::watched(PassContext& context, std::string_view name, const Step& step) {
  if (!options_.observer) {
    const bool changed = step();
    verify(context, name);
    return changed;
  }
  context.drop_uses();
  std::map<std::string, int> operators = operators_of(context.graph());
  const size_t before = context.graph().nodes.size();
  const double inside_before = std::exchange(inside_, 0);
  const auto begin = Clock::now();
  const bool changed = step();
  const double seconds = seconds_since(begin);
  context.drop_uses();
  for (auto& [op, count] : operators) count = -count;
  for (const auto& [op, count] : operators_of(context.graph())) operators[op] += count;
  std::erase_if(operators, [](const auto& entry) { return entry.second == 0; });
  options_.observer({name, context.place_, changed, context.graph(), before, std::move(operators),
                     seconds - inside_});
  inside_ = inside_before + seconds;
  verify(context, name);
  return changed;
}

void PassManager::run(ir::Graph& graph) {
  run(
      graph,
      [&] {
        auto scope = std::make_unique<infer::Scope>();
        infer::enter(graph, *scope, folder_.inference());
        return scope;
      },
      "main graph");
}

void PassManager::run(ir::Graph& graph, const EnterGraph& enter, const std::string& place) {
  PassContext context(*this, graph, enter, place);
  refuse_broken(context);
  for (const Pass& pass : passes_) {
    if (pass.applies == nullptr || pass.applies(context)) {
      context.require(pass.needs);
      const bool changed = watched(context, pass.name, [&] {
        if (pass.needs.uses && !context.uses_) context.require(pass.needs);
        const int64_t edits = pass.needs.uses ? context.uses().edits() : 0;
        return pass.run(context) || (pass.needs.uses && context.uses().edits() != edits);
      });
      if (changed) context.keep(pass.keeps);
    }
    if (pass.name == options_.stop_after) break;
  }
  context.drop_uses();
}

// What an upgrade has no newer form for, the second variance that an old BatchNormalization names,
// say, is missing where it is used: that is no pass's fault. Without checks of passes the plan says
// so.
void PassManager::refuse_broken([[maybe_unused]] const PassContext& context) const {
#ifndef NDEBUG
  const std::unique_ptr<infer::Scope> outer = context.enter_();
  if (const auto broken = find_broken(context.graph(), *outer))
    fail_at(context.place_, ErrorCode::invalid_model, "{}", *broken);
#endif
}

void PassManager::verify([[maybe_unused]] const PassContext& context,
                         [[maybe_unused]] std::string_view pass) const {
#ifndef NDEBUG
  if (context.uses_) return;  // dead nodes are still there; the pass that drops them is verified
  const std::unique_ptr<infer::Scope> outer = context.enter_();
  if (const auto broken = find_broken(context.graph(), *outer)) {
    throw std::logic_error(
        fmt::format("the pass {} left the {} broken: {}", pass, context.place_, *broken));
  }
#endif
}

}  // namespace sardonyx::passes
