#include "formats/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <set>

#include "base/bits.h"
#include "base/checked.h"
#include "base/fail.h"
#include "formats/complex_type.h"
#include "formats/npy_header.h"
#include "formats/zip.h"
#include "wire/utf.h"

namespace sardonyx::formats {
namespace {

// Strings of no length take no bytes: their number has to be bounded by itself.
constexpr int64_t max_empty_strings = 1 << 16;

// What a descr such as '<f4' means.
struct Dtype {
  ElementType type = ElementType::undefined;
  bool swap = false;  // big-endian
  size_t item = 0;    // bytes of one element in the file
  char text = 0;      // 'U' or 'S' for strings
};

ElementType numeric_type(char kind, size_t size) {
  struct Row {
    char kind;
    size_t size;
    ElementType type;
  };
  static constexpr Row rows[] = {
      {'b', 1, ElementType::boolean},     {'i', 1, ElementType::int8},
      {'i', 2, ElementType::int16},       {'i', 4, ElementType::int32},
      {'i', 8, ElementType::int64},       {'u', 1, ElementType::uint8},
      {'u', 2, ElementType::uint16},      {'u', 4, ElementType::uint32},
      {'u', 8, ElementType::uint64},      {'f', 1, ElementType::float8e5m2},
      {'f', 2, ElementType::float16},     {'f', 4, ElementType::float32},
      {'f', 8, ElementType::float64},     {'c', 8, ElementType::complex64},
      {'c', 16, ElementType::complex128},
  };
  for (const Row& row : rows) {
    if (row.kind == kind && row.size == size) return row.type;
  }
  return ElementType::undefined;
}

// Bytes that ml_dtypes writes for one element.
size_t raw_item(ElementType type) { return static_cast<size_t>(std::max(bit_width(type), 8)) / 8; }

bool is_stored_raw(ElementType type) {
  return type == ElementType::bfloat16 || (is_floating(type) && bit_width(type) <= 8) ||
         (bit_width(type) > 0 && bit_width(type) < 8);
}

Dtype dtype_of(const std::string& descr, ElementType expected) {
  Dtype dtype;
  std::string_view rest = descr;
  char order = '|';
  if (!rest.empty() && std::string_view("<>=|").find(rest.front()) != std::string_view::npos) {
    order = rest.front();
    rest.remove_prefix(1);
  }
  const char kind = rest.empty() ? '?' : rest.front();
  if (kind == 'O')
    fail(ErrorCode::unsupported, "arrays of Python objects are not read: they are pickled code");
  if (kind == 'M' || kind == 'm') fail(ErrorCode::unsupported, "arrays of dates are not read");
  if (!rest.empty()) rest.remove_prefix(1);
  const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), dtype.item);
  if (error != std::errc() || stop != rest.data() + rest.size() || dtype.item > (size_t{1} << 40)) {
    fail(ErrorCode::unsupported, "arrays of dtype '{}' are not read", descr);
  }
  dtype.swap = order == '>' && dtype.item > 1;
  if (kind == 'U' || kind == 'S' || kind == 'a') {
    dtype.type = ElementType::string;
    dtype.text = kind == 'U' ? 'U' : 'S';
    if (kind == 'U') dtype.item *= 4;
    return dtype;
  }
  if (kind == 'V') {
    if (is_stored_raw(expected) && raw_item(expected) == dtype.item) {
      dtype.type = expected;
    } else if (expected == ElementType::undefined && dtype.item == 2) {
      dtype.type = ElementType::bfloat16;
    } else {
      fail(ErrorCode::unsupported,
           "the array holds raw bytes (dtype '{}'), which do not say their element type{}", descr,
           expected == ElementType::undefined
               ? ""
               : fmt::format(" and do not fit {}", name_of(expected)));
    }
    return dtype;
  }
  dtype.type = numeric_type(kind, dtype.item);
  if (dtype.type == ElementType::undefined)
    fail(ErrorCode::unsupported, "arrays of dtype '{}' are not read", descr);
  return dtype;
}

