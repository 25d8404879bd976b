// What tells packed forms apart, and its bytes in files.
#include "ops/pack_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "base/content_hash.h"
#include "base/thread_pool.h"
#include "ops/pack_cache.h"

namespace sardonyx::ops {
namespace {

PackFormat example() {
  return {.family = PackFamily::conv,
          .from = ElementType::float16,
          .to = ElementType::float32,
          .shape = {64, 3, 7, 7},
          .nhwc = true,
          .winograd = 4,
          .group = 2,
          .strides = {2, 2, 1},
          .dilations = {1, 1, 1},
          .parameters = {1, 0, 255}};
}

// One change to each field.
const std::vector<std::function<void(PackFormat&)>> changes{
    [](PackFormat& f) { f.family = PackFamily::conv_int8; },
    [](PackFormat& f) { f.from = ElementType::bfloat16; },
    [](PackFormat& f) { f.to = ElementType::int8; },
    [](PackFormat& f) {
      f.shape = {64, 3, 7};
    },
    [](PackFormat& f) {
      f.shape = {3, 64, 7, 7};
    },
    [](PackFormat& f) { f.transposed = true; },
    [](PackFormat& f) { f.nhwc = false; },
    [](PackFormat& f) { f.shuffled = true; },
    [](PackFormat& f) { f.shuffles_output = true; },
    [](PackFormat& f) { f.linear_before_reset = true; },
    [](PackFormat& f) { f.winograd = -4; },
    [](PackFormat& f) { f.gates = 3; },
    [](PackFormat& f) { f.bits = 2; },
    [](PackFormat& f) { f.group = INT64_MIN; },
    [](PackFormat& f) { f.strides = {}; },
    [](PackFormat& f) {
      f.dilations = {2, 1, 1};
    },
    [](PackFormat& f) { f.parameters[1] = 2; },
    [](PackFormat& f) { f.parameters.clear(); },
};

TEST(PackFormat, EveryFieldTellsFormatsApart) {
  EXPECT_EQ(example(), example());
  for (size_t i = 0; i < changes.size(); ++i) {
    PackFormat changed = example();
    changes[i](changed);
    EXPECT_NE(changed, example()) << i;
    EXPECT_NE(to_bytes(changed), to_bytes(example())) << i;
  }
}

TEST(PackFormat, BytesGiveTheSameFormat) {
  EXPECT_EQ(pack_format_of(to_bytes(example())), example());
  for (const auto& change : changes) {
    PackFormat changed = example();
    change(changed);
    EXPECT_EQ(pack_format_of(to_bytes(changed)), changed) << describe(changed);
  }
}

TEST(PackFormat, RefusesBytesThatAreNoFormat) {
  const std::vector<std::byte> whole = to_bytes(example());
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(pack_format_of(std::span(whole).first(size))) << size;
  std::vector<std::byte> longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(pack_format_of(longer));
  // Whatever a changed byte gives, it is another format or none.
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const int bit : {0, 7}) {
      std::vector<std::byte> changed = whole;
      changed[i] ^= static_cast<std::byte>(1 << bit);
      const auto read = pack_format_of(changed);
      EXPECT_FALSE(read && *read == example()) << i;
    }
  }
  std::vector<std::byte> family = whole;
  family[0] = std::byte{0};
  EXPECT_FALSE(pack_format_of(family));
  family[0] = std::byte{200};
  EXPECT_FALSE(pack_format_of(family));
}

TEST(PackFormat, FamiliesHaveNames) {
  EXPECT_EQ(name_of(PackFamily::nbits_zero_points), "nbits_zero_points");
  EXPECT_EQ(name_of(static_cast<PackFamily>(13)), "");
  EXPECT_EQ(
      describe(example()),
      "conv float16[64,3,7,7] nhwc winograd 4 group 2 strides 2,2,1 dilations 1,1,1 3 bytes of "
      "parameters");
}

TEST(ContentHash, EveryByteAndTheSizeCount) {
  std::vector<std::byte> bytes(200);
  const ContentHash zeros = content_hash(bytes);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = std::byte{1};
    const ContentHash changed = content_hash(bytes);
    EXPECT_NE(changed[0], zeros[0]) << i;
    EXPECT_NE(changed[1], zeros[1]) << i;
    bytes[i] = std::byte{0};
  }
  std::vector<ContentHash> seen;
  for (size_t size = 0; size <= bytes.size(); ++size) {
    const ContentHash hash = content_hash(std::span(bytes).first(size));
    EXPECT_EQ(std::ranges::count(seen, hash), 0) << size;
    seen.push_back(hash);
  }
  // Swapped halves of a stripe, words and stripes.
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  const ContentHash ascending = content_hash(bytes);
  for (const size_t distance : {8, 16, 32, 64, 128}) {
    std::vector<std::byte> swapped = bytes;
    std::swap_ranges(swapped.begin(), swapped.begin() + 8,
                     swapped.begin() + static_cast<int64_t>(distance));
    EXPECT_NE(content_hash(swapped), ascending) << distance;
  }
}

