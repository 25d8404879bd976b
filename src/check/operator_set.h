// Checks an operator set document: the rules of OperatorSetProto and OperatorProto, and those of
// the function bodies in it.
#pragma once

#include <span>
#include <vector>

#include "check/check.h"
#include "ir/operator_set.h"

namespace sardonyx::check {

// All findings. The message holds no signatures, so that operators without a body cannot be
// checked further; an information says how many they are.
std::vector<Diagnostic> check(const ir::OperatorSet& set, const Options& options = {});

// The rules for documents, beside those for functions.
std::span<const Rule> operator_set_rules();

}  // namespace sardonyx::check
