// StringConcat, StringSplit, StringNormalizer and RegexFullMatch.
#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_set>

#include "base/counted.h"
#include "base/os.h"
#include "kernels/elementwise/broadcast.h"
#include "ops/shared/moving.h"
#include "ops/shared/utf8.h"

namespace sardonyx::ops {
namespace strings_unit {
namespace {

// --- StringConcat -------------------------------------------------------------------------------

void infer_concat(InferContext& ctx) {
  const auto &x = ctx.shape(0), &y = ctx.shape(1);
  ctx.set(0, x && y ? ValueType::tensor(ElementType::string, ctx.broadcast(*x, *y))
                    : ValueType::tensor(ElementType::string));
}

std::unique_ptr<Step> prepare_concat(PrepareContext&) {
  struct State {
    kernels::BroadcastPlan plan;
  };
  return make_step<State>(
      "string_concat",
      [](BindContext& bind, State& state) {
        state.plan =
            kernels::plan_broadcast(bind.out_shape(0), {bind.in_shape(0), bind.in_shape(1)});
      },
      [](RunContext& run, const State& state) {
        const auto& plan = state.plan;
        const auto *x = run.in<std::string>(0), *y = run.in<std::string>(1);
        auto* out = run.out<std::string>(0);
        int64_t index[kernels::BroadcastPlan::max_rank] = {};
        for (int64_t i = 0; i < plan.count; ++i) {
          int64_t a = 0, b = 0;
          for (int32_t d = 0; d < plan.rank; ++d)
            a += index[d] * plan.strides[0][d], b += index[d] * plan.strides[1][d];
          // A text that a loop joins to itself doubles each time.
          run.environment().charge(static_cast<int64_t>(x[a].size() + y[b].size()));
          out[i] = x[a] + y[b];
          for (int32_t d = plan.rank - 1; d >= 0 && ++index[d] == plan.dims[d]; --d) index[d] = 0;
        }
      });
}

// --- StringSplit --------------------------------------------------------------------------------

using Parts = CountedVector<std::string_view>;

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1c && c <= 0x1f); }

void split_at_blanks(std::string_view text, int64_t most, Parts& parts) {
  const auto skip = [&] {
    size_t n = 0;
    while (n < text.size() && is_blank(text[n])) ++n;
    text.remove_prefix(n);
  };
  for (skip(); !text.empty(); skip()) {
    if (most == 0) {
      parts.push_back(text);
      return;
    }
    if (most > 0) --most;
    size_t n = 0;
    while (n < text.size() && !is_blank(text[n])) ++n;
    parts.push_back(text.substr(0, n));
    text.remove_prefix(n);
  }
}

// `most` splits at most; negative: as many as there are.
Parts split(std::string_view text, const std::string& delimiter, int64_t most) {
  Parts parts;
  if (delimiter.empty()) {
    split_at_blanks(text, most, parts);
    return parts;
  }
  for (size_t at; most != 0 && (at = os::find(text, delimiter)) != std::string_view::npos;) {
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + delimiter.size());
    if (most > 0) --most;
  }
  parts.push_back(text);
  return parts;
}

void infer_split(InferContext& ctx) {
  const auto& in = ctx.shape(0);
  if (!in) {
    ctx.set(0, ValueType::tensor(ElementType::string));
    ctx.set(1, ValueType::tensor(ElementType::int64));
    return;
  }
  Dims out = *in;
  out.push_back(ctx.unknown());
  ctx.set(0, ElementType::string, std::move(out));
  ctx.set(1, ElementType::int64, *in);
}

std::unique_ptr<Step> prepare_split(PrepareContext& ctx) {
  const std::string delimiter = ctx.attr_string("delimiter", "");
  const int64_t most = ctx.attr_int("maxsplit", -1);
  return make_allocating_step("string_split", [delimiter, most](RunContext& run) {
    const int64_t n = run.in_size(0);
    const auto* x = run.in<std::string>(0);
    CountedVector<Parts> parts;
    size_t longest = 0;
    for (int64_t i = 0; i < n; ++i) {
      parts.push_back(split(x[i], delimiter, most));
      longest = std::max(longest, parts.back().size());
    }
    Shape shape(run.in_shape(0).begin(), run.in_shape(0).end());
    auto* counts =
        run.has_output(1) ? static_cast<int64_t*>(run.allocate_output(1, shape)) : nullptr;
    shape.push_back(static_cast<int64_t>(longest));
    auto* y =
        run.has_output(0) ? static_cast<std::string*>(run.allocate_output(0, shape)) : nullptr;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (counts) counts[i] = static_cast<int64_t>(parts[i].size());
      if (y) std::copy(parts[i].begin(), parts[i].end(), y + i * longest);
    }
  });
}

