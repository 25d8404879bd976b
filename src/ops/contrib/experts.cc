// com.microsoft: MoE and QMoE. Tokens are grouped by expert; each expert multiplies its own.
#include <algorithm>
#include <climits>

#include "base/checked.h"
#include "kernels/convert/cast.h"
#include "kernels/experts/routing.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/nbits.h"
#include "ops/operator.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/product.h"

namespace sardonyx::ops {
namespace contrib_experts_unit {
namespace {

using kernels::ExpertActivation;
using kernels::NBitsMatrix;
using kernels::RouteWeights;

// The inputs of one of the three layers; -1: the operator has none such.
struct LayerInputs {
  int weights, scales, bias, zeros;
};

constexpr int layers = 3;  // fc1, fc2, fc3
constexpr LayerInputs plain_layers[layers] = {{2, -1, 3, -1}, {4, -1, 5, -1}, {6, -1, 7, -1}};
constexpr LayerInputs quantized_layers[layers] = {{2, 3, 4, 11}, {5, 6, 7, 12}, {8, 9, 10, 13}};
constexpr const char* bits_attributes[layers] = {"fc1_expert_weight_bits", "fc2_expert_weight_bits",
                                                 "fc3_expert_weight_bits"};
constexpr int router_weights = 14;  // of QMoE
constexpr int max_inputs = 15;      // those that are read

struct Settings {
  bool quantized = false;
  bool gated = false;        // with fc3
  bool fused = false;        // both parts of SwiGLU come from fc1
  bool interleaved = false;  // side by side
  bool given_weights = false;
  int64_t chosen = 1, block = 0;
  int bits[layers] = {};
  RouteWeights rule = RouteWeights::softmax;
  kernels::ExpertGate gate;

