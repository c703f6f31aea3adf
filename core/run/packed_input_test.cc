// Packed forms of inputs, as kernels get them from every caller of a kernel: steps of the host and
// of a thread, in loops, and measurements.
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "core/run/measure.h"
#include "core/run/state_testing.h"
#include "delegates/sdk/export.h"

namespace msrt {
namespace {

using testing::TestEnvironment;

struct Counts {
  std::atomic<int> packed{0}, without{0};
  bool asynchronous = false;
  std::chrono::milliseconds pack_time{0};
};

// Mul, which multiplies by a packed form of its second input.
class Packer final : public sdk::Delegate {
 public:
  explicit Packer(Counts* counts) : counts_(*counts) {}
  const char* name() const override { return "packer"; }
  void Query(const sdk::GraphView& graph, sdk::QueryResult* out) const override {
    for (uint32_t n = 0; n < graph.node_count(); ++n) {
      if (graph.node(n).op->op() != "Mul") {
        out->refusals.push_back({n, "not Mul"});
        continue;
      }
      sdk::Candidate c;
      c.node = n;
      c.input_layouts = {Layout::kPlain, Layout::kPlain};
      c.output_layouts = {Layout::kPlain};
      c.seconds = 1e-9;
      c.algorithm = "packed";
      c.asynchronous = counts_.asynchronous;
      out->candidates.push_back(c);
    }
  }
  Result<std::unique_ptr<sdk::Kernel>> Compile(const sdk::GraphView&, const sdk::Candidate&,
                                               const sdk::CompileContext&) const override {
    return std::unique_ptr<sdk::Kernel>(std::make_unique<Compiled>(&counts_));
  }

