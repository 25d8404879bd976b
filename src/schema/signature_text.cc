#include "schema/signature_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "schema/tables.h"

namespace sardonyx::schema {
namespace {

// Everything of a version in containers of its own; views are made of it at the end.
struct Draft {
  struct Input {
    std::string name, type;
    FormalOption option = FormalOption::single;
    bool homogeneous = true;
    int32_t min_arity = 1;
  };
  struct Value {
    std::string name;
    AttributeKind kind = AttributeKind::undefined;
    bool required = false, has_default = false;
    std::vector<float> floats;  // a single one for kind float, and so on
    std::vector<int64_t> ints;
    std::vector<std::string> strings;
  };
  using Range = std::pair<int32_t, int32_t>;

  int32_t since = 0, until = 0;
  bool deprecated = false, nondeterministic = false;
  std::vector<Input> inputs, outputs;
  std::map<std::string, Value, std::less<>> attributes;
  std::vector<std::pair<std::string, std::vector<TypeId>>> constraints;
  std::optional<Range> input_range, output_range;
};

bool is_name(std::string_view text) {
  const auto in_name = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  return !text.empty() && !(text[0] >= '0' && text[0] <= '9') && std::ranges::all_of(text, in_name);
}

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// The words before and after the first space; the second may be empty.
std::pair<std::string_view, std::string_view> first_word(std::string_view text) {
  const size_t space = text.find_first_of(" \t");
  if (space == std::string_view::npos) return {text, {}};
  return {text.substr(0, space), trimmed(text.substr(space))};
}

// Calls visit(position, char) for what stands outside of quotes until it returns false.
template <class Visit>
void outside_quotes(std::string_view text, Visit&& visit) {
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"' && (i == 0 || text[i - 1] != '\\'))
      quoted = !quoted;
    else if (!quoted && !visit(i, text[i]))
      return;
  }
}

std::string_view without_comment(std::string_view line) {
  size_t end = line.size();
  outside_quotes(line, [&](size_t i, char c) {
    if (c == '#') end = i;
    return c != '#';
  });
  return trimmed(line.substr(0, end));
}

// At the commas that stand outside of brackets and quotes.
std::vector<std::string_view> statements_of(std::string_view line) {
  std::vector<std::string_view> parts;
  size_t start = 0;
  int depth = 0;
  outside_quotes(line, [&](size_t i, char c) {
    depth += (c == '(' || c == '[') - (c == ')' || c == ']');
    if (c == ',' && depth == 0) {
      parts.push_back(trimmed(line.substr(start, i - start)));
      start = i + 1;
    }
    return true;
  });
  parts.push_back(trimmed(line.substr(start)));
  return parts;
}

template <class... Args>
[[noreturn]] void wrong(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorCode::bad_input, format, std::forward<Args>(args)...);
}

template <class T>
std::optional<T> number_of(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

int32_t version_of(std::string_view text) {
  const auto version = number_of<int32_t>(text);
  if (!version || *version < 1) wrong("expected a version, 1 or more; found '{}'", text);
  return *version;
}

// ---- types

void add_types(std::string_view word, std::vector<TypeId>& types) {
  if (word.find('(') != std::string_view::npos) {
    const auto type = parse_type(word);
    if (!type || type->kind() != TypeKind::tensor)
      wrong("operators from outside take and give tensors; found the type '{}'", word);
    types.push_back(*type);
    return;
  }
  const auto set = std::ranges::find(tables::type_sets, word, &tables::TypeSet::name);
  if (set != tables::type_sets.end()) {
    types.insert(types.end(), set->types.begin(), set->types.end());
    return;
  }
  const auto element = element_type_named(word);
  if (!element || name_of(*element) != word)
    wrong("'{}' is no element type and no set of spec/type_sets.txt", word);
  types.push_back(TypeId::tensor(*element));
}

std::vector<TypeId> types_of(std::string_view text) {
  std::vector<TypeId> types;
  while (!text.empty()) {
    const auto [word, rest] = first_word(text);
    add_types(word, types);
    text = rest;
  }
  std::ranges::sort(types);
  types.erase(std::unique(types.begin(), types.end()), types.end());
  if (types.empty()) wrong("expected types");
  return types;
}

// ---- attributes

AttributeKind kind_named(std::string_view name) {
  constexpr std::array<std::string_view, 15> names = {
      "",           "float",   "int",     "string", "tensor",        "graph",          "floats",
      "ints",       "strings", "tensors", "graphs", "sparse_tensor", "sparse_tensors", "type_proto",
      "type_protos"};
  const auto found = std::ranges::find(names, name);
  if (name.empty() || found == names.end()) wrong("'{}' is no kind of attribute", name);
  return static_cast<AttributeKind>(found - names.begin());
}

std::string unquoted(std::string_view text) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"')
    wrong("expected a string in double quotes; found '{}'", text);
  std::string value;
  for (size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] != '\\') {
      value += text[i];
      continue;
    }
    ++i;
    if (i + 1 >= text.size() || (text[i] != '"' && text[i] != '\\'))
      wrong("after a \\ only \" and \\ may stand in {}", text);
    value += text[i];
  }
  return value;
}

