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
constexpr int64_t kMaxRanks = 1 << 16;
constexpr DTypeSet kReducedTypes =
    DTypeSet{DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI32, DType::kI64};
constexpr DTypeSet kSentTypes = kComputeTypes | kF8Types;  // 4-bit elements are not addressable

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
  attrs.Set("background", int64_t{0});
  if (by_shards) attrs.Set("order", std::string("tree"));
  for (size_t t = 0; t < tensors; ++t) {
    if (g.grad(t) == kNoValue) continue;
    const ValueId sum = g.AddMsrt("AllReduce", {g.grad(t)}, attrs);
    for (size_t s = 0; s < shards; ++s) g.Set(t * shards + s, sum);
  }
  return OkStatus();
}

// ---- AllGather, ReduceScatter, AllToAll ---------------------------------------------------------
//
// The parts of ranks are equal and in their order along an axis. The dims of the results follow
// from the number of ranks, so it is an attribute; the group must have as many.

Result<int> PartAxisOf(const InferContext& c, std::string_view attr) {
  return NormalizeAxis(c.op().Int(attr), c.input(0).rank(), attr);
}

Status MultiplyDim(int64_t ranks, int axis, Dims* dims) {
  int64_t& dim = (*dims)[axis];
  if (!IsKnown(dim)) return OkStatus();
  if (dim > kMaxElements / ranks)
    return InvalidModel("dim ", axis, " of ", *dims, " times ", ranks, " ranks is too large");
  dim *= ranks;
  return OkStatus();
}

Status DivideDim(int64_t ranks, int axis, Dims* dims) {
  int64_t& dim = (*dims)[axis];
  if (!IsKnown(dim)) return OkStatus();
  if (dim % ranks != 0)
    return InvalidModel("dim ", axis, " of ", *dims, " must be a multiple of ranks = ", ranks);
  dim /= ranks;
  return OkStatus();
}

Status InferAllGather(InferContext& c) {
  Type type = c.input(0);
  if (type.rank_known) {
    MSRT_ASSIGN_OR_RETURN(const int axis, PartAxisOf(c, "axis"));
    MSRT_RETURN_IF_ERROR(MultiplyDim(c.op().Int("ranks"), axis, &type.dims));
  }
  c.SetOutput(0, std::move(type));
  return OkStatus();
}

Status InferReduceScatter(InferContext& c) {
  Type type = c.input(0);
  if (type.rank_known) {
    MSRT_ASSIGN_OR_RETURN(const int axis, PartAxisOf(c, "axis"));
    MSRT_RETURN_IF_ERROR(DivideDim(c.op().Int("ranks"), axis, &type.dims));
  }
  c.SetOutput(0, std::move(type));
  return OkStatus();
}

Status InferAllToAll(InferContext& c) {
  Type type = c.input(0);
  if (type.rank_known) {
    MSRT_ASSIGN_OR_RETURN(const int split, PartAxisOf(c, "split_axis"));
    MSRT_ASSIGN_OR_RETURN(const int concat, PartAxisOf(c, "concat_axis"));
    MSRT_RETURN_IF_ERROR(DivideDim(c.op().Int("ranks"), split, &type.dims));
    MSRT_RETURN_IF_ERROR(MultiplyDim(c.op().Int("ranks"), concat, &type.dims));
  }
  c.SetOutput(0, std::move(type));
  return OkStatus();
}

Status OnlySumsHaveGradients(const GradBuilder& g) {
  if (g.op().String("reduce") == "sum") return OkStatus();
  return Unsupported(g.op().op(), " with reduce = '", g.op().String("reduce"),
                     "' has no gradient, only the sum has one");
}

AttrList PartsOf(const GradBuilder& g) {
  return {{"axis", g.op().Int("axis")},
          {"ranks", g.op().Int("ranks")},
          {"group", std::string(g.op().String("group"))}};
}

// Each rank has used the part of this one.
Status GradAllGather(GradBuilder& g) {
  g.Set(0, g.AddMsrt("ReduceScatter", {g.grad()}, PartsOf(g)));
  return OkStatus();
}

