#include "ort_api_handles.h"

#include <algorithm>

namespace sardonyx::fuzzing {

// --- Reading --------------------------------------------------------------------------------

namespace {

struct Known {
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::vector<int64_t> dims;
  size_t count = 0;
};

Known known_of(OrtTensorTypeAndShapeInfo* info) {
  Known known;
  size_t rank = 0;
  must(table().GetTensorElementType(info, &known.type));
  must(table().GetDimensionsCount(info, &rank));
  known.dims.resize(rank);
  must(table().GetDimensions(info, known.dims.data(), rank));
  // A sparse tensor may be larger than 64 bits can count.
  take(table().GetTensorShapeElementCount(info, &known.count));
  std::vector<const char*> symbols(rank);
  must(table().GetSymbolicDimensions(info, symbols.data(), rank));
  for (const char* symbol : symbols) require(std::strlen(symbol) < 1000, "a name ends");
  table().ReleaseTensorTypeAndShapeInfo(info);
  return known;
}

volatile unsigned sum_of_bytes = 0;
void read_bytes(const void* data, size_t bytes) {
  const auto* const from = static_cast<const uint8_t*>(data);
  for (size_t i = 0; i < bytes; ++i) sum_of_bytes = sum_of_bytes + from[i];
}

void read_strings(const OrtValue* value, size_t count) {
  size_t bytes = 0;
  must(table().GetStringTensorDataLength(value, &bytes));
  std::vector<char> all(bytes);
  std::vector<size_t> offsets(count);
  must(table().GetStringTensorContent(value, all.data(), bytes, offsets.data(), count));
  for (size_t i = 0; i < count; ++i) {
    size_t length = 0;
    must(table().GetStringTensorElementLength(value, i, &length));
    require(offsets[i] + length == (i + 1 < count ? offsets[i + 1] : bytes), "offsets fit");
    std::vector<char> one(length);
    must(table().GetStringTensorElement(value, length, i, one.data()));
    require(std::equal(one.begin(), one.end(), all.data() + offsets[i]), "both ways agree");
  }
}

void read_tensor(OrtValue* value, const Range& callers) {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  must(table().GetTensorTypeAndShape(value, &info));
  const Known known = known_of(info);
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  const int64_t* dims = nullptr;
  size_t rank = 0, bytes = 0;
  must(table().GetTensorElementTypeAndShapeDataReference(value, &type, &dims, &rank));
  require(type == known.type && std::equal(dims, dims + rank, known.dims.begin(), known.dims.end()),
          "both ways give one type and shape");
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) return read_strings(value, known.count);
  const void* data = nullptr;
  must(table().GetTensorSizeInBytes(value, &bytes));
  must(table().GetTensorData(value, &data));
  require(callers.begin == nullptr || data < callers.begin || data >= callers.begin + callers.bytes,
          "outputs do not lie in the memory of inputs");
  read_bytes(data, bytes);
}

void read_sparse(const OrtValue* value) {
  OrtSparseFormat format = ORT_SPARSE_UNDEFINED;
  must(table().GetSparseTensorFormat(value, &format));
  OrtTensorTypeAndShapeInfo* info = nullptr;
  if (format == ORT_SPARSE_UNDEFINED) {
    take(table().GetSparseTensorValuesTypeAndShape(value, &info), info);
    return;
  }
  must(table().GetSparseTensorValuesTypeAndShape(value, &info));
  const Known values = known_of(info);
  const void* data = nullptr;
  if (values.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
    read_strings(value, values.count);
  } else {
    must(table().GetSparseTensorValues(value, &data));
    read_bytes(data, values.count);
  }
  for (int form = -1; form < 5; ++form) {
    size_t count = 0;
    info = nullptr;
    const auto asked = static_cast<OrtSparseIndicesFormat>(form);
    take(table().GetSparseTensorIndicesTypeShape(value, asked, &info), info);
    if (info == nullptr) continue;
    must(table().GetSparseTensorIndices(value, asked, &count, &data));
    require(count == known_of(info).count, "as many indices as their shape says");
    read_bytes(data, count * (form == ORT_SPARSE_BLOCK_SPARSE_INDICES ? 4 : 8));
  }
}

}  // namespace

