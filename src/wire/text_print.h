// Writes ONNX's textual syntax (docs/text_syntax.md). The text is what onnx.parser reads, too,
// but for what only our additions can say; of those, the ones without effect on what a model
// computes stand on "#@" lines, which are comments to other readers.
//
// parse(print(x)) equals x but for: unknown fields, which of its fields a tensor is stored in,
// payloads of NaNs, and fields of attributes other than the one of their kind.
#pragma once

#include <cstddef>
#include <string>

#include "ir/model.h"
#include "wire/sink.h"

namespace sardonyx::wire {

struct PrintOptions {
  // Tensors with more elements than this are cut: "{1, 2, 3, ...}" shows the first few. What was
  // cut cannot be parsed again. Any number of elements where it is npos.
  size_t max_elements = static_cast<size_t>(-1);
  // doc_string, metadata, quantization annotations, sharding, training graphs: the "#@" lines.
  bool annotations = true;
};

std::string print(const ir::Model& model, const PrintOptions& options = {});
// The same piece by piece, ending in a new line: the memory used does not grow with the weights.
void print(const ir::Model& model, Sink& sink, const PrintOptions& options = {});
std::string print(const ir::Graph& graph, const PrintOptions& options = {});
std::string print(const ir::Function& function, const PrintOptions& options = {});
std::string print(const ir::Node& node, const PrintOptions& options = {});
std::string print(const ir::Attribute& attribute, const PrintOptions& options = {});
std::string print(const ir::TypeProto& type);
std::string print(const ir::TensorProto& tensor, const PrintOptions& options = {});

}  // namespace sardonyx::wire