// --- StringNormalizer ---------------------------------------------------------------------------

enum class Case { none, lower, upper };

Case case_of(const NodeView& node) {
  const std::string action = node.attr_string("case_change_action");
  if (action == "NONE") return Case::none;
  if (action == "LOWER") return Case::lower;
  if (action == "UPPER") return Case::upper;
  node.fail("case_change_action must be LOWER, UPPER or NONE; got '{}'", action);
}

// Locales are names such as tr_TR or tr-TR.UTF-8; only these two languages map letters of their
// own.
bool has_dotted_i(const NodeView& node) {
  const std::string locale = node.attr_string("locale", "en_US");
  const std::string language = to_lower(locale.substr(0, locale.find_first_of("_-.@")));
  return language == "tr" || language == "az";
}

// [C] or [1, C]; what is left when all are stop words is one empty string.
void infer_normalizer(InferContext& ctx) {
  case_of(ctx);
  const auto& in = ctx.shape(0);
  if (!in) {
    ctx.set(0, ValueType::tensor(ElementType::string));
    return;
  }
  if (in->empty() || in->size() > 2)
    ctx.fail("the input must have shape [C] or [1, C]; found {}", ir::to_string(*in));
  Dims out = *in;
  if (in->size() == 2) ctx.require_equal((*in)[0], 1, "the input must have shape [C] or [1, C]");
  if (ctx.attr_strings("stopwords").value_or(std::vector<std::string>()).empty()) {
    out.back() = max(out.back(), 1);
  } else {
    out.back() = ctx.unknown(max(out.back(), 1));
  }
  ctx.set(0, ElementType::string, std::move(out));
}

std::unique_ptr<Step> prepare_normalizer(PrepareContext& ctx) {
  const Case action = case_of(ctx);
  const bool exact = ctx.attr_int("is_case_sensitive") != 0, dotted = has_dotted_i(ctx);
  std::unordered_set<std::string> stops;
  for (const std::string& word :
       ctx.attr_strings("stopwords").value_or(std::vector<std::string>())) {
    stops.insert(exact ? word : to_lower(word, dotted));
  }
  return make_allocating_step("string_normalizer", [action, exact, dotted, stops](RunContext& run) {
    const auto* x = run.in<std::string>(0);
    CountedVector<std::string> kept;
    kept.reserve(static_cast<size_t>(run.in_size(0)));
    const bool lowers = action == Case::lower || (!stops.empty() && !exact);
    for (int64_t i = 0; i < run.in_size(0); ++i) {
      std::string lower = lowers ? to_lower(x[i], dotted) : std::string();
      if (!stops.empty() && stops.contains(exact ? x[i] : lower)) continue;
      kept.push_back(action == Case::lower   ? std::move(lower)
                     : action == Case::upper ? to_upper(x[i], dotted)
                                             : x[i]);
    }
    if (kept.empty()) kept.emplace_back();
    Shape shape(run.in_shape(0).size(), 1);
    shape.back() = static_cast<int64_t>(kept.size());
    std::move(kept.begin(), kept.end(),
              static_cast<std::string*>(run.allocate_output(0, std::move(shape))));
  });
}

// --- RegexFullMatch -----------------------------------------------------------------------------

void infer_regex(InferContext& ctx) {
  ValueType type = ctx.type(0);
  type.kind = ir::TypeProto::Kind::tensor;
  type.element = ElementType::boolean;
  ctx.set(0, std::move(type));
}

std::unique_ptr<Step> prepare_regex(PrepareContext& ctx) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  const std::string pattern = ctx.attr_string("pattern");
  auto expression = std::make_shared<const re2::RE2>(pattern, options);
  if (!expression->ok())
    ctx.fail("pattern '{}' is not a regular expression of RE2: {}", pattern, expression->error());
  return make_step("regex_full_match", [expression](RunContext& run) {
    const auto* x = run.in<std::string>(0);
    for (int64_t i = 0; i < run.in_size(0); ++i)
      run.out<bool>(0)[i] = re2::RE2::FullMatch(x[i], *expression);
  });
}

constexpr Operator operators[] = {
    {.name = "StringConcat", .infer = infer_concat, .prepare = prepare_concat},
    {.name = "StringSplit", .infer = infer_split, .prepare = prepare_split},
    {.name = "StringNormalizer", .infer = infer_normalizer, .prepare = prepare_normalizer},
    {.name = "RegexFullMatch", .infer = infer_regex, .prepare = prepare_regex},
};

}  // namespace
}  // namespace strings_unit

std::span<const Operator> strings_operators() { return strings_unit::operators; }

}  // namespace sardonyx::ops
