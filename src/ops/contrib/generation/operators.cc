// com.microsoft: GreedySearch, Sampling, BeamSearch and WhisperBeamSearch.
#include <map>

#include "base/fail.h"
#include "ops/contrib/generation/decoding.h"
#include "ops/contrib/generation/search.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace contrib_generation_unit {
namespace {

using namespace generation;

bool has_encoder(const Settings& settings) { return settings.form != Form::decoder_only; }

// The sizes that are open, each with one value wherever it occurs.
OpenSize open_sizes(const std::function<Dim(std::string_view)>& make) {
  auto made = std::make_shared<std::map<std::string, Dim, std::less<>>>();
  return [made, make](std::string_view name) {
    const auto found = made->find(name);
    if (found != made->end()) return found->second;
    return made->emplace(std::string(name), make(name)).first->second;
  };
}

// What the graphs give is checked by inferring them, for sizes that a run decides.
void infer_graphs(InferContext& ctx, const Settings& settings) {
  const auto sizes = [&] { return open_sizes([&](std::string_view) { return ctx.unknown(); }); };
  const ir::Graph& decoder = required_graph(ctx, "decoder");
  if (!has_encoder(settings)) {
    ctx.infer_subgraph(decoder, DecoderOnly::of(ctx, decoder, "decoder").inputs(sizes()));
    if (const ir::Graph* first = ctx.attr_graph("init_decoder"))
      ctx.infer_subgraph(*first, DecoderOnly::of(ctx, *first, "init_decoder").inputs(sizes()));
    return;
  }
  const ir::Graph& graph = required_graph(ctx, "encoder");
  const Encoder encoder = Encoder::of(ctx, graph, settings.form);
  ctx.infer_subgraph(graph, encoder.inputs(sizes(), ctx.type(0)));
  ctx.infer_subgraph(decoder,
                     CrossDecoder::of(ctx, decoder, encoder).inputs(sizes(), encoder, decoder));
}

Dim element_or_unknown(InferContext& ctx, int i, int64_t fallback, int64_t most) {
  if (i < 0) return Dim(fallback);
  const auto* elements = ctx.elements(i);
  return elements != nullptr && elements->size() == 1 ? elements->front() : ctx.unknown(Dim(most));
}

void infer(InferContext& ctx) {
  const Settings settings = read_settings(ctx);
  infer_graphs(ctx, settings);
  const auto& shape = ctx.shape(0);
  const size_t rank = settings.form == Form::whisper ? 3 : 2;
  if (shape && shape->size() != rank)
    ctx.fail("{} must have {} dimensions; it has {}", ctx.input_name(0), rank, shape->size());
  const Dim batch = shape ? shape->front() : ctx.unknown();
  const Dim max_length = element_or_unknown(ctx, 1, max_sequence_length, max_sequence_length);
  const int64_t declared = declared_vocab(required_graph(ctx, "decoder"));
  const Dim vocab = settings.vocab > 0 ? Dim(settings.vocab)
                    : declared > 0     ? Dim(declared)
                                       : ctx.unknown();
  if (settings.search != Search::beam) {
    ctx.set(0, ElementType::int32, {batch, max_length});
    if (ctx.has_output(1)) ctx.set(1, ElementType::float32, {batch, vocab});
    return;
  }
  const Dim beams = element_or_unknown(ctx, settings.in.num_beams, 1, max_beams);
  const Dim returned = element_or_unknown(ctx, settings.in.returned, 1, max_beams);
  const int penalty = settings.in.length_penalty, repetition = settings.in.repetition_penalty;
  const ElementType type = penalty >= 0      ? ctx.element(penalty)
                           : repetition >= 0 ? ctx.element(repetition)
                                             : ElementType::float32;
  Dim length(1);
  if (!has_encoder(settings)) length = shape ? shape->back() : ctx.unknown();
  const int ids = settings.in.decoder_ids;
  if (settings.form == Form::whisper && ids >= 0)
    length = ctx.shape(ids) && ctx.shape(ids)->size() == 2 ? ctx.shape(ids)->back() : ctx.unknown();
  ctx.set(0, ElementType::int32, {batch, returned, max_length});
  if (ctx.has_output(1)) ctx.set(1, type, {batch, returned});
  if (ctx.has_output(2)) ctx.set(2, type, {max_length - length, batch, beams, vocab});
  if (ctx.has_output(4)) ctx.set(4, type, {batch});
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const Settings settings = read_settings(ctx);
  ir::SymbolTable names;
  const auto sizes = [&](std::string_view of) {
    return open_sizes([&names, of](std::string_view name) {
      return Dim(names.named(fmt::format("{} {}", of, name)));
    });
  };
  const int own_inputs = ctx.input_count();
  const ir::Graph& decoder = required_graph(ctx, "decoder");
  SearchOptions options;
  options.declared_vocab = declared_vocab(decoder);
  if (ctx.has_output(0)) options.stream = RandomStreams::step_number(ctx.node().outputs[0]);
  std::function<std::unique_ptr<Decoding>(RunContext&, const Request&)> start;
  if (has_encoder(settings)) {
    EncoderDecoderGraphs graphs;
    const ir::Graph& encoder = required_graph(ctx, "encoder");
    graphs.encoder_layout = Encoder::of(ctx, encoder, settings.form);
    graphs.decoder_layout = CrossDecoder::of(ctx, decoder, graphs.encoder_layout);
    graphs.encoder =
        ctx.prepare_graph(encoder, graphs.encoder_layout.inputs(sizes("encoder"), ctx.in_type(0)));
    graphs.decoder = ctx.prepare_graph(
        decoder, graphs.decoder_layout.inputs(sizes("decoder"), graphs.encoder_layout, decoder));
    start = [graphs, settings, own_inputs](RunContext& run, const Request& request) {
      return make_decoding(run, graphs, settings, request, own_inputs);
    };
  } else {
    DecoderOnlyGraphs graphs;
    graphs.layout = DecoderOnly::of(ctx, decoder, "decoder");
    graphs.decoder = ctx.prepare_graph(decoder, graphs.layout.inputs(sizes("decoder")));
    if (const ir::Graph* first = ctx.attr_graph("init_decoder")) {
      const DecoderOnly layout = DecoderOnly::of(ctx, *first, "init_decoder");
      if (!layout.hands_on_to(graphs.layout))
        ctx.fail("the graphs 'init_decoder' and 'decoder' must have the same pasts and presents");
      graphs.first = ctx.prepare_graph(*first, layout.inputs(sizes("init_decoder")));
      graphs.first_buffers = layout.buffers;
    }
    start = [graphs, settings, own_inputs](RunContext& run, const Request& request) {
      return make_decoding(run, graphs, settings, request, own_inputs);
    };
  }
  return make_allocating_step("generation", [start, settings, options](RunContext& run) {
    const Request request = read_request(run, settings);
    const auto decoding = start(run, request);
    if (settings.search == Search::beam) {
      run_beams(run, *decoding, settings, request, options);
    } else {
      run_greedily(run, *decoding, settings, request, options);
    }
  });
}

constexpr Operator operators[] = {
    {.name = "BeamSearch", .domain = "com.microsoft", .infer = infer, .prepare = prepare},
    {.name = "GreedySearch", .domain = "com.microsoft", .infer = infer, .prepare = prepare},
    {.name = "Sampling", .domain = "com.microsoft", .infer = infer, .prepare = prepare},
    {.name = "WhisperBeamSearch", .domain = "com.microsoft", .infer = infer, .prepare = prepare},
};

}  // namespace
}  // namespace contrib_generation_unit

std::span<const Operator> contrib_generation_operators() {
  return contrib_generation_unit::operators;
}

}  // namespace sardonyx::ops
