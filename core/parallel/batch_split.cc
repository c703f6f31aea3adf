#include "core/parallel/batch_split.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>

#include "core/comm/tree_reduce.h"
#include "core/parallel/batch_builder.h"
#include "core/parallel/batch_values.h"
#include "core/region/resolved_space.h"
#include "ops/builder.h"
#include "ops/node_view.h"
#include "ops/resolve_space.h"
#include "ops/streams.h"

namespace msrt {
namespace {

bool Is(const Node& node, std::string_view domain, std::string_view op) {
  return node.domain == domain && node.op == op;
}

class BatchSplitter : BatchBuilder {
 public:
  BatchSplitter(const BatchSplitOptions& options, const BatchValues& values, const Graph& source,
                const OpSet* ops, Graph* out)
      : BatchBuilder(options, values, ops, out), source_(source) {}

  Result<BatchSplit> Run() {
    out_.nodes.clear();
    for (uint32_t v = 0; v < source_.value_count(); ++v) {
      const BatchDim& batch = values_[ValueId(v)];
      if (batch.follows()) out_.value(ValueId(v)).type.dims[batch.dim] = kUnknownDim;
    }
    AddInputs();
    for (size_t n = 0; n < source_.nodes.size(); ++n) {
      name_ = source_.nodes[n].name;
      Status status = AddNode(source_.nodes[n]);
      if (status.ok()) status = std::move(status_);
      if (!status.ok()) return std::move(status).Within(Describe(source_, n));
    }
    return split_;
  }

 private:
  // ---- nodes
  // --------------------------------------------------------------------------------------

  Status AddNode(const Node& node) {
    bool in = false, out = false, counts = false, all_counted = !node.outputs.empty();
    for (ValueId v : node.inputs) in |= values_.follows(v), counts |= values_.counts(v);
    for (ValueId v : node.outputs) {
      out |= values_.follows(v);
      all_counted &= v == kNoValue || values_.facts().known[IndexOf(v)] != nullptr;
    }
    if (counts && IsCastToFloat(node)) return AddCount(node);
    if (all_counted || (!in && !out && !counts)) {
      Copy(node);
      return OkStatus();
    }
    if (node.def == nullptr) return Unsupported("this build does not know the op");
    if (node.def->effect == Effect::kRandom && options_.ranks > 1) return AddRandom(node);
    if (node.def->effect == Effect::kControl || node.def->effect == Effect::kState ||
        node.def->effect == Effect::kComm)
      return Mixes("has effects");
    if (counts && !out) return Mixes("computes with the number of samples");
    if (Is(node, "msrt", "BatchNormTraining")) return AddBatchNorm(node);
    if (Is(node, "msrt", "BatchNormTrainingGrad")) return AddBatchNormGrad(node);
    if (Is(node, "msrt", "LayerNormGrad")) return AddLayerNormGrad(node);
    if (IsMeanLoss(node)) return AddMeanLoss(node);
    if (!in) {
      if (node.op == "Expand" || node.op == "ConstantOfShape") {
        Copy(node);
        return OkStatus();
      }
      return Mixes("makes samples from none");
    }
    if ((node.def->traits & kView) != 0) return AddView(node);
    if (IsAddingScatter(node) && !values_.follows(node.inputs[0])) return AddScatter(node);
    return AddBySpace(node);
  }

  static Status Mixes(std::string_view how) {
    return Unsupported("it ", how,
                       ", so the samples of a batch cannot be divided for it; use one rank and "
                       "sums in any order");
  }

  static bool IsCastToFloat(const Node& node) {
    if (!Is(node, "", "Cast")) return false;
    const AttrValue* to = node.attrs.Find("to");
    return to != nullptr && std::holds_alternative<DType>(*to) && IsFloat(std::get<DType>(*to));
  }

