// The repairs, each of one class of broken rules. All append what they did to `repairs`.
#pragma once

#include <span>
#include <vector>

#include "check/check.h"
#include "ir/model.h"

namespace sardonyx::lenient {

using Repairs = std::vector<check::Diagnostic>;

// G-03, G-04, F-07: nodes that stand before those whose outputs they read are sorted. Nodes keep
// their order where nothing asks for another; nodes in a cycle are left as they are.
void sort_nodes(ir::Model& model, Repairs& repairs);

// M-08: of several versions of a domain, the highest holds, which is said.
void warn_of_doubled_imports(const ir::Model& model, Repairs& repairs);

// M-10: imports of versions below 1 are ignored. M-06, O-04, F-16: an operator domain that nodes
// use and nobody imports gets the newest version whose operators, arities and attributes fit all of
// these nodes; a function gets the model's version of it where that fits.
void import_operator_sets(ir::Model& model, const check::Options& options, Repairs& repairs);

// O-04, D-10, D-22, D-23: a node of the standard's that its imported version does not define, or
// not with these inputs and attributes, is read as of the nearest version that does: the first
// later one of an operator that came later (LayerNormalization in opset 11), or else the newest
// earlier one (ReduceSum's attribute `axes` in opset 21).
void read_by_fitting_versions(ir::Model& model, Repairs& repairs);

// A LinearClassifier or LinearRegressor of an input that is declared with fewer columns than its
// coefficients are for takes the first ones, as many as the columns and targets need.
bool has_spare_coefficients(const ir::Model& model);
void drop_spare_coefficients(ir::Model& model, Repairs& repairs);

// G-10, G-21, F-08: of initializers of one name and the same content, and of nodes that compute
// the same twice, the first stays; an output that has the name of another value and that nobody
// reads gets another name.
void drop_duplicates(ir::Model& model, Repairs& repairs);

// S-11: branches of If that list inputs which are values around the If, or which they don't read,
// see them anyway.
void drop_branch_inputs(ir::Model& model, Repairs& repairs);

// Nodes that `findings` are about and whose outputs nobody reads, not even indirectly an output of
// their graph, are removed.
void drop_dead_nodes(ir::Model& model, std::span<const check::Diagnostic> findings,
                     Repairs& repairs);

}  // namespace sardonyx::lenient
