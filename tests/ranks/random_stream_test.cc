// Random networks on images: streamed and tiled results have the bits of an unsplit run, by one
// rank and by several that each stream or tile a part. By hand:
//   random_stream_test --configurations=10000 --seed=1
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/image/executors/image_runner.h"
#include "core/image/executors/rank_part.h"
#include "core/image/executors/stream_model.h"
#include "core/image/executors/stream_testing.h"
#include "tests/ranks/random_net.h"

namespace msrt::testing {
namespace {

int64_t configurations = 80;
uint32_t first_seed = 1;

struct Tally {
  int64_t configurations = 0, runs = 0, rank_runs = 0, phases = 0, refused = 0, tiles_only = 0;
};

// The number in "set the limit to N bytes or more"; 0 if the message has none.
size_t AmountIn(const std::string& message) {
  constexpr std::string_view kBefore = "set the limit to ";
  const size_t at = message.find(kBefore);
  return at == std::string::npos
             ? 0
             : std::strtoull(message.c_str() + at + kBefore.size(), nullptr, 10);
}

std::string FirstDifference(std::span<const std::byte> got, std::span<const std::byte> expected) {
  for (size_t i = 0; i + sizeof(float) <= std::min(got.size(), expected.size());
       i += sizeof(float)) {
    float a, b;
    std::memcpy(&a, got.data() + i, sizeof(a));
    std::memcpy(&b, expected.data() + i, sizeof(b));
    if (std::memcmp(&a, &b, sizeof(a)) == 0) continue;
    char text[64];
    std::snprintf(text, sizeof(text), ": %.9g instead of %.9g", a, b);
    return StrCat(" at ", i / sizeof(float), text);
  }
  return " has another size";
}

// One network, compiled for one set of delegates.
class Checks {
 public:
  Checks(uint32_t seed, const RandomNet& net, bool reference, Tally* tally)
      : seed_(seed),
        what_(StrCat("seed ", seed, reference ? " reference: " : " all: ", net.text)),
        image_(RandomImage(net.image, seed)),
        tally_(*tally) {
    CompileOptions options;
    if (reference) options.place.delegates = {"reference"};
    auto model = CompileForImage(TestEnvironment(), net.module,
                                 {net.image[1], net.image[2], net.image[3]}, options);
    EXPECT_TRUE(model.ok()) << what_ << ": " << model.status().message();
    if (model.ok()) model_ = *std::move(model);
  }

  void Run() {
    if (model_ == nullptr) return;
    auto session = Session::Create(model_, 0, {});
    auto whole = RunSession(**session, {image_});
    ASSERT_TRUE(whole.ok()) << what_ << ": " << whole.status().message();
    whole_ = *std::move(whole);
    std::mt19937 random(seed_ * 7 + 1);
    const auto pick = [&](uint32_t high) { return 1 + static_cast<int64_t>(random() % high); };
    ImagePlanOptions plan{.memory_limit_bytes = size_t{1} << 30};
    plan.strip_rows = pick(9), plan.tile_rows = pick(17), plan.tile_columns = pick(17);
    for (const auto executor : {ImageExecutor::kStream, ImageExecutor::kTiles}) {
      plan.executor = executor;
      plan.skips = false;
      RunPlanned(plan);
      plan.skips = true;
      const int64_t rows = pick(4), columns = pick(2);
      RunParts(plan, executor == ImageExecutor::kStream ? rows * columns : rows,
               executor == ImageExecutor::kStream ? 1 : columns);
    }
    // Above the memory for scratch.
    const size_t limit = (size_t{1} << 20) + static_cast<size_t>(pick(1 << 20));
    RunPlanned({.memory_limit_bytes = limit});
  }

 private:
  void RunPlanned(ImagePlanOptions plan) {
    auto runner = ImageRunner::Create(model_, plan);
    if (!runner.ok() && runner.status().code() == Code::kLimitExceeded) {
      ++tally_.refused;
      plan.memory_limit_bytes = AmountIn(runner.status().message());
      runner = ImageRunner::Create(model_, plan);
    }
    if (TilesOnly(plan, runner.status())) return;
    ASSERT_TRUE(runner.ok()) << what_ << ": " << runner.status().message() << "\n"
                             << Print(model_->module.main());
    const std::string how = StrCat(what_, ": ", ExecutorName(plan.executor), "\n",
                                   (*runner)->Describe(), Print((*runner)->graph()));
    const ImageResult result = RunImage(**runner, image_);
    ASSERT_TRUE(result.status.ok()) << how << ": " << result.status.message();
    ExpectWhole(result.outputs, how);
    EXPECT_LE(result.report.peak_bytes, (*runner)->plan().peak_bytes) << how;
    EXPECT_LE((*runner)->plan().peak_bytes, plan.memory_limit_bytes) << how;
    for (const auto& phase : result.report.phases) {
      if (phase.executor == ImageExecutor::kStream) CheckRows(phase, how);
    }
    ++tally_.runs;
    tally_.phases += static_cast<int64_t>(result.report.phases.size()) - 1;
  }

  // Each rank of a grid streams or tiles its part, as image_job.cc does: it computes the strips or
  // tiles that its part meets, and writes what is in its part.
  void RunParts(const ImagePlanOptions& plan, int64_t rows, int64_t columns) {
    std::vector<ConstTensor> outputs;
    for (const ConstTensor& t : whole_) {
      // An element that no rank writes differs from the whole.
      outputs.push_back(ConstTensor::Copy(t.dtype, t.dims,
                                          std::vector<std::byte>(t.bytes.size(), std::byte{0xff})));
    }
    const std::string how =
        StrCat(what_, ": ", ExecutorName(plan.executor), " by ", rows, " x ", columns, " ranks");
    for (int rank = 0; rank < rows * columns; ++rank) {
      auto runner = ImageRunner::Create(model_, plan);
      if (TilesOnly(plan, runner.status())) return;
      ASSERT_TRUE(runner.ok()) << how << ": " << runner.status().message();
      const Status status = RunPart(**runner, RankPart{rank, rows, columns}, &outputs);
      ASSERT_TRUE(status.ok()) << how << ": " << status.message();
    }
    ExpectWhole(outputs, how);
    ++tally_.rank_runs;
  }

