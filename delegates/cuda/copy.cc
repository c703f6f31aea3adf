// Ops that move elements: Transpose, Slice, Split, Concat, Expand, DepthToSpace, SpaceToDepth as
// strided copies; Pad and Tile with kernels of their own.
#include <cmath>
#include <cstring>

#include "core/base/checked_math.h"
#include "core/base/half.h"
#include "core/region/pad.h"
#include "core/region/slice.h"
#include "delegates/cuda/launch.h"
#include "delegates/cuda/spaces.h"

namespace msrt::cuda {
namespace {

// The kernel of a family for elements of so many bits.
template <typename Args>
KernelId<Args> OfWidth(const KernelId<Args> (&kernels)[4], DType type) {
  const int bits = BitsOf(type);
  return kernels[bits == 8 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : 3];
}
constexpr KernelId<CopyArgs> kCopies[] = {
    {"copy", "copy_8"}, {"copy", "copy_16"}, {"copy", "copy_32"}, {"copy", "copy_64"}};
constexpr KernelId<PadArgs> kPads[] = {
    {"copy", "pad_8"}, {"copy", "pad_16"}, {"copy", "pad_32"}, {"copy", "pad_64"}};
constexpr KernelId<TileArgs> kTiles[] = {
    {"copy", "tile_8"}, {"copy", "tile_16"}, {"copy", "tile_32"}, {"copy", "tile_64"}};

std::string QueryCopy(const NodeInfo& node, const GpuProperties& gpu, std::vector<Candidate>* out) {
  const OpView& op = *node.op;
  if (BitsOf(op.input(0).dtype) < 8) return StrCat("elements of type ", op.input(0).dtype);
  Candidate c = PlainCandidate(node, PassSeconds(gpu, node.bytes), "copy");
  c.arithmetic = ArithmeticOf(op);
  out->push_back(std::move(c));
  return {};
}

// ---- strided copies -----------------------------------------------------------------------------

// Copies of boxes between one input and one output; offsets are in elements.
struct BoxCopy {
  size_t input = 0, output = 0;
  Dims dims = {}, from = {}, to = {};
  int64_t from_offset = 0, to_offset = 0;
};

class BoundCopy final : public BoundKernel {
 public:
  BoundCopy(CUfunction function, const char* name, const BoxCopy& copy, size_t bytes)
      : function_(function),
        name_(name),
        input_(copy.input),
        output_(copy.output),
        from_bytes_(copy.from_offset * static_cast<int64_t>(bytes)),
        to_bytes_(copy.to_offset * static_cast<int64_t>(bytes)) {
    Dims from = copy.from, to = copy.to;
    Dims* const strides[] = {&from, &to};
    const Dims dims = Merge(copy.dims, strides);
    args_.space = SpaceOf(dims);
    CopyStrides(from, args_.in_strides);
    CopyStrides(to, args_.out_strides);
    if (dims.rank() == 0 || (dims.rank() == 1 && from[0] == 1 && to[0] == 1))
      dense_bytes_ = static_cast<size_t>(dims.elements()) * bytes;
  }

  Status Run(const RunArgs& run) override {
    if (run.outputs[output_].data == nullptr) return OkStatus();
    const Stream& stream = *static_cast<const Stream*>(run.stream);
    CopyArgs args = args_;
    args.in = run.inputs[input_].As<const std::byte>() + from_bytes_;
    args.out = run.outputs[output_].As<std::byte>() + to_bytes_;
    if (dense_bytes_ == 0)
      return Launch(stream, function_, name_, Grid::OfElements(args.space.elements), &args);
    const Gpu& gpu = *stream.gpu;
    MSRT_RETURN_IF_ERROR(gpu.Alive());
    const Gpu::Scope scope(gpu);
    return gpu.Check(gpu.driver().cuMemcpyDtoDAsync(reinterpret_cast<CUdeviceptr>(args.out),
                                                    reinterpret_cast<CUdeviceptr>(args.in),
                                                    dense_bytes_, stream.handle),
                     "cuMemcpyDtoDAsync");
  }
  size_t bytes() const override { return sizeof(args_); }

