#include "ir/dim.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace sardonyx::ir {

namespace {

enum class AtomKind : uint8_t { symbol, floor_div, min, max, broadcast };

struct Atom {
  AtomKind kind = AtomKind::symbol;
  const Symbol* symbol = nullptr;
  Dim a, b;
  uint64_t hash = 0;
};

using AtomRef = std::shared_ptr<const Atom>;

uint64_t mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ull + (hash << 6) + (hash >> 2);
  return hash * 0xff51afd7ed558ccdull;
}

}  // namespace

// Sum over terms of coefficient * product of atoms; the constant term has no atoms.
struct Dim::Expression {
  struct Term {
    int64_t coefficient = 0;
    std::vector<AtomRef> atoms;  // sorted
    uint64_t hash = 0;
  };
  std::vector<Term> terms;  // sorted by hash, no zero coefficients
  uint64_t hash = 0;
};

namespace {

using Expression = Dim::Expression;
using Term = Expression::Term;

}  // namespace

// The canonical form's comparisons need the private parts of Dim, through these two.
struct DimAccess {
  static const Expression* expression(const Dim& dim);
  static Dim make(std::vector<Term> terms, bool overflow);
};

namespace {

uint64_t hash_of(const Dim& dim) {
  const Expression* e = DimAccess::expression(dim);
  return e ? e->hash : mix(17, static_cast<uint64_t>(*dim.value()));
}

bool same(const AtomRef& x, const AtomRef& y) {
  if (x == y) return true;
  if (x->hash != y->hash || x->kind != y->kind) return false;
  if (x->kind == AtomKind::symbol) return x->symbol == y->symbol;
  return x->a == y->a && x->b == y->b;
}

bool same_product(const Term& x, const Term& y) {
  return x.hash == y.hash &&
         std::equal(x.atoms.begin(), x.atoms.end(), y.atoms.begin(), y.atoms.end(), same);
}

void finish(Term& term) {
  std::sort(term.atoms.begin(), term.atoms.end(),
            [](const AtomRef& x, const AtomRef& y) { return x->hash < y->hash; });
  term.hash = 7;
  for (const AtomRef& atom : term.atoms) term.hash = mix(term.hash, atom->hash);
  if (term.atoms.empty()) term.hash = 0;
}

// The terms of any dimension, constants included.
std::vector<Term> terms_of(const Dim& dim) {
  if (const Expression* e = DimAccess::expression(dim)) return e->terms;
  if (*dim.value() == 0) return {};
  return {Term{*dim.value(), {}, 0}};
}

AtomRef make_atom(AtomKind kind, const Dim& a, const Dim& b) {
  auto atom = std::make_shared<Atom>();
  atom->kind = kind;
  atom->a = a;
  atom->b = b;
  atom->hash = mix(mix(mix(29, static_cast<uint64_t>(kind)), hash_of(a)), hash_of(b));
  return atom;
}

Dim from_atom(AtomRef atom) {
  Term term{1, {std::move(atom)}, 0};
  finish(term);
  return DimAccess::make({std::move(term)}, false);
}

int64_t floor_division(int64_t a, int64_t b) {
  int64_t q = a / b;
  if ((a % b != 0) && ((a < 0) != (b < 0))) --q;
  return q;
}

Dim symmetric(AtomKind kind, const Dim& a, const Dim& b) {
  return hash_of(a) <= hash_of(b) ? from_atom(make_atom(kind, a, b))
                                  : from_atom(make_atom(kind, b, a));
}

// True where a - b is >= 0 for all sizes.
bool surely_at_least(const Dim& a, const Dim& b) {
  const auto low = (a - b).lower();
  return low && *low >= 0;
}

}  // namespace

const Expression* DimAccess::expression(const Dim& dim) { return dim.expression_.get(); }

Dim DimAccess::make(std::vector<Term> terms, bool overflow) {
  std::sort(terms.begin(), terms.end(),
            [](const Term& x, const Term& y) { return x.hash < y.hash; });
  std::vector<Term> merged;
  for (Term& term : terms) {
    if (!merged.empty() && same_product(merged.back(), term)) {
      overflow |= __builtin_add_overflow(merged.back().coefficient, term.coefficient,
                                         &merged.back().coefficient);
    } else {
      merged.push_back(std::move(term));
    }
  }
  std::erase_if(merged, [](const Term& t) { return t.coefficient == 0; });
  if (overflow) return Dim(-1);  // no size: whoever evaluates it refuses
  if (merged.empty()) return Dim(0);
  if (merged.size() == 1 && merged[0].atoms.empty()) return Dim(merged[0].coefficient);
  auto expression = std::make_shared<Expression>();
  expression->terms = std::move(merged);
  expression->hash = 43;
  for (const Term& t : expression->terms) {
    expression->hash = mix(mix(expression->hash, t.hash), static_cast<uint64_t>(t.coefficient));
  }
  return Dim::from(std::move(expression));
}