  const LayerInputs& inputs(int layer) const {
    return (quantized ? quantized_layers : plain_layers)[layer];
  }
  int used_layers() const { return gated ? 3 : 2; }
};

ExpertActivation read_activation(const NodeView& node) {
  constexpr std::pair<std::string_view, ExpertActivation> known[] = {
      {"relu", ExpertActivation::relu},
      {"gelu", ExpertActivation::gelu},
      {"silu", ExpertActivation::silu},
      {"swiglu", ExpertActivation::swiglu},
      {"identity", ExpertActivation::identity}};
  const std::string name = node.attr_string("activation_type", "relu");
  for (const auto& [text, activation] : known) {
    if (name == text) return activation;
  }
  node.fail("activation_type must be relu, gelu, silu, swiglu or identity; got '{}'", name);
}

void read_quantization(const NodeView& node, Settings& s) {
  if (const std::string type = node.attr_string("quant_type", "int"); type != "int")
    node.fail(ErrorCode::unsupported, "weights of quant_type '{}'; known is 'int'", type);
  if (node.attr_int("weights_prepacked", -1) == 1)
    node.fail(ErrorCode::unsupported, "weights packed for a GPU (weights_prepacked)");
  for (int i = router_weights + 1; i < node.input_count(); ++i) {
    if (node.has_input(i))
      node.fail("{} is not for weights of quant_type 'int'", node.input_name(i));
  }
  s.block = std::max<int64_t>(0, node.attr_int("block_size", 0));
  if (s.block > 0 && (s.block < 16 || s.block > 1 << 20 || (s.block & (s.block - 1)) != 0))
    node.fail("block_size must be a power of two from 16 on; got {}", s.block);
  for (int layer = 0; layer < layers; ++layer) {
    const int64_t bits =
        node.attr_int(bits_attributes[layer], node.attr_int("expert_weight_bits", 4));
    if (bits != 2 && bits != 4 && bits != 8)
      node.fail("the bits of weights must be 2, 4 or 8; got {}", bits);
    s.bits[layer] = static_cast<int>(bits);
    const LayerInputs& inputs = s.inputs(layer);
    if (node.has_input(inputs.weights) && !node.has_input(inputs.scales))
      node.fail("{} needs scales", node.input_name(inputs.weights));
  }
}

Settings read_settings(const NodeView& node, bool quantized) {
  Settings s;
  s.quantized = quantized;
  s.chosen = node.attr_int("k", 1);
  if (s.chosen < 1) node.fail("k must be at least 1; got {}", s.chosen);
  s.gate.activation = read_activation(node);
  s.gate.alpha = node.attr_float("activation_alpha", 1);
  s.gate.beta = node.attr_float("activation_beta", 0);
  s.gate.limit = node.attr_float("swiglu_limit", s.gate.limit);
  if (node.attr_int("use_sparse_mixer", 0) != 0)
    node.fail(ErrorCode::unsupported, "use_sparse_mixer");
  s.gated = node.has_input(s.inputs(2).weights);
  if (!s.gated && node.has_input(s.inputs(2).bias))
    node.fail("{} stands without its weights", node.input_name(s.inputs(2).bias));
  const int64_t fusion = node.attr_int("swiglu_fusion", 0);
  if (fusion < 0 || fusion > 2) node.fail("swiglu_fusion must be 0, 1 or 2; got {}", fusion);
  if (s.gate.activation == ExpertActivation::swiglu) {
    if ((fusion == 0) != s.gated)
      node.fail("swiglu needs fc3_experts_weights or, without them, swiglu_fusion 1 or 2");
    s.fused = !s.gated, s.interleaved = fusion == 1;
  }
  const bool normalized = node.attr_int("normalize_routing_weights", 0) != 0;
  s.given_weights = quantized && node.has_input(router_weights);
  if (s.given_weights) {
    s.rule = normalized ? RouteWeights::given_normalized : RouteWeights::given;
  } else {
    s.rule = normalized || quantized ? RouteWeights::softmax_of_chosen : RouteWeights::softmax;
  }
  if (quantized) read_quantization(node, s);
  return s;
}

// --- sizes --------------------------------------------------------------------------------------

struct Layer {
  int64_t n = 0, k = 0, block = 0;  // block: elements that share a scale
  int64_t blocks() const { return block > 0 ? k / block : 0; }
};

struct Sizes {
  int64_t tokens = 0, experts = 0, hidden = 0, inter = 0;
  Layer layer[layers];
};

using Shapes = std::function<std::optional<std::vector<int64_t>>(int)>;  // nullopt: absent
using Objection = std::function<void(const std::string&)>;               // throws

// Holds the shapes against each other. They are the sizes of tensors or what a model declares.
class SizeReader {
 public:
  SizeReader(const Settings& settings, const Shapes& shapes, const Objection& object)
      : s_(settings), shapes_(shapes), object_(object) {}

  Sizes read() {
    const auto x = shapes_(0).value(), router = shapes_(1).value();
    if (x.size() != 2 && x.size() != 3) object_("input must have two or three dimensions");
    if (router.size() != 2) object_("router_probs must have two dimensions");
    z_.hidden = x.back(), z_.experts = router[1];
    const auto tokens = checked_count(std::span(x).first(x.size() - 1));
    if (!tokens || z_.hidden < 1) object_("input must have rows of one value or more");
    z_.tokens = *tokens;
    if (z_.experts < s_.chosen || z_.experts > INT_MAX)
      object_(fmt::format("k is {}, but there are {} experts", s_.chosen, z_.experts));
    require(1, {z_.tokens, z_.experts}, "router_probs");
    if (s_.given_weights) require(router_weights, {z_.tokens, z_.experts}, "router_weights");
    read_inter();
    z_.layer[0] = {z_.inter * (s_.fused ? 2 : 1), z_.hidden};
    z_.layer[1] = {z_.hidden, z_.inter};
    z_.layer[2] = {z_.inter, z_.hidden};
    for (int i = 0; i < s_.used_layers(); ++i) check_layer(i);
    return z_;
  }

 private:
  static constexpr const char* names[layers] = {"fc1", "fc2", "fc3"};

  int64_t packed(int layer, int64_t elements) const {
    return s_.quantized ? elements * s_.bits[layer] / 8 : elements;
  }

