// Outputs in memory of the caller's.
#include "sardonyx/allocator.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "sardonyx/binding.h"
#include "sardonyx/profile.h"
#include "sardonyx/session.h"
#include "support.h"

namespace sardonyx {
namespace {

constexpr std::string_view affine =
    "<ir_version: 10, opset_import: [\"\" : 21]>\n"
    "g (float[N, 2] x) => (float[N, 2] y, float[N, 2] z) <float[2] w = {1, 2}> {\n"
    "  y = Mul(x, w)\n  z = Add(y, x)\n}\n";

// Counts, and knows what is out.
class Counting : public Allocator {
 public:
  void* allocate(size_t bytes, size_t alignment) override {
    const std::lock_guard lock(mutex);
    ++asked;
    if (throws) throw std::runtime_error("no more");
    if (bytes > most) return nullptr;
    EXPECT_GT(bytes, 0u);
    auto* const block =
        static_cast<std::byte*>(::operator new(bytes + 2 * alignment, std::align_val_t(alignment)));
    std::byte* const memory = block + (crooked ? 4 : 0);
    out[memory] = {block, bytes, alignment};
    return memory;
  }
  void release(void* memory, size_t bytes) noexcept override {
    const std::lock_guard lock(mutex);
    const auto found = out.find(memory);
    ASSERT_NE(found, out.end());
    EXPECT_EQ(found->second.bytes, bytes);
    ::operator delete(found->second.block, std::align_val_t(found->second.alignment));
    out.erase(found);
    ++released;
  }
  bool has(const Value& value) {
    const std::lock_guard lock(mutex);
    return out.contains(const_cast<void*>(value.tensor().data()));
  }

