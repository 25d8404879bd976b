#include "infer/declared.h"

#include "ir/dimension.h"
#include "ir/origin.h"

namespace sardonyx::infer {

namespace {

using ir::Dim;
using ir::ValueType;

// open: for some sizes only; not_shape: the types agree but for their shapes.
enum class Agreement { yes, open, not_shape, no };

Agreement worse(Agreement a, Agreement b) { return std::max(a, b); }

// One type brought together with its declaration.
class Merger {
 public:
  Merger(ir::SymbolTable& symbols, bool learns) : symbols_(symbols), learns_(learns) {}

  Agreement types(ValueType& known, const ir::TypeProto& declared) {
    if (declared.kind == ir::TypeProto::Kind::none) return Agreement::yes;
    if (!known.is_known()) {
      known = ir::value_type(declared, symbols_);
      return Agreement::yes;
    }
    if (known.kind != declared.kind) return Agreement::no;
    const ElementType element = declared.element_type();
    if (element != ElementType::undefined) {
      if (known.element == ElementType::undefined) known.element = element;
      if (known.element != element) return Agreement::no;
    }
    Agreement agreement = Agreement::yes;
    if (declared.nested && known.nested) {
      ValueType nested = *known.nested;
      agreement = types(nested, *declared.nested);
      known.nested = std::make_shared<const ValueType>(std::move(nested));
    } else if (declared.nested) {
      known.nested = ir::value_type(declared, symbols_).nested;
    }
    return declared.shape ? worse(agreement, shapes(known, *declared.shape)) : agreement;
  }

 private:
  Agreement shapes(ValueType& known, const ir::TensorShape& declared) {
    if (!known.shape) {
      ir::TypeProto proto;
      proto.kind = known.kind;
      proto.shape = declared;
      known.shape = ir::value_type(proto, symbols_).shape;
      return Agreement::yes;
    }
    if (known.shape->size() != declared.dims.size()) return Agreement::not_shape;
    Agreement agreement = Agreement::yes;
    for (size_t d = 0; d < declared.dims.size(); ++d) {
      Dim& size = (*known.shape)[d];
      const ir::Dimension& says = declared.dims[d];
      if (const auto number = ir::declared_number(says)) {
        agreement = worse(agreement, with_number(size, *number));
      } else if (const auto name = ir::declared_name(says); !name.empty()) {
        agreement = worse(agreement, with_name(size, name));
      }
    }
    return agreement;
  }

  Agreement with_number(Dim& size, int64_t number) {
    if (size.is_constant()) return size == number ? Agreement::yes : Agreement::not_shape;
    if (size.lower().value_or(number) > number || size.upper().value_or(number) < number)
      return Agreement::not_shape;
    if (!size.depends_on_run()) return Agreement::open;
    if (learns_) symbols_.learn_equal(size, Dim(number));
    size = Dim(number);
    return Agreement::yes;
  }

  Agreement with_name(Dim& size, std::string_view name) {
    const ir::Symbol* symbol = size.as_symbol();
    if (symbol != nullptr && symbol->name == name) return Agreement::yes;
    const Dim known = symbols_.resolved(size);
    const ir::Symbol* named = symbols_.find(name);
    if (named != nullptr && known == symbols_.resolved(Dim(named))) return Agreement::yes;
    // An expression's text was written by an inference like this one.
    if (symbol == nullptr && size.to_string() == name) return Agreement::yes;
    const bool fresh = named == nullptr;
    const Dim declared(symbols_.named(name)), meant = symbols_.resolved(declared);
    if (known == meant) return Agreement::yes;
    if (!learns_) {
      if (fresh && known.as_symbol() && known.depends_on_run()) size = declared;
      return Agreement::yes;
    }
    if (fresh || (known.as_symbol() && known.depends_on_run())) {
      symbols_.learn_equal(known, meant);
      return Agreement::yes;
    }
    // What inputs name apart, a declaration of another value does not make one.
    if (known.as_symbol() && meant.as_symbol() && !meant.depends_on_run()) return Agreement::open;
    const Dim difference = known - meant;
    if (difference.lower().value_or(0) > 0 || difference.upper().value_or(0) < 0)
      return Agreement::not_shape;
    // The model says what its own names mean: total = past + seq.
    return symbols_.learn_equal(known, meant) ? Agreement::yes : Agreement::open;
  }

