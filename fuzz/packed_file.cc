// Any bytes as a file of packed weights: as they are, and behind a header with the right sizes and
// checksums.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "sardonyx/error.h"
#include "session/packed_file.h"
#include "target.h"

namespace {

using namespace sardonyx;

// Everything that a file gives out lies in it and is found again.
void look(const Bytes& bytes) {
  try {
    const auto file = PackedFile::read(bytes, "fuzzed");
    unsigned sum = 0;
    for (size_t i = 0; i < file->form_count(); ++i) {
      const PackedForm form = file->form(i);
      std::vector<ops::PackPart> parts;
      for (const Tensor& part : form.parts) {
        const auto* elements = static_cast<const unsigned char*>(part.data());
        for (size_t k = 0; k < part.byte_size(); ++k) sum += elements[k];
        parts.push_back({part.element_type(), part.size()});
      }
      require(file->find(form.id, form.format, parts, true).has_value(),
              "a form is found by its content");
      require(!form.id.place || file->find(form.id, form.format, parts, false),
              "a form is found by its place");
      require(ops::pack_format_of(ops::to_bytes(form.format)) == form.format,
              "a format that was written is read back");
    }
    require(sum != 1 || file->form_count() > 0, "bytes are those of forms");
  } catch (const Error& error) {
    require(error.code() == ErrorCode::unreadable, error.what());
  }
}

void put(std::byte* at, uint64_t value) {
  for (int i = 0; i < 8; ++i) at[i] = static_cast<std::byte>(value >> (8 * i) & 255);
}
void put(std::byte* at, const ContentHash& hash) {
  put(at, hash[0]);
  put(at + 8, hash[1]);
}

// A file whose table is these bytes; the first two say how many entries and pages of data there
// are.
Bytes sealed(std::span<const std::byte> bytes) {
  constexpr size_t header = 256, page = 4096;
  const size_t entries = bytes.empty() ? 0 : static_cast<size_t>(bytes[0]) % 8;
  const size_t pages = bytes.size() < 2 ? 0 : static_cast<size_t>(bytes[1]) % 4;
  const auto table = bytes.subspan(std::min<size_t>(bytes.size(), 2));
  const size_t data = (header + table.size() + page - 1) / page * page;
  Bytes made = Bytes::allocate(data + pages * page);
  std::byte* at = made.mutable_data();
  std::fill(at, at + made.size(), std::byte{0});
  const unsigned char magic[] = {0x89, 'S', 'D', 'X', '\r', '\n', 0x1a, '\n', 1, 0, 0, 0, 0, 1};
  std::memcpy(at, magic, sizeof(magic));
  const uint64_t numbers[] = {made.size(), header, table.size(), entries, data};
  for (size_t i = 0; i < std::size(numbers); ++i) put(at + 16 + 8 * i, numbers[i]);
  if (!table.empty()) std::memcpy(at + header, table.data(), table.size());
  put(at + 144, content_hash(table));
  put(at + 240, content_hash(std::span(at, 240)));
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  look(Bytes::copy_of(bytes));
  look(sealed(bytes));
  return 0;
}
