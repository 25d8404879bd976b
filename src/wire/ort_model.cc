#include "wire/ort_model.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/memory_account.h"
#include "base/name_map.h"
#include "ir/topological_order.h"
#include "wire/flat_buffer.h"
#include "wire/footprint.h"
#include "wire/ort_schema.h"

namespace sardonyx::wire {
namespace {

using namespace ort_schema;
using Table = FlatBuffer::Table;

constexpr std::string_view identifier = "ORTM";

class OrtReader {
 public:
  explicit OrtReader(const Bytes& bytes)
      : buffer_(bytes, [this] { return path(); }),
        budget_(structs_always_allowed + bytes.size() / 8 * (8 * structs_per_byte)) {}

  ir::Model read() {
    const Table root = buffer_.root(identifier);
    const std::string_view version = root.text_view(session::version);
    // The tables of a model have been the same in all of these.
    if (version.size() != 1 || version[0] < '1' || version[0] > '6')
      fail(ErrorCode::unsupported,
           "is a model in ONNX Runtime's own format of version '{}'; versions 1 to 6 are read",
           version.substr(0, 20));
    const auto table = root.table(session::model);
    if (!table) fail(ErrorCode::unreadable, "the file in ONNX Runtime's own format has no model");
    ir::Model made;
    read_model(*table, made);
    settle();
    return made;
  }

 private:
  // What is being read, for messages.
  struct Frame {
    Frame(OrtReader& reader, std::string_view kind, size_t index = no_index, int messages = 1)
        : reader(reader), outer(reader.frame_), kind(kind), index(index), messages(messages) {
      reader.frame_ = this;
      if ((reader.depth_ += messages) > max_depth)
        reader.refuse(ErrorCode::unreadable, "graphs or types are nested too deep");
    }
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;
    ~Frame() {
      reader.frame_ = outer;
      reader.depth_ -= messages;
    }

    OrtReader& reader;
    const Frame* const outer;
    const std::string_view kind;
    const size_t index;
    const int messages;
    std::string_view name;  // in the file
  };
  static constexpr size_t no_index = std::numeric_limits<size_t>::max();
  // Counted as messages of protobuf, so that a model that is read can be written and read as such.
  static constexpr int max_depth = 96;
  // As for protobuf (ProtoReader); here equal texts may be one in the file, too.
  static constexpr size_t structs_always_allowed = size_t{64} << 20;
  static constexpr size_t structs_per_byte = 64;

  std::string path() const {
    std::vector<const Frame*> frames;
    for (const Frame* frame = frame_; frame != nullptr; frame = frame->outer)
      frames.push_back(frame);
    std::string text;
    for (auto at = frames.rbegin(); at != frames.rend(); ++at) {
      if (!text.empty()) text += ", ";
      text += (*at)->kind;
      if ((*at)->index != no_index) text += fmt::format(" {}", (*at)->index);
      if (!(*at)->name.empty()) text += fmt::format(" '{}'", (*at)->name.substr(0, 100));
    }
    return text;
  }

  [[noreturn]] void refuse(ErrorCode code, std::string_view what) const {
    fail_at(path(), code, "{}", what);
  }

  // Before memory is taken for what is read.
  void take_memory(size_t bytes) {
    constexpr size_t step = size_t{64} << 10;
    if (bytes > budget_)
      refuse(ErrorCode::unreadable, "texts and tables of this file would fill the memory");
    budget_ -= bytes;
    if ((uncharged_ += bytes) >= step) settle();
  }
  void settle() {
    charge_memory(static_cast<int64_t>(std::exchange(uncharged_, 0)), [this] { return path(); });
  }
  template <class T>
  void make_room(std::vector<T>& list, size_t count) {
    take_memory(count * sizeof(T));
    list.reserve(count);
  }

  std::string copy(std::string_view text) {
    constexpr size_t inside = 15;  // of the string itself
    if (text.size() > inside) take_memory(text.size() + 1);
    return std::string(text);
  }
  std::string text(const Table& from, int field) { return copy(from.text_view(field)); }
  std::vector<std::string> texts(const Table& from, int field) {
    const std::vector<std::string_view> views = from.text_views(field);
    std::vector<std::string> list;
    make_room(list, views.size());
    for (const std::string_view view : views) list.push_back(copy(view));
    return list;
  }
  template <class Number>
  std::vector<Number> numbers(const Table& from, int field) {
    std::vector<Number> list = from.numbers<Number>(field);
    take_memory(list.size() * sizeof(Number));
    return list;
  }

