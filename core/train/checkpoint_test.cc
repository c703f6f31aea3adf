#include "core/train/checkpoint.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace msrt {
namespace {

class CheckpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = StrCat(::testing::TempDir(), "msrt_checkpoint_", info->name(), "_", getpid());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string PathOf(const char* name) const { return StrCat(folder_, "/", name); }

  std::string folder_;
};

Checkpoint Made(int64_t steps) {
  Checkpoint c;
  c.model = "lenet";
  c.steps = steps;
  c.micro_batches = 1;
  c.position = {3, 17};
  c.schedule.kind = ScheduleKind::kStep;
  c.schedule.milestones = {10, 20};
  c.metric = 0.5;
  c.has_metric = true;
  c.notes = {{"seed", "42"}, {"empty", ""}};
  const std::vector<float> weights{1, 2, 3, 4, 5, static_cast<float>(steps)};
  c.tensors.push_back({"w", StateRole::kParameter, ConstTensor::Floats({2, 3}, weights)});
  const std::vector<int64_t> count{steps};
  c.tensors.push_back({"n", StateRole::kOptimizer, ConstTensor::Int64s(count)});
  c.tensors.push_back(
      {"none", StateRole::kStatistic, ConstTensor::Floats({0, 3}, std::span<const float>())});
  return c;
}

void ExpectEqual(const Checkpoint& a, const Checkpoint& b) {
  EXPECT_EQ(a.model, b.model);
  EXPECT_EQ(a.steps, b.steps);
  EXPECT_EQ(a.micro_batches, b.micro_batches);
  EXPECT_EQ(a.position, b.position);
  EXPECT_EQ(a.schedule.kind, b.schedule.kind);
  EXPECT_EQ(a.schedule.milestones, b.schedule.milestones);
  EXPECT_EQ(a.schedule.rate, b.schedule.rate);
  EXPECT_EQ(a.metric, b.metric);
  EXPECT_EQ(a.has_metric, b.has_metric);
  EXPECT_EQ(a.notes, b.notes);
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    EXPECT_EQ(a.tensors[i].name, b.tensors[i].name);
    EXPECT_EQ(a.tensors[i].role, b.tensors[i].role);
    EXPECT_EQ(a.tensors[i].data.type(), b.tensors[i].data.type());
    ASSERT_EQ(a.tensors[i].data.bytes.size(), b.tensors[i].data.bytes.size());
    EXPECT_TRUE(std::equal(a.tensors[i].data.bytes.begin(), a.tensors[i].data.bytes.end(),
                           b.tensors[i].data.bytes.begin()));
  }
}

TEST_F(CheckpointTest, ReadsWhatWasWritten) {
  ASSERT_TRUE(WriteCheckpoint(Made(7), PathOf("a.ckpt"), DefaultIo()).ok());
  auto read = ReadCheckpoint(PathOf("a.ckpt"), DefaultIo());
  ASSERT_TRUE(read.ok()) << read.status().message();
  ExpectEqual(*read, Made(7));
}

std::vector<char> BytesIn(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Zeros between tensors carry nothing and have no checksum.
TEST_F(CheckpointTest, EveryDamagedByteIsFoundOrIsPadding) {
  ASSERT_TRUE(WriteCheckpoint(Made(7), PathOf("a.ckpt"), DefaultIo()).ok());
  const std::vector<char> good = BytesIn(PathOf("a.ckpt"));
  size_t accepted = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    std::vector<char> bad = good;
    bad[i] ^= 0x40;
    std::ofstream(PathOf("b.ckpt"), std::ios::binary)
        .write(bad.data(), static_cast<std::streamsize>(bad.size()));
    auto read = ReadCheckpoint(PathOf("b.ckpt"), DefaultIo());
    if (!read.ok()) continue;
    ++accepted;
    EXPECT_EQ(good[i], 0) << "byte " << i;
    ExpectEqual(*read, Made(7));
  }
  EXPECT_LT(accepted, 3 * kTensorAlignment);
}

