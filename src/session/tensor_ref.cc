#include "sardonyx/tensor_ref.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/checked.h"
#include "base/fail.h"

namespace sardonyx {
namespace {

constexpr size_t max_rank = 4096;

// Bytes that the elements reach over before and after the first one.
struct Extent {
  size_t before = 0, after = 0;
};

Extent extent_of(const TensorRef& memory, int64_t width) {
  int64_t first = 0, last = 0;
  for (size_t d = 0; d < memory.shape.size(); ++d) {
    const auto far = checked_mul(memory.shape[d] - 1, memory.strides[d]);
    int64_t& end = memory.strides[d] < 0 ? first : last;
    const auto sum = far ? checked_add(end, *far) : std::nullopt;
    if (!sum) fail(ErrorCode::bad_input, "strides {} overflow", to_string(memory.strides));
    end = *sum;
  }
  const auto next = checked_add(last, 1);
  const auto before = checked_mul(first, -width);
  const auto after = next ? checked_mul(*next, width) : std::nullopt;
  if (!before || !after)
    fail(ErrorCode::bad_input, "strides {} overflow", to_string(memory.strides));
  return {static_cast<size_t>(*before), static_cast<size_t>(*after)};
}

int64_t checked_size(const TensorRef& memory) {
  if (memory.shape.size() > max_rank)
    fail(ErrorCode::bad_input, "{} dimensions are more than the {} a tensor may have",
         memory.shape.size(), max_rank);
  const auto count = checked_count(memory.shape);
  if (!count)
    fail(ErrorCode::bad_input, "shape {} has no sound number of elements", to_string(memory.shape));
  if (!memory.strides.empty() && memory.strides.size() != memory.shape.size())
    fail(ErrorCode::bad_input, "there are {} strides for {} dimensions", memory.strides.size(),
         memory.shape.size());
  return *count;
}

// Copies elements line after line, each of the last dimension.
template <size_t width>
void copy_lines(const TensorRef& memory, int64_t count, std::byte* to) {
  const size_t rank = memory.shape.size();
  const int64_t length = memory.shape[rank - 1], step = memory.strides[rank - 1];
  const auto* from = static_cast<const std::byte*>(memory.data);
  std::vector<int64_t> index(rank, 0);
  constexpr auto bytes = static_cast<int64_t>(width);
  for (int64_t done = 0; done < count; done += length) {
    if (step == 1) {
      std::memcpy(to, from, static_cast<size_t>(length) * width);
    } else {
      for (int64_t i = 0; i < length; ++i)
        std::memcpy(to + i * bytes, from + i * step * bytes, width);
    }
    to += length * bytes;
    for (size_t d = rank - 1; d-- > 0;) {  // the next line
      from += memory.strides[d] * bytes;
      if (++index[d] < memory.shape[d]) break;
      from -= memory.strides[d] * memory.shape[d] * bytes;
      index[d] = 0;
    }
  }
}

Tensor gathered(const TensorRef& memory, int64_t count, int bits) {
  if (bits % 8 != 0)
    fail(ErrorCode::unsupported, "elements of {} share bytes, and can only be taken dense",
         name_of(memory.element_type));
  const Extent extent = extent_of(memory, bits / 8);
  if (extent.after > memory.bytes || extent.before > memory.bytes_before) {
    fail(ErrorCode::bad_input,
         "shape {} with strides {} reaches over {} bytes before and {} after its first element; "
         "the memory has {} and {}",
         to_string(memory.shape), to_string(memory.strides), extent.before, extent.after,
         memory.bytes_before, memory.bytes);
  }
  Tensor made(memory.element_type, memory.shape);
  auto* to = static_cast<std::byte*>(made.mutable_data());
  switch (bits / 8) {
    case 1: copy_lines<1>(memory, count, to); break;
    case 2: copy_lines<2>(memory, count, to); break;
    case 4: copy_lines<4>(memory, count, to); break;
    case 8: copy_lines<8>(memory, count, to); break;
    default: copy_lines<16>(memory, count, to); break;
  }
  return made;
}

}  // namespace

bool is_dense(const TensorRef& memory) {
  if (memory.strides.empty()) return true;
  const int64_t count = checked_size(memory);
  int64_t expected = 1;
  for (size_t d = memory.shape.size(); count > 0 && d-- > 0;) {
    if (memory.shape[d] != 1 && memory.strides[d] != expected) return false;
    expected *= memory.shape[d];
  }
  return true;
}

Tensor tensor_of(const TensorRef& memory) {
  const int64_t count = checked_size(memory);
  const int bits = is_known(memory.element_type) ? bit_width(memory.element_type) : 0;
  if (bits == 0)
    fail(ErrorCode::bad_input, "memory has no elements of type {}; strings_of makes strings",
         name_of(memory.element_type));
  if (memory.data == nullptr && count > 0)
    fail(ErrorCode::bad_input, "there is no memory for the {} elements of shape {}", count,
         to_string(memory.shape));
  if (is_dense(memory))
    return Tensor::view(memory.element_type, memory.shape, memory.data, memory.bytes, memory.owner);
  return gathered(memory, count, bits);
}

Tensor copy_of(const TensorRef& memory) {
  const Tensor taken = tensor_of(memory);
  if (!is_dense(memory)) return taken;
  Tensor copy(taken.element_type(), taken.shape());
  if (taken.byte_size() > 0) std::memcpy(copy.mutable_data(), taken.data(), taken.byte_size());
  return copy;
}

TensorRef ref_of(const Tensor& tensor) {
  return {{tensor.element_type(),
           tensor.shape(),
           tensor.data(),
           tensor.byte_size(),
           {},
           0,
           tensor.owner()}};
}

MutableTensorRef writable(Tensor& tensor) {
  if (tensor.element_type() == ElementType::string || tensor.empty())
    fail(ErrorCode::bad_input, "elements of type {} have no memory to be written to",
         name_of(tensor.element_type()));
  if (tensor.owner().use_count() != 1) {
    TensorRef shared = ref_of(tensor);
    shared.owner = nullptr;
    tensor = copy_of(shared);
  }
  return {{tensor.element_type(), tensor.shape(), tensor.mutable_data(), tensor.byte_size()}};
}

Tensor strings_of(std::span<const std::string_view> texts, Shape shape) {
  Tensor made(ElementType::string, std::move(shape));
  if (static_cast<int64_t>(texts.size()) != made.size())
    fail(ErrorCode::bad_input, "{} texts do not fill the shape {}", texts.size(),
         to_string(made.shape()));
  std::ranges::copy(texts, made.mutable_elements<std::string>().begin());
  return made;
}

}  // namespace sardonyx
