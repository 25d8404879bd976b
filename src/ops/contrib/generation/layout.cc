#include "ops/contrib/generation/layout.h"

#include <optional>

namespace sardonyx::ops::generation {
namespace {

// One graph attribute of a node, for messages and look-ups.
class Checked {
 public:
  Checked(const NodeView& node, const ir::Graph& graph, std::string_view attribute)
      : node_(node), graph_(graph), attribute_(attribute) {}

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    node_.fail("the graph '{}' {}", attribute_, fmt::format(format, std::forward<Args>(args)...));
  }
  size_t inputs() const { return graph_.inputs.size(); }
  size_t outputs() const { return graph_.outputs.size(); }
  const ir::ValueInfo& input(size_t i) const { return graph_.inputs[i]; }
  const ir::ValueInfo& output(size_t i) const { return graph_.outputs[i]; }

  void require_input(size_t i, std::string_view name, ElementType type) const {
    if (i >= inputs()) fail("must have an input {} '{}'; it has {} inputs", i, name, inputs());
    require(input(i), "input", i, name, type);
  }
  void require_output(size_t i, std::string_view name, ElementType type) const {
    if (i >= outputs()) fail("must have an output {} '{}'; it has {} outputs", i, name, outputs());
    require(output(i), "output", i, name, type);
  }
  // Of what is no tensor of floats fails.
  ElementType float_type(const ir::ValueInfo& info) const {
    const ElementType type = type_of(info);
    if (type != ElementType::float32 && type != ElementType::float16)
      fail("must have '{}' of float or float16; it says {}", info.name, text_of(type));
    return type;
  }
  // A declared size, which must be there.
  int64_t size(const ir::ValueInfo& info, size_t rank, size_t axis, std::string_view what) const {
    const auto declared = declared_size(info, rank, axis);
    if (!declared || *declared < 1 || *declared > (1 << 24)) {
      fail("must declare '{}' with {} dimensions, of which number {}, {}, is a size of 1 or more",
           info.name, rank, axis, what);
    }
    return *declared;
  }
  // Nullopt where it is open; a declared shape has this rank.
  std::optional<int64_t> declared_size(const ir::ValueInfo& info, size_t rank, size_t axis) const {
    if (!info.type || !info.type->shape) return std::nullopt;
    const auto& dims = info.type->shape->dims;
    if (dims.size() != rank)
      fail("must have '{}' with {} dimensions; it declares {}", info.name, rank, dims.size());
    return dims[axis].value;
  }

 private:
  static ElementType type_of(const ir::ValueInfo& info) {
    if (!info.type || info.type->kind != ir::TypeProto::Kind::tensor) return ElementType::undefined;
    return info.type->element_type();
  }
  static std::string_view text_of(ElementType type) {
    return type == ElementType::undefined ? "no tensor's type" : name_of(type);
  }
  void require(const ir::ValueInfo& info, std::string_view kind, size_t i, std::string_view name,
               ElementType type) const {
    if (info.name != name) fail("must have '{}' as {} {}; it has '{}'", name, kind, i, info.name);
    if (type != ElementType::undefined && type_of(info) != type)
      fail("must have {} '{}' of {}; it says {}", kind, name, name_of(type),
           text_of(type_of(info)));
  }

  const NodeView& node_;
  const ir::Graph& graph_;
  std::string_view attribute_;
};

ValueFacts tensor(ElementType type, Dims shape) {
  return ValueFacts::of(ValueType::tensor(type, std::move(shape)));
}

constexpr auto tokens = ElementType::int32;

// What stands after the inputs that are always there.
Buffers read_buffers(const Checked& checked, size_t plain) {
  const size_t more = checked.inputs() > plain ? checked.inputs() - plain : 0;
  if (checked.inputs() < plain || (more != 0 && more != 1 && more != 3))
    checked.fail(
        "must have {} inputs as its outputs tell, and after them none, past_sequence_length, or "
        "past_sequence_length, beam_width and cache_indirection; it has {}",
        plain, checked.inputs());
  for (size_t i = plain; i < plain + more; ++i)
    checked.require_input(i, checked.input(i).name, tokens);
  return {.are_there = more > 0, .of_beams = more == 3};
}

}  // namespace

void Buffers::add_to(std::vector<ValueFacts>& inputs, const OpenSize& size,
                     const Dim& max_length) const {
  if (are_there) inputs.push_back(tensor(tokens, {Dim(1)}));
  if (!of_beams) return;
  inputs.push_back(tensor(tokens, {Dim(1)}));
  inputs.push_back(tensor(tokens, {size("batch"), size("beams"), max_length}));
}

