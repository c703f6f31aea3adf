// Normalizations, softmaxes and reductions as primitives of MindSpore.
#include <limits>

#include "tools/msconvert/mindir/export_lower.h"

namespace msrt::mindir_export {
namespace {

Ints AxesFrom(int64_t first, int rank) {
  Ints axes;
  for (int64_t i = first; i < rank; ++i) axes.push_back(i);
  return axes;
}

Ref Mean(NodeLowering& n, const Ref& x, const Ints& axes) {
  return n.Op("ReduceMean", {x, axes, true});
}

struct Moments {
  Ref mean, centred, inverse;  // x less its mean; 1 / sqrt(variance + epsilon)
};
Moments MomentsOf(NodeLowering& n, const Ref& x, const Ints& axes, double epsilon) {
  Moments m;
  m.mean = Mean(n, x, axes);
  m.centred = n.Op("Sub", {x, m.mean});
  const Ref variance = Mean(n, n.Op("Mul", {m.centred, m.centred}), axes);
  m.inverse =
      n.Op("RealDiv", {n.Number(1), n.Op("Sqrt", {n.Op("Add", {variance, n.Number(epsilon)})})});
  return m;
}

// Reshapes a list of numbers, one per channel, to broadcast to [batch, channels, ...].
Ref PerChannel(NodeLowering& n, const Ref& list, int rank) {
  Ints shape(static_cast<size_t>(std::max(rank - 1, 1)), 1);
  shape[0] = -1;
  return n.Op("Reshape", {list, shape});
}

// The activation of msrt.FusedBatchNormalization; BatchNormalization has none.
Ref Activated(NodeLowering& n, const Ref& x) {
  if (!n.op().Has("activation")) return x;
  return LowerActivation(n, x, n.op().String("activation"), n.op().Float("activation_alpha"),
                         n.op().Float("activation_beta"));
}

Status LowerBatchNorm(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedRank());
  const int rank = n.dims(0).rank();
  const double epsilon = n.op().Float("epsilon");
  const Ref x = n.In(0);
  if (n.dtype() == DType::kF32 && n.type(1).dtype == DType::kF32 &&
      n.type(3).dtype == DType::kF32 && rank == 4) {
    constexpr double kMomentum = 0.1;  // only training uses it
    constexpr int kNchw = 0;
    const Ref all = n.Op("BatchNorm",
                         {x, n.In(1), n.In(2), n.In(3), n.In(4), false, epsilon, kMomentum, kNchw});
    n.SetOutput(Activated(n, n.out().Item(all, 0)));
    return OkStatus();
  }
  const auto list = [&](size_t input) {
    const Ref cast = n.type(input).dtype == n.dtype()
                         ? n.In(input)
                         : n.Op("Cast", {n.In(input), TypeIdOf(n.dtype())});
    return rank < 2 ? cast : PerChannel(n, cast, rank);
  };
  const Ref deviation = n.Op("Sqrt", {n.Op("Add", {list(4), n.Number(epsilon)})});
  const Ref normal = n.Op("RealDiv", {n.Op("Sub", {x, list(3)}), deviation});
  n.SetOutput(Activated(n, n.Op("Add", {n.Op("Mul", {normal, list(1)}), list(2)})));
  return OkStatus();
}

Status LowerInstanceNorm(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedRank());
  const int rank = n.dims(0).rank();
  const Moments m = MomentsOf(n, n.In(0), AxesFrom(2, rank), n.op().Float("epsilon"));
  const Ref normal = n.Op("Mul", {m.centred, m.inverse});
  n.SetOutput(n.Op(
      "Add", {n.Op("Mul", {normal, PerChannel(n, n.In(1), rank)}), PerChannel(n, n.In(2), rank)}));
  return OkStatus();
}

Status LowerGroupNorm(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedShape());
  const Dims& x = n.dims(0);
  const Ref grouped = n.Op("Reshape", {n.In(0), Ints{x[0], n.op().Int("num_groups"), -1}});
  const Moments m = MomentsOf(n, grouped, {2}, n.op().Float("epsilon"));
  const Ref normal = LowerReshape(n, n.Op("Mul", {m.centred, m.inverse}), x);
  n.SetOutput(n.Op("Add", {n.Op("Mul", {normal, PerChannel(n, n.In(1), x.rank())}),
                           PerChannel(n, n.In(2), x.rank())}));
  return OkStatus();
}

