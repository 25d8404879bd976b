// Symbolic dimensions: integer expressions over named sizes.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/memory_account.h"
#include "base/small_vector.h"

namespace sardonyx::ir {

class Dim;

// A named integer: a dim_param of the model ("batch"), or an unknown that only a run decides.
struct Symbol {
  int id = 0;
  std::string name;
  bool decided_by_run = false;       // data-dependent, bound when its producer has run
  bool is_size = true;               // at least 0; false: the element of a tensor, of any sign
  std::shared_ptr<const Dim> upper;  // null where no bound is known
};

// The symbols of one model. Hands out symbols with consecutive ids, so that a binding is an array.
// Not safe for concurrent change.
class SymbolTable {
 public:
  // The symbol of a dim_param; the same name gives the same symbol. Of a long name it has the first
  // `max_name` bytes, "~" and a number: it may stand in the types of all values.
  const Symbol* named(std::string_view name);
  static constexpr size_t max_name = 256;
  // A fresh unknown size, named "u0", "u1" … (never the name of a dim_param).
  const Symbol* unknown(std::shared_ptr<const Dim> upper = nullptr);
  // A fresh unknown of any sign, named "v0", "v1" …: an element that only the run decides.
  const Symbol* unknown_value();
  const Symbol* find(std::string_view name) const;
  int size() const { return static_cast<int>(symbols_.size()); }
  const Symbol& operator[](int id) const { return symbols_[static_cast<size_t>(id)]; }

  // Notes that a and b are equal, where that explains a symbol by others: `n` by `m`, `total` by
  // `past + seq`. Unknowns are explained before names, names never by unknowns. Returns false
  // where it explains none.
  bool learn_equal(const Dim& a, const Dim& b);
  // The expression with every explained symbol replaced.
  Dim resolved(const Dim& dim) const;
  bool has_learned() const { return !explained_.empty(); }
  // What is known of a symbol through learn_equal; null: nothing.
  const Dim* explanation(int id) const;

 private:
  const Symbol* add(std::string name);
  bool explain(const Dim& symbol, const Dim& by);

  std::deque<Symbol> symbols_;
  std::unordered_map<std::string, const Symbol*> by_name_;
  std::unordered_map<int, std::shared_ptr<const Dim>> explained_;
  uint64_t explained_mask_ = 0;
  MemoryCharge memory_;
  int unknowns_ = 0;
  int values_ = 0;
};

// An integer expression, kept in a canonical form: a sum of products of atoms, where an atom is a
// symbol or one of floor(a/b), min, max, broadcast of expressions. Two expressions are == when
// their canonical forms are; unequal forms may still have equal values. Immutable, cheap to copy.
// An expression that would overflow 64 bits, or grow beyond the limits below, is indefinite:
// nothing but bounds is known of it, it equals nothing, and what is computed from it is indefinite
// too. InferContext puts a fresh unknown in its place.
class Dim {
 public:
  using moves_as_bytes = void;          // within a SmallVector
  static constexpr int max_depth = 32;  // of atoms within atoms
  static constexpr int max_size = 256;  // symbols and operations, each use counted; long names more

  Dim() = default;                          // 0
  Dim(int value) : constant_(value) {}      // NOLINT: a number is a dimension
  Dim(int64_t value) : constant_(value) {}  // NOLINT
  explicit Dim(const Symbol* symbol);
  Dim(const Dim& other) : constant_(other.constant_), expression_(other.expression_) {
    if (expression_ != nullptr) keep(*expression_);
  }
  Dim(Dim&& other) noexcept
      : constant_(other.constant_), expression_(std::exchange(other.expression_, nullptr)) {}
  Dim& operator=(Dim other) noexcept {
    constant_ = other.constant_;
    std::swap(expression_, other.expression_);
    return *this;
  }
  ~Dim() {
    if (expression_ != nullptr) let_go(*expression_);
  }

  bool is_constant() const { return expression_ == nullptr; }
  bool is_indefinite() const;
  std::optional<int64_t> value() const {
    return is_constant() ? std::optional<int64_t>(constant_) : std::nullopt;
  }
  bool operator==(const Dim& other) const;
  bool operator==(int64_t value) const { return is_constant() && constant_ == value; }

  // The symbol, where the expression is nothing but one.
  const Symbol* as_symbol() const;
  // Adds the symbols the expression depends on to `ids` (may repeat).
  void collect_symbols(std::vector<int>& ids) const;
  bool depends_on_run() const;
  // Symbols and operations, each use counted; 0 for a number.
  int complexity() const;

  // What can be told without a binding: all values lie within; nullopt: no bound known.
  std::optional<int64_t> lower() const;
  std::optional<int64_t> upper() const;

  // The value under a binding: sizes[id] for every symbol; negative entries (INT64_MIN for symbols
  // that are no sizes) are unbound. nullopt where a needed symbol is unbound, a broadcast does not
  // fit, a division by 0 or an overflow happens, or the expression is indefinite.
  std::optional<int64_t> evaluate(std::span<const int64_t> sizes) const;

  // "2*batch + 1", "floor(h/2)", "max(seq - 1, 0)".
  std::string to_string() const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend Dim floor_div(const Dim& a, const Dim& b);
  friend Dim ceil_div(const Dim& a, const Dim& b);
  friend Dim min(const Dim& a, const Dim& b);
  friend Dim max(const Dim& a, const Dim& b);
  // The size two sizes broadcast to: the other where one is 1, either where they are equal.
  friend Dim broadcast(const Dim& a, const Dim& b);
  // a / b where b divides a for sure (2*n*m / n); nullopt where that can't be told.
  friend std::optional<Dim> exact_div(const Dim& a, const Dim& b);
  // True where a >= b holds whatever the sizes; false where that can't be told.
  friend bool surely_at_least(const Dim& a, const Dim& b);
  // The expression with symbols replaced: `replacement` returns null for those that stay.
  using Replacement = std::function<const Dim*(const Symbol&)>;
  Dim substitute(const Replacement& replacement) const;
  Dim substitute(int id, const Dim& replacement) const;

  struct Expression;  // in dim_expression.h
  friend struct DimAccess;

 private:
  // Expressions are shared and count their users themselves: most sizes are numbers, which are kept
  // in two words this way.
  static Dim from(std::unique_ptr<Expression> expression);
  static void keep(const Expression& expression);
  static void let_go(const Expression& expression) noexcept;

  int64_t constant_ = 0;
  const Expression* expression_ = nullptr;  // null: the constant
};

// A shape, or the elements of a tensor that computes shapes.
using Dims = SmallVector<Dim, 4>;

Dim operator+(const Dim& a, const Dim& b);
Dim operator-(const Dim& a, const Dim& b);
Dim operator*(const Dim& a, const Dim& b);
Dim floor_div(const Dim& a, const Dim& b);
Dim ceil_div(const Dim& a, const Dim& b);
Dim min(const Dim& a, const Dim& b);
Dim max(const Dim& a, const Dim& b);
Dim broadcast(const Dim& a, const Dim& b);
std::optional<Dim> exact_div(const Dim& a, const Dim& b);
bool surely_at_least(const Dim& a, const Dim& b);

std::string to_string(std::span<const Dim> shape);  // "[batch,2*h,3]"

}  // namespace sardonyx::ir
