// Gradients of RNN, GRU and LSTM, by composition: one step after the other. Graphs of rules have no
// loops, so the number of steps must be known.
#include <algorithm>
#include <limits>

#include "ops/grad_positions.h"
#include "ops/gradients.h"

namespace msrt {
namespace {

constexpr size_t kSteps = 0, kInputWeights = 1, kStateWeights = 2, kBiases = 3, kLens = 4,
                 kFirstState = 5, kFirstCell = 6, kPeepholeWeights = 7;
constexpr int64_t kEnd = std::numeric_limits<int64_t>::max(),
                  kBeforeBegin = std::numeric_limits<int64_t>::min();

// An activation function with its parameters; `parameters` of them come from the attributes.
struct StepFunction {
  std::string_view name;
  int parameters = 0;
  double alpha = 0, beta = 0;
};
constexpr StepFunction kStepFunctions[] = {
    {"Relu"},
    {"Tanh"},
    {"Sigmoid"},
    {"Affine", 2, 1, 0},
    {"LeakyRelu", 1, 0.01f},
    {"ThresholdedRelu", 1, 1},
    {"ScaledTanh", 2, 1, 1},
    {"HardSigmoid", 2, 0.2f, 0.5f},
    {"Elu", 1, 1},
    {"Softsign"},
    {"Softplus"},
};

std::vector<StepFunction> StepFunctionsOf(const OpView& op, int64_t directions) {
  std::vector<std::string_view> names;
  if (const AttrValue* given = op.attrs().Find("activations")) {
    for (const std::string& name : std::get<std::vector<std::string>>(*given))
      names.push_back(name);
  }
  for (int64_t d = 0; d < directions && !op.Has("activations"); ++d) {
    if (op.op() != "RNN") names.push_back("Sigmoid");
    names.push_back("Tanh");
    if (op.op() == "LSTM") names.push_back("Tanh");
  }
  const auto alphas = op.Floats("activation_alpha"), betas = op.Floats("activation_beta");
  size_t next_alpha = 0, next_beta = 0;
  std::vector<StepFunction> functions;
  for (std::string_view name : names) {
    StepFunction f = *std::find_if(std::begin(kStepFunctions), std::end(kStepFunctions),
                                   [&](const StepFunction& row) { return row.name == name; });
    if (f.parameters >= 1 && next_alpha < alphas.size()) f.alpha = alphas[next_alpha++];
    if (f.parameters >= 2 && next_beta < betas.size()) f.beta = betas[next_beta++];
    functions.push_back(f);
  }
  return functions;
}

ValueId Apply(GradBuilder& g, const StepFunction& f, ValueId v) {
  if (g.op().Has("clip")) {
    const double clip = g.op().Float("clip");
    v = g.Add("Clip", {v}, {{"min", -clip}, {"max", clip}});
  }
  if (f.name == "Affine") return g.Plus(g.Times(v, f.alpha), f.beta);
  if (f.name == "ScaledTanh") return g.Times(g.Add("Tanh", {g.Times(v, f.beta)}), f.alpha);
  if (f.parameters == 0) return g.Add(f.name, {v});
  if (f.parameters == 1) return g.Add(f.name, {v}, {{"alpha", f.alpha}});
  return g.Add(f.name, {v}, {{"alpha", f.alpha}, {"beta", f.beta}});
}

// One direction of a layer. States are [batch, hidden].
class Direction {
 public:
  // `x` is [steps, batch, inputs].
  Direction(GradBuilder& g, ValueId x, int64_t direction, int64_t steps, int64_t hidden,
            const StepFunction* functions)
      : g_(g),
        direction_(direction),
        steps_(steps),
        hidden_(hidden),
        gates_(g.op().op() == "LSTM"  ? 4
               : g.op().op() == "GRU" ? 3
                                      : 1),
        functions_(functions) {
    backward_ = direction == 1 || g.op().String("direction") == "reverse";
    input_ = backward_ ? Reversed(x) : x;
    const auto transposed = [&](ValueId v) { return Permuted(g_, v, {1, 0}); };
    input_gates_ = g_.Add("MatMul", {input_, transposed(OfDirection(g_.input(kInputWeights)))});
    state_weights_ = transposed(OfDirection(g_.input(kStateWeights)));
    if (g_.has_input(kBiases)) {
      const ValueId all = OfDirection(g_.input(kBiases));
      input_gates_ = g_.Plus(input_gates_, PartOf(g_, all, 0, 0, gates_ * hidden_));
      state_bias_ = PartOf(g_, all, 0, gates_ * hidden_, kEnd);
    }
    if (g_.has_input(kPeepholeWeights)) peepholes_ = OfDirection(g_.input(kPeepholeWeights));
  }