void add_default(Draft::Value& attribute, std::string_view text) {
  switch (attribute.kind) {
    case AttributeKind::float_:
    case AttributeKind::floats: {
      const auto value = number_of<float>(text);
      if (!value) wrong("'{}' is no float", text);
      attribute.floats.push_back(*value);
      return;
    }
    case AttributeKind::int_:
    case AttributeKind::ints: {
      const auto value = number_of<int64_t>(text);
      if (!value) wrong("'{}' is no 64-bit integer", text);
      attribute.ints.push_back(*value);
      return;
    }
    case AttributeKind::string:
    case AttributeKind::strings: attribute.strings.push_back(unquoted(text)); return;
    default: wrong("attributes of this kind have no default");
  }
}

void read_default(Draft::Value& attribute, std::string_view text) {
  const bool is_list = attribute.kind == AttributeKind::floats ||
                       attribute.kind == AttributeKind::ints ||
                       attribute.kind == AttributeKind::strings;
  attribute.has_default = true;
  if (!is_list) return add_default(attribute, text);
  if (text.size() < 2 || text.front() != '[' || text.back() != ']')
    wrong("expected a list in square brackets; found '{}'", text);
  text = trimmed(text.substr(1, text.size() - 2));
  if (text.empty()) return;
  for (const std::string_view item : statements_of(text)) add_default(attribute, item);
}

std::pair<std::string_view, std::string_view> name_and_type(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = trimmed(text.substr(0, colon));
  if (colon == std::string_view::npos || !is_name(name))
    wrong("expected 'name: type'; found '{}'", text);
  return {name, trimmed(text.substr(colon + 1))};
}

Draft::Value attribute_of(std::string_view text) {
  Draft::Value attribute;
  const auto named = name_and_type(text);
  attribute.name = named.first;
  std::string_view rest = named.second;
  std::string_view given;
  bool has_default = false;
  outside_quotes(rest, [&, all = rest](size_t i, char c) {
    if (c != '=') return true;
    has_default = true;
    given = trimmed(all.substr(i + 1));
    rest = trimmed(all.substr(0, i));
    return false;
  });
  const auto [kind, mark] = first_word(rest);
  attribute.kind = kind_named(kind);
  if (!mark.empty() && mark != "required") wrong("expected 'required' or '='; found '{}'", mark);
  attribute.required = !mark.empty();
  if (has_default) read_default(attribute, given);
  return attribute;
}

// ---- inputs and outputs

Draft::Input formal_of(std::string_view text) {
  Draft::Input formal;
  auto [name, rest] = name_and_type(text);
  formal.name = name;
  std::string_view marks;
  std::tie(rest, marks) = first_word(rest);
  if (rest.find('(') != std::string_view::npos || !is_name(rest) || element_type_named(rest)) {
    const std::vector<TypeId> types = types_of(rest);
    formal.type = to_string(types.front());
  } else {
    formal.type = rest;
  }
  while (!marks.empty()) {
    const auto [mark, after] = first_word(marks);
    if (mark == "optional") {
      formal.option = FormalOption::optional;
    } else if (mark.starts_with("variadic(") && mark.ends_with(")")) {
      const auto least = number_of<int32_t>(mark.substr(9, mark.size() - 10));
      if (!least || *least < 0) wrong("expected 'variadic(N)'; found '{}'", mark);
      formal.option = FormalOption::variadic;
      formal.min_arity = *least;
    } else if (mark == "mixed" && formal.option == FormalOption::variadic) {
      formal.homogeneous = false;
    } else {
      wrong("'{}' is not understood after a type", mark);
    }
    marks = after;
  }
  return formal;
}

void put(std::vector<Draft::Input>& formals, Draft::Input formal) {
  const auto same = std::ranges::find(formals, formal.name, &Draft::Input::name);
  if (same != formals.end())
    *same = std::move(formal);
  else
    formals.push_back(std::move(formal));
}

Draft::Range range_of(std::string_view text) {
  const size_t dots = text.find("..");
  if (dots != std::string_view::npos) {
    const auto least = number_of<int32_t>(text.substr(0, dots));
    const std::string_view end = text.substr(dots + 2);
    const auto most = end == "*" ? std::optional(unlimited) : number_of<int32_t>(end);
    if (least && most && *least >= 0 && *least <= *most) return {*least, *most};
  }
  wrong("expected 'least..most'; found '{}'", text);
}

