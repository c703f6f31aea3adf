// RNN, GRU and LSTM with constant weights and the usual functions. The library's own recurrent
// primitives want their state and gates in another order and gain nothing for a batch of one, so
// the layer is ours: weights are packed into panels of columns, all steps' inputs are multiplied at
// once, and what remains of a step is one product with the state and a loop over units. Sequences
// and directions run in parallel. A row's sums do not depend on the rows beside it.
#include <algorithm>
#include <cmath>

#include "core/base/checked_math.h"
#include "delegates/onednn/cost.h"
#include "delegates/onednn/plan.h"
#include "delegates/onednn/recipe.h"
#include "delegates/sdk/packed_form.h"

namespace msrt::onednn {
namespace {

enum Input : size_t { kX, kW, kR, kB, kLengths, kInitialH, kInitialC, kPeepholes };

// ---- products with packed weights ---------------------------------------------------------------

constexpr int64_t kPanel = 32;  // columns: four vectors of AVX2

// The transpose of a matrix of [columns, depth], in panels of [depth, kPanel], the last one filled
// up with zeros. Does not own them.
class Panels {
 public:
  Panels() = default;
  Panels(const float* values, int64_t columns, int64_t depth)
      : values_(values), columns_(columns), depth_(depth) {}
  // How many numbers they are.
  static int64_t Count(int64_t columns, int64_t depth) {
    return (columns + kPanel - 1) / kPanel * kPanel * depth;
  }
  static void Pack(const float* rows, int64_t columns, int64_t depth, float* values) {
    std::fill_n(values, Count(columns, depth), 0.0f);
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t k = 0; k < depth; ++k)
        values[(c / kPanel * depth + k) * kPanel + c % kPanel] = rows[c * depth + k];
    }
  }
  int64_t columns() const { return columns_; }
  int64_t depth() const { return depth_; }
  const float* panel(int64_t first_column) const { return values_ + first_column * depth_; }

 private:
  const float* values_ = nullptr;
  int64_t columns_ = 0, depth_ = 0;
};

// sums[r] += x[r] * weights, for kRows rows.
template <int kRows>
[[gnu::always_inline]] inline void AddProduct(const Panels& weights, const float* const* x,
                                              float* const* sums) {
  for (int64_t first = 0; first < weights.columns(); first += kPanel) {
    float partial[kRows][kPanel] = {};
    const float* w = weights.panel(first);
    for (int64_t k = 0; k < weights.depth(); ++k, w += kPanel) {
      for (int r = 0; r < kRows; ++r) {
        const float factor = x[r][k];
        for (int64_t j = 0; j < kPanel; ++j) partial[r][j] += factor * w[j];
      }
    }
    const int64_t count = std::min(kPanel, weights.columns() - first);
    for (int r = 0; r < kRows; ++r) {
      for (int64_t j = 0; j < count; ++j) sums[r][first + j] += partial[r][j];
    }
  }
}

template <int kRows>
void AddProductAnywhere(const Panels& weights, const float* const* x, float* const* sums) {
  AddProduct<kRows>(weights, x, sums);
}

#if defined(__x86_64__)
template <int kRows>
[[gnu::target("avx2,fma")]] void AddProductAvx2(const Panels& weights, const float* const* x,
                                                float* const* sums) {
  AddProduct<kRows>(weights, x, sums);
}
bool HasAvx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#endif

template <int kRows>
void AddRows(const Panels& weights, const float* const* x, float* const* sums) {
#if defined(__x86_64__)
  static const bool avx2 = HasAvx2();
  if (avx2) return AddProductAvx2<kRows>(weights, x, sums);
#endif
  AddProductAnywhere<kRows>(weights, x, sums);
}

// Rows of x lie behind each other, rows of sums too.
void AddProduct(const Panels& weights, const float* x, int64_t rows, float* sums) {
  int64_t r = 0;
  for (; r + 2 <= rows; r += 2) {
    const float* const from[] = {x + r * weights.depth(), x + (r + 1) * weights.depth()};
    float* const to[] = {sums + r * weights.columns(), sums + (r + 1) * weights.columns()};
    AddRows<2>(weights, from, to);
  }
  for (; r < rows; ++r) {
    const float* const from[] = {x + r * weights.depth()};
    float* const to[] = {sums + r * weights.columns()};
    AddRows<1>(weights, from, to);
  }
}

// ---- one step -----------------------------------------------------------------------------------

float Sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

// One direction. The state's weights are split where a GRU needs the reset gate before it can
// multiply the rest.
struct Direction {
  Panels inputs, state, hidden;    // hidden: the last gate of a GRU
  std::vector<float> bias;         // of all gates; a GRU's last gate: of the input alone
  std::vector<float> hidden_bias;  // of the state, for that gate
};

