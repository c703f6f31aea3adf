// RNN, GRU and LSTM, one sequence and direction at a time, with the state in double from the first
// step to the last. Steps after the end of a sequence output zeros; a sequence without steps ends
// in its initial state.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "delegates/reference/elements.h"
#include "delegates/reference/kernel.h"

namespace msrt::reference {
namespace {

constexpr size_t kX = 0, kW = 1, kR = 2, kB = 3, kLengths = 4, kInitialH = 5, kInitialC = 6,
                 kPeepholes = 7;

// ---- activation functions -----------------------------------------------------------------------

struct FunctionRow {
  std::string_view name;
  double (*f)(double x, double alpha, double beta);
  int parameters = 0;  // how many of alpha and beta it takes from the attributes
  double alpha = 0, beta = 0;
};

// Defaults are those of the ops of the same name, in single precision like all of ONNX's
// attributes.
constexpr FunctionRow kFunctions[] = {
    {"Relu", [](double x, double, double) { return x < 0 ? 0.0 : x; }},
    {"Tanh", [](double x, double, double) { return std::tanh(x); }},
    {"Sigmoid", [](double x, double, double) { return 1 / (1 + std::exp(-x)); }},
    {"Affine", [](double x, double alpha, double beta) { return alpha * x + beta; }, 2, 1, 0},
    {"LeakyRelu", [](double x, double alpha, double) { return x < 0 ? alpha * x : x; }, 1, 0.01f},
    {"ThresholdedRelu", [](double x, double alpha, double) { return x < alpha ? 0.0 : x; }, 1, 1},
    {"ScaledTanh", [](double x, double alpha, double beta) { return alpha * std::tanh(beta * x); },
     2, 1, 1},
    {"HardSigmoid",
     [](double x, double alpha, double beta) { return std::clamp(alpha * x + beta, 0.0, 1.0); }, 2,
     0.2f, 0.5f},
    {"Elu", [](double x, double alpha, double) { return x < 0 ? alpha * std::expm1(x) : x; }, 1, 1},
    {"Softsign", [](double x, double, double) { return x / (1 + std::abs(x)); }},
    {"Softplus", [](double x, double,
                    double) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }},
};

struct Function {
  double (*f)(double, double, double);
  double alpha, beta, clip;
  double operator()(double x) const { return f(std::clamp(x, -clip, clip), alpha, beta); }
};

// Returns all functions of all directions. Those with parameters take the next ones from the lists,
// or their defaults where the lists end.
std::vector<Function> FunctionsOf(const OpView& op,
                                  std::initializer_list<std::string_view> defaults,
                                  int64_t directions) {
  std::vector<std::string_view> names;
  if (const AttrValue* given = op.attrs().Find("activations")) {
    for (const std::string& name : std::get<std::vector<std::string>>(*given))
      names.push_back(name);
  } else {
    for (int64_t d = 0; d < directions; ++d)
      names.insert(names.end(), defaults.begin(), defaults.end());
  }
  const double clip = op.Has("clip") ? op.Float("clip") : std::numeric_limits<double>::infinity();
  const auto alphas = op.Floats("activation_alpha"), betas = op.Floats("activation_beta");
  size_t next_alpha = 0, next_beta = 0;
  std::vector<Function> functions;
  for (std::string_view name : names) {
    const auto* row = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                   [&](const FunctionRow& r) { return r.name == name; });
    Function f{row->f, row->alpha, row->beta, clip};
    if (row->parameters >= 1 && next_alpha < alphas.size()) f.alpha = alphas[next_alpha++];
    if (row->parameters >= 2 && next_beta < betas.size()) f.beta = betas[next_beta++];
    functions.push_back(f);
  }
  return functions;
}

// ---- one layer ----------------------------------------------------------------------------------

// Returns an input as doubles, which is simple rather than fast; zeros if it is omitted.
std::vector<double> DoublesOr(const KernelArgs& args, size_t input, size_t count_of_zeros) {
  return args.has_input(input) ? Doubles(args.inputs[input])
                               : std::vector<double>(count_of_zeros, 0.0);
}

// One direction's parameters; rows of W and R are the gates one after the other, B has those for W
// and then those for R.
struct Weights {
  const double *w, *r, *b, *peepholes;
  int64_t inputs, hidden, gates;

