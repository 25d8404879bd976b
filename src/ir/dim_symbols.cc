// Symbols: their table, what has been learned of them, and putting expressions in their place.
#include <algorithm>

#include "ir/dim_expression.h"

namespace sardonyx::ir {

namespace {

Dim applied(AtomKind kind, const Dim& a, const Dim& b) {
  switch (kind) {
    case AtomKind::floor_div: return floor_div(a, b);
    case AtomKind::min: return min(a, b);
    case AtomKind::max: return max(a, b);
    default: return broadcast(a, b);
  }
}

bool mentions(const Dim& dim, int id) {
  std::vector<int> ids;
  dim.collect_symbols(ids);
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

Dim Dim::substitute(const Replacement& replacement) const {
  if (is_constant() || is_indefinite()) return *this;
  Dim sum(0);
  for (const DimAccess::Term& term : expression_->terms) {
    Dim product(term.coefficient);
    for (const AtomRef& atom : term.atoms) {
      if (atom->kind == AtomKind::symbol) {
        const Dim* by = replacement(*atom->symbol);
        product = product * (by ? *by : DimAccess::of(atom));
      } else {
        product = product * applied(atom->kind, atom->a.substitute(replacement),
                                    atom->b.substitute(replacement));
      }
    }
    sum = sum + product;
  }
  return sum;
}

Dim Dim::substitute(int id, const Dim& replacement) const {
  return substitute([&](const Symbol& symbol) { return symbol.id == id ? &replacement : nullptr; });
}

const Symbol* SymbolTable::add(std::string name) {
  constexpr size_t in_table = 64;  // of a hash table's entry, beside the key
  memory_.add(static_cast<int64_t>(sizeof(Symbol) + in_table + 2 * name.size()));
  Symbol& symbol = symbols_.emplace_back();
  symbol.id = size() - 1;
  symbol.name = name;
  by_name_.emplace(std::move(name), &symbol);
  return &symbol;
}

const Symbol* SymbolTable::named(std::string_view name) {
  if (const Symbol* known = find(name)) return known;
  if (name.size() <= max_name) return add(std::string(name));
  std::string shorter;
  for (int i = 0; shorter.empty() || find(shorter) != nullptr; ++i)
    shorter = std::string(name.substr(0, max_name)) + "~" + std::to_string(i);
  const Symbol* symbol = add(std::move(shorter));
  by_name_.emplace(name, symbol);
  return symbol;
}

const Symbol* SymbolTable::unknown(std::shared_ptr<const Dim> upper) {
  std::string name;
  do {
    name = "u" + std::to_string(unknowns_++);
  } while (find(name) != nullptr);
  add(std::move(name));
  symbols_.back().decided_by_run = true;
  symbols_.back().upper = std::move(upper);
  return &symbols_.back();
}

const Symbol* SymbolTable::unknown_value() {
  std::string name;
  do {
    name = "v" + std::to_string(values_++);
  } while (find(name) != nullptr);
  add(std::move(name));
  symbols_.back().decided_by_run = true;
  symbols_.back().is_size = false;
  return &symbols_.back();
}

const Symbol* SymbolTable::find(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? nullptr : found->second;
}

const Dim* SymbolTable::explanation(int id) const {
  const auto found = explained_.find(id);
  return found == explained_.end() ? nullptr : found->second.get();
}

Dim SymbolTable::resolved(const Dim& dim) const {
  Dim result = dim;
  // What explains a symbol holds only symbols that were not explained then: each round goes one
  // explanation further, and long chains are left as they are.
  for (int round = 0; round < Dim::max_depth; ++round) {
    const auto* expression = DimAccess::expression(result);
    if (!expression || (expression->facts.symbols & explained_mask_) == 0) return result;
    std::vector<int> ids;
    result.collect_symbols(ids);
    if (std::none_of(ids.begin(), ids.end(), [&](int id) { return explained_.contains(id); }))
      return result;
    const Dim next =
        result.substitute([&](const Symbol& symbol) { return explanation(symbol.id); });
    if (next.is_indefinite()) return result;
    result = next;
  }
  return result;
}

bool SymbolTable::explain(const Dim& symbol, const Dim& by) {
  const Symbol* s = symbol.as_symbol();
  if (s == nullptr || explained_.contains(s->id) || by.is_indefinite() || mentions(by, s->id))
    return false;
  std::vector<int> ids;
  by.collect_symbols(ids);
  // A name is not explained by what only the run knows, unless it was met later (as that of an
  // output); a size not by what may be negative or by an element.
  const auto is_older = [&](int id) { return id < s->id; };
  if (!s->decided_by_run && by.depends_on_run() && !std::all_of(ids.begin(), ids.end(), is_older))
    return false;
  if (s->is_size && by.lower().value_or(-1) < 0) return false;
  const auto is_size = [&](int id) { return (*this)[id].is_size; };
  if (s->is_size && !std::all_of(ids.begin(), ids.end(), is_size)) return false;
  // Of two symbols the later one is explained.
  if (const Symbol* other = by.as_symbol()) {
    if (other->decided_by_run == s->decided_by_run && other->is_size == s->is_size &&
        other->id > s->id) {
      return false;
    }
  }
  explained_[s->id] = std::make_shared<const Dim>(by);
  explained_mask_ |= uint64_t{1} << (s->id % 64);
  return true;
}

bool SymbolTable::learn_equal(const Dim& a, const Dim& b) {
  const Dim x = resolved(a), y = resolved(b);
  if (x == y || x.is_indefinite() || y.is_indefinite()) return false;
  if (explain(x, y) || explain(y, x)) return true;
  // A symbol that stands alone in the difference: past + seq == total + 1.
  const Dim difference = x - y;
  if (difference.is_constant() || difference.is_indefinite()) return false;
  std::vector<const DimAccess::Term*> candidates;
  for (const DimAccess::Term& term : DimAccess::expression(difference)->terms) {
    if (term.atoms.size() == 1 && term.atoms[0]->kind == AtomKind::symbol)
      candidates.push_back(&term);
  }
  std::sort(candidates.begin(), candidates.end(), [](const auto* s, const auto* t) {
    const Symbol &p = *s->atoms[0]->symbol, &q = *t->atoms[0]->symbol;
    return p.decided_by_run != q.decided_by_run ? p.decided_by_run : p.id > q.id;
  });
  for (const DimAccess::Term* term : candidates) {
    const Dim symbol(term->atoms[0]->symbol);
    const Dim others = difference - Dim(term->coefficient) * symbol;
    const auto value = exact_div(Dim(-1) * others, Dim(term->coefficient));
    if (value && explain(symbol, *value)) return true;
  }
  return false;
}

}  // namespace sardonyx::ir
