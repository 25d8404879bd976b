// Arithmetic on sizes from files, and the pool that kernels share.
#include <gtest/gtest.h>
#include <cstring>

#include <atomic>
#include <limits>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/checked.h"
#include "base/float_control.h"
#include "base/memory_account.h"
#include "base/recycled.h"
#include "base/thread_pool.h"

namespace sardonyx {
namespace {

TEST(Checked, NoticesOverflow) {
  EXPECT_EQ(checked_add(INT64_MAX, 0), INT64_MAX);
  EXPECT_EQ(checked_add(INT64_MAX, 1), std::nullopt);
  EXPECT_EQ(checked_mul(int64_t{1} << 32, int64_t{1} << 31), std::nullopt);
  EXPECT_EQ(checked_mul(-3, 5), -15);
}

TEST(Checked, CountsElements) {
  const auto count = [](std::vector<int64_t> shape) { return checked_count(shape); };
  EXPECT_EQ(count({}), 1);
  EXPECT_EQ(count({2, 3, 4}), 24);
  EXPECT_EQ(count({INT64_MAX, 0}), 0);
  EXPECT_EQ(count({2, -1}), std::nullopt);
  EXPECT_EQ(count({int64_t{1} << 40, int64_t{1} << 40}), std::nullopt);
}

// What one thread is refused no other must be refused for.
TEST(MemoryAccount, WhatIsRefusedIsNotInUse) {
  MemoryAccount account(100);
  std::atomic<bool> done = false;
  std::thread greedy([&] {
    while (!done) EXPECT_THROW(account.charge(1000), MemoryLimitReached);
  });
  int refused = 0;
  for (int i = 0; i < 200'000; ++i) {
    try {
      account.charge(1);
      account.release(1);
    } catch (const MemoryLimitReached&) {
      ++refused;
    }
  }
  done = true;
  greedy.join();
  EXPECT_EQ(refused, 0);
  EXPECT_EQ(account.used(), 0);
}

TEST(ThreadPool, SharesFollowEachOtherAndDifferByOneChunk) {
  for (int threads : {1, 2, 3, 5}) {
    const ThreadPool pool(threads);
    for (int64_t chunks : {0, 1, 2, 7, 16, 23}) {
      EXPECT_EQ(pool.share_begin(chunks, 0), 0);
      EXPECT_EQ(pool.share_begin(chunks, threads), chunks);
      for (int64_t i = 0; i < threads; ++i) {
        const int64_t begin = pool.share_begin(chunks, i), end = pool.share_begin(chunks, i + 1);
        EXPECT_GE(end - begin, chunks / threads);
        EXPECT_LE(end - begin, chunks / threads + 1);
        for (int64_t chunk = begin; chunk < end; ++chunk) {
          EXPECT_EQ(pool.share_end(chunks, chunk), end) << threads << " " << chunks << " " << chunk;
        }
      }
    }
  }
}

TEST(ThreadPool, RunsEachElementOnce) {
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    for (const int64_t count : {0, 1, 7, 1000}) {
      std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
      pool.parallel_for(count, 3, [&](int64_t begin, int64_t end, int worker) {
        EXPECT_LT(worker, pool.threads());
        for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
      });
      for (const auto& visited : visits) EXPECT_EQ(visited.load(), 1);
    }
  }
}

TEST(ThreadPool, ThrowsWhatABodyThrows) {
  ThreadPool pool(2);
  EXPECT_THROW(pool.parallel_for(100, 1,
                                 [](int64_t begin, int64_t, int) {
                                   if (begin == 50) throw std::runtime_error("no");
                                 }),
               std::runtime_error);
  const auto held = std::make_shared<int>(0);  // by what is thrown, which the pool does not keep
  try {
    pool.parallel_for(100, 1, [&](int64_t, int64_t, int) { throw std::shared_ptr<int>(held); });
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::shared_ptr<int>&) {
  }
  EXPECT_EQ(held.use_count(), 1);
  int64_t sum = 0;  // and works on
  pool.parallel_for(4, 4, [&](int64_t begin, int64_t end, int) { sum += end - begin; });
  EXPECT_EQ(sum, 4);
}

TEST(ThreadPool, AsManyCallersAsThreadsRunAlone) {
  ThreadPool pool(2);
  {
    const ThreadPool::Caller one(pool);
    EXPECT_EQ(&pool.for_caller(), &pool);
    std::atomic<int> inside = 0;
    pool.parallel_for(2, 1, [&](int64_t, int64_t, int) {  // ends only on two threads
      ++inside;
      while (inside < 2) std::this_thread::yield();
    });
    const ThreadPool::Caller two(pool);
    EXPECT_EQ(&pool.for_caller(), &ThreadPool::single());
    std::atomic<int64_t> elsewhere = 0;
    const auto here = std::this_thread::get_id();
    pool.parallel_for(20'000, 1, [&](int64_t, int64_t, int) {
      if (std::this_thread::get_id() != here) ++elsewhere;
      std::this_thread::yield();
    });
    EXPECT_EQ(elsewhere.load(), 0);
  }
  EXPECT_EQ(&pool.for_caller(), &pool);
  EXPECT_EQ(ThreadPool::single().threads(), 1);
  ThreadPool small(1);
  const ThreadPool::Caller one(small), two(small);
  EXPECT_EQ(&small.for_caller(), &small);
}