// `gates` holds what the input gives to each gate, and is used up. `spare` has as many elements as
// the gates.
using StepFn = void (*)(const Direction& d, int64_t hidden, bool linear_first, float* gates,
                        float* spare, float* h, float* c);

void StepRnn(const Direction& d, int64_t hidden, bool, float* gates, float*, float* h, float*) {
  AddProduct(d.state, h, 1, gates);
  for (int64_t u = 0; u < hidden; ++u) h[u] = std::tanh(gates[u]);
}

void StepGru(const Direction& d, int64_t hidden, bool linear_first, float* gates, float* spare,
             float* h, float*) {
  float *update = gates, *reset = gates + hidden, *candidate = gates + 2 * hidden;
  float *from_state = spare, *gated = spare + hidden;
  AddProduct(d.state, h, 1, gates);
  for (int64_t u = 0; u < hidden; ++u) {
    update[u] = Sigmoid(update[u]);
    reset[u] = Sigmoid(reset[u]);
    gated[u] = reset[u] * h[u];
  }
  std::copy_n(d.hidden_bias.data(), hidden, from_state);
  AddProduct(d.hidden, linear_first ? h : gated, 1, from_state);
  for (int64_t u = 0; u < hidden; ++u) {
    const float value =
        std::tanh(candidate[u] + (linear_first ? reset[u] * from_state[u] : from_state[u]));
    h[u] = (1 - update[u]) * value + update[u] * h[u];
  }
}

void StepLstm(const Direction& d, int64_t hidden, bool, float* gates, float*, float* h, float* c) {
  const float *input = gates, *output = gates + hidden, *forget = gates + 2 * hidden,
              *cell = gates + 3 * hidden;
  AddProduct(d.state, h, 1, gates);
  for (int64_t u = 0; u < hidden; ++u) {
    c[u] = Sigmoid(forget[u]) * c[u] + Sigmoid(input[u]) * std::tanh(cell[u]);
    h[u] = Sigmoid(output[u]) * std::tanh(c[u]);
  }
}

struct Kind {
  std::string_view op;
  int64_t gates;
  std::initializer_list<std::string_view> functions;
  StepFn step;
};
const Kind kKinds[] = {{"RNN", 1, {"Tanh"}, StepRnn},
                       {"GRU", 3, {"Sigmoid", "Tanh"}, StepGru},
                       {"LSTM", 4, {"Sigmoid", "Tanh", "Tanh"}, StepLstm}};
const Kind& KindOf(const OpView& op) {
  return *std::find_if(std::begin(kKinds), std::end(kKinds),
                       [&](const Kind& k) { return k.op == op.op(); });
}

// ---- the layer ----------------------------------------------------------------------------------

struct Sizes {
  bool batch_first;
  int64_t steps, batch, inputs, directions, hidden;

  explicit Sizes(const OpView& op) : batch_first(op.Int("layout") == 1) {
    const Dims &x = op.input(kX).dims, &r = op.input(kR).dims;
    steps = x[batch_first ? 1 : 0], batch = x[batch_first ? 0 : 1], inputs = op.input(kW).dims[2];
    directions = r[0], hidden = r[2];
  }
  int64_t x_row(int64_t t, int64_t n) const { return batch_first ? n * steps + t : t * batch + n; }
  int64_t state_row(int64_t d, int64_t n) const {
    return batch_first ? n * directions + d : d * batch + n;
  }
  int64_t y_row(int64_t t, int64_t d, int64_t n) const {
    return batch_first ? (n * steps + t) * directions + d : (t * directions + d) * batch + n;
  }
};

bool UsualFunctions(const OpView& op) {
  const AttrValue* given = op.attrs().Find("activations");
  if (given == nullptr) return true;
  const auto& names = std::get<std::vector<std::string>>(*given);
  const auto& usual = KindOf(op).functions;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] != usual.begin()[i % usual.size()]) return false;
  }
  return true;
}

std::string QueryRecurrent(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  if (op.constant(kW) == nullptr || op.constant(kR) == nullptr)
    return "weights that are not constant";
  if (op.has_input(kB) && op.constant(kB) == nullptr) return "a bias that is not constant";
  if (op.has_input(kLengths)) return "sequences of several lengths";
  if (op.has_input(kPeepholes)) return "peepholes";
  if (op.Has("clip")) return "clip";
  if (op.op() == "LSTM" && op.Int("input_forget") != 0) return "input_forget";
  if (!UsualFunctions(op)) return "activations that are not the usual ones";
  const double seconds = Roofline(node.machine, node.flops, 0.3, node.bytes);
  candidates->push_back(
      MakeCandidate(node, Layout::kPlain, Layout::kPlain, seconds, "packed panels"));
  return {};
}

