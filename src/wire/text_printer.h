// The printer behind text_print.h.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "ir/model.h"
#include "wire/sink.h"
#include "wire/text_print.h"

namespace sardonyx::wire {

// The fields of a TensorProto that hold elements.
enum class DataField { none, raw, floats, doubles, int32s, int64s, uint64s, strings };

// The field whose content the elements of the text say in full; none where it is empty, or not
// what the tensor's type and shape ask for.
DataField field_said_as_elements(const ir::TensorProto& tensor);
// How much the largest of the fields but `said` holds.
size_t max_in_other_fields(const ir::TensorProto& tensor, DataField said);

class TextPrinter {
 public:
  // What is printed goes to `sink` piece by piece, where there is one; `finish` writes the rest.
  explicit TextPrinter(const PrintOptions& options, Sink* sink = nullptr)
      : options_(options), sink_(sink) {}

  void print(const ir::Model& model);
  void print(const ir::Graph& graph);
  void print(const ir::Function& function);
  void print(const ir::Node& node);
  void print(const ir::Attribute& attribute);
  void print(const ir::TypeProto& type);
  void print(const ir::TensorProto& tensor);

  std::string take() { return std::move(out_); }  // where there is no sink
  void finish();                                  // ends the text with a new line

 private:
  // Records of annotations: keys and the functions that write their values.
  class Record {
   public:
    explicit Record(TextPrinter& printer) : printer_(printer) {}
    // Starts "key: "; the caller writes the value at once.
    TextPrinter& key(std::string_view name);
    void text(std::string_view name, std::string_view value);  // left out where it is empty
    void entries(std::string_view name, const std::vector<ir::StringEntry>& value);
    bool empty() const { return empty_; }
    void close() { printer_.out_ += '}'; }

   private:
    TextPrinter& printer_;
    bool empty_ = true;
  };

  // Writes what `fill` puts in a record on a "#@" line of its own, and goes on in a new line;
  // writes nothing where it puts nothing in.
  void annotate(const std::function<void(Record&)>& fill);
  // The "#@" lines of an annotation written to `text`.
  void annotation_lines(std::string_view text);
  // What `write` writes, apart.
  std::string apart(const std::function<void()>& write);
  void new_line();
  void spill();
  void put_all();

  void quoted(std::string_view text);
  void name(std::string_view text);
  void bare_or_quoted(std::string_view text);
  void names(const std::vector<std::string>& names);
  void integer(int64_t value);
  template <class T>
  void number(T value);
  void decimal(float value);
  template <class Items, class Write>
  void list(std::string_view open, std::string_view close, const Items& items, Write write);

  void entries(const std::vector<ir::StringEntry>& entries);
  void opset_imports(const std::vector<ir::OperatorSetId>& imports);
  void strings(const std::vector<std::string>& values);
  void training_info(const ir::TrainingInfo& info);
  void device_configuration(const ir::DeviceConfiguration& configuration);
  void node_device_configuration(const ir::NodeDeviceConfiguration& configuration);
  void sharding_spec(const ir::ShardingSpec& spec);
  void simple_sharding(const ir::SimpleShardedDim& sharding);

  void header_key(bool& first, std::string_view key);
  void model_annotations(const ir::Model& model);
  void value_info(const ir::ValueInfo& info);
  void values_and_initializers(const ir::Graph& graph);
  void nodes(const std::vector<ir::Node>& nodes);
  void op_name(const ir::Node& node);
  void attributes(const std::vector<ir::Attribute>& attributes);
  bool single_value(const ir::Attribute& attribute);
  void list_value(const ir::Attribute& attribute);

  void element_type(int32_t type);
  void shape(const std::optional<ir::TensorShape>& shape);
  void dims(const std::vector<int64_t>& dims);
  void tensor(const ir::TensorProto& tensor, std::string_view name, bool equals);
  void sparse_tensor(const ir::SparseTensorProto& tensor, bool named = false);
  void other_fields(Record& record, const ir::TensorProto& tensor, DataField said);
  void elements(const ir::TensorProto& tensor);
  void raw_elements(const ir::TensorProto& tensor);
  void packed_elements(ElementType type, size_t count, const std::function<uint8_t(size_t)>& byte);
  template <class Write>
  void each(size_t count, Write write);
  template <class T>
  void each_of(std::span<const std::byte> bytes);
  template <class T>
  void each_of_many(std::span<const std::byte> bytes);

  // Text of numbers that a thread has made.
  struct Piece {
    std::unique_ptr<char[]> room;
    size_t size = 0;
  };

  const PrintOptions& options_;
  Sink* sink_;
  std::unique_ptr<ThreadPool> pool_;   // made when a large tensor is met
  std::vector<Piece> made_, waiting_;  // `waiting_` is to be written before `out_`
  std::string out_;
  size_t indent_ = 0;
  int depth_ = 0;
  bool in_annotation_ = false;
};

template <class Items, class Write>
void TextPrinter::list(std::string_view open, std::string_view close, const Items& items,
                       Write write) {
  out_ += open;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out_ += ", ";
    first = false;
    write(item);
  }
  out_ += close;
}

}  // namespace sardonyx::wire
