// LSTM as MindSpore's primitive of that name, one for each direction. Its gates have another order,
// its two biases are one, and all weights are one list.
#include <algorithm>

#include "core/graph/constants.h"
#include "tools/msconvert/mindir/export_lower.h"

namespace msrt::mindir_export {
namespace {

constexpr size_t kX = 0, kW = 1, kR = 2, kB = 3, kLengths = 4, kInitialH = 5, kInitialC = 6,
                 kPeepholes = 7;
constexpr int64_t kGates = 4;
constexpr int64_t kOurGate[kGates] = {
    0, 2, 3, 1};  // input, forget, cell, output, as ONNX counts them: i o f c

struct Sizes {
  int64_t steps, batch, inputs, hidden, directions;
};

Status CheckPlain(const NodeLowering& n) {
  if (n.dtype() != DType::kF32)
    return Unsupported("MindSpore's LSTM has no element type ", n.dtype(), " on the CPU");
  if (n.Has(kPeepholes)) return Unsupported("peepholes: MindSpore's LSTM has none");
  if (n.Has(kLengths))
    return Unsupported("sequences of several lengths: MindSpore's LSTM has none");
  if (n.op().Has("clip")) return Unsupported("attribute 'clip': MindSpore's LSTM has none");
  if (n.op().Int("input_forget") != 0)
    return Unsupported("attribute 'input_forget': MindSpore's LSTM has none");
  if (const AttrValue* given = n.op().attrs().Find("activations")) {
    const auto& names = std::get<std::vector<std::string>>(*given);
    constexpr std::string_view kUsual[] = {"Sigmoid", "Tanh", "Tanh"};
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] != kUsual[i % 3])
        return Unsupported("attribute 'activations' names ", names[i],
                           ": MindSpore's LSTM has the usual ones");
    }
  }
  return OkStatus();
}

// Returns one list: the weights of the inputs, those of the state, the sums of both biases.
Result<ConstTensor> ConstantWeights(const NodeLowering& n, const Sizes& s, int64_t direction) {
  const int64_t rows = kGates * s.hidden;
  MSRT_ASSIGN_OR_RETURN(const NewConstant made,
                        MakeConstant(DType::kF32, {rows * (s.inputs + s.hidden + 1), 1, 1}));
  float* out = reinterpret_cast<float*>(made.bytes.data());
  const auto matrix = [&](size_t input, int64_t columns) {
    const float* in = n.op().constant(input)->As<float>().data() + direction * rows * columns;
    for (int64_t gate : kOurGate)
      out = std::copy_n(in + gate * s.hidden * columns, s.hidden * columns, out);
  };
  matrix(kW, s.inputs);
  matrix(kR, s.hidden);
  const float* bias =
      n.Has(kB) ? n.op().constant(kB)->As<float>().data() + direction * 2 * rows : nullptr;
  for (int64_t gate : kOurGate) {
    for (int64_t h = gate * s.hidden; h < (gate + 1) * s.hidden; ++h)
      *out++ = bias != nullptr ? bias[h] + bias[rows + h] : 0;
  }
  return made.tensor;
}

// The same from weights that are computed.
Ref ComputedWeights(NodeLowering& n, const Sizes& s, int64_t direction) {
  const int64_t rows = kGates * s.hidden;
  const auto ordered = [&](size_t input, int64_t offset) {
    Ints indices;
    for (int64_t gate : kOurGate) {
      for (int64_t h = 0; h < s.hidden; ++h) indices.push_back(offset + gate * s.hidden + h);
    }
    const Ref own =
        n.Op("Gather", {n.In(input), n.Number(static_cast<double>(direction), DType::kI64), 0, 0});
    return n.Op("Reshape", {n.Op("Gather", {own, n.IntTensor(indices), 0, 0}), Ints{-1, 1, 1}});
  };
  const Ref bias = n.Has(kB) ? n.Op("Add", {ordered(kB, 0), ordered(kB, rows)})
                             : n.Prim("FillV2", {}, {Ints{rows, 1, 1}, n.Number(0)});
  return n.Op("Concat", {n.out().Tuple({ordered(kW, 0), ordered(kR, 0), bias}), 0});
}

