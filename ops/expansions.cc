#include "ops/expansions.h"

#include "ops/builder.h"
#include "ops/infer.h"

namespace msrt {
namespace {

using Axes = std::vector<int64_t>;

Axes AxesFrom(int64_t first, int64_t end) {
  Axes axes;
  for (int64_t a = first; a < end; ++a) axes.push_back(a);
  return axes;
}

Axes AllButChannels(int64_t rank) {
  Axes axes = AxesFrom(2, rank);
  axes.insert(axes.begin(), 0);
  return axes;
}

// A graph under construction that has the inputs of a node. The first error is kept: later values
// mean nothing, and Finish returns it.
class Expansion {
 public:
  explicit Expansion(const OpView& op) : op_(op), builder_(&graph_) {
    graph_.name = op.op();
    for (size_t i = 0; i < op.input_count(); ++i) {
      inputs_.push_back(op.has_input(i) ? graph_.AddInput(StrCat("input", i), op.input(i))
                                        : kNoValue);
    }
  }

  ValueId input(size_t i) const { return i < inputs_.size() ? inputs_[i] : kNoValue; }
  const Dims& dims(size_t i) const { return op_.input(i).dims; }

  std::vector<ValueId> AddMany(std::string_view domain, std::string_view op,
                               std::vector<ValueId> inputs, AttrList attrs, size_t outputs) {
    if (!status_.ok()) return std::vector<ValueId>(outputs, kNoValue);
    auto made = builder_.Add(domain, op, StrCat(op, graph_.nodes.size()), std::move(inputs),
                             std::move(attrs), outputs);
    if (made.ok()) return *std::move(made);
    status_ = std::move(made).status();
    return std::vector<ValueId>(outputs, kNoValue);
  }
  ValueId Add(std::string_view op, std::vector<ValueId> inputs, AttrList attrs = {}) {
    return AddMany("", op, std::move(inputs), std::move(attrs), 1)[0];
  }
  ValueId Cast(ValueId v, DType to) { return Add("Cast", {v}, {{"to", to}}); }
  ValueId Wide(size_t i) { return input(i) == kNoValue ? kNoValue : Cast(input(i), DType::kF64); }
  ValueId Number(double value) {
    return graph_.AddConstant(StrCat("c", graph_.value_count()),
                              ConstTensor::Of<double>(DType::kF64, {}, {&value, 1}));
  }
  ValueId Integer(DType dtype, int64_t value) {
    const auto narrow = static_cast<int32_t>(value);
    return graph_.AddConstant(StrCat("c", graph_.value_count()),
                              dtype == DType::kI64
                                  ? ConstTensor::Of<int64_t>(dtype, {}, {&value, 1})
                                  : ConstTensor::Of<int32_t>(dtype, {}, {&narrow, 1}));
  }
  // Mean and variance of a value over `axes`.
  std::vector<ValueId> Moments(ValueId x, Axes axes) {
    return AddMany("msrt", "Moments", {x}, {{"axes", std::move(axes)}, {"dtype", DType::kF64}}, 2);
  }
  ValueId Normalize(ValueId x, const std::vector<ValueId>& moments, ValueId scale, ValueId bias) {
    return AddMany("msrt", "Normalize", {x, moments[0], moments[1], scale, bias},
                   {{"epsilon", op_.Float("epsilon")}}, 1)[0];
  }

  // One value for each output of the node; those of outputs that the node lacks are ignored.
  Result<Graph> Finish(const std::vector<ValueId>& outputs) {
    MSRT_RETURN_IF_ERROR(std::move(status_));
    for (size_t o = 0; o < op_.output_count(); ++o) {
      if (op_.has_output(o)) graph_.outputs.push_back(outputs[o]);
    }
    return std::move(graph_);
  }

