// What reading, preparing and inferring a model takes of memory, held against a limit.
//
// Who reads or makes something in proportion to a model calls charge_memory() or owns a
// MemoryCharge; whom that is charged to, the caller of the library decides (within_limit), so that
// no function between the two has to hand it on. Without an account nothing is counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sardonyx/error.h"

namespace sardonyx {

// Thrown where an account's limit is reached. No Error, since many who catch one go on without
// what failed: within_limit makes one of it.
class MemoryLimitReached : public std::exception {
 public:
  explicit MemoryLimitReached(std::string message) : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }
  const std::string& location() const { return location_; }
  // Where it happened, if nobody has said yet.
  void locate(std::string location) {
    if (location_.empty()) location_ = std::move(location);
  }
  Error to_error() const { return Error(ErrorCode::out_of_memory, message_, location_); }

 private:
  std::string message_, location_;
};

// Thread-safe.
class MemoryAccount {
 public:
  // `limit`: bytes; 0: none. `option` names what sets it, for the message. `used`: what is in use
  // already.
  // Throws Error (bad_input) where the limit is negative.
  explicit MemoryAccount(int64_t limit, std::string option = {}, int64_t used = 0)
      : limit_(limit > 0 ? limit : INT64_MAX), option_(std::move(option)), used_(used) {
    if (limit < 0) throw Error(ErrorCode::bad_input, option_ + " must not be negative");
  }
  MemoryAccount(const MemoryAccount&) = delete;
  MemoryAccount& operator=(const MemoryAccount&) = delete;

  // Throws MemoryLimitReached where `bytes` more would pass the limit.
  void charge(int64_t bytes);
  void release(int64_t bytes) { used_ -= bytes; }
  int64_t used() const { return used_; }
  int64_t left() const { return limit_ - used_; }
  int64_t peak() const { return peak_; }

 private:
  const int64_t limit_;
  const std::string option_;
  std::atomic<int64_t> used_, peak_{0};
};

using SharedAccount = std::shared_ptr<MemoryAccount>;

// Whom this thread charges; null: nobody.
const SharedAccount& current_account();

// While it lives, this thread charges the account; a null one changes nothing.
class UseAccount {
 public:
  explicit UseAccount(SharedAccount account);
  ~UseAccount();
  UseAccount(const UseAccount&) = delete;
  UseAccount& operator=(const UseAccount&) = delete;

 private:
  SharedAccount before_;
  const bool changes_;
};

// Charges what lasts as long as the account's model or session.
inline void charge_memory(int64_t bytes) {
  if (const SharedAccount& account = current_account()) account->charge(bytes);
}
// The same; `place` makes the text that says where, if the limit is reached.
template <class Place>
void charge_memory(int64_t bytes, const Place& place) {
  try {
    charge_memory(bytes);
  } catch (MemoryLimitReached& reached) {
    reached.locate(place());
    throw;
  }
}

// What is charged while something lives. Copies of the owner charge nothing.
class MemoryCharge {
 public:
  MemoryCharge() = default;
  explicit MemoryCharge(int64_t bytes) { add(bytes); }
  MemoryCharge(const MemoryCharge&) {}
  MemoryCharge& operator=(const MemoryCharge&) { return *this; }
  MemoryCharge(MemoryCharge&& other) noexcept
      : account_(std::move(other.account_)), bytes_(std::exchange(other.bytes_, 0)) {}
  MemoryCharge& operator=(MemoryCharge&& other) noexcept {
    std::swap(account_, other.account_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MemoryCharge() { clear(); }

  // Throws MemoryLimitReached. The account is that of the first call.
  void add(int64_t bytes) {
    if (!account_) account_ = current_account();
    if (!account_) return;
    account_->charge(bytes);
    bytes_ += bytes;
  }
  void clear() {
    if (account_) account_->release(std::exchange(bytes_, 0));
  }

 private:
  SharedAccount account_;
  int64_t bytes_ = 0;
};

// What `work` returns, charged to the account. Where its limit is reached: Error (out_of_memory).
template <class Work>
std::invoke_result_t<Work> within_limit(SharedAccount account, const Work& work) {
  const UseAccount use(std::move(account));
  try {
    return work();
  } catch (const MemoryLimitReached& reached) {
    throw reached.to_error();
  }
}

}  // namespace sardonyx