Draft::Range arity_of(const std::vector<Draft::Input>& formals) {
  Draft::Range range{0, 0};
  for (size_t i = 0; i < formals.size(); ++i) {
    const auto position = static_cast<int32_t>(i);
    if (formals[i].option == FormalOption::variadic) {
      if (i + 1 < formals.size()) wrong("'{}' is variadic and not the last", formals[i].name);
      range.second = unlimited;
      if (formals[i].min_arity > 0)
        range.first = std::max(range.first, position + formals[i].min_arity);
      continue;
    }
    range.second = position + 1;
    if (formals[i].option == FormalOption::single) range.first = position + 1;
  }
  return range;
}

// ---- statements

void remove_from(std::vector<Draft::Input>& formals, std::string_view name) {
  const size_t before = formals.size();
  std::erase_if(formals, [&](const auto& f) { return name.empty() || f.name == name; });
  if (formals.size() == before) wrong("there is nothing of this name to take away: '{}'", name);
}

void remove(Draft& version, std::string_view text) {
  const auto words = first_word(text);
  const std::string_view what = words.first, name = words.second;
  if (what == "in") return remove_from(version.inputs, name);
  if (what == "out") return remove_from(version.outputs, name);
  if (what == "attr" || what == "where") {
    size_t gone;
    if (what == "attr")
      gone = std::erase_if(version.attributes,
                           [&](const auto& a) { return name.empty() || a.first == name; });
    else
      gone = std::erase_if(version.constraints,
                           [&](const auto& c) { return name.empty() || c.first == name; });
    if (gone == 0 && !name.empty()) wrong("there is nothing of this name to take away: '{}'", name);
  } else if (text == "deprecated") {
    version.deprecated = false;
  } else if (text == "nondeterministic") {
    version.nondeterministic = false;
  } else if (text == "inputs") {
    version.input_range.reset();
  } else if (text == "outputs") {
    version.output_range.reset();
  } else {
    wrong("cannot take away '{}'", text);
  }
}

void constrain(Draft& version, std::string_view text) {
  const auto [name, rest] = first_word(text);
  const auto [in, types] = first_word(rest);
  if (!is_name(name) || in != "in") wrong("expected 'where T in types'; found 'where {}'", text);
  std::vector<TypeId> allowed = types_of(types);
  for (auto& [known, old] : version.constraints) {
    if (known != name) continue;
    old = std::move(allowed);
    return;
  }
  version.constraints.emplace_back(name, std::move(allowed));
}

void apply(Draft& version, std::string_view statement) {
  const auto [word, rest] = first_word(statement);
  if (word == "no") return remove(version, rest);
  if (word == "in") return put(version.inputs, formal_of(rest));
  if (word == "out") return put(version.outputs, formal_of(rest));
  if (word == "where") return constrain(version, rest);
  if (word == "attr") {
    Draft::Value attribute = attribute_of(rest);
    version.attributes.insert_or_assign(attribute.name, attribute);
  } else if (word == "inputs") {
    version.input_range = range_of(rest);
  } else if (word == "outputs") {
    version.output_range = range_of(rest);
  } else if (word == "until") {
    version.until = version_of(rest);
  } else if (statement == "deprecated") {
    version.deprecated = true;
  } else if (statement == "nondeterministic") {
    version.nondeterministic = true;
  } else {
    wrong("cannot read '{}'", statement);
  }
}

Draft* find_draft(std::vector<Draft>& versions, int32_t since) {
  const auto found = std::ranges::find(versions, since, &Draft::since);
  return found != versions.end() ? &*found : nullptr;
}

void begin_version(std::string_view line, std::vector<Draft>& versions) {
  const std::vector<std::string_view> statements = statements_of(line);
  const auto [number, rest] = first_word(first_word(statements[0]).second);
  const int32_t since = version_of(number);
  if (find_draft(versions, since)) wrong("version {} occurs twice", since);
  Draft version;
  if (!rest.empty()) {
    const auto [like, other] = first_word(rest);
    if (like != "like") wrong("expected 'since N' or 'since N like M'; found '{}'", statements[0]);
    const Draft* base = find_draft(versions, version_of(other));
    if (base == nullptr) wrong("version {} is not above", other);
    version = *base;
  }
  version.since = since;
  for (size_t i = 1; i < statements.size(); ++i) apply(version, statements[i]);
  versions.push_back(std::move(version));
}

// ---- what the views of a Signature point to

class Built final : public OwnedSignatures {
 public:
  Built(std::string_view domain, std::string_view name, std::vector<Draft> drafts)
      : domain_(domain), name_(name), drafts_(std::move(drafts)) {
    std::ranges::sort(drafts_, {}, &Draft::since);
    for (const Draft& draft : drafts_) rows_.push_back(signature_of(draft));
    versions_ = rows_;
  }