  double W(int64_t gate, int64_t unit, const double* x) const {
    return Dot(w + (gate * hidden + unit) * inputs, x, inputs);
  }
  double R(int64_t gate, int64_t unit, const double* h) const {
    return Dot(r + (gate * hidden + unit) * hidden, h, hidden);
  }
  double InputBias(int64_t gate, int64_t unit) const { return b[gate * hidden + unit]; }
  double StateBias(int64_t gate, int64_t unit) const { return b[(gates + gate) * hidden + unit]; }
  // Returns the argument of the activation in most gates.
  double Sum(int64_t gate, int64_t unit, const double* x, const double* h) const {
    return W(gate, unit, x) + R(gate, unit, h) + InputBias(gate, unit) + StateBias(gate, unit);
  }

 private:
  static double Dot(const double* a, const double* b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
  }
};

struct State {
  std::vector<double> h, c;
};

// A step of one sequence: x is the input, f the functions of the direction.
using StepFn = void (*)(const OpView& op, const Weights& weights, const Function* f,
                        const double* x, State* state);

void StepRnn(const OpView&, const Weights& weights, const Function* f, const double* x,
             State* state) {
  const std::vector<double> old = state->h;
  for (int64_t u = 0; u < weights.hidden; ++u)
    state->h[static_cast<size_t>(u)] = f[0](weights.Sum(0, u, x, old.data()));
}

void StepGru(const OpView& op, const Weights& weights, const Function* f, const double* x,
             State* state) {
  constexpr int64_t kUpdate = 0, kReset = 1, kHidden = 2;
  const bool linear_first = op.Int("linear_before_reset") != 0;
  const std::vector<double> old = state->h;
  std::vector<double> reset(old.size()), gated(old.size());
  for (int64_t u = 0; u < weights.hidden; ++u) {
    const auto i = static_cast<size_t>(u);
    reset[i] = f[0](weights.Sum(kReset, u, x, old.data()));
    gated[i] = reset[i] * old[i];
  }
  for (int64_t u = 0; u < weights.hidden; ++u) {
    const auto i = static_cast<size_t>(u);
    const double update = f[0](weights.Sum(kUpdate, u, x, old.data()));
    const double from_state =
        linear_first
            ? reset[i] * (weights.R(kHidden, u, old.data()) + weights.StateBias(kHidden, u))
            : weights.R(kHidden, u, gated.data()) + weights.StateBias(kHidden, u);
    const double candidate =
        f[1](weights.W(kHidden, u, x) + from_state + weights.InputBias(kHidden, u));
    state->h[i] = (1 - update) * candidate + update * old[i];
  }
}

void StepLstm(const OpView& op, const Weights& weights, const Function* f, const double* x,
              State* state) {
  constexpr int64_t kInput = 0, kOutput = 1, kForget = 2, kCell = 3;
  const bool coupled = op.Int("input_forget") != 0;
  const std::vector<double> old = state->h;
  const auto peephole = [&](int64_t gate, int64_t u, double cell) {
    return weights.peepholes[gate * weights.hidden + u] * cell;
  };
  for (int64_t u = 0; u < weights.hidden; ++u) {
    const auto i = static_cast<size_t>(u);
    double& cell = state->c[i];
    const double input = f[0](weights.Sum(kInput, u, x, old.data()) + peephole(kInput, u, cell));
    const double forget =
        coupled ? 1 - input
                : f[0](weights.Sum(kForget, u, x, old.data()) + peephole(kForget, u, cell));
    cell = forget * cell + input * f[1](weights.Sum(kCell, u, x, old.data()));
    const double output = f[0](weights.Sum(kOutput, u, x, old.data()) + peephole(kOutput, u, cell));
    state->h[i] = output * f[2](cell);
  }
}

// ---- sequences ----------------------------------------------------------------------------------

struct Layer {
  int64_t gates, functions;
  std::initializer_list<std::string_view> defaults;
  StepFn step;
};

Result<std::vector<int64_t>> LengthsOf(const KernelArgs& args, int64_t steps, int64_t batch) {
  if (!args.has_input(kLengths)) return std::vector<int64_t>(static_cast<size_t>(batch), steps);
  std::vector<int64_t> lengths = IntValues(DType::kI32, args.inputs[kLengths].data, batch);
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 0 || lengths[i] > steps) {
      return InvalidArgument("sequence_lens[", i, "] = ", lengths[i], ", must be in [0, ", steps,
                             "]");
    }
  }
  return lengths;
}

