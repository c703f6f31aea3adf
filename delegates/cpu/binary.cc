// Add, Sub, Mul, Div, Max and Min of two f32 tensors with broadcasting, in every layout. Dims that
// broadcast alike are merged in the order of memory; what is left are lines: both operands
// contiguous, or one of them a single number for the line.
#include <algorithm>
#include <optional>

#include "core/base/checked_math.h"
#include "delegates/cpu/rule.h"

namespace msrt::cpu {
namespace {

constexpr std::string_view kNames[] = {"Add", "Sub", "Mul",
                                       "Div", "Max", "Min"};  // in the order of Binary

Binary OpOf(std::string_view name) {
  return static_cast<Binary>(std::find(std::begin(kNames), std::end(kNames), name) - kNames);
}

// The layout of one operand in a candidate whose result has `layout`; nothing where that cannot be.
std::optional<Layout> OperandLayout(const OpView& op, size_t i, Layout layout) {
  const Type& type = op.input(i);
  const int rank = op.output(0).rank();
  if (layout == Layout::kPlain) return layout;
  if (type.rank() == rank && op.constant(i) == nullptr && Admits(type, layout)) return layout;
  return type.dims.known() && IsSameInPlain(type.dims, rank, layout) ? std::optional(Layout::kPlain)
                                                                     : std::nullopt;
}

std::string QueryBinary(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  if (op.output(0).dtype != DType::kF32) return StrCat("elements of type ", op.output(0).dtype);
  if (op.input_count() != 2 || !op.has_input(0) || !op.has_input(1))
    return "other than two operands";
  const double seconds =
      PassSeconds(node, static_cast<double>(node.typical->output(0).elements()), 0.06, node.bytes);
  for (const Layout layout : OfferedLayouts()) {
    if (!Admits(op.output(0), layout)) continue;
    const auto first = OperandLayout(op, 0, layout), second = OperandLayout(op, 1, layout);
    if (!first || !second) continue;
    Candidate c = PlainCandidate(node, seconds, "vectorised");
    c.input_layouts = {*first, *second};
    c.output_layouts[0] = layout;
    c.strided_inputs = 3, c.strided_outputs = 1;
    c.arithmetic = ArithmeticOf(op);
    for (uint32_t i = 0; i < 2; ++i) {
      if (op.constant(i) == nullptr && op.input(i).dims == op.output(0).dims)
        c.in_place.push_back({i, 0u});
    }
    candidates->push_back(std::move(c));
  }
  return {};
}

// The loop nest: dims of the result, outermost first, with the step of each operand in elements;
// the last dim is the line.
struct Nest {
  Dims dims, a, b;
  Spread spread = Spread::kNone;

  Nest(const Dims& out, const Dims& first, const Dims& second) {
    bool a_spread = false, b_spread = false;
    for (int i = 0; i < out.rank(); ++i) {
      if (out[i] == 1) continue;
      const bool spreads_a = first[i] == 1, spreads_b = second[i] == 1;
      if (dims.empty() || spreads_a != a_spread || spreads_b != b_spread) {
        dims.push_back(1), a.push_back(1), b.push_back(1);
        a_spread = spreads_a, b_spread = spreads_b;
      }
      dims[dims.rank() - 1] *= out[i];
      a[a.rank() - 1] *= first[i];
      b[b.rank() - 1] *= second[i];
    }
    if (dims.empty()) dims = a = b = {1};
    if (a.back() == 1 && dims.back() != 1) spread = Spread::kFirst;
    else if (b.back() == 1 && dims.back() != 1) spread = Spread::kSecond;
    // From extents to steps.
    for (Dims* operand : {&a, &b}) {
      int64_t step = 1;
      for (int i = dims.rank() - 1; i >= 0; --i) {
        const int64_t extent = (*operand)[i];
        (*operand)[i] = extent == 1 && dims[i] != 1 ? 0 : step;
        step *= extent;
      }
    }
  }
};

class BoundBinary final : public BoundKernel {
 public:
  BoundBinary(Binary op, const Nest& nest)
      : op_(op),
        nest_(nest),
        loop_(LoopsHere().binary[static_cast<size_t>(op)][static_cast<size_t>(nest.spread)]) {
    last_ = nest_.dims.rank() - 1;
    columns_ = nest_.dims[last_];
    lines_ = nest_.dims.product(0, last_);
  }

  Status Run(const RunArgs& args) override {
    const float *a = args.inputs[0].As<float>(), *b = args.inputs[1].As<float>();
    float* y = args.outputs[0].As<float>();
    if (args.inputs[0].strides != nullptr || args.inputs[1].strides != nullptr ||
        args.outputs[0].strides != nullptr)
      return RunStrided(args);
    if (lines_ < 4 && columns_ > kGrain) return RunColumns(args.parallel, a, b, y);
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(columns_, 1));
    return ParallelRanges(args.parallel, lines_, grain,
                          [&](int64_t begin, int64_t end) { RunLines(a, b, y, begin, end); });
  }

