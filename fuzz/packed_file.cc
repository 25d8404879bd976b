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
    const ModelFiles files({}, ops::PackCache());
    for (const StoredGraph& graph : file->graphs()) {
      require(file->find_graph(graph.choice) != nullptr, "a graph is found by its choice");
      try {
        (void)read_graph(graph.message, files, file->constants());
      } catch (const Error&) {
      }
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

// A file whose table and graphs are these bytes, behind five that say how many entries, pages of
// data and graphs there are, and how large the table is.
Bytes sealed(std::span<const std::byte> bytes) {
  constexpr size_t header = 256, page = 4096;
  const auto at_start = [&](size_t i) {
    return i < bytes.size() ? static_cast<size_t>(bytes[i]) : 0;
  };
  const size_t entries = at_start(0) % 8, pages = at_start(1) % 4, graph_count = at_start(2) % 4;
  const auto both = bytes.subspan(std::min<size_t>(bytes.size(), 5));
  const auto table = both.first(std::min(both.size(), at_start(3) + 256 * at_start(4)));
  const auto graphs = both.subspan(table.size());
  const size_t data = (header + both.size() + page - 1) / page * page;
  Bytes made = Bytes::allocate(data + pages * page);
  std::byte* at = made.mutable_data();
  std::fill(at, at + made.size(), std::byte{0});
  const unsigned char magic[] = {0x89, 'S', 'D', 'X', '\r', '\n', 0x1a, '\n', 2, 0, 0, 0, 0, 1};
  std::memcpy(at, magic, sizeof(magic));
  const uint64_t numbers[] = {made.size(), header, table.size(), entries, data};
  for (size_t i = 0; i < std::size(numbers); ++i) put(at + 16 + 8 * i, numbers[i]);
  if (!both.empty()) std::memcpy(at + header, both.data(), both.size());
  put(at + 144, content_hash(table));
  const uint64_t more[] = {graphs.size(), graph_count, pages * page};
  for (size_t i = 0; i < std::size(more); ++i) put(at + 160 + 8 * i, more[i]);
  put(at + 184, content_hash(graphs));
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