  void require(int i, const std::vector<int64_t>& wanted, const std::string& name) const {
    const auto found = shapes_(i);
    if (found && *found != wanted)
      object_(fmt::format("{} must have the shape {}; it has {}", name, to_string(wanted),
                          to_string(*found)));
  }

  void read_inter() {
    const auto weights = shapes_(s_.inputs(1).weights).value();
    if (weights.size() != 3) object_("fc2_experts_weights must have three dimensions");
    const auto bytes = checked_mul(weights[1], weights[2]);
    const auto elements =
        bytes ? checked_mul(*bytes, s_.quantized ? 8 / s_.bits[1] : 1) : std::nullopt;
    constexpr int64_t most = int64_t{1} << 44;
    if (!elements || *elements > most || *elements < z_.hidden || *elements % z_.hidden != 0)
      object_(fmt::format("fc2_experts_weights of the shape {} do not fit rows of {} values",
                          to_string(weights), z_.hidden));
    z_.inter = *elements / z_.hidden;
    if (z_.hidden > most / 2 / z_.inter) object_("the experts are too large");
    // An older way to write the same bytes.
    older_ = (z_.hidden != z_.inter && weights[1] == z_.inter) ||
             (z_.hidden == z_.inter && s_.fused && first_rows() == z_.hidden);
  }

  int64_t first_rows() const {
    const auto first = shapes_(s_.inputs(0).weights).value();
    return first.size() == 3 ? first[1] : -1;
  }

  void check_layer(int i) {
    const LayerInputs& inputs = s_.inputs(i);
    Layer& layer = z_.layer[i];
    const int64_t e = z_.experts, n = layer.n, k = layer.k;
    const std::string name = names[i];
    if (s_.quantized && k * s_.bits[i] % 8 != 0)
      object_(fmt::format("{} has rows of {} elements, which are no whole bytes", name, k));
    require(inputs.weights,
            older_ ? std::vector<int64_t>{e, k, packed(i, n)} : std::vector{e, n, packed(i, k)},
            name + "_experts_weights");
    require(inputs.bias, {e, n}, name + "_experts_bias");
    if (!s_.quantized) return;
    if (s_.block > 0 && k % s_.block != 0)
      object_(fmt::format("block_size {} must divide {}, the length of the rows of {}", s_.block, k,
                          name));
    layer.block = s_.block > 0 ? s_.block : k;
    const auto up = [&](int64_t count) { return (count * s_.bits[i] + 7) / 8; };
    const std::string scales = name + "_scales", zeros = name + "_zero_points";
    if (s_.block > 0) {
      require(inputs.scales, {e, n, layer.blocks()}, scales);
      require(inputs.zeros, {e, n, up(layer.blocks())}, zeros);
    } else {
      require(inputs.scales, {e, n}, scales);
      require(inputs.zeros, {e, up(n)}, zeros);
    }
  }

  const Settings& s_;
  const Shapes& shapes_;
  const Objection& object_;
  Sizes z_;
  bool older_ = false;
};

template <bool quantized>
void infer(InferContext& ctx) {
  const Settings s = read_settings(ctx, quantized);
  bool known = true;
  for (int i = 0; i < std::min(ctx.input_count(), max_inputs); ++i) {
    if (!ctx.has_input(i)) continue;
    known = known && ctx.shape(i) &&
            std::ranges::all_of(*ctx.shape(i), [](const Dim& d) { return d.value().has_value(); });
  }
  const Shapes shapes = [&](int i) -> std::optional<std::vector<int64_t>> {
    if (i < 0 || !ctx.has_input(i)) return std::nullopt;
    std::vector<int64_t> sizes;
    for (const Dim& dim : *ctx.shape(i)) sizes.push_back(*dim.value());
    return sizes;
  };
  if (known) SizeReader(s, shapes, [&](const std::string& what) { ctx.fail("{}", what); }).read();
  if (const auto rank = ctx.rank(0); rank && *rank != 2 && *rank != 3)
    ctx.fail("input must have two or three dimensions; it has {}", *rank);
  ctx.set(0, ctx.type(0));
}

// --- the run ------------------------------------------------------------------------------------

constexpr int64_t max_rows = 256;  // of one expert at a time

struct State {
  Sizes sizes;
  int64_t floats[max_inputs];  // where converted inputs lie, -1: as they are
  int64_t output = -1;
  int64_t begin, token, weight, expert, unsorted;
  int64_t rows, first, third, gated, second, zeros, product;
};

bool is_float(ElementType type) {
  return type == ElementType::float32 || type == ElementType::float16 ||
         type == ElementType::bfloat16;
}

// Half-precision weights of an expert.
class NarrowColumns : public kernels::ColumnSource {
 public:
  NarrowColumns(ElementType type, const std::byte* data, int64_t k)
      : type_(type), data_(data), k_(k) {}
  void columns(int64_t begin, int64_t end, float* out) const override {
    kernels::to_floats(type_, data_ + begin * k_ * 2, out, (end - begin) * k_);
  }

