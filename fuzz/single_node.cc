#include "single_node.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "choices.h"
#include "wire/tensor.h"
#include "wire/write.h"

namespace sardonyx::fuzzing {
namespace {

using schema::TypeId;
using schema::TypeKind;

// What the standard's attributes of enumerations may say, and some that parse.
constexpr std::string_view words[] = {"",
                                      "NOTSET",
                                      "VALID",
                                      "SAME_UPPER",
                                      "SAME_LOWER",
                                      "constant",
                                      "reflect",
                                      "edge",
                                      "wrap",
                                      "nearest",
                                      "linear",
                                      "cubic",
                                      "bilinear",
                                      "bicubic",
                                      "zeros",
                                      "border",
                                      "reflection",
                                      "asymmetric",
                                      "half_pixel",
                                      "align_corners",
                                      "pytorch_half_pixel",
                                      "half_pixel_symmetric",
                                      "tf_crop_and_resize",
                                      "output_half_pixel",
                                      "floor",
                                      "ceil",
                                      "round_prefer_floor",
                                      "round_prefer_ceil",
                                      "stretch",
                                      "not_larger",
                                      "not_smaller",
                                      "forward",
                                      "reverse",
                                      "bidirectional",
                                      "foward",
                                      "Relu",
                                      "Tanh",
                                      "Sigmoid",
                                      "Affine",
                                      "LeakyRelu",
                                      "ThresholdedRelu",
                                      "ScaledTanh",
                                      "HardSigmoid",
                                      "Elu",
                                      "Softsign",
                                      "Softplus",
                                      "none",
                                      "add",
                                      "mul",
                                      "max",
                                      "min",
                                      "mean",
                                      "sum",
                                      "avg",
                                      "DCR",
                                      "CRD",
                                      "left",
                                      "right",
                                      "up",
                                      "down",
                                      "tanh",
                                      "NONE",
                                      "SOFTMAX",
                                      "LOGISTIC",
                                      "SOFTMAX_ZERO",
                                      "PROBIT",
                                      "SUM",
                                      "AVERAGE",
                                      "MIN",
                                      "MAX",
                                      "BRANCH_LEQ",
                                      "BRANCH_LT",
                                      "BRANCH_GTE",
                                      "BRANCH_GT",
                                      "BRANCH_EQ",
                                      "BRANCH_NEQ",
                                      "LEAF",
                                      "L1",
                                      "L2",
                                      "LINEAR",
                                      "POLY",
                                      "RBF",
                                      "SIGMOID",
                                      "DENSE",
                                      "SPARSE",
                                      "TO_FLOAT",
                                      "TO_STRING",
                                      "TO_INT64",
                                      "TF",
                                      "IDF",
                                      "TFIDF",
                                      "LOWER",
                                      "UPPER",
                                      "de_DE.UTF-8",
                                      "tr_TR",
                                      "RGB",
                                      "BGR",
                                      "Grayscale",
                                      "ij,jk->ik",
                                      "...ij->...ji",
                                      "ii->i",
                                      "i,i->",
                                      "ij->",
                                      "bij, bjk",
                                      "...",
                                      "[a-z]+",
                                      "(a|b)*c",
                                      "^\\w+@\\d$",
                                      "a",
                                      "b",
                                      "cat",
                                      "a b",
                                      "Ünï",
                                      "1.5",
                                      "-inf",
                                      "nan",
                                      "1e400",
                                      "TREE_LINEAR",
                                      "linear_before_reset",
                                      "gated_delta",
                                      "gated",
                                      "delta",
                                      "silu",
                                      "swish"};

class WordChoices : public Choices {
 public:
  using Choices::Choices;
  std::string word() {
    if (one_in(12)) {
      std::string random(below(9), ' ');
      for (char& c : random) c = static_cast<char>(byte());
      return random;
    }
    return std::string(words[below(std::size(words))]);
  }
};

class Drawing {
 public:
  Drawing(const uint8_t* data, size_t size) : choices_(data, size) {}

  SingleNode draw();

 private:
  Shape draw_shape();
  Tensor draw_tensor(ElementType type, Shape shape, Style style);
  Tensor draw_tensor(ElementType type);
  std::optional<Value> draw_value(TypeId type);
  ir::Graph draw_body(size_t count, size_t outputs);
  void draw_attribute(const schema::Attribute& attribute);
  void draw_attributes();
  void draw_inputs();
  void draw_outputs();
  void add_input(size_t position, const Value& value);
  TypeId draw_type(const schema::Formal& formal, bool apart);
  size_t count_of(std::span<const schema::Formal> formals, int32_t least, int32_t most);

