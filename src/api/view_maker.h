// From the messages of a model to views of them.
#pragma once

#include <string>
#include <vector>

#include "ir/model.h"
#include "sardonyx/graph.h"

namespace sardonyx {

// `folder` is where external data of tensors lies; it lives as long as the model.
struct ViewMaker {
  static EntryView view(const ir::StringEntry& entry, const std::string* = nullptr) {
    EntryView made;
    made.entry_ = &entry;
    return made;
  }
  static OpsetImportView view(const ir::OperatorSetId& import, const std::string* = nullptr) {
    OpsetImportView made;
    made.import_ = &import;
    return made;
  }
  static DimensionView view(const ir::Dimension& dimension, const std::string* = nullptr) {
    DimensionView made;
    made.dimension_ = &dimension;
    return made;
  }
  static TypeView view(const ir::TypeProto& type, const std::string* = nullptr) {
    TypeView made;
    made.type_ = &type;
    return made;
  }
  static ValueInfoView view(const ir::ValueInfo& info, const std::string* = nullptr) {
    ValueInfoView made;
    made.info_ = &info;
    return made;
  }
  static TensorAnnotationView view(const ir::TensorAnnotation& annotation,
                                   const std::string* = nullptr) {
    TensorAnnotationView made;
    made.annotation_ = &annotation;
    return made;
  }
  static TensorView view(const ir::TensorProto& tensor, const std::string* folder) {
    TensorView made;
    made.tensor_ = &tensor, made.folder_ = folder;
    return made;
  }
  static SparseTensorView view(const ir::SparseTensorProto& tensor, const std::string* folder) {
    SparseTensorView made;
    made.tensor_ = &tensor, made.folder_ = folder;
    return made;
  }
  static AttributeView view(const ir::Attribute& attribute, const std::string* folder) {
    AttributeView made;
    made.attribute_ = &attribute, made.folder_ = folder;
    return made;
  }
  static NodeView view(const ir::Node& node, const std::string* folder) {
    NodeView made;
    made.node_ = &node, made.folder_ = folder;
    return made;
  }
  static GraphView view(const ir::Graph& graph, const std::string* folder) {
    GraphView made;
    made.graph_ = &graph, made.folder_ = folder;
    return made;
  }
  static FunctionView view(const ir::Function& function, const std::string* folder) {
    FunctionView made;
    made.function_ = &function, made.folder_ = folder;
    return made;
  }

  template <class View, class Item>
  static ViewList<View> list(const std::vector<Item>& items, const std::string* folder = nullptr) {
    return {items.data(), items.size(), folder,
            [](const void* first, size_t index, const void* context) {
              return view(static_cast<const Item*>(first)[index],
                          static_cast<const std::string*>(context));
            }};
  }
  // Of messages that attributes share.
  template <class View, class Item>
  static ViewList<View> list(const std::vector<std::shared_ptr<const Item>>& items,
                             const std::string* folder = nullptr) {
    return {items.data(), items.size(), folder,
            [](const void* first, size_t index, const void* context) {
              return view(*static_cast<const std::shared_ptr<const Item>*>(first)[index],
                          static_cast<const std::string*>(context));
            }};
  }
};

}  // namespace sardonyx
