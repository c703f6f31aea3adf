#include "tools/msconvert/verify.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "core/compile.h"
#include "core/run/session.h"
#include "delegates/builtin.h"
#include "tools/msconvert/onnx/importer.h"
#include "tools/msconvert/onnx/probe.h"
#include "tools/msconvert/onnx_runtime.h"
#include "tools/tensors/made_input.h"
#include "tools/tensors/npy.h"

namespace msrt {
namespace {

constexpr std::string_view kOnnxRuntime = "onnxruntime";
constexpr size_t kTensorsAtOnce = 128;  // that are made outputs when the first difference is looked for: bounds the memory

std::shared_ptr<const Environment> MakeEnvironment() {
  auto environment = std::make_shared<Environment>();
  environment->parallel = MakeDefaultParallel(AvailableCores());
  environment->delegates = BuiltinDelegates();
  environment->evaluator = &BuiltinEvaluator();
  return environment;
}

Result<ConstTensor> ReadTensor(const std::string& stem) {
  if (std::filesystem::exists(stem + ".npy")) return ReadNpy(stem + ".npy");
  if (std::filesystem::exists(stem + ".pb")) return onnx_import::ReadTensorFile(stem + ".pb", DefaultIo());
  return NotFound("there is neither ", stem, ".npy nor ", stem, ".pb");
}

// NumPy has no bf16 and fewer bits: such a file holds the bits as integers, and the model says what they are.
ConstTensor MeantAs(ConstTensor tensor, DType declared) {
  const bool bits = tensor.dtype == DType::kU16 || tensor.dtype == DType::kU8;
  if (bits && declared != DType::kNone && BitsOf(declared) == BitsOf(tensor.dtype)) tensor.dtype = declared;
  return tensor;
}

std::string InWords(const Deviation& d) {
  char text[96];
  std::snprintf(text, sizeof text, "largest difference %.3g = %.3g of the range", d.largest, d.relative);
  return text;
}

class Verifier {
 public:
  explicit Verifier(const VerifyRequest& request) : request_(request), environment_(MakeEnvironment()) {}

  Result<VerifyReport> Run() {
    MSRT_ASSIGN_OR_RETURN(const Module written, LoadFile(DefaultIo(), request_.msrt_path));
    MSRT_RETURN_IF_ERROR(request_.against == kOnnxRuntime ? MakeReference(written.main()) : ReadReference(written.main()));
    report_.tolerance = request_.tolerance;
    auto file = CompileFile(environment_, request_.msrt_path, Options({}));
    if (!file.ok()) return std::move(file).status();
    MSRT_ASSIGN_OR_RETURN(std::vector<OutputDifference> differences, Differences(*file, wanted_));
    if (request_.before_weights != nullptr) {
      report_.with_weights = std::move(differences);
      MSRT_ASSIGN_OR_RETURN(differences, DifferencesOf(*request_.before_weights, {}, wanted_));
    }
    report_.outputs = std::move(differences);
    report_.agrees = Agree(report_.outputs);
    if (!report_.agrees) MSRT_RETURN_IF_ERROR(FindCulprit());
    return std::move(report_);
  }

 private:
  Status MakeReference(const Graph& graph) {
    std::mt19937_64 random(0);
    for (ValueId v : graph.inputs) {
      const Value& input = graph.value(v);
      if (!input.type.is_tensor()) return Unsupported("input '", input.name, "' is no tensor; verify with --verify=FOLDER");
      MSRT_ASSIGN_OR_RETURN(const Dims dims, DimsFor(input, request_.shapes));
      MSRT_ASSIGN_OR_RETURN(ConstTensor tensor, RandomInput(graph, v, dims, random));
      inputs_.emplace_back(input.name, std::move(tensor));
    }
    MSRT_ASSIGN_OR_RETURN(OnnxRuntime reference, OnnxRuntime::Make(request_.onnx_path, inputs_));
    reference_.emplace(std::move(reference));
    std::vector<std::string> names;
    for (ValueId v : graph.outputs) names.push_back(graph.value(v).name);
    MSRT_ASSIGN_OR_RETURN(wanted_, reference_->Run(names));
    report_.reference = "ONNX Runtime";
    return OkStatus();
  }