// A constant of [directions, columns, depth] as panels, direction after direction, for the columns
// up to `split` and for those from there on.
Result<sdk::PackedForm> PackDirections(const OpView& op, size_t input, int64_t split,
                                       const CompileContext& context) {
  constexpr uint32_t kVersion = 1;
  const ConstTensor& constant = *op.constant(input);
  const int64_t directions = constant.dims[0], columns = constant.dims[1], depth = constant.dims[2],
                rest = columns - split;
  const int64_t count = Panels::Count(split, depth) + Panels::Count(rest, depth);
  const auto pack = [&](std::byte* bytes) {
    const float* rows = constant.As<float>().data();
    auto* values = reinterpret_cast<float*>(bytes);
    for (int64_t d = 0; d < directions; ++d, rows += columns * depth, values += count) {
      Panels::Pack(rows, split, depth, values);
      Panels::Pack(rows + split * depth, rest, depth, values + Panels::Count(split, depth));
    }
    return OkStatus();
  };
  const sdk::Packing packing{StrCat("recurrent panels of ", constant.dims, " split at ", split), "",
                             kPanel, kVersion};
  return sdk::PackedForm::Make(context, constant.bytes.data(), packing,
                               static_cast<size_t>(directions * count) * sizeof(float), pack);
}

class RecurrentRecipe final : public Recipe {
 public:
  RecurrentRecipe(const NodeInfo& node, const Candidate& candidate)
      : Recipe(node, candidate), kind_(KindOf(*node.op)) {}

  Status Pack(const OpView& op, const Sizes& s, const CompileContext& context) {
    const int64_t columns = kind_.gates * s.hidden;
    const int64_t early =
        kind_.step == StepGru ? 2 * s.hidden : columns;  // columns that need nothing but the state
    MSRT_ASSIGN_OR_RETURN(inputs_, PackDirections(op, kW, columns, context));
    MSRT_ASSIGN_OR_RETURN(state_, PackDirections(op, kR, early, context));
    const auto* of_inputs = reinterpret_cast<const float*>(inputs_.data());
    const auto* of_state = reinterpret_cast<const float*>(state_.data());
    for (int64_t d = 0; d < s.directions; ++d) {
      Direction& direction = directions_.emplace_back();
      direction.inputs = Panels(of_inputs, columns, s.inputs);
      of_inputs += Panels::Count(columns, s.inputs);
      direction.state = Panels(of_state, early, s.hidden);
      of_state += Panels::Count(early, s.hidden);
      direction.hidden = Panels(of_state, columns - early, s.hidden);
      of_state += Panels::Count(columns - early, s.hidden);
      AddBias(op, columns, early, d, &direction);
    }
    return OkStatus();
  }

  size_t packed_bytes() const override { return inputs_.own_bytes() + state_.own_bytes(); }

  Status Build(const OpView& op, bool, Plan* plan) const override {
    const Sizes s(op);
    const int64_t gates = kind_.gates * s.hidden;
    const auto floats = [&](std::initializer_list<int64_t> factors) -> Result<size_t> {
      int64_t count = sizeof(float);
      for (int64_t f : factors) {
        if (!CheckedMul(count, f, &count))
          return Unsupported("more scratch memory than can be addressed");
      }
      return static_cast<size_t>(count);
    };
    MSRT_ASSIGN_OR_RETURN(const size_t gate_bytes, floats({s.directions, s.steps, s.batch, gates}));
    MSRT_ASSIGN_OR_RETURN(const size_t sequence_bytes,
                          floats({s.directions, s.batch, gates + 2 * s.hidden}));
    const Memory memory{plan->Reserve(gate_bytes), plan->Reserve(sequence_bytes), gates};
    plan->AddLoop(
        [this, s, memory](const LoopArgs& args) { return MultiplyInputs(s, memory, args); });
    const bool linear_first = kind_.step == StepGru && op.Int("linear_before_reset") != 0;
    const bool reverse = op.String("direction") == "reverse";
    plan->AddLoop([this, s, memory, linear_first, reverse](const LoopArgs& args) {
      return ParallelRanges(args.parallel, s.directions * s.batch, 1,
                            [&](int64_t begin, int64_t end) {
                              for (int64_t i = begin; i < end; ++i)
                                RunSequence(s, memory, i / s.batch, i % s.batch, linear_first,
                                            reverse || i >= s.batch, args);
                            });
    });
    return OkStatus();
  }