DecoderOnly DecoderOnly::of(const NodeView& node, const ir::Graph& graph,
                            std::string_view attribute) {
  const Checked checked(node, graph, attribute);
  checked.require_input(0, "input_ids", tokens);
  checked.require_input(1, "position_ids", tokens);
  checked.require_input(2, "attention_mask", tokens);
  checked.require_input(first_past, "past_0", ElementType::undefined);
  checked.require_output(0, "logits", ElementType::undefined);
  checked.require_output(1, "present_0", ElementType::undefined);
  DecoderOnly decoder;
  decoder.layers = static_cast<int64_t>(checked.outputs() - first_present);
  const size_t plain = checked.outputs() + 2;
  decoder.buffers = read_buffers(checked, plain);
  decoder.type = checked.float_type(checked.input(first_past));
  checked.float_type(checked.output(0));
  for (size_t i = 0; i < static_cast<size_t>(decoder.layers); ++i) {
    const auto& past = checked.input(first_past + i);
    if (checked.float_type(past) != decoder.type ||
        checked.float_type(checked.output(first_present + i)) != decoder.type)
      checked.fail("must have all pasts and presents of one type; '{}' or its present differs",
                   past.name);
  }
  const auto& past = checked.input(first_past);
  if (checked.size(past, 5, 0, "keys and values") != 2)
    checked.fail("must have '{}' with 2 as its first size", past.name);
  decoder.heads = checked.size(past, 5, 2, "the number of heads");
  decoder.head_size = checked.size(past, 5, 4, "the size of a head");
  decoder.fixed_rows = checked.declared_size(checked.input(0), 2, 0).has_value();
  return decoder;
}

std::vector<ValueFacts> DecoderOnly::inputs(const OpenSize& size) const {
  const Dim rows = size("rows"), length = size("length"), past = size("past");
  const Dim total = buffers.are_there ? size("total") : past + length;
  std::vector<ValueFacts> inputs = {tensor(tokens, {rows, length}), tensor(tokens, {rows, length}),
                                    tensor(tokens, {rows, total})};
  for (int64_t i = 0; i < layers; ++i)
    inputs.push_back(tensor(type, {Dim(2), rows, Dim(heads), past, Dim(head_size)}));
  buffers.add_to(inputs, size, past);
  return inputs;
}

Encoder Encoder::of(const NodeView& node, const ir::Graph& graph, Form form) {
  const Checked checked(node, graph, "encoder");
  Encoder encoder;
  encoder.masked = form == Form::encoder_decoder;
  if (form == Form::whisper) {
    checked.require_input(0, "encoder_input_ids", ElementType::undefined);
    checked.float_type(checked.input(0));
  } else {
    checked.require_input(0, "encoder_input_ids", tokens);
    checked.require_input(1, "encoder_attention_mask", tokens);
  }
  const size_t own = encoder.masked ? 2 : 1;
  encoder.starts_decoder = form == Form::whisper || checked.inputs() > own;
  if (encoder.starts_decoder) checked.require_input(own, "decoder_input_ids", tokens);
  if (checked.inputs() > own + 1)
    checked.fail("must have no input after decoder_input_ids; it has {}", checked.inputs());
  const size_t before = encoder.starts_decoder ? 2 : 0, each = encoder.starts_decoder ? 4 : 2;
  if (checked.outputs() < before + each || (checked.outputs() - before) % each != 0)
    checked.fail("must have {} outputs and {} for each layer; it has {}", before, each,
                 checked.outputs());
  if (encoder.starts_decoder) {
    checked.require_output(0, "logits", ElementType::undefined);
    checked.require_output(1, "encoder_hidden_states", ElementType::undefined);
    checked.require_output(2, "present_key_self_0", ElementType::undefined);
    checked.require_output(3, "present_value_self_0", ElementType::undefined);
  } else {
    checked.require_output(0, "present_key_cross_0", ElementType::undefined);
    checked.require_output(1, "present_value_cross_0", ElementType::undefined);
  }
  encoder.layers = static_cast<int64_t>((checked.outputs() - before) / each);
  encoder.type = checked.float_type(checked.output(0));
  for (size_t i = 1; i < checked.outputs(); ++i) {
    if (checked.float_type(checked.output(i)) != encoder.type)
      checked.fail("must have all outputs of one type; '{}' differs", checked.output(i).name);
  }
  const auto& present = checked.output(before);
  encoder.heads = checked.size(present, 4, 1, "the number of heads");
  encoder.head_size = checked.size(present, 4, 3, "the size of a head");
  return encoder;
}

