#include "tools/drawing/layout.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>

namespace sardonyx::drawing {
namespace {

constexpr double box_gap = 22;   // between neighbours of a rank
constexpr double lane_gap = 14;  // around the lane of a link that passes a rank
constexpr double rank_gap = 44;

// What has a place in a rank: a box, or the lane of a link that passes it.
struct Item {
  double width = 0;
  double height = 0;
  double weight = 1;  // how much it matters that its links are straight
  int rank = 0;
  int place = 0;  // in its rank
  double x = 0;   // its middle
  bool is_lane = false;
};

class Layering {
 public:
  Layering(std::span<const Extent> boxes, std::span<const Link> links)
      : boxes_(boxes), links_(links) {}

  Layout run() {
    find_ranks();
    make_items();
    order();
    place();
    return result();
  }

 private:
  using Lists = std::vector<std::vector<int>>;

  // Boxes by longest path from those that nothing leads to. What is part of a cycle is taken in the
  // order of the boxes: links back count for nothing.
  void find_ranks() {
    const size_t count = boxes_.size();
    Lists after(count);
    std::vector<int> waiting(count), done(count);
    ranks_.assign(count, 0);
    for (const Link& link : links_) {
      if (link.from == link.to) continue;
      after[index(link.from)].push_back(link.to);
      ++waiting[index(link.to)];
    }
    std::vector<int> ready, taken;
    size_t next = 0;
    for (size_t i = 0; i < count; ++i) {
      if (waiting[i] == 0) ready.push_back(static_cast<int>(i));
    }
    const std::vector<int> sources = ready;
    while (taken.size() < count) {
      if (ready.empty()) {
        while (done[next] != 0) ++next;
        ready.push_back(static_cast<int>(next));
      }
      const int box = ready.back();
      ready.pop_back();
      if (done[index(box)] != 0) continue;
      done[index(box)] = 1;
      taken.push_back(box);
      for (const int other : after[index(box)]) {
        if (done[index(other)] != 0) continue;
        ranks_[index(other)] = std::max(ranks_[index(other)], ranks_[index(box)] + 1);
        if (--waiting[index(other)] == 0) ready.push_back(other);
      }
    }
    // What nothing leads to stands just above the first that reads it.
    for (const int box : sources) {
      int first = INT32_MAX;
      for (const int other : after[index(box)]) first = std::min(first, ranks_[index(other)]);
      if (first != INT32_MAX) ranks_[index(box)] = std::max(first - 1, 0);
    }
  }

  // The longest link that still gets lanes, so that there are not too many of these.
  int longest_with_lanes() const {
    std::vector<int64_t> of_length;
    for (const Link& link : links_) {
      const int length = ranks_[index(link.to)] - ranks_[index(link.from)];
      if (length < 2) continue;
      if (of_length.size() <= index(length)) of_length.resize(index(length) + 1);
      ++of_length[index(length)];
    }
    int64_t budget = 1000 + 3 * static_cast<int64_t>(boxes_.size() + links_.size());
    int longest = 1;
    for (size_t length = 2; length < of_length.size(); ++length) {
      budget -= of_length[length] * static_cast<int64_t>(length - 1);
      if (budget < 0) break;
      longest = static_cast<int>(length);
    }
    return longest;
  }

  void make_items() {
    for (size_t i = 0; i < boxes_.size(); ++i)
      items_.push_back({boxes_[i].width, boxes_[i].height, 1, ranks_[i], 0, 0, false});
    const int longest = longest_with_lanes();
    chains_.resize(links_.size());
    for (size_t i = 0; i < links_.size(); ++i) {
      const Link& link = links_[i];
      const int first = ranks_[index(link.from)], last = ranks_[index(link.to)];
      if (first >= last || last - first > longest) continue;
      chains_[i].push_back(link.from);
      for (int rank = first + 1; rank < last; ++rank) {
        chains_[i].push_back(static_cast<int>(items_.size()));
        items_.push_back({2, 0, 8, rank, 0, 0, true});
      }
      chains_[i].push_back(link.to);
    }
    above_.resize(items_.size());
    below_.resize(items_.size());
    for (const std::vector<int>& chain : chains_) {
      for (size_t i = 1; i < chain.size(); ++i) {
        below_[index(chain[i - 1])].push_back(chain[i]);
        above_[index(chain[i])].push_back(chain[i - 1]);
      }
    }
    for (size_t i = 0; i < items_.size(); ++i) {
      const auto rank = index(items_[i].rank);
      if (in_rank_.size() <= rank) in_rank_.resize(rank + 1);
      in_rank_[rank].push_back(static_cast<int>(i));
    }
    for (const std::vector<int>& rank : in_rank_) number(rank);
  }

