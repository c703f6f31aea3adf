#include "tests/conformance/pipeline.h"

#include "delegates/builtin.h"

namespace msrt::testing {

std::shared_ptr<Environment> TestEnvironment() {
  // One team for the whole program: thousands of cases must not each start threads.
  static const std::shared_ptr<ParallelFor> team = MakeDefaultParallel(2);
  auto env = std::make_shared<Environment>();
  env->parallel = team;
  // Small cases use all threads, like large models: they also test how kernels split their work.
  env->wake_threads_seconds = -1;
  env->delegates = BuiltinDelegates();
  env->evaluator = &BuiltinEvaluator();
  return env;
}

std::shared_ptr<Environment> UserEnvironment() {
  auto env = TestEnvironment();
  env->wake_threads_seconds = Environment().wake_threads_seconds;
  return env;
}

std::vector<std::string> DelegateNames() {
  std::vector<std::string> names;
  for (const auto& d : BuiltinDelegates()) names.emplace_back(d->name());
  return names;
}

Result<std::vector<ConstTensor>> RunSession(Session& session,
                                            const std::vector<ConstTensor>& inputs,
                                            const RunOptions& options) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorView view{inputs[i].dtype, inputs[i].dims, Layout::kPlain,
                          const_cast<std::byte*>(inputs[i].bytes.data())};
    MSRT_RETURN_IF_ERROR(session.SetInput(i, view, inputs[i].owner));
  }
  MSRT_RETURN_IF_ERROR(session.Run(options));
  std::vector<ConstTensor> outputs;
  for (size_t i = 0; i < session.graph().outputs.size(); ++i) {
    MSRT_ASSIGN_OR_RETURN(const TensorView out, session.Output(i));
    outputs.push_back(ConstTensor::Copy(out.dtype, out.dims,
                                        {out.As<std::byte>(), BytesOf(out.dtype, out.elements())}));
  }
  return outputs;
}

Result<std::vector<ConstTensor>> RunModule(const Module& module,
                                           const std::vector<ConstTensor>& inputs,
                                           std::vector<std::string> delegates,
                                           std::vector<std::string> disabled_passes) {
  return RunModuleIn(TestEnvironment(), module, inputs, std::move(delegates),
                     std::move(disabled_passes));
}

Result<std::vector<ConstTensor>> RunModuleIn(std::shared_ptr<const Environment> environment,
                                             const Module& module,
                                             const std::vector<ConstTensor>& inputs,
                                             std::vector<std::string> delegates,
                                             std::vector<std::string> disabled_passes) {
  CompileOptions options;
  options.place.delegates = std::move(delegates);
  options.place.strict = true;
  options.passes = {.disabled = std::move(disabled_passes), .validate = true};
  MSRT_ASSIGN_OR_RETURN(auto model, CompileModule(std::move(environment), module, options));
  MSRT_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(std::move(model), 0, {}));
  return RunSession(*session, inputs);
}

}  // namespace msrt::testing
