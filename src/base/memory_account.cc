#include "base/memory_account.h"

#include "base/fail.h"

namespace sardonyx {
namespace {

thread_local SharedAccount current;

}  // namespace

const SharedAccount& current_account() { return current; }

void MemoryAccount::charge(int64_t bytes) {
  const int64_t before = used_.fetch_add(bytes);
  if (bytes > limit_ - before) {
    used_ -= bytes;
    throw MemoryLimitReached(
        fmt::format("this takes more memory than the limit of {} bytes: {} are in use, {} more are "
                    "needed; raise {} or use a smaller model",
                    limit_, before, bytes, option_.empty() ? "the limit" : option_));
  }
  int64_t peak = peak_.load(std::memory_order_relaxed);
  while (peak < before + bytes && !peak_.compare_exchange_weak(peak, before + bytes)) {
  }
}

UseAccount::UseAccount(SharedAccount account) : changes_(account != nullptr) {
  if (changes_) before_ = std::exchange(current, std::move(account));
}

UseAccount::~UseAccount() {
  if (changes_) current = std::move(before_);
}

}  // namespace sardonyx