// Calls visit(position in C order, position in the file) for each element of a Fortran array.
template <class Visit>
void for_fortran(const Shape& shape, int64_t count, const Visit& visit) {
  if (count == 0) return;
  struct Axis {
    int64_t size, stride, index;
  };
  std::vector<Axis> axes;
  int64_t stride = 1;
  for (const int64_t size : shape) {
    axes.push_back({.size = size, .stride = stride, .index = 0});
    stride *= size;
  }
  int64_t from = 0;
  for (int64_t to = 0; to < count; ++to) {
    visit(to, from);
    for (size_t d = axes.size(); d-- > 0;) {
      Axis& axis = axes[d];
      from += axis.stride;
      if (++axis.index < axis.size) break;
      from -= axis.stride * axis.size;
      axis.index = 0;
    }
  }
}

std::string string_at(const std::byte* at, const Dtype& dtype) {
  if (dtype.text == 'S') {
    std::string text(reinterpret_cast<const char*>(at), dtype.item);
    text.erase(std::min(text.find_last_not_of('\0') + 1, text.size()));
    return text;
  }
  std::string text;
  size_t count = dtype.item / 4;
  std::vector<uint32_t> points(count);
  if (count != 0) std::memcpy(points.data(), at, dtype.item);
  if (dtype.swap)
    std::transform(points.begin(), points.end(), points.begin(),
                   [](uint32_t p) { return __builtin_bswap32(p); });
  while (count > 0 && points[count - 1] == 0) --count;
  for (size_t i = 0; i < count; ++i) {
    if (!wire::append_utf8(points[i], text))
      unsound_npy(fmt::format("a string has {:#x} in it, which is no character", points[i]));
  }
  return text;
}

Tensor read_strings(const NpyHeader& header, const Dtype& dtype, const Bytes& data, int64_t count) {
  Tensor tensor(ElementType::string, header.shape);
  auto out = tensor.mutable_elements<std::string>();
  const auto put = [&](int64_t to, int64_t from) {
    out[static_cast<size_t>(to)] =
        string_at(data.data() + static_cast<size_t>(from) * dtype.item, dtype);
  };
  if (header.fortran_order) {
    for_fortran(header.shape, count, put);
  } else {
    for (int64_t i = 0; i < count; ++i) put(i, i);
  }
  return tensor;
}

void swap_bytes(std::byte* data, size_t bytes, size_t width) {
  for (size_t at = 0; at + width <= bytes; at += width) std::reverse(data + at, data + at + width);
}

// The elements in C order and in this machine's byte order; the bytes themselves where they are so.
Bytes ordered(const NpyHeader& header, const Dtype& dtype, const Bytes& data, int64_t count) {
  const bool plain_order = !header.fortran_order || header.shape.size() < 2;
  if (plain_order && !dtype.swap) return data;
  Bytes out = Bytes::allocate(data.size());
  if (plain_order) {
    if (!data.empty()) std::memcpy(out.mutable_data(), data.data(), data.size());
  } else {
    for_fortran(header.shape, count, [&](int64_t to, int64_t from) {
      std::memcpy(out.mutable_data() + static_cast<size_t>(to) * dtype.item,
                  data.data() + static_cast<size_t>(from) * dtype.item, dtype.item);
    });
  }
  if (dtype.swap)
    swap_bytes(out.mutable_data(), out.size(),
               is_complex(dtype.type) ? dtype.item / 2 : dtype.item);
  return out;
}

// Elements of less than 8 bits from one byte each, of which the low bits count.
Tensor packed(ElementType type, const Shape& shape, const Bytes& bytes, bool is_raw) {
  const int width = bit_width(type);
  const int low = is_signed_integer(type) ? -(1 << (width - 1)) : 0;
  const int high = is_signed_integer(type) ? (1 << (width - 1)) - 1 : (1 << width) - 1;
  Tensor tensor(type, shape);
  auto* out = static_cast<uint8_t*>(tensor.mutable_data());
  std::memset(out, 0, tensor.byte_size());
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<uint8_t>(bytes.data()[i]);
    const int value = is_signed_integer(type) ? static_cast<int8_t>(byte) : byte;
    if (!is_raw && (value < low || value > high)) {
      fail(ErrorCode::unreadable, "element {} is {}, which {} cannot hold", i, value,
           name_of(type));
    }
    put_element_bits(out, i, width, byte & ((1u << width) - 1));
  }
  return tensor;
}

