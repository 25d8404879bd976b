#include "session/packed_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <functional>
#include <system_error>

#include "base/fail.h"
#include "base/os.h"
#include "wire/sink.h"

namespace sardonyx {
namespace {

// All numbers are little-endian. The first byte is no text, and what changes the ends of lines
// changes the magic.
constexpr std::array<unsigned char, 8> magic{0x89, 'S', 'D', 'X', '\r', '\n', 0x1a, '\n'};
constexpr uint32_t format_version = 3;
constexpr size_t header_size = 256;
constexpr size_t version_size = 32;
constexpr size_t header_hash_at = header_size - sizeof(ContentHash);
constexpr uint64_t page = 4096;
constexpr uint64_t part_alignment = 64;
constexpr uint64_t max_parts = 16;
// What ids of constants call the file itself. The places of external data have odd numbers.
constexpr uint64_t this_file = 2;
enum Place : uint64_t { nowhere = 0, in_model, in_this_file };

uint64_t rounded(uint64_t size, uint64_t to) { return (size + to - 1) / to * to; }

class Writer {
 public:
  void u32(uint32_t value) { put(value, 4); }
  void u64(uint64_t value) { put(value, 8); }
  void hash(const ContentHash& hash) {
    for (const uint64_t word : hash) u64(word);
  }
  void bytes(std::span<const std::byte> bytes) {
    made_.insert(made_.end(), bytes.begin(), bytes.end());
  }
  void text(std::string_view text) {
    u64(text.size());
    bytes(std::as_bytes(std::span(text)));
  }
  void fill(size_t size) { made_.resize(size); }
  size_t size() const { return made_.size(); }
  std::span<const std::byte> made() const { return made_; }

 private:
  void put(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) made_.push_back(static_cast<std::byte>(value >> (8 * i) & 255));
  }
  std::vector<std::byte> made_;
};

// Reads from the front; what is not there is an error with the offset in the file.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, uint64_t offset, const std::string& path)
      : bytes_(bytes), offset_(offset), path_(path) {}

  uint32_t u32() { return static_cast<uint32_t>(number(4)); }
  uint64_t u64() { return number(8); }
  ContentHash hash() {
    const uint64_t first = u64();
    return {first, u64()};
  }
  std::span<const std::byte> take(uint64_t size) {
    if (size > left()) refuse("{} bytes are needed where {} are left", size, left());
    const auto taken = bytes_.subspan(at_, static_cast<size_t>(size));
    at_ += taken.size();
    return taken;
  }
  std::span<const std::byte> sized() { return take(u64()); }
  std::string text() {
    const auto taken = sized();
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }
  uint64_t left() const { return bytes_.size() - at_; }

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) const {
    fail_at(
        path_, ErrorCode::unreadable,
        "is no sound file of packed weights: at offset {}, {}; make it again with `sardonyx pack`",
        offset_ + at_, fmt::format(text, std::forward<Args>(args)...));
  }

 private:
  uint64_t number(size_t bytes) {
    const auto taken = take(bytes);
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i) value |= static_cast<uint64_t>(taken[i]) << (8 * i);
    return value;
  }
  std::span<const std::byte> bytes_;
  const uint64_t offset_;
  const std::string& path_;
  size_t at_ = 0;
};

struct Header {
  uint64_t file_size = 0, table_offset = 0, table_size = 0, entries = 0, data_offset = 0;
  ContentHash table_hash{};
  uint64_t graphs_size = 0, graphs = 0, constants_size = 0;  // the graphs follow the table
  ContentHash graphs_hash{};
};

void write_header(Writer& to, const Header& header, const PackedFor& made_for) {
  to.bytes(std::as_bytes(std::span(magic)));
  to.u32(format_version);
  to.u32(header_size);
  for (const uint64_t number : {header.file_size, header.table_offset, header.table_size,
                                header.entries, header.data_offset, made_for.target.processor})
    to.u64(number);
  std::string version = made_for.target.version.substr(0, version_size);
  version.resize(version_size, '\0');
  to.bytes(std::as_bytes(std::span(version)));
  to.hash(made_for.target.build);
  to.hash(made_for.model.structure);
  to.hash(made_for.model.files);
  to.hash(header.table_hash);
  for (const uint64_t number : {header.graphs_size, header.graphs, header.constants_size})
    to.u64(number);
  to.hash(header.graphs_hash);
  to.fill(header_hash_at);
  to.hash(content_hash(to.made()));
}

}  // namespace

