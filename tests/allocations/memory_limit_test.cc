// What a memory limit of loading, of sessions and of inference lets through is near it, whatever
// the model is made of, and where it is too much the error says where and what to do.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "allocations/failing_new.h"
#include "base/memory_account.h"
#include "ir/model.h"
#include "sardonyx/infer.h"
#include "sardonyx/session.h"
#include "scratch_folder.h"
#include "session/model.h"
#include "tools/convert.h"
#include "wire/write.h"

namespace sardonyx {
namespace {

std::string numbered(int count, const std::function<std::string(int)>& make) {
  std::string text;
  for (int i = 0; i < count; ++i) text += make(i);
  return text;
}

std::string graph(const std::string& inputs, const std::string& outputs, const std::string& values,
                  const std::string& nodes) {
  return fmt::format(
      "<ir_version: 10, opset_import: [\"\" : 21, \"own\" : 1]>\ng ({}) => ({}) <{}> {{ {} }}\n",
      inputs, outputs, values, nodes);
}

struct Grown {
  const char* name;
  std::string (*make)(int);
  int size;
};

std::string many_nodes(int n) {
  return graph("float[a,b] v0", fmt::format("v{}", n), "",
               numbered(n, [](int i) { return fmt::format("v{} = Relu(v{})\n", i + 1, i); }));
}
std::string many_sizes(int n) {
  return graph(
      numbered(n, [](int i) { return fmt::format("float[n{},m{}] x{},", i, i, i); }) + "float[2] x",
      "y", "", "y = Relu(x)");
}
std::string many_attributes(int n) {
  return graph("float[2] x", "y", "", "c = Constant<value_ints = [" + numbered(n, [](int) {
                                        return "1,";
                                      }) + "1]>() y = Relu(x)");
}
std::string many_texts(int n) {
  return graph("float[2] x", "y",
               fmt::format("string[{}] w = {{{}\"a text that is no short one\"}}", n + 1,
                           numbered(n, [](int) { return "\"a text that is no short one\","; })),
               "y = Relu(x)");
}
std::string many_constants(int n) {
  return graph("float[2] x", "y",
               numbered(n, [](int i) { return fmt::format("float[1] w{} = {{1}},", i); }) +
                   "float[1] w = {1}",
               "y = Relu(x)");
}
std::string many_calls(int n) {
  return graph("float[2] v0", fmt::format("v{}", n), "",
               numbered(n, [](int i) { return fmt::format("v{} = own.f(v{})\n", i + 1, i); })) +
         "<domain: \"own\", opset_import: [\"\" : 21]>\n"
         "f (a) => (b) { c = Relu(a) d = Neg(c) e = Abs(d) b = Relu(e) }\n";
}
std::string many_branches(int n) {
  return graph("float[2] x, bool c", "y0", "", numbered(n, [](int i) {
                 return fmt::format(
                     "y{} = If(c) <then_branch = t{} () => (a{}) {{ a{} = Neg(x) }}, else_branch = "
                     "e{} () => (b{}) {{ b{} = Abs(x) }}>\n",
                     i, i, i, i, i, i, i);
               }));
}
std::string high_ranks(int n) {
  const std::string shape = "[" + numbered(999, [](int) { return "1,"; }) + "1]";
  return graph(
      numbered(n, [&](int i) { return fmt::format("float{} x{},", shape, i); }) + "float[2] x", "y",
      "", "y = Relu(x)");
}
std::string growing_lists(int n) {
  return graph("float[n] x", fmt::format("c{}", n),
               "int64[300] w = {" + numbered(299, [](int) { return "1,"; }) + "1}",
               "c0 = Add(w, w)" +
                   numbered(n, [](int i) { return fmt::format("c{} = Add(c{}, w)\n", i + 1, i); }));
}

const Grown grown[] = {
    {"nodes", many_nodes, 30'000},         {"sizes", many_sizes, 15'000},
    {"numbers", many_attributes, 400'000}, {"texts", many_texts, 100'000},
    {"constants", many_constants, 20'000}, {"calls", many_calls, 10'000},
    {"branches", many_branches, 5'000},    {"ranks", high_ranks, 60},
    {"lists", growing_lists, 5'000},
};

// The binary form in a file, so that the text does not count.
class Stored {
 public:
  explicit Stored(const Grown& kind) {
    wire::write_model(Model::from_text(kind.make(kind.size)).implementation().model, path_);
  }
  const std::string& path() const { return path_; }

 private:
  test::ScratchFolder folder_;
  const std::string path_ = folder_ / "model.onnx";
};

struct Outcome {
  long most = 0;  // bytes beyond those that were in use before
  std::string refusal;
};

template <class Work>
Outcome outcome_of(const Work& work) {
  const long before = failing_new::in_use;
  failing_new::max_in_use = before;
  Outcome outcome;
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory) << error.what();
    outcome.refusal = error.what();
  }
  outcome.most = failing_new::max_in_use - before;
  return outcome;
}

// What the process takes once, whatever the model: tables of operators, the pool.
constexpr long own = 3 << 20;
constexpr int64_t limits[] = {1 << 20, 4 << 20, 16 << 20, int64_t{1} << 40};

// With every limit the peak stays near it; a refusal says the option and the limit; no limit, no
// refusal.
template <class Work>
void check_limits(const char* name, const char* option, const Work& work) {
  for (const int64_t limit : limits) {
    const Outcome outcome = outcome_of([&] { work(limit); });
    SCOPED_TRACE(fmt::format("{}: {} = {}: {} bytes, {}", name, option, limit, outcome.most,
                             outcome.refusal));
    if (std::getenv("SHOW_LIMITS") != nullptr)
      fmt::print("{:10} {:28} {:14} {:12} {}\n", name, option, limit, outcome.most,
                 outcome.refusal.substr(0, 200));
    if (limit == limits[3]) {
      EXPECT_EQ(outcome.refusal, "");
      continue;
    }
    EXPECT_LE(outcome.most, 3 * limit / 2 + own);
    if (outcome.refusal.empty()) continue;
    EXPECT_NE(outcome.refusal.find(option), std::string::npos);
    EXPECT_NE(outcome.refusal.find(std::to_string(limit)), std::string::npos);
    EXPECT_NE(outcome.refusal.find(": "), std::string::npos);
  }
}

class Limits : public testing::TestWithParam<Grown> {};

TEST_P(Limits, OfInferring) {
  const Stored model(GetParam());
  check_limits(GetParam().name, "InferOptions::memory_limit", [&](int64_t limit) {
    InferOptions options;
    options.memory_limit = limit;
    infer_types(model.path(), options);
  });
}

TEST_P(Limits, OfLoading) {
  const Stored model(GetParam());
  check_limits(GetParam().name, "LoadOptions::memory_limit", [&](int64_t limit) {
    LoadOptions options;
    options.memory_limit = limit;
    const Model loaded(model.path(), options);
    loaded.implementation().judged();
  });
}

TEST_P(Limits, OfReadingTexts) {
  const std::string text = GetParam().make(GetParam().size);
  check_limits(GetParam().name, "LoadOptions::memory_limit", [&](int64_t limit) {
    LoadOptions options;
    options.memory_limit = limit;
    Model::from_text(text, options);
  });
}

TEST_P(Limits, OfSessions) {
  const Stored stored(GetParam());
  for (const bool plain : {false, true}) {
    check_limits(GetParam().name, "SessionOptions::memory_limit", [&](int64_t limit) {
      SessionOptions options;
      options.threads = 1;
      options.reference = plain;
      options.memory_limit = limit;
      try {
        const Session session(stored.path(), options);
      } catch (const Error& error) {
        // Session(path) hands its limit on to the loading.
        std::string message = error.message();
        if (const size_t at = message.find("LoadOptions"); at != std::string::npos)
          message.replace(at, 4, "Session");
        throw Error(error.code(), message, error.location());
      }
    });
  }
}

TEST_P(Limits, OfConverting) {
  const Stored stored(GetParam());
  const Model model(stored.path());
  check_limits(GetParam().name, "ConvertOptions::memory_limit", [&](int64_t limit) {
    ConvertOptions options;
    options.opset = 22;
    options.memory_limit = limit;
    convert(model, options);
  });
}

INSTANTIATE_TEST_SUITE_P(Constructs, Limits, testing::ValuesIn(grown),
                         [](const auto& info) { return info.param.name; });

TEST(MemoryLimit, PacksCountWhetherMadeOrNot) {
  const Model model = Model::from_text(
      graph("float[n,2] x", "y",
            fmt::format("float[2,100000] w = {{{}1}}", numbered(199'999, [](int) { return "1,"; })),
            "y = MatMul(x, w)"));
  SessionOptions options;
  const int64_t used = model.implementation().memory->used();
  options.memory_limit = used + 600'000;  // the weights take 800,000 in any form
  const std::string refusal = outcome_of([&] { Session(model, options); }).refusal;
  EXPECT_NE(refusal.find("MatMul making 'y'"), std::string::npos) << refusal;
  options.memory_limit = used + (4 << 20);
  EXPECT_EQ(outcome_of([&] { Session(model, options); }).refusal, "");
}

TEST(MemoryLimit, ATightModelStillLeavesTheSessionItsOwn) {
  LoadOptions loading;
  loading.memory_limit = 100 << 20;
  const Model model = Model::from_text(many_nodes(2000), loading);
  const int64_t used = model.implementation().memory->used();
  EXPECT_GT(used, 2000 * 100);
  SessionOptions options;
  options.memory_limit = used + 1000;  // the model counts, so that there is no room for a plan
  EXPECT_NE(outcome_of([&] { Session(model, options); }).refusal, "");
}

}  // namespace
}  // namespace sardonyx
