#include "core/train/losses.h"

#include <array>
#include <cmath>

#include "ops/builder.h"

namespace msrt {
namespace {

using Ints = std::vector<int64_t>;

// Adds nodes and keeps the first error: after it, values are kNoValue.
class Formula {
 public:
  explicit Formula(GraphBuilder* builder) : builder_(builder) {}

  const Type& type(ValueId v) const { return builder_->graph().value(v).type; }
  void Fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }
  const Status& status() const { return status_; }

  ValueId Add(std::string_view op, std::vector<ValueId> inputs, AttrList attrs = {}) {
    if (!status_.ok()) return kNoValue;
    auto added = builder_->Add(op, "loss", std::move(inputs), std::move(attrs));
    if (added.ok()) return *added;
    status_ = added.status();
    return kNoValue;
  }
  ValueId Constant(ConstTensor data) {
    return status_.ok() ? builder_->graph().AddConstant("loss", std::move(data)) : kNoValue;
  }
  // A number in the element type of `like`.
  ValueId Number(double number, ValueId like) {
    if (!status_.ok()) return kNoValue;
    const DType dtype = type(like).dtype;
    if (dtype == DType::kF64 || dtype == DType::kI64) {
      return dtype == DType::kF64 ? Constant(ConstTensor::Of<double>(dtype, {}, std::array{number}))
                                  : Constant(ConstTensor::Of<int64_t>(
                                        dtype, {}, std::array{static_cast<int64_t>(number)}));
    }
    const ValueId wide = Constant(ConstTensor::Of<double>(DType::kF64, {}, std::array{number}));
    return Add("Cast", {wide}, {{"to", dtype}});
  }
  ValueId Plus(ValueId a, ValueId b) { return Add("Add", {a, b}); }
  ValueId Minus(ValueId a, ValueId b) { return Add("Sub", {a, b}); }
  ValueId Times(ValueId a, ValueId b) { return Add("Mul", {a, b}); }
  ValueId Over(ValueId a, ValueId b) { return Add("Div", {a, b}); }
  ValueId Plus(ValueId a, double b) { return Plus(a, Number(b, a)); }
  ValueId Minus(double a, ValueId b) { return Minus(Number(a, b), b); }
  ValueId Times(ValueId a, double b) { return Times(a, Number(b, a)); }
  ValueId Negative(ValueId a) { return Add("Neg", {a}); }
  ValueId Sum(ValueId a, AttrList attrs = {{"keepdims", int64_t{0}}}) {
    return Add("ReduceSum", {a}, std::move(attrs));
  }
  ValueId Where(ValueId condition, ValueId a, ValueId b) { return Add("Where", {condition, a, b}); }
  ValueId Reduce(ValueId losses, LossReduction how) {
    if (how == LossReduction::kNone) return losses;
    return Add(how == LossReduction::kMean ? "ReduceMean" : "ReduceSum", {losses},
               {{"keepdims", int64_t{0}}});
  }

