// The arithmetic of expressions.
#include "ir/dim.h"

#include <algorithm>
#include <numeric>

#include "ir/dim_expression.h"
#include "ir/dim_hash.h"

namespace sardonyx::ir {

namespace {

using Expression = DimAccess::Expression;
using Term = DimAccess::Term;
using Terms = DimAccess::Terms;

constexpr uint64_t empty_product = 7, empty_sum = 43;  // what hashes begin with

uint64_t mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ull + (hash << 6) + (hash >> 2);
  return hash * 0xff51afd7ed558ccdull;
}

uint64_t hash_of(const Dim& dim) {
  const Expression* e = DimAccess::expression(dim);
  return e ? e->hash : mix(17, static_cast<uint64_t>(*dim.value()));
}

bool same_product(const Term& x, const Term& y) {
  return x.hash == y.hash &&
         std::equal(x.atoms.begin(), x.atoms.end(), y.atoms.begin(), y.atoms.end(), same);
}

// Adds what an operand knows of itself to what the whole does.
void include(DimFacts& facts, const DimFacts& part) {
  facts.symbols |= part.symbols;
  facts.depth = std::max(facts.depth, part.depth);
  facts.size = std::min(facts.size + part.size, 4 * Dim::max_size);  // no overflow
  facts.depends_on_run |= part.depends_on_run;
  facts.has_element |= part.has_element;
  facts.may_wrap |= part.may_wrap;
}

void include(DimFacts& facts, const Dim& part) {
  if (const Expression* e = DimAccess::expression(part)) include(facts, e->facts);
}

// a + factor * b
Dim sum(const TermsOf& a, int64_t factor, const TermsOf& b) {
  Terms terms;
  terms.reserve(a.size() + b.size());
  bool overflow = false;
  const Term* left = std::to_address(a.begin());
  const Term* const last = left + a.size();
  for (const Term& right : b) {
    int64_t coefficient = 0;
    overflow |= __builtin_mul_overflow(factor, right.coefficient, &coefficient);
    for (; left != last && left->hash < right.hash; ++left) terms.push_back(*left);
    if (left != last && same_product(*left, right)) {
      overflow |= __builtin_add_overflow(left->coefficient, coefficient, &coefficient);
      ++left;
    }
    terms.push_back({coefficient, right.atoms, right.hash});
  }
  for (; left != last; ++left) terms.push_back(*left);
  return DimAccess::made_of(std::move(terms), overflow);
}

// Of a sum that is multiplied by a number, the products stay.
Dim scaled(const Dim& dim, int64_t factor) {
  Terms terms{std::span<const Term>(TermsOf(dim))};
  bool overflow = false;
  for (Term& term : terms)
    overflow |= __builtin_mul_overflow(term.coefficient, factor, &term.coefficient);
  return DimAccess::made_of(std::move(terms), overflow);
}

bool any_indefinite(const Dim& a, const Dim& b) { return a.is_indefinite() || b.is_indefinite(); }

Dim operation(AtomKind kind, const Dim& a, const Dim& b) {
  const DimRange range = operation_range(kind, range_of(a), range_of(b));
  if (any_indefinite(a, b)) return DimAccess::indefinite(range);
  auto atom = std::make_shared<Atom>();
  atom->kind = kind;
  atom->a = a;
  atom->b = b;
  atom->hash = mix(mix(mix(29, static_cast<uint64_t>(kind)), hash_of(a)), hash_of(b));
  include(atom->facts, a);
  include(atom->facts, b);
  atom->facts.range = range;
  if (++atom->facts.depth > Dim::max_depth || ++atom->facts.size > Dim::max_size)
    return DimAccess::indefinite(range);
  return DimAccess::of(std::move(atom));
}

Dim symmetric(AtomKind kind, const Dim& a, const Dim& b) {
  return hash_of(a) <= hash_of(b) ? operation(kind, a, b) : operation(kind, b, a);
}

// Bit id % 64 of every symbol inside.
uint64_t symbols_in(const Dim& dim) {
  const Expression* e = DimAccess::expression(dim);
  return e ? e->facts.symbols : 0;
}

// The order in which a polynomial division takes its terms: a symbol's higher power comes first,
// the symbols ordered by hash.
bool leads(const Term& x, const Term& y) {
  size_t i = 0, k = 0;
  while (i < x.atoms.size() && k < y.atoms.size()) {
    const uint64_t p = x.atoms[i]->hash, q = y.atoms[k]->hash;
    if (p != q) return p < q;
    ++i, ++k;
  }
  return i < x.atoms.size() && k == y.atoms.size();
}

// One term divided by another, where that leaves no rest.
std::optional<Term> divided(const Term& term, const Term& divisor) {
  const auto coefficient = floor_division(term.coefficient, divisor.coefficient);
  if (!coefficient || (divisor.coefficient != -1 && term.coefficient % divisor.coefficient != 0))
    return std::nullopt;
  Term quotient{*coefficient, term.atoms, term.hash};
  for (const AtomRef& atom : divisor.atoms) {
    const auto found = std::find_if(quotient.atoms.begin(), quotient.atoms.end(),
                                    [&](const AtomRef& x) { return same(x, atom); });
    if (found == quotient.atoms.end()) return std::nullopt;
    quotient.atoms.erase(found);
  }
  if (!divisor.atoms.empty()) DimAccess::finish(quotient);
  return quotient;
}

// floor(a / b) for a sum that may hold floor(c / d) as its only part that is no number, both
// divisors positive numbers: one quotient instead of two.
std::optional<Dim> merged_quotients(const Dim& a, int64_t b) {
  const TermsOf terms(a);
  const Atom* inner = nullptr;
  int64_t number = 0;
  for (const Term& term : terms) {
    if (term.atoms.empty()) {
      number = term.coefficient;
    } else if (inner == nullptr && term.coefficient == 1 && term.atoms.size() == 1 &&
               term.atoms[0]->kind == AtomKind::floor_div) {
      inner = term.atoms[0].get();
    } else {
      return std::nullopt;
    }
  }
  if (inner == nullptr || !inner->b.is_constant() || *inner->b.value() <= 0) return std::nullopt;
  int64_t divisor = 0, shift = 0;
  if (__builtin_mul_overflow(*inner->b.value(), b, &divisor) ||
      __builtin_mul_overflow(*inner->b.value(), number, &shift)) {
    return std::nullopt;
  }
  return floor_div(inner->a + Dim(shift), Dim(divisor));
}

// floor of a sum over a positive number: whole multiples of the number come out, what is common to
// the rest and the number cancels. floor((5*n + 3)/2) = 2*n + floor((n + 1)/2) + 1,
// floor((2*n + 1)/4) = floor(n/2).
Dim quotient_by_number(const Dim& a, int64_t b) {
  Terms whole, rest;
  int64_t number = 0, common = b;
  for (const Term& t : TermsOf(a)) {
    int64_t left = t.coefficient % b;
    if (left < 0 && t.atoms.empty()) left += b;
    const int64_t q =
        left == 0 || t.atoms.empty() || t.coefficient > 0 ? *floor_division(t.coefficient, b) : 0;
    if (q != 0) whole.push_back({q, t.atoms, t.hash});
    if (t.atoms.empty()) {
      number = left;
    } else if (left != 0) {
      rest.push_back(t);
      if (q != 0) rest.back().coefficient = left;
      common = std::gcd(common, rest.back().coefficient);
    }
  }
  const Dim outside = DimAccess::make(std::move(whole));
  if (rest.empty()) return outside;
  for (Term& t : rest) t.coefficient /= common;
  const Dim inside = DimAccess::make(std::move(rest)) + Dim(number / common);
  const int64_t divisor = b / common;
  if (divisor == 1) return outside + inside;
  if (const auto merged = merged_quotients(inside, divisor)) return outside + *merged;
  return outside + operation(AtomKind::floor_div, inside, Dim(divisor));
}

// True for min(whole, k) with k > 1: where that broadcasts with `whole` at all, the two are equal.
bool is_cut_of(const Dim& part, const Dim& whole) {
  const Expression* e = DimAccess::expression(part);
  if (e == nullptr || e->terms.size() != 1 || e->terms[0].coefficient != 1 ||
      e->terms[0].atoms.size() != 1) {
    return false;
  }
  const Atom& atom = *e->terms[0].atoms[0];
  if (atom.kind != AtomKind::min) return false;
  const auto more_than_one = [](const Dim& side) { return side.value().value_or(0) > 1; };
  return (atom.a == whole && more_than_one(atom.b)) || (atom.b == whole && more_than_one(atom.a));
}

}  // namespace

