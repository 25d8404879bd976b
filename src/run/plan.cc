#include "run/plan.h"

#include "run/builder.h"
#include "run/context.h"

namespace sardonyx::run {

Plan::Plan(ir::Graph graph, std::span<const ValueFacts> inputs,
           std::vector<std::pair<std::string, ValueFacts>> captured, const PlanServices& services)
    : graph_(std::move(graph)), compact_(services.compact) {
  Builder(*this, services).build(inputs, std::move(captured));
}

Plan::~Plan() = default;

std::unique_ptr<Context> Plan::acquire(int threads) const {
  {
    const std::lock_guard lock(mutex_);
    for (auto idle = idle_.rbegin(); idle != idle_.rend(); ++idle) {
      if ((*idle)->threads() != threads) continue;
      std::swap(*idle, idle_.back());
      auto context = std::move(idle_.back());
      idle_.pop_back();
      return context;
    }
  }
  return std::make_unique<Context>(*this, threads);
}

void Plan::release(std::unique_ptr<Context> context) const {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(context));
}

bool Plan::run(std::span<const Value> inputs, std::span<ops::Slot* const> captured,
               std::span<Value> outputs, eval::Environment& environment, OutputMemory* memory,
               std::span<Value> given) const {
  std::unique_ptr<Context> context = acquire(environment.pool().threads());
  // A context that a failed run leaves behind is dropped: its binding may be half done.
  const bool anew = context->run(inputs, captured, outputs, environment, memory, given);
  release(std::move(context));
  return anew;
}

int64_t Plan::arena_bytes() const {
  const std::lock_guard lock(mutex_);
  int64_t bytes = 0;
  for (const auto& context : idle_) bytes += context->arena_bytes();
  return bytes;
}

}  // namespace sardonyx::run
