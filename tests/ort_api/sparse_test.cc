// Sparse tensors: the forms that callers make, and what runs take of them.
#include <cstdlib>

#include "ort_api/api.h"

namespace sardonyx::ort_api {
namespace {

constexpr auto float_type = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;

Held<OrtValue> make_sparse(const std::vector<int64_t>& shape,
                           ONNXTensorElementDataType type = float_type) {
  OrtValue* value = nullptr;
  EXPECT_OK(
      api().CreateSparseTensorAsOrtValue(allocator(), shape.data(), shape.size(), type, &value));
  return hold(value);
}

// Of the caller's values, which have no indices yet.
Held<OrtValue> sparse_view(std::vector<float>& values, const std::vector<int64_t>& shape,
                           const std::vector<int64_t>& values_shape) {
  OrtValue* value = nullptr;
  const auto info = cpu_info();
  EXPECT_OK(api().CreateSparseTensorWithValuesAsOrtValue(info.get(), values.data(), shape.data(),
                                                         shape.size(), values_shape.data(),
                                                         values_shape.size(), float_type, &value));
  return hold(value);
}

OrtStatus* fill_coordinates(OrtValue* value, const std::vector<float>& values,
                            const std::vector<int64_t>& indices) {
  const auto info = cpu_info();
  const auto count = static_cast<int64_t>(values.size());
  return api().FillSparseTensorCoo(value, info.get(), &count, 1, values.data(), indices.data(),
                                   indices.size());
}

OrtStatus* fill_rows(OrtValue* value, const std::vector<float>& values,
                     const std::vector<int64_t>& inner, const std::vector<int64_t>& outer) {
  const auto info = cpu_info();
  const auto count = static_cast<int64_t>(values.size());
  return api().FillSparseTensorCsr(value, info.get(), &count, 1, values.data(), inner.data(),
                                   inner.size(), outer.data(), outer.size());
}

OrtStatus* fill_blocks(OrtValue* value, const std::vector<float>& values,
                       const std::vector<int64_t>& values_shape,
                       const std::vector<int32_t>& indices,
                       const std::vector<int64_t>& indices_shape) {
  const auto info = cpu_info();
  return api().FillSparseTensorBlockSparse(value, info.get(), values_shape.data(),
                                           values_shape.size(), values.data(), indices_shape.data(),
                                           indices_shape.size(), indices.data());
}

OrtSparseFormat format_of(const OrtValue* value) {
  OrtSparseFormat format = ORT_SPARSE_UNDEFINED;
  EXPECT_OK(api().GetSparseTensorFormat(value, &format));
  return format;
}

std::vector<int64_t> dims_of(OrtTensorTypeAndShapeInfo* info) {
  size_t rank = 0;
  EXPECT_OK(api().GetDimensionsCount(info, &rank));
  std::vector<int64_t> dims(rank);
  EXPECT_OK(api().GetDimensions(info, dims.data(), rank));
  api().ReleaseTensorTypeAndShapeInfo(info);
  return dims;
}

std::vector<int64_t> values_shape_of(const OrtValue* value) {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  EXPECT_OK(api().GetSparseTensorValuesTypeAndShape(value, &info));
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  EXPECT_OK(api().GetTensorElementType(info, &type));
  EXPECT_EQ(type, float_type);
  return dims_of(info);
}

std::vector<int64_t> indices_shape_of(const OrtValue* value, OrtSparseIndicesFormat format) {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  EXPECT_OK(api().GetSparseTensorIndicesTypeShape(value, format, &info));
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  EXPECT_OK(api().GetTensorElementType(info, &type));
  EXPECT_EQ(type, format == ORT_SPARSE_BLOCK_SPARSE_INDICES ? 6 : 7);  // int32, int64
  return dims_of(info);
}

template <class T = int64_t>
std::vector<T> indices_of(const OrtValue* value, OrtSparseIndicesFormat format) {
  size_t count = 0;
  const void* data = nullptr;
  EXPECT_OK(api().GetSparseTensorIndices(value, format, &count, &data));
  const auto* const first = static_cast<const T*>(data);
  return {first, first + count};
}

std::vector<float> values_of(const OrtValue* value, size_t count) {
  const void* data = nullptr;
  EXPECT_OK(api().GetSparseTensorValues(value, &data));
  const auto* const first = static_cast<const float*>(data);
  return {first, first + count};
}

using Floats = std::vector<float>;
using Dims = std::vector<int64_t>;

TEST(Sparse, CoordinatesAreSeenAsTheyWereGiven) {
  const auto linear = make_sparse({3, 4});
  ASSERT_OK(fill_coordinates(linear.get(), {1, 2, 3}, {0, 5, 11}));
  EXPECT_EQ(format_of(linear.get()), ORT_SPARSE_COO);
  EXPECT_EQ(values_shape_of(linear.get()), Dims{3});
  EXPECT_EQ(values_of(linear.get(), 3), (Floats{1, 2, 3}));
  EXPECT_EQ(indices_shape_of(linear.get(), ORT_SPARSE_COO_INDICES), Dims{3});
  EXPECT_EQ(indices_of(linear.get(), ORT_SPARSE_COO_INDICES), (Dims{0, 5, 11}));
  EXPECT_EQ(shape_of(linear.get()), (Dims{3, 4}));

  const auto pairs = make_sparse({3, 4});
  ASSERT_OK(fill_coordinates(pairs.get(), {1, 2}, {0, 0, 2, 3}));
  EXPECT_EQ(indices_shape_of(pairs.get(), ORT_SPARSE_COO_INDICES), (Dims{2, 2}));
  EXPECT_EQ(indices_of(pairs.get(), ORT_SPARSE_COO_INDICES), (Dims{0, 0, 2, 3}));

  int is_sparse = 0, is_tensor = 1;
  EXPECT_OK(api().IsSparseTensor(pairs.get(), &is_sparse));
  EXPECT_OK(api().IsTensor(pairs.get(), &is_tensor));
  EXPECT_EQ(is_sparse, 1);
  EXPECT_EQ(is_tensor, 0);
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  EXPECT_OK(api().GetValueType(pairs.get(), &kind));
  EXPECT_EQ(kind, ONNX_TYPE_SPARSETENSOR);
}

TEST(Sparse, CompressedRowsAreSeenAsTheyWereGiven) {
  const auto rows = make_sparse({3, 4});
  ASSERT_OK(fill_rows(rows.get(), {1, 2, 3}, {3, 0, 1}, {0, 1, 1, 3}));
  EXPECT_EQ(format_of(rows.get()), ORT_SPARSE_CSRC);
  EXPECT_EQ(indices_shape_of(rows.get(), ORT_SPARSE_CSR_INNER_INDICES), Dims{3});
  EXPECT_EQ(indices_shape_of(rows.get(), ORT_SPARSE_CSR_OUTER_INDICES), Dims{4});
  EXPECT_EQ(indices_of(rows.get(), ORT_SPARSE_CSR_INNER_INDICES), (Dims{3, 0, 1}));
  EXPECT_EQ(indices_of(rows.get(), ORT_SPARSE_CSR_OUTER_INDICES), (Dims{0, 1, 1, 3}));
  size_t count = 0;
  const void* data = nullptr;
  EXPECT_REFUSED(api().GetSparseTensorIndices(rows.get(), ORT_SPARSE_COO_INDICES, &count, &data),
                 ORT_FAIL, "form 2");
  OrtTensorTypeAndShapeInfo* info = nullptr;
  EXPECT_REFUSED(
      api().GetSparseTensorIndicesTypeShape(rows.get(), OrtSparseIndicesFormat(9), &info), ORT_FAIL,
      "form 9");
}

TEST(Sparse, BlocksAreSeenAsTheyWereGiven) {
  const auto blocks = make_sparse({8, 8});
  ASSERT_OK(fill_blocks(blocks.get(), Floats(12, 1), {2, 2, 3}, {0, 0, 1, 0, 1, 2}, {2, 3}));
  EXPECT_EQ(format_of(blocks.get()), ORT_SPARSE_BLOCK_SPARSE);
  EXPECT_EQ(values_shape_of(blocks.get()), (Dims{2, 2, 3}));
  EXPECT_EQ(values_of(blocks.get(), 12), Floats(12, 1));
  EXPECT_EQ(indices_shape_of(blocks.get(), ORT_SPARSE_BLOCK_SPARSE_INDICES), (Dims{2, 3}));
  EXPECT_EQ(indices_of<int32_t>(blocks.get(), ORT_SPARSE_BLOCK_SPARSE_INDICES),
            (std::vector<int32_t>{0, 0, 1, 0, 1, 2}));
}

TEST(Sparse, ValuesAndIndicesOfTheCallersAreUsedWhereTheyLie) {
  Floats values{1, 2, 3};
  Dims indices{0, 5, 11}, inner{3, 0, 1}, outer{0, 1, 1, 3};
  size_t count = 0;
  const void* data = nullptr;

  const auto linear = sparse_view(values, {3, 4}, {3});
  EXPECT_EQ(format_of(linear.get()), ORT_SPARSE_UNDEFINED);
  ASSERT_OK(api().UseCooIndices(linear.get(), indices.data(), indices.size()));
  EXPECT_OK(api().GetSparseTensorValues(linear.get(), &data));
  EXPECT_EQ(data, values.data());
  EXPECT_OK(api().GetSparseTensorIndices(linear.get(), ORT_SPARSE_COO_INDICES, &count, &data));
  EXPECT_EQ(data, indices.data());

  const auto rows = sparse_view(values, {3, 4}, {3});
  ASSERT_OK(
      api().UseCsrIndices(rows.get(), inner.data(), inner.size(), outer.data(), outer.size()));
  EXPECT_OK(api().GetSparseTensorIndices(rows.get(), ORT_SPARSE_CSR_OUTER_INDICES, &count, &data));
  EXPECT_EQ(data, outer.data());

  Floats eight(8, 2);
  std::vector<int32_t> places{0, 0, 0, 1};
  const Dims places_shape{2, 2};
  const auto blocks = sparse_view(eight, {8, 8}, {2, 2, 2});
  ASSERT_OK(api().UseBlockSparseIndices(blocks.get(), places_shape.data(), 2, places.data()));
  EXPECT_OK(
      api().GetSparseTensorIndices(blocks.get(), ORT_SPARSE_BLOCK_SPARSE_INDICES, &count, &data));
  EXPECT_EQ(data, places.data());
  EXPECT_EQ(count, 4u);
}

TEST(Sparse, TensorsMayHaveNoValues) {
  Floats none;
  const Dims zero{0};
  const auto linear = make_sparse({3, 4}), rows = make_sparse({3, 4}), blocks = make_sparse({8, 8});
  EXPECT_OK(fill_coordinates(linear.get(), {}, {}));
  EXPECT_OK(fill_rows(rows.get(), {}, {}, {}));
  EXPECT_OK(fill_blocks(blocks.get(), {}, {0}, {}, {0}));
  EXPECT_EQ(values_shape_of(rows.get()), Dims{0});
  EXPECT_EQ(indices_of(rows.get(), ORT_SPARSE_CSR_OUTER_INDICES), Dims{});

  const auto seen = sparse_view(none, {3, 4}, {0});
  EXPECT_OK(api().UseCooIndices(seen.get(), nullptr, 0));
  const auto seen_rows = sparse_view(none, {3, 4}, {0});
  EXPECT_OK(api().UseCsrIndices(seen_rows.get(), nullptr, 0, nullptr, 0));
  const auto seen_blocks = sparse_view(none, {8, 8}, {0});
  EXPECT_OK(api().UseBlockSparseIndices(seen_blocks.get(), zero.data(), 1, nullptr));
}

TEST(Sparse, StringsAreCopied) {
  const auto texts = make_sparse({2, 2}, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING);
  const auto info = cpu_info();
  const char* const given[] = {"ab", "cde"};
  const Dims count{2}, indices{0, 3};
  ASSERT_OK(api().FillSparseTensorCoo(texts.get(), info.get(), count.data(), 1, given,
                                      indices.data(), 2));
  const void* data = nullptr;
  EXPECT_REFUSED(api().GetSparseTensorValues(texts.get(), &data), ORT_INVALID_ARGUMENT, "strings");
  size_t length = 0, offsets[2] = {};
  EXPECT_OK(api().GetStringTensorDataLength(texts.get(), &length));
  ASSERT_EQ(length, 5u);
  char content[5];
  EXPECT_OK(api().GetStringTensorContent(texts.get(), content, 5, offsets, 2));
  EXPECT_EQ(std::string(content, 5), "abcde");
  EXPECT_EQ(offsets[1], 2u);
}

TEST(Sparse, WrongIndicesAreRefused) {
  const auto refused_coordinates = [](const Dims& shape, const Floats& values, const Dims& indices,
                                      const char* why) {
    const auto value = make_sparse(shape);
    EXPECT_REFUSED(fill_coordinates(value.get(), values, indices), ORT_INVALID_ARGUMENT, why);
    EXPECT_EQ(format_of(value.get()), ORT_SPARSE_UNDEFINED);
    Floats mine = values;
    Dims its = indices;
    const auto view = sparse_view(mine, shape, {static_cast<int64_t>(values.size())});
    EXPECT_REFUSED(api().UseCooIndices(view.get(), its.data(), its.size()), ORT_INVALID_ARGUMENT,
                   why);
  };
  refused_coordinates({3, 4}, {1, 2}, {0, 12}, "index 1 is 12");
  refused_coordinates({3, 4}, {1, 2}, {-1, 0}, "index 0 is -1");
  refused_coordinates({3, 4}, {1, 2}, {0, 1, 2}, "3 were given");
  refused_coordinates({3, 4}, {1, 2}, {0, 0, 2, 4}, "index 1 of pair 1 is 4");
  refused_coordinates({3, 4}, {1, 2}, {0, 0, -2, 3}, "index 0 of pair 1 is -2");
  refused_coordinates({3, 2, 2}, {1, 2}, {0, 0, 1, 1}, "two dimensions");
  refused_coordinates({0, 4}, {1}, {0}, "index 0 is 0");

  const auto refused_rows = [](const Dims& shape, const Floats& values, const Dims& inner,
                               const Dims& outer, OrtErrorCode code, const char* why) {
    const auto value = make_sparse(shape);
    EXPECT_REFUSED(fill_rows(value.get(), values, inner, outer), code, why);
    Floats mine = values;
    Dims columns = inner, begins = outer;
    const auto view = sparse_view(mine, shape, {static_cast<int64_t>(values.size())});
    EXPECT_REFUSED(api().UseCsrIndices(view.get(), columns.data(), columns.size(), begins.data(),
                                       begins.size()),
                   code, why);
  };
  const auto bad = ORT_INVALID_ARGUMENT;
  refused_rows({3, 4}, {1, 2, 3}, {0, 1, 4}, {0, 1, 2, 3}, bad, "inner index 2 is 4");
  refused_rows({3, 4}, {1, 2, 3}, {0, 1, -4}, {0, 1, 2, 3}, bad, "inner index 2 is -4");
  refused_rows({3, 4}, {1, 2, 3}, {0, 1, 2}, {0, 2, 1, 3}, bad, "number 2 is 1");
  refused_rows({3, 4}, {1, 2, 3}, {0, 1, 2}, {1, 1, 2, 3}, bad, "number 0 is 1");
  refused_rows({3, 4}, {1, 2, 3}, {0, 1, 2}, {0, 1, 2, 2}, bad, "last outer index is 2");
  refused_rows({3, 4}, {1, 2, 3}, {0, 1, 2}, {0, 1, 2, 3, 3}, ORT_FAIL, "5 were given");
  refused_rows({12}, {1, 2, 3}, {0, 1, 2}, {0, 1, 2, 3}, ORT_FAIL, "two dimensions");
  refused_rows({3, 4}, {}, {}, {0, 0, 0, 0}, ORT_FAIL, "0 and 4 were given");

  const auto refused_blocks = [](const Floats& values, const Dims& values_shape,
                                 const std::vector<int32_t>& indices, const Dims& shape) {
    const auto value = make_sparse({8, 8});
    EXPECT_REFUSED(fill_blocks(value.get(), values, values_shape, indices, shape), ORT_FAIL,
                   to_string(shape));
  };
  refused_blocks(Floats(8), {2, 4}, {0, 0, 0, 1}, {2, 2});
  refused_blocks(Floats(8), {2, 2, 2}, {0, 0, 0, 0, 1, 1}, {2, 3});
  refused_blocks(Floats(8), {2, 2, 2}, {0, 0, 0, 1}, {4});
  refused_blocks(Floats(8), {2, 2, 2}, {0, 0, 0, 1}, {1, 4});
  refused_blocks({}, {0}, {}, {2, 0});
}

TEST(Sparse, IndicesAreGivenOnce) {
  Floats values{1};
  Dims zero{0};
  const auto filled = make_sparse({2, 2});
  ASSERT_OK(fill_coordinates(filled.get(), values, zero));
  EXPECT_REFUSED(fill_coordinates(filled.get(), values, zero), ORT_FAIL, "already");
  EXPECT_REFUSED(api().UseCooIndices(filled.get(), zero.data(), 1), ORT_FAIL, "already");

  const auto fresh = make_sparse({2, 2});
  EXPECT_REFUSED(api().UseCooIndices(fresh.get(), zero.data(), 1), ORT_FAIL, "no values yet");
  const auto view = sparse_view(values, {2, 2}, {1});
  EXPECT_REFUSED(fill_coordinates(view.get(), values, zero), ORT_FAIL, "has values already");

  const void* data = nullptr;
  OrtTensorTypeAndShapeInfo* info = nullptr;
  EXPECT_REFUSED(api().GetSparseTensorValues(view.get(), &data), ORT_FAIL, "no indices yet");
  EXPECT_REFUSED(api().GetSparseTensorValuesTypeAndShape(fresh.get(), &info), ORT_FAIL,
                 "no indices yet");
  EXPECT_REFUSED(api().GetSparseTensorIndicesTypeShape(fresh.get(), ORT_SPARSE_COO_INDICES, &info),
                 ORT_FAIL, "no indices yet");
}

TEST(Sparse, TypesAndShapesAreLookedAt) {
  OrtValue* value = nullptr;
  const Dims negative{-1, 3}, shape{2, 2};
  EXPECT_REFUSED(
      api().CreateSparseTensorAsOrtValue(allocator(), negative.data(), 2, float_type, &value),
      ORT_INVALID_ARGUMENT, "negative");
  for (const int type : {0, 14, 15, 21, 22, 23, 24, 25})
    EXPECT_REFUSED(api().CreateSparseTensorAsOrtValue(allocator(), shape.data(), 2,
                                                      ONNXTensorElementDataType(type), &value),
                   ORT_NOT_IMPLEMENTED, "no sparse tensors");
  const auto info = cpu_info();
  Floats values{1};
  const Dims one{1}, huge{int64_t{1} << 62, 4};
  EXPECT_REFUSED(api().CreateSparseTensorWithValuesAsOrtValue(
                     info.get(), values.data(), shape.data(), 2, one.data(), 1,
                     ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &value),
                 ORT_INVALID_ARGUMENT, "strings");
  EXPECT_REFUSED(
      api().CreateSparseTensorWithValuesAsOrtValue(info.get(), values.data(), shape.data(), 2,
                                                   huge.data(), 2, float_type, &value),
      is_sardonyx() ? ORT_INVALID_ARGUMENT : ORT_FAIL, "64 bits");
  EXPECT_EQ(value, nullptr);
}

TEST(Sparse, MissingArgumentsAreRefused) {
  if (!is_sardonyx()) GTEST_SKIP() << "ONNX Runtime reads them";
  OrtValue* out = nullptr;
  const Dims shape{2, 2}, one{1};
  const auto info = cpu_info();
  const auto refused = [](OrtStatus* status, const char* name) {
    EXPECT_REFUSED(status, ORT_INVALID_ARGUMENT, name);
  };
  int is_sparse = 0;
  refused(api().IsSparseTensor(nullptr, &is_sparse), "'value'");
  refused(api().CreateSparseTensorAsOrtValue(nullptr, shape.data(), 2, float_type, &out),
          "'allocator'");
  refused(api().CreateSparseTensorAsOrtValue(allocator(), nullptr, 2, float_type, &out), "'shape'");
  refused(api().CreateSparseTensorAsOrtValue(allocator(), shape.data(), 2, float_type, nullptr),
          "'out'");
  refused(api().CreateSparseTensorWithValuesAsOrtValue(info.get(), nullptr, shape.data(), 2,
                                                       one.data(), 1, float_type, &out),
          "'p_data'");
  const auto value = make_sparse(shape);
  const float element = 1;
  const int64_t index = 0;
  refused(api().FillSparseTensorCoo(nullptr, info.get(), one.data(), 1, &element, &index, 1),
          "'ort_value'");
  refused(api().FillSparseTensorCoo(value.get(), nullptr, one.data(), 1, &element, &index, 1),
          "'data_mem_info'");
  refused(api().FillSparseTensorCoo(value.get(), info.get(), one.data(), 1, nullptr, &index, 1),
          "'values'");
  refused(api().FillSparseTensorCoo(value.get(), info.get(), one.data(), 1, &element, nullptr, 1),
          "'indices_data'");
  refused(api().FillSparseTensorCsr(value.get(), info.get(), one.data(), 1, &element, &index, 1,
                                    nullptr, 3),
          "'outer_indices'");
  refused(api().FillSparseTensorBlockSparse(value.get(), info.get(), one.data(), 1, &element,
                                            nullptr, 2, nullptr),
          "'shape'");
  const auto texts = make_sparse(shape, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING);
  const char* const missing = nullptr;
  refused(api().FillSparseTensorCoo(texts.get(), info.get(), one.data(), 1, &missing, &index, 1),
          "'values'");
  OrtSparseFormat format = ORT_SPARSE_UNDEFINED;
  Floats dense{1};
  const auto tensor = floats(dense, {1});
  refused(api().GetSparseTensorFormat(tensor.get(), &format), "a tensor was given");
  refused(api().UseCooIndices(tensor.get(), nullptr, 0), "a tensor was given");
}

// Counts what it has given and got back.
struct CountingAllocator : OrtAllocator {
  Held<OrtMemoryInfo> info = cpu_info();
  int given = 0, got_back = 0;