  Status ReadReference(const Graph& graph) {
    const std::string& folder = request_.against;
    if (!std::filesystem::is_directory(folder)) {
      return NotFound("--verify=", folder, ": there is no such folder; onnxruntime and folders can be verified against");
    }
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      const Value& input = graph.value(graph.inputs[i]);
      MSRT_ASSIGN_OR_RETURN(ConstTensor tensor, ReadTensor(StrCat(folder, "/input_", i)));
      inputs_.emplace_back(input.name, MeantAs(std::move(tensor), input.type.dtype));
    }
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      MSRT_ASSIGN_OR_RETURN(ConstTensor tensor, ReadTensor(StrCat(folder, "/output_", i)));
      wanted_.push_back(MeantAs(std::move(tensor), graph.value(graph.outputs[i]).type.dtype));
    }
    report_.reference = folder;
    return OkStatus();
  }

  CompileOptions Options(std::vector<std::string> disabled) const {
    CompileOptions options;
    options.passes.disabled = std::move(disabled);
    for (const auto& [name, tensor] : inputs_) options.typical.emplace_back(name, tensor.dims);
    return options;
  }

  Result<std::vector<OutputDifference>> DifferencesOf(Module module, std::vector<std::string> disabled,
                                                      const std::vector<ConstTensor>& wanted) {
    auto model = CompileModule(environment_, std::move(module), Options(std::move(disabled)));
    if (!model.ok()) return std::move(model).status();
    return Differences(*model, wanted);
  }

