// RotaryEmbedding: rotates pairs of elements of each head by an angle that depends on the token's
// position.
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/infer.h"
#include "ops/output_space.h"

namespace msrt {
namespace {

// X is [batch, heads, sequence, head] or [batch, sequence, heads * head]. Returns the size of a
// head, unknown if the dims are.
Result<int64_t> HeadSize(const OpView& op) {
  const Dims& x = op.input(0).dims;
  if (x.rank() == 4) return x[3];
  const int64_t heads = op.Int("num_heads");
  if (heads == 0) return InvalidModel("num_heads is missing: an input of rank 3 needs it");
  if (!IsKnown(x[2])) return kUnknownDim;
  if (x[2] % heads != 0)
    return InvalidModel("the last dim of input 0, ", x,
                        ", must be a multiple of num_heads = ", heads);
  return x[2] / heads;
}

// Returns the number of pairs of a head that are rotated.
Result<int64_t> PairCount(const OpView& op) {
  MSRT_ASSIGN_OR_RETURN(const int64_t head, HeadSize(op));
  const int64_t turned =
      op.Int("rotary_embedding_dim") != 0 ? op.Int("rotary_embedding_dim") : head;
  if (!IsKnown(turned)) return kUnknownDim;
  if (turned % 2 != 0)
    return InvalidModel("turns ", turned, " elements of a head, must be an even number");
  if (IsKnown(head) && turned > head)
    return InvalidModel("rotary_embedding_dim = ", turned, ", must be at most ", head,
                        ", the size of a head");
  return turned / 2;
}

Status CheckCache(const InferContext& c, size_t input, int64_t pairs) {
  const Type& cache = c.input(input);
  const Dims& x = c.dims(0);
  const int rank = c.has_input(3) ? 2 : 3;
  MSRT_RETURN_IF_ERROR(CheckRank(c, input, rank));
  if (!cache.rank_known) return OkStatus();
  // Many models have angles for the whole head even if only a part of it is rotated; the first ones
  // are used then.
  MSRT_ASSIGN_OR_RETURN(const int64_t head, HeadSize(c.op()));
  const bool may_be_for_whole_head = !IsKnown(head) || cache.dims[rank - 1] == head / 2;
  if (!may_be_for_whole_head) {
    MSRT_RETURN_IF_ERROR(
        SameDim(cache.dims[rank - 1], pairs, "the cache and half of what is turned of a head")
            .status());
  }
  if (rank == 2) return OkStatus();
  MSRT_RETURN_IF_ERROR(SameDim(cache.dims[0], x[0], "the batches of cache and input").status());
  return SameDim(cache.dims[1], x[x.rank() - 2], "the positions of cache and input").status();
}

Status InferRotary(InferContext& c) {
  const Type& x = c.input(0);
  if (x.rank_known) {
    if (x.rank() != 3 && x.rank() != 4)
      return InvalidModel("input 0 has shape ", x.dims, ", must have rank 3 or 4");
    MSRT_ASSIGN_OR_RETURN(const int64_t pairs, PairCount(c.op()));
    MSRT_RETURN_IF_ERROR(CheckCache(c, 1, pairs));
    MSRT_RETURN_IF_ERROR(CheckCache(c, 2, pairs));
    if (c.input(1).concrete() && c.input(2).concrete() && !(c.dims(1) == c.dims(2))) {
      return InvalidModel("cos_cache is ", c.dims(1), " and sin_cache ", c.dims(2),
                          ", must be alike");
    }
    if (c.has_input(3)) {
      MSRT_RETURN_IF_ERROR(CheckRank(c, 3, 2));
      if (c.input(3).rank_known) {
        MSRT_RETURN_IF_ERROR(
            SameDim(c.dims(3)[0], x.dims[0], "the batches of position_ids and input").status());
        MSRT_RETURN_IF_ERROR(
            SameDim(c.dims(3)[1], x.dims[x.rank() - 2], "the positions of position_ids and input")
                .status());
      }
    }
  }
  return InferSameAsFirst(c);
}

Cost CostRotary(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  cost.flops *= 3;
  return cost;
}

// All axes of the input except the last, which contains whole heads.
Status RotaryAxes(const OpView& op, IterationSpace* space) {
  const Dims& x = op.input(0).dims;
  for (int i = 0; i < x.rank(); ++i)
    space->Add(i == x.rank() - 1 ? AxisKind::kWhole : AxisKind::kParallel, x[i]);
  return OkStatus();
}

Status RotaryOperands(const OpView& op, const Box& box, std::span<Box> inputs) {
  const Interval batch = box[0], positions = box[box.rank() - 2];
  inputs[0] = box;
  for (size_t i : {size_t{1}, size_t{2}}) {
    inputs[i] = Box::Whole(op.input(i).dims);
    if (op.has_input(3)) continue;
    inputs[i][0] = batch;
    inputs[i][1] = positions;
  }
  if (op.has_input(3)) {
    inputs[3].push_back(batch);
    inputs[3].push_back(positions);
  }
  return OkStatus();
}

constexpr SpaceDef kRotarySpace{
    .axes = RotaryAxes, .operands = RotaryOperands, .results = OutputIsBox};
constexpr int64_t kMaxHeads = int64_t{1} << 31;
constexpr AttrDef kRotaryAttrs[] = {
    {.name = "num_heads", .min_int = 0, .max_int = kMaxHeads},
    {.name = "rotary_embedding_dim", .min_int = 0, .max_int = kMaxHeads},
    {.name = "interleaved", .min_int = 0, .max_int = 1},
};
constexpr ParamDef kRotaryInputs[] = {
    {"x", kFloatTypes, ParamDef::kRequired, 1},
    {"cos_cache", kFloatTypes, ParamDef::kRequired, 1},
    {"sin_cache", kFloatTypes, ParamDef::kRequired, 1},
    {"position_ids", kIndexTypes, ParamDef::kOptional},
};
constexpr OpDef kRotaryOps[] = {
    {.name = "RotaryEmbedding",
     .attrs = kRotaryAttrs,
     .inputs = kRotaryInputs,
     .infer = InferRotary,
     .grad = GradRotaryEmbedding,
     .space = &kRotarySpace,
     .cost = CostRotary},
};

}  // namespace

std::span<const OpDef> RotaryOps() { return kRotaryOps; }

}  // namespace msrt
