#include "passes/pipeline.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "ops/internal/elementwise.h"
#include "ops/internal/node.h"
#include "ops/internal/quantized.h"
#include "passes/canonicalize/dead_nodes.h"
#include "passes/canonicalize/float_exponents.h"
#include "passes/canonicalize/loop_invariants.h"
#include "passes/canonicalize/no_ops.h"
#include "passes/convolution/channel_shuffle.h"
#include "passes/convolution/interleaved_groups.h"
#include "passes/convolution/inverted_residual.h"
#include "passes/convolution/nhwc_conv.h"
#include "passes/convolution/squeeze_excite.h"
#include "passes/fusion/activations.h"
#include "passes/fusion/attention.h"
#include "passes/fusion/batch_normalization.h"
#include "passes/fusion/elementwise.h"
#include "passes/fusion/epilogues.h"
#include "passes/fusion/group_normalizations.h"
#include "passes/fusion/normalizations.h"
#include "passes/fusion/optimizers.h"
#include "passes/fusion/transposed_operands.h"
#include "passes/layout/layout.h"
#include "passes/layout/nchw_inputs.h"
#include "passes/precision/promote_half.h"
#include "passes/quantization/lookup_tables.h"
#include "passes/quantization/quantize.h"
#include "passes/quantization/quantized_add.h"

