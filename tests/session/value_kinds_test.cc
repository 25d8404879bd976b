// Every operator with every kind of value for each of its inputs, and without each of its inputs
// and outputs: planned and plain, below the checker. Neither ends but with an Error, and both
// refuse the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/checked.h"
#include "base/thread_pool.h"
#include "eval/eval.h"
#include "ir/tensor.h"
#include "lower/lower.h"
#include "ops/operator.h"
#include "passes/optimize.h"
#include "run/input_match.h"
#include "run/plan.h"
#include "schema/schema.h"
#include "wire/tensor.h"
#include "wire/text_print.h"
#include "wire/write.h"

#ifdef _WIN32
#include "base/os_windows.h"
#else
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace sardonyx {
namespace {

using schema::TypeId;
using schema::TypeKind;

// Bytes right before memory that nobody may touch: a kernel that reads beyond them, as one that
// takes an empty tensor for a number does, ends the test. Kept until the program ends.
#ifdef _WIN32
uint8_t* guarded(size_t size) {
  constexpr size_t page = 4096;
  const size_t used = (size + page - 1) / page * page;
  auto* bytes = static_cast<uint8_t*>(
      VirtualAlloc(nullptr, used + page, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
  EXPECT_NE(bytes, nullptr);
  DWORD before = 0;
  EXPECT_NE(VirtualProtect(bytes + used, page, PAGE_NOACCESS, &before), 0);
  return bytes + used - size;
}
#else
uint8_t* guarded(size_t size) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t used = (size + page - 1) / page * page;
  void* memory =
      mmap(nullptr, used + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(memory, MAP_FAILED);
  auto* bytes = static_cast<uint8_t*>(memory);
  EXPECT_EQ(mprotect(bytes + used, page, PROT_NONE), 0);
  return bytes + used - size;
}
#endif

Tensor make_ones(ElementType type, const Shape& shape) {
  if (type == ElementType::string) {
    Tensor tensor(type, shape);
    for (std::string& word : tensor.mutable_elements<std::string>()) word = "1";
    return tensor;
  }
  const auto size = static_cast<size_t>(byte_size(type, checked_count(shape).value()));
  const auto width = std::max<size_t>(static_cast<size_t>(bit_width(type)) / 8, 1);
  uint8_t* bytes = guarded(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = i % width == 0 ? 1 : 0;
  return Tensor::view(type, shape, bytes, size, std::shared_ptr<const void>(bytes, [](auto*) {}));
}

Tensor ones(ElementType type, const Shape& shape) {
  static std::map<std::pair<ElementType, Shape>, Tensor> made;
  const auto found = made.find({type, shape});
  if (found != made.end()) return found->second;
  return made.emplace(std::pair(type, shape), make_ones(type, shape)).first->second;
}

Value held_by_optional(Value value) {
  Optional optional;
  optional.held = std::make_unique<Value>(std::move(value));
  return optional;
}

Value sequence_of(std::vector<Value> items) {
  Sequence sequence;
  sequence.items = std::move(items);
  return sequence;
}

Value map_of(ElementType key, ElementType value) {
  Map map;
  map.keys = ones(key, {1});
  map.values.emplace_back(ones(value, {}));
  return map;
}

Value sparse_of(ElementType type, Shape shape) {
  SparseTensor sparse;
  sparse.shape = std::move(shape);
  sparse.values = ones(type, {0});
  sparse.indices = Tensor(ElementType::int64, {0});
  return sparse;
}

// A value of a type that a signature names; nullopt for types that no value has.
std::optional<Value> value_of(TypeId type, const Shape& shape) {
  switch (type.kind()) {
    case TypeKind::tensor:
      if (!is_known(type.element())) return std::nullopt;
      return Value(ones(type.element(), shape));
    case TypeKind::sparse_tensor: return sparse_of(type.element(), shape);
    case TypeKind::map: return map_of(type.key(), type.inner().element());
    case TypeKind::sequence: {
      auto item = value_of(type.inner(), shape);
      if (!item) return std::nullopt;
      return sequence_of({*item, *item});
    }
    case TypeKind::optional: {
      auto held = value_of(type.inner(), shape);
      if (!held) return std::nullopt;
      return held_by_optional(*held);
    }
    default: return std::nullopt;
  }
}

struct Kind {
  std::string name;
  Value value;  // none: the input is left out
};

// What an input may be instead of what it should be.
std::vector<Kind> all_kinds() {
  std::vector<Kind> kinds;
  for (int number = 1; number < element_type_count; ++number) {
    const auto type = static_cast<ElementType>(number);
    if (is_known(type)) kinds.push_back({std::string(name_of(type)), ones(type, {1, 2})});
  }
  const Value floats = ones(ElementType::float32, {2}), integer = ones(ElementType::int64, {1});
  kinds.push_back({"empty floats", ones(ElementType::float32, {0})});
  kinds.push_back({"empty integers", ones(ElementType::int64, {0})});
  kinds.push_back({"scalar", ones(ElementType::float32, {})});
  kinds.push_back({"integer scalar", ones(ElementType::int64, {})});
  kinds.push_back({"sequence", sequence_of({floats, floats})});
  kinds.push_back({"sequence of integers", sequence_of({integer})});
  kinds.push_back({"empty sequence", sequence_of({})});
  kinds.push_back({"sequence of sequences", sequence_of({sequence_of({floats})})});
  kinds.push_back({"mixed sequence", sequence_of({floats, sequence_of({})})});
  kinds.push_back({"sequence of two types", sequence_of({floats, integer})});
  kinds.push_back({"map", map_of(ElementType::int64, ElementType::float32)});
  kinds.push_back({"map of words", map_of(ElementType::string, ElementType::int64)});
  kinds.push_back(
      {"sequence of maps", sequence_of({map_of(ElementType::int64, ElementType::float32)})});
  kinds.push_back({"optional", held_by_optional(floats)});
  kinds.push_back({"optional integer", held_by_optional(integer)});
  kinds.push_back({"optional sequence", held_by_optional(sequence_of({floats}))});
  kinds.push_back({"optional empty sequence", held_by_optional(sequence_of({}))});
  kinds.push_back({"empty optional", Optional()});
  kinds.push_back({"sparse", sparse_of(ElementType::float32, {2, 2})});
  kinds.push_back({"absent", Value()});
  return kinds;
}

// How a graph declares its inputs.
enum class Declared { as_given, open, not_at_all, constant };

ir::TypeProto without_shapes(ir::TypeProto type) {
  type.shape.reset();
  if (type.nested)
    type.nested = std::make_shared<const ir::TypeProto>(without_shapes(*type.nested));
  return type;
}

bool has_full_type(const ir::TypeProto& type) {
  const ir::TypeProto* layer = &type;
  while (layer->nested) layer = layer->nested.get();
  return layer->kind == ir::TypeProto::Kind::tensor ||
         layer->kind == ir::TypeProto::Kind::sparse_tensor;
}

struct Case {
  const schema::Signature* signature;
  std::vector<Value> inputs;
  std::vector<std::string> outputs;
  Declared declared = Declared::as_given;
};

ir::Graph body_of(size_t inputs, size_t outputs) {
  ir::Graph body;
  body.name = "body";
  for (size_t i = 0; i < inputs; ++i) body.inputs.emplace_back().name = "b" + std::to_string(i);
  for (size_t i = 0; i < outputs; ++i) {
    ir::Node node;
    node.op_type = "Identity";
    node.inputs = {inputs == 0 ? "x0" : "b" + std::to_string(i % inputs)};
    node.outputs = {"r" + std::to_string(i)};
    body.nodes.push_back(node);
    body.outputs.emplace_back().name = node.outputs[0];
  }
  return body;
}

void add_attribute(ir::Node& node, const schema::Attribute& attribute, const Case& given) {
  ir::Attribute made;
  made.name = attribute.name;
  made.kind = attribute.kind;
  switch (attribute.kind) {
    case ir::AttributeKind::int_: made.i = 1; break;
    case ir::AttributeKind::float_: made.f = 1.0F; break;
    case ir::AttributeKind::string: made.s = "ij->ij"; break;
    case ir::AttributeKind::ints: made.ints = {1, 1}; break;
    case ir::AttributeKind::floats: made.floats = {1}; break;
    case ir::AttributeKind::strings: made.strings = {"1"}; break;
    case ir::AttributeKind::tensor:
      made.t =
          std::make_shared<const ir::TensorProto>(wire::to_proto(ones(ElementType::float32, {1})));
      break;
    case ir::AttributeKind::graph:
      made.g = std::make_shared<const ir::Graph>(
          body_of(given.signature->name == "If" ? 0 : given.inputs.size(),
                  given.outputs.size() + (given.signature->name == "Loop" ? 1 : 0)));
      break;
    default: return;
  }
  node.attributes.push_back(std::move(made));
}

ir::Model model_of(const Case& given) {
  const schema::Signature& signature = *given.signature;
  ir::Model model;
  model.ir_version = 13;
  model.opset_imports.push_back({std::string(signature.domain), signature.since, {}});
  if (!signature.domain.empty()) model.opset_imports.push_back({"", 20, {}});
  ir::Graph graph;
  graph.name = "single";
  ir::Node node;
  node.op_type = signature.name;
  node.domain = signature.domain;
  for (size_t i = 0; i < given.inputs.size(); ++i) {
    const Value& value = given.inputs[i];
    if (value.kind() == Value::Kind::none) {
      node.inputs.emplace_back();
      continue;
    }
    const std::string name = "x" + std::to_string(i);
    node.inputs.push_back(name);
    if (given.declared == Declared::constant && value.is_tensor()) {
      graph.initializers.push_back(wire::to_proto(value.tensor(), name));
      continue;
    }
    ir::ValueInfo info;
    info.name = name;
    ir::TypeProto type = wire::type_of(value);
    if (given.declared != Declared::not_at_all && has_full_type(type))
      info.type = given.declared == Declared::open ? without_shapes(std::move(type)) : type;
    graph.inputs.push_back(std::move(info));
  }
  node.outputs = given.outputs;
  for (const std::string& output : given.outputs) {
    if (!output.empty()) graph.outputs.emplace_back().name = output;
  }
  for (const schema::Attribute& attribute : signature.attributes) {
    if (attribute.required) add_attribute(node, attribute, given);
  }
  graph.nodes.push_back(std::move(node));
  // Something is left to run where the node makes nothing.
  graph.initializers.push_back(wire::to_proto(ones(ElementType::float32, {1}), "one"));
  graph.outputs.emplace_back().name = "one";
  model.graph = std::move(graph);
  return model;
}

std::vector<Value> given_to(const ir::Graph& graph, const Case& given) {
  std::vector<Value> values;
  for (const ir::ValueInfo& input : graph.inputs)
    values.push_back(given.inputs.at(static_cast<size_t>(std::atoi(input.name.c_str() + 1))));
  return values;
}

// What became of a run.
struct Outcome {
  bool refused = false;
  ErrorCode code = ErrorCode::internal;
  std::string message;
  std::vector<Value> outputs;
};

Outcome outcome_of(const std::function<std::vector<Value>()>& run) {
  Outcome outcome;
  try {
    outcome.outputs = run();
  } catch (const Error& error) {
    outcome.refused = true;
    outcome.code = error.code();
    outcome.message = error.message();
  }
  return outcome;
}

constexpr int64_t memory_limit = 64 << 20;

// Under sanitizers only the newest versions have their turn.
#ifdef SARDONYX_SANITIZED
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

Outcome planned(const ir::Model& model, const Case& given, ThreadPool& pool) {
  return outcome_of([&] {
    ir::Graph graph = lower::lower(model);
    passes::optimize(graph, {.pool = &pool});
    const std::vector<Value> inputs = given_to(graph, given);
    std::vector<Value> outputs(graph.outputs.size());
    ops::PackCache packs;
    run::PlanServices services;
    services.packs = &packs;
    const run::Plan plan(std::move(graph), {}, {}, services);
    eval::Environment environment(pool);
    environment.memory_limit = memory_limit;
    plan.run(inputs, {}, outputs, environment);
    return outputs;
  });
}

Outcome plain(const ir::Model& model, const Case& given, ThreadPool& pool) {
  return outcome_of([&] {
    const ir::Graph graph = lower::lower(model);
    passes::require_sound(graph, {.pool = &pool});
    const std::vector<Value> inputs = given_to(graph, given);
    run::match_inputs(graph.inputs, inputs);
    eval::Frame frame;
    for (size_t i = 0; i < inputs.size(); ++i) frame.set(graph.inputs[i].name, inputs[i]);
    eval::Environment environment(pool);
    environment.memory_limit = memory_limit;
    return eval::run_graph(graph, frame, environment, {.observe = {}, .is_sound = true});
  });
}

std::string to_text(const Case& given) {
  std::string text = std::string(given.signature->domain) + "." +
                     std::string(given.signature->name) + "-" +
                     std::to_string(given.signature->since) + "(";
  for (const Value& value : given.inputs) text += ir::type_of(value).to_string() + " ";
  text += ") =>";
  for (const std::string& output : given.outputs) text += " '" + output + "'";
  return text + " declared " + std::to_string(static_cast<int>(given.declared));
}

class Cases {
 public:
  void run(const Case& given) {
    if (std::getenv("SARDONYX_SHOW_CASES") != nullptr) {
      std::printf("%s\n", to_text(given).c_str());
      std::fflush(stdout);  // what a crash was about
    }
    ++count_;
    const ir::Model model = model_of(given);
    const Outcome one = planned(model, given, pool_), other = plain(model, given, pool_);
    if (one.refused && one.code == ErrorCode::internal)
      ADD_FAILURE() << to_text(given) << "\nplanned: " << one.message;
    if (other.refused && other.code == ErrorCode::internal)
      ADD_FAILURE() << to_text(given) << "\nplain: " << other.message;
    // A plan leaves out what nobody reads, and the axes that make a scalar of a vector.
    const bool is_whole = std::ranges::none_of(given.outputs, &std::string::empty);
    const bool is_lenient = given.signature->name == "Squeeze" && !one.refused;
    if (given.outputs.empty() || !is_whole || is_lenient) return;
    if (one.refused == other.refused) return compare_refusals(given, one, other);
    ADD_FAILURE() << to_text(given) << "\nplanned: " << (one.refused ? one.message : "ran")
                  << "\nplain: " << (other.refused ? other.message : "ran");
  }
  // Operators that run through other nodes are refused for the first of those that a path meets.
  void compare_refusals(const Case& given, const Outcome& planned, const Outcome& plain) {
    const ops::Operator* op = ops::find_operator(given.signature->domain, given.signature->name);
    const bool is_one_step =
        op != nullptr && op->prepare != nullptr && !given.signature->deprecated;
    // A view's size is checked before its axes are; joining has words of its own for the items.
    const std::string_view name = given.signature->name;
    if (name == "Squeeze" || name == "ConcatFromSequence") return;
    if (!planned.refused || !is_one_step || given.signature != newest_of(*given.signature)) return;
    ++compared_;
    if (planned.message == plain.message) ++alike_;
    // Of a node with two faults, one of them the values', a plan may meet the other before it runs.
    if (planned.code == plain.code || planned.code == ErrorCode::invalid_model) return;
    ADD_FAILURE() << to_text(given) << "\nplanned " << static_cast<int>(planned.code) << ": "
                  << planned.message << "\nplain " << static_cast<int>(plain.code) << ": "
                  << plain.message;
  }
  static const schema::Signature* newest_of(const schema::Signature& signature) {
    return schema::newest(signature.domain, signature.name);
  }
  // Refusals whose codes were compared, and how many of them say the same. The others are of sizes
  // that a plan holds against each other before any node runs.
  long long compared() const { return compared_; }
  long long alike() const { return alike_; }
  long long count() const { return count_; }

 private:
  ThreadPool pool_{1};
  long long count_ = 0, compared_ = 0, alike_ = 0;
};

// A node of this operator as it should be, as far as its signature tells.
std::optional<Case> usual(const schema::Signature& signature, const Shape& shape) {
  Case made{&signature, {}, {}};
  std::vector<TypeId> chosen(signature.constraints.size());
  const auto type_of = [&](const schema::Formal& formal) {
    TypeId type = TypeId::tensor(ElementType::float32);
    if (!schema::allows(formal, type)) type = formal.types.empty() ? TypeId() : formal.types[0];
    if (formal.constraint < 0) return type;
    TypeId& kept = chosen[static_cast<size_t>(formal.constraint)];
    if (!kept.valid()) kept = type;
    return kept;
  };
  const size_t variadic = signature.max_inputs == schema::unlimited ? 1 : 0;
  for (size_t i = 0;
       i < std::max(signature.inputs.size(), static_cast<size_t>(signature.min_inputs) + variadic);
       ++i) {
    const schema::Formal* formal = signature.input(i);
    if (formal == nullptr) break;
    auto value = value_of(type_of(*formal), shape);
    if (!value) return std::nullopt;
    made.inputs.push_back(*value);
  }
  for (size_t i = 0; i < std::max<size_t>(signature.outputs.size(), 1); ++i)
    made.outputs.push_back("y" + std::to_string(i));
  return made;
}

void leave_out_outputs(const Case& usual, Cases& cases) {
  for (size_t i = 0; i < usual.outputs.size(); ++i) {
    Case changed = usual;
    changed.outputs[i].clear();
    cases.run(changed);
    changed = usual;
    changed.outputs.resize(i);
    cases.run(changed);
    for (size_t j = 0; j < i; ++j) changed.outputs[j].clear();
    cases.run(changed);
    changed = usual;
    for (size_t j = 0; j < changed.outputs.size(); ++j) {
      if (j != i) changed.outputs[j].clear();
    }
    cases.run(changed);
  }
}

void leave_out_inputs(const Case& usual, Cases& cases) {
  for (size_t i = 0; i <= usual.inputs.size(); ++i) {
    Case changed = usual;
    changed.inputs.resize(i);
    cases.run(changed);
  }
}

TEST(ValueKinds, OutputsAndInputsThatAreLeftOut) {
  Cases cases;
  for (const schema::Signature& signature : schema::all_signatures()) {
    for (const Shape& shape : {Shape{1, 1, 2, 2}, Shape{2, 2}, Shape{1}, Shape{}}) {
      const auto made = usual(signature, shape);
      if (!made) continue;
      for (const Declared declared : {Declared::as_given, Declared::constant, Declared::open}) {
        Case each = *made;
        each.declared = declared;
        cases.run(each);
        leave_out_outputs(each, cases);
        leave_out_inputs(each, cases);
      }
    }
  }
  EXPECT_GT(cases.count(), 10000);
}

TEST(ValueKinds, EveryInputOfEveryKind) {
  Cases cases;
  const std::vector<Kind> kinds = all_kinds();
  for (const schema::Signature& signature : schema::all_signatures()) {
    const schema::Signature* newest = schema::newest(signature.domain, signature.name);
    for (const Shape& shape : {Shape{2, 2}, Shape{1}}) {
      const auto made = usual(signature, shape);
      if (!made) continue;
      for (size_t i = 0; i < made->inputs.size(); ++i) {
        for (const Kind& kind : kinds) {
          for (const Declared declared :
               {Declared::as_given, Declared::not_at_all, Declared::constant}) {
            if (&signature != newest && (sanitized || declared == Declared::as_given)) continue;
            Case changed = *made;
            changed.declared = declared;
            changed.inputs[i] = kind.value;
            cases.run(changed);
          }
        }
      }
    }
  }
  if (sanitized) return;
  EXPECT_GT(cases.count(), 100000);
  EXPECT_GT(cases.compared(), 50000);
  EXPECT_GT(cases.alike(), cases.compared() * 9 / 10);
}

}  // namespace
}  // namespace sardonyx