size_t DimHash::operator()(const Dim& dim) const { return hash_of(dim); }

bool same(const AtomRef& x, const AtomRef& y) {
  if (x == y) return true;
  if (x->hash != y->hash || x->kind != y->kind) return false;
  if (x->kind == AtomKind::symbol) return x->symbol == y->symbol;
  return x->a == y->a && x->b == y->b;
}

TermsOf::TermsOf(const Dim& dim) {
  if (const Expression* e = DimAccess::expression(dim)) {
    terms_ = e->terms;
  } else if (*dim.value() != 0) {
    number_.coefficient = *dim.value();
    terms_ = {&number_, 1};
  }
}

void DimAccess::finish(Term& term) {
  if (term.atoms.size() > 1)
    std::sort(term.atoms.begin(), term.atoms.end(),
              [](const AtomRef& x, const AtomRef& y) { return x->hash < y->hash; });
  term.hash = empty_product;
  for (const AtomRef& atom : term.atoms) term.hash = mix(term.hash, atom->hash);
  if (term.atoms.empty()) term.hash = 0;
}

Dim DimAccess::indefinite(const DimRange& range) {
  auto expression = std::make_unique<Expression>();
  expression->facts.range = range;
  expression->facts.depends_on_run = true;
  return Dim::from(std::move(expression));
}