class PackedFile::Parser {
 public:
  Parser(PackedFile& file, const std::string& path) : file_(file), path_(path) {}

  void parse() {
    const std::span<const std::byte> all = file_.bytes_.span();
    Reader start(all, 0, path_);
    if (all.size() < magic.size() ||
        !std::ranges::equal(all.first(magic.size()), std::as_bytes(std::span(magic))))
      fail_at(path_, ErrorCode::unreadable,
              "is no file of packed weights (its first bytes are not theirs)");
    if (all.size() < header_size) start.refuse("the file ends within its header");
    read_header(all.first(header_size));
    require_layout();
    const auto table = all.subspan(static_cast<size_t>(header_.table_offset),
                                   static_cast<size_t>(header_.table_size));
    Reader reader(table, header_.table_offset, path_);
    if (content_hash(table) != header_.table_hash) reader.refuse("the table has another checksum");
    // An entry has more bytes than this.
    if (header_.entries > table.size() / 64) reader.refuse("the table has no room for its entries");
    file_.entries_.reserve(static_cast<size_t>(header_.entries));
    for (uint64_t i = 0; i < header_.entries; ++i) file_.entries_.push_back(entry(reader));
    if (reader.left() != 0) reader.refuse("{} bytes follow the last entry", reader.left());
    read_graphs();
    for (size_t i = 0; i < file_.entries_.size(); ++i) {
      const ops::ConstantId& id = file_.entries_[i].id;
      if (id.place) file_.by_place_.emplace(*id.place, i);
      file_.by_content_.emplace(*id.content, i);
    }
  }

 private:
  void read_header(std::span<const std::byte> bytes) {
    Reader reader(bytes, 0, path_);
    reader.take(magic.size());
    if (const uint32_t version = reader.u32(); version != format_version)
      fail_at(path_, ErrorCode::unreadable,
              "is a file of packed weights of format {}; this version of Sardonyx reads format {}: "
              "make it again with `sardonyx pack`",
              version, format_version);
    Reader last(bytes.subspan(header_hash_at), header_hash_at, path_);
    if (last.hash() != content_hash(bytes.first(header_hash_at)))
      last.refuse("the header has another checksum");
    if (reader.u32() != header_size) reader.refuse("the header has another size");
    header_.file_size = reader.u64();
    header_.table_offset = reader.u64();
    header_.table_size = reader.u64();
    header_.entries = reader.u64();
    header_.data_offset = reader.u64();
    PackedFor& made_for = file_.made_for_;
    made_for.target.processor = reader.u64();
    const auto version = reader.take(version_size);
    made_for.target.version.assign(reinterpret_cast<const char*>(version.data()), version.size());
    made_for.target.version.resize(made_for.target.version.find_last_not_of('\0') + 1);
    made_for.target.build = reader.hash();
    made_for.model.structure = reader.hash();
    made_for.model.files = reader.hash();
    header_.table_hash = reader.hash();
    header_.graphs_size = reader.u64();
    header_.graphs = reader.u64();
    header_.constants_size = reader.u64();
    header_.graphs_hash = reader.hash();
  }

  void require_layout() const {
    const uint64_t size = file_.bytes_.size();
    Reader reader({}, 16, path_);
    if (header_.file_size != size)
      reader.refuse("the file says it has {} bytes, and has {}", header_.file_size, size);
    if (header_.table_offset != header_size || header_.table_size > size - header_size)
      reader.refuse("the table is {} bytes at {}, in a file of {}", header_.table_size,
                    header_.table_offset, size);
    const uint64_t table_end = header_size + header_.table_size;
    if (header_.graphs_size > size - table_end)
      reader.refuse("the graphs are {} bytes at {}, in a file of {}", header_.graphs_size,
                    table_end, size);
    if (header_.data_offset != rounded(table_end + header_.graphs_size, page) ||
        header_.data_offset > size)
      reader.refuse("the data begins at {}, in a file of {}", header_.data_offset, size);
    if (header_.constants_size > size - header_.data_offset)
      reader.refuse("there are {} bytes of constants, in a file of {}", header_.constants_size,
                    size);
  }