  WordChoices choices_;
  SingleNode made_;
  ir::Node node_;
  ir::Graph graph_;
  Shape common_;                // what most shapes come from
  size_t list_ = 1;             // how long most lists are
  std::vector<TypeId> chosen_;  // by constraint
};

Shape Drawing::draw_shape() {
  Shape shape = common_;
  switch (choices_.below(12)) {
    case 6: {  // broadcasts to it
      for (int64_t& size : shape) size = choices_.one_in(2) ? 1 : size;
      shape.erase(shape.begin(),
                  shape.begin() + static_cast<std::ptrdiff_t>(choices_.below(shape.size() + 1)));
      break;
    }
    case 7: shape = {shape.size() > 1 ? shape[1] : int64_t{1}}; break;  // one a channel
    case 8: shape = {static_cast<int64_t>(choices_.below(6))}; break;
    case 9: shape = {}; break;
    case 10:
      if (!shape.empty())
        shape[choices_.below(shape.size())] = static_cast<int64_t>(choices_.below(7));
      break;
    case 11:
      shape.assign(choices_.below(7), 0);
      for (int64_t& size : shape) size = static_cast<int64_t>(choices_.below(4));
      break;
    default: break;
  }
  return shape;
}

Tensor Drawing::draw_tensor(ElementType type, Shape shape, Style style) {
  Tensor tensor(type, std::move(shape));
  if (type != ElementType::string) {
    draw_elements(choices_, style, tensor);
    return tensor;
  }
  for (std::string& word : tensor.mutable_elements<std::string>()) word = choices_.word();
  return tensor;
}

Tensor Drawing::draw_tensor(ElementType type) {
  Shape shape = draw_shape();
  return draw_tensor(type, std::move(shape), static_cast<Style>(choices_.below(6)));
}

// Nothing for types that no value can be made of.
std::optional<Value> Drawing::draw_value(TypeId type) {
  switch (type.kind()) {
    case TypeKind::tensor: return Value(draw_tensor(type.element()));
    case TypeKind::sequence: {
      Sequence sequence;
      for (size_t count = choices_.below(4); count > 0; --count) {
        auto item = draw_value(type.inner());
        if (!item) return {};
        sequence.items.push_back(*item);
      }
      return Value(std::move(sequence));
    }
    case TypeKind::optional: {
      Optional optional;
      if (choices_.below(3) > 0) {
        auto held = draw_value(type.inner());
        if (!held) return {};
        optional.held = std::make_unique<Value>(*held);
      }
      return Value(std::move(optional));
    }
    case TypeKind::map: {
      const auto count = static_cast<int64_t>(choices_.below(4));
      Map map;
      map.keys = Tensor(type.key(), {count});
      if (type.key() == ElementType::string) {
        for (int64_t i = 0; i < count; ++i)
          map.keys.mutable_elements<std::string>()[static_cast<size_t>(i)] =
              words[static_cast<size_t>(i)];
      } else {
        map.keys = draw_tensor(type.key(), {count}, Style::counted);
      }
      for (int64_t i = 0; i < count; ++i)
        map.values.emplace_back(draw_tensor(type.inner().element(), {}, Style::reals));
      return Value(std::move(map));
    }
    case TypeKind::sparse_tensor: {
      SparseTensor sparse;
      sparse.shape = draw_shape();
      const auto count = static_cast<int64_t>(choices_.below(3));
      sparse.values = draw_tensor(type.element(), {count}, Style::reals);
      sparse.indices = draw_tensor(ElementType::int64, {count}, Style::counted);
      return Value(std::move(sparse));
    }
    default: return {};
  }
}

// A graph that hands its inputs on: what bodies of If (no inputs), Loop and Scan do at least.
ir::Graph Drawing::draw_body(size_t count, size_t outputs) {
  ir::Graph body;
  body.name = "body";
  for (size_t i = 0; i < count; ++i) body.inputs.emplace_back().name = "b" + std::to_string(i);
  const size_t shift = choices_.below(3);
  for (size_t i = 0; i < outputs; ++i) {
    ir::Node node;
    const size_t kind = choices_.below(8);
    node.op_type = kind == 6 ? "Identity" : kind == 7 ? "Neg" : "Identity";
    const size_t from = i + shift;
    if (count > 0 && !choices_.one_in(6)) {
      node.inputs = {"b" + std::to_string(from % count)};
    } else {
      node.inputs = {"x" + std::to_string(from % 3)};
    }
    if (kind == 5) {
      node.op_type = "Add";
      node.inputs.push_back(node.inputs[0]);
    }
    node.outputs = {"r" + std::to_string(i)};
    body.nodes.push_back(node);
    body.outputs.emplace_back().name = node.outputs[0];
  }
  return body;
}

void Drawing::draw_attribute(const schema::Attribute& attribute) {
  ir::Attribute made;
  made.name = attribute.name;
  made.kind = attribute.kind;
  const size_t count = choices_.one_in(8) ? choices_.below(6) : list_;
  const auto tensor = [&] {
    constexpr ElementType types[] = {ElementType::float32, ElementType::int64, ElementType::float64,
                                     ElementType::uint8,   ElementType::int32, ElementType::string};
    const ElementType type = types[choices_.below(std::size(types))];
    const Shape shape = choices_.one_in(4) ? draw_shape() : Shape{static_cast<int64_t>(count)};
    return std::make_shared<const ir::TensorProto>(
        wire::to_proto(draw_tensor(type, shape, static_cast<Style>(choices_.below(6)))));
  };
  switch (attribute.kind) {
    case ir::AttributeKind::int_:
      // Element types are numbers, too: most lie below 27.
      made.i = attribute.has_default && choices_.one_in(3) ? attribute.default_int
               : choices_.one_in(4) ? static_cast<int64_t>(choices_.below(28))
                                    : choices_.integer();
      break;
    case ir::AttributeKind::float_: made.f = static_cast<float>(choices_.real()); break;
    case ir::AttributeKind::string: made.s = choices_.word(); break;
    case ir::AttributeKind::tensor: made.t = tensor(); break;
    case ir::AttributeKind::graph:
      made.g = std::make_shared<const ir::Graph>(
          draw_body(node_.op_type == "If" ? 0 : node_.inputs.size(),
                    choices_.one_in(4) ? choices_.below(4)
                                       : node_.outputs.size() + (node_.op_type == "Loop" ? 1 : 0)));
      break;
    case ir::AttributeKind::floats:
      for (size_t i = 0; i < count; ++i) made.floats.push_back(static_cast<float>(choices_.real()));
      break;
    case ir::AttributeKind::ints:
      for (size_t i = 0; i < count; ++i) made.ints.push_back(choices_.integer());
      break;
    case ir::AttributeKind::strings:
      for (size_t i = 0; i < count; ++i) made.strings.push_back(choices_.word());
      break;
    case ir::AttributeKind::tensors:
      for (size_t i = 0; i < count; ++i) made.tensors.push_back(tensor());
      break;
    case ir::AttributeKind::sparse_tensor:
      if (const auto value = draw_value(TypeId::sparse_tensor(ElementType::float32)))
        made.sparse_tensor =
            std::make_shared<const ir::SparseTensorProto>(wire::to_proto(value->sparse_tensor()));
      break;
    case ir::AttributeKind::type_proto:
      if (const auto value =
              draw_value(choices_.one_in(2) ? TypeId::sequence(TypeId::tensor(ElementType::float32))
                                            : TypeId::tensor(ElementType::int64)))
        made.tp = std::make_shared<const ir::TypeProto>(wire::type_of(*value));
      break;
    default: return;
  }
  node_.attributes.push_back(std::move(made));
}

void Drawing::draw_attributes() {
  const bool lean = made_.signature->attributes.size() > 2 && choices_.one_in(2);
  for (const schema::Attribute& attribute : made_.signature->attributes) {
    const bool wanted =
        attribute.required ? !choices_.one_in(24) : choices_.below(lean ? 8 : 2) == 0;
    if (wanted) draw_attribute(attribute);
  }
}

TypeId Drawing::draw_type(const schema::Formal& formal, bool apart) {
  std::vector<TypeId> types;  // that values can be made of
  for (const TypeId type : formal.types) {
    if (is_known(type.element())) types.push_back(type);
  }
  if (types.empty()) return {};
  if (formal.constraint < 0 || apart) return types[choices_.below(types.size())];
  TypeId& chosen = chosen_[static_cast<size_t>(formal.constraint)];
  if (!chosen.valid()) {
    // float32 where it is allowed, in one of three cases.
    const TypeId usual = TypeId::tensor(ElementType::float32);
    chosen = choices_.below(3) == 0 && schema::allows(formal, usual)
                 ? usual
                 : types[choices_.below(types.size())];
  }
  return chosen;
}

size_t Drawing::count_of(std::span<const schema::Formal> formals, int32_t least, int32_t most) {
  const auto low = static_cast<size_t>(least);
  const size_t high =
      most == schema::unlimited ? std::max(formals.size(), low) + 2 : static_cast<size_t>(most);
  if (choices_.one_in(40)) return choices_.below(high + 3);
  return low + choices_.below(high - std::min(high, low) + 1);
}

// The items of a sequence need not have the first one's shape.
ir::TypeProto without_inner_shapes(ir::TypeProto type) {
  if (!type.nested) return type;
  ir::TypeProto inner = without_inner_shapes(*type.nested);
  inner.shape.reset();
  type.nested = std::make_shared<const ir::TypeProto>(std::move(inner));
  return type;
}

void Drawing::add_input(size_t position, const Value& value) {
  const std::string name = "x" + std::to_string(position);
  node_.inputs.push_back(name);
  const size_t how = choices_.below(8);
  if (value.is_tensor() && how < 3) {
    graph_.initializers.push_back(wire::to_proto(value.tensor(), name));
    return;
  }
  ir::ValueInfo info;
  info.name = name;
  info.type = without_inner_shapes(wire::type_of(value));
  if (info.type->kind == ir::TypeProto::Kind::tensor && how == 7) info.type->shape.reset();
  if (info.type->shape && how >= 5) {
    for (size_t i = 0; i < info.type->shape->dims.size(); ++i) {
      ir::Dimension dimension;
      if (how == 5) dimension.param = name + "_" + std::to_string(i);
      info.type->shape->dims[i] = dimension;
    }
  }
  graph_.inputs.push_back(std::move(info));
  made_.inputs.emplace_back(name, value);
}

void Drawing::draw_inputs() {
  const schema::Signature& signature = *made_.signature;
  const size_t count = count_of(signature.inputs, signature.min_inputs, signature.max_inputs);
  for (size_t i = 0; i < count; ++i) {
    const schema::Formal* formal = signature.input(i);
    if (formal == nullptr) formal = signature.inputs.empty() ? nullptr : &signature.inputs.back();
    const bool absent = formal == nullptr ||
                        (formal->option == schema::FormalOption::optional ? choices_.one_in(4)
                                                                          : choices_.one_in(60));
    // The types of If, Loop and Scan differ from input to input.
    const bool apart = formal != nullptr && (!formal->homogeneous || choices_.one_in(40));
    const auto value = absent ? std::nullopt : draw_value(draw_type(*formal, apart));
    if (value) {
      add_input(i, *value);
    } else {
      node_.inputs.emplace_back();
    }
  }
}

void Drawing::draw_outputs() {
  const schema::Signature& signature = *made_.signature;
  const size_t count = std::max<size_t>(
      1, count_of(signature.outputs, signature.min_outputs, signature.max_outputs));
  for (size_t i = 0; i < count; ++i) {
    const bool absent = i > 0 && choices_.one_in(8);
    node_.outputs.push_back(absent ? std::string() : "y" + std::to_string(i));
    if (!absent) graph_.outputs.emplace_back().name = node_.outputs.back();
  }
}

SingleNode Drawing::draw() {
  const auto all = schema::all_signatures();
  const schema::Signature& signature = all[choices_.below(all.size())];
  made_.signature = &signature;
  node_.op_type = signature.name;
  node_.domain = signature.domain;
  chosen_.resize(signature.constraints.size());

  common_.assign(choices_.below(6), 0);
  for (int64_t& size : common_) {
    const size_t kind = choices_.below(16);
    size = kind == 15 ? 33 : kind == 14 ? 9 : kind == 13 ? 0 : static_cast<int64_t>(1 + kind % 4);
  }
  list_ = choices_.one_in(2) ? choices_.below(5)
                             : std::max<size_t>(common_.size(), 2) - (choices_.one_in(2) ? 2 : 0);
  if (choices_.one_in(4)) list_ *= 2;

  draw_inputs();
  draw_outputs();
  draw_attributes();

  made_.model.ir_version = 13;
  const bool standard = signature.domain.empty();
  made_.model.opset_imports.push_back({std::string(signature.domain), signature.since, {}});
  if (!standard) made_.model.opset_imports.push_back({"", 20, {}});
  graph_.name = "single";
  graph_.nodes.push_back(std::move(node_));
  made_.model.graph = std::move(graph_);
  return std::move(made_);
}

}  // namespace

SingleNode draw_single_node(const uint8_t* data, size_t size) { return Drawing(data, size).draw(); }

}  // namespace sardonyx::fuzzing
