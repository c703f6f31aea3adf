#include "delegates/cuda/rule.h"

#include <algorithm>

#include "core/abi/msrt_plugin.h"
#include "delegates/sdk/rounded.h"

namespace msrt::cuda {

double PassSeconds(const GpuProperties& gpu, double bytes, double flops) {
  constexpr double kLaunch = 3e-6;
  // Simple kernels reach four fifths of the memory's rate and half of the arithmetic's.
  return kLaunch + std::max(bytes / (0.8 * gpu.bytes_per_second), flops / (0.5 * gpu.PlainFlops()));
}

Candidate PlainCandidate(const NodeInfo& node, double seconds, std::string_view algorithm) {
  Candidate c;
  c.input_layouts.assign(node.op->input_count(), Layout::kPlain);
  c.output_layouts.assign(node.op->output_count(), Layout::kPlain);
  c.seconds = seconds;
  c.algorithm = algorithm;
  return c;
}

std::string ArithmeticOf(const OpView& op) {
  return sdk::IsRounded(op) ? MSRT_ARITHMETIC_ROUNDED : kArithmetic;
}

bool IsElementType(DType type) { return (kNumberTypes | kBoolType).Has(type); }

std::string TypeRefusal(const OpView& op, std::span<const size_t> inputs) {
  for (size_t i : inputs) {
    if (op.has_input(i) && !IsElementType(op.input(i).dtype))
      return StrCat("elements of type ", op.input(i).dtype);
  }
  return {};
}

std::optional<std::vector<int64_t>> IntsOf(const OpView& op, std::string_view attr, size_t input) {
  if (op.Has(attr)) return std::vector<int64_t>(op.Ints(attr).begin(), op.Ints(attr).end());
  if (!op.has_input(input)) return std::vector<int64_t>();
  return op.constant(input) == nullptr ? std::nullopt
                                       : std::optional(IntValues(*op.constant(input)));
}

}  // namespace msrt::cuda
