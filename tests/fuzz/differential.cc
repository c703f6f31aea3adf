// Random graphs, each computed in every way of this build, against reference with all passes off.
//   differential                    200 graphs
//   differential GRAPHS [SEED]      that many, from this seed on
// The seed of a finding reproduces it: differential 1 SEED. Prints how often each op occurred, and
// the ops that never did; exits with 1 if there was a finding.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "core/base/clock.h"
#include "ops/registry.h"
#include "tests/conformance/load_accelerator.h"
#include "tests/conformance/pipeline.h"
#include "tests/fuzz/conditioning.h"
#include "tests/fuzz/random_graph.h"

namespace msrt::testing {
namespace {

constexpr int kNoisyRuns = 4, kMoreNoisyRuns = 40;

// One way to compute a graph.
struct Setup {
  std::string name;
  std::vector<std::string> delegates, disabled_passes;
  bool open_dims = false;  // inputs of unknown dims, bound to the same sizes

  bool reference_only() const { return delegates == std::vector<std::string>{"reference"}; }
  bool passes() const { return disabled_passes != std::vector<std::string>{"all"}; }
};

// Lists all setups; new delegates and passes are included automatically.
std::vector<Setup> Setups() {
  std::vector<Setup> setups = {{"reference", {"reference"}, {}, false},
                               {"reference, open dims, no passes", {"reference"}, {"all"}, true}};
  for (const std::string& name : DelegateNames()) {
    if (name == "reference") continue;
    setups.push_back({name + ", no passes", {name, "reference"}, {"all"}, false});
    setups.push_back({name, {name, "reference"}, {}, false});
  }
  // The emulated device, which has its own kernels for chains of nodes: with reference only, and
  // with all delegates.
  setups.push_back({"accelerator, no passes", {"accelerator", "reference"}, {"all"}, false});
  setups.push_back({"accelerator", {"accelerator", "reference"}, {}, false});
  setups.push_back({"accelerator, open dims", {"accelerator", "reference"}, {}, true});
  setups.push_back({"all delegates", {}, {}, false});
  setups.push_back({"all built-in delegates, open dims", DelegateNames(), {}, true});
  for (const PassInfo& pass : AllPasses()) {
    setups.push_back(
        {StrCat("without ", pass.name), DelegateNames(), {std::string(pass.name)}, false});
  }
  return setups;
}

std::shared_ptr<const Environment> EverythingAndADevice() {
  auto environment = TestEnvironment();
  environment->delegates.push_back(LoadAccelerator(StrCat(kFastDevice, ",delay_us=5")));
  return environment;
}

// Makes every dim of every input unknown, and leaves all other types to inference.
Module OpenDims(Module module) {
  Graph& graph = module.graphs[0];
  for (ValueId v : graph.inputs) {
    for (int64_t& d : graph.value(v).type.dims) d = kUnknownDim;
  }
  for (const Node& node : graph.nodes) {
    for (ValueId v : node.outputs) graph.value(v).type = UndeclaredType();
  }
  return module;
}

// Returns, for each output, whether any value that it depends on had a NaN.
std::vector<bool> DescendsFromNan(const RandomGraph& random) {
  Module probe = random.module;
  Graph& graph = probe.graphs[0];
  const size_t outputs = graph.outputs.size();
  for (const Node& node : graph.nodes)
    graph.outputs.insert(graph.outputs.end(), node.outputs.begin(), node.outputs.end());
  const auto values = RunModule(probe, random.inputs, {"reference"}, {"all"});
  std::vector<bool> tainted(graph.value_count());
  if (values.ok()) {
    for (size_t i = outputs; i < graph.outputs.size(); ++i) {
      const std::vector<double> numbers =
          IsFloat((*values)[i].dtype) ? NumbersOf((*values)[i]) : std::vector<double>();
      tainted[IndexOf(graph.outputs[i])] =
          std::any_of(numbers.begin(), numbers.end(), [](double v) { return std::isnan(v); });
    }
  }
  for (const Node& node : graph.nodes) {
    const bool reads = std::any_of(node.inputs.begin(), node.inputs.end(),
                                   [&](ValueId v) { return v != kNoValue && tainted[IndexOf(v)]; });
    for (ValueId v : node.outputs) tainted[IndexOf(v)] = tainted[IndexOf(v)] || reads;
  }
  std::vector<bool> result;
  for (size_t i = 0; i < outputs; ++i) result.push_back(tainted[IndexOf(graph.outputs[i])]);
  return result;
}

class Campaign {
 public:
  void Try(uint64_t seed);
  int Report(double seconds) const;

 private:
  // Adds samples with noise. Those that fail (noise moved an index) are ignored.
  void Sample(const RandomGraph& random, uint64_t seed, int from, int to,
              std::vector<Tolerance>* tolerances) const;
  // Results that depend on a NaN are compared on reference only: oneDNN's activations turn NaNs
  // into numbers.
  void Compare(uint64_t seed, const RandomGraph& random, const Setup& setup,
               const std::vector<bool>& from_nan, std::vector<Tolerance>* tolerances);
  void Finding(uint64_t seed, const RandomGraph& random, const std::string& what);

