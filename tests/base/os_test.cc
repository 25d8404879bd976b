// What the library asks of the system does the same on all systems.
#include "base/os.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "base/affinity.h"
#include "base/thread_pool.h"
#include "scratch_folder.h"

namespace sardonyx::os {
namespace {

std::string content_of(const std::string& file) {
  std::ifstream stream(path(file), std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write_to(const std::string& file, std::string_view content) {
  std::ofstream(path(file), std::ios::binary) << content;
}

TEST(Os, NamesOutsideOfAsciiAreUtf8) {
  const test::ScratchFolder folder;
  const std::string name = folder / "Größe 大きさ";
  EXPECT_EQ(text(path(name)), name);
  const Descriptor file(create(name, 0666));
  ASSERT_TRUE(file.is_open()) << std::strerror(errno);
  EXPECT_EQ(write(file.get(), "abc", 3), 3);
  EXPECT_EQ(content_of(name), "abc");
  ASSERT_TRUE(info_of(name));
  EXPECT_EQ(info_of(name)->size, 3u);
  EXPECT_TRUE(std::filesystem::exists(path(name)));
}

TEST(Os, FoldersOfFiles) {
  EXPECT_EQ(folder_of("model.onnx"), ".");
  EXPECT_EQ(folder_of("a/b/model.onnx"), "a/b");
  EXPECT_EQ(folder_of("/model.onnx"), "/");
#ifdef _WIN32
  EXPECT_EQ(folder_of("a\\b/c\\model.onnx"), "a\\b/c");
#else
  EXPECT_EQ(folder_of("a\\b"), ".");
#endif
}

TEST(Os, NamesOfDescriptors) {
  EXPECT_EQ(descriptor_named("/dev/stdin"), 0);
  EXPECT_EQ(descriptor_named("/dev/stderr"), 2);
  EXPECT_EQ(descriptor_named("/dev/fd/17"), 17);
  EXPECT_EQ(descriptor_named("/proc/self/fd/3"), 3);
  for (const char* other : {"", "/dev/fd/", "/dev/fd/-1", "/dev/fd/1x", "/dev/null", "stdin"})
    EXPECT_EQ(descriptor_named(other), std::nullopt) << other;
}

TEST(Os, KindsOfFiles) {
  const test::ScratchFolder folder;
  write_to(folder / "file", "abc");
  const auto file = info_of(folder / "file"), inside = info_of(folder.path());
  ASSERT_TRUE(file && inside);
  EXPECT_TRUE(file->is_regular());
  EXPECT_TRUE(inside->is_folder());
  EXPECT_EQ(file->links, 1u);
  EXPECT_GT(file->seconds, 1'700'000'000);
  EXPECT_NE(std::pair(file->device, file->number), std::pair(inside->device, inside->number));
  const Descriptor opened(open(folder / "file", Opening::read));
  EXPECT_EQ(info_of(opened.get())->number, file->number);
  errno = 0;
  EXPECT_FALSE(info_of(folder / "none"));
  EXPECT_EQ(errno, ENOENT);
  EXPECT_LT(open_folder(folder / "file"), 0);
  EXPECT_TRUE(Descriptor(open_folder(folder.path())).is_open());
}

TEST(Os, NewFilesAreNew) {
  const test::ScratchFolder folder;
  EXPECT_TRUE(Descriptor(create(folder / "file", 0666)).is_open());
  errno = 0;
  EXPECT_LT(create(folder / "file", 0666), 0);
  EXPECT_EQ(errno, EEXIST);
  errno = 0;
  EXPECT_LT(create(folder / "none/file", 0666), 0);
  EXPECT_EQ(errno, ENOENT);
}

TEST(Os, ReadsAndWritesAtTheirPlaces) {
  const test::ScratchFolder folder;
  const std::string name = folder / "file";
  write_to(name, "0123456789\r\n\x1a end");
  const Descriptor file(open(name, Opening::append));
  const Part parts[] = {{"ab", 2}, {"", 0}, {"cde", 3}};
  EXPECT_EQ(write(file.get(), parts), 5);
  EXPECT_EQ(content_of(name), "0123456789\r\n\x1a endabcde");
  char text[8] = {};
  EXPECT_EQ(read_at(file.get(), text, 4, 6), 4);
  EXPECT_STREQ(text, "6789");
  EXPECT_EQ(read_at(file.get(), text, 4, 1000), 0);
  EXPECT_TRUE(set_size(file.get(), 3));
  EXPECT_TRUE(sync(file.get()));
  EXPECT_EQ(content_of(name), "012");
}

TEST(Os, MapsWhatIsInAFile) {
  const test::ScratchFolder folder;
  const std::string content(100'000, 'x');
  write_to(folder / "file", content);
  Descriptor file(open(folder / "file", Opening::read));
  const std::byte* mapped = map(file.get(), content.size());
  ASSERT_NE(mapped, nullptr);
  file.reset();
  const std::span<const std::byte> bytes(mapped, content.size());
  bring_pages(bytes.subspan(10));
  release_pages(bytes);
  EXPECT_EQ(std::memcmp(mapped, content.data(), content.size()), 0);
  unmap(mapped, content.size());
}

TEST(Os, OneProcessHasTheLock) {
  const test::ScratchFolder folder;
  Descriptor first(open(folder / "lock", Opening::lock));
  const Descriptor second(open(folder / "lock", Opening::lock));
  ASSERT_TRUE(first.is_open() && second.is_open());
  EXPECT_TRUE(lock(first.get()));
  errno = 0;
  EXPECT_FALSE(lock(second.get()));
  EXPECT_EQ(errno, EWOULDBLOCK);
  first.reset();
  EXPECT_TRUE(lock(second.get()));
}

TEST(Os, FilesTakeThePlaceOfOthers) {
  const test::ScratchFolder folder;
  write_to(folder / "new", "new");
  write_to(folder / "old", "old");
  EXPECT_TRUE(replace(folder / "new", folder / "old"));
  EXPECT_EQ(content_of(folder / "old"), "new");
  EXPECT_FALSE(replace(folder / "new", folder / "old"));
  const std::string made = make_folder(folder / "made-");
  EXPECT_TRUE(info_of(made) && info_of(made)->is_folder());
  EXPECT_EQ(folder.files().size(), 2u);
  remove(folder / "old");
  EXPECT_EQ(folder.files().size(), 1u);
}

TEST(Os, MemoryIsAligned) {
  for (const size_t alignment : {size_t{64}, size_t{2} << 20}) {
    void* block = allocate(alignment + 64, alignment);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % alignment, 0u);
    std::memset(block, 1, alignment + 64);
    free(block);
  }
}

TEST(Os, FindsTheFirstOfTexts) {
  EXPECT_EQ(find("", ""), 0u);
  EXPECT_EQ(find("abc", ""), 0u);
  EXPECT_EQ(find("", "a"), std::string_view::npos);
  EXPECT_EQ(find("aabaabaaab", "aabaaab"), 3u);
  uint32_t state = 1;
  const auto drawn = [&](size_t size) {
    std::string text;
    for (size_t i = 0; i < size; ++i) text += "ab"[(state = state * 1664525 + 1013904223) >> 31];
    return text;
  };
  for (int i = 0; i < 2000; ++i) {
    const std::string text = drawn(static_cast<size_t>(i % 40)),
                      part = drawn(static_cast<size_t>(i % 7));
    EXPECT_EQ(find(text, part), std::string_view(text).find(part)) << text << ' ' << part;
  }
}

TEST(Os, WorkersRunWhereTheirPoolWasMade) {
  const std::vector<int> before = processors();
  ASSERT_FALSE(before.empty());
  const std::vector<int> last = {before.back()};
  std::vector<int> there;
  {
    const StartOn start(last);
    EXPECT_EQ(processors(), last);
    std::thread([place = Place(), &there] {
      place.take();
      there = processors();
    }).join();
  }
  EXPECT_EQ(processors(), before);
  EXPECT_EQ(there, last);
}

}  // namespace
}  // namespace sardonyx::os