  void Run() {
    state_ = FirstState(kFirstState);
    if (gates_ == 4) cell_ = FirstState(kFirstCell);
    std::vector<ValueId> results;
    for (int64_t t = 0; t < steps_; ++t) {
      const ValueId x = g_.Add("Squeeze", {PartOf(g_, input_gates_, 0, t, t + 1)},
                               {{"axes", std::vector<int64_t>{0}}});
      const ValueId old_state = state_, old_cell = cell_;
      if (gates_ == 4) StepLstm(x);
      else if (gates_ == 3) StepGru(x);
      else state_ = Apply(g_, functions_[0], g_.Plus(x, FromState(state_)));
      ValueId result = state_;
      if (g_.has_input(kLens)) {
        // A sequence that has ended keeps its state and outputs zeros.
        const ValueId runs = g_.Add("Less", {g_.Add("Cast", {g_.Ints({t})}, {{"to", DType::kI32}}),
                                             WithAxes(g_, g_.input(kLens), {1})});
        result = g_.Add("Where", {runs, state_, g_.Scalar(0, state_)});
        state_ = g_.Add("Where", {runs, state_, old_state});
        if (gates_ == 4) cell_ = g_.Add("Where", {runs, cell_, old_cell});
      }
      results.push_back(WithAxes(g_, result, {0}));
    }
    all_ = Joined(g_, std::move(results), 0);
    if (backward_) all_ = Reversed(all_);
  }

  ValueId all() const { return all_; }  // [steps, batch, hidden]
  ValueId state() const { return state_; }
  ValueId cell() const { return cell_; }

 private:
  // The part of a tensor whose first axis is the directions.
  ValueId OfDirection(ValueId v, int64_t axis = 0) {
    return g_.Add("Squeeze", {PartOf(g_, v, axis, direction_, direction_ + 1)},
                  {{"axes", std::vector<int64_t>{axis}}});
  }
  ValueId Reversed(ValueId v) {
    if (!g_.has_input(kLens)) return PartOf(g_, v, 0, -1, kBeforeBegin, -1);
    return g_.Add("ReverseSequence", {v, g_.input(kLens)},
                  {{"time_axis", int64_t{0}}, {"batch_axis", int64_t{1}}});
  }
  ValueId FirstState(size_t input) {
    if (g_.has_input(input))
      return OfDirection(g_.input(input), g_.op().Int("layout") == 1 ? 1 : 0);
    return ZerosOfDims(g_, DimList(g_).Add(input_, 1).Add(hidden_), input_);
  }
  // The part of all gates that state `h` makes.
  ValueId FromState(ValueId h) {
    const ValueId product = g_.Add("MatMul", {h, state_weights_});
    return state_bias_ == kNoValue ? product : g_.Plus(product, state_bias_);
  }
  ValueId Gate(ValueId gates, int64_t gate) {
    return PartOf(g_, gates, 1, gate * hidden_, (gate + 1) * hidden_);
  }

  void StepGru(ValueId x) {
    constexpr int64_t kUpdateGate = 0, kResetGate = 1, kHiddenGate = 2;
    const ValueId from_state = FromState(state_), sums = g_.Plus(x, from_state);
    const ValueId update = Apply(g_, functions_[0], Gate(sums, kUpdateGate)),
                  reset = Apply(g_, functions_[0], Gate(sums, kResetGate));
    const ValueId gated = g_.op().Int("linear_before_reset") != 0
                              ? g_.Times(reset, Gate(from_state, kHiddenGate))
                              : Gate(FromState(g_.Times(reset, state_)), kHiddenGate);
    const ValueId candidate = Apply(g_, functions_[1], g_.Plus(Gate(x, kHiddenGate), gated));
    state_ = g_.Plus(candidate, g_.Times(update, g_.Minus(state_, candidate)));
  }