void read_type(const OrtTypeInfo* info) {
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  const OrtSequenceTypeInfo* sequence = nullptr;
  const OrtMapTypeInfo* map = nullptr;
  const OrtOptionalTypeInfo* optional = nullptr;
  OrtTypeInfo* inner = nullptr;
  must(table().CastTypeInfoToTensorInfo(info, &tensor));
  must(table().CastTypeInfoToSequenceTypeInfo(info, &sequence));
  must(table().CastTypeInfoToMapTypeInfo(info, &map));
  must(table().CastTypeInfoToOptionalTypeInfo(info, &optional));
  if (sequence != nullptr) take(table().GetSequenceElementType(sequence, &inner), inner);
  if (map != nullptr) take(table().GetMapValueType(map, &inner), inner);
  if (optional != nullptr) take(table().GetOptionalContainedTypeInfo(optional, &inner), inner);
  if (inner != nullptr) read_type(inner);
  table().ReleaseTypeInfo(inner);
}

void read(OrtValue* value, const Range& callers) {
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  must(table().GetValueType(value, &kind));
  OrtTypeInfo* info = nullptr;
  must(table().GetTypeInfo(value, &info));
  if (info != nullptr) read_type(info);
  table().ReleaseTypeInfo(info);
  if (kind == ONNX_TYPE_TENSOR) read_tensor(value, callers);
  if (kind == ONNX_TYPE_SPARSETENSOR) read_sparse(value);
  if (kind != ONNX_TYPE_SEQUENCE && kind != ONNX_TYPE_MAP) return;
  size_t count = 0;
  must(table().GetValueCount(value, &count));
  for (size_t i = 0; i < count; ++i) {
    OrtValue* item = nullptr;
    must(table().GetValue(value, static_cast<int>(i), default_memory(), &item));
    read(item, callers);
    table().ReleaseValue(item);
  }
}

std::vector<float> floats_in(const OrtValue* value) {
  int is_tensor = 0;
  must(table().IsTensor(value, &is_tensor));
  if (is_tensor == 0) return {};
  OrtTensorTypeAndShapeInfo* info = nullptr;
  must(table().GetTensorTypeAndShape(value, &info));
  const Known known = known_of(info);
  const void* data = nullptr;
  must(table().GetTensorData(value, &data));
  if (known.type != ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) return {};
  std::vector<float> floats(known.count);
  if (!floats.empty()) std::memcpy(floats.data(), data, known.count * sizeof(float));
  return floats;
}

// --- Calls ----------------------------------------------------------------------------------

void Handles::make_tensor() {
  const auto dims = shape();
  OrtValue* made = nullptr;
  OrtAllocator* const from = allocator();
  const ONNXTensorElementDataType type = element();
  keep(table().CreateTensorAsOrtValue(from, dims.data(), dims.size(), type, place(made)), made,
       values_);
  if (made == nullptr || type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) return;
  void* data = nullptr;
  size_t bytes = 0;
  must(table().GetTensorMutableData(made, &data));
  must(table().GetTensorSizeInBytes(made, &bytes));
  if (bytes > 0) std::memset(data, choices_.one_in(2), bytes);
}

void Handles::view_memory() {
  const auto dims = shape();
  const size_t begin = choices_.below(8) * 8, bytes = choices_.below(sizeof(memory_) - begin);
  OrtValue* made = nullptr;
  OrtMemoryInfo* const info = any(infos_);
  void* const data = choices_.one_in(32) ? nullptr : memory_ + begin;
  keep(table().CreateTensorWithDataAsOrtValue(info, data, bytes, dims.data(), dims.size(),
                                              element(), place(made)),
       made, values_);
  if (!choices_.one_in(4)) return;
  made = nullptr;
  void* const given = callers_memory()->Alloc(callers_memory(), 64);
  if (given == nullptr) return;
  OrtAllocator* const deleter = choices_.one_in(8) ? nullptr : callers_memory();
  OrtStatus* const status = table().CreateTensorWithDataAndDeleterAsOrtValue(
      deleter, given, 64, dims.data(), dims.size(), element(), place(made));
  if (status != nullptr) callers_memory()->Free(callers_memory(), given);
  keep(status, made, values_);
}