  void read_model(const Table& from, ir::Model& into) {
    into.ir_version = from.number<int64_t>(model::ir_version);
    const std::vector<Table> imports = from.tables(model::opset_imports);
    make_room(into.opset_imports, imports.size());
    for (const Table& one : imports) {
      ir::OperatorSetId& made = into.opset_imports.emplace_back();
      made.domain = text(one, opset::domain);
      made.version = one.number<int64_t>(opset::version);
    }
    into.producer_name = text(from, model::producer_name);
    into.producer_version = text(from, model::producer_version);
    into.domain = text(from, model::domain);
    into.model_version = from.number<int64_t>(model::version);
    constexpr int64_t no_version = std::numeric_limits<int64_t>::max();  // ONNX Runtime's
    if (into.model_version == no_version) into.model_version = 0;
    into.doc_string = text(from, model::doc_string);
    const std::vector<Table> entries = from.tables(model::metadata);
    make_room(into.metadata_props, entries.size());
    for (const Table& one : entries) {
      ir::StringEntry& made = into.metadata_props.emplace_back();
      made.key = text(one, entry::key);
      made.value = text(one, entry::value);
    }
    const auto main = from.table(model::graph);
    if (!main) fail(ErrorCode::unreadable, "the file in ONNX Runtime's own format has no graph");
    const Frame frame(*this, "graph");
    // The format has no names of graphs, which the standard asks for.
    into.graph.emplace().name = "main";
    read_graph(*main, *into.graph);
    into.graph->doc_string = text(from, model::graph_doc_string);
  }

  void read_graph(const Table& from, ir::Graph& into) {
    const std::vector<Table> tensors = from.tables(graph::initializers);
    make_room(into.initializers, tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      Frame frame(*this, "initializer", i);
      read_tensor(tensors[i], into.initializers.emplace_back(), frame);
    }
    const std::vector<Table> sparse = from.tables(graph::sparse_initializers);
    make_room(into.sparse_initializers, sparse.size());
    for (size_t i = 0; i < sparse.size(); ++i) {
      const Frame frame(*this, "sparse initializer", i);
      read_sparse_tensor(sparse[i], into.sparse_initializers.emplace_back());
    }
    read_nodes(from, into);
    read_values(from, into);
  }

  void read_nodes(const Table& from, ir::Graph& into) {
    const std::vector<Table> tables = from.tables(graph::nodes);
    std::vector<ir::Node> nodes;
    make_room(nodes, tables.size());
    for (size_t i = 0; i < tables.size(); ++i) {
      Frame frame(*this, "node", i);
      read_node(tables[i], nodes.emplace_back(), frame);
    }
    // They are stored as they were made.
    const std::vector<size_t> order =
        ir::topological_order(nodes, [&](size_t index, const auto& use) {
          for (const std::string& name : nodes[index].inputs) use(name);
          for (const std::string_view name : tables[index].text_views(node::implicit_inputs))
            use(name);
        });
    const bool is_cycle = order.size() < nodes.size();  // which the checker reports
    if (is_cycle || std::ranges::is_sorted(order)) {
      into.nodes = std::move(nodes);
      return;
    }
    make_room(into.nodes, nodes.size());
    for (const size_t index : order) into.nodes.push_back(std::move(nodes[index]));
  }

  void read_node(const Table& from, ir::Node& into, Frame& frame) {
    frame.name = from.text_view(node::name);
    into.name = copy(frame.name);
    into.op_type = text(from, node::op_type);
    into.domain = text(from, node::domain);
    into.doc_string = text(from, node::doc_string);
    if (from.number<int32_t>(node::type) == node::fused)
      refuse(
          ErrorCode::unsupported,
          fmt::format("it was compiled for {}; convert the .onnx file that the model was made of",
                      from.text_view(node::provider).substr(0, 100)));
    into.inputs = texts(from, node::inputs);
    into.outputs = texts(from, node::outputs);
    const std::vector<Table> attributes = from.tables(node::attributes);
    make_room(into.attributes, attributes.size());
    for (size_t i = 0; i < attributes.size(); ++i) {
      Frame inner(*this, "attribute", i);
      read_attribute(attributes[i], into.attributes.emplace_back(), inner);
    }
  }

