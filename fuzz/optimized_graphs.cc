// Optimised graphs as a file of packed weights may hold them: those of small models, changed where
// graphs have structure. Each is refused, or planned and run.
//
// The first byte chooses the model; the changes follow from the sum of all.
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/bytes.h"
#include "base/thread_pool.h"
#include "eval/eval.h"
#include "ir/internal_domain.h"
#include "ir/tensor.h"
#include "ir/walk.h"
#include "lower/lower.h"
#include "model_changes.h"
#include "ops/pack_cache.h"
#include "passes/optimize.h"
#include "run/plan.h"
#include "sardonyx/error.h"
#include "session/describe.h"
#include "session/optimized_graph.h"
#include "target.h"
#include "wire/read.h"
#include "wire/text_parse.h"
#include "wire/write.h"

namespace {

using namespace sardonyx;
using fuzzing::below;
using fuzzing::Random;

// Declared values that nothing makes become constants. Together they have every form that passes
// for inference make.
constexpr std::string_view texts[] = {
    R"(g (float[N,4,9,9] x) => (y) <float[16,4,1,1] w0, float[16] b0, float[16,1,3,3] w1, float[4,16,1,1] w2> {
  a = Conv(x, w0, b0) r = Relu(a)
  d = Conv<group = 16, pads = [1,1,1,1]>(r, w1) s = Sigmoid(d) ds = Mul(d, s)
  m = GlobalAveragePool(ds) ms = HardSigmoid(m) f = Mul(ds, ms)
  p = Conv(f, w2) y = Add(p, x) })",
    R"(g (float[2,3,12,12] x) => (y, u) <float[8,3,3,3] w0, float[8] s, float[8] b, float[8] m, float[8] v, float[8,8,3,3] w1, float[8,4,2,2] w2> {
  c = Conv<strides = [2,2], pads = [1,1,1,1]>(x, w0) n = BatchNormalization(c, s, b, m, v) r = Relu(n)
  p = MaxPool<kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]>(r)
  q = AveragePool<kernel_shape = [2,2]>(p) e = Conv<pads = [1,1,1,1]>(p, w1) y = Add(e, p)
  t = ConvTranspose<strides = [2,2]>(y, w2) u = Relu(t) })",
    R"(g (float[B,S,32] x) => (y) <float[32,32] wq, float[32,32] wk, float[32,32] wv, float[32,32] wo, float[32] bq, float[32] g1, float[32] b1, float[32,64] w1, float[64] c1, float[64,32] w2> {
  q0 = MatMul(x, wq) q1 = Add(q0, bq) k0 = MatMul(x, wk) v0 = MatMul(x, wv)
  heads = Constant<value_ints = [0, 0, 4, 8]>() whole = Constant<value_ints = [0, 0, 32]>()
  q2 = Reshape(q1, heads) k2 = Reshape(k0, heads) v2 = Reshape(v0, heads)
  q = Transpose<perm = [0,2,1,3]>(q2) k = Transpose<perm = [0,2,3,1]>(k2) v = Transpose<perm = [0,2,1,3]>(v2)
  s0 = MatMul(q, k) scale = Constant<value_float = 0.35>() s1 = Mul(s0, scale) s2 = Softmax(s1)
  o0 = MatMul(s2, v) o1 = Transpose<perm = [0,2,1,3]>(o0) o2 = Reshape(o1, whole) o = MatMul(o2, wo)
  r = Add(o, x) n = LayerNormalization(r, g1, b1)
  h0 = MatMul(n, w1) h1 = Add(h0, c1) h = Gelu(h1) h2 = MatMul(h, w2) y = Add(h2, n) })",
    R"(g (float[N,4,6,6] x, float[M,16] rows) => (y, z) <uint8[8,4,3,3] wq, float ws, uint8 wz, float s, uint8 zp, int8[16,24] mq, float[24] ms, int8[24] mz> {
  xq = QuantizeLinear(x, s, zp) xd = DequantizeLinear(xq, s, zp) wd = DequantizeLinear(wq, ws, wz)
  c = Conv<pads = [1,1,1,1]>(xd, wd) r = Relu(c) rq = QuantizeLinear(r, s, zp) rd = DequantizeLinear(rq, s, zp)
  p = MaxPool<kernel_shape = [2,2]>(rd) pq = QuantizeLinear(p, s, zp) y = Sigmoid(p)
  hq = QuantizeLinear(rows, s, zp) hd = DequantizeLinear(hq, s, zp) md = DequantizeLinear<axis = 1>(mq, ms, mz)
  z0 = MatMul(hd, md) zq = QuantizeLinear(z0, s, zp) z = DequantizeLinear(zq, s, zp) })",
    R"(g (float[T,B,8] x, float[N,6,5,5] image) => (y, h, n, i, l) <float[1,32,8] w, float[1,32,8] r, float[1,64] b, float[6] s, float[6] o> {
  y, h = LSTM<hidden_size = 8>(x, w, r, b)
  n = GroupNormalization<num_groups = 3>(image, s, o) i = InstanceNormalization(image, s, o)
  l = LRN<size = 3>(image) })",
    R"(g (float[N,C,4] x, float[N,C,4] z) => (y, m) <float[1] k> {
  a = Add(x, z) b = Tanh(a) c = Mul(b, x) d = Sqrt(c) e = Sub(d, z) f = Mul(e, k) y = Relu(f)
  g = Exp(x) h = Add(g, z) m = Neg(h) })",
    R"(g (float[1,8,4,4] x) => (y, z) <float[8,8,1,1] w, float[16,8,1,1] w2> {
  c = Conv(x, w) r = Relu(c) d = DepthToSpace<blocksize = 2>(r) s = SpaceToDepth<blocksize = 2>(d)
  e = Conv(s, w) f = Conv(x, w) j = Concat<axis = 1>(e, f)
  sizes = Constant<value_ints = [1, 2, 8, 4, 4]>() a = Reshape(j, sizes) t = Transpose<perm = [0,2,1,3,4]>(a)
  back = Constant<value_ints = [1, 16, 4, 4]>() q = Reshape(t, back) y = Relu(q)
  g = Conv(r, w2) z = Clip(g) })",
    R"(g (float[M,32] x, bool flag) => (y, p) <uint8[24,2,8] q, float[24,2] s, float[24,32] w, float[24] b> {
  m = com.microsoft.MatMulNBits<K = 32, N = 24, bits = 4, block_size = 16>(x, q, s)
  n = Gemm<transB = 1>(x, w, b) r = Relu(n)
  y = If (flag) <then_branch = t () => (float[a,b] o) { o = Add(m, r) }, else_branch = e () => (float[a,b] o2) { o2 = Mul(m, r) }>
  k = Constant<value_ints = [3]>() p, at = TopK(y, k) })",
};

