// What the rules of downgrades share.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "lower/downgrade_rules.h"

namespace sardonyx::lower {

template <class... Args>
[[noreturn]] void cannot(fmt::format_string<Args...> format, Args&&... args) {
  throw CannotSay{fmt::format(format, std::forward<Args>(args)...)};
}

void keep_inputs(DowngradeContext& ctx, size_t count);
// Throws CannotSay where it is not known.
int64_t rank_of(DowngradeContext& ctx, size_t input);

// downgrade_attention.cc: operators of transformers as the nodes that do their work.
void attention_down(DowngradeContext& ctx);
void rotary_embedding_down(DowngradeContext& ctx);
void trilu_down(DowngradeContext& ctx);

}  // namespace sardonyx::lower