Dim Dim::from(std::shared_ptr<const Expression> expression) {
  Dim dim;
  dim.expression_ = std::move(expression);
  return dim;
}

Dim::Dim(const Symbol* symbol) {
  auto atom = std::make_shared<Atom>();
  atom->symbol = symbol;
  atom->hash = mix(3, static_cast<uint64_t>(symbol->id) + 1);
  *this = from_atom(std::move(atom));
}

bool Dim::operator==(const Dim& other) const {
  if (is_constant() || other.is_constant()) {
    return is_constant() && other.is_constant() && constant_ == other.constant_;
  }
  if (expression_ == other.expression_) return true;
  if (expression_->hash != other.expression_->hash) return false;
  const auto& x = expression_->terms;
  const auto& y = other.expression_->terms;
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const Term& s, const Term& t) {
    return s.coefficient == t.coefficient && same_product(s, t);
  });
}

const Symbol* Dim::as_symbol() const {
  if (is_constant() || expression_->terms.size() != 1) return nullptr;
  const Term& term = expression_->terms[0];
  if (term.coefficient != 1 || term.atoms.size() != 1) return nullptr;
  return term.atoms[0]->symbol;
}

void Dim::collect_symbols(std::vector<int>& ids) const {
  if (is_constant()) return;
  for (const Term& term : expression_->terms) {
    for (const AtomRef& atom : term.atoms) {
      if (atom->kind == AtomKind::symbol) {
        ids.push_back(atom->symbol->id);
      } else {
        atom->a.collect_symbols(ids);
        atom->b.collect_symbols(ids);
      }
    }
  }
}

bool Dim::depends_on_run() const {
  if (is_constant()) return false;
  for (const Term& term : expression_->terms) {
    for (const AtomRef& atom : term.atoms) {
      if (atom->kind == AtomKind::symbol ? atom->symbol->decided_by_run
                                         : atom->a.depends_on_run() || atom->b.depends_on_run()) {
        return true;
      }
    }
  }
  return false;
}

namespace {

struct Range {
  std::optional<int64_t> low, high;
};

Range range_of(const Dim& dim);

Range range_of(const Atom& atom) {
  if (atom.kind == AtomKind::symbol) {
    return {0, atom.symbol->upper ? atom.symbol->upper->upper() : std::nullopt};
  }
  const Range a = range_of(atom.a), b = range_of(atom.b);
  switch (atom.kind) {
    case AtomKind::floor_div: {
      Range r;
      if (a.low && *a.low >= 0 && b.low && *b.low > 0) {
        r.low = b.high ? *a.low / *b.high : 0;
        if (a.high) r.high = *a.high / *b.low;
      } else if (b.low && b.high && *b.low == *b.high && *b.low > 0) {
        if (a.low) r.low = floor_division(*a.low, *b.low);
        if (a.high) r.high = floor_division(*a.high, *b.low);
      }
      return r;
    }
    case AtomKind::min: {
      Range r;
      if (a.low && b.low) r.low = std::min(*a.low, *b.low);
      if (a.high && b.high)
        r.high = std::min(*a.high, *b.high);
      else
        r.high = a.high ? a.high : b.high;
      return r;
    }
    case AtomKind::max: {
      Range r;
      if (a.low && b.low)
        r.low = std::max(*a.low, *b.low);
      else
        r.low = a.low ? a.low : b.low;
      if (a.high && b.high) r.high = std::max(*a.high, *b.high);
      return r;
    }
    default: {
      Range r{0, std::nullopt};
      if (a.high && b.high) r.high = std::max(*a.high, *b.high);
      return r;
    }
  }
}

Range range_of(const Dim& dim) {
  if (dim.is_constant()) return {dim.value(), dim.value()};
  Range sum{0, 0};
  for (const Term& term : terms_of(dim)) {
    Range product{1, 1};
    for (const AtomRef& atom : term.atoms) {
      const Range r = range_of(*atom);
      int64_t low = 0, high = 0;
      const bool sound = product.low && *product.low >= 0 && r.low && *r.low >= 0;
      if (!sound || __builtin_mul_overflow(*product.low, *r.low, &low)) return {};
      product.high =
          product.high && r.high && !__builtin_mul_overflow(*product.high, *r.high, &high)
              ? std::optional(high)
              : std::nullopt;
      product.low = low;
    }
    if (term.coefficient < 0) std::swap(product.low, product.high);
    const auto add = [&](std::optional<int64_t>& into, std::optional<int64_t> part) {
      int64_t scaled = 0, total = 0;
      if (!into || !part || __builtin_mul_overflow(*part, term.coefficient, &scaled) ||
          __builtin_add_overflow(*into, scaled, &total)) {
        into.reset();
      } else {
        into = total;
      }
    };
    add(sum.low, product.low);
    add(sum.high, product.high);
  }
  return sum;
}

}  // namespace

