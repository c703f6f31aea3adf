#include "delegates/sdk/rounded.h"

#include <algorithm>
#include <iterator>

namespace msrt::sdk {
namespace {

// Ops of the default domain.
constexpr std::string_view kRoundedOps[] = {
    // One operation for each element.
    "Abs", "Add", "Cast", "Ceil", "Clip", "Div", "Floor", "Max", "Min", "Mul", "Neg", "Reciprocal",
    "Relu", "Round", "Sign", "Sqrt", "Sub",
    // Their definitions state the rounding of the quotient.
    "DequantizeLinear", "QuantizeLinear",
    // Comparisons and logic.
    "And", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Equal", "Greater",
    "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual", "Not", "Or", "Xor",
    // Elements that move.
    "Concat", "DepthToSpace", "Expand", "Gather", "GatherElements", "GatherND", "Identity",
    "MaxPool", "Pad", "Slice", "SpaceToDepth", "Split", "Tile", "Transpose", "Trilu", "Where",
    // Sums of integers.
    "ConvInteger", "MatMulInteger"};

}  // namespace

bool IsRounded(const OpView& op) {
  return op.domain().empty() && std::find(std::begin(kRoundedOps), std::end(kRoundedOps),
                                          op.op()) != std::end(kRoundedOps);
}

}  // namespace msrt::sdk
