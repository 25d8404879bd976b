#include "passes/convolution/channel_shuffle.h"

#include <cstring>
#include <optional>
#include <vector>

#include "ir/node_values.h"
#include "ir/tensor.h"
#include "ops/internal/node.h"
#include "passes/convolution/nhwc_conv.h"
#include "passes/graph_index.h"

namespace sardonyx::passes {
namespace {

using ops::internal::Conv;

class Shuffles {
 public:
  explicit Shuffles(GraphIndex& index) : index_(index) {}

  void run() {
    for (size_t i = 0; i < index_.size(); ++i) {
      if (!index_.is_dead(i)) shuffle_output(i);
    }
    for (size_t i = 0; i < index_.size(); ++i) {
      if (!index_.is_dead(i)) absorb(i);
    }
  }

 private:
  // The node at `i` ends a shuffle of what a convolution in as many groups alone makes.
  void shuffle_output(size_t i) {
    if (index_.node(i).op_type != "Reshape") return;
    const std::string joined = index_.node(i).outputs[0];
    const auto shuffle = shuffle_before(joined);
    if (!shuffle || !index_.is_float32(joined)) return;
    const size_t maker = index_.producer_index(shuffle->x);
    if (maker == index_.size() || index_.only_user(shuffle->x) == index_.size()) return;
    const auto conv = nhwc_conv(index_, maker);
    if (!conv) return;
    ir::Node shuffling = index_.node(maker);
    const bool plain = shuffling.outputs.size() == 1 && !adds_or_multiplies(shuffling) &&
                       conv->op.input_shuffle == 1 && !conv->op.shuffles_output;
    if (!plain || !conv->keeps_pixels() || conv->shape.group != shuffle->groups ||
        conv->shape.out_channels != shuffle->channels() ||
        !kernels::can_shuffle_output(conv->shape))
      return;
    Conv op = conv->op;
    op.shuffles_output = true;
    ops::internal::write(op, shuffling);
    shuffling.outputs[0] = joined;
    index_.replace(maker, std::move(shuffling), {{i}});
  }

  // Inputs of a convolution that have one value for each channel.
  static constexpr size_t of_channels[] = {Conv::w, Conv::bias, Conv::factors};

  static bool adds_or_multiplies(const ir::Node& node) {
    return ir::has_input(node, Conv::residual) || ir::has_input(node, Conv::input_factors);
  }

  // The convolution at `i` reads shuffled channels, maybe through depthwise ones. Those read none
  // by themselves: their kernel, which gives means, too, takes channels in order.
  void absorb(size_t i) {
    const auto conv = nhwc_conv(index_, i);
    if (!conv || conv->shape.group == 1 || conv->depthwise() || !conv->keeps_pixels() ||
        conv->op.shuffles_output)
      return;
    std::vector<size_t> between;
    size_t user = i;
    for (;;) {
      const std::string& x = index_.node(user).inputs[Conv::x];
      const size_t maker = index_.producer_index(x);
      if (maker == index_.size() || index_.only_user(x) != user || !index_.is_float32(x)) return;
      if (index_.node(maker).op_type == "Reshape") break;
      const auto middle = nhwc_conv(index_, maker);
      if (!middle || !middle->depthwise() || !may_reorder(maker)) return;
      between.push_back(maker);
      user = maker;
    }
    const std::string joined = index_.node(user).inputs[Conv::x];
    const auto shuffle = shuffle_before(joined);
    if (!shuffle || shuffle->channels() != conv->shape.in_channels) return;
    for (const size_t d : between) reorder(d, *shuffle);
    ir::Node reading = index_.node(i);
    Conv op = conv->op;
    op.input_shuffle = shuffle->groups;
    ops::internal::write(op, reading);
    const size_t join = index_.producer_index(joined);
    if (user == i) {
      reading.inputs[Conv::x] = shuffle->x;
    } else {
      ir::Node first = index_.node(user);
      first.inputs[Conv::x] = shuffle->x;
      index_.change(user, std::move(first));
    }
    index_.replace(i, std::move(reading), {{join}});
  }

  // Channels [groups, each] of x, transposed.
  struct Shuffle {
    std::string x;
    int64_t groups, each;
    int64_t channels() const { return groups * each; }
  };

  std::optional<Shuffle> shuffle_before(const std::string& joined) const {
    const ir::Node* join = maker_of(joined, "Reshape");
    const ir::Node* swap = join ? maker_of(join->inputs[0], "Transpose") : nullptr;
    const ir::Node* split = swap ? maker_of(swap->inputs[0], "Reshape") : nullptr;
    if (split == nullptr) return std::nullopt;
    const ir::Attribute* perm = swap->find("perm");
    const auto *from = index_.shape_of(split->inputs[0]),
               *interleaved = index_.shape_of(split->outputs[0]), *to = index_.shape_of(joined);
    if (perm == nullptr || from == nullptr || interleaved == nullptr || to == nullptr ||
        *from != *to || from->size() < 3 || interleaved->size() != from->size() + 1)
      return std::nullopt;
    const size_t rank = from->size();
    for (size_t k = 0; k < rank + 1; ++k) {
      const size_t transposed = k == rank ? rank - 1 : k == rank - 1 ? rank : k;
      if (perm->ints.size() != rank + 1 || perm->ints[k] != static_cast<int64_t>(transposed))
        return std::nullopt;
      if (k < rank - 1 && (*from)[k] != (*interleaved)[k]) return std::nullopt;
    }
    const auto groups = (*interleaved)[rank - 1].value(), each = (*interleaved)[rank].value();
    if (!groups || !each || *groups < 1 || *each < 1) return std::nullopt;
    return Shuffle{split->inputs[0], *groups, *each};
  }

  const ir::Node* maker_of(const std::string& value, std::string_view op) const {
    const ir::Node* node = index_.producer(value);
    if (node == nullptr || !node->domain.empty() || node->op_type != op ||
        index_.only_user(value) == index_.size())
      return nullptr;
    return node;
  }

  // Of a depthwise convolution: everything that has a channel is a constant.
  bool may_reorder(size_t d) const {
    const ir::Node& node = index_.node(d);
    for (const size_t k : of_channels) {
      if (ir::has_input(node, k) && index_.constant(node.inputs[k]) == nullptr) return false;
    }
    return !adds_or_multiplies(node) && node.outputs.size() == 1;
  }

  void reorder(size_t d, const Shuffle& shuffle) {
    ir::Node node = index_.node(d);
    for (const size_t k : of_channels) {
      if (ir::has_input(node, k))
        node.inputs[k] = index_.add_initializer(
            in_order_of_images(*index_.constant(node.inputs[k]), shuffle), node.inputs[k]);
    }
    index_.change(d, std::move(node));
  }

  // One row for each channel as it is after the shuffle, to the order before it.
  static Tensor in_order_of_images(const Tensor& rows, const Shuffle& shuffle) {
    const Tensor held = ir::aligned(rows);
    Tensor transposed(held.element_type(), held.shape());
    const size_t row = held.byte_size() / static_cast<size_t>(shuffle.channels());
    const auto* from = static_cast<const char*>(held.data());
    auto* to = static_cast<char*>(transposed.mutable_data());
    for (int64_t group = 0; group < shuffle.groups; ++group) {
      for (int64_t k = 0; k < shuffle.each; ++k, to += row)
        std::memcpy(to, from + static_cast<size_t>(k * shuffle.groups + group) * row, row);
    }
    return transposed;
  }

  GraphIndex& index_;
};

}  // namespace

void fuse_channel_shuffles(GraphIndex& index) { Shuffles(index).run(); }

}  // namespace sardonyx::passes
