// The gradient of every op, on its rows in double precision: first derivatives against finite
// differences of the op, second derivatives against finite differences of the first.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <random>

#include "core/autodiff/gradients.h"
#include "core/base/half.h"
#include "ops/grad_builder.h"
#include "ops/registry.h"
#include "ops/validate.h"
#include "tests/conformance/case_module.h"
#include "tests/conformance/pipeline.h"

namespace msrt::testing {
namespace {

using Values = std::vector<double>;

Values DoublesOf(const ConstTensor& t) {
  Values values(static_cast<size_t>(t.dims.elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    switch (t.dtype) {
      case DType::kF64:
        values[i] = t.As<double>()[i];
        break;
      case DType::kF32:
        values[i] = static_cast<double>(t.As<float>()[i]);
        break;
      case DType::kF16:
        values[i] = static_cast<double>(HalfToFloat(t.As<uint16_t>()[i]));
        break;
      default:
        values[i] = static_cast<double>(std::bit_cast<float>(uint32_t{t.As<uint16_t>()[i]} << 16));
    }
  }
  return values;
}

ConstTensor Doubles(const Dims& dims, const Values& values) {
  return ConstTensor::Of<double>(DType::kF64, dims, values);
}

double Dot(const Values& a, const Values& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Appends the products of the elements.
void Append(const Values& a, const Values& b, Values* to) {
  for (size_t i = 0; i < a.size(); ++i) to->push_back(a[i] * b[i]);
}

// The row with all float tensors in double. Numbers are moved a little, away from ties and kinks
// that rows have on purpose, and numbers that are not finite are replaced.
OpCase InDouble(const OpCase& c, std::mt19937* random) {
  OpCase d = c;
  std::uniform_real_distribution<double> noise(0.002, 0.02);
  for (CaseInput& input : d.inputs) {
    if (!input.tensor || !IsFloat(input.tensor->dtype)) continue;
    Values values = DoublesOf(*input.tensor);
    for (double& v : values)
      v = std::isfinite(v) && std::abs(v) < 1e6 ? v + noise(*random) : 0.5 + noise(*random);
    input.tensor = Doubles(input.tensor->dims, values);
    input.constant = false;
  }
  for (auto& expected : d.expected) {
    if (expected && IsFloat(expected->dtype))
      expected = Doubles(expected->dims, Values(static_cast<size_t>(expected->dims.elements())));
  }
  return d;
}

// A module whose outputs are, for one node: its float outputs, the gradients of its float inputs
// for random seeds, and the gradients of the sum of those with random weights.
struct GradientModule {
  Module module;
  std::vector<ConstTensor> inputs;
  std::vector<size_t> varied;  // inputs that are differentiated
  std::vector<Values> seeds, weights;  // of the outputs, of the gradients
  size_t outputs = 0;
  std::vector<Dims> constant_dims = {};  // of the seeds and weights
};

// `closed`: the same module with known dims; the dims of this one are open.
Result<GradientModule> MakeModule(const OpCase& c, std::mt19937* random,
                                  const GradientModule* closed = nullptr) {
  CaseModule base = ModuleOf(c, /*open_dims=*/closed != nullptr);
  GradientModule m{std::move(base.module), std::move(base.inputs), {}, {}, {}, 0};
  MSRT_RETURN_IF_ERROR(Validate(&m.module));
  Graph& graph = m.module.graphs[0];
  std::uniform_real_distribution<double> uniform(-1, 1);
  const auto random_constant = [&](ValueId like, std::vector<Values>* kept) -> Result<ValueId> {
    Type type = graph.value(like).type;
    if (closed != nullptr) type.dims = closed->constant_dims[m.constant_dims.size()];
    if (closed != nullptr) type.rank_known = true;
    if (!type.concrete()) return Unsupported("sizes depend on data");
    Values values(static_cast<size_t>(type.elements()));
    for (double& v : values) v = uniform(*random);
    kept->push_back(values);
    m.constant_dims.push_back(type.dims);
    return graph.AddConstant("seed", Doubles(type.dims, values));
  };
  GradientRequest first;
  for (ValueId v : std::vector<ValueId>(std::move(graph.outputs))) {
    if (!IsFloat(graph.value(v).type.dtype)) continue;
    if (graph.value(v).type.dtype != DType::kF64) return Unsupported("rounds to fewer bits");
    first.of.push_back(v);
    MSRT_ASSIGN_OR_RETURN(const ValueId seed, random_constant(v, &m.seeds));
    first.seeds.push_back(seed);
  }
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    if (graph.value(graph.inputs[i]).type.dtype != DType::kF64) continue;
    m.varied.push_back(i);
    first.with_respect_to.push_back(graph.inputs[i]);
  }
  if (first.of.empty() || first.with_respect_to.empty())
    return Unsupported("has no numbers that vary");
  m.outputs = first.of.size();
  MSRT_ASSIGN_OR_RETURN(const std::vector<ValueId> gradients,
                        AddGradients(&m.module, 0, first));
  GradientRequest second{gradients, {}, first.with_respect_to};
  for (ValueId v : gradients) {
    MSRT_ASSIGN_OR_RETURN(const ValueId weight, random_constant(v, &m.weights));
    second.seeds.push_back(weight);
  }
  MSRT_ASSIGN_OR_RETURN(const std::vector<ValueId> second_gradients,
                        AddGradients(&m.module, 0, second));
  graph.outputs = first.of;
  graph.outputs.insert(graph.outputs.end(), gradients.begin(), gradients.end());
  graph.outputs.insert(graph.outputs.end(), second_gradients.begin(), second_gradients.end());
  return m;
}

Result<std::unique_ptr<Session>> SessionOf(const Module& module) {
  CompileOptions options;
  options.place.delegates = {"reference"};
  options.passes = {.disabled = {}, .validate = true};
  MSRT_ASSIGN_OR_RETURN(auto model, CompileModule(TestEnvironment(), module, options));
  return Session::Create(std::move(model), 0, {});
}

class GradientCheck {
 public:
  explicit GradientCheck(GradientModule m) : m_(std::move(m)) {}

  // Returns how many directions were checked.
  int Run(std::mt19937* random) {
    auto session = SessionOf(m_.module);
    if (!session.ok()) return ADD_FAILURE() << session.status().message(), 0;
    session_ = *std::move(session);
    int checked = 0;
    for (size_t i = 0; i < m_.varied.size(); ++i) {
      for (int round = 0; round < 4; ++round) checked += CheckDirection(i, round < 2, random);
    }
    return checked;
  }

 private:
  // The weighted sums of the outputs and of the gradients, and the gradients of both, at the inputs
  // moved by `step` along `direction`.
  struct Point {
    Values value, slope;  // element by element
    std::vector<Values> gradients, second;
  };
  Point At(size_t varied, const Values& direction, double step) {
    std::vector<ConstTensor> inputs = m_.inputs;
    ConstTensor& moved = inputs[m_.varied[varied]];
    Values values = DoublesOf(moved);
    for (size_t i = 0; i < values.size(); ++i) values[i] += step * direction[i];
    moved = Doubles(moved.dims, values);
    auto results = RunSession(*session_, inputs);
    Point point;
    if (!results.ok()) {
      ADD_FAILURE() << results.status().message();
      point.value = {std::nan("")};
      return point;
    }
    const size_t count = m_.varied.size();
    for (size_t o = 0; o < m_.outputs; ++o)
      Append(DoublesOf((*results)[o]), m_.seeds[o], &point.value);
    for (size_t i = 0; i < count; ++i) {
      point.gradients.push_back(DoublesOf((*results)[m_.outputs + i]));
      point.second.push_back(DoublesOf((*results)[m_.outputs + count + i]));
      Append(point.gradients[i], m_.weights[i], &point.slope);
    }
    return point;
  }

  // Central differences of fourth order, with two steps: a kink between the points shows as a
  // difference between them, and is not checked.
  bool CheckDirection(size_t varied, bool dense, std::mt19937* random) {
    const size_t elements =
        static_cast<size_t>(m_.inputs[m_.varied[varied]].dims.elements());
    if (elements == 0) return false;
    Values direction(elements);
    std::uniform_real_distribution<double> uniform(-1, 1);
    if (dense)
      for (double& d : direction) d = uniform(*random);
    else
      direction[(*random)() % elements] = 1;
    const Point at = At(varied, direction, 0);
    for (double v : at.value) {
      if (!std::isfinite(v)) return false;
    }
    // One evaluation serves both steps and both derivatives: twice the fine one is the coarse one.
    constexpr double kStep = 5e-5;
    std::array<Point, 3> up, down;
    for (size_t i = 0; i < up.size(); ++i) {
      const double step = kStep * std::exp2(i);
      up[i] = At(varied, direction, step);
      down[i] = At(varied, direction, -step);
    }
    // Elements are subtracted before they are summed: beside a huge one, a sum would lose the
    // differences of the others.
    const auto estimate = [&](size_t first, Values Point::*member) {
      const Values &a = up[first].*member, &b = down[first].*member, &c = up[first + 1].*member,
                   &d = down[first + 1].*member;
      double sum = 0;
      for (size_t i = 0; i < a.size(); ++i) sum += 8 * (a[i] - b[i]) - (c[i] - d[i]);
      return sum / (12 * kStep * std::exp2(first));
    };
    const auto check = [&](double got, Values Point::*member, const char* what) {
      const double fine = estimate(0, member), coarse = estimate(1, member);
      const double scale = std::max({1.0, std::abs(fine), std::abs(got)});
      if (!std::isfinite(fine) || std::abs(fine - coarse) > 1e-5 * scale) return false;
      EXPECT_NEAR(got, fine, 1e-6 * scale) << what << " of input " << m_.varied[varied];
      return true;
    };
    const bool first =
        check(Dot(at.gradients[varied], direction), &Point::value, "first derivative");
    if (first) check(Dot(at.second[varied], direction), &Point::slope, "second derivative");
    return first;
  }

  const GradientModule m_;
  std::unique_ptr<Session> session_;
};

bool HasGradient(const OpDef* def) {
  // The gradient of StopGradient is zero by definition, not by its formula. The test
  // tests/ranks/collective_test.cc checks those of collectives.
  return def != nullptr && def->grad != nullptr && def->grad != GradPending &&
         def->name != "StopGradient" && def->effect != Effect::kComm;
}

// The number of directions that were checked for each op.
std::map<const OpDef*, int>& CheckedDirections() {
  static std::map<const OpDef*, int> checked;
  return checked;
}

class GradientCases : public ::testing::TestWithParam<size_t> {};

TEST_P(GradientCases, AgreesWithFiniteDifferences) {
  const OpCase& c = AllOpCases()[GetParam()];
  std::mt19937 random(static_cast<uint32_t>(GetParam()));
  auto module = MakeModule(InDouble(c, &random), &random);
  if (!module.ok()) {
    // The form of this row has no derivative, or its types do not exist in double; each op has
    // another row.
    EXPECT_TRUE(module.status().code() == Code::kUnsupported ||
                module.status().code() == Code::kInvalidModel)
        << module.status().message();
    RecordProperty("refused", module.status().message());
    return;
  }
  CheckedDirections()[FindOp(c.domain, c.op)] +=
      GradientCheck(*std::move(module)).Run(&random);
}

// Gradients of a model whose dims are known only at run time.
TEST_P(GradientCases, AreTheSameForOpenDims) {
  const OpCase& c = AllOpCases()[GetParam()];
  std::mt19937 random(static_cast<uint32_t>(GetParam()));
  const OpCase row = InDouble(c, &random);
  std::mt19937 again = random;
  const auto closed = MakeModule(row, &random);
  if (!closed.ok()) return;  // as above
  const auto open = MakeModule(row, &again, &*closed);
  if (!open.ok()) {
    EXPECT_EQ(open.status().code(), Code::kUnsupported) << open.status().message();
    RecordProperty("refused", open.status().message());
    return;
  }
  const auto results = [](const GradientModule& m) -> Result<std::vector<ConstTensor>> {
    MSRT_ASSIGN_OR_RETURN(const auto session, SessionOf(m.module));
    return RunSession(*session, m.inputs);
  };
  const auto expected = results(*closed), got = results(*open);
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  ASSERT_TRUE(got.ok()) << got.status().message();
  for (size_t i = 0; i < expected->size(); ++i) {
    ASSERT_EQ((*got)[i].dims, (*expected)[i].dims) << "output " << i;
    const Values a = DoublesOf((*got)[i]), b = DoublesOf((*expected)[i]);
    for (size_t e = 0; e < a.size(); ++e) {
      if (!std::isfinite(b[e])) continue;
      ASSERT_NEAR(a[e], b[e], 1e-9 * std::max(1.0, std::abs(b[e]))) << "output " << i;
    }
  }
}

std::vector<size_t> RowsWithGradient() {
  std::vector<size_t> rows;
  for (size_t i = 0; i < AllOpCases().size(); ++i) {
    if (HasGradient(FindOp(AllOpCases()[i].domain, AllOpCases()[i].op))) rows.push_back(i);
  }
  return rows;
}

INSTANTIATE_TEST_SUITE_P(All, GradientCases, ::testing::ValuesIn(RowsWithGradient()),
                         [](const auto& row) { return AllOpCases()[row.param].name; });

TEST(StopGradient, IsAConstantOfDifferentiation) {
  Module module;
  module.graphs.resize(1);
  module.entries = {0};
  Graph& graph = module.graphs[0];
  graph.name = "main";
  const ValueId x = graph.AddInput("x", Type::Tensor(DType::kF64, {2}));
  GraphBuilder builder(&graph);
  const auto stopped = builder.Add("msrt", "StopGradient", "stopped", {x}, {}, 1);
  ASSERT_TRUE(stopped.ok()) << stopped.status().message();
  const auto product = builder.Add("Mul", "product", {x, (*stopped)[0]});
  ASSERT_TRUE(product.ok()) << product.status().message();
  graph.outputs = {*product};
  ASSERT_TRUE(Validate(&module).ok());
  const auto gradients = AddGradients(&module, 0, {{*product}, {}, {x}});
  ASSERT_TRUE(gradients.ok()) << gradients.status().message();
  graph.outputs = *gradients;
  const auto results = RunModule(module, {Doubles({2}, {3, -5})}, {"reference"});
  ASSERT_TRUE(results.ok()) << results.status().message();
  EXPECT_EQ(DoublesOf((*results)[0]), (Values{3, -5}));  // without it, twice as much
}

// Runs after the rows, whose counts it reads, unless a filter left some out.
class EveryGradientIsChecked : public ::testing::Environment {
  void TearDown() override {
    if (GTEST_FLAG_GET(filter) != "*") return;
    ForEachOp([&](const OpDef& def) {
      if (!HasGradient(&def) || def.grad == GradZero) return;
      EXPECT_GT(CheckedDirections()[&def], 0) << def.name << " has no row that checks its gradient";
    });
  }
};
const auto* const kCoverage =
    ::testing::AddGlobalTestEnvironment(new EveryGradientIsChecked);

}  // namespace
}  // namespace msrt::testing
