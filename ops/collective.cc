// Collectives: ops in which all ranks of a session's communicator take part. They have no kernel:
// the communicator belongs to the session, so core/run executes them. A session without a
// communicator is a group of one rank. All ranks must run the same collectives in the same order.
#include "ops/collective.h"

#include "ops/families.h"
#include "ops/grad_builder.h"
#include "ops/infer.h"

namespace msrt {
namespace {

constexpr int64_t kMaxReducedTensors = 1 << 12;  // of one node

// ---- AllReduce: Y = the reduction of X over all ranks, the same on each -------------------------
//
// Several tensors that are reduced together are one message: `tensors` of them, each of which may
// have its own dims. With order = "shards" a tensor has an input for each virtual shard of the rank
// (core/comm/tree_reduce.h); those of the first tensor come first.

Status InferAllReduce(InferContext& c) {
  const auto tensors = static_cast<size_t>(c.op().Int("tensors"));
  const size_t inputs = c.op().input_count();
  if (c.output_count() != tensors)
    return InvalidModel("it has ", c.output_count(), " outputs and tensors = ", tensors);
  const bool by_shards = c.op().String("order") == "shards";
  if (inputs % tensors != 0 || (!by_shards && inputs != tensors) ||
      inputs / tensors > static_cast<size_t>(kVirtualShards))
    return InvalidModel("it has ", inputs, " inputs for tensors = ", tensors,
                        by_shards ? ", must be as many for each: the shards of the rank"
                                  : ", must be one for each");
  const size_t shards = inputs / tensors;
  for (size_t t = 0; t < tensors; ++t) {
    Type type = c.input(t * shards);
    for (size_t s = 1; s < shards; ++s) {
      MSRT_ASSIGN_OR_RETURN(type, MergeTypes(type, c.input(t * shards + s)));
    }
    c.SetOutput(t, std::move(type));
  }
  return OkStatus();
}

// The gradient of a sum over ranks is the sum of the gradients of all ranks.
Status GradAllReduce(GradBuilder& g) {
  if (g.op().String("reduce") != "sum")
    return Unsupported("AllReduce with reduce = '", g.op().String("reduce"),
                       "' has no gradient, only the sum has one");
  const auto tensors = static_cast<size_t>(g.op().Int("tensors"));
  const size_t shards = g.op().input_count() / tensors;
  // Each shard of a rank has the same gradient, which counts once.
  const bool by_shards = g.op().String("order") == "shards";
  AttrList attrs = g.op().attrs();
  attrs.Set("tensors", int64_t{1});
  if (by_shards) attrs.Set("order", std::string("tree"));
  for (size_t t = 0; t < tensors; ++t) {
    if (g.grad(t) == kNoValue) continue;
    const ValueId sum = g.AddMsrt("AllReduce", {g.grad(t)}, attrs);
    for (size_t s = 0; s < shards; ++s) g.Set(t * shards + s, sum);
  }
  return OkStatus();
}

constexpr DTypeSet kReducedTypes =
    DTypeSet{DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI32, DType::kI64};
constexpr std::string_view kReductions[] = {"sum", "product", "min", "max"};
constexpr std::string_view kOrders[] = {"tree", "any", "shards"};
constexpr AttrDef kAllReduceAttrs[] = {
    {.name = "reduce", .kind = AttrKind::kString, .default_string = "sum", .choices = kReductions},
    // tree: in a fixed tree over the ranks; any: in whatever order is fastest; shards: in the tree
    // over all virtual shards, with the same bits for any number of ranks.
    {.name = "order", .kind = AttrKind::kString, .default_string = "tree", .choices = kOrders},
    {.name = "tensors", .default_int = 1, .min_int = 1, .max_int = kMaxReducedTensors},
    {.name = "group", .kind = AttrKind::kString},
};
constexpr ParamDef kAllReduceInputs[] = {
    {.name = "X", .types = kReducedTypes, .kind = ParamDef::kVariadic, .group = 1}};

constexpr OpDef kCollectiveOps[] = {
    {.name = "AllReduce",
     .domain = "msrt",
     .version = 1,
     .attrs = kAllReduceAttrs,
     .inputs = kAllReduceInputs,
     .max_outputs = kMaxReducedTensors,
     .infer = InferAllReduce,
     .grad = GradAllReduce,
     .effect = Effect::kComm},
};

CommReduce ReductionOf(std::string_view name) {
  if (name == "product") return CommReduce::kProduct;
  if (name == "min") return CommReduce::kMin;
  return name == "max" ? CommReduce::kMax : CommReduce::kSum;
}

}  // namespace

CollectivePlan CollectivePlanOf(const OpView& op) {
  CollectivePlan plan;
  plan.dtype = op.input(0).dtype;
  plan.reduce = ReductionOf(op.String("reduce"));
  plan.by_shards = op.String("order") == "shards";
  plan.order = op.String("order") == "any" ? CommOrder::kAny : CommOrder::kFixedTree;
  plan.group = op.String("group");
  return plan;
}

std::optional<CommType> CommTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return CommType::kF32;
    case DType::kF64:
      return CommType::kF64;
    case DType::kF16:
      return CommType::kF16;
    case DType::kBF16:
      return CommType::kBF16;
    case DType::kI32:
      return CommType::kI32;
    case DType::kI64:
      return CommType::kI64;
    default:
      return std::nullopt;
  }
}

bool IsCollective(const Node& node) {
  return node.def != nullptr && node.def->effect == Effect::kComm && node.op != "Exchange";
}

std::span<const OpDef> CollectiveOps() { return kCollectiveOps; }

}  // namespace msrt
