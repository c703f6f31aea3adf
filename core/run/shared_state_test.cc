// State slots that sessions share, and their packed forms.
#include <algorithm>
#include <atomic>
#include <thread>

#include "core/run/state_testing.h"

namespace msrt {
namespace {

using testing::RunModule;
using testing::TestEnvironment;

// Counts the bytes in use and their peak.
class PeakAllocator final : public Allocator {
 public:
  void* Allocate(size_t bytes, size_t alignment) noexcept override {
    void* memory = DefaultAllocator()->Allocate(bytes, alignment);
    if (memory == nullptr) return nullptr;
    used += bytes;
    if (used > peak) peak = used.load();
    return memory;
  }
  void Free(void* pointer, size_t bytes, size_t alignment) noexcept override {
    DefaultAllocator()->Free(pointer, bytes, alignment);
    used -= bytes;
  }
  std::atomic<size_t> used{0}, peak{0};
};

// The oracle: the same product with the current values as a constant.
std::vector<float> EvalWithConstant(int64_t n, const std::vector<float>& w, const ConstTensor& x) {
  Module module;
  Graph& g = module.graphs.emplace_back();
  g.name = "main";
  module.entries = {0};
  const ValueId in = g.AddInput("x", Type::Tensor(DType::kF32, {2, n}));
  g.outputs = {
      Must(GraphBuilder(&g).Add("MatMul", "y", {in, g.AddConstant("w", Floats({n, n}, w))}))};
  auto out = RunModule(module, {x});
  EXPECT_TRUE(out.ok()) << out.status().message();
  return out.ok() ? ValuesOf((*out)[0]) : std::vector<float>();
}

TEST(SharedState, SharedUpdateIsVisibleAndPackedFormsFollow) {
  constexpr int64_t kN = 64;
  const auto model = Compiled(TrainAndEval(kN));
  const auto eval = Make(model), train = Make(model, 1, eval.get());
  const auto apart = Make(model);
  const ConstTensor x = RampTensor({2, kN}, -1), gradient = RampTensor({1, kN}, 1);
  const std::vector<float> initial = RunOnce(eval.get(), {x});
  EXPECT_EQ(initial, EvalWithConstant(kN, StateOf(*eval, 0), x));
  for (int step = 0; step < 3; ++step) {
    RunOnce(train.get(), {gradient});
    EXPECT_EQ(StateOf(*eval, 0), StateOf(*train, 0));
    const std::vector<float> now = RunOnce(eval.get(), {x});
    EXPECT_NE(now, initial);
    EXPECT_EQ(now, EvalWithConstant(kN, StateOf(*train, 0), x)) << "step " << step;
    EXPECT_EQ(RunOnce(eval.get(), {x}), now);
  }
  EXPECT_EQ(RunOnce(apart.get(), {x}), initial);  // has its own state
  ASSERT_TRUE(eval->ResetState(0).ok());
  EXPECT_EQ(RunOnce(eval.get(), {x}), initial);
  EXPECT_EQ(StateOf(*train, 0), StateOf(*apart, 0));
}

TEST(SharedState, SharingNeedsTheSameModel) {
  const auto model = Compiled(TrainAndEval(8)), other = Compiled(TrainAndEval(8));
  const auto session = Make(other);
  EXPECT_EQ(Session::Create(model, 0, {}, session.get()).status().code(), Code::kInvalidArgument);
}

TEST(SharedState, SharedSlotsOutliveTheirFirstSession) {
  const auto model = Compiled(TrainAndEval(8));
  auto first = Make(model, 1);
  const auto second = Make(model, 0, first.get());
  RunOnce(first.get(), {RampTensor({1, 8}, 1)});
  const std::vector<float> trained = StateOf(*second, 0);
  first.reset();
  EXPECT_EQ(StateOf(*second, 0), trained);
  EXPECT_EQ(RunOnce(second.get(), {RampTensor({2, 8}, 1)}),
            EvalWithConstant(8, trained, RampTensor({2, 8}, 1)));
}

// Two entries over 100 MB of parameters take the memory of one.
TEST(SharedState, EntriesShareParametersWithoutCopies) {
  constexpr int64_t kN = 5000;  // 100 MB
  const auto peak_of = [&](bool both) {
    PeakAllocator allocator;
    auto env = TestEnvironment();
    env->allocator = &allocator;
    Module module = TrainAndEval(kN, both);
    const auto model = Compiled(std::move(module), env);
    const size_t before = allocator.used;
    const auto eval = Make(model);
    // Gives the slot its own memory, as training does.
    EXPECT_TRUE(
        eval->WriteState(0, {DType::kF32,
                             {kN, kN},
                             Layout::kPlain,
                             const_cast<std::byte*>(model->module.states[0].initial.bytes.data())})
            .ok());
    const ConstTensor x = RampTensor({2, kN}, -1), gradient = RampTensor({1, kN}, 1e-3f);
    RunOnce(eval.get(), {x});
    if (both) {
      const auto train = Make(model, 1, eval.get());
      for (int step = 0; step < 2; ++step) {
        RunOnce(train.get(), {gradient});
        RunOnce(eval.get(), {x});
      }
    }
    return allocator.peak - before;
  };
  const size_t one = peak_of(false), two = peak_of(true);
  std::printf("peak: %zu bytes with one entry, %zu with two\n", one, two);
  EXPECT_GT(one, size_t{4} * kN * kN);
  EXPECT_LE(static_cast<double>(two), 1.02 * static_cast<double>(one));
}

// ---- threads ------------------------------------------------------------------------------------

// Both parameters change in every step, and eval sees both or neither.
TEST(SharedState, RunsThatWriteSharedStateExcludeOthers) {
  Draft d;
  constexpr int64_t kN = 4096;
  const int64_t a = d.AddState("a", StateRole::kParameter, RampTensor({kN}, 0, 0)),
                c = d.AddState("c", StateRole::kParameter, RampTensor({kN}, 0, 0));
  const uint32_t train = d.AddGraph("train"), eval = d.AddGraph("eval");
  {
    Graph& g = d.module.graphs[train];
    GraphBuilder b(&g);
    const ValueId x = g.AddInput("x", Type::Tensor(DType::kF32, {1}));
    for (const int64_t slot : {a, c}) {
      d.Write(&g, slot, Must(b.Add("Add", StrCat("sum", slot), {d.Read(&g, slot, "read"), x})));
    }
    g.outputs = {Must(b.Add("Neg", "y", {x}))};
  }
  {
    Graph& g = d.module.graphs[eval];
    GraphBuilder b(&g);
    g.outputs = {Must(b.Add("Sub", "y", {d.Read(&g, a, "a"), d.Read(&g, c, "c")}))};
  }
  d.module.entries = {train, eval};
  const auto model = Compiled(std::move(d.module));
  const auto trainer = Make(model), reader = Make(model, 1, trainer.get()),
             second = Make(model, 1, trainer.get());
  constexpr int kSteps = 200;
  std::atomic<bool> done{false};
  const auto read = [&](Session* session) {
    while (!done) {
      const std::vector<float> difference = RunOnce(session, {});
      EXPECT_EQ(std::count(difference.begin(), difference.end(), 0.0f), kN);
    }
  };
  std::thread one(read, reader.get()), two(read, second.get());
  for (int i = 0; i < kSteps; ++i) RunOnce(trainer.get(), {Floats({1}, {1})});
  done = true;
  one.join();
  two.join();
  EXPECT_EQ(StateOf(*reader, 0)[0], static_cast<float>(kSteps));
}

// ---- packed forms -------------------------------------------------------------------------------

// y = conv(x, w) with w as a parameter or as a constant.
Module Convolution(const ConstTensor& w, int64_t pixels, bool parameter) {
  Draft d;
  const uint32_t main = d.AddGraph("main");
  if (parameter) d.AddState("w", StateRole::kParameter, w);
  Graph& g = d.module.graphs[main];
  const ValueId x = g.AddInput("x", Type::Tensor(DType::kF32, {1, w.dims[1], pixels, pixels})),
                weights = parameter ? d.Read(&g, 0, "w") : g.AddConstant("w", w);
  g.outputs = {Must(GraphBuilder(&g).Add("Conv", "y", {x, weights},
                                         {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}))};
  d.module.entries = {main};
  return std::move(d.module);
}

std::string AlgorithmOf(const Session& session) {
  for (const Step& step : session.program().steps) {
    if (step.kind == StepKind::kKernel) return step.delegate + " " + step.algorithm;
  }
  return {};
}

// 16 channels take a direct convolution, 64 of many pixels Winograd's.
TEST(SharedState, ConvolutionWithAParameterEqualsOneWithAConstant) {
  for (const auto& [channels, pixels] : {std::pair<int64_t, int64_t>{16, 20}, {64, 56}}) {
    const ConstTensor first = RampTensor({channels, channels, 3, 3}, -0.5f, 0.0625f),
                      other = RampTensor({channels, channels, 3, 3}, 0.25f, -0.03125f),
                      x = RampTensor({1, channels, pixels, pixels}, -1, 0.125f);
    const auto session = Make(Compiled(Convolution(first, pixels, true)));
    const auto with_constant = [&](const ConstTensor& w) {
      const auto constant = Make(Compiled(Convolution(w, pixels, false)));
      EXPECT_EQ(AlgorithmOf(*session), AlgorithmOf(*constant));
      return RunOnce(constant.get(), {x});
    };
    EXPECT_EQ(RunOnce(session.get(), {x}), with_constant(first));
    ASSERT_TRUE(session
                    ->WriteState(0, {other.dtype, other.dims, Layout::kPlain,
                                     const_cast<std::byte*>(other.bytes.data())})
                    .ok());
    EXPECT_EQ(RunOnce(session.get(), {x}), with_constant(other));
    ASSERT_TRUE(session->ResetState(0).ok());
    EXPECT_EQ(RunOnce(session.get(), {x}), with_constant(first));
  }
}

TEST(SharedState, FormsArePackedOncePerVersionAndSharedByEqualValues) {
  constexpr int64_t kN = 256;
  PeakAllocator allocator;
  auto env = TestEnvironment();
  env->allocator = &allocator;
  const auto model = Compiled(TrainAndEval(kN), env);
  const auto eval = Make(model), other = Make(model), train = Make(model, 1, eval.get());
  const ConstTensor x = RampTensor({2, kN}, -1);
  RunOnce(eval.get(), {x});
  const size_t packed = eval->memory().packed_state_bytes;
  if (packed == 0) GTEST_SKIP() << "no delegate packs a product's weights";
  EXPECT_GE(packed, size_t{4} * kN * kN);
  RunOnce(other.get(), {x});  // its own state, but the same initial values
  const size_t used = allocator.used;
  RunOnce(other.get(), {x});
  RunOnce(eval.get(), {x});
  EXPECT_EQ(allocator.used, used);
  EXPECT_LT(used, 2 * packed);  // one form, arenas and outputs
  RunOnce(train.get(), {RampTensor({1, kN}, 1)});
  EXPECT_EQ(eval->memory().packed_state_bytes, 0u);  // of the old version
  RunOnce(eval.get(), {x});
  EXPECT_EQ(eval->memory().packed_state_bytes, packed);
}

}  // namespace
}  // namespace msrt
