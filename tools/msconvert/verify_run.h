// Steps that several parts of a verification need: runs a model on given inputs and compares its
// outputs.
#pragma once

#include "core/run/session.h"
#include "tools/msconvert/verify.h"

namespace msrt {

class VerifyRun {
 public:
  VerifyRun(std::shared_ptr<const Environment> environment, const std::vector<NamedTensor>& inputs)
      : environment_(std::move(environment)), inputs_(inputs) {}

  Result<std::shared_ptr<const CompiledModel>> Compile(
      Module module, std::vector<std::string> disabled_passes) const {
    return CompileModule(environment_, std::move(module), Options(std::move(disabled_passes)));
  }
  Result<std::shared_ptr<const CompiledModel>> CompileFileAt(const std::string& path) const {
    return CompileFile(environment_, path, Options({}));
  }
  // Returns a session that has run once.
  Result<std::unique_ptr<Session>> Run(const std::shared_ptr<const CompiledModel>& model) const;
  // Returns the difference of every output. `tolerances` may be shorter than `wanted`: the last one
  // counts for the rest.
  static Result<std::vector<OutputDifference>> Differences(
      const Session& session, const std::vector<ConstTensor>& wanted,
      const std::vector<Tolerance>& tolerances);
  // Compiles, runs and compares.
  Result<std::vector<OutputDifference>> DifferencesOf(
      Module module, std::vector<std::string> disabled_passes,
      const std::vector<ConstTensor>& wanted, const std::vector<Tolerance>& tolerances) const;

 private:
  CompileOptions Options(std::vector<std::string> disabled_passes) const;
  const std::shared_ptr<const Environment> environment_;
  const std::vector<NamedTensor>& inputs_;
};

bool Agree(const std::vector<OutputDifference>& all);
// "largest difference 0.1 = 0.01 of the range".
std::string DeviationText(const Deviation& deviation);

}  // namespace msrt
