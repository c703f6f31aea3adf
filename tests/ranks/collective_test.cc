// Collectives as nodes of a model, on ranks that are threads of one process.
#include <gtest/gtest.h>

#include <thread>

#include "core/autodiff/gradients.h"
#include "core/base/parallel_for.h"
#include "core/comm/thread_engine.h"
#include "core/run/session.h"
#include "ops/builder.h"
#include "ops/validate.h"
#include "tests/conformance/pipeline.h"

namespace msrt::testing {
namespace {

using Outputs = std::vector<std::vector<float>>;

// Runs the module's first entry; `communicator` may be null.
Result<Outputs> RunOn(const Module& module, const std::vector<ConstTensor>& inputs,
                      Communicator* communicator) {
  auto environment = TestEnvironment();
  environment->parallel = MakeThreadPool(1);  // each rank has its own
  MSRT_ASSIGN_OR_RETURN(auto model, CompileModule(environment, module, {}));
  SessionOptions options;
  options.communicator = communicator;
  MSRT_ASSIGN_OR_RETURN(auto session, Session::Create(model, 0, options));
  MSRT_ASSIGN_OR_RETURN(const auto results, RunSession(*session, inputs, {}));
  Outputs outputs;
  for (const ConstTensor& t : results) {
    const auto numbers = t.As<float>();
    outputs.emplace_back(numbers.begin(), numbers.end());
  }
  return outputs;
}

std::vector<Outputs> OnRanks(int ranks, const Module& module,
                             const std::function<std::vector<ConstTensor>(int)>& inputs) {
  std::vector<Outputs> results(static_cast<size_t>(ranks));
  auto communicators = MakeThreadCommunicators(ranks);
  EXPECT_TRUE(communicators.ok());
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      const auto i = static_cast<size_t>(r);
      auto outputs = RunOn(module, inputs(r), (*communicators)[i].get());
      EXPECT_TRUE(outputs.ok()) << outputs.status().message();
      if (outputs.ok()) results[i] = *std::move(outputs);
    });
  }
  for (std::thread& t : threads) t.join();
  return results;
}

struct CollectiveModel {
  Module module;
  std::vector<ValueId> inputs;

  explicit CollectiveModel(std::initializer_list<Dims> dims) {
    module.name = "collective";
    module.graphs.emplace_back().name = "main";
    module.entries = {0};
    for (const Dims& d : dims)
      inputs.push_back(graph().AddInput(StrCat("x", inputs.size()), Type::Tensor(DType::kF32, d)));
  }
  Graph& graph() { return module.graphs[0]; }
  std::vector<ValueId> Reduce(std::vector<ValueId> parts, AttrList attrs, size_t outputs) {
    auto made = GraphBuilder(&graph()).Add("msrt", "AllReduce", "reduce", std::move(parts),
                                           std::move(attrs), outputs);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() ? *made : std::vector<ValueId>(outputs, kNoValue);
  }
};

TEST(Collectives, AllReduceAddsTensorsOfAllRanks) {
  CollectiveModel m({{2}, {1, 3}});
  m.graph().outputs = m.Reduce(m.inputs, {{"tensors", int64_t{2}}}, 2);
  const auto inputs = [](int rank) {
    const auto r = static_cast<float>(rank);
    return std::vector<ConstTensor>{ConstTensor::Floats({2}, std::vector<float>{r, 10 * r}),
                                    ConstTensor::Floats({1, 3}, std::vector<float>{1, r, -r})};
  };
  for (const Outputs& of_rank : OnRanks(4, m.module, inputs))
    EXPECT_EQ(of_rank, (Outputs{{6, 60}, {4, 6, -6}}));
  // A session without a communicator is alone.
  const auto alone = RunOn(m.module, inputs(3), nullptr);
  ASSERT_TRUE(alone.ok()) << alone.status().message();
  EXPECT_EQ(*alone, (Outputs{{3, 30}, {1, 3, -3}}));
}

TEST(Collectives, AllReduceKnowsOtherReductions) {
  for (const auto& [reduce, expected] :
       {std::pair("min", -2.0f), std::pair("max", 1.0f), std::pair("product", 0.0f)}) {
    CollectiveModel m({{1}});
    m.graph().outputs = m.Reduce(m.inputs, {{"reduce", std::string(reduce)}}, 1);
    for (const Outputs& of_rank : OnRanks(4, m.module, [](int rank) {
           return std::vector<ConstTensor>{
               ConstTensor::Floats({1}, std::vector<float>{static_cast<float>(1 - rank)})};
         }))
      EXPECT_EQ(of_rank, (Outputs{{expected}})) << reduce;
  }
}

// With y = the sum of all ranks' x and a loss of w * y on each rank, every rank's x counts in the
// losses of all.
TEST(Collectives, TheGradientOfAllReduceAddsThoseOfAllRanks) {
  CollectiveModel m({{1}, {1}});
  const ValueId sum = m.Reduce({m.inputs[0]}, {}, 1)[0];
  GraphBuilder b(&m.graph());
  const auto loss = b.Add("Mul", "loss", {sum, m.inputs[1]});
  ASSERT_TRUE(loss.ok());
  const auto gradients = AddGradients(&m.module, 0, {{*loss}, {}, {m.inputs[0]}}, nullptr);
  ASSERT_TRUE(gradients.ok()) << gradients.status().message();
  m.graph().outputs = {(*gradients)[0]};
  for (const Outputs& of_rank : OnRanks(3, m.module, [](int rank) {
         return std::vector<ConstTensor>{
             ConstTensor::Floats({1}, std::vector<float>{5}),
             ConstTensor::Floats({1}, std::vector<float>{static_cast<float>(rank + 1)})};
       }))
    EXPECT_EQ(of_rank, Outputs{{6}});
}

TEST(Collectives, WrongNumbersOfTensorsAreRefused) {
  CollectiveModel m({{2}, {3}});
  const auto made = GraphBuilder(&m.graph())
                        .Add("msrt", "AllReduce", "reduce", m.inputs, {{"tensors", int64_t{1}}}, 1);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().message().find("2 inputs"), std::string::npos) << made.status().message();
}

}  // namespace
}  // namespace msrt::testing
