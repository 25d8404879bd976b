// A file in memory is what the disk has, whether it was small enough to be read or was mapped.
#include "base/mapped_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "sardonyx/error.h"
#include "scratch_folder.h"

namespace sardonyx {
namespace {

std::string some_text(size_t size) {
  std::string text;
  while (text.size() < size) text += std::to_string(text.size()) + ' ';
  text.resize(size);
  return text;
}

class MappedFiles : public testing::TestWithParam<size_t> {
 protected:
  void write(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }

  test::ScratchFolder folder_;
  const std::string path_ = folder_ / "mapped";
};
INSTANTIATE_TEST_SUITE_P(Sizes, MappedFiles,
                         testing::Values(0, 1, 4096, 65535, 65536, 65537, 100000));

TEST_P(MappedFiles, HoldWhatTheDiskHas) {
  const std::string text = some_text(GetParam());
  write(text);
  const MappedFile file(path_);
  EXPECT_EQ(file.bytes().text(), text);
  EXPECT_EQ(file.path(), path_);
}

// Views outlive the file they are of.
TEST_P(MappedFiles, BytesStayWhenTheFileIsClosed) {
  const std::string text = some_text(GetParam());
  write(text);
  Bytes bytes;
  {
    const MappedFile file(path_);
    bytes = file.bytes();
  }
  EXPECT_EQ(bytes.text(), text);
}

TEST_P(MappedFiles, AppendingLeavesWhatWasThere) {
  const std::string text = some_text(GetParam());
  write(text);
  const MappedFile file(path_, MappedFile::Access::append);
  ASSERT_EQ(os::write(file.descriptor(), "more", 4), 4);
  EXPECT_EQ(file.bytes().text(), text);
  EXPECT_EQ(MappedFile(path_).bytes().text(), text + "more");
}

TEST(MappedFile, WhatIsNoFileIsAnError) {
  const test::ScratchFolder folder;
  EXPECT_THROW(MappedFile{folder.path()}, Error);
  EXPECT_THROW(MappedFile(folder / "no-such-file"), Error);
  EXPECT_THROW(MappedFile("/dev/zero"), Error);
}

}  // namespace
}  // namespace sardonyx
