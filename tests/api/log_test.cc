// What sessions tell on the way (sardonyx/log.h).
#include "sardonyx/log.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "api/support.h"
#include "sardonyx/session.h"

#ifndef _WIN32
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace sardonyx {
namespace {

using test::expect_error;
using test::ScratchFolder;

// Keeps what it is told, from any thread.
class Told {
 public:
  Log log() {
    return [this](const LogMessage& message) {
      const std::lock_guard lock(mutex_);
      messages_.push_back(message);
    };
  }
  std::vector<LogMessage> all() {
    const std::lock_guard lock(mutex_);
    return messages_;
  }
  // Those whose text has these words.
  std::vector<LogMessage> with(const std::string& words) {
    std::vector<LogMessage> found;
    for (const LogMessage& one : all()) {
      if (one.to_string().find(words) != std::string::npos) found.push_back(one);
    }
    return found;
  }

 private:
  std::mutex mutex_;
  std::vector<LogMessage> messages_;
};

Model model_of(const std::string& graph, const LoadOptions& options = {}) {
  return Model::from_text("<ir_version: 10, opset_import: [\"\" : 21]>\n" + graph, options);
}

Tensor zeros(Shape shape) {
  Tensor tensor(ElementType::float32, std::move(shape));
  std::ranges::fill(tensor.mutable_elements<float>(), 0.0f);
  return tensor;
}

// The output is declared with 5 places; only a run finds out how many there are.
constexpr const char* wrongly_declared = "g (float[n] x) => (int64[1, 5] y) { y = NonZero(x) }";

// Squeezes its input where a size is 1: what it is ranked by.
constexpr const char* ranked_by_sizes = R"(g (float[A, B] x) => (y) {
  sizes = Shape(x)
  at = Constant<value = int64 {1}>()
  size = Gather(sizes, at)
  one = Constant<value = int64 {1}>()
  is_one = Equal(size, one)
  y = If(is_one) <
    then_branch = t () => (inner) { axis = Constant<value = int64[1] {1}>()
                                    inner = Squeeze(x, axis) },
    else_branch = e () => (inner) { inner = Identity(x) } >
})";

std::string product() {
  std::string weights;
  for (int i = 0; i < 64 * 64; ++i) weights += (i == 0 ? "" : ", ") + std::to_string(i % 7);
  return "g (float[n, 64] x) => (float[n, 64] y) <float[64, 64] w = {" + weights +
         "}> { y = MatMul(x, w) }";
}

TEST(Log, MessagesAsText) {
  EXPECT_EQ(name_of(LogLevel::debug), "debug");
  EXPECT_EQ(name_of(LogLevel::error), "error");
  EXPECT_EQ(name_of(static_cast<LogLevel>(9)), "unknown");
  const LogMessage message{LogLevel::warning, "G-20", "output 'y'", "is large", "make it small"};
  EXPECT_EQ(message.to_string(), "warning: output 'y': is large; make it small [G-20]");
  EXPECT_EQ(LogMessage{.message = "done"}.to_string(), "info: done");
}

TEST(Log, IsToldOfWarningsInsteadOfTheModels) {
  int warned = 0;
  const Model model = model_of(wrongly_declared, {.warn = [&](const Warning&) { ++warned; }});
  Told told;
  const Session session(model, {.threads = 1, .log = told.log()});
  session.run({{"x", zeros({2})}});
  session.run({{"x", zeros({2})}});
  const auto found = told.with("'y'");
  ASSERT_EQ(found.size(), 1u);  // once for each output
  EXPECT_EQ(found[0].level, LogLevel::warning);
  EXPECT_FALSE(found[0].rule.empty());
  EXPECT_EQ(warned, 0);
  const Session without(model, {.threads = 1});
  without.run({{"x", zeros({2})}});
  EXPECT_EQ(warned, 1);
}

TEST(Log, IsToldOfWhatReadingMendsWhereTheSessionReads) {
  const ScratchFolder folder;
  test::write_bytes(folder / "unsorted.onnxtxt",
                    "<ir_version: 10, opset_import: [\"\" : 21]>\n"
                    "g (float[2] x) => (float[2] y) {\n  y = Exp(a)\n  a = Neg(x)\n}\n");
  Told told;
  const Session session(folder / "unsorted.onnxtxt", {.threads = 1, .log = told.log()});
  ASSERT_EQ(told.all().size(), 1u);
  EXPECT_EQ(told.all()[0].level, LogLevel::warning);
}

TEST(Log, LevelsBelowTheOneThatIsAskedForAreNotTold) {
  for (const LogLevel level : {LogLevel::debug, LogLevel::info, LogLevel::warning}) {
    Told told;
    const Session session(model_of(ranked_by_sizes),
                          {.threads = 1, .log = told.log(), .log_level = level});
    session.run({{"x", zeros({3, 1})}});
    session.run({{"x", zeros({4, 1})}});
    session.run({{"x", zeros({3, 2})}});
    const auto made = told.with("a plan was made");
    ASSERT_EQ(made.size(), level == LogLevel::debug ? 2u : 0u);
    if (made.empty()) continue;
    EXPECT_EQ(made[0].level, LogLevel::debug);
    EXPECT_NE(made[0].message.find("'x' [3,1]"), std::string::npos) << made[0].message;
    EXPECT_NE(made[0].message.find("then_branch"), std::string::npos) << made[0].message;
    EXPECT_NE(made[1].message.find("'x' [3,2]"), std::string::npos) << made[1].message;
  }
}