void Handles::combine() {
  std::vector<const OrtValue*> some(choices_.below(4));
  for (const OrtValue*& one : some) one = any(values_);
  constexpr ONNXType kinds[] = {ONNX_TYPE_SEQUENCE, ONNX_TYPE_MAP, ONNX_TYPE_MAP, ONNX_TYPE_TENSOR};
  OrtValue* made = nullptr;
  const ONNXType kind = kinds[choices_.below(4)];
  keep(table().CreateValue(some.data(), some.size(), kind, place(made)), made, values_);
  made = nullptr;
  const int index = static_cast<int>(choices_.below(4)) - 1;
  keep(table().GetValue(any(values_), index, allocator(), place(made)), made, values_);
}

void Handles::make_sparse() {
  const auto dims = shape(), values_dims = shape();
  OrtValue* made = nullptr;
  const ONNXTensorElementDataType type = element();
  const bool copies = choices_.one_in(2);
  OrtMemoryInfo* const info = any(infos_);
  if (copies) {
    keep(table().CreateSparseTensorAsOrtValue(allocator(), dims.data(), dims.size(), type,
                                              place(made)),
         made, values_);
  } else {
    // 3 * 3 * 3 values of 16 bytes are the most but for those that are refused.
    if (std::count(values_dims.begin(), values_dims.end(), INT64_MAX) > 0) return;
    keep(table().CreateSparseTensorWithValuesAsOrtValue(info, memory_, dims.data(), dims.size(),
                                                        values_dims.data(), values_dims.size(),
                                                        type, place(made)),
         made, values_);
  }
  fill_sparse(made != nullptr ? made : any(values_), type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING,
              values_dims);
}

void Handles::fill_sparse(OrtValue* value, bool strings, const std::vector<int64_t>& dims) {
  static const char* const texts[27] = {"a", "b", "",  "long text that has memory of its own",
                                        "c", "d", "e", "f",
                                        "g", "a", "b", "",
                                        "x", "c", "d", "e",
                                        "f", "g", "a", "b",
                                        "",  "x", "c", "d",
                                        "e", "f", "g"};
  if (std::count(dims.begin(), dims.end(), INT64_MAX) > 0) return;
  std::vector<int64_t>&first = indices(), &other = indices();
  const void* const data = strings ? static_cast<const void*>(texts) : memory_;
  OrtMemoryInfo* const info = any(infos_);
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  if (value != nullptr) must(table().GetValueType(value, &kind));
  if (kind == ONNX_TYPE_SPARSETENSOR) {  // of a value of before the data would be of another type
    OrtTensorTypeAndShapeInfo* told = nullptr;
    must(table().GetTensorTypeAndShape(value, &told));
    if ((known_of(told).type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) != strings) return;
  }
  const std::vector<int64_t> blocks{2, static_cast<int64_t>(first.size() / 2)};
  auto* const short_indices = reinterpret_cast<int32_t*>(first.data());
  switch (choices_.below(6)) {
    case 0:
      take(table().FillSparseTensorCoo(value, info, dims.data(), dims.size(), data, first.data(),
                                       first.size()));
      break;
    case 1: take(table().UseCooIndices(value, first.data(), first.size())); break;
    case 2:
      take(table().FillSparseTensorCsr(value, info, dims.data(), dims.size(), data, first.data(),
                                       first.size(), other.data(), other.size()));
      break;
    case 3:
      take(table().UseCsrIndices(value, first.data(), first.size(), other.data(), other.size()));
      break;
    case 4:
      take(table().FillSparseTensorBlockSparse(value, info, dims.data(), dims.size(), data,
                                               blocks.data(), 2, short_indices));
      break;
    case 5: take(table().UseBlockSparseIndices(value, blocks.data(), 2, short_indices)); break;
  }
}