Dim DimAccess::of(AtomRef atom) {
  auto expression = std::make_unique<Expression>();
  expression->facts = atom->facts;
  const uint64_t product = mix(empty_product, atom->hash);
  expression->hash = mix(mix(empty_sum, product), 1);
  expression->terms.push_back({1, {}, product});
  expression->terms[0].atoms.push_back(std::move(atom));
  return Dim::from(std::move(expression));
}

Dim DimAccess::make(Terms terms, bool overflow) {
  if (terms.size() < 2) return made_of(std::move(terms), overflow);
  std::sort(terms.begin(), terms.end(),
            [](const Term& x, const Term& y) { return x.hash < y.hash; });
  size_t last = 0;
  for (size_t i = 1; i < terms.size(); ++i) {
    if (same_product(terms[last], terms[i])) {
      overflow |= __builtin_add_overflow(terms[last].coefficient, terms[i].coefficient,
                                         &terms[last].coefficient);
    } else if (++last != i) {
      terms[last] = std::move(terms[i]);
    }
  }
  terms.truncate(last + 1);
  return made_of(std::move(terms), overflow);
}

Dim DimAccess::made_of(Terms terms, bool overflow) {
  if (overflow) return indefinite({});
  const auto nothing =
      std::remove_if(terms.begin(), terms.end(), [](const Term& t) { return t.coefficient == 0; });
  terms.truncate(static_cast<size_t>(nothing - terms.begin()));
  if (terms.empty()) return Dim(0);
  if (terms.size() == 1 && terms[0].atoms.empty()) return Dim(terms[0].coefficient);
  auto expression = std::make_unique<Expression>();
  expression->hash = empty_sum;
  size_t uses = 0;
  bool may_be_least = false;
  for (const Term& t : terms) {
    expression->hash = mix(mix(expression->hash, t.hash), static_cast<uint64_t>(t.coefficient));
    for (const AtomRef& atom : t.atoms) {
      include(expression->facts, atom->facts);
      may_be_least |= atom->facts.has_element && !atom->facts.range.low;
    }
    uses += std::max<size_t>(t.atoms.size(), 1);
  }
  const bool is_one = terms.size() == 1 && uses == 1 && terms[0].coefficient == 1;
  expression->facts.may_wrap |= may_be_least && !is_one;
  expression->facts.range = range_of(terms);
  const bool plain = uses == 1;  // a name, however long
  if (!plain && expression->facts.size > Dim::max_size) return indefinite(expression->facts.range);
  expression->terms = std::move(terms);
  return Dim::from(std::move(expression));
}

Dim Dim::from(std::unique_ptr<Expression> expression) {
  Dim dim;
  dim.expression_ = expression.release();
  return dim;
}

void Dim::keep(const Expression& expression) {
  expression.users.fetch_add(1, std::memory_order_relaxed);
}

void Dim::let_go(const Expression& expression) noexcept {
  if (expression.users.fetch_sub(1, std::memory_order_acq_rel) == 1) delete &expression;
}

Dim::Dim(const Symbol* symbol) {
  auto atom = std::make_shared<Atom>();
  atom->symbol = symbol;
  atom->hash = mix(3, static_cast<uint64_t>(symbol->id) + 1);
  atom->facts.symbols = uint64_t{1} << (symbol->id % 64);
  atom->facts.size = 1 + static_cast<int>(std::min<size_t>(symbol->name.size() / 64, max_size));
  atom->facts.depends_on_run = symbol->decided_by_run;
  if (symbol->is_size) atom->facts.range.low = 0;
  atom->facts.has_element = !symbol->is_size;
  if (symbol->upper) atom->facts.range.high = symbol->upper->upper();
  *this = DimAccess::of(std::move(atom));
}

bool Dim::is_indefinite() const { return expression_ != nullptr && expression_->is_indefinite(); }

