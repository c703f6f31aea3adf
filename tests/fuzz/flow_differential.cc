// Random modules with control flow, compiled with all passes that change it, with each left out in
// turn, and without passes: every output and every state must have the same bits, in the first and
// the second run of a session.
//   flow_differential                    300 modules
//   flow_differential MODULES [SEED]     that many, from this seed on
// The seed of a finding reproduces it: flow_differential 1 SEED. Exits with 1 if there was a
// finding.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/conformance/op_case.h"
#include "tests/conformance/pipeline.h"
#include "tests/fuzz/random_flow.h"

namespace msrt::testing {
namespace {

// Passes that round differently from the nodes that they replace.
constexpr std::string_view kRounding[] = {
    "fold_batchnorm", "recognize_norms", "recognize_activations", "recognize_attention",
    "fold_pad",       "fold_scale",      "fuse_epilogue"};

struct Way {
  std::string name;
  std::vector<std::string> disabled;
  bool bitwise = true;
};

std::vector<Way> Ways() {
  const std::vector<std::string> rounding(std::begin(kRounding), std::end(kRounding));
  std::vector<Way> ways = {{"all that do not round", rounding, true}, {"all passes", {}, false}};
  for (const PassInfo& pass : AllPasses()) {
    if (std::find(std::begin(kRounding), std::end(kRounding), pass.name) != std::end(kRounding))
      continue;
    Way& way = ways.emplace_back(Way{StrCat("without ", pass.name), rounding, true});
    way.disabled.emplace_back(pass.name);
  }
  return ways;
}

struct Computed {
  std::vector<ConstTensor> values;  // outputs and states of the first run, then of the second
  size_t nodes = 0, control = 0;    // after all passes
};

Result<Computed> Compute(const RandomFlow& flow, const std::vector<std::string>& disabled) {
  CompileOptions options;
  options.place.delegates = {"reference"};
  options.passes = {.disabled = disabled, .validate = true};
  MSRT_ASSIGN_OR_RETURN(auto model, CompileModule(TestEnvironment(), flow.module, options));
  for (const PassReport& pass : model->passes) {
    if (pass.name.ends_with(kUndone))
      return InternalError("what a pass made was not valid: ", pass.name);
  }
  Computed computed;
  for (const Graph& graph : model->module.graphs) {
    computed.nodes += graph.nodes.size();
    computed.control += static_cast<size_t>(
        std::count_if(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
          return node.def != nullptr && node.def->effect == Effect::kControl;
        }));
  }
  MSRT_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(std::move(model), 0, {}));
  for (int run = 0; run < 2; ++run) {
    MSRT_ASSIGN_OR_RETURN(std::vector<ConstTensor> outputs, RunSession(*session, flow.inputs));
    computed.values.insert(computed.values.end(), outputs.begin(), outputs.end());
    for (size_t i = 0; i < flow.module.states.size(); ++i) {
      MSRT_ASSIGN_OR_RETURN(const TensorView state, session->State(i));
      computed.values.push_back(
          ConstTensor::Copy(state.dtype, state.dims,
                            {state.As<std::byte>(), BytesOf(state.dtype, state.elements())}));
    }
  }
  return computed;
}

std::string DifferenceOf(const Computed& got, const Computed& want, bool bitwise) {
  for (size_t i = 0; i < want.values.size(); ++i) {
    const ConstTensor &x = got.values[i], &y = want.values[i];
    if (bitwise) {
      const bool same = x.type() == y.type() &&
                        std::equal(x.bytes.begin(), x.bytes.end(), y.bytes.begin(), y.bytes.end());
      if (!same) return StrCat("value ", i, " has other bits");
    } else if (const std::string difference = Difference(x, y, 1e-5, 1e-5); !difference.empty()) {
      return StrCat("value ", i, ": ", difference);
    }
  }
  return "";
}

class Campaign {
 public:
  void Try(uint64_t seed) {
    const RandomFlow flow = MakeRandomFlow(seed);
    const auto want = Compute(flow, {"all"});
    if (!want.ok()) return Finding(seed, flow, StrCat("no passes: ", want.status().message()));
    nodes_before_ += want->nodes;
    control_before_ += want->control;
    for (const Way& way : ways_) {
      const auto got = Compute(flow, way.disabled);
      ++runs_;
      if (!got.ok()) return Finding(seed, flow, StrCat(way.name, ": ", got.status().message()));
      const std::string difference = DifferenceOf(*got, *want, way.bitwise);
      if (!difference.empty()) return Finding(seed, flow, StrCat(way.name, ": ", difference));
      if (&way != ways_.data()) continue;
      nodes_after_ += got->nodes;
      control_after_ += got->control;
    }
  }

  int Report(int64_t modules) const {
    std::printf(
        "%lld modules, each in %zu ways: %d findings; %zu nodes before, %zu of them control flow; "
        "%zu and %zu after\n",
        static_cast<long long>(modules), ways_.size(), findings_, nodes_before_, control_before_,
        nodes_after_, control_after_);
    return findings_ == 0 ? 0 : 1;
  }

 private:
  void Finding(uint64_t seed, const RandomFlow& flow, const std::string& what) {
    ++findings_;
    std::printf("FINDING, seed %llu: %s\n", static_cast<unsigned long long>(seed), what.c_str());
    if (findings_ == 1) std::printf("%s\n", Print(flow.module).c_str());
  }

  const std::vector<Way> ways_ = Ways();
  int findings_ = 0;
  size_t runs_ = 0, nodes_before_ = 0, control_before_ = 0, nodes_after_ = 0, control_after_ = 0;
};

int Main(int argc, char** argv) {
  const int64_t modules = argc > 1 ? std::atoll(argv[1]) : 300;
  const uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  Campaign campaign;
  for (int64_t i = 0; i < modules; ++i) campaign.Try(first + static_cast<uint64_t>(i));
  return campaign.Report(modules);
}

}  // namespace
}  // namespace msrt::testing

int main(int argc, char** argv) { return msrt::testing::Main(argc, argv); }