 private:
  const OpView& op_;
  Graph graph_;
  GraphBuilder builder_;
  std::vector<ValueId> inputs_;
  Status status_;
};

}  // namespace

Result<Graph> ExpandBatchNormTraining(const OpView& op) {
  Expansion e(op);
  const int rank = op.input(0).rank();
  // Normalize takes parameters of the type of X.
  const bool wide = op.input(0).dtype != op.input(1).dtype;
  const auto input = [&](size_t i) { return wide ? e.Wide(i) : e.input(i); };
  const auto parameter = [&](size_t i) {
    return rank == 2 ? input(i)
                     : e.Add("Unsqueeze", {input(i)}, {{"axes", AxesFrom(1, rank - 1)}});
  };
  const auto moments = e.Moments(e.input(0), AllButChannels(rank));
  ValueId y = e.Normalize(input(0), moments, parameter(1), parameter(2));
  if (wide) y = e.Cast(y, op.output(0).dtype);
  const auto flat = [&](ValueId v) {
    return e.Cast(e.Add("Reshape", {v}, {{"shape", Axes{-1}}}), op.input(1).dtype);
  };
  return e.Finish({y, flat(moments[0]), flat(moments[1])});
}

namespace {

// The gradients that ops/normalization_grad.cc describes, in double.
struct NormGradients {
  ValueId dx, scale_terms;  // the latter summed is the gradient of the scale
};
NormGradients GradientsOf(Expansion& e, ValueId dy, ValueId n, ValueId weighted, ValueId factor,
                          const Axes& axes) {
  const AttrList over{{"axes", axes}};
  const auto mean = [&](ValueId v) { return e.Add("ReduceMean", {v}, over); };
  const ValueId along = e.Add("Mul", {n, mean(e.Add("Mul", {weighted, n}))});
  const ValueId rest = e.Add("Sub", {e.Add("Sub", {weighted, mean(weighted)}), along});
  return {e.Add("Mul", {rest, factor}), e.Add("Mul", {dy, n})};
}

ValueId InverseDeviation(Expansion& e, ValueId variance, double epsilon) {
  return e.Add("Reciprocal", {e.Add("Sqrt", {e.Add("Add", {variance, e.Number(epsilon)})})});
}

}  // namespace

Result<Graph> ExpandBatchNormTrainingGrad(const OpView& op) {
  if (op.input(1).elements() == 0) return Unsupported("an empty tensor has no statistics");
  Expansion e(op);
  const int rank = op.input(1).rank();
  const auto parameter = [&](size_t i) {
    return rank == 2 ? e.Wide(i)
                     : e.Add("Unsqueeze", {e.Wide(i)}, {{"axes", AxesFrom(1, rank - 1)}});
  };
  const ValueId dy = e.Wide(0);
  const ValueId inverse = InverseDeviation(e, parameter(4), op.Float("epsilon"));
  const ValueId n = e.Add("Mul", {e.Add("Sub", {e.Wide(1), parameter(3)}), inverse});
  const Axes axes = AllButChannels(rank);
  const NormGradients d =
      GradientsOf(e, dy, n, dy, e.Add("Mul", {parameter(2), inverse}), axes);
  const auto summed = [&](ValueId v) {
    return e.Cast(e.Add("ReduceSum", {v}, {{"axes", axes}, {"keepdims", int64_t{0}}}),
                  op.input(2).dtype);
  };
  return e.Finish({e.Cast(d.dx, op.input(1).dtype), summed(d.scale_terms), summed(dy)});
}

Result<Graph> ExpandLayerNormGrad(const OpView& op) {
  if (op.input(1).elements() == 0) return Unsupported("an empty tensor has no statistics");
  Expansion e(op);
  const int rank = op.input(1).rank();
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(op.Int("axis"), rank));
  const ValueId dy = e.Wide(0), x = e.Wide(1);
  const auto moments = e.Moments(x, AxesFrom(axis, rank));
  const ValueId inverse = InverseDeviation(e, moments[1], op.Float("epsilon"));
  const ValueId n = e.Add("Mul", {e.Add("Sub", {x, moments[0]}), inverse});
  const NormGradients d = GradientsOf(e, dy, n, e.Add("Mul", {dy, e.Wide(2)}), inverse,
                                      AxesFrom(axis, rank));
  const auto summed = [&](ValueId v) {
    if (axis > 0)
      v = e.Add("ReduceSum", {v}, {{"axes", AxesFrom(0, axis)}, {"keepdims", int64_t{0}}});
    return e.Cast(v, op.input(0).dtype);
  };
  return e.Finish({e.Cast(d.dx, op.input(0).dtype), summed(d.scale_terms), summed(dy)});
}

Result<Graph> ExpandInstanceNormalization(const OpView& op) {
  Expansion e(op);
  const int rank = op.input(0).rank();
  const auto parameter = [&](size_t i) {
    return rank == 2 ? e.input(i)
                     : e.Add("Unsqueeze", {e.input(i)}, {{"axes", AxesFrom(1, rank - 1)}});
  };
  const auto moments = e.Moments(e.input(0), AxesFrom(2, rank));
  return e.Finish({e.Normalize(e.input(0), moments, parameter(1), parameter(2))});
}

Result<Graph> ExpandGroupNormalization(const OpView& op) {
  const Dims& dims = op.input(0).dims;
  const int64_t groups = op.Int("num_groups");
  if (dims.elements() == 0) return Unsupported("an empty tensor has no groups to normalise");
  if (dims.rank() == kMaxRank) return Unsupported("a dim for the groups would be one too many");
  Expansion e(op);
  Axes split = {dims[0], groups, dims[1] / groups}, ones = {groups, dims[1] / groups}, whole;
  for (int d = 2; d < dims.rank(); ++d) split.push_back(dims[d]), ones.push_back(1);
  for (int64_t d : dims) whole.push_back(d);
  const auto reshape = [&](ValueId v, const Axes& shape) {
    return e.Add("Reshape", {v}, {{"shape", shape}});
  };
  const ValueId x = reshape(e.input(0), split);
  const auto moments = e.Moments(x, AxesFrom(2, dims.rank() + 1));
  const ValueId y = e.Normalize(x, moments, reshape(e.input(1), ones), reshape(e.input(2), ones));
  return e.Finish({reshape(y, whole)});
}

