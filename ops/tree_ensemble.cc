// TreeEnsemble (ai.onnx.ml): every row of X walks from the root of each tree to a leaf. The weights
// of the leaves for each target are summed, averaged, or reduced to their minimum or maximum.
// Transforms of the result are separate ops.
#include "ops/families.h"
#include "ops/infer.h"
#include "ops/output_space.h"

namespace msrt {
namespace {

constexpr int64_t kNodeModes = 7,
                  kMember = 6;  // number of comparisons; the one for membership in a set

Status CheckLength(const OpView& op, std::string_view attr, size_t length) {
  if (op.Ints(attr).size() == length) return OkStatus();
  return InvalidModel(attr, " has ", op.Ints(attr).size(),
                      " elements, must have one for each of the ", length, " nodes");
}

// Requires a tensor of rank 1 whose element type is one of `types`.
Status CheckTensor(const OpView& op, std::string_view attr, size_t length, DTypeSet types) {
  const ConstTensor* t = op.Tensor(attr);
  if (t == nullptr || !types.Has(t->dtype))
    return InvalidModel(attr, " must be a tensor of one of ", types.Names());
  if (t->dims.elements() == static_cast<int64_t>(length)) return OkStatus();
  return InvalidModel(attr, " has ", t->dims.elements(), " elements, must have ", length);
}

// Checks every index that a walk follows.
Status CheckBranches(const OpView& op, size_t leaves) {
  const auto features = op.Ints("nodes_featureids");
  const auto nodes = static_cast<int64_t>(features.size());
  for (const auto& [ids, leafs] :
       {std::pair<std::string_view, std::string_view>{"nodes_truenodeids", "nodes_trueleafs"},
        std::pair<std::string_view, std::string_view>{"nodes_falsenodeids", "nodes_falseleafs"}}) {
    const auto to = op.Ints(ids), is_leaf = op.Ints(leafs);
    for (size_t i = 0; i < to.size(); ++i) {
      const int64_t count = is_leaf[i] != 0 ? static_cast<int64_t>(leaves) : nodes;
      if (to[i] >= count)
        return InvalidModel(ids, "[", i, "] = ", to[i], ", there are ", count,
                            is_leaf[i] != 0 ? " leaves" : " nodes");
    }
  }
  for (int64_t root : op.Ints("tree_roots")) {
    if (root >= nodes)
      return InvalidModel("tree_roots holds ", root, ", there are ", nodes, " nodes");
  }
  return OkStatus();
}

// Sets end with NaN, one for each node that tests membership; the kernel checks that when it reads
// them.
Status CheckModes(const OpView& op, size_t nodes) {
  MSRT_RETURN_IF_ERROR(CheckTensor(op, "nodes_modes", nodes, DTypeSet{DType::kU8}));
  bool any_set = false;
  for (uint8_t mode : op.Tensor("nodes_modes")->As<uint8_t>()) {
    if (mode >= kNodeModes)
      return InvalidModel("nodes_modes holds ", static_cast<int>(mode), ", must be less than ",
                          kNodeModes);
    any_set |= mode == kMember;
  }
  if (!any_set) return OkStatus();
  const ConstTensor* members = op.Tensor("membership_values");
  return members == nullptr ? InvalidModel("membership_values is missing") : OkStatus();
}

Result<size_t> LeavesOf(const OpView& op) {
  const auto targets = op.Ints("leaf_targetids"), begins = op.Ints("leaf_begins");
  if (begins.empty()) return targets.size();
  for (size_t i = 0; i < begins.size(); ++i) {
    const int64_t end =
        i + 1 < begins.size() ? begins[i + 1] : static_cast<int64_t>(targets.size());
    if (begins[i] > end)
      return InvalidModel("leaf_begins[", i, "] = ", begins[i], ", must be at most ", end);
  }
  return begins.size();
}

Status InferTreeEnsemble(InferContext& c) {
  const OpView& op = c.op();
  const size_t nodes = op.Ints("nodes_featureids").size();
  for (std::string_view attr :
       {"nodes_truenodeids", "nodes_falsenodeids", "nodes_trueleafs", "nodes_falseleafs"}) {
    MSRT_RETURN_IF_ERROR(CheckLength(op, attr, nodes));
  }
  if (op.Has("nodes_missing_value_tracks_true"))
    MSRT_RETURN_IF_ERROR(CheckLength(op, "nodes_missing_value_tracks_true", nodes));
  const DTypeSet floats{DType::kF32, DType::kF64, DType::kF16};
  MSRT_RETURN_IF_ERROR(CheckTensor(op, "nodes_splits", nodes, floats));
  MSRT_RETURN_IF_ERROR(CheckTensor(op, "leaf_weights", op.Ints("leaf_targetids").size(), floats));
  if (const ConstTensor* members = op.Tensor("membership_values");
      members != nullptr && !floats.Has(members->dtype)) {
    return InvalidModel("membership_values must be a tensor of one of ", floats.Names());
  }
  MSRT_RETURN_IF_ERROR(CheckModes(op, nodes));
  MSRT_ASSIGN_OR_RETURN(const size_t leaves, LeavesOf(op));
  MSRT_RETURN_IF_ERROR(CheckBranches(op, leaves));
  for (int64_t target : op.Ints("leaf_targetids")) {
    if (target >= op.Int("n_targets"))
      return InvalidModel("leaf_targetids holds ", target, ", n_targets is ", op.Int("n_targets"));
  }
  MSRT_RETURN_IF_ERROR(CheckRank(c, 0, 2));
  const int64_t rows = c.input(0).rank_known ? c.dims(0)[0] : kUnknownDim;
  if (c.input(0).rank_known && IsKnown(c.dims(0)[1])) {
    for (int64_t feature : op.Ints("nodes_featureids")) {
      if (feature >= c.dims(0)[1])
        return InvalidModel("nodes_featureids holds ", feature, ", X has ", c.dims(0)[1],
                            " features");
    }
  }
  c.SetOutput(0, c.dtype(0), {rows, op.Int("n_targets")});
  return OkStatus();
}

// Rows are independent.
Status TreeAxes(const OpView& op, IterationSpace* space) {
  space->Add(AxisKind::kParallel, op.input(0).dims[0]);
  return OkStatus();
}

Status TreeOperands(const OpView& op, const Box& box, std::span<Box> inputs) {
  inputs[0] = Box::Whole(op.input(0).dims);
  inputs[0][0] = box[0];
  return OkStatus();
}

constexpr SpaceDef kTreeSpace{
    .axes = TreeAxes, .operands = TreeOperands, .results = OutputBeginsWithBox};

constexpr int kMaxNodes = 1 << 28;
constexpr AttrDef IdsAttr(std::string_view name, bool required = true) {
  return {.name = name,
          .kind = AttrKind::kInts,
          .required = required,
          .min_int = 0,
          .max_count = kMaxNodes};
}
constexpr AttrDef FlagsAttr(std::string_view name, bool required = true) {
  return {.name = name,
          .kind = AttrKind::kInts,
          .required = required,
          .min_int = 0,
          .max_int = 1,
          .max_count = kMaxNodes};
}
constexpr AttrDef kTreeAttrs[] = {
    {.name = "aggregate_function",
     .default_int = 1,
     .min_int = 0,
     .max_int = 3},  // average, sum, minimum, maximum
    {.name = "n_targets", .default_int = 1, .min_int = 1, .max_int = 2147483647},
    IdsAttr("tree_roots"),
    IdsAttr("nodes_featureids"),
    {.name = "nodes_splits", .kind = AttrKind::kTensor, .required = true},
    {.name = "nodes_modes", .kind = AttrKind::kTensor, .required = true},
    IdsAttr("nodes_truenodeids"),
    IdsAttr("nodes_falsenodeids"),
    FlagsAttr("nodes_trueleafs"),
    FlagsAttr("nodes_falseleafs"),
    FlagsAttr("nodes_missing_value_tracks_true", false),
    {.name = "membership_values", .kind = AttrKind::kTensor},
    IdsAttr("leaf_targetids"),
    {.name = "leaf_weights", .kind = AttrKind::kTensor, .required = true},
    // Extends ONNX: the begin of the targets and weights of each leaf, for leaves with several of
    // them. Absent: one for each leaf.
    IdsAttr("leaf_begins", false),
};
constexpr ParamDef kTreeInputs[] = {
    {.name = "X", .types = DTypeSet{DType::kF32, DType::kF64, DType::kF16}}};

constexpr OpDef kTreeEnsembleOps[] = {
    {.name = "TreeEnsemble",
     .domain = "ai.onnx.ml",
     .version = 5,
     .attrs = kTreeAttrs,
     .inputs = kTreeInputs,
     .infer = InferTreeEnsemble,
     .space = &kTreeSpace},
};

}  // namespace

std::span<const OpDef> TreeEnsembleOps() { return kTreeEnsembleOps; }

}  // namespace msrt