  // A number of samples that is computed with counts all of them; as a part of a shape, in
  // integers, those of the rank.
  Status AddCount(const Node& node) {
    MSRT_ASSIGN_OR_RETURN(Ints each, values_.PerSample(node.inputs[0]));
    const ConstTensor factor = ConstTensor::Of<int64_t>(
        DType::kI64, values_.facts().types[IndexOf(node.inputs[0])].dims, each);
    const ValueId count = Add("Mul", {all_samples_, out_.AddConstant("per_sample", factor)});
    Become(Add("Cast", {count}, node.attrs), node.outputs[0]);
    return OkStatus();
  }

  // The elements of a sample stay together if as many elements as before are in dims before it.
  Status AddView(const Node& node) {
    const BatchDim &from = values_[node.inputs[0]], &to = values_[node.outputs[0]];
    if (!from.follows() || !to.follows() ||
        DimsOf(node.inputs[0]).product(0, from.dim) != DimsOf(node.outputs[0]).product(0, to.dim))
      return Mixes("changes the order of samples");
    Copy(node);
    return OkStatus();
  }

  // The axis that a dim follows element by element; -1: none.
  static int AxisOf(const TensorMap& map, int dim) {
    if (!map.present || map.dropped) return -1;
    const DimMap& d = map.dims[static_cast<size_t>(dim)];
    if (d.kind == DimMap::Kind::kAffine) return d.offset == 0 && d.step == 1 ? d.axis : -1;
    if (d.kind != DimMap::Kind::kFunction) return -1;
    for (int64_t i = 0; i < d.extent; ++i) {
      if (d.Touched({i, i + 1}) != Interval{i, i + 1}) return -1;
    }
    return d.axis;
  }
  static bool Follows(const TensorMap& map, int axis) {
    for (const DimMap& d : map.dims) {
      if (map.present && !map.dropped && d.kind != DimMap::Kind::kFixed && d.axis == axis)
        return true;
    }
    return false;
  }

  // The axis of the batch in the space of the node, or an error.
  Result<int> BatchAxis(const Node& node, const ResolvedSpace& space) const {
    int axis = -1;
    const auto check = [&](ValueId v, const TensorMap& map) -> Status {
      if (map.dropped) return OkStatus();
      if (!values_.follows(v)) return OkStatus();
      const int own = AxisOf(map, values_[v].dim);
      if (own < 0 || (axis >= 0 && own != axis)) return Mixes("needs several samples at once");
      axis = own;
      return OkStatus();
    };
    for (size_t i = 0; i < node.inputs.size(); ++i)
      MSRT_RETURN_IF_ERROR(check(node.inputs[i], space.inputs[i]));
    for (size_t o = 0; o < node.outputs.size(); ++o)
      MSRT_RETURN_IF_ERROR(check(node.outputs[o], space.outputs[o]));
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const bool whole = node.inputs[i] != kNoValue && !values_.follows(node.inputs[i]);
      if (whole && (Follows(space.inputs[i], axis) || space.inputs[i].first_of == axis))
        return Mixes("has an operand that is the same for all samples along their axis");
    }
    return axis;
  }

  Status AddBySpace(const Node& node) {
    const NodeView view(node, values_.facts());
    auto space = ResolveSpace(*node.def, view.op());
    if (!space.ok()) return Mixes(StrCat("cannot be cut (", space.status().message(), ")"));
    MSRT_ASSIGN_OR_RETURN(const int axis, BatchAxis(node, *space));
    const Axis& batch = space->axes[axis];
    if (batch.kind == AxisKind::kParallel) {
      Copy(node);
      return OkStatus();
    }
    if (batch.kind != AxisKind::kReduce) return Mixes("needs several samples at once");
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      if (values_.follows(node.outputs[o])) return Mixes("needs several samples at once");
    }
    if (Is(node, "", "ReduceMean")) return AddMean(node);
    std::string_view reduce;
    if (batch.monoid == Monoid::kSum) reduce = "sum";
    if (batch.monoid == Monoid::kProduct) reduce = "product";
    if (batch.monoid == Monoid::kMax) reduce = "max";
    if (batch.monoid == Monoid::kMin) reduce = "min";
    if (reduce.empty() || node.outputs.size() != 1)
      return Mixes("reduces samples in a way that ranks cannot combine");
    Become(Combined(OutputOf(AddForShards(node), 0), reduce), node.outputs[0]);
    return OkStatus();
  }

