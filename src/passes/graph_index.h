// Who makes and who uses each value of a graph, kept right while rewrites change nodes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "infer/infer.h"
#include "ir/model.h"
#include "passes/fresh_names.h"

namespace sardonyx::passes {

// Whether there is a node, and it is of this operator of ai.onnx.
inline bool is_op(const ir::Node* node, std::string_view op) {
  return node != nullptr && node->domain.empty() && node->op_type == op;
}

// The other input of a node of two, where one of them is `value`; null otherwise.
const std::string* other_input(const ir::Node& node, std::string_view value);

// The sizes of a tensor of known rank; null for other values.
inline const ir::Dims* shape_of(const infer::ValueFacts* known) {
  return known != nullptr && known->type.is_tensor() && known->type.shape ? &*known->type.shape
                                                                          : nullptr;
}

// The uses of a graph's values. Nodes keep their positions: a rewrite puts one where it stood and
// others are dead, and compact() closes the gaps at the end. Borrows graph and scope.
class GraphIndex {
 public:
  GraphIndex(ir::Graph& graph, const infer::Scope& scope);

  size_t size() const { return graph_.nodes.size(); }
  ir::Node& node(size_t i) { return graph_.nodes[i]; }
  const ir::Node& node(size_t i) const { return graph_.nodes[i]; }
  bool is_dead(size_t i) const { return dead_[i] != 0; }
  // Calls visit(i) for each node that is not dead when its turn comes.
  template <class Visit>
  void for_each(const Visit& visit) {
    for (size_t i = 0; i < size(); ++i) {
      if (!is_dead(i)) visit(i);
    }
  }

  // The node that makes a value; null for inputs, initializers and outer values.
  const ir::Node* producer(std::string_view value) const;
  size_t producer_index(std::string_view value) const;  // size() where there is none
  // Uses by nodes, outputs of the graph and subgraphs.
  int uses(std::string_view value) const;
  // The nodes that use the value, one as often as it does.
  std::vector<size_t> users(std::string_view value) const;
  // The one node that uses the value, where nothing else does; size() otherwise.
  size_t only_user(std::string_view value) const;

  // Also of what add_initializer has added.
  const infer::ValueFacts* known(std::string_view value) const;
  const ir::Dims* shape_of(std::string_view value) const { return passes::shape_of(known(value)); }
  // The elements of a constant; null where the value changes.
  const Tensor* constant(std::string_view value) const;
  // The one element of a constant float32 or float64 scalar (any rank).
  std::optional<double> scalar(std::string_view value) const;
  // The one element of a constant of int8 or uint8 (any rank).
  std::optional<int32_t> byte(std::string_view value) const;
  bool is_float32(std::string_view value) const;
  bool same_shape(std::string_view a, std::string_view b) const;
  // The constant float32 `value` where, broadcast against `image`, it has one number for each index
  // along that axis, and the same for all others; null where it is none.
  const Tensor* vector_along(size_t axis, std::string_view value, std::string_view image) const;

  // Changes node i, which does the same work as before.
  void change(size_t i, ir::Node node);
  // Puts `node` where node i stands, as one that does its work, that of the nodes `with`, and that
  // of all that nobody else reads once it is there: these are gone then, with the chains before
  // them. A node of `with` that somebody else reads stays. The node's origin and sources are set to
  // name them all.
  void replace(size_t i, ir::Node node, std::span<const size_t> with = {});
  // A name that no value has, made of one.
  std::string fresh_name(std::string_view value, std::string_view mark) {
    return names_.make(value, mark);
  }
  // A new initializer; returns its name.
  std::string add_initializer(const Tensor& tensor, std::string_view hint);
  void compact();
  // How many nodes have been changed or replaced.
  int64_t edits() const { return edits_; }
  // What is known of the initializers that were added, for the scope of the graph.
  const std::unordered_map<std::string, infer::ValueFacts>& added() const { return added_; }

 private:
  void count(const ir::Node& node, size_t i, int by);
  bool is_read(size_t i) const;
  // Marks node `i` dead where nobody reads it, and the chain before it; lists them in `killed`.
  void kill_unread(size_t i, std::vector<size_t>& killed);

  struct Uses {
    int count = 0;
    std::vector<size_t> users;
  };
  ir::Graph& graph_;
  const infer::Scope& scope_;
  std::unordered_map<std::string, size_t> makers_;
  std::unordered_map<std::string, Uses> uses_;
  std::unordered_map<std::string, infer::ValueFacts> added_;
  FreshNames names_;
  std::vector<char> dead_;
  int64_t edits_ = 0;
};

}  // namespace sardonyx::passes
