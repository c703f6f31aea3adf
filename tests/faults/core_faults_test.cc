// Every read and every allocation by the runtime fails in turn, once and from then on: load,
// compile, bind, run. Each outcome is an error of the right kind or a right result, nothing leaks,
// and the next try succeeds.
#include <gtest/gtest.h>

#include <atomic>

#include "core/compile/compile.h"
#include "core/model/write.h"
#include "core/run/session.h"
#include "tests/conformance/pipeline.h"
#include "tests/faults/failing_heap.h"
#include "tests/faults/small_cnn.h"

namespace msrt::testing {
namespace {

// Counts calls; the `fail_at`-th fails (0: none), and if `for_good` all after it.
struct Countdown {
  std::atomic<int64_t> calls{0}, fail_at{0};
  std::atomic<bool> for_good{false};

  bool Fails() {
    const int64_t call = ++calls;
    return fail_at != 0 && (call == fail_at || (call > fail_at && for_good));
  }
  void Arm(int64_t n, bool from_then_on) {
    calls = 0;
    for_good = from_then_on;
    fail_at = n;
  }
};

class FailingAllocator final : public Allocator {
 public:
  void* Allocate(size_t bytes, size_t alignment) noexcept override {
    if (faults.Fails()) return nullptr;
    void* block = DefaultAllocator()->Allocate(bytes, alignment);
    blocks += block != nullptr;
    return block;
  }
  void Free(void* pointer, size_t bytes, size_t alignment) noexcept override {
    blocks -= pointer != nullptr;
    DefaultAllocator()->Free(pointer, bytes, alignment);
  }
  Countdown faults;
  std::atomic<int64_t> blocks{0};
};

class FailingIo final : public Io {
 public:
  Result<Bytes> MapFile(const std::string& path) override {
    if (faults.Fails()) return IoError("cannot map '", path, "'");
    return DefaultIo()->MapFile(path);
  }
  Result<Bytes> ReadFile(const std::string& path, Allocator* allocator) override {
    if (faults.Fails()) return IoError("cannot read '", path, "'");
    return DefaultIo()->ReadFile(path, allocator);
  }
  Status WriteFile(const std::string& path,
                   std::span<const std::span<const std::byte>> pieces) override {
    if (faults.Fails()) return IoError("cannot write '", path, "'");
    return DefaultIo()->WriteFile(path, pieces);
  }
  Countdown faults;
};

struct Rig {
  FailingAllocator allocator;
  FailingIo io;
  std::shared_ptr<Environment> environment = TestEnvironment();
  bool by_copy = true;
  std::string file = SmallCnnFile();
  std::vector<std::string> delegates;  // empty: all

