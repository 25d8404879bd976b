#include "base/memory_account.h"

#include "base/fail.h"

namespace sardonyx {
namespace {

thread_local SharedAccount current;

}  // namespace

const SharedAccount& current_account() { return current; }

void MemoryAccount::charge(int64_t bytes) {
  // What is refused is never in use: others that charge meanwhile must not fail for it.
  int64_t before = used_.load();
  do {
    if (bytes > limit_ - before) {
      throw MemoryLimitReached(fmt::format(
          "this takes more memory than the limit of {} bytes: {} are in use, {} more are "
          "needed; raise {} or use a smaller model",
          limit_, before, bytes, option_.empty() ? "the limit" : option_));
    }
  } while (!used_.compare_exchange_weak(before, before + bytes));
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