  std::mutex mutex;
  struct Block {
    std::byte* block;
    size_t bytes, alignment;
  };
  std::map<void*, Block> out;
  size_t most = SIZE_MAX;
  int asked = 0, released = 0;
  bool crooked = false, throws = false;
};

const Value one_row = Tensor::of<float>({1, 2}, {1, 2});

// An output of each way in which a run makes one: planned, a view of another, as large as the data
// say, an input handed on, twice the same, a constant.
constexpr std::string_view ways =
    "<ir_version: 10, opset_import: [\"\" : 21]>\n"
    "g (float[N, 2] x) => (float[N, 2] y, float[M] flat, int64[2, K] places, float[N, 2] same,"
    " float[N, 2] again, float[2] c, string[1] s, seq(float[N, 2]) q, float[0, 2] none)\n"
    "<float[2] c = {3, 4}> {\n"
    "  y = Mul(x, c)\n  minus = Constant<value_ints = [-1]>()\n  flat = Reshape(y, minus)\n"
    "  places = NonZero(x)\n  same = Identity(x)\n  again = Identity(y)\n"
    "  s = Constant<value_strings = [\"text\"]>()\n  q = SequenceConstruct(y)\n"
    "  zero = Constant<value_ints = [0]>()\n  one = Constant<value_ints = [1]>()\n"
    "  empty = Slice(x, zero, zero, zero)\n  none = Relu(empty)\n}\n";

TEST(Allocator, HoldsAllDenseOutputs) {
  const Model model = Model::from_text(ways);
  for (const bool reference : {false, true}) {
    const auto memory = std::make_shared<Counting>();
    {
      const Session session(model, {.reference = reference, .output_allocator = memory});
      const std::vector<Value> plain = Session(model).run({{"x", one_row}});
      const std::vector<Value> made = session.run({{"x", one_row}});
      for (const size_t i : {0, 1, 2, 3, 4, 5}) {
        EXPECT_TRUE(memory->has(made[i])) << reference << ' ' << i;
        EXPECT_EQ(made[i].tensor().shape(), plain[i].tensor().shape()) << i;
        EXPECT_EQ(0, std::memcmp(made[i].tensor().data(), plain[i].tensor().data(),
                                 plain[i].tensor().byte_size()))
            << i;
      }
      EXPECT_EQ(made[6].tensor().elements<std::string>()[0], "text");
      EXPECT_EQ(made[7].sequence().items.size(), 1u);
      EXPECT_EQ(made[8].tensor().size(), 0);
      const std::vector<Value> second = session.run({{"x", one_row}});
      EXPECT_NE(second[0].tensor().data(), made[0].tensor().data());
      EXPECT_EQ(memory->released, 0);
    }
    EXPECT_EQ(memory->out.size(), 0u);
    EXPECT_EQ(memory->released, memory->asked);
  }
}

TEST(Allocator, LivesAsLongAsItsValues) {
  std::weak_ptr<Counting> watched;
  std::vector<Value> made;
  {
    const auto memory = std::make_shared<Counting>();
    watched = memory;
    const Session session(Model::from_text(affine), {.output_allocator = memory});
    made = session.run({{"x", one_row}});
  }
  ASSERT_FALSE(watched.expired());
  EXPECT_EQ(made[0].tensor().elements<float>()[1], 4);
  made.clear();
  EXPECT_TRUE(watched.expired());
}

TEST(Allocator, IsNotAskedForMemoryThatIsBrought) {
  const auto memory = std::make_shared<Counting>();
  const Session session(Model::from_text(affine), {.output_allocator = memory});
  std::vector<Value> outputs{Tensor(ElementType::float32, {1, 2}), Value()};
  const void* const brought = outputs[0].tensor().data();
  session.run(std::span(&one_row, 1), outputs);
  EXPECT_EQ(outputs[0].tensor().data(), brought);
  EXPECT_EQ(memory->asked, 1);
  EXPECT_TRUE(memory->has(outputs[1]));
}

TEST(Allocator, ServesBindingsProfilesAndRunsOnOtherThreads) {
  const auto memory = std::make_shared<Counting>();
  const Session session(Model::from_text(affine), {.output_allocator = memory});
  Binding binding(session);
  binding.bind_input("x", one_row);
  binding.run();
  const void* const first = binding.output("y").tensor().data();
  binding.run();  // where that of the run before lies
  EXPECT_EQ(binding.output("y").tensor().data(), first);
  EXPECT_TRUE(memory->has(binding.output("y")));
  Profile profile;
  EXPECT_TRUE(memory->has(session.run({{"x", one_row}}, {.profile = &profile})[0]));
  EXPECT_TRUE(memory->has(session.run_async({{"x", one_row}}).get()[1]));
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int k = 0; k < 50; ++k) EXPECT_TRUE(memory->has(session.run({{"x", one_row}})[0]));
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(Allocator, FailuresAreTold) {
  const auto memory = std::make_shared<Counting>();
  const Session session(Model::from_text(affine), {.output_allocator = memory});
  const auto fails_with = [&](ErrorCode code, std::string_view part, const RunOptions& options) {
    try {
      session.run({{"x", one_row}}, options);
      ADD_FAILURE() << part;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_NE(std::string_view(error.what()).find(part), std::string_view::npos) << error.what();
    }
  };
  memory->most = 4;
  fails_with(ErrorCode::out_of_memory, "8 bytes", {});
  memory->most = SIZE_MAX;
  memory->crooked = true;
  fails_with(ErrorCode::bad_input, "multiple of 64", {});
  memory->crooked = false;
  const int asked = memory->asked;
  fails_with(ErrorCode::out_of_memory, "", {.memory_limit = 4});
  EXPECT_EQ(memory->asked, asked);  // the limit comes first
  memory->throws = true;
  EXPECT_THROW(session.run({{"x", one_row}}), std::runtime_error);
  memory->throws = false;
  EXPECT_EQ(session.run({{"x", one_row}})[0].tensor().elements<float>()[0], 1);
  EXPECT_EQ(memory->out.size(), 0u);
}

// Values of the bodies of loops are the run's own.
TEST(Allocator, IsNotAskedByBodies) {
  const auto memory = std::make_shared<Counting>();
  const Model model = Model::from_text(
      "<ir_version: 10, opset_import: [\"\" : 21]>\n"
      "g (float[N] x) => (float[N] y) {\n"
      "  trips = Constant<value_int = 5>()\n  go = Constant<value = bool {1}>()\n"
      "  y = Loop(trips, go, x) <body = b (int64 i, bool c, float[N] s) => (bool d, float[N] t) {\n"
      "    d = Identity(c)\n    t = Add(s, s)\n  }>\n}\n");
  const Session session(model, {.output_allocator = memory});
  const auto made = session.run({{"x", Tensor::of<float>({1, 2, 3}, {3})}});
  EXPECT_EQ(made[0].tensor().elements<float>()[2], 96);
  EXPECT_EQ(memory->asked, 1);
}

}  // namespace
}  // namespace sardonyx
