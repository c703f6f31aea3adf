#include "delegates/cpu/chains.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "core/abi/msrt_plugin.h"
#include "core/base/checked_math.h"
#include "delegates/cpu/rule.h"

namespace msrt::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

bool IsBound(const Activation& a) {
  return !a.function || *a.function == Unary::kRelu || *a.function == Unary::kClip;
}

}  // namespace

ChainPart PartOf(const std::vector<ChainRun>& chain, Interval rows, bool first,
                 std::vector<ChainRun>* part) {
  part->clear();
  if (chain.empty()) return {first, first};
  for (const ChainRun& run : chain) {
    const int64_t begin = std::max(run.w_row, rows.begin),
                  end = std::min(run.w_row + run.count, rows.end);
    if (begin < end) part->push_back({run.x_offset + begin - run.w_row, begin, end - begin});
  }
  if (part->empty()) return {false, false};
  return {chain.front().w_row >= rows.begin, chain.back().w_row + chain.back().count <= rows.end};
}

ChainFinish::ChainFinish(const OpView& op) : low(-kInfinity), high(kInfinity) {
  const Activation activation = ActivationOf(op);
  if (!IsBound(activation)) {
    function = activation;
  } else if (activation.function) {
    const bool clip = *activation.function == Unary::kClip;
    low = clip ? activation.alpha : 0;
    high = clip ? activation.beta : kInfinity;
  }
}

void ChainFinish::Apply(float* y, int64_t rows, int64_t step, int64_t columns) const {
  for (int64_t i = 0; function.function && i < rows; ++i) function.Apply(y + i * step, columns);
}

bool RoundsOnce(const OpView& op) {
  const Activation activation = ActivationOf(op);
  return IsBound(activation) || *activation.function == Unary::kLeakyRelu;
}

std::string ChainArithmetic(const OpView& op) {
  return RoundsOnce(op) ? MSRT_ARITHMETIC_FMA : StrCat(ArithmeticOfLoops(), " fma");
}

double ChainEfficiency(int64_t terms, int64_t columns) {
  // Without an instruction for it, a fused multiply-add is computed in double.
  const double peak = std::string_view(LoopsHere().name) == "baseline" ? 0.01 : 0.6;
  const int64_t lanes = LoopsHere().chain_panel / 2;
  const double used = static_cast<double>(std::max<int64_t>(columns, 1)) /
                      static_cast<double>(CeilDiv(std::max<int64_t>(columns, 1), lanes) * lanes);
  constexpr double kTermsToFinish = 32;  // the time that a chain's begin and end take
  const auto length = static_cast<double>(std::max<int64_t>(terms, 1));
  return peak * used * length / (length + kTermsToFinish);
}

double ChainSeconds(const sdk::NodeInfo& node, double efficiency) {
  constexpr double kSetupSeconds = 2e-6;
  return kSetupSeconds +
         PassSeconds(node, static_cast<double>(node.typical->output(0).elements()),
                     ActivationNanoseconds(*node.op), node.bytes) +
         node.flops / (node.machine.flops_per_second * efficiency);
}

}  // namespace msrt::cpu
