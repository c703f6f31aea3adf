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
    outputs.emplace_back();
    if (t.dtype == DType::kI64) {
      for (const int64_t n : t.As<int64_t>()) outputs.back().push_back(static_cast<float>(n));
    } else {
      for (const float x : t.As<float>()) outputs.back().push_back(x);
    }
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

// ---- the others ---------------------------------------------------------------------------------

std::vector<ConstTensor> None(int) { return {}; }
// Rank r has first + 10 * r, then one more each.
ConstTensor Counted(Dims dims, int rank) {
  std::vector<float> numbers;
  for (int64_t i = 0; i < dims.elements(); ++i)
    numbers.push_back(static_cast<float>(10 * rank + i));
  return ConstTensor::Floats(dims, numbers);
}

ValueId AddCollective(CollectiveModel* m, std::string_view op, std::vector<ValueId> inputs,
                      AttrList attrs) {
  auto made = GraphBuilder(&m->graph())
                  .Add("msrt", op, std::string(op), std::move(inputs), std::move(attrs), 1);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? (*made)[0] : kNoValue;
}
ValueId AddOnnx(CollectiveModel* m, std::string_view op, std::vector<ValueId> inputs,
                AttrList attrs = {}) {
  auto made =
      GraphBuilder(&m->graph()).Add(op, std::string(op), std::move(inputs), std::move(attrs));
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? *made : kNoValue;
}

// The first example of issue 18.
TEST(Collectives, AGraphGathersTheRankNumbersOfFourRanks) {
  CollectiveModel m({});
  const ValueId rank = AddCollective(&m, "GroupRank", {}, {});
  const ValueId list = AddOnnx(&m, "Reshape", {rank}, {{"shape", std::vector<int64_t>{1}}});
  m.graph().outputs = {AddCollective(&m, "AllGather", {list}, {{"ranks", int64_t{4}}}),
                       AddCollective(&m, "GroupSize", {}, {})};
  for (const Outputs& of_rank : OnRanks(4, m.module, None))
    EXPECT_EQ(of_rank, (Outputs{{0, 1, 2, 3}, {4}}));
  const auto alone = RunOn(m.module, {}, nullptr);
  ASSERT_FALSE(alone.ok());
  EXPECT_NE(alone.status().message().find("for 4 ranks, but there are 1"), std::string::npos)
      << alone.status().message();
}

TEST(Collectives, PartsAreInTheOrderOfRanksAlongTheAxis) {
  CollectiveModel m({{2, 2}});
  m.graph().outputs = {
      AddCollective(&m, "AllGather", m.inputs, {{"ranks", int64_t{2}}, {"axis", int64_t{-1}}}),
      AddCollective(&m, "ReduceScatter", m.inputs, {{"ranks", int64_t{2}}, {"axis", int64_t{1}}}),
      AddCollective(&m, "AllToAll", m.inputs, {{"ranks", int64_t{2}}, {"split_axis", int64_t{1}}})};
  const auto results = OnRanks(2, m.module, [](int rank) {
    return std::vector{Counted({2, 2}, rank)};
  });
  // Rank 0 has {{0, 1}, {2, 3}}, rank 1 has {{10, 11}, {12, 13}}.
  EXPECT_EQ(results[0], (Outputs{{0, 1, 10, 11, 2, 3, 12, 13}, {10, 14}, {0, 2, 10, 12}}));
  EXPECT_EQ(results[1], (Outputs{{0, 1, 10, 11, 2, 3, 12, 13}, {12, 16}, {1, 3, 11, 13}}));
}

TEST(Collectives, ARootSendsAndReduces) {
  CollectiveModel m({{2}});
  m.graph().outputs = {AddCollective(&m, "Broadcast", m.inputs, {{"root", int64_t{2}}}),
                       AddCollective(&m, "Reduce", m.inputs, {{"root", int64_t{1}}}),
                       AddCollective(&m, "Reduce", m.inputs, {{"reduce", std::string("max")}})};
  const auto results =
      OnRanks(3, m.module, [](int rank) { return std::vector{Counted({2}, rank)}; });
  EXPECT_EQ(results[0], (Outputs{{20, 21}, {0, 0}, {20, 21}}));
  EXPECT_EQ(results[1], (Outputs{{20, 21}, {30, 33}, {0, 0}}));
  EXPECT_EQ(results[2], (Outputs{{20, 21}, {0, 0}, {0, 0}}));
}

