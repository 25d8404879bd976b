#include "train/recompute.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "autodiff/history.h"
#include "autodiff/walk.h"
#include "infer/infer.h"
#include "ir/walk.h"
#include "ops/internal/checks.h"
#include "ops/internal/node.h"
#include "ops/traits.h"

namespace sardonyx::train {
namespace {

constexpr int64_t usual_size = 16;   // of what is open
constexpr int64_t small_share = 64;  // of the largest value: what is smaller is kept
constexpr size_t max_cuts = 256;     // places that segments may end at

// A value that a node makes.
struct Made {
  size_t node = 0;         // that makes it
  size_t last = 0;         // the last one that reads it
  size_t last_before = 0;  // of those before the cut
  int64_t bytes = 0;
  bool may_be_copied = false;
  bool is_read_behind = false;  // by nodes from the cut on
};

bool is_view(const ir::Node& node) {
  static const std::unordered_set<std::string_view> ops{"Reshape", "Squeeze", "Unsqueeze",
                                                        "Flatten", "Identity"};
  return node.domain.empty() && ops.contains(node.op_type);
}

// Places where segments end; the last one's is the cut.
using Ends = std::vector<size_t>;

bool reads_sizes(const ir::Node& node) {
  return node.domain.empty() && (node.op_type == "Shape" || node.op_type == "Size");
}

class Recomputing {
 public:
  explicit Recomputing(const ir::Graph& graph) : graph_(graph), nodes_(graph.nodes) {
    for (const ir::ValueInfo& output : graph.outputs) outputs_.insert(output.name);
    note_names();
    infer_bytes();
    find_values();
  }

  // Ways to divide the graph, of which `apply` tells what they are worth.
  std::vector<Ends> divisions() {
    find_cut();
    if (cut_ == 0) return {};
    mark_read_behind();
    return divide();
  }

  // To be called once for an object. How many nodes were copied.
  size_t apply(const Ends& ends) {
    // From the last one with copies on: what copies of a segment read of those before is kept.
    for (size_t i = ends.size() - 1; i-- > 0;) copy_segment(i == 0 ? 0 : ends[i - 1], ends[i]);
    return put_in_place();
  }

  // The bytes of values where they are most. Updates of the state are made as soon as they can be
  // (hoist_updates), so that what only they read does not wait for them, and element-wise nodes
  // write over an operand.
  int64_t peak_bytes() const {
    std::unordered_map<std::string_view, std::string_view> shown;  // by views
    std::unordered_map<std::string_view, Life> lives;
    const auto root = [&](std::string_view name) {
      const auto view = shown.find(name);
      return view == shown.end() ? name : view->second;
    };
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const ir::Node& node = nodes_[i];
      for (const std::string& output : node.outputs) {
        if (output.empty() || outputs_.contains(output)) continue;
        if (is_view(node) || is_same(node)) {
          shown[output] = root(node.inputs[0]);
        } else {
          lives[output] = {i, i, bytes_of(output)};
        }
      }
      if (is_update(node) || is_view(node)) continue;
      autodiff::for_each_read(node, [&](const std::string& name) {
        const auto life = lives.find(root(name));
        if (life != lives.end()) life->second.last = i;
      });
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!ops::has_trait(nodes_[i], ops::unary | ops::broadcasts)) continue;
      for (const std::string& input : nodes_[i].inputs) {
        const auto life = lives.find(root(input));
        if (life == lives.end() || life->second.last != i || life->second.made >= i ||
            life->second.bytes != bytes_of(nodes_[i].outputs[0]))
          continue;
        life->second.last = i - 1;
        break;
      }
    }
    std::vector<int64_t> change(nodes_.size() + 1, 0);
    for (const auto& [name, life] : lives) {
      change[life.made] += life.bytes;
      change[life.last + 1] -= life.bytes;
    }
    int64_t now = 0, most = 0;
    for (const int64_t step : change) most = std::max(most, now += step);
    return most;
  }

  std::vector<ir::Node> take_nodes() { return std::move(nodes_); }

 private:
  struct Life {
    size_t made = 0, last = 0;
    int64_t bytes = 0;
  };

