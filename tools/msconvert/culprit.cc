#include "tools/msconvert/culprit.h"

#include <algorithm>

#include "delegates/builtin.h"
#include "tools/msconvert/onnx/importer.h"
#include "tools/msconvert/onnx/probe.h"

namespace msrt {
namespace {

constexpr size_t kTensorsAtOnce =
    128;  // that are made outputs when the first difference is looked for: bounds the memory

class CulpritFinder {
 public:
  CulpritFinder(const VerifyRequest& request, const VerifyRun& run,
                const OriginalRuntime& reference, const std::vector<ConstTensor>& wanted,
                const std::vector<Tolerance>& tolerances)
      : request_(request),
        run_(run),
        reference_(reference),
        wanted_(wanted),
        tolerances_(tolerances) {}

  Result<std::string> Find() {
    MSRT_ASSIGN_OR_RETURN(onnx_import::ImportResult imported,
                          onnx_import::ImportFile(request_.original_path,
                                                  {.shapes = request_.shapes,
                                                   .keep_unknown = true,
                                                   .progress = {},
                                                   .evaluator = &BuiltinEvaluator()},
                                                  DefaultIo()));
    MSRT_RETURN_IF_ERROR(FindFirstTensor(imported.module));
    if (culprit_.empty()) MSRT_RETURN_IF_ERROR(FindFirstPass(imported.module));
    if (culprit_.empty())
      culprit_ =
          "every tensor agrees when it is looked at: the difference comes and goes with the passes "
          "that run";
    return culprit_;
  }

 private:
  struct Probe {
    ValueId value;
    std::string name, node, op;
  };

  // Returns the tensors that both sides know by the same name, in the order of computation.
  Result<std::vector<Probe>> Probes(const Graph& graph) const {
    MSRT_ASSIGN_OR_RETURN(const auto known,
                          onnx_import::NodeOutputs(request_.original_path, DefaultIo()));
    std::vector<Probe> probes;
    for (const Node& node : graph.nodes) {
      for (ValueId v : node.outputs) {
        if (v != kNoValue && graph.value(v).type.is_tensor() &&
            known.count(graph.value(v).name) != 0) {
          probes.push_back({v, graph.value(v).name, node.name, OpName(node)});
        }
      }
    }
    return probes;
  }

  Status FindFirstTensor(const Module& module) {
    MSRT_ASSIGN_OR_RETURN(const std::vector<Probe> probes, Probes(module.main()));
    for (size_t begin = 0; begin < probes.size(); begin += kTensorsAtOnce) {
      const size_t end = std::min(begin + kTensorsAtOnce, probes.size());
      Module asked = module;
      asked.main().outputs.clear();
      std::vector<std::string> names, added;
      for (size_t i = begin; i < end; ++i) {
        asked.main().outputs.push_back(probes[i].value);
        names.push_back(probes[i].name);
        const auto& outputs = module.main().outputs;
        if (std::find(outputs.begin(), outputs.end(), probes[i].value) == outputs.end())
          added.push_back(probes[i].name);
      }
      MSRT_ASSIGN_OR_RETURN(const std::vector<ConstTensor> wanted,
                            reference_.Run(names, onnx_import::MoreOutputs(added)));
      const std::vector<Tolerance> tolerances =
          request_.tolerance ? tolerances_ : DefaultTolerances(asked);
      MSRT_ASSIGN_OR_RETURN(const std::vector<OutputDifference> differences,
                            run_.DifferencesOf(std::move(asked), {"all"}, wanted, tolerances));
      const auto first = std::find_if(differences.begin(), differences.end(),
                                      [](const auto& d) { return !d.Agrees(); });
      if (first == differences.end()) continue;
      const Probe& probe = probes[begin + static_cast<size_t>(first - differences.begin())];
      culprit_ = StrCat(
          "the first tensor that differs is '", probe.name, "', made by node '", probe.node, "' (",
          probe.op,
          "): ", first->mismatch.empty() ? DeviationText(*first->difference) : first->mismatch);
      // A sum in another order may round to the neighbouring step.
      if (probe.op.find("QuantizeLinear") != std::string::npos && first->difference->largest <= 1) {
        culprit_ +=
            ", one step of a quantised tensor, which rounding may cross: a larger --tolerance lets "
            "it pass";
      }
      return OkStatus();
    }
    return OkStatus();
  }

  // The graph as it was imported agrees, so a pass causes the difference: enables the passes one
  // after the other.
  Status FindFirstPass(const Module& module) {
    std::vector<std::string> off;
    for (const PassInfo& pass : AllPasses()) off.emplace_back(pass.name);
    const auto agrees = [&]() -> Result<bool> {
      MSRT_ASSIGN_OR_RETURN(const std::vector<OutputDifference> differences,
                            run_.DifferencesOf(module, off, wanted_, tolerances_));
      return Agree(differences);
    };
    std::string blamed;
    MSRT_ASSIGN_OR_RETURN(bool agree, agrees());
    for (const PassInfo& pass : AllPasses()) {
      if (!agree) break;
      std::erase(off, pass.name);
      blamed = pass.name;
      MSRT_ASSIGN_OR_RETURN(agree, agrees());
    }
    if (agree || blamed.empty()) return OkStatus();
    culprit_ = StrCat("all tensors agree in the graph as it was imported; pass ", blamed,
                      " is the first with which the outputs do not: ", "msrun --disable ", blamed,
                      " and disabled_passes in msrt_model_config leave it out");
    return OkStatus();
  }

  const VerifyRequest& request_;
  const VerifyRun& run_;
  const OriginalRuntime& reference_;
  const std::vector<ConstTensor>& wanted_;
  const std::vector<Tolerance>& tolerances_;
  std::string culprit_;
};

}  // namespace

Result<std::string> FindCulprit(const VerifyRequest& request, const VerifyRun& run,
                                const OriginalRuntime& reference,
                                const std::vector<ConstTensor>& wanted,
                                const std::vector<Tolerance>& tolerances) {
  return CulpritFinder(request, run, reference, wanted, tolerances).Find();
}

}  // namespace msrt