ir::Model model_of(std::string_view text, Random& random) {
  std::string whole = R"(<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]> )";
  ir::Model model = wire::parse_model(whole += text);
  std::unordered_set<std::string> made;
  for (const ir::Node& node : model.graph->nodes)
    made.insert(node.outputs.begin(), node.outputs.end());
  for (const ir::ValueInfo& info : model.graph->value_info) {
    if (made.contains(info.name) || !info.type || !info.type->shape) continue;
    Shape shape;
    for (const ir::Dimension& dim : info.type->shape->dims) shape.push_back(dim.value.value_or(1));
    const Tensor elements = fuzzing::small_tensor(info.type->element_type(), shape, random);
    model.graph->initializers.push_back(ir::to_proto(elements, info.name));
  }
  model.graph->value_info.clear();
  return model;
}

struct Prepared {
  std::string message;
  StoredConstants constants;
};

// As files have them.
class AllPrepared {
 public:
  AllPrepared() {
    Random random(1);
    ThreadPool pool(1);
    const ops::PackCache packs;
    const ModelFiles files({}, packs);
    for (size_t i = 0; i < std::size(texts); ++i) {
      ir::Graph graph = lower::lower(model_of(texts[i], random), {});
      passes::optimize(graph, {.pool = &pool});
      ir::walk(graph, {.node = [&](const ir::WalkPlace&, const ir::Node& node, size_t) {
                 if (ir::is_internal(node)) ++tally_[node.op_type];
               }});
      const auto message = write_graph(graph, files, all_[i].constants);
      require(message.has_value(), "an optimised graph can be kept");
      all_[i].message = *message;
    }
    if (std::getenv("SARDONYX_FUZZ_TALLY") == nullptr) return;
    for (const auto& [name, count] : tally_) std::printf("%4d %s\n", count, name.c_str());
  }
  const Prepared& operator[](size_t i) const { return all_[i % all_.size()]; }

 private:
  std::array<Prepared, std::size(texts)> all_;
  std::map<std::string, int> tally_;
};

// Another shape or type for a constant, as its message says it.
void change_constant(ir::Graph& graph, Random& random) {
  if (graph.initializers.empty()) return;
  ir::TensorProto& tensor = graph.initializers[below(random, graph.initializers.size())];
  Shape shape(tensor.dims.begin(), tensor.dims.end());
  if (!shape.empty() && below(random, 2) == 0)
    shape[below(random, shape.size())] = static_cast<int64_t>(below(random, 12));
  if (below(random, 4) == 0) shape.resize(below(random, 5), 1);
  constexpr ElementType types[] = {ElementType::float32, ElementType::uint8,   ElementType::int8,
                                   ElementType::int32,   ElementType::float16, ElementType::int64,
                                   ElementType::float64, ElementType::boolean};
  const ElementType type =
      below(random, 3) == 0 ? types[below(random, std::size(types))] : tensor.element_type();
  int64_t size = 1;
  for (const int64_t dim : shape) size *= dim;
  if (size > (1 << 16)) return;
  tensor = ir::to_proto(fuzzing::small_tensor(type, shape, random), tensor.name);
}

void try_graph(const std::string& message, const Bytes& constants, Random& random) {
  ThreadPool pool(1);
  ops::PackCache packs;
  const ModelFiles files({}, packs);
  ir::Graph graph = read_graph(Bytes::copy_of(std::as_bytes(std::span(message))), files, constants);
  std::vector<Value> inputs;
  for (const ir::ValueInfo& input : graph.inputs)
    inputs.push_back(fuzzing::value_for(describe(input), random));
  const run::PlanServices services{.packs = &packs};
  const auto plan = std::make_shared<const run::Plan>(
      std::move(graph), std::span<const ops::ValueFacts>(),
      std::vector<std::pair<std::string, ops::ValueFacts>>(), services);
  eval::Environment environment(pool, nullptr);
  environment.memory_limit = 64 << 20;
  environment.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  std::vector<Value> made(plan->outputs().size());
  plan->run(inputs, {}, made, environment, nullptr);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const AllPrepared all;
  uint64_t sum = 0xcbf29ce484222325;
  for (size_t i = 0; i < size; ++i) sum = (sum ^ data[i]) * 0x100000001b3;
  Random random(sum);
  const Prepared& chosen = all[size == 0 ? 0 : data[0]];
  try {
    ir::Model changed = wire::read_model(Bytes::copy_of(std::as_bytes(std::span(chosen.message))));
    fuzzing::change_graph(*changed.graph, random);
    if (below(random, 3) == 0) change_constant(*changed.graph, random);
    try_graph(wire::write_model(changed), chosen.constants.bytes(), random);
  } catch (const Error&) {
  }
  return 0;
}
