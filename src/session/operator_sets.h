// Operator set documents in use, and Sardonyx's own operator sets as documents.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "check/operator_set.h"  // what is wrong with a document: check::check(set)
#include "ir/operator_set.h"

namespace sardonyx {

// Reads and checks documents. Throws Error (invalid_model) with the first error found in one, or
// where two describe one version of a domain in different ways.
std::vector<ir::OperatorSet> read_operator_sets(const std::vector<std::string>& paths);

// Makes functions of the model out of the bodies that its nodes call and whose set it imports;
// functions of the model itself come first. Bodies may call operators of other documents. Throws
// Error (invalid_model) where the bodies would need two versions of one domain's function.
void add_operator_sets(ir::Model& model, const std::vector<ir::OperatorSet>& sets);

// The operators of a domain of the standard as of an opset version (0: the newest), with the
// bodies of those that are functions. Throws Error (bad_input) for an unknown domain or version.
ir::OperatorSet export_operator_set(std::string_view domain, int64_t version);

// Writes a document in the form of the path's ending.
void save_operator_set(const ir::OperatorSet& set, const std::string& path);

}  // namespace sardonyx
