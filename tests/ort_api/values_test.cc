#include <array>
#include <cstring>

#include "ort_api/api.h"

namespace sardonyx::ort_api {
namespace {

Held<OrtValue> strings(const std::vector<const char*>& texts, const std::vector<int64_t>& shape) {
  OrtValue* value = nullptr;
  EXPECT_OK(api().CreateTensorAsOrtValue(allocator(), shape.data(), shape.size(),
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &value));
  EXPECT_OK(api().FillStringTensor(value, texts.data(), texts.size()));
  return hold(value);
}

ONNXType type_of(const OrtValue* value) {
  ONNXType type{};
  EXPECT_OK(api().GetValueType(value, &type));
  return type;
}

TEST(Values, TensorIsAViewOfTheCallersMemory) {
  std::vector<float> elements{1, 2, 3, 4, 5, 6};
  const auto value = floats(elements, {2, 3});
  void* data = nullptr;
  EXPECT_OK(api().GetTensorMutableData(value.get(), &data));
  EXPECT_EQ(data, elements.data());
  int is_tensor = 0, has_value = 0;
  EXPECT_OK(api().IsTensor(value.get(), &is_tensor));
  EXPECT_OK(api().HasValue(value.get(), &has_value));
  EXPECT_EQ(is_tensor, 1);
  EXPECT_EQ(has_value, 1);
  EXPECT_EQ(type_of(value.get()), ONNX_TYPE_TENSOR);
  EXPECT_EQ(shape_of(value.get()), (std::vector<int64_t>{2, 3}));
  const std::array<int64_t, 2> place{1, 2};
  ASSERT_OK(api().TensorAt(value.get(), place.data(), place.size(), &data));
  EXPECT_EQ(data, &elements[5]);
  const std::array<int64_t, 2> outside{1, 3};
  EXPECT_REFUSED(api().TensorAt(value.get(), outside.data(), outside.size(), &data),
                 ORT_INVALID_ARGUMENT, "outside");
  const OrtMemoryInfo* info = nullptr;
  ASSERT_OK(api().GetTensorMemoryInfo(value.get(), &info));
  const char* name = nullptr;
  EXPECT_OK(api().MemoryInfoGetName(info, &name));
  EXPECT_STREQ(name, "Cpu");
}

TEST(Values, MemoryThatIsTooSmallIsRefused) {
  std::vector<float> elements{1, 2};
  const auto info = cpu_info();
  const std::array<int64_t, 1> three{3}, negative{-1};
  OrtValue* value = nullptr;
  EXPECT_REFUSED(
      api().CreateTensorWithDataAsOrtValue(info.get(), elements.data(), 8, three.data(), 1,
                                           ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value),
      ORT_INVALID_ARGUMENT, "");
  EXPECT_REFUSED(
      api().CreateTensorWithDataAsOrtValue(info.get(), elements.data(), 8, negative.data(), 1,
                                           ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value),
      ORT_INVALID_ARGUMENT, "negative");
  EXPECT_EQ(value, nullptr);
}

TEST(Values, ScalarAndEmptyTensors) {
  std::vector<float> one{7}, none;
  const auto scalar = floats(one, {});
  EXPECT_EQ(shape_of(scalar.get()), std::vector<int64_t>());
  const auto empty = floats(none, {0, 4});
  EXPECT_EQ(shape_of(empty.get()), (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(floats_of(empty.get()), std::vector<float>());
}

TEST(Values, OfEachElementType) {
  const std::array<int64_t, 1> shape{5};
  for (int type = 1; type <= 22; ++type) {
    OrtValue* value = nullptr;
    const auto number = static_cast<ONNXTensorElementDataType>(type);
    if (type == 14 || type == 15)
      continue;  // complex numbers, which ONNX Runtime has no tensors of
    ASSERT_OK(api().CreateTensorAsOrtValue(allocator(), shape.data(), 1, number, &value)) << type;
    const auto held = hold(value);
    OrtTensorTypeAndShapeInfo* info = nullptr;
    ASSERT_OK(api().GetTensorTypeAndShape(value, &info));
    ONNXTensorElementDataType found{};
    size_t count = 0;
    EXPECT_OK(api().GetTensorElementType(info, &found));
    EXPECT_OK(api().GetTensorShapeElementCount(info, &count));
    EXPECT_EQ(found, number);
    EXPECT_EQ(count, 5u);
    api().ReleaseTensorTypeAndShapeInfo(info);
  }
  OrtValue* value = nullptr;
  EXPECT_NE(
      outcome(api().CreateTensorAsOrtValue(allocator(), shape.data(), 1,
                                           static_cast<ONNXTensorElementDataType>(99), &value))
          .code,
      ORT_OK);
}

TEST(Values, StringsGoInAndOut) {
  const auto value = strings({"one", "", "drei\xc3\xa4"}, {3});
  size_t length = 0;
  EXPECT_OK(api().GetStringTensorDataLength(value.get(), &length));
  EXPECT_EQ(length, 9u);
  std::string text(length, ' ');
  std::vector<size_t> offsets(3);
  EXPECT_OK(api().GetStringTensorContent(value.get(), text.data(), text.size(), offsets.data(),
                                         offsets.size()));
  EXPECT_EQ(text, "onedrei\xc3\xa4");
  EXPECT_EQ(offsets, (std::vector<size_t>{0, 3, 3}));
  EXPECT_OK(api().GetStringTensorElementLength(value.get(), 2, &length));
  EXPECT_EQ(length, 6u);
  EXPECT_OK(api().FillStringTensorElement(value.get(), "second", 1));
  std::string second(6, ' ');
  EXPECT_OK(api().GetStringTensorElement(value.get(), second.size(), 1, second.data()));
  EXPECT_EQ(second, "second");
  char* buffer = nullptr;
  ASSERT_OK(api().GetResizedStringTensorElementBuffer(value.get(), 0, 4, &buffer));
  std::memcpy(buffer, "four", 4);
  EXPECT_OK(api().GetStringTensorElementLength(value.get(), 0, &length));
  EXPECT_EQ(length, 4u);
  EXPECT_NE(outcome(api().GetStringTensorElementLength(value.get(), 3, &length)).code, ORT_OK);
  EXPECT_NE(outcome(api().GetStringTensorElement(value.get(), 1, 0, second.data())).code, ORT_OK);
  const std::array<const char*, 2> two{"a", "b"};
  EXPECT_NE(outcome(api().FillStringTensor(value.get(), two.data(), 2)).code, ORT_OK);
}

TEST(Values, SequencesAndMaps) {
  std::vector<float> a{1, 2}, b{3};
  const auto first = floats(a, {2}), second = floats(b, {1});
  const std::array<const OrtValue*, 2> two{first.get(), second.get()};
  OrtValue* made = nullptr;
  ASSERT_OK(api().CreateValue(two.data(), 2, ONNX_TYPE_SEQUENCE, &made));
  const auto sequence = hold(made);
  EXPECT_EQ(type_of(made), ONNX_TYPE_SEQUENCE);
  size_t count = 0;
  EXPECT_OK(api().GetValueCount(made, &count));
  EXPECT_EQ(count, 2u);
  OrtValue* item = nullptr;
  ASSERT_OK(api().GetValue(made, 1, allocator(), &item));
  EXPECT_EQ(floats_of(hold(item).get()), b);
  EXPECT_NE(outcome(api().GetValue(made, 2, allocator(), &item)).code, ORT_OK);

  std::vector<int64_t> keys{5, 9};
  const auto key = tensor(keys, {2}, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64);
  const std::array<const OrtValue*, 2> parts{key.get(), first.get()};
  ASSERT_OK(api().CreateValue(parts.data(), 2, ONNX_TYPE_MAP, &made));
  const auto map = hold(made);
  EXPECT_EQ(type_of(made), ONNX_TYPE_MAP);
  EXPECT_OK(api().GetValueCount(made, &count));
  EXPECT_EQ(count, 2u);
  ASSERT_OK(api().GetValue(made, 0, allocator(), &item));
  EXPECT_EQ(shape_of(hold(item).get()), (std::vector<int64_t>{2}));
  ASSERT_OK(api().GetValue(made, 1, allocator(), &item));
  EXPECT_EQ(floats_of(hold(item).get()), a);
  OrtTypeInfo* info = nullptr;
  ASSERT_OK(api().GetTypeInfo(made, &info));
  const OrtMapTypeInfo* of_map = nullptr;
  ASSERT_OK(api().CastTypeInfoToMapTypeInfo(info, &of_map));
  ASSERT_NE(of_map, nullptr);
  ONNXTensorElementDataType key_type{};
  EXPECT_OK(api().GetMapKeyType(of_map, &key_type));
  EXPECT_EQ(key_type, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64);
  const OrtSequenceTypeInfo* of_sequence = nullptr;
  EXPECT_OK(api().CastTypeInfoToSequenceTypeInfo(info, &of_sequence));
  EXPECT_EQ(of_sequence, nullptr);
  api().ReleaseTypeInfo(info);
}

TEST(Values, WhatSequencesAndMapsAreNotMadeOf) {
  std::vector<float> a{1, 2};
  const auto item = floats(a, {2});
  const std::array<const OrtValue*, 1> one{item.get()};
  OrtValue* made = nullptr;
  ASSERT_OK(api().CreateValue(one.data(), 1, ONNX_TYPE_SEQUENCE, &made));
  const auto sequence = hold(made);
  const std::array<const OrtValue*, 1> nested{sequence.get()};
  EXPECT_REFUSED(api().CreateValue(nested.data(), 1, ONNX_TYPE_SEQUENCE, &made), ORT_FAIL,
                 "tensors or maps");
  const std::array<const OrtValue*, 2> float_keys{item.get(), item.get()};
  EXPECT_NE(outcome(api().CreateValue(float_keys.data(), 2, ONNX_TYPE_MAP, &made)).code, ORT_OK);
}

// Counts what it gives and takes back.
struct Counting : OrtAllocator {
  int given = 0;
  Counting() {
    std::memset(static_cast<OrtAllocator*>(this), 0, sizeof(OrtAllocator));
    version = 22;
    Alloc = [](OrtAllocator* self, size_t size) {
      return ++static_cast<Counting*>(self)->given, std::malloc(size);
    };
    Free = [](OrtAllocator* self, void* memory) {
      --static_cast<Counting*>(self)->given, std::free(memory);
    };
    Info = [](const OrtAllocator*) -> const OrtMemoryInfo* {
      static const auto info = cpu_info();
      return info.get();
    };
    Reserve = Alloc;
  }
};

TEST(Values, OfTypesThatDoNotFitAreNotCombined) {
  std::vector<float> a{1, 2};
  std::vector<int64_t> keys{5, 9};
  std::vector<uint8_t> halves{0x21};
  const auto first = floats(a, {2});
  const auto other = tensor(keys, {2}, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64);
  const auto packed = tensor(halves, {2}, static_cast<ONNXTensorElementDataType>(22));  // int4
  OrtValue* made = nullptr;
  const std::array<const OrtValue*, 2> mixed{first.get(), other.get()};
  EXPECT_NE(outcome(api().CreateValue(mixed.data(), 2, ONNX_TYPE_SEQUENCE, &made)).code, ORT_OK);
  const std::array<const OrtValue*, 2> of_halves{other.get(), packed.get()};
  EXPECT_NE(outcome(api().CreateValue(of_halves.data(), 2, ONNX_TYPE_MAP, &made)).code, ORT_OK);
  const std::array<const OrtValue*, 2> by_floats{first.get(), other.get()};
  EXPECT_NE(outcome(api().CreateValue(by_floats.data(), 2, ONNX_TYPE_MAP, &made)).code, ORT_OK);
  EXPECT_EQ(made, nullptr);
}

TEST(Values, MemoryOfTheCallersAllocator) {
  Counting counting;
  const std::array<int64_t, 2> shape{3, 4};
  OrtValue* value = nullptr;
  ASSERT_OK(api().CreateTensorAsOrtValue(&counting, shape.data(), 2,
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
  EXPECT_EQ(counting.given, 1);
  api().ReleaseValue(value);
  EXPECT_EQ(counting.given, 0);
}

TEST(Values, MemoryThatIsGivenAway) {
  Counting counting;
  float* const elements = static_cast<float*>(counting.Alloc(&counting, 12));
  elements[0] = 1, elements[1] = 2, elements[2] = 3;
  const std::array<int64_t, 1> shape{3}, larger{4};
  OrtValue* value = nullptr;
  EXPECT_NE(outcome(api().CreateTensorWithDataAndDeleterAsOrtValue(
                        &counting, elements, 12, larger.data(), 1,
                        ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value))
                .code,
            ORT_OK);
  EXPECT_EQ(counting.given, 1);
  ASSERT_OK(api().CreateTensorWithDataAndDeleterAsOrtValue(
      &counting, elements, 12, shape.data(), 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
  EXPECT_EQ(floats_of(value), (std::vector<float>{1, 2, 3}));
  api().ReleaseValue(value);
  EXPECT_EQ(counting.given, 0);
}

TEST(Values, MapsAreSortedAndHaveEachKeyOnce) {
  std::vector<int64_t> keys{9, 3, 9};
  std::vector<float> numbers{1, 2, 3};
  const auto key = tensor(keys, {3}, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64);
  const auto value = floats(numbers, {3});
  const std::array<const OrtValue*, 2> parts{key.get(), value.get()};
  OrtValue* made = nullptr;
  ASSERT_OK(api().CreateValue(parts.data(), 2, ONNX_TYPE_MAP, &made));
  const auto map = hold(made);
  OrtValue *found_keys = nullptr, *found_values = nullptr;
  ASSERT_OK(api().GetValue(made, 0, allocator(), &found_keys));
  ASSERT_OK(api().GetValue(made, 1, allocator(), &found_values));
  const auto held_keys = hold(found_keys), held_values = hold(found_values);
  void* data = nullptr;
  ASSERT_OK(api().GetTensorMutableData(found_keys, &data));
  ASSERT_EQ(shape_of(found_keys), (std::vector<int64_t>{2}));
  EXPECT_EQ(static_cast<int64_t*>(data)[0], 3);
  EXPECT_EQ(static_cast<int64_t*>(data)[1], 9);
  EXPECT_EQ(floats_of(found_values), (std::vector<float>{2, 1}));
  static_cast<int64_t*>(data)[0] = 77;  // the caller's copy
  OrtValue* again = nullptr;
  ASSERT_OK(api().GetValue(made, 0, allocator(), &again));
  const auto held_again = hold(again);
  ASSERT_OK(api().GetTensorMutableData(again, &data));
  EXPECT_EQ(static_cast<int64_t*>(data)[0], 3);
}

TEST(Values, MapsAreMadeOfKeysThatLieAnywhere) {
  std::vector<std::byte> memory(4 * sizeof(int64_t));
  std::byte* const odd = memory.data() + 4;  // no place for an int64
  const std::array<int64_t, 3> keys{9, 3, 5};
  std::memcpy(odd, keys.data(), sizeof keys);
  std::vector<float> numbers{1, 2, 3};
  const auto value = floats(numbers, {3});
  const std::array<int64_t, 1> shape{3};
  const auto info = cpu_info();
  OrtValue* key = nullptr;
  ASSERT_OK(api().CreateTensorWithDataAsOrtValue(info.get(), odd, sizeof keys, shape.data(), 1,
                                                 ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, &key));
  const auto held_key = hold(key);
  const std::array<const OrtValue*, 2> parts{key, value.get()};
  OrtValue* made = nullptr;
  ASSERT_OK(api().CreateValue(parts.data(), 2, ONNX_TYPE_MAP, &made));
  const auto map = hold(made);
  OrtValue* found = nullptr;
  ASSERT_OK(api().GetValue(made, 1, allocator(), &found));
  EXPECT_EQ(floats_of(hold(found).get()), (std::vector<float>{2, 3, 1}));
}

TEST(Values, SizesLeaveNamesThatWereSetBefore) {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  ASSERT_OK(api().CreateTensorTypeAndShapeInfo(&info));
  std::array<const char*, 2> names{"a", "b"}, found{};
  const std::array<int64_t, 2> dims{-1, -1};
  EXPECT_OK(api().SetSymbolicDimensions(info, names.data(), names.size()));
  EXPECT_OK(api().SetDimensions(info, dims.data(), dims.size()));
  EXPECT_OK(api().GetSymbolicDimensions(info, found.data(), found.size()));
  EXPECT_STREQ(found[0], "a");
  EXPECT_STREQ(found[1], "b");
  api().ReleaseTensorTypeAndShapeInfo(info);
}

TEST(Values, TypeInfosThatCallersMake) {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  ASSERT_OK(api().CreateTensorTypeAndShapeInfo(&info));
  const std::array<int64_t, 2> dims{-1, 5};
  EXPECT_OK(api().SetTensorElementType(info, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64));
  EXPECT_OK(api().SetDimensions(info, dims.data(), dims.size()));
  std::array<const char*, 2> names{"batch", ""};
  EXPECT_OK(api().SetSymbolicDimensions(info, names.data(), names.size()));
  std::array<const char*, 2> found{};
  EXPECT_OK(api().GetSymbolicDimensions(info, found.data(), found.size()));
  EXPECT_STREQ(found[0], "batch");
  EXPECT_STREQ(found[1], "");
  size_t rank = 0;
  EXPECT_OK(api().GetDimensionsCount(info, &rank));
  EXPECT_EQ(rank, 2u);
  api().ReleaseTensorTypeAndShapeInfo(info);
}

TEST(Values, NullIsRefused) {
  if (!is_sardonyx()) GTEST_SKIP() << "ONNX Runtime does not look";
  EXPECT_REFUSED(api().GetTensorMutableData(nullptr, nullptr), ORT_INVALID_ARGUMENT,
                 "'value' is null");
  EXPECT_REFUSED(api().FillStringTensor(nullptr, nullptr, 0), ORT_INVALID_ARGUMENT,
                 "'value' is null");
  EXPECT_REFUSED(api().CreateValue(nullptr, 2, ONNX_TYPE_SEQUENCE, nullptr), ORT_INVALID_ARGUMENT,
                 "'in' is null");
  EXPECT_REFUSED(api().GetDimensions(nullptr, nullptr, 0), ORT_INVALID_ARGUMENT, "'info' is null");
  std::vector<float> one{1};
  const auto value = floats(one, {1});
  size_t length = 0;
  EXPECT_REFUSED(api().GetStringTensorDataLength(value.get(), &length), ORT_INVALID_ARGUMENT, "");
  EXPECT_REFUSED(api().GetValueCount(value.get(), &length), ORT_FAIL, "tensor");
}

}  // namespace
}  // namespace sardonyx::ort_api