  // Each element is drawn by its index in the whole batch.
  Status AddRandom(const Node& node) {
    if (node.def->custom != nullptr)
      return Mixes("draws random numbers by its own rule, whose order ranks do not know");
    MSRT_RETURN_IF_ERROR(AddBySpace(node));
    if (!DrawsNumbers(node)) return OkStatus();
    const std::optional<size_t> input = PositionInput(*node.def);
    if (!input.has_value() || (*input < node.inputs.size() && node.inputs[*input] != kNoValue))
      return Mixes("draws the random numbers of a piece");
    Node drawing = std::move(out_.nodes.back());
    out_.nodes.pop_back();
    ValueId like = node.inputs[0];
    if (node.op == "Multinomial") {  // its classes are not in the output
      const ValueId each = IntConstant({DimsOf(node.outputs[0])[1]});
      const ValueId rows = Add("Shape", {like}, {{"start", int64_t{0}}, {"end", int64_t{1}}});
      like = Add("Expand", {Number(0), Add("Concat", {rows, each}, {{"axis", int64_t{0}}})});
    }
    if (!status_.ok()) return OkStatus();  // the caller looks at it
    SetInput(&drawing, *input, Position(like, values_[node.outputs[0]]));
    Copy(drawing);
    return OkStatus();
  }

  // ---- tables of embeddings ---------------------------------------------------------------------

  static bool IsAddingScatter(const Node& node) {
    if (!Is(node, "", "ScatterND") && !Is(node, "", "ScatterElements")) return false;
    const AttrValue* reduction = node.attrs.Find("reduction");
    return reduction != nullptr && std::get<std::string>(*reduction) == "add";
  }

  // Whether the value is made of zeros by an Expand, as the gradients of gathers are.
  bool IsZeros(ValueId v) const {
    for (const Node& node : source_.nodes) {
      if (node.outputs.empty() || node.outputs[0] != v) continue;
      if (!Is(node, "", "Expand")) return false;
      const auto& filler = source_.value(node.inputs[0]).constant;
      return filler != nullptr && std::all_of(filler->bytes.begin(), filler->bytes.end(),
                                              [](std::byte b) { return b == std::byte{0}; });
    }
    return false;
  }

  // Samples add rows to a table that all have in common: the gradient of Gather. If the rows of a
  // batch are fewer than those of the table, ranks exchange the rows, and each adds them all in the
  // order of samples. Otherwise each shard has a table, and tables are summed. The choice does not
  // depend on the number of ranks, so that the bits do not.
  Status AddScatter(const Node& node) {
    const ValueId data = node.inputs[0], indices = node.inputs[1], updates = node.inputs[2];
    const BatchDim &of_indices = values_[indices], &of_updates = values_[updates];
    const bool by_tuples = node.op == "ScatterND";
    const int last = DimsOf(indices).rank() - 1;
    if (!of_indices.follows() || of_indices.dim != of_updates.dim ||
        of_indices.multiple != of_updates.multiple || (by_tuples && of_indices.dim == last) ||
        (!by_tuples && of_indices.dim != AxisOfScatter(node)))
      return Mixes("adds samples in a way that ranks cannot divide");
    const bool floats = IsFloat(TypeOf(updates));
    const double rows = static_cast<double>(values_.ElementsPerSample(updates)) *
                        static_cast<double>(typical_samples_);
    if (by_tuples && floats && rows <= static_cast<double>(DimsOf(data).elements()))
      return AddScatterOfRows(node);
    const bool onto_zeros = IsZeros(data);
    Node each = node;
    if (!onto_zeros) {
      const ValueId zero = CastTo(Number(0), TypeOf(data));
      each.inputs[0] = Add("Expand", {zero, Add("Shape", {data})});
    }
    const ValueId sum = Combined(OutputOf(AddForShards(each), 0), "sum");
    Become(onto_zeros ? sum : Add("Add", {data, sum}), node.outputs[0]);
    return OkStatus();
  }