 private:
  ElementType type_;
  const std::byte* data_;
  int64_t k_;
};

NBitsMatrix matrix_of(const Layer& layer, int bits) {
  NBitsMatrix b;
  b.k = layer.k, b.n = layer.n, b.bits = bits, b.block = layer.block;
  return b;
}

int64_t product_scratch(const Settings& s, const Layer& layer, int bits, bool narrow, int64_t m,
                        int threads) {
  if (s.quantized) return kernels::nbits_scratch_bytes(matrix_of(layer, bits), m, threads);
  if (narrow) return kernels::sliced_scratch_bytes(m, layer.n, layer.k, threads);
  return kernels::gemm_scratch_bytes(m, layer.n, layer.k, {nullptr, layer.k, 1},
                                     {nullptr, 1, layer.k}, threads);
}

bool is_weights(const Settings& s, int input) {
  for (int layer = 0; layer < layers; ++layer) {
    const LayerInputs& inputs = s.inputs(layer);
    if (input == inputs.weights || input == inputs.zeros) return true;
  }
  return false;
}

void bind_experts(BindContext& bind, State& state, const Settings& s) {
  const Shapes shapes = [&](int i) -> std::optional<std::vector<int64_t>> {
    if (i < 0 || !bind.has_input(i)) return std::nullopt;
    const auto shape = bind.in_shape(i);
    return std::vector<int64_t>(shape.begin(), shape.end());
  };
  state.sizes = SizeReader(s, shapes, [](const std::string& what) {
                  throw Error(ErrorCode::run_failed, what);
                }).read();
  const Sizes& z = state.sizes;
  ScratchPlanner layout;
  for (int i = 0; i < max_inputs; ++i) {
    const bool convert =
        bind.has_input(i) && !is_weights(s, i) && bind.in_type(i) != ElementType::float32;
    state.floats[i] = convert ? layout.take(bind.in_size(i) * 4) : -1;
  }
  state.output = bind.out_type(0) == ElementType::float32 ? -1 : layout.take(bind.out_size(0) * 4);
  const int64_t routes = z.tokens * s.chosen, rows = std::min(z.tokens, max_rows);
  state.begin = layout.take((z.experts + 1) * 8), state.token = layout.take(routes * 8);
  state.weight = layout.take(routes * 4), state.expert = layout.take(routes * 4);
  state.unsorted = layout.take(routes * 4);
  const auto floats = [&](int64_t columns) { return layout.take(rows * columns * 4); };
  state.rows = floats(z.hidden), state.first = floats(z.layer[0].n);
  state.third = s.gated ? floats(z.inter) : 0;
  state.gated = floats(z.inter), state.second = floats(z.hidden);
  int64_t zeros = 0, product = 0;
  const bool narrow = bind.in_type(s.inputs(0).weights) != ElementType::float32;
  for (int i = 0; i < s.used_layers(); ++i) {
    zeros = std::max(zeros, z.layer[i].n * z.layer[i].blocks());
    for (int64_t m = 1; m <= rows; ++m)
      product =
          std::max(product, product_scratch(s, z.layer[i], s.bits[i], narrow, m, bind.threads()));
  }
  state.zeros = layout.take(zeros), state.product = layout.take(product);
  bind.need_scratch(layout.bytes());
}

class ExpertRun {
 public:
  ExpertRun(RunContext& run, const State& state, const Settings& settings, ThreadPool& alone)
      : run_(run), state_(state), s_(settings), z_(state.sizes), alone_(alone) {
    for (int i = 0; i < max_inputs; ++i) floats_[i] = as_floats(i);
    y_ = state.output < 0 ? run.out<float>(0) : floats_at(state.output);
  }

