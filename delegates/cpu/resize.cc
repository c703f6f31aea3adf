// Resize of images in every mode, with the bits of MSRT_ARITHMETIC_REFERENCE: weighted sums in
// double along the height, then along the width. Pixels are numbers, blocks of channels or all
// channels, by the layout.
#include <algorithm>
#include <optional>

#include "core/abi/msrt_plugin.h"
#include "delegates/cpu/rule.h"
#include "ops/resample.h"

namespace msrt::cpu {
namespace {

// A Resize of the last two axes of a tensor of rank 3 or 4; a tensor of rank 3 has one row.
struct ImageResize {
  Resample resample;
  // Null: the axis is copied.
  const ResizeAxis* rows() const { return AxisOf(resample.rank == 4 ? 2 : -1); }
  const ResizeAxis* columns() const { return AxisOf(resample.rank - 1); }
  static bool IsCopied(const Resample& r, const ResizeAxis& a) {
    return r.Unchanged(a) && a.in_piece == a.out_piece;
  }

 private:
  const ResizeAxis* AxisOf(int i) const {
    if (i < 0) return nullptr;
    const ResizeAxis& a = resample.axis[static_cast<size_t>(i)];
    return IsCopied(resample, a) ? nullptr : &a;
  }
};

// kUnsupported, with the reason, for a Resize that is not one of images. Requires concrete types.
Result<ImageResize> ImageResizeOf(const OpView& op) {
  const auto r = ResampleOf(op, op.input(0).dims, ResizeListsOf(op));
  if (!r.ok()) return Unsupported(r.status().message());
  if (r->rank < 3 || r->rank > 4) return Unsupported("a Resize of rank ", r->rank);
  if (r->coordinates == ResizeCoordinates::kTfCropAndResize)
    return Unsupported("a Resize that may extrapolate");
  for (size_t i = 0; i < 2; ++i) {
    if (!ImageResize::IsCopied(*r, r->axis[i])) return Unsupported("a Resize of batch or channels");
  }
  return ImageResize{*r};
}

struct ImageTables {
  // nullopt: the axis is copied.
  std::optional<ResizeTable> rows, columns;
  bool nearest = false;
};

Result<ImageTables> TablesOf(const OpView& op) {
  MSRT_ASSIGN_OR_RETURN(const ImageResize resize, ImageResizeOf(op));
  ImageTables tables;
  tables.nearest = resize.resample.mode == ResizeMode::kNearest;
  if (const ResizeAxis* a = resize.rows()) {
    MSRT_ASSIGN_OR_RETURN(tables.rows, TableOf(resize.resample, *a));
  }
  if (const ResizeAxis* a = resize.columns()) {
    MSRT_ASSIGN_OR_RETURN(tables.columns, TableOf(resize.resample, *a));
  }
  return tables;
}

// The number of taps of each output, without the tables, which may be large.
double Taps(const Resample& r, const ResizeAxis* a) {
  if (a == nullptr || a->out_piece.empty()) return 1;
  return static_cast<double>(TapsOf(r, *a, SourceOf(r, *a, a->out_piece.begin)).size());
}

std::string QueryResize(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  if (op.input(0).dtype != DType::kF32) return StrCat("elements of type ", op.input(0).dtype);
  for (size_t i = 1; i < op.input_count(); ++i) {
    if (op.has_input(i) && op.constant(i) == nullptr)
      return "roi, scales or sizes that are not constant";
  }
  const auto resize = ImageResizeOf(*node.typical);
  if (!resize.ok()) return resize.status().message();
  const Resample& r = resize->resample;
  const double sums = Taps(r, resize->rows()) + Taps(r, resize->columns());
  for (const Layout layout : OfferedLayouts()) {
    if (!Admits(op.input(0), layout) || (layout != Layout::kPlain && op.constant(0) != nullptr))
      continue;
    const double nanoseconds = (layout == Layout::kPlain ? 0.9 : 0.15) * sums;
    Candidate c =
        PlainCandidate(node,
                       PassSeconds(node, static_cast<double>(node.typical->output(0).elements()),
                                   nanoseconds, node.bytes),
                       r.mode == ResizeMode::kNearest ? "copy" : "in double");
    c.input_layouts[0] = c.output_layouts[0] = layout;
    c.arithmetic = MSRT_ARITHMETIC_REFERENCE;
    candidates->push_back(std::move(c));
  }
  return {};
}

class BoundResize final : public BoundKernel {
 public:
  BoundResize(const OpView& op, Layout layout, ImageTables tables) : tables_(std::move(tables)) {
    const Dims &x = op.input(0).dims, &y = op.output(0).dims;
    const int last = x.rank() - 1;
    width_ = layout == Layout::kPlain          ? 1
             : layout == Layout::kChannelsLast ? x[1]
                                               : BlockOf(layout);
    planes_ = x[0] * x[1] / std::max<int64_t>(1, width_);
    in_columns_ = x[last], out_columns_ = y[last];
    if (last == 3) in_rows_ = x[2], out_rows_ = y[2];
  }