  int AxisOfScatter(const Node& node) const {
    const AttrValue* axis = node.attrs.Find("axis");
    const auto at = static_cast<int>(axis == nullptr ? 0 : std::get<int64_t>(*axis));
    return at < 0 ? at + DimsOf(node.inputs[0]).rank() : at;
  }

  // With the samples as first dim, the order of all rows is that of ranks.
  Status AddScatterOfRows(const Node& node) {
    const auto samples_first = [&](ValueId v) {
      const int dim = values_[v].dim;
      if (dim == 0) return v;
      Ints order{dim};
      for (int d = 0; d < DimsOf(v).rank(); ++d) {
        if (d != dim) order.push_back(d);
      }
      return Add("Transpose", {v}, {{"perm", std::move(order)}});
    };
    const auto i64 = [&](ValueId v) {
      return TypeOf(v) == DType::kI64 ? v : CastTo(v, DType::kI64);
    };
    const ValueId indices = i64(samples_first(node.inputs[1])),
                  updates = samples_first(node.inputs[2]);
    Become(AddMany("msrt", "AllScatterAdd", {node.inputs[0], indices, updates}, {}, 1)[0],
           node.outputs[0]);
    return OkStatus();
  }

  Status AddMean(const Node& node) {
    Node sum = node;
    sum.op = "ReduceSum";
    const ValueId total = Combined(OutputOf(AddForShards(sum), 0), "sum");
    const int64_t each = values_.ElementsPerSample(node.inputs[0]) /
                         std::max<int64_t>(1, DimsOf(node.outputs[0]).elements());
    const DType dtype = TypeOf(node.inputs[0]);
    Become(Add("Div", {total, CastTo(Count(each), dtype)}), node.outputs[0]);
    return OkStatus();
  }

  // ---- losses
  // -------------------------------------------------------------------------------------

  static bool IsMeanLoss(const Node& node) {
    const bool loss = Is(node, "", "SoftmaxCrossEntropyLoss") ||
                      Is(node, "", "NegativeLogLikelihoodLoss") ||
                      Is(node, "msrt", "SoftmaxCrossEntropyGrad");
    const AttrValue* reduction = node.attrs.Find("reduction");
    return loss && (reduction == nullptr || std::get<std::string>(*reduction) == "mean");
  }

  // The sum of the weights of all samples, by which a mean loss divides.
  ValueId SumOfWeights(ValueId labels, ValueId weights, const AttrValue* ignored, DType dtype) {
    const int64_t index = ignored == nullptr ? 0 : std::get<int64_t>(*ignored);
    ValueId& sum = weight_sums_.try_emplace({labels, weights, ignored != nullptr, index}, kNoValue)
                       .first->second;
    if (sum != kNoValue) return sum;
    const BatchDim& batch = values_[labels];
    if (ignored == nullptr && weights == kNoValue)
      return sum = CastTo(Count(values_.ElementsPerSample(labels)), dtype);
    ValueId counted = kNoValue, classes = labels;
    if (ignored != nullptr) {
      const ValueId same =
          Add("Equal",
              {labels, CastTo(out_.AddConstant("index", ConstTensor::Of<int64_t>(
                                                            DType::kI64, {}, std::array{index})),
                              TypeOf(labels))});
      counted = CastTo(Add("Not", {same}), DType::kI64);
      // A class that exists; its weight does not count.
      classes = Add("Mul", {CastTo(labels, DType::kI64), counted});
    }
    if (weights == kNoValue) return sum = CastTo(SumOfAll(counted, batch), dtype);
    ValueId each = Add("Gather", {weights, classes}, {{"axis", int64_t{0}}});
    if (counted != kNoValue) each = Add("Mul", {each, CastTo(counted, dtype)});
    return sum = SumOfAll(each, batch);
  }