  void read_attribute(const Table& from, ir::Attribute& into, Frame& frame) {
    frame.name = from.text_view(attribute::name);
    into.name = copy(frame.name);
    into.doc_string = text(from, attribute::doc_string);
    const auto kind = from.number<int32_t>(attribute::type);
    into.kind = static_cast<ir::AttributeKind>(kind);
    switch (into.kind) {
      case ir::AttributeKind::float_: into.f = from.number<float>(attribute::f); return;
      case ir::AttributeKind::int_: into.i = from.number<int64_t>(attribute::i); return;
      case ir::AttributeKind::string: into.s = text(from, attribute::s); return;
      case ir::AttributeKind::floats: into.floats = numbers<float>(from, attribute::floats); return;
      case ir::AttributeKind::ints: into.ints = numbers<int64_t>(from, attribute::ints); return;
      case ir::AttributeKind::strings: into.strings = texts(from, attribute::strings); return;
      case ir::AttributeKind::tensor:
        if (const auto table = from.table(attribute::t)) into.t = new_tensor(*table);
        return;
      case ir::AttributeKind::graph:
        if (const auto table = from.table(attribute::g)) into.g = new_graph(*table, into.name);
        return;
      case ir::AttributeKind::tensors:
        for (const Table& one : from.tables(attribute::tensors)) {
          take_memory(sizeof(into.tensors[0]));
          into.tensors.push_back(new_tensor(one));
        }
        return;
      case ir::AttributeKind::graphs:
        for (const Table& one : from.tables(attribute::graphs)) {
          take_memory(sizeof(into.graphs[0]));
          into.graphs.push_back(new_graph(one, into.name));
        }
        return;
      default:
        refuse(ErrorCode::unsupported,
               fmt::format("attributes of type {} ({}) are not read from this format", kind,
                           ir::name_of(into.kind)));
    }
  }

  std::shared_ptr<const ir::TensorProto> new_tensor(const Table& from) {
    take_memory(sizeof(ir::TensorProto));
    auto made = std::make_shared<ir::TensorProto>();
    Frame frame(*this, "tensor");
    read_tensor(from, *made, frame);
    return made;
  }

  std::shared_ptr<const ir::Graph> new_graph(const Table& from, const std::string& name) {
    take_memory(sizeof(ir::Graph));
    auto made = std::make_shared<ir::Graph>();
    const Frame frame(*this, "graph");
    made->name = copy(name.empty() ? "graph" : name);
    read_graph(from, *made);
    return made;
  }

  void read_tensor(const Table& from, ir::TensorProto& into, Frame& frame) {
    frame.name = from.text_view(tensor::name);
    into.name = copy(frame.name);
    into.doc_string = text(from, tensor::doc_string);
    into.dims = numbers<int64_t>(from, tensor::dims);
    into.data_type = from.number<int32_t>(tensor::data_type);
    if (const auto offset = from.number<int64_t>(tensor::external_offset, -1); offset >= 0)
      refuse(ErrorCode::unsupported,
             fmt::format("its data is in another file, from byte {} on, which is not read; convert "
                         "the .onnx file that the model was made of",
                         offset));
    if (into.element_type() == ElementType::string) {
      into.string_data = texts(from, tensor::string_data);
      return;
    }
    into.raw_data = from.bytes(tensor::raw_data);
    into.has_raw_data = true;
  }

  void read_sparse_tensor(const Table& from, ir::SparseTensorProto& into) {
    if (const auto values = from.table(sparse::values)) {
      Frame frame(*this, "values");
      read_tensor(*values, into.values, frame);
    }
    if (const auto indices = from.table(sparse::indices)) {
      Frame frame(*this, "indices");
      read_tensor(*indices, into.indices, frame);
      switch (into.indices.element_type()) {
        case ElementType::int8: widen<int8_t>(into.indices); break;
        case ElementType::int16: widen<int16_t>(into.indices); break;
        case ElementType::int32: widen<int32_t>(into.indices); break;
        default: break;
      }
    }
    into.dims = numbers<int64_t>(from, sparse::dims);
  }

  // Indices of sparse tensors are int64 in the standard, here of the narrowest type that does.
  template <class Narrow>
  void widen(ir::TensorProto& indices) {
    const size_t count = indices.raw_data.size() / sizeof(Narrow);
    take_memory(count * sizeof(int64_t));
    indices.int64_data.resize(count);
    for (size_t i = 0; i < count; ++i) {
      Narrow index;
      std::memcpy(&index, indices.raw_data.data() + i * sizeof index, sizeof index);
      indices.int64_data[i] = index;
    }
    indices.raw_data = {};
    indices.has_raw_data = false;
    indices.data_type = static_cast<int32_t>(ElementType::int64);
  }

