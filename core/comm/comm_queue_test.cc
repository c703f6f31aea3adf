#include "core/comm/comm_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace msrt {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

WaitLimit Within(milliseconds time) {
  WaitLimit limit;
  limit.until = steady_clock::now() + time;
  return limit;
}

TEST(CommQueueTest, TasksRunInOrderWhoeverWaits) {
  for (int round = 0; round < 50; ++round) {
    CommQueue queue;
    std::vector<int> order;  // only ever touched by the thread that runs tasks
    std::vector<std::shared_ptr<CommTask>> tasks;
    for (int i = 0; i < 20; ++i)
      tasks.push_back(queue.Push([&order, i] {
        order.push_back(i);
        return OkStatus();
      }));
    std::thread other(
        [&] { EXPECT_TRUE(queue.Wait(*tasks[15], Within(milliseconds(10000))).ok()); });
    EXPECT_TRUE(queue.Wait(*tasks[19], {}).ok());
    other.join();
    ASSERT_EQ(order.size(), 20u);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
  }
}

TEST(CommQueueTest, TaskRunsWithoutWait) {
  CommQueue queue;
  for (int i = 0; i < 5; ++i) {
    const auto task = queue.Push([] { return OkStatus(); });
    const auto until = steady_clock::now() + milliseconds(5000);
    while (!task->done() && steady_clock::now() < until) std::this_thread::yield();
    EXPECT_TRUE(task->done());
  }
}

TEST(CommQueueTest, TaskRunsWithoutWaitAfterManyPromptWaits) {
  CommQueue queue;
  for (int i = 0; i < 1000; ++i)
    EXPECT_TRUE(queue.Wait(*queue.Push([] { return OkStatus(); }), {}).ok());
  const auto task = queue.Push([] { return OkStatus(); });
  const auto until = steady_clock::now() + milliseconds(5000);
  while (!task->done() && steady_clock::now() < until) std::this_thread::yield();
  EXPECT_TRUE(task->done());
}

TEST(CommQueueTest, WaitEndsAtItsLimitAndTaskGoesOn) {
  std::atomic<bool> go{false}, cancelled{false};
  CommQueue queue;
  const auto task = queue.Push([&] {
    while (!go.load()) std::this_thread::sleep_for(milliseconds(1));
    return OkStatus();
  });
  EXPECT_EQ(queue.Wait(*task, Within(milliseconds(20))).code(), Code::kDeadlineExceeded);
  WaitLimit limit;
  limit.cancelled = &cancelled;
  std::thread canceller([&] {
    std::this_thread::sleep_for(milliseconds(10));
    cancelled.store(true);
  });
  EXPECT_EQ(queue.Wait(*task, limit).code(), Code::kCancelled);
  canceller.join();
  EXPECT_FALSE(task->done());
  go.store(true);
  EXPECT_TRUE(queue.Wait(*task, {}).ok());
}

TEST(CommQueueTest, DestructorRunsTheRest) {
  int runs = 0;
  {
    CommQueue queue;
    for (int i = 0; i < 10; ++i)
      (void)queue.Push([&] {
        ++runs;
        return OkStatus();
      });
  }
  EXPECT_EQ(runs, 10);
}

TEST(CommQueueTest, ErrorsAndExceptionsBecomeStatus) {
  CommQueue queue;
  const auto failed = queue.Push([] { return InvalidArgument("no"); });
  const auto thrown = queue.Push([]() -> Status { throw std::bad_alloc(); });
  EXPECT_EQ(queue.Wait(*failed, {}).code(), Code::kInvalidArgument);
  EXPECT_EQ(queue.Wait(*thrown, {}).code(), Code::kOutOfMemory);
}

}  // namespace
}  // namespace msrt