  CountingAllocator() : OrtAllocator{} {
    version = 1;
    Alloc = [](OrtAllocator* self, size_t size) {
      ++static_cast<CountingAllocator*>(self)->given;
      return std::malloc(size);
    };
    Free = [](OrtAllocator* self, void* memory) {
      ++static_cast<CountingAllocator*>(self)->got_back;
      std::free(memory);
    };
    Info = [](const OrtAllocator* self) -> const OrtMemoryInfo* {
      return static_cast<const CountingAllocator*>(self)->info.get();
    };
  }
};

TEST(Sparse, CopiesLieInMemoryOfTheCallersAllocator) {
  CountingAllocator counting;
  const Dims shape{2, 2};
  OrtValue* made = nullptr;
  ASSERT_OK(api().CreateSparseTensorAsOrtValue(&counting, shape.data(), 2, float_type, &made));
  auto value = hold(made);
  ASSERT_OK(fill_coordinates(value.get(), {1, 2}, {0, 3}));
  EXPECT_GE(counting.given, 1);
  EXPECT_EQ(counting.got_back, 0);
  value.reset();
  EXPECT_EQ(counting.got_back, counting.given);
}

constexpr const char* product = R"(
  <ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
  g (sparse_tensor(float[3,4]) a, float[4,2] b) => (float[3,2] y) {
    y = com.microsoft.SparseToDenseMatMul (a, b)
  })";

TEST(Sparse, RunsTakeThem) {
  const auto env = make_env();
  const auto options = make_options();
  const auto session = make_session(env.get(), product, options.get());
  ASSERT_NE(session, nullptr);
  Floats elements{1, 2, 3, 4, 5, 6, 7, 8};
  const auto b = floats(elements, {4, 2});
  const auto result = [&](const OrtValue* a) {
    const auto outputs = run(session.get(), {{"a", a}, {"b", b.get()}}, {"y"});
    return floats_of(outputs[0].get());
  };
  // Rows 0 and 2: [0, 0, 0, 1] and [2, 3, 0, 0].
  const Floats expected{7, 8, 0, 0, 11, 16};

  const auto pairs = make_sparse({3, 4});
  ASSERT_OK(fill_coordinates(pairs.get(), {1, 2, 3}, {0, 3, 2, 0, 2, 1}));
  EXPECT_EQ(result(pairs.get()), expected);

  const auto rows = make_sparse({3, 4});
  ASSERT_OK(fill_rows(rows.get(), {1, 2, 3}, {3, 0, 1}, {0, 1, 1, 3}));
  EXPECT_EQ(result(rows.get()), expected);

  Floats values{1, 2, 3};
  Dims inner{3, 0, 1}, outer{0, 1, 1, 3};
  const auto view = sparse_view(values, {3, 4}, {3});
  ASSERT_OK(api().UseCsrIndices(view.get(), inner.data(), 3, outer.data(), 4));
  EXPECT_EQ(result(view.get()), expected);
  values[0] = 2;  // which the next run sees
  EXPECT_EQ(result(view.get()), (Floats{14, 16, 0, 0, 11, 16}));

  const auto none = make_sparse({3, 4});
  ASSERT_OK(fill_coordinates(none.get(), {}, {}));
  EXPECT_EQ(result(none.get()), Floats(6, 0));

  if (is_sardonyx()) {  // ONNX Runtime's operator takes pairs alone
    const auto linear = make_sparse({3, 4});
    ASSERT_OK(fill_coordinates(linear.get(), {1, 2, 3}, {3, 8, 9}));
    EXPECT_EQ(result(linear.get()), expected);
  }
}

TEST(Sparse, RunsRefuseBlocksAndWhatHasNoIndices) {
  const auto env = make_env();
  const auto options = make_options();
  const auto session = make_session(env.get(), product, options.get());
  ASSERT_NE(session, nullptr);
  Floats elements(8, 1);
  const auto b = floats(elements, {4, 2});
  const auto refused = [&](const OrtValue* a, const char* why) {
    const char* const names[] = {"a", "b"};
    const OrtValue* const values[] = {a, b.get()};
    const char* const outputs[] = {"y"};
    OrtValue* made = nullptr;
    EXPECT_REFUSED(api().Run(session.get(), nullptr, names, values, 2, outputs, 1, &made),
                   ORT_INVALID_ARGUMENT, why);
  };
  refused(make_sparse({3, 4}).get(), "without indices");
  const auto blocks = make_sparse({3, 4});
  ASSERT_OK(fill_blocks(blocks.get(), Floats(4, 1), {2, 2, 1}, {0, 0}, {2, 1}));
  refused(blocks.get(), "in blocks");
}

}  // namespace
}  // namespace sardonyx::ort_api