  const std::vector<Setup> setups_ = Setups();
  const std::shared_ptr<const Environment> environment_ = EverythingAndADevice();
  std::map<std::string, int> ops_;
  std::map<DType, int> types_;
  int64_t graphs_ = 0, failed_alike_ = 0, runs_ = 0, findings_ = 0;
  size_t elements_ = 0;
};

void Campaign::Finding(uint64_t seed, const RandomGraph& random, const std::string& what) {
  ++findings_;
  std::printf("FINDING, seed %llu: %s\n%s\n", static_cast<unsigned long long>(seed), what.c_str(),
              Print(random.module).c_str());
}

void Campaign::Sample(const RandomGraph& random, uint64_t seed, int from, int to,
                      std::vector<Tolerance>* tolerances) const {
  for (int i = from; i < to; ++i) {
    const auto noisy = RunModule(WithNoise(random.module, seed * 1000 + static_cast<uint64_t>(i)),
                                 random.inputs, {"reference"}, {"all"});
    if (!noisy.ok()) continue;
    for (size_t o = 0; o < noisy->size(); ++o) (*tolerances)[o].AddNoisy((*noisy)[o]);
  }
}

void Campaign::Compare(uint64_t seed, const RandomGraph& random, const Setup& setup,
                       const std::vector<bool>& from_nan, std::vector<Tolerance>* tolerances) {
  const Module module = setup.open_dims ? OpenDims(random.module) : random.module;
  const auto got =
      RunModuleIn(environment_, module, random.inputs, setup.delegates, setup.disabled_passes);
  ++runs_;
  if (const std::string misuse = NewMisuses(); !misuse.empty())
    return Finding(seed, random, StrCat(setup.name, ": ", misuse));
  if (!got.ok()) return Finding(seed, random, StrCat(setup.name, ": ", got.status().message()));
  for (size_t o = 0; o < got->size(); ++o) {
    if ((from_nan[o] && !setup.reference_only()) || (*tolerances)[o].Difference((*got)[o]).empty())
      continue;
    // A few samples may have missed an edge; many more rarely do.
    Sample(random, seed, kNoisyRuns, kMoreNoisyRuns, tolerances);
    const std::string difference = (*tolerances)[o].Difference((*got)[o]);
    if (!difference.empty())
      return Finding(seed, random, StrCat(setup.name, ": output ", o, " ", difference));
  }
}

void Campaign::Try(uint64_t seed) {
  const RandomGraph random = MakeRandomGraph(seed);
  ++graphs_;
  for (const Node& node : random.module.main().nodes) {
    ++ops_[OpName(node)];
    for (ValueId v : node.inputs) {
      if (v != kNoValue) ++types_[random.module.main().value(v).type.dtype];
    }
  }
  const auto expected = RunModule(random.module, random.inputs, {"reference"}, {"all"});
  if (!expected.ok()) {
    // An error in the data must occur in all setups, unless a pass removed the unused node.
    ++failed_alike_;
    for (const Setup& setup : setups_) {
      if (setup.passes()) continue;
      const Module module = setup.open_dims ? OpenDims(random.module) : random.module;
      const auto got =
          RunModuleIn(environment_, module, random.inputs, setup.delegates, setup.disabled_passes);
      if (got.ok())
        Finding(seed, random,
                StrCat(setup.name, ": runs, but reference says ", expected.status().message()));
    }
    return;
  }
  std::vector<Tolerance> tolerances(expected->begin(), expected->end());
  Sample(random, seed, 0, kNoisyRuns, &tolerances);
  const std::vector<bool> from_nan = DescendsFromNan(random);
  for (const Setup& setup : setups_) Compare(seed, random, setup, from_nan, &tolerances);
  for (const Tolerance& t : tolerances) elements_ += t.compared();
}

int Campaign::Report(double seconds) const {
  std::string missing;
  size_t met = 0, known = 0;
  ForEachOp([&](const OpDef& def) {
    ++known;
    const std::string name =
        def.domain.empty() ? std::string(def.name) : StrCat(def.domain, ".", def.name);
    if (ops_.contains(name)) ++met;
    else StrAppend(&missing, " ", name);
  });
  std::printf(
      "%lld graphs in %.1f s, %.1f a second; %lld runs in %zu setups, %zu elements compared each; "
      "%lld graphs failed alike\n",
      static_cast<long long>(graphs_), seconds, static_cast<double>(graphs_) / seconds,
      static_cast<long long>(runs_), setups_.size(), elements_,
      static_cast<long long>(failed_alike_));
  std::printf("ops met: %zu of %zu%s%s; element types met: %zu of %d; findings: %lld\n", met, known,
              missing.empty() ? "" : ", not met:", missing.c_str(), types_.size(), kDTypeCount - 1,
              static_cast<long long>(findings_));
  return findings_ == 0 ? 0 : 1;
}

}  // namespace
}  // namespace msrt::testing

int main(int argc, char** argv) {
  const long long graphs = argc > 1 ? std::atoll(argv[1]) : 200;
  const unsigned long long seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  msrt::testing::Campaign campaign;
  const msrt::StopWatch watch;
  for (unsigned long long s = seed; s < seed + static_cast<unsigned long long>(graphs); ++s)
    campaign.Try(s);
  return campaign.Report(watch.Millis() / 1000);
}
