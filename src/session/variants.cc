#include "session/variants.h"

#include <fmt/format.h>

namespace sardonyx {

std::string to_text(const VariantChoice& choice) {
  std::string text;
  const auto flag = [&](const char* name, bool is_set) {
    if (is_set) text += fmt::format("{}\n", name);
  };
  // Names may have any characters: their lengths tell where they end.
  const auto name = [&](const char* what, const std::string& of) {
    text += fmt::format("{} {}:{}\n", what, of.size(), of);
  };
  flag("separate_sizes", choice.separate_sizes);
  flag("reference", choice.plain);
  flag("fuse", choice.fuse);
  flag("exact", choice.exact);
  flag("assume_inference", choice.assume_inference);
  flag("all_outputs", choice.all_outputs);
  for (const std::string& one : choice.overridden) name("overridden", one);
  for (const auto& [of, size] : choice.dimensions) {
    name("dimension", of);
    text += fmt::format("{}\n", size);
  }
  for (const std::string& one : choice.extra_outputs) name("output", one);
  return text;
}

std::shared_ptr<Variants::Entry> Variants::entry(const VariantChoice& choice) {
  const std::lock_guard lock(mutex_);
  // Those that nobody holds or makes any more.
  std::erase_if(entries_, [](const auto& one) {
    return one.second.use_count() == 1 && one.second->variant.expired();
  });
  std::shared_ptr<Entry>& found = entries_[choice];
  if (!found) found = std::make_shared<Entry>();
  return found;
}

Variants::Shared Variants::get(const VariantChoice& choice, const std::function<Shared()>& make) {
  const std::shared_ptr<Entry> mine = entry(choice);
  const std::lock_guard lock(mine->making);
  Shared variant = mine->variant.lock();
  if (!variant) {
    variant = make();
    mine->variant = variant;
  }
  return variant;
}

bool Variants::was_asked_for(const VariantChoice& choice) const {
  const std::lock_guard lock(mutex_);
  return entries_.contains(choice);
}

}  // namespace sardonyx