bool is_aligned(const Bytes& bytes, ElementType type) {
  return reinterpret_cast<uintptr_t>(bytes.data()) %
             static_cast<size_t>(std::max(bit_width(type) / 8, 1)) ==
         0;
}

Tensor tensor_from(ElementType type, const Shape& shape, const Bytes& bytes,
                   NpyAlignment alignment) {
  if (!bytes.empty() && type != ElementType::boolean &&
      (alignment == NpyAlignment::as_it_lies || is_aligned(bytes, type))) {
    return Tensor::view(type, shape, bytes.data(), bytes.size(), bytes.owner());
  }
  Tensor tensor(type, shape);
  auto* out = static_cast<std::byte*>(tensor.mutable_data());
  if (!bytes.empty()) std::memcpy(out, bytes.data(), bytes.size());
  if (type == ElementType::boolean) {
    std::transform(out, out + bytes.size(), out,
                   [](std::byte b) { return std::byte{b != std::byte{0}}; });
  }
  return tensor;
}

// Header and data of a tensor's file. The data is the tensor's own where NumPy stores it so.
struct NpyFile {
  std::string header;
  Bytes data;
};

std::string header_of(std::string_view descr, const Shape& shape) {
  std::string dims;
  for (const int64_t dim : shape) dims += fmt::format("{},{}", dim, shape.size() == 1 ? "" : " ");
  if (shape.size() > 1) dims.erase(dims.size() - 2);
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, dims);
  // The data begins at a multiple of 64; version 1 holds headers below 64 KiB.
  const size_t prefix = text.size() + 11 > 0xffff ? 12 : 10;
  text.append(63 - (prefix + text.size()) % 64, ' ');
  text += '\n';
  std::string header(npy_magic);
  header += {static_cast<char>(prefix == 12 ? 2 : 1), 0};
  const auto length = static_cast<uint32_t>(text.size());
  header.append(reinterpret_cast<const char*>(&length), prefix - 8);
  return header + text;
}

Bytes text_block(int64_t count, size_t item) {
  const auto size = checked_mul(count, static_cast<int64_t>(item));
  if (!size)
    fail(ErrorCode::out_of_memory, "{} strings of {} bytes are more than memory can address", count,
         item);
  Bytes block = Bytes::allocate(static_cast<size_t>(*size));
  if (!block.empty()) std::memset(block.mutable_data(), 0, block.size());
  return block;
}

NpyFile file_of_strings(const Tensor& tensor) {
  const auto strings = tensor.elements<std::string>();
  size_t longest = 1, longest_points = 1;
  bool unicode = true;
  for (const std::string& s : strings) {
    if (s.ends_with('\0'))
      fail(ErrorCode::bad_input,
           "a string ends in a zero byte, which NumPy takes for what fills its place; a .pb file "
           "holds it");
    longest = std::max(longest, s.size());
    const auto points = unicode ? wire::code_points(s) : std::nullopt;
    unicode = points.has_value();
    if (points) longest_points = std::max(longest_points, points->size());
  }
  const size_t item = unicode ? 4 * longest_points : longest;
  Bytes data = text_block(tensor.size(), item);
  std::byte* out = data.mutable_data();
  for (const std::string& s : strings) {
    if (unicode) {
      const auto points = wire::code_points(s);
      std::memcpy(out, points->data(), 4 * points->size());
    } else {
      std::memcpy(out, s.data(), s.size());
    }
    out += item;
  }
  return {header_of(unicode ? fmt::format("<U{}", longest_points) : fmt::format("|S{}", longest),
                    tensor.shape()),
          data};
}

Bytes unpacked(const Tensor& tensor) {
  const int width = bit_width(tensor.element_type());
  const auto* in = static_cast<const uint8_t*>(tensor.data());
  Bytes data = Bytes::allocate(static_cast<size_t>(tensor.size()));
  auto* out = reinterpret_cast<int8_t*>(data.mutable_data());
  for (size_t i = 0; i < data.size(); ++i) {
    const auto bits = static_cast<int>(element_bits(in, i, width));
    const bool negative = is_signed_integer(tensor.element_type()) && bits >> (width - 1) != 0;
    out[i] = static_cast<int8_t>(negative ? bits - (1 << width) : bits);
  }
  return data;
}

