#include "ir/dimension.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/value_type.h"
#include "ir/walk.h"

namespace sardonyx::ir {
namespace {

bool is_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

bool has_sizes(const ValueInfo& input) {
  return input.type && input.type->shape && !is_empty_list(*input.type->shape) &&
         input.type->shape->dims.size() <= max_declared_rank;
}

using NameSet = std::unordered_set<std::string>;

void forget_sizes(TypeProto& type, const NameSet& names) {
  if (type.shape) {
    for (Dimension& dim : type.shape->dims) {
      if (names.contains(std::string(declared_name(dim)))) dim.value.reset(), dim.param.reset();
    }
  }
  if (!type.nested) return;
  TypeProto nested = *type.nested;
  forget_sizes(nested, names);
  type.nested = std::make_shared<const TypeProto>(std::move(nested));
}

void forget_sizes(std::vector<ValueInfo>& values, const NameSet& names) {
  for (ValueInfo& value : values) {
    if (value.type) forget_sizes(*value.type, names);
  }
}

void forget_sizes(std::shared_ptr<const Graph>& graph, const NameSet& names) {
  auto changed = std::make_shared<Graph>(*graph);
  for (auto* list : {&changed->inputs, &changed->outputs, &changed->value_info})
    forget_sizes(*list, names);
  graph = std::move(changed);
}

// Gives every size of the inputs that `has_no_name` the name of its place, or one beside those that
// are taken.
template <class HasNoName>
void name_by_place(std::vector<ValueInfo>& inputs, NameSet& taken, HasNoName&& has_no_name) {
  for (ValueInfo& input : inputs) {
    if (!has_sizes(input)) continue;
    size_t d = 0;
    for (Dimension& dim : input.type->shape->dims) {
      const size_t at = d++;
      if (!has_no_name(dim)) continue;
      const auto start = std::string_view(input.name).substr(0, SymbolTable::max_name);
      std::string name = fmt::format("{}.{}", start, at);
      while (!taken.insert(name).second) name += '_';
      dim.value.reset();
      dim.param = std::move(name);
    }
  }
}

// Of what only has a place in the text, "?" instead of the names of unknowns.
void show_open_sizes(ValueType& type, SymbolTable& symbols) {
  if (type.shape) {
    for (Dim& dim : *type.shape) {
      if (dim.depends_on_run()) dim = Dim(symbols.named("?"));
    }
  }
  if (!type.nested) return;
  ValueType nested = *type.nested;
  show_open_sizes(nested, symbols);
  type.nested = std::make_shared<const ValueType>(std::move(nested));
}

}  // namespace

bool is_anonymous(std::string_view param) {
  const std::string_view name = trimmed(param);
  constexpr std::string_view fresh = "unk__";
  if (name.empty() || name == "?" || name == "None") return true;
  if (name.starts_with(fresh)) return is_digits(name.substr(fresh.size()));
  return name[0] == '-' && is_digits(name.substr(1));
}

std::optional<int64_t> declared_number(const Dimension& dim) {
  const bool is_surely_zero = dim.value == 0 && dim.param;  // by set_number
  return dim.value && (*dim.value > 0 || is_surely_zero) ? dim.value : std::nullopt;
}

void set_number(Dimension& dim, int64_t number) {
  dim.value = number;
  if (number == 0) {
    dim.param.emplace();
  } else {
    dim.param.reset();
  }
}

std::string_view declared_name(const Dimension& dim) {
  if (declared_number(dim) || !dim.param || is_anonymous(*dim.param)) return {};
  return *dim.param;
}

bool is_anonymous(const Dimension& dim) {
  return !declared_number(dim) && declared_name(dim).empty();
}

bool is_empty_list(const TensorShape& shape) {
  return shape.dims.size() == 1 && shape.dims[0].value == 0;
}

void name_open_sizes(std::vector<ValueInfo>& inputs) {
  NameSet taken;
  bool any = false;
  for (const ValueInfo& input : inputs) {
    if (!has_sizes(input)) continue;
    for (const Dimension& dim : input.type->shape->dims) {
      any |= is_anonymous(dim);
      if (const auto name = declared_name(dim); !name.empty()) taken.emplace(name);
    }
  }
  if (!any) return;
  name_by_place(inputs, taken, [](const Dimension& dim) { return is_anonymous(dim); });
}

void name_open_sizes(Graph& graph) { name_open_sizes(graph.inputs); }

void separate_sizes(Model& model) {
  if (!model.graph) return;
  Graph& graph = *model.graph;
  NameSet names, shared;
  for (const ValueInfo& input : graph.inputs) {
    if (!has_sizes(input)) continue;
    for (const Dimension& dim : input.type->shape->dims) {
      const std::string name(declared_name(dim));
      if (!name.empty() && !names.insert(name).second) shared.insert(name);
    }
  }
  name_by_place(graph.inputs, names, [&](const Dimension& dim) {
    return shared.contains(std::string(declared_name(dim)));
  });
  forget_sizes(graph.outputs, shared);
  forget_sizes(graph.value_info, shared);
  for (Function& function : model.functions) forget_sizes(function.value_info, shared);
  walk_mutable(model, [&](std::vector<Node>& nodes) {
    for (Node& node : nodes) {
      for (Attribute& attribute : node.attributes) {
        if (attribute.g) forget_sizes(attribute.g, shared);
        for (auto& one : attribute.graphs) forget_sizes(one, shared);
      }
    }
  });
}

std::vector<std::string> size_names(const std::vector<ValueInfo>& values) {
  std::vector<std::string> names;
  std::unordered_set<std::string_view> seen;
  for (const ValueInfo& value : values) {
    if (!value.type || !value.type->shape) continue;
    for (const Dimension& dim : value.type->shape->dims) {
      const std::string_view name = declared_name(dim);
      if (!name.empty() && seen.insert(name).second) names.emplace_back(name);
    }
  }
  return names;
}

std::string declared_text(const TypeProto& type) {
  SymbolTable symbols;
  ValueType shown = value_type(type, symbols);
  show_open_sizes(shown, symbols);
  return shown.to_string();
}

}  // namespace sardonyx::ir
