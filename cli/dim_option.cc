#include "dim_option.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <optional>
#include <string_view>

#include "arguments.h"
#include "terminal.h"

namespace sardonyx::cli {
namespace {

std::optional<int64_t> size_from(std::string_view text) {
  int64_t size = 0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, size);
  if (problem != std::errc() || stop != end || size < 0) return std::nullopt;
  return size;
}

// Adds "batch=4,seq=8". A name may hold commas, and '=', since a size has neither.
void add_sizes(std::string_view option, std::string_view text, DimSizes& sizes) {
  size_t begin = 0, search = 0;
  while (begin <= text.size()) {
    const size_t comma = std::min(text.find(',', search), text.size());
    const std::string_view part = text.substr(begin, comma - begin);
    const size_t equals = part.rfind('=');
    if (equals == std::string_view::npos && comma < text.size()) {
      search = comma + 1;  // within a name
      continue;
    }
    if (equals == std::string_view::npos || equals == 0) {
      throw UsageError(
          fmt::format("{} {}: expected NAME=N, as in {} batch=4", option, text, option));
    }
    const std::string_view name = part.substr(0, equals), number = part.substr(equals + 1);
    const auto size = size_from(number);
    if (!size) {
      throw UsageError(
          fmt::format("{} {}: '{}' is not a size, a whole number from 0 on", option, text, number));
    }
    const auto [place, is_new] = sizes.try_emplace(std::string(name), *size);
    if (!is_new && place->second != *size) {
      throw UsageError(fmt::format("{} {}: '{}' is given twice, as {} and as {}", option, text,
                                   name, place->second, *size));
    }
    begin = search = comma + 1;
  }
}

}  // namespace

void DimOption::add(const Options& command, const std::string& help) {
  command.add_option(name_, texts_, help).type_name("NAME=N[,NAME=N]").one_value_each();
  if (name_ != std::string_view("--dim")) return;
  command.add_option("--set", old_texts_, "The old name of --dim")
      .type_name("NAME=N")
      .one_value_each()
      .group("");  // not listed
}

DimSizes DimOption::sizes() const {
  DimSizes sizes;
  for (const std::string& text : texts_) add_sizes(name_, text, sizes);
  for (const std::string& text : old_texts_) add_sizes("--set", text, sizes);
  if (!old_texts_.empty()) warn_of_old_name("--dim", "--set");
  return sizes;
}

}  // namespace sardonyx::cli
