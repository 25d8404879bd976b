#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "sardonyx/error.h"
#include "sardonyx/training.h"
#include "sardonyx/training_artifacts.h"
#include "train/artifact_forms.h"
#include "wire/text_parse.h"
#include "wire/text_print.h"

namespace sardonyx::train {
namespace {

ir::Model parsed(const std::string& graph) {
  return wire::parse_model("<ir_version: 8, opset_import: [\"\" : 15, \"com.microsoft\" : 1]>\n" +
                           graph);
}

std::string nodes_of(const ir::Graph& graph) {
  std::string text;
  for (const ir::Node& node : graph.nodes) {
    text += node.domain + "." + node.op_type + "(";
    for (const std::string& input : node.inputs) text += input + " ";
    text += ") ->";
    for (const std::string& output : node.outputs) text += " " + output;
    text += "\n";
  }
  return text;
}

TEST(ArtifactForms, NormalisationsTrainAndTellTheirStatistics) {
  ir::Model model = parsed(
      "g (float[N, 2] x, float[2] s, float[2] t, float[2] m, float[2] v) => (float[N, 2] y) {\n"
      "  y, new_m, new_v, mean, deviation = com.microsoft.BatchNormInternal <training_mode = 1> "
      "(x, s, t, m, v)\n}");
  const auto updates = standardize_forward(*model.graph);
  EXPECT_EQ(nodes_of(*model.graph), ".BatchNormalization(x s t m v ) -> y new_m new_v\n");
  ASSERT_EQ(updates.size(), 2u);
  EXPECT_EQ(updates[0].state, "m");
  EXPECT_EQ(updates[0].updated, "new_m");
  EXPECT_EQ(updates[1].state, "v");
  EXPECT_EQ(updates[1].updated, "new_v");
}

TEST(ArtifactForms, AnIgnoredClassIsAnAttribute) {
  ir::Model model = parsed(
      "g (float[N, 3] x, int64[N] labels) => (float loss) <int64 ignored = {-7}> {\n"
      "  loss, log = com.microsoft.SoftmaxCrossEntropyLossInternal <reduction = \"mean\", "
      "output_type = 1> (x, labels, , ignored)\n}");
  (void)standardize_forward(*model.graph);
  EXPECT_EQ(nodes_of(*model.graph), ".SoftmaxCrossEntropyLoss(x labels ) -> loss\n");
  const ir::Node& node = model.graph->nodes[0];
  ASSERT_NE(node.find("ignore_index"), nullptr);
  EXPECT_EQ(node.find("ignore_index")->i, -7);
  EXPECT_EQ(node.find("output_type"), nullptr);
}

TEST(ArtifactForms, OutputsForTheBackwardPartGo) {
  ir::Model model = parsed(
      "g (float[N, 3] x) => (float[N, 6] y) {\n"
      "  a, mask = com.microsoft.BitmaskDropout (x)\n"
      "  b, sizes = com.microsoft.ConcatTraining <axis = 1> (a, a)\n"
      "  y = Dropout (b)\n}");
  (void)standardize_forward(*model.graph);
  EXPECT_EQ(nodes_of(*model.graph),
            ".Dropout(x ) -> a a_kept\n.Concat(a a ) -> b\n.Dropout(b ) -> y y_kept\n");
}

TEST(ArtifactForms, ReadMasksAreRefused) {
  ir::Model model = parsed(
      "g (float[N, 3] x) => (float[N, 3] y, uint32[M] mask) {\n"
      "  y, mask = com.microsoft.BitmaskDropout (x)\n}");
  try {
    (void)standardize_forward(*model.graph);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(error.what()).find("mask"), std::string::npos) << error.what();
  }
}

TEST(Artifacts, AreStepped) {
  const std::string folder = SARDONYX_SOURCE_DIR "/tests/python/artifacts/classes";
  TrainableReport report;
  const Model model = make_trainable(TrainingArtifacts::in(folder), {}, &report);
  EXPECT_EQ(report.target, "labels");
  EXPECT_EQ(report.trained.size(), 4u);
  EXPECT_EQ(report.trained_elements, 83);
  TrainingSession session(model);
  EXPECT_EQ(session.algorithm_count(), 2u);
  EXPECT_EQ(session.step_inputs(0).size(), 2u);
  ASSERT_EQ(session.outputs().size(), 1u);
  EXPECT_EQ(session.outputs()[0].name, "scores");
}

}  // namespace
}  // namespace sardonyx::train