  void StepLstm(ValueId x) {
    constexpr int64_t kInputGate = 0, kOutputGate = 1, kForgetGate = 2, kCellGate = 3;
    const ValueId sums = g_.Plus(x, FromState(state_));
    const auto gate = [&](int64_t i, ValueId cell) {
      ValueId v = Gate(sums, i);
      if (peepholes_ != kNoValue) {
        const ValueId weights = PartOf(g_, peepholes_, 0, i * hidden_, (i + 1) * hidden_);
        v = g_.Plus(v, g_.Times(weights, cell));
      }
      return Apply(g_, functions_[0], v);
    };
    const ValueId input = gate(kInputGate, cell_);
    const ValueId forget =
        g_.op().Int("input_forget") != 0 ? g_.Minus(1.0, input) : gate(kForgetGate, cell_);
    const ValueId fresh = Apply(g_, functions_[1], Gate(sums, kCellGate));
    cell_ = g_.Plus(g_.Times(forget, cell_), g_.Times(input, fresh));
    state_ = g_.Times(gate(kOutputGate, cell_), Apply(g_, functions_[2], cell_));
  }

  GradBuilder& g_;
  const int64_t direction_, steps_, hidden_, gates_;
  const StepFunction* const functions_;
  bool backward_ = false;
  ValueId input_ = kNoValue, input_gates_ = kNoValue, state_weights_ = kNoValue,
          state_bias_ = kNoValue, peepholes_ = kNoValue;
  ValueId state_ = kNoValue, cell_ = kNoValue, all_ = kNoValue;
};

}  // namespace

Status GradRecurrent(GradBuilder& g) {
  const bool batch_first = g.op().Int("layout") == 1;
  const Type x = g.type(g.input(kSteps)), r = g.type(g.input(kStateWeights));
  const int64_t steps = x.rank_known ? x.dims[batch_first ? 1 : 0] : kUnknownDim;
  if (!IsKnown(steps) || steps == 0 || !r.rank_known || !IsKnown(r.dims[2])) {
    return Unsupported(
        "the gradient is built for a known number of steps, at least 1, and a known "
        "hidden size; declare the dims of X and R");
  }
  const int64_t directions = g.op().String("direction") == "bidirectional" ? 2 : 1;
  const std::vector<StepFunction> functions = StepFunctionsOf(g.op(), directions);
  const int64_t for_each = g.op().op() == "LSTM" ? 3 : g.op().op() == "GRU" ? 2 : 1;
  const ValueId input = batch_first ? Permuted(g, g.input(kSteps), {1, 0, 2}) : g.input(kSteps);
  std::vector<ValueId> all, states, cells;
  for (int64_t d = 0; d < directions; ++d) {
    Direction layer(g, input, d, steps, r.dims[2], functions.data() + d * for_each);
    layer.Run();
    all.push_back(WithAxes(g, layer.all(), {1}));
    const int64_t axis = batch_first ? 1 : 0;
    states.push_back(WithAxes(g, layer.state(), {axis}));
    if (layer.cell() != kNoValue) cells.push_back(WithAxes(g, layer.cell(), {axis}));
  }
  const int64_t axis = batch_first ? 1 : 0;
  ValueId y = Joined(g, std::move(all), 1);  // [steps, directions, batch, hidden]
  if (batch_first) y = Permuted(g, y, {2, 0, 1, 3});
  std::vector<ValueId> outputs = {y, Joined(g, std::move(states), axis)};
  if (!cells.empty()) outputs.push_back(Joined(g, std::move(cells), axis));
  outputs.resize(g.op().output_count(), kNoValue);
  g.SetByComposition(outputs);
  return OkStatus();
}

}  // namespace msrt
