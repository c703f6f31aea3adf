// Every write, sync, rename and other call for a file fails in turn while a checkpoint is saved:
// the last good one loads afterwards, and the next save succeeds.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "core/train/checkpoint.h"
#include "tests/faults/failing_files.h"

namespace msrt::testing {
namespace {

constexpr size_t kElements = 1000;

Checkpoint Made(int64_t step) {
  Checkpoint made;
  made.model = "model";
  made.steps = step;
  made.has_metric = true;
  made.metric = static_cast<double>(step);  // each is the best
  const std::vector<float> values(kElements, static_cast<float>(step));
  made.tensors.push_back({"w", StateRole::kParameter, ConstTensor::Floats({kElements}, values)});
  made.tensors.push_back({"v", StateRole::kOptimizer, ConstTensor::Floats({kElements}, values)});
  return made;
}

void ExpectIsOfStep(const Result<Checkpoint>& read, int64_t step) {
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->steps, step);
  for (const CheckpointTensor& tensor : read->tensors)
    for (const float value : tensor.data.As<float>())
      ASSERT_EQ(value, static_cast<float>(step)) << tensor.name;
}

struct Case {
  FileFailure how;
  size_t keep;
};

class CheckpointFaults : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    folder_ = StrCat(::testing::TempDir(), "msrt_checkpoint_faults_", getpid());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  CheckpointFolder Opened() {
    auto folder = CheckpointFolder::Open(folder_, {.keep_last = GetParam().keep});
    EXPECT_TRUE(folder.ok()) << folder.status().message();
    return *std::move(folder);
  }

  std::string folder_;
};
INSTANTIATE_TEST_SUITE_P(Faults, CheckpointFaults,
                         ::testing::Values(Case{FileFailure::kOnce, 1}, Case{FileFailure::kOnce, 3},
                                           Case{FileFailure::kShort, 1},
                                           Case{FileFailure::kForGood, 1},
                                           Case{FileFailure::kForGood, 3}));

TEST_P(CheckpointFaults, TheLastGoodCheckpointLoads) {
  int64_t failures = 0, old = 0;
  for (int64_t n = 1;; ++n) {
    ASSERT_LT(n, 1000);
    std::filesystem::remove_all(folder_);
    CheckpointFolder folder = Opened();
    for (int64_t step = 1; step <= 4; ++step) ASSERT_TRUE(folder.Save(Made(step)).ok());
    CheckpointWriter writer(&folder);
    FailFiles(n, GetParam().how);
    Status status = writer.Save(Made(5));
    if (status.ok()) status = writer.Wait();
    if (!StopFailingFiles()) {
      EXPECT_TRUE(status.ok()) << status.message();
      break;
    }
    ++failures;
    // A process that starts now, as after a kill.
    CheckpointFolder again = Opened();
    const Result<Checkpoint> newest = again.Resume({});
    ASSERT_TRUE(newest.ok()) << "after a failure of call " << n << ": "
                             << newest.status().message();
    if (status.ok()) {
      EXPECT_EQ(newest->steps, 5) << "the failure of call " << n << " was lost";
    }
    EXPECT_GE(newest->steps, 4);
    old += newest->steps == 4;
    ExpectIsOfStep(newest, newest->steps);
    const Result<Checkpoint> best = again.LoadBest();
    ASSERT_TRUE(best.ok()) << "after a failure of call " << n << ": " << best.status().message();
    ExpectIsOfStep(best, best->steps);
    EXPECT_GE(best->steps, 4);
    ASSERT_TRUE(again.Save(Made(6)).ok());
    ExpectIsOfStep(again.LoadNewest({}), 6);
    EXPECT_LE(again.List()->size(), GetParam().keep);
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      EXPECT_EQ(entry.path().string().find(".tmp-"), std::string::npos) << entry.path();
  }
  EXPECT_GE(failures, 14);  // two files: open, writes, sync, close, rename, sync of the folder
  EXPECT_GE(old, 5);
}

}  // namespace
}  // namespace msrt::testing
