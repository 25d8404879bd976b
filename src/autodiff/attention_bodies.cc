// FlexAttention and GroupQueryAttention with operators that have gradients.
#include <limits>

#include "autodiff/bodies.h"
#include "autodiff/walk.h"
#include "base/fail.h"

namespace sardonyx::autodiff {
namespace {

using ops::float_attribute;
using ops::int_attribute;
using ops::ints_attribute;

// [batch, heads, …] as [batch, heads of keys, queries that share one, …].
std::string by_groups(NodeWriter& w, const std::string& value, const std::string& keys) {
  const auto sizes = [&](const std::string& of, int64_t begin, int64_t end) {
    return w.add("Shape", {of}, {int_attribute("start", begin), int_attribute("end", end)});
  };
  const std::string shape =
      w.add("Concat", {sizes(value, 0, 1), sizes(keys, 1, 2), w.ints({-1}), sizes(value, 2, 4)},
            {int_attribute("axis", 0)});
  return w.add("Reshape", {value, shape});
}

// What a graph of one input makes of a value.
std::string modified(NodeWriter& w, const ops::NodeView& view, std::string_view name,
                     const std::string& value, const GradientServices& services) {
  const ir::Graph* graph = view.attr_graph(name);
  if (graph == nullptr) return value;
  Names results;
  w.append(copy_of(*graph, {value}, services, results));
  return results.at(0);
}

}  // namespace

std::vector<ir::Node> flex_attention_body(const ir::Node& node, GradientEmitter& e) {
  const ops::NodeView view(node, schema::newest(node.domain, node.op_type));
  NodeWriter w(e.services());
  const std::string &q = node.inputs[0], &k = node.inputs[1], &v = node.inputs[2];
  const std::string transposed = w.add("Transpose", {k}, {ints_attribute("perm", {0, 1, 3, 2})});
  std::string factor;
  if (view.has_attribute("scale")) {
    factor = w.number(view.attr_float("scale"), q);
  } else {
    const std::string width =
        w.add("Gather", {w.add("Shape", {q}), w.constant(Tensor::scalar<int64_t>(3))});
    factor = w.add("Reciprocal", {w.add("Sqrt", {w.add("CastLike", {width, q})})});
  }
  const auto wider = [&](const std::string& value) {
    return w.add("Unsqueeze", {value, w.ints({2})});
  };
  const std::string products = w.add("MatMul", {by_groups(w, q, k), wider(transposed)});
  const auto sizes = [&](const std::string& of, int64_t begin, int64_t end) {
    return w.add("Shape", {of}, {int_attribute("start", begin), int_attribute("end", end)});
  };
  const std::string shape =
      w.add("Concat", {sizes(q, 0, 3), sizes(k, 2, 3)}, {int_attribute("axis", 0)});
  std::string scores =
      w.add("Reshape", {w.add("Mul", {products, factor}), shape}, {int_attribute("allowzero", 1)});
  const bool casts = view.has_attribute("softmax_precision");
  if (casts)
    scores = w.add("Cast", {scores}, {int_attribute("to", view.attr_int("softmax_precision"))});
  scores = modified(w, view, "score_mod", scores, e.services());
  std::string shares = w.add("Softmax", {scores}, {int_attribute("axis", -1)});
  shares = modified(w, view, "prob_mod", shares, e.services());
  if (casts) shares = w.add("CastLike", {shares, v});
  const std::string summed = w.add("MatMul", {by_groups(w, shares, k), wider(v)});
  const std::string out =
      w.add("Concat", {sizes(q, 0, 3), sizes(v, 3, 4)}, {int_attribute("axis", 0)});
  w.add_to({node.outputs[0]}, "Reshape", {summed, out}, {int_attribute("allowzero", 1)});
  return w.take();
}

namespace {

// GroupQueryAttention of a whole sequence, as in training, or behind a past (learned prefixes).
class GroupedQueries {
 public:
  GroupedQueries(const ir::Node& node, GradientEmitter& e)
      : node_(node),
        view_(node, schema::newest(node.domain, node.op_type)),
        e_(e),
        w_(e.services()) {
    if (has(12) || has(13) || view_.attr_int("sliding_window_cache", 0) != 0 ||
        (node.outputs.size() > 3 && !node.outputs[3].empty())) {
      view_.fail(ErrorCode::unsupported,
                 "has no gradient with quantised keys, sliding_window_cache or output_qk; leave "
                 "these out where it is trained");
    }
    heads_ = view_.attr_int("num_heads"), kv_heads_ = view_.attr_int("kv_num_heads");
    if (heads_ < 1 || kv_heads_ < 1 || heads_ > (1 << 20) || kv_heads_ > (1 << 20))
      view_.fail("num_heads and kv_num_heads must be in [1, {}]; they are {} and {}", 1 << 20,
                 heads_, kv_heads_);
  }