// Each rank has a part of the sum, to which all have added.
Status GradReduceScatter(GradBuilder& g) {
  MSRT_RETURN_IF_ERROR(OnlySumsHaveGradients(g));
  g.Set(0, g.AddMsrt("AllGather", {g.grad()}, PartsOf(g)));
  return OkStatus();
}

Status GradAllToAll(GradBuilder& g) {
  AttrList back = g.op().attrs();
  back.Set("split_axis", g.op().Int("concat_axis"));
  back.Set("concat_axis", g.op().Int("split_axis"));
  g.Set(0, g.AddMsrt("AllToAll", {g.grad()}, std::move(back)));
  return OkStatus();
}

// ---- Broadcast: Y = X of the root. Reduce: Y = the reduction on the root, zeros elsewhere -------

Status GradBroadcast(GradBuilder& g) {
  g.Set(0, g.AddMsrt("Reduce", {g.grad()}, g.op().attrs()));
  return OkStatus();
}

Status GradReduce(GradBuilder& g) {
  MSRT_RETURN_IF_ERROR(OnlySumsHaveGradients(g));
  g.Set(0,
        g.AddMsrt("Broadcast", {g.grad()},
                  {{"root", g.op().Int("root")}, {"group", std::string(g.op().String("group"))}}));
  return OkStatus();
}

// ---- Send: token = Send(X). Receive: Y = Receive(token) -----------------------------------------
//
// The token is a zero of rank 0. It says in which order a rank sends and receives, and carries the
// gradient: whatever depends on the token of a Send is differentiated with respect to what was
// sent, which receives its gradient from the other rank. There the gradient of the token of the
// Receive must be wanted, so that it is sent. Receive has the dims of its attribute or of a second
// input.

Status InferSend(InferContext& c) {
  c.SetOutput(0, c.dtype(0), {});
  return OkStatus();
}

Status InferReceive(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckRank(c, 0, 0));
  if (c.has_input(1) == c.op().Has("shape"))
    return InvalidModel("it must have either the attribute shape or a second input with the dims");
  Type type = c.has_input(1) ? c.input(1) : Type::Tensor(c.dtype(0), Dims(c.op().Ints("shape")));
  type.dtype = c.dtype(0);
  c.SetOutput(0, std::move(type));
  return OkStatus();
}

AttrList PeerOf(const GradBuilder& g) {
  return {{"rank", g.op().Int("rank")}, {"group", std::string(g.op().String("group"))}};
}

Status GradSend(GradBuilder& g) {
  g.Set(0, g.AddMsrt("Receive", {g.grad(), g.input(0)}, PeerOf(g)));
  return OkStatus();
}

Status GradReceive(GradBuilder& g) {
  g.Set(0, g.AddMsrt("Send", {g.grad()}, PeerOf(g)));
  return OkStatus();
}

// ---- GroupRank, GroupSize: the number of this rank, and how many there are ----------------------

Status InferNumber(InferContext& c) {
  c.SetOutput(0, DType::kI64, {});
  return OkStatus();
}

// ---- AllScatterAdd: data with the updates of all ranks added at their indices -------------------
//
// As ScatterND with reduction = "add" of the indices and updates of all ranks, in their order along
// dim 0, of which ranks may have any numbers. The gradient of a table of which each rank has used
// other rows: ranks exchange the rows instead of tables.

Status InferAllScatterAdd(InferContext& c) {
  const Type &data = c.input(0), &indices = c.input(1), &updates = c.input(2);
  if (indices.rank_known && indices.rank() < 2)
    return InvalidModel("indices ", indices.dims,
                        " must have dims of updates and one of the tuple");
  if (data.rank_known && indices.rank_known && IsKnown(indices.dims.back())) {
    const int64_t tuple = indices.dims.back();
    if (tuple < 1 || tuple > data.rank())
      return InvalidModel("tuples of ", tuple, " indices, must be of 1 to ", data.rank(),
                          " for data ", data.dims);
    const int leading = indices.rank() - 1, slice = data.rank() - static_cast<int>(tuple);
    MSRT_RETURN_IF_ERROR(CheckRank(c, 2, leading + slice));
    for (int i = 0; updates.rank_known && i < updates.rank(); ++i) {
      const int64_t wanted =
          i < leading ? indices.dims[i] : data.dims[static_cast<int>(tuple) + i - leading];
      MSRT_RETURN_IF_ERROR(
          SameDim(updates.dims[i], wanted, StrCat("dim ", i, " of updates ", updates.dims))
              .status());
    }
  }
  return InferSameAsFirst(c);
}

