// MaxPool, AveragePool and LpPool.
#include "delegates/cuda/launch.h"
#include "delegates/cuda/spaces.h"
#include "ops/window.h"

namespace msrt::cuda {
namespace {

constexpr KernelId<PoolArgs> kMaxFloat{"pool", "max_pool_float"}, kMaxInt{"pool", "max_pool_int"},
    kSum{"pool", "sum_pool"};

std::string QueryPool(const NodeInfo& node, const GpuProperties& gpu, std::vector<Candidate>* out) {
  const OpView& op = *node.op;
  const DType type = op.input(0).dtype;
  const bool max = op.op() == "MaxPool";
  const bool small_int = type == DType::kI8 || type == DType::kU8;
  if (!kFloatTypes.Has(type) && !(max && small_int)) return StrCat("elements of type ", type);
  Candidate c = PlainCandidate(node, PassSeconds(gpu, node.bytes, 8 * node.flops), "windows");
  c.arithmetic = ArithmeticOf(op);
  out->push_back(std::move(c));
  return {};
}

Result<std::unique_ptr<BoundKernel>> BindPool(const OpView& op, const Candidate&, Gpu& gpu) {
  const Dims& x = op.input(0).dims;
  MSRT_ASSIGN_OR_RETURN(const Windows windows,
                        WindowsOf(op, x, op.Ints("kernel_shape"), op.Int("ceil_mode") != 0));
  const bool max = op.op() == "MaxPool";
  PoolArgs args;
  args.type = static_cast<int32_t>(op.input(0).dtype);
  int64_t plane = 1;
  for (size_t a = 0; a < kMaxSpace; ++a) {
    const WindowAxis& w = windows.axis[a];
    for (int64_t n : {w.in, w.kernel, w.stride, w.dilation, w.pad_begin, w.pad_end,
                      w.stride * w.out + w.span() + w.pad_begin, w.in + w.pad_end + w.dilation}) {
      if (n > kMaxElementsOfKernel) return Unsupported("cuda: a window beyond 2^31 elements");
    }
    args.axis[a] = {static_cast<int32_t>(w.in),        static_cast<int32_t>(w.kernel),
                    static_cast<int32_t>(w.stride),    static_cast<int32_t>(w.dilation),
                    static_cast<int32_t>(w.pad_begin), static_cast<int32_t>(w.pad_end)};
    plane *= w.out;
  }
  const int64_t elements = x[0] * x[1] * plane;
  args.elements = static_cast<uint32_t>(elements);
  args.channels = static_cast<uint32_t>(x[1]);
  args.out_plane = DivisionBy(plane);
  args.out_rows = DivisionBy(windows.axis[1].out);
  args.out_columns = DivisionBy(windows.axis[2].out);
  if (max) {
    args.column_major = op.Int("storage_order") == 1 ? 1 : 0;
    const auto whole = op.Ints("input_dims"), begin = op.Ints("input_origin");
    for (int i = 0; i < x.rank(); ++i) {
      args.whole[i] = whole.empty() ? x[i] : whole[static_cast<size_t>(i)];
      args.origin[i] = begin.empty() ? 0 : begin[static_cast<size_t>(i)];
    }
  } else {
    args.op = op.op() == "LpPool"                ? kPoolLp
              : op.Int("count_include_pad") != 0 ? kPoolAverageWithPads
                                                 : kPoolAverage;
    if (args.op == kPoolLp) args.power = static_cast<int32_t>(op.Int("p"));
  }
  const bool is_float = kFloatTypes.Has(op.input(0).dtype);
  return BoundLaunch<PoolArgs>::Make(gpu,
                                     !max       ? kSum
                                     : is_float ? kMaxFloat
                                                : kMaxInt,
                                     Grid::OfElements(elements), args,
                                     [](const RunArgs& run, const Stream&, PoolArgs* a) {
                                       a->in = run.inputs[0].data;
                                       a->out = run.outputs[0].data;
                                       if (run.outputs.size() > 1)
                                         a->indices = run.outputs[1].As<int64_t>();
                                     });
}

constexpr Rule kPoolRules[] = {{"", "MaxPool", QueryPool, BindPool, true},
                               {"", "AveragePool", QueryPool, BindPool},
                               {"", "LpPool", QueryPool, BindPool}};

}  // namespace

std::span<const Rule> PoolRules() { return kPoolRules; }

}  // namespace msrt::cuda
