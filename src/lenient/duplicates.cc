// Values that are assigned more than once.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ir/tensor.h"
#include "lenient/repairs.h"
#include "lenient/scopes.h"
#include "sardonyx/error.h"
#include "schema/schema.h"
#include "wire/write.h"

namespace sardonyx::lenient {
namespace {

// Type, shape and elements of a tensor, whichever fields hold them.
ir::TensorProto plain(const ir::TensorProto& tensor) {
  try {
    return ir::to_proto(ir::to_tensor(tensor));
  } catch (const Error&) {  // it holds no tensor, or its bytes are elsewhere
    return tensor;
  }
}

// What a node computes, as bytes; two nodes of a scope with the same give the same values.
std::string content(ir::Node node) {
  for (ir::Attribute& attribute : node.attributes) {
    if (attribute.t) attribute.t = std::make_shared<ir::TensorProto>(plain(*attribute.t));
  }
  node.name.clear();
  node.doc_string.clear();
  node.metadata_props.clear();
  ir::Model holder;
  holder.graph.emplace();
  holder.graph->nodes.push_back(std::move(node));
  return wire::write_model(holder);
}

std::string content(const ir::TensorProto& tensor) {
  ir::Model holder;
  holder.graph.emplace();
  holder.graph->initializers.push_back(plain(tensor));
  return wire::write_model(holder);
}

// Whether a node of the operator gives the same each time.
bool is_deterministic(const ir::Node& node) {
  const schema::Signature* newest = schema::newest(ir::canonical_domain(node.domain), node.op_type);
  return newest != nullptr && !newest->nondeterministic;
}

class Duplicates {
 public:
  Duplicates(Scope& scope, Repairs& repairs) : scope_(scope), repairs_(repairs) {}

  void run() {
    if (scope_.graph != nullptr) drop_initializers(*scope_.graph);
    for (size_t i = 0; i < scope_.nodes->size(); ++i) {
      for (const std::string& output : (*scope_.nodes)[i].outputs) {
        if (!output.empty()) makers_[output].push_back(i);
      }
    }
    const bool any =
        std::ranges::any_of(makers_, [](const auto& entry) { return entry.second.size() > 1; });
    if (!any) return;
    find_read_names();
    std::vector<bool> dropped(scope_.nodes->size());
    for (const auto& [name, nodes] : makers_) {
      if (nodes.size() < 2) continue;
      if (!read_.contains(name)) {
        rename(name, nodes);
      } else {
        drop_equal(name, nodes, dropped);
      }
    }
    size_t index = 0;
    std::erase_if(*scope_.nodes, [&](const ir::Node&) { return dropped[index++]; });
  }

 private:
  void drop_initializers(ir::Graph& graph) {
    std::map<std::string_view, size_t> first;
    std::vector<bool> dropped(graph.initializers.size());
    for (size_t i = 0; i < graph.initializers.size(); ++i) {
      const auto [at, is_new] = first.emplace(graph.initializers[i].name, i);
      if (is_new || content(graph.initializers[i]) != content(graph.initializers[at->second]))
        continue;
      dropped[i] = true;
      check::Place place;
      place.graph = scope_.path;
      place.detail = fmt::format("initializer '{}'", graph.initializers[i].name);
      repairs_.push_back(repaired("G-10", std::move(place),
                                  "two initializers of the same content "
                                  "have this name",
                                  "one of them is taken"));
    }
    size_t index = 0;
    std::erase_if(graph.initializers, [&](const ir::TensorProto&) { return dropped[index++]; });
  }

  void find_read_names() {
    for (const ir::Node& node : *scope_.nodes) {
      for_each_use(node, [&](const std::string& name) { read_.insert(name); });
    }
    if (scope_.graph != nullptr) {
      for (const ir::ValueInfo& output : scope_.graph->outputs) read_.insert(output.name);
    } else {
      read_.insert(scope_.function->outputs.begin(), scope_.function->outputs.end());
    }
  }

  // All but the first get names that nothing else has.
  void rename(const std::string& name, const std::vector<size_t>& nodes) {
    for (size_t k = 1; k < nodes.size(); ++k) {
      std::string fresh;
      do {
        fresh = fmt::format("{}__{}", name, ++counter_);
      } while (makers_.contains(fresh) || read_.contains(fresh));
      std::vector<std::string>& outputs = (*scope_.nodes)[nodes[k]].outputs;
      // Of one node that has the name twice, the last is renamed first.
      *std::find(outputs.rbegin(), outputs.rend(), name) = fresh;
      repairs_.push_back(repaired(rule(), place_of(scope_, nodes[k], output_text(name)),
                                  "another node assigns this value, which nobody reads",
                                  "this output is left unnamed"));
    }
  }

  void drop_equal(const std::string& name, const std::vector<size_t>& nodes,
                  std::vector<bool>& dropped) {
    const ir::Node& first = (*scope_.nodes)[nodes[0]];
    if (!is_deterministic(first)) return;
    const std::string wanted = content(first);
    for (size_t k = 1; k < nodes.size(); ++k) {
      const size_t index = nodes[k];
      if (index == nodes[0] || dropped[index] || content((*scope_.nodes)[index]) != wanted)
        continue;
      dropped[index] = true;
      repairs_.push_back(repaired(rule(), place_of(scope_, index, output_text(name)),
                                  "another node, which computes the same, assigns this value",
                                  "this node is left out"));
    }
  }

  std::string_view rule() const { return scope_.graph == nullptr ? "F-08" : "G-21"; }
  static std::string output_text(const std::string& name) {
    return fmt::format("output '{}'", name);
  }

  Scope& scope_;
  Repairs& repairs_;
  std::map<std::string, std::vector<size_t>> makers_;  // of each value, in order
  Names read_;
  size_t counter_ = 0;
};

}  // namespace

void drop_duplicates(ir::Model& model, Repairs& repairs) {
  for_each_scope(model, [&](Scope& scope) { Duplicates(scope, repairs).run(); });
}

}  // namespace sardonyx::lenient
