#include "core/passes/split_statistics.h"

#include <algorithm>
#include <limits>

#include "core/passes/rewrite.h"
#include "ops/infer.h"
#include "ops/node_view.h"

namespace msrt {
namespace {

using Axes = std::vector<int64_t>;

// Reductions that can be applied to their own results.
constexpr std::string_view kNested[] = {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin",
                                        "ReduceProd"};

bool IsNested(std::string_view op) {
  return std::find(std::begin(kNested), std::end(kNested), op) != std::end(kNested);
}

AttrList Along(Axes axes, bool keepdims = true) {
  return {{"axes", std::move(axes)}, {"keepdims", int64_t{keepdims}}};
}

// Adds nodes in place of node `n`. A node that inference refuses makes all later ones kNoValue.
class Splitting {
 public:
  Splitting(Rewriter* r, size_t n) : r_(*r), n_(n), x_(r->node(n).inputs[0]) {}

  ValueId Op(std::string_view op, std::vector<ValueId> inputs, AttrList attrs = {}) {
    const bool made = std::find(inputs.begin(), inputs.end(), kNoValue) == inputs.end();
    return made ? r_.Add(n_, op, std::move(inputs), std::move(attrs)) : kNoValue;
  }
  ValueId Reduce(std::string_view op, ValueId x, Axes axes) {
    return Op(op, {x}, Along(std::move(axes)));
  }
  ValueId Reshape(ValueId x, const Axes& shape) {
    return Op("Reshape", {x, r_.AddConstant("shape", ConstTensor::Int64s(shape))});
  }
  ValueId Number(double value) {
    const auto number = static_cast<float>(value);
    return r_.AddConstant("number", ConstTensor::Floats({}, {&number, 1}));
  }
  bool Finish(std::string_view op, std::vector<ValueId> inputs, AttrList attrs = {}) {
    const bool made = std::find(inputs.begin(), inputs.end(), kNoValue) == inputs.end();
    return made && r_.Replace(n_, op, std::move(inputs), std::move(attrs));
  }

  // `axes` are sorted.
  bool Reduction(const std::string& op, const Axes& axes, bool keepdims) {
    return Finish(op, {Reduce(op, x_, {axes.back()})}, Along(axes, keepdims));
  }

  struct Moments {
    ValueId mean, variance;
  };
  // The moments of everything from those of parts of equal size, which the axes number.
  Moments Combine(const Moments& parts, const Axes& axes) {
    const ValueId mean = Reduce("ReduceMean", parts.mean, axes);
    const ValueId shift = Op("Sub", {parts.mean, mean});
    const ValueId each = Op("Add", {parts.variance, Op("Mul", {shift, shift})});
    return {mean, Reduce("ReduceMean", each, axes)};
  }
  // The moments of each channel, [1, channels, 1, 1].
  Moments OfChannels() {
    const auto columns = static_cast<double>(std::max<int64_t>(1, r_.type(x_).dims[3]));
    const ValueId mean = Reduce("ReduceMean", x_, {3});
    const ValueId squares = Reduce("ReduceSumSquare", Op("Sub", {x_, mean}), {3});
    return Combine({mean, Op("Mul", {squares, Number(1 / columns)})}, {2});
  }

  bool Norm(int64_t groups, double epsilon) {
    const int64_t channels = r_.type(x_).dims[1];
    Moments moments = OfChannels();
    if (groups != channels) {
      const Axes apart{1, groups, channels / groups};
      const ValueId shape = r_.AddConstant("shape", ConstTensor::Int64s(apart));
      moments = Combine({Reshape(moments.mean, apart), Reshape(moments.variance, apart)}, {2});
      moments = {Op("Expand", {moments.mean, shape}), Op("Expand", {moments.variance, shape})};
    }
    const std::vector<ValueId> inputs = r_.node(n_).inputs;
    return Finish("BatchNormalization",
                  {x_, inputs[1], inputs[2], Reshape(moments.mean, {channels}),
                   Reshape(moments.variance, {channels})},
                  {{"epsilon", epsilon}});
  }

