// Optimised graphs that files of packed weights keep: sessions with and without them are the same,
// and none is trusted.
#include "session/optimized_graph.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "ir/walk.h"
#include "sardonyx/edit.h"
#include "sardonyx/packing.h"
#include "sardonyx/session.h"
#include "scratch_folder.h"
#include "session/model.h"
#include "session/packed_file.h"
#include "session/packed_weights.h"
#include "wire/read.h"
#include "wire/write.h"

namespace sardonyx::optimized_graphs {
namespace {

namespace fs = std::filesystem;

// Convolutions that are fused into a chain, quantised products, an If whose branches hold
// constants, a normalisation, constants of some sizes that passes compute.
constexpr const char* everything = R"(<ir_version: 10, opset_import: ["" : 21]>
g (float[N,4,8,8] image, float[M,64] rows, bool flag) => (y, chosen, bytes, text) <
  float[8,4,1,1] expand, float[8,1,3,3] depthwise, float[4,8,1,1] project, float[64,64] matrix,
  uint8 zero = {7}, float scale = {0.5}, string[2] names = {"a", "b"}
> {
  e = Conv(image, expand)
  r = Relu(e)
  d = Conv<group = 8, pads = [1,1,1,1]>(r, depthwise)
  s = Sigmoid(d)
  ds = Mul(d, s)
  p = Conv(ds, project)
  y = Add(p, image)
  doubled = Add(matrix, matrix)
  product = MatMul(rows, doubled)
  chosen = If (flag) <
    then_branch = then_graph () => (float[a,b] t) { half = Constant<value_float = 0.5>() t = Mul(product, half) },
    else_branch = else_graph () => (float[a,b] f) { f = Relu(product) }>
  q = QuantizeLinear(chosen, scale, zero)
  bytes = Add(q, q)
  text = Identity(names)
})";

// The model with weights drawn at random, so that they are none of the file's repeated ones.
Model drawn(std::string whole, unsigned seed = 1) {
  std::mt19937 random(seed);
  for (const auto& [name, count] : std::vector<std::pair<std::string, int>>{
           {"expand", 32}, {"depthwise", 72}, {"project", 32}, {"matrix", 64 * 64}}) {
    const size_t at = whole.find("] " + name);
    if (at == std::string::npos) continue;
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = static_cast<float>(random() % 257) / 128 - 1;
    whole.insert(at + 2 + name.size(), fmt::format(" = {{{}}}", fmt::join(values, ",")));
  }
  return Model::from_text(whole);
}

std::vector<NamedValue> inputs(bool flag = true) {
  std::mt19937 random(3);
  const auto floats = [&](Shape shape) {
    Tensor made(ElementType::float32, std::move(shape));
    for (float& v : made.mutable_elements<float>()) v = static_cast<float>(random() % 100) / 64 - 1;
    return made;
  };
  return {{"image", floats({2, 4, 8, 8})},
          {"rows", floats({3, 64})},
          {"flag", Tensor::of<bool>({flag}, {})}};
}

std::string bits_of(const std::vector<Value>& values) {
  std::string bits;
  for (const Value& value : values) {
    const Tensor& tensor = value.tensor();
    bits += to_string(tensor.shape());
    if (tensor.element_type() == ElementType::string) {
      for (const std::string& text : tensor.elements<std::string>()) bits += text;
    } else {
      bits.append(static_cast<const char*>(tensor.data()), tensor.byte_size());
    }
  }
  return bits;
}

std::string steps_of(const std::vector<StepDescription>& steps) {
  std::string text;
  for (const StepDescription& step : steps) {
    text += fmt::format("{} | {} | {} | {} | {}\n", step.node, step.origin,
                        fmt::join(step.sources, ","), step.kernel, fmt::join(step.refused, ","));
    for (const auto& body : step.bodies) text += body.name + "{" + steps_of(body.steps) + "}\n";
  }
  return text;
}

class OptimizedGraphs : public testing::Test {
 protected:
  OptimizedGraphs() { drawn(everything).save(model()); }

  std::string model() const { return folder_ / "model.onnx"; }
  std::string packed() const { return folder_ / "model.sdx"; }
  std::string cache() const { return folder_ / "cache"; }

