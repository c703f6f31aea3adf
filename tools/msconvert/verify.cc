#include "tools/msconvert/verify.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/model/load.h"
#include "tools/msconvert/verify_inputs.h"
#include "tools/msconvert/verify_run.h"
#if defined(MSRT_HAVE_ONNX)
#include "tools/msconvert/culprit.h"
#endif

namespace msrt {
namespace {

// Returns how many elements of all outputs are NaN.
Result<size_t> CountNan(const Session& session) {
  size_t count = 0;
  for (size_t i = 0; i < session.graph().outputs.size(); ++i) {
    if (!session.graph().value(session.graph().outputs[i]).type.is_tensor()) continue;
    MSRT_ASSIGN_OR_RETURN(const TensorView out, session.Output(i));
    MSRT_ASSIGN_OR_RETURN(const Deviation same, Compare(out, out));
    count += same.both_nan;
  }
  return count;
}

class Verifier {
 public:
  explicit Verifier(const VerifyRequest& request) : request_(request) {}

  Result<VerifyReport> Run() {
    MSRT_ASSIGN_OR_RETURN(written_, LoadFile(DefaultIo(), request_.msrt_path));
    tolerances_ = DefaultTolerances(written_);
    if (request_.tolerance) {
      for (Tolerance& t : tolerances_)
        t = {.relative = *request_.tolerance, .depends_on_data = t.depends_on_data};
    }
    MSRT_RETURN_IF_ERROR(FindInputs());
    MSRT_RETURN_IF_ERROR(FindWanted());
    report_.inputs = inputs_.Text();
    const VerifyRun run(request_.environment, inputs_.tensors);
    MSRT_ASSIGN_OR_RETURN(std::vector<OutputDifference> differences, Compare(run));
    if (request_.before_weights != nullptr) {
      report_.with_weights = std::move(differences);
      MSRT_ASSIGN_OR_RETURN(differences,
                            run.DifferencesOf(*request_.before_weights, {}, wanted_, tolerances_));
    }
    report_.outputs = std::move(differences);
    if (!Agree(report_.outputs)) MSRT_RETURN_IF_ERROR(CompareWithOptimised(run));
    if (!Agree(report_.outputs)) MSRT_RETURN_IF_ERROR(FindReason(run));
    else FindVacuous();
    report_.agrees = report_.problem.empty();
    return std::move(report_);
  }

 private:
  // Adds the cure to an error that other inputs may avoid.
  Status WithCure(Status status) const {
    const std::string cure = inputs_.Cure();
    if (cure.empty() || status.code() == Code::kNotFound || status.code() == Code::kUnsupported)
      return status;
    return MakeStatus(status.code(), status.message(), "; ", cure);
  }

  Result<std::vector<OutputDifference>> Compare(const VerifyRun& run) {
    MSRT_RETURN_IF_ERROR(CompileWritten(run));
    auto session = run.Run(model_);
    if (!session.ok()) return WithCure(std::move(session).status().Within("the converted model"));
    auto differences = VerifyRun::Differences(**session, wanted_, tolerances_);
    if (!differences.ok()) return std::move(differences).status();
    session_ = *std::move(session);
    return differences;
  }

  Status CompileWritten(const VerifyRun& run) {
    if (model_ != nullptr) return OkStatus();
    auto model = run.CompileFileAt(request_.msrt_path);  // for the sizes of the inputs
    if (!model.ok()) return WithCure(std::move(model).status().Within("the converted model"));
    model_ = *std::move(model);
    return OkStatus();
  }

  // It is not known whether 0 or 1 hides a position, and a sequence that is hidden as a whole
  // results in NaN: tries mask patterns until the model computes numbers.
  Status FindInputs() {
    if (request_.runtime == nullptr) {
      MSRT_ASSIGN_OR_RETURN(inputs_, ReadInputs(request_, written_));
      return OkStatus();
    }
    size_t fewest = SIZE_MAX;
    for (const MaskPattern masks : kMaskPatterns) {
      MSRT_ASSIGN_OR_RETURN(VerifyInputs made, MakeInputs(request_, written_, masks));
      if (inputs_.tensors.empty()) inputs_ = made;
      if (!made.masks) return OkStatus();
      const VerifyRun run(request_.environment, made.tensors);
      MSRT_RETURN_IF_ERROR(CompileWritten(run));
      const auto session = run.Run(model_);
      size_t nan = SIZE_MAX - 1;  // a failed run is worse than any number of NaNs
      if (session.ok()) {
        MSRT_ASSIGN_OR_RETURN(nan, CountNan(**session));
      }
      if (nan < fewest) {
        fewest = nan;
        inputs_ = std::move(made);
      }
      if (nan == 0) break;
    }
    return OkStatus();
  }

