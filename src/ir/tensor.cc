#include "ir/tensor.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/bits.h"
#include "base/checked.h"
#include "base/fail.h"

namespace sardonyx::ir {
namespace {

// Elements are used as they lie in the file, which is little-endian.
static_assert(std::endian::native == std::endian::little);

std::string label(const TensorProto& proto) {
  return proto.name.empty() ? "tensor" : fmt::format("tensor '{}'", proto.name);
}

// Larger tensors stay views of the file even where they lie unaligned there.
constexpr size_t copied_when_unaligned = size_t{64} << 10;

// What moves elements takes complex64 as one number of eight bytes, complex128 as two.
size_t alignment_of(ElementType type) {
  return static_cast<size_t>(std::clamp(bit_width(type) / 8, 1, 8));
}

int64_t checked_elements(const TensorProto& proto) {
  const auto count = checked_count(proto.dims);
  if (!count) {
    fail(ErrorCode::invalid_model, "its dims {} are negative or their product overflows",
         to_string(proto.dims));
  }
  return *count;
}

bool is_aligned(const Tensor& tensor) {
  return tensor.element_type() == ElementType::string || tensor.size() == 0 ||
         reinterpret_cast<uintptr_t>(tensor.data()) % alignment_of(tensor.element_type()) == 0;
}

bool is_owned(const Tensor& tensor) { return tensor.owner() != nullptr || tensor.size() == 0; }

// Whether all tensors that a value holds, at any depth, are as `test` asks.
template <class Test>
bool holds_for(const Value& value, const Test& test) {
  const auto all = [&](const std::vector<Value>& values) {
    return std::all_of(values.begin(), values.end(),
                       [&](const Value& v) { return holds_for(v, test); });
  };
  switch (value.kind()) {
    case Value::Kind::none: return true;
    case Value::Kind::tensor: return test(value.tensor());
    case Value::Kind::sparse_tensor:
      return test(value.sparse_tensor().values) && test(value.sparse_tensor().indices);
    case Value::Kind::sequence: return all(value.sequence().items);
    case Value::Kind::map: return test(value.map().keys) && all(value.map().values);
    case Value::Kind::optional:
      return value.optional().held == nullptr || holds_for(*value.optional().held, test);
  }
  return true;
}

Tensor copied(const Tensor& tensor) {
  Tensor copy(tensor.element_type(), tensor.shape());
  std::memcpy(copy.mutable_data(), tensor.data(), tensor.byte_size());
  return copy;
}

// The value with copies of the tensors that are not as `test` asks; none of strings are.
template <class Test>
Value brought_to(const Value& value, const Test& test) {
  if (holds_for(value, test)) return value;
  const auto one = [&](const Tensor& tensor) { return test(tensor) ? tensor : copied(tensor); };
  const auto all = [&](const std::vector<Value>& values) {
    std::vector<Value> made;
    for (const Value& v : values) made.push_back(brought_to(v, test));
    return made;
  };
  switch (value.kind()) {
    case Value::Kind::none: return value;
    case Value::Kind::tensor: return one(value.tensor());
    case Value::Kind::sparse_tensor: {
      const SparseTensor& sparse = value.sparse_tensor();
      return SparseTensor{one(sparse.values), one(sparse.indices), sparse.shape};
    }
    case Value::Kind::sequence: return Sequence{all(value.sequence().items)};
    case Value::Kind::map: return Map{one(value.map().keys), all(value.map().values)};
    case Value::Kind::optional:
      return Optional{std::make_unique<Value>(brought_to(*value.optional().held, test))};
  }
  return value;
}

Tensor viewed(ElementType type, const Shape& shape, const Bytes& bytes) {
  const bool sound =
      type != ElementType::boolean || std::all_of(bytes.data(), bytes.data() + bytes.size(),
                                                  [](std::byte b) { return b <= std::byte{1}; });
  if (is_viewed(type, bytes) && sound && !bytes.empty())
    return Tensor::view(type, shape, bytes.data(), bytes.size(), bytes.owner());
  Tensor copy(type, shape);
  auto* out = static_cast<std::byte*>(copy.mutable_data());
  if (!bytes.empty()) std::memcpy(out, bytes.data(), bytes.size());
  if (!sound) {
    std::transform(out, out + bytes.size(), out,
                   [](std::byte b) { return std::byte{b != std::byte{0}}; });
  }
  return copy;
}

// The typed fields and how many entries each holds.
struct Stored {
  size_t float_data, double_data, int32_data, int64_data, uint64_data, string_data;
};

Stored stored(const TensorProto& p) {
  return {p.float_data.size() / 4, p.double_data.size() / 8, p.int32_data.size(),
          p.int64_data.size(),     p.uint64_data.size(),     p.string_data.size()};
}

enum class Field { float_data, double_data, int32_data, int64_data, uint64_data, string_data };

constexpr std::string_view field_names[] = {"float_data", "double_data", "int32_data",
                                            "int64_data", "uint64_data", "string_data"};

Field field_of(ElementType type) {
  switch (type) {
    case ElementType::float32:
    case ElementType::complex64: return Field::float_data;
    case ElementType::float64:
    case ElementType::complex128: return Field::double_data;
    case ElementType::int64: return Field::int64_data;
    case ElementType::uint32:
    case ElementType::uint64: return Field::uint64_data;
    case ElementType::string: return Field::string_data;
    default: return Field::int32_data;
  }
}

// Entries that `count` elements take in the typed field of their element type.
int64_t entries_for(ElementType type, int64_t count) {
  if (type == ElementType::complex64 || type == ElementType::complex128) {
    const auto twice = checked_mul(count, 2);
    if (!twice)
      fail(ErrorCode::invalid_model, "{} complex elements are more than memory can address", count);
    return *twice;
  }
  const int bits = bit_width(type);
  return bits == 4 || bits == 2 ? byte_size(type, count) : count;
}

void require_entries(const Stored& sizes, ElementType type, int64_t count) {
  const size_t all[] = {sizes.float_data, sizes.double_data, sizes.int32_data,
                        sizes.int64_data, sizes.uint64_data, sizes.string_data};
  const auto wanted = static_cast<size_t>(field_of(type));
  for (size_t i = 0; i < std::size(all); ++i) {
    if (i != wanted && all[i] != 0) {
      fail(ErrorCode::invalid_model,
           "its element type {} is stored in {}, but it has {} entries in {}", name_of(type),
           field_names[wanted], all[i], field_names[i]);
    }
  }
  const int64_t needed = entries_for(type, count);
  if (static_cast<uint64_t>(needed) != all[wanted]) {
    fail(ErrorCode::invalid_model, "{} elements of {} take {} entries in {}; it has {}", count,
         name_of(type), needed, field_names[wanted], all[wanted]);
  }
}

template <class To, class From>
void narrow(const std::vector<From>& from, Tensor& tensor) {
  auto* out = static_cast<To*>(tensor.mutable_data());
  std::transform(from.begin(), from.end(), out, [](From x) { return static_cast<To>(x); });
}

Tensor from_int32_data(const TensorProto& proto, ElementType type) {
  Tensor tensor(type, proto.dims);
  if (type == ElementType::boolean) {
    auto out = tensor.mutable_elements<bool>();
    std::transform(proto.int32_data.begin(), proto.int32_data.end(), out.begin(),
                   [](int32_t x) { return x != 0; });
    return tensor;
  }
  switch (bit_width(type)) {
    case 32: narrow<int32_t>(proto.int32_data, tensor); break;
    case 16: narrow<uint16_t>(proto.int32_data, tensor); break;
    case 6:  // one an entry, unlike in memory
      std::fill_n(static_cast<uint8_t*>(tensor.mutable_data()), tensor.byte_size(), uint8_t{0});
      for (size_t i = 0; i < proto.int32_data.size(); ++i) {
        put_element_bits(static_cast<uint8_t*>(tensor.mutable_data()), i, 6,
                         static_cast<unsigned>(proto.int32_data[i]) & 0x3f);
      }
      break;
    default:
      narrow<uint8_t>(proto.int32_data, tensor);
      break;  // and the packed types, a byte an entry
  }
  return tensor;
}

Tensor from_typed_field(const TensorProto& proto, ElementType type, int64_t count) {
  require_entries(stored(proto), type, count);
  switch (field_of(type)) {
    case Field::float_data: return viewed(type, proto.dims, proto.float_data);
    case Field::double_data: return viewed(type, proto.dims, proto.double_data);
    case Field::int32_data: return from_int32_data(proto, type);
    case Field::int64_data: {
      Tensor tensor(type, proto.dims);
      narrow<int64_t>(proto.int64_data, tensor);
      return tensor;
    }
    case Field::uint64_data: {
      Tensor tensor(type, proto.dims);
      if (type == ElementType::uint32) {
        narrow<uint32_t>(proto.uint64_data, tensor);
      } else {
        narrow<uint64_t>(proto.uint64_data, tensor);
      }
      return tensor;
    }
    case Field::string_data: break;
  }
  Tensor tensor(type, proto.dims);
  std::copy(proto.string_data.begin(), proto.string_data.end(),
            tensor.mutable_elements<std::string>().begin());
  return tensor;
}

bool has_typed_entries(const TensorProto& proto) {
  const Stored s = stored(proto);
  return s.float_data + s.double_data + s.int32_data + s.int64_data + s.uint64_data +
             s.string_data !=
         0;
}

Tensor from_external(const TensorProto& proto, ElementType type, int64_t count,
                     const ExternalBytes& external) {
  if (type == ElementType::string)
    fail(ErrorCode::invalid_model, "strings cannot be external data");
  if (!proto.raw_data.empty() || has_typed_entries(proto)) {
    fail(ErrorCode::invalid_model, "it has elements of its own beside its external data");
  }
  if (!external) {
    fail(ErrorCode::invalid_model,
         "its elements are external data, but no folder to look for them is known");
  }
  const auto needed = static_cast<uint64_t>(byte_size(type, count));
  return viewed(type, proto.dims, external(proto, needed));
}

Tensor decode(const TensorProto& proto, const ExternalBytes& external) {
  const ElementType type = proto.element_type();
  if (!is_known(type)) {
    fail(ErrorCode::invalid_model, "its data_type {} is no element type of the standard",
         proto.data_type);
  }
  if (proto.segment) {
    fail(ErrorCode::unsupported,
         "it is one segment ({} to {}) of a tensor split over several messages",
         proto.segment->begin, proto.segment->end);
  }
  const int64_t count = checked_elements(proto);
  if (proto.data_location != 0 && proto.data_location != 1) {
    fail(ErrorCode::invalid_model, "its data_location {} is neither 0 (default) nor 1 (external)",
         proto.data_location);
  }
  if (proto.is_external()) return from_external(proto, type, count, external);
  if (proto.raw_data.empty() &&
      (has_typed_entries(proto) || !proto.has_raw_data || type == ElementType::string)) {
    return from_typed_field(proto, type, count);
  }
  if (type == ElementType::string)
    fail(ErrorCode::invalid_model, "strings cannot be stored in raw_data");
  if (has_typed_entries(proto)) {
    fail(ErrorCode::invalid_model, "it has elements both in raw_data and in a typed field");
  }
  const int64_t needed = byte_size(type, count);
  if (static_cast<uint64_t>(needed) != proto.raw_data.size()) {
    fail(ErrorCode::invalid_model, "shape {} of {} takes {} bytes of raw_data; it has {}",
         to_string(proto.dims), name_of(type), needed, proto.raw_data.size());
  }
  return viewed(type, proto.dims, proto.raw_data);
}

}  // namespace

bool is_viewed(ElementType type, const Bytes& bytes) {
  return bytes.size() > copied_when_unaligned ||
         reinterpret_cast<uintptr_t>(bytes.data()) % alignment_of(type) == 0;
}

Tensor to_tensor(const TensorProto& proto, const ExternalBytes& external) {
  try {
    return decode(proto, external);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::bad_input) {  // sizes that come from a file, not from a caller
      throw Error(ErrorCode::invalid_model, error.message(), label(proto));
    }
    throw error.within(label(proto));
  }
}

