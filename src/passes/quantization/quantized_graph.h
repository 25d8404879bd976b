// A graph as its quantised parts are seen: bytes with scales and zero points.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/node_values.h"
#include "passes/graph_index.h"

namespace sardonyx::passes {

inline bool is_byte(ElementType type) {
  return type == ElementType::int8 || type == ElementType::uint8;
}

// A value of bytes with its scale and zero point ("": 0).
struct Quantized {
  std::string value, scale, zero;
  ElementType type = ElementType::undefined;
  int64_t axis = 0;
};

class QuantizedGraph {
 public:
  explicit QuantizedGraph(GraphIndex& of) : index(of) {}

  GraphIndex& index;

  // --- What is known of values

  ElementType element(const std::string& value) const;  // undefined: no tensor, or not known
  std::optional<int64_t> count(const std::string& value) const;  // of elements
  std::optional<size_t> rank(const std::string& value) const;
  bool is_one(const std::string& value) const { return count(value) == 1; }
  // A constant of nothing but zeros; "" is one.
  bool is_zero(const std::string& value) const;
  // A constant, or a dequantised one, with a value for each column of the product, or one for all.
  bool is_column_vector(const std::string& value, const std::string& product) const;

  // Whether arithmetic on bytes gives what arithmetic on what they stand for does, as far as scales
  // decide it: they are positive, and nothing overflows, vanishes or is no number. One that only
  // the run knows is taken to be so.
  bool is_ordinary(const std::string& scale) const;

  // Whether int32 surely holds sums of so many products of bytes, less their zero points, with
  // these weights; "" is a zero point of 0.
  bool sums_fit(int64_t terms, const std::string& weights, const std::string& zero) const;

  // What DequantizeLinear made this value from: bytes, by one scale or one along an axis.
  std::optional<Quantized> dequantized(const std::string& value) const;
  std::optional<Quantized> dequantized_by_one(const std::string& value) const;
  // What QuantizeLinear makes of its input, where that is bytes by one scale.
  std::optional<Quantized> quantized(const ir::Node& node) const;
  bool same_parameters(const Quantized& a, const Quantized& b) const;

  // --- Rewriting

  // The zero point, a new initializer where it has none.
  std::string zero_of(const Quantized& q);
  // The node that makes a value that nobody else uses; size() where there is none.
  size_t sole_producer(const std::string& value) const;
  // Relu before QuantizeLinear changes nothing where 0 is the least byte. Returns the value before.
  std::string before_relu(const Quantized& to, std::vector<size_t>& covered) const;
  // `covered`: what else it does the work of, and what makes `dequantized`; the last of the first
  // gives the name.
  void replace(size_t at, ir::Node node, std::vector<size_t> covered,
               const std::vector<std::string>& dequantized = {});

 private:
  std::optional<int32_t> zero_point(const std::string& value) const;
};

}  // namespace sardonyx::passes