TEST(Log, TellsOfFilesOfPackedWeights) {
  const ScratchFolder folder;
  const std::string path = folder / "product.onnxtxt";
  test::write_bytes(path, "<ir_version: 10, opset_import: [\"\" : 21]>\n" + product());
  const auto messages = [&](const std::string& cache) {
    Told told;
    const Session session(
        path,
        {.threads = 1, .cache_folder = cache, .log = told.log(), .log_level = LogLevel::debug});
    session.run({{"x", zeros({2, 64})}});
    return told.all();
  };
  const auto first = messages(folder / "cache");
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0].level, LogLevel::debug);
  EXPECT_EQ(first[0].message, "there is no file of packed weights yet");
  EXPECT_EQ(first[1].level, LogLevel::info);
  EXPECT_TRUE(first[1].message.starts_with("packed weights were written, "));
  const auto expect_taken = [&] {
    const auto second = messages(folder / "cache");
    ASSERT_EQ(second.size(), 1u);
    EXPECT_EQ(second[0].level, LogLevel::debug);
    EXPECT_TRUE(second[0].message.starts_with("the optimised graph is taken"));
  };
  expect_taken();
  const std::string packed = first[1].place;
  test::write_bytes(packed, test::bytes_of(packed).substr(0, 100));
  const auto broken = messages(folder / "cache");
  ASSERT_EQ(broken.size(), 2u);
  EXPECT_EQ(broken[0].level, LogLevel::info);
  EXPECT_EQ(broken[0].place, packed);
  EXPECT_TRUE(broken[0].message.starts_with("the file of packed weights is of no use: "));
  expect_taken();
  // Other weights in the same file.
  std::string other = test::bytes_of(path);
  other.replace(other.find("{0, 1"), 5, "{5, 1");
  test::write_bytes(path, other);
  const auto stale = messages(folder / "cache");
  ASSERT_EQ(stale.size(), 2u);
  EXPECT_TRUE(stale[0].message.starts_with("the file of packed weights is of no use: "));
  // A folder that can't be made.
  const auto refused = messages(path + "/below");
  ASSERT_EQ(refused.size(), 2u);
  EXPECT_EQ(refused[1].level, LogLevel::warning);
  EXPECT_NE(refused[1].message.find("can't be written"), std::string::npos);
}

TEST(Log, TellsOfWhatACallbackThrows) {
  for (const bool standard : {true, false}) {
    Told told;
    {
      const Session session(model_of("g (float[2] x) => (float[2] y) { y = Neg(x) }"),
                            {.threads = 1, .log = told.log(), .log_level = LogLevel::error});
      session.run_async({{"x", zeros({2})}},
                        [standard](std::vector<Value>, const std::exception_ptr&) {
                          if (standard) throw std::runtime_error("the disk is full");
                          throw 7;
                        });
    }  // which waits
    ASSERT_EQ(told.all().size(), 1u);
    EXPECT_EQ(told.all()[0].level, LogLevel::error);
    EXPECT_NE(told.all()[0].message.find(standard ? "the disk is full" : "another type"),
              std::string::npos);
  }
}

TEST(Log, WhatItThrowsIsDropped) {
  int calls = 0;
  const Session session(model_of(wrongly_declared), {.threads = 1, .log = [&](const LogMessage&) {
                                                       ++calls;
                                                       throw std::runtime_error("no");
                                                     }});
  EXPECT_EQ(session.run({{"x", zeros({2})}})[0].tensor().shape(), Shape({1, 0}));
  EXPECT_EQ(calls, 1);
}

TEST(Log, ErrorsAreThrownAndNotTold) {
  Told told;
  const Session session(model_of("g (float[2] x) => (float[2] y) { y = Neg(x) }"),
                        {.threads = 1, .log = told.log(), .log_level = LogLevel::debug});
  expect_error(ErrorCode::bad_input, "x", [&] { session.run({{"x", zeros({3})}}); });
  EXPECT_TRUE(told.all().empty());
}

#ifndef _WIN32
enum Found : int { told_of_both = 0, no_limit = 1, of_none = 2, of_pool = 3, all_started = 4 };

// In a child process whose limit leaves room for few threads' stacks.
int under_a_limit() {
  Told told;
  const Model model = model_of("g (float[n] x) => (float[n] y) { y = Relu(x) }");
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{400} << 20);
  const rlimit limit{most, most};
  if (setrlimit(RLIMIT_AS, &limit) != 0) return no_limit;
  std::mutex mutex;
  std::condition_variable woken;
  bool go = false;
  const Session session(model, {.threads = 2000, .log = told.log()});
  if (told.with("2000 threads were asked for; the system started").size() != 1) return of_none;
  // Callbacks that wait, so that each run takes a thread, until there are no more.
  for (int i = 0; i < 1000; ++i) {
    session.run_async({{"x", zeros({1})}},
                      [&](const std::vector<Value>&, const std::exception_ptr&) {
                        std::unique_lock lock(mutex);
                        woken.wait(lock, [&] { return go; });
                      });
  }
  {
    const std::lock_guard lock(mutex);
    go = true;
  }
  woken.notify_all();
  const auto found = told.with("asynchronous runs go on ");
  if (found.empty()) return of_pool;
  return found.size() == 1 && found[0].level == LogLevel::warning ? told_of_both : all_started;
}

TEST(Log, TellsOfThreadsThatTheSystemDoesNotStart) {
#ifdef SARDONYX_SANITIZED
  GTEST_SKIP() << "sanitizers reserve more address space than any limit leaves";
#endif
  if (std::getenv("SARDONYX_EMULATED") != nullptr)
    GTEST_SKIP() << "the limits are the emulator's, which ends where it starts no thread";
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(under_a_limit());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), told_of_both);
}
#endif

}  // namespace
}  // namespace sardonyx
