// TfIdfVectorizer: how often each known n-gram occurs in a sequence.
#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>

#include "ops/shared/moving.h"

namespace sardonyx::ops {
namespace tfidf_vectorizer_unit {
namespace {

// The n-grams as a tree of numbered items: one level per item, the node of an n-gram's last item
// knows the n-gram's place in the pool.
template <class Item>
struct Tree {
  static constexpr int32_t none = -1;
  std::unordered_map<Item, int32_t> items;  // all that occur in n-grams, numbered
  std::vector<int32_t> first;               // of each item, the node that it leads to from the root
  std::unordered_map<uint64_t, int32_t> next;  // of a node and an item
  std::vector<int64_t> grams{none};            // of each node; none: it ends no n-gram

  static uint64_t edge(int32_t node, int32_t item) {
    return static_cast<uint64_t>(static_cast<uint32_t>(node)) << 32 | static_cast<uint32_t>(item);
  }
  int32_t number(const Item& item) const {
    const auto found = items.find(item);
    return found == items.end() ? none : found->second;
  }
  int32_t follow(int32_t node, int32_t item) const {
    if (node == 0) return first[static_cast<size_t>(item)];
    const auto found = next.find(edge(node, item));
    return found == next.end() ? none : found->second;
  }

  void add(const Item* gram, int64_t length, int64_t place) {
    int32_t at = 0;
    for (int64_t i = 0; i < length; ++i) {
      const int32_t item =
          items.try_emplace(gram[i], static_cast<int32_t>(items.size())).first->second;
      first.resize(items.size(), none);
      int32_t& to = at == 0 ? first[static_cast<size_t>(item)]
                            : next.try_emplace(edge(at, item), none).first->second;
      if (to == none) {
        to = static_cast<int32_t>(grams.size());
        grams.push_back(none);
      }
      at = to;
    }
    grams[static_cast<size_t>(at)] = place;
  }
};

struct Settings {
  std::string mode;
  int64_t min_length, max_length, max_skip;
  std::vector<int64_t> starts, columns;
  std::vector<float> weights;
  int64_t width = 0;
};

Settings settings_of(const NodeView& node) {
  Settings s;
  s.mode = node.attr_string("mode");
  if (s.mode != "TF" && s.mode != "IDF" && s.mode != "TFIDF")
    node.fail("mode must be TF, IDF or TFIDF; got '{}'", s.mode);
  s.min_length = node.attr_int("min_gram_length"), s.max_length = node.attr_int("max_gram_length");
  s.max_skip = node.attr_int("max_skip_count");
  if (s.min_length < 1 || s.max_length < s.min_length) {
    node.fail("min_gram_length must be 1 or more and at most max_gram_length; got {} and {}",
              s.min_length, s.max_length);
  }
  if (s.max_skip < 0) node.fail("max_skip_count must not be negative; got {}", s.max_skip);
  s.starts = node.attr_ints("ngram_counts").value_or(std::vector<int64_t>());
  s.columns = node.attr_ints("ngram_indexes").value_or(std::vector<int64_t>());
  s.weights = node.attr_floats("weights").value_or(std::vector<float>());
  if (s.starts.empty() || s.columns.empty())
    node.fail("ngram_counts and ngram_indexes must not be empty");
  if (!s.weights.empty() && s.weights.size() != s.columns.size()) {
    node.fail("weights must have as many elements as ngram_indexes, {}; it has {}",
              s.columns.size(), s.weights.size());
  }
  constexpr int64_t max_columns = int64_t{1} << 31;
  for (const int64_t column : s.columns) {
    if (column < 0 || column >= max_columns)
      node.fail("ngram_indexes must be in [0, {}); got {}", max_columns, column);
    s.width = std::max(s.width, column + 1);
  }
  return s;
}

template <class Item>
std::shared_ptr<const Tree<Item>> tree_of(const NodeView& node, const Settings& s,
                                          const std::vector<Item>& pool) {
  auto tree = std::make_shared<Tree<Item>>();
  const auto total = static_cast<int64_t>(pool.size());
  int64_t gram = 0;
  for (size_t i = 0; i < s.starts.size(); ++i) {
    const int64_t length = static_cast<int64_t>(i) + 1, begin = s.starts[i];
    const int64_t end = i + 1 < s.starts.size() ? s.starts[i + 1] : total;
    if (begin < 0 || begin > end || end > total)
      node.fail("ngram_counts must rise from 0 to at most the pool's size, {}; got {} and {}",
                total, begin, end);
    if ((end - begin) % length != 0)
      node.fail("the {} items of {}-grams in the pool are no multiple of {}", end - begin, length,
                length);
    for (int64_t at = begin; at < end; at += length, ++gram) {
      if (gram >= static_cast<int64_t>(s.columns.size()))
        node.fail("ngram_indexes has {} elements, fewer than the pool has n-grams",
                  s.columns.size());
      if (length >= s.min_length && length <= s.max_length)
        tree->add(pool.data() + at, length, gram);
    }
  }
  return tree;
}

// Counts the n-grams of one row of items' numbers. Items of an n-gram are 1 to max_skip + 1 places
// apart, always the same distance; a single item has no distance and counts once.
template <class Item>
void count_grams(const Tree<Item>& tree, const Settings& s, const int32_t* items, int64_t length,
                 int64_t* counts) {
  for (int64_t distance = 1; distance <= s.max_skip + 1; ++distance) {
    if (distance > 1 && distance >= length) break;
    for (int64_t begin = 0; begin < length; ++begin) {
      int32_t node = 0;
      for (int64_t n = 1, i = begin; n <= s.max_length && i < length; ++n, i += distance) {
        if (items[i] < 0 || (node = tree.follow(node, items[i])) < 0) break;
        const int64_t gram = tree.grams[static_cast<size_t>(node)];
        if (gram >= 0 && (n > 1 || distance == 1)) ++counts[gram];
      }
    }
  }
}

// An n-gram's weight belongs to its place in the pool, as the standard's text has it.
void write_row(const Settings& s, const int64_t* counts, float* y) {
  std::fill_n(y, s.width, 0.0f);
  for (size_t gram = 0; gram < s.columns.size(); ++gram) {
    if (counts[gram] == 0) continue;
    const float weight = s.mode == "TF" || s.weights.empty() ? 1.0f : s.weights[gram];
    const auto times = s.mode == "IDF" ? 1.0f : static_cast<float>(counts[gram]);
    float& to = y[s.columns[gram]];
    to = s.mode == "IDF" ? std::max(to, weight) : to + weight * times;
  }
}

void infer(InferContext& ctx) {
  const Settings s = settings_of(ctx);
  const auto& in = ctx.shape(0);
  if (!in) {
    ctx.set(0, ValueType::tensor(ElementType::float32));
    return;
  }
  if (in->empty() || in->size() > 2)
    ctx.fail("the input must have shape [C] or [N, C]; found {}", ir::to_string(*in));
  Dims out(in->begin(), in->end() - 1);
  out.push_back(Dim(s.width));
  ctx.set(0, ElementType::float32, std::move(out));
}

struct State {
  int64_t worker_bytes = 0;
};

template <class Item, class Read>
std::unique_ptr<Step> make(Settings s, std::shared_ptr<const Tree<Item>> tree, Read read) {
  const auto grams = static_cast<int64_t>(s.columns.size());
  return make_step<State>(
      "tfidf_vectorizer",
      [grams](BindContext& bind, State& state) {
        const int64_t numbers = (bind.in_shape(0).back() + 1) / 2 * 2;
        state.worker_bytes = (grams * 8 + numbers * 4 + 63) / 64 * 64;
        bind.need_scratch(bind.threads() * state.worker_bytes);
      },
      [s = std::move(s), tree, read, grams](RunContext& run, const State& state) {
        const auto shape = run.in_shape(0);
        const int64_t length = shape.back(), rows = shape.size() == 2 ? shape[0] : 1;
        auto* scratch = static_cast<std::byte*>(run.scratch());
        run.pool().parallel_for(rows, 8, [&](int64_t begin, int64_t end, int worker) {
          auto* counts = reinterpret_cast<int64_t*>(scratch + worker * state.worker_bytes);
          auto* items = reinterpret_cast<int32_t*>(counts + grams);
          for (int64_t row = begin; row < end; ++row) {
            std::fill_n(counts, grams, int64_t{0});
            for (int64_t i = 0; i < length; ++i)
              items[i] = tree->number(read(run, row * length + i));
            count_grams(*tree, s, items, length, counts);
            write_row(s, counts, run.out<float>(0) + row * s.width);
          }
        });
      });
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  Settings s = settings_of(ctx);
  if (ctx.in_element(0) == ElementType::string) {
    const auto pool = ctx.attr_strings("pool_strings");
    if (!pool) ctx.fail("a string input needs attribute pool_strings");
    auto tree = tree_of<std::string>(ctx, s, *pool);
    return make<std::string>(std::move(s), tree,
                             [](const RunContext& run, int64_t i) -> const std::string& {
                               return run.in<std::string>(0)[i];
                             });
  }
  const auto pool = ctx.attr_ints("pool_int64s");
  if (!pool) ctx.fail("an integer input needs attribute pool_int64s");
  auto tree = tree_of<int64_t>(ctx, s, *pool);
  return make<int64_t>(std::move(s), tree,
                       [](const RunContext& run, int64_t i) { return integer_at(run, 0, i); });
}

// All but the pools.
constexpr std::string_view setting_attributes[] = {
    "mode",         "min_gram_length", "max_gram_length", "max_skip_count",
    "ngram_counts", "ngram_indexes",   "weights"};

constexpr Operator operators[] = {{.name = "TfIdfVectorizer",
                                   .infer = infer,
                                   .prepare = prepare,
                                   .infer_reads = setting_attributes}};

}  // namespace
}  // namespace tfidf_vectorizer_unit

std::span<const Operator> tfidf_vectorizer_operators() { return tfidf_vectorizer_unit::operators; }

}  // namespace sardonyx::ops