bool Dim::operator==(const Dim& other) const {
  if (is_constant() || other.is_constant()) {
    return is_constant() && other.is_constant() && constant_ == other.constant_;
  }
  if (is_indefinite() || other.is_indefinite()) return false;
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

int Dim::complexity() const { return is_constant() ? 0 : expression_->facts.size; }

bool Dim::depends_on_run() const { return !is_constant() && expression_->facts.depends_on_run; }

// Numbers are most of what there is: they are computed with as such.
Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) {
    int64_t sum = 0;
    return __builtin_add_overflow(a.constant_, b.constant_, &sum) ? DimAccess::indefinite({})
                                                                  : Dim(sum);
  }
  if (b == 0) return a;
  if (a == 0) return b;
  if (any_indefinite(a, b)) return DimAccess::indefinite(sum_range(range_of(a), range_of(b)));
  return sum(TermsOf(a), 1, TermsOf(b));
}

Dim operator-(const Dim& a, const Dim& b) {
  if (b == 0) return a;
  if (a.is_constant() || any_indefinite(a, b)) return a + Dim(-1) * b;
  return sum(TermsOf(a), -1, TermsOf(b));
}

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) {
    int64_t product = 0;
    return __builtin_mul_overflow(a.constant_, b.constant_, &product) ? DimAccess::indefinite({})
                                                                      : Dim(product);
  }
  if (b == 1) return a;
  if (a == 1) return b;
  const DimRange range = product_range(range_of(a), range_of(b));
  if (any_indefinite(a, b)) return DimAccess::indefinite(range);
  if (b.is_constant()) return scaled(a, *b.value());
  if (a.is_constant()) return scaled(b, *a.value());
  const TermsOf left(a), right(b);
  if (left.size() * right.size() > static_cast<size_t>(Dim::max_size))
    return DimAccess::indefinite(range);
  Terms terms;
  bool overflow = false;
  for (const Term& x : left) {
    for (const Term& y : right) {
      Term term;
      overflow |= __builtin_mul_overflow(x.coefficient, y.coefficient, &term.coefficient);
      term.atoms = x.atoms;
      term.atoms.append(y.atoms);
      DimAccess::finish(term);
      terms.push_back(std::move(term));
    }
  }
  return DimAccess::make(std::move(terms), overflow);
}

std::optional<Dim> exact_div(const Dim& a, const Dim& b) {
  if (any_indefinite(a, b)) return std::nullopt;
  if (a.is_constant() && b.is_constant()) {
    const int64_t n = *a.value(), d = *b.value();
    if (d == 0 || (d == -1 && n == INT64_MIN) || n % d != 0) return std::nullopt;
    return Dim(n / d);
  }
  const TermsOf divisor(b);
  if (divisor.empty()) return std::nullopt;
  if (a == b) return Dim(1);
  // What is only in the divisor stays in every product with it.
  if (a != 0 && (symbols_in(b) & ~symbols_in(a)) != 0) return std::nullopt;
  const Term& first = *std::min_element(divisor.begin(), divisor.end(), leads);
  Dim rest = a, quotient(0);
  for (int step = 0; step < Dim::max_size; ++step) {
    const TermsOf left(rest);
    if (left.empty()) return quotient;
    const auto part = divided(*std::min_element(left.begin(), left.end(), leads), first);
    if (!part) return std::nullopt;
    const Dim taken = DimAccess::make({*part});
    quotient = quotient + taken;
    rest = rest - taken * b;
    if (any_indefinite(quotient, rest)) return std::nullopt;
  }
  return std::nullopt;
}

Dim floor_div(const Dim& a, const Dim& b) {
  if (b == 1) return a;
  if (a.is_constant() && b.is_constant()) {
    if (const auto quotient = floor_division(*a.value(), *b.value())) return Dim(*quotient);
    return DimAccess::indefinite({});
  }
  if (const auto exact = exact_div(a, b)) return *exact;
  if (!a.is_indefinite() && b.is_constant() && *b.value() > 0)
    return quotient_by_number(a, *b.value());
  return operation(AtomKind::floor_div, a, b);
}

Dim ceil_div(const Dim& a, const Dim& b) {
  if (b == 1) return a;
  if (const auto exact = exact_div(a, b)) return *exact;
  if (a.is_constant() && b.is_constant() && *b.value() > 0) {  // whose sum may be no number
    const int64_t x = *a.value(), y = *b.value();
    return Dim(x / y + (x % y > 0 ? 1 : 0));
  }
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
  if (is_cut_of(a, b)) return b;
  if (is_cut_of(b, a)) return a;
  return symmetric(AtomKind::broadcast, a, b);
}

}  // namespace sardonyx::ir
