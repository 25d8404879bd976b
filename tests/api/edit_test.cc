// sardonyx/edit.h.
#include "sardonyx/edit.h"

#include <array>

#include "api/support.h"
#include "sardonyx/check.h"
#include "sardonyx/session.h"

namespace sardonyx {
namespace {

using test::example;
using test::expect_error;

std::vector<Value> run(const Model& model) {
  const Session session(model);
  return session.run(
      {{"x", Tensor::of<float>({1, 1, 1}, {1, 3})}, {"choice", Tensor::scalar(true)}});
}

TEST(ModelEditor, ChangesTheHeader) {
  const Model model = example();
  ModelEditor editor(model);
  editor.set_ir_version(10)
      .set_producer("editor", "9")
      .set_domain("com.example")
      .set_model_version(8)
      .set_doc_string("changed")
      .set_metadata("license", "BSD")
      .set_metadata("new", "value")
      .remove_metadata("owner")
      .set_opset_import("ai.onnx", 18)
      .set_opset_import("ai.onnx.ml", 3)
      .set_graph_name("renamed");
  const Model edited = editor.finish();
  EXPECT_EQ(edited.ir_version(), 10);
  EXPECT_EQ(edited.producer_name(), "editor");
  EXPECT_EQ(edited.producer_version(), "9");
  EXPECT_EQ(edited.domain(), "com.example");
  EXPECT_EQ(edited.model_version(), 8);
  EXPECT_EQ(edited.doc_string(), "changed");
  EXPECT_EQ(edited.metadata("license"), "BSD");
  EXPECT_EQ(edited.metadata("new"), "value");
  EXPECT_EQ(edited.metadata("owner"), std::nullopt);
  EXPECT_EQ(edited.opset(), 18);
  EXPECT_EQ(edited.opset("ai.onnx.ml"), 3);
  EXPECT_EQ(edited.graph().name(), "renamed");
  // The model it was made of is as it was, and so is what was finished before.
  EXPECT_EQ(model.to_text(), example().to_text());
  editor.set_doc_string("once more");
  EXPECT_EQ(edited.doc_string(), "changed");
}

TEST(ModelEditor, ReplacesInitializers) {
  const Model model = example();
  EXPECT_EQ(run(model)[0].tensor().elements<float>()[0], 1 + 3 + 5 + 15);
  ModelEditor editor(model);
  {
    std::array<float, 2> memory = {1, 2};  // the caller's, gone before the model runs
    editor.replace_initializer(
        "b", Tensor::view(ElementType::float32, {2}, memory.data(), sizeof memory));
    memory = {7, 7};
  }
  EXPECT_EQ(run(editor.finish())[0].tensor().elements<float>()[0], 1 + 3 + 5 + 1.5f);
  expect_error(ErrorCode::bad_input, "no initializer 'none'",
               [&] { editor.replace_initializer("none", Tensor::scalar(1.0f)); });
  expect_error(ErrorCode::bad_input, "no tensor",
               [&] { editor.replace_initializer("b", Tensor()); });
}

TEST(ModelEditor, TurnsInitializersIntoInputsAndBack) {
  ModelEditor editor(example());
  expect_error(ErrorCode::bad_input, "is read", [&] { editor.remove_initializer("b"); });
  editor.add_input("b", "float[2]");
  const Model with_default = editor.finish();
  EXPECT_TRUE(Session(with_default).inputs().back().optional);
  editor.remove_initializer("b");
  const Model without = editor.finish();
  EXPECT_FALSE(Session(without).inputs().back().optional);
  expect_error(ErrorCode::bad_input, "is read", [&] { editor.remove_input("b"); });
  editor.add_initializer("b", Tensor::of<float>({0, 0}, {2})).remove_input("b");
  EXPECT_EQ(run(editor.finish())[0].tensor().elements<float>()[0], 9);
  expect_error(ErrorCode::bad_input, "already",
               [&] { editor.add_initializer("xw", Tensor::scalar(1.0f)); });
  expect_error(ErrorCode::bad_input, "no initializer", [&] { editor.remove_initializer("x"); });
}

TEST(ModelEditor, AddsAndRemovesInputsAndOutputs) {
  ModelEditor editor(example());
  editor.add_output("xw").add_output("b", "float[2]").add_input("spare", "seq(int64[n])");
  const Model edited = editor.finish();
  EXPECT_EQ(edited.graph().output("xw")->type_text(), "float[batch,2]");  // inferred
  const auto outputs = run(editor.remove_input("spare").finish());
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_EQ(outputs[1].tensor().elements<float>()[0], 9);
  EXPECT_EQ(outputs[2].tensor().elements<float>()[1], 20);
  editor.remove_output("xw");
  EXPECT_FALSE(editor.finish().graph().output("xw"));
  expect_error(ErrorCode::bad_input, "no output", [&] { editor.remove_output("xw"); });
  expect_error(ErrorCode::bad_input, "no value 'none'", [&] { editor.add_output("none"); });
  expect_error(ErrorCode::bad_input, "already", [&] { editor.add_output("y"); });
  expect_error(ErrorCode::bad_input, "already", [&] { editor.add_input("x", "float[1]"); });
  expect_error(ErrorCode::bad_input, "a node makes 'xw'",
               [&] { editor.add_input("xw", "float[1]"); });
  expect_error(ErrorCode::bad_input, "no type", [&] { editor.add_input("z", "flot[1]"); });
  expect_error(ErrorCode::bad_input, "empty", [&] { editor.add_input("", "float[1]"); });
  expect_error(ErrorCode::bad_input, "no input", [&] { editor.remove_input("none"); });
}

TEST(ModelEditor, ChangesTypesAndDimensions) {
  ModelEditor editor(example());
  editor.set_dimension("x", 0, 4).set_dimension("y", 0, "rows").set_type("xw", "float[4,2]");
  const Model edited = editor.finish();
  EXPECT_EQ(edited.graph().input("x")->type_text(), "float[4,3]");
  EXPECT_EQ(edited.graph().output("y")->type_text(), "float[rows,2]");
  EXPECT_EQ(edited.graph().value_info()[0].type_text(), "float[4,2]");
  EXPECT_FALSE(check_model(edited).has_errors());
  editor.set_dimension("x", 0, "").set_type("x", "double[n,3]");
  EXPECT_EQ(editor.finish().graph().input("x")->type_text(), "double[n,3]");
  expect_error(ErrorCode::bad_input, "no dimension 2", [&] { editor.set_dimension("x", 2, 1); });
  expect_error(ErrorCode::bad_input, "no dimension -1", [&] { editor.set_dimension("x", -1, 1); });
  expect_error(ErrorCode::bad_input, "size -1", [&] { editor.set_dimension("x", 0, -1); });
  expect_error(ErrorCode::bad_input, "no input or output",
               [&] { editor.set_dimension("xw", 0, "n"); });
  expect_error(ErrorCode::bad_input, "no value", [&] { editor.set_type("none", "float[1]"); });
}

TEST(ModelEditor, SaysWhatInputsAndOutputsStandFor) {
  ModelEditor editor(example());
  editor.set_denotation("x", "TENSOR").set_denotation("x", 0, "DATA_BATCH");
  editor.set_denotation("y", 1, "DATA_CHANNEL");
  const Model edited = Model::from_text(editor.finish().to_text());
  const TypeView x = *edited.graph().input("x")->type();
  EXPECT_EQ(x.denotation(), "TENSOR");
  EXPECT_EQ(x.shape()[0].denotation(), "DATA_BATCH");
  EXPECT_EQ(x.shape()[1].denotation(), "");
  EXPECT_EQ(edited.graph().output("y")->type()->shape()[1].denotation(), "DATA_CHANNEL");
  editor.set_denotation("x", "").set_denotation("x", 0, "");
  EXPECT_EQ(editor.set_denotation("y", 1, "").finish().to_text(), example().to_text());
  expect_error(ErrorCode::bad_input, "no input or output 'xw'",
               [&] { editor.set_denotation("xw", "IMAGE"); });
  expect_error(ErrorCode::bad_input, "no dimension 7",
               [&] { editor.set_denotation("x", 7, "DATA_BATCH"); });
  editor.add_input("spare", "seq(int64[n])");
  expect_error(ErrorCode::bad_input, "declares no shape",
               [&] { editor.set_denotation("spare", 0, "DATA_BATCH"); });
}

TEST(ModelEditor, ChangesWhatIsInputAndOutputInBothPlaces) {
  ModelEditor editor(Model::from_text(
      "<ir_version: 9, opset_import: [\"\": 17]> g (float[n] x) => (float[n] x) { }"));
  editor.set_dimension("x", 0, 3).set_denotation("x", "TENSOR");
  const Model edited = editor.finish();
  EXPECT_EQ(edited.graph().input("x")->type_text(), "float[3]");
  EXPECT_EQ(edited.graph().output("x")->type_text(), "float[3]");
  EXPECT_EQ(edited.graph().output("x")->type()->denotation(), "TENSOR");
}

TEST(ModelEditor, RefusesWhatCanNotBe) {
  ModelEditor editor(example());
  expect_error(ErrorCode::bad_input, "no metadata", [&] { editor.remove_metadata("none"); });
  expect_error(ErrorCode::bad_input, "empty", [&] { editor.set_metadata("", "x"); });
  expect_error(ErrorCode::bad_input, "begin at 1", [&] { editor.set_opset_import("", 0); });
  EXPECT_EQ(editor.finish().to_text(), example().to_text());
  const std::string bytes = "\x08\x09";
  ModelEditor bare((Model(bytes.data(), bytes.size())));
  expect_error(ErrorCode::invalid_model, "no graph", [&] { bare.set_graph_name("g"); });
  expect_error(ErrorCode::invalid_model, "no graph", [&] { bare.add_input("x", "float[1]"); });
}

TEST(ModelEditor, CountsWhatItMakesWhileThatLives) {
  const Model model = Model::from_text(test::example_text, {.memory_limit = 1'000'000});
  for (int i = 0; i < 10'000; ++i) {  // what is gone does not count any more
    ModelEditor editor(model);
    (void)editor.finish();
  }
  std::vector<Model> kept;
  expect_error(ErrorCode::out_of_memory, "memory_limit", [&] {
    for (int i = 0; i < 10'000; ++i) kept.push_back(ModelEditor(model).finish());
  });
  EXPECT_GT(kept.size(), 10u);
}

}  // namespace
}  // namespace sardonyx
