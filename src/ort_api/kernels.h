// What kernels of the caller's see of their node: its attributes, and what it is when they are
// made, when shapes are inferred and when they run.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/model.h"
#include "ort_api/handles.h"

namespace sardonyx::ort_api {

// --- Attributes (attributes.cc) -------------------------------------------------------------

struct OrtOpAttr {
  std::string name;
  // In the order of OrtOpAttrType, but for graphs, which have no value here.
  std::variant<std::monostate, int64_t, std::vector<int64_t>, float, std::vector<float>,
               std::string, std::vector<std::string>, Tensor>
      value;
};

using Attributes = std::map<std::string, OrtOpAttr, std::less<>>;
using AttributeTypes = std::map<std::string, AttributeType, std::less<>>;

// Those of `types` that the node has.
Attributes attributes_of(const CustomNode& node, const AttributeTypes& types);

// A text into a caller's buffer of `*size` bytes, which becomes what it takes with the zero at its
// end. Without a buffer only that is told.
void fill_text(std::string_view text, char* out, size_t* size);

Tensor copy_of_tensor(const CustomTensor& tensor);

// The attribute as models have it.
ir::Attribute to_proto(const OrtOpAttr& attribute);

// --- Nodes when their kernels are made (kernel_info.cc) -------------------------------------

// What a node is, for its kernel and the copies that this makes of its info.
struct KernelNode {
  struct Place {  // an input or output
    std::string name;
    bool is_there = false;
    ElementType type = ElementType::undefined;
    std::optional<std::vector<int64_t>> shape;
  };
  std::string domain, type, name;
  int32_t since = 1;
  std::vector<Place> inputs, outputs;
  Attributes attributes;
  ConfigEntries config;
  OrtLogger logger;
  // Inputs that never change are copied where the kernel asks, which it can do while it is made.
  const KernelBuilder* builder = nullptr;
  std::map<size_t, OrtValue> constants;

  KernelNode(const KernelBuilder& from, const AttributeTypes& types);
};

struct OrtKernelInfo {
  std::shared_ptr<KernelNode> node;
};

// --- Nodes when their shapes are inferred (shape_contexts.cc) -------------------------------

struct OrtShapeInferContext {
  ShapeInferenceContext& context;
  std::vector<OrtTensorTypeAndShapeInfo> inputs;
  std::vector<std::optional<OrtTensorTypeAndShapeInfo>> outputs;  // as they were set
  Attributes attributes;

  OrtShapeInferContext(ShapeInferenceContext& of, const AttributeTypes& types);
  // Whether the shapes that were set can be relied on: an input of open rank looks like a scalar.
  bool knows_all_ranks() const;
  // The sizes of an output; what neither is a number nor has the name of an input's is open, and
  // unless `says_numbers`, numbers are.
  std::vector<SymbolicDim> sizes_of(const OrtTensorTypeAndShapeInfo& output, bool says_numbers);

 private:
  std::map<std::string, SymbolicDim, std::less<>> named_;
};

// --- Nodes when they run (kernels.cc) -------------------------------------------------------

struct OrtKernelContext {
  KernelContext& run;
  const KernelNode& node;
  std::vector<std::optional<OrtValue>> inputs, outputs;  // outputs: as the kernel asks for them

  OrtKernelContext(KernelContext& of, const KernelNode& node_);
  // The output with this shape, made where the kernel has not asked for it before; null where the
  // node does not have it. Kernels may rely on one that the model does not use, too.
  OrtValue* output(size_t index, Shape shape);
  // Hands strings over, which the kernel has written to tensors of its own.
  void finish();

 private:
  std::vector<CustomTensor> made_;
};

void add_attributes(OrtApi& table);
void add_kernel_info(OrtApi& table);
void add_shape_contexts(OrtApi& table);

}  // namespace sardonyx::ort_api
