#include "session/fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/cpu.h"
#include "sardonyx/session.h"
#include "session/packing_build.h"
#include "wire/sink.h"
#include "wire/write.h"

namespace sardonyx {
namespace {

// Takes what a model's messages are written as. Large pieces, which are the elements of tensors,
// count by their size and their ends, which lie in the pages that messages begin and end in.
class HashSink final : public wire::Sink {
 public:
  using Sink::put;
  void put(const void* data, size_t size) override {
    const auto* bytes = static_cast<const std::byte*>(data);
    if (size < large) return add(bytes, size);
    add(reinterpret_cast<const std::byte*>(&size), sizeof(size));
    add(bytes, sample);
    add(bytes + size - sample, sample);
  }
  ContentHash take() {
    fold();
    return sum_;
  }

 private:
  static constexpr size_t large = 4096, sample = 64;

  void add(const std::byte* bytes, size_t size) {
    if (filled_ + size > buffer_.size()) fold();
    std::memcpy(buffer_.data() + filled_, bytes, size);
    filled_ += size;
  }
  void fold() {
    std::memcpy(buffer_.data(), sum_.data(), sizeof(sum_));
    sum_ = content_hash(std::span(buffer_).first(filled_));
    filled_ = sizeof(sum_);
  }
  std::vector<std::byte> buffer_ = std::vector<std::byte>(size_t{1} << 16);
  ContentHash sum_{};
  size_t filled_ = sizeof(sum_);
};

enum Feature : uint64_t {
  vnni = 1 << 8,
  vbmi = 1 << 9,
  halved_vectors = 1 << 10,
};

constexpr uint64_t architecture() {
#if defined(__x86_64__)
  return 1;
#elif defined(__aarch64__)
  return 2;
#elif defined(__riscv)
  return 3;
#else
  return 0;
#endif
}

}  // namespace

ModelFingerprint fingerprint_of(const Model::Implementation& model) {
  ModelFingerprint made;
  HashSink sink;
  wire::write_model(model.defers_data ? model.runnable() : model.model, sink);
  made.structure = sink.take();
  std::string files;
  bool known = model.stamp.has_value();
  const auto add = [&](const std::string& name, const std::optional<FileStamp>& stamp) {
    known = known && stamp;
    if (stamp)
      files += fmt::format("{}\n{} {} {}\n", name, stamp->size, stamp->seconds, stamp->nanoseconds);
  };
  add("", model.stamp);
  for (const auto& [location, stamp] : model.external_files) add(location, stamp);
  if (known) made.files = content_hash(files);
  return made;
}

PackingTarget packing_target() {
  PackingTarget target;
  target.version = version();
  target.build = packing_build;
  target.processor = static_cast<uint64_t>(instruction_set()) | architecture() << 16;
  if (has_avx512_vnni()) target.processor |= vnni;
  if (has_avx512_vbmi()) target.processor |= vbmi;
  if (halves_wide_vectors()) target.processor |= halved_vectors;
  return target;
}

std::string describe_processor(uint64_t processor) {
  constexpr std::array<std::string_view, 4> architectures{"other", "x86-64", "aarch64", "riscv"};
  const uint64_t architecture = processor >> 16, set = processor & 255;
  if (architecture >= architectures.size() || set > static_cast<uint64_t>(InstructionSet::neon_dot))
    return "unknown";
  std::string text =
      fmt::format("{} {}", architectures[architecture], name_of(static_cast<InstructionSet>(set)));
  if ((processor & vnni) != 0) text += " vnni";
  if ((processor & vbmi) != 0) text += " vbmi";
  if ((processor & halved_vectors) != 0) text += " with halved vectors";
  return text;
}

}  // namespace sardonyx