  void number(const std::vector<int>& rank) {
    for (size_t i = 0; i < rank.size(); ++i) items_[index(rank[i])].place = static_cast<int>(i);
  }

  // Sorts a rank by the mean place of each one's neighbours in the rank before it.
  void sort_rank(std::vector<int>& rank, const Lists& neighbours) {
    std::vector<std::pair<double, int>> keyed;
    for (const int item : rank) {
      const std::vector<int>& others = neighbours[index(item)];
      double key = items_[index(item)].place;
      if (!others.empty()) {
        double sum = 0;
        for (const int other : others) sum += items_[index(other)].place;
        key = sum / static_cast<double>(others.size());
      }
      keyed.emplace_back(key, item);
    }
    std::stable_sort(keyed.begin(), keyed.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 0; i < rank.size(); ++i) rank[i] = keyed[i].second;
    number(rank);
  }

  // How often links between a rank and the one above it cross: pairs in the wrong order, counted
  // with a tree of partial sums.
  int64_t crossings(const std::vector<int>& rank, size_t places_above) const {
    std::vector<int64_t> tree(places_above + 1);
    int64_t found = 0, seen = 0;
    std::vector<int> places;
    for (const int item : rank) {
      places.clear();
      for (const int other : above_[index(item)]) places.push_back(items_[index(other)].place);
      for (const int place : places) {
        int64_t before = 0;
        for (size_t i = index(place) + 1; i > 0; i -= i & (~i + 1)) before += tree[i];
        found += seen - before;
      }
      for (const int place : places) {
        ++seen;
        for (size_t i = index(place) + 1; i < tree.size(); i += i & (~i + 1)) ++tree[i];
      }
    }
    return found;
  }

  int64_t crossings() const {
    int64_t sum = 0;
    for (size_t rank = 1; rank < in_rank_.size(); ++rank)
      sum += crossings(in_rank_[rank], in_rank_[rank - 1].size());
    return sum;
  }

