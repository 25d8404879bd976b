// The contract of upgrading: carrying a node of an older version to the newest meaning.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/infer_context.h"
#include "ops/node_view.h"

namespace sardonyx::ops {

// An upgrade function changes node() in place and may emit helper nodes before or after it. It is
// called once per node whose bound version is older than the newest one, and goes straight to the
// newest: the rules of docs/upgrades.md compose. Helpers are emitted in their newest form and are
// not upgraded again. The rewrite gives what is emitted the origin of the node.
class UpgradeContext {
 public:
  struct Services {
    // A name that no value of the model has, made from `hint`.
    std::function<std::string(std::string_view hint)> fresh_name;
    // What is known of a value by name; null where nothing is.
    std::function<const ValueFacts*(std::string_view value)> known;
    bool assume_inference =
        false;  // BatchNormalization and Dropout without is_test are not training
  };

  // `since` is the version the node is bound to: the largest since_version <= the imported opset.
  UpgradeContext(ir::Node& node, int64_t since, const schema::Signature* old_signature,
                 const Services& services)
      : node_(node), since_(since), old_(old_signature), services_(services) {}

  ir::Node& node() { return node_; }
  int64_t since() const { return since_; }
  const NodeView old() const { return NodeView(node_, old_); }  // getters with the OLD defaults
  bool assume_inference() const { return services_.assume_inference; }

  bool has_input(size_t i) const { return i < node_.inputs.size() && !node_.inputs[i].empty(); }
  bool has_output(size_t i) const { return i < node_.outputs.size() && !node_.outputs[i].empty(); }
  // Types known before inference ran: of graph inputs, initializers, constants, value_info.
  ElementType element(size_t input) const;  // undefined where not known
  std::optional<int64_t> rank(size_t input) const;
  const Tensor* constant(size_t input) const;
  const ValueType* type(size_t input) const;

  // Attributes.
  void remove_attribute(std::string_view name);
  void set_attribute(std::string_view name, int64_t value);
  void set_attribute(std::string_view name, float value);
  void set_attribute(std::string_view name, std::string_view value);
  void set_attribute(std::string_view name, std::vector<int64_t> value);

  // Makes input i (the list grows with absent inputs as needed).
  void set_input(size_t i, std::string value);
  // Emits a Constant before the node; returns its value's name.
  std::string constant(Tensor tensor, std::string_view hint = "constant");
  std::string constant_ints(const std::vector<int64_t>& values, std::string_view hint = "constant");
  // A scalar in the element type of `like`: a constant when the type is known, else CastLike.
  std::string scalar_like(float value, size_t like_input, std::string_view hint = "constant");
  // Emits a helper before the node; returns its output's name.
  std::string before(std::string_view op, std::vector<std::string> inputs,
                     std::vector<ir::Attribute> attributes = {});
  // Gives output i of the node a fresh name and returns it; `after` must then make the old name.
  std::string detach_output(size_t i, std::string* old_name);
  void after(std::string_view op, std::vector<std::string> inputs, std::string output,
             std::vector<ir::Attribute> attributes = {});
  // Says what the old version does and the newest does not: output i has the shape of this input.
  void shape_like(size_t output, size_t input);
  // The node itself is dropped: what before() and after() emitted replaces it.
  void drop_node() { dropped_ = true; }
  // Emits a whole node (before); for the rare helper with several outputs or a subgraph.
  void before(ir::Node node) { before_.push_back(std::move(node)); }

  template <class... Args>
  [[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) const {
    old().fail(code, format, std::forward<Args>(args)...);
  }

  // What constant() and constant_ints() made, for callers that need no nodes for it; take_before
  // then leaves it out.
  struct NamedConstant {
    std::string name;
    ValueFacts value;
  };
  std::vector<NamedConstant> take_constants() { return std::exchange(constants_, {}); }
  // The helpers before the node: constants first.
  std::vector<ir::Node> take_before();
  struct NamedShape {
    std::string name;
    ir::Dims shape;
  };
  // Those of shape_like() that are known.
  std::vector<NamedShape> take_shapes() { return std::exchange(shapes_, {}); }
  std::vector<ir::Node> take_after() { return std::move(after_); }
  bool dropped() const { return dropped_; }

 private:
  ir::Attribute& replace_attribute(std::string_view name, ir::AttributeKind kind);

  ir::Node& node_;
  int64_t since_;
  const schema::Signature* old_;
  const Services& services_;
  std::vector<NamedConstant> constants_;
  std::vector<NamedShape> shapes_;
  mutable MadeConstants made_constants_;
  std::vector<ir::Node> before_;
  std::vector<ir::Node> after_;
  bool dropped_ = false;
};

ir::Attribute int_attribute(std::string name, int64_t value);
ir::Attribute float_attribute(std::string name, float value);
ir::Attribute string_attribute(std::string name, std::string value);
ir::Attribute ints_attribute(std::string name, std::vector<int64_t> value);
ir::Attribute tensor_attribute(std::string name, const Tensor& tensor);
ir::Attribute graph_attribute(std::string name, ir::Graph graph);
// raw_data form of a tensor (not strings: string_data).
ir::TensorProto tensor_proto(const Tensor& tensor, std::string name = {});

}  // namespace sardonyx::ops
