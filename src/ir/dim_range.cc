// What can be told of expressions without knowing the sizes: intervals, and a proof of a >= b.
#include <algorithm>

#include "ir/dim_expression.h"

namespace sardonyx::ir {

namespace {

using Term = DimAccess::Term;
using Bound = std::optional<int64_t>;

Bound sum(const Bound& a, const Bound& b) {
  int64_t total = 0;
  if (!a || !b || __builtin_add_overflow(*a, *b, &total)) return std::nullopt;
  return total;
}

Bound product(const Bound& a, const Bound& b) {
  int64_t made = 0;
  if (!a || !b || __builtin_mul_overflow(*a, *b, &made)) return std::nullopt;
  return made;
}

bool not_negative(const DimRange& range) { return range.low && *range.low >= 0; }

DimRange scaled(const DimRange& range, int64_t factor) {
  DimRange made{product(range.low, factor), product(range.high, factor)};
  if (factor < 0) std::swap(made.low, made.high);
  return made;
}

DimRange quotient_range(const DimRange& a, const DimRange& b) {
  const bool positive = b.low && *b.low > 0;
  if (not_negative(a) && not_negative(b) && b.high.value_or(1) > 0) {  // where b is not 0
    const int64_t least = std::max<int64_t>(*b.low, 1);
    return {b.high ? *a.low / *b.high : 0, a.high ? Bound(*a.high / least) : std::nullopt};
  }
  if (!positive || b.low != b.high) return {};
  return {a.low ? floor_division(*a.low, *b.low) : std::nullopt,
          a.high ? floor_division(*a.high, *b.low) : std::nullopt};
}

// The sum with one term replaced by others, all of it multiplied by `factor` before.
std::optional<Dim> replaced(std::span<const Term> terms, size_t which, int64_t factor,
                            const Dim& by) {
  DimAccess::Terms others;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (i == which) continue;
    others.push_back(terms[i]);
    if (__builtin_mul_overflow(others.back().coefficient, factor, &others.back().coefficient))
      return std::nullopt;
  }
  const Dim made = DimAccess::made_of(std::move(others), false) + by;
  return made.is_indefinite() ? std::nullopt : std::optional(made);
}

// Proves d >= 0 by cases: a minimum is one of its two sides and below both, a quotient lies
// between linear bounds. `fuel` bounds the number of expressions looked at.
bool never_negative(const Dim& d, int& fuel) {
  if (d.is_indefinite()) return false;
  if (not_negative(range_of(d))) return true;
  if (d.is_constant() || --fuel <= 0) return false;
  const TermsOf terms(d);
  for (size_t i = 0; i < terms.size(); ++i) {
    const Term& term = terms[i];
    for (size_t k = 0; k < term.atoms.size(); ++k) {
      const Atom& atom = *term.atoms[k];
      if (atom.kind == AtomKind::symbol) continue;
      Term rest{term.coefficient, term.atoms, 0};
      rest.atoms.erase(&rest.atoms[k]);
      DimAccess::finish(rest);
      const Dim factor = DimAccess::make({rest});
      const DimRange others = range_of(factor);
      const bool grows = not_negative(others);
      if (!grows && !(others.high && *others.high <= 0)) continue;
      const auto holds_with = [&](int64_t scale, const Dim& side) {
        const auto made = replaced(terms, i, scale, factor * side);
        return made && never_negative(*made, fuel);
      };
      switch (atom.kind) {
        case AtomKind::floor_div: {
          const auto divisor = atom.b.value();
          if (!divisor || *divisor <= 0) break;
          if (holds_with(*divisor, grows ? atom.a - Dim(*divisor - 1) : atom.a)) return true;
          break;
        }
        case AtomKind::max:
        case AtomKind::min:
          if ((atom.kind == AtomKind::max) == grows) {
            if (holds_with(1, atom.a) || holds_with(1, atom.b)) return true;
            break;
          }
          [[fallthrough]];
        default:
          if (holds_with(1, atom.a) && holds_with(1, atom.b)) return true;
      }
      if (fuel <= 0) return false;
    }
  }
  return false;
}

// The value where symbol number i is first + i % 16 * step; nullopt where it has none, or where a
// symbol may not be that much.
Bound value_at(const Dim& dim, int64_t first, int64_t step) {
  Bound total = 0;
  for (const Term& term : TermsOf(dim)) {
    Bound value = term.coefficient;
    for (const AtomRef& atom : term.atoms) {
      if (atom->kind == AtomKind::symbol) {
        if (atom->facts.range.high) return std::nullopt;
        value = product(value, first + atom->symbol->id % 16 * step);
      } else {
        const Bound a = value_at(atom->a, first, step), b = value_at(atom->b, first, step);
        if (!a || !b) return std::nullopt;
        value = product(value, computed(atom->kind, *a, *b));
      }
    }
    total = sum(total, value);
  }
  return total;
}

bool may_wrap(const Dim& dim) {
  const auto* expression = DimAccess::expression(dim);
  return expression != nullptr && expression->facts.may_wrap;
}

// An example is found sooner than the search for a proof ends.
bool is_negative_somewhere(const Dim& dim) {
  if (dim.is_indefinite()) return false;
  const auto is_example = [&](int64_t first, int64_t step) {
    return value_at(dim, first, step).value_or(0) < 0;
  };
  return is_example(1, 0) || is_example(1'000, 37) || is_example(1'000'000, -999);
}

}  // namespace

std::optional<int64_t> floor_division(int64_t a, int64_t b) {
  if (b == 0) return std::nullopt;
  if (b == -1) return product(a, -1);
  const int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

DimRange sum_range(const DimRange& a, const DimRange& b) {
  return {sum(a.low, b.low), sum(a.high, b.high)};
}

DimRange product_range(const DimRange& a, const DimRange& b) {
  if (a.low && a.low == a.high) return scaled(b, *a.low);
  if (b.low && b.low == b.high) return scaled(a, *b.low);
  if (not_negative(a) && not_negative(b)) {
    const Bound low = product(a.low, b.low);
    return {low ? low : Bound(0), product(a.high, b.high)};
  }
  if (!a.low || !a.high || !b.low || !b.high) return {};
  const Bound corners[] = {product(a.low, b.low), product(a.low, b.high), product(a.high, b.low),
                           product(a.high, b.high)};
  DimRange made{corners[0], corners[0]};
  for (const Bound& corner : corners) {
    if (!corner) return {};
    made = {std::min(*made.low, *corner), std::max(*made.high, *corner)};
  }
  return made;
}

DimRange operation_range(AtomKind kind, const DimRange& a, const DimRange& b) {
  const auto both = [](const Bound& x, const Bound& y, auto choose) {
    return x && y ? Bound(choose(*x, *y)) : std::nullopt;
  };
  const auto either = [&](const Bound& x, const Bound& y, auto choose) {
    return x && y ? Bound(choose(*x, *y)) : x ? x : y;
  };
  const auto least = [](int64_t x, int64_t y) { return std::min(x, y); };
  const auto most = [](int64_t x, int64_t y) { return std::max(x, y); };
  switch (kind) {
    case AtomKind::floor_div: return quotient_range(a, b);
    case AtomKind::min: return {both(a.low, b.low, least), either(a.high, b.high, least)};
    case AtomKind::max: return {either(a.low, b.low, most), both(a.high, b.high, most)};
    default: return {both(a.low, b.low, least), both(a.high, b.high, most)};
  }
}

DimRange range_of(std::span<const Term> terms) {
  DimRange total{0, 0};
  for (const Term& term : terms) {
    DimRange range{1, 1};
    for (const AtomRef& atom : term.atoms) range = product_range(range, atom->facts.range);
    total = sum_range(total, scaled(range, term.coefficient));
  }
  return total;
}

DimRange range_of(const Dim& dim) {
  if (dim.is_constant()) return {dim.value(), dim.value()};
  return DimAccess::expression(dim)->facts.range;
}

std::optional<int64_t> Dim::lower() const { return range_of(*this).low; }
std::optional<int64_t> Dim::upper() const { return range_of(*this).high; }

bool surely_at_least(const Dim& a, const Dim& b) {
  const auto least = a.lower(), most = b.upper();
  if (least && most && *least >= *most) return true;  // also where the difference overflows
  // Of a symbol and a number the bounds say all there is.
  if ((a.is_constant() && b.as_symbol()) || (b.is_constant() && a.as_symbol())) return false;
  if (may_wrap(a) || may_wrap(b)) return false;
  const Dim difference = a - b;
  if (is_negative_somewhere(difference)) return false;
  int fuel = 24;
  return never_negative(difference, fuel);
}

}  // namespace sardonyx::ir
