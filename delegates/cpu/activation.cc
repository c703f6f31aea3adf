#include "delegates/cpu/activation.h"

namespace msrt::cpu {
namespace {

struct Row {
  std::string_view name;
  UnaryTime time;
};
constexpr Row kRows[] = {
    {"Relu", {Unary::kRelu, 0.06}},      {"LeakyRelu", {Unary::kLeakyRelu, 0.06}},
    {"Sigmoid", {Unary::kSigmoid, 0.5}}, {"Tanh", {Unary::kTanh, 0.7}},
    {"Clip", {Unary::kClip, 0.07}},      {"HardSigmoid", {Unary::kHardSigmoid, 0.07}},
    {"Gelu", {Unary::kGelu, 0.9}},       {"HardSwish", {Unary::kHardSwish, 0.08}},
    {"Elu", {Unary::kElu, 0.5}},         {"GeluTanh", {Unary::kGeluTanh, 0.8}},
    {"Swish", {Unary::kSwish, 0.5}},     {"Mish", {Unary::kMish, 0.6}},
    {"Exp", {Unary::kExp, 0.4}},         {"Softplus", {Unary::kSoftplus, 0.8}},
    {"Log", {Unary::kLog, 0.6}},         {"Erf", {Unary::kErf, 0.8}},
    {"Abs", {Unary::kAbs, 0.06}},        {"Neg", {Unary::kNeg, 0.06}},
    {"Sqrt", {Unary::kSqrt, 0.2}},       {"Reciprocal", {Unary::kReciprocal, 0.2}},
    {"Round", {Unary::kRound, 0.07}},    {"Floor", {Unary::kFloor, 0.07}},
    {"Ceil", {Unary::kCeil, 0.07}},
};

std::string_view NameOf(const OpView& op) {
  return op.domain() == "msrt" ? op.String("activation") : std::string_view();
}

}  // namespace

std::optional<UnaryTime> FindUnary(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.time;
  }
  return std::nullopt;
}

Activation ActivationOf(const OpView& op) {
  const auto found = FindUnary(NameOf(op));
  if (!found) return {};
  return {found->function, static_cast<float>(op.Float("activation_alpha")),
          static_cast<float>(op.Float("activation_beta"))};
}

double ActivationNanoseconds(const OpView& op) {
  const auto found = FindUnary(NameOf(op));
  return found ? found->nanoseconds : 0;
}

}  // namespace msrt::cpu