  // The format has one list of all values with their types; inputs and outputs are names.
  void read_values(const Table& from, ir::Graph& into) {
    const std::vector<Table> tables = from.tables(graph::values);
    std::vector<ir::ValueInfo> values;
    make_room(values, tables.size());
    NameMap<size_t> places;
    places.reserve(tables.size());
    for (size_t i = 0; i < tables.size(); ++i) {
      Frame frame(*this, "value", i);
      frame.name = tables[i].text_view(value::name);
      ir::ValueInfo& made = values.emplace_back();
      made.name = copy(frame.name);
      made.doc_string = text(tables[i], value::doc_string);
      if (const auto table = tables[i].table(value::type)) {
        ir::TypeProto read;
        read_type(*table, read);
        if (read.kind != ir::TypeProto::Kind::none) made.type = std::move(read);
      }
      places.emplace(frame.name, i);
    }
    std::vector<bool> taken(values.size());
    into.inputs = declared(from.text_views(graph::inputs), values, places, taken);
    into.outputs = declared(from.text_views(graph::outputs), values, places, taken);
    for (const ir::Node& node : into.nodes) {
      for (const std::string& output : node.outputs) {
        const size_t* place = places.find(output);
        if (place == nullptr || taken[*place] || output.empty() || !values[*place].type) continue;
        taken[*place] = true;
        take_memory(sizeof(ir::ValueInfo));
        into.value_info.push_back(std::move(values[*place]));
      }
    }
  }

  std::vector<ir::ValueInfo> declared(const std::vector<std::string_view>& names,
                                      const std::vector<ir::ValueInfo>& values,
                                      const NameMap<size_t>& places, std::vector<bool>& taken) {
    std::vector<ir::ValueInfo> list;
    make_room(list, names.size());
    std::vector<bool> copied(values.size());
    for (const std::string_view name : names) {
      const size_t* place = places.find(name);
      // Each type is copied once, whatever a file says.
      if (place == nullptr || copied[*place]) {
        list.emplace_back().name = copy(name);
        continue;
      }
      copied[*place] = taken[*place] = true;
      take_memory(static_cast<size_t>(memory_of(values[*place])));
      list.push_back(values[*place]);
    }
    return list;
  }

  void read_type(const Table& from, ir::TypeProto& into) {
    const Frame frame(*this, "type", no_index, 2);
    into.denotation = text(from, type::denotation);
    const auto kind = from.number<uint8_t>(type::kind);
    if (kind == static_cast<uint8_t>(type::Kind::none)) return;
    const auto table = from.table(type::of_kind);
    if (!table) refuse(ErrorCode::unreadable, "it has a kind and nothing more");
    switch (static_cast<type::Kind>(kind)) {
      case type::Kind::tensor:
        into.kind = ir::TypeProto::Kind::tensor;
        into.elem_type = table->number<int32_t>(tensor_type::element);
        if (const auto dims = table->table(tensor_type::shape))
          read_shape(*dims, into.shape.emplace());
        return;
      case type::Kind::sequence:
        into.kind = ir::TypeProto::Kind::sequence;
        into.nested = new_type(table->table(sequence_type::element));
        return;
      case type::Kind::map:
        into.kind = ir::TypeProto::Kind::map;
        into.elem_type = table->number<int32_t>(map_type::key);
        into.nested = new_type(table->table(map_type::value));
        return;
      default: refuse(ErrorCode::unsupported, fmt::format("types of kind {} are not read", kind));
    }
  }

  std::shared_ptr<const ir::TypeProto> new_type(const std::optional<Table>& from) {
    if (!from) return nullptr;
    take_memory(sizeof(ir::TypeProto));
    auto made = std::make_shared<ir::TypeProto>();
    read_type(*from, *made);
    return made;
  }

  void read_shape(const Table& from, ir::TensorShape& into) {
    const std::vector<Table> tables = from.tables(shape::dims);
    make_room(into.dims, tables.size());
    for (const Table& one : tables) {
      ir::Dimension& made = into.dims.emplace_back();
      made.denotation = text(one, dimension::denotation);
      const auto held = one.table(dimension::value);
      if (!held) continue;
      switch (static_cast<size::Kind>(held->number<int8_t>(size::kind))) {
        case size::Kind::number: made.value = held->number<int64_t>(size::number); break;
        case size::Kind::name: made.param = text(*held, size::name); break;
        default: break;
      }
    }
  }

  FlatBuffer buffer_;
  const Frame* frame_ = nullptr;
  int depth_ = 0;
  size_t budget_, uncharged_ = 0;
};

}  // namespace

bool is_ort_model(std::string_view bytes) {
  constexpr size_t header = 8, alignment = 4, too_far = size_t{1} << 24;
  if (bytes.size() < header + alignment || bytes.substr(4, 4) != identifier) return false;
  uint32_t root = 0;
  std::memcpy(&root, bytes.data(), sizeof root);
  return root >= header && root < too_far && root % alignment == 0 &&
         root <= bytes.size() - alignment;
}

ir::Model read_ort_model(const Bytes& bytes) { return OrtReader(bytes).read(); }

}  // namespace sardonyx::wire