  // Whether the session took a graph.
  bool takes(SessionOptions options, const std::function<Session()>& make = {}) {
    bool taken = false;
    options.log_level = LogLevel::debug;
    options.log = [&](const LogMessage& message) {
      taken = taken || message.message.starts_with("the optimised graph is taken");
      messages_.push_back(message.to_string());
    };
    options_ = options;
    if (make) {
      make();
    } else {
      const Session session(model(), options);
    }
    return taken;
  }

  // Of sessions with and without the file.
  void expect_same(const SessionOptions& options = {}) {
    SessionOptions with = options;
    with.packed = packed();
    const Session a(model(), options), b(model(), with);
    EXPECT_EQ(steps_of(a.steps()), steps_of(b.steps()));
    for (const bool flag : {true, false})
      EXPECT_EQ(bits_of(a.run(inputs(flag))), bits_of(b.run(inputs(flag))));
  }

  test::ScratchFolder folder_;
  std::vector<std::string> messages_;
  SessionOptions options_;
};

TEST_F(OptimizedGraphs, GiveTheSamePlanAndTheSameBits) {
  pack_model(Model(model()), packed());
  const auto file = PackedFile::open(packed());
  ASSERT_EQ(file->graphs().size(), 1u);
  EXPECT_TRUE(takes({.packed = packed()}));
  expect_same();
  EXPECT_TRUE(compare_packed(Model(model()), packed()).differences.empty());
  // What passes computed lies in the file, and what is packed of it is known by that place.
  EXPECT_GE(file->constants().size(), 64u * 64 * 4);
  bool found = false;
  for (size_t i = 0; i < file->form_count(); ++i) {
    const PackedForm form = file->form(i);
    if (form.id.bytes != 64 * 64 * 4) continue;
    found = true;
    ASSERT_TRUE(form.id.place);
    EXPECT_EQ(form.id.place, file->place_of(file->constants().span().subspan(form.id.place->offset,
                                                                             form.id.bytes)));
  }
  EXPECT_TRUE(found);
}

TEST_F(OptimizedGraphs, OriginsAndSourcesOfNodesAreKept) {
  Model::from_text(R"(<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
g (float[N,8] x) => (y) { a = own.Twice(x) y = Relu(a) }
<domain: "own", opset_import: ["" : 21]> Twice (a) => (b) { c = Add(a, a) b = Neg(c) })")
      .save(model());
  pack_model(Model(model()), packed());
  const Session a(model()), b(model(), {.packed = packed()});
  EXPECT_EQ(steps_of(a.steps()), steps_of(b.steps()));
  EXPECT_NE(steps_of(b.steps()).find("Twice"), std::string::npos);
}

TEST_F(OptimizedGraphs, AreOfTheirChoiceOfOptions) {
  pack_model(Model(model()), packed(), {.fuse = false});
  EXPECT_TRUE(takes({.fuse = false, .packed = packed()}));
  expect_same({.fuse = false});
  for (const SessionOptions& other :
       {SessionOptions{}, SessionOptions{.fuse = false, .exact = true},
        SessionOptions{.fuse = false, .all_outputs = true},
        SessionOptions{.fuse = false, .dimensions = {{"N", 2}}},
        SessionOptions{.fuse = false, .extra_outputs = {"product"}}}) {
    SessionOptions with = other;
    with.packed = packed();
    EXPECT_FALSE(takes(with));
    expect_same(other);
  }
  pack_model(Model(model()), packed(), {.dimensions = {{"N", 2}}, .extra_outputs = {"product"}});
  EXPECT_TRUE(takes({.dimensions = {{"N", 2}}, .extra_outputs = {"product"}, .packed = packed()}));
  EXPECT_FALSE(takes({.dimensions = {{"N", 3}}, .extra_outputs = {"product"}, .packed = packed()}));
  expect_same({.dimensions = {{"N", 2}}, .extra_outputs = {"product"}});
}

TEST_F(OptimizedGraphs, AreNotTakenForGivenInitializersAndOperatorsFromOutside) {
  pack_model(Model(model()), packed());
  const Tensor expand = Tensor::of<float>(std::vector<float>(32, 0.25F), {8, 4, 1, 1});
  EXPECT_FALSE(takes({.initializers = {{"expand", expand}}, .packed = packed()}));
  expect_same({.initializers = {{"expand", expand}}});
}

TEST_F(OptimizedGraphs, OfOverriddenInitializersAreKeptInTheCache) {
  Model::from_text(R"(<ir_version: 10, opset_import: ["" : 21]>
g (float[N,4] x, float[4] bias) => (y) <float[4] bias = {1, 2, 3, 4}> { y = Add(x, bias) })")
      .save(model());
  const Tensor x = Tensor::of<float>({1, 2, 3, 4}, {1, 4});
  const auto run = [&](const Session& session) {
    return bits_of(session.run({{"x", x}})) +
           bits_of(session.run({{"x", x}, {"bias", x.reshaped({4})}}));
  };
  const std::string expected = run(Session(model()));
  size_t taken = 0;
  for (int i = 0; i < 2; ++i) {
    messages_.clear();
    takes({.cache_folder = cache()}, [&] {
      Session session(model(), options_);
      EXPECT_EQ(run(session), expected);
      return session;
    });
    taken = static_cast<size_t>(std::ranges::count_if(messages_, [](const std::string& message) {
      return message.find("the optimised graph is taken") != std::string::npos;
    }));
    EXPECT_EQ(taken, i == 0 ? 0u : 2u);
  }
}

TEST_F(OptimizedGraphs, OfTheCacheServeEveryChoiceUpToANumber) {
  for (int64_t n = 1; n <= 12; ++n) {
    EXPECT_FALSE(takes({.dimensions = {{"N", n}}, .cache_folder = cache()}));
    EXPECT_TRUE(takes({.dimensions = {{"N", n}}, .cache_folder = cache()}));
  }
  EXPECT_TRUE(takes({.dimensions = {{"N", 11}}, .cache_folder = cache()}));
  for (const auto& entry : fs::directory_iterator(cache()))
    EXPECT_LE(PackedFile::open(entry.path().string())->graphs().size(), 8u);
}

TEST_F(OptimizedGraphs, OfSessionsWithoutACacheAreKeptUpToTheSameNumber) {
  const Model shared(model());
  Session(shared, {.cache_folder = cache()});
  for (int64_t n = 1; n <= 12; ++n) Session(shared, {.dimensions = {{"N", n}}});
  Session(shared, {.dimensions = {{"N", 13}}, .cache_folder = cache()});
  EXPECT_TRUE(takes({.dimensions = {{"N", 13}}, .cache_folder = cache()}));
  for (const auto& entry : fs::directory_iterator(cache()))
    EXPECT_EQ(PackedFile::open(entry.path().string())->graphs().size(), 8u);
}

TEST_F(OptimizedGraphs, OfAModelThatWasTouchedAreNotTaken) {
  pack_model(Model(model()), packed());
  fs::last_write_time(model(), fs::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_FALSE(takes({.packed = packed()}));
  expect_same();
  // Nor those of a model in memory.
  EXPECT_FALSE(takes({.packed = packed()}, [&] {
    const std::string bytes = wire::write_model(wire::read_model(model()));
    return Session(Model(bytes.data(), bytes.size()), options_);
  }));
  const Model text = drawn(everything);
  pack_model(text, packed());
  EXPECT_TRUE(PackedFile::open(packed())->graphs().empty());
}

// Models that differ in memory alone, and there where the fingerprint does not look.
TEST_F(OptimizedGraphs, OfModelsThatAreNotAsTheirFilesAreNotTaken) {
  drawn(R"(<ir_version: 10, opset_import: ["" : 21]>
g (float[N,64] x) => (y) <float[64,64] matrix, float[64,64] other = {)" +
        fmt::format("{}", fmt::join(std::vector<int>(64 * 64, 3), ",")) + R"(}> {
  doubled = Add(matrix, matrix) product = MatMul(x, doubled) y = MatMul(product, other) })")
      .save(model(), {.external_data = "weights.bin", .threshold = 1});
  const auto changed = [&](int by) {
    const Model read(model(), {.load_external_data = false});
    Tensor matrix(ElementType::float32, {64, 64});
    std::ranges::fill(matrix.mutable_elements<float>(), 0.5F);
    matrix.mutable_elements<float>()[2000] += static_cast<float>(by);
    return ModelEditor(read).replace_initializer("matrix", matrix).finish();
  };
  const Tensor x(ElementType::float32, {2, 64});
  std::ranges::fill(Tensor(x).mutable_elements<float>(), 0.5F);
  for (const bool in_memory : {false, true}) {
    const auto make = [&](int by) {
      if (!in_memory) return changed(by);
      const std::string bytes = wire::write_model(changed(by).implementation().model);
      return Model(bytes.data(), bytes.size(), folder_.path());
    };
    pack_model(make(0), packed());
    EXPECT_TRUE(PackedFile::open(packed())->graphs().empty());
    for (const int by : {0, 1, 2}) {
      const std::string expected = bits_of(Session(make(by)).run({{"x", x}}));
      for (const SessionOptions& options :
           {SessionOptions{.packed = packed()}, SessionOptions{.cache_folder = cache()}})
        EXPECT_EQ(bits_of(Session(make(by), options).run({{"x", x}})), expected) << by;
    }
  }
}

TEST_F(OptimizedGraphs, OfModelsReadInEveryWay) {
  pack_model(Model(model()), packed());
  const Model in_memory(model(), {.read_into_memory = true});
  EXPECT_TRUE(takes({.packed = packed()}, [&] { return Session(in_memory, options_); }));
  EXPECT_EQ(bits_of(Session(in_memory, {.packed = packed()}).run(inputs())),
            bits_of(Session(model()).run(inputs())));
  const std::string external = folder_ / "external.onnx";
  Model(model()).save(external, {.external_data = "weights.bin", .threshold = 1});
  pack_model(Model(external), packed());
  EXPECT_TRUE(takes({.packed = packed()}, [&] { return Session(external, options_); }));
  EXPECT_EQ(bits_of(Session(external, {.packed = packed()}).run(inputs())),
            bits_of(Session(model()).run(inputs())));
  const Model later(external, {.load_external_data = false});
  EXPECT_TRUE(takes({.packed = packed()}, [&] { return Session(later, options_); }));
}

// What passes computed lies at the same place of two files, and is not the same.
TEST_F(OptimizedGraphs, OfTwoFilesKeepTheirConstantsApart) {
  drawn(R"(<ir_version: 10, opset_import: ["" : 21]>
g (float[N,64] x) => (y) <float[64,64] matrix> {
  rows = Shape<start = 0, end = 1>(x) factor = Cast<to = 1>(rows)
  scaled = Mul(matrix, factor) y = MatMul(x, scaled) })")
      .save(model());
  const std::string other = folder_ / "other.sdx";
  pack_model(Model(model()), packed(), {.dimensions = {{"N", 4}}});
  pack_model(Model(model()), other, {.dimensions = {{"N", 5}}});
  const auto run = [](const Session& session, int64_t rows) {
    const Tensor x(ElementType::float32, {rows, 64});
    std::ranges::fill(Tensor(x).mutable_elements<float>(), 0.5F);
    return bits_of(session.run({{"x", x}}));
  };
  const std::string expected = run(Session(model(), {.dimensions = {{"N", 5}}}), 5);
  const SessionOptions both{.dimensions = {{"N", 5}}, .packed = packed(), .cache_folder = cache()};
  for (const bool is_cached : {false, true}) {
    EXPECT_EQ(takes(both), is_cached);
    EXPECT_EQ(run(Session(model(), both), 5), expected);
  }
  const Model shared(model());
  const Session first(shared, {.dimensions = {{"N", 4}}, .packed = packed()}),
      second(shared, {.dimensions = {{"N", 5}}, .packed = other});
  EXPECT_EQ(run(first, 4), run(Session(model(), {.dimensions = {{"N", 4}}}), 4));
  EXPECT_EQ(run(second, 5), expected);
}

// The cache keeps more graphs than forms: what a graph of it computed is packed, and gone with its
// session, when the next one writes the file anew.
TEST_F(OptimizedGraphs, OfTheCacheMayGoBeforeTheirModel) {
  drawn(R"(<ir_version: 10, opset_import: ["" : 21]>
g (float[N,64] x) => (y) <float[64,64] matrix> {
  rows = Shape<start = 0, end = 1>(x) factor = Cast<to = 1>(rows)
  scaled = Mul(matrix, factor) y = MatMul(x, scaled) })")
      .save(model());
  const auto expect_right = [&](const Model& of, int64_t rows) {
    const Tensor x(ElementType::float32, {rows, 64});
    std::ranges::fill(Tensor(x).mutable_elements<float>(), 0.5F);
    const std::map<std::string, int64_t, std::less<>> sizes{{"N", rows}};
    EXPECT_EQ(bits_of(Session(of, {.dimensions = sizes, .cache_folder = cache()}).run({{"x", x}})),
              bits_of(Session(model(), {.dimensions = sizes}).run({{"x", x}})))
        << rows;
  };
  for (const int64_t rows : {1, 2, 3}) expect_right(Model(model()), rows);
  for (int round = 0; round < 3; ++round) {
    const Model shared(model());
    for (const int64_t rows : {1, 2, 3, 4, 5, 2, 1, 6}) expect_right(shared, rows);
    for (const int64_t rows : {1, 2, 3, 4, 5, 6}) expect_right(Model(model()), rows);
  }
}

// Tensors of external data may share their bytes, wholly or in part.
TEST_F(OptimizedGraphs, OfExternalDataThatOverlaps) {
  ir::Model shared = drawn(R"(<ir_version: 10, opset_import: ["" : 21]>
g (float[N,64] x) => (y, z) <float[64,64] matrix, float[64] first, float[32,64] half> {
  y = MatMul(x, matrix) r = Add(x, first) z = Gemm<transB = 1>(r, half) })")
                         .implementation()
                         .model;
  std::ofstream(folder_ / "weights.bin", std::ios::binary)
      << std::string(shared.graph->initializers[0].float_data.text());
  ASSERT_EQ(fs::file_size(folder_ / "weights.bin"), 64u * 64 * 4);
  const auto refer = [&](const std::string& name, std::vector<int64_t> dims, int64_t offset) {
    ir::TensorProto& tensor = shared.graph->initializers.emplace_back();
    tensor.name = name;
    tensor.data_type = static_cast<int32_t>(ElementType::float32);
    tensor.data_location = 1;
    int64_t size = 4;
    for (const int64_t dim : dims) size *= dim;
    tensor.dims = std::move(dims);
    tensor.external_data = {{"location", "weights.bin", {}},
                            {"offset", std::to_string(offset), {}},
                            {"length", std::to_string(size), {}}};
  };
  shared.graph->initializers.clear();
  shared.graph->value_info.clear();
  refer("matrix", {64, 64}, 0), refer("first", {64}, 0), refer("half", {32, 64}, 1024);
  wire::write_model(shared, model());
  pack_model(Model(model()), packed());
  EXPECT_TRUE(takes({.packed = packed()}));
  EXPECT_TRUE(PackedFile::open(packed())->constants().empty());
  const Tensor x(ElementType::float32, {2, 64});
  std::ranges::fill(Tensor(x).mutable_elements<float>(), 0.5F);
  EXPECT_EQ(bits_of(Session(model(), {.packed = packed()}).run({{"x", x}})),
            bits_of(Session(model()).run({{"x", x}})));
}

TEST_F(OptimizedGraphs, WhereSizesDecideRanksThereIsNone) {
  Model::from_text(R"(<ir_version: 10, opset_import: ["" : 21]>
g (float[N,4] x, int64[K] shape) => (y) { y = Reshape(x, shape) })")
      .save(model());
  pack_model(Model(model()), packed());
  EXPECT_TRUE(PackedFile::open(packed())->graphs().empty());
  const Session session(model(), {.packed = packed()});
  const std::vector<Value> made = session.run({{"x", Tensor::of<float>({1, 2, 3, 4}, {1, 4})},
                                               {"shape", Tensor::of<int64_t>({2, 2}, {2})}});
  EXPECT_EQ(made[0].tensor().shape(), (Shape{2, 2}));
}

// What a session that optimises tells, one with the optimised graph tells too.
TEST_F(OptimizedGraphs, WarnOfDeclarationsToo) {
  Model::from_text(R"(<ir_version: 10, opset_import: ["" : 21]>
g (float[2,4] x) => (float[2,4] y) <float[2,5] a> { a = Relu(x) y = Neg(a) })")
      .save(model());
  pack_model(Model(model()), packed());
  const auto warnings = [&](const std::string& file) {
    std::vector<std::string> told;
    const Session session(model(), {.packed = file, .log = [&](const LogMessage& message) {
                                      if (message.level == LogLevel::warning)
                                        told.push_back(message.to_string());
                                    }});
    return told;
  };
  EXPECT_EQ(warnings("").size(), 1u);
  EXPECT_EQ(warnings(packed()), warnings(""));
}

// What is mended or warned of when a model is loaded is so with the file, too.
TEST_F(OptimizedGraphs, TellOfModelsThatNeedNoMending) {
  const auto is_clean = [&] {
    pack_model(Model(model()), packed());
    return PackedFile::open(packed())->graphs()[0].is_of_clean_model;
  };
  EXPECT_TRUE(is_clean());
  Model::from_text(R"(<ir_version: 10, opset_import: ["" : 21]>
g (float[2,4] x) => (y) { y = Neg(a) a = Relu(x) })")
      .save(model());
  EXPECT_FALSE(is_clean());
  for (const std::string& file : {std::string(), packed()}) {
    std::vector<std::string> warnings;
    const Model loaded(model(), {.warn = [&](const Warning& warning) {
                         warnings.push_back(warning.to_string());
                       }});
    const Session session(loaded, {.packed = file});
    EXPECT_EQ(warnings.size(), 1u);
    const std::vector<Value> made =
        session.run({{"x", Tensor::of<float>(std::vector<float>(8, 2), {2, 4})}});
    EXPECT_EQ(made[0].tensor().elements<float>()[7], -2);
  }
}

// --- Hostile files -------------------------------------------------------------------------------

// Writes the file's forms again with other graphs.
void rewrite(const std::string& path, const std::function<void(StoredGraph&)>& change) {
  const auto file = PackedFile::open(path);
  std::vector<PackedForm> forms;
  for (size_t i = 0; i < file->form_count(); ++i) forms.push_back(file->form(i));
  StoredGraphs graphs;
  graphs.constants.add(file->constants());
  for (const StoredGraph& graph : file->graphs()) change(graphs.graphs.emplace_back(graph));
  write_packed(path, file->made_for(), forms, graphs);
}

void change_message(StoredGraph& graph, const std::function<void(ir::Model&)>& change) {
  ir::Model model = wire::read_model(graph.message);
  change(model);
  const std::string written = wire::write_model(model);
  graph.message = Bytes::copy_of(std::as_bytes(std::span(written)));
}

TEST_F(OptimizedGraphs, ThatBreakARuleAreRefused) {
  pack_model(Model(model()), packed());
  const Bytes whole = read_file(packed());
  const auto refused = [&](const std::string& words,
                           const std::function<void(ir::Model&)>& change) {
    test::write_bytes(packed(), std::string(whole.text()));
    rewrite(packed(), [&](StoredGraph& graph) { change_message(graph, change); });
    try {
      const Session session(model(), {.packed = packed()});
      ADD_FAILURE() << "no error: " << words;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unreadable);
      const std::string message = error.what();
      EXPECT_NE(message.find(words), std::string::npos) << message;
      EXPECT_NE(message.find("model.sdx: its optimised graph can't be used"), std::string::npos);
    }
  };
  refused("there is no graph", [](ir::Model& m) { m.graph.reset(); });
  refused("other inputs or outputs",
          [](ir::Model& m) { std::swap(m.graph->inputs[0], m.graph->inputs[1]); });
  refused("other inputs or outputs", [](ir::Model& m) { m.graph->outputs.pop_back(); });
  refused("no node output", [](ir::Model& m) { m.graph->nodes.clear(); });
  refused("internal operator", [](ir::Model& m) {
    m.graph->nodes[0].domain = "sardonyx";
    m.graph->nodes[0].op_type = "Nothing";
  });
  const auto with_tensor = [](const std::function<void(ir::TensorProto&)>& change) {
    return [=](ir::Model& m) {
      for (ir::TensorProto& tensor : m.graph->initializers) {
        if (tensor.is_external()) return change(tensor);
      }
      ADD_FAILURE() << "no tensor lies elsewhere";
    };
  };
  const auto with_entry = [&](const std::string& key, const std::string& value) {
    return with_tensor([=](ir::TensorProto& tensor) {
      for (ir::StringEntry& entry : tensor.external_data) {
        if (entry.key == key) entry.value = value;
      }
    });
  };
  for (const char* number : {"18446744073709551615", "18446744073709551552", "99999999"}) {
    refused("are not where they are said to be", with_entry("offset", number));
    refused("are not where they are said to be", with_entry("length", number));
    refused("are not where they are said to be", with_entry("location", number));
  }
  refused("has no offset", with_entry("offset", "-1"));
  refused("has no location", with_entry("location", "../weights"));
  refused("has no length", with_tensor([](ir::TensorProto& t) { t.external_data.pop_back(); }));
  // In the cache, it is passed over and made anew.
  const std::string expected = bits_of(Session(model()).run(inputs()));
  takes({.cache_folder = cache()});
  std::string cached;
  for (const auto& entry : fs::directory_iterator(cache())) cached = entry.path().string();
  rewrite(cached, [&](StoredGraph& graph) {
    change_message(graph, [](ir::Model& m) { m.graph->nodes.clear(); });
  });
  messages_.clear();
  EXPECT_FALSE(takes({.cache_folder = cache()}));
  EXPECT_TRUE(std::ranges::any_of(messages_, [](const std::string& message) {
    return message.find("an optimised graph in the file is of no use") != std::string::npos;
  }));
  EXPECT_TRUE(takes({.cache_folder = cache()}));
  EXPECT_EQ(bits_of(Session(model(), {.cache_folder = cache()}).run(inputs())), expected);
}

