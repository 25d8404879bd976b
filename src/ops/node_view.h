// What every stage of an operator sees of its node: name, arity, attributes with their defaults.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/model.h"
#include "sardonyx/error.h"
#include "schema/schema.h"

namespace sardonyx::ops {

// Attribute getters look at the node first, then at the signature's default; `fallback` stands in
// where the standard says "absent means …" without a default. All throw Error(invalid_model) where
// the attribute has another kind, or is absent, required and has no default. Borrows the node and
// the signature (null for operators outside the standard).
class NodeView {
 public:
  NodeView(const ir::Node& node, const schema::Signature* signature)
      : node_(node), signature_(signature) {}

  const ir::Node& node() const { return node_; }
  const schema::Signature* signature() const { return signature_; }

  int input_count() const { return static_cast<int>(node_.inputs.size()); }  // absent ones included
  int output_count() const { return static_cast<int>(node_.outputs.size()); }
  bool has_input(int i) const {
    return i < input_count() && !node_.inputs[static_cast<size_t>(i)].empty();
  }
  bool has_output(int i) const {
    return i < output_count() && !node_.outputs[static_cast<size_t>(i)].empty();
  }

  bool has_attribute(std::string_view name) const { return node_.find(name) != nullptr; }
  int64_t attr_int(std::string_view name) const;
  int64_t attr_int(std::string_view name, int64_t fallback) const;
  float attr_float(std::string_view name) const;
  float attr_float(std::string_view name, float fallback) const;
  std::string attr_string(std::string_view name) const;
  std::string attr_string(std::string_view name, std::string_view fallback) const;
  // nullopt where absent and without a default.
  std::optional<std::vector<int64_t>> attr_ints(std::string_view name) const;
  std::optional<std::vector<float>> attr_floats(std::string_view name) const;
  std::optional<std::vector<std::string>> attr_strings(std::string_view name) const;
  const ir::TensorProto* attr_tensor(std::string_view name) const;  // null where absent
  const ir::Graph* attr_graph(std::string_view name) const;         // null where absent
  const ir::TypeProto* attr_type(std::string_view name) const;      // null where absent

  // "Softmax 'attn/probs'" with the node's origin where a rewrite has recorded one.
  std::string place() const;
  // "input 'scores'" / "input 2" for messages.
  std::string input_name(int i) const;

  // Reports what is wrong with this node, with its place before the message.
  template <class... Args>
  [[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) const {
    throw Error(code, fmt::format(format, std::forward<Args>(args)...), place());
  }
  // The usual code: the model asks for something that can't be.
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw Error(ErrorCode::invalid_model, fmt::format(format, std::forward<Args>(args)...),
                place());
  }
  // An axis in [-rank, rank-1] made non-negative; fails with the rule and the value otherwise.
  int64_t normalized_axis(int64_t axis, int64_t rank, std::string_view what = "axis") const;

 private:
  const ir::Attribute* attribute(std::string_view name, ir::AttributeKind kind) const;
  const schema::Attribute* declared(std::string_view name) const;
  [[noreturn]] void missing(std::string_view name) const;

  const ir::Node& node_;
  const schema::Signature* signature_;
};

}  // namespace sardonyx::ops
