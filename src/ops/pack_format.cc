#include "ops/pack_format.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace sardonyx::ops {
namespace {

constexpr std::array<std::string_view, 13> names{"",
                                                 "matrix",
                                                 "byte_matrix",
                                                 "integer_matrix",
                                                 "conv",
                                                 "conv_integer",
                                                 "conv_int8",
                                                 "conv_transpose",
                                                 "conv_transpose_depthwise",
                                                 "recurrent_input",
                                                 "recurrent_state",
                                                 "byte_recurrent",
                                                 "nbits_zero_points"};

// One list of fields for writing and reading: `archive` takes each in turn.
template <class Format, class Archive>
void visit(Format& f, Archive& archive) {
  archive.number(f.family);
  archive.number(f.from);
  archive.number(f.to);
  archive.list(f.shape);
  for (auto* flag :
       {&f.transposed, &f.nhwc, &f.shuffled, &f.shuffles_output, &f.linear_before_reset})
    archive.flag(*flag);
  for (auto* number : {&f.winograd, &f.gates, &f.bits}) archive.number(*number);
  archive.number(f.group);
  archive.list(f.strides);
  archive.list(f.dilations);
  archive.bytes(f.parameters);
}

class Writer {
 public:
  template <class T>
  void number(const T& value) {
    put(static_cast<uint64_t>(value));
  }
  void flag(bool value) { put(value ? 1 : 0); }
  void list(const std::vector<int64_t>& values) {
    put(values.size());
    for (const int64_t value : values) number(value);
  }
  void bytes(const std::vector<uint8_t>& values) {
    put(values.size());
    const auto bytes = std::as_bytes(std::span(values));
    made_.insert(made_.end(), bytes.begin(), bytes.end());
  }
  std::vector<std::byte> take() { return std::move(made_); }

 private:
  void put(uint64_t value) {
    for (int i = 0; i < 8; ++i) made_.push_back(static_cast<std::byte>(value >> (8 * i) & 255));
  }
  std::vector<std::byte> made_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : left_(bytes) {}

  template <class T>
  void number(T& value) {
    const uint64_t read = take();
    value = static_cast<T>(static_cast<int64_t>(read));
    // What does not fit is no number of this field.
    sound_ = sound_ && static_cast<uint64_t>(static_cast<int64_t>(value)) == read;
  }
  void flag(bool& value) {
    const uint64_t read = take();
    sound_ = sound_ && read <= 1;
    value = read == 1;
  }
  void list(std::vector<int64_t>& values) {
    const uint64_t count = take();
    sound_ = sound_ && count <= left_.size() / 8;
    if (sound_) values.reserve(static_cast<size_t>(count));
    for (uint64_t i = 0; sound_ && i < count; ++i) number(values.emplace_back());
  }
  void bytes(std::vector<uint8_t>& values) {
    const uint64_t count = take();
    sound_ = sound_ && count <= left_.size();
    if (!sound_) return;
    const auto taken = left_.first(static_cast<size_t>(count));
    const auto* first = reinterpret_cast<const uint8_t*>(taken.data());
    values.assign(first, first + taken.size());
    left_ = left_.subspan(taken.size());
  }
  bool is_whole() const { return sound_ && left_.empty(); }

 private:
  uint64_t take() {
    sound_ = sound_ && left_.size() >= 8;
    if (!sound_) return 0;
    uint64_t value = 0;
    for (size_t i = 0; i < 8; ++i) value |= static_cast<uint64_t>(left_[i]) << (8 * i);
    left_ = left_.subspan(8);
    return value;
  }
  std::span<const std::byte> left_;
  bool sound_ = true;
};

}  // namespace

std::string_view name_of(PackFamily family) {
  const auto number = static_cast<size_t>(family);
  return number < names.size() ? names[number] : std::string_view();
}

std::vector<uint8_t> parameters_of(std::span<const int32_t> numbers) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(numbers.data());
  return {bytes, bytes + numbers.size_bytes()};
}

std::string describe(const PackFormat& f) {
  std::string text = fmt::format("{} {}{}", name_of(f.family), name_of(f.from), to_string(f.shape));
  const auto add = [&](bool is, std::string_view word) {
    if (is) text.append(" ").append(word);
  };
  add(f.transposed, "transposed");
  add(f.nhwc, "nhwc");
  add(f.shuffled, "shuffled");
  add(f.shuffles_output, "shuffles_output");
  add(f.linear_before_reset, "linear_before_reset");
  if (f.winograd != 0) text += fmt::format(" winograd {}", f.winograd);
  if (f.gates != 0) text += fmt::format(" gates {}", f.gates);
  if (f.bits != 0) text += fmt::format(" bits {}", f.bits);
  if (f.group != 1) text += fmt::format(" group {}", f.group);
  if (!f.strides.empty()) text += fmt::format(" strides {}", fmt::join(f.strides, ","));
  if (!f.dilations.empty()) text += fmt::format(" dilations {}", fmt::join(f.dilations, ","));
  if (!f.parameters.empty()) text += fmt::format(" {} bytes of parameters", f.parameters.size());
  return text;
}

std::vector<std::byte> to_bytes(const PackFormat& format) {
  Writer writer;
  visit(format, writer);
  return writer.take();
}

std::optional<PackFormat> pack_format_of(std::span<const std::byte> bytes) {
  PackFormat format;
  Reader reader(bytes);
  visit(format, reader);
  if (!reader.is_whole() || name_of(format.family).empty() || !is_known(format.from) ||
      !is_known(format.to))
    return std::nullopt;
  return format;
}

int64_t bytes_of(std::span<const PackPart> parts) {
  int64_t bytes = 0;
  for (const PackPart& part : parts) bytes += byte_size(part.type, part.count);
  return bytes;
}

}  // namespace sardonyx::ops
