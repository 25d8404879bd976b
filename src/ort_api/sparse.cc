// Sparse tensors. Callers make them in coordinate form, as compressed rows or in blocks, and see
// them in the form they were made in; runs take coordinates.
#include <algorithm>

#include "base/value_kind.h"
#include "ort_api/handles.h"

namespace sardonyx::ort_api {

struct SparseIndices {
  OrtSparseFormat format = ORT_SPARSE_UNDEFINED;
  OrtAllocator* allocator = nullptr;  // of the copies; null: values and indices are the caller's
  Tensor values;                      // in the shape that they were given in
  Tensor indices;                     // coordinates, the columns of compressed rows, or blocks
  Tensor outer;                       // where each compressed row begins
};

namespace {

ElementType sparse_element_type(ONNXTensorElementDataType type) {
  const ElementType element = element_type_of(type);
  const bool complex = element == ElementType::complex64 || element == ElementType::complex128;
  if (complex || (element != ElementType::string && bit_width(element) < 8))
    refuse(ORT_NOT_IMPLEMENTED, "there are no sparse tensors of {}", name_of(element));
  return element;
}

const SparseTensor& sparse_tensor_of(const OrtValue* value, const char* name) {
  const Value& held = required(value, name).value;
  if (held.kind() != Value::Kind::sparse_tensor)
    refuse(ORT_INVALID_ARGUMENT, "'{}' is a sparse tensor in this function; {} was given", name,
           with_article(held.kind()));
  return held.sparse_tensor();
}

// A sparse tensor without indices, so far.
OrtValue* new_sparse(ElementType type, Shape shape, OrtAllocator* allocator, Tensor values) {
  auto made = std::make_unique<OrtValue>();
  made->sparse = std::make_shared<SparseIndices>();
  made->sparse->allocator = allocator;
  made->sparse->values = std::move(values);
  made->value = SparseTensor{Tensor(type, {0}), Tensor(ElementType::int64, {0}), std::move(shape)};
  return made.release();
}

// Of a tensor that has no indices yet. `copies`: whether the function copies what it is given.
SparseIndices& indices_to_set(OrtValue* value, bool copies) {
  sparse_tensor_of(value, "ort_value");
  if (value->sparse == nullptr || value->sparse->format != ORT_SPARSE_UNDEFINED)
    refuse(ORT_FAIL, "the sparse tensor has its indices already");
  if (copies != (value->sparse->allocator != nullptr))
    refuse(ORT_FAIL, "{}",
           copies
               ? "the sparse tensor has values already: UseCooIndices() and its like give indices"
               : "the sparse tensor has no values yet: FillSparseTensorCoo() and its like give "
                 "it both");
  return *value->sparse;
}

int64_t counted(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t size : shape)
    if (__builtin_mul_overflow(count, size, &count))
      refuse(ORT_INVALID_ARGUMENT, "the shape {} has more elements than 64 bits can count",
             to_string(shape));
  return count;
}

// A view of the caller's memory.
Tensor seen(ElementType type, Shape shape, const void* data, const char* name) {
  const int64_t count = counted(shape);
  items(data, static_cast<size_t>(count), name);
  return Tensor::view(type, std::move(shape), data, static_cast<size_t>(byte_size(type, count)));
}

Tensor copied_texts(Shape shape, const void* data) {
  Tensor copy(ElementType::string, std::move(shape));
  const auto to = copy.mutable_elements<std::string>();
  const auto* const from = items(static_cast<const char* const*>(data), to.size(), "values");
  for (size_t i = 0; i < to.size(); ++i) to[i] = text_of(from[i], "values");
  return copy;
}

// In memory of the caller's allocator.
Tensor copied(const Tensor& from, OrtAllocator* allocator) {
  if (from.byte_size() == 0) return Tensor(from.element_type(), from.shape());
  std::shared_ptr<const void> memory(
      given_memory(allocator, from.byte_size()),
      [allocator](const void* given) { allocator->Free(allocator, const_cast<void*>(given)); });
  const void* const data = memory.get();
  std::memcpy(const_cast<void*>(data), from.data(), from.byte_size());
  return Tensor::view(from.element_type(), from.shape(), data, from.byte_size(), std::move(memory));
}

Tensor copied_values(const OrtValue& value, const OrtMemoryInfo* info, const int64_t* dims,
                     size_t rank, const void* data) {
  require_cpu(required(info, "data_mem_info"));
  const ElementType type = value.value.sparse_tensor().values.element_type();
  Shape shape = shape_of(dims, rank);
  if (type == ElementType::string) return copied_texts(std::move(shape), data);
  return copied(seen(type, std::move(shape), data, "values"), value.sparse->allocator);
}

// --- Forms ----------------------------------------------------------------------------------

void require_linear(const int64_t* indices, size_t count, const Shape& dense) {
  int64_t size = 1;
  for (const int64_t one : dense)
    if (__builtin_mul_overflow(size, one, &size)) size = INT64_MAX;
  for (size_t i = 0; i < count; ++i)
    if (indices[i] < 0 || indices[i] >= size)
      refuse(ORT_INVALID_ARGUMENT, "index {} is {}, outside of the {} elements of the shape {}", i,
             indices[i], size, to_string(dense));
}

void require_pairs(const int64_t* indices, size_t count, const Shape& dense) {
  if (dense.size() != 2)
    refuse(ORT_INVALID_ARGUMENT, "indices in pairs are for two dimensions; the shape is {}",
           to_string(dense));
  for (size_t i = 0; i < count; ++i)
    if (indices[i] < 0 || indices[i] >= dense[i % 2])
      refuse(ORT_INVALID_ARGUMENT, "index {} of pair {} is {}, outside of the shape {}", i % 2,
             i / 2, indices[i], to_string(dense));
}

// The caller's coordinates: one index for each value, or a pair of them.
Tensor seen_coordinates(const Shape& dense, int64_t values, const int64_t* indices, size_t count) {
  items(indices, count, "indices_data");
  const auto linear = static_cast<size_t>(values);
  if (count != linear && (count % 2 != 0 || count / 2 != linear))
    refuse(ORT_INVALID_ARGUMENT, "{} values have as many indices, or twice as many; {} were given",
           values, count);
  const bool pairs = count != linear || (count == 0 && dense.size() == 2);
  (pairs ? require_pairs : require_linear)(indices, count, dense);
  return seen(ElementType::int64, pairs ? Shape{values, 2} : Shape{values}, indices,
              "indices_data");
}

void require_rows(const Shape& dense, int64_t values, const int64_t* inner, size_t inner_count,
                  const int64_t* outer, size_t outer_count) {
  items(inner, inner_count, "inner_indices");
  items(outer, outer_count, "outer_indices");
  if (dense.size() != 2)
    refuse(ORT_FAIL, "compressed rows are for two dimensions; the shape is {}", to_string(dense));
  if (inner_count != static_cast<size_t>(values) || (inner_count == 0) != (outer_count == 0))
    refuse(ORT_FAIL,
           "{} values have as many inner indices, and outer ones only with them; {} and "
           "{} were given",
           values, inner_count, outer_count);
  if (inner_count == 0) return;
  if (static_cast<int64_t>(outer_count - 1) != dense[0])
    refuse(ORT_FAIL, "{} rows have one outer index more; {} were given", dense[0], outer_count);
  for (size_t i = 0; i < outer_count; ++i) {
    const int64_t before = i == 0 ? 0 : outer[i - 1];
    if (outer[i] < before || (i == 0 && outer[i] != 0))
      refuse(ORT_INVALID_ARGUMENT, "outer indices begin with 0 and never decrease; number {} is {}",
             i, outer[i]);
  }
  if (outer[outer_count - 1] != values)
    refuse(ORT_INVALID_ARGUMENT, "the last outer index is {}, and there are {} values",
           outer[outer_count - 1], values);
  for (size_t i = 0; i < inner_count; ++i)
    if (inner[i] < 0 || inner[i] >= dense[1])
      refuse(ORT_INVALID_ARGUMENT, "inner index {} is {}, outside of the {} columns", i, inner[i],
             dense[1]);
}

Tensor pairs_of_rows(const int64_t* inner, size_t inner_count, const int64_t* outer,
                     size_t outer_count) {
  Tensor pairs(ElementType::int64, {static_cast<int64_t>(inner_count), 2});
  const auto to = pairs.mutable_elements<int64_t>();
  for (size_t row = 0; row + 1 < outer_count; ++row)
    for (auto i = static_cast<size_t>(outer[row]); i < static_cast<size_t>(outer[row + 1]); ++i)
      to[2 * i] = static_cast<int64_t>(row), to[2 * i + 1] = inner[i];
  return pairs;
}

// The caller's indices of blocks. Where the blocks lie in them ONNX Runtime leaves open.
Tensor seen_blocks(const Tensor& values, const int64_t* dims, size_t rank, const int32_t* data) {
  const Shape shape = shape_of(dims, rank);
  if (values.size() == 0 ? values.rank() != 1 || rank != 1 : values.rank() < 3 || rank != 2)
    refuse(ORT_FAIL,
           "values in blocks have three dimensions and their indices two, or one each "
           "where there are none; the shapes are {} and {}",
           to_string(values.shape()), to_string(shape));
  if (values.size() > 0) {
    const int64_t blocks = values.size() / values.shape()[0] / values.shape()[1];
    if (shape != Shape{2, blocks})
      refuse(ORT_FAIL,
             "values of shape {} are {} blocks, whose indices have the shape [2,{}]; "
             "theirs is {}",
             to_string(values.shape()), blocks, blocks, to_string(shape));
  }
  return seen(ElementType::int32, shape, data, "indices_data");
}

// What runs take of it, once values and indices are sound.
void set_run_value(OrtValue& value, const Tensor& values, Tensor coordinates) {
  value.value = SparseTensor{values.reshaped({values.size()}), std::move(coordinates),
                             value.value.sparse_tensor().shape};
}

void set_coordinates(OrtValue& value, Tensor values, Tensor indices) {
  set_run_value(value, values, indices);
  SparseIndices& to = *value.sparse;
  to.values = std::move(values), to.indices = std::move(indices), to.format = ORT_SPARSE_COO;
}

void set_rows(OrtValue& value, Tensor values, Tensor inner, Tensor outer) {
  const auto columns = inner.elements<int64_t>(), begins = outer.elements<int64_t>();
  set_run_value(value, values,
                pairs_of_rows(columns.data(), columns.size(), begins.data(), begins.size()));
  SparseIndices& to = *value.sparse;
  to.values = std::move(values), to.indices = std::move(inner), to.outer = std::move(outer);
  to.format = ORT_SPARSE_CSRC;
}

void set_blocks(OrtValue& value, Tensor values, Tensor indices) {
  SparseIndices& to = *value.sparse;
  to.values = std::move(values), to.indices = std::move(indices);
  to.format = ORT_SPARSE_BLOCK_SPARSE;
}

// --- Functions of the table -----------------------------------------------------------------

OrtStatus* IsSparseTensor(const OrtValue* value, int* out) {
  return guarded([&] {
    required(out, "out") = required(value, "value").value.kind() == Value::Kind::sparse_tensor;
  });
}

OrtStatus* CreateSparseTensorAsOrtValue(OrtAllocator* allocator, const int64_t* dims, size_t rank,
                                        ONNXTensorElementDataType type, OrtValue** out) {
  return guarded([&] {
    required(allocator, "allocator");
    const ElementType element = sparse_element_type(type);
    OrtValue*& to = required(out, "out");
    to = new_sparse(element, shape_of(dims, rank), allocator, {});
  });
}

OrtStatus* CreateSparseTensorWithValuesAsOrtValue(const OrtMemoryInfo* info, void* data,
                                                  const int64_t* dims, size_t rank,
                                                  const int64_t* values_dims, size_t values_rank,
                                                  ONNXTensorElementDataType type, OrtValue** out) {
  return guarded([&] {
    require_cpu(required(info, "info"));
    const ElementType element = sparse_element_type(type);
    if (element == ElementType::string)
      refuse(
          ORT_INVALID_ARGUMENT,
          "strings are copied: CreateSparseTensorAsOrtValue() and FillSparseTensorCoo() do that");
    Tensor values = seen(element, shape_of(values_dims, values_rank), data, "p_data");
    OrtValue*& to = required(out, "out");
    to = new_sparse(element, shape_of(dims, rank), nullptr, std::move(values));
  });
}

OrtStatus* FillSparseTensorCoo(OrtValue* value, const OrtMemoryInfo* info, const int64_t* dims,
                               size_t rank, const void* data, const int64_t* indices,
                               size_t count) {
  return guarded([&] {
    OrtAllocator* const allocator = indices_to_set(value, true).allocator;
    Tensor values = copied_values(*value, info, dims, rank, data);
    const Shape& dense = value->value.sparse_tensor().shape;
    const Tensor coordinates = seen_coordinates(dense, values.size(), indices, count);
    set_coordinates(*value, std::move(values), copied(coordinates, allocator));
  });
}

OrtStatus* UseCooIndices(OrtValue* value, int64_t* indices, size_t count) {
  return guarded([&] {
    const Tensor& values = indices_to_set(value, false).values;
    const Shape& dense = value->value.sparse_tensor().shape;
    set_coordinates(*value, values, seen_coordinates(dense, values.size(), indices, count));
  });
}

Tensor seen_indices(const int64_t* data, size_t count) {
  return seen(ElementType::int64, {static_cast<int64_t>(count)}, data, "indices");
}

OrtStatus* FillSparseTensorCsr(OrtValue* value, const OrtMemoryInfo* info, const int64_t* dims,
                               size_t rank, const void* data, const int64_t* inner,
                               size_t inner_count, const int64_t* outer, size_t outer_count) {
  return guarded([&] {
    OrtAllocator* const allocator = indices_to_set(value, true).allocator;
    Tensor values = copied_values(*value, info, dims, rank, data);
    require_rows(value->value.sparse_tensor().shape, values.size(), inner, inner_count, outer,
                 outer_count);
    set_rows(*value, std::move(values), copied(seen_indices(inner, inner_count), allocator),
             copied(seen_indices(outer, outer_count), allocator));
  });
}

OrtStatus* UseCsrIndices(OrtValue* value, int64_t* inner, size_t inner_count, int64_t* outer,
                         size_t outer_count) {
  return guarded([&] {
    const Tensor& values = indices_to_set(value, false).values;
    require_rows(value->value.sparse_tensor().shape, values.size(), inner, inner_count, outer,
                 outer_count);
    set_rows(*value, values, seen_indices(inner, inner_count), seen_indices(outer, outer_count));
  });
}

OrtStatus* FillSparseTensorBlockSparse(OrtValue* value, const OrtMemoryInfo* info,
                                       const int64_t* dims, size_t rank, const void* data,
                                       const int64_t* indices_dims, size_t indices_rank,
                                       const int32_t* indices) {
  return guarded([&] {
    OrtAllocator* const allocator = indices_to_set(value, true).allocator;
    Tensor values = copied_values(*value, info, dims, rank, data);
    const Tensor blocks = seen_blocks(values, indices_dims, indices_rank, indices);
    set_blocks(*value, std::move(values), copied(blocks, allocator));
  });
}

OrtStatus* UseBlockSparseIndices(OrtValue* value, const int64_t* dims, size_t rank,
                                 int32_t* indices) {
  return guarded([&] {
    const Tensor& values = indices_to_set(value, false).values;
    set_blocks(*value, values, seen_blocks(values, dims, rank, indices));
  });
}

OrtSparseFormat sparse_format(const OrtValue& value) {
  return value.sparse == nullptr ? ORT_SPARSE_COO : value.sparse->format;  // of a run: coordinates
}

const Tensor& sparse_indices(const OrtValue* value, OrtSparseIndicesFormat format) {
  sparse_values(value);  // has them
  const bool in_rows =
      format == ORT_SPARSE_CSR_INNER_INDICES || format == ORT_SPARSE_CSR_OUTER_INDICES;
  const OrtSparseFormat asked = format == ORT_SPARSE_COO_INDICES ? ORT_SPARSE_COO
                                : in_rows                        ? ORT_SPARSE_CSRC
                                : format == ORT_SPARSE_BLOCK_SPARSE_INDICES
                                    ? ORT_SPARSE_BLOCK_SPARSE
                                    : ORT_SPARSE_UNDEFINED;
  if (asked != sparse_format(*value))
    refuse(ORT_FAIL, "the sparse tensor is in form {}, which has no indices of form {}",
           static_cast<int>(sparse_format(*value)), static_cast<int>(format));
  if (value->sparse == nullptr) return value->value.sparse_tensor().indices;
  return format == ORT_SPARSE_CSR_OUTER_INDICES ? value->sparse->outer : value->sparse->indices;
}

OrtStatus* GetSparseTensorFormat(const OrtValue* value, OrtSparseFormat* out) {
  return guarded([&] {
    sparse_tensor_of(value, "ort_value");
    required(out, "out") = sparse_format(*value);
  });
}

void give_info(const Tensor& tensor, OrtTensorTypeAndShapeInfo** out) {
  OrtTensorTypeAndShapeInfo*& to = required(out, "out");
  to = new OrtTensorTypeAndShapeInfo(type_of(tensor).tensor);
}

OrtStatus* GetSparseTensorValuesTypeAndShape(const OrtValue* value,
                                             OrtTensorTypeAndShapeInfo** out) {
  return guarded([&] { give_info(sparse_values(value), out); });
}

OrtStatus* GetSparseTensorValues(const OrtValue* value, const void** out) {
  return guarded([&] {
    const Tensor& values = sparse_values(value);
    if (values.element_type() == ElementType::string)
      refuse(ORT_INVALID_ARGUMENT, "the values are strings: GetStringTensorContent() has them");
    required(out, "out") = values.data();
  });
}

OrtStatus* GetSparseTensorIndicesTypeShape(const OrtValue* value, OrtSparseIndicesFormat format,
                                           OrtTensorTypeAndShapeInfo** out) {
  return guarded([&] { give_info(sparse_indices(value, format), out); });
}

OrtStatus* GetSparseTensorIndices(const OrtValue* value, OrtSparseIndicesFormat format,
                                  size_t* count, const void** out) {
  return guarded([&] {
    const Tensor& indices = sparse_indices(value, format);
    required(count, "num_indices") = static_cast<size_t>(indices.size());
    required(out, "indices") = indices.data();
  });
}

}  // namespace