std::vector<ValueFacts> Encoder::inputs(const OpenSize& size, const ValueType& features) const {
  const Dim batch = size("batch");
  std::vector<ValueFacts> inputs;
  if (masked) {
    const Dim length = size("encoded");
    inputs = {tensor(tokens, {batch, length}), tensor(tokens, {batch, length})};
  } else {
    inputs = {ValueFacts::of(
        ValueType::tensor(features.element, Dims{batch, size("features"), size("frames")}))};
  }
  if (starts_decoder) inputs.push_back(tensor(tokens, {batch, size("prompt")}));
  return inputs;
}

CrossDecoder CrossDecoder::of(const NodeView& node, const ir::Graph& graph,
                              const Encoder& encoder) {
  const Checked checked(node, graph, "decoder");
  CrossDecoder decoder;
  decoder.layers = encoder.layers;
  checked.require_input(0, "input_ids", tokens);
  decoder.masked = encoder.masked;
  if (decoder.masked) checked.require_input(1, "encoder_attention_mask", tokens);
  const size_t next = decoder.masked ? 2 : 1;
  decoder.hidden = checked.inputs() > next && checked.input(next).name == "encoder_hidden_states";
  if (decoder.hidden && !encoder.starts_decoder)
    checked.fail("takes encoder_hidden_states, which the graph 'encoder' does not give");
  const size_t inputs = decoder.first_cross() + 2 * static_cast<size_t>(decoder.layers);
  decoder.buffers = read_buffers(checked, inputs);
  const size_t outputs = first_present + 2 * static_cast<size_t>(decoder.layers);
  if (checked.outputs() != outputs)
    checked.fail("must have {} outputs, two for each layer; it has {}", outputs, checked.outputs());
  checked.require_output(0, "logits", ElementType::undefined);
  for (size_t i = decoder.first_past() - (decoder.hidden ? 1 : 0); i < inputs; ++i) {
    if (checked.float_type(checked.input(i)) != encoder.type)
      checked.fail("must have '{}' of the type that the graph 'encoder' gives, {}",
                   checked.input(i).name, name_of(encoder.type));
  }
  checked.float_type(checked.output(0));
  for (size_t i = first_present; i < outputs; ++i) {
    if (checked.float_type(checked.output(i)) != encoder.type)
      checked.fail("must have '{}' of {}, as the past is", checked.output(i).name,
                   name_of(encoder.type));
  }
  decoder.fixed_rows = checked.declared_size(checked.input(0), 2, 0).has_value();
  decoder.whole_sequence = checked.declared_size(checked.input(0), 2, 1) != 1;
  if (decoder.buffers.are_there && decoder.whole_sequence)
    checked.fail("must declare input_ids of one token, as its past lies in a buffer");
  return decoder;
}

std::vector<ValueFacts> CrossDecoder::inputs(const OpenSize& size, const Encoder& encoder,
                                             const ir::Graph& graph) const {
  const Dim rows = size("rows"), encoded = size("encoded"), past = size("past");
  std::vector<ValueFacts> inputs = {
      tensor(tokens, {rows, whole_sequence ? size("length") : Dim(1)})};
  if (masked) inputs.push_back(tensor(tokens, {rows, encoded}));
  if (hidden) {
    const auto& type = graph.inputs[inputs.size()].type;
    const bool ranked = type && type->shape && type->shape->dims.size() == 3;
    const auto width = ranked ? type->shape->dims[2].value : std::nullopt;
    inputs.push_back(
        tensor(encoder.type, {rows, encoded, width && *width > 0 ? Dim(*width) : size("hidden")}));
  }
  const Dim heads(encoder.heads), head_size(encoder.head_size);
  for (int64_t i = 0; i < 2 * layers; ++i)
    inputs.push_back(tensor(encoder.type, {rows, heads, past, head_size}));
  for (int64_t i = 0; i < 2 * layers; ++i)
    inputs.push_back(tensor(encoder.type, {rows, heads, encoded, head_size}));
  buffers.add_to(inputs, size, past);
  return inputs;
}

int64_t declared_vocab(const ir::Graph& graph) {
  if (graph.outputs.empty() || !graph.outputs[0].type || !graph.outputs[0].type->shape) return -1;
  const auto& dims = graph.outputs[0].type->shape->dims;
  return dims.size() == 3 && dims[2].value && *dims[2].value > 0 ? *dims[2].value : -1;
}

const ir::Graph& required_graph(const NodeView& node, std::string_view attribute) {
  const ir::Graph* graph = node.attr_graph(attribute);
  if (graph == nullptr)
    node.fail("attribute '{}' is required and absent; add the graph", attribute);
  return *graph;
}

}  // namespace sardonyx::ops::generation