  std::vector<ir::Node> make() {
    Names parts;
    if (has(1)) {
      parts = {node_.inputs[0], node_.inputs[1], node_.inputs[2]};
    } else {
      const auto shape = e_.shape(node_.inputs[0]);
      const int64_t all = heads_ + 2 * kv_heads_;
      if (!shape || shape->size() != 3)
        view_.fail(ErrorCode::unsupported,
                   "has no gradient where the size of packed heads is open");
      const int64_t size = shape->back() / all;
      parts = w_.add_many(
          "Split", {node_.inputs[0], w_.ints({heads_ * size, kv_heads_ * size, kv_heads_ * size})},
          3, {int_attribute("axis", 2)});
    }
    std::string q = by_heads(parts[0], heads_), k = by_heads(parts[1], kv_heads_),
                v = by_heads(parts[2], kv_heads_);
    if (has(14)) {
      const std::vector<ir::Attribute> epsilon{
          float_attribute("epsilon", view_.attr_float("qk_norm_epsilon", 1e-6f))};
      q = w_.add("RMSNormalization", {q, node_.inputs[14]}, epsilon);
      k = w_.add("RMSNormalization", {k, node_.inputs[15]}, epsilon);
    }
    rows_ = w_.add("Gather", {w_.add("Shape", {q}), w_.constant(Tensor::scalar<int64_t>(2))});
    keys_ = rows_;
    if (has(3)) count_past();
    if (view_.attr_int("do_rotary", 0) != 0) q = rotated(q), k = rotated(k);
    Names present{"", k, v};
    if (has(3)) {
      for (int i = 1; i < 3; ++i) {
        present[i] = behind_past(node_.inputs[2 + i], present[i]);
        (i == 1 ? k : v) = first_keys(present[i]);
      }
    }
    std::vector<ir::Attribute> attributes{
        float_attribute("softcap", view_.attr_float("softcap", 0))};
    if (view_.attr_float("scale", 0) != 0)
      attributes.push_back(float_attribute("scale", view_.attr_float("scale")));
    std::string seen = mask();
    if (has(11) || view_.attr_int("smooth_softmax", -1) == 1) add_sink(q, k, v, seen);
    const std::string y = w_.add("Attention", {q, k, v, seen}, attributes);
    const std::string transposed = w_.add("Transpose", {y}, {ints_attribute("perm", {0, 2, 1, 3})});
    w_.add_to({node_.outputs[0]}, "Reshape", {transposed, w_.ints({0, 0, -1})});
    for (size_t i = 1; i < 3 && i < node_.outputs.size(); ++i) {
      if (!node_.outputs[i].empty()) w_.add_to({node_.outputs[i]}, "Identity", {present[i]});
    }
    return w_.take();
  }

 private:
  bool has(int i) const { return view_.has_input(i); }

  std::string by_heads(const std::string& value, int64_t heads) {
    const std::string parted = w_.add("Reshape", {value, w_.ints({0, 0, heads, -1})});
    return w_.add("Transpose", {parted}, {ints_attribute("perm", {0, 2, 1, 3})});
  }

  std::string counted(const std::string& count) {
    return w_.add("Range", {w_.constant(Tensor::scalar<int64_t>(0)), count,
                            w_.constant(Tensor::scalar<int64_t>(1))});
  }

  std::string zero() { return w_.constant(Tensor::scalar<int64_t>(0)); }
  std::string as_int64(const std::string& value) {
    return w_.add("Cast", {value}, {int_attribute("to", 7)});
  }

  // How many keys there are in all, and how many of each batch are past ones: none where the new
  // ones are all.
  void count_past() {
    keys_ = w_.add("Squeeze", {as_int64(node_.inputs[6])});
    const std::string totals = w_.add(
        "Add", {as_int64(w_.add("Reshape", {node_.inputs[5], w_.ints({-1})})), w_.ints({1})});
    const std::string before = w_.add("Sub", {totals, rows_});
    past_ = w_.add("Where", {w_.add("Equal", {keys_, rows_}), zero(), before});
  }

  // The new rows behind those of the past, in a present of as many rows as there are keys, or as
  // the past has.
  std::string behind_past(const std::string& past, const std::string& fresh) {
    const std::string length =
        w_.add("Gather", {w_.add("Shape", {past}), w_.constant(Tensor::scalar<int64_t>(2))});
    const std::string more = w_.add("Max", {w_.add("Sub", {keys_, length}), zero()});
    const std::string pads =
        w_.add("Concat", {w_.ints({0}), w_.add("Unsqueeze", {more, w_.ints({0})})},
               {int_attribute("axis", 0)});
    const std::string padded = w_.add("Pad", {past, pads, "", w_.ints({2})});
    return w_.add("TensorScatter", {padded, fresh, past_});
  }
  std::string first_keys(const std::string& present) {
    return w_.add(
        "Slice", {present, w_.ints({0}), w_.add("Unsqueeze", {keys_, w_.ints({0})}), w_.ints({2})});
  }