  // Fewer sweeps over what is large.
  int sweeps(int most) const {
    return std::clamp(static_cast<int>(200'000 / (items_.size() + 1)), 2, most);
  }

  void order() {
    Lists best = in_rank_;
    int64_t least = crossings();
    for (int sweep = sweeps(16); sweep > 0 && least > 0; --sweep) {
      if (sweep % 2 == 0) {
        for (size_t rank = 1; rank < in_rank_.size(); ++rank) sort_rank(in_rank_[rank], above_);
      } else {
        for (size_t rank = in_rank_.size(); rank-- > 0;) sort_rank(in_rank_[rank], below_);
      }
      const int64_t now = crossings();
      if (now >= least) continue;
      least = now;
      best = in_rank_;
    }
    in_rank_ = std::move(best);
    for (const std::vector<int>& rank : in_rank_) number(rank);
  }

  double distance(const Item& left, const Item& right) const {
    return (left.width + right.width) / 2 + (left.is_lane || right.is_lane ? lane_gap : box_gap);
  }

  // Brings the items of a rank as near as can be to where they are wanted, in their order and
  // without overlaps: least squares under these bounds, by pooling neighbours that would overlap.
  void settle(const std::vector<int>& rank, const std::vector<double>& wanted,
              const std::vector<double>& weights) {
    struct Pool {
      double sum, weight;
      size_t end;
    };
    std::vector<Pool> pools;
    std::vector<double> offsets(rank.size());
    for (size_t i = 0; i < rank.size(); ++i) {
      if (i > 0)
        offsets[i] = offsets[i - 1] + distance(items_[index(rank[i - 1])], items_[index(rank[i])]);
      pools.push_back({(wanted[i] - offsets[i]) * weights[i], weights[i], i + 1});
      while (pools.size() > 1) {
        const Pool last = pools.back();
        Pool& before = pools[pools.size() - 2];
        if (before.sum / before.weight <= last.sum / last.weight) break;
        before = {before.sum + last.sum, before.weight + last.weight, last.end};
        pools.pop_back();
      }
    }
    size_t i = 0;
    for (const Pool& pool : pools) {
      for (; i < pool.end; ++i) items_[index(rank[i])].x = pool.sum / pool.weight + offsets[i];
    }
  }

  void settle_towards(const std::vector<int>& rank, const Lists& neighbours) {
    std::vector<double> wanted, weights;
    for (const int item : rank) {
      const std::vector<int>& others = neighbours[index(item)];
      double sum = 0, weight = 0;
      for (const int other : others) {
        const double pull = std::min(items_[index(item)].weight, items_[index(other)].weight);
        sum += pull * items_[index(other)].x;
        weight += pull;
      }
      wanted.push_back(others.empty() ? items_[index(item)].x : sum / weight);
      weights.push_back(others.empty() ? 0.05 : weight);
    }
    settle(rank, wanted, weights);
  }

  void place() {
    for (const std::vector<int>& rank : in_rank_)
      settle(rank, std::vector<double>(rank.size()), std::vector<double>(rank.size(), 1));
    for (int sweep = sweeps(10); sweep > 0; --sweep) {
      for (size_t rank = 1; rank < in_rank_.size(); ++rank) settle_towards(in_rank_[rank], above_);
      for (size_t rank = in_rank_.size(); rank-- > 0;) settle_towards(in_rank_[rank], below_);
    }
    for (size_t rank = 1; rank < in_rank_.size(); ++rank) settle_towards(in_rank_[rank], above_);
    double left = 0;
    bool any = false;
    for (const Item& item : items_) {
      left = any ? std::min(left, item.x - item.width / 2) : item.x - item.width / 2;
      any = true;
    }
    for (Item& item : items_) item.x -= left;
  }

  // Where links enter a box: side by side on its upper border, in the order of where they come
  // from, so that arrows don't cover each other.
  std::vector<double> entries() const {
    std::vector<double> at(links_.size());
    Lists of_box(boxes_.size());
    const auto origin = [&](int link) {
      const std::vector<int>& chain = chains_[index(link)];
      const int item = chain.size() > 1 ? chain[chain.size() - 2] : links_[index(link)].from;
      return items_[index(item)].x;
    };
    for (size_t i = 0; i < links_.size(); ++i)
      of_box[index(links_[i].to)].push_back(static_cast<int>(i));
    for (size_t box = 0; box < of_box.size(); ++box) {
      std::vector<int>& entering = of_box[box];
      std::stable_sort(entering.begin(), entering.end(),
                       [&](int a, int b) { return origin(a) < origin(b); });
      const double step =
          std::min(18.0, items_[box].width * 0.8 /
                             static_cast<double>(std::max<size_t>(entering.size(), 1)));
      const double middle = static_cast<double>(entering.size() - 1) / 2;
      for (size_t i = 0; i < entering.size(); ++i)
        at[index(entering[i])] = items_[box].x + (static_cast<double>(i) - middle) * step;
    }
    return at;
  }

  Layout result() const {
    Layout layout;
    std::vector<double> tops(in_rank_.size()), bottoms(in_rank_.size());
    double y = 0;
    for (size_t rank = 0; rank < in_rank_.size(); ++rank) {
      double height = 0;
      for (const int item : in_rank_[rank]) height = std::max(height, items_[index(item)].height);
      tops[rank] = y;
      bottoms[rank] = y + height;
      y = bottoms[rank] + rank_gap;
    }
    layout.size.height = bottoms.empty() ? 0 : bottoms.back();
    for (const Item& item : items_)
      layout.size.width = std::max(layout.size.width, item.x + item.width / 2);
    for (size_t i = 0; i < boxes_.size(); ++i)
      layout.corners.push_back({items_[i].x - items_[i].width / 2, tops[index(ranks_[i])]});
    const std::vector<double> entered = entries();
    for (size_t i = 0; i < links_.size(); ++i) {
      const Link& link = links_[i];
      Route& route = layout.routes.emplace_back();
      if (link.from == link.to) continue;
      const Item &from = items_[index(link.from)], &to = items_[index(link.to)];
      const double out = tops[index(from.rank)] + from.height;
      route.points.push_back({from.x, out});
      if (chains_[i].empty()) {
        route.is_far = true;
      } else {
        route.points.push_back({from.x, bottoms[index(from.rank)]});
        for (size_t k = 1; k + 1 < chains_[i].size(); ++k) {
          const Item& lane = items_[index(chains_[i][k])];
          route.points.push_back({lane.x, tops[index(lane.rank)]});
          route.points.push_back({lane.x, bottoms[index(lane.rank)]});
        }
      }
      route.points.push_back({entered[i], tops[index(to.rank)]});
    }
    return layout;
  }

  static size_t index(int i) { return static_cast<size_t>(i); }

  std::span<const Extent> boxes_;
  std::span<const Link> links_;
  std::vector<int> ranks_;  // of boxes
  std::vector<Item> items_;
  Lists chains_;  // of each link: its boxes and the lanes between them; empty where it has none
  Lists above_, below_;
  Lists in_rank_;
};

}  // namespace

Layout layered_layout(std::span<const Extent> boxes, std::span<const Link> links) {
  return Layering(boxes, links).run();
}

}  // namespace sardonyx::drawing
