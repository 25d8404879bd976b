#include "train/recompute.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "autodiff/history.h"
#include "infer/infer.h"
#include "ir/walk.h"

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

class Recomputing {
 public:
  explicit Recomputing(ir::Graph& graph) : graph_(graph), nodes_(graph.nodes) {
    note_names();
    infer_bytes();
    find_values();
  }

  size_t run() {
    find_cut();
    if (cut_ == 0) return 0;
    mark_read_behind();
    divide();
    if (ends_.size() < 2) return 0;
    // From the last one with copies on: what copies of a segment read of those before is kept.
    for (size_t i = ends_.size() - 1; i-- > 0;) copy_segment(i == 0 ? 0 : ends_[i - 1], ends_[i]);
    return put_in_place();
  }

 private:
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
    for (const std::string& input : node.inputs) {
      if (!input.empty()) visit(input);
    }
    if (!ir::has_graphs(node)) return;
    for (const ir::Attribute& attribute : node.attributes) {
      if (attribute.g) {
        for (const std::string& name : infer::captured_names(*attribute.g)) visit(name);
      }
      for (const auto& graph : attribute.graphs) {
        for (const std::string& name : infer::captured_names(*graph)) visit(name);
      }
    }
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

  // Where segments end: what is kept between them, and the largest segment, take the least.
  void divide() {
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
    int64_t best = saved[cut_];
    for (const int64_t parts : {2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64}) {
      const auto [cost, ends] = divided(places, saved, alive, saved[cut_] / parts);
      if (cost < best) best = cost, ends_ = ends;
    }
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

  // The segments of at most `most` bytes that keep the least between them; all that they take.
  std::pair<int64_t, std::vector<size_t>> divided(const std::vector<size_t>& places,
                                                  const std::vector<int64_t>& saved,
                                                  const std::vector<int64_t>& alive,
                                                  int64_t most) const {
    constexpr int64_t never = std::numeric_limits<int64_t>::max();
    const size_t count = places.size();
    std::vector<int64_t> kept(count, never);
    std::vector<size_t> before(count, count);
    for (size_t j = 0; j < count; ++j) {
      if (saved[places[j]] <= most) kept[j] = 0;
      for (size_t i = j; i-- > 0;) {
        if (saved[places[j]] - saved[places[i]] > most) break;
        if (kept[i] == never) continue;
        const int64_t with = kept[i] + alive[places[i]];
        if (with < kept[j]) kept[j] = with, before[j] = i;
      }
    }
    if (kept[count - 1] == never) return {never, {}};
    std::vector<size_t> ends;
    for (size_t j = count - 1; j != count; j = before[j]) ends.push_back(places[j]);
    std::ranges::reverse(ends);
    int64_t largest = 0;
    for (size_t i = 0; i < ends.size(); ++i)
      largest = std::max(largest, saved[ends[i]] - (i == 0 ? 0 : saved[ends[i - 1]]));
    return {kept[count - 1] + largest, ends};
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

  ir::Graph& graph_;
  std::vector<ir::Node>& nodes_;
  std::unordered_map<std::string, int64_t> bytes_;
  std::map<std::string, Made> values_;  // in an order that runs share
  size_t cut_ = 0;
  std::vector<size_t> ends_;  // of segments; the last one's is the cut
  std::unordered_set<std::string> kept_, taken_;
  std::map<size_t, std::vector<ir::Node>> copies_;  // by the node that they stand before
  int64_t small_ = 0;                               // bytes; values of fewer are kept in any case
  size_t count_ = 0;
};

}  // namespace

size_t recompute(ir::Graph& graph) { return Recomputing(graph).run(); }

}  // namespace sardonyx::train
