// Softmax and LogSoftmax along any axis.
#include "delegates/cuda/launch.h"
#include "delegates/cuda/spaces.h"

#include <algorithm>

namespace msrt::cuda {
namespace {

constexpr KernelId<SoftmaxArgs> kRows{"softmax", "softmax_rows_f32"},
    kRowsF64{"softmax", "softmax_rows_f64"}, kColumns{"softmax", "softmax_columns_f32"},
    kColumnsF64{"softmax", "softmax_columns_f64"};

// Whether elements of a line lie side by side for every shape that the node can have.
bool AreRows(const OpView& op) {
  const Dims& x = op.input(0).dims;
  return std::all_of(x.begin() + PositiveAxis(op.Int("axis"), x.rank()) + 1, x.end(),
                     [](int64_t d) { return d == 1; });
}

std::string QuerySoftmax(const NodeInfo& node, const GpuProperties& gpu,
                         std::vector<Candidate>* out) {
  const OpView& op = *node.op;
  if (!kFloatTypes.Has(op.input(0).dtype)) return StrCat("elements of type ", op.input(0).dtype);
  if (op.input(0).rank() == 0) return "a scalar";
  const bool rows = AreRows(op);
  // The elements are read three times, the last two from the cache.
  Candidate c = PlainCandidate(node, PassSeconds(gpu, 1.5 * node.bytes, 4 * node.flops),
                               rows ? "block for each line" : "thread for each line");
  c.arithmetic = StrCat(kArithmetic, rows ? " rows" : " columns");
  c.in_place = {{0u, 0u}};
  c.tag = rows ? 1 : 0;
  out->push_back(std::move(c));
  return {};
}

Result<std::unique_ptr<BoundKernel>> BindSoftmax(const OpView& op, const Candidate& candidate,
                                                 Gpu& gpu) {
  const Dims& x = op.input(0).dims;
  const int axis = PositiveAxis(op.Int("axis"), x.rank());
  const int64_t inner = x.product(axis + 1, x.rank()), lines = x.product(0, axis) * inner;
  SoftmaxArgs args;
  args.type = static_cast<int32_t>(op.input(0).dtype);
  args.log = op.op() == "LogSoftmax" ? 1 : 0;
  args.lines = static_cast<uint32_t>(lines);
  args.extent = static_cast<uint32_t>(x[axis]);
  args.inner = DivisionBy(inner);
  const bool rows = (candidate.tag & 1) != 0, f64 = op.input(0).dtype == DType::kF64;
  return BoundLaunch<SoftmaxArgs>::Make(
      gpu, rows ? (f64 ? kRowsF64 : kRows) : (f64 ? kColumnsF64 : kColumns),
      rows ? Grid::OfRows(lines, x[axis]) : Grid::OfElements(lines), args,
      [](const RunArgs& run, const Stream&, SoftmaxArgs* a) {
        a->in = run.inputs[0].data;
        a->out = run.outputs[0].data;
      });
}

constexpr Rule kSoftmaxRules[] = {{"", "Softmax", QuerySoftmax, BindSoftmax},
                                  {"", "LogSoftmax", QuerySoftmax, BindSoftmax}};

}  // namespace

std::span<const Rule> SoftmaxRules() { return kSoftmaxRules; }

}  // namespace msrt::cuda