// Ranks may have any numbers of updates, and none.
TEST(Collectives, UpdatesOfAllRanksAreAdded) {
  CollectiveModel m({{3, 2}});
  const auto open = [&](const char* name, DType dtype, Dims dims) {
    return m.graph().AddInput(name, Type::Tensor(dtype, dims));
  };
  const ValueId indices = open("indices", DType::kI64, {kUnknownDim, 1});
  const ValueId updates = open("updates", DType::kF32, {kUnknownDim, 2});
  m.graph().outputs = {AddCollective(&m, "AllScatterAdd", {m.inputs[0], indices, updates}, {})};
  const auto inputs = [](int rank) {
    std::vector<int64_t> rows;
    for (int i = 0; i < rank; ++i) rows.push_back(i == 0 ? 1 : -1);
    const auto count = static_cast<int64_t>(rows.size());
    return std::vector{Counted({3, 2}, 0), ConstTensor::Of<int64_t>(DType::kI64, {count, 1}, rows),
                       Counted({count, 2}, rank)};
  };
  // Rank 1 adds {10, 11} to row 1; rank 2 adds {20, 21} to row 1 and {22, 23} to row 2.
  for (const Outputs& of_rank : OnRanks(3, m.module, inputs))
    EXPECT_EQ(of_rank, (Outputs{{0, 1, 32, 35, 26, 28}}));
  const auto alone = RunOn(m.module, inputs(1), nullptr);
  ASSERT_TRUE(alone.ok()) << alone.status().message();
  EXPECT_EQ(*alone, (Outputs{{0, 1, 12, 14, 4, 5}}));
}

TEST(Collectives, AnIndexOutsideTheDataIsNamed) {
  CollectiveModel m({{3, 2}});
  const ValueId indices = m.graph().AddInput("indices", Type::Tensor(DType::kI64, {1, 1}));
  const ValueId updates = m.graph().AddInput("updates", Type::Tensor(DType::kF32, {1, 2}));
  m.graph().outputs = {AddCollective(&m, "AllScatterAdd", {m.inputs[0], indices, updates}, {})};
  const auto run = RunOn(
      m.module,
      {Counted({3, 2}, 0), ConstTensor::Of<int64_t>(DType::kI64, {1, 1}, std::vector<int64_t>{3}),
       Counted({1, 2}, 0)},
      nullptr);
  ASSERT_FALSE(run.ok());
  EXPECT_NE(run.status().message().find("index 3"), std::string::npos) << run.status().message();
}

// A gradient through a collective is tested by its meaning: with a loss that weighs each element of
// the result on each rank, the derivative of the sum of all ranks' losses.
std::vector<Outputs> GradientsOf(int ranks, std::string_view op, AttrList attrs, const Dims& x,
                                 const Dims& y, const std::function<ConstTensor(int)>& weights) {
  CollectiveModel m({x, y});
  const ValueId made = AddCollective(&m, op, {m.inputs[0]}, std::move(attrs));
  const ValueId loss = AddOnnx(&m, "ReduceSum", {AddOnnx(&m, "Mul", {made, m.inputs[1]})},
                               {{"keepdims", int64_t{0}}});
  const auto gradients = AddGradients(&m.module, 0, {{loss}, {}, {m.inputs[0]}}, nullptr);
  EXPECT_TRUE(gradients.ok()) << gradients.status().message();
  if (!gradients.ok()) return {};
  m.graph().outputs = {(*gradients)[0]};
  return OnRanks(ranks, m.module, [&](int rank) {
    return std::vector{Counted(x, rank), weights(rank)};
  });
}