const Tensor& sparse_values(const OrtValue* value) {
  const SparseTensor& made = sparse_tensor_of(value, "ort_value");
  if (value->sparse == nullptr) return made.values;
  if (value->sparse->format == ORT_SPARSE_UNDEFINED)
    refuse(ORT_FAIL, "the sparse tensor has no indices yet");
  return value->sparse->values;
}

const Value& run_value(const OrtValue& value) {
  const OrtSparseFormat format = sparse_format(value);
  if (format == ORT_SPARSE_UNDEFINED)
    refuse(ORT_INVALID_ARGUMENT, "a sparse tensor without indices is no input of a run");
  if (format == ORT_SPARSE_BLOCK_SPARSE)
    refuse(ORT_INVALID_ARGUMENT, "no operator takes a sparse tensor in blocks");
  return value.value;
}

void add_sparse(OrtApi& table) {
  table.IsSparseTensor = IsSparseTensor;
  table.CreateSparseTensorAsOrtValue = CreateSparseTensorAsOrtValue;
  table.CreateSparseTensorWithValuesAsOrtValue = CreateSparseTensorWithValuesAsOrtValue;
  table.FillSparseTensorCoo = FillSparseTensorCoo;
  table.FillSparseTensorCsr = FillSparseTensorCsr;
  table.FillSparseTensorBlockSparse = FillSparseTensorBlockSparse;
  table.UseCooIndices = UseCooIndices;
  table.UseCsrIndices = UseCsrIndices;
  table.UseBlockSparseIndices = UseBlockSparseIndices;
  table.GetSparseTensorFormat = GetSparseTensorFormat;
  table.GetSparseTensorValuesTypeAndShape = GetSparseTensorValuesTypeAndShape;
  table.GetSparseTensorValues = GetSparseTensorValues;
  table.GetSparseTensorIndicesTypeShape = GetSparseTensorIndicesTypeShape;
  table.GetSparseTensorIndices = GetSparseTensorIndices;
}

}  // namespace sardonyx::ort_api
