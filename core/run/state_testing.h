// Modules with state slots, for tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "core/run/session.h"
#include "ops/builder.h"
#include "tests/conformance/pipeline.h"

namespace msrt {

inline ConstTensor Floats(Dims dims, std::vector<float> values) {
  return ConstTensor::Floats(dims, values);
}
inline std::vector<float> ValuesOf(const ConstTensor& t) {
  return {t.As<float>().begin(), t.As<float>().end()};
}
inline std::vector<float> Ramp(size_t count, float first, float step) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = first + step * static_cast<float>(i % 17);
  return values;
}
inline ConstTensor RampTensor(Dims dims, float first, float step = 0.25f) {
  return Floats(dims, Ramp(static_cast<size_t>(dims.elements()), first, step));
}
inline ValueId Must(Result<ValueId> v) {
  EXPECT_TRUE(v.ok()) << v.status().message();
  return v.ok() ? *v : kNoValue;
}

// A module under construction.
struct Draft {
  Module module;

  uint32_t AddGraph(const char* name) {
    module.graphs.emplace_back().name = name;
    return static_cast<uint32_t>(module.graphs.size() - 1);
  }
  int64_t AddState(const char* name, StateRole role, ConstTensor initial) {
    module.states.push_back({name, initial.type(), std::move(initial), role});
    return static_cast<int64_t>(module.states.size() - 1);
  }
  ValueId Read(Graph* g, int64_t slot, const char* name) const {
    const Type& type = module.states[static_cast<size_t>(slot)].type;
    std::vector<int64_t> dims;
    for (int64_t d : type.dims) dims.push_back(IsKnown(d) ? d : -1);
    auto read =
        GraphBuilder(g).Add("msrt", "StateRead", name, {},
                            {{"slot", slot}, {"dtype", type.dtype}, {"dims", std::move(dims)}}, 1);
    EXPECT_TRUE(read.ok()) << read.status().message();
    return read.ok() ? (*read)[0] : kNoValue;
  }
  static void Write(Graph* g, int64_t slot, ValueId value) {
    auto written = GraphBuilder(g).Add("msrt", "StateWrite", "", {value}, {{"slot", slot}}, 0);
    EXPECT_TRUE(written.ok()) << written.status().message();
  }
};

inline std::shared_ptr<const CompiledModel> Compiled(
    Module module, std::shared_ptr<Environment> env = testing::TestEnvironment(),
    const CompileOptions& options = {}) {
  auto model = CompileModule(std::move(env), std::move(module), options);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? *model : nullptr;
}

inline std::unique_ptr<Session> Make(const std::shared_ptr<const CompiledModel>& model,
                                     size_t entry = 0, const Session* share = nullptr) {
  auto session = Session::Create(model, entry, {}, share);
  EXPECT_TRUE(session.ok()) << session.status().message();
  return session.ok() ? *std::move(session) : nullptr;
}

inline std::vector<float> RunOnce(Session* session, const std::vector<ConstTensor>& inputs) {
  auto out = testing::RunSession(*session, inputs);
  EXPECT_TRUE(out.ok()) << out.status().message();
  return out.ok() && !out->empty() ? ValuesOf((*out)[0]) : std::vector<float>();
}

inline std::vector<float> StateOf(const Session& session, size_t slot) {
  auto state = session.State(slot);
  EXPECT_TRUE(state.ok()) << state.status().message();
  const float* data = state->As<float>();
  return {data, data + state->elements()};
}

// Entries train (w -= rate * x) and eval (y = x @ w), of a matrix w [n, n].
inline Module TrainAndEval(int64_t n, bool with_train = true) {
  Draft d;
  const int64_t w = d.AddState("w", StateRole::kParameter, RampTensor({n, n}, -2));
  const uint32_t eval = d.AddGraph("eval");
  {
    Graph& g = d.module.graphs[eval];
    const ValueId x = g.AddInput("x", Type::Tensor(DType::kF32, {2, n}));
    g.outputs = {Must(GraphBuilder(&g).Add("MatMul", "y", {x, d.Read(&g, w, "w")}))};
  }
  d.module.entries = {eval};
  if (!with_train) return std::move(d.module);
  const uint32_t train = d.AddGraph("train");
  Graph& g = d.module.graphs[train];
  GraphBuilder b(&g);
  const ValueId gradient = g.AddInput("g", Type::Tensor(DType::kF32, {1, n})),
                rate = g.AddConstant("rate", Floats({1}, {0.5f}));
  const ValueId read = d.Read(&g, w, "w");
  const ValueId step = Must(b.Add("Mul", "step", {gradient, rate}));
  d.Write(&g, w, Must(b.Add("Sub", "updated", {read, step})));
  g.outputs = {Must(b.Add("Identity", "done", {gradient}))};
  d.module.entries = {eval, train};
  return std::move(d.module);
}

}  // namespace msrt