  int64_t bytes_of(const std::string& name) const {
    const auto found = bytes_.find(name);
    return found == bytes_.end() ? 0 : found->second;
  }
  bool is_update(const ir::Node& node) const {
    return !node.outputs.empty() && std::ranges::all_of(node.outputs, [&](const auto& name) {
      return name.empty() || outputs_.contains(name);
    });
  }
  // Sums of a gradient over the axes of which its value has none, where it has them all.
  bool is_same(const ir::Node& node) const {
    return ops::internal::is<ops::internal::SumLike>(node) && !node.outputs[0].empty() &&
           bytes_of(node.outputs[0]) == bytes_of(node.inputs[0]);
  }

  void note_names() {
    for (const ir::ValueInfo& input : graph_.inputs) taken_.insert(input.name);
    for (const ir::TensorProto& tensor : graph_.initializers) taken_.insert(tensor.name);
    const auto note = [&](const ir::WalkPlace&, const ir::Node& node, size_t) {
      taken_.insert(node.outputs.begin(), node.outputs.end());
    };
    ir::walk(graph_, {.node = note});
  }

  void infer_bytes() {
    infer::Scope scope;
    ir::SymbolTable symbols;
    infer::InferenceContext inference;
    inference.symbols = &symbols;
    inference.problem = [](const ir::Node&, const Error&) {};  // the plan will tell
    infer::enter(graph_, scope, inference);
    infer::infer_graph(graph_, scope, inference);
    const std::vector<int64_t> sizes(static_cast<size_t>(symbols.size()), usual_size);
    scope.for_each_here([&](std::string_view name, const infer::ValueFacts& known) {
      const auto count = known.type.is_tensor() ? known.type.element_count() : std::nullopt;
      if (!count || known.type.element == ElementType::string) return;
      const auto elements = count->evaluate(sizes);
      bytes_.emplace(name,
                     elements && *elements >= 0 ? byte_size(known.type.element, *elements) : 0);
    });
  }

