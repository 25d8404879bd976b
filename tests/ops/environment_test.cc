// What the runs of a model share: packs of weights, random streams, the count of memory.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/fail.h"
#include "ops/prepare_context.h"

namespace sardonyx::ops {
namespace {

// A packed form that is no tensor.
struct Number {
  int value = 0;
  Number(int given) : value(given) {}
  operator int() const { return value; }
  std::vector<Tensor> parts() const { return {Tensor::of<int32_t>({value}, {1})}; }
  static Number of_parts(const std::vector<Tensor>& parts) {
    return parts.at(0).elements<int32_t>()[0];
  }
};

PackFormat named(const std::string& name) {
  return {.family = PackFamily::matrix, .parameters = {name.begin(), name.end()}};
}

std::vector<PackPart> of_bytes(int64_t bytes) { return {{ElementType::uint8, bytes}}; }

TEST(PackCache, MakesEachPackOnceAndWhenAskedFor) {
  PackCache packs;
  ThreadPool pool(1);
  const Tensor weights(ElementType::float32, {4});
  int made = 0;
  const auto pack = [&](const Tensor& of, const std::string& format) {
    return packs.get<Number>(of, named(format), of_bytes(10), [&](ThreadPool&) { return ++made; });
  };
  const auto a = pack(weights, "a"), again = pack(weights, "a"), b = pack(weights, "b");
  EXPECT_EQ(made, 0);
  EXPECT_EQ(b->get(pool), 1);
  EXPECT_EQ(a->get(pool), 2);
  EXPECT_EQ(again->get(pool), 2);
  EXPECT_EQ(pack(Tensor(ElementType::float32, {4}), "a")->get(pool), 3);
  EXPECT_EQ(packs.bytes(), 30);
}

TEST(PackCache, KeepsApartWhatOneFormatDescribesWithOtherSizesOrTypes) {
  PackCache packs;
  ThreadPool pool(1);
  const Tensor weights(ElementType::float32, {4});
  const auto pack = [&](int64_t bytes) {
    return packs.get<Tensor>(weights, named("a"), of_bytes(bytes),
                             [bytes](ThreadPool&) { return Tensor(ElementType::uint8, {bytes}); });
  };
  const auto small = pack(8), large = pack(16), again = pack(8);
  const auto other =
      packs.get<Number>(weights, named("a"), of_bytes(8), [](ThreadPool&) { return 5; });
  EXPECT_EQ(small->get(pool).byte_size(), 8U);
  EXPECT_EQ(large->get(pool).byte_size(), 16U);
  EXPECT_EQ(again, small);
  EXPECT_EQ(other->get(pool), 5);
  EXPECT_EQ(packs.bytes(), 32);
}

TEST(PackCache, MakesAllThatIsLeft) {
  PackCache packs;
  ThreadPool pool(1);
  const Tensor weights(ElementType::float32, {4});
  int made = 0;
  const auto a =
      packs.get<Number>(weights, named("a"), of_bytes(1), [&](ThreadPool&) { return ++made; });
  const auto b =
      packs.get<Number>(weights, named("b"), of_bytes(1), [&](ThreadPool&) { return ++made; });
  a->get(pool);
  packs.make_all(pool);
  EXPECT_EQ(made, 2);
  EXPECT_EQ(a->get(pool), 1);
  EXPECT_EQ(b->get(pool), 2);
}

TEST(PackCache, LetsGoOfTheConstantOnceItIsPacked) {
  PackCache packs;
  ThreadPool pool(1);
  std::weak_ptr<const void> owner;
  std::shared_ptr<const Pack<Number>> pack;
  {
    const Tensor weights(ElementType::float32, {4});
    owner = weights.owner();
    pack = packs.get<Number>(weights, named("a"), of_bytes(1), [](ThreadPool&) { return 1; });
  }
  EXPECT_FALSE(owner.expired());
  pack->get(pool);
  EXPECT_TRUE(owner.expired());
}

TEST(PackCache, MakesOnePackOnceForManyCallers) {
  PackCache packs;
  const Tensor weights(ElementType::float32, {4});
  std::atomic<int> made = 0;
  const auto pack =
      packs.get<Number>(weights, named("a"), of_bytes(1), [&](ThreadPool&) { return ++made; });
  std::barrier start(4);
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      ThreadPool pool(1);
      start.arrive_and_wait();
      EXPECT_EQ(pack->get(pool), 1);
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(made, 1);
}

TEST(PackCache, MakesDifferentPacksAtTheSameTime) {
  PackCache packs;
  const Tensor weights(ElementType::float32, {4});
  std::barrier both(2);  // passed only by two that are packing
  const auto pack = [&](const std::string& format) {
    ThreadPool pool(1);
    const auto made = packs.get<Number>(weights, named(format), of_bytes(1), [&](ThreadPool&) {
      both.arrive_and_wait();
      return 0;
    });
    made->get(pool);
  };
  std::thread other([&] { pack("a"); });
  pack("b");
  other.join();
}

TEST(PackCache, TriesAgainAfterAFailure) {
  PackCache packs;
  ThreadPool pool(1);
  const Tensor weights(ElementType::float32, {4});
  int tries = 0;
  const auto pack = packs.get<Number>(weights, named("a"), of_bytes(1), [&](ThreadPool&) {
    if (++tries == 1) throw std::runtime_error("no");
    return 7;
  });
  EXPECT_THROW(pack->get(pool), std::runtime_error);
  EXPECT_EQ(pack->get(pool), 7);
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
  environment.release(60);
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
