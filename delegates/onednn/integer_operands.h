// Products of bytes: which input is which, and what the library is told about scales and zero
// points. MatMulInteger and ConvInteger return the sums; msrt.QuantizedMatMul and
// msrt.QuantizedConv scale them, add to them and may quantise them again
// (ops/quantized_product.cc). The library multiplies by s8 only, so B of u8 becomes s8 by a shift,
// and its zero point with it.
#pragma once

#include <optional>
#include <vector>

#include "delegates/onednn/plan.h"
#include "delegates/onednn/recipe.h"
#include "delegates/onednn/weights.h"

namespace msrt::onednn {

struct IntegerInputs {
  static constexpr size_t kNone = SIZE_MAX;
  size_t a, b, a_zero, b_zero;
  size_t a_scale = kNone, b_scale = kNone, y_scale = kNone, y_zero = kNone, bias = kNone,
         residual = kNone;
};
const IntegerInputs& IntegerInputsOf(const OpView& op);

// Times what the machine does in f32 that products of bytes run at.
inline constexpr double kByteSpeedup = 3.7;

// Why a node cannot run at its typical shapes; empty if it can.
std::string IntegerRefusal(const NodeInfo& node);

// B's zero point after the shift: a number where it is known before the run, nullopt where the run
// brings it. Unsupported where columns or channels have different ones.
Result<std::optional<int32_t>> WeightZero(const OpView& op);

// Tells `attr` which scales and zero points there are. A list of scales for B runs along the dims
// in `list_mask`. Unsupported for lists where the library has none.
Status SetScalesAndZeros(const OpView& op, int list_mask, dnnl::primitive_attr* attr);
// The arguments that belong to them; zero points are made 32 bits wide by the plan.
void AppendScalesAndZeros(const OpView& op, Plan* plan, std::vector<Argument>* arguments);

// Where a primitive finds weights of s8 that are no constant and come as u8 or s8 in the form
// `plain`.
Place PlaceBytes(const OpView& op, size_t input, Plan* plan);

// Names what the library may keep beside packed weights.
std::string PackedVariant(const OpView& op);

}  // namespace msrt::onednn