std::string descr_of(ElementType type) {
  const int bytes = std::max(bit_width(type), 8) / 8;
  if (type == ElementType::bfloat16) return "<V2";
  if (is_floating(type) && bit_width(type) <= 8) return "|V1";
  char kind = 'u';
  if (type == ElementType::boolean) kind = 'b';
  if (is_signed_integer(type)) kind = 'i';
  if (is_floating(type)) kind = 'f';
  if (is_complex(type)) kind = 'c';
  return fmt::format("{}{}{}", bytes == 1 ? '|' : '<', kind, bytes);
}

NpyFile file_of(const Tensor& tensor) {
  if (tensor.empty()) fail(ErrorCode::bad_input, "there is no tensor to write");
  if (tensor.element_type() == ElementType::string) return file_of_strings(tensor);
  const Bytes own(tensor.owner(), static_cast<const std::byte*>(tensor.data()), tensor.byte_size());
  return {header_of(descr_of(tensor.element_type()), tensor.shape()),
          bit_width(tensor.element_type()) < 8 ? unpacked(tensor) : own};
}

void put_all(const std::vector<NamedTensor>& tensors, wire::Sink& sink) {
  ZipWriter zip(sink);
  for (const NamedTensor& named : tensors) {
    const NpyFile file = file_of(named.tensor);
    zip.put(named.name + ".npy", file.header, file.data.text());
  }
  zip.finish();
}

}  // namespace

Tensor read_npy(const Bytes& bytes, ElementType expected, NpyAlignment alignment) {
  const NpyHeader header = read_npy_header(bytes.text());
  const Dtype dtype = dtype_of(header.descr, expected);
  const auto count = checked_count(header.shape);
  const auto needed = count ? checked_mul(*count, static_cast<int64_t>(dtype.item)) : std::nullopt;
  const size_t available = bytes.size() - header.data_offset;
  if (!needed || static_cast<uint64_t>(*needed) > available) {
    unsound_npy(fmt::format("shape {} of '{}' needs more than the {} bytes that follow the header",
                            to_string(header.shape), header.descr, available));
  }
  const Bytes data = bytes.slice(header.data_offset, static_cast<size_t>(*needed));
  if (dtype.type == ElementType::string) {
    if (dtype.item == 0 && *count > max_empty_strings)
      unsound_npy("it claims more empty strings than are read");
    return read_strings(header, dtype, data, *count);
  }
  const Bytes elements = ordered(header, dtype, data, *count);
  const bool narrow = bit_width(expected) > 0 && bit_width(expected) < 8;
  const bool from_raw = dtype.type == expected;
  const bool from_bytes =
      dtype.type == (is_signed_integer(expected) ? ElementType::int8 : ElementType::uint8);
  if (narrow && (from_raw || from_bytes))
    return packed(expected, header.shape, elements, from_raw || is_floating(expected));
  return tensor_from(dtype.type, header.shape, elements, alignment);
}

std::string write_npy(const Tensor& tensor) {
  const NpyFile file = file_of(tensor);
  return file.header + std::string(file.data.text());
}

void write_npy(const Tensor& tensor, const std::string& path) {
  const NpyFile file = file_of(tensor);
  wire::write_file(path, [&](wire::Sink& sink) {
    sink.put(file.header);
    sink.put(file.data.text());
  });
}

std::vector<NamedTensor> read_npz(const Bytes& bytes, const ExpectedType& expected,
                                  NpyAlignment alignment) {
  std::vector<NamedTensor> tensors;
  std::set<std::string> names;
  for (ZipMember& member : read_zip(bytes)) {
    std::string name = std::move(member.name);
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    if (!names.insert(name).second)
      fail(ErrorCode::unreadable, "it has two arrays '{}', of which NumPy reads the last", name);
    try {
      tensors.push_back(
          {name,
           read_npy(member.bytes, expected ? expected(name) : ElementType::undefined, alignment)});
    } catch (const Error& error) {
      throw error.within(fmt::format("array '{}'", name));
    }
  }
  return tensors;
}

void write_npz(const std::vector<NamedTensor>& tensors, const std::string& path) {
  wire::write_file(path, [&](wire::Sink& sink) { put_all(tensors, sink); });
}

std::string write_npz(const std::vector<NamedTensor>& tensors) {
  wire::StringSink sink;
  put_all(tensors, sink);
  return sink.take();
}

}  // namespace sardonyx::formats
