// Puts nodes into a graph of a training model.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/model.h"
#include "sardonyx/value.h"

namespace sardonyx::train {

// The domain of the functions that make_trainable adds.
inline constexpr std::string_view function_domain = "sardonyx.training";
inline constexpr std::string_view preview_domain = "ai.onnx.preview.training";

// Names of values and inputs that a model has, and those it gets.
class NamePool {
 public:
  explicit NamePool(std::set<std::string> taken) : taken_(std::move(taken)) {}
  // The hint itself where it is free, else with a number.
  std::string make(const std::string& hint);

 private:
  std::set<std::string> taken_;
};

class GraphBuilder {
 public:
  // Numbers are of type `element`: float32 or float64.
  GraphBuilder(ir::Graph& graph, NamePool& names, ElementType element)
      : graph_(graph), names_(names), element_(element) {}

  ElementType element() const { return element_; }
  std::string name(const std::string& hint) { return names_.make(hint); }

  // A node; the name of its only output, made of the hint or of the operator's name.
  std::string add(const std::string& op, std::vector<std::string> inputs,
                  std::vector<ir::Attribute> attributes = {}, const std::string& hint = {});
  // A node with these outputs.
  ir::Node& add_to(const std::string& op, std::vector<std::string> inputs,
                   std::vector<std::string> outputs, std::vector<ir::Attribute> attributes = {});
  std::string number(double value);  // a scalar
  std::string integer(int64_t value);
  std::string truth(bool value);
  std::string integers(std::vector<int64_t> values);
  std::string cast(const std::string& value, ElementType to);

  // An initializer of the graph; its name.
  std::string initializer(const std::string& hint, const Tensor& tensor);
  void output(const std::string& name, ElementType element, const Shape& shape);

 private:
  std::string constant(const Tensor& tensor);

  ir::Graph& graph_;
  NamePool& names_;
  const ElementType element_;
};

ir::Attribute strings_attribute(std::string name, std::vector<std::string> values);
ir::ValueInfo value_info(const std::string& name, ElementType element, const Shape& shape);
Tensor zeros(ElementType element, const Shape& shape);
Tensor scalar(ElementType element, double value);

// '*' stands for any text, '?' for one character.
bool fits(std::string_view pattern, std::string_view text);
bool fits_any(const std::vector<std::string>& patterns, std::string_view text);

}  // namespace sardonyx::train