std::optional<int64_t> Dim::lower() const { return range_of(*this).low; }
std::optional<int64_t> Dim::upper() const { return range_of(*this).high; }

std::optional<int64_t> Dim::evaluate(std::span<const int64_t> sizes) const {
  if (is_constant()) return constant_;
  int64_t sum = 0;
  for (const Term& term : expression_->terms) {
    int64_t product = term.coefficient;
    for (const AtomRef& atom : term.atoms) {
      int64_t factor = 0;
      if (atom->kind == AtomKind::symbol) {
        const auto id = static_cast<size_t>(atom->symbol->id);
        if (id >= sizes.size() || sizes[id] < 0) return std::nullopt;
        factor = sizes[id];
      } else {
        const auto a = atom->a.evaluate(sizes), b = atom->b.evaluate(sizes);
        if (!a || !b) return std::nullopt;
        switch (atom->kind) {
          case AtomKind::floor_div:
            if (*b == 0) return std::nullopt;
            factor = floor_division(*a, *b);
            break;
          case AtomKind::min: factor = std::min(*a, *b); break;
          case AtomKind::max: factor = std::max(*a, *b); break;
          default:
            if (*a != *b && *a != 1 && *b != 1) return std::nullopt;
            factor = *a == 1 ? *b : *a;
        }
      }
      if (__builtin_mul_overflow(product, factor, &product)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  return sum;
}

Dim operator+(const Dim& a, const Dim& b) {
  std::vector<Term> terms = terms_of(a);
  for (Term& t : terms_of(b)) terms.push_back(std::move(t));
  return DimAccess::make(std::move(terms), false);
}

Dim operator-(const Dim& a, const Dim& b) { return a + Dim(-1) * b; }

Dim operator*(const Dim& a, const Dim& b) {
  std::vector<Term> terms;
  bool overflow = false;
  for (const Term& x : terms_of(a)) {
    for (const Term& y : terms_of(b)) {
      Term term;
      overflow |= __builtin_mul_overflow(x.coefficient, y.coefficient, &term.coefficient);
      term.atoms = x.atoms;
      term.atoms.insert(term.atoms.end(), y.atoms.begin(), y.atoms.end());
      finish(term);
      terms.push_back(std::move(term));
    }
  }
  return DimAccess::make(std::move(terms), overflow);
}

std::optional<Dim> exact_div(const Dim& a, const Dim& b) {
  const std::vector<Term> divisor = terms_of(b);
  if (divisor.size() != 1) return a == b && !divisor.empty() ? std::optional(Dim(1)) : std::nullopt;
  std::vector<Term> terms;
  for (Term& t : terms_of(a)) {
    if (t.coefficient % divisor[0].coefficient != 0) return std::nullopt;
    t.coefficient /= divisor[0].coefficient;
    for (const AtomRef& atom : divisor[0].atoms) {
      const auto found = std::find_if(t.atoms.begin(), t.atoms.end(),
                                      [&](const AtomRef& x) { return same(x, atom); });
      if (found == t.atoms.end()) return std::nullopt;
      t.atoms.erase(found);
    }
    finish(t);
    terms.push_back(std::move(t));
  }
  return DimAccess::make(std::move(terms), false);
}

Dim floor_div(const Dim& a, const Dim& b) {
  if (b == 1) return a;
  if (a.is_constant() && b.is_constant() && *b.value() != 0)
    return floor_division(*a.value(), *b.value());
  if (const auto exact = exact_div(a, b)) return *exact;
  if (b.is_constant() && *b.value() > 0) {
    // Whole multiples of the divisor come out: floor((4*n + 3)/2) = 2*n + floor(3/2).
    std::vector<Term> whole, rest;
    for (Term& t : terms_of(a)) {
      const int64_t q = floor_division(t.coefficient, *b.value());
      const int64_t r = t.coefficient - q * *b.value();
      if (t.atoms.empty() || r == 0) {
        if (q != 0) whole.push_back({q, t.atoms, t.hash});
        if (r != 0) rest.push_back({r, t.atoms, t.hash});
      } else {
        rest.push_back(std::move(t));
      }
    }
    const Dim outside = DimAccess::make(std::move(whole), false);
    const Dim inside = DimAccess::make(std::move(rest), false);
    if (inside.is_constant()) return outside + Dim(floor_division(*inside.value(), *b.value()));
    return outside + from_atom(make_atom(AtomKind::floor_div, inside, b));
  }
  return from_atom(make_atom(AtomKind::floor_div, a, b));
}

Dim ceil_div(const Dim& a, const Dim& b) {
  if (b == 1) return a;
  if (const auto exact = exact_div(a, b)) return *exact;
  return floor_div(a + b - Dim(1), b);
}

Dim min(const Dim& a, const Dim& b) {
  if (a == b || surely_at_least(b, a)) return a;
  if (surely_at_least(a, b)) return b;
  return symmetric(AtomKind::min, a, b);
}

Dim max(const Dim& a, const Dim& b) {
  if (a == b || surely_at_least(a, b)) return a;
  if (surely_at_least(b, a)) return b;
  return symmetric(AtomKind::max, a, b);
}

Dim broadcast(const Dim& a, const Dim& b) {
  if (a == b || b == 1) return a;
  if (a == 1) return b;
  // A known size other than 1 decides: the unknown one is 1 or equal to it.
  if (a.is_constant()) return a;
  if (b.is_constant()) return b;
  return symmetric(AtomKind::broadcast, a, b);
}

Dim Dim::substitute(int id, const Dim& replacement) const {
  if (is_constant()) return *this;
  Dim sum(0);
  for (const Term& term : expression_->terms) {
    Dim product(term.coefficient);
    for (const AtomRef& atom : term.atoms) {
      if (atom->kind == AtomKind::symbol) {
        product = product * (atom->symbol->id == id ? replacement : Dim(atom->symbol));
        continue;
      }
      const Dim a = atom->a.substitute(id, replacement), b = atom->b.substitute(id, replacement);
      switch (atom->kind) {
        case AtomKind::floor_div: product = product * floor_div(a, b); break;
        case AtomKind::min: product = product * min(a, b); break;
        case AtomKind::max: product = product * max(a, b); break;
        default: product = product * broadcast(a, b);
      }
    }
    sum = sum + product;
  }
  return sum;
}

std::string Dim::to_string() const {
  if (is_constant()) return fmt::format("{}", constant_);
  const auto text_of = [](const Atom& atom) {
    switch (atom.kind) {
      case AtomKind::symbol: return atom.symbol->name;
      case AtomKind::floor_div: {
        const std::string a = atom.a.to_string();
        const bool sum = a.find(' ') != std::string::npos;
        return fmt::format("floor({}/{})", sum ? "(" + a + ")" : a, atom.b.to_string());
      }
      default: {
        // Arguments in the order of their texts, a number last.
        std::string a = atom.a.to_string(), b = atom.b.to_string();
        if (atom.a.is_constant() || (!atom.b.is_constant() && b < a)) std::swap(a, b);
        const char* name = atom.kind == AtomKind::min   ? "min"
                           : atom.kind == AtomKind::max ? "max"
                                                        : "broadcast";
        return fmt::format("{}({}, {})", name, a, b);
      }
    }
  };
  // Printed in the order of names, the constant last, so that texts are stable.
  std::map<std::string, int64_t> products;
  int64_t constant = 0;
  for (const Term& term : expression_->terms) {
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

const Symbol* SymbolTable::named(std::string_view name) {
  if (const Symbol* known = find(name)) return known;
  Symbol& symbol = symbols_.emplace_back();
  symbol.id = size() - 1;
  symbol.name = name;
  by_name_.emplace(name, &symbol);
  return &symbol;
}

const Symbol* SymbolTable::unknown(std::shared_ptr<const Dim> upper) {
  std::string name;
  do {
    name = fmt::format("u{}", unknowns_++);
  } while (find(name) != nullptr);
  Symbol& symbol = symbols_.emplace_back();
  symbol.id = size() - 1;
  symbol.name = name;
  symbol.decided_by_run = true;
  symbol.upper = std::move(upper);
  by_name_.emplace(std::move(name), &symbol);
  return &symbol;
}

const Symbol* SymbolTable::find(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? nullptr : found->second;
}

}  // namespace sardonyx::ir