// The updates of a rank are in the results of all.
Status GradAllScatterAdd(GradBuilder& g) {
  if (g.wants(0)) g.Set(0, g.grad());
  if (!g.wants(2)) return OkStatus();
  const ValueId sum = g.AddMsrt("AllReduce", {g.grad()}, g.op().attrs());
  g.Set(2, g.Add("GatherND", {sum, g.input(1)}));
  return OkStatus();
}

// ---- entries ------------------------------------------------------------------------------------

constexpr std::string_view kReductions[] = {"sum", "product", "min", "max"};
constexpr std::string_view kShardOrders[] = {"tree", "any", "shards"}, kOrders[] = {"tree", "any"};
constexpr AttrDef kReduceAttr{
    .name = "reduce", .kind = AttrKind::kString, .default_string = "sum", .choices = kReductions};
// tree: in a fixed tree over the ranks; any: in whatever order is fastest.
constexpr AttrDef kOrder{
    .name = "order", .kind = AttrKind::kString, .default_string = "tree", .choices = kOrders};
constexpr AttrDef kGroup{.name = "group", .kind = AttrKind::kString};
constexpr AttrDef kRanks{.name = "ranks", .required = true, .min_int = 1, .max_int = kMaxRanks};
constexpr AttrDef kPartAxis{.name = "axis"};
constexpr AttrDef kRoot{.name = "root", .min_int = 0, .max_int = kMaxRanks};
constexpr AttrDef kPeer{.name = "rank", .required = true, .min_int = 0, .max_int = kMaxRanks};

constexpr AttrDef kAllReduceAttrs[] = {
    kReduceAttr,
    // Besides: shards, in the tree over all virtual shards, with the same bits for any number of
    // ranks.
    {.name = "order", .kind = AttrKind::kString, .default_string = "tree", .choices = kShardOrders},
    {.name = "tensors", .default_int = 1, .min_int = 1, .max_int = kMaxReducedTensors},
    // 1: in the background. Other collectives do not wait for it, though they come later in the
    // graph. The session needs a communicator for these.
    {.name = "background", .min_int = 0, .max_int = 1},
    kGroup,
};
constexpr AttrDef kAllGatherAttrs[] = {kPartAxis, kRanks, kGroup};
constexpr AttrDef kReduceScatterAttrs[] = {kPartAxis, kRanks, kReduceAttr, kOrder, kGroup};
constexpr AttrDef kAllToAllAttrs[] = {
    {.name = "split_axis"}, {.name = "concat_axis"}, kRanks, kGroup};
constexpr AttrDef kBroadcastAttrs[] = {kRoot, kGroup};
constexpr AttrDef kRootReduceAttrs[] = {kRoot, kReduceAttr, kOrder, kGroup};
constexpr AttrDef kSendAttrs[] = {kPeer, kGroup};
constexpr AttrDef kReceiveAttrs[] = {kPeer,
                                     {.name = "shape",
                                      .kind = AttrKind::kInts,
                                      .min_int = 0,
                                      .max_int = kMaxElements,
                                      .max_count = kMaxRank},
                                     kGroup};
constexpr AttrDef kOnlyGroup[] = {kGroup};

constexpr ParamDef kAllReduceInputs[] = {
    {.name = "X", .types = kReducedTypes, .kind = ParamDef::kVariadic, .group = 1}};
constexpr ParamDef kReducedInputs[] = {{.name = "X", .types = kReducedTypes}};
constexpr ParamDef kSentInputs[] = {{.name = "X", .types = kSentTypes}};
constexpr ParamDef kReceiveInputs[] = {
    {.name = "token", .types = kSentTypes},
    {.name = "like", .types = kSentTypes, .kind = ParamDef::kOptional}};
constexpr ParamDef kAllScatterInputs[] = {{.name = "data", .types = kFloatTypes, .group = 1},
                                          {.name = "indices", .types = {DType::kI64}},
                                          {.name = "updates", .types = kFloatTypes, .group = 1}};