 private:
  // Where line `line` of an operand begins.
  int64_t Offset(const Dims& steps, int64_t line) const {
    int64_t offset = 0;
    for (int i = last_ - 1; i >= 0; --i) {
      offset += line % nest_.dims[i] * steps[i];
      line /= nest_.dims[i];
    }
    return offset;
  }

  // Consecutive lines of the dim above the line share their steps.
  void RunLines(const float* a, const float* b, float* y, int64_t begin, int64_t end) const {
    const int64_t above = last_ > 0 ? nest_.dims[last_ - 1] : 1;
    const int64_t a_step = last_ > 0 ? nest_.a[last_ - 1] : 0,
                  b_step = last_ > 0 ? nest_.b[last_ - 1] : 0;
    for (int64_t line = begin; line < end;) {
      const int64_t count = std::min(end - line, above - line % above);
      loop_({a + Offset(nest_.a, line), b + Offset(nest_.b, line), y + line * columns_, count,
             columns_, a_step, b_step});
      line += count;
    }
  }

  // The steps of an operand along the dims of the result in memory; 0 where it broadcasts.
  static Dims OperandSteps(const TensorView& operand, const TensorView& y) {
    const int rank = y.dims.rank();
    const Dims out = InMemory(y.dims, y.layout),
               in = InMemory(Extended(operand.dims, rank), y.layout);
    Dims steps = StepsInMemory(operand);
    if (operand.layout == Layout::kPlain) {
      while (steps.rank() < rank) steps.insert(0, 0);
      if (y.layout != Layout::kPlain) {
        // From the order of dims to that of the result in memory.
        const int64_t channel = steps[1], block = BlockOf(y.layout);
        if (block > 1) steps[1] = block * channel;
        else steps.erase(1);
        steps.push_back(channel);
      }
    }
    for (int i = 0; i < out.rank(); ++i) {
      if (in[i] == 1 && out[i] != 1) steps[i] = 0;
    }
    return steps;
  }

  Status RunStrided(const RunArgs& args) const {
    const TensorView &a = args.inputs[0], &b = args.inputs[1], &y = args.outputs[0];
    const Dims steps[] = {OperandSteps(a, y), OperandSteps(b, y), StepsInMemory(y)};
    const Lines lines(InMemory(y.dims, y.layout), steps);
    const Spread spread = lines.column_steps[0] == 0   ? Spread::kFirst
                          : lines.column_steps[1] == 0 ? Spread::kSecond
                                                       : Spread::kNone;
    const BinaryLoop loop =
        LoopsHere().binary[static_cast<size_t>(op_)][static_cast<size_t>(spread)];
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(lines.columns, 1));
    return ParallelRanges(args.parallel, lines.count(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        loop({a.As<float>() + lines.Offset(0, i), b.As<float>() + lines.Offset(1, i),
              y.As<float>() + lines.Offset(2, i), 1, lines.columns, 0, 0});
      }
    });
  }

  // A few long lines: each is split.
  Status RunColumns(ParallelFor& parallel, const float* a, const float* b, float* y) const {
    for (int64_t line = 0; line < lines_; ++line) {
      const float *a_line = a + Offset(nest_.a, line), *b_line = b + Offset(nest_.b, line);
      MSRT_RETURN_IF_ERROR(
          ParallelRanges(parallel, columns_, kGrain, [&](int64_t begin, int64_t end) {
            loop_({a_line + begin * nest_.a[last_], b_line + begin * nest_.b[last_],
                   y + line * columns_ + begin, 1, end - begin, 0, 0});
          }));
    }
    return OkStatus();
  }

  const Binary op_;
  const Nest nest_;
  const BinaryLoop loop_;
  int last_;
  int64_t columns_, lines_;
};

// Does nothing: an output without elements.
class Nothing final : public BoundKernel {
 public:
  Status Run(const RunArgs&) override { return OkStatus(); }
};

Result<std::unique_ptr<BoundKernel>> BindBinary(const OpView& op, const Candidate& candidate) {
  const Dims& out = op.output(0).dims;
  if (out.elements() == 0) return std::unique_ptr<BoundKernel>(std::make_unique<Nothing>());
  const Layout layout = candidate.output_layouts[0];
  const auto in_memory = [&](size_t i) {
    return InMemory(Extended(op.input(i).dims, out.rank()), layout);
  };
  return std::unique_ptr<BoundKernel>(std::make_unique<BoundBinary>(
      OpOf(op.op()), Nest(InMemory(out, layout), in_memory(0), in_memory(1))));
}

constexpr Rule BinaryRule(std::string_view op) { return {"", op, QueryBinary, BindBinary}; }
constexpr Rule kBinaryRules[] = {BinaryRule("Add"), BinaryRule("Sub"), BinaryRule("Mul"),
                                 BinaryRule("Div"), BinaryRule("Max"), BinaryRule("Min")};

}  // namespace

std::span<const Rule> BinaryRules() { return kBinaryRules; }

}  // namespace msrt::cpu
