// Files hold what was put, in its order, whether it was copied, referred to or copied by the
// system.
#include "wire/sink.h"

#include <gtest/gtest.h>

#include <filesystem>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "base/fail.h"
#include "base/mapped_file.h"
#include "base/os.h"
#include "scratch_folder.h"

#ifndef _WIN32
#include <sys/stat.h>
#endif

namespace sardonyx {
namespace {

std::string random_bytes(size_t size, std::mt19937& random) {
  std::string bytes(size, 0);
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<char>(random()); });
  return bytes;
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Parts of sizes about the limits between the ways of writing.
size_t random_size(std::mt19937& random) {
  constexpr size_t limits[] = {0, 1, 20, 4096, 1 << 16, 1 << 20, 9 << 20};
  const size_t limit = limits[random() % 20 == 0 ? random() % 7 : random() % 5];
  return limit + random() % 3 - std::min<size_t>(limit, 1);
}

class Sink : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Seeds, Sink, testing::Range(0, 8));

TEST_P(Sink, PartsOfTheSourceAndOthersInTurn) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  const test::ScratchFolder folder;
  const std::string bytes = random_bytes(size_t{12} << 20, random);
  std::ofstream(folder / "source", std::ios::binary) << bytes;
  const MappedFile source(folder / "source");
  const std::string_view mapped = source.bytes().text();
  std::string expected;
  wire::write_file(
      folder / "target",
      [&](wire::Sink& sink) {
        for (int i = 0; i < 300; ++i) {
          const size_t size = random_size(random);
          size_t offset = random() % (mapped.size() - size);
          if (random() % 2 == 0) offset -= offset % 4096;  // whole blocks may be cloned
          if (random() % 2 == 0) {
            sink.put(mapped.substr(offset, size));
          } else {  // gone after the call
            std::string own(mapped.substr(offset, size));
            sink.put(own);
            std::ranges::fill(own, '?');
          }
          expected += mapped.substr(offset, size);
        }
      },
      &source);
  EXPECT_TRUE(content_of(folder / "target") == expected);
  EXPECT_EQ(folder.files().size(), 2u);
}

TEST(Sinks, MoreSmallViewsThanOneCallTakes) {
  std::mt19937 random(1);
  const test::ScratchFolder folder;
  std::ofstream(folder / "source", std::ios::binary) << random_bytes(5000, random);
  const MappedFile source(folder / "source");
  std::string expected;
  wire::write_file(
      folder / "target",
      [&](wire::Sink& sink) {
        for (size_t i = 0; i < 3000; ++i) {
          const std::string_view part = source.bytes().text().substr(i % 900, 4096);
          sink.put(part);
          expected += part;
        }
      },
      &source);
  EXPECT_TRUE(content_of(folder / "target") == expected);
}

#ifndef _WIN32
// A pipe takes less at a time than is gathered.
TEST(Sinks, PipesTakePartsOfWhatIsGathered) {
  std::mt19937 random(2);
  const test::ScratchFolder folder;
  std::ofstream(folder / "source", std::ios::binary) << random_bytes(3 << 20, random);
  const MappedFile source(folder / "source");
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::string found;
  std::thread reader([&] { found = content_of(folder / "pipe"); });
  std::string expected;
  wire::write_file(
      folder / "pipe",
      [&](wire::Sink& sink) {
        for (const size_t size : {5, 70000, 3 << 20, 4096, 100}) {
          sink.put(source.bytes().text().substr(0, size));
          sink.put("between");
          expected += source.bytes().text().substr(0, size);
          expected += "between";
        }
      },
      &source);
  reader.join();
  EXPECT_TRUE(found == expected);
}
#endif

TEST(Sinks, NothingIsLeftOfAFileThatFails) {
  const test::ScratchFolder folder;
  std::ofstream(folder / "target") << "old";
  EXPECT_THROW(wire::write_file(folder / "target",
                                [](wire::Sink& sink) {
                                  sink.put(std::string(200000, 'x'));
                                  fail(ErrorCode::bad_input, "no more");
                                }),
               Error);
  EXPECT_EQ(content_of(folder / "target"), "old");
  EXPECT_EQ(folder.files().size(), 1u);
}

#ifndef _WIN32
TEST(Sinks, AProcessThatIsEndedLeavesNothing) {
  const test::ScratchFolder folder;
  if (!os::Descriptor(os::create_unnamed(folder.path(), {})).is_open())
    GTEST_SKIP() << "the file system has no files without names";
  const std::string path = folder / "target";
  wire::write_file(path, [&](wire::Sink& sink) {
    sink.put(std::string(size_t{12} << 20, 'x'));
    EXPECT_TRUE(folder.files().empty());
  });
  EXPECT_EQ(content_of(path).size(), size_t{12} << 20);
  EXPECT_EQ(folder.files().size(), 1u);
}

TEST(Sinks, AFileThatIsReplacedKeepsItsPermissions) {
  const test::ScratchFolder folder;
  const mode_t before = umask(022);
  for (const mode_t mode : {0664, 0600, 0444}) {
    std::ofstream(folder / "target") << "old";
    ASSERT_EQ(chmod((folder / "target").c_str(), mode), 0);
    wire::write_file(folder / "target", [](wire::Sink& sink) { sink.put("new"); });
    struct stat info {};
    ASSERT_EQ(stat((folder / "target").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, mode);
    std::filesystem::remove(folder / "target");
  }
  wire::write_file(folder / "target", [](wire::Sink& sink) { sink.put("new"); });
  struct stat info {};
  ASSERT_EQ(stat((folder / "target").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0644u);
  umask(before);
}

// The source became shorter: what is gone is an error, not a crash.
TEST(Sinks, ASourceThatBecameShorterIsAnError) {
  std::mt19937 random(3);
  const test::ScratchFolder folder;
  std::ofstream(folder / "source", std::ios::binary) << random_bytes(300000, random);
  const MappedFile source(folder / "source");
  std::filesystem::resize_file(folder / "source", 8192);
  EXPECT_THROW(
      wire::write_file(
          folder / "target",
          [&](wire::Sink& sink) { sink.put(source.bytes().text().substr(100, 200000)); }, &source),
      Error);
  EXPECT_EQ(folder.files().size(), 1u);
}
#endif

}  // namespace
}  // namespace sardonyx
