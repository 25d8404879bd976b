#include "input_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "os.h"
#include "words.h"

namespace sardonyx::cli {
namespace {

// "float32" of "float32:[1,2]" or "float32[2]"; "" where the text does not begin with such a word.
std::string_view leading_word(std::string_view text) {
  const auto is_part = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; };
  const auto end = std::ranges::find_if_not(text, is_part);
  if (text.empty() || !std::isalpha(static_cast<unsigned char>(text[0]))) return {};
  return text.substr(0, static_cast<size_t>(end - text.begin()));
}

bool names_type(std::string_view word) {
  constexpr std::array types{"float",  "float16", "float32", "float64", "double", "half",
                             "int",    "int8",    "int16",   "int32",   "int64",  "uint8",
                             "uint16", "uint32",  "uint64",  "bool",    "string", "bfloat16",
                             "f16",    "f32",     "f64",     "i32",     "i64",    "tensor",
                             "fp16",   "fp32",    "long",    "str",     "u8",     "boolean"};
  std::string lower(word);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::ranges::find(types, lower) != types.end();
}

}  // namespace

std::string input_advice(std::string_view name, std::string_view text,
                         const ValueDescription& wanted) {
  const std::string_view word = leading_word(text);
  const std::string_view rest = text.substr(word.size());
  if (names_type(word)) {
    const bool has_value = rest.starts_with(':') && rest.size() > 1;
    return fmt::format("the model says the type, {}: write the value alone, as in --input {}={}",
                       wanted.type, name, has_value ? rest.substr(1) : "[1,2]");
  }
  constexpr std::array<std::string_view, 2> made{"random", "ones"};
  const std::string_view close = word.starts_with("rand") ? made[0] : closest(word, made);
  if (!close.empty() && (rest.empty() || rest.starts_with(':') || rest.starts_with('(')))
    return fmt::format("did you mean --input {}={}? The sizes are the model's, or --dim's", name,
                       close);
  if (os::exists(std::string(text)))
    return fmt::format(
        "a file of that name is there, but values are read from .npy .npz .pb .json .txt .png "
        ".jpg; "
        "--input {}=@FILE reads one whatever its name",
        name);
  if (text.starts_with('('))
    return fmt::format("lists stand in brackets, as in --input \"{}=[[1,2],[3,4]]\"", name);
  return fmt::format(
      "the model takes {}: write numbers, as in {}=1.5 or \"{}=[[1,2],[3,4]]\", a file, random or "
      "ones",
      wanted.type, name, name);
}

}  // namespace sardonyx::cli