  Status Run(const RunArgs& args) override {
    if (args.outputs[0].elements() == 0) return OkStatus();
    const float* x = args.inputs[0].As<float>();
    float* y = args.outputs[0].As<float>();
    const int64_t in = in_columns_ * width_, out = out_columns_ * width_;
    const int64_t grain = std::max<int64_t>(1, kGrain / (in + out));
    return ParallelRanges(args.parallel, planes_ * out_rows_, grain,
                          [&](int64_t begin, int64_t end) {
                            Memory memory;
                            if (!tables_.nearest) memory.sums.resize(static_cast<size_t>(in));
                            for (int64_t line = begin; line < end; ++line) {
                              const int64_t plane = line / out_rows_, row = line % out_rows_;
                              const float* from = x + plane * in_rows_ * in;
                              if (tables_.nearest) CopyRow(from, row, y + line * out);
                              else BlendRow(from, row, &memory, y + line * out);
                            }
                          });
  }
  size_t bytes() const override {
    const auto of = [](const std::optional<ResizeTable>& t) {
      return t ? t->index.size() * (sizeof(int64_t) + sizeof(double)) : 0;
    };
    return of(tables_.rows) + of(tables_.columns);
  }

 private:
  struct Memory {
    std::vector<double> sums;  // of a row, along the height
    std::vector<const float*> lines;
  };

  void CopyRow(const float* plane, int64_t row, float* y) const {
    const int64_t at = tables_.rows ? tables_.rows->index[static_cast<size_t>(row)] : row;
    const float* x = plane + at * in_columns_ * width_;
    for (int64_t c = 0; c < out_columns_; ++c) {
      const int64_t from = tables_.columns ? tables_.columns->index[static_cast<size_t>(c)] : c;
      std::copy_n(x + from * width_, width_, y + c * width_);
    }
  }

  void BlendRow(const float* plane, int64_t row, Memory* memory, float* y) const {
    const int64_t in = in_columns_ * width_;
    double* const sums = memory->sums.data();
    if (tables_.rows) {
      const size_t count = tables_.rows->count, first = static_cast<size_t>(row) * count;
      memory->lines.clear();
      for (size_t t = first; t < first + count; ++t)
        memory->lines.push_back(plane + tables_.rows->index[t] * in);
      LoopsHere().blend_lines(memory->lines.data(), tables_.rows->weight.data() + first,
                              static_cast<int64_t>(count), sums, in);
    } else {
      std::copy_n(plane + row * in, in, sums);
    }
    if (!tables_.columns) {
      for (int64_t i = 0; i < in; ++i) y[i] = static_cast<float>(sums[i]);
      return;
    }
    LoopsHere().blend_pixels({.x = sums,
                              .index = tables_.columns->index.data(),
                              .weights = tables_.columns->weight.data(),
                              .taps = static_cast<int64_t>(tables_.columns->count),
                              .outputs = out_columns_,
                              .width = width_,
                              .y = y});
  }

  const ImageTables tables_;
  int64_t width_ = 1, planes_ = 1;
  int64_t in_rows_ = 1, out_rows_ = 1, in_columns_ = 1, out_columns_ = 1;
};

Result<std::unique_ptr<BoundKernel>> BindResize(const OpView& op, const Candidate& candidate) {
  MSRT_ASSIGN_OR_RETURN(ImageTables tables, TablesOf(op));
  return std::unique_ptr<BoundKernel>(
      std::make_unique<BoundResize>(op, candidate.input_layouts[0], std::move(tables)));
}

constexpr Rule kResizeRules[] = {
    {.domain = "", .op = "Resize", .query = QueryResize, .bind = BindResize, .takes_pieces = true}};

}  // namespace

std::span<const Rule> ResizeRules() { return kResizeRules; }

}  // namespace msrt::cpu
