#include "wire/read.h"

#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "builder.h"
#include "scratch_folder.h"
#include "wire/tensor.h"
#include "wire/write.h"

namespace sardonyx::wire {
namespace {

using namespace wire_test;

ir::Model model_of(const std::string& bytes) { return read_model(bytes_of(bytes)); }
std::string message_of(const std::string& bytes) {
  return error_of([&] { model_of(bytes); }).what();
}

TEST(Read, SmallModelIsAsItWasWritten) {
  const ir::Model model = read_model(fixture("small.onnx"));
  EXPECT_EQ(model.ir_version, 8);
  EXPECT_EQ(model.producer_name, "fixtures");
  EXPECT_EQ(model.folder, fixture("").substr(0, fixture("").size() - 1));
  EXPECT_EQ(ir::imported_version(model.opset_imports, ""), 13);
  ASSERT_TRUE(model.graph);
  ASSERT_EQ(model.graph->nodes.size(), 2u);
  EXPECT_EQ(ir::describe(model.graph->nodes[1]), "Softmax 'probs'");
  EXPECT_EQ(model.graph->nodes[1].find("axis")->i, -1);
  EXPECT_EQ(model.graph->nodes[0].inputs, (std::vector<std::string>{"x", "w"}));
  const auto& type = *model.graph->inputs[0].type;
  EXPECT_EQ(type.kind, ir::TypeProto::Kind::tensor);
  EXPECT_EQ(type.shape->dims[0].param, "batch");
  EXPECT_EQ(type.shape->dims[1].value, 2);
  const Tensor w = to_tensor(model.graph->initializers[0]);
  EXPECT_EQ(w.shape(), (Shape{2, 3}));
  EXPECT_EQ(w.elements<float>()[5], 5.0f);
}

TEST(Read, EveryFieldComesBackByteForByte) {
  for (const char* name : {"every_field.onnx", "small.onnx", "types.onnx"}) {
    const Bytes file = read_file(fixture(name));
    const ir::Model model = read_model(file);
    EXPECT_EQ(write_model(model), file.text()) << name;
    EXPECT_EQ(serialized_size(model), file.size());
    EXPECT_TRUE(model.unknown.empty());
  }
  const Bytes tensor = read_file(fixture("tensor_every_field.pb"));
  EXPECT_EQ(write_tensor(read_tensor(tensor)), tensor.text());
}

TEST(Read, TypesOfEveryKind) {
  using Kind = ir::TypeProto::Kind;
  const ir::Model model = read_model(fixture("types.onnx"));
  std::vector<Kind> kinds;
  for (const auto& input : model.graph->inputs) kinds.push_back(input.type->kind);
  EXPECT_EQ(kinds, (std::vector{Kind::tensor, Kind::sequence, Kind::map, Kind::optional,
                                Kind::sparse_tensor, Kind::opaque}));
}

TEST(Read, PackedAndUnpackedNumbersInSeveralChunks) {
  // dims: one alone, two packed, one alone; a negative int32 takes ten bytes.
  std::string bytes = number(1, 2) + text(1, varint(3) + varint(4)) + number(1, 5);
  bytes +=
      number(5, static_cast<uint64_t>(-7)) + text(5, varint(static_cast<uint64_t>(-8)) + varint(9));
  bytes += tag(4, 5) + plain(1.5f) + text(4, plain(2.5f) + plain(3.5f)) + text(4, "") + tag(4, 5) +
           plain(4.5f);
  bytes += text(10, plain(1.25)) + text(10, plain(2.25)) + tag(10, 1) + plain(3.25);
  bytes += number(11, ~uint64_t{0}) + text(11, varint(1));
  const ir::TensorProto tensor = read_tensor(bytes_of(bytes));
  EXPECT_EQ(tensor.dims, (std::vector<int64_t>{2, 3, 4, 5}));
  EXPECT_EQ(tensor.int32_data, (std::vector<int32_t>{-7, -8, 9}));
  EXPECT_EQ(tensor.float_data.text(), plain(1.5f) + plain(2.5f) + plain(3.5f) + plain(4.5f));
  EXPECT_EQ(tensor.double_data.text(), plain(1.25) + plain(2.25) + plain(3.25));
  EXPECT_EQ(tensor.uint64_data, (std::vector<uint64_t>{~uint64_t{0}, 1}));
}

TEST(Read, ManyLoneFloatsAreGathered) {
  std::string bytes;
  std::string values;
  for (int i = 0; i < 5000; ++i) {
    bytes += tag(4, 5) + plain(static_cast<float>(i));
    values += plain(static_cast<float>(i));
  }
  EXPECT_EQ(read_tensor(bytes_of(bytes)).float_data.text(), values);
}

// Lists of one field an item, longer than what the reader takes at once, of items of all sizes.
TEST(Read, LongListsOfLoneFields) {
  for (const size_t count : {1, 2, 63, 64, 65, 66, 129, 5000}) {
    std::string attribute = text(1, "a");
    std::vector<int64_t> ints;
    std::vector<float> floats;
    std::vector<std::string> strings;
    for (size_t i = 0; i < count; ++i) {
      ints.push_back(static_cast<int64_t>((uint64_t{1} << (i * 7 + i / 9) % 64) - 1));
      floats.push_back(static_cast<float>(i));
      strings.emplace_back(i % 200, 's');
    }
    for (const int64_t i : ints) attribute += number(8, static_cast<uint64_t>(i));
    for (const float f : floats) attribute += tag(7, 5) + plain(f);
    for (const std::string& s : strings) attribute += text(9, s);
    attribute += number(20, 7);
    const auto graph = [&](const std::string& bytes) {
      return number(1, 8) + text(7, text(1, text(5, bytes)));
    };
    const ir::Model model = model_of(graph(attribute));
    const auto& read = model.graph->nodes[0].attributes[0];
    EXPECT_EQ(read.ints, ints);
    EXPECT_EQ(read.floats, floats);
    EXPECT_EQ(read.strings, strings);
    EXPECT_EQ(read.kind, ir::AttributeKind::ints);
    // A number that goes on beyond ten bytes, after many that are sound.
    const std::string endless = tag(8, 0) + std::string(11, '\x80') + '\1';
    EXPECT_THROW(model_of(graph(attribute + number(8, 1) + endless)), Error);
    EXPECT_THROW(model_of(graph(attribute + number(8, 300) + tag(8, 0) + '\x80')), Error);
    EXPECT_THROW(model_of(graph(attribute + tag(7, 5) + plain(1.0f) + tag(7, 5) + "ab")), Error);
    EXPECT_THROW(model_of(graph(attribute + text(9, "s") + tag(9, 2) + '\x05' + "four")), Error);
  }
}

TEST(Read, AttributeListsPackedAsProto3WritersDo) {
  const std::string attribute =
      text(7, plain(1.0f) + plain(2.0f)) + tag(7, 5) + plain(3.0f) + text(8, varint(1) + varint(2));
  const ir::Model model = model_of(number(1, 8) + text(7, text(1, text(5, attribute))));
  const auto& read = model.graph->nodes[0].attributes[0];
  EXPECT_EQ(read.floats, (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(read.ints, (std::vector<int64_t>{1, 2}));
}

TEST(Read, LastScalarWinsAndMessagesMerge) {
  const std::string first = text(7, text(2, "one") + text(1, text(4, "Relu")));
  const std::string second = text(7, text(2, "two") + text(1, text(4, "Tanh")));
  const ir::Model model = model_of(number(1, 3) + first + number(1, 4) + second);
  EXPECT_EQ(model.ir_version, 4);
  EXPECT_EQ(model.graph->name, "two");
  ASSERT_EQ(model.graph->nodes.size(), 2u);
  EXPECT_EQ(model.graph->nodes[1].op_type, "Tanh");
}

TEST(Read, OneofTakesTheLastMember) {
  const std::string dim = number(1, 5) + text(2, "n");
  const std::string tensor_then_sequence =
      text(1, number(1, 1) + text(2, text(1, dim))) + text(4, "");
  const std::string tensor = text(1, number(1, 1)) + text(1, text(2, text(1, dim)));
  const auto type_of_input = [](const std::string& type) {
    return *model_of(number(1, 8) + text(7, text(11, text(2, type)))).graph->inputs[0].type;
  };
  const auto sequence = type_of_input(tensor_then_sequence);
  EXPECT_EQ(sequence.kind, ir::TypeProto::Kind::sequence);
  EXPECT_FALSE(sequence.shape);
  const auto merged = type_of_input(tensor);
  EXPECT_EQ(merged.elem_type, 1);
  EXPECT_FALSE(merged.shape->dims[0].value);
  EXPECT_EQ(merged.shape->dims[0].param, "n");
}

TEST(Read, UnknownFieldsAreKept) {
  const std::string odd =
      text(999, "later") + number(998, 5) + tag(997, 5) + plain(1.0f) + tag(996, 1) + plain(2.0);
  const std::string wrong_type = text(1, "ir_version is a number");
  const ir::Model model = model_of(number(1, 8) + odd + wrong_type + text(7, odd));
  EXPECT_EQ(model.unknown.bytes, odd + wrong_type);
  EXPECT_EQ(model.graph->unknown.bytes, odd);
  const std::string written = write_model(model);
  EXPECT_EQ(write_model(read_model(bytes_of(written))), written);
  EXPECT_EQ(written, number(1, 8) + text(7, odd) + odd + wrong_type);
}

TEST(Read, FieldsOfOldFunctions) {
  const ir::Model model =
      model_of(number(1, 7) + text(25, text(1, "f") + number(2, 3) + number(3, 1)));
  EXPECT_EQ(model.functions[0].since_version, 3);
  EXPECT_EQ(model.functions[0].status, 1);
}

TEST(Read, ErrorsSayWhereAndWhat) {
  const std::string deep = text(
      7, text(1, text(4, "A")) + text(1, text(5, text(1, "a") + tag(5, 2) + varint(9000) + "xx")));
  EXPECT_EQ(message_of(number(1, 8) + deep),
            "ModelProto.graph.node[1].attribute[0].t: byte 16: a length runs past the end (field "
            "5, wire type 2, length "
            "9000, 2 bytes left in its message); the file is cut off, damaged, or not what its "
            "name says");
  EXPECT_NE(message_of(number(1, 8) + tag(44, 6)).find("(field 44): byte 2: the wire type"),
            std::string::npos);
  EXPECT_NE(message_of(number(1, 8) + "\x80").find("byte 2: the tag"), std::string::npos);
  EXPECT_NE(message_of(number(1, 8) + std::string(11, '\xff')).find("byte 2: the tag"),
            std::string::npos);
  EXPECT_NE(
      message_of(number(1, 8) + tag(2, 2) + varint(~uint64_t{0})).find("producer_name: byte 2"),
      std::string::npos);
  EXPECT_NE(message_of(number(1, 8) + text(7, text(5, text(4, "abc"))))
                .find("initializer[0].float_data: byte"),
            std::string::npos);
  // A length that is cut off is none, least of all that of the field before.
  EXPECT_EQ(message_of(number(1, 8) + text(2, "abc") + tag(3, 2) + "\x80"),
            "ModelProto.producer_version: byte 7: a length is cut off or longer than 10 bytes "
            "(field 3, wire type 2); the file is cut off, damaged, or not what its name says");
}

// The type of an attribute has one.
TEST(Read, TagsOfTwoBytes) {
  const auto with = [](const std::string& attribute) {
    return number(1, 8) + text(7, text(1, text(5, attribute)));
  };
  for (const uint64_t kind : {0, 7, 0x7f, 0x80, 0x3fff, 0x12345}) {
    const ir::Model model = model_of(with(number(20, kind) + text(21, "from")));
    const ir::Attribute& attribute = model.graph->nodes[0].attributes[0];
    EXPECT_EQ(static_cast<uint64_t>(attribute.kind), kind);
    EXPECT_EQ(attribute.ref_attr_name, "from");
    EXPECT_EQ(write_model(model), with(number(20, kind) + text(21, "from")));
  }
  EXPECT_NE(message_of(with(tag(20, 0))).find("type: byte 8: a number is cut off"),
            std::string::npos);
  EXPECT_NE(message_of(with(tag(20, 0) + "\x80")).find("a number is cut off"), std::string::npos);
  EXPECT_NE(message_of(with(tag(21, 2) + "\x02" + "a")).find("a length runs past the end"),
            std::string::npos);
  EXPECT_NE(message_of(with("\xa0")).find("the tag of a field is cut off"), std::string::npos);
  EXPECT_NE(message_of(with(tag(20, 6) + "\x01")).find("the wire type is none"), std::string::npos);
  // Numbers 0 and 1, written longer than they need be.
  EXPECT_NE(message_of(std::string("\x80\x00\x08", 3)).find("the field number is outside"),
            std::string::npos);
  EXPECT_EQ(model_of(std::string("\x88\x00\x08", 3) + text(7, "")).ir_version, 8);
  const ir::Model unknown =
      model_of(number(1, 8) + number(100, 5) + text(3000, "new") + text(7, ""));
  EXPECT_EQ(unknown.unknown.bytes, number(100, 5) + text(3000, "new"));
}

TEST(Read, DeepNestingIsRefused) {
  std::string graph;
  for (int i = 0; i < 5000; ++i) graph = text(1, text(5, text(6, graph)));
  EXPECT_NE(message_of(number(1, 8) + text(7, graph)).find("more than 100 deep"),
            std::string::npos);
  std::string type;
  for (int i = 0; i < 5000; ++i) type = text(4, text(1, type));
  EXPECT_NE(message_of(number(1, 8) + text(7, text(11, text(2, type)))).find("more than 100 deep"),
            std::string::npos);
}

TEST(Read, EmptyShellsCannotFillTheMemory) {
  std::string nodes;
  for (int i = 0; i < 500'000; ++i) nodes += std::string("\x0a\x00", 2);
  EXPECT_NE(message_of(number(1, 8) + text(7, nodes)).find("empty shells"), std::string::npos);
}

TEST(Read, SaysWhatAFileThatIsNoModelSeemsToBe) {
  EXPECT_NE(message_of("").find("seems to be empty"), std::string::npos);
  EXPECT_NE(message_of("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n")
                .find("git-lfs"),
            std::string::npos);
  EXPECT_NE(message_of("<!DOCTYPE html><html>").find("HTML"), std::string::npos);
  EXPECT_NE(message_of("\n\n<html>").find("HTML"), std::string::npos);
  EXPECT_NE(message_of(std::string("PK\3\4\x14\0\0\0", 8)).find("zip"), std::string::npos);
  EXPECT_NE(message_of("<ir_version: 8, opset_import: [\"\" : 18]> g (x) => (y) {}")
                .find("textual syntax"),
            std::string::npos);
  EXPECT_NE(message_of("Hello, this is no model").find("seems to be text"), std::string::npos);
  EXPECT_NE(message_of("{\"a\": 1}").find("JSON"), std::string::npos);
  EXPECT_NE(message_of(text(1, "ONNXOPSET") + number(2, 8)).find("operator set"),
            std::string::npos);
  EXPECT_NE(message_of(text(999, "?")).find("neither a graph nor"), std::string::npos);
  EXPECT_EQ(error_of([] { read_model(std::string("/no/such/file.onnx")); }).code(),
            ErrorCode::unreadable);
  EXPECT_NE(std::string(error_of([] { read_model(std::string("/tmp")); }).what()).find("folder"),
            std::string::npos);
}

// Cutting a protobuf message between two top-level fields leaves a sound shorter message; anywhere
// else it must be noticed.
TEST(Read, EveryTruncationIsAnErrorOrASoundPrefix) {
  for (const char* name : {"small.onnx", "every_field.onnx", "types.onnx"}) {
    const Bytes file = read_file(fixture(name));
    size_t sound = 0;
    for (size_t size = 0; size < file.size(); ++size) {
      const Bytes cut =
          Bytes::copy_of(file.span().first(size));  // so that sanitizers see an overrun
      try {
        const ir::Model model = read_model(cut);
        EXPECT_EQ(write_model(model), cut.text());
        ++sound;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::unreadable);
      }
    }
    EXPECT_LT(sound, 40u) << name;
  }
}

TEST(Read, FlippedBitsNeverCrash) {
  std::mt19937 random(7);
  for (const char* name : {"small.onnx", "every_field.onnx", "types.onnx"}) {
    const Bytes file = read_file(fixture(name));
    for (int i = 0; i < 4000; ++i) {
      Bytes damaged = Bytes::copy_of(file.span());
      for (int flips = 1 + static_cast<int>(random() % 3); flips > 0; --flips) {
        damaged.mutable_data()[random() % damaged.size()] ^= std::byte{1} << (random() % 8);
      }
      try {
        const std::string once = write_model(read_model(damaged));
        EXPECT_EQ(write_model(read_model(bytes_of(once))), once);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::unreadable) << error.what();
      }
    }
  }
}

TEST(Read, LargePayloadsAreViewsOfTheFile) {
  const Bytes file = read_file(fixture("small.onnx"));
  const ir::Model model = read_model(file);
  const Bytes& raw = model.graph->initializers[0].raw_data;
  EXPECT_EQ(raw.owner(), file.owner());
  EXPECT_GE(raw.data(), file.data());
  EXPECT_LE(raw.data() + raw.size(), file.data() + file.size());
}

// A model of 5 GiB whose weights are one hole in a sparse file.
TEST(Read, LengthsBeyondFourGibibytes) {
  const test::ScratchFolder folder;
  const std::string path = folder / "large.onnx";
  const uint64_t weights = (uint64_t{5} << 30) + 3;
  const std::string tensor_head =
      number(1, weights) + number(2, 2) + text(8, "w") + tag(9, 2) + varint(weights);
  const uint64_t tensor_size = tensor_head.size() + weights;
  const std::string tensor_tag = tag(5, 2) + varint(tensor_size);
  const std::string graph_tail = text(2, "big");
  const uint64_t graph_size = tensor_tag.size() + tensor_size + graph_tail.size();
  const std::string head = number(1, 8) + tag(7, 2) + varint(graph_size) + tensor_tag + tensor_head;
  const std::string tail = graph_tail + text(8, number(2, 13));
  {
    std::ofstream file(path, std::ios::binary);
    file << head;
  }
  std::error_code problem;
  std::filesystem::resize_file(path, head.size() + weights, problem);
  if (problem) GTEST_SKIP() << "no sparse files here";
  {
    std::ofstream file(path, std::ios::binary | std::ios::app);
    file << tail;
  }
  const auto start = std::chrono::steady_clock::now();
  const ir::Model model = read_model(path);
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(model.graph->name, "big");
  EXPECT_EQ(model.opset_imports[0].version, 13);
  EXPECT_EQ(model.graph->initializers[0].raw_data.size(), weights);
  EXPECT_EQ(serialized_size(model), head.size() + weights + tail.size());
  EXPECT_EQ(to_tensor(model.graph->initializers[0]).size(), static_cast<int64_t>(weights));
  EXPECT_LT(took, std::chrono::milliseconds(200));
}

TEST(Write, AFileAppearsWholeOrNotAtAll) {
  const test::ScratchFolder folder;
  const ir::Model model = read_model(fixture("every_field.onnx"));
  const std::string path = folder / "model.onnx";
  write_model(model, path);
  EXPECT_EQ(read_file(path).text(), read_file(fixture("every_field.onnx")).text());
  const ir::Model again = read_model(path);
  write_model(again, path);  // over the file it is a view of
  EXPECT_EQ(read_file(path).text(), read_file(fixture("every_field.onnx")).text());
  EXPECT_EQ(error_of([&] { write_model(model, folder / "no/such/folder.onnx"); }).code(),
            ErrorCode::unreadable);
  EXPECT_EQ(error_of([&] { write_model(model, folder.path()); }).code(), ErrorCode::unreadable);
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path()))
    ++files;
  EXPECT_EQ(files, 1u);
}

TEST(Write, EndlessNestingIsRefused) {
  ir::Graph graph;
  for (int i = 0; i < 60; ++i) {
    ir::Graph outer;
    ir::Attribute attribute;
    attribute.g = std::make_shared<ir::Graph>(std::move(graph));
    outer.nodes.emplace_back().attributes.push_back(std::move(attribute));
    graph = std::move(outer);
  }
  ir::Model model;
  model.graph = std::move(graph);
  EXPECT_EQ(error_of([&] { write_model(model); }).code(), ErrorCode::unsupported);
}

// Every model of the onnx package's test data, where the environment says where that is.
TEST(RoundTrip, ModelsOfTheOnnxPackage) {
  const char* folder = std::getenv("SARDONYX_ONNX_DATA");
  if (folder == nullptr) GTEST_SKIP() << "SARDONYX_ONNX_DATA does not name a folder of .onnx files";
  size_t models = 0, identical = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".onnx") continue;
    const std::string path = entry.path().string();
    const Bytes file = map_file(path);
    const std::string written = write_model(read_model(file));
    EXPECT_EQ(write_model(read_model(bytes_of(written))), written) << path;
    ++models;
    identical += written == file.text();
  }
  EXPECT_GT(models, 0u);
  RecordProperty("models", static_cast<int>(models));
  RecordProperty("byte_identical", static_cast<int>(identical));
  std::printf("%zu models, %zu come back byte for byte\n", models, identical);
}

}  // namespace
}  // namespace sardonyx::wire
