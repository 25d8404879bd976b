// The tree ensembles that TreeEnsemble replaced, and LabelEncoder of its first version.
#include "upgrade_support.h"

namespace sardonyx::upgrade_test {
namespace {

// One tree: x <= 0.5 to node 1, else to node 2.
const std::string stump =
    "nodes_treeids = [0, 0, 0], nodes_nodeids = [0, 1, 2], nodes_featureids = [0, 0, 0], "
    "nodes_modes = [\"BRANCH_LEQ\", \"LEAF\", \"LEAF\"], nodes_values = [0.5, 0.0, 0.0], "
    "nodes_truenodeids = [1, 0, 0], nodes_falsenodeids = [2, 0, 0]";

TEST(TreeEnsemble, OldOperatorsRunOnTheSameForest) {
  const std::vector<NamedValue> x = {{"x", Tensor::of<float>({0, 1}, {2, 1})}};
  // The left leaf has a weight for each target, the right one for the first alone.
  const auto targets = run_old(
      9,
      "g (float[2, 1] x) => (float[2, 2] y) { y = ai.onnx.ml.TreeEnsembleRegressor<" + stump +
          ", n_targets = 2, target_treeids = [0, 0, 0], target_nodeids = [1, 1, 2], target_ids = "
          "[0, 1, 0], target_weights = [1.0, 2.0, 3.0], base_values = [100.0, 200.0]>(x) }",
      x);
  expect_floats(targets[0], {101, 202, 103, 200});
  const auto classes = run_old(
      9,
      "g (float[2, 1] x) => (int64[2] label, float[2, 2] score) { label, score = "
      "ai.onnx.ml.TreeEnsembleClassifier<" +
          stump +
          ", classlabels_int64s = [7, 8], class_treeids = [0, 0, 0], class_nodeids = [1, 1, 2], "
          "class_ids = [0, 1, 1], class_weights = [0.75, 0.25, 1.0]>(x) }",
      x);
  EXPECT_EQ(values<int64_t>(classes[0]), (std::vector<int64_t>{7, 8}));
  expect_floats(classes[1], {0.75, 0.25, 0, 1});
}

std::string regressor(const std::string& nodes, const std::string& weights) {
  return "g (float[4, 1] x) => (float[4, 1] y) { y = ai.onnx.ml.TreeEnsembleRegressor<" + nodes +
         ", n_targets = 1, " + weights + ">(x) }";
}

// Two trees whose nodes come mixed, numbered as nobody would: tree 7 is x <= 1 ? 1 : x <= 2 ? 10 :
// 100, tree -3 is x <= 0 ? 1000 : 2000. A leaf's weights add up; those of inner nodes and of nodes
// that are not there count for nothing.
TEST(TreeEnsemble, NodesAndWeightsInAnyOrder) {
  const std::string nodes =
      "nodes_treeids = [7, -3, 7, 7, -3, 7, 7, -3], "
      "nodes_nodeids = [90, 5, -4, 17, 6, 3, 9223372036854775807, 4], "
      "nodes_featureids = [0, 0, 0, 0, 0, 0, 0, 0], "
      "nodes_modes = [\"BRANCH_LEQ\", \"BRANCH_LEQ\", \"LEAF\", \"BRANCH_LEQ\", \"LEAF\", "
      "\"LEAF\", \"LEAF\", \"LEAF\"], "
      "nodes_values = [1.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0], "
      "nodes_truenodeids = [3, 6, 0, -4, 0, 0, 0, 0], "
      "nodes_falsenodeids = [17, 4, 0, 9223372036854775807, 0, 0, 0, 0]";
  const std::string weights =
      "target_treeids = [-3, 7, 7, 7, -3, 7, 9, 7], "
      "target_nodeids = [4, 9223372036854775807, 3, -4, 6, 90, 3, -4], "
      "target_ids = [0, 0, 0, 0, 0, 0, 0, 0], "
      "target_weights = [2000.0, 100.0, 1.0, 4.0, 1000.0, 50000.0, 70000.0, 6.0]";
  const auto y =
      run_old(9, regressor(nodes, weights), {{"x", Tensor::of<float>({0, 1, 2, 3}, {4, 1})}});
  expect_floats(y[0], {1001, 2001, 2010, 2100});
}

TEST(TreeEnsemble, NodesThatAreThereTwiceOrNotAtAllAreRefused) {
  const std::string modes =
      ", nodes_featureids = [0, 0, 0], nodes_modes = [\"BRANCH_LEQ\", \"LEAF\", \"LEAF\"], "
      "nodes_values = [0.5, 0.0, 0.0], nodes_falsenodeids = [2, 0, 0], ";
  const std::string weights =
      "target_treeids = [4], target_nodeids = [1], target_ids = [0], target_weights = [1.0]";
  const auto message = [&](const std::string& nodes) -> std::string {
    try {
      run_old(9, regressor(nodes, weights), {{"x", Tensor::of<float>({0, 1, 2, 3}, {4, 1})}});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message("nodes_treeids = [4, 4, 4], nodes_nodeids = [0, 2, 2]" + modes +
                    "nodes_truenodeids = [2, 0, 0]")
                .find("tree 4 has two nodes of number 2"),
            std::string::npos);
  EXPECT_NE(message("nodes_treeids = [4, 4, 4], nodes_nodeids = [0, 1, 2]" + modes +
                    "nodes_truenodeids = [-9223372036854775807, 0, 0]")
                .find("tree 4 has no node -9223372036854775807"),
            std::string::npos);
}

// Version 3 brought doubles in tensors. 0.1 as a double lies below the 0.1 that a float holds.
TEST(TreeEnsemble, DoublesOfVersion3AreComparedAsDoubles) {
  const std::string tree =
      "nodes_treeids = [0, 0, 0], nodes_nodeids = [0, 1, 2], nodes_featureids = [0, 0, 0], "
      "nodes_modes = [\"BRANCH_LT\", \"LEAF\", \"LEAF\"], nodes_values_as_tensor = double[3] {0.1, "
      "0, 0}, "
      "nodes_truenodeids = [1, 0, 0], nodes_falsenodeids = [2, 0, 0]";
  const Model model = Model::from_text(
      "<ir_version: 8, opset_import: [\"\" : 15, \"ai.onnx.ml\" : 3]>\n"
      "g (double[3, 1] x) => (float[3, 1] y) { y = ai.onnx.ml.TreeEnsembleRegressor<" +
      tree +
      ", n_targets = 1, target_treeids = [0, 0], target_nodeids = [1, 2], target_ids = [0, 0], "
      "target_weights_as_tensor = double[2] {1, 2}>(x) }");
  const Tensor x = Tensor::of<double>({0.09999999999, 0.1, static_cast<double>(0.1f)}, {3, 1});
  for (const bool plain : {false, true})
    expect_floats(Session(model, {.reference = plain}).run({{"x", x}})[0].tensor(), {1, 2, 2});
}

TEST(UpgradeLabelEncoder, FirstOfEqualClassesCounts) {
  const auto places = run_old(9,
                              "g (string[3] x) => (int64[3] y) { y = ai.onnx.ml.LabelEncoder<"
                              "classes_strings = [\"a\", \"b\", \"a\"], default_int64 = -9>(x) }",
                              {{"x", Tensor::of<std::string>({"a", "b", "z"}, {3})}});
  EXPECT_EQ(values<int64_t>(places[0]), (std::vector<int64_t>{0, 1, -9}));
  const auto names = run_old(9,
                             "g (int64[3] x) => (string[3] y) { y = ai.onnx.ml.LabelEncoder<"
                             "classes_strings = [\"a\", \"b\", \"a\"]>(x) }",
                             {{"x", Tensor::of<int64_t>({2, 1, 3}, {3})}});
  EXPECT_EQ(values<std::string>(names[0]), (std::vector<std::string>{"a", "b", "_Unused"}));
}

// Both zeros are one key, as version 2 leaves open and the newest says.
TEST(UpgradeLabelEncoder, KeysAndValuesOfVersion2) {
  const auto run_2 = [](const std::string& signature, const std::string& attributes,
                        const Tensor& x) {
    const Model model =
        Model::from_text("<ir_version: 7, opset_import: [\"\" : 9, \"ai.onnx.ml\" : 2]>\ng " +
                         signature + " { y = ai.onnx.ml.LabelEncoder<" + attributes + ">(x) }");
    return Session(model).run({{"x", x}})[0].tensor();
  };
  const Tensor texts = Tensor::of<std::string>({"a", "z", "b"}, {3});
  const Tensor places = run_2("(string[3] x) => (int64[3] y)",
                              "keys_strings = [\"a\", \"b\"], values_int64s = [7, 5]", texts);
  EXPECT_EQ(values<int64_t>(places), (std::vector<int64_t>{7, -1, 5}));
  const Tensor names = run_2("(int64[3] x) => (string[3] y)",
                             "keys_int64s = [4, -2], values_strings = [\"four\", \"minus\"]",
                             Tensor::of<int64_t>({-2, 0, 4}, {3}));
  EXPECT_EQ(values<std::string>(names), (std::vector<std::string>{"minus", "_Unused", "four"}));
  const Tensor numbers =
      run_2("(float[3] x) => (float[3] y)",
            "keys_floats = [0.0, 2.0], values_floats = [5.0, 6.0], default_float = 9.0",
            Tensor::of<float>({-0.0f, 2, 3}, {3}));
  expect_floats(numbers, {5, 6, 9});
}

// Releases 1.0 and 1.1 declared these lists as one number.
TEST(UpgradeClassic, OneNumberWhereAListIsMeant) {
  const auto joined = run_old(9,
                              "g (float[2, 1] x) => (float[2, 1] y) { y = "
                              "ai.onnx.ml.FeatureVectorizer<inputdimensions = 1>(x) }",
                              {{"x", counted({2, 1})}});
  expect_floats(joined[0], {0, 1});
  const auto hot = run_old(9,
                           "g (int64[2] x) => (float[2, 1] y) { y = "
                           "ai.onnx.ml.OneHotEncoder<cats_int64s = 7, zeros = 1>(x) }",
                           {{"x", Tensor::of<int64_t>({7, 8}, {2})}});
  expect_floats(hot[0], {1, 0});
}

}  // namespace
}  // namespace sardonyx::upgrade_test