  void compute() {
    std::fill_n(y_, z_.tokens * z_.hidden, 0.0f);
    const kernels::Routing routing{z_.tokens, z_.experts, s_.chosen,
                                   s_.rule,   floats_[1], floats_[router_weights]};
    const kernels::Routes routes{at<int64_t>(state_.begin), at<int64_t>(state_.token),
                                 floats_at(state_.weight), at<int32_t>(state_.expert),
                                 floats_at(state_.unsorted)};
    kernels::route(routing, routes);
    for (int64_t e = 0; e < z_.experts; ++e) {
      for (int64_t i = routes.begin[e]; i < routes.begin[e + 1]; i += max_rows) {
        const int64_t rows = std::min(max_rows, routes.begin[e + 1] - i);
        multiply_rows(e, routes.token + i, routes.weight + i, rows);
      }
    }
    if (state_.output >= 0)
      kernels::cast(ElementType::float32, run_.out_type(0), y_, run_.out_data(0), run_.out_size(0),
                    {}, run_.pool());
  }

 private:
  template <class T>
  T* at(int64_t offset) const {
    return reinterpret_cast<T*>(scratch_at(run_, offset));
  }
  float* floats_at(int64_t offset) const { return at<float>(offset); }

  const float* as_floats(int i) const {
    if (!run_.has_input(i) || is_weights(s_, i)) return nullptr;
    if (state_.floats[i] < 0) return run_.in<float>(i);
    float* wide = floats_at(state_.floats[i]);
    kernels::cast(run_.in_type(i), ElementType::float32, run_.data(i), wide, run_.in_size(i), {},
                  run_.pool());
    return wide;
  }

  void multiply_rows(int64_t e, const int64_t* token, const float* weight, int64_t rows) {
    float *x = floats_at(state_.rows), *first = floats_at(state_.first),
          *third = floats_at(state_.third), *gated = floats_at(state_.gated),
          *second = floats_at(state_.second);
    for (int64_t r = 0; r < rows; ++r)
      std::copy_n(floats_[0] + token[r] * z_.hidden, z_.hidden, x + r * z_.hidden);
    multiply(0, e, rows, x, first);
    kernels::GateParts parts{first, nullptr, z_.layer[0].n, z_.layer[0].n, 1};
    if (s_.gated) {
      multiply(2, e, rows, x, third);
      parts.linear = third, parts.linear_stride = z_.inter;
    } else if (s_.fused) {
      parts.linear = first + (s_.interleaved ? 1 : z_.inter);
      parts.step = s_.interleaved ? 2 : 1;
    }
    kernels::apply_gate(s_.gate, parts, rows, z_.inter, gated, run_.pool());
    multiply(1, e, rows, gated, second);
    for (int64_t r = 0; r < rows; ++r) {
      // An expert of no weight adds nothing, whatever it gives.
      if (weight[r] == 0) continue;
      float* y = y_ + token[r] * z_.hidden;
      for (int64_t c = 0; c < z_.hidden; ++c) y[c] += weight[r] * second[r * z_.hidden + c];
    }
  }