  void find_values() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const ir::Node& node = nodes_[i];
      const bool copied = !ir::has_graphs(node) && !autodiff::draws_anew(node) && !node.custom;
      for (const std::string& output : node.outputs) {
        if (output.empty()) continue;
        const auto bytes = bytes_.find(output);
        Made made;
        made.node = made.last = i;
        made.bytes = bytes == bytes_.end() || is_view(node) ? 0 : bytes->second;
        made.may_be_copied = copied && bytes != bytes_.end();
        values_[output] = made;
      }
      for_each_read(node, [&](const std::string& name) {
        const auto value = values_.find(name);
        if (value != values_.end()) read(name, i);
      });
    }
    for (const ir::ValueInfo& output : graph_.outputs) {
      if (values_.contains(output.name)) read(output.name, nodes_.size());
    }
  }

  // Visits a value, and where it is a view what it shows.
  template <class Visit>
  void for_each_root(std::string name, Visit&& visit) {
    for (auto value = values_.find(name); value != values_.end(); value = values_.find(name)) {
      visit(value->first, value->second);
      const ir::Node& maker = nodes_[value->second.node];
      if (!is_view(maker)) return;
      name = maker.inputs[0];
    }
  }
  void read(const std::string& name, size_t at) {
    for_each_root(name,
                  [&](const std::string&, Made& made) { made.last = std::max(made.last, at); });
  }
  void keep(const std::string& name) {
    for_each_root(name, [&](const std::string& root, Made&) { kept_.insert(root); });
  }

  template <class Visit>
  void for_each_read(const ir::Node& node, Visit&& visit) const {
    if (reads_sizes(node)) return;
    if (is_same(node)) return visit(node.inputs[0]);  // of the other one only its size
    autodiff::for_each_read(node, visit);
  }

  // The node at which most memory is in use.
  void find_cut() {
    std::vector<int64_t> change(nodes_.size() + 2, 0);
    for (const auto& [name, made] : values_) {
      change[made.node] += made.bytes;
      change[std::min(made.last, nodes_.size()) + 1] -= made.bytes;
    }
    int64_t now = 0, most = 0;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      now += change[i];
      if (now > most) most = now, cut_ = i;
    }
  }

  void mark_read_behind() {
    for (size_t i = cut_; i < nodes_.size(); ++i) {
      const bool has_graphs = ir::has_graphs(nodes_[i]);
      for_each_read(nodes_[i], [&](const std::string& name) {
        for_each_root(name, [&](const std::string&, Made& made) {
          made.is_read_behind = true;
          if (has_graphs) made.may_be_copied = false;
        });
      });
    }
    for (size_t i = 0; i < cut_; ++i) {
      for_each_read(nodes_[i], [&](const std::string& name) {
        for_each_root(name, [&](const std::string&, Made& made) { made.last_before = i; });
      });
    }
    for (const ir::ValueInfo& output : graph_.outputs) {
      const auto value = values_.find(output.name);
      if (value != values_.end()) value->second.may_be_copied = false;
    }
  }

  bool is_wanted(const std::string& name, const Made& made) const {
    return made.is_read_behind && made.may_be_copied && made.node < cut_ && !kept_.contains(name);
  }

  // Where segments end, so that a segment together with what is kept before it, which is there
  // while the segment is made again, takes the least.
  std::vector<Ends> divide() {
    std::vector<int64_t> saved(cut_ + 1, 0), alive(cut_ + 2, 0);
    for (const auto& [name, made] : values_) {
      if (made.node >= cut_) continue;
      if (is_wanted(name, made)) {
        saved[made.node + 1] += made.bytes;
        small_ = std::max(small_, made.bytes / small_share);
      }
      // Before node i stand values that nodes from there on, up to the cut, read.
      const size_t last = made.last_before;
      if (last <= made.node) continue;
      alive[made.node + 1] += made.bytes;
      alive[last + 1] -= made.bytes;
    }
    for (size_t i = 0; i < cut_; ++i) saved[i + 1] += saved[i], alive[i + 1] += alive[i];
    const std::vector<size_t> places = possible_ends(alive);
    std::vector<Ends> found;
    const auto add = [&](Ends ends) {
      if (ends.size() > 1 && std::ranges::find(found, ends) == found.end())
        found.push_back(std::move(ends));
    };
    // Segments of one size, and such as get smaller the more is kept before them.
    for (double parts = 2; parts < 64; parts *= 1.05) {
      const auto most = static_cast<int64_t>(static_cast<double>(saved[cut_]) / parts);
      for (const int64_t share : {0, 1, 2}) add(divided(places, saved, alive, most, share));
    }
    return found;
  }

  // Of each stretch of nodes the place where the fewest bytes stand.
  std::vector<size_t> possible_ends(const std::vector<int64_t>& alive) const {
    const size_t step = cut_ / max_cuts + 1;
    std::vector<size_t> places;
    for (size_t begin = 1; begin < cut_; begin += step) {
      size_t best = begin;
      for (size_t i = begin; i < std::min(begin + step, cut_); ++i) {
        if (alive[i] < alive[best]) best = i;
      }
      places.push_back(best);
    }
    places.push_back(cut_);
    return places;
  }

  // The segments that keep the least between them, each of at most `most` bytes together with
  // share / 2 of what is kept before it; none where it can't be.
  Ends divided(const std::vector<size_t>& places, const std::vector<int64_t>& saved,
               const std::vector<int64_t>& alive, int64_t most, int64_t share) const {
    constexpr int64_t never = std::numeric_limits<int64_t>::max();
    const size_t count = places.size();
    std::vector<int64_t> kept(count, never);  // before the segment that ends there
    std::vector<size_t> before(count, count);
    for (size_t j = 0; j < count; ++j) {
      if (saved[places[j]] <= most) kept[j] = 0;
      for (size_t i = j; i-- > 0;) {
        const int64_t bytes = saved[places[j]] - saved[places[i]];
        if (bytes > most) break;
        if (kept[i] == never) continue;
        const int64_t with = kept[i] + alive[places[i]];
        if (with * share / 2 + bytes <= most && with < kept[j]) kept[j] = with, before[j] = i;
      }
    }
    if (kept[count - 1] == never) return {};
    Ends ends;
    for (size_t j = count - 1; j != count; j = before[j]) ends.push_back(places[j]);
    std::ranges::reverse(ends);
    return ends;
  }

  // Copies of the nodes [begin, end) that make what is read behind the cut.
  void copy_segment(size_t begin, size_t end) {
    std::unordered_set<std::string> needed;
    std::unordered_map<std::string, std::string> names;
    std::vector<size_t> copied;
    for (size_t i = end; i-- > begin;) {
      const ir::Node& node = nodes_[i];
      bool copies = false;
      for (const std::string& output : node.outputs) {
        const auto value = output.empty() ? values_.end() : values_.find(output);
        if (value == values_.end() || kept_.contains(output)) continue;
        const Made& made = value->second;
        const bool asked = needed.contains(output) || is_wanted(output, made);
        if (!asked) continue;
        // What is small, and what must not be made twice, stays.
        if (!made.may_be_copied || (made.bytes < small_ && !is_view(node)))
          keep(output);
        else
          copies = true;
      }
      if (!copies) continue;
      copied.push_back(i);
      for (const std::string& output : node.outputs) {
        if (!output.empty() && !kept_.contains(output)) names[output] = fresh(output);
      }
      for (const std::string& input : node.inputs) {
        const auto value = input.empty() ? values_.end() : values_.find(input);
        if (value == values_.end()) continue;
        if (value->second.node < begin)
          keep(input);
        else
          needed.insert(input);
      }
    }
    std::ranges::reverse(copied);
    place_copies(copied, names);
  }

  // Puts copies before the first node behind the cut that reads one of them, and has all there read
  // them.
  void place_copies(const std::vector<size_t>& copied,
                    const std::unordered_map<std::string, std::string>& names) {
    if (copied.empty()) return;
    size_t first = nodes_.size();
    for (size_t i = cut_; i < nodes_.size(); ++i) {
      for (std::string& input : nodes_[i].inputs) {
        const auto name = names.find(input);
        if (name == names.end()) continue;
        first = std::min(first, i);
        input = name->second;
      }
    }
    if (first == nodes_.size()) return;
    std::vector<ir::Node>& to = copies_[first];
    std::vector<ir::Node> made;
    for (const size_t index : copied) {
      ir::Node copy = nodes_[index];
      for (std::string& input : copy.inputs) {
        const auto name = names.find(input);
        if (name != names.end()) input = name->second;
      }
      for (std::string& output : copy.outputs) {
        if (output.empty()) continue;
        const auto name = names.find(output);
        output = name != names.end() ? name->second : fresh(output);
      }
      if (!copy.name.empty()) copy.name += "_again";
      made.push_back(std::move(copy));
    }
    count_ += made.size();
    // Of an earlier segment, which a later one may read.
    to.insert(to.begin(), std::make_move_iterator(made.begin()),
              std::make_move_iterator(made.end()));
  }

  std::string fresh(const std::string& name) {
    std::string made = name + "_again";
    while (!taken_.insert(made).second) made += '_';
    bytes_[made] = bytes_of(name);
    return made;
  }

  size_t put_in_place() {
    if (count_ == 0) return 0;
    std::vector<ir::Node> all;
    all.reserve(nodes_.size() + count_);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const auto copies = copies_.find(i);
      if (copies != copies_.end()) std::ranges::move(copies->second, std::back_inserter(all));
      all.push_back(std::move(nodes_[i]));
    }
    nodes_ = std::move(all);
    return count_;
  }

  const ir::Graph& graph_;
  std::vector<ir::Node> nodes_;
  std::unordered_set<std::string_view> outputs_;
  std::unordered_map<std::string, int64_t> bytes_;
  std::map<std::string, Made> values_;  // in an order that runs share
  size_t cut_ = 0;
  std::unordered_set<std::string> kept_, taken_;
  std::map<size_t, std::vector<ir::Node>> copies_;  // by the node that they stand before
  int64_t small_ = 0;                               // bytes; values of fewer are kept in any case
  size_t count_ = 0;
};

}  // namespace

size_t recompute(ir::Graph& graph) {
  Recomputing whole(graph);
  int64_t least = whole.peak_bytes();
  size_t copies = 0;
  std::vector<ir::Node> nodes;
  for (const Ends& ends : whole.divisions()) {
    Recomputing trial = whole;
    const size_t count = trial.apply(ends);
    const int64_t bytes = trial.peak_bytes();
    if (bytes >= least) continue;
    least = bytes, copies = count, nodes = trial.take_nodes();
  }
  if (copies > 0) graph.nodes = std::move(nodes);
  return copies;
}

}  // namespace sardonyx::train
