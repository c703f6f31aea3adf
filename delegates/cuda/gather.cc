// Gather, GatherElements and GatherND. Indices outside their axis are found on the GPU and reported
// when the host waits for the stream.
#include "delegates/cuda/launch.h"
#include "delegates/cuda/spaces.h"

namespace msrt::cuda {
namespace {

template <typename Args>
KernelId<Args> OfWidth(const KernelId<Args> (&kernels)[4], DType type) {
  const int bits = BitsOf(type);
  return kernels[bits == 8 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : 3];
}
constexpr KernelId<GatherArgs> kGathers[] = {{"gather", "gather_8"},
                                             {"gather", "gather_16"},
                                             {"gather", "gather_32"},
                                             {"gather", "gather_64"}};
constexpr KernelId<GatherElementsArgs> kElements[] = {{"gather", "gather_elements_8"},
                                                      {"gather", "gather_elements_16"},
                                                      {"gather", "gather_elements_32"},
                                                      {"gather", "gather_elements_64"}};
constexpr KernelId<GatherNdArgs> kNd[] = {{"gather", "gather_nd_8"},
                                          {"gather", "gather_nd_16"},
                                          {"gather", "gather_nd_32"},
                                          {"gather", "gather_nd_64"}};

std::string QueryGather(const NodeInfo& node, const GpuProperties& gpu,
                        std::vector<Candidate>* out) {
  const OpView& op = *node.op;
  if (BitsOf(op.input(0).dtype) < 8) return StrCat("elements of type ", op.input(0).dtype);
  const DType index = op.input(1).dtype;
  if (index != DType::kI32 && index != DType::kI64) return StrCat("indices of type ", index);
  Candidate c = PlainCandidate(node, PassSeconds(gpu, node.bytes), "gather");
  c.arithmetic = ArithmeticOf(op);
  out->push_back(std::move(c));
  return {};
}

// The same fields of all three kinds of arguments.
template <typename Args>
void Fill(const RunArgs& run, const Stream& stream, Args* args) {
  args->in = run.inputs[0].data;
  args->indices = run.inputs[1].data;
  args->out = run.outputs[0].data;
  args->fault = stream.fault->word();
}

template <typename Args>
Result<std::unique_ptr<BoundKernel>> BindWith(const OpView& op, KernelId<Args> kernel, Args args,
                                              Gpu& gpu) {
  args.index_type = static_cast<int32_t>(op.input(1).dtype);
  return BoundLaunch<Args>::Make(gpu, kernel, Grid::OfElements(op.output(0).dims.elements()), args,
                                 Fill<Args>);
}

Result<std::unique_ptr<BoundKernel>> BindGather(const OpView& op, const Candidate&, Gpu& gpu) {
  const Dims& x = op.input(0).dims;
  const int axis = PositiveAxis(op.Int("axis"), x.rank());
  GatherArgs args;
  args.elements = static_cast<uint32_t>(op.output(0).dims.elements());
  args.inner = DivisionBy(x.product(axis + 1, x.rank()));
  args.count = DivisionBy(op.input(1).dims.elements());
  args.extent = x[axis];
  return BindWith(op, OfWidth(kGathers, op.input(0).dtype), args, gpu);
}

Result<std::unique_ptr<BoundKernel>> BindElements(const OpView& op, const Candidate&, Gpu& gpu) {
  const Dims& x = op.input(0).dims;
  GatherElementsArgs args;
  args.axis = PositiveAxis(op.Int("axis"), x.rank());
  args.extent = x[args.axis];
  CopyStrides(RowMajorStrides(x), args.in_strides);
  args.space = SpaceOf(op.output(0).dims);
  return BindWith(op, OfWidth(kElements, op.input(0).dtype), args, gpu);
}

Result<std::unique_ptr<BoundKernel>> BindNd(const OpView& op, const Candidate&, Gpu& gpu) {
  const Dims &x = op.input(0).dims, &indices = op.input(1).dims;
  const auto batch_dims = static_cast<int>(op.Int("batch_dims"));
  GatherNdArgs args;
  args.tuple = static_cast<int32_t>(indices.back());
  args.elements = static_cast<uint32_t>(op.output(0).dims.elements());
  args.slice = DivisionBy(x.product(batch_dims + args.tuple, x.rank()));
  args.tuples_in_batch = DivisionBy(indices.product(batch_dims, indices.rank() - 1));
  args.batch_elements = x.product(batch_dims, x.rank());
  const Dims strides = RowMajorStrides(x);
  for (int k = 0; k < args.tuple; ++k) {
    args.extent[k] = x[batch_dims + k];
    args.strides[k] = strides[batch_dims + k];
  }
  return BindWith(op, OfWidth(kNd, op.input(0).dtype), args, gpu);
}

constexpr Rule kGatherRules[] = {{"", "Gather", QueryGather, BindGather},
                                 {"", "GatherElements", QueryGather, BindElements},
                                 {"", "GatherND", QueryGather, BindNd}};

}  // namespace

std::span<const Rule> GatherRules() { return kGatherRules; }

}  // namespace msrt::cuda
