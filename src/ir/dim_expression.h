// How ir::Dim keeps an expression. For the dim_*.cc files only.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/small_vector.h"
#include "ir/dim.h"

namespace sardonyx::ir {

// An interval; nullopt: open on that side.
struct DimRange {
  std::optional<int64_t> low, high;
};

enum class AtomKind : uint8_t { symbol, floor_div, min, max, broadcast };

// What an atom and an expression know of themselves from their parts, so that nothing walks down
// for it again.
struct DimFacts {
  DimRange range;
  uint64_t symbols = 0;  // bit id % 64 of every symbol inside
  int depth = 0;
  int size = 0;
  bool depends_on_run = false;
  bool has_element = false;  // a symbol that is no size
  // Holds a sum or product of elements that may be the least their type has. It is right modulo
  // 2^64, but tells nothing of which of two is more.
  bool may_wrap = false;
};

struct Atom {
  AtomKind kind = AtomKind::symbol;
  const Symbol* symbol = nullptr;
  Dim a, b;
  uint64_t hash = 0;
  DimFacts facts;
};

using AtomRef = std::shared_ptr<const Atom>;

// Sum over terms of coefficient * product of atoms; the constant term has no atoms.
struct Dim::Expression {
  struct Term {
    int64_t coefficient = 0;
    SmallVector<AtomRef, 2> atoms;  // sorted by hash
    uint64_t hash = 0;
  };
  using Terms = SmallVector<Term, 2>;
  Terms terms;  // sorted by hash, no zero coefficients; none: indefinite
  uint64_t hash = 0;
  DimFacts facts;
  mutable std::atomic<int64_t> users{1};  // Dims that hold it

  bool is_indefinite() const { return terms.empty(); }
};

struct DimAccess {
  using Expression = Dim::Expression;
  using Term = Expression::Term;
  using Terms = Expression::Terms;

  static const Expression* expression(const Dim& dim) { return dim.expression_; }
  static Dim of(AtomRef atom);
  // The sum of terms, brought into canonical form; indefinite where that overflows or is too large.
  static Dim make(Terms terms, bool overflow = false);
  // The same of terms that are sorted, each product once.
  static Dim made_of(Terms terms, bool overflow);
  static Dim indefinite(const DimRange& range);
  // Sorts a term's atoms and computes its hash.
  static void finish(Term& term);
};

// The terms of a definite dimension, constants included; of 0 there are none. Borrows the
// dimension.
class TermsOf {
 public:
  explicit TermsOf(const Dim& dim);
  explicit TermsOf(const Dim&& dim) = delete;
  TermsOf(const TermsOf&) = delete;
  TermsOf& operator=(const TermsOf&) = delete;

  size_t size() const { return terms_.size(); }
  bool empty() const { return terms_.empty(); }
  auto begin() const { return terms_.begin(); }
  auto end() const { return terms_.end(); }
  const DimAccess::Term& operator[](size_t i) const { return terms_[i]; }
  operator std::span<const DimAccess::Term>() const { return terms_; }  // NOLINT: it is one

 private:
  DimAccess::Term number_;
  std::span<const DimAccess::Term> terms_;
};

bool same(const AtomRef& x, const AtomRef& y);
DimRange range_of(const Dim& dim);
DimRange range_of(std::span<const DimAccess::Term> terms);
DimRange sum_range(const DimRange& a, const DimRange& b);
DimRange product_range(const DimRange& a, const DimRange& b);
// Of any operation an atom stands for but symbol.
DimRange operation_range(AtomKind kind, const DimRange& a, const DimRange& b);

// The value of an operation; nullopt where it has none.
std::optional<int64_t> computed(AtomKind kind, int64_t a, int64_t b);
// floor(a / b); nullopt where b is 0 or the quotient overflows.
std::optional<int64_t> floor_division(int64_t a, int64_t b);

}  // namespace sardonyx::ir