  void read_graphs() {
    const uint64_t offset = header_.table_offset + header_.table_size;
    const auto size = static_cast<size_t>(header_.graphs_size);
    const Bytes all = file_.bytes_.slice(static_cast<size_t>(offset), size);
    Reader reader(all.span(), offset, path_);
    if (content_hash(all.span()) != header_.graphs_hash)
      reader.refuse("the graphs have another checksum");
    // A graph has four numbers at least.
    if (header_.graphs > size / 32) reader.refuse("there is no room for {} graphs", header_.graphs);
    for (uint64_t i = 0; i < header_.graphs; ++i) file_.graphs_.push_back(graph(reader, all));
    if (reader.left() != 0) reader.refuse("{} bytes follow the last graph", reader.left());
    file_.constants_at_ = header_.data_offset;
    file_.constants_size_ = header_.constants_size;
  }

  StoredGraph graph(Reader& reader, const Bytes& all) const {
    StoredGraph made;
    made.choice = reader.text();
    const uint64_t is_clean = reader.u64();
    if (is_clean > 1) reader.refuse("{} does not say whether the model is clean", is_clean);
    made.is_of_clean_model = is_clean == 1;
    const uint64_t warnings = reader.u64();
    if (warnings > reader.left() / 32) reader.refuse("there is no room for {} warnings", warnings);
    for (uint64_t i = 0; i < warnings; ++i) {
      Warning& warning = made.warnings.emplace_back();
      for (std::string* text : {&warning.rule, &warning.place, &warning.message, &warning.advice})
        *text = reader.text();
    }
    const auto message = reader.sized();
    made.message = all.slice(static_cast<size_t>(message.data() - all.data()), message.size());
    return made;
  }

  Entry entry(Reader& reader) const {
    Entry made;
    const uint64_t place = reader.u64();
    if (place > in_this_file) reader.refuse("{} is no kind of place for a constant", place);
    const uint64_t in = reader.u64(), offset = reader.u64();
    if (place != nowhere) made.id.place = {place == in_this_file ? this_file : in, offset};
    made.id.bytes = reader.u64();
    made.id.content = reader.hash();
    const uint64_t format_size = reader.u64();
    const auto format = ops::pack_format_of(reader.take(format_size));
    if (!format) reader.refuse("there is no format that this version of Sardonyx packs in");
    made.format = *format;
    const uint64_t parts = reader.u64();
    if (parts > max_parts)
      reader.refuse("a form of {} parts, where {} are the most", parts, max_parts);
    for (uint64_t i = 0; i < parts; ++i) made.parts.push_back(part(reader));
    return made;
  }

  Part part(Reader& reader) const {
    const uint64_t type = reader.u64(), count = reader.u64(), offset = reader.u64();
    const auto element = static_cast<ElementType>(static_cast<int32_t>(type));
    if (type > INT32_MAX || !is_known(element) || element == ElementType::string ||
        bit_width(element) < 8)
      reader.refuse("{} is no type of packed elements", type);
    const uint64_t size = file_.bytes_.size();
    const auto width = static_cast<uint64_t>(bit_width(element) / 8);
    if (offset % part_alignment != 0 || offset < header_.data_offset || offset > size ||
        count > (size - offset) / width)
      reader.refuse("{} elements of {} bytes at {} do not lie in the data of the file", count,
                    width, offset);
    return {{element, static_cast<int64_t>(count)}, offset};
  }

  PackedFile& file_;
  const std::string& path_;
  Header header_;
};

std::shared_ptr<const PackedFile> PackedFile::open(const std::string& path) {
  return read(map_file(path), path);
}