  Status FindWanted() {
    const Graph& graph = written_.main();
    if (request_.runtime == nullptr) {
      for (size_t i = 0; i < graph.outputs.size(); ++i) {
        const DType declared = graph.value(graph.outputs[i]).type.dtype;
        MSRT_ASSIGN_OR_RETURN(ConstTensor tensor,
                              ReadTensor(StrCat(request_.folder, "/output_", i), declared));
        wanted_.push_back(std::move(tensor));
      }
      report_.reference = request_.folder;
      return OkStatus();
    }
    MSRT_ASSIGN_OR_RETURN(
        OriginalRuntime original,
        OriginalRuntime::Make(*request_.runtime, request_.original_path, inputs_.tensors));
    original_.emplace(std::move(original));
    auto wanted = original_->Run(OutputNames());
    if (!wanted.ok()) return WithCure(std::move(wanted).status());
    wanted_ = *std::move(wanted);
    report_.reference = request_.runtime->name;
    return OkStatus();
  }

  // ONNX Runtime computes some models less exactly, by other kernels, without its own optimisations
  // than with them. A model that agrees with either agrees with ONNX Runtime.
  Status CompareWithOptimised(const VerifyRun& run) {
    if (request_.runtime != &OnnxRuntimeKind()) return OkStatus();
    MSRT_ASSIGN_OR_RETURN(const std::vector<ConstTensor> optimised,
                          original_->Run(OutputNames(), {}, true));
    MSRT_ASSIGN_OR_RETURN(
        std::vector<OutputDifference> differences,
        request_.before_weights == nullptr
            ? VerifyRun::Differences(*session_, optimised, tolerances_)
            : run.DifferencesOf(*request_.before_weights, {}, optimised, tolerances_));
    if (!Agree(differences)) return OkStatus();
    double apart = 0;
    for (size_t i = 0; i < wanted_.size(); ++i) {
      const auto deviation = wanted_[i].dtype == DType::kNone
                                 ? Result<Deviation>(Deviation{})
                                 : msrt::Compare(ViewOf(wanted_[i]), ViewOf(optimised[i]));
      if (deviation.ok()) apart = std::max(apart, deviation->relative);
    }
    StrAppend(&report_.warnings, "ONNX Runtime's results with and without its optimisations are ",
              apart, " of an output's range apart; the file agrees with the former\n");
    report_.outputs = std::move(differences);
    return OkStatus();
  }

  std::vector<std::string> OutputNames() const {
    std::vector<std::string> names;
    for (ValueId v : written_.main().outputs) names.push_back(written_.main().value(v).name);
    return names;
  }

  Status FindReason(const VerifyRun& run) {
    const auto worst = std::find_if(report_.outputs.begin(), report_.outputs.end(),
                                    [](const auto& o) { return !o.Agrees(); });
    report_.problem = StrCat("output '", worst->name, "' differs from the reference by more than ",
                             worst->tolerance.relative, " of its range; ");
#if defined(MSRT_HAVE_ONNX)
    if (request_.runtime == &OnnxRuntimeKind()) {
      MSRT_ASSIGN_OR_RETURN(const std::string culprit,
                            FindCulprit(request_, run, *original_, wanted_, tolerances_));
      report_.problem += culprit;
      return OkStatus();
    }
#endif
    (void)run;
    report_.problem +=
        "which tensor differs first can be told only by ONNX Runtime, of an ONNX model";
    return OkStatus();
  }

  // Returns whether the numbers of an output change with the inputs.
  bool Varies(size_t output) const {
    const auto differs_with = [&](const VerifyInputs& others) {
      const auto session = VerifyRun(request_.environment, others.tensors).Run(model_);
      if (!session.ok()) return false;
      const auto now = (*session)->Output(output), before = session_->Output(output);
      if (!now.ok() || !before.ok()) return false;
      const auto deviation = msrt::Compare(*now, *before);
      return !deviation.ok() || deviation->largest > 0;
    };
    if (differs_with(Reversed(inputs_))) return true;
    for (const MaskPattern masks : kMaskPatterns) {
      VerifyRequest request = request_;
      request.inputs.clear();
      for (const auto& [name, tensor] : inputs_.tensors) request.sizes[name] = tensor.dims;
      const auto made = MakeInputs(request, written_, masks, 1);
      if (made.ok() && differs_with(*made)) return true;
      if (!made.ok() || !made->masks) break;
    }
    return false;
  }