  ir::SymbolTable& symbols_;
  bool learns_;
};

// Whether a value of this type can be what is declared; names of sizes say nothing here.
Agreement agreement_of(const ValueType& type, const ir::TypeProto& declared) {
  if (declared.kind == ir::TypeProto::Kind::none || !type.is_known()) return Agreement::yes;
  const ElementType element = declared.element_type();
  if (type.kind != declared.kind ||
      (element != ElementType::undefined && type.element != ElementType::undefined &&
       element != type.element))
    return Agreement::no;
  if (declared.nested && type.nested) return agreement_of(*type.nested, *declared.nested);
  if (!declared.shape || !type.shape) return Agreement::yes;
  const auto& dims = declared.shape->dims;
  if (dims.size() != type.shape->size()) return Agreement::not_shape;
  for (size_t d = 0; d < dims.size(); ++d) {
    const Dim& size = (*type.shape)[d];
    const auto number = ir::declared_number(dims[d]);
    if (!number) continue;
    if (size.lower().value_or(*number) > *number || size.upper().value_or(*number) < *number)
      return Agreement::not_shape;
  }
  return Agreement::yes;
}

// "value_info", "the list of outputs of graph 'body'", "value_info of function Twice".
std::string where(std::string_view list, std::string_view of) {
  if (of.empty()) return std::string(list);
  return of.starts_with("function ") ? fmt::format("{} of {}", list, of)
                                     : fmt::format("{} of graph '{}'", list, of);
}

}  // namespace

Contradiction contradiction(const ir::ValueType& type, const ir::TypeProto& declared) {
  switch (agreement_of(type, declared)) {
    case Agreement::no: return Contradiction::types;
    case Agreement::not_shape: return Contradiction::shapes;
    default: return Contradiction::none;
  }
}

void hold_against(const ir::ValueInfo& info, const ir::ValueType& type, std::string_view list,
                  std::string_view source, std::string place, const InferenceContext& inference) {
  if (!inference.symbolic_values || !inference.disagreement || !info.type || !type.is_known())
    return;
  const Agreement agreement = agreement_of(type, *info.type);
  if (agreement == Agreement::yes) return;
  inference.disagreement({std::string(list), info.name, ir::declared_text(*info.type),
                          type.to_string(), std::string(source), std::move(place), true,
                          agreement == Agreement::not_shape});
}

void hold_input_against(const ir::ValueInfo& input, const ir::ValueType& type,
                        std::string_view source, std::string_view graph,
                        const InferenceContext& inference) {
  if (!inference.symbolic_values || !input.type) return;
  hold_against(input, type, where("the list of inputs", graph), source,
               fmt::format("input '{}'", input.name), inference);
}

Declared::Declared(const ir::Graph& graph, const InferenceContext& inference)
    : inference_(inference) {
  if (!inference.symbolic_values) return;
  const bool is_main = inference.constraints != nullptr;
  const std::string_view of = is_main ? std::string_view() : graph.name;
  declarations_.reserve(graph.value_info.size() + graph.outputs.size());
  for (const ir::ValueInfo& info : graph.value_info) add(info, "value_info", of, info.name);
  for (const ir::ValueInfo& info : graph.outputs) add(info, "the list of outputs", of, info.name);
}

void Declared::add(const ir::ValueInfo& info, std::string_view list, std::string_view of,
                   std::string_view own_name) {
  if (!inference_.symbolic_values || !info.type) return;
  const Declaration declaration{&*info.type, list, of, own_name};
  const auto [place, is_new] = declarations_.emplace(info.name, declaration);
  if (!is_new) *place = declaration;
}

void Declared::merge(const ir::Node& node, const HashedName& name, ValueFacts& known) const {
  const Declaration* found = declarations_.find(name);
  if (found == nullptr) return;
  const Declaration& declaration = *found;
  ValueType merged = known.type;
  // Only what always runs may teach sizes.
  const bool learns = inference_.constraints != nullptr;
  const Agreement agreement = Merger(*inference_.symbols, learns).types(merged, *declaration.type);
  if (agreement == Agreement::yes) {
    known.type = std::move(merged);
  } else if (inference_.disagreement) {
    inference_.disagreement(
        {where(declaration.list, declaration.of), std::string(declaration.own_name),
         ir::declared_text(*declaration.type), known.type.to_string(), "the node makes",
         ir::place_of(node), agreement != Agreement::open, agreement != Agreement::no});
  }
}

}  // namespace sardonyx::infer
