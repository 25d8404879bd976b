// Expressions as text, and their values under a binding.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ir/dim_expression.h"

namespace sardonyx::ir {

namespace {

std::string text_of(const Atom& atom) {
  if (atom.kind == AtomKind::symbol) return atom.symbol->name;
  std::string a = atom.a.to_string(), b = atom.b.to_string();
  if (atom.kind == AtomKind::floor_div) {
    if (a.find(' ') != std::string::npos) a = "(" + a + ")";
    if (!atom.b.is_constant() && !atom.b.as_symbol()) b = "(" + b + ")";
    return fmt::format("floor({}/{})", a, b);
  }
  // Arguments in the order of their texts, a number last.
  if (atom.a.is_constant() || (!atom.b.is_constant() && b < a)) std::swap(a, b);
  const char* name = atom.kind == AtomKind::min   ? "min"
                     : atom.kind == AtomKind::max ? "max"
                                                  : "broadcast";
  return fmt::format("{}({}, {})", name, a, b);
}

}  // namespace

std::optional<int64_t> computed(AtomKind kind, int64_t a, int64_t b) {
  switch (kind) {
    case AtomKind::floor_div: return floor_division(a, b);
    case AtomKind::min: return std::min(a, b);
    case AtomKind::max: return std::max(a, b);
    default:
      if (a != b && a != 1 && b != 1) return std::nullopt;
      return a == 1 ? b : a;
  }
}

namespace {

using Wide = __int128;

std::optional<int64_t> narrow(std::optional<Wide> value) {
  if (!value || *value < INT64_MIN || *value > INT64_MAX) return std::nullopt;
  return static_cast<int64_t>(*value);
}

std::optional<Wide> sum_of(const Dim& dim, std::span<const int64_t> sizes);

std::optional<int64_t> value_of(const Atom& atom, std::span<const int64_t> sizes) {
  if (atom.kind == AtomKind::symbol) {
    const auto id = static_cast<size_t>(atom.symbol->id);
    const int64_t unbound = atom.symbol->is_size ? -1 : INT64_MIN;
    if (id < sizes.size() && sizes[id] > unbound) return sizes[id];
    return std::nullopt;
  }
  const auto a = sum_of(atom.a, sizes), b = sum_of(atom.b, sizes);
  if (!a || !b) return std::nullopt;
  // A side that is too large, or too small, may be the one that does not count.
  if (atom.kind == AtomKind::min) return narrow(std::min(*a, *b));
  if (atom.kind == AtomKind::max) return narrow(std::max(*a, *b));
  const auto left = narrow(a), right = narrow(b);
  return left && right ? computed(atom.kind, *left, *right) : std::nullopt;
}

// Products are numbers of 64 bits, of which an expression has few.
std::optional<Wide> sum_of(const Dim& dim, std::span<const int64_t> sizes) {
  if (dim.is_constant()) return *dim.value();
  if (dim.is_indefinite()) return std::nullopt;
  Wide sum = 0;
  for (const DimAccess::Term& term : TermsOf(dim)) {
    int64_t product = term.coefficient;
    for (const AtomRef& atom : term.atoms) {
      const auto factor = value_of(*atom, sizes);
      if (!factor || __builtin_mul_overflow(product, *factor, &product)) return std::nullopt;
    }
    sum += product;
  }
  return sum;
}

}  // namespace

std::optional<int64_t> Dim::evaluate(std::span<const int64_t> sizes) const {
  return is_constant() ? std::optional(constant_) : narrow(sum_of(*this, sizes));
}

std::string Dim::to_string() const {
  if (is_constant()) return fmt::format_int(constant_).str();
  if (is_indefinite()) return "?";
  if (const Symbol* symbol = as_symbol()) return symbol->name;
  // Printed in the order of names, the constant last, so that texts are stable.
  std::map<std::string, int64_t> products;
  int64_t constant = 0;
  for (const DimAccess::Term& term : expression_->terms) {
    if (term.atoms.empty()) {
      constant = term.coefficient;
      continue;
    }
    std::vector<std::string> names;
    for (const AtomRef& atom : term.atoms) names.push_back(text_of(*atom));
    std::sort(names.begin(), names.end());
    products[fmt::format("{}", fmt::join(names, "*"))] = term.coefficient;
  }
  std::string text;
  const auto append = [&](int64_t coefficient, const std::string& product) {
    const bool negative = coefficient < 0;
    text += text.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
    const uint64_t size =
        negative ? 0 - static_cast<uint64_t>(coefficient) : static_cast<uint64_t>(coefficient);
    if (product.empty()) {
      text += fmt::format("{}", size);
    } else {
      text += size == 1 ? product : fmt::format("{}*{}", size, product);
    }
  };
  for (const auto& [product, coefficient] : products) {
    if (coefficient > 0) append(coefficient, product);
  }
  const bool number_first = text.empty() && constant > 0;  // 1024 - past
  if (number_first) append(constant, "");
  for (const auto& [product, coefficient] : products) {
    if (coefficient < 0) append(coefficient, product);
  }
  if (constant != 0 && !number_first) append(constant, "");
  return text;
}

std::string to_string(std::span<const Dim> shape) {
  std::string text = "[";
  for (const Dim& dim : shape) {
    if (text.size() > 1) text += ",";
    text += dim.to_string();
  }
  return text + "]";
}

}  // namespace sardonyx::ir
