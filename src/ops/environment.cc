#include "ops/environment.h"

#include "base/checked.h"
#include "base/fail.h"
#include "ops/run_account.h"
#include "ops/shared/memory.h"
#include "ops/step_memory.h"

namespace sardonyx::ops {

uint64_t RandomStreams::step_number(std::string_view output) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : output) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return hash;
}

RandomStreams::Stream RandomStreams::next(uint64_t step_number) {
  const std::lock_guard lock(mutex_);
  return {seed_ ^ step_number, turns_[step_number]++};
}

void RunEnvironment::check_cancelled() const {
  if (cancel && cancel->load(std::memory_order_relaxed))
    fail(ErrorCode::cancelled, "the run was cancelled");
  if (deadline && std::chrono::steady_clock::now() > *deadline)
    fail(ErrorCode::cancelled, "the run's deadline has passed");
}

void RunEnvironment::require(int64_t bytes) const {
  if (bytes > memory_limit - charged_) {
    fail(ErrorCode::out_of_memory,
         "the run needs more than its limit of {} bytes: {} are in use, {} more are needed; raise "
         "RunOptions::memory_limit or run smaller inputs",
         memory_limit, charged_, bytes);
  }
}

namespace {

thread_local StepAccount* step_at_hand = nullptr;

}  // namespace

StepAccount::StepAccount(RunEnvironment& environment, SharedAccount account)
    : environment_(environment), account_(std::move(account)), outer_(step_at_hand) {
  step_at_hand = this;
}

StepAccount::~StepAccount() { step_at_hand = outer_; }

void StepAccount::charge(const RunEnvironment& environment, int64_t bytes) {
  if (&environment != &environment_) return;
  try {
    account_->charge(bytes);
    mirrored_ += bytes;
  } catch (const MemoryLimitReached& reached) {
    throw reached.to_error();
  }
}

void RunEnvironment::charge(int64_t bytes) {
  require(bytes);
  if (step_at_hand != nullptr) step_at_hand->charge(*this, bytes);
  charged_ += bytes;
}

Tensor charged_tensor(RunEnvironment& environment, ElementType type, Shape shape,
                      RecycledBlocks* blocks) {
  const auto count = checked_count(shape);
  if (count) environment.charge(memory_of(type, *count));
  if (blocks == nullptr || !count || !is_known(type) || type == ElementType::string)
    return Tensor(type, std::move(shape));  // which refuses shapes that overflow
  const Bytes block = blocks->allocate(static_cast<size_t>(byte_size(type, *count)));
  return Tensor::view(type, std::move(shape), block.data(), block.size(), block.owner());
}

int64_t owned_bytes(const Value& value) {
  const auto sum = [](const std::vector<Value>& items) {
    int64_t bytes = 0;
    for (const Value& item : items) bytes += owned_bytes(item);
    return bytes;
  };
  const auto of_tensor = [](const Tensor& tensor) {
    if (!tensor.owner()) return int64_t{0};
    return memory_of(tensor.element_type(), tensor.size()) +
           (tensor.element_type() == ElementType::string ? text_bytes(Value(tensor)) : 0);
  };
  switch (value.kind()) {
    case Value::Kind::tensor: return of_tensor(value.tensor());
    case Value::Kind::sequence: return sum(value.sequence().items);
    case Value::Kind::map: return of_tensor(value.map().keys) + sum(value.map().values);
    case Value::Kind::optional:
      return value.optional().held ? owned_bytes(*value.optional().held) : 0;
    case Value::Kind::sparse_tensor:
      return of_tensor(value.sparse_tensor().values) + of_tensor(value.sparse_tensor().indices);
    default: return 0;
  }
}

}  // namespace sardonyx::ops
