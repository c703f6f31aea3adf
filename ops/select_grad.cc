// Gradients of ops that select elements: TopK, Compress and Trilu.
#include "ops/grad_builder.h"
#include "ops/gradients.h"

namespace msrt {

// The gradient goes back to where the elements came from.
Status GradTopK(GradBuilder& g) {
  ValueId indices = g.output(1);
  if (indices == kNoValue) {
    std::vector<ValueId> inputs{g.input(0)};
    if (g.has_input(1)) inputs.push_back(g.input(1));
    indices = g.AddNode("", "TopK", std::move(inputs), g.op().attrs(), 2)[1];
  }
  g.Set(0, g.Add("ScatterElements", {g.Zeros(g.input(0)), indices, g.grad()},
                 {{"axis", g.op().Int("axis")}}));
  return OkStatus();
}

Status GradCompress(GradBuilder& g) {
  const auto list = [](int64_t n) { return std::vector<int64_t>{n}; };
  // The condition has rank 1, so NonZero has one row.
  const ValueId chosen = g.Add("Reshape", {g.Add("NonZero", {g.input(1)})}, {{"shape", list(-1)}});
  const ValueId zeros = g.Zeros(g.input(0));
  if (!g.op().Has("axis")) {
    const ValueId flat = g.Add("Reshape", {zeros}, {{"shape", list(-1)}});
    const ValueId scattered =
        g.Add("ScatterElements", {flat, chosen, g.grad()}, {{"axis", int64_t{0}}});
    g.Set(0, g.ReshapeTo(scattered, g.input(0)));
    return OkStatus();
  }
  const Type x = g.type(g.input(0));
  if (!x.rank_known) return Unsupported("the rank of the input is not known; declare it");
  const int64_t axis = g.op().Int("axis") + (g.op().Int("axis") < 0 ? x.rank() : 0);
  std::vector<int64_t> shape(x.dims.size(), 1);
  shape[static_cast<size_t>(axis)] = -1;
  const ValueId column = g.Add("Reshape", {chosen}, {{"shape", std::move(shape)}});
  const ValueId indices = g.Add("Expand", {column, g.Add("Shape", {g.grad()})});
  g.Set(0, g.Add("ScatterElements", {zeros, indices, g.grad()}, {{"axis", axis}}));
  return OkStatus();
}

Status GradTrilu(GradBuilder& g) {
  std::vector<ValueId> inputs{g.grad()};
  if (g.has_input(1)) inputs.push_back(g.input(1));
  g.Set(0, g.Add("Trilu", std::move(inputs), g.op().attrs()));
  return OkStatus();
}

}  // namespace msrt
