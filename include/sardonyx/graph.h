// Looking at what a model file says: graphs, nodes, attributes, tensors and types, without copies.
//
// A view is a pointer: cheap to copy, read only, valid as long as a copy of its Model lives. Views
// of one model may be used from any thread at the same time. Nothing here judges: what a file says
// comes out as it says it, also where it breaks the standard (sardonyx/check.h tells).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sardonyx/element_type.h"
#include "sardonyx/error.h"
#include "sardonyx/value.h"

// What views point to; the library's own.
namespace sardonyx::ir {
struct StringEntry;
struct OperatorSetId;
struct TypeProto;
struct Dimension;
struct ValueInfo;
struct TensorProto;
struct SparseTensorProto;
struct Attribute;
struct Node;
struct Graph;
struct Function;
struct TensorAnnotation;
}  // namespace sardonyx::ir

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

class Model;

// A list of views, for indices and range-based for.
template <class View>
class ViewList {
 public:
  class Iterator;

  ViewList() = default;
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // Throws Error (bad_input) where there is no such item.
  View operator[](size_t index) const {
    if (index >= size_) throw Error(ErrorCode::bad_input, "there is no item of this index");
    return at_(items_, index, context_);
  }
  Iterator begin() const { return Iterator(*this, 0); }
  Iterator end() const { return Iterator(*this, size_); }

 private:
  friend struct ViewMaker;
  using At = View (*)(const void* items, size_t index, const void* context);
  ViewList(const void* items, size_t size, const void* context, At at)
      : items_(items), size_(size), context_(context), at_(at) {}
  const void* items_ = nullptr;
  size_t size_ = 0;
  const void* context_ = nullptr;
  At at_ = nullptr;
};

// An input iterator, which holds its own copy of the list.
template <class View>
class ViewList<View>::Iterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = View;
  using difference_type = std::ptrdiff_t;
  using pointer = void;
  using reference = View;

  Iterator() = default;  // of no list
  View operator*() const { return list_[index_]; }
  Iterator& operator++() { return ++index_, *this; }
  Iterator operator++(int) {
    Iterator before = *this;
    ++index_;
    return before;
  }
  bool operator==(const Iterator& other) const { return index_ == other.index_; }

 private:
  friend class ViewList;
  Iterator(const ViewList& list, size_t index) : list_(list), index_(index) {}
  ViewList list_;
  size_t index_ = 0;
};

// A key and its value: metadata, where external data lies.
class EntryView {
 public:
  std::string_view key() const;
  std::string_view value() const;

 private:
  friend struct ViewMaker;
  const ir::StringEntry* entry_ = nullptr;
};

// A domain ("" or "ai.onnx" for the standard's own) and the version of its operators.
class OpsetImportView {
 public:
  std::string_view domain() const;
  int64_t version() const;

 private:
  friend struct ViewMaker;
  const ir::OperatorSetId* import_ = nullptr;
};

// A dimension of a declared shape: a number, a name, or neither.
class DimensionView {
 public:
  std::optional<int64_t> size() const;
  std::string_view name() const;        // "" where it has none
  std::string_view denotation() const;  // "DATA_BATCH" (DimensionDenotation.md)

 private:
  friend struct ViewMaker;
  const ir::Dimension* dimension_ = nullptr;
};

// TypeProto (IR.md, "Types").
class TypeView {
 public:
  enum class Kind { none, tensor, sequence, map, sparse_tensor, optional, opaque };
  Kind kind() const;
  // Of a tensor or a sparse one; the key type of a map.
  ElementType element_type() const;
  // Whether a tensor says its rank, and then its dimensions.
  bool has_shape() const;
  ViewList<DimensionView> shape() const;
  // The items of a sequence, what an optional may hold, the values of a map; else nothing.
  std::optional<TypeView> nested() const;
  std::string_view denotation() const;  // "IMAGE" (TypeDenotation.md)
  std::string to_string() const;        // "float[batch,3]", "seq(float[n])"

 private:
  friend struct ViewMaker;
  const ir::TypeProto* type_ = nullptr;
};

// A declared value: an input or output of a graph, or one in between.
class ValueInfoView {
 public:
  std::string_view name() const;
  std::optional<TypeView> type() const;
  std::string type_text() const;  // of the type, in full; "?" without one
  std::string_view doc_string() const;
  ViewList<EntryView> metadata() const;

 private:
  friend struct ViewMaker;
  const ir::ValueInfo* info_ = nullptr;
};

// TensorProto: an initializer, or the value of an attribute.
class TensorView {
 public:
  std::string_view name() const;
  ElementType element_type() const;  // may be a number that no known type has
  std::span<const int64_t> shape() const;
  std::string_view doc_string() const;
  ViewList<EntryView> metadata() const;
  bool is_external() const;  // its data is in a file of its own
  // location, offset, length … of external data.
  ViewList<EntryView> external_data() const;
  // The elements, shared with the model's file where they lie there as they are used, which they do
  // in raw_data; they live on without the model. External data is mapped now if it was not loaded
  // with the model: what a link leads to is refused. Throws Error: (invalid_model) where sizes,
  // fields and type do not fit together, (unreadable) for the file of external data.
  Tensor tensor() const;

 private:
  friend struct ViewMaker;
  const ir::TensorProto* tensor_ = nullptr;
  const std::string* folder_ = nullptr;
};

