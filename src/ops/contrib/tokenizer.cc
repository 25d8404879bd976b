// com.microsoft: Tokenizer.
#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ops/operator.h"

namespace sardonyx::ops {
namespace contrib_tokenizer_unit {
namespace {

using Tokens = std::vector<std::string_view>;
using Expression = std::shared_ptr<const re2::RE2>;

// The bytes of the letter that begins a text of UTF-8; 0 where none does.
size_t letter_bytes(std::string_view text) {
  if (text.empty()) return 0;
  const auto first = static_cast<uint8_t>(text[0]);
  const size_t bytes = first < 0x80    ? 1
                       : first < 0xc2  ? 0
                       : first < 0xe0  ? 2
                       : first < 0xf0  ? 3
                       : first <= 0xf4 ? 4
                                       : 0;
  if (bytes > text.size()) return 0;
  for (size_t i = 1; i < bytes; ++i) {
    if ((static_cast<uint8_t>(text[i]) & 0xc0) != 0x80) return 0;
  }
  return bytes;
}

int64_t letters_of(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; });
}

void require_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = letter_bytes(text.substr(at));
    if (bytes == 0)
      throw Error(ErrorCode::run_failed,
                  fmt::format("Tokenizer takes UTF-8 text; byte {} of an input is none", at));
    at += bytes;
  }
}

// How texts become tokens. Immutable.
struct Tokenizer {
  std::vector<Expression> separators;
  Expression token;      // null: what separators leave
  bool letters = false;  // every letter is a token
  int64_t shortest = 1;  // in letters

  Tokens split(std::string_view text) const {
    require_utf8(text);
    if (letters) return each_letter(text);
    if (token) return matches(text);
    Tokens parts{text};
    for (const Expression& separator : separators) {
      Tokens smaller;
      for (const std::string_view part : parts) split_at(*separator, part, smaller);
      parts = std::move(smaller);
    }
    return parts;
  }

 private:
  static Tokens each_letter(std::string_view text) {
    Tokens tokens;
    for (; !text.empty(); text.remove_prefix(tokens.back().size()))
      tokens.push_back(text.substr(0, letter_bytes(text)));
    return tokens;
  }

  void keep(std::string_view token_text, Tokens& tokens) const {
    if (letters_of(token_text) >= shortest) tokens.push_back(token_text);
  }

  Tokens matches(std::string_view text) const {
    Tokens tokens;
    re2::StringPiece found;
    for (size_t at = 0; token->Match(text, at, text.size(), re2::RE2::UNANCHORED, &found, 1);) {
      const auto begin = static_cast<size_t>(found.data() - text.data());
      if (found.empty()) {  // goes on behind the next letter
        if (begin >= text.size()) break;
        at = begin + letter_bytes(text.substr(begin));
        continue;
      }
      keep({found.data(), found.size()}, tokens);
      at = begin + found.size();
    }
    return tokens;
  }

  // An empty match separates behind the letter where it lies.
  void split_at(const re2::RE2& separator, std::string_view text, Tokens& tokens) const {
    re2::StringPiece found;
    size_t at = 0;
    while (separator.Match(text, at, text.size(), re2::RE2::UNANCHORED, &found, 1)) {
      const auto begin = static_cast<size_t>(found.data() - text.data());
      if (found.empty() && begin >= text.size()) break;
      const size_t end = found.empty() ? begin + letter_bytes(text.substr(begin)) : begin;
      keep(text.substr(at, end - at), tokens);
      at = end + found.size();
    }
    keep(text.substr(at), tokens);
  }
};

Expression expression_of(const NodeView& node, const std::string& pattern) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_longest_match(true);
  auto expression = std::make_shared<const re2::RE2>(pattern, options);
  if (!expression->ok())
    node.fail("'{}' is not a regular expression of RE2: {}", pattern, expression->error());
  return expression;
}

Tokenizer read_settings(const NodeView& node) {
  Tokenizer made;
  const auto separators = node.attr_strings("separators").value_or(std::vector<std::string>());
  const std::string token = node.attr_string("tokenexp", "");
  if (separators.empty() == token.empty())
    node.fail("takes either separators or tokenexp; it has {}", token.empty() ? "neither" : "both");
  made.shortest = node.attr_int("mincharnum");
  if (made.shortest < 1) node.fail("mincharnum must be 1 or more; got {}", made.shortest);
  made.letters = token == "." || (separators.size() == 1 && separators[0].empty());
  if (made.letters) {
    if (made.shortest > 1)
      node.fail("mincharnum must be 1 where every letter is a token; got {}", made.shortest);
    return made;
  }
  if (!token.empty()) {
    made.token = expression_of(node, token);
    return made;
  }
  for (const std::string& separator : separators) {
    if (separator.empty()) node.fail("an empty separator must be the only one");
    made.separators.push_back(expression_of(node, separator));
  }
  return made;
}

void infer(InferContext& ctx) {
  read_settings(ctx);
  if (!ctx.shape(0)) return ctx.set(0, ValueType::tensor(ElementType::string));
  Dims y = *ctx.shape(0);
  if (y.empty() || y.size() > 2)
    ctx.fail("the input must have shape [C] or [N, C]; found {}", ir::to_string(y));
  y.push_back(ctx.unknown());
  ctx.set(0, ElementType::string, std::move(y));
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const Tokenizer tokenizer = read_settings(ctx);
  const bool mark = ctx.attr_int("mark") != 0;
  const std::string padding = ctx.attr_string("pad_value");
  return make_allocating_step("tokenizer", [tokenizer, mark, padding](RunContext& run) {
    const auto* x = run.in<std::string>(0);
    std::vector<Tokens> rows;
    size_t longest = 0;
    for (int64_t i = 0; i < run.in_size(0); ++i) {
      rows.push_back(tokenizer.split(x[i]));
      longest = std::max(longest, rows.back().size());
    }
    const bool marks = mark && longest > 0;
    Shape shape(run.in_shape(0).begin(), run.in_shape(0).end());
    shape.push_back(static_cast<int64_t>(longest + (marks ? 2 : 0)));
    auto* y = static_cast<std::string*>(run.allocate_output(0, shape));
    for (const Tokens& row : rows) {
      std::string* const end = y + shape.back();
      if (marks) *y++ = "\x02";
      for (const std::string_view token : row) {
        run.environment().charge(static_cast<int64_t>(token.size()));
        *y++ = token;
      }
      if (marks) *y++ = "\x03";
      while (y < end) *y++ = padding;
    }
  });
}

constexpr Operator operators[] = {
    {.name = "Tokenizer", .domain = "com.microsoft", .infer = infer, .prepare = prepare}};

}  // namespace
}  // namespace contrib_tokenizer_unit

std::span<const Operator> contrib_tokenizer_operators() {
  return contrib_tokenizer_unit::operators;
}

}  // namespace sardonyx::ops
