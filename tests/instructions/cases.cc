// Work whose instructions callgrind counts, one case after the other (bench/instructions.py).
//   instruction_cases DIGITS.onnx
// Prints the name of each case; only what runs inside sardonyx_measured counts.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sardonyx/binding.h"
#include "sardonyx/infer.h"
#include "sardonyx/sardonyx.h"
#include "sardonyx/session.h"

extern "C" __attribute__((noinline)) void sardonyx_measured(const std::function<void()>& work) {
  work();
  __asm__ volatile("" ::: "memory");  // no tail call: leaving it ends a count
}

namespace {

using namespace sardonyx;

void count(const char* name, const std::function<void()>& work) {
  std::printf("%s\n", name);
  sardonyx_measured(work);
}

SessionOptions one_thread() {
  SessionOptions options;
  options.threads = 1;
  return options;
}

Tensor numbers(Shape shape) {
  Tensor tensor(ElementType::float32, std::move(shape));
  int i = 0;
  for (float& v : tensor.mutable_elements<float>()) v = static_cast<float>(++i % 29 - 14) / 16;
  return tensor;
}

std::string texts_of(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", i % 13 / 16.0);
  return text;
}

// Nodes of which no two neighbours become one step.
std::string tiny_nodes(int nodes) {
  std::string text = R"(<ir_version: 10, opset_import: ["" : 21]>
    g (float[n,8] x) => (float[n,8] y) { axis = Constant <value_int = 1> () v0 = Identity (x) )";
  for (int i = 0; i < nodes; ++i) {
    const std::string made = i + 1 == nodes ? "y" : fmt::format("v{}", i + 1);
    text += i % 2 == 0 ? fmt::format("{} = CumSum (v{}, axis) ", made, i)
                       : fmt::format("{} = Softmax (v{}) ", made, i);
  }
  return text + "}";
}

void count_runs(const char* name, const std::string& text, const std::vector<Value>& inputs,
                int runs) {
  const Session session(Model::from_text(text), one_thread());
  std::vector<Value> outputs(session.outputs().size());
  session.run(inputs, outputs);
  count(name, [&] {
    for (int i = 0; i < runs; ++i) session.run(inputs, outputs);
  });
}

void ok(sardonyx_status* status) {
  if (status != nullptr) throw std::runtime_error(sardonyx_status_message(status));
}

sardonyx_value* c_tensor() {
  constexpr int64_t dims[] = {1, 8};
  sardonyx_value* made = nullptr;
  ok(sardonyx_tensor_create(SARDONYX_FLOAT32, 2, dims, &made));
  return made;
}

void overhead_in_c() {
  const std::string text = tiny_nodes(1);
  sardonyx_model* model = nullptr;
  sardonyx_session* session = nullptr;
  sardonyx_session_options options = SARDONYX_INIT(sardonyx_session_options);
  options.threads = 1;
  ok(sardonyx_model_parse(text.data(), text.size(), nullptr, &model));
  ok(sardonyx_session_create(model, &options, &session));
  sardonyx_value *input = c_tensor(), *output = c_tensor();
  const sardonyx_value* const given = input;
  ok(sardonyx_session_run_in_order(session, nullptr, &given, 1, &output, 1));
  count("one tiny node through the C interface, 1000 runs", [&] {
    for (int i = 0; i < 1000; ++i)
      ok(sardonyx_session_run_in_order(session, nullptr, &given, 1, &output, 1));
  });
  sardonyx_value_release(input);
  sardonyx_value_release(output);
  sardonyx_session_release(session);
  sardonyx_model_release(model);
}

void overhead() {
  const std::vector<Value> row = {numbers({1, 8})};
  count_runs("200 tiny nodes, 100 runs", tiny_nodes(200), row, 100);
  count_runs("one tiny node, 1000 runs", tiny_nodes(1), row, 1000);
  const Session one(Model::from_text(tiny_nodes(1)), one_thread());
  Binding binding(one);
  binding.bind_input("x", row[0]);
  binding.run();
  count("a binding of one tiny node, 1000 runs", [&] {
    for (int i = 0; i < 1000; ++i) binding.run();
  });
  overhead_in_c();
  const Session session(Model::from_text(tiny_nodes(200)), one_thread());
  std::vector<Value> outputs(1);
  session.run(row, outputs);
  std::vector<Value> others;
  for (int64_t n = 2; n <= 51; ++n) others.emplace_back(numbers({n, 8}));
  count("200 nodes bound to 50 new sizes", [&] {
    for (const Value& other : others) {
      std::vector<Value> fresh(1);
      session.run({&other, 1}, fresh);
    }
  });
  const Session loop(Model::from_text(R"(<ir_version: 10, opset_import: ["" : 21]>
    g (float[4] x, int64 trips) => (float[4] y) {
      go = Constant <value = bool {1}> ()
      y = Loop (trips, go, x) <body = b (int64 i, bool c, float[4] v) => (bool d, float[4] w) {
        d = Identity (c) w = Softmax (v) }>
    })"),
                     one_thread());
  const std::vector<Value> inputs = {numbers({4}), Tensor::scalar<int64_t>(200)};
  std::vector<Value> made(1);
  loop.run(inputs, made);
  count("a loop of 200 turns, 5 runs", [&] {
    for (int i = 0; i < 5; ++i) loop.run(inputs, made);
  });
}

void beginnings(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (bytes.empty()) throw std::runtime_error(path + " can't be read");
  const Model first(bytes.data(), bytes.size());
  { const Session warm(first, one_thread()); }
  count("reading a small model, 20 times", [&] {
    for (int i = 0; i < 20; ++i) const Model model(bytes.data(), bytes.size());
  });
  count("a session of a small model, 5 times", [&] {
    for (int i = 0; i < 5; ++i) {
      const Model model(bytes.data(), bytes.size());
      const Session session(model, one_thread());
    }
  });
  const std::string text = tiny_nodes(200);
  count("reading 200 nodes of text, 5 times", [&] {
    for (int i = 0; i < 5; ++i) Model::from_text(text);
  });
}

// Sizes that are sums, and nodes that an upgrade changes.
std::string growing_nodes(int nodes) {
  std::string text = R"(<ir_version: 7, opset_import: ["" : 13]>
    g (float[n,h,8] x) => (float[n,m,8] y) { v0 = Identity (x) )";
  for (int i = 0; i < nodes; i += 4) {
    text += fmt::format("a{0} = Concat <axis = 1> (v{0}, x) b{0} = Relu (a{0}) ", i);
    text += fmt::format("r{0} = ReduceMax <axes = [2]> (b{0}) v{1} = Sub (b{0}, r{0}) ", i, i + 4);
  }
  return text + fmt::format("y = Identity (v{}) }}", nodes);
}

// A model whose node has an attribute of so many integers, each a field of its own.
std::string lone_integers(int count) {
  const auto field = [](char tag, const std::string& content) {
    std::string text(1, tag);
    size_t size = content.size();
    for (; size >= 0x80; size >>= 7) text += static_cast<char>(size | 0x80);
    return text + static_cast<char>(size) + content;
  };
  std::string attribute = field('\x0a', "numbers");
  for (int i = 0; i < count; ++i) {
    attribute += '\x40';
    if (i % 2 == 1) attribute += static_cast<char>(0x80 | i % 128);
    attribute += static_cast<char>(i % 128);
  }
  return std::string("\x08\x07") +
         field('\x3a', field('\x0a', field('\x22', "Relu") + field('\x2a', attribute)));
}

void inference() {
  const Model model = Model::from_text(growing_nodes(200));
  infer_types(model);
  count("types of 200 nodes, 5 times", [&] {
    for (int i = 0; i < 5; ++i) infer_types(model);
  });
  const std::string bytes = lone_integers(20'000);
  { const Model warm(bytes.data(), bytes.size()); }
  count("reading a list of 20000 fields, 5 times", [&] {
    for (int i = 0; i < 5; ++i) const Model read(bytes.data(), bytes.size());
  });
}

void kernels() {
  count_runs("matrix product 64x128x128, 20 runs",
             fmt::format(R"(<ir_version: 10, opset_import: ["" : 21]>
    g (float[m,128] x) => (float[m,128] y) <float[128,128] w = {{{}}}> {{ y = MatMul (x, w) }})",
                         texts_of(128 * 128)),
             {numbers({64, 128})}, 20);
  count_runs("matrix times vector 512x256, 20 runs",
             fmt::format(R"(<ir_version: 10, opset_import: ["" : 21]>
    g (float[m,512] x) => (float[m,256] y) <float[512,256] w = {{{}}}> {{ y = MatMul (x, w) }})",
                         texts_of(512 * 256)),
             {numbers({1, 512})}, 20);
  count_runs("convolution 3x3 of 16 channels, 10 runs",
             fmt::format(R"(<ir_version: 10, opset_import: ["" : 21]>
    g (float[1,16,14,14] x) => (float[1,16,14,14] y) <float[16,16,3,3] w = {{{}}}> {{
      c = Conv <pads = [1, 1, 1, 1]> (x, w) y = Relu (c) }})",
                         texts_of(16 * 16 * 9)),
             {numbers({1, 16, 14, 14})}, 10);
  count_runs("exp and tanh of 16384 elements, 10 runs", R"(<ir_version: 10, opset_import: ["" : 21]>
    g (float[n] x) => (float[n] y) { e = Exp (x) t = Tanh (x) y = Mul (e, t) })",
             {numbers({16384})}, 10);
  count_runs("softmax of 64x128, 10 runs", R"(<ir_version: 10, opset_import: ["" : 21]>
    g (float[n,128] x) => (float[n,128] y) { y = Softmax (x) })",
             {numbers({64, 128})}, 10);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--compiler") {
    std::printf("%s\n", SARDONYX_COMPILER);
    return 0;
  }
  if (argc != 2) {
    std::fprintf(stderr, "usage: instruction_cases MODEL.onnx\n");
    return 2;
  }
  try {
    overhead();
    beginnings(argv[1]);
    inference();
    kernels();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "instruction_cases: %s\n", error.what());
    return 1;
  }
  return 0;
}