TEST_F(CheckpointTest, EveryTruncationIsRefused) {
  ASSERT_TRUE(WriteCheckpoint(Made(7), PathOf("a.ckpt"), DefaultIo()).ok());
  const std::vector<char> good = BytesIn(PathOf("a.ckpt"));
  for (size_t bytes = 0; bytes < good.size(); ++bytes) {
    std::ofstream(PathOf("b.ckpt"), std::ios::binary)
        .write(good.data(), static_cast<std::streamsize>(bytes));
    auto read = ReadCheckpoint(PathOf("b.ckpt"), DefaultIo());
    // The last tensor is empty, so that the padding before it may be missing.
    if (read.ok()) ExpectEqual(*read, Made(7));
    else EXPECT_NE(read.status().message().find("b.ckpt"), std::string::npos);
    EXPECT_TRUE(!read.ok() || bytes + kTensorAlignment > good.size()) << bytes;
  }
}

TEST_F(CheckpointTest, FolderKeepsTheLastAndTheBest) {
  auto folder = CheckpointFolder::Open(folder_, {.keep_last = 2});
  ASSERT_TRUE(folder.ok()) << folder.status().message();
  for (int64_t step = 1; step <= 5; ++step) {
    Checkpoint c = Made(step);
    c.metric = step == 2 ? 0.9 : 0.1;
    ASSERT_TRUE(folder->Save(c).ok());
  }
  auto paths = folder->List();
  ASSERT_TRUE(paths.ok());
  EXPECT_EQ(paths->size(), 2u);
  auto newest = folder->LoadNewest({});
  ASSERT_TRUE(newest.ok());
  EXPECT_EQ(newest->steps, 5);
  auto best = folder->LoadBest();
  ASSERT_TRUE(best.ok());
  EXPECT_EQ(best->steps, 2);
  // A new run of the same folder knows the best of the one before.
  auto again = CheckpointFolder::Open(folder_, {.keep_last = 2});
  ASSERT_TRUE(again.ok());
  ASSERT_TRUE(again->Save(Made(6)).ok());
  EXPECT_EQ(again->LoadBest()->steps, 2);
}

TEST_F(CheckpointTest, ADamagedNewestFallsBackToTheOneBefore) {
  auto folder = CheckpointFolder::Open(folder_, {});
  ASSERT_TRUE(folder.ok());
  ASSERT_TRUE(folder->Save(Made(1)).ok());
  ASSERT_TRUE(folder->Save(Made(2)).ok());
  const std::vector<std::string> paths = *folder->List();
  std::filesystem::resize_file(paths.back(), 100);
  std::string logged;
  const Log log([&](LogLevel, const std::string& line) { logged += line; }, LogLevel::kWarning);
  auto newest = folder->LoadNewest(log);
  ASSERT_TRUE(newest.ok()) << newest.status().message();
  EXPECT_EQ(newest->steps, 1);
  EXPECT_NE(logged.find(paths.back()), std::string::npos) << logged;
}

// Files of later steps are of another run, or damaged: the new checkpoint is not the one to go.
TEST_F(CheckpointTest, ANewCheckpointStaysBesideThoseOfLaterSteps) {
  auto folder = CheckpointFolder::Open(folder_, {.keep_last = 2});
  ASSERT_TRUE(folder.ok());
  for (int64_t step : {1000, 2000}) ASSERT_TRUE(folder->Save(Made(step)).ok());
  for (int64_t step : {10, 20, 30}) {
    ASSERT_TRUE(folder->Save(Made(step)).ok());
    EXPECT_TRUE(std::filesystem::exists(PathOf(StrCat("step-0000000000", step, ".ckpt").c_str())));
  }
  EXPECT_FALSE(std::filesystem::exists(PathOf("step-000000000010.ckpt")));
  EXPECT_TRUE(std::filesystem::exists(PathOf("step-000000001000.ckpt")));
}