  // As a sum, divided by the weights of all samples.
  Status AddMeanLoss(const Node& node) {
    const bool gradient = node.domain == "msrt";
    const size_t first = gradient ? 1 : 0;
    const auto input = [&](size_t i) { return i < node.inputs.size() ? node.inputs[i] : kNoValue; };
    if (values_.follows(input(first + 2))) return Mixes("has class weights of each sample");
    if (!gradient && node.outputs.size() > 1 && node.outputs[1] != kNoValue)
      return Mixes("has log-probabilities as a second result");
    const ValueId divisor = SumOfWeights(input(first + 1), input(first + 2),
                                         node.attrs.Find("ignore_index"), TypeOf(input(first)));
    Node sum = node;
    sum.attrs.Set("reduction", std::string("sum"));
    if (gradient) {
      sum.inputs[0] = Add("Div", {input(0), divisor});
      Copy(sum);
      return OkStatus();
    }
    sum.outputs.resize(1);
    const ValueId total = Combined(OutputOf(AddForShards(sum), 0), "sum");
    Become(Add("Div", {total, divisor}), node.outputs[0]);
    return OkStatus();
  }

  // ---- normalisations
  // -----------------------------------------------------------------------------

  static double EpsilonOf(const Node& node) {
    const AttrValue* value = node.attrs.Find("epsilon");
    return value == nullptr ? 1e-5 : std::get<double>(*value);
  }
  ValueId Row(ValueId sums, int64_t row) {
    const ValueId index =
        out_.AddConstant("row", ConstTensor::Of<int64_t>(DType::kI64, {}, std::array{row}));
    return Add("Gather", {sums, index}, {{"axis", int64_t{0}}});
  }
  // The sums of every channel over the samples of all ranks. `others` follow `x`, apart from a
  // mean.
  ValueId ChannelSums(ValueId x, ValueId gradient, ValueId mean) {
    const std::vector<ValueId> parts = Parts(x);
    const std::vector<ValueId> gradients =
        gradient == kNoValue ? std::vector<ValueId>() : Parts(gradient);
    std::vector<ValueId> sums;
    for (size_t s = 0; s < parts.size(); ++s) {
      std::vector<ValueId> inputs{parts[s]};
      if (gradient != kNoValue) inputs = {parts[s], gradients[s], mean};
      sums.push_back(AddMany("msrt", "ChannelSums", std::move(inputs), {}, 1)[0]);
    }
    return Combined(std::move(sums), "sum");
  }
  // How many elements of a channel there are.
  ValueId ElementsOfChannel(ValueId x) {
    return Count(values_.ElementsPerSample(x) / std::max<int64_t>(1, DimsOf(x)[1]));
  }

  Status AddBatchNorm(const Node& node) {
    const ValueId x = node.inputs[0], scale = node.inputs[1], bias = node.inputs[2];
    if (values_[x].dim != 0) return Mixes("normalises over samples that are not its first dim");
    const DType dtype = TypeOf(scale);
    const ValueId sums = ChannelSums(x, kNoValue, kNoValue), count = ElementsOfChannel(x);
    const ValueId mean = Add("Div", {Row(sums, 0), count});
    const ValueId squares = Add("Div", {Row(sums, 1), count});
    const ValueId variance =
        Add("Max", {Add("Sub", {squares, Add("Mul", {mean, mean})}), Number(0)});
    const auto output = [&](size_t o) {
      return o < node.outputs.size() ? node.outputs[o] : kNoValue;
    };
    const auto rounded = [&](ValueId statistic, ValueId result) {
      const ValueId made = CastTo(statistic, dtype);
      Become(made, result);
      return result == kNoValue ? made : result;
    };
    const ValueId of_mean = rounded(mean, output(1)), of_variance = rounded(variance, output(2));
    Become(Add("BatchNormalization", {x, scale, bias, of_mean, of_variance},
               {{"epsilon", EpsilonOf(node)}}),
           output(0));
    return OkStatus();
  }