TEST(ThreadPool, WorkersRoundAsTheCallerDoes) {
  ThreadPool pool(2);
  const auto halves = [&] {  // of a number whose half is below the normal ones, on each thread
    std::atomic<int> inside = 0;
    std::vector<float> made(2, -1.0f);
    pool.parallel_for(2, 1, [&](int64_t begin, int64_t, int) {  // ends only on two threads
      ++inside;
      while (inside < 2) std::this_thread::yield();
      const volatile float least = std::numeric_limits<float>::min();
      made[static_cast<size_t>(begin)] = least / 2;
    });
    return made;
  };
  const float half = std::numeric_limits<float>::min() / 2;
  {
    const FloatControlScope flushed(FloatControl::current().with_flushed_denormals());
    const bool known = !(FloatControl::current() == FloatControl::standard());
    EXPECT_EQ(halves(), std::vector<float>(2, known ? 0.0f : half));
    const FloatControlScope again(FloatControl::standard());
    EXPECT_EQ(halves(), std::vector<float>(2, half));
  }
  EXPECT_EQ(halves(), std::vector<float>(2, half));
}

// More callers than the pool has room for loops, loops inside bodies, and bodies that throw.
TEST(ThreadPool, ManyCallersShareIt) {
  for (const int threads : {2, 3, 5}) {
    ThreadPool pool(threads);
    std::atomic<int> wrong = 0;
    const auto call = [&](int caller) {
      for (int k = 1; k <= 200; ++k) {
        const int64_t count = (caller + 1) * k % 190 + 1, grain = k % 7 + 1;
        std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
        std::vector<std::atomic<int>> busy(static_cast<size_t>(threads));
        const bool throws = k % 17 == 0;
        const auto body = [&](int64_t begin, int64_t end, int worker) {
          if (++busy[static_cast<size_t>(worker)] != 1) ++wrong;
          for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
          pool.parallel_for(3, 1, [&](int64_t, int64_t, int inner) { wrong += inner != 0; });
          --busy[static_cast<size_t>(worker)];
          if (throws && end == count) throw std::runtime_error("the last chunk");
        };
        try {
          pool.parallel_for(count, grain, body);
          if (throws) ++wrong;
        } catch (const std::runtime_error&) {
          if (!throws) ++wrong;
        }
        for (const auto& visited : visits) wrong += throws ? visited > 1 : visited != 1;
      }
    };
    std::vector<std::thread> callers;
    for (int i = 0; i < 12; ++i) callers.emplace_back(call, i);
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(wrong.load(), 0);
  }
}

TEST(RecycledBlocks, ComeBackWhenTheirLastUserIsGone) {
  constexpr size_t size = 1 << 20;
  RecycledBlocks blocks;
  Bytes first = blocks.allocate(size);
  const std::byte* place = first.data();
  std::memset(first.mutable_data(), 1, size);
  Bytes part = first.slice(10, 10);
  first = {};
  EXPECT_EQ(blocks.waiting_bytes(), 0u);  // a part of it is in use
  EXPECT_NE(blocks.allocate(size).data(), place);
  EXPECT_EQ(blocks.waiting_bytes(), size);
  EXPECT_EQ(part.data()[0], std::byte{1});
  part = {};
  EXPECT_EQ(blocks.waiting_bytes(), size);
  EXPECT_EQ(blocks.allocate(size).data(), place);  // the last that came back
  EXPECT_EQ(blocks.allocate(2 * size).size(), 2 * size);
  EXPECT_EQ(blocks.waiting_bytes(), 2 * size);  // that of the other size is gone
  Bytes small = blocks.allocate(100);
  small = {};
  EXPECT_EQ(blocks.waiting_bytes(), 2 * size);
}

TEST(RecycledBlocks, OutliveTheirSourceAndComeBackFromAnyThread) {
  constexpr size_t size = 1 << 20;
  Bytes orphan;
  {
    RecycledBlocks blocks;
    orphan = blocks.allocate(size);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([block = blocks.allocate(size)]() mutable {
        std::memset(block.mutable_data(), 2, size);
        block = {};
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(blocks.waiting_bytes(), size);
  }
  std::memset(orphan.mutable_data(), 3, size);
}

}  // namespace
}  // namespace sardonyx