 private:
  const CUfunction function_;
  const char* const name_;
  const size_t input_, output_;
  const int64_t from_bytes_, to_bytes_;
  size_t dense_bytes_ = 0;  // not 0: one piece of memory, which the copy engine moves
  CopyArgs args_;
};

Result<std::unique_ptr<BoundKernel>> BindCopies(const OpView& op, std::span<const BoxCopy> copies,
                                                Gpu& gpu) {
  const DType type = op.input(0).dtype;
  const KernelId<CopyArgs> kernel = OfWidth(kCopies, type);
  MSRT_ASSIGN_OR_RETURN(CUfunction function, gpu.Function(kernel.file, kernel.name));
  std::vector<std::unique_ptr<BoundKernel>> steps;
  for (const BoxCopy& copy : copies) {
    if (copy.dims.elements() != 0)
      steps.push_back(std::make_unique<BoundCopy>(function, kernel.name, copy, BytesOf(type, 1)));
  }
  return std::unique_ptr<BoundKernel>(std::make_unique<BoundSteps>(std::move(steps)));
}

Result<std::unique_ptr<BoundKernel>> BindTranspose(const OpView& op, const Candidate&, Gpu& gpu) {
  const Dims& x = op.input(0).dims;
  const auto perm = op.Ints("perm");
  const Dims strides = RowMajorStrides(x);
  Dims from = strides;
  for (int i = 0; i < x.rank(); ++i)
    from[i] =
        strides[perm.empty() ? x.rank() - 1 - i : static_cast<int>(perm[static_cast<size_t>(i)])];
  const BoxCopy copy{0, 0, op.output(0).dims, from, RowMajorStrides(op.output(0).dims)};
  return BindCopies(op, {&copy, 1}, gpu);
}

Result<std::unique_ptr<BoundKernel>> BindExpand(const OpView& op, const Candidate&, Gpu& gpu) {
  const Dims& y = op.output(0).dims;
  const BoxCopy copy{0, 0, y, BroadcastStrides(op.input(0).dims, y), RowMajorStrides(y)};
  return BindCopies(op, {&copy, 1}, gpu);
}

Result<std::unique_ptr<BoundKernel>> BindSlice(const OpView& op, const Candidate&, Gpu& gpu) {
  const Dims& x = op.input(0).dims;
  const auto starts = IntsOf(op, "starts", 1), ends = IntsOf(op, "ends", 2),
             axes = IntsOf(op, "axes", 3), steps = IntsOf(op, "steps", 4);
  if (!starts || !ends || !axes || !steps) return Unsupported("cuda: a box that is not known");
  Dims from = RowMajorStrides(x);
  int64_t first = 0;
  for (size_t i = 0; i < starts->size(); ++i) {
    const int axis = axes->empty() ? static_cast<int>(i) : PositiveAxis((*axes)[i], x.rank());
    const SliceAxis slice =
        NormalizeSlice((*starts)[i], (*ends)[i], steps->empty() ? 1 : (*steps)[i], x[axis]);
    first += slice.start * from[axis];
    from[axis] *= slice.step;
  }
  const Dims& y = op.output(0).dims;
  const BoxCopy copy{0, 0, y, from, RowMajorStrides(y), first, 0};
  return BindCopies(op, {&copy, 1}, gpu);
}

// Concat and Split: the same copies in opposite directions.
Result<std::unique_ptr<BoundKernel>> BindConcat(const OpView& op, const Candidate&, Gpu& gpu) {
  const Dims to = RowMajorStrides(op.output(0).dims);
  const int axis = PositiveAxis(op.Int("axis"), to.rank());
  std::vector<BoxCopy> copies;
  int64_t at = 0;
  for (size_t i = 0; i < op.input_count(); ++i) {
    const Dims& x = op.input(i).dims;
    copies.push_back({i, 0, x, RowMajorStrides(x), to, 0, at * to[axis]});
    at += x[axis];
  }
  return BindCopies(op, copies, gpu);
}

Result<std::unique_ptr<BoundKernel>> BindSplit(const OpView& op, const Candidate&, Gpu& gpu) {
  const Dims& x = op.input(0).dims;
  const Dims from = RowMajorStrides(x);
  const int axis = PositiveAxis(op.Int("axis"), x.rank());
  const auto given = IntsOf(op, "split", 1);
  if (!given) return Unsupported("cuda: sizes that are not known");
  std::vector<int64_t> sizes = *given;
  if (sizes.empty()) {
    const auto count = static_cast<int64_t>(op.output_count());
    const int64_t part = CeilDiv(x[axis], count);
    sizes.assign(op.output_count(), part);
    sizes.back() = x[axis] - part * (count - 1);
  }
  std::vector<BoxCopy> copies;
  int64_t at = 0;
  for (size_t o = 0; o < op.output_count(); ++o) {
    Dims part = x;
    part[axis] = sizes[o];
    if (op.has_output(o))
      copies.push_back({0, o, part, from, RowMajorStrides(part), at * from[axis], 0});
    at += sizes[o];
  }
  return BindCopies(op, copies, gpu);
}

// Both are transposes of six dims: batch, channels, and rows and columns in blocks.
Result<std::unique_ptr<BoundKernel>> BindBlocks(const OpView& op, const Candidate&, Gpu& gpu) {
  const bool to_space = op.op() == "DepthToSpace";
  const Dims& x = op.input(0).dims;
  const int64_t b = op.Int("blocksize"), n = x[0];
  const int64_t c = to_space ? x[1] / (b * b) : x[1], h = to_space ? x[2] : x[2] / b,
                w = to_space ? x[3] : x[3] / b;
  // Where the dims are: of the deep tensor (blocks in channels) and of the wide one.
  const bool channels_first = to_space && op.String("mode") == "CRD";
  const Dims dims{n, c, h, b, w, b};
  const Dims deep = channels_first ? Dims{c * b * b * h * w, b * b * h * w, w, b * h * w, 1, h * w}
                                   : Dims{c * b * b * h * w, h * w, w, b * c * h * w, 1, c * h * w};
  const Dims wide = RowMajorStrides(dims);
  const BoxCopy copy{0, 0, dims, to_space ? deep : wide, to_space ? wide : deep};
  return BindCopies(op, {&copy, 1}, gpu);
}

std::string QueryBlocks(const NodeInfo& node, const GpuProperties& gpu,
                        std::vector<Candidate>* out) {
  if (node.op->input(0).rank() != 4) return "a rank other than 4";
  return QueryCopy(node, gpu, out);
}

// ---- Pad and Tile -------------------------------------------------------------------------------

std::string QueryPad(const NodeInfo& node, const GpuProperties& gpu, std::vector<Candidate>* out) {
  const OpView& op = *node.op;
  if (!op.has_input(2) && op.Float("value") != 0 && !kFloatTypes.Has(op.input(0).dtype) &&
      !kIntTypes.Has(op.input(0).dtype))
    return StrCat("a value in elements of type ", op.input(0).dtype);
  return QueryCopy(node, gpu, out);
}

// The bits of the attribute `value` in the type of the elements.
uint64_t BitsOfValue(DType type, double value) {
  const auto bits = [](auto x) {
    uint64_t word = 0;
    std::memcpy(&word, &x, sizeof x);
    return word;
  };
  switch (type) {
    case DType::kF64:
      return bits(value);
    case DType::kF32:
      return bits(static_cast<float>(value));
    case DType::kF16:
      return bits(Half(static_cast<float>(value)));
    case DType::kBF16:
      return bits(BFloat16(static_cast<float>(value)));
    default:
      break;
  }
  if (std::isnan(value)) return 0;
  const int width = BitsOf(type);
  const bool is_signed = kSignedTypes.Has(type);
  const double beyond = std::ldexp(1.0, is_signed ? width - 1 : width);
  const uint64_t greatest = ~uint64_t{0} >> (is_signed ? 65 - width : 64 - width);
  if (value >= beyond) return greatest;
  if (value <= (is_signed ? -beyond : 0)) return is_signed ? ~greatest : 0;
  return is_signed ? static_cast<uint64_t>(static_cast<int64_t>(value))
                   : static_cast<uint64_t>(value);
}

Result<std::unique_ptr<BoundKernel>> BindPad(const OpView& op, const Candidate&, Gpu& gpu) {
  const Dims &x = op.input(0).dims, &y = op.output(0).dims;
  const int rank = x.rank();
  const auto pads = IntsOf(op, "pads", 1), axes = IntsOf(op, "axes", 3);
  if (!pads || !axes) return Unsupported("cuda: pads that are not known");
  const PadAmounts amounts = SpreadPads(*pads, *axes, rank);
  const bool is_piece = op.Has("whole_dims");
  const Dims whole = is_piece ? Dims(op.Ints("whole_dims")) : x;
  PadArgs args;
  args.space = SpaceOf(y);
  args.mode = static_cast<int32_t>(*PadModeFromName(op.String("mode")));
  args.bits = op.has_input(2) ? 0 : BitsOfValue(op.input(0).dtype, op.Float("value"));
  CopyStrides(RowMajorStrides(x), args.in_strides);
  for (int d = 0; d < rank; ++d) {
    const PadAxis axis(*PadModeFromName(op.String("mode")), whole[d], amounts.before[d],
                       amounts.after[d]);
    args.first[d] = axis.first;
    args.kept[d] = axis.kept;
    args.before[d] = axis.before;
    if (!is_piece) continue;
    args.in_begin[d] = op.Ints("piece_input_begin")[static_cast<size_t>(d)];
    args.out_begin[d] = op.Ints("piece_output_begin")[static_cast<size_t>(d)];
  }
  return BoundLaunch<PadArgs>::Make(gpu, OfWidth(kPads, op.input(0).dtype),
                                    Grid::OfElements(y.elements()), args,
                                    [](const RunArgs& run, const Stream&, PadArgs* a) {
                                      a->in = run.inputs[0].data;
                                      if (run.inputs.size() > 2) a->value = run.inputs[2].data;
                                      a->out = run.outputs[0].data;
                                    });
}

Result<std::unique_ptr<BoundKernel>> BindTile(const OpView& op, const Candidate&, Gpu& gpu) {
  const Dims &x = op.input(0).dims, &y = op.output(0).dims;
  const auto piece = op.Ints("piece_begin");
  TileArgs args;
  args.space = SpaceOf(y);
  for (int d = 0; d < x.rank(); ++d) {
    args.begin[d] = piece.empty() ? 0 : piece[static_cast<size_t>(d)];
    args.extent[d] = x[d];
  }
  CopyStrides(RowMajorStrides(x), args.in_strides);
  return BoundLaunch<TileArgs>::Make(gpu, OfWidth(kTiles, op.input(0).dtype),
                                     Grid::OfElements(y.elements()), args,
                                     [](const RunArgs& run, const Stream&, TileArgs* a) {
                                       a->in = run.inputs[0].data;
                                       a->out = run.outputs[0].data;
                                     });
}

constexpr Rule kCopyRules[] = {
    {"", "Transpose", QueryCopy, BindTranspose},   {"", "Expand", QueryCopy, BindExpand},
    {"", "Slice", QueryCopy, BindSlice},           {"", "Concat", QueryCopy, BindConcat},
    {"", "Split", QueryCopy, BindSplit},           {"", "DepthToSpace", QueryBlocks, BindBlocks},
    {"", "SpaceToDepth", QueryBlocks, BindBlocks}, {"", "Pad", QueryPad, BindPad, true},
    {"", "Tile", QueryCopy, BindTile, true},
};

}  // namespace

std::span<const Rule> CopyRules() { return kCopyRules; }

}  // namespace msrt::cuda