 private:
  GraphBuilder* const builder_;
  Status status_;
};

// ---- cross-entropy ------------------------------------------------------------------------------

// The weights of the classes, or ones, with the rank of the scores.
ValueId ClassWeights(Formula& f, const LossSpec& spec, ValueId scores) {
  if (spec.class_weights == kNoValue) return f.Number(1, scores);
  Ints shape(f.type(scores).dims.size(), 1);
  shape[1] = -1;
  return f.Add("Reshape", {spec.class_weights}, {{"shape", std::move(shape)}});
}

// Targets are probabilities.
ValueId DenseCrossEntropy(Formula& f, const LossSpec& spec, ValueId scores, ValueId target) {
  if (spec.ignore_index) {
    f.Fail(InvalidArgument("cross-entropy: ignore_index needs classes as targets"));
    return kNoValue;
  }
  if (spec.label_smoothing != 0) {
    const double share = spec.label_smoothing / static_cast<double>(f.type(scores).dims[1]);
    target = f.Plus(f.Times(target, 1 - spec.label_smoothing), share);
  }
  const ValueId log_probabilities = f.Add("LogSoftmax", {scores}, {{"axis", int64_t{1}}});
  const ValueId parts = f.Times(f.Times(log_probabilities, target), ClassWeights(f, spec, scores));
  const ValueId losses = f.Negative(f.Sum(parts, {{"axes", Ints{1}}, {"keepdims", int64_t{0}}}));
  return f.Reduce(losses, spec.reduction);
}

ValueId CrossEntropy(Formula& f, const LossSpec& spec, ValueId scores, ValueId target) {
  const bool dense = IsFloat(f.type(target).dtype);
  if (spec.label_smoothing != 0 && !IsKnown(f.type(scores).dims[1])) {
    f.Fail(InvalidArgument("cross-entropy: label smoothing needs a known number of classes"));
    return kNoValue;
  }
  if (dense) return DenseCrossEntropy(f, spec, scores, target);
  constexpr std::string_view kNames[] = {"mean", "sum", "none"};
  AttrList attrs{{"reduction", std::string(kNames[static_cast<size_t>(spec.reduction)])}};
  if (spec.ignore_index) attrs.Set("ignore_index", *spec.ignore_index);
  std::vector<ValueId> inputs{scores, target};
  if (spec.class_weights != kNoValue) inputs.push_back(spec.class_weights);
  const ValueId hard = f.Add("SoftmaxCrossEntropyLoss", inputs, attrs);
  if (spec.label_smoothing == 0) return hard;

  // The part that is spread over all classes. A mean divides it by the weights of the right ones.
  const ValueId log_probabilities = f.Add("LogSoftmax", {scores}, {{"axis", int64_t{1}}});
  const ValueId weighted = f.Times(log_probabilities, ClassWeights(f, spec, scores));
  ValueId spread = f.Negative(f.Sum(weighted, {{"axes", Ints{1}}, {"keepdims", int64_t{0}}}));
  ValueId weights = spec.class_weights, classes = target, ignored = kNoValue;
  if (spec.ignore_index) {
    ignored = f.Add("Equal", {target, f.Number(static_cast<double>(*spec.ignore_index), target)});
    classes = f.Where(ignored, f.Number(0, target), target);
    spread = f.Where(ignored, f.Number(0, spread), spread);
  }
  if (spec.reduction != LossReduction::kNone) spread = f.Sum(spread);
  if (spec.reduction == LossReduction::kMean) {
    weights = weights == kNoValue ? f.Add("Expand", {f.Number(1, scores), f.Add("Shape", {target})})
                                  : f.Add("Gather", {weights, classes}, {{"axis", int64_t{0}}});
    if (ignored != kNoValue) weights = f.Where(ignored, f.Number(0, scores), weights);
    spread = f.Over(spread, f.Sum(weights));
  }
  const double share = spec.label_smoothing / static_cast<double>(f.type(scores).dims[1]);
  return f.Plus(f.Times(hard, 1 - spec.label_smoothing), f.Times(spread, share));
}

// ---- losses of elements -------------------------------------------------------------------------

ValueId Huber(Formula& f, double delta, ValueId difference) {
  const ValueId distance = f.Add("Abs", {difference});
  const ValueId parabola = f.Times(f.Times(difference, difference), 0.5);
  const ValueId line = f.Times(f.Plus(distance, -0.5 * delta), delta);
  return f.Where(f.Add("LessOrEqual", {distance, f.Number(delta, distance)}), parabola, line);
}

// Logarithms end at -100, as in PyTorch; the clipped argument keeps their gradients finite.
ValueId BinaryCrossEntropy(Formula& f, ValueId probability, ValueId target) {
  const auto log = [&](ValueId v) {
    const ValueId positive = f.Add("Clip", {v}, {{"min", std::exp(-100.0)}});
    return f.Add("Clip", {f.Add("Log", {positive})}, {{"min", -100.0}});
  };
  const ValueId yes = f.Times(target, log(probability));
  const ValueId no = f.Times(f.Minus(1, target), log(f.Minus(1, probability)));
  return f.Negative(f.Plus(yes, no));
}

// target * (log(target) - prediction), zero where the target is.
ValueId KullbackLeibler(Formula& f, ValueId prediction, ValueId target) {
  const ValueId is_zero = f.Add("Equal", {target, f.Number(0, target)});
  const ValueId log = f.Add("Log", {f.Where(is_zero, f.Number(1, target), target)});
  return f.Times(target, f.Minus(log, prediction));
}

// The sum divided by the number of samples.
ValueId MeanOverSamples(Formula& f, ValueId losses) {
  const ValueId samples = f.Add("Shape", {losses}, {{"start", int64_t{0}}, {"end", int64_t{1}}});
  if (!f.status().ok()) return kNoValue;
  const ValueId count = f.Add("Squeeze", {samples}, {{"axes", Ints{0}}});
  return f.Over(f.Sum(losses), f.Add("Cast", {count}, {{"to", f.type(losses).dtype}}));
}

// 1 - (2 * sum(p * t) + smooth) / (sum(p) + sum(t) + smooth)
ValueId Dice(Formula& f, double smooth, ValueId prediction, ValueId target) {
  Ints axes;
  for (int d = 2; d < f.type(prediction).rank(); ++d) axes.push_back(d);
  const auto sum = [&](ValueId v) {
    return f.Sum(v,
                 {{"axes", axes}, {"keepdims", int64_t{0}}, {"noop_with_empty_axes", int64_t{1}}});
  };
  const ValueId common = f.Plus(f.Times(sum(f.Times(prediction, target)), 2), smooth);
  const ValueId all = f.Plus(f.Plus(sum(prediction), sum(target)), smooth);
  return f.Minus(1, f.Over(common, all));
}

// ---- connectionist temporal classification ------------------------------------------------------

// Stands for the logarithm of zero; finite, so that gradients are.
constexpr double kNever = -1e30;

// The targets with blanks between, before and after: [N, 2 * S + 1].
ValueId WithBlanks(Formula& f, ValueId target, int64_t blank) {
  const int64_t count = f.type(target).dims[1];
  const ValueId blanks = f.Plus(f.Times(target, 0), static_cast<double>(blank));
  const ValueId pairs = f.Add("Concat",
                              {f.Add("Unsqueeze", {blanks}, {{"axes", Ints{2}}}),
                               f.Add("Unsqueeze", {target}, {{"axes", Ints{2}}})},
                              {{"axis", int64_t{2}}});
  const ValueId flat = f.Add("Reshape", {pairs}, {{"shape", Ints{0, 2 * count}}});
  const ValueId last =
      f.Add("Slice", {blanks}, {{"starts", Ints{0}}, {"ends", Ints{1}}, {"axes", Ints{1}}});
  return f.Add("Concat", {flat, last}, {{"axis", int64_t{1}}});
}

// Columns moved to the right by `by`; the first ones become impossible.
ValueId MovedRight(Formula& f, ValueId v, int64_t columns, int64_t by) {
  const ValueId rest =
      f.Add("Slice", {v}, {{"starts", Ints{0}}, {"ends", Ints{columns - by}}, {"axes", Ints{1}}});
  return f.Add("Pad", {rest}, {{"pads", Ints{by, 0}}, {"axes", Ints{1}}, {"value", kNever}});
}

ValueId LogSumOf(Formula& f, const std::vector<ValueId>& parts) {
  std::vector<ValueId> columns;
  for (ValueId v : parts) columns.push_back(f.Add("Unsqueeze", {v}, {{"axes", Ints{2}}}));
  return f.Add("ReduceLogSumExp", {f.Add("Concat", std::move(columns), {{"axis", int64_t{2}}})},
               {{"axes", Ints{2}}, {"keepdims", int64_t{0}}});
}

// The forward recursion over the steps, in logarithms: alpha[n, l] is the probability of all
// paths that end at position l of the target with blanks.
ValueId Ctc(Formula& f, const LossSpec& spec, ValueId prediction, ValueId target) {
  const Type p = f.type(prediction), t = f.type(target);
  if (!t.rank_known || p.rank() != 3 || t.rank() != 2 || !IsKnown(p.dims[0]) ||
      !IsKnown(t.dims[1]) || t.dims[1] < 1 || p.dims[0] < 1 || spec.input_lengths == kNoValue ||
      spec.target_lengths == kNoValue || (p.dtype != DType::kF32 && p.dtype != DType::kF64)) {
    f.Fail(InvalidArgument("CTC: the prediction is ", p, " and the target ", t,
                           "; needs f32 or f64 [T, N, C] and [N, S] with known T and S, and the "
                           "lengths of both"));
    return kNoValue;
  }
  const int64_t steps = p.dims[0], columns = 2 * t.dims[1] + 1;
  const ValueId labels = WithBlanks(f, target, spec.blank);
  const ValueId indices = f.Add("Expand", {f.Add("Unsqueeze", {labels}, {{"axes", Ints{0}}})},
                                {{"shape", Ints{steps, 1, 1}}});
  const ValueId emitted = f.Add("GatherElements", {prediction, indices}, {{"axis", int64_t{2}}});
  const auto at_step = [&](int64_t step) {
    const ValueId slice = f.Add(
        "Slice", {emitted}, {{"starts", Ints{step}}, {"ends", Ints{step + 1}}, {"axes", Ints{0}}});
    return f.Add("Squeeze", {slice}, {{"axes", Ints{0}}});
  };

  // A path may leave out the blank between two different labels.
  const auto part = [&](int64_t begin, int64_t end) {
    return f.Add("Slice", {labels},
                 {{"starts", Ints{begin}}, {"ends", Ints{end}}, {"axes", Ints{1}}});
  };
  const ValueId same = f.Add("Equal", {part(2, columns), part(0, columns - 2)});
  const ValueId leap = f.Where(same, f.Number(kNever, prediction), f.Number(0, prediction));
  const ValueId leaps =
      f.Add("Pad", {leap}, {{"pads", Ints{2, 0}}, {"axes", Ints{1}}, {"value", kNever}});

  std::vector<double> start(static_cast<size_t>(columns), kNever);
  start[0] = start[1] = 0;
  ValueId first = f.Constant(ConstTensor::Of<double>(DType::kF64, {1, columns}, start));
  first = f.Add("Cast", {first}, {{"to", p.dtype}});
  ValueId alpha = f.Plus(at_step(0), first);
  const ValueId lengths = f.Add("Unsqueeze", {spec.input_lengths}, {{"axes", Ints{1}}});
  for (int64_t step = 1; step < steps; ++step) {
    const ValueId reached = LogSumOf(f, {alpha, MovedRight(f, alpha, columns, 1),
                                         f.Plus(MovedRight(f, alpha, columns, 2), leaps)});
    const ValueId next = f.Plus(reached, at_step(step));
    const ValueId runs = f.Add("Greater", {lengths, f.Number(static_cast<double>(step), lengths)});
    alpha = f.Where(runs, next, alpha);
  }
  // Paths end at the last label or at the blank after it.
  const ValueId counts = f.Add("Unsqueeze", {spec.target_lengths}, {{"axes", Ints{1}}});
  const ValueId blank_end = f.Times(counts, 2);
  const ValueId ends = f.Add("Concat", {blank_end, f.Plus(blank_end, -1)}, {{"axis", int64_t{1}}});
  const ValueId last = f.Add("GatherElements", {alpha, ends}, {{"axis", int64_t{1}}});
  const ValueId losses =
      f.Negative(f.Add("ReduceLogSumExp", {last}, {{"axes", Ints{1}}, {"keepdims", int64_t{0}}}));
  if (spec.reduction != LossReduction::kMean) return f.Reduce(losses, spec.reduction);
  const ValueId divisors = f.Add("Cast", {spec.target_lengths}, {{"to", p.dtype}});
  return f.Reduce(f.Over(losses, divisors), LossReduction::kMean);
}

ValueId LossOf(Formula& f, const LossSpec& spec, ValueId prediction, ValueId target) {
  switch (spec.kind) {
    case LossKind::kCrossEntropy:
      return CrossEntropy(f, spec, prediction, target);
    case LossKind::kMeanSquares: {
      const ValueId difference = f.Minus(prediction, target);
      return f.Reduce(f.Times(difference, difference), spec.reduction);
    }
    case LossKind::kMeanAbsolute:
      return f.Reduce(f.Add("Abs", {f.Minus(prediction, target)}), spec.reduction);
    case LossKind::kHuber:
      return f.Reduce(Huber(f, spec.delta, f.Minus(prediction, target)), spec.reduction);
    case LossKind::kBinaryCrossEntropy:
      return f.Reduce(BinaryCrossEntropy(f, prediction, target), spec.reduction);
    case LossKind::kBinaryCrossEntropyWithLogits:
      return f.Reduce(f.Minus(f.Add("Softplus", {prediction}), f.Times(prediction, target)),
                      spec.reduction);
    case LossKind::kKullbackLeibler: {
      const ValueId losses = KullbackLeibler(f, prediction, target);
      if (spec.reduction == LossReduction::kMean) return MeanOverSamples(f, losses);
      return f.Reduce(losses, spec.reduction);
    }
    case LossKind::kDice:
      return f.Reduce(Dice(f, spec.smooth, prediction, target), spec.reduction);
    case LossKind::kCtc:
      return Ctc(f, spec, prediction, target);
  }
  return kNoValue;
}

}  // namespace

Result<ValueId> AddLoss(GraphBuilder& builder, const LossSpec& spec, ValueId prediction,
                        ValueId target) {
  const Type type = builder.graph().value(prediction).type;
  const bool classes = spec.kind == LossKind::kCrossEntropy || spec.kind == LossKind::kDice;
  if (!type.is_tensor() || !IsFloat(type.dtype) || !type.rank_known ||
      (classes && type.rank() < 2)) {
    return InvalidArgument("the prediction of a loss is ", type,
                           ", must be a float tensor of known rank",
                           classes ? " with the dims [N, C, ...]" : "");
  }
  if (spec.delta <= 0 || spec.label_smoothing < 0 || spec.label_smoothing > 1) {
    return InvalidArgument("delta = ", spec.delta,
                           ", must be above 0; label_smoothing = ", spec.label_smoothing,
                           ", must be in [0, 1]");
  }
  Formula formula(&builder);
  const ValueId loss = LossOf(formula, spec, prediction, target);
  MSRT_RETURN_IF_ERROR(formula.status());
  return loss;
}

}  // namespace msrt
