#include "exceptions.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <tuple>

#include "base/fail.h"

namespace sardonyx::conformance {
namespace {

constexpr Release oldest{0, 0, 0}, newest{999, 0, 0};

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

std::optional<Exception::Kind> kind_of(std::string_view line) {
  if (line.starts_with("[superseded] ")) return Exception::Kind::superseded;
  if (line.starts_with("[random] ")) return Exception::Kind::random;
  if (line.starts_with("[broken] ")) return Exception::Kind::broken;
  return std::nullopt;
}

// "1.17.0", "1.8.1..1.17.0", "1.8.1..", "all"
std::pair<Release, Release> span_of(std::string_view text) {
  if (text == "all") return {oldest, newest};
  const size_t dots = text.find("..");
  const Release first = parse_release(text.substr(0, dots));
  if (dots == std::string_view::npos) return {first, first};
  const std::string_view last = text.substr(dots + 2);
  return {first, last.empty() ? newest : parse_release(last)};
}

}  // namespace

Release parse_release(std::string_view text) {
  Release release{};
  for (int& part : release) {
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, part);
    if (error != std::errc() || stop == end || *stop != '.') break;
    text.remove_prefix(static_cast<size_t>(stop - text.data()) + 1);
  }
  return release;
}

Exceptions::Exceptions(std::string_view text) {
  Exception block;
  size_t part_begin = 0;  // the first entry of the block: its reason may go on
  bool in_block = false;
  for (int number = 1; !text.empty(); ++number) {
    const size_t length = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, length), content = trimmed(line);
    text.remove_prefix(std::min(length + 1, text.size()));
    if (content.empty() || line.front() == '#') continue;
    if (const auto kind = kind_of(line)) {
      in_block = true;
      part_begin = all_.size();
      block.kind = *kind;
      block.reason = trimmed(line.substr(line.find(' ')));
      continue;
    }
    const std::string place = fmt::format("exceptions, line {}", number);
    if (!in_block)
      fail_at(place, ErrorCode::bad_input, "expected [superseded], [random] or [broken]");
    if (line.front() != ' ' && line.front() != '\t') {
      if (all_.size() > part_begin)
        fail_at(place, ErrorCode::bad_input, "the reason must stand before the cases");
      block.reason += fmt::format(" {}", content);
      continue;
    }
    const size_t gap = content.find(' ');
    if (gap == std::string_view::npos)
      fail_at(place, ErrorCode::bad_input, "expected releases and the name of a case");
    Exception& entry = all_.emplace_back(block);
    std::tie(entry.first, entry.last) = span_of(content.substr(0, gap));
    entry.name = trimmed(content.substr(gap));
  }
}

const Exception* Exceptions::find(const Release& release, std::string_view name) const {
  for (const Exception& entry : all_) {
    if (entry.name == name && entry.first <= release && release <= entry.last) return &entry;
  }
  return nullptr;
}

}  // namespace sardonyx::conformance
