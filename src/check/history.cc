// Where attributes, inputs and outputs of an operator went from version to version, told from its
// signatures.
#include <algorithm>
#include <optional>

#include "check/context.h"

namespace sardonyx::check {
namespace {

using schema::Formal;
using schema::Signature;

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return result;
}

size_t index_of(Versions versions, const Signature& bound) {
  return static_cast<size_t>(&bound - versions.data());
}

bool is_among(Versions versions, const Signature& bound) {
  return !versions.empty() && &bound >= &versions.front() && &bound <= &versions.back();
}

// The input that goes by this name, whatever its case; one whose name merely ends in it
// ("constant_value" for "value") where the exact one is not there.
std::optional<size_t> input_named(const Signature& signature, std::string_view name) {
  const std::string wanted = lower_case(name);
  std::optional<size_t> near;
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    const std::string known = lower_case(signature.inputs[i].name);
    if (known == wanted) return i;
    if (!near && known.ends_with("_" + wanted)) near = i;
  }
  return near;
}

// Names of attributes that one version has and the other lacks.
std::vector<const schema::Attribute*> only_in(const Signature& one, const Signature& other) {
  std::vector<const schema::Attribute*> only;
  for (const schema::Attribute& attribute : one.attributes) {
    if (other.attribute(attribute.name) == nullptr) only.push_back(&attribute);
  }
  return only;
}

// What took the place of an attribute in the first version without it: the only new attribute of
// its kind, where it is the only old one.
std::string_view new_name(const Signature& with, const Signature& without,
                          const schema::Attribute& old) {
  const auto is_alike = [&](const schema::Attribute* a) { return a->kind == old.kind; };
  const auto gone = only_in(with, without), come = only_in(without, with);
  if (std::ranges::count_if(gone, is_alike) != 1 || std::ranges::count_if(come, is_alike) != 1)
    return {};
  return (*std::ranges::find_if(come, is_alike))->name;
}

std::string as_input(const Signature& bound, std::string_view name, int32_t since) {
  const auto position = input_named(bound, name);
  if (!position) return {};
  return fmt::format("'{}' is an input{}: give it as input {}", bound.inputs[*position].name,
                     since > 0 ? fmt::format(" since version {}", since) : std::string(),
                     *position);
}

// The first version, from `from` on, of which `holds` is true.
template <class Holds>
const Signature* first_that(Versions versions, size_t from, Holds holds) {
  for (size_t i = from; i < versions.size(); ++i) {
    if (holds(versions[i])) return &versions[i];
  }
  return nullptr;
}

// The last version before `before` of which `holds` is true.
template <class Holds>
const Signature* last_that(Versions versions, size_t before, Holds holds) {
  for (size_t i = before; i-- > 0;) {
    if (holds(versions[i])) return &versions[i];
  }
  return nullptr;
}

std::string advice_on_extra(Versions versions, const Signature& bound, size_t position,
                            std::string_view what, const Formal* (Signature::*at)(size_t) const) {
  if (!is_among(versions, bound)) return {};
  const size_t index = index_of(versions, bound);
  const auto has = [&](const Signature& s) { return (s.*at)(position) != nullptr; };
  if (const Signature* newer = first_that(versions, index + 1, has)) {
    const std::string_view name = (newer->*at)(position)->name;
    const bool is_attribute = what == "input" && bound.attribute(lower_case(name)) != nullptr;
    if (is_attribute) {
      return fmt::format("'{}' is an input since version {}; here it is the attribute '{}'", name,
                         newer->since, lower_case(name));
    }
    return fmt::format("{} {} ('{}') came with version {}; import that or a newer one", what,
                       position, name, newer->since);
  }
  if (const Signature* older = last_that(versions, index, has)) {
    const auto& next = *(older + 1);
    return fmt::format("{} {} ('{}') went with version {}; remove it", what, position,
                       (older->*at)(position)->name, next.since);
  }
  return {};
}

}  // namespace

std::string advice_on_attribute(Versions versions, const Signature& bound, std::string_view name) {
  if (!is_among(versions, bound)) return {};
  const size_t index = index_of(versions, bound);
  const auto has = [&](const Signature& s) { return s.attribute(name) != nullptr; };
  if (const Signature* with = last_that(versions, index, has)) {
    const Signature& without = *(with + 1);
    if (std::string advice = as_input(without, name, without.since); !advice.empty()) return advice;
    if (std::string advice = as_input(bound, name, 0); !advice.empty()) return advice;
    const std::string_view renamed = new_name(*with, without, *with->attribute(name));
    if (!renamed.empty()) {
      return fmt::format("it was removed in version {}, which has '{}' instead", without.since,
                         renamed);
    }
    return fmt::format("it was removed in version {}; remove it", without.since);
  }
  if (std::string advice = as_input(bound, name, 0); !advice.empty()) return advice;
  if (const Signature* newer = first_that(versions, index + 1, has)) {
    return fmt::format("it is an attribute since version {}: import that or a newer one",
                       newer->since);
  }
  return {};
}

std::string advice_on_kind(Versions versions, const Signature& bound, std::string_view name,
                           ir::AttributeKind found) {
  if (!is_among(versions, bound)) return {};
  const size_t index = index_of(versions, bound);
  const auto is_so = [&](const Signature& s) {
    const schema::Attribute* attribute = s.attribute(name);
    return attribute != nullptr && attribute->kind == found;
  };
  if (const Signature* newer = first_that(versions, index + 1, is_so))
    return fmt::format("it is of type {} since version {}", ir::name_of(found), newer->since);
  if (const Signature* older = last_that(versions, index, is_so)) {
    return fmt::format("it was of type {} before version {}", ir::name_of(found),
                       (older + 1)->since);
  }
  return {};
}

std::string advice_on_input(Versions versions, const Signature& bound, size_t position) {
  return advice_on_extra(versions, bound, position, "input", &Signature::input);
}

std::string advice_on_output(Versions versions, const Signature& bound, size_t position) {
  return advice_on_extra(versions, bound, position, "output", &Signature::output);
}

std::string advice_on_missing_attribute(Versions versions, const Signature& bound,
                                        std::string_view name) {
  if (!is_among(versions, bound)) return {};
  const Signature* newer =
      first_that(versions, index_of(versions, bound) + 1, [&](const Signature& s) {
        return s.attribute(name) == nullptr && input_named(s, name).has_value();
      });
  if (newer == nullptr) return {};
  return fmt::format("give it; an input in its place came with version {}", newer->since);
}

std::string advice_on_missing_input(Versions versions, const Signature& bound,
                                    std::string_view name) {
  if (!is_among(versions, bound)) return {};
  const std::string attribute = lower_case(name);
  const Signature* older = last_that(versions, index_of(versions, bound), [&](const Signature& s) {
    return s.attribute(attribute) != nullptr;
  });
  if (older == nullptr) return {};
  return fmt::format("the attribute '{}' is this input since version {}", attribute,
                     (older + 1)->since);
}

}  // namespace sardonyx::check
