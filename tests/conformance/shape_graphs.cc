#include "shape_graphs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "base/thread_pool.h"
#include "eval/eval.h"
#include "ir/tensor.h"
#include "ops/upgrade_context.h"
#include "schema/schema.h"

namespace sardonyx::conformance {
namespace {

using ops::int_attribute;
using ops::ints_attribute;
using ops::string_attribute;
using Numbers = std::vector<int64_t>;
using Attributes = std::vector<ir::Attribute>;

constexpr int64_t max_elements = 4096;
constexpr int64_t max_magnitude = 1'000'000;

struct Input {
  const char* name;
  ElementType element;
  std::vector<const char*> sizes;
};

const std::vector<Input>& inputs_of_all() {
  static const std::vector<Input> inputs = {
      {"x", ElementType::float32, {"a", "b"}},
      {"y", ElementType::float32, {"a", "c", "d"}},
      {"z", ElementType::float32, {"n"}},
      {"w", ElementType::float32, {"b", "n"}},
      {"p", ElementType::float32, {"a", "b", "c", "d"}},
      {"k", ElementType::int64, {}},
      {"m", ElementType::int64, {"n"}},
  };
  return inputs;
}

ir::TypeProto type_of(const Input& input) {
  ir::TypeProto type;
  type.kind = ir::TypeProto::Kind::tensor;
  type.elem_type = static_cast<int32_t>(input.element);
  type.shape.emplace();
  for (const char* size : input.sizes) type.shape->dims.emplace_back().param = size;
  return type;
}

Tensor filled(ElementType element, Shape shape, std::mt19937_64& random) {
  Tensor tensor(element, std::move(shape));
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const auto number = static_cast<int64_t>(random() % 8) - 2;
    if (element == ElementType::int64) {
      static_cast<int64_t*>(tensor.mutable_data())[i] = number;
    } else {
      static_cast<float*>(tensor.mutable_data())[i] = static_cast<float>(number) / 2;
    }
  }
  return tensor;
}

// What later nodes may take: no large tensors, no numbers that overflow soon.
bool is_moderate(const Value& value) {
  if (value.kind() == Value::Kind::sequence) {
    const auto& items = value.sequence().items;
    return items.size() < 40 && std::ranges::all_of(items, is_moderate);
  }
  if (value.kind() == Value::Kind::optional)
    return value.optional().held == nullptr || is_moderate(*value.optional().held);
  if (!value.is_tensor() || value.tensor().size() > max_elements) return false;
  const Tensor& tensor = value.tensor();
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (tensor.element_type() == ElementType::int64 &&
        std::abs(static_cast<const int64_t*>(tensor.data())[i]) > max_magnitude)
      return false;
    if (tensor.element_type() == ElementType::float32 &&
        !(std::fabs(static_cast<const float*>(tensor.data())[i]) <= max_magnitude))
      return false;
  }
  return true;
}

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed), pool_(1), environment_(pool_) {
    environment_.memory_limit = int64_t{1} << 28;
    graph_.name = "g";
  }

  ShapeGraph run(int nodes) {
    ShapeGraph made;
    for (const Input& input : inputs_of_all()) {
      ir::ValueInfo& info = graph_.inputs.emplace_back();
      info.name = input.name;
      info.type = type_of(input);
    }
    made.model.graph = graph_;
    const std::vector<Value> values = made.draw_inputs(random_, 2);
    for (size_t i = 0; i < values.size(); ++i) keep(inputs_of_all()[i].name, values[i]);
    for (int tries = 0; tries < 20 * nodes && static_cast<int>(graph_.nodes.size()) < nodes;
         ++tries)
      draw_node();
    make_outputs();
    made.model.graph = std::move(graph_);
    made.model.ir_version = 10;
    made.model.opset_imports.push_back({"", schema::latest_opset(""), {}});
    return made;
  }

 private:
  struct Held {
    std::string name;
    Value value;
  };

  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool one_in(int64_t n) { return below(n) == 0; }
  template <class T>
  const T& any_of(const std::vector<T>& list) {
    return list[static_cast<size_t>(below(static_cast<int64_t>(list.size())))];
  }

  void keep(std::string name, Value value) {
    frame_.set(name, value);
    held_.push_back({std::move(name), std::move(value)});
  }

  // --- Values to take

  using Is = std::function<bool(const Value&)>;
  static bool is_tensor(const Value& v, ElementType type) {
    return v.is_tensor() && v.tensor().element_type() == type;
  }
  static bool is_vector(const Value& v) {
    return is_tensor(v, ElementType::int64) && v.tensor().rank() == 1 && v.tensor().size() <= 8;
  }
  static bool is_scalar(const Value& v) {
    return is_tensor(v, ElementType::int64) && v.tensor().rank() == 0;
  }
  static bool is_integer(const Value& v) { return is_vector(v) || is_scalar(v); }
  static bool is_real(const Value& v) {
    return is_tensor(v, ElementType::float32) && v.tensor().rank() <= 1 && v.tensor().size() <= 8;
  }
  static bool is_flag(const Value& v) { return is_tensor(v, ElementType::boolean); }
  static bool is_data(const Value& v) {
    return is_tensor(v, ElementType::float32) && v.tensor().rank() >= 1 && v.tensor().rank() <= 5;
  }
  static bool is_sequence(const Value& v) { return v.kind() == Value::Kind::sequence; }
  static bool is_optional(const Value& v) { return v.kind() == Value::Kind::optional; }

  // Mostly one of the last; null where there is none.
  const Held* take(const Is& is) {
    std::vector<const Held*> found;
    for (const Held& held : held_) {
      if (is(held.value)) found.push_back(&held);
    }
    if (found.empty()) return nullptr;
    if (found.size() > 6 && !one_in(3)) found.erase(found.begin(), found.end() - 6);
    return any_of(found);
  }

  std::string constant(const Tensor& tensor) {
    std::string name = fmt::format("c{}", graph_.initializers.size());
    graph_.initializers.push_back(ir::to_proto(tensor, name));
    frame_.set(name, tensor);
    return name;
  }
  std::string numbers(const Numbers& values) {
    return constant(Tensor::of<int64_t>(values, {static_cast<int64_t>(values.size())}));
  }
  std::string number(int64_t value) { return constant(Tensor::scalar<int64_t>(value)); }
  // A vector of integers out of the graph, or of numbers.
  std::string vector(int64_t low = -2, int64_t high = 4) {
    const Held* held = take(is_vector);
    if (held && !one_in(3)) return held->name;
    Numbers drawn(static_cast<size_t>(between(1, 4)));
    for (int64_t& value : drawn) value = between(low, high);
    return numbers(drawn);
  }

  // --- Nodes

  // Adds the node where it runs and makes what later ones can take.
  bool add(std::string_view op, std::vector<std::string> inputs, Attributes attributes = {},
           int outputs = 1) {
    ir::Node node;
    node.op_type = op;
    node.inputs = std::move(inputs);
    node.attributes = std::move(attributes);
    for (int i = 0; i < outputs; ++i) node.outputs.push_back(fmt::format("v{}", made_ + i));
    std::vector<Value> values, made;
    for (const std::string& name : node.inputs) {
      const Value* found = name.empty() ? nullptr : frame_.find(name);
      values.push_back(found ? *found : Value());
    }
    try {
      made = eval::run_node(node, values, frame_, environment_);
    } catch (const Error&) {
      return false;
    }
    if (!std::ranges::all_of(made, is_moderate)) return false;
    made_ += outputs;
    for (size_t i = 0; i < made.size(); ++i) keep(node.outputs[i], std::move(made[i]));
    graph_.nodes.push_back(std::move(node));
    return true;
  }

  void draw_node() {
    using Way = void (Draw::*)();
    static const std::vector<std::pair<int, Way>> ways = {
        {8, &Draw::shape},    {4, &Draw::pick},      {5, &Draw::join},     {8, &Draw::arithmetic},
        {3, &Draw::compare},  {3, &Draw::where},     {3, &Draw::cut},      {3, &Draw::reduce},
        {6, &Draw::floats},   {3, &Draw::range},     {3, &Draw::fill},     {5, &Draw::reshape},
        {4, &Draw::widen},    {3, &Draw::move},      {3, &Draw::resize},   {3, &Draw::decided},
        {2, &Draw::branch},   {2, &Draw::loop},      {4, &Draw::sequence}, {2, &Draw::optional},
        {3, &Draw::together}, {2, &Draw::rearrange}, {2, &Draw::split},    {1, &Draw::window}};
    int64_t total = 0;
    for (const auto& [weight, way] : ways) total += weight;
    int64_t at = below(total);
    for (const auto& [weight, way] : ways) {
      at -= weight;
      if (at < 0) return (this->*way)();
    }
  }

  void shape() {
    const Held* data = take(is_data);
    if (!data) return;
    if (one_in(4)) return void(add("Size", {data->name}));
    Attributes attributes;
    if (one_in(2)) attributes.push_back(int_attribute("start", between(-3, 2)));
    if (one_in(2)) attributes.push_back(int_attribute("end", between(-1, 4)));
    add("Shape", {data->name}, std::move(attributes));
  }
  void pick() {
    const Held* from = take(is_vector);
    if (!from) return;
    if (one_in(2)) return void(add("Gather", {from->name, number(between(-2, 2))}));
    if (one_in(2))
      return void(add("Gather", {from->name, numbers({between(-1, 1), between(0, 2)})}));
    add("Slice", {from->name, numbers({between(-3, 2)}), numbers({between(-2, 9)}), numbers({0}),
                  numbers({one_in(3) ? -1 : between(1, 2)})});
  }
  // Scalars stand in lists once they have an axis.
  std::string as_vector(const Held& held) {
    if (is_vector(held.value)) return held.name;
    return add("Unsqueeze", {held.name, numbers({0})}) ? held_.back().name : std::string();
  }
  void join() {
    std::vector<std::string> parts;
    for (int64_t i = between(2, 4); i > 0; --i) {
      const Held* held = take(is_integer);
      if (!held || one_in(4)) {
        parts.push_back(numbers({between(-1, 3)}));
      } else {
        parts.push_back(as_vector(Held(*held)));
      }
      if (parts.back().empty()) return;
    }
    add("Concat", std::move(parts), {int_attribute("axis", 0)});
  }
  void arithmetic() {
    const Held* a = take(is_integer);
    if (!a) return;
    if (one_in(6)) return void(add(any_of<std::string>({"Neg", "Abs", "Sign"}), {a->name}));
    const std::string left = a->name;
    const Held* b = take(is_integer);
    const std::string right = b && !one_in(3) ? b->name : number(between(-2, 5));
    const std::string op = any_of<std::string>({"Add", "Sub", "Mul", "Div", "Mod", "Max", "Min"});
    add(op, one_in(4) ? std::vector{right, left} : std::vector{left, right});
  }
  void compare() {
    const Held* a = take(is_integer);
    if (!a) return;
    const std::string left = a->name;
    if (const Held* flag = take(is_flag); flag && one_in(3)) {
      const Held* other = take(is_flag);
      if (one_in(3)) return void(add("Not", {flag->name}));
      return void(add(any_of<std::string>({"And", "Or", "Xor"}), {flag->name, other->name}));
    }
    const Held* b = take(is_integer);
    add(any_of<std::string>({"Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"}),
        {left, one_in(2) ? number(between(-1, 4)) : b->name});
  }
  void where() {
    const Held *flag = take(is_flag), *a = take(is_integer), *b = take(is_integer);
    if (!flag || !a) return;
    if (one_in(3)) return void(add("Cast", {flag->name}, {int_attribute("to", 7)}));
    add("Where", {flag->name, a->name, one_in(3) ? number(between(-1, 3)) : b->name});
  }
  void cut() {
    const Held* data = take(is_data);
    if (!data) return;
    const std::string from = data->name;
    const int64_t rank = data->value.tensor().rank();
    const auto bound = [&](int64_t low, int64_t high) {
      const Held* held = one_in(3) ? nullptr : take(is_integer);
      return held ? as_vector(Held(*held)) : numbers({between(low, high)});
    };
    const std::string start = bound(-3, 2), end = bound(-2, 9);
    if (start.empty() || end.empty()) return;
    add("Slice", {from, start, end, numbers({between(-rank, rank - 1)}),
                  numbers({one_in(4) ? between(-2, -1) : between(1, 3)})});
  }
  void reduce() {
    const Held* from = take(one_in(3) ? Is(is_data) : Is(is_vector));
    if (!from) return;
    const int64_t rank = from->value.tensor().rank();
    const std::string axes = one_in(4) ? "" : numbers({between(-rank, rank - 1)});
    if (one_in(6) && is_vector(from->value)) return void(add("CumSum", {from->name, number(0)}));
    add(any_of<std::string>({"ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin"}),
        {from->name, axes}, {int_attribute("keepdims", below(2))});
  }
  void floats() {
    if (const Held* real = take(is_real); real && !one_in(3)) {
      const std::string from = real->name;
      if (one_in(3)) return void(add("Cast", {from}, {int_attribute("to", 7)}));
      if (one_in(3))
        return void(
            add(any_of<std::string>({"Floor", "Ceil", "Round", "Neg", "Abs", "Relu"}), {from}));
      const Held* other = take(is_real);
      const float factor = any_of<float>({0.5f, 2.0f, 0.25f, 1.5f, 0.6f, 3.0f, 0.1f});
      add(any_of<std::string>({"Mul", "Mul", "Div", "Add", "Sub", "Max", "Min"}),
          {from, one_in(3) ? other->name : constant(Tensor::scalar<float>(factor))});
    } else if (const Held* whole = take(is_integer)) {
      add("Cast", {whole->name}, {int_attribute("to", 1)});
    }
  }
  void range() {
    const Held *end = take(is_scalar), *start = take(is_scalar);
    if (!end) return;
    add("Range", {one_in(3) ? start->name : number(between(-1, 2)), end->name,
                  number(one_in(4) ? between(-2, -1) : between(1, 3))});
  }
  void fill() {
    const Held* sizes = take(is_vector);
    if (!sizes) return;
    const Tensor value =
        one_in(3) ? Tensor::of<int64_t>({between(-1, 3)}, {1}) : Tensor::of<float>({0.5f}, {1});
    add("ConstantOfShape", {sizes->name}, {ops::tensor_attribute("value", value)});
  }
  void reshape() {
    const Held* data = take(is_data);
    if (!data) return;
    const std::string from = data->name;
    const int64_t rank = data->value.tensor().rank();
    switch (below(5)) {
      case 0: return void(add("Flatten", {from}, {int_attribute("axis", between(-rank, rank))}));
      case 1: return void(add("Unsqueeze", {from, numbers({between(-rank - 1, rank)})}));
      case 2:
        return void(add("Squeeze", one_in(2)
                                       ? std::vector{from}
                                       : std::vector{from, numbers({between(-rank, rank - 1)})}));
      default: break;
    }
    const Held* size = take(is_integer);
    std::string asked = vector(-1, 3);
    if (size && one_in(2)) {
      const std::string part = as_vector(Held(*size));
      if (part.empty() ||
          !add("Concat",
               one_in(2) ? std::vector{part, numbers({-1})} : std::vector{numbers({-1}), part},
               {int_attribute("axis", 0)}))
        return;
      asked = held_.back().name;
    }
    // A size that is 0 in some runs would be a copy there: only of numbers that is told before.
    const bool open = !asked.starts_with('c');
    add("Reshape", {from, asked}, {int_attribute("allowzero", open || one_in(4))});
  }
  void widen() {
    const Held* data = take(is_data);
    if (!data) return;
    const std::string from = data->name;
    const auto rank = static_cast<size_t>(data->value.tensor().rank());
    const Held* sizes = take(is_vector);
    Numbers pads(2 * rank);
    for (int64_t& pad : pads) pad = between(-1, 2);
    switch (below(4)) {
      case 0: return void(sizes && add("Expand", {from, sizes->name}));
      case 1: return void(sizes && add("Tile", {from, sizes->name}));
      case 2:
        if (sizes && static_cast<size_t>(sizes->value.tensor().size()) == 2 * rank)
          return void(add("Pad", {from, sizes->name}));
        return void(add("Pad", {from, numbers(pads)}));
      default: return void(sizes && add("CenterCropPad", {from, sizes->name}));
    }
  }
  void move() {
    const Held *data = take(is_data), *places = take(is_vector);
    if (!data) return;
    const int64_t rank = data->value.tensor().rank();
    if (one_in(2) && places)
      return void(add("Gather", {data->name, places->name},
                      {int_attribute("axis", between(-rank, rank - 1))}));
    Numbers order(static_cast<size_t>(rank));
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
    std::shuffle(order.begin(), order.end(), random_);
    add("Transpose", {data->name}, {ints_attribute("perm", std::move(order))});
  }
  void resize() {
    const Held* data = take(is_data);
    if (!data) return;
    const std::string from = data->name;
    const int64_t rank = data->value.tensor().rank();
    const auto fits = [&](const Value& v) { return v.is_tensor() && v.tensor().size() == rank; };
    const Held* sizes = take([&](const Value& v) { return is_vector(v) && fits(v); });
    const Held* scales =
        take([&](const Value& v) { return is_real(v) && v.tensor().rank() == 1 && fits(v); });
    if (sizes && one_in(2)) return void(add("Resize", {from, "", "", sizes->name}));
    if (scales && one_in(2)) return void(add("Resize", {from, "", scales->name}));
    std::vector<float> factors(static_cast<size_t>(rank));
    for (float& factor : factors)
      factor = any_of<float>({1, 1, 2, 0.5f, 0.6f, 1.3f, 0.7f, 1.1f, 0.33f, 3});
    add("Resize", {from, "", constant(Tensor::of<float>(factors, {rank}))});
  }
  void decided() {
    const Held* data = take(is_data);
    if (!data) return;
    const std::string from = data->name;
    const Held* k = take(is_scalar);
    switch (below(4)) {
      case 0: return void(add("NonZero", {from}));
      case 1: {
        const std::string count = k && !one_in(3) ? as_vector(Held(*k)) : numbers({between(0, 2)});
        return void(!count.empty() && add("TopK", {from, count}, {}, 2));
      }
      case 2: return void(add("Unique", {from}, {}, 1));
      default: {
        const Held* flags =
            take([](const Value& v) { return is_flag(v) && v.tensor().rank() == 1; });
        return void(flags && add("Compress", {from, flags->name}, {int_attribute("axis", 0)}));
      }
    }
  }

  // A graph of one node that reads values from around it, and takes `inputs`.
  static std::shared_ptr<const ir::Graph> body(
      std::vector<std::pair<std::string, ir::TypeProto>> inputs, std::vector<ir::Node> nodes,
      std::vector<std::pair<std::string, ir::TypeProto>> outputs) {
    auto graph = std::make_shared<ir::Graph>();
    graph->name = "inner";
    const auto list = [](auto& from, std::vector<ir::ValueInfo>& to) {
      for (auto& [name, type] : from) {
        ir::ValueInfo& info = to.emplace_back();
        info.name = name;
        info.type = type;
      }
    };
    list(inputs, graph->inputs);
    list(outputs, graph->outputs);
    graph->nodes = std::move(nodes);
    return graph;
  }
  static ir::TypeProto tensor_type(ElementType element) {
    ir::TypeProto type;
    type.kind = ir::TypeProto::Kind::tensor;
    type.elem_type = static_cast<int32_t>(element);
    return type;
  }
  static ir::Node node(std::string op, std::vector<std::string> inputs,
                       std::vector<std::string> outputs, Attributes attributes = {}) {
    ir::Node made;
    made.op_type = std::move(op);
    made.inputs = std::move(inputs);
    made.outputs = std::move(outputs);
    made.attributes = std::move(attributes);
    return made;
  }
  static ir::Attribute graph_attribute(std::string name, std::shared_ptr<const ir::Graph> graph) {
    ir::Attribute attribute;
    attribute.name = std::move(name);
    attribute.kind = ir::AttributeKind::graph;
    attribute.g = std::move(graph);
    return attribute;
  }

  // If of two values as they are or changed, of one type.
  void branch() {
    const Held* flag = take([](const Value& v) { return is_flag(v) && v.tensor().size() == 1; });
    const bool whole = one_in(2);
    const Held *a = take(whole ? Is(is_vector) : Is(is_data)),
               *b = take(whole ? Is(is_vector) : Is(is_data));
    if (!flag || !a || !b) return;
    const ElementType type = whole ? ElementType::int64 : ElementType::float32;
    const auto side = [&](const Held& held, const std::string& name) {
      ir::Node made =
          one_in(2) ? node("Identity", {held.name}, {name})
                    : node("Concat", {held.name, held.name}, {name}, {int_attribute("axis", 0)});
      return body({}, {std::move(made)}, {{name, tensor_type(type)}});
    };
    add("If", {flag->name},
        {graph_attribute("then_branch", side(*a, "yes")),
         graph_attribute("else_branch", side(*b, "no"))});
  }
  // A Loop that joins rows to what it carries, or cuts it, or adds to sizes.
  void loop() {
    const bool whole = one_in(2);
    const Held *first = take(whole ? Is(is_vector) : Is(is_data)), *trips = take(is_scalar);
    const Held* more = take(whole ? Is(is_vector) : Is(is_data));
    if (!first || !more) return;
    const ElementType type = whole ? ElementType::int64 : ElementType::float32;
    const std::string start = first->name, rest = more->name;
    std::string count = trips ? trips->name : number(between(0, 4));
    if (trips && !add("Clip", {count, number(0), number(5)})) return;
    if (trips) count = held_.back().name;
    std::vector<ir::Node> nodes = {node("Identity", {"go"}, {"on"})};
    switch (below(3)) {
      case 0:
        nodes.push_back(node("Concat", {"now", rest}, {"next"}, {int_attribute("axis", 0)}));
        break;
      case 1:
        nodes.push_back(
            node("Slice", {"now", numbers({0}), numbers({-1}), numbers({0})}, {"next"}));
        break;
      default: nodes.push_back(node("Add", {"now", rest}, {"next"}));
    }
    nodes.push_back(node("Shape", {one_in(2) ? "now" : "next"}, {"row"}));
    add("Loop", {count, "", start},
        {graph_attribute("body", body({{"i", tensor_type(ElementType::int64)},
                                       {"go", tensor_type(ElementType::boolean)},
                                       {"now", tensor_type(type)}},
                                      std::move(nodes),
                                      {{"on", tensor_type(ElementType::boolean)},
                                       {"next", tensor_type(type)},
                                       {"row", tensor_type(ElementType::int64)}}))},
        2);
  }

  void sequence() {
    const Held *list = take(is_sequence), *data = take(is_data), *other = take(is_data);
    if (!data) return;
    if (!list || one_in(4)) {
      const Held* part = take(is_integer);
      if (one_in(2)) return void(add("SequenceConstruct", {data->name, other->name}));
      return void(
          add("SplitToSequence",
              one_in(3) && part ? std::vector{data->name, part->name} : std::vector{data->name},
              {int_attribute("axis", 0), int_attribute("keepdims", below(2))}));
    }
    const std::string from = list->name;
    const Held* at = take(is_scalar);
    const std::string place = at && one_in(3) ? at->name : number(between(-1, 1));
    switch (below(6)) {
      case 0: return void(add("SequenceInsert", {from, data->name}));
      case 1: return void(add("SequenceErase", {from, place}));
      case 2: return void(add("SequenceAt", {from, place}));
      case 3: return void(add("SequenceLength", {from}));
      default:
        add("ConcatFromSequence", {from},
            {int_attribute("axis", between(-1, 1)), int_attribute("new_axis", below(2))});
    }
  }
  void optional() {
    const Held *held = take(is_optional), *list = take(is_sequence), *data = take(is_data);
    if (held && !one_in(3))
      return void(add(one_in(2) ? "OptionalGetElement" : "OptionalHasElement", {held->name}));
    if (list && one_in(2)) return void(add("Optional", {list->name}));
    if (data) add("Optional", {data->name});
  }
  void together() {
    const Held *a = take(is_data), *b = take(is_data);
    if (!a) return;
    const int64_t rank = a->value.tensor().rank();
    switch (below(3)) {
      case 0: return void(add("MatMul", {a->name, b->name}));
      case 1:
        return void(
            add("Concat", {a->name, b->name}, {int_attribute("axis", between(-rank, rank - 1))}));
      default: add(any_of<std::string>({"Add", "Mul", "Max"}), {a->name, b->name});
    }
  }
  void rearrange() {
    const Held* data = take(is_data);
    if (!data) return;
    switch (below(4)) {
      case 0: return void(add("DepthToSpace", {data->name}, {int_attribute("blocksize", 2)}));
      case 1: return void(add("SpaceToDepth", {data->name}, {int_attribute("blocksize", 2)}));
      case 2: return void(add("Trilu", {data->name}));
      default: {
        const Held* depth = take(is_scalar);
        const Held* places = take(is_vector);
        if (depth && places)
          add("OneHot", {places->name, depth->name, constant(Tensor::of<float>({0, 1}, {2}))});
      }
    }
  }
  void split() {
    const Held *data = take(is_data), *sizes = take(is_vector);
    if (!data) return;
    const int64_t rank = data->value.tensor().rank(), axis = between(-rank, rank - 1);
    if (sizes && one_in(2))
      return void(add("Split", {data->name, sizes->name}, {int_attribute("axis", axis)},
                      static_cast<int>(std::max<int64_t>(sizes->value.tensor().size(), 1))));
    add("Split", {data->name}, {int_attribute("axis", axis), int_attribute("num_outputs", 2)}, 2);
  }
  void window() {
    const Held* data = take([](const Value& v) { return is_data(v) && v.tensor().rank() == 4; });
    if (!data) return;
    Attributes attributes = {ints_attribute("kernel_shape", {2, between(1, 3)}),
                             ints_attribute("strides", {between(1, 2), between(1, 3)}),
                             int_attribute("ceil_mode", below(2))};
    if (one_in(2)) {
      attributes.push_back(string_attribute("auto_pad", one_in(2) ? "SAME_UPPER" : "VALID"));
    } else {
      attributes.push_back(ints_attribute("pads", {1, 0, 0, 0}));
    }
    add(one_in(2) ? "MaxPool" : "AveragePool", {data->name}, std::move(attributes));
  }

  // What nobody reads, and some of the rest.
  void make_outputs() {
    std::map<std::string, bool> read;
    for (const ir::Node& made : graph_.nodes) {
      for (const std::string& name : made.inputs) read[name] = true;
    }
    for (const Held& held : held_) {
      const bool is_input =
          std::ranges::find(graph_.inputs, held.name, &ir::ValueInfo::name) != graph_.inputs.end();
      if (is_input || !held.value.is_tensor() || (read[held.name] && !one_in(4))) continue;
      ir::ValueInfo& info = graph_.outputs.emplace_back();
      info.name = held.name;
      info.type = tensor_type(held.value.tensor().element_type());
    }
  }

  std::mt19937_64 random_;
  ThreadPool pool_;
  eval::Environment environment_;
  ir::Graph graph_;
  eval::Frame frame_;
  std::vector<Held> held_;
  int made_ = 0;
};

}  // namespace

std::vector<Value> ShapeGraph::draw_inputs(std::mt19937_64& random, int64_t least) const {
  std::map<std::string, int64_t> sizes;
  std::vector<Value> values;
  for (const Input& input : inputs_of_all()) {
    Shape shape;
    for (const char* name : input.sizes) {
      const auto [size, fresh] = sizes.emplace(name, 0);
      if (fresh)
        size->second = least + static_cast<int64_t>(random() % static_cast<uint64_t>(8 - least));
      shape.push_back(size->second);
    }
    values.emplace_back(filled(input.element, std::move(shape), random));
  }
  return values;
}

ShapeGraph draw_shape_graph(uint64_t seed, int nodes) { return Draw(seed).run(nodes); }

}  // namespace sardonyx::conformance
