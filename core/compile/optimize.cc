#include "core/compile/optimize.h"

#include <algorithm>

#include "ops/validate.h"

namespace msrt {
namespace {

// Whether more nodes make tensors in bf16 than in any other float type. Weights do not count: bf16
// may be only their storage type.
bool ComputesInBf16(const Module& module) {
  int64_t bf16 = 0, others = 0;
  for (const Graph& graph : module.graphs) {
    for (const Node& node : graph.nodes) {
      for (ValueId v : node.outputs) {
        const DType dtype = v == kNoValue ? DType::kNone : graph.value(v).type.dtype;
        if (dtype == DType::kBF16) ++bf16;
        else if (IsFloat(dtype)) ++others;
      }
    }
  }
  return bf16 > others;
}

// Whether a delegate that the model may use declares this type, or an application registered a
// kernel for it and not for f32.
bool ComputesNatively(const Environment& env, const PlaceOptions& options, const Node& node,
                      DType dtype) {
  const std::vector<std::string>& allowed = options.delegates;
  const auto may_use = [&](std::string_view name) {
    return allowed.empty() || std::find(allowed.begin(), allowed.end(), name) != allowed.end();
  };
  const auto has_type = [](const RegisteredKernel& k, DType type) {
    return (k.desc.types >> static_cast<int>(type) & 1) != 0;
  };
  return std::any_of(
             env.delegates.begin(), env.delegates.end(),
             [&](const auto& d) { return d->ComputesNatively(dtype) && may_use(d->name()); }) ||
         std::any_of(env.kernels.begin(), env.kernels.end(), [&](const RegisteredKernel& k) {
           return k.op == node.op && k.domain == node.domain && has_type(k, dtype) &&
                  !has_type(k, DType::kF32);
         });
}

Result<std::vector<PassReport>> RunPassesOn(CompiledModel* model) {
  const Environment& env = *model->environment;
  const CompileOptions& options = model->options;
  PassContext context{.evaluator = env.evaluator,
                      .ops = env.ops.get(),
                      .added = env.passes,
                      .parallel = env.parallel.get(),
                      .exact = options.place.exact};
  context.computes_natively = [&](const Node& node, DType dtype) {
    return ComputesNatively(env, options.place, node, dtype);
  };
  context.forget = [&](const ConstTensor& constant) {
    MappedConstants{env.io, model->mapped}.Forget(constant);
  };
  return RunPasses(context, options.passes, &model->module);
}

}  // namespace

Status ValidateAndOptimize(CompiledModel* model) {
  const Environment& env = *model->environment;
  {
    ScopedTimer timer(&model->times.validate);
    MSRT_RETURN_IF_ERROR(Validate(&model->module, env.ops.get()));
  }
  PlaceOptions& place = model->options.place;
  place.reduced = place.reduced || (!place.exact && ComputesInBf16(model->module));
  ScopedTimer timer(&model->times.passes);
  MSRT_ASSIGN_OR_RETURN(model->passes, RunPassesOn(model));
  return OkStatus();
}

}  // namespace msrt