  Result<std::vector<OutputDifference>> Differences(const std::shared_ptr<const CompiledModel>& model,
                                                    const std::vector<ConstTensor>& wanted) {
    MSRT_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(model, 0, {}));
    for (size_t i = 0; i < inputs_.size(); ++i) {
      MSRT_RETURN_IF_ERROR(session->SetInput(i, ViewOf(inputs_[i].second), inputs_[i].second.owner));
    }
    MSRT_RETURN_IF_ERROR(session->Run({}));
    std::vector<OutputDifference> differences;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const Value& value = session->graph().value(session->graph().outputs[i]);
      differences.push_back({value.name, value.type, std::nullopt});
      if (wanted[i].dtype == DType::kNone || !value.type.is_tensor()) continue;
      MSRT_ASSIGN_OR_RETURN(const TensorView got, session->Output(i));
      differences.back().type = Type::Tensor(got.dtype, got.dims);
      auto difference = Compare(got, ViewOf(wanted[i]));
      if (!difference.ok()) return std::move(difference).status().Within(StrCat("'", value.name, "'"));
      differences.back().difference = *difference;
    }
    return differences;
  }

  bool Agrees(const OutputDifference& d) const { return !d.difference || d.difference->relative <= request_.tolerance; }
  bool Agree(const std::vector<OutputDifference>& all) const {
    return std::all_of(all.begin(), all.end(), [&](const OutputDifference& d) { return Agrees(d); });
  }

  Status FindCulprit() {
    if (!reference_) {
      report_.culprit = "which tensor differs first cannot be told from files; --verify against ONNX Runtime tells it";
      return OkStatus();
    }
    MSRT_ASSIGN_OR_RETURN(
        onnx_import::Imported imported,
        onnx_import::ImportFile(request_.onnx_path,
                                {.shapes = request_.shapes, .keep_unknown = true, .progress = {}, .evaluator = &BuiltinEvaluator()},
                                DefaultIo()));
    MSRT_RETURN_IF_ERROR(FindFirstTensor(imported.module));
    if (report_.culprit.empty()) MSRT_RETURN_IF_ERROR(FindFirstPass(imported.module));
    if (report_.culprit.empty())
      report_.culprit = "every tensor agrees when it is looked at: the difference comes and goes with the passes that run";
    return OkStatus();
  }

  struct Probe {
    ValueId value;
    std::string name, node, op;
  };

  // What both sides know by the same name, in the order in which it is computed.
  Result<std::vector<Probe>> Probes(const Graph& graph) const {
    MSRT_ASSIGN_OR_RETURN(const auto known, onnx_import::NodeOutputs(request_.onnx_path, DefaultIo()));
    std::vector<Probe> probes;
    for (const Node& node : graph.nodes) {
      for (ValueId v : node.outputs) {
        if (v != kNoValue && graph.value(v).type.is_tensor() && known.count(graph.value(v).name) != 0) {
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
        if (std::find(outputs.begin(), outputs.end(), probes[i].value) == outputs.end()) added.push_back(probes[i].name);
      }
      MSRT_ASSIGN_OR_RETURN(const std::vector<ConstTensor> wanted, reference_->Run(names, onnx_import::MoreOutputs(added)));
      MSRT_ASSIGN_OR_RETURN(const std::vector<OutputDifference> differences, DifferencesOf(std::move(asked), {"all"}, wanted));
      const auto first = std::find_if(differences.begin(), differences.end(), [&](const auto& d) { return !Agrees(d); });
      if (first == differences.end()) continue;
      const Probe& probe = probes[begin + static_cast<size_t>(first - differences.begin())];
      report_.culprit = StrCat("the first tensor that differs is '", probe.name, "', made by node '", probe.node, "' (", probe.op,
                               "): ", InWords(*first->difference));
      // Sums in another order may fall on the other side of a step.
      if (probe.op.find("QuantizeLinear") != std::string::npos && first->difference->largest <= 1) {
        report_.culprit += ", one step of a quantised tensor, which rounding may cross: a larger --tolerance lets it pass";
      }
      return OkStatus();
    }
    return OkStatus();
  }

  // The graph as it was imported agrees, so one of the passes is to blame: they are let in one after the other.
  Status FindFirstPass(const Module& module) {
    std::vector<std::string> off;
    for (const PassInfo& pass : AllPasses()) off.emplace_back(pass.name);
    const auto agrees = [&]() -> Result<bool> {
      MSRT_ASSIGN_OR_RETURN(const std::vector<OutputDifference> differences, DifferencesOf(module, off, wanted_));
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
    report_.culprit = StrCat("all tensors agree in the graph as it was imported; pass ", blamed,
                             " is the first with which the outputs do not: ", "msrun --disable ", blamed,
                             " and disabled_passes in msrt_model_config leave it out");
    return OkStatus();
  }

  const VerifyRequest& request_;
  const std::shared_ptr<const Environment> environment_;
  std::vector<NamedTensor> inputs_;
  std::optional<OnnxRuntime> reference_;
  std::vector<ConstTensor> wanted_;
  VerifyReport report_;
};

std::string Lines(const std::vector<OutputDifference>& outputs) {
  std::string text;
  for (const OutputDifference& o : outputs) {
    StrAppend(&text, "    ", o.name, " ", o.type, ": ");
    char numbers[96];
    if (o.difference) {
      std::snprintf(numbers, sizeof numbers, "largest difference %.3g = %.3g of the range\n", o.difference->largest,
                    o.difference->relative);
      text += numbers;
    } else {
      text += "the reference gives nothing to compare with\n";
    }
  }
  return text;
}

nlohmann::json JsonOf(const std::vector<OutputDifference>& outputs) {
  nlohmann::json list = nlohmann::json::array();
  for (const OutputDifference& o : outputs) {
    nlohmann::json item = {{"name", o.name}, {"type", StrCat(o.type)}};
    if (o.difference) {
      item["largest_difference"] = o.difference->largest;
      item["of_range"] = o.difference->relative;
    }
    list.push_back(std::move(item));
  }
  return list;
}

}  // namespace

std::string VerifyReport::Text() const {
  std::string text = StrCat("verify     against ", reference, "\n", Lines(outputs));
  if (!with_weights.empty()) StrAppend(&text, "verify     with the weights as they are stored\n", Lines(with_weights));
  return text;
}

std::string VerifyReport::Json() const {
  const nlohmann::json all = {{"reference", reference}, {"tolerance", tolerance},     {"agrees", agrees},
                              {"culprit", culprit},     {"outputs", JsonOf(outputs)}, {"with_weights", JsonOf(with_weights)}};
  return all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<VerifyReport> Verify(const VerifyRequest& request) { return Verifier(request).Run(); }

}  // namespace msrt
