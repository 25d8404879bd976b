#include "passes/convolution/interleaved_groups.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "ir/origin.h"
#include "ir/tensor.h"
#include "ops/internal/images.h"
#include "ops/internal/node.h"
#include "ops/traits.h"
#include "ops/upgrade_context.h"
#include "passes/convolution/nhwc_conv.h"
#include "passes/graph_index.h"
#include "passes/value_names.h"

namespace sardonyx::passes {
namespace {

using ops::internal::Conv;
using ops::internal::InterleavedConcat;

// Its elements are made of those of its inputs, one by one, where shapes are the same.
bool is_elementwise(const ir::Node& node) {
  return ops::has_trait(node, ops::unary | ops::broadcasts);
}

bool is_pool(const ir::Node& node) {
  return ops::internal::is<ops::internal::MaxPool>(node) ||
         ops::internal::is<ops::internal::AveragePool>(node);
}

// Images that must have their channels in one order, and who makes and reads them.
struct Stream {
  Stream(int64_t groups, int64_t channels, size_t rank)
      : groups(groups), channels(channels), rank(rank) {}
  int64_t each() const { return channels / groups; }

  int64_t groups, channels;
  size_t rank;  // of its values
  std::unordered_set<std::string> values;
  std::vector<std::string> order;           // the values, as they were found
  std::vector<size_t> makers, readers;      // convolutions that do it for nothing
  std::vector<std::string> made_by_others;  // values
  struct Use {
    size_t node;
    std::string value;
  };
  std::vector<Use> read_by_others;
  std::vector<size_t> pools;
  bool possible = true;

  // A shuffle is a pass over an image; as much is saved where an image need not be interleaved to
  // be multiplied, and less where no lane of a product stays empty.
  bool pays() const {
    return possible && makers.size() + readers.size() >
                           2 * (made_by_others.size() + read_by_others.size() + pools.size());
  }
};

class DealtStreams {
 public:
  DealtStreams(ir::Graph& graph, const infer::Scope& scope)
      : graph_(graph),
        index_(graph, scope),
        before_(graph.nodes.size()),
        after_(before_.size()),
        names_(scope) {}

  bool run() {
    bool changed = false;
    for (size_t i = 0; i < index_.size(); ++i) {
      const auto conv = interleavable(i);
      if (!conv || done_.contains(index_.node(i).inputs[0])) continue;
      Stream stream(conv->shape.group, conv->shape.in_channels,
                    static_cast<size_t>(conv->shape.rank) + 2);
      grow(stream, index_.node(i).inputs[0]);
      done_.insert(stream.values.begin(), stream.values.end());
      if (!stream.pays()) continue;
      apply(stream);
      changed = true;
    }
    if (changed) insert_turns();
    return changed;
  }

 private:
  // The pointwise convolution in several groups at i, if its kernels take channels interleaved.
  std::optional<NhwcConv> interleavable(size_t i) const {
    const ir::Node& node = index_.node(i);
    const auto conv = nhwc_conv(index_, i);
    if (!conv || conv->shape.group == 1 || conv->shape.group == conv->shape.in_channels ||
        !conv->keeps_pixels() || node.outputs.size() != 1 ||
        ir::has_input(node, Conv::input_factors) || conv->op.input_shuffle != 1 ||
        !index_.is_float32(node.inputs[0]) || !kernels::can_shuffle_output(conv->shape))
      return std::nullopt;
    return conv;
  }

  bool may_make(const Stream& stream, size_t i) const {
    const auto conv = interleavable(i);
    return conv && conv->shape.group == stream.groups &&
           conv->shape.out_channels == stream.channels && !conv->op.shuffles_output;
  }

  bool may_read(const Stream& stream, size_t i) const {
    const auto conv = interleavable(i);
    return conv && conv->shape.group == stream.groups && conv->shape.in_channels == stream.channels;
  }

