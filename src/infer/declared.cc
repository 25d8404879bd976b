#include "infer/declared.h"

namespace sardonyx::infer {

namespace {

using ir::Dim;
using ir::ValueType;

enum class Agreement { yes, open, no };  // open: for some sizes only

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
    if (known.shape->size() != declared.dims.size()) return Agreement::no;
    Agreement agreement = Agreement::yes;
    for (size_t d = 0; d < declared.dims.size(); ++d) {
      Dim& size = (*known.shape)[d];
      const ir::Dimension& says = declared.dims[d];
      if (says.value && *says.value >= 0) {
        agreement = worse(agreement, with_number(size, *says.value));
      } else if (says.param && !says.param->empty()) {
        agreement = worse(agreement, with_name(size, *says.param));
      }
    }
    return agreement;
  }

  Agreement with_number(Dim& size, int64_t number) {
    if (size.is_constant()) return size == number ? Agreement::yes : Agreement::no;
    if (size.lower().value_or(number) > number || size.upper().value_or(number) < number)
      return Agreement::no;
    if (!size.depends_on_run()) return Agreement::open;
    if (learns_) symbols_.learn_equal(size, Dim(number));
    size = Dim(number);
    return Agreement::yes;
  }

  Agreement with_name(Dim& size, const std::string& name) {
    if (size.to_string() == name) return Agreement::yes;  // written by an inference like this one
    const bool fresh = symbols_.find(name) == nullptr;
    const Dim declared(symbols_.named(name));
    const Dim known = symbols_.resolved(size), meant = symbols_.resolved(declared);
    if (known == meant) return Agreement::yes;
    if (!learns_) {
      if (fresh && known.as_symbol() && known.depends_on_run()) size = declared;
      return Agreement::yes;
    }
    if (fresh || (known.as_symbol() && known.depends_on_run())) {
      symbols_.learn_equal(known, meant);
      return Agreement::yes;
    }
    const Dim difference = known - meant;
    if (difference.lower().value_or(0) > 0 || difference.upper().value_or(0) < 0)
      return Agreement::no;
    // The model says what its own names mean: total = past + seq.
    return symbols_.learn_equal(known, meant) ? Agreement::yes : Agreement::open;
  }

  ir::SymbolTable& symbols_;
  bool learns_;
};

std::string text_of(const ir::TypeProto& type) {
  ir::SymbolTable symbols;
  return ir::value_type(type, symbols).to_string();
}

}  // namespace

Declared::Declared(const ir::Graph& graph, const Findings& findings) : findings_(findings) {
  if (!findings.thorough) return;
  for (const auto* list : {&graph.value_info, &graph.outputs}) {
    for (const ir::ValueInfo& info : *list) add(info);
  }
}

void Declared::add(const ir::ValueInfo& info) {
  if (findings_.thorough && info.type) types_[info.name] = &*info.type;
}

void Declared::merge(const ir::Node& node, std::string_view name, Known& known) const {
  if (types_.empty()) return;
  const auto found = types_.find(name);
  if (found == types_.end()) return;
  ValueType merged = known.type;
  // Only what always runs may teach sizes.
  const bool learns = findings_.constraints != nullptr;
  const Agreement agreement = Merger(*findings_.symbols, learns).types(merged, *found->second);
  if (agreement == Agreement::yes) {
    known.type = std::move(merged);
  } else if (findings_.disagreement) {
    findings_.disagreement({std::string(name), text_of(*found->second), known.type.to_string(),
                            node.origin.empty()
                                ? ir::describe(node)
                                : fmt::format("{} ({})", ir::describe(node), node.origin),
                            agreement == Agreement::no});
  }
}

}  // namespace sardonyx::infer
