// Gradients of random modules with control flow, in double, against finite differences along random
// directions; with all passes and with none.
//   flow_gradients                    60 modules
//   flow_gradients MODULES [SEED]     that many, from this seed on
// The seed of a finding reproduces it: flow_gradients 1 SEED. Exits with 1 if there was a finding.
// Modules whose functions cannot be resolved are refused; they are counted.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "core/autodiff/gradients.h"
#include "core/autodiff/prepare.h"
#include "ops/builder.h"
#include "ops/validate.h"
#include "tests/conformance/pipeline.h"
#include "tests/fuzz/random_flow.h"

namespace msrt::testing {
namespace {

bool IsDouble(const Graph& graph, ValueId v) {
  const Type& type = graph.value(v).type;
  return type.is_tensor() && type.dtype == DType::kF64;
}

// Outputs: those of the module, then the gradients of the sum of the float ones.
Result<std::vector<size_t>> Differentiate(Module* module) {
  MSRT_RETURN_IF_ERROR(Validate(module));
  MSRT_RETURN_IF_ERROR(PrepareForGradients(module));
  GradientRequest request;
  std::vector<size_t> varied;
  for (ValueId v : module->main().outputs) {
    if (IsDouble(module->main(), v)) request.of.push_back(v);
  }
  for (size_t i = 0; i < module->main().inputs.size(); ++i) {
    if (!IsDouble(module->main(), module->main().inputs[i])) continue;
    varied.push_back(i);
    request.with_respect_to.push_back(module->main().inputs[i]);
  }
  MSRT_ASSIGN_OR_RETURN(const std::vector<ValueId> gradients,
                        AddGradients(module, module->entries[0], request));
  for (size_t i = 0; i < gradients.size(); ++i) {
    MSRT_ASSIGN_OR_RETURN(
        const ValueId named,
        GraphBuilder(&module->main()).Add("Identity", StrCat("gradient", i), {gradients[i]}));
    module->main().outputs.push_back(named);
  }
  MSRT_RETURN_IF_ERROR(Validate(module));
  return varied;
}

class Campaign {
 public:
  void Try(uint64_t seed) {
    RandomFlow flow = MakeRandomFlow(seed, FlowKind::kSmooth);
    outputs_ = flow.module.main().outputs.size();
    inputs_ = flow.inputs;
    random_.seed(seed);
    auto varied = Differentiate(&flow.module);
    if (!varied.ok()) {
      const bool function = varied.status().message().find("calls a function") != std::string::npos;
      if (varied.status().code() == Code::kUnsupported && function) ++refused_;
      else Finding(seed, flow.module, varied.status().message());
      return;
    }
    varied_ = *std::move(varied);
    std::vector<std::vector<double>> gradients[2];
    for (bool passes : {false, true}) {
      CompileOptions options;
      options.place.delegates = {"reference"};
      options.passes = {.disabled = {}, .validate = true};
      if (!passes) options.passes.disabled = {"all"};
      auto model = CompileModule(TestEnvironment(), flow.module, options);
      if (!model.ok()) return Finding(seed, flow.module, model.status().message());
      auto session = Session::Create(*std::move(model), 0, {});
      if (!session.ok()) return Finding(seed, flow.module, session.status().message());
      const auto point = At(session->get(), {}, 0);
      if (!point.ok()) return Finding(seed, flow.module, point.status().message());
      gradients[passes] = point->gradients;
      if (passes) {
        for (int round = 0; round < 3; ++round) CheckDirection(seed, flow.module, session->get());
      }
    }
    for (size_t i = 0; i < varied_.size(); ++i) {
      for (size_t k = 0; k < gradients[0][i].size(); ++k) {
        const double a = gradients[0][i][k], b = gradients[1][i][k];
        if (std::abs(a - b) <= 1e-9 * std::max(1.0, std::abs(a))) continue;
        return Finding(
            seed, flow.module,
            StrCat("passes change the gradient of input ", varied_[i], " from ", a, " to ", b));
      }
    }
    ++checked_;
  }