  Rig() {
    environment->allocator = &allocator;
    environment->io = &io;
  }
  CompileOptions Options() const {
    CompileOptions options;
    options.load_by_copy = by_copy;
    options.place.delegates = delegates;
    return options;
  }
  Result<std::unique_ptr<Session>> Open() {
    MSRT_ASSIGN_OR_RETURN(auto model, CompileFile(environment, file, Options()));
    return Session::Create(std::move(model), 0, {});
  }
};

Result<std::vector<float>> RunOnce(Session& session) {
  static const ConstTensor input = ConstTensor::Floats(Dims(kSmallCnnDims), SmallCnnInput());
  const TensorView view{input.dtype, input.dims, Layout::kPlain,
                        const_cast<std::byte*>(input.bytes.data())};
  MSRT_RETURN_IF_ERROR(session.SetInput(0, view, nullptr));
  MSRT_RETURN_IF_ERROR(session.Run({}));
  MSRT_ASSIGN_OR_RETURN(const TensorView out, session.Output(0));
  return std::vector<float>(out.As<float>(), out.As<float>() + out.elements());
}

Result<std::vector<float>> OpenAndRun(Rig& rig) {
  try {
    MSRT_ASSIGN_OR_RETURN(const auto session, rig.Open());
    return RunOnce(*session);
  } catch (const std::bad_alloc&) {
    // Core lets std::bad_alloc pass; the C API catches it. The message itself needs memory.
    StopFailingHeap();
    return OutOfMemory(0, "the heap");
  }
}

// Writes a file with packed weights, whose load has other points of failure.
std::string NativeFile() {
  Rig rig;
  CompileOptions options = rig.Options();
  options.keep_packed = true;
  const auto model = CompileFile(rig.environment, rig.file, options);
  EXPECT_TRUE(model.ok()) << model.status().message();
  const ModelExtras extras = NativeExtras(**model);
  const std::string path = rig.file + ".native";
  const Status written = WriteModel((*model)->module, path, DefaultIo(), {.extras = &extras});
  EXPECT_TRUE(written.ok()) << written.message();
  return path;
}

std::vector<float> Expected(Rig& rig) {
  auto result = OpenAndRun(rig);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *result : std::vector<float>();
}

class CoreFaults : public ::testing::TestWithParam<bool> {};  // whether a failure lasts
INSTANTIATE_TEST_SUITE_P(Faults, CoreFaults, ::testing::Bool(), [](const auto& lasts) {
  return std::string(lasts.param ? "FromThenOn" : "Once");
});

TEST_P(CoreFaults, EveryReadMayFail) {
  for (bool by_copy : {false, true}) {
    Rig rig;
    rig.by_copy = by_copy;
    const std::vector<float> expected = Expected(rig);
    int64_t failures = 0;
    for (int64_t n = 1;; ++n) {
      ASSERT_LT(n, 1000);
      rig.io.faults.Arm(n, GetParam());
      const auto result = OpenAndRun(rig);
      rig.io.faults.Arm(0, false);
      EXPECT_EQ(rig.allocator.blocks, 0);
      if (result.ok()) {
        EXPECT_TRUE(Close(*result, expected));
        break;
      }
      EXPECT_EQ(result.status().code(), Code::kIo) << result.status().message();
      EXPECT_TRUE(Close(Expected(rig), expected)) << "after a failure of read " << n;
      ++failures;
    }
    EXPECT_GT(failures, 0);
  }
}

void FailEveryAllocation(const std::string& file, bool for_good) {
  Rig rig;
  rig.file = file;
  const std::vector<float> expected = Expected(rig);
  int64_t failures = 0;
  for (int64_t n = 1;; ++n) {
    ASSERT_LT(n, 1000);
    rig.allocator.faults.Arm(n, for_good);
    const auto result = OpenAndRun(rig);
    const bool reached = rig.allocator.faults.calls >= n;
    rig.allocator.faults.Arm(0, false);
    ASSERT_EQ(rig.allocator.blocks, 0) << "after a failure of allocation " << n;
    if (result.ok()) {
      EXPECT_TRUE(Close(*result, expected));
      if (!reached) break;
      continue;  // the run succeeded: placed again on another delegate
    }
    EXPECT_EQ(result.status().code(), Code::kOutOfMemory) << result.status().message();
    EXPECT_TRUE(Close(Expected(rig), expected)) << "after a failure of allocation " << n;
    ++failures;
  }
  EXPECT_GT(failures, 3);
}

TEST_P(CoreFaults, EveryAllocationMayFail) { FailEveryAllocation(SmallCnnFile(), GetParam()); }
TEST_P(CoreFaults, EveryAllocationMayFailWithANativeFile) {
  FailEveryAllocation(NativeFile(), GetParam());
}

// The session must stay usable, with its old state.
TEST_P(CoreFaults, FailedRunLeavesTheSessionUnchanged) {
  Rig rig;
  auto session = rig.Open();
  ASSERT_TRUE(session.ok()) << session.status().message();
  auto expected = RunOnce(**session);
  ASSERT_TRUE(expected.ok());
  int64_t failures = 0;
  for (int64_t n = 1;; ++n) {
    ASSERT_LT(n, 1000);
    (*session)->Trim();
    ASSERT_TRUE((*session)->ResetState(0).ok());
    rig.allocator.faults.Arm(n, GetParam());
    const auto failed = RunOnce(**session);
    rig.allocator.faults.Arm(0, false);
    if (failed.ok()) break;
    EXPECT_EQ(failed.status().code(), Code::kOutOfMemory) << failed.status().message();
    const auto again = RunOnce(**session);
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_TRUE(Close(*again, *expected)) << "after a failure of allocation " << n;
    ++failures;
  }
  EXPECT_GT(failures, 0);
}

// On reference alone: other libraries handle failures of their allocations in their own way.
TEST_P(CoreFaults, EveryAllocationFromTheHeapMayFail) {
  Rig rig;
  rig.delegates = {"reference"};
  const std::vector<float> expected = Expected(rig);
  int64_t failures = 0;
  for (int64_t n = 1;; ++n) {
    ASSERT_LT(n, 100000);
    FailHeap(n, GetParam());
    const auto result = OpenAndRun(rig);
    const bool reached = StopFailingHeap();
    ASSERT_EQ(rig.allocator.blocks, 0) << "after a failure of new " << n;
    if (result.ok()) {
      EXPECT_TRUE(Close(*result, expected));
      if (!reached) break;
      continue;
    }
    ASSERT_EQ(result.status().code(), Code::kOutOfMemory)
        << "new " << n << ": " << result.status().message();
    ++failures;
  }
  EXPECT_GT(failures, 100);
  EXPECT_TRUE(Close(Expected(rig), expected));
}

}  // namespace
}  // namespace msrt::testing