// SparseTensorProto: values and the places of what is not zero.
class SparseTensorView {
 public:
  std::string_view name() const;
  std::span<const int64_t> shape() const;
  TensorView values() const;
  TensorView indices() const;
  SparseTensor tensor() const;  // throws as TensorView::tensor

 private:
  friend struct ViewMaker;
  const ir::SparseTensorProto* tensor_ = nullptr;
  const std::string* folder_ = nullptr;
};

// Numbered as AttributeProto.AttributeType.
enum class AttributeType : int32_t {
  undefined = 0,
  float_ = 1,
  int_ = 2,
  string = 3,
  tensor = 4,
  graph = 5,
  floats = 6,
  ints = 7,
  strings = 8,
  tensors = 9,
  graphs = 10,
  sparse_tensor = 11,
  sparse_tensors = 12,
  type_proto = 13,
  type_protos = 14,
};
// "float", "ints" …, as the standard's textual syntax has them.
std::string_view name_of(AttributeType type);

class GraphView;

// An attribute of a node. What asks for a value of another type than it has throws Error
// (bad_input), which names both.
class AttributeView {
 public:
  std::string_view name() const;
  AttributeType type() const;  // for files that do not say it, of the field that is filled
  std::string_view doc_string() const;
  // Not empty inside a function: the value is that of the call's attribute of this name.
  std::string_view reference() const;

  float float_value() const;
  int64_t int_value() const;
  std::string_view string_value() const;  // any bytes
  TensorView tensor() const;
  SparseTensorView sparse_tensor() const;
  GraphView graph() const;
  TypeView type_proto() const;
  std::span<const float> floats() const;
  std::span<const int64_t> ints() const;
  std::span<const std::string> strings() const;
  ViewList<TensorView> tensors() const;
  ViewList<SparseTensorView> sparse_tensors() const;
  ViewList<GraphView> graphs() const;
  ViewList<TypeView> type_protos() const;

  // As the textual syntax writes it: "axis = 1".
  std::string to_string() const;

 private:
  friend struct ViewMaker;
  void require(AttributeType asked) const;
  const ir::Attribute* attribute_ = nullptr;
  const std::string* folder_ = nullptr;
};

class NodeView {
 public:
  std::string_view op_type() const;
  std::string_view domain() const;  // "" and "ai.onnx" are the same
  std::string_view overload() const;
  std::string_view name() const;
  std::span<const std::string> inputs() const;   // "": absent
  std::span<const std::string> outputs() const;  // "": absent
  ViewList<AttributeView> attributes() const;
  // The attribute of this name; nothing where there is none.
  std::optional<AttributeView> attribute(std::string_view name) const;
  std::string_view doc_string() const;
  ViewList<EntryView> metadata() const;
  std::string to_string() const;  // "Softmax 'attn/probs'"

 private:
  friend struct ViewMaker;
  const ir::Node* node_ = nullptr;
  const std::string* folder_ = nullptr;
};

// The parameters that a tensor of the graph is quantized with: "SCALE_TENSOR" and its like, and the
// names of the tensors that hold them.
class TensorAnnotationView {
 public:
  std::string_view tensor_name() const;
  ViewList<EntryView> quantization_parameters() const;

 private:
  friend struct ViewMaker;
  const ir::TensorAnnotation* annotation_ = nullptr;
};

// The main graph, or one inside a node (IR.md, "Graphs").
class GraphView {
 public:
  std::string_view name() const;
  std::string_view doc_string() const;
  ViewList<NodeView> nodes() const;
  ViewList<ValueInfoView> inputs() const;  // with those that initializers give a default to
  ViewList<ValueInfoView> outputs() const;
  ViewList<ValueInfoView> value_info() const;  // what is declared of values in between
  ViewList<TensorView> initializers() const;
  ViewList<SparseTensorView> sparse_initializers() const;
  ViewList<TensorAnnotationView> quantization_annotations() const;
  ViewList<EntryView> metadata() const;
  // By name, in time that grows with their number; nothing where there is none.
  std::optional<ValueInfoView> input(std::string_view name) const;
  std::optional<ValueInfoView> output(std::string_view name) const;
  std::optional<TensorView> initializer(std::string_view name) const;

 private:
  friend struct ViewMaker;
  const ir::Graph* graph_ = nullptr;
  const std::string* folder_ = nullptr;
};

// A function of the model (IR.md, "Functions").
class FunctionView {
 public:
  std::string_view name() const;
  std::string_view domain() const;
  std::string_view overload() const;
  std::string_view doc_string() const;
  std::span<const std::string> inputs() const;
  std::span<const std::string> outputs() const;
  std::span<const std::string> attributes() const;     // names of those without a default
  ViewList<AttributeView> attribute_defaults() const;  // those with one
  ViewList<NodeView> nodes() const;
  ViewList<OpsetImportView> opset_imports() const;
  ViewList<ValueInfoView> value_info() const;
  ViewList<EntryView> metadata() const;

 private:
  friend struct ViewMaker;
  const ir::Function* function_ = nullptr;
  const std::string* folder_ = nullptr;
};

// Where a node is.
struct NodePlace {
  std::string graph = {};  // "graph 'main', node 3 If 'choice', then_branch 'g1'"
  size_t index = 0;        // among the nodes of that graph, or function
  int depth = 0;           // 0: of an outermost graph, or a function
};

}  // namespace sardonyx

#pragma GCC visibility pop
