// Constant matrices of few bits with scales by blocks: products give what plain evaluation gives.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/checked.h"
#include "sardonyx/session.h"
#include "wire/text_parse.h"
#include "wire/write.h"

namespace sardonyx {
namespace {

struct Matrix {
  ElementType type;
  int64_t rows, columns, block;
  bool zeros;
};

std::mt19937 numbers(7);

void add_constant(ir::Graph& graph, const std::string& name, ElementType type, Shape dims,
                  std::span<const std::byte> bytes) {
  ir::TensorProto& tensor = graph.initializers.emplace_back();
  tensor.name = name, tensor.dims = std::move(dims);
  tensor.data_type = static_cast<int32_t>(type);
  tensor.has_raw_data = true, tensor.raw_data = Bytes::copy_of(bytes);
}

void add_drawn(ir::Graph& graph, const std::string& name, ElementType type, Shape dims) {
  std::vector<std::byte> bytes(static_cast<size_t>(byte_size(type, count_of(dims))));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(numbers());
  if (const int64_t unused = std::ssize(bytes) * 8 - count_of(dims) * bit_width(type); unused > 0)
    bytes.back() &= static_cast<std::byte>(255 >> unused);
  add_constant(graph, name, type, std::move(dims), bytes);
}

// x times the matrix; all sums are whole numbers times a power of two, which floats hold.
Model product_with(const Matrix& m) {
  ir::Model model = wire::parse_model(fmt::format(
      R"(<ir_version: 11, opset_import: ["" : 23]>
    g (float[n, {}] x) => (float[n, {}] y) {{
      d = DequantizeLinear<axis = 0, block_size = {}> (w, s{})
      y = MatMul (x, d)
    }})",
      m.rows, m.columns, m.block, m.zeros ? ", z" : ""));
  const int64_t blocks = (m.rows + m.block - 1) / m.block;
  std::vector<float> scales(static_cast<size_t>(blocks * m.columns));
  for (float& scale : scales) scale = numbers() % 2 == 0 ? 0.5f : 0.25f;
  add_drawn(*model.graph, "w", m.type, {m.rows, m.columns});
  add_constant(*model.graph, "s", ElementType::float32, {blocks, m.columns},
               std::as_bytes(std::span(scales)));
  if (m.zeros) add_drawn(*model.graph, "z", m.type, {blocks, m.columns});
  const std::string bytes = wire::write_model(model);
  return {bytes.data(), bytes.size()};
}

TEST(BlockedWeights, GiveWhatPlainEvaluationGives) {
  std::vector<Matrix> matrices;
  for (const ElementType type : {ElementType::int4, ElementType::uint4, ElementType::int8,
                                 ElementType::uint8, ElementType::int2, ElementType::uint2}) {
    for (const bool zeros : {false, true}) {
      matrices.push_back({type, 16, 2, 16, zeros});
      matrices.push_back({type, 48, 34, 16, zeros});
      matrices.push_back({type, 64, 35, 32, zeros});
      matrices.push_back({type, 128, 300, 32, zeros});
    }
  }
  for (const Matrix& m : matrices) {
    SCOPED_TRACE(fmt::format("{} {}x{} by {}{}", name_of(m.type), m.rows, m.columns, m.block,
                             m.zeros ? ", zeros" : ""));
    const Model model = product_with(m);
    Tensor x(ElementType::float32, {3, m.rows});
    for (float& value : x.mutable_elements<float>())
      value = static_cast<float>(static_cast<int>(numbers() % 9) - 4);
    const Value planned = Session(model).run({{"x", x}})[0];
    const Value plain = Session(model, {.reference = true}).run({{"x", x}})[0];
    const auto a = planned.tensor().elements<float>(), b = plain.tensor().elements<float>();
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
  }
}

}  // namespace
}  // namespace sardonyx