  // `image` has the elements of the softmax's input, with rows and columns as its last two dims.
  bool Softmax(ValueId image) {
    // Finite, so that a row of negative infinities is subtracted without NaN.
    const ValueId lowest = Number(std::numeric_limits<float>::lowest());
    const ValueId row_max = Op("Max", {Reduce("ReduceMax", image, {3}), lowest});
    const ValueId max = Reduce("ReduceMax", row_max, {2});
    const ValueId row_sum = Reduce("ReduceSum", Op("Exp", {Op("Sub", {image, row_max})}), {3});
    const ValueId factor = Op("Exp", {Op("Sub", {row_max, max})});
    const ValueId sum = Reduce("ReduceSum", Op("Mul", {row_sum, factor}), {2});
    const ValueId y = Op("Div", {Op("Exp", {Op("Sub", {image, max})}), sum});
    Axes shape;
    for (int64_t d : r_.type(x_).dims) shape.push_back(d);
    return Finish("Reshape", {y, r_.AddConstant("shape", ConstTensor::Int64s(shape))});
  }

 private:
  Rewriter& r_;
  const size_t n_;
  const ValueId x_;
};

// The axes of a reduction, sorted, if there are several.
std::optional<Axes> SeveralAxes(const OpView& op) {
  const int rank = op.input(0).rank();
  const auto given = IntsAttrOrInput(op, "axes", 1);
  if (!given) return std::nullopt;
  Axes axes;
  if (given->empty() && op.Int("noop_with_empty_axes") == 0) {
    for (int a = 0; a < rank; ++a) axes.push_back(a);
  } else {
    const auto positive = NormalizeAxes(*given, rank);
    if (!positive.ok()) return std::nullopt;
    axes.assign(positive->begin(), positive->end());
  }
  std::sort(axes.begin(), axes.end());
  return axes.size() > 1 ? std::optional(axes) : std::nullopt;
}

// The value that a Reshape has merged the rows and columns of, if `v` is its result.
ValueId WithRowsApart(const Rewriter& r, ValueId v) {
  const auto reshape = r.Producer(v, "Reshape");
  if (!reshape) return kNoValue;
  const ValueId image = r.node(*reshape).inputs[0];
  const Type &from = r.type(image), &to = r.type(v);
  const bool merged = from.concrete() && to.concrete() && from.rank() == 4 && to.rank() == 3 &&
                      from.dims[0] == to.dims[0] && from.dims[1] == to.dims[1];
  return merged ? image : kNoValue;
}

void Split(Rewriter* r, size_t n) {
  const Node& node = r->node(n);
  if (node.inputs.empty() || node.inputs[0] == kNoValue) return;
  const Type x = r->type(node.inputs[0]);
  if (x.dtype != DType::kF32 || !x.rank_known) return;
  const NodeView view(r->graph(), node);
  const OpView& op = view.op();
  Splitting to(r, n);
  // A pool takes at least two dims of space.
  if (x.rank() >= 4 && (node.op == "GlobalAveragePool" || node.op == "GlobalMaxPool")) {
    Axes axes;
    for (int a = 2; a < x.rank(); ++a) axes.push_back(a);
    (void)to.Reduction(node.op == "GlobalMaxPool" ? "ReduceMax" : "ReduceMean", axes, true);
  } else if (IsNested(node.op)) {
    const std::string name = node.op;
    const bool keepdims = op.Int("keepdims") != 0;
    if (const auto axes = SeveralAxes(op); axes) (void)to.Reduction(name, *axes, keepdims);
  } else if (node.op == "InstanceNormalization" || node.op == "GroupNormalization") {
    if (!x.concrete() || x.rank() != 4 || x.dims[0] != 1 || x.elements() == 0) return;
    const bool group = node.op == "GroupNormalization";
    (void)to.Norm(group ? op.Int("num_groups") : x.dims[1], op.Float("epsilon"));
  } else if (node.op == "Softmax") {
    const auto axis = NormalizeAxis(op.Int("axis"), x.rank());
    const ValueId image = WithRowsApart(*r, node.inputs[0]);
    if (image != kNoValue && axis.ok() && *axis == 2) (void)to.Softmax(image);
  }
}

}  // namespace

Status SplitStatistics(const PassContext& context, Graph* graph) {
  if (!context.exact) return OkStatus();
  Rewriter r(context, graph);
  const size_t count = r.node_count();
  for (size_t n = 0; n < count; ++n) {
    if (r.IsLive(n) && r.node(n).outputs.size() == 1) Split(&r, n);
  }
  return OkStatus();
}

}  // namespace msrt
