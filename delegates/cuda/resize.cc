// Resize by the tables of ops/resample.h, which are copied to the GPU when the shapes are prepared.
#include <mutex>

#include "delegates/cuda/launch.h"
#include "delegates/cuda/spaces.h"
#include "ops/resample.h"

namespace msrt::cuda {
namespace {

constexpr KernelId<ResizeArgs> kNearest{"resize", "resize_nearest"},
    kWeighted{"resize", "resize_weighted"};

bool IsKnown(const ResizeLists& lists) {
  return lists.roi.has_value() && lists.scales.has_value() && lists.sizes.has_value();
}

std::string QueryResize(const NodeInfo& node, const GpuProperties& gpu,
                        std::vector<Candidate>* out) {
  const OpView& op = *node.op;
  const DType type = op.input(0).dtype;
  if (!IsElementType(type) || type == DType::kU64) return StrCat("elements of type ", type);
  const ResizeLists lists = ResizeListsOf(*node.typical);
  if (IsKnown(lists)) {
    const auto r = ResampleOf(*node.typical, node.typical->input(0).dims, lists);
    if (!r.ok()) return r.status().message();
    int axes = 0;
    for (int d = 0; d < r->rank; ++d) axes += r->Unchanged(r->axis[static_cast<size_t>(d)]) ? 0 : 1;
    if (axes > kMaxResizedAxes) return StrCat("more than ", kMaxResizedAxes, " resampled axes");
  }
  Candidate c = PlainCandidate(node, PassSeconds(gpu, node.bytes, 16 * node.flops), "tables");
  c.arithmetic = kArithmetic;
  out->push_back(std::move(c));
  return {};
}

// What the kernel reads beside the tensors, as one block: weights, indices, flags.
struct Tables {
  std::vector<double> weights;
  std::vector<int32_t> indices;
  std::vector<uint8_t> outside;
};

class BoundResize final : public BoundKernel {
 public:
  BoundResize(Gpu& gpu, KernelId<ResizeArgs> kernel, CUfunction function, const ResizeArgs& args,
              Tables tables)
      : gpu_(gpu), kernel_(kernel), function_(function), args_(args), tables_(std::move(tables)) {}
  ~BoundResize() override {
    if (memory_ != nullptr) gpu_.Free(memory_, memory_bytes_);
  }

  Status Prepare() override {
    std::lock_guard lock(mutex_);
    return memory_ != nullptr ? OkStatus() : Upload();
  }

  Status Run(const RunArgs& run) override {
    MSRT_RETURN_IF_ERROR(Prepare());
    ResizeArgs args = args_;
    args.in = run.inputs[0].data;
    args.out = run.outputs[0].data;
    return Launch(*static_cast<const Stream*>(run.stream), function_, kernel_.name,
                  Grid::OfElements(args.space.elements), &args);
  }
  size_t bytes() const override { return memory_bytes_ + sizeof(args_); }

 private:
  // The copy is made before anything that reads it is enqueued, so that all streams see it.
  Status Upload() {
    const size_t weights = tables_.weights.size() * sizeof(double),
                 indices = tables_.indices.size() * sizeof(int32_t),
                 outside = tables_.outside.size();
    std::vector<std::byte> block(weights + indices + outside);
    const auto put = [&](size_t at, const void* from, size_t bytes) {
      if (bytes != 0) std::memcpy(block.data() + at, from, bytes);
    };
    put(0, tables_.weights.data(), weights);
    put(weights, tables_.indices.data(), indices);
    put(weights + indices, tables_.outside.data(), outside);
    MSRT_ASSIGN_OR_RETURN(void* memory, gpu_.Allocate(block.size()));
    Status status = gpu_.Upload(memory, block.data(), block.size());
    if (!status.ok()) {
      gpu_.Free(memory, block.size());
      return status;
    }
    memory_ = memory;
    memory_bytes_ = block.size();
    const auto* base = static_cast<const std::byte*>(memory);
    args_.weight = reinterpret_cast<const double*>(base);
    args_.index = reinterpret_cast<const int32_t*>(base + weights);
    args_.outside = reinterpret_cast<const uint8_t*>(base + weights + indices);
    tables_ = {};
    return OkStatus();
  }

  Gpu& gpu_;  // the kernel that made this object holds it
  const KernelId<ResizeArgs> kernel_;
  const CUfunction function_;
  std::mutex mutex_;  // guards what follows; nothing changes once the memory is there
  ResizeArgs args_;
  Tables tables_;
  void* memory_ = nullptr;
  size_t memory_bytes_ = 0;
};

// Adds the table of one resampled axis.
Status AddAxis(const Resample& r, const ResizeAxis& axis, int number, ResizeArgs* args,
               Tables* tables) {
  MSRT_ASSIGN_OR_RETURN(const ResizeTable table, TableOf(r, axis));
  args->taps[number] = static_cast<int32_t>(table.count);
  args->first_entry[number] = static_cast<int32_t>(tables->indices.size());
  args->first_outside[number] = static_cast<int32_t>(tables->outside.size());
  for (int64_t index : table.index) tables->indices.push_back(static_cast<int32_t>(index));
  // Nearest has no weights.
  for (size_t i = 0; i < table.index.size(); ++i)
    tables->weights.push_back(i < table.weight.size() ? table.weight[i] : 1.0);
  for (size_t i = 0; i < table.index.size() / table.count; ++i)
    tables->outside.push_back(i < table.extrapolated.size() && table.extrapolated[i] ? 1 : 0);
  return OkStatus();
}

Result<std::unique_ptr<BoundKernel>> BindResize(const OpView& op, const Candidate&, Gpu& gpu) {
  const ResizeLists lists = ResizeListsOf(op);
  if (!IsKnown(lists)) return Unsupported("cuda: sizes that are not known");
  const Dims& x = op.input(0).dims;
  MSRT_ASSIGN_OR_RETURN(const Resample r, ResampleOf(op, x, lists));
  ResizeArgs args;
  Tables tables;
  args.type = static_cast<int32_t>(op.input(0).dtype);
  args.extrapolation = op.Float("extrapolation_value");
  args.space = SpaceOf(op.output(0).dims);
  CopyStrides(RowMajorStrides(x), args.in_strides);
  for (int d = 0; d < r.rank; ++d) {
    const ResizeAxis& axis = r.axis[static_cast<size_t>(d)];
    args.axis_of_dim[d] = -1;
    if (r.Unchanged(axis)) continue;
    if (args.axes == kMaxResizedAxes)
      return Unsupported("cuda: more than ", kMaxResizedAxes, " resampled axes");
    MSRT_RETURN_IF_ERROR(AddAxis(r, axis, args.axes, &args, &tables));
    args.axis_of_dim[d] = args.axes++;
  }
  const KernelId<ResizeArgs> kernel = r.mode == ResizeMode::kNearest ? kNearest : kWeighted;
  MSRT_ASSIGN_OR_RETURN(CUfunction function, gpu.Function(kernel.file, kernel.name));
  return std::unique_ptr<BoundKernel>(
      std::make_unique<BoundResize>(gpu, kernel, function, args, std::move(tables)));
}

constexpr Rule kResizeRules[] = {{"", "Resize", QueryResize, BindResize, true}};

}  // namespace

std::span<const Rule> ResizeRules() { return kResizeRules; }

}  // namespace msrt::cuda
