#include <bit>
#include <functional>
#include <string_view>
#include <vector>

#include "ops/operator.h"

// The list of units: each file of src/ops/ that defines operators has one line here and defines
// `std::span<const Operator> NAME_operators()`. What it keeps to itself lies in an anonymous
// namespace within `namespace NAME_unit`: units have functions of the same names and are compiled
// several at a time.
#define SARDONYX_OPERATOR_UNITS(UNIT) \
  UNIT(arg_extreme)                   \
  UNIT(attention)                     \
  UNIT(batch_normalization)           \
  UNIT(binary)                        \
  UNIT(lookup_table)                  \
  UNIT(cast)                          \
  UNIT(causal_conv)                   \
  UNIT(center_crop_pad)               \
  UNIT(channel_normalization)         \
  UNIT(clip)                          \
  UNIT(col2im)                        \
  UNIT(concat)                        \
  UNIT(constant)                      \
  UNIT(constant_of_shape)             \
  UNIT(contrib_activations)           \
  UNIT(contrib_attention)             \
  UNIT(contrib_blocked_layout)        \
  UNIT(contrib_decoder_attention)     \
  UNIT(contrib_experts)               \
  UNIT(contrib_gather_quantized)      \
  UNIT(contrib_gated_delta_net)       \
  UNIT(contrib_gates)                 \
  UNIT(contrib_generation)            \
  UNIT(contrib_group_normalizations)  \
  UNIT(contrib_group_query)           \
  UNIT(contrib_integer_products)      \
  UNIT(contrib_matmul_nbits)          \
  UNIT(contrib_ngram_hashes)          \
  UNIT(contrib_ngrams)                \
  UNIT(contrib_normalizations)        \
  UNIT(contrib_older_forms)           \
  UNIT(contrib_packed_sequences)      \
  UNIT(contrib_paged_attention)       \
  UNIT(contrib_position_biases)       \
  UNIT(contrib_products)              \
  UNIT(contrib_quantized)             \
  UNIT(contrib_quantized_weights)     \
  UNIT(contrib_recurrent)             \
  UNIT(contrib_sequence_mixers)       \
  UNIT(contrib_small_kernels)         \
  UNIT(contrib_sparse_products)       \
  UNIT(contrib_tokenizer)             \
  UNIT(contrib_varlen_conv)           \
  UNIT(conv)                          \
  UNIT(fused_conv_chain)              \
  UNIT(conv_integer)                  \
  UNIT(conv_transpose)                \
  UNIT(conv_weight_gradient)          \
  UNIT(cumulate)                      \
  UNIT(interleaved_concat)            \
  UNIT(deform_conv)                   \
  UNIT(depth_to_space)                \
  UNIT(det)                           \
  UNIT(dropout)                       \
  UNIT(einsum)                        \
  UNIT(expand)                        \
  UNIT(flex_attention)                \
  UNIT(fourier)                       \
  UNIT(gather)                        \
  UNIT(gemm)                          \
  UNIT(global_pool)                   \
  UNIT(gradient)                      \
  UNIT(grid_sample)                   \
  UNIT(identity)                      \
  UNIT(if)                            \
  UNIT(image_decoder)                 \
  UNIT(in_range)                      \
  UNIT(layer_normalization)           \
  UNIT(linear_attention)              \
  UNIT(loop)                          \
  UNIT(lstm_recurrence)               \
  UNIT(loss)                          \
  UNIT(matmul)                        \
  UNIT(matmul_integer)                \
  UNIT(matrix_shape)                  \
  UNIT(max_unpool)                    \
  UNIT(ml_encoders)                   \
  UNIT(ml_features)                   \
  UNIT(ml_linear)                     \
  UNIT(ml_maps)                       \
  UNIT(ml_svm)                        \
  UNIT(ml_trees)                      \
  UNIT(non_max_suppression)           \
  UNIT(non_zero)                      \
  UNIT(one_hot)                       \
  UNIT(optional)                      \
  UNIT(optimizers)                    \
  UNIT(pad)                           \
  UNIT(pool)                          \
  UNIT(quantize)                      \
  UNIT(quantized_matmul)              \
  UNIT(random)                        \
  UNIT(range)                         \
  UNIT(recurrent)                     \
  UNIT(reduce)                        \
  UNIT(fused_elementwise)             \
  UNIT(removed)                       \
  UNIT(reshape)                       \
  UNIT(resize)                        \
  UNIT(reverse_sequence)              \
  UNIT(roi)                           \
  UNIT(rotary_embedding)              \
  UNIT(scale_shift)                   \
  UNIT(scan)                          \
  UNIT(scatter)                       \
  UNIT(sequence)                      \
  UNIT(sequence_map)                  \
  UNIT(shape)                         \
  UNIT(signal_window)                 \
  UNIT(slice)                         \
  UNIT(softmax)                       \
  UNIT(split)                         \
  UNIT(squeeze)                       \
  UNIT(strings)                       \
  UNIT(tensor_scatter)                \
  UNIT(tfidf_vectorizer)              \
  UNIT(topk)                          \
  UNIT(transpose)                     \
  UNIT(unary)                         \
  UNIT(unique)                        \
  UNIT(variadic)                      \
  UNIT(where)

namespace sardonyx::ops {

#define DECLARE(name) std::span<const Operator> name##_operators();
SARDONYX_OPERATOR_UNITS(DECLARE)
#undef DECLARE

namespace {

// All operators, and a hash table of them.
class Table {
 public:
  Table() {
    const auto add = [&](std::span<const Operator> unit) {
      for (const Operator& op : unit) all_.push_back(&op);
    };
#define ADD(name) add(name##_operators());
    SARDONYX_OPERATOR_UNITS(ADD)
#undef ADD
    slots_.resize(std::bit_ceil(all_.size() * 2));
    for (const Operator* op : all_) {
      size_t slot = hash(op->domain, op->name);
      while (slots_[slot] != nullptr) slot = next(slot);
      slots_[slot] = op;
    }
  }

  std::span<const Operator* const> all() const { return all_; }

  const Operator* find(std::string_view domain, std::string_view name) const {
    size_t slot = hash(domain, name);
    while (slots_[slot] && (slots_[slot]->name != name || slots_[slot]->domain != domain))
      slot = next(slot);
    return slots_[slot];
  }

 private:
  size_t hash(std::string_view domain, std::string_view name) const {
    return (std::hash<std::string_view>()(name) + domain.size()) & (slots_.size() - 1);
  }
  size_t next(size_t slot) const { return (slot + 1) & (slots_.size() - 1); }

  std::vector<const Operator*> all_;
  std::vector<const Operator*> slots_;  // null: empty
};

const Table& table() {
  static const Table made;
  return made;
}

}  // namespace

std::span<const Operator* const> all_operators() { return table().all(); }

const Operator* find_operator(std::string_view domain, std::string_view name) {
  return table().find(ir::canonical_domain(domain), name);
}

}  // namespace sardonyx::ops