  std::string rotated(const std::string& value) {
    const auto cosine = e_.shape(node_.inputs[7]);
    if (!cosine || cosine->size() != 2)
      view_.fail(ErrorCode::unsupported, "has no gradient where the size of cos_cache is open");
    std::string places = has(9) ? node_.inputs[9] : "";
    if (places.empty()) {
      const std::string batch = w_.add("Shape", {value}, {int_attribute("end", 1)});
      const std::string rows = w_.add("Unsqueeze", {rows_, w_.ints({0})});
      places = w_.add(
          "Expand", {counted(rows_), w_.add("Concat", {batch, rows}, {int_attribute("axis", 0)})});
      if (!past_.empty())
        places = w_.add("Add", {places, w_.add("Unsqueeze", {past_, w_.ints({1})})});
    }
    return w_.add("RotaryEmbedding", {value, node_.inputs[7], node_.inputs[8], places},
                  {int_attribute("interleaved", view_.attr_int("rotary_interleaved", 0)),
                   int_attribute("rotary_embedding_dim", 2 * cosine->back())});
  }

  // Which keys a query sees: those of its sequence, up to its own place, within the window.
  std::string mask() {
    const std::string places = counted(keys_);
    std::string row = w_.add("Unsqueeze", {counted(rows_), w_.ints({1})});
    if (!past_.empty())
      row = w_.add("Add", {row, w_.add("Reshape", {past_, w_.ints({-1, 1, 1, 1})})});
    const std::string last = as_int64(w_.add("Reshape", {node_.inputs[5], w_.ints({-1, 1, 1, 1})}));
    std::string seen = w_.add("LessOrEqual", {places, last});
    const int64_t window = view_.attr_int("local_window_size", -1);
    const bool causal = view_.attr_int("causal", 1) != 0;
    // Attention has a mask for each pair of query and key.
    const std::string any = w_.add(
        "GreaterOrEqual", {w_.add("Add", {row, places}), w_.constant(Tensor::scalar<int64_t>(0))});
    seen = w_.add("And", {seen, causal ? w_.add("LessOrEqual", {places, row}) : any});
    if (window > 0) {
      const std::string first = w_.add("Sub", {row, w_.constant(Tensor::scalar<int64_t>(window))});
      seen = w_.add("And", {seen, w_.add("Greater", {places, first})});
    }
    if (!has(10)) return seen;
    const std::string& bias = node_.inputs[10];
    const std::string none = w_.number(-std::numeric_limits<float>::infinity(), bias);
    return w_.add("Where", {seen, bias, none});
  }

  // A sink is a key more, of zeros, whose score the mask gives: that of its head, or 0.
  void add_sink(const std::string& q, std::string& k, std::string& v, std::string& mask) {
    for (std::string* rows : {&k, &v})
      *rows = w_.add("Pad", {*rows, w_.ints({0, 1}), "", w_.ints({2})});
    const std::string zero = w_.number(0, q);
    if (!has(10)) {
      const std::string none = w_.number(-std::numeric_limits<float>::infinity(), q);
      mask = w_.add("Where", {mask, zero, none});
    }
    const auto for_each_query = [&](const std::string& value, const std::string& columns) {
      const std::string rows = w_.add("Shape", {q}, {int_attribute("end", 3)});
      return w_.add("Expand",
                    {value, w_.add("Concat", {rows, columns}, {int_attribute("axis", 0)})});
    };
    const std::string keys = w_.add("Unsqueeze", {keys_, w_.ints({0})});
    const std::string sink =
        has(11) ? w_.add("Reshape", {node_.inputs[11], w_.ints({1, -1, 1, 1})}) : zero;
    mask = w_.add("Concat", {for_each_query(mask, keys), for_each_query(sink, w_.ints({1}))},
                  {int_attribute("axis", 3)});
  }

  const ir::Node& node_;
  ops::NodeView view_;
  GradientEmitter& e_;
  NodeWriter w_;
  int64_t heads_ = 1, kv_heads_ = 1;
  std::string rows_, keys_;  // how many of each batch: new ones, and with the past
  std::string past_;         // of each batch; "": there is none
};

}  // namespace

std::vector<ir::Node> group_query_attention_body(const ir::Node& node, GradientEmitter& e) {
  return GroupedQueries(node, e).make();
}

}  // namespace sardonyx::autodiff