namespace sardonyx::passes {
namespace {

// --- When passes have nothing to do

bool has_quantized(const PassContext& c) { return has_quantized_nodes(c.graph()); }

template <class Op>
bool has_internal(const PassContext& c) {
  return std::ranges::any_of(c.graph().nodes,
                             [](const ir::Node& node) { return ops::internal::is<Op>(node); });
}

bool has_elementwise(const PassContext& c) {
  return has_internal<ops::internal::FusedElementwise>(c);
}

bool has_quantized_adds(const PassContext& c) {
  return has_internal<ops::internal::QLinearConv>(c) && has_elementwise(c);
}

bool has_grouped_convolutions(const PassContext& c) {
  return std::ranges::any_of(c.graph().nodes, is_grouped_nhwc_conv);
}

// Also convolutions of images that something has been multiplied with.
bool has_mobile_blocks(const PassContext& c) {
  if (has_grouped_convolutions(c)) return true;
  std::unordered_set<std::string_view> products;
  for (const ir::Node& node : c.graph().nodes) {
    if (node.op_type == "Mul" && !node.outputs.empty()) products.insert(node.outputs[0]);
  }
  return std::ranges::any_of(c.graph().nodes, [&](const ir::Node& node) {
    return is_nhwc_conv(node) && products.contains(node.inputs[0]);
  });
}

bool transposes_operands(const PassContext& c) { return has_transposed_operands(c.graph()); }

bool casts_half(const PassContext& c) { return has_casts_of_half(c.graph(), c.scope()); }

bool lost_types(const PassContext& c) { return c.lost_types(); }

// --- Passes as the list below calls them

// Of those that work on uses, which count what they change.
template <void (*rewrite)(GraphIndex&)>
bool on_uses(PassContext& c) {
  rewrite(c.uses());
  return false;
}

template <bool (*rewrite)(ir::Graph&)>
bool on_nodes(PassContext& c) {
  return rewrite(c.graph());
}

template <bool (*rewrite)(ir::Graph&, const infer::Scope&)>
bool on_types(PassContext& c) {
  return rewrite(c.graph(), c.scope());
}

bool fold(PassContext& c) { return c.infer(false, true); }
bool fold_around_bytes(PassContext& c) { return c.infer(true, false); }
bool fold_only(PassContext& c) { return c.infer(true, true); }

// --- Passes that stand in several lists

constexpr Pass hoist{"hoist-loop-invariants",
                     "states of loops that no iteration changes are read from around the loop",
                     no_facts,
                     no_facts,
                     nullptr,
                     on_nodes<hoist_loop_invariants>};
constexpr Pass remove_dead{"remove-dead-nodes",
                           "nodes and initializers that nobody uses are removed",
                           no_facts,
                           types,
                           nullptr,
                           on_nodes<remove_dead_nodes>};
// Before inference runs again.
constexpr Pass remove_dead_after_change{remove_dead.name, remove_dead.summary, no_facts, types,
                                        lost_types,       remove_dead.run};
constexpr Pass fold_all{"fold-constants",
                        "what does not change from run to run is computed; Ifs of known condition "
                        "give way to their branch",
                        no_facts,
                        types,
                        nullptr,
                        fold};

// Each entry: name, summary, facts that it needs, facts that it keeps, when it applies, what it
// does. The order matters; where a pass needs another before it, its header says so.
constexpr Pass optimizing[] = {
    hoist,
    {"fold-around-quantized", "constants are folded, but those that DequantizeLinear makes",
     no_facts, types, has_quantized, fold_around_bytes},
    {"remove-dead-nodes", remove_dead.summary, no_facts, types, has_quantized,
     on_nodes<remove_dead_nodes>},
    {"fuse-quantized", "operators between DequantizeLinear and QuantizeLinear work on the bytes",
     types_and_uses, no_facts, has_quantized, on_uses<fuse_quantized>},
    remove_dead_after_change,
    fold_all,
    remove_dead,
    {"remove-no-ops", "Identity, idle Dropout and Casts to the same type are removed", types, types,
     nullptr, on_types<remove_no_ops>},
    {"fuse-half-rms-normalizations", "RMSNormalization decomposed between Casts of half precision",
     types_and_uses, types_and_uses, casts_half, on_uses<fuse_rms_normalizations>},
    {"promote-half", "neighbours in float16 and bfloat16 compute in float32", types, constants_only,
     nullptr, on_types<promote_half>},
    remove_dead_after_change,
    {"make-exponents-floats", "constant exponents of integers become floats", types_and_uses,
     types_and_uses, nullptr, on_uses<make_exponents_floats>},
    {"fold-batch-normalizations",
     "BatchNormalization becomes part of the convolution before it, or a factor and a term",
     types_and_uses, types_and_uses, nullptr, on_uses<fold_batch_normalizations>},
    {"fuse-layer-normalizations", "LayerNormalization decomposed in arithmetic", types_and_uses,
     types_and_uses, nullptr, on_uses<fuse_layer_normalizations>},
    {"fuse-rms-normalizations", "RMSNormalization decomposed in arithmetic", types_and_uses,
     types_and_uses, nullptr, on_uses<fuse_rms_normalizations>},
    {"fuse-group-normalizations", "GroupNormalization decomposed around InstanceNormalization",
     types_and_uses, types_and_uses, nullptr, on_uses<fuse_group_normalizations>},
    {"fuse-activations", "Gelu and Swish decomposed in arithmetic", types_and_uses, types_and_uses,
     nullptr, on_uses<fuse_activations>},
    {"fuse-attention", "attention decomposed in products and a Softmax", types_and_uses,
     types_and_uses, nullptr, on_uses<fuse_attention>},
    {"fuse-optimizers", "a step of AdamW in arithmetic goes over memory once", types_and_uses,
     types_and_uses, nullptr, on_uses<fuse_optimizers>},
    {"fuse-epilogues", "bias, sum and activation become part of the product before them",
     types_and_uses, types_and_uses, nullptr, on_uses<fuse_epilogues>},
    {"fuse-elementwise", "element-wise operators of one shape go over memory once", types_and_uses,
     types_and_uses, nullptr, on_uses<fuse_elementwise>},
    remove_dead,
    {"convert-to-nhwc", "convolutions and what stands around them work with channels last", types,
     constants_only, nullptr, on_types<convert_to_nhwc>},
    {"fuse-transposed-operands", "MatMul reads what a Transpose before it would have rearranged",
     types_and_uses, types_and_uses, transposes_operands, on_uses<fuse_transposed_operands>},
    {"fuse-quantized-adds", "sums of bytes become part of the quantised convolution before them",
     constants_and_uses, constants_and_uses, has_quantized_adds, on_uses<fuse_quantized_adds>},
    {"make-lookup-tables", "functions of one value of bytes become tables", constants_and_uses,
     constants_and_uses, has_elementwise, on_uses<make_lookup_tables>},
    {"fuse-channel-shuffles", "channels are shuffled by the convolution before or behind",
     types_and_uses, types_and_uses, has_grouped_convolutions, on_uses<fuse_channel_shuffles>},
    {"keep-groups-interleaved", "images between grouped convolutions keep their groups interleaved",
     types, constants_only, has_grouped_convolutions, on_types<keep_groups_interleaved>},
    {"fuse-squeeze-excite",
     "means and factors of channels become part of the convolutions around them", types_and_uses,
     types_and_uses, has_mobile_blocks, on_uses<fuse_squeeze_excite>},
    {"fuse-inverted-residuals",
     "a depthwise convolution and its neighbours run together, some rows at a time", types_and_uses,
     types_and_uses, has_mobile_blocks, on_uses<fuse_inverted_residuals>},
    {"read-nchw-inputs", "a convolution reads images of few channels as they come",
     constants_and_uses, constants_and_uses, nullptr, on_uses<read_nchw_inputs>},
};

constexpr Pass cleaning[] = {hoist, fold_all, remove_dead};

constexpr Pass folding[] = {
    hoist,
    {"fold-around-quantized", "constants are folded, but those that DequantizeLinear makes",
     no_facts, types, nullptr, fold_only},
    remove_dead,
};

}  // namespace

std::span<const Pass> optimizing_passes() { return optimizing; }
std::span<const Pass> cleaning_passes() { return cleaning; }
std::span<const Pass> folding_passes() { return folding; }

}  // namespace sardonyx::passes