  // Returns why the comparison of an output is vacuous; empty if it is not.
  std::string VacuousBecause(size_t i) {
    const OutputDifference& o = report_.outputs[i];
    if (!o.difference) return "";
    const Deviation& d = *o.difference;
    if (d.elements == 0) return "is empty";
    if (d.both_nan == d.elements) return "is NaN in both";
    const bool may_be_constant = d.elements == 1 || !d.one_value || !o.tolerance.depends_on_data;
    return may_be_constant || Varies(i) ? "" : "is one number, whatever the inputs are";
  }

  // Fails the verification if the comparison of an output could not have failed.
  void FindVacuous() {
    size_t compared = 0;
    for (size_t i = 0; i < report_.outputs.size(); ++i) {
      const OutputDifference& o = report_.outputs[i];
      if (!o.difference) {
        StrAppend(&report_.warnings, "output '", o.name, "' was not compared: ", report_.reference,
                  " returns no tensor of a type that NumPy has\n");
        continue;
      }
      ++compared;
      if (const std::string why = VacuousBecause(i); !why.empty()) {
        report_.problem = StrCat("nothing was compared: output '", o.name, "' ", o.type, " ", why,
                                 "; ", CureForVacuous());
        return;
      }
      if (o.difference->both_nan > 0) {
        StrAppend(&report_.warnings, "output '", o.name, "' has ", o.difference->both_nan, " of ",
                  o.difference->elements, " elements that are NaN in both\n");
      }
    }
    if (compared == 0)
      report_.problem = StrCat("nothing was compared: no output is a tensor that ",
                               report_.reference, " returns");
  }

  std::string CureForVacuous() const {
    if (request_.runtime == nullptr)
      return StrCat("put inputs that the model has results for into ", request_.folder);
    const std::string cure = inputs_.Cure();
    return cure.empty() ? "give inputs that the model has results for with --input" : cure;
  }

  const VerifyRequest& request_;
  Module written_;
  std::vector<Tolerance> tolerances_;
  VerifyInputs inputs_;
  std::optional<OriginalRuntime> original_;
  std::shared_ptr<const CompiledModel> model_;  // of the file
  std::unique_ptr<Session> session_;            // that ran the model
  std::vector<ConstTensor> wanted_;
  VerifyReport report_;
};

std::string Lines(const std::vector<OutputDifference>& outputs) {
  std::string text;
  for (const OutputDifference& o : outputs) {
    StrAppend(&text, "    ", o.name, " ", o.type, ": ");
    if (!o.difference) {
      text += "the reference gives nothing to compare with\n";
      continue;
    }
    if (!o.mismatch.empty()) {
      StrAppend(&text, o.mismatch, "\n");
      continue;
    }
    char allowed[64] = "";
    if (o.tolerance.relative > 0)
      std::snprintf(allowed, sizeof allowed, ", allowed %.3g", o.tolerance.relative);
    StrAppend(&text, DeviationText(*o.difference), std::string_view(allowed), "\n");
  }
  return text;
}

nlohmann::json JsonOf(const std::vector<OutputDifference>& outputs) {
  nlohmann::json list = nlohmann::json::array();
  for (const OutputDifference& o : outputs) {
    nlohmann::json item = {{"name", o.name},
                           {"type", StrCat(o.type)},
                           {"tolerance", o.tolerance.relative},
                           {"absolute_tolerance", o.tolerance.absolute}};
    if (o.difference) {
      item["largest_difference"] = o.difference->largest;
      item["of_range"] = o.difference->relative;
      item["nan_in_both"] = o.difference->both_nan;
    }
    list.push_back(std::move(item));
  }
  return list;
}

}  // namespace

std::string VerifyReport::Text() const {
  std::string text = StrCat("verify     against ", reference, ", ", inputs, "\n", Lines(outputs));
  if (!with_weights.empty())
    StrAppend(&text, "verify     with the weights as they are stored\n", Lines(with_weights));
  return text;
}

std::string VerifyReport::Json() const {
  const nlohmann::json all = {{"reference", reference},     {"inputs", inputs},
                              {"agrees", agrees},           {"problem", problem},
                              {"outputs", JsonOf(outputs)}, {"with_weights", JsonOf(with_weights)}};
  return all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<VerifyReport> Verify(const VerifyRequest& request) { return Verifier(request).Run(); }

}  // namespace msrt