TEST(Collectives, GradientsAreThoseOfTheLossesOfAllRanks) {
  // Each rank has used the part of this one: rank r weighs element i with 10 r + i.
  EXPECT_EQ(GradientsOf(2, "AllGather", {{"ranks", int64_t{2}}}, {2}, {4},
                        [](int rank) { return Counted({4}, rank); }),
            (std::vector<Outputs>{{{10, 12}}, {{14, 16}}}));
  EXPECT_EQ(GradientsOf(2, "ReduceScatter", {{"ranks", int64_t{2}}}, {4}, {2},
                        [](int rank) { return Counted({2}, rank); }),
            (std::vector<Outputs>{{{0, 1, 10, 11}}, {{0, 1, 10, 11}}}));
  // Element j of rank i becomes element i of rank j.
  EXPECT_EQ(GradientsOf(2, "AllToAll", {{"ranks", int64_t{2}}}, {2}, {2},
                        [](int rank) { return Counted({2}, rank); }),
            (std::vector<Outputs>{{{0, 10}}, {{1, 11}}}));
  EXPECT_EQ(GradientsOf(3, "Broadcast", {{"root", int64_t{1}}}, {2}, {2},
                        [](int rank) { return Counted({2}, rank); }),
            (std::vector<Outputs>{{{0, 0}}, {{30, 33}}, {{0, 0}}}));
  EXPECT_EQ(GradientsOf(3, "Reduce", {{"root", int64_t{1}}}, {2}, {2},
                        [](int rank) { return Counted({2}, rank); }),
            (std::vector<Outputs>{{{10, 11}}, {{10, 11}}, {{10, 11}}}));
}

// A pipeline of two ranks: the first sends 2 x, the second has the loss w * y. The ranks have
// different models.
TEST(Collectives, GradientsGoBackThroughSendAndReceive) {
  CollectiveModel sender({{2}}), receiver({{2}, {}});
  const ValueId two =
      sender.graph().AddConstant("two", ConstTensor::Floats({}, std::vector<float>{2}));
  const ValueId sent = AddCollective(
      &sender, "Send", {AddOnnx(&sender, "Mul", {sender.inputs[0], two})}, {{"rank", int64_t{1}}});
  auto gradients = AddGradients(&sender.module, 0, {{sent}, {}, {sender.inputs[0]}}, nullptr);
  ASSERT_TRUE(gradients.ok()) << gradients.status().message();
  sender.graph().outputs = {(*gradients)[0]};

  const ValueId y = AddCollective(&receiver, "Receive", {receiver.inputs[1]},
                                  {{"rank", int64_t{0}}, {"shape", std::vector<int64_t>{2}}});
  const ValueId loss =
      AddOnnx(&receiver, "ReduceSum", {AddOnnx(&receiver, "Mul", {y, receiver.inputs[0]})},
              {{"keepdims", int64_t{0}}});
  gradients = AddGradients(&receiver.module, 0, {{loss}, {}, receiver.inputs}, nullptr);
  ASSERT_TRUE(gradients.ok()) << gradients.status().message();
  receiver.graph().outputs = *gradients;

  auto communicators = MakeThreadCommunicators(2);
  ASSERT_TRUE(communicators.ok());
  Result<Outputs> first = Outputs(), second = Outputs();
  std::thread other([&] {
    second = RunOn(receiver.module,
                   {ConstTensor::Floats({2}, std::vector<float>{3, 5}),
                    ConstTensor::Floats({}, std::vector<float>{0})},
                   (*communicators)[1].get());
  });
  first = RunOn(sender.module, {ConstTensor::Floats({2}, std::vector<float>{7, 8})},
                (*communicators)[0].get());
  other.join();
  ASSERT_TRUE(first.ok()) << first.status().message();
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_EQ(*first, (Outputs{{6, 10}}));
  EXPECT_EQ(*second, (Outputs{{14, 16}, {0}}));
}

TEST(Collectives, DimsThatRanksCannotDivideAreRefused) {
  CollectiveModel m({{3}});
  const auto made = GraphBuilder(&m.graph())
                        .Add("msrt", "ReduceScatter", "part", m.inputs, {{"ranks", int64_t{2}}}, 1);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().message().find("multiple of ranks = 2"), std::string::npos)
      << made.status().message();
}

TEST(Collectives, ARankThatDoesNotExistIsNamed) {
  CollectiveModel m({{1}});
  m.graph().outputs = {AddCollective(&m, "Broadcast", m.inputs, {{"root", int64_t{2}}})};
  const auto run = RunOn(m.module, {Counted({1}, 0)}, nullptr);
  ASSERT_FALSE(run.ok());
  EXPECT_NE(run.status().message().find("Broadcast of the model is with rank 2"), std::string::npos)
      << run.status().message();
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