 private:
  template <class T>
  std::span<const T> kept(std::deque<std::vector<T>>& lists, std::vector<T> list) {
    return lists.emplace_back(std::move(list));
  }

  std::span<const Formal> formals_of(const std::vector<Draft::Input>& drafts,
                                     std::span<const TypeConstraint> constraints) {
    std::vector<Formal> formals;
    for (const Draft::Input& draft : drafts) {
      Formal formal;
      formal.name = draft.name;
      formal.type = draft.type;
      formal.option = draft.option;
      formal.homogeneous = draft.homogeneous;
      formal.min_arity = draft.min_arity;
      const auto under = std::ranges::find(constraints, draft.type, &TypeConstraint::name);
      if (under != constraints.end()) {
        formal.constraint = static_cast<int32_t>(under - constraints.begin());
        formal.types = under->types;
      } else if (const auto type = parse_type(draft.type)) {
        formal.types = kept(types_, {*type});
      } else {
        wrong("'{}' has the type '{}', which no 'where' defines", draft.name, draft.type);
      }
      formals.push_back(formal);
    }
    return kept(formals_, std::move(formals));
  }

  Attribute attribute_of(const Draft::Value& draft) {
    Attribute attribute;
    attribute.name = draft.name;
    attribute.kind = draft.kind;
    attribute.required = draft.required;
    attribute.has_default = draft.has_default;
    attribute.default_floats = draft.floats;
    attribute.default_ints = draft.ints;
    if (draft.kind == AttributeKind::strings) {
      std::vector<std::string_view> views(draft.strings.begin(), draft.strings.end());
      attribute.default_strings = kept(views_, std::move(views));
    }
    if (draft.kind == AttributeKind::float_ && draft.has_default)
      attribute.default_float = draft.floats[0];
    if (draft.kind == AttributeKind::int_ && draft.has_default)
      attribute.default_int = draft.ints[0];
    if (draft.kind == AttributeKind::string && draft.has_default)
      attribute.default_string = draft.strings[0];
    return attribute;
  }

  Signature signature_of(const Draft& draft) {
    Signature signature;
    signature.domain = domain_;
    signature.name = name_;
    signature.since = draft.since;
    signature.until = draft.until;
    signature.deprecated = draft.deprecated;
    signature.nondeterministic = draft.nondeterministic;
    signature.extra = true;
    std::vector<TypeConstraint> constraints;
    for (const auto& [name, types] : draft.constraints) constraints.push_back({name, types});
    signature.constraints = kept(constraints_, std::move(constraints));
    signature.inputs = formals_of(draft.inputs, signature.constraints);
    signature.outputs = formals_of(draft.outputs, signature.constraints);
    std::tie(signature.min_inputs, signature.max_inputs) =
        draft.input_range.value_or(arity_of(draft.inputs));
    std::tie(signature.min_outputs, signature.max_outputs) =
        draft.output_range.value_or(arity_of(draft.outputs));
    std::vector<Attribute> attributes;
    for (const auto& [name, attribute] : draft.attributes)
      attributes.push_back(attribute_of(attribute));
    signature.attributes = kept(attributes_, std::move(attributes));
    return signature;
  }

  const std::string domain_, name_;
  std::vector<Draft> drafts_;
  std::deque<std::vector<TypeId>> types_;
  std::deque<std::vector<TypeConstraint>> constraints_;
  std::deque<std::vector<Formal>> formals_;
  std::deque<std::vector<Attribute>> attributes_;
  std::deque<std::vector<std::string_view>> views_;
  std::vector<Signature> rows_;
};

}  // namespace

std::shared_ptr<const OwnedSignatures> parse_signatures(std::string_view domain,
                                                        std::string_view text) {
  std::string name;
  std::vector<Draft> versions;
  size_t number = 0;
  try {
    for (size_t start = 0; start < text.size();) {
      ++number;
      const size_t end = std::min(text.find('\n', start), text.size());
      const std::string_view line = without_comment(text.substr(start, end - start));
      start = end + 1;
      if (line.empty()) continue;
      if (name.empty()) {
        if (!is_name(line)) wrong("expected the operator's name; found '{}'", line);
        name = line;
      } else if (first_word(line).first == "since") {
        begin_version(line, versions);
      } else if (versions.empty()) {
        wrong("expected 'since'; found '{}'", line);
      } else {
        apply(versions.back(), line);
      }
    }
  } catch (const Error& error) {
    throw error.within(
        fmt::format("signature{}, line {}", name.empty() ? "" : " of " + name, number));
  }
  const std::string place = name.empty() ? "signature" : "signature of " + name;
  if (versions.empty()) fail_at(place, ErrorCode::bad_input, "it holds no version ('since N')");
  try {
    return std::make_shared<Built>(domain, name, std::move(versions));
  } catch (const Error& error) {
    throw error.within(place);
  }
}

}  // namespace sardonyx::schema
