#include "ir/origin.h"

#include <algorithm>
#include <unordered_set>

#include "base/listed.h"
#include "ir/internal_domain.h"

namespace sardonyx::ir {
namespace {

constexpr size_t max_in_messages = 4;
// A node that takes over the work of thousands, one after another, would be slowed down by its
// list.
constexpr size_t max_sources = 256;
constexpr std::string_view internal_prefix = "sardonyx.";

// Whether a source is the node itself, in whatever form it is by now.
bool is_itself(const Node& node, std::string_view source) {
  std::string_view domain = canonical_domain(node.domain);
  const auto drop = [&](std::string_view start) {
    const bool starts = source.starts_with(start);
    if (starts) source.remove_prefix(start.size());
    return starts;
  };
  if (domain == internal_domain) domain = {};
  if (!domain.empty() && !(drop(domain) && drop("."))) return false;
  if (!drop(node.op_type)) return false;
  if (node.name.empty()) return source.starts_with(" making '");
  return drop(" '") && drop(node.name) && drop("'") && (source.empty() || source[0] == ' ');
}

// "t" of "t__12", which lowering names so; the name itself where it is no such name.
std::string_view without_number(std::string_view name) {
  const size_t end = name.find_last_not_of("0123456789");
  if (end == std::string_view::npos || end + 1 == name.size()) return name;
  const std::string_view hint = name.substr(0, end + 1);
  return hint.ends_with("__") ? hint.substr(0, hint.size() - 2) : name;
}

// As identify, by names of the file.
std::string told(const Node& node) {
  std::string text = describe(node);
  if (!node.name.empty() || node.outputs.empty()) return text;
  if (const std::string_view name = told_name(node, node.outputs[0]); !name.empty())
    text.append(" making '").append(name).append(1, '\'');
  return text;
}

}  // namespace

std::string_view told_name(const Node& node, std::string_view value) {
  const bool is_inside = node.origin.starts_with("in function");
  if (!is_inside && node.origin.empty() && told_sources(node).empty()) return value;
  const std::string_view plain = without_number(value);
  return plain == value || is_inside ? plain : std::string_view();
}

std::string place_of(const Node& node) {
  std::string place = told(node);
  if (const auto sources = told_sources(node); !sources.empty()) {
    place.append(" (from ").append(listed(sources, max_in_messages)).append(1, ')');
  } else if (!node.origin.empty()) {
    place.append(" (").append(node.origin).append(1, ')');
  }
  return place;
}

std::string identify(const Node& node) {
  std::string text = describe(node);
  if (node.name.empty() && !node.outputs.empty() && !node.outputs[0].empty())
    text.append(" making '").append(node.outputs[0]).append(1, '\'');
  return text;
}

std::string source_text(const Node& node) {
  std::string text = identify(node);
  if (text.starts_with(internal_prefix)) text.erase(0, internal_prefix.size());
  if (!node.origin.empty()) text.append(" (").append(node.origin).append(1, ')');
  return text;
}

void keep_source(Node& node) {
  if (node.sources.empty() && !node.is_helper) node.sources = {source_text(node)};
}

void set_sources(Node& node, std::span<const Node* const> parts) {
  const Node* only = nullptr;
  int count = 0;
  std::vector<std::string> sources;
  std::unordered_set<std::string_view> seen;
  size_t most = 0;
  for (const Node* part : parts) most += std::max<size_t>(part->sources.size(), 1);
  sources.reserve(std::min(most, max_sources));  // they stay where they are
  const auto add = [&](std::string source) {
    if (sources.size() == max_sources || seen.contains(source)) return;
    seen.insert(sources.emplace_back(std::move(source)));
  };
  for (const Node* part : parts) {
    if (part->is_helper) continue;
    only = part;
    ++count;
    if (part->sources.empty()) add(source_text(*part));
    for (const std::string& source : part->sources) add(source);
  }
  node.is_helper = count == 0;
  std::string origin;
  if (count <= 1) {
    const Node* part = only != nullptr ? only : parts.empty() ? nullptr : parts.front();
    if (part != nullptr) origin = part->origin;
    if (only != nullptr && only->sources.empty() && is_itself(node, sources[0])) sources.clear();
  }
  node.origin = std::move(origin);
  node.sources = std::move(sources);
}

std::vector<std::string> told_sources(const Node& node) {
  if (node.sources.size() == 1 && is_itself(node, node.sources[0])) return {};
  return node.sources;
}

}  // namespace sardonyx::ir
