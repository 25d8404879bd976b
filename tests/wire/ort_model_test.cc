#include "wire/ort_model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/memory_account.h"
#include "builder.h"
#include "flat_builder.h"
#include "wire/read.h"
#include "wire/tensor.h"
#include "wire/write.h"

namespace sardonyx::wire {
namespace {

using namespace wire_test;

TEST(OrtModel, SmallModelIsAsItWasMade) {
  const ir::Model model = read_model(fixture("mlp.ort"));
  EXPECT_EQ(model.ir_version, 9);
  EXPECT_EQ(ir::imported_version(model.opset_imports, ""), 17);
  EXPECT_EQ(model.producer_name, "fixtures");
  EXPECT_EQ(model.producer_version, "2");
  EXPECT_EQ(model.domain, "org.example");
  EXPECT_EQ(model.model_version, 7);
  EXPECT_EQ(model.doc_string, "two layers");
  ASSERT_EQ(model.metadata_props.size(), 1u);
  EXPECT_EQ(model.metadata_props[0].key, "author");
  EXPECT_EQ(model.metadata_props[0].value, "nobody");
  EXPECT_EQ(model.path, fixture("mlp.ort"));
  ASSERT_TRUE(model.graph);
  const ir::Graph& graph = *model.graph;
  EXPECT_EQ(graph.name, "main");
  EXPECT_EQ(graph.doc_string, "the graph");
  ASSERT_EQ(graph.nodes.size(), 3u);
  EXPECT_EQ(ir::describe(graph.nodes[0]), "Gemm 'first'");
  EXPECT_EQ(graph.nodes[0].doc_string, "a product");
  EXPECT_EQ(graph.nodes[0].inputs, (std::vector<std::string>{"x", "w", "b"}));
  EXPECT_EQ(graph.nodes[0].find("alpha")->f, 0.5f);
  EXPECT_EQ(graph.nodes[2].find("axis")->i, -1);
  ASSERT_EQ(graph.inputs.size(), 2u);
  EXPECT_EQ(graph.inputs[0].type->shape->dims[0].param, "batch");
  EXPECT_EQ(graph.inputs[0].type->shape->dims[1].value, 2);
  EXPECT_EQ(graph.outputs[0].name, "y");
  // Values of the nodes, not what inputs, outputs and initializers say already.
  ASSERT_EQ(graph.value_info.size(), 2u);
  EXPECT_EQ(graph.value_info[0].name, "h");
  ASSERT_EQ(graph.initializers.size(), 2u);
  const auto w =
      std::ranges::find(graph.initializers, "w", [](const auto& tensor) { return tensor.name; });
  EXPECT_EQ(to_tensor(*w).shape(), (Shape{2, 3}));
  EXPECT_EQ(to_tensor(*w).elements<float>()[5], 6.0f);
}

TEST(OrtModel, RawDataAreViewsOfTheFile) {
  const Bytes file = read_file(fixture("mlp.ort"));
  const ir::Model model = read_model(file);
  for (const ir::TensorProto& tensor : model.graph->initializers) {
    EXPECT_EQ(tensor.raw_data.owner(), file.owner());
    EXPECT_GE(tensor.raw_data.data(), file.data());
    EXPECT_LE(tensor.raw_data.data() + tensor.raw_data.size(), file.data() + file.size());
  }
}

TEST(OrtModel, IsReadAtAnyAlignment) {
  const Bytes file = read_file(fixture("types.ort"));
  const std::string first = write_model(read_model(file));
  std::string moved = "?" + std::string(file.text());
  const Bytes bytes(nullptr, reinterpret_cast<const std::byte*>(moved.data()) + 1, file.size());
  EXPECT_EQ(write_model(read_model(bytes)), first);
}

TEST(OrtModel, BecomesAModelInTheBinaryForm) {
  for (const char* name : {"mlp.ort", "bodies.ort", "types.ort", "sparse.ort", "optimized.ort"}) {
    const std::string first = write_model(read_model(fixture(name)));
    EXPECT_EQ(write_model(read_model(bytes_of(first))), first) << name;
  }
}

TEST(OrtModel, GraphsInAttributesAndTheOrderOfNodes) {
  const ir::Model model = read_model(fixture("bodies.ort"));
  const auto& nodes = model.graph->nodes;
  ASSERT_EQ(nodes.size(), 3u);
  EXPECT_EQ(nodes[0].op_type, "Add");  // the last one in the file, which bodies read
  EXPECT_EQ(nodes[1].op_type, "If");
  EXPECT_EQ(nodes[2].op_type, "Loop");
  EXPECT_EQ(nodes[2].inputs[1], "");
  const ir::Attribute* body = nodes[2].find("body");
  ASSERT_TRUE(body->g);
  EXPECT_EQ(body->g->name, "body");
  EXPECT_EQ(body->g->inputs.size(), 3u);
  EXPECT_EQ(body->g->outputs.size(), 3u);
  EXPECT_EQ(body->g->nodes[1].inputs, (std::vector<std::string>{"s", "doubled"}));
  EXPECT_EQ(model.model_version, 0);  // the file has ONNX Runtime's number for none
}

TEST(OrtModel, NodesOfTheOptimiser) {
  const ir::Model model = read_model(fixture("optimized.ort"));
  ASSERT_EQ(model.graph->nodes.size(), 2u);
  EXPECT_EQ(model.graph->nodes[0].op_type, "FusedConv");
  EXPECT_EQ(model.graph->nodes[0].domain, "com.microsoft");
  EXPECT_EQ(model.graph->nodes[0].find("activation")->s, "Relu");
}

TEST(OrtModel, TypesAndElements) {
  using Kind = ir::TypeProto::Kind;
  const ir::Model model = read_model(fixture("types.ort"));
  const ir::Graph& graph = *model.graph;
  EXPECT_EQ(graph.inputs[0].type->kind, Kind::sequence);
  EXPECT_EQ(graph.inputs[0].type->nested->shape->dims[0].param, "n");
  EXPECT_FALSE(graph.inputs[0].type->nested->shape->dims[1].value);
  EXPECT_EQ(graph.inputs[1].type->kind, Kind::map);
  EXPECT_EQ(graph.inputs[1].type->element_type(), ElementType::string);
  EXPECT_EQ(graph.inputs[1].type->nested->element_type(), ElementType::float32);
  size_t numbers = 0;
  for (const ir::TensorProto& tensor : graph.initializers) {
    if (tensor.name == "text") {
      EXPECT_EQ(tensor.string_data,
                (std::vector<std::string>{"one", "a text that is long enough", "\xff\xfe"}));
      EXPECT_FALSE(tensor.has_raw_data);
    } else if (tensor.name != "fixed") {
      EXPECT_EQ(to_tensor(tensor).shape(), (Shape{3})) << tensor.name;
      ++numbers;
    }
  }
  EXPECT_EQ(numbers, 11u);
  const ir::Attribute* value = graph.nodes.back().find("value");
  ASSERT_TRUE(value != nullptr && value->t != nullptr);
  EXPECT_EQ(to_tensor(*value->t).elements<int32_t>()[0], 2);
}

TEST(OrtModel, IndicesOfSparseTensorsAreInt64) {
  const ir::Model model = read_model(fixture("sparse.ort"));
  ASSERT_EQ(model.graph->sparse_initializers.size(), 1u);
  const ir::SparseTensorProto& sparse = model.graph->sparse_initializers[0];
  EXPECT_EQ(sparse.values.name, "s");
  EXPECT_EQ(sparse.dims, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(sparse.indices.element_type(), ElementType::int64);
  EXPECT_EQ(sparse.indices.int64_data, (std::vector<int64_t>{1, 5}));
}

TEST(OrtModel, IsToldFromMessagesOfProtobuf) {
  EXPECT_TRUE(is_ort_model(read_file(fixture("mlp.ort")).text()));
  EXPECT_FALSE(is_ort_model(read_file(fixture("small.onnx")).text()));
  // ir_version 8, then a producer with that name: as an offset this is 0x08120808.
  std::string bytes = number(1, 8) + text(2, "ORTModel");
  bytes += text(8, number(2, 17)) + text(7, text(2, "g"));
  ASSERT_EQ(bytes.substr(4, 4), "ORTM");
  EXPECT_FALSE(is_ort_model(bytes));
  EXPECT_EQ(read_model(bytes_of(bytes)).producer_name, "ORTModel");
}

// Each file, cut off at each byte and with each byte changed, is an error or a model.
TEST(OrtModel, DamagedFiles) {
  const auto attempt = [](const std::string& bytes) {
    try {
      write_model(read_model(bytes_of(bytes)));
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::internal) << error.what();
    }
  };
  for (const char* name : {"mlp.ort", "bodies.ort", "types.ort", "sparse.ort"}) {
    const std::string whole(read_file(fixture(name)).text());
    for (size_t at = 0; at < whole.size(); ++at) {
      attempt(whole.substr(0, at));
      std::string damaged = whole;
      for (const int change : {4, 0xff}) {
        damaged[at] = static_cast<char>(whole[at] ^ change);
        attempt(damaged);
      }
    }
  }
}

// A file with a model and a graph that has these fields.
struct Handmade : FlatBuilder {
  explicit Handmade(std::initializer_list<int> graph_fields, std::string_view version = "6")
      : FlatBuilder("ORTM") {
    const size_t session = table({0, 1});
    link(0, session);
    link(slot(session, 0), text(version));
    const size_t model = table({0, 7});
    link(slot(session, 1), model);
    put(slot(model, 0), int64_t{8});
    graph = table(graph_fields);
    link(slot(model, 7), graph);
  }
  // A list of one element, an offset that is returned.
  size_t one(size_t table, int field) {
    const size_t made = list(1);
    link(slot(table, field), made);
    return made + 4;
  }
  std::string message() const {
    return error_of([&] { read_model(bytes_of(bytes())); }).what();
  }
  size_t graph;
};

TEST(OrtModel, OtherVersionsAreRefused) {
  EXPECT_EQ(read_model(bytes_of(Handmade({}).bytes())).ir_version, 8);
  EXPECT_EQ(read_model(bytes_of(Handmade({}, "1").bytes())).ir_version, 8);
  for (const char* version : {"", "0", "7", "12"})
    EXPECT_NE(Handmade({}, version).message().find("versions 1 to 6 are read"), std::string::npos);
}

TEST(OrtModel, WhatOnlyOnnxRuntimeCanRunIsRefused) {
  Handmade external({0});
  const size_t at = external.one(external.graph, 0);
  external.link(at, external.table({0, 6}));
  EXPECT_NE(external.message().find("initializer 0: its data is in another file, from byte 0 on"),
            std::string::npos)
      << external.message();

  Handmade fused({2});
  const size_t from = fused.one(fused.graph, 2);
  const size_t node = fused.table({0, 6, 7});
  fused.link(from, node);
  fused.put(fused.slot(node, 6), int32_t{1});
  fused.link(fused.slot(node, 0), fused.text("n"));
  fused.link(fused.slot(node, 7), fused.text("NPU"));
  EXPECT_NE(fused.message().find("graph, node 0 'n': it was compiled for NPU"), std::string::npos)
      << fused.message();

  Handmade odd({2});
  const size_t with = odd.one(odd.graph, 2);
  const size_t holder = odd.table({10});
  odd.link(with, holder);
  const size_t place = odd.one(holder, 10);
  const size_t attribute = odd.table({0, 2});
  odd.link(place, attribute);
  odd.put(odd.slot(attribute, 2), int32_t{11});
  odd.link(odd.slot(attribute, 0), odd.text("axis"));
  EXPECT_NE(odd.message().find("graph, node 0, attribute 0 'axis': attributes of type 11"),
            std::string::npos)
      << odd.message();
}

// Each graph holds the next one twice.
TEST(OrtModel, SharedTablesDoNotMultiply) {
  Handmade file({2});
  size_t from = file.one(file.graph, 2);
  for (int level = 0; level < 25; ++level) {
    const size_t node = file.table({10});
    file.link(from, node);
    const size_t attributes = file.list(2);
    file.link(file.slot(node, 10), attributes);
    const size_t first = file.table({2, 7}), second = file.table({2, 7});
    file.link(attributes + 4, first);
    file.link(attributes + 8, second);
    const size_t graph = file.table({2});
    for (const size_t attribute : {first, second}) {
      file.put(file.slot(attribute, 2), int32_t{5});
      file.link(file.slot(attribute, 7), graph);
    }
    from = file.one(graph, 2);
  }
  file.link(from, file.table({}));
  EXPECT_NE(file.message().find("its parts overlap"), std::string::npos) << file.message();
}

TEST(OrtModel, GraphsAndTypesThatNestTooDeep) {
  Handmade graphs({2});
  size_t from = graphs.one(graphs.graph, 2);
  for (int level = 0; level < 200; ++level) {
    const size_t node = graphs.table({10});
    graphs.link(from, node);
    const size_t at = graphs.one(node, 10);
    const size_t attribute = graphs.table({2, 7});
    graphs.link(at, attribute);
    graphs.put(graphs.slot(attribute, 2), int32_t{5});
    const size_t graph = graphs.table({2});
    graphs.link(graphs.slot(attribute, 7), graph);
    from = graphs.one(graph, 2);
  }
  graphs.link(from, graphs.table({}));
  EXPECT_NE(graphs.message().find("nested too deep"), std::string::npos);

  Handmade types({1});
  const size_t place = types.one(types.graph, 1);
  const size_t value = types.table({2});
  types.link(place, value);
  size_t at = types.slot(value, 2);
  for (int level = 0; level < 100; ++level) {
    const size_t type = types.table({1, 2});
    types.link(at, type);
    types.put(types.slot(type, 1), uint8_t{2});
    const size_t sequence = types.table({0});
    types.link(types.slot(type, 2), sequence);
    at = types.slot(sequence, 0);
  }
  types.link(at, types.table({}));
  EXPECT_NE(types.message().find("nested too deep"), std::string::npos);
}

// One text, which a node has 10,000 times in one of its fields.
Handmade with_a_text_that_is_shared(size_t bytes, int field) {
  Handmade file({2});
  const size_t from = file.one(file.graph, 2);
  const size_t node = file.table({field});
  file.link(from, node);
  constexpr size_t count = 10'000;
  const size_t inputs = file.list(count);
  file.link(file.slot(node, field), inputs);
  const size_t name = file.text(std::string(bytes, 'x'));
  for (size_t i = 0; i < count; ++i) file.link(inputs + 4 + 4 * i, name);
  return file;
}

// Inputs, and what bodies read.
TEST(OrtModel, SharedTextsDoNotTakeForEver) {
  for (const int field : {8, 12}) {
    const std::string message = with_a_text_that_is_shared(size_t{1} << 20, field).message();
    EXPECT_NE(message.find("the same long texts"), std::string::npos) << message;
  }
}

TEST(OrtModel, SharedTextsDoNotFillTheMemory) {
  const Handmade file = with_a_text_that_is_shared(1000, 8);
  EXPECT_THROW(within_limit(std::make_shared<MemoryAccount>(4 << 20),
                            [&] { return read_model(bytes_of(file.bytes())); }),
               Error);
  try {
    within_limit(std::make_shared<MemoryAccount>(4 << 20),
                 [&] { return read_model(bytes_of(file.bytes())); });
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
    EXPECT_EQ(error.location(), "graph, node 0");
  }
}

}  // namespace
}  // namespace sardonyx::wire
