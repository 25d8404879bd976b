// What fuzzing found of the tools on models.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "sardonyx/info.h"
#include "sardonyx/session.h"
#include "scratch_folder.h"
#include "session/model.h"
#include "tools/convert.h"
#include "tools/diff.h"
#include "wire/text_parse.h"
#include "wire/write.h"

namespace sardonyx {
namespace {

TEST(FuzzedTools, AModelWithABrokenTensorIsNoOtherOneThanItself) {
  ir::Model model = wire::parse_model(
      "<ir_version: 10, opset_import: [\"\" : 21]> g () => (y) <float[2] w = {1, 2}> "
      "{ y = Identity(w) }");
  model.graph->initializers[0].data_type = 0;
  EXPECT_TRUE(diff(model, model).same());
  ir::Model other = model;
  other.graph->initializers[0].float_data = {};
  other.graph->initializers[0].raw_data = {};
  EXPECT_FALSE(diff(model, other).same());
}

// Names that a body takes from around it end lives, too.
TEST(FuzzedTools, MemoryOfAModelWhoseBodiesCaptureValues) {
  const test::ScratchFolder folder;
  const std::string path = folder / "captures.onnxtxt";
  std::ofstream(path)
      << "<ir_version: 10, opset_import: [\"\" : 21]> g (bool c, float[1000] x) => (y) "
         "{ a_name_longer_than_a_short_string = Neg(x) "
         "y = If(c) <then_branch = t () => (r) { r = "
         "Neg(a_name_longer_than_a_short_string) }, else_branch = e () => (r) "
         "{ r = Abs(a_name_longer_than_a_short_string) }> }";
  const ModelInfo info = model_info(path);
  ASSERT_TRUE(info.cost);
  EXPECT_GE(info.cost->value_bytes, 8000);
}

// Nothing says what rank the tables have.
TEST(FuzzedTools, DowngradesOfRotaryEmbeddingWhoseTablesHaveNoRank) {
  const Model model = Model::from_text(
      "<ir_version: 11, opset_import: [\"\" : 23]> g (float[1, 2, 3, 4] x, float cos, float sin) "
      "=> "
      "(y) { y = RotaryEmbedding(x, cos, sin) }");
  ir::Model open = model.implementation().model;
  for (size_t i = 1; i < 3; ++i) open.graph->inputs[i].type->shape.reset();
  try {
    convert(ModelMaker::derive(model, open), {.opset = 20});
    ADD_FAILURE() << "it was carried down";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("the sizes of its tables must be known"),
              std::string::npos)
        << error.what();
  }
}

TEST(FuzzedTools, DowngradesOfAxesThatTheirInputsDoNotHave) {
  for (const char* node : {"y, z = Split<axis = -9000000, num_outputs = 2>(x)",
                           "y = LayerNormalization<axis = -9000000000000>(x, s) z = Neg(x)"}) {
    const Model model = Model::from_text(
        "<ir_version: 9, opset_import: [\"\" : 18]> g (float[4, 6] x, float[6] s) => (y, z) { " +
        std::string(node) + " }");
    try {
      convert(model, {.opset = 12});
      ADD_FAILURE() << node << " was carried down";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("its axis is none of its input's"),
                std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace sardonyx
