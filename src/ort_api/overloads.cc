#include "ort_api/overloads.h"

#include <algorithm>
#include <set>

namespace sardonyx::ort_api {

namespace {

bool is_like(const std::vector<Overload::Place>& a, const std::vector<Overload::Place>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& one, const auto& other) { return one.is_like(other); });
}

bool is_any(ElementType type) { return type == ElementType::undefined; }

// Lines for the inputs or outputs, each with a type variable of its own.
void add_places(std::string& text, const char* statement, const char* variable,
                const std::vector<const Overload*>& overloads,
                std::vector<Overload::Place> Overload::*places) {
  const auto& shape = overloads.front()->*places;
  for (size_t i = 0; i < shape.size(); ++i) {
    std::set<std::string_view> types;
    for (const Overload* overload : overloads) {
      const ElementType type = (overload->*places)[i].type;
      types.insert(is_any(type) ? "any_ir13" : name_of(type));
    }
    text += fmt::format("  {} {}{}: {}{}", statement, statement, i, variable, i);
    if (shape[i].kind == INPUT_OUTPUT_OPTIONAL) text += " optional";
    if (shape[i].kind == INPUT_OUTPUT_VARIADIC)
      text += fmt::format(" variadic({}){}", shape[i].least, shape[i].is_mixed ? " mixed" : "");
    text += fmt::format("\n  where {}{} in {}\n", variable, i, fmt::join(types, " "));
  }
}

std::string types_in(const std::vector<Overload::Place>& places) {
  std::vector<std::string_view> types;
  for (const Overload::Place& place : places)
    types.push_back(is_any(place.type) ? "any" : name_of(place.type));
  return fmt::format("({})", fmt::join(types, ", "));
}

// What signatures, which are read line by line, take for a name.
bool is_identifier(std::string_view name) {
  const auto is_letter = [](char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  return !name.empty() && is_letter(name.front()) &&
         std::ranges::all_of(name, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

bool takes(const Overload& overload, const CustomNode& node) {
  for (int i = 0; i < node.input_count(); ++i) {
    if (!node.has_input(i)) continue;
    const ElementType wanted = Overload::place_of(overload.inputs, i).type;
    const ElementType given = node.element(i);
    if (!is_any(wanted) && !is_any(given) && wanted != given) return false;
  }
  return true;
}

}  // namespace

Overload::Overload(const OrtCustomOp& op) : functions(&op) {
  const auto read = [&](std::vector<Place>& places, size_t count, auto type, auto kind, auto least,
                        auto is_homogeneous) {
    for (size_t i = 0; i < count; ++i) {
      Place& place = places.emplace_back();
      place.type = element_type_of(type(&op, i));
      if (has(8)) place.kind = kind(&op, i);
      if (place.kind != INPUT_OUTPUT_VARIADIC) continue;
      if (!has(14))
        refuse(ORT_INVALID_ARGUMENT,
               "{}: lists of values are for operators of version 14 and later", op.GetName(&op));
      place.least = least(&op);
      place.is_mixed = is_homogeneous(&op) == 0;
    }
  };
  read(inputs, op.GetInputTypeCount(&op), op.GetInputType, op.GetInputCharacteristic,
       op.GetVariadicInputMinArity, op.GetVariadicInputHomogeneity);
  read(outputs, op.GetOutputTypeCount(&op), op.GetOutputType, op.GetOutputCharacteristic,
       op.GetVariadicOutputMinArity, op.GetVariadicOutputHomogeneity);
  if (has(17) && op.GetStartVersion != nullptr) first = std::max(op.GetStartVersion(&op), 1);
  if (has(17) && op.GetEndVersion != nullptr) last = op.GetEndVersion(&op);
  if (last < first)
    last = INT_MAX;  // callers in Rust say the largest number without a sign, which is -1 here
}

const Overload::Place& Overload::place_of(const std::vector<Place>& places, int index) {
  static const Place any;
  if (places.empty()) return any;
  return places[std::min(static_cast<size_t>(index), places.size() - 1)];
}

void fail_node(const CustomNode& node, ErrorCode code, const std::string& message) {
  std::string place;
  try {
    node.fail(message);
  } catch (const Error& error) {
    place = error.location();
  }
  throw Error(code, message, place);
}

std::string signature_of(const std::string& name, const std::vector<Overload>& overloads,
                         const AttributeTypes& attributes) {
  if (!is_identifier(name))
    refuse(ORT_INVALID_ARGUMENT,
           "'{}' is no name of an operator: letters, digits and underscores make one", name);
  // These are the model's, which may be anybody's.
  for (const auto& [attribute, type] : attributes)
    if (!is_identifier(attribute))
      refuse(ORT_INVALID_GRAPH,
             "a node of {} has an attribute '{}'; letters, digits and underscores make a name",
             name, attribute);
  std::set<int> versions;
  for (const Overload& overload : overloads) versions.insert(overload.first);
  std::string text = name + "\n";
  for (const int version : versions) {
    std::vector<const Overload*> here;
    for (const Overload& overload : overloads) {
      if (!overload.serves(version)) continue;
      here.push_back(&overload);
      if (!is_like(here.front()->inputs, overload.inputs) ||
          !is_like(here.front()->outputs, overload.outputs))
        refuse(ORT_FAIL,
               "the operators of the name {} differ in more than types: {} -> {} and {} -> {}; "
               "the number of inputs and outputs, and what is optional or a list, must be the same",
               name, types_in(here.front()->inputs), types_in(here.front()->outputs),
               types_in(overload.inputs), types_in(overload.outputs));
    }
    // They may count calls, draw numbers or print: no node is computed before the first run.
    text += fmt::format("since {}\n  nondeterministic\n", version);
    add_places(text, "in", "T", here, &Overload::inputs);
    add_places(text, "out", "U", here, &Overload::outputs);
    for (const auto& [attribute, type] : attributes)
      text += fmt::format("  attr {}: {}\n", attribute, name_of(type));
  }
  return text;
}

const Overload& choose(const std::vector<Overload>& overloads, const CustomNode& node) {
  std::vector<std::string> known, given;
  for (const Overload& overload : overloads) {
    if (!overload.serves(node.since())) continue;
    if (takes(overload, node)) return overload;
    known.push_back(types_in(overload.inputs));
  }
  for (int i = 0; i < node.input_count(); ++i)
    given.emplace_back(node.has_input(i) ? name_of(node.element(i)) : "nothing");
  fail_node(node, ErrorCode::invalid_model,
            fmt::format("the program's operator takes {}; the node has ({})",
                        fmt::join(known, " or "), fmt::join(given, ", ")));
}

}  // namespace sardonyx::ort_api