// Returns whether scale and bias have exactly the dims that are normalised.
bool IsPlainLayerNorm(const NodeLowering& n, int64_t axis) {
  if (n.dtype() != DType::kF32 || n.Wants(1) || n.Wants(2) || !n.Has(2)) return false;
  const Dims tail(std::span<const int64_t>(n.dims(0)).subspan(static_cast<size_t>(axis)));
  return tail.known() && n.type(1).rank_known && n.type(2).rank_known && n.dims(1) == tail &&
         n.dims(2) == tail;
}

Status LowerLayerNorm(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedRank());
  const int rank = n.dims(0).rank();
  const int64_t axis = FromFront(n.op().Int("axis"), rank);
  const double epsilon = n.op().Float("epsilon");
  if (IsPlainLayerNorm(n, axis)) {
    n.SetOutput(
        n.out().Item(n.Op("LayerNorm", {n.In(0), n.In(1), n.In(2), axis, axis, epsilon}), 0));
    return OkStatus();
  }
  const Moments m = MomentsOf(n, n.In(0), AxesFrom(axis, rank), epsilon);
  if (n.Wants(0)) {
    const Ref scaled = n.Op("Mul", {n.Op("Mul", {m.centred, m.inverse}), n.In(1)});
    n.SetOutput(n.Has(2) ? n.Op("Add", {scaled, n.In(2)}) : scaled);
  }
  const auto give = [&](size_t output, const Ref& value) {
    const DType wanted = n.result(output).dtype;
    n.SetOutput(output, wanted == n.dtype() ? value : n.Op("Cast", {value, TypeIdOf(wanted)}));
  };
  if (n.Wants(1)) give(1, m.mean);
  if (n.Wants(2)) give(2, m.inverse);
  return OkStatus();
}

Status LowerRmsNorm(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedRank());
  const Ref x = n.In(0);
  const Ints axes = AxesFrom(FromFront(n.op().Int("axis"), n.dims(0).rank()), n.dims(0).rank());
  const Ref root =
      n.Op("Sqrt",
           {n.Op("Add", {Mean(n, n.Op("Mul", {x, x}), axes), n.Number(n.op().Float("epsilon"))})});
  Ref scaled = n.Op("Mul", {n.Op("RealDiv", {x, root}), n.In(1)});
  if (n.result().dtype != n.dtype()) scaled = n.Op("Cast", {scaled, TypeIdOf(n.result().dtype)});
  n.SetOutput(scaled);
  return OkStatus();
}

Status LowerLpNorm(NodeLowering& n) {
  const Ref x = n.In(0);
  const Ints axes{n.op().Int("axis")};
  const bool squares = n.op().Int("p") == 2;
  const Ref sum =
      n.Op("ReduceSum", {squares ? n.Op("Mul", {x, x}) : n.Op("Abs", {x}), axes, true, false});
  const Ref norm = squares ? n.Op("Sqrt", {sum}) : sum;
  // Zeros stay zeros.
  n.SetOutput(n.Op("RealDiv",
                   {x, n.Op("Select", {n.Op("Equal", {norm, n.Number(0)}), n.Number(1), norm})}));
  return OkStatus();
}

Status LowerMeanVariance(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedRank());
  Ints axes(n.op().Ints("axes").begin(), n.op().Ints("axes").end());
  if (!n.op().Has("axes")) axes = {0, 2, 3};
  if (axes.empty()) axes = AxesFrom(0, n.dims(0).rank());
  constexpr double kSmall = 1e-9;  // added to the deviation
  const Ref x = n.In(0);
  const Ref centred = n.Op("Sub", {x, Mean(n, x, axes)});
  const Ref deviation = n.Op("Sqrt", {Mean(n, n.Op("Mul", {centred, centred}), axes)});
  n.SetOutput(n.Op("RealDiv", {centred, n.Op("Add", {deviation, n.Number(kSmall)})}));
  return OkStatus();
}

Status LowerSoftmax(NodeLowering& n) {
  n.SetOutput(n.Op("Softmax", {n.In(0), Ints{n.op().Int("axis")}}));
  return OkStatus();
}

Status LowerLogSoftmax(NodeLowering& n) {
  n.SetOutput(n.Op("LogSoftmax", {n.In(0), n.op().Int("axis")}));
  return OkStatus();
}

// ---- reductions ---------------------------------------------------------------------------------

