#include "ops/shared/file_constants.h"

#include <cstring>

#include "base/checked.h"
#include "base/fail.h"

namespace sardonyx::ops {
namespace {

// Whether a tensor is nothing but the bytes that its type and dims take.
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

bool is_weight(const ir::TensorProto& tensor) {
  constexpr size_t surely = size_t{1} << 16, least = 4 * max_known_elements;
  return tensor.has_raw_data && tensor.raw_data.size() > least &&
         is_floating(tensor.element_type()) &&
         (tensor.raw_data.size() >= surely || is_plain(tensor));
}

std::optional<ValueFacts> small_integers(const ir::TensorProto& tensor) {
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
  ValueFacts known = ValueFacts::of(ValueType::tensor(ElementType::int64, std::move(shape)));
  known.elements = std::move(elements);
  return known;
}

}  // namespace

std::optional<ValueFacts> known_of_file(const ir::TensorProto& tensor) {
  if (std::optional<ValueFacts> integers = small_integers(tensor)) return integers;
  if (!is_weight(tensor)) return std::nullopt;
  return ValueFacts::of(declared_type(tensor));
}

ValueType declared_type(const ir::TensorProto& tensor) {
  Dims shape;
  shape.reserve(tensor.dims.size());
  for (const int64_t dim : tensor.dims) {
    if (dim < 0) {
      fail_at(fmt::format("tensor '{}'", tensor.name), ErrorCode::invalid_model,
              "dims must not be negative; found {}", dim);
    }
    shape.push_back(Dim(dim));
  }
  return ValueType::tensor(tensor.element_type(), std::move(shape));
}

}  // namespace sardonyx::ops