class OneSource : public PackSource {
 public:
  explicit OneSource(bool by_content) : by_content_(by_content) {}
  bool is_by_content() const override { return by_content_; }
  std::optional<ConstantPlace> place_of(std::span<const std::byte>) const override { return {}; }
  std::optional<std::vector<Tensor>> find(const ConstantId& id, const PackFormat& format,
                                          std::span<const PackPart> parts) const override {
    asked.push_back(id);
    if (format != example() || parts.size() != 1) return std::nullopt;
    return std::vector{Tensor::of<uint8_t>({7}, {1})};
  }
  mutable std::vector<ConstantId> asked;

 private:
  bool by_content_;
};

Bytes bytes_of(const Tensor& tensor) {
  return {tensor.owner(), static_cast<const std::byte*>(tensor.data()), tensor.byte_size()};
}

TEST(PackCache, TakesFormsFromASourceAndCountsNothingForThem) {
  ThreadPool pool(1);
  PackCache cache;
  const Tensor constant = Tensor::of<float>({1, 2, 3}, {3});
  cache.add_file(bytes_of(constant), {5, 100});
  const auto source = std::make_shared<OneSource>(false);
  cache.add_source(source);
  const auto make = [](ThreadPool&) { return Tensor::of<uint8_t>({1}, {1}); };
  const Tensor part =
      Tensor::view(ElementType::float32, {1}, static_cast<const float*>(constant.data()) + 1, 4,
                   constant.owner());
  const auto pack = cache.get<Tensor>(part, example(), {{ElementType::uint8, 1}}, make);
  EXPECT_EQ(pack->get(pool).elements<uint8_t>()[0], 7);
  EXPECT_EQ(cache.bytes(), 0);
  ASSERT_EQ(source->asked.size(), 1u);
  EXPECT_EQ(source->asked[0].place, (ConstantPlace{5, 104}));
  EXPECT_EQ(source->asked[0].bytes, 4u);
  EXPECT_FALSE(source->asked[0].content);
  // What is in no file is told by its content.
  const Tensor folded = Tensor::of<float>({1, 2}, {2});
  PackFormat other = example();
  other.nhwc = false;
  const auto anew = cache.get<Tensor>(folded, other, {{ElementType::uint8, 1}}, make);
  EXPECT_EQ(anew->get(pool).elements<uint8_t>()[0], 1);
  EXPECT_EQ(cache.bytes(), 1);
  EXPECT_EQ(source->asked[1].content, content_hash(std::as_bytes(folded.elements<float>())));
  const auto identified = cache.identified();
  ASSERT_EQ(identified.size(), 2u);
  EXPECT_TRUE(identified[0].is_from_source);
  EXPECT_FALSE(identified[1].is_from_source);
  EXPECT_EQ(identified[1].format, other);
}

TEST(PackCache, TellsByContentWhereASourceNeedsIt) {
  PackCache cache;
  const Tensor constant = Tensor::of<float>({1, 2, 3}, {3});
  cache.add_file(bytes_of(constant), {0, 8});
  const auto source = std::make_shared<OneSource>(true);
  cache.add_source(source);
  cache.get<Tensor>(constant, example(), {{ElementType::uint8, 1}},
                    [](ThreadPool&) { return Tensor(); });
  ASSERT_EQ(source->asked.size(), 1u);
  EXPECT_TRUE(source->asked[0].place);
  EXPECT_EQ(source->asked[0].content, content_hash(std::as_bytes(constant.elements<float>())));
}

// A session that is gone before it ran leaves its folded constants to nobody.
TEST(PackCache, LetsGoOfConstantsThatNobodyPacked) {
  PackCache cache;
  std::vector<std::weak_ptr<const void>> owners;
  for (int i = 0; i < 200; ++i) {
    const Tensor constant = Tensor::of<float>({1, 2, 3}, {3});
    owners.push_back(constant.owner());
    cache.get<Tensor>(constant, example(), {{ElementType::uint8, 1}},
                      [constant](ThreadPool&) { return constant; });
  }
  EXPECT_LT(std::ranges::count_if(owners, [](const auto& one) { return !one.expired(); }), 100);
}

TEST(PackCache, FormsOfOtherArraysAreNotShared) {
  ThreadPool pool(1);
  PackCache cache;
  const Tensor constant = Tensor::of<float>({1, 2, 3}, {3});
  const auto of = [&](uint8_t value, ElementType type, int64_t count) {
    return cache.get<Tensor>(constant, example(), {{type, count}},
                             [=](ThreadPool&) { return Tensor::of<uint8_t>({value}, {1}); });
  };
  EXPECT_EQ(of(1, ElementType::uint8, 8)->get(pool).elements<uint8_t>()[0], 1);
  EXPECT_EQ(of(2, ElementType::uint8, 8)->get(pool).elements<uint8_t>()[0], 1);
  EXPECT_EQ(of(3, ElementType::uint8, 9)->get(pool).elements<uint8_t>()[0], 3);
}

}  // namespace
}  // namespace sardonyx::ops