Tensor aligned(const Tensor& tensor) { return is_aligned(tensor) ? tensor : copied(tensor); }

Value aligned(const Value& value) {
  return brought_to(value, [](const Tensor& tensor) { return is_aligned(tensor); });
}

Value owned(const Value& value) { return brought_to(value, is_owned); }

Value apart_from(const Tensor& tensor, const Value& value) {
  return brought_to(value, [&](const Tensor& part) { return !overlap(tensor, part); });
}

bool overlap(const Tensor& a, const Tensor& b) {
  const auto begin = [](const Tensor& t) { return reinterpret_cast<uintptr_t>(t.data()); };
  return begin(a) < begin(b) + b.byte_size() && begin(b) < begin(a) + a.byte_size();
}

bool overlap(const Tensor& tensor, const Value& value) {
  return !holds_for(value, [&](const Tensor& part) { return !overlap(tensor, part); });
}

TensorProto to_proto(const Tensor& tensor, std::string name) {
  TensorProto proto;
  proto.name = std::move(name);
  proto.dims = tensor.shape();
  proto.data_type = static_cast<int32_t>(tensor.element_type());
  if (tensor.element_type() == ElementType::string) {
    const auto strings = tensor.elements<std::string>();
    proto.string_data.assign(strings.begin(), strings.end());
  } else {
    proto.has_raw_data = true;
    proto.raw_data =
        Bytes(tensor.owner(), static_cast<const std::byte*>(tensor.data()), tensor.byte_size());
  }
  return proto;
}