  int Report(int64_t modules) const {
    std::printf(
        "%lld modules: %d checked along %d directions (%d with a gradient that is not zero, %d too "
        "steep), %d refused for functions, %d findings\n",
        static_cast<long long>(modules), checked_, directions_, nonzero_, steep_, refused_,
        findings_);
    const bool enough = checked_ > 0 && nonzero_ > 0;
    return findings_ == 0 && enough ? 0 : 1;
  }

 private:
  struct Point {
    double value = 0;
    std::vector<std::vector<double>> gradients;  // by varied input
  };
  using Direction = std::vector<std::vector<double>>;

  Result<Point> At(Session* session, const Direction& direction, double step) {
    std::vector<ConstTensor> inputs = inputs_;
    for (size_t i = 0; i < direction.size(); ++i) {
      ConstTensor& moved = inputs[varied_[i]];
      std::vector<double> values(moved.As<double>().begin(), moved.As<double>().end());
      for (size_t k = 0; k < values.size(); ++k) values[k] += step * direction[i][k];
      moved = ConstTensor::Of<double>(DType::kF64, moved.dims, values);
    }
    MSRT_ASSIGN_OR_RETURN(const std::vector<ConstTensor> results, RunSession(*session, inputs));
    Point point;
    for (size_t o = 0; o < results.size(); ++o) {
      if (results[o].dtype != DType::kF64) continue;
      const std::span<const double> numbers = results[o].As<double>();
      if (o >= outputs_) point.gradients.emplace_back(numbers.begin(), numbers.end());
      else
        for (double number : numbers) point.value += number;
    }
    return point;
  }

  void CheckDirection(uint64_t seed, const Module& module, Session* session) {
    std::uniform_real_distribution<double> uniform(-1, 1);
    Direction direction;
    for (size_t i : varied_) {
      direction.emplace_back(static_cast<size_t>(inputs_[i].dims.elements()));
      for (double& d : direction.back()) d = uniform(random_);
    }
    const auto at = At(session, {}, 0);
    if (!at.ok()) return Finding(seed, module, at.status().message());
    double got = 0;
    for (size_t i = 0; i < direction.size(); ++i) {
      for (size_t k = 0; k < direction[i].size(); ++k) got += at->gradients[i][k] * direction[i][k];
    }
    const auto estimate = [&](double h) {
      double sum = 0;
      for (const auto& [factor, steps] : {std::pair{8, 1}, {-8, -1}, {-1, 2}, {1, -2}}) {
        const auto point = At(session, direction, steps * h);
        sum += point.ok() ? factor * point->value : std::nan("");
      }
      return sum / (12 * h);
    };
    const double fine = estimate(1e-4), coarse = estimate(2e-4);
    const double scale = std::max({1.0, std::abs(fine), std::abs(got)});
    ++directions_;
    nonzero_ += got != 0;
    if (std::abs(fine - coarse) > 1e-6 * scale) ++steep_;
    else if (!(std::abs(got - fine) <= 1e-7 * scale))
      Finding(seed, module, StrCat("the derivative is ", fine, ", the gradient gives ", got));
  }

  void Finding(uint64_t seed, const Module& module, std::string_view what) {
    ++findings_;
    std::printf("FINDING, seed %llu: %s\n", static_cast<unsigned long long>(seed),
                std::string(what).c_str());
    if (findings_ == 1) std::printf("%s\n", Print(module).c_str());
  }

  std::vector<ConstTensor> inputs_;
  std::vector<size_t> varied_;  // inputs that are differentiated
  size_t outputs_ = 0;          // before the gradients
  std::mt19937_64 random_;
  int findings_ = 0, checked_ = 0, refused_ = 0, directions_ = 0, nonzero_ = 0, steep_ = 0;
};

int Main(int argc, char** argv) {
  const int64_t modules = argc > 1 ? std::atoll(argv[1]) : 60;
  const uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  Campaign campaign;
  for (int64_t i = 0; i < modules; ++i) campaign.Try(first + static_cast<uint64_t>(i));
  return campaign.Report(modules);
}

}  // namespace
}  // namespace msrt::testing

int main(int argc, char** argv) { return msrt::testing::Main(argc, argv); }