void Handles::write(OrtValue* value) {
  void* element = nullptr;
  const auto places = shape();
  take(table().TensorAt(value, places.data(), places.size(), &element), element);
  if (element != nullptr) std::memset(element, 1, 1);
  static const char* const texts[] = {"a", "", "some more text than fits in itself", "d", "e"};
  take(table().FillStringTensor(value, texts, choices_.below(6)));
  take(table().FillStringTensorElement(
      value, choices_.one_in(16) ? nullptr : texts[choices_.below(5)], choices_.below(4)));
  char* buffer = nullptr;
  const size_t length = choices_.one_in(32) ? SIZE_MAX : choices_.below(60);
  take(table().GetResizedStringTensorElementBuffer(value, choices_.below(4), length, &buffer),
       buffer);
  if (buffer != nullptr) std::memset(buffer, 'u', length);
}

void Handles::read_any() {
  OrtValue* const value = any(values_);
  if (value != nullptr) return read(value);
  size_t number = 0;
  int answer = 0;
  take(table().GetStringTensorElementLength(value, 0, &number));
  take(table().GetValueCount(value, &number));
  take(table().IsSparseTensor(value, &answer));
  take(table().HasValue(value, nullptr));
}

OrtValue* Handles::made_for(const OrtTypeInfo* info) {
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  const OrtSequenceTypeInfo* sequence = nullptr;
  const OrtMapTypeInfo* map = nullptr;
  const OrtOptionalTypeInfo* optional = nullptr;
  OrtTypeInfo* inner = nullptr;
  OrtValue* made = nullptr;
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  must(table().GetOnnxTypeFromTypeInfo(info, &kind));
  must(table().CastTypeInfoToTensorInfo(info, &tensor));
  must(table().CastTypeInfoToSequenceTypeInfo(info, &sequence));
  must(table().CastTypeInfoToMapTypeInfo(info, &map));
  must(table().CastTypeInfoToOptionalTypeInfo(info, &optional));
  if (tensor != nullptr) {
    size_t rank = 0;
    ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    must(table().GetDimensionsCount(tensor, &rank));
    must(table().GetTensorElementType(tensor, &type));
    std::vector<int64_t> dims(rank);
    must(table().GetDimensions(tensor, dims.data(), rank));
    for (int64_t& one : dims)
      if (one < 0 || one > 8) one = size_;
    if (kind == ONNX_TYPE_SPARSETENSOR) {
      keep(table().CreateSparseTensorAsOrtValue(default_memory(), dims.data(), rank, type, &made),
           made, values_);
      if (made != nullptr) fill_sparse(made, false, {static_cast<int64_t>(choices_.below(4))});
      return made;
    }
    constexpr int truth = 9;
    if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING || static_cast<int>(type) == truth) {
      keep(table().CreateTensorAsOrtValue(default_memory(), dims.data(), rank, type, &made), made,
           values_);
      void* data = nullptr;
      size_t count = 0;
      if (made != nullptr && type != ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
        must(table().GetTensorMutableData(made, &data));
        must(table().GetTensorSizeInBytes(made, &count));
        if (count > 0) std::memset(data, choices_.one_in(2), count);
      }
    } else {
      const size_t begin = 4 * choices_.below(8);
      keep(table().CreateTensorWithDataAsOrtValue(cpu_memory_info(), memory_ + begin,
                                                  sizeof(memory_) - begin, dims.data(), rank, type,
                                                  &made),
           made, values_);
    }
    return made;
  }
  if (sequence != nullptr) must(table().GetSequenceElementType(sequence, &inner));
  if (optional != nullptr) must(table().GetOptionalContainedTypeInfo(optional, &inner));
  if (map != nullptr) must(table().GetMapValueType(map, &inner));
  if (inner == nullptr) return nullptr;
  const OrtValue* const item = made_for(inner);
  table().ReleaseTypeInfo(inner);
  if (optional != nullptr) return const_cast<OrtValue*>(item);
  if (sequence != nullptr) {
    const OrtValue* const items[] = {item, item};
    keep(table().CreateValue(items, 1 + choices_.below(2), ONNX_TYPE_SEQUENCE, &made), made,
         values_);
    return made;
  }
  const char* const texts[] = {"a", choices_.one_in(4) ? "unknown" : "b"};
  const int64_t two = 2;
  OrtValue *keys = nullptr, *values = nullptr;
  keep(table().CreateTensorAsOrtValue(default_memory(), &two, 1,
                                      ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &keys),
       keys, values_);
  must(table().FillStringTensor(keys, texts, 2));
  keep(table().CreateTensorWithDataAsOrtValue(cpu_memory_info(), memory_, 8, &two, 1,
                                              ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &values),
       values, values_);
  const OrtValue* const parts[] = {keys, values};
  keep(table().CreateValue(parts, 2, ONNX_TYPE_MAP, &made), made, values_);
  return made;
}

