// Gradient of RotaryEmbedding, by composition.
#include <limits>

#include "ops/grad_positions.h"
#include "ops/gradients.h"

namespace msrt {

// (a, b) -> (a cos - b sin, a sin + b cos).
Status GradRotaryEmbedding(GradBuilder& g) {
  const Type x = g.type(g.input(0));
  if (!x.rank_known) return Unsupported("the rank of input 0 is not known; declare it");
  const bool by_head = x.rank() == 4;  // [batch, heads, sequence, head]
  const int64_t heads = g.op().Int("num_heads");
  const ValueId all =
      by_head ? g.input(0) : g.Add("Reshape", {g.input(0), g.Ints({0, 0, heads, -1})});
  if (!g.ok()) return g.status();
  const int64_t head = g.type(all).dims[3];
  const int64_t turned =
      g.op().Int("rotary_embedding_dim") != 0 ? g.op().Int("rotary_embedding_dim") : head;
  if (!IsKnown(turned)) return Unsupported("the size of a head is not known; declare it");
  const int64_t pairs = turned / 2;
  // The angles of each token, the same for all heads.
  const auto angles = [&](size_t cache) {
    ValueId rows = PartOf(g, g.input(cache), -1, 0, pairs);
    if (g.has_input(3)) rows = g.Add("Gather", {rows, g.input(3)}, {{"axis", int64_t{0}}});
    return WithAxes(g, rows, {by_head ? 1 : 2});
  };
  const ValueId cosines = angles(1), sines = angles(2);
  const bool interleaved = g.op().Int("interleaved") != 0;
  const ValueId a = interleaved ? PartOf(g, all, 3, 0, turned, 2) : PartOf(g, all, 3, 0, pairs);
  const ValueId b =
      interleaved ? PartOf(g, all, 3, 1, turned, 2) : PartOf(g, all, 3, pairs, turned);
  const ValueId new_a = g.Minus(g.Times(a, cosines), g.Times(b, sines)),
                new_b = g.Plus(g.Times(a, sines), g.Times(b, cosines));
  ValueId y;
  if (interleaved) {
    y = g.Add("Reshape", {Joined(g, {WithAxes(g, new_a, {4}), WithAxes(g, new_b, {4})}, 4),
                          g.Ints({0, 0, 0, turned})});
  } else {
    y = Joined(g, {new_a, new_b}, 3);
  }
  if (turned != head)
    y = Joined(g, {y, PartOf(g, all, 3, turned, std::numeric_limits<int64_t>::max())}, 3);
  g.SetByComposition({by_head ? y : g.ReshapeTo(y, g.input(0))});
  return OkStatus();
}

}  // namespace msrt