constexpr OpDef Collective(std::string_view name, std::span<const AttrDef> attrs,
                           std::span<const ParamDef> inputs, InferFn infer, GradFn grad) {
  return {.name = name,
          .domain = "msrt",
          .version = 1,
          .attrs = attrs,
          .inputs = inputs,
          .infer = infer,
          .grad = grad,
          .effect = Effect::kComm};
}

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
    Collective("AllGather", kAllGatherAttrs, kSentInputs, InferAllGather, GradAllGather),
    Collective("ReduceScatter", kReduceScatterAttrs, kReducedInputs, InferReduceScatter,
               GradReduceScatter),
    Collective("AllToAll", kAllToAllAttrs, kSentInputs, InferAllToAll, GradAllToAll),
    Collective("Broadcast", kBroadcastAttrs, kSentInputs, InferSameAsFirst, GradBroadcast),
    Collective("Reduce", kRootReduceAttrs, kReducedInputs, InferSameAsFirst, GradReduce),
    Collective("Send", kSendAttrs, kSentInputs, InferSend, GradSend),
    Collective("Receive", kReceiveAttrs, kReceiveInputs, InferReceive, GradReceive),
    Collective("GroupRank", kOnlyGroup, {}, InferNumber, GradZero),
    Collective("GroupSize", kOnlyGroup, {}, InferNumber, GradZero),
    Collective("AllScatterAdd", kOnlyGroup, kAllScatterInputs, InferAllScatterAdd,
               GradAllScatterAdd),
};

struct CollectiveName {
  std::string_view name;
  CollectiveKind kind;
};
constexpr CollectiveName kCollectiveNames[] = {
    {"AllReduce", CollectiveKind::kAllReduce},
    {"AllGather", CollectiveKind::kAllGather},
    {"ReduceScatter", CollectiveKind::kReduceScatter},
    {"AllToAll", CollectiveKind::kAllToAll},
    {"Broadcast", CollectiveKind::kBroadcast},
    {"Reduce", CollectiveKind::kReduce},
    {"Send", CollectiveKind::kSend},
    {"Receive", CollectiveKind::kReceive},
    {"GroupRank", CollectiveKind::kGroupRank},
    {"GroupSize", CollectiveKind::kGroupSize},
    {"AllScatterAdd", CollectiveKind::kAllScatterAdd},
};

CommReduce ReductionOf(std::string_view name) {
  if (name == "product") return CommReduce::kProduct;
  if (name == "min") return CommReduce::kMin;
  return name == "max" ? CommReduce::kMax : CommReduce::kSum;
}

}  // namespace

CollectivePlan CollectivePlanOf(const OpView& op) {
  CollectivePlan plan;
  for (const CollectiveName& c : kCollectiveNames) {
    if (c.name == op.op()) plan.kind = c.kind;
  }
  plan.name = op.op();
  plan.group = op.String("group");
  if (op.input_count() > 0) plan.dtype = op.input(0).dtype;
  switch (plan.kind) {
    case CollectiveKind::kAllReduce:
      plan.by_shards = op.String("order") == "shards";
      plan.background = op.Int("background") != 0;
      [[fallthrough]];
    case CollectiveKind::kReduce:
    case CollectiveKind::kReduceScatter:
      plan.reduce = ReductionOf(op.String("reduce"));
      plan.order = op.String("order") == "any" ? CommOrder::kAny : CommOrder::kFixedTree;
      break;
    default:
      break;
  }
  switch (plan.kind) {
    case CollectiveKind::kAllToAll:
      plan.ranks = static_cast<int>(op.Int("ranks"));
      plan.axis = static_cast<int>(op.Int("split_axis"));
      plan.concat_axis = static_cast<int>(op.Int("concat_axis"));
      break;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      plan.ranks = static_cast<int>(op.Int("ranks"));
      plan.axis = static_cast<int>(op.Int("axis"));
      break;
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce:
      plan.peer = static_cast<int>(op.Int("root"));
      break;
    case CollectiveKind::kSend:
    case CollectiveKind::kReceive:
      plan.peer = static_cast<int>(op.Int("rank"));
      break;
    default:
      break;
  }
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