TEST_F(CheckpointTest, TheBestIsUsedIfNoOtherCanBeRead) {
  auto folder = CheckpointFolder::Open(folder_, {.keep_last = 1});
  ASSERT_TRUE(folder.ok());
  Checkpoint second = Made(2);
  second.metric = 0.1;
  ASSERT_TRUE(folder->Save(Made(1)).ok());
  ASSERT_TRUE(folder->Save(second).ok());
  std::filesystem::resize_file(folder->List()->back(), 100);
  auto newest = folder->LoadNewest({});
  ASSERT_TRUE(newest.ok()) << newest.status().message();
  EXPECT_EQ(newest->steps, 1);
}

// A file of a newer version is whole: going on from an older one would lose what it has.
TEST_F(CheckpointTest, OnlyDamageFallsBackToTheOneBefore) {
  auto folder = CheckpointFolder::Open(folder_, {});
  ASSERT_TRUE(folder.ok());
  ASSERT_TRUE(folder->Save(Made(1)).ok());
  ASSERT_TRUE(folder->Save(Made(2)).ok());
  std::fstream(folder->List()->back(), std::ios::binary | std::ios::in | std::ios::out)
      .seekp(8)
      .put(9);
  auto newest = folder->LoadNewest({});
  ASSERT_FALSE(newest.ok());
  EXPECT_NE(newest.status().message().find("format 9"), std::string::npos)
      << newest.status().message();
}

TEST_F(CheckpointTest, OpeningRemovesHalfWrittenFiles) {
  std::ofstream(PathOf("step-000000000001.ckpt.tmp-1")) << "half";
  ASSERT_TRUE(CheckpointFolder::Open(folder_, {}).ok());
  EXPECT_FALSE(std::filesystem::exists(PathOf("step-000000000001.ckpt.tmp-1")));
}

// An Io whose writes fail.
class FullDisk final : public Io {
 public:
  Result<Bytes> MapFile(const std::string& path) override { return DefaultIo()->MapFile(path); }
  Result<Bytes> ReadFile(const std::string& path, Allocator* allocator) override {
    return DefaultIo()->ReadFile(path, allocator);
  }
  Status WriteFile(const std::string& path, std::span<const std::span<const std::byte>>) override {
    return IoError("file '", path, "': write: No space left on device");
  }
};

TEST_F(CheckpointTest, AFullDiskLeavesTheOldOnes) {
  auto folder = CheckpointFolder::Open(folder_, {.keep_last = 1});
  ASSERT_TRUE(folder.ok());
  ASSERT_TRUE(folder->Save(Made(1)).ok());
  FullDisk full;
  auto failing = CheckpointFolder::Open(folder_, {.keep_last = 1}, &full);
  ASSERT_TRUE(failing.ok());
  const Status status = failing->Save(Made(2));
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(folder->LoadNewest({})->steps, 1);
}

TEST_F(CheckpointTest, TheWriterReportsErrorsWithTheNextSave) {
  auto folder = CheckpointFolder::Open(folder_, {});
  ASSERT_TRUE(folder.ok());
  CheckpointWriter writer(&*folder);
  ASSERT_TRUE(writer.Save(Made(1)).ok());
  ASSERT_TRUE(writer.Save(Made(2)).ok());
  ASSERT_TRUE(writer.Wait().ok());
  EXPECT_EQ(folder->LoadNewest({})->steps, 2);
  FullDisk full;
  auto failing = CheckpointFolder::Open(folder_, {}, &full);
  ASSERT_TRUE(failing.ok());
  CheckpointWriter failing_writer(&*failing);
  ASSERT_TRUE(failing_writer.Save(Made(3)).ok());
  EXPECT_FALSE(failing_writer.Save(Made(4)).ok());
  EXPECT_TRUE(failing_writer.Wait().ok());
}

}  // namespace
}  // namespace msrt
