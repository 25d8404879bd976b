#include "session/variants.h"

namespace sardonyx {

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

}  // namespace sardonyx