  // ops/normalization_grad.cc has the formulas. What is the same for all elements of a channel is
  // computed in double; what depends on X alone is one BatchNormalization.
  Status AddBatchNormGrad(const Node& node) {
    const ValueId dy = node.inputs[0], x = node.inputs[1], scale = node.inputs[2],
                  mean = node.inputs[3], variance = node.inputs[4];
    if (values_[x].dim != 0 || values_[dy].dim != 0)
      return Mixes("normalises over samples that are not its first dim");
    const auto wide = [&](ValueId v) { return CastTo(v, DType::kF64); };
    const DType dtype = TypeOf(scale);
    const ValueId all = ChannelSums(x, dy, mean), count = ElementsOfChannel(x);
    const ValueId sum = Row(all, 0), products = Row(all, 1);
    const ValueId inverse =
        Add("Reciprocal", {Add("Sqrt", {Add("Add", {wide(variance), Number(EpsilonOf(node))})})});
    const auto output = [&](size_t o) {
      return o < node.outputs.size() ? node.outputs[o] : kNoValue;
    };
    if (output(1) != kNoValue) Become(CastTo(Add("Mul", {products, inverse}), dtype), output(1));
    if (output(2) != kNoValue) Become(CastTo(sum, dtype), output(2));
    if (output(0) == kNoValue) return OkStatus();
    const ValueId factor = Add("Mul", {wide(scale), inverse});
    const ValueId down = Add("Neg", {Add("Div", {factor, count})});
    const ValueId shift = CastTo(Add("Mul", {down, sum}), dtype);
    const ValueId slope = CastTo(Add("Mul", {Add("Mul", {down, inverse}), products}), dtype);
    const ValueId of_x = Add("BatchNormalization", {x, slope, shift, mean, variance},
                             {{"epsilon", EpsilonOf(node)}});
    Ints by_channel(DimsOf(x).size() - 1, 1);
    by_channel[0] = -1;
    const ValueId of_channel =
        Add("Reshape", {CastTo(factor, TypeOf(dy))}, {{"shape", std::move(by_channel)}});
    Become(Add("Add", {Add("Mul", {dy, of_channel}), of_x}), output(0));
    return OkStatus();
  }

  // The gradients of the parameters are sums over samples, that of X belongs to each.
  Status AddLayerNormGrad(const Node& node) {
    const AttrValue* axis = node.attrs.Find("axis");
    const int64_t given = axis == nullptr ? -1 : std::get<int64_t>(*axis);
    const int first = static_cast<int>(given < 0 ? given + DimsOf(node.inputs[1]).rank() : given);
    const BatchDim& batch = values_[node.inputs[1]];
    if (!batch.follows() || batch.dim >= first) return Mixes("normalises over samples");
    const std::vector<std::vector<ValueId>> shards = AddForShards(node);
    for (size_t o = 1; o < node.outputs.size(); ++o) {
      if (node.outputs[o] != kNoValue)
        Become(Combined(OutputOf(shards, o), "sum"), node.outputs[o]);
    }
    if (node.outputs[0] != kNoValue)
      Become(Add("Concat", OutputOf(shards, 0), {{"axis", int64_t{batch.dim}}}), node.outputs[0]);
    return OkStatus();
  }

  const Graph& source_;
  std::map<std::tuple<ValueId, ValueId, bool, int64_t>, ValueId> weight_sums_;
};

}  // namespace

Result<BatchSplit> SplitBatch(const BatchSplitOptions& options, const Evaluator& evaluator,
                              const OpSet* ops, Graph* graph) {
  if (options.by_shards && options.ranks > kVirtualShards)
    return InvalidArgument("sums with the same bits for any number of ranks need at most ",
                           kVirtualShards, " ranks, there are ", options.ranks,
                           "; use fewer ranks, or sums in any order");
  const Graph source = *graph;
  MSRT_ASSIGN_OR_RETURN(const BatchValues values,
                        BatchValues::Find(source, options.typical, evaluator));
  return BatchSplitter(options, values, source, ops, graph).Run();
}

}  // namespace msrt
