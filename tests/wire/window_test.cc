// Models read through the window on a file are those that are read from memory.
#include <gtest/gtest.h>

#include <filesystem>

#include <fstream>

#include "base/mapped_file.h"
#include "builder.h"
#include "scratch_folder.h"
#include "wire/read.h"
#include "wire/streaming_reader.h"
#include "wire/write.h"

namespace sardonyx {
namespace {

using wire_test::bytes_of;
using wire_test::number;
using wire_test::tag;
using wire_test::text;
using wire_test::varint;

class File {
 public:
  explicit File(const std::string& content) { std::ofstream(path_, std::ios::binary) << content; }
  const std::string& path() const { return path_; }

 private:
  test::ScratchFolder folder_;
  const std::string path_ = folder_ / "window.onnx";
};

std::string tensor(const std::string& name, const std::string& more) {
  return text(5, number(1, 4) + number(2, 1) + text(8, name) + more);
}
std::string raw(size_t size) { return text(9, std::string(size, 'w')); }
std::string node(size_t i) {
  const std::string value = "value" + std::to_string(i);
  std::string inputs;
  for (size_t k = 0; k < i % 5; ++k) inputs += text(1, value + std::string(k, '_'));
  return text(1, inputs + text(2, value) + text(4, "Op") + text(6, std::string(i % 700, 'd')));
}

// Parts of all sizes beside those of the window: it reads 512 bytes, 4096 and up to
// 16384.
std::string many_sizes() {
  std::string graph;
  for (size_t i = 0; i < 300; ++i) graph += node(i);
  for (const size_t size : {0, 1, 500, 511, 512, 513, 4095, 4096, 16383, 16384, 16385, 70000}) {
    graph += tensor("raw" + std::to_string(size), raw(size));
    graph += tensor("doc" + std::to_string(size), text(12, std::string(size, 'x')));
    std::string numbers;
    for (size_t i = 0; i < size; ++i) numbers += varint(i * i * i);
    graph += tensor("packed" + std::to_string(size), text(7, numbers));
    std::string lone;
    for (size_t i = 0; i < size; ++i) lone += number(8, i * i * i) + tag(7, 5) + "flo" + 'a';
    for (size_t i = 0; i < size; ++i) lone += text(9, std::string(i % 150, 's'));
    graph += text(1, text(4, "Op") + text(5, text(1, "lone") + lone));
    for (size_t i = 0; i < size; ++i) lone += number(8, i * i * i);
    for (size_t i = 0; i < size; ++i) lone += tag(7, 5) + "flo" + 'a';
    graph += text(1, text(4, "Op") + text(5, text(1, "alike") + lone));
    graph += tensor("floats" + std::to_string(size), text(4, std::string(4 * size, 'f')));
    graph += text(77, std::string(size, 'u'));  // of a newer edition
    graph += text(77 << 10, std::string(size, 'u'));
  }
  for (size_t i = 0; i < 3000; ++i) graph += text(16, text(1, "key") + text(2, "value"));
  return number(1, 8) + text(7, graph) + text(8, number(2, 17));
}

TEST(Window, PartsOfAllSizes) {
  const std::string model = many_sizes();
  const ir::Model in_memory = wire::read_model(bytes_of(model));
  const File file(model);
  EXPECT_EQ(wire::write_model(wire::read_model(file.path())), wire::write_model(in_memory));
}

// Each node is read into the memory of the one before.
TEST(Window, NodesOneAfterAnother) {
  const std::string bytes = many_sizes();
  const ir::Model in_memory = wire::read_model(bytes_of(bytes));
  const File path(bytes);
  const MappedFile file(path.path());
  ASSERT_TRUE(file.is_mapped());
  wire::StreamingReader reader(file);
  EXPECT_EQ(reader.size(), in_memory.graph->nodes.size());
  std::vector<ir::Node> nodes;
  while (const ir::Node* node = reader.next()) nodes.push_back(*node);
  EXPECT_TRUE(reader.model.graph->nodes.empty());
  reader.model.graph->nodes = std::move(nodes);
  EXPECT_EQ(wire::write_model(reader.model), wire::write_model(in_memory));
}

// What reading gives: the model written again, or the error.
template <class Read>
std::string outcome(const Read& read) {
  try {
    return wire::write_model(read());
  } catch (const Error& error) {
    return error.message();
  }
}

TEST(Window, EveryTruncation) {
  std::string graph;
  for (size_t i = 0; i < 12; ++i) graph += node(i * 3);
  graph += tensor("a", raw(700)) + tensor("b", text(7, varint(1) + varint(1u << 20)));
  const std::string model = number(1, 8) + text(8, number(2, 17)) + text(7, graph);
  for (size_t size = 0; size < model.size(); ++size) {
    const std::string part = model.substr(0, size);
    const File file(part);
    ASSERT_EQ(outcome([&] { return wire::read_model(file.path()); }),
              outcome([&] { return wire::read_model(bytes_of(part)); }))
        << size;
  }
}

TEST(Window, FlippedBits) {
  std::string graph;
  for (size_t i = 0; i < 6; ++i) graph += node(i);
  graph += tensor("a", raw(600)) + tensor("b", text(7, varint(1) + varint(1u << 20)));
  const std::string model = number(1, 8) + text(8, number(2, 17)) + text(7, graph);
  for (size_t bit = 0; bit < model.size() * 8; bit += 3) {
    std::string broken = model;
    broken[bit / 8] = static_cast<char>(broken[bit / 8] ^ (1 << bit % 8));
    const File file(broken);
    ASSERT_EQ(outcome([&] { return wire::read_model(file.path()); }),
              outcome([&] { return wire::read_model(bytes_of(broken)); }))
        << bit;
  }
}

#ifndef _WIN32  // where a mapped file can't become shorter
TEST(Window, AFileThatBecomesShorterIsAnError) {
  const std::string weights = tensor("a", raw(50000)) + tensor("b", raw(50000));
  const File file(number(1, 8) + text(7, weights) + text(8, number(2, 17)));
  const MappedFile open(file.path());
  std::filesystem::resize_file(file.path(), 8192);
  try {
    wire::read_model(open);
    FAIL() << "half a file was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unreadable);
    EXPECT_NE(error.message().find("became shorter"), std::string::npos) << error.what();
  }
}
#endif

}  // namespace
}  // namespace sardonyx