 private:
  struct Bound final : sdk::BoundKernel {
    explicit Bound(Counts* c) : counts(*c) {}
    Status Run(const sdk::RunArgs& args) override {
      const TensorView& w = args.inputs[1];
      const size_t bytes = static_cast<size_t>(w.elements()) * sizeof(float);
      MSRT_ASSIGN_OR_RETURN(const void* const form,
                            args.forms.Get(1, {"packer", "", 1, 1}, bytes, [&](std::byte* to) {
                              ++counts.packed;
                              std::this_thread::sleep_for(counts.pack_time);
                              std::memcpy(to, w.data, bytes);
                              return OkStatus();
                            }));
      const auto* const x = args.inputs[0].As<const float>();
      for (int64_t i = 0; i < w.elements(); ++i)
        args.outputs[0].As<float>()[i] = x[i] * static_cast<const float*>(form)[i];
      return OkStatus();
    }
    Counts& counts;
  };
  struct Compiled final : sdk::Kernel {
    explicit Compiled(Counts* c) : counts(*c) {}
    Result<std::unique_ptr<sdk::BoundKernel>> Bind(const OpView&) override {
      return std::unique_ptr<sdk::BoundKernel>(std::make_unique<Bound>(&counts));
    }
    Counts& counts;
  };
  Counts& counts_;
};

// The exported delegate, with a run that counts calls without packed_input: one that is written in
// C would crash there.
std::shared_ptr<const Delegate> Registered(Counts* counts) {
  struct Self {
    sdk::ExportedDelegate inner;
    Counts* counts;
  };
  static std::vector<std::unique_ptr<Self>> all;  // tables of functions have no other place for it
  const sdk::ExportedDelegate exported = sdk::Export(std::make_unique<Packer>(counts));
  all.push_back(std::make_unique<Self>(Self{exported, counts}));
  msrt_delegate_api api = exported.api;
  api.run = [](void* self, void* bound, const msrt_run_args* args) {
    const auto& it =
        *std::find_if(all.begin(), all.end(), [&](const auto& s) { return s->inner.self == self; });
    it->counts->without += args->packed_input == nullptr;
    return it->inner.api.run(self, bound, args);
  };
  auto made = Delegate::Make(api, exported.self, nullptr);
  EXPECT_TRUE(made.ok()) << made.status().message();
  (*made)->TakeOver();
  return *std::move(made);
}

std::shared_ptr<Environment> EnvironmentWith(Counts* counts) {
  auto env = TestEnvironment();
  env->delegates.insert(env->delegates.begin(), Registered(counts));
  return env;
}

CompileOptions OnPacker() {
  CompileOptions options;
  options.passes.disabled = {"all"};
  options.place.pins = {{"", "Mul", "packer", false}};
  return options;
}

constexpr int64_t kN = 4096;

// Each iteration reads w, writes w + 1, and multiplies x by what it read.
Module LoopThatWrites(int64_t trips) {
  Draft d;
  const int64_t slot = d.AddState("w", StateRole::kParameter, RampTensor({kN}, 0, 0));
  const uint32_t main = d.AddGraph("main"), body = d.AddGraph("body");
  const Type vector = Type::Tensor(DType::kF32, {kN});
  {
    Graph& g = d.module.graphs[body];
    GraphBuilder b(&g);
    g.AddInput("iteration", Type::Tensor(DType::kI64, {}));
    const ValueId condition = g.AddInput("condition", Type::Tensor(DType::kBool, {}));
    g.AddInput("sum", vector);
    const ValueId x = g.AddInput("x", vector), one = g.AddConstant("one", Floats({1}, {1}));
    const ValueId read = d.Read(&g, slot, "w");
    d.Write(&g, slot, Must(b.Add("Add", "updated", {read, one})));
    g.outputs = {Must(b.Add("Identity", "go_on", {condition})),
                 Must(b.Add("Mul", "product", {x, read}))};
  }
  Graph& g = d.module.graphs[main];
  GraphBuilder b(&g);
  const ValueId x = g.AddInput("x", vector),
                count = g.AddConstant("trips", ConstTensor::Of<int64_t>(
                                                   DType::kI64, {}, std::vector<int64_t>{trips}));
  auto loop = b.Add("", "Loop", "loop", {count, kNoValue, x, x},
                    {{"body", GraphRef{body}}, {"carried", int64_t{1}}}, 1, {vector});
  EXPECT_TRUE(loop.ok()) << loop.status().message();
  g.outputs = {(*loop)[0]};
  d.module.entries = {main};
  return std::move(d.module);
}

TEST(PackedInput, FormsOfCopiesDoNotGrowWithTheIterationsOfALoop) {
  for (const bool asynchronous : {false, true}) {
    Counts counts;
    counts.asynchronous = asynchronous;
    const auto model = Compiled(LoopThatWrites(500), EnvironmentWith(&counts), OnPacker());
    SessionOptions options;
    options.memory_cap_bytes = size_t{64} * kN * sizeof(float);
    auto session = Session::Create(model, 0, options);
    ASSERT_TRUE(session.ok()) << session.status().message();
    for (float run = 0; run < 2; ++run) {
      const std::vector<float> y = RunOnce(session->get(), {RampTensor({kN}, 2, 0)});
      ASSERT_EQ(y.size(), static_cast<size_t>(kN)) << "asynchronous: " << asynchronous;
      EXPECT_EQ(y[7], 2 * (500 * run + 499));
    }
    EXPECT_EQ(counts.packed, 1000);
    EXPECT_EQ(counts.without, 0);
  }
}

// y = x * w with w as a parameter.
Module Product() {
  Draft d;
  const int64_t slot = d.AddState("w", StateRole::kParameter, RampTensor({kN}, 1));
  Graph& g = d.module.graphs[d.AddGraph("main")];
  const ValueId x = g.AddInput("x", Type::Tensor(DType::kF32, {kN}));
  g.outputs = {Must(GraphBuilder(&g).Add("Mul", "y", {x, d.Read(&g, slot, "w")}))};
  d.module.entries = {0};
  return std::move(d.module);
}

TEST(PackedInput, StepsInAThreadPackOnceForEachVersion) {
  Counts counts;
  counts.asynchronous = true;
  const auto session = Make(Compiled(Product(), EnvironmentWith(&counts), OnPacker()));
  ASSERT_TRUE(session->program().uses_thread);
  const ConstTensor x = RampTensor({kN}, -1), w = RampTensor({kN}, 1), other = RampTensor({kN}, 3);
  const auto expect_product = [&](const ConstTensor& with) {
    const std::vector<float> y = RunOnce(session.get(), {x});
    ASSERT_EQ(y.size(), static_cast<size_t>(kN));
    for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], x.As<float>()[i] * with.As<float>()[i]);
  };
  for (int run = 0; run < 3; ++run) expect_product(w);
  EXPECT_EQ(counts.packed, 1);
  ASSERT_TRUE(session
                  ->WriteState(0, {other.dtype, other.dims, Layout::kPlain,
                                   const_cast<std::byte*>(other.bytes.data())})
                  .ok());
  for (int run = 0; run < 3; ++run) expect_product(other);
  EXPECT_EQ(counts.packed, 2);
  EXPECT_EQ(counts.without, 0);
}

