#include "formats/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/fail.h"

namespace sardonyx::formats {
namespace {

constexpr uint32_t local_signature = 0x04034b50;
constexpr uint32_t directory_signature = 0x02014b50;
constexpr uint32_t end_signature = 0x06054b50;
constexpr uint32_t end64_signature = 0x06064b50;
constexpr uint32_t locator64_signature = 0x07064b50;
constexpr uint32_t in_extra = 0xffffffff;  // the 64-bit value is in the extra field
constexpr uint64_t deflate_ratio = 1032;   // no deflate stream is denser

[[noreturn]] void unsound(std::string_view what) {
  fail(ErrorCode::unreadable, "not a sound zip archive: {}", what);
}

// Little-endian numbers at checked positions.
class View {
 public:
  explicit View(std::string_view bytes) : bytes_(bytes) {}
  size_t size() const { return bytes_.size(); }
  std::string_view part(uint64_t offset, uint64_t length) const {
    if (length > bytes_.size() || offset > bytes_.size() - length)
      unsound("something in it lies outside of it");
    return bytes_.substr(offset, length);
  }
  template <class T>
  T at(uint64_t offset) const {
    T value;
    std::memcpy(&value, part(offset, sizeof(T)).data(), sizeof(T));
    return value;
  }

 private:
  std::string_view bytes_;
};

struct Directory {
  uint64_t offset = 0;
  uint64_t size = 0;
};

Directory find_directory(const View& zip) {
  constexpr size_t end_size = 22;
  if (zip.size() < end_size) unsound("it is too short");
  const size_t last = zip.size() - end_size;
  const size_t first = last > 0xffff ? last - 0xffff : 0;  // a comment may follow
  for (size_t at = last + 1; at-- > first;) {
    if (zip.at<uint32_t>(at) != end_signature) continue;
    Directory directory{zip.at<uint32_t>(at + 16), zip.at<uint32_t>(at + 12)};
    const bool wide = directory.offset == in_extra || directory.size == in_extra ||
                      zip.at<uint16_t>(at + 10) == 0xffff;
    if (wide && at >= 20 && zip.at<uint32_t>(at - 20) == locator64_signature) {
      const auto end64 = zip.at<uint64_t>(at - 12);
      if (zip.part(end64, 56).empty() || zip.at<uint32_t>(end64) != end64_signature)
        unsound("its 64-bit directory is not found");
      directory = {zip.at<uint64_t>(end64 + 48), zip.at<uint64_t>(end64 + 40)};
    }
    return directory;
  }
  unsound("its directory is not found; it may be cut off");
}

struct Entry {
  std::string name;
  uint16_t flags, method;
  uint32_t crc;
  uint64_t packed, unpacked, offset;
};

// The 64-bit sizes stand in the extra field, each only where its 32-bit field is full.
void read_wide_sizes(const View& extra, Entry& entry) {
  for (uint64_t at = 0; at + 4 <= extra.size();) {
    const auto id = extra.at<uint16_t>(at);
    const auto size = extra.at<uint16_t>(at + 2);
    if (id == 1) {
      uint64_t from = at + 4;
      for (uint64_t* value : {&entry.unpacked, &entry.packed, &entry.offset}) {
        if (*value != in_extra) continue;
        if (from + 8 > at + 4 + size) unsound("a 64-bit size is missing");
        *value = extra.at<uint64_t>(from);
        from += 8;
      }
      return;
    }
    at += 4 + uint64_t{size};
  }
}

std::vector<Entry> read_directory(const View& zip) {
  const Directory directory = find_directory(zip);
  const View list(zip.part(directory.offset, directory.size));
  std::vector<Entry> entries;
  for (uint64_t at = 0; at < list.size();) {
    if (list.at<uint32_t>(at) != directory_signature)
      unsound("its directory has an entry that is none");
    Entry entry{{},
                list.at<uint16_t>(at + 8),
                list.at<uint16_t>(at + 10),
                list.at<uint32_t>(at + 16),
                list.at<uint32_t>(at + 20),
                list.at<uint32_t>(at + 24),
                list.at<uint32_t>(at + 42)};
    const uint64_t name = list.at<uint16_t>(at + 28), extra = list.at<uint16_t>(at + 30),
                   comment = list.at<uint16_t>(at + 32);
    entry.name = list.part(at + 46, name);
    read_wide_sizes(View(list.part(at + 46 + name, extra)), entry);
    entries.push_back(std::move(entry));
    at += 46 + name + extra + comment;
  }
  return entries;
}

uint32_t crc_of(uint32_t crc, std::string_view bytes) {
  if (bytes.empty()) return crc;  // zlib takes a null pointer for a fresh start
  return static_cast<uint32_t>(
      crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

Bytes inflate_all(std::string_view packed, uint64_t size, const std::string& name) {
  if (size / deflate_ratio > packed.size())
    unsound(fmt::format("'{}' claims a size its bytes cannot hold", name));
  Bytes out = Bytes::allocate(size);
  z_stream stream{};
  if (inflateInit2(&stream, -15) != Z_OK)
    fail(ErrorCode::out_of_memory, "cannot start unpacking '{}'", name);
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, inflateEnd);
  constexpr uint64_t step = uint64_t{1} << 30;
  uint64_t taken = 0, made = 0;
  int state = Z_OK;
  while (state == Z_OK) {
    const uint64_t in = std::min(step, packed.size() - taken), room = std::min(step, size - made);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + taken));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(out.mutable_data() + made);
    stream.avail_out = static_cast<uInt>(room);
    state = inflate(&stream, Z_NO_FLUSH);
    taken += in - stream.avail_in;
    made += room - stream.avail_out;
  }
  if (state != Z_STREAM_END || made != size)
    unsound(fmt::format("'{}' does not unpack to its {} bytes", name, size));
  return out;
}

Bytes unpack(const Bytes& archive, const View& zip, const Entry& entry) {
  if (entry.flags & 1)
    fail(ErrorCode::unsupported, "'{}' in the zip archive is encrypted", entry.name);
  if (zip.at<uint32_t>(entry.offset) != local_signature)
    unsound(fmt::format("'{}' is not where the directory says", entry.name));
  const uint64_t names =
      uint64_t{zip.at<uint16_t>(entry.offset + 26)} + zip.at<uint16_t>(entry.offset + 28);
  const uint64_t start = entry.offset + 30 + names;
  const std::string_view packed = zip.part(start, entry.packed);
  Bytes bytes;
  if (entry.method == 0) {
    if (entry.packed != entry.unpacked)
      unsound(fmt::format("'{}' is stored but has two sizes", entry.name));
    bytes = archive.slice(start, entry.packed);
  } else if (entry.method == 8) {
    bytes = inflate_all(packed, entry.unpacked, entry.name);
  } else {
    fail(ErrorCode::unsupported,
         "'{}' in the zip archive is packed with method {}; 0 (stored) and 8 (deflate) are read",
         entry.name, entry.method);
  }
  if (crc_of(0, bytes.text()) != entry.crc)
    unsound(fmt::format("'{}' does not match its checksum", entry.name));
  return bytes;
}

template <class... T>
std::string numbers(T... values) {
  std::string bytes;
  (bytes.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
  return bytes;
}

}  // namespace

std::vector<ZipMember> read_zip(const Bytes& archive) {
  const View zip(archive.text());
  std::vector<ZipMember> members;
  uint64_t used = 0;
  for (const Entry& entry : read_directory(zip)) {
    // Members that share bytes would let a small file unpack to any size.
    if (entry.packed > zip.size() - used) unsound("its members overlap");
    used += entry.packed;
    members.push_back({entry.name, unpack(archive, zip, entry)});
  }
  return members;
}

void ZipWriter::emit(std::string_view bytes) {
  sink_.put(bytes.data(), bytes.size());
  written_ += bytes.size();
}

void ZipWriter::put(const std::string& name, std::string_view head, std::string_view body) {
  if (name.size() > 0xffff)
    fail(ErrorCode::bad_input, "a name of {} bytes is too long for a zip archive", name.size());
  const uint32_t crc = crc_of(crc_of(0, head), body);
  const uint64_t size = head.size() + body.size();
  const uint64_t offset = written_;
  const bool wide_size = size >= in_extra, wide = wide_size || offset >= in_extra;
  const auto small_size = static_cast<uint32_t>(std::min<uint64_t>(size, in_extra));
  const auto small_offset = static_cast<uint32_t>(std::min<uint64_t>(offset, in_extra));
  const uint16_t version = wide ? 45 : 20, utf8_names = 0x800, stored = 0, time = 0,
                 date = 0x21;  // 1 January 1980
  const auto name_size = static_cast<uint16_t>(name.size());
  const std::string sizes = wide_size ? numbers(size, size) : std::string();
  const std::string extra = wide_size ? numbers(uint16_t{1}, uint16_t{16}) + sizes : std::string();
  emit(numbers(local_signature, version, utf8_names, stored, time, date, crc, small_size,
               small_size, name_size, static_cast<uint16_t>(extra.size())));
  emit(name);
  emit(extra);
  emit(head);
  emit(body);
  const std::string wide_values = sizes + (offset >= in_extra ? numbers(offset) : std::string());
  const std::string wide_extra =
      wide ? numbers(uint16_t{1}, static_cast<uint16_t>(wide_values.size())) + wide_values
           : std::string();
  directory_ += numbers(directory_signature, version, version, utf8_names, stored, time, date, crc,
                        small_size, small_size, name_size, static_cast<uint16_t>(wide_extra.size()),
                        uint16_t{0}, uint16_t{0}, uint16_t{0}, uint32_t{0}, small_offset);
  directory_ += name + wide_extra;
  ++members_;
}

void ZipWriter::finish() {
  const uint64_t offset = written_, size = directory_.size();
  emit(directory_);
  if (offset >= in_extra || size >= in_extra || members_ >= 0xffff) {
    const uint64_t end64 = written_;
    emit(numbers(end64_signature, uint64_t{44}, uint16_t{45}, uint16_t{45}, uint32_t{0},
                 uint32_t{0}, members_, members_, size, offset));
    emit(numbers(locator64_signature, uint32_t{0}, end64, uint32_t{1}));
  }
  const auto count = static_cast<uint16_t>(std::min<uint64_t>(members_, 0xffff));
  emit(numbers(end_signature, uint16_t{0}, uint16_t{0}, count, count,
               static_cast<uint32_t>(std::min<uint64_t>(size, in_extra)),
               static_cast<uint32_t>(std::min<uint64_t>(offset, in_extra)), uint16_t{0}));
}

}  // namespace sardonyx::formats