std::shared_ptr<const PackedFile> PackedFile::read(Bytes bytes, const std::string& path) {
  auto file = std::make_shared<PackedFile>();
  file->bytes_ = std::move(bytes);
  Parser(*file, path).parse();
  return file;
}

std::string PackedFile::mismatch(const PackedFor& wanted) const {
  const PackingTarget& mine = made_for_.target;
  if (mine.version != wanted.target.version || mine.build != wanted.target.build) {
    const bool same_number = mine.version == wanted.target.version;
    return fmt::format("it was made by {} {} of Sardonyx{}",
                       same_number ? "another build of" : "version", mine.version,
                       same_number ? "" : fmt::format(", this is {}", wanted.target.version));
  }
  if (mine.processor != wanted.target.processor)
    return fmt::format("it was packed for {}, and this processor is used as {}",
                       describe_processor(mine.processor),
                       describe_processor(wanted.target.processor));
  if (made_for_.model.structure != wanted.model.structure)
    return "it was made of another model, or the model has changed since";
  return "";
}

std::vector<Tensor> PackedFile::views(const Entry& entry) const {
  std::vector<Tensor> made;
  for (const Part& part : entry.parts) {
    const auto size = static_cast<size_t>(byte_size(part.elements.type, part.elements.count));
    const Bytes bytes = bytes_.slice(static_cast<size_t>(part.offset), size);
    made.push_back(
        Tensor::view(part.elements.type, {part.elements.count}, bytes.data(), size, bytes.owner()));
  }
  return made;
}

PackedForm PackedFile::form(size_t i) const {
  const Entry& entry = entries_.at(i);
  return {entry.id, entry.format, views(entry)};
}

const StoredGraph* PackedFile::find_graph(std::string_view choice) const {
  const auto found = std::ranges::find(graphs_, choice, &StoredGraph::choice);
  return found == graphs_.end() ? nullptr : &*found;
}

Bytes PackedFile::constants() const {
  return bytes_.slice(static_cast<size_t>(constants_at_), static_cast<size_t>(constants_size_));
}

std::optional<ops::ConstantPlace> PackedFile::place_of(std::span<const std::byte> constant) const {
  const Bytes all = constants();
  const std::less_equal<> before;
  if (!before(all.data(), constant.data()) ||
      !before(constant.data() + constant.size(), all.data() + all.size()))
    return std::nullopt;
  return ops::ConstantPlace{this_file, static_cast<uint64_t>(constant.data() - all.data())};
}

std::optional<std::vector<Tensor>> PackedFile::find(const ops::ConstantId& id,
                                                    const ops::PackFormat& format,
                                                    std::span<const ops::PackPart> parts,
                                                    bool by_content) const {
  const auto among = [&](auto range) -> const Entry* {
    for (auto [at, end] = range; at != end; ++at) {
      const Entry& entry = entries_[at->second];
      if (entry.id.bytes == id.bytes && entry.format == format &&
          std::ranges::equal(entry.parts, parts, {}, &Part::elements))
        return &entry;
    }
    return nullptr;
  };
  const Entry* found = nullptr;
  if (id.place && !by_content) {
    found = among(by_place_.equal_range(*id.place));
  } else if (id.content) {
    found = among(by_content_.equal_range(*id.content));
  }
  if (found == nullptr) return std::nullopt;
  return views(*found);
}

namespace {

class FileSource final : public ops::PackSource {
 public:
  FileSource(std::shared_ptr<const PackedFile> file, bool by_content)
      : file_(std::move(file)), by_content_(by_content) {}
  bool is_by_content() const override { return by_content_; }
  std::optional<ops::ConstantPlace> place_of(std::span<const std::byte> constant) const override {
    return file_->place_of(constant);
  }
  std::optional<std::vector<Tensor>> find(const ops::ConstantId& id, const ops::PackFormat& format,
                                          std::span<const ops::PackPart> parts) const override {
    return file_->find(id, format, parts, by_content_);
  }

