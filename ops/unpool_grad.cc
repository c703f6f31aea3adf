// Gradients of MaxUnpool and Col2Im.
#include "ops/grad_positions.h"
#include "ops/gradients.h"
#include "ops/infer.h"
#include "ops/window.h"

namespace msrt {

// Each input is written to one element of the output; of those written to the same one, the last
// counts.
Status GradMaxUnpool(GradBuilder& g) {
  const ValueId x = g.input(0), y = g.output(0);
  const ValueId flat = g.Ints({-1});
  ValueId targets = g.input(1);
  if (g.op().Has("unpooled_shape") || g.has_input(2)) {
    // Indices refer to the image that was pooled, which is the first corner of the output.
    if (!g.type(x).concrete())
      return Unsupported("the dims of the input are not known, and unpooled_shape is given");
    MSRT_ASSIGN_OR_RETURN(const Windows windows,
                          TransposedWindowsOf(g.op(), g.type(x).dims, g.op().Ints("kernel_shape")));
    ValueId places = PositionsOf(g, y);
    for (int i = 0; i < windows.rank; ++i)
      places = PartOf(g, places, 2 + i, 0, windows.axis[static_cast<size_t>(i)].out);
    targets = g.Add("Gather", {g.Add("Reshape", {places, flat}), targets});
  }
  const ValueId order = PositionsOf(g, x), tuples = WithAxes(g, targets, {-1});
  const ValueId written =
      g.Add("ScatterND", {g.Add("Reshape", {PositionsOf(g, y), flat}), tuples, order});
  const ValueId counts = g.Add("Equal", {g.Add("Gather", {written, targets}), order});
  const ValueId read = g.Add("Gather", {g.Add("Reshape", {g.grad(), flat}), targets});
  g.Set(0, g.Add("Where", {counts, read, g.Scalar(0, x)}));
  return OkStatus();
}

// Blocks are taken out of the image by a convolution: each of its outputs is one element of the
// block.
Status GradCol2Im(GradBuilder& g) {
  const auto block = IntsAttrOrInput(g.op(), "block_shape", 2);
  const Type image = g.type(g.output(0));
  if (!block || !image.rank_known)
    return Unsupported("image_shape and block_shape are not known; make them constants");
  int64_t elements = 1;
  for (int64_t e : *block) elements *= e;
  DimList planes(g), kernel(g);
  planes.Add(-1).Add(1).Add(g.output(0), 2, image.rank());
  kernel.Add(elements).Add(1);
  for (int64_t e : *block) kernel.Add(e);
  const ValueId square = ZerosOfDims(g, DimList(g).Add(elements).Add(elements), g.input(0));
  const ValueId taps = ReshapeToDims(g, g.Add("EyeLike", {square}), kernel);
  AttrList attrs = {{"kernel_shape", *block}};
  for (const char* name : {"strides", "pads", "dilations"}) {
    if (const AttrValue* value = g.op().attrs().Find(name)) attrs.Set(name, *value);
  }
  const ValueId blocks =
      g.Add("Conv", {g.Add("Reshape", {g.grad(), planes.list()}), taps}, std::move(attrs));
  g.Set(0, g.ReshapeTo(blocks, g.input(0)));
  return OkStatus();
}

}  // namespace msrt
