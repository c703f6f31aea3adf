// Softmax and LogSoftmax over any axis. Along the innermost dim a row is one vector; along another
// one, neighbouring columns are.
#include <algorithm>

#include "delegates/cpu/rule.h"

namespace msrt::cpu {
namespace {

int AxisOf(const OpView& op) {
  const auto axis = static_cast<int>(op.Int("axis"));
  return axis < 0 ? axis + op.input(0).rank() : axis;
}

// Whether the elements of the axis lie next to each other in memory, for every shape that the node
// can have: a piece is computed as the whole is, although a shape of its own might be simpler.
bool IsRow(const OpView& op, Layout layout) {
  if (layout == Layout::kChannelsLast) return true;
  const Dims& x = op.input(0).dims;
  return std::all_of(x.begin() + AxisOf(op) + 1, x.end(), [](int64_t d) { return d == 1; });
}

std::string QuerySoftmax(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  if (op.input(0).dtype != DType::kF32) return StrCat("elements of type ", op.input(0).dtype);
  if (op.input(0).rank() == 0) return "a scalar";
  const double seconds =
      PassSeconds(node, static_cast<double>(node.typical->output(0).elements()), 0.6, node.bytes);
  for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
    if (layout != Layout::kPlain &&
        (AxisOf(op) != 1 || !Admits(op.input(0), layout) || op.constant(0) != nullptr))
      continue;
    Candidate c = PlainCandidate(node, seconds, "vectorised");
    c.input_layouts[0] = c.output_layouts[0] = layout;
    c.in_place = {{0u, 0u}};
    // Rows are summed in lanes, columns in order.
    const bool row = IsRow(op, layout);
    c.arithmetic = StrCat(ArithmeticOfLoops(), row ? " rows" : " columns");
    c.tag = row ? 1 : 0;
    candidates->push_back(std::move(c));
  }
  return {};
}

class BoundSoftmax final : public BoundKernel {
 public:
  BoundSoftmax(bool log, bool row, int64_t outer, int64_t extent, int64_t inner)
      : log_(log), row_(row), outer_(outer), extent_(extent), inner_(inner) {}

  Status Run(const RunArgs& args) override {
    const float* x = args.inputs[0].As<float>();
    float* y = args.outputs[0].As<float>();
    if (outer_ * extent_ * inner_ == 0) return OkStatus();
    const Loops& loops = LoopsHere();
    if (row_) {
      return ParallelRanges(args.parallel, outer_, std::max<int64_t>(1, kGrain / 4 / extent_),
                            [&](int64_t begin, int64_t end) {
                              for (int64_t row = begin; row < end; ++row)
                                loops.softmax_row(x + row * extent_, y + row * extent_, extent_,
                                                  log_);
                            });
    }
    constexpr int64_t kColumns = 256;
    const int64_t tiles = (inner_ + kColumns - 1) / kColumns;
    const int64_t grain = std::max<int64_t>(1, kGrain / 4 / (extent_ * std::min(inner_, kColumns)));
    return ParallelRanges(args.parallel, outer_ * tiles, grain, [&](int64_t begin, int64_t end) {
      for (int64_t tile = begin; tile < end; ++tile) {
        const int64_t first = tile % tiles * kColumns, at = tile / tiles * extent_ * inner_ + first;
        loops.softmax_columns(x + at, y + at, extent_, inner_, std::min(kColumns, inner_ - first),
                              log_);
      }
    });
  }

 private:
  const bool log_, row_;
  const int64_t outer_, extent_, inner_;
};

Result<std::unique_ptr<BoundKernel>> BindSoftmax(const OpView& op, const Candidate& candidate) {
  const Dims& x = op.input(0).dims;
  const int axis = AxisOf(op);
  const bool rows = candidate.input_layouts[0] != Layout::kPlain;  // channels lie last
  const int64_t inner = rows ? 1 : x.product(axis + 1, x.rank());
  const int64_t outer = rows ? (x[1] == 0 ? 0 : x.elements() / x[1]) : x.product(0, axis);
  return std::unique_ptr<BoundKernel>(std::make_unique<BoundSoftmax>(
      op.op() == "LogSoftmax", (candidate.tag & 1) != 0, outer, x[axis], inner));
}

constexpr Rule kSoftmaxRules[] = {{"", "Softmax", QuerySoftmax, BindSoftmax},
                                  {"", "LogSoftmax", QuerySoftmax, BindSoftmax}};

}  // namespace

std::span<const Rule> SoftmaxRules() { return kSoftmaxRules; }

}  // namespace msrt::cpu
