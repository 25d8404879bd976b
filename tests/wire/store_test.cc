#include "wire/store.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "builder.h"
#include "scratch_folder.h"
#include "wire/read.h"
#include "wire/tensor.h"
#include "wire/write.h"

namespace sardonyx::wire {
namespace {

using namespace wire_test;

ir::TensorProto numbers(const std::string& name, int64_t count) {
  Tensor tensor(ElementType::float32, {count});
  for (size_t i = 0; i < static_cast<size_t>(count); ++i)
    tensor.mutable_elements<float>()[i] = static_cast<float>(i);
  return to_proto(tensor, name);
}

// Tensors at every place of a model where one can stand.
ir::Model model_with_tensors() {
  ir::Model model;
  model.ir_version = 8;
  auto inner = std::make_shared<ir::Graph>();
  inner->initializers.push_back(numbers("inner", 500));
  const auto node = [&] {
    ir::Node made;
    made.op_type = "Constant";
    ir::Attribute& a = made.attributes.emplace_back();
    a.t = std::make_shared<ir::TensorProto>(numbers("attribute", 400));
    a.tensors = {a.t, std::make_shared<ir::TensorProto>(numbers("tiny", 1))};
    a.g = inner;
    return made;
  };
  ir::Graph graph;
  graph.initializers.push_back(numbers("first", 300));
  ir::TensorProto typed = numbers("typed", 0);
  typed.has_raw_data = false;
  typed.data_type = 7;
  typed.dims = {1000};
  typed.int64_data.assign(1000, -4);
  graph.initializers.push_back(typed);
  graph.sparse_initializers.push_back({numbers("sparse", 600), numbers("", 0), {600}, {}});
  graph.nodes.push_back(node());
  model.functions.emplace_back().nodes.push_back(node());
  model.training_info.emplace_back().algorithm = graph;
  model.graph = std::move(graph);
  return model;
}

std::vector<std::string> all_tensors(ir::Model model) {
  std::vector<std::string> found;
  change_tensors(
      model, [](const ir::TensorProto&) { return true; },
      [&](ir::TensorProto& t) {
        const Tensor elements = to_tensor(t);
        found.push_back(
            t.name + std::string(static_cast<const char*>(elements.data()), elements.byte_size()));
      });
  return found;
}

TEST(Store, DataGoesOutAndComesBack) {
  const test::ScratchFolder folder;
  const ir::Model model = model_with_tensors();
  write_model_with_data(model, folder / "m.onnx", "m.data");
  EXPECT_LT(read_file(folder / "m.onnx").size(), 4000u);
  ir::Model back = read_model(folder / "m.onnx");
  EXPECT_TRUE(back.graph->initializers[0].is_external());
  EXPECT_FALSE(back.graph->nodes[0].attributes[0].tensors[1]->is_external());  // a tiny one
  EXPECT_EQ(back.graph->initializers[1].external_data[1].value, "4096");
  ExternalData external(back.folder);
  bring_in(back, external);
  EXPECT_EQ(all_tensors(back), all_tensors(model));
  EXPECT_TRUE(back.graph->initializers[0].external_data.empty());
  write_model_with_data(back, folder / "m.onnx", "m.data");  // over the files it is a view of
  ir::Model again = read_model(folder / "m.onnx");
  ExternalData second(again.folder);
  bring_in(again, second);
  EXPECT_EQ(all_tensors(again), all_tensors(model));
  EXPECT_FALSE(
      model.graph->nodes[0].attributes[0].t->is_external());  // what was shared is unchanged
}

TEST(Store, OnlyPlainNamesBesideTheModel) {
  const test::ScratchFolder folder;
  for (const char* name : {"", "..", "a/b", "/tmp/x", "m.onnx"}) {
    EXPECT_EQ(error_of([&] {
                write_model_with_data(model_with_tensors(), folder / "m.onnx", name);
              }).code(),
              ErrorCode::bad_input)
        << name;
  }
  write_model_with_data(model_with_tensors(), folder / "m.onnx", "m.data");
  const ir::Model external = read_model(folder / "m.onnx");
  EXPECT_EQ(error_of([&] { write_model_with_data(external, folder / "n.onnx", "n.data"); }).code(),
            ErrorCode::bad_input);
}

TEST(Store, MissingDataIsNamed) {
  const test::ScratchFolder folder;
  write_model_with_data(model_with_tensors(), folder / "m.onnx", "m.data");
  std::filesystem::remove(folder / "m.data");
  ir::Model model = read_model(folder / "m.onnx");
  ExternalData external(model.folder);
  const std::string what = error_of([&] { bring_in(model, external); }).what();
  EXPECT_NE(what.find("tensor 'first': cannot open external data 'm.data'"), std::string::npos)
      << what;
}

}  // namespace
}  // namespace sardonyx::wire