// The parameter is read in the entry and captured by a branch, which passes it on to another.
TEST(PackedInput, ParametersThatBranchesCaptureArePackedOnceForEachVersion) {
  const Type row = Type::Tensor(DType::kF32, {kN}), flag = Type::Tensor(DType::kBool, {});
  Draft d;
  const int64_t slot = d.AddState("w", StateRole::kParameter, RampTensor({kN}, 1));
  const uint32_t main = d.AddGraph("main"), outer = d.AddGraph("outer"),
                 inner = d.AddGraph("inner"), other = d.AddGraph("other");
  const auto branch = [&](Graph* g, uint32_t yes, uint32_t no, ValueId c, ValueId x, ValueId w) {
    auto out = GraphBuilder(g).Add("", "If", "if", {c, c, x, w},
                                   {{"then_branch", GraphRef{yes}}, {"else_branch", GraphRef{no}}},
                                   1, {row});
    EXPECT_TRUE(out.ok()) << out.status().message();
    return (*out)[0];
  };
  for (const uint32_t graph : {inner, other}) {
    Graph& g = d.module.graphs[graph];
    g.AddInput("c", flag);
    const ValueId x = g.AddInput("x", row), w = g.AddInput("w", row);
    g.outputs = {graph == inner ? Must(GraphBuilder(&g).Add("Mul", "product", {x, w}))
                                : Must(GraphBuilder(&g).Add("Neg", "negative", {x}))};
  }
  {
    Graph& g = d.module.graphs[outer];
    const ValueId c = g.AddInput("c", flag), x = g.AddInput("x", row), w = g.AddInput("w", row);
    g.outputs = {branch(&g, inner, other, c, x, w)};
  }
  Graph& g = d.module.graphs[main];
  const ValueId c = g.AddInput("c", flag), x = g.AddInput("x", row);
  g.outputs = {branch(&g, outer, other, c, x, d.Read(&g, slot, "w"))};
  d.module.entries = {main};
  Counts counts;
  const auto model = Compiled(std::move(d.module), EnvironmentWith(&counts), OnPacker());
  const msrt_node_view& product = model->views[inner]->node(0);
  EXPECT_EQ(product.inputs[1].state_slot, slot);
  EXPECT_EQ(product.inputs[1].state_role, MSRT_STATE_PARAMETER);
  EXPECT_EQ(product.inputs[0].state_slot, -1);
  const auto session = Make(model);
  const auto yes = ConstTensor::Of<uint8_t>(DType::kBool, {}, std::vector<uint8_t>{1});
  const ConstTensor in = RampTensor({kN}, -1);
  for (float first : {1.f, 5.f}) {
    const ConstTensor w = RampTensor({kN}, first);
    if (first != 1) {
      ASSERT_TRUE(session
                      ->WriteState(0, {w.dtype, w.dims, Layout::kPlain,
                                       const_cast<std::byte*>(w.bytes.data())})
                      .ok());
    }
    for (int run = 0; run < 4; ++run) {
      const std::vector<float> y = RunOnce(session.get(), {yes, in});
      ASSERT_EQ(y.size(), static_cast<size_t>(kN));
      for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], in.As<float>()[i] * w.As<float>()[i]);
    }
  }
  EXPECT_EQ(counts.packed, 2);
  EXPECT_EQ(model->packings->Total().parameters, 2u);
  EXPECT_EQ(model->packings->Total().copies, 0u);
}

// The kernels of exact mode pack a parameter for each version, whether they convolve or multiply.
TEST(PackedInput, ExactProductsPackParametersOnceForEachVersion) {
  CompileOptions options;
  options.place.exact = true;
  const auto model = Compiled(TrainAndEval(64), TestEnvironment(), options);
  const auto eval = Make(model), train = Make(model, 1, eval.get());
  const ConstTensor x = RampTensor({2, 64}, -1);
  for (size_t version = 1; version < 4; ++version) {
    for (int run = 0; run < 3; ++run) RunOnce(eval.get(), {x});
    EXPECT_EQ(model->packings->Total().parameters, version);
    RunOnce(train.get(), {RampTensor({1, 64}, 1)});
  }
  EXPECT_EQ(model->packings->Total().copies, 0u);
}

TEST(PackedInput, MeasuredCostsAreWithoutPacking) {
  Counts counts;
  counts.pack_time = std::chrono::milliseconds(30);
  const auto env = EnvironmentWith(&counts);
  const auto model = Compiled(Product(), env, OnPacker());
  CostTable table;
  table.origin = CurrentOrigin(*env, "1");
  EXPECT_GE(MeasureCosts(*model, {}, &table).measured, 2u);
  EXPECT_EQ(counts.packed, 1);
  EXPECT_EQ(counts.without, 0);
  const Program& program = *model->entries[0]->current()->program;
  for (const Step& step : program.steps) {
    if (step.kind != StepKind::kKernel) continue;
    Candidate c;
    c.nodes = step.nodes;
    c.input_layouts = {Layout::kPlain, Layout::kPlain};
    c.output_layouts = {Layout::kPlain};
    c.algorithm = "packed";
    const double* seconds = table.Find(CostKey(*program.offered, "packer", c));
    ASSERT_NE(seconds, nullptr) << table.Print();
    EXPECT_LT(*seconds, 0.02);
  }
}

}  // namespace
}  // namespace msrt