  bool passes(size_t i) const {
    const ir::Node& node = index_.node(i);
    if (!is_elementwise(node) || node.outputs.size() != 1) return false;
    for (const std::string& input : node.inputs) {
      if (!index_.is_float32(input) || !index_.same_shape(input, node.outputs[0])) return false;
    }
    return true;
  }

  void grow(Stream& stream, const std::string& seed) {
    const auto reach = [&](const std::string& value) {
      if (stream.values.insert(value).second) stream.order.push_back(value);
    };
    reach(seed);
    for (size_t k = 0; k < stream.order.size() && stream.possible; ++k) {
      const std::string value = stream.order[k];
      const std::vector<size_t> users = index_.users(value);
      const size_t maker = index_.producer_index(value);
      stream.possible = static_cast<int>(users.size()) == index_.uses(value) &&
                        maker != index_.size() && !done_.contains(value);
      if (!stream.possible) return;
      if (may_make(stream, maker)) {
        stream.makers.push_back(maker);
        if (ir::has_input(index_.node(maker), Conv::residual))
          reach(index_.node(maker).inputs[Conv::residual]);
      } else if (passes(maker)) {
        for (const std::string& input : index_.node(maker).inputs) reach(input);
      } else {
        stream.made_by_others.push_back(value);
      }
      for (const size_t user : std::set<size_t>(users.begin(), users.end()))
        use(stream, user, value, reach);
    }
  }

  template <class Reach>
  void use(Stream& stream, size_t user, const std::string& value, Reach&& reach) {
    const ir::Node& node = index_.node(user);
    const bool image = node.inputs[0] == value;
    const bool residual =
        ir::has_input(node, Conv::residual) && node.inputs[Conv::residual] == value;
    if (passes(user) || (residual && may_make(stream, user))) {
      reach(node.outputs[0]);
      if (image && residual && may_read(stream, user)) stream.readers.push_back(user);
      stream.possible = stream.possible && (!image || !residual || may_read(stream, user));
    } else if (image && !residual && may_read(stream, user)) {
      stream.readers.push_back(user);
    } else if (image && is_pool(node)) {
      stream.pools.push_back(user);
    } else {
      stream.read_by_others.push_back({user, value});
    }
  }

  void apply(const Stream& stream) {
    const Shuffle interleave{stream.rank, stream.groups, stream.each()};
    const Shuffle gather{stream.rank, stream.each(), stream.groups};
    for (const size_t i : stream.makers)
      change_conv(i, [](Conv& conv) { conv.shuffles_output = true; });
    for (const size_t i : stream.readers)
      change_conv(i, [&](Conv& conv) { conv.input_shuffle = stream.each(); });
    for (const std::string& value : stream.made_by_others) {
      const size_t maker = index_.producer_index(value);
      if (joins_channels(maker)) {
        interleaved_concat(maker, stream.groups);
        continue;
      }
      const std::string plain = rename_output(maker, value);
      shuffle(after_[maker], plain, value, interleave);
    }
    for (const size_t pool : stream.pools) {
      const std::string value = index_.node(pool).outputs[0];
      const std::string interleaved = rename_output(pool, value);
      shuffle(after_[pool], interleaved, value, gather);
    }
    for (const auto& [node, value] : stream.read_by_others) {
      const std::string plain = fresh(value);
      shuffle(before_[node], value, plain, gather);
      rename_uses(index_.node(node), {{value, plain}});  // in the graphs inside it, too
    }
  }

  template <class Change>
  void change_conv(size_t i, const Change& change) {
    auto conv = ops::internal::from_node<Conv>(index_.node(i));
    change(conv);
    ops::internal::write(conv, index_.node(i));
  }