 private:
  const std::shared_ptr<const PackedFile> file_;
  const bool by_content_;
};

void write_place(Writer& to, const ops::ConstantId& id, const StoredConstants& constants) {
  if (id.place && id.place->file != this_file) {
    to.u64(in_model);
    to.u64(id.place->file);
    return to.u64(id.place->offset);
  }
  const auto stored = constants.find(id.content.value(), id.bytes);
  to.u64(stored ? in_this_file : nowhere);
  to.u64(0);
  to.u64(stored.value_or(0));
}

void write_entry(Writer& to, const PackedForm& form, const StoredConstants& constants,
                 uint64_t& offset) {
  write_place(to, form.id, constants);
  to.u64(form.id.bytes);
  to.hash(form.id.content.value());
  const std::vector<std::byte> format = ops::to_bytes(form.format);
  to.u64(format.size());
  to.bytes(format);
  to.u64(form.parts.size());
  for (const Tensor& part : form.parts) {
    to.u64(static_cast<uint64_t>(part.element_type()));
    to.u64(static_cast<uint64_t>(part.size()));
    to.u64(offset);
    offset = rounded(offset + part.byte_size(), part_alignment);
  }
}

Writer table_of(std::span<const PackedForm> forms, const StoredConstants& constants,
                uint64_t data_offset, uint64_t& end) {
  Writer table;
  end = data_offset + constants.size();
  for (const PackedForm& form : forms) write_entry(table, form, constants, end);
  return table;
}

Writer section_of(std::span<const StoredGraph> graphs) {
  Writer section;
  for (const StoredGraph& graph : graphs) {
    section.text(graph.choice);
    section.u64(graph.is_of_clean_model ? 1 : 0);
    section.u64(graph.warnings.size());
    for (const Warning& warning : graph.warnings) {
      for (const std::string* text :
           {&warning.rule, &warning.place, &warning.message, &warning.advice})
        section.text(*text);
    }
    section.text(graph.message.text());
  }
  return section;
}

}  // namespace

std::shared_ptr<const ops::PackSource> source_of(std::shared_ptr<const PackedFile> file,
                                                 const ModelFingerprint& model) {
  const bool same_files = model.knows_files() && file->made_for().model.files == model.files;
  return std::make_shared<const FileSource>(std::move(file), !same_files);
}

uint64_t write_packed(const std::string& path, const PackedFor& made_for,
                      std::span<const PackedForm> forms, const StoredGraphs& graphs) {
  const auto info = os::info_of(path);
  if (info && !info->is_regular())
    fail_at(path, ErrorCode::unreadable, "is not a regular file, which packed weights need");
  Header header;
  // Where the data begins does not change the table's size.
  header.table_offset = header_size;
  const StoredConstants& constants = graphs.constants;
  header.table_size = table_of(forms, constants, 0, header.file_size).size();
  const Writer section = section_of(graphs.graphs);
  header.graphs_size = section.size();
  header.graphs = graphs.graphs.size();
  header.graphs_hash = content_hash(section.made());
  header.constants_size = constants.size();
  header.data_offset = rounded(header_size + header.table_size + header.graphs_size, page);
  const Writer table = table_of(forms, constants, header.data_offset, header.file_size);
  header.entries = forms.size();
  header.table_hash = content_hash(table.made());
  Writer start;
  write_header(start, header, made_for);
  start.bytes(table.made());
  start.bytes(section.made());
  start.fill(static_cast<size_t>(header.data_offset));
  const std::array<std::byte, part_alignment> zeros{};
  return wire::write_file(path, [&](wire::Sink& sink) {
    const auto put = [&](const void* data, size_t size) {
      sink.put(data, size);
      sink.put(zeros.data(), rounded(size, part_alignment) - size);
    };
    sink.expect(header.file_size);
    sink.put(start.made().data(), start.size());
    for (const Bytes& elements : constants.all()) put(elements.data(), elements.size());
    for (const PackedForm& form : forms) {
      for (const Tensor& part : form.parts) put(part.data(), part.byte_size());
    }
  });
}

}  // namespace sardonyx
