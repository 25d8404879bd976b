#include "lower/inline.h"

#include <memory>
#include <utility>

#include "base/fail.h"
#include "ir/instantiate.h"
#include "ir/origin.h"
#include "ir/walk.h"
#include "lower/callable_functions.h"
#include "lower/fresh_names.h"
#include "schema/schema.h"

namespace sardonyx::lower {
namespace {

using Imports = std::vector<ir::OperatorSetId>;

constexpr int64_t max_added_nodes = 250'000;  // nests of calls may be exponential

class Inlining {
 public:
  explicit Inlining(const ir::Model& model)
      : model_(model), functions_(model), names_(model, false), imports_(model.opset_imports) {}

  ir::Model run() {
    ir::Model made = model_;
    made.graph->nodes.clear();
    for (const ir::Node& node : model_.graph->nodes) place(node, nullptr, 0, made.graph->nodes);
    made.functions.clear();
    made.opset_imports = std::move(imports_);
    return made;
  }

 private:
  // `body`: the function whose node this is; null for the model's own.
  void place(ir::Node node, const ir::Function* body, int depth, std::vector<ir::Node>& out) {
    if (const ir::Function* called = functions_.own(node))
      return place_body(*called, node, depth, out);
    if (body != nullptr) require_same_meaning(node, *body);
    for (ir::Attribute& attribute : node.attributes) {
      if (attribute.g) attribute.g = inlined(*attribute.g, body, depth);
      for (auto& graph : attribute.graphs) graph = inlined(*graph, body, depth);
    }
    out.push_back(std::move(node));
  }

  void place_body(const ir::Function& function, const ir::Node& call, int depth,
                  std::vector<ir::Node>& out) {
    if (depth >= ir::max_call_depth)
      fail_at(ir::place_of(call), ErrorCode::invalid_model,
              "calls of functions nest more than {} deep, or go in circles", ir::max_call_depth);
    added_ +=
        static_cast<int64_t>(1 + function.nodes.size() + functions_.copied_bytes(function) / 1024);
    if (added_ > max_added_nodes)
      fail_at(ir::place_of(call), ErrorCode::invalid_model,
              "calls of functions become more than {} nodes", max_added_nodes);
    const auto fresh = [this](std::string_view hint) { return names_.make(hint); };
    for (ir::Node& node : ir::instantiate(function, call, fresh))
      place(std::move(node), &function, depth + 1, out);
  }

  // How deep graphs nest is bounded by the readers.
  std::shared_ptr<const ir::Graph> inlined(const ir::Graph& graph, const ir::Function* body,
                                           int depth) {
    auto made = std::make_shared<ir::Graph>(ir::interface_of(graph));
    for (const ir::Node& node : graph.nodes) place(node, body, depth, made->nodes);
    return made;
  }

  // The node moves from the function's imports to the model's.
  void require_same_meaning(const ir::Node& node, const ir::Function& body) {
    const int64_t there = ir::imported_version(body.opset_imports, node.domain);
    int64_t here = ir::imported_version(imports_, node.domain);
    if (here == there || there == 0) return;
    if (here == 0) {
      imports_.push_back({node.domain, there, {}});
      return;
    }
    const schema::Signature* meant = schema::find(node.domain, node.op_type, there);
    if (meant != nullptr && meant == schema::find(node.domain, node.op_type, here)) return;
    const std::string_view domain = ir::canonical_domain(node.domain);
    fail_at(ir::place_of(node), ErrorCode::unsupported,
            "function '{}' imports version {} of {}, where this operator is not what it is in "
            "version {}, which the model imports; converting the model to a newer opset inlines "
            "its functions, too",
            body.name, there, domain.empty() ? "ai.onnx" : domain, here);
  }

  const ir::Model& model_;
  CallableFunctions functions_;
  FreshNames names_;
  Imports imports_;
  int64_t added_ = 0;
};

}  // namespace

ir::Model inline_functions(const ir::Model& model) {
  if (!model.graph) fail_at(model.path, ErrorCode::invalid_model, "the model has no graph");
  if (model.functions.empty()) return model;
  if (!model.training_info.empty())
    fail_at(model.path, ErrorCode::unsupported,
            "the model holds training information, whose graphs are not inlined; remove it");
  return Inlining(model).run();
}

}  // namespace sardonyx::lower
