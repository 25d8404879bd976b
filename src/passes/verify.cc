#include "passes/verify.h"

#include <fmt/format.h>

#include <string_view>
#include <unordered_set>

#include "ir/internal_domain.h"
#include "ir/origin.h"
#include "ops/internal/node.h"
#include "passes/value_names.h"

namespace sardonyx::passes {
namespace {

class Verifier {
 public:
  Verifier(const ir::Graph& graph, const infer::Scope& entered)
      : graph_(graph), entered_(entered) {}

  std::optional<std::string> run() {
    std::unordered_set<std::string_view> initializers;
    for (const ir::TensorProto& initializer : graph_.initializers) {
      if (!initializers.insert(initializer.name).second)
        return fmt::format("two initializers are called '{}'", initializer.name);
    }
    for (const ir::Node& node : graph_.nodes) {
      if (auto broken = visit(node)) return broken;
    }
    for (const ir::ValueInfo& output : graph_.outputs) {
      if (!is_defined(output.name)) return fmt::format("nothing makes output '{}'", output.name);
    }
    return std::nullopt;
  }

 private:
  bool is_defined(const std::string& name) const {
    return made_.contains(name) || entered_.find(name) != nullptr;
  }

  std::optional<std::string> visit(const ir::Node& node) {
    if (auto broken = check_inputs(node)) return broken;
    if (ir::is_internal(node)) {
      if (const auto problem = ops::internal::problem_of(node))
        return fmt::format("{} {}", ir::source_text(node), *problem);
    }
    for (const std::string& name : node.outputs) {
      if (!name.empty() && !made_.insert(name).second)
        return fmt::format("'{}' is made by another node before {}", name, ir::source_text(node));
    }
    return std::nullopt;
  }

  std::optional<std::string> check_inputs(const ir::Node& node) const {
    std::optional<std::string> broken;
    const auto use = [&](const std::string& name) {
      if (name.empty() || broken || is_defined(name)) return;
      broken = fmt::format("{} reads '{}' before it is made", ir::source_text(node), name);
    };
    for_each_read(node, use);
    return broken;
  }

  const ir::Graph& graph_;
  const infer::Scope& entered_;
  std::unordered_set<std::string_view> made_;
};

}  // namespace

std::optional<std::string> find_broken(const ir::Graph& graph, const infer::Scope& entered) {
  return Verifier(graph, entered).run();
}

}  // namespace sardonyx::passes