Result<Ref> PackedWeights(NodeLowering& n, const Sizes& s, int64_t direction) {
  const auto known = [&](size_t input) {
    return !n.Has(input) || n.op().constant(input) != nullptr;
  };
  if (!known(kW) || !known(kR) || !known(kB)) return ComputedWeights(n, s, direction);
  MSRT_ASSIGN_OR_RETURN(const ConstTensor weights, ConstantWeights(n, s, direction));
  return n.out().Constant(weights);
}

// Returns the initial state [1, batch, hidden] of one direction.
Result<Ref> InitialState(NodeLowering& n, const Sizes& s, size_t input, int64_t direction,
                         bool batch_first) {
  if (!n.Has(input)) {
    if (!IsKnown(s.batch))
      return Unsupported("the batch is not known before the run, and input ", input,
                         " is left out");
    return n.Prim("FillV2", {}, {Ints{1, s.batch, s.hidden}, n.Number(0)});
  }
  const Ref all = batch_first ? n.Op("Transpose", {n.In(input), Ints{1, 0, 2}}) : n.In(input);
  if (s.directions == 1) return all;
  return n.Op(
      "ExpandDims",
      {n.Op("Gather", {all, n.Number(static_cast<double>(direction), DType::kI64), 0, 0}), 0});
}

struct Outputs {
  std::vector<Ref> all, hidden, cell;  // one for each direction

  static Ref Joined(NodeLowering& n, const std::vector<Ref>& parts, int64_t axis) {
    return parts.size() == 1 ? parts[0] : n.Op("Concat", {n.out().Tuple(parts), axis});
  }
};

Status LowerLstm(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(CheckPlain(n));
  MSRT_RETURN_IF_ERROR(n.NeedRank(kX));
  MSRT_RETURN_IF_ERROR(n.NeedShape(kW));
  MSRT_RETURN_IF_ERROR(n.NeedShape(kR));
  const bool batch_first = n.op().Int("layout") == 1;
  const Dims &x_dims = n.dims(kX), &w = n.dims(kW);
  const Sizes s{x_dims[batch_first ? 1 : 0], x_dims[batch_first ? 0 : 1], w[2], n.dims(kR)[2],
                w[0]};
  const Ref x = batch_first ? n.Op("Transpose", {n.In(kX), Ints{1, 0, 2}}) : n.In(kX);
  Outputs out;
  for (int64_t d = 0; d < s.directions; ++d) {
    const bool backwards = d == 1 || n.op().String("direction") == "reverse";
    MSRT_ASSIGN_OR_RETURN(const Ref weights, PackedWeights(n, s, d));
    MSRT_ASSIGN_OR_RETURN(const Ref h, InitialState(n, s, kInitialH, d, batch_first));
    MSRT_ASSIGN_OR_RETURN(const Ref c, InitialState(n, s, kInitialC, d, batch_first));
    const Ref sequence = backwards ? n.Op("ReverseV2", {x, Ints{0}}) : x;
    const Ref run = n.Prim("LSTM",
                           {{"dropout", 0.0},
                            {"proj_size", 0},
                            {"has_bias", true},
                            {"num_layers", 1},
                            {"hidden_size", s.hidden},
                            {"bidirectional", false},
                            {"input_size", s.inputs}},
                           {sequence, h, c, weights});
    const Ref all = n.out().Item(run, 0);
    out.all.push_back(n.Op("ExpandDims", {backwards ? n.Op("ReverseV2", {all, Ints{0}}) : all,
                                          1}));  // steps, 1, batch, hidden
    out.hidden.push_back(n.out().Item(run, 1));
    out.cell.push_back(n.out().Item(run, 2));
  }
  const auto turned = [&](const Ref& state) {
    return batch_first ? n.Op("Transpose", {state, Ints{1, 0, 2}}) : state;
  };
  if (n.Wants(0)) {
    const Ref all = Outputs::Joined(n, out.all, 1);
    n.SetOutput(0, batch_first ? n.Op("Transpose", {all, Ints{2, 0, 1, 3}}) : all);
  }
  if (n.Wants(1)) n.SetOutput(1, turned(Outputs::Joined(n, out.hidden, 0)));
  if (n.Wants(2)) n.SetOutput(2, turned(Outputs::Joined(n, out.cell, 0)));
  return OkStatus();
}

constexpr Lowerer kRecurrentLowerers[] = {{"LSTM", LowerLstm}};

}  // namespace

std::span<const Lowerer> RecurrentLowerers() { return kRecurrentLowerers; }

}  // namespace msrt::mindir_export