  // y [rows, n]: rows times the matrix of an expert, plus its bias.
  void multiply(int i, int64_t e, int64_t rows, const float* x, float* y) const {
    const Layer& layer = z_.layer[i];
    const LayerInputs& inputs = s_.inputs(i);
    const float* bias = floats_[inputs.bias];
    if (bias != nullptr) bias += e * layer.n;
    void* scratch = scratch_at(run_, state_.product);
    const auto* weights = run_.in<std::byte>(inputs.weights);
    if (s_.quantized)
      return kernels::nbits_product(quantized(i, e), rows, x, bias, y, scratch, alone_,
                                    run_.pool());
    const ElementType type = run_.in_type(inputs.weights);
    weights += e * byte_size(type, layer.n * layer.k);
    if (type != ElementType::float32)
      return kernels::sliced_product(NarrowColumns(type, weights, layer.k), rows, layer.n, layer.k,
                                     x, bias, y, scratch, alone_, run_.pool());
    kernels::Epilogue epilogue;
    if (bias != nullptr) epilogue.bias = bias, epilogue.bias_axis = kernels::BiasAxis::column;
    kernels::gemm(rows, layer.n, layer.k, {x, layer.k, 1},
                  {reinterpret_cast<const float*>(weights), 1, layer.k}, y, layer.n, epilogue,
                  scratch, run_.pool());
  }

  NBitsMatrix quantized(int i, int64_t e) const {
    const Layer& layer = z_.layer[i];
    const LayerInputs& inputs = s_.inputs(i);
    NBitsMatrix b = matrix_of(layer, s_.bits[i]);
    b.data = run_.in<uint8_t>(inputs.weights) + e * layer.n * b.column_bytes();
    b.scales = floats_[inputs.scales] + e * layer.n * layer.blocks();
    if (!run_.has_input(inputs.zeros)) return b;
    // Those of a column's blocks begin a byte; where columns have one each, those of an expert do.
    const int64_t line = s_.block > 0 ? layer.blocks() : layer.n;
    const int64_t lines = s_.block > 0 ? layer.n : 1, line_bytes = (line * b.bits + 7) / 8;
    const uint8_t* packed = run_.in<uint8_t>(inputs.zeros) + e * lines * line_bytes;
    auto* zeros = at<uint8_t>(state_.zeros);
    const int mask = (1 << b.bits) - 1, per_byte = 8 / b.bits;
    for (int64_t l = 0; l < lines; ++l) {
      for (int64_t c = 0; c < line; ++c)
        zeros[l * line + c] = static_cast<uint8_t>(
            packed[l * line_bytes + c / per_byte] >> (c % per_byte * b.bits) & mask);
    }
    b.zeros = zeros;
    return b;
  }

  RunContext& run_;
  const State& state_;
  const Settings& s_;
  const Sizes& z_;
  ThreadPool& alone_;
  const float* floats_[max_inputs];
  float* y_;
};

template <bool quantized>
std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const Settings s = read_settings(ctx, quantized);
  for (int i = 0; i < std::min(ctx.input_count(), max_inputs); ++i) {
    if (!ctx.has_input(i)) continue;
    const ElementType type = ctx.in_element(i);
    const bool good = quantized && is_weights(s, i) ? type == ElementType::uint8 : is_float(type);
    if (!good) ctx.fail(ErrorCode::unsupported, "{} of {}", ctx.input_name(i), name_of(type));
  }
  return make_step<State>(
      quantized ? "quantized_experts" : "experts",
      [s](BindContext& bind, State& state) { bind_experts(bind, state, s); },
      [s, alone = std::make_shared<ThreadPool>(1)](RunContext& run, const State& state) {
        ExpertRun(run, state, s, *alone).compute();
      });
}

constexpr Operator operators[] = {
    {.name = "MoE", .domain = "com.microsoft", .infer = infer<false>, .prepare = prepare<false>},
    {.name = "QMoE", .domain = "com.microsoft", .infer = infer<true>, .prepare = prepare<true>},
};

}  // namespace
}  // namespace contrib_experts_unit

std::span<const Operator> contrib_experts_operators() { return contrib_experts_unit::operators; }

}  // namespace sardonyx::ops
