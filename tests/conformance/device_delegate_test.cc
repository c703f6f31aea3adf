// Delegates written in C++ (delegates/sdk) that run on a device: two of them share it, one takes
// several nodes as one step and uses a workspace. And one whose kernels wait in a host thread.
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "delegates/sdk/export.h"
#include "tests/conformance/loop_models.h"

namespace msrt::testing {
namespace {

int g_copies = 0;

// A device whose memory is the host's and whose streams do everything at once.
msrt_device_api ImmediateDevice() {
  msrt_device_api d = MSRT_INIT(msrt_device_api);
  d.plugin_abi = MSRT_PLUGIN_ABI;
  d.name = "immediate";
  d.copy_seconds = 1e-6;
  d.copy_bytes_per_second = 1e10;
  d.memory = [](void*, size_t* bytes) -> msrt_status { return *bytes = SIZE_MAX, MSRT_OK; };
  d.allocate = [](void*, const msrt_host_api*, size_t bytes, void** out) -> msrt_status {
    *out = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    return *out == nullptr ? MSRT_OUT_OF_MEMORY : MSRT_OK;
  };
  d.deallocate = [](void*, void* pointer, size_t) { std::free(pointer); };
  static int stream, event;
  d.stream_create = [](void*, const msrt_host_api*, int32_t, void** out) -> msrt_status {
    return *out = &stream, MSRT_OK;
  };
  d.stream_destroy = [](void*, void*) {};
  d.stream_synchronize = [](void*, const msrt_host_api*, void*) -> msrt_status { return MSRT_OK; };
  d.copy_to_device = d.copy_to_host = [](void*, const msrt_host_api*, void*, void* to,
                                         const void* from, size_t bytes) -> msrt_status {
    ++g_copies;
    std::memcpy(to, from, bytes);
    return MSRT_OK;
  };
  d.event_create = [](void*, const msrt_host_api*, void** out) -> msrt_status {
    return *out = &event, MSRT_OK;
  };
  d.event_destroy = [](void*, void*) {};
  d.event_record = [](void*, const msrt_host_api*, void*, void*) -> msrt_status { return MSRT_OK; };
  d.event_wait = [](void*, const msrt_host_api*, void*) -> msrt_status { return MSRT_OK; };
  return d;
}

// Neg, or Neg followed by Neg, of f32.
class Negations final : public sdk::Delegate {
 public:
  Negations(const char* name, bool pairs) : name_(name), pairs_(pairs) {}
  const char* name() const override { return name_; }
  std::vector<std::string> devices() const override { return {"immediate"}; }

  void Query(const sdk::GraphView& graph, sdk::QueryResult* out) const override {
    for (uint32_t n = 0; n < graph.node_count(); ++n) {
      sdk::Candidate c;
      c.node = n;
      c.input_layouts = c.output_layouts = {Layout::kPlain};
      c.seconds = 1e-9;
      c.algorithm = "one";
      out->candidates.push_back(c);
      if (!pairs_ || n + 1 == graph.node_count()) continue;
      c.nodes = {n, n + 1};
      c.algorithm = "pair";
      c.device = sdk::kAnyDevice;
      out->candidates.push_back(c);
    }
  }

  Result<std::unique_ptr<sdk::Kernel>> Compile(const sdk::GraphView&, const sdk::Candidate&,
                                               const sdk::CompileContext&) const override {
    return std::unique_ptr<sdk::Kernel>(std::make_unique<Compiled>());
  }

 private:
  class Bound final : public sdk::BoundKernel {
   public:
    Bound(size_t elements, int times) : elements_(elements), times_(times) {}
    size_t workspace_bytes() const override { return elements_ * sizeof(float); }
    Status Run(const sdk::RunArgs& args) override {
      EXPECT_NE(args.stream, nullptr);
      EXPECT_NE(args.workspace, nullptr);
      auto* const between = static_cast<float*>(args.workspace);
      const auto* const from = args.inputs[0].As<const float>();
      auto* const to = args.outputs[0].As<float>();
      std::copy(from, from + elements_, between);
      for (int t = 0; t < times_; ++t) {
        for (size_t i = 0; i < elements_; ++i) between[i] = -between[i];
      }
      std::copy(between, between + elements_, to);
      return OkStatus();
    }

