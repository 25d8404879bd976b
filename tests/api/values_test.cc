// Memory of the caller's, elements that C++ has no type for, and DLPack.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "sardonyx/dlpack.h"
#include "sardonyx/elements.h"
#include "sardonyx/tensor_ref.h"

namespace sardonyx {
namespace {

template <class T>
std::vector<T> list(const Tensor& tensor) {
  const auto elements = tensor.elements<T>();
  return {elements.begin(), elements.end()};
}

using Floats = std::vector<float>;
constexpr int64_t huge = std::numeric_limits<int64_t>::max();

TEST(TensorRef, DenseMemoryIsViewed) {
  std::array<float, 6> memory{1, 2, 3, 4, 5, 6};
  const TensorRef whole = TensorRef::of<float>(memory, {2, 3});
  EXPECT_EQ(tensor_of(whole).data(), memory.data());
  TensorRef strided = whole;
  strided.strides = {3, 1};
  EXPECT_TRUE(is_dense(strided));
  EXPECT_EQ(tensor_of(strided).data(), memory.data());
  strided.shape = {1, 3};
  strided.strides = {77, 1};
  EXPECT_TRUE(is_dense(strided));
  const Tensor copy = copy_of(whole);
  EXPECT_NE(copy.data(), memory.data());
  EXPECT_EQ(list<float>(copy), Floats(memory.begin(), memory.end()));
}

TEST(TensorRef, StridesAreCopied) {
  std::array<float, 6> memory{1, 2, 3, 4, 5, 6};
  const auto taken = [&](Shape shape, std::vector<int64_t> strides, size_t first, size_t before) {
    return tensor_of({{ElementType::float32, std::move(shape), memory.data() + first,
                       sizeof memory - 4 * first, std::move(strides), before}});
  };
  EXPECT_EQ(list<float>(taken({3, 2}, {1, 3}, 0, 0)), (Floats{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(list<float>(taken({2, 2}, {0, 2}, 1, 0)), (Floats{2, 4, 2, 4}));
  EXPECT_EQ(list<float>(taken({6}, {-1}, 5, 20)), (Floats{6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(list<float>(taken({2, 1, 2}, {-3, 5, -1}, 5, 20)), (Floats{6, 5, 3, 2}));
  EXPECT_EQ(taken({0, 2}, {7, 9}, 0, 0).size(), 0);
  EXPECT_EQ(list<float>(taken({}, {}, 4, 0)), Floats{5});
}

TEST(TensorRef, EachWidthIsCopied) {
  alignas(16) std::array<std::byte, 64> memory{};
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i);
  for (const ElementType type : {ElementType::uint8, ElementType::float16, ElementType::int32,
                                 ElementType::float64, ElementType::complex128}) {
    const size_t width = static_cast<size_t>(bit_width(type)) / 8;
    const Tensor made = tensor_of({{type, {2}, memory.data(), memory.size(), {2}}});
    const auto* bytes = static_cast<const std::byte*>(made.data());
    EXPECT_EQ(bytes[0], memory[0]);
    EXPECT_EQ(bytes[width], memory[2 * width]) << name_of(type);
    EXPECT_EQ(bytes[2 * width - 1], memory[3 * width - 1]);
  }
}

TEST(TensorRef, WhatReachesBeyondTheMemoryIsRefused) {
  std::array<float, 6> memory{};
  const auto code = [&](Shape shape, std::vector<int64_t> strides, size_t before = 0) {
    try {
      tensor_of({{ElementType::float32, std::move(shape), memory.data(), sizeof memory,
                  std::move(strides), before}});
    } catch (const Error& error) {
      return std::string(name_of(error.code()));
    }
    return std::string("taken");
  };
  const std::string refused(name_of(ErrorCode::bad_input));
  EXPECT_EQ(code({6}, {}), "taken");
  EXPECT_EQ(code({7}, {}), refused);
  EXPECT_EQ(code({4}, {2}), refused);
  EXPECT_EQ(code({2}, {-1}), refused);
  EXPECT_EQ(code({2}, {-1}, 3), refused);
  EXPECT_EQ(code({2}, {-1}, 4), "taken");
  EXPECT_EQ(code({2, 2}, {1}), refused);
  EXPECT_EQ(code({-1}, {}), refused);
  EXPECT_EQ(code({huge, huge}, {}), refused);
  EXPECT_EQ(code({3}, {huge}), refused);
  EXPECT_EQ(code({2, 2}, {huge, huge}), refused);
  EXPECT_EQ(code({3}, {-huge}), refused);
}

TEST(TensorRef, WhatHasNoSuchFormIsRefused) {
  std::array<uint8_t, 8> memory{};
  EXPECT_THROW(tensor_of({{ElementType::string, {1}, memory.data(), 8}}), Error);
  EXPECT_THROW(tensor_of({{ElementType::undefined, {1}, memory.data(), 8}}), Error);
  EXPECT_THROW(tensor_of({{ElementType::uint8, {1}, nullptr, 8}}), Error);
  EXPECT_THROW(tensor_of({{ElementType::int4, {2}, memory.data(), 8, {2}}}), Error);
  EXPECT_EQ(tensor_of({{ElementType::int4, {3}, memory.data(), 2}}).size(), 3);
  EXPECT_EQ(tensor_of({{ElementType::uint8, {0}, nullptr, 0}}).size(), 0);
}

TEST(TensorRef, TheOwnerIsKept) {
  auto memory = std::make_shared<std::array<float, 2>>(std::array<float, 2>{1, 2});
  const std::weak_ptr<const void> watched = memory;
  TensorRef ref = TensorRef::of<float>(*memory, {2});
  ref.owner = std::move(memory);
  Tensor tensor = tensor_of(ref);
  ref = {};
  EXPECT_EQ(list<float>(tensor), (Floats{1, 2}));
  EXPECT_FALSE(watched.expired());
  tensor = Tensor();
  EXPECT_TRUE(watched.expired());
}

TEST(Writable, CopiesWhatOthersHold) {
  Tensor tensor = Tensor::of<float>({1, 2}, {2});
  const void* const first = tensor.data();
  static_cast<float*>(writable(tensor).data)[0] = 5;
  EXPECT_EQ(tensor.data(), first);
  const Tensor other = tensor;
  static_cast<float*>(writable(tensor).data)[0] = 9;
  EXPECT_EQ(list<float>(other), (Floats{5, 2}));
  EXPECT_EQ(list<float>(tensor), (Floats{9, 2}));
  const std::array<float, 1> constant{3};
  Tensor view = Tensor::view(ElementType::float32, {1}, constant.data(), 4);
  static_cast<float*>(writable(view).data)[0] = 4;
  EXPECT_EQ(constant[0], 3);
  Tensor strings = Tensor::of<std::string>({"a"}, {1});
  EXPECT_THROW(writable(strings), Error);
  Tensor none;
  EXPECT_THROW(writable(none), Error);
}

TEST(Strings, FromViews) {
  const std::array<std::string_view, 2> texts{"a", std::string_view("b\0c", 3)};
  const Tensor tensor = strings_of(texts, {1, 2});
  EXPECT_EQ(tensor.elements<std::string>()[1].size(), 3u);
  EXPECT_THROW(strings_of(texts, {3}), Error);
}

TEST(Elements, NarrowFloats) {
  EXPECT_EQ(float16(1.0f).bits, 0x3c00);
  EXPECT_EQ(static_cast<float>(float16(65504.0f)), 65504.0f);
  EXPECT_EQ(static_cast<float>(bfloat16(-2.5f)), -2.5f);
  EXPECT_EQ(static_cast<float>(float8e4m3fn(1000.0f)), 448.0f);
  EXPECT_EQ(static_cast<float>(float8e5m2(0.25f)), 0.25f);
  EXPECT_EQ(static_cast<float>(float8e8m0(4.0f)), 4.0f);
  EXPECT_EQ(float16::from_bits(0x8000), float16(0.0f));
  EXPECT_FALSE(float16(NAN) == float16(NAN));
  const Tensor halves = Tensor::of<float16>({float16(0.5f), float16(-1.0f)}, {2});
  EXPECT_EQ(halves.element_type(), ElementType::float16);
  EXPECT_EQ(halves.byte_size(), 4u);
  EXPECT_EQ(static_cast<float>(halves.elements<float16>()[1]), -1.0f);
  EXPECT_THROW(halves.elements<bfloat16>(), Error);
  EXPECT_EQ(Tensor::of<std::complex<float>>({{1, 2}}, {1}).element_type(), ElementType::complex64);
}

// Each type of numbers, with an odd count so that the last byte of packed ones is not full.
TEST(Elements, EveryTypeIsReadOneByOneAndAsAWhole) {
  for (int32_t number = 1; number < element_type_count; ++number) {
    const auto type = static_cast<ElementType>(number);
    SCOPED_TRACE(name_of(type));
    const Floats wanted =
        type == ElementType::float8e8m0 ? Floats{1, 1, 1, 1, 1, 1, 1} : Floats{1, 0, 1, 1, 0, 0, 1};
    if (type == ElementType::string || type == ElementType::complex64 ||
        type == ElementType::complex128) {
      EXPECT_THROW(tensor_from(type, wanted, {7}), Error);
      const Tensor tensor(type, {7});
      EXPECT_THROW(read_as<float>(tensor), Error);
      EXPECT_THROW(element_as_float(tensor, 0), Error);
      continue;
    }
    const Tensor tensor = tensor_from(type, wanted, {7});
    EXPECT_EQ(tensor.element_type(), type);
    EXPECT_EQ(read_as<float>(tensor), wanted);
    EXPECT_EQ(read_as<double>(tensor), std::vector<double>(wanted.begin(), wanted.end()));
    for (size_t i = 0; i < 7; ++i)
      EXPECT_EQ(element_as_float(tensor, static_cast<int64_t>(i)), wanted[i]) << i;
    EXPECT_THROW(element_as_float(tensor, 7), Error);
    EXPECT_THROW(element_as_float(tensor, -1), Error);
    if (is_integer(type) || type == ElementType::boolean) {
      EXPECT_EQ(read_as<int64_t>(tensor), std::vector<int64_t>(wanted.begin(), wanted.end()));
      EXPECT_EQ(element_as_int(tensor, 3), 1);
    } else {
      EXPECT_THROW(read_as<int64_t>(tensor), Error);
      EXPECT_THROW(element_as_int(tensor, 0), Error);
    }
  }
}

TEST(Elements, SignsAndLargeIntegers) {
  const Tensor nibbles = tensor_from(ElementType::int4, std::vector<int64_t>{-8, 7, -1}, {3});
  EXPECT_EQ(nibbles.byte_size(), 2u);
  EXPECT_EQ(read_as<int64_t>(nibbles), (std::vector<int64_t>{-8, 7, -1}));
  EXPECT_EQ(element_as_int(nibbles, 2), -1);
  const Tensor pairs = tensor_from(ElementType::int2, std::vector<int64_t>{-2, 1, 0, -1, 1}, {5});
  EXPECT_EQ(read_as<int64_t>(pairs), (std::vector<int64_t>{-2, 1, 0, -1, 1}));
  const Tensor large = Tensor::of<int64_t>({huge, -huge}, {2});
  EXPECT_EQ(element_as_int(large, 0), huge);
  EXPECT_EQ(read_as<int64_t>(large)[1], -huge);
  EXPECT_THROW(tensor_from(ElementType::int8, std::vector<float>{1, 2}, {3}), Error);
}

TEST(DLPack, ThereAndBackWithoutACopy) {
  const Tensor given = Tensor::of<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  dlpack::ManagedTensorVersioned* const managed = dlpack::to_dlpack_versioned(given);
  EXPECT_EQ(managed->version.major, 1u);
  EXPECT_EQ(managed->flags, dlpack::read_only);
  EXPECT_EQ(managed->tensor.data, given.data());
  EXPECT_EQ(managed->tensor.dtype.code, 2);
  EXPECT_EQ(managed->tensor.dtype.bits, 32);
  EXPECT_EQ(managed->tensor.strides[0], 3);
  EXPECT_EQ(given.owner().use_count(), 2);
  {
    const Tensor back = dlpack::from_dlpack(managed);
    EXPECT_EQ(back.data(), given.data());
    EXPECT_EQ(back.shape(), given.shape());
    const Tensor kept = back;
  }
  EXPECT_EQ(given.owner().use_count(), 1);
  const Tensor old = dlpack::from_dlpack(dlpack::to_dlpack(given));
  EXPECT_EQ(old.data(), given.data());
  auto* const writable = dlpack::to_dlpack_versioned(given, true);
  EXPECT_EQ(writable->flags, 0u);
  writable->deleter(writable);
}

TEST(DLPack, EveryTypeThatItHas) {
  int exchanged = 0;
  for (int32_t number = 1; number < element_type_count; ++number) {
    const auto type = static_cast<ElementType>(number);
    SCOPED_TRACE(name_of(type));
    const Tensor tensor(type, {5});
    if (type == ElementType::string || bit_width(type) == 6) {
      EXPECT_THROW(dlpack::to_dlpack(tensor), Error);
      continue;
    }
    const Tensor back = dlpack::from_dlpack(dlpack::to_dlpack_versioned(tensor));
    EXPECT_EQ(back.element_type(), type);
    EXPECT_EQ(back.byte_size(), tensor.byte_size());
    ++exchanged;
  }
  EXPECT_EQ(exchanged, 25);
}

// Memory of another library's.
struct Foreign {
  std::vector<float> memory = std::vector<float>(24);
  std::vector<int64_t> shape, strides;
  dlpack::ManagedTensorVersioned managed{};
  int deleted = 0;

  Foreign(std::vector<int64_t> sizes, std::vector<int64_t> steps)
      : shape(std::move(sizes)), strides(std::move(steps)) {
    std::iota(memory.begin(), memory.end(), 0.0f);
    managed.version = {1, 0};
    managed.context = this;
    managed.deleter = [](dlpack::ManagedTensorVersioned* self) {
      ++static_cast<Foreign*>(self->context)->deleted;
    };
    managed.tensor = {memory.data(),
                      {1, 0},
                      static_cast<int32_t>(shape.size()),
                      {2, 32, 1},
                      shape.data(),
                      strides.empty() ? nullptr : strides.data(),
                      0};
  }
};

TEST(DLPack, ForeignMemory) {
  Foreign dense({2, 3}, {});
  dense.managed.tensor.byte_offset = 4;
  {
    const Tensor taken = dlpack::from_dlpack(&dense.managed);
    EXPECT_EQ(list<float>(taken), (Floats{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(dense.deleted, 0);
  }
  EXPECT_EQ(dense.deleted, 1);
  Foreign turned({3, 2}, {1, 3});
  const Tensor copy = dlpack::from_dlpack(&turned.managed);
  EXPECT_EQ(turned.deleted, 1);
  EXPECT_EQ(list<float>(copy), (Floats{0, 3, 1, 4, 2, 5}));
  Foreign backwards({4}, {-2});
  backwards.managed.tensor.byte_offset = 4 * 6;
  EXPECT_EQ(list<float>(dlpack::from_dlpack(&backwards.managed)), (Floats{6, 4, 2, 0}));
  Foreign scalar({}, {});
  EXPECT_EQ(dlpack::from_dlpack(&scalar.managed).rank(), 0);
  Foreign empty({0, 3}, {9, 9});
  empty.managed.tensor.data = nullptr;
  EXPECT_EQ(dlpack::from_dlpack(&empty.managed).size(), 0);
}

TEST(DLPack, WhatIsRefusedStaysTheCallers) {
  const auto refused = [](const std::function<void(Foreign&)>& spoil, std::vector<int64_t> shape,
                          std::vector<int64_t> strides = {}) {
    Foreign foreign(std::move(shape), std::move(strides));
    spoil(foreign);
    EXPECT_THROW(dlpack::from_dlpack(&foreign.managed), Error);
    EXPECT_EQ(foreign.deleted, 0);
  };
  const auto nothing = [](Foreign&) {};
  refused([](Foreign& f) { f.managed.tensor.device.type = 2; }, {2});
  refused([](Foreign& f) { f.managed.tensor.dtype.lanes = 4; }, {2});
  refused([](Foreign& f) { f.managed.tensor.dtype.code = 77; }, {2});
  refused([](Foreign& f) { f.managed.tensor.dtype.bits = 24; }, {2});
  refused([](Foreign& f) { f.managed.tensor.ndim = -1; }, {2});
  refused([](Foreign& f) { f.managed.tensor.ndim = 1 << 30; }, {2});
  refused([](Foreign& f) { f.managed.tensor.shape = nullptr; }, {2});
  refused([](Foreign& f) { f.managed.tensor.data = nullptr; }, {2});
  refused([](Foreign& f) { f.managed.version.major = 2; }, {2});
  refused(
      [](Foreign& f) {
        f.managed.flags = dlpack::is_subbyte_padded;
        f.managed.tensor.dtype = {0, 4, 1};
      },
      {2});
  refused(nothing, {-1});
  refused(nothing, {huge, huge});
  refused(nothing, {3, 3}, {huge, huge});
  refused(nothing, {3, 3}, {-huge, -huge});
  EXPECT_THROW(dlpack::from_dlpack(static_cast<dlpack::ManagedTensor*>(nullptr)), Error);
  EXPECT_THROW(dlpack::from_dlpack(static_cast<dlpack::ManagedTensorVersioned*>(nullptr)), Error);
}

}  // namespace
}  // namespace sardonyx