OrtValue* Handles::output_memory() {
  OrtValue* made = nullptr;
  const int64_t dims[] = {size_};
  const bool strings = choices_.one_in(8);
  OrtAllocator* const from = choices_.one_in(2) ? callers_memory() : default_memory();
  keep(table().CreateTensorAsOrtValue(
           from, dims, choices_.one_in(8) ? 0 : 1,
           strings ? ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING : ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
           &made),
       made, outputs_);
  return made;
}

void Handles::use_memory() {
  constexpr const char* memories[] = {"Cpu", "Cuda", "CudaPinned", "none"};
  OrtMemoryInfo* made = nullptr;
  const auto type = static_cast<OrtAllocatorType>(choices_.below(4));
  if (choices_.one_in(3)) {
    keep(table().CreateMemoryInfo(memories[choices_.below(4)], type,
                                  static_cast<int>(choices_.below(2)), OrtMemTypeDefault,
                                  place(made)),
         made, infos_);
  } else {
    keep(table().CreateCpuMemoryInfo(type, OrtMemTypeDefault, place(made)), made, infos_);
  }
  int answer = 0;
  take(table().CompareMemoryInfo(any(infos_), any(infos_), &answer));
  const char* text = nullptr;
  take(table().MemoryInfoGetName(any(infos_), &text));
  void* memory = nullptr;
  OrtAllocator* const from = allocator();
  const size_t bytes = choices_.below(2000);
  take(table().AllocatorAlloc(from, bytes, &memory), memory);
  if (memory != nullptr) std::memset(memory, 1, bytes);
  take(table().AllocatorFree(from, memory));
  OrtKeyValuePairs* statistics = nullptr;
  keep(table().AllocatorGetStats(from, &statistics), statistics, pairs_);
  const OrtMemoryInfo* info = nullptr;
  take(table().AllocatorGetInfo(from, &info));
  take(table().GetTensorMemoryInfo(any(values_), &info));
}

void Handles::use_type_info() {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  take(table().CreateTensorTypeAndShapeInfo(place(info)), info);
  const auto dims = shape();
  const char* symbols[] = {name(), name(), name()};
  take(table().SetTensorElementType(info, element()));
  take(table().SetDimensions(info, dims.data(), dims.size()));
  take(table().SetSymbolicDimensions(info, symbols, choices_.below(4)));
  int64_t told[2];
  size_t count = 0;
  take(table().GetDimensions(info, told, choices_.below(3)));
  take(table().GetSymbolicDimensions(info, symbols, choices_.below(4)));
  take(table().GetTensorShapeElementCount(info, &count));
  table().ReleaseTensorTypeAndShapeInfo(info);
}

}  // namespace sardonyx::fuzzing
