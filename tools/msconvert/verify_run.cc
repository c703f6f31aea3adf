#include "tools/msconvert/verify_run.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace msrt {

CompileOptions VerifyRun::Options(std::vector<std::string> disabled_passes) const {
  CompileOptions options;
  options.passes.disabled = std::move(disabled_passes);
  for (const auto& [name, tensor] : inputs_) options.typical.emplace_back(name, tensor.dims);
  return options;
}

Result<std::unique_ptr<Session>> VerifyRun::Run(
    const std::shared_ptr<const CompiledModel>& model) const {
  MSRT_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(model, 0, {}));
  for (size_t i = 0; i < inputs_.size(); ++i) {
    MSRT_RETURN_IF_ERROR(session->SetInput(i, ViewOf(inputs_[i].second), inputs_[i].second.owner));
  }
  MSRT_RETURN_IF_ERROR(session->Run({}));
  return session;
}

Result<std::vector<OutputDifference>> VerifyRun::Differences(
    const Session& session, const std::vector<ConstTensor>& wanted,
    const std::vector<Tolerance>& tolerances) {
  std::vector<OutputDifference> differences;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const Value& value = session.graph().value(session.graph().outputs[i]);
    differences.push_back(
        {value.name, value.type, tolerances[std::min(i, tolerances.size() - 1)], std::nullopt, ""});
    if (wanted[i].dtype == DType::kNone || !value.type.is_tensor()) continue;
    MSRT_ASSIGN_OR_RETURN(const TensorView got, session.Output(i));
    differences.back().type = Type::Tensor(got.dtype, got.dims);
    auto difference = Compare(got, ViewOf(wanted[i]));
    if (!difference.ok()) differences.back().mismatch = difference.status().message();
    differences.back().difference =
        difference.ok() ? *difference : Deviation{.largest = INFINITY, .relative = INFINITY};
  }
  return differences;
}

Result<std::vector<OutputDifference>> VerifyRun::DifferencesOf(
    Module module, std::vector<std::string> disabled_passes, const std::vector<ConstTensor>& wanted,
    const std::vector<Tolerance>& tolerances) const {
  auto model = Compile(std::move(module), std::move(disabled_passes));
  if (!model.ok()) return std::move(model).status();
  MSRT_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Run(*model));
  return Differences(*session, wanted, tolerances);
}

bool Agree(const std::vector<OutputDifference>& all) {
  return std::all_of(all.begin(), all.end(), [](const OutputDifference& d) { return d.Agrees(); });
}

std::string DeviationText(const Deviation& deviation) {
  char text[96];
  std::snprintf(text, sizeof text, "largest difference %.3g = %.3g of the range", deviation.largest,
                deviation.relative);
  return text;
}

}  // namespace msrt