// Returns the reduced axes; empty if nothing is reduced.
Result<Ints> ReducedAxes(const NodeLowering& n) {
  const auto axes = n.KnownInts("axes", 1);
  if (!axes && n.Has(1)) return Unsupported("axes are not known before the run");
  if (axes && !axes->empty()) return *axes;
  if (n.op().Int("noop_with_empty_axes") != 0) return Ints();
  MSRT_RETURN_IF_ERROR(n.NeedRank());
  return AxesFrom(0, n.dims(0).rank());
}

Status NoIntegers(const NodeLowering& n) {
  return Unsupported("MindSpore has no logarithm and no root of ", n.dtype(), " elements");
}

Ref Reduced(NodeLowering& n, std::string_view primitive, const Ref& x, const Ints& axes,
            bool keep) {
  if (axes.empty()) return x;  // no axes would mean all of them
  Args args{x, axes, keep};
  if (primitive == "ReduceSum") args.emplace_back(false);
  return n.Op(primitive, args);
}

Status LowerReduce(NodeLowering& n) {
  MSRT_ASSIGN_OR_RETURN(const Ints axes, ReducedAxes(n));
  const std::string_view op = n.node().op;
  if ((op == "ReduceL2" || op == "ReduceLogSum") && !IsFloat(n.dtype())) return NoIntegers(n);
  const bool keep = n.op().Int("keepdims") != 0;
  Ref x = n.In(0);
  if (op == "ReduceL1") x = n.Op("Abs", {x});
  if (op == "ReduceL2" || op == "ReduceSumSquare") x = n.Op("Mul", {x, x});
  // For bools the greatest is "any" and the least is "all".
  const bool truth = n.dtype() == DType::kBool;
  x = Reduced(n, truth ? (op == "ReduceMax" ? "ReduceAny" : "ReduceAll") : n.primitive(), x, axes,
              keep);
  if (op == "ReduceL2") x = n.Op("Sqrt", {x});
  if (op == "ReduceLogSum") x = n.Op("Log", {x});
  n.SetOutput(x);
  return OkStatus();
}

Status LowerLogSumExp(NodeLowering& n) {
  if (!IsFloat(n.dtype())) return NoIntegers(n);
  MSRT_ASSIGN_OR_RETURN(const Ints axes, ReducedAxes(n));
  const bool keep = n.op().Int("keepdims") != 0;
  const Ref x = n.In(0);
  if (axes.empty()) {
    n.SetOutput(x);
    return OkStatus();
  }
  // Infinities would cancel to NaN.
  const double largest =
      n.dtype() == DType::kF16 ? 65504.0 : static_cast<double>(std::numeric_limits<float>::max());
  const Ref finite = n.Op("Maximum", {n.Op("ReduceMax", {x, axes, true}), n.Number(-largest)});
  const Ref most = n.Op("Minimum", {finite, n.Number(largest)});
  const Ref sum = Reduced(n, "ReduceSum", n.Op("Exp", {n.Op("Sub", {x, most})}), axes, true);
  const Ref result = n.Op("Add", {n.Op("Log", {sum}), most});
  n.SetOutput(keep ? result : n.Op("Squeeze", {result, axes}));
  return OkStatus();
}

constexpr Lowerer kNormLowerers[] = {
    {"BatchNormalization", LowerBatchNorm},
    {"msrt.FusedBatchNormalization", LowerBatchNorm},
    {"InstanceNormalization", LowerInstanceNorm},
    {"GroupNormalization", LowerGroupNorm},
    {"LayerNormalization", LowerLayerNorm},
    {"RMSNormalization", LowerRmsNorm},
    {"LpNormalization", LowerLpNorm},
    {"MeanVarianceNormalization", LowerMeanVariance},
    {"Softmax", LowerSoftmax},
    {"LogSoftmax", LowerLogSoftmax},
    {"ReduceSum", LowerReduce, "ReduceSum"},
    {"ReduceMean", LowerReduce, "ReduceMean"},
    {"ReduceMax", LowerReduce, "ReduceMax"},
    {"ReduceMin", LowerReduce, "ReduceMin"},
    {"ReduceProd", LowerReduce, "ReduceProd"},
    {"ReduceL1", LowerReduce, "ReduceSum"},
    {"ReduceL2", LowerReduce, "ReduceSum"},
    {"ReduceLogSum", LowerReduce, "ReduceSum"},
    {"ReduceSumSquare", LowerReduce, "ReduceSum"},
    {"ReduceLogSumExp", LowerLogSumExp},
};

}  // namespace

std::span<const Lowerer> NormLowerers() { return kNormLowerers; }

}  // namespace msrt::mindir_export