Result<Graph> ExpandLayerNormalization(const OpView& op) {
  Expansion e(op);
  const int rank = op.input(0).rank();
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(op.Int("axis"), rank));
  const auto moments = e.Moments(e.input(0), AxesFrom(axis, rank));
  std::vector<ValueId> outputs = {e.Normalize(e.input(0), moments, e.input(1), e.input(2)),
                                  kNoValue, kNoValue};
  if (op.has_output(1)) outputs[1] = e.Cast(moments[0], op.output(1).dtype);
  if (op.has_output(2)) {
    const ValueId deviation =
        e.Add("Sqrt", {e.Add("Add", {moments[1], e.Number(op.Float("epsilon"))})});
    outputs[2] = e.Cast(e.Add("Reciprocal", {deviation}), op.output(2).dtype);
  }
  return e.Finish(outputs);
}

Result<Graph> ExpandMeanVarianceNormalization(const OpView& op) {
  constexpr double kEpsilon = 1e-9;  // ONNX adds it to the deviation
  Expansion e(op);
  Axes axes = {0, 2, 3};
  if (op.Has("axes")) axes.assign(op.Ints("axes").begin(), op.Ints("axes").end());
  if (axes.empty()) axes = AxesFrom(0, op.input(0).rank());
  const auto moments = e.Moments(e.input(0), axes);
  const ValueId deviation = e.Add("Add", {e.Add("Sqrt", {moments[1]}), e.Number(kEpsilon)});
  const ValueId y = e.Add("Div", {e.Add("Sub", {e.Wide(0), moments[0]}), deviation});
  return e.Finish({e.Cast(y, op.output(0).dtype)});
}

// The greatest element is subtracted first: the logarithm of a sum of large powers would absorb the
// differences between them.
Result<Graph> ExpandSoftmax(const OpView& op) {
  Expansion e(op);
  const AttrList along{{"axes", Axes{op.Int("axis")}}};
  const ValueId x = e.Wide(0);
  const ValueId power = e.Add("Exp", {e.Add("Sub", {x, e.Add("ReduceMax", {x}, along)})});
  const ValueId y = e.Add("Div", {power, e.Add("ReduceSum", {power}, along)});
  return e.Finish({e.Cast(y, op.output(0).dtype)});
}

Result<Graph> ExpandLogSoftmax(const OpView& op) {
  Expansion e(op);
  const AttrList along{{"axes", Axes{op.Int("axis")}}};
  const ValueId x = e.Wide(0);
  const ValueId lowered = e.Add("Sub", {x, e.Add("ReduceMax", {x}, along)});
  const ValueId sum = e.Add("ReduceSum", {e.Add("Exp", {lowered})}, along);
  const ValueId y = e.Add("Sub", {lowered, e.Add("Log", {sum})});
  return e.Finish({e.Cast(y, op.output(0).dtype)});
}

Result<Graph> ExpandMeanLoss(const OpView& op) {
  if (op.String("reduction") != "mean") return Unsupported("only a mean has a finer form");
  Expansion e(op);
  AttrList attrs = op.attrs();
  attrs.Set("reduction", std::string("sum"));
  const size_t outputs = op.output_count();
  const ValueId target = e.input(1), weights = e.Wide(2);
  const auto sums = e.AddMany("", op.op(), {e.Wide(0), target, weights}, std::move(attrs), outputs);
  ValueId total = e.Number(static_cast<double>(op.input(1).elements()));
  if (op.Has("ignore_index") || weights != kNoValue) {
    const DType index = op.input(1).dtype;
    const bool ignores = op.Has("ignore_index");
    ValueId kept = kNoValue, chosen = target;
    if (ignores) {
      kept = e.Add("Not", {e.Add("Equal", {target, e.Integer(index, op.Int("ignore_index"))})});
      chosen = e.Add("Where", {kept, target, e.Integer(index, 0)});
    }
    ValueId each =
        weights == kNoValue ? e.Cast(kept, DType::kF64) : e.Add("Gather", {weights, chosen});
    if (ignores && weights != kNoValue) each = e.Add("Where", {kept, each, e.Number(0)});
    total = e.Add("ReduceSum", {each}, {{"keepdims", int64_t{0}}});
  }
  std::vector<ValueId> results = {e.Cast(e.Add("Div", {sums[0], total}), op.output(0).dtype)};
  if (op.has_output(1)) results.push_back(e.Cast(sums[1], op.output(1).dtype));
  return e.Finish(results);
}

Result<Graph> ExpandAttention(const OpView& op) {
  constexpr size_t kMask = 3, kPastKey = 4;
  for (size_t i = kPastKey; i < op.input_count(); ++i) {
    if (op.has_input(i)) return Unsupported("a cache must stay whole");
  }
  for (size_t o = 1; o < op.output_count(); ++o) {
    if (op.has_output(o)) return Unsupported("keys, values or scores as outputs must stay whole");
  }
  Expansion e(op);
  AttrList attrs = op.attrs();
  attrs.Remove("qk_matmul_output_mode");
  const auto parts =
      e.AddMany("msrt", "AttentionPart", {e.input(0), e.input(1), e.input(2), e.input(kMask)},
                std::move(attrs), 2);
  return e.Finish({parts[0]});
}

}  // namespace msrt