 private:
  static void AddBias(const OpView& op, int64_t columns, int64_t early, int64_t d,
                      Direction* direction) {
    direction->bias.resize(static_cast<size_t>(columns));
    direction->hidden_bias.resize(static_cast<size_t>(columns - early));
    if (!op.has_input(kB)) return;
    const float *of_input = op.constant(kB)->As<float>().data() + d * 2 * columns,
                *of_state = of_input + columns;
    for (int64_t i = 0; i < columns; ++i)
      direction->bias[static_cast<size_t>(i)] = of_input[i] + (i < early ? of_state[i] : 0);
    std::copy(of_state + early, of_state + columns, direction->hidden_bias.begin());
  }

  // Offsets of scratch memory: gates of all rows of x for each direction, and what each sequence
  // works on.
  struct Memory {
    size_t gates, sequences;
    int64_t gate_count;
    float* gates_of(const LoopArgs& args, int64_t row) const {
      return reinterpret_cast<float*>(args.scratch + gates) + row * gate_count;
    }
  };

  Status MultiplyInputs(const Sizes& s, const Memory& memory, const LoopArgs& args) const {
    const int64_t rows = s.steps * s.batch;
    constexpr int64_t kGrainFlops = 1 << 18;
    const int64_t grain = 1 + kGrainFlops / (1 + memory.gate_count * s.inputs);
    for (size_t d = 0; d < directions_.size(); ++d) {
      const Direction& direction = directions_[d];
      MSRT_RETURN_IF_ERROR(
          ParallelRanges(args.parallel, rows, grain, [&](int64_t begin, int64_t end) {
            float* gates = memory.gates_of(args, static_cast<int64_t>(d) * rows + begin);
            for (int64_t row = begin; row < end; ++row)
              std::copy(direction.bias.begin(), direction.bias.end(),
                        gates + (row - begin) * memory.gate_count);
            AddProduct(direction.inputs, args.inputs[kX].As<float>() + begin * s.inputs,
                       end - begin, gates);
          }));
    }
    return OkStatus();
  }

  void RunSequence(const Sizes& s, const Memory& memory, int64_t d, int64_t n, bool linear_first,
                   bool backward, const LoopArgs& args) const {
    const size_t hidden = static_cast<size_t>(s.hidden);
    float* spare = reinterpret_cast<float*>(args.scratch + memory.sequences) +
                   (d * s.batch + n) * (memory.gate_count + 2 * s.hidden);
    float *h = spare + memory.gate_count, *c = h + hidden;
    const auto begin_with = [&](size_t input, float* state) {
      const bool given = input < args.inputs.size() && args.inputs[input].present();
      if (given)
        std::copy_n(args.inputs[input].As<float>() + s.state_row(d, n) * s.hidden, hidden, state);
      else std::fill_n(state, hidden, 0.0f);
    };
    const auto store = [&](size_t output, int64_t row, const float* state) {
      if (output < args.outputs.size() && args.outputs[output].present()) {
        std::copy_n(state, hidden, args.outputs[output].As<float>() + row * s.hidden);
      }
    };
    begin_with(kInitialH, h);
    begin_with(kInitialC, c);
    for (int64_t i = 0; i < s.steps; ++i) {
      const int64_t t = backward ? s.steps - 1 - i : i;
      float* gates = memory.gates_of(args, d * s.steps * s.batch + s.x_row(t, n));
      kind_.step(directions_[static_cast<size_t>(d)], s.hidden, linear_first, gates, spare, h, c);
      store(0, s.y_row(t, d, n), h);
    }
    store(1, s.state_row(d, n), h);
    store(2, s.state_row(d, n), c);
  }

  const Kind& kind_;
  sdk::PackedForm inputs_, state_;  // W and R, which directions_ points into
  std::vector<Direction> directions_;
};

Result<std::shared_ptr<const Recipe>> CompileRecurrent(const NodeInfo& node,
                                                       const Candidate& candidate,
                                                       const CompileContext& context) {
  auto recipe = std::make_shared<RecurrentRecipe>(node, candidate);
  MSRT_RETURN_IF_ERROR(recipe->Pack(*node.op, Sizes(*node.typical), context));
  return std::shared_ptr<const Recipe>(std::move(recipe));
}

constexpr Rule Layer(std::string_view op) {
  return {"", op, QueryRecurrent, CompileRecurrent, /*one_rank=*/true};
}
constexpr Rule kRules[] = {Layer("RNN"), Layer("GRU"), Layer("LSTM")};

}  // namespace

std::span<const Rule> RecurrentRules() { return kRules; }

}  // namespace msrt::onednn
