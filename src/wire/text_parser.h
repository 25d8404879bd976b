// The recursive-descent parser behind text_parse.h. One production, one function.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/memory_account.h"
#include "ir/model.h"
#include "wire/text_scan.h"

namespace sardonyx::wire {

// An integer of 32 bits.
int32_t int32_value(Scanner& scan, std::string_view what);

// A list that grows holds up to twice what it needs.
inline constexpr size_t growing = 2;

class TextParser {
 public:
  explicit TextParser(std::string_view text) : scan_(text) {}

  ir::Model model();
  ir::Graph graph();
  ir::Function function();
  ir::Node node();
  ir::Attribute attribute();
  ir::TypeProto type();
  ir::TensorProto tensor();
  // Throws where something is left.
  void finish(std::string_view what);

 private:
  // Counts nesting; throws where it is too deep.
  class Deeper {
   public:
    explicit Deeper(TextParser& parser);
    ~Deeper() { --parser_.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

   private:
    TextParser& parser_;
  };

  // Counts what the messages take (base/memory_account.h).
  void take_memory(size_t bytes) {
    charge_memory(static_cast<int64_t>(bytes),
                  [&] { return fmt::format("byte {} of the text", scan_.position()); });
  }

  // Lists. `item` parses one element.
  void list(char open, char close, std::string_view what, const std::function<void()>& item);
  // "{ key: value, … }": `value` parses what follows a key, or returns false for unknown ones.
  using KeyParser = std::function<bool(std::string_view key)>;
  void record(std::string_view what, const KeyParser& value);
  void keys(char close, std::string_view what, const KeyParser& value);
  void optional_record(std::string_view what, const KeyParser& value) {
    if (scan_.next_is_record()) record(what, value);
  }
  std::vector<ir::StringEntry> string_entries(std::string_view what);
  std::vector<ir::OperatorSetId> opset_imports();
  std::vector<int64_t> integers(std::string_view what);
  std::vector<std::string> strings(std::string_view what);

  // Graphs and nodes.
  bool model_key(ir::Model& model, std::string_view key);
  bool function_key(ir::Function& function, std::string_view key);
  bool graph_key(ir::Graph& graph, std::string_view key);
  ir::Graph graph_named(std::string name);
  ir::TrainingInfo training_info();
  ir::TensorAnnotation tensor_annotation();
  std::vector<ir::Node> nodes();
  std::vector<std::string> operands();
  void function_parameters(ir::Function& function);
  std::vector<std::string> function_values(ir::Function& function);
  ir::ValueInfo value_info();
  void graph_inputs(ir::Graph& graph);
  void values_and_initializers(ir::Graph& graph);
  void initializer(ir::Graph& graph, const ir::ValueInfo& info);

  // Sharding.
  ir::DeviceConfiguration device_configuration();
  ir::NodeDeviceConfiguration node_device_configuration();
  ir::ShardingSpec sharding_spec();
  ir::ShardedDim sharded_dim();
  ir::SimpleShardedDim simple_sharding();

  // Attributes.
  std::vector<ir::Attribute> attributes();
  ir::Attribute attribute_named(std::string name);
  ir::AttributeKind attribute_kind();
  void attribute_list(ir::Attribute& attribute);
  void attribute_value(ir::Attribute& attribute, ir::AttributeKind expected);
  void typed_value(ir::Attribute& attribute);
  void number_value(ir::Attribute& attribute, ir::AttributeKind expected);

  // Types and tensors.
  bool next_is_type();
  int32_t element_type(std::string_view what);
  void tensor_shape(ir::TypeProto& type);
  ir::Dimension dimension();
  void opaque_names(ir::TypeProto& type);
  ir::TensorProto tensor_of(const ir::TypeProto& type, std::string name);
  ir::SparseTensorProto sparse_tensor_of(const ir::TypeProto& type, std::string name);
  std::vector<int64_t> tensor_dims(const ir::TypeProto& type);
  bool data_field(ir::TensorProto& tensor, std::string_view key);
  void elements(ir::TensorProto& tensor);
  void int32_elements(ir::TensorProto& tensor);
  void packed_elements(ir::TensorProto& tensor, int bits);
  // `item` parses one element; braces and commas are handled here.
  void each_element(const std::function<void()>& item);

  Scanner scan_;
  int depth_ = 0;
};

}  // namespace sardonyx::wire