  Status RunPart(ImageRunner& runner, const RankPart& part, std::vector<ConstTensor>* outputs) {
    const std::vector<ValueId>& values = runner.graph().outputs;
    const auto own = [&](size_t o, const Box& box) {
      return Intersect(box, part.Of((*outputs)[o].dims));
    };
    ImageIo io;
    io.read = [&](const Box& box, const TensorView& memory) {
      ForEachLine(image_.dims, box, memory, [&](int64_t at, int64_t to, int64_t count) {
        std::memcpy(memory.As<float>() + to, image_.As<float>().data() + at,
                    static_cast<size_t>(count) * sizeof(float));
      });
      return OkStatus();
    };
    io.write = [&](size_t o, const Box& box, const TensorView& memory) {
      const Box mine = own(o, box);
      if (mine.empty()) return OkStatus();
      Dims strides;
      const TensorView cut = CutView(memory, box, mine, &strides);
      const ConstTensor& to = (*outputs)[o];
      ForEachLine(to.dims, mine, cut, [&](int64_t at, int64_t from, int64_t count) {
        std::memcpy(const_cast<std::byte*>(to.bytes.data()) + at * sizeof(float),
                    cut.As<float>() + from, static_cast<size_t>(count) * sizeof(float));
      });
      return OkStatus();
    };
    io.wanted = [&](std::span<const ValueBox> boxes) -> Result<bool> {
      for (const ValueBox& box : boxes) {
        for (size_t o = 0; o < values.size(); ++o) {
          if (values[o] == box.value && !own(o, box.box).empty()) return true;
        }
      }
      return false;
    };
    io.skip = [](size_t, const Box&) { return OkStatus(); };
    return runner.Run(io, {}).status();
  }

  // Some layers, such as a pad that wraps, read the rows of strips far below: the error says so.
  bool TilesOnly(const ImagePlanOptions& plan, const Status& status) {
    const bool is = plan.executor == ImageExecutor::kStream && !status.ok() &&
                    status.message().find("use tiles") != std::string::npos;
    if (is) ++tally_.tiles_only;
    return is;
  }

  void ExpectWhole(const std::vector<ConstTensor>& outputs, const std::string& how) {
    for (size_t o = 0; o < whole_.size(); ++o) {
      const auto &got = outputs[o].bytes, &expected = whole_[o].bytes;
      ASSERT_TRUE(got.size() == expected.size() &&
                  std::memcmp(got.data(), expected.data(), got.size()) == 0)
          << how << " output " << o << FirstDifference(got, expected);
    }
  }

  static void CheckRows(const ImageReport::Phase& phase, const std::string& how) {
    for (const RowCount& count : phase.values) {
      EXPECT_TRUE(count.recomputed == 0 && count.computed <= count.rows)
          << how << "value " << IndexOf(count.value) << " has " << count.rows << " rows, computed "
          << count.computed << ", again " << count.recomputed;
    }
  }

  const uint32_t seed_;
  const std::string what_;
  const ConstTensor image_;
  Tally& tally_;
  std::shared_ptr<const CompiledModel> model_;
  std::vector<ConstTensor> whole_;
};

int FailedParts() {
  const auto& result = *::testing::UnitTest::GetInstance()->current_test_info()->result();
  return result.total_part_count();
}

TEST(RandomImages, StreamsAndTilesEqualTheWhole) {
  constexpr int kMaxFailures = 20;
  uint32_t seed = first_seed;
  Tally tally;
  for (; tally.configurations < configurations && FailedParts() < kMaxFailures; ++seed) {
    std::mt19937 random(seed);
    const auto net = DrawNet(/*max_batch=*/1, &random);
    if (!net) continue;
    for (const bool reference : {true, false}) Checks(seed, *net, reference, &tally).Run();
    if (++tally.configurations % 500 == 0)
      printf("%lld configurations\n", static_cast<long long>(tally.configurations));
    std::fflush(stdout);
  }
  // A few networks, drawn again to look into a failure, need not show everything.
  constexpr int64_t kMinTallied = 80;
  if (tally.configurations >= kMinTallied) {
    EXPECT_GT(tally.phases, 0) << "no network had statistics of the whole image";
    EXPECT_GT(tally.refused, 0) << "no limit was too small";
    EXPECT_GT(tally.rank_runs, 0);
    EXPECT_LT(tally.tiles_only, tally.runs / 8) << "most networks must stream";
  }
  printf(
      "%lld configurations, %lld runs, %lld by several ranks, %lld extra phases, %lld limits "
      "refused, %lld run by tiles only, next seed %u\n",
      static_cast<long long>(tally.configurations), static_cast<long long>(tally.runs),
      static_cast<long long>(tally.rank_runs), static_cast<long long>(tally.phases),
      static_cast<long long>(tally.refused), static_cast<long long>(tally.tiles_only), seed);
}

}  // namespace
}  // namespace msrt::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    const auto value = [&](std::string_view name) -> const char* {
      return arg.starts_with(name) ? argv[i] + name.size() : nullptr;
    };
    if (const char* text = value("--configurations=")) msrt::testing::configurations = atoll(text);
    if (const char* text = value("--seed="))
      msrt::testing::first_seed = static_cast<uint32_t>(atoll(text));
  }
  return RUN_ALL_TESTS();
}