   private:
    const size_t elements_;
    const int times_;
  };
  class Compiled final : public sdk::Kernel {
   public:
    Result<std::unique_ptr<sdk::BoundKernel>> Bind(const OpView& op) override {
      return Make(op, 1);
    }
    Result<std::unique_ptr<sdk::BoundKernel>> BindNodes(
        std::span<const OpView* const> ops) override {
      return Make(*ops[0], static_cast<int>(ops.size()));
    }

   private:
    static std::unique_ptr<sdk::BoundKernel> Make(const OpView& op, int times) {
      return std::make_unique<Bound>(static_cast<size_t>(op.input(0).elements()), times);
    }
  };

  const char* const name_;
  const bool pairs_;
};

std::shared_ptr<const Delegate> Register(std::unique_ptr<sdk::Delegate> delegate,
                                         const std::shared_ptr<const Device>& device) {
  const sdk::ExportedDelegate exported = sdk::Export(std::move(delegate));
  auto made = Delegate::Make(exported.api, exported.self, nullptr,
                             std::span(&device, device == nullptr ? 0 : 1));
  EXPECT_TRUE(made.ok()) << made.status().message();
  (*made)->TakeOver();
  return *made;
}

Module FourNegations() {
  SmallGraph g;
  ValueId v = g.Input("x", DType::kF32, {64});
  for (const char* name : {"a1", "a2", "b1", "b2"}) v = g.Add("Neg", name, {v});
  g.graph.outputs = {v};
  return g.module;
}

TEST(DeviceDelegate, TwoDelegatesShareADevice) {
  const auto device = Device::Make(ImmediateDevice(), nullptr, nullptr);
  ASSERT_TRUE(device.ok()) << device.status().message();
  auto env = TestEnvironment();
  env->delegates = {Register(std::make_unique<Negations>("pairs", true), *device),
                    Register(std::make_unique<Negations>("singles", false), *device)};
  auto model =
      CompileModule(env, FourNegations(),
                    OptionsWithPins({{"a*", "", "pairs", false}, {"b*", "", "singles", false}}));
  ASSERT_TRUE(model.ok()) << model.status().message();
  const Program& program = *(*model)->entries[0]->current()->program;
  const auto kernels = std::count_if(program.steps.begin(), program.steps.end(),
                                     [](const Step& s) { return s.kind == StepKind::kKernel; });
  EXPECT_EQ(kernels, 3) << Print(program);  // a pair and two singles
  auto session = Session::Create(*model, 0, {});
  const ConstTensor x = RandomFloats({64}, 1);
  g_copies = 0;
  const auto got = RunSession(**session, {x});
  ASSERT_TRUE(got.ok()) << got.status().message();
  ExpectSameBits(*got, {x});
  EXPECT_EQ(g_copies, 2);  // in and out, none between the delegates
}

TEST(DeviceDelegate, UnknownDeviceIsRefused) {
  const sdk::ExportedDelegate exported = sdk::Export(std::make_unique<Negations>("lost", false));
  const auto made = Delegate::Make(exported.api, exported.self, nullptr);
  EXPECT_EQ(made.status().code(), Code::kNotFound);
  EXPECT_NE(made.status().message().find("no device 'immediate'"), std::string::npos)
      << made.status().message();
  exported.api.destroy(exported.self);
}

// ---- Host work in a thread.

// Set by the host's kernel, awaited by the asynchronous one.
class Signal {
 public:
  void Set() {
    std::lock_guard lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  bool WaitFor(std::chrono::seconds limit) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [&] { return set_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

// Neg in a thread, which waits for the signal; Abs on the host, which sets it.
class Waiting final : public sdk::Delegate {
 public:
  explicit Waiting(Signal* signal, bool fails) : signal_(*signal), fails_(fails) {}
  const char* name() const override { return "waiting"; }
  void Query(const sdk::GraphView& graph, sdk::QueryResult* out) const override {
    for (uint32_t n = 0; n < graph.node_count(); ++n) {
      const std::string_view op = graph.node(n).op->op();
      if (op != "Neg" && op != "Abs") {
        out->refusals.push_back({n, "not Neg or Abs"});
        continue;
      }
      sdk::Candidate c;
      c.node = n;
      c.input_layouts = c.output_layouts = {Layout::kPlain};
      c.seconds = 1e-9;
      c.asynchronous = op == "Neg";
      out->candidates.push_back(c);
    }
  }
  Result<std::unique_ptr<sdk::Kernel>> Compile(const sdk::GraphView&, const sdk::Candidate& c,
                                               const sdk::CompileContext&) const override {
    return std::unique_ptr<sdk::Kernel>(
        std::make_unique<Compiled>(&signal_, c.asynchronous, fails_ && c.asynchronous));
  }

 private:
  class Bound final : public sdk::BoundKernel {
   public:
    Bound(Signal* signal, bool asynchronous, bool fails)
        : signal_(*signal), asynchronous_(asynchronous), fails_(fails) {}
    Status Run(const sdk::RunArgs& args) override {
      if (!asynchronous_) signal_.Set();
      else if (!signal_.WaitFor(std::chrono::seconds(20)))
        return DelegateError("the host did not continue");
      if (fails_) return DelegateError("chosen to fail");
      const auto* const from = args.inputs[0].As<const float>();
      auto* const to = args.outputs[0].As<float>();
      for (int64_t i = 0; i < args.inputs[0].elements(); ++i)
        to[i] = asynchronous_ ? -from[i] : std::abs(from[i]);
      return OkStatus();
    }

   private:
    Signal& signal_;
    const bool asynchronous_, fails_;
  };
  class Compiled final : public sdk::Kernel {
   public:
    Compiled(Signal* signal, bool asynchronous, bool fails)
        : signal_(*signal), asynchronous_(asynchronous), fails_(fails) {}
    Result<std::unique_ptr<sdk::BoundKernel>> Bind(const OpView&) override {
      return std::unique_ptr<sdk::BoundKernel>(
          std::make_unique<Bound>(&signal_, asynchronous_, fails_));
    }

   private:
    Signal& signal_;
    const bool asynchronous_, fails_;
  };

  Signal& signal_;
  const bool fails_;
};

// Both branches read x; the host's one runs while the other waits.
Module TwoBranches() {
  SmallGraph g;
  const ValueId x = g.Input("x", DType::kF32, {4096});
  const ValueId doubled = g.Add("Add", "h_doubled", {x, x});
  const ValueId negative = g.Add("Neg", "t_negative", {doubled});
  const ValueId absolute = g.Add("Abs", "h_absolute", {doubled});
  const ValueId again = g.Add("Mul", "h_again", {absolute, absolute});
  g.graph.outputs = {g.Add("Add", "h_sum", {g.Add("Add", "h_more", {again, absolute}), negative})};
  return g.module;
}

TEST(ThreadQueue, HostContinuesWhileAThreadWaits) {
  for (const bool fails : {false, true}) {
    Signal signal;
    auto env = TestEnvironment();
    std::vector<std::shared_ptr<const Delegate>> delegates = {
        Register(std::make_unique<Waiting>(&signal, fails), nullptr)};
    for (const auto& d : env->delegates) {
      if (d->name() == "reference") delegates.push_back(d);
    }
    env->delegates = delegates;
    auto model = CompileModule(env, TwoBranches(), OptionsWithPins({}));
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_TRUE((*model)->entries[0]->current()->program->uses_thread);
    auto reference = CompileModule(TestEnvironment(), TwoBranches(),
                                   OptionsWithPins({{"", "", "reference", false}}));
    auto session = Session::Create(*model, 0, {}), expected = Session::Create(*reference, 0, {});
    for (uint32_t run = 0; run < 3; ++run) {
      const std::vector<ConstTensor> inputs = {RandomFloats({4096}, run)};
      const auto got = RunSession(**session, inputs), want = RunSession(**expected, inputs);
      ASSERT_TRUE(got.ok() && want.ok()) << got.status().message();
      ExpectSameBits(*got, *want);
    }
    // A delegate that failed in the thread was left out.
    EXPECT_EQ((*model)->entries[0]->current()->program->uses_thread, !fails);
  }
}

}  // namespace
}  // namespace msrt::testing