// A model that no file should call clean runs as the file's graph says; what needs the model itself
// is refused.
TEST_F(OptimizedGraphs, ThatCallABrokenModelClean) {
  const std::string text = R"(<ir_version: 10, opset_import: ["" : 21]>
g (float[N,4] x, float[4] bias) => (y) <float[4] bias = {1, 2, 3, 4}> { y = Add(x, bias) })";
  Model::from_text(text).save(model());
  pack_model(Model(model()), packed());
  const auto file = PackedFile::open(packed());
  const std::vector<NamedValue> x = {{"x", Tensor::of<float>({1, 2, 3, 4}, {1, 4})}};
  const std::string expected = bits_of(Session(model()).run(x));
  const auto break_by = [&](const std::function<void(ir::Model&)>& change) {
    ir::Model broken = Model::from_text(text).implementation().model;
    change(broken);
    test::write_bytes(model(), wire::write_model(broken));
    EXPECT_THROW(Session{model()}, Error);
    StoredGraphs graphs;
    graphs.constants.add(file->constants());
    graphs.graphs.assign(file->graphs().begin(), file->graphs().end());
    const Model loaded(model());
    write_packed(packed(), {fingerprint_of(loaded.implementation()), packing_target()}, {}, graphs);
  };
  break_by([](ir::Model& m) { m.graph->nodes[0].op_type = "Nothing"; });
  const Session session(model(), {.packed = packed()});
  EXPECT_EQ(bits_of(session.run(x)), expected);
  std::vector<NamedValue> both = x;
  both.emplace_back("bias", Tensor::of<float>({1, 2, 3, 4}, {4}));
  EXPECT_THROW(session.run(both), Error);
  break_by([](ir::Model& m) { m.graph.reset(); });
  EXPECT_THROW(Session(model(), {.packed = packed()}), Error);
  break_by([](ir::Model& m) { m.graph->outputs[0].name = "nothing"; });
  EXPECT_THROW(Session(model(), {.packed = packed()}), Error);
  break_by([](ir::Model& m) { m.graph->inputs[0].type.reset(), m.graph->nodes.clear(); });
  EXPECT_EQ(bits_of(Session(model(), {.packed = packed()}).run(x)), expected);
}

// Whoever can write the file decides what is computed, and nothing else.
TEST_F(OptimizedGraphs, ThatAreChangedAnywhereGiveAnErrorOrAnAnswer) {
  pack_model(Model(model()), packed());
  const Bytes whole = read_file(packed());
  std::mt19937 random(5);
  int ran = 0;
  for (int i = 0; i < 300; ++i) {
    test::write_bytes(packed(), std::string(whole.text()));
    rewrite(packed(), [&](StoredGraph& graph) {
      Bytes message = Bytes::copy_of(graph.message.span());
      for (size_t k = 0; k < 1 + random() % 3; ++k)
        message.mutable_data()[random() % message.size()] = static_cast<std::byte>(random());
      graph.message = message;
    });
    try {
      const Session session(model(), {.threads = 1, .packed = packed()});
      session.run(inputs(), {.memory_limit = 64 << 20});
      ++ran;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(ran, 0);
}

}  // namespace
}  // namespace sardonyx::optimized_graphs
