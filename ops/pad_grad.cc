// Gradient of Pad.
#include "ops/grad_positions.h"
#include "ops/gradients.h"
#include "ops/infer.h"

namespace msrt {
namespace {

// The opposite Pad: what was added is cut off, what was cut off is zero.
ValueId Unpadded(GradBuilder& g) {
  AttrList attrs = g.op().attrs();
  attrs.Remove("value");
  std::vector<ValueId> inputs = {g.grad()};
  if (g.op().Has("pads")) {
    std::vector<int64_t> pads;
    for (int64_t p : g.op().Ints("pads")) pads.push_back(-p);
    attrs.Set("pads", std::move(pads));
  }
  if (g.has_input(1) || g.has_input(3)) {
    inputs.push_back(g.has_input(1) ? g.Negative(g.input(1)) : kNoValue);
    inputs.push_back(kNoValue);
    inputs.push_back(g.input(3));
  }
  return g.Add("Pad", std::move(inputs), std::move(attrs));
}

}  // namespace

Status GradPad(GradBuilder& g) {
  if (g.op().String("mode") != "constant") {
    const ValueId positions = g.Add(
        "Pad", {PositionsOf(g, g.input(0)), g.input(1), kNoValue, g.input(3)}, g.op().attrs());
    g.Set(0, SumAtPositions(g, g.grad(), positions, g.input(0)));
    return OkStatus();
  }
  const ValueId inner = Unpadded(g);
  g.Set(0, inner);
  if (!g.wants(2)) return OkStatus();
  const auto sum = [&](ValueId v) { return g.Add("ReduceSum", {v}, {{"keepdims", int64_t{0}}}); };
  g.Set(2, g.ReshapeTo(g.Minus(sum(g.grad()), sum(inner)), g.input(2)));
  return OkStatus();
}

}  // namespace msrt
