#include "delegates/onednn/post_ops.h"

namespace msrt::onednn {

std::optional<Eltwise> FindEltwise(std::string_view name, double alpha, double beta) {
  using Kind = dnnl::algorithm;
  const auto a = static_cast<float>(alpha), b = static_cast<float>(beta);
  if (name == "Relu") return Eltwise{Kind::eltwise_relu};
  if (name == "LeakyRelu") return Eltwise{Kind::eltwise_relu, a};
  if (name == "Sigmoid") return Eltwise{Kind::eltwise_logistic};
  if (name == "Tanh") return Eltwise{Kind::eltwise_tanh};
  if (name == "HardSigmoid") return Eltwise{Kind::eltwise_hardsigmoid, a, b};
  if (name == "HardSwish") return Eltwise{Kind::eltwise_hardswish, 1.0f / 6, 0.5f};
  if (name == "Clip") return Eltwise{Kind::eltwise_clip, a, b};
  if (name == "Gelu") return Eltwise{Kind::eltwise_gelu_erf};
  if (name == "GeluTanh") return Eltwise{Kind::eltwise_gelu_tanh};
  if (name == "Elu") return Eltwise{Kind::eltwise_elu, a};
  if (name == "Swish") return Eltwise{Kind::eltwise_swish, a};
  if (name == "Mish") return Eltwise{Kind::eltwise_mish};
  if (name == "Softplus") return Eltwise{Kind::eltwise_soft_relu, 1.0f};
  if (name == "Exp") return Eltwise{Kind::eltwise_exp};
  if (name == "Log") return Eltwise{Kind::eltwise_log};
  if (name == "Abs") return Eltwise{Kind::eltwise_abs};
  if (name == "Sqrt") return Eltwise{Kind::eltwise_sqrt};
  if (name == "Neg") return Eltwise{Kind::eltwise_linear, -1.0f};
  if (name == "Round") return Eltwise{Kind::eltwise_round};
  return std::nullopt;
}

std::string ActivationRefusal(const OpView& op) {
  const std::string_view name = op.String("activation");
  if (name == "Clip" && op.Float("activation_alpha") > op.Float("activation_beta"))
    return "a Clip whose least value is above its largest";
  if (name.empty() || FindEltwise(name, 0, 0)) return {};
  return StrCat("activation ", name);
}

void PostOps::Add(Place place, const memory::desc& desc) {
  arguments_.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(ops_.len()) | DNNL_ARG_SRC_1, place, desc});
  ops_.append_binary(dnnl::algorithm::binary_add, desc);
}

void PostOps::Activation(const OpView& op) {
  const std::string_view name = op.String("activation");
  if (name.empty()) return;
  const auto eltwise = FindEltwise(name, op.Float("activation_alpha"), op.Float("activation_beta"));
  MSRT_CHECK(eltwise.has_value());  // Query refuses the others
  ops_.append_eltwise(eltwise->algorithm, eltwise->alpha, eltwise->beta);
}

}  // namespace msrt::onednn