SparseTensor to_sparse_tensor(const SparseTensorProto& proto, const ExternalBytes& external) {
  const std::string name = fmt::format("sparse {}", label(proto.values));
  try {
    SparseTensor sparse{to_tensor(proto.values, external), to_tensor(proto.indices, external),
                        proto.dims};
    const auto dense = checked_count(proto.dims);
    if (!dense)
      fail(ErrorCode::invalid_model, "its dims {} are negative or their product overflows",
           to_string(proto.dims));
    if (sparse.values.rank() != 1) {
      fail(ErrorCode::invalid_model, "its values have shape {}; they must be one-dimensional",
           to_string(sparse.values.shape()));
    }
    const auto rank = static_cast<int64_t>(proto.dims.size());
    const bool linear = sparse.indices.rank() == 1;
    const bool fits = sparse.indices.rank() >= 1 && sparse.indices.rank() <= 2 &&
                      sparse.indices.shape()[0] == sparse.values.size() &&
                      (linear || sparse.indices.shape()[1] == rank);
    if (sparse.indices.element_type() != ElementType::int64 || !fits) {
      fail(ErrorCode::invalid_model,
           "its indices are {} of shape {}; they must be int64 of shape [{}] or [{},{}]",
           name_of(sparse.indices.element_type()), to_string(sparse.indices.shape()),
           sparse.values.size(), sparse.values.size(), rank);
    }
    const auto indices = sparse.indices.elements<int64_t>();
    for (size_t i = 0; i < indices.size(); ++i) {
      const int64_t limit = linear ? *dense : proto.dims[i % static_cast<size_t>(rank)];
      if (indices[i] < 0 || indices[i] >= limit) {
        fail(ErrorCode::invalid_model, "its index {} is {}; it must be in [0, {})", i, indices[i],
             limit);
      }
    }
    return sparse;
  } catch (const Error& error) {
    throw error.within(name);
  }
}

SparseTensorProto to_proto(const SparseTensor& sparse, std::string name) {
  SparseTensorProto proto;
  proto.values = to_proto(sparse.values, std::move(name));
  proto.indices = to_proto(sparse.indices);
  proto.dims = sparse.shape;
  return proto;
}

}  // namespace sardonyx::ir
