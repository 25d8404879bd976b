// What the runs of a model share: packs of weights, random streams, the count of memory.
#include <gtest/gtest.h>

#include <barrier>
#include <stdexcept>
#include <thread>

#include "base/fail.h"
#include "ops/prepare_context.h"

namespace sardonyx::ops {
namespace {

using Made = std::shared_ptr<const int>;

TEST(PackCache, MakesEachPackOnce) {
  PackCache packs;
  const Tensor weights(ElementType::float32, {4});
  int made = 0;
  const auto make = [&] { return std::make_shared<const int>(++made); };
  EXPECT_EQ(*packs.get<int>(weights, "a", make), 1);
  EXPECT_EQ(*packs.get<int>(weights, "a", make), 1);
  EXPECT_EQ(*packs.get<int>(weights, "b", make), 2);
  EXPECT_EQ(*packs.get<int>(Tensor(ElementType::float32, {4}), "a", make), 3);
}

TEST(PackCache, MakesDifferentPacksAtTheSameTime) {
  PackCache packs;
  const Tensor weights(ElementType::float32, {4});
  std::barrier both(2);  // passed only by two that are packing
  const auto pack = [&](const std::string& format) {
    packs.get<int>(weights, format, [&] {
      both.arrive_and_wait();
      return std::make_shared<const int>(0);
    });
  };
  std::thread other([&] { pack("a"); });
  pack("b");
  other.join();
}

TEST(PackCache, TriesAgainAfterAFailure) {
  PackCache packs;
  const Tensor weights(ElementType::float32, {4});
  EXPECT_THROW(packs.get<int>(weights, "a", []() -> Made { throw std::runtime_error("no"); }),
               std::runtime_error);
  EXPECT_EQ(*packs.get<int>(weights, "a", [] { return std::make_shared<const int>(7); }), 7);
}

TEST(RandomStreams, StepsGoOnApart) {
  RandomStreams streams(3);
  const uint64_t a = RandomStreams::step_number("a"), b = RandomStreams::step_number("b");
  const auto first = streams.next(a), second = streams.next(a), other = streams.next(b);
  EXPECT_EQ(first.key, second.key);
  EXPECT_NE(first.key, other.key);
  EXPECT_EQ(first.turn, 0u);
  EXPECT_EQ(second.turn, 1u);
  EXPECT_EQ(other.turn, 0u);
  EXPECT_NE(RandomStreams(4).next(a).key, first.key);
}

TEST(RunEnvironment, CountsWhatIsInUse) {
  ThreadPool pool(1);
  RunEnvironment environment(pool);
  environment.memory_limit = 100;
  environment.charge(60);
  EXPECT_THROW(environment.charge(41), Error);
  EXPECT_EQ(environment.charged(), 60);
  {
    const RunEnvironment::Scope scope(environment);
    environment.charge(40);
    EXPECT_THROW(environment.require(1), Error);
  }
  environment.require(40);
  environment.give_back(60);
  EXPECT_EQ(environment.charged(), 0);
  EXPECT_THROW(charged_tensor(environment, ElementType::float32, {int64_t{1} << 40, 1 << 30}),
               Error);
}

TEST(RunEnvironment, MeasuresValuesOfAllKinds) {
  Sequence sequence;
  sequence.items.emplace_back(Tensor(ElementType::float32, {3}));
  sequence.items.emplace_back(Tensor(ElementType::int8, {5}));
  Optional optional;
  optional.held = std::make_unique<Value>(std::move(sequence));
  EXPECT_EQ(owned_bytes(Value(std::move(optional))), 17);
  EXPECT_EQ(owned_bytes(Value()), 0);
}

}  // namespace
}  // namespace sardonyx::ops