// Stores one row of `hidden` elements.
void StoreRow(const KernelArgs& args, size_t output, int64_t row,
              const std::vector<double>& values) {
  if (!args.has_output(output)) return;
  const auto count = static_cast<int64_t>(values.size());
  StoreElements(args.outputs[output].dtype, args.outputs[output].data, row * count, count,
                values.data());
}

Status RunLayer(const KernelArgs& args, const Layer& layer) {
  const OpView& op = args.op;
  const bool batch_first = op.Int("layout") == 1;
  const Dims &x_dims = args.inputs[kX].dims, &r_dims = args.inputs[kR].dims;
  const int64_t steps = x_dims[batch_first ? 1 : 0], batch = x_dims[batch_first ? 0 : 1],
                inputs = x_dims[2];
  const int64_t directions = r_dims[0], hidden = r_dims[2], rows = layer.gates * hidden;
  MSRT_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, LengthsOf(args, steps, batch));
  const std::vector<Function> functions = FunctionsOf(op, layer.defaults, directions);
  const auto x = Doubles(args.inputs[kX]), w = Doubles(args.inputs[kW]),
             r = Doubles(args.inputs[kR]);
  const auto b = DoublesOr(args, kB, static_cast<size_t>(directions * 2 * rows));
  const auto peepholes = DoublesOr(args, kPeepholes, static_cast<size_t>(directions * 3 * hidden));
  const auto states = static_cast<size_t>(directions * batch * hidden);
  const auto initial_h = DoublesOr(args, kInitialH, states),
             initial_c = DoublesOr(args, kInitialC, states);

  const auto state_row = [&](int64_t d, int64_t n) {
    return batch_first ? n * directions + d : d * batch + n;
  };
  const auto x_row = [&](int64_t t, int64_t n) {
    return batch_first ? n * steps + t : t * batch + n;
  };
  const auto y_row = [&](int64_t t, int64_t d, int64_t n) {
    return batch_first ? (n * steps + t) * directions + d : (t * directions + d) * batch + n;
  };
  return ParallelRanges(args.parallel, directions * batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t sequence = begin; sequence < end; ++sequence) {
      const int64_t d = sequence / batch, n = sequence % batch,
                    length = lengths[static_cast<size_t>(n)];
      const bool backward = d == 1 || op.String("direction") == "reverse";
      const Weights weights{w.data() + d * rows * inputs,
                            r.data() + d * rows * hidden,
                            b.data() + d * 2 * rows,
                            peepholes.data() + d * 3 * hidden,
                            inputs,
                            hidden,
                            layer.gates};
      const auto row_of = [&](const std::vector<double>& all) {
        const auto first = all.begin() + state_row(d, n) * hidden;
        return std::vector<double>(first, first + hidden);
      };
      State state{row_of(initial_h), row_of(initial_c)};
      for (int64_t i = 0; i < length; ++i) {
        const int64_t t = backward ? length - 1 - i : i;
        layer.step(op, weights, functions.data() + d * layer.functions,
                   x.data() + x_row(t, n) * inputs, &state);
        StoreRow(args, 0, y_row(t, d, n), state.h);
      }
      const std::vector<double> nothing(static_cast<size_t>(hidden), 0.0);
      for (int64_t t = length; t < steps; ++t) StoreRow(args, 0, y_row(t, d, n), nothing);
      StoreRow(args, 1, state_row(d, n), state.h);
      StoreRow(args, 2, state_row(d, n), state.c);
    }
  });
}

Status RunRnn(const KernelArgs& args) { return RunLayer(args, {1, 1, {"Tanh"}, StepRnn}); }
Status RunGru(const KernelArgs& args) {
  return RunLayer(args, {3, 2, {"Sigmoid", "Tanh"}, StepGru});
}
Status RunLstm(const KernelArgs& args) {
  return RunLayer(args, {4, 3, {"Sigmoid", "Tanh", "Tanh"}, StepLstm});
}

constexpr KernelDef kRecurrentKernels[] = {
    {"", "RNN", RunRnn}, {"", "GRU", RunGru}, {"", "LSTM", RunLstm}};

}  // namespace

std::span<const KernelDef> RecurrentKernels() { return kRecurrentKernels; }

}  // namespace msrt::reference