  bool joins_channels(size_t i) const {
    const ir::Node& node = index_.node(i);
    if (!node.domain.empty() || node.op_type != "Concat" ||
        node.inputs.size() > InterleavedConcat::max_images)
      return false;
    const infer::ValueFacts* y = index_.known(node.outputs[0]);
    const ir::Attribute* axis = node.find("axis");
    if (y == nullptr || !y->type.shape) return false;
    const auto rank = static_cast<int64_t>(y->type.shape->size());
    return axis != nullptr && (axis->i == rank - 1 || axis->i == -1) &&
           std::ranges::all_of(node.inputs, [&](const std::string& x) {
             const infer::ValueFacts* known = index_.known(x);
             return index_.is_float32(x) && known->type.shape;
           });
  }

  // The Concat at i interleaves what it joins, and takes a Relu behind it in.
  void interleaved_concat(size_t i, int64_t groups) {
    ir::Node joined = index_.node(i);
    InterleavedConcat concat{.groups = groups};
    std::vector<size_t> with;
    const size_t user = index_.only_user(joined.outputs[0]);
    if (user != index_.size() && index_.node(user).op_type == "Relu" &&
        index_.node(user).domain.empty()) {
      concat.relu = true;
      joined.outputs[0] = index_.node(user).outputs[0];
      with.push_back(user);
    }
    ops::internal::write(concat, joined);
    index_.replace(i, std::move(joined), with);
  }

  std::string rename_output(size_t node, const std::string& value) {
    if (index_.node(node).name.empty()) ir::keep_source(index_.node(node));
    const std::string name = fresh(value);
    for (std::string& output : index_.node(node).outputs) {
      if (output == value) output = name;
    }
    return name;
  }

  std::string fresh(const std::string& value) { return names_.make(value, "stream"); }

  // Channels, seen as [rows, columns], transposed.
  struct Shuffle {
    size_t rank;
    int64_t rows, columns;
  };

  // y = x with its channels transposed.
  void shuffle(std::vector<ir::Node>& to, const std::string& x, const std::string& y, Shuffle how) {
    const std::string split = fresh(y), swapped = fresh(y);
    std::vector<int64_t> dims(how.rank + 1), perm(how.rank + 1);
    std::iota(perm.begin(), perm.end(), int64_t{0});
    std::swap(perm[how.rank - 1], perm[how.rank]);
    dims[how.rank - 1] = how.rows, dims[how.rank] = how.columns;  // before them, as x has them
    to.push_back(reshape(x, dims, split));
    ir::Node swap;
    swap.op_type = "Transpose";
    swap.inputs = {split}, swap.outputs = {swapped};
    swap.attributes = {ops::ints_attribute("perm", perm)};
    swap.origin = "from interleaved channels", swap.is_helper = true;
    to.push_back(std::move(swap));
    dims.pop_back();
    dims.back() = how.rows * how.columns;
    to.push_back(reshape(swapped, dims, y));
  }

  ir::Node reshape(const std::string& x, const std::vector<int64_t>& dims, const std::string& y) {
    Tensor shape(ElementType::int64, {static_cast<int64_t>(dims.size())});
    std::ranges::copy(dims, shape.mutable_elements<int64_t>().begin());
    ir::Node node;
    node.op_type = "Reshape";
    node.inputs = {x, index_.add_initializer(shape, y)}, node.outputs = {y};
    node.origin = "from interleaved channels", node.is_helper = true;
    return node;
  }

  void insert_turns() {
    std::vector<ir::Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (size_t i = 0; i < nodes.size(); ++i) {
      for (ir::Node& node : before_[i]) graph_.nodes.push_back(std::move(node));
      if (!index_.is_dead(i)) graph_.nodes.push_back(std::move(nodes[i]));
      for (ir::Node& node : after_[i]) graph_.nodes.push_back(std::move(node));
    }
  }

  ir::Graph& graph_;
  GraphIndex index_;
  std::vector<std::vector<ir::Node>> before_, after_;  // of each node
  std::unordered_set<std::string> done_;
  FreshNames names_;
};

}  // namespace

bool keep_groups_interleaved(ir::Graph& graph, const infer::Scope& scope) {
  return DealtStreams(graph, scope).run();
}

}  // namespace sardonyx::passes
