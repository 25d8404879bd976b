#include "ops/families/small_integers.h"

#include <cstring>

#include "base/checked.h"

namespace sardonyx::ops {

bool is_plain(const ir::TensorProto& tensor) {
  const bool has_others = tensor.segment || tensor.data_location != 0 ||
                          !tensor.float_data.empty() || !tensor.double_data.empty() ||
                          !tensor.int32_data.empty() || !tensor.int64_data.empty() ||
                          !tensor.uint64_data.empty() || !tensor.string_data.empty();
  if (has_others) return false;
  const auto count = checked_count(tensor.dims);
  return count &&
         static_cast<uint64_t>(byte_size(tensor.element_type(), *count)) == tensor.raw_data.size();
}

std::optional<Known> small_integers(const ir::TensorProto& tensor) {
  constexpr size_t bytes = sizeof(int64_t), most = max_known_elements * bytes;
  if (tensor.element_type() != ElementType::int64 || !tensor.has_raw_data ||
      tensor.dims.size() > 1 || tensor.raw_data.size() > most || !is_plain(tensor))
    return std::nullopt;
  auto elements = std::make_shared<Dims>();
  const size_t count = tensor.raw_data.size() / bytes;
  elements->reserve(count);
  for (size_t i = 0; i < count; ++i) {
    int64_t number = 0;
    std::memcpy(&number, tensor.raw_data.data() + i * bytes, bytes);
    elements->emplace_back(number);
  }
  Dims shape;
  for (const int64_t size : tensor.dims) shape.emplace_back(size);
  Known known = Known::of(ValueType::tensor(ElementType::int64, std::move(shape)));
  known.elements = std::move(elements);
  return known;
}

}  // namespace sardonyx::ops
