// Runs that go on while their caller does something else.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "sardonyx/session.h"

namespace sardonyx {
namespace {

Model model_of(const std::string& graph) {
  return Model::from_text("<ir_version: 10, opset_import: [\"\" : 21]>\n" + graph);
}

Model twice() { return model_of("g (float[n] x) => (float[n] y) { y = Add(x, x) }"); }

// Counts 2^40 turns: it ends when it is cancelled.
Model endless() {
  return model_of(R"(g (float x) => (float y) <int64 n = {1099511627776}, bool c = {1}> {
    y = Loop(n, c, x) <body = b (int64 i, bool k, float s) => (bool o, float t) {
      o = Identity(k) t = Add(s, s) }> })");
}

Tensor row(std::initializer_list<float> numbers) {
  return Tensor::of<float>(numbers, {static_cast<int64_t>(numbers.size())});
}

float first(const std::vector<Value>& outputs) {
  return outputs.at(0).tensor().elements<float>()[0];
}

TEST(RunAsync, GivesWhatARunGives) {
  const Session session(twice(), {.threads = 2});
  std::vector<std::future<std::vector<Value>>> futures;
  for (int i = 0; i < 50; ++i)
    futures.push_back(session.run_async({{"x", row({static_cast<float>(i), 1})}}));
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(first(futures[static_cast<size_t>(i)].get()), 2.0f * static_cast<float>(i));
}

TEST(RunAsync, ReferenceRunsToo) {
  const Session session(twice(), {.reference = true});
  EXPECT_EQ(first(session.run_async({{"x", row({3})}}).get()), 6);
}

TEST(RunAsync, CarriesErrors) {
  const Session session(twice(), {.threads = 1});
  auto wrong_name = session.run_async({{"z", row({1})}});
  auto missing = session.run_async({});
  try {
    wrong_name.get();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_EQ(error.location(), "input 'z'");
  }
  EXPECT_THROW(missing.get(), Error);
}

TEST(RunAsync, CallsBackOnAThreadOfItsOwn) {
  const Session session(twice(), {.threads = 1});
  std::promise<std::pair<float, std::thread::id>> told;
  session.run_async({{"x", row({4})}}, [&](std::vector<Value> made, std::exception_ptr error) {
    EXPECT_EQ(error, nullptr);
    told.set_value({first(made), std::this_thread::get_id()});
  });
  const auto [number, thread] = told.get_future().get();
  EXPECT_EQ(number, 8);
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST(RunAsync, WhatACallbackThrowsIsDropped) {
  const Session session(twice(), {.threads = 1});
  session.run_async({{"x", row({4})}},
                    [](std::vector<Value>, std::exception_ptr) { throw std::runtime_error("no"); });
  EXPECT_EQ(first(session.run_async({{"x", row({1})}}).get()), 2);
}

TEST(RunAsync, ACallbackBeginsRuns) {
  const Session session(twice(), {.threads = 1});
  std::promise<float> told;
  session.run_async({{"x", row({1})}}, [&](std::vector<Value> made, std::exception_ptr) {
    session.run_async({{"x", made.at(0)}}, [&](std::vector<Value> again, std::exception_ptr) {
      told.set_value(first(again));
    });
  });
  EXPECT_EQ(told.get_future().get(), 4);
}

TEST(RunAsync, KeepsToTheThreadsOfTheSession) {
  const Session session(twice(), {.threads = 2});
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::vector<std::future<void>> ends;
  for (int i = 0; i < 40; ++i) {
    auto end = std::make_shared<std::promise<void>>();
    ends.push_back(end->get_future());
    session.run_async({{"x", row({1})}}, [&, end](std::vector<Value>, std::exception_ptr) {
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
      end->set_value();
    });
  }
  for (auto& end : ends) end.get();
  EXPECT_LE(threads.size(), 2u);
}

TEST(RunAsync, TheDestructorWaits) {
  std::atomic<int> ended = 0;
  {
    const Session session(twice(), {.threads = 2});
    for (int i = 0; i < 30; ++i)
      session.run_async({{"x", row({1})}},
                        [&](std::vector<Value>, std::exception_ptr) { ++ended; });
  }
  EXPECT_EQ(ended, 30);
}

TEST(RunAsync, AnAssignmentWaits) {
  std::atomic<int> ended = 0;
  Session session(twice(), {.threads = 1});
  for (int i = 0; i < 10; ++i)
    session.run_async({{"x", row({1})}}, [&](std::vector<Value>, std::exception_ptr) { ++ended; });
  session = Session(twice(), {.threads = 1});
  EXPECT_EQ(ended, 10);
  EXPECT_EQ(first(session.run_async({{"x", row({1})}}).get()), 2);
  Session moved = std::move(session);
  EXPECT_EQ(first(moved.run_async({{"x", row({2})}}).get()), 4);
}

TEST(RunAsync, CancellingEndsWhatGoesOnAndWhatWaits) {
  std::atomic<bool> cancel = false;
  std::vector<std::future<std::vector<Value>>> futures;
  {
    const Session session(endless(), {.threads = 1});
    RunOptions options;
    options.cancel = &cancel;
    for (int i = 0; i < 3; ++i)
      futures.push_back(session.run_async({{"x", Tensor::scalar<float>(0)}}, options));
    cancel = true;
  }
  for (auto& future : futures) {
    try {
      future.get();
      ADD_FAILURE() << "it was not cancelled";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::cancelled);
    }
  }
}

TEST(RunAsync, ACallbackDestroysTheSession) {
  for (const int threads : {1, 2}) {
    auto session = std::make_unique<Session>(twice(), SessionOptions{.threads = threads});
    std::promise<void> gone, all;
    std::promise<void> begun;
    std::atomic<int> ended = 0;
    const Session& ref = *session;
    ref.run_async({{"x", row({1})}}, [&](std::vector<Value>, std::exception_ptr) {
      begun.get_future().wait();
      session.reset();  // waits for those below, wherever they run
      EXPECT_EQ(ended, 5);
      gone.set_value();
    });
    for (int i = 0; i < 5; ++i)
      ref.run_async({{"x", row({1})}}, [&](std::vector<Value>, std::exception_ptr) { ++ended; });
    begun.set_value();
    gone.get_future().wait();
    EXPECT_EQ(session, nullptr);
  }
}

}  // namespace
}  // namespace sardonyx
