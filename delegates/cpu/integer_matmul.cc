// MatMulInteger and msrt.QuantizedMatMul with a matrix B, for processors whose products of bytes
// saturate, and for zero points that differ by column. Operands are differences from their zero
// points in 16 bits, so sums are exact.
#include <algorithm>

#include "delegates/cpu/activation.h"
#include "delegates/cpu/rule.h"
#include "delegates/sdk/packed_form.h"

namespace msrt::cpu {
namespace {

using sdk::CompileContext;
using sdk::Kernel;

// Columns that one piece of work has: enough that a call for each row of its tile does not count.
constexpr int64_t kGroupColumns = 8 * kPanelColumns;

struct Inputs {
  static constexpr size_t kNone = SIZE_MAX;
  size_t a, b, a_zero, b_zero;
  size_t a_scale = kNone, b_scale = kNone, y_scale = kNone, y_zero = kNone, bias = kNone,
         residual = kNone;
};
constexpr Inputs kSums{.a = 0, .b = 1, .a_zero = 2, .b_zero = 3};
constexpr Inputs kScaled{.a = 0,
                         .b = 3,
                         .a_zero = 2,
                         .b_zero = 5,
                         .a_scale = 1,
                         .b_scale = 4,
                         .y_scale = 6,
                         .y_zero = 7,
                         .bias = 8,
                         .residual = 9};
const Inputs& InputsOf(const OpView& op) { return op.domain() == "msrt" ? kScaled : kSums; }

bool IsTransposed(const OpView& op) { return op.domain() == "msrt" && op.Int("transB") != 0; }
bool HasOneElement(const OpView& op, size_t input) {
  return !op.has_input(input) || (op.input(input).dims.known() && op.input(input).elements() == 1);
}
// One number, or a list as long as there are columns.
bool IsColumnList(const OpView& op, size_t input) {
  if (!op.has_input(input) || HasOneElement(op, input)) return true;
  const Dims& dims = op.input(input).dims;
  return dims.rank() == 1 && dims[0] == op.input(InputsOf(op).b).dims[IsTransposed(op) ? 0 : 1];
}

struct Shape {
  int64_t rows, depth, columns, pairs, panels;
  bool transposed;
};
Shape ShapeOf(const OpView& op) {
  const Inputs& in = InputsOf(op);
  const Dims& b = op.input(in.b).dims;
  const bool transposed = IsTransposed(op);
  const int64_t depth = b[transposed ? 1 : 0], columns = b[transposed ? 0 : 1];
  const int64_t rows = depth == 0 ? 0 : op.input(in.a).elements() / depth;
  return {rows,      depth, columns, (depth + 1) / 2, (columns + kPanelColumns - 1) / kPanelColumns,
          transposed};
}
size_t PackedBytes(const Shape& s) {
  return static_cast<size_t>(s.panels * kPanelColumns * s.pairs * 2) * sizeof(int16_t);
}

int32_t ByteAt(const TensorView& t, int64_t i) {
  if (!t.present()) return 0;
  const int64_t at = t.elements() == 1 ? 0 : i;
  return t.dtype == DType::kI8 ? int32_t{t.As<int8_t>()[at]} : int32_t{t.As<uint8_t>()[at]};
}

// Panels of kPanelColumns columns; in a panel the pairs of the depth one after the other, each with
// all columns.
void PackPanel(const TensorView& b, const TensorView& zero, const Shape& s, int64_t panel,
               int16_t* packed) {
  for (int64_t p = 0; p < s.pairs; ++p) {
    for (int64_t c = 0; c < kPanelColumns; ++c) {
      const int64_t column = panel * kPanelColumns + c;
      for (int64_t k = 2 * p; k < 2 * p + 2; ++k) {
        const bool inside = k < s.depth && column < s.columns;
        const int64_t at = s.transposed ? column * s.depth + k : k * s.columns + column;
        const int32_t value = inside ? ByteAt(b, at) - ByteAt(zero, column) : 0;
        *packed++ = static_cast<int16_t>(value);
      }
    }
  }
}

Status PackAll(const TensorView& b, const TensorView& zero, const Shape& s, ParallelFor& parallel,
               int16_t* packed) {
  const int64_t step = s.pairs * 2 * kPanelColumns;
  return ParallelRanges(parallel, s.panels,
                        std::max<int64_t>(1, kGrain / std::max<int64_t>(step, 1)),
                        [&](int64_t begin, int64_t end) {
                          for (int64_t panel = begin; panel < end; ++panel)
                            PackPanel(b, zero, s, panel, packed + panel * step);
                        });
}

std::string QueryIntegerMatMul(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  const Inputs& in = InputsOf(op);
  if (op.input(in.a).rank() < 2 || op.input(in.b).rank() != 2)
    return "operands other than matrices A and one matrix B";
  if (!op.input(in.b).dims.known() || op.input(in.b).elements() == 0)
    return "a B whose shape is not known, or that is empty";
  for (const size_t i : {in.a_zero, in.a_scale, in.y_scale, in.y_zero}) {
    if (!HasOneElement(op, i)) return "a scale or zero point of A or Y that is not one number";
  }
  for (const size_t i : {in.b_zero, in.b_scale, in.bias}) {
    if (!IsColumnList(op, i))
      return "a scale, zero point or bias that is not a list of the columns";
  }
  const bool packed = op.constant(in.b) != nullptr &&
                      (!op.has_input(in.b_zero) || op.constant(in.b_zero) != nullptr);
  constexpr double kEfficiency = 0.9;  // of what the machine does in f32
  const double elements = static_cast<double>(node.typical->output(0).elements());
  const double seconds = PassSeconds(node, elements, ActivationNanoseconds(op), node.bytes) +
                         node.flops / (node.machine.flops_per_second * kEfficiency);
  Candidate c = PlainCandidate(node, seconds, packed ? "16-bit pairs, packed" : "16-bit pairs");
  c.arithmetic = ArithmeticOf(op);
  candidates->push_back(std::move(c));
  return {};
}

class BoundProduct final : public BoundKernel {
 public:
  BoundProduct(const OpView& op, const int16_t* packed)
      : in_(InputsOf(op)), shape_(ShapeOf(op)), activation_(ActivationOf(op)), packed_(packed) {}

  Status Run(const RunArgs& args) override {
    const Shape& s = shape_;
    const size_t wide_bytes = static_cast<size_t>(s.rows * s.pairs * 2) * sizeof(int16_t);
    const size_t b_bytes = packed_ == nullptr ? PackedBytes(s) : 0;
    MSRT_ASSIGN_OR_RETURN(void* scratch, args.scratch.Get(wide_bytes + b_bytes + kTensorAlignment));
    auto* wide = static_cast<int16_t*>(scratch);
    const int16_t* b = packed_;
    if (b == nullptr) {
      auto* own = reinterpret_cast<int16_t*>(static_cast<std::byte*>(scratch) + wide_bytes);
      MSRT_RETURN_IF_ERROR(
          PackAll(args.inputs[in_.b], Input(args, in_.b_zero), s, args.parallel, own));
      b = own;
    }
    MSRT_RETURN_IF_ERROR(WidenRows(args, wide));
    const std::vector<float> scale = ScaleList(args), bias = BiasList(args);
    const int64_t groups = (s.columns + kGroupColumns - 1) / kGroupColumns,
                  tiles = (s.rows + kTileRows - 1) / kTileRows;
    const double work =
        static_cast<double>(kTileRows * kGroupColumns) * static_cast<double>(s.depth);
    return ParallelRanges(args.parallel, groups * tiles,
                          std::max<int64_t>(1, static_cast<int64_t>(200000 / (work + 1))),
                          [&](int64_t begin, int64_t end) {
                            // Tiles of one group of columns after the other, so that its part of B
                            // stays in the cache.
                            for (int64_t i = begin; i < end; ++i)
                              RunPiece(args, wide, b, scale, bias, i % tiles, i / tiles);
                          });
  }

 private:
  static TensorView Input(const RunArgs& args, size_t i) {
    return i < args.inputs.size() ? args.inputs[i] : TensorView{};
  }

  Status WidenRows(const RunArgs& args, int16_t* wide) const {
    const TensorView& a = args.inputs[in_.a];
    const int32_t zero = ByteAt(Input(args, in_.a_zero), 0);
    const auto widen = LoopsHere().widen[a.dtype == DType::kI8 ? 1 : 0];
    const int64_t step = shape_.pairs * 2, depth = shape_.depth;
    return ParallelRanges(args.parallel, shape_.rows, std::max<int64_t>(1, kGrain / step),
                          [&](int64_t begin, int64_t end) {
                            for (int64_t row = begin; row < end; ++row) {
                              widen(a.As<std::byte>() + row * depth, wide + row * step, depth,
                                    zero);
                              if (depth < step) wide[row * step + depth] = 0;
                            }
                          });
  }

  // The factor of each column, and what is added to it.
  std::vector<float> ScaleList(const RunArgs& args) const {
    if (!Input(args, in_.a_scale).present()) return {};
    const float* b = args.inputs[in_.b_scale].As<float>();
    const bool one = args.inputs[in_.b_scale].elements() == 1;
    std::vector<float> scale(static_cast<size_t>(shape_.columns));
    for (size_t c = 0; c < scale.size(); ++c)
      scale[c] = *args.inputs[in_.a_scale].As<float>() * b[one ? 0 : c];
    return scale;
  }
  std::vector<float> BiasList(const RunArgs& args) const {
    const TensorView bias = Input(args, in_.bias);
    std::vector<float> list(static_cast<size_t>(shape_.columns));
    for (size_t c = 0; c < list.size() && bias.present(); ++c)
      list[c] = bias.As<float>()[bias.elements() == 1 ? 0 : c];
    return list;
  }

  void RunPiece(const RunArgs& args, const int16_t* wide, const int16_t* b,
                const std::vector<float>& scale, const std::vector<float>& bias, int64_t tile,
                int64_t group) const {
    const Shape& s = shape_;
    const int64_t first_row = tile * kTileRows,
                  rows = std::min<int64_t>(kTileRows, s.rows - first_row);
    const int64_t first = group * kGroupColumns,
                  columns = std::min(kGroupColumns, s.columns - first);
    int32_t sums[kTileRows][kGroupColumns];
    for (int64_t c = 0; c < columns; c += kPanelColumns) {
      int32_t panel[kTileRows * kPanelColumns];
      LoopsHere().sum_tile(wide + first_row * s.pairs * 2, s.pairs * 2,
                           b + (first + c) * s.pairs * 2, s.pairs, rows, panel);
      for (int64_t r = 0; r < rows; ++r)
        std::copy_n(panel + r * kPanelColumns, kPanelColumns, sums[r] + c);
    }
    for (int64_t r = 0; r < rows; ++r)
      StoreRow(args, sums[r], scale, bias, (first_row + r) * s.columns + first, first, columns);
  }

  void StoreRow(const RunArgs& args, const int32_t* sums, const std::vector<float>& scale,
                const std::vector<float>& bias, int64_t at, int64_t first, int64_t columns) const {
    const TensorView& y = args.outputs[0];
    if (scale.empty()) {
      std::copy_n(sums, columns, y.As<int32_t>() + at);
      return;
    }
    float real[kGroupColumns];
    LoopsHere().scale_sums(sums, scale.data() + first, bias.data() + first, real, columns);
    if (const TensorView z = Input(args, in_.residual); z.present()) {
      LoopsHere().binary[static_cast<size_t>(Binary::kAdd)][static_cast<size_t>(Spread::kNone)](
          {.a = real,
           .b = z.As<float>() + at,
           .y = real,
           .lines = 1,
           .columns = columns,
           .a_step = 0,
           .b_step = 0});
    }
    activation_.Apply(real, columns);
    if (const TensorView y_scale = Input(args, in_.y_scale); y_scale.present()) {
      LoopsHere().quantize[y.dtype == DType::kI8 ? 1 : 0](real, y.As<std::byte>() + at, columns,
                                                          *y_scale.As<float>(),
                                                          ByteAt(Input(args, in_.y_zero), 0));
    } else {
      std::copy_n(real, columns, y.As<float>() + at);
    }
  }

  const Inputs& in_;
  const Shape shape_;
  const Activation activation_;
  const int16_t* packed_;  // null: B or its zero point is no constant
};

class ProductKernel final : public Kernel {
 public:
  static Result<std::unique_ptr<Kernel>> Make(const NodeInfo& node, const CompileContext& context) {
    auto kernel = std::make_unique<ProductKernel>();
    const OpView& op = *node.op;
    const Inputs& in = InputsOf(op);
    const ConstTensor *b = op.constant(in.b), *zero = op.constant(in.b_zero);
    if (b == nullptr || (op.has_input(in.b_zero) && zero == nullptr))
      return std::unique_ptr<Kernel>(std::move(kernel));
    const auto view = [](const ConstTensor* t) {
      return t == nullptr ? TensorView{}
                          : TensorView{t->dtype, t->dims, Layout::kPlain,
                                       const_cast<std::byte*>(t->bytes.data())};
    };
    const Shape s = ShapeOf(*node.typical);
    kernel->dims_ = b->dims;
    const auto pack = [&](std::byte* packed) {
      return PackAll(view(b), view(zero), s, *context.parallel, reinterpret_cast<int16_t*>(packed));
    };
    // Without a name: files do not bring it, since its zero points are part of it.
    MSRT_ASSIGN_OR_RETURN(
        kernel->packed_, sdk::PackedForm::Make(context, b->bytes.data(), {}, PackedBytes(s), pack));
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  Result<std::unique_ptr<BoundKernel>> Bind(const OpView& op) override {
    // A piece may have a part of the constant, which each run then packs.
    const bool whole = op.input(InputsOf(op).b).dims == dims_;
    const auto* packed = reinterpret_cast<const int16_t*>(packed_.data());
    return std::unique_ptr<BoundKernel>(
        std::make_unique<BoundProduct>(op, whole ? packed : nullptr));
  }
  size_t packed_bytes() const override { return packed_.own_bytes(); }

 private:
  sdk::PackedForm packed_;
  Dims dims_;  // of the packed constant
};

constexpr Rule kIntegerMatMulRules[] = {
    {"", "MatMulInteger", QueryIntegerMatMul, nullptr, ProductKernel::Make},
    {"msrt", "QuantizedMatMul", QueryIntegerMatMul, nullptr, ProductKernel::Make},
};

}  // namespace

std::span<const Rule> IntegerMatMulRules() { return kIntegerMatMulRules; }

}  // namespace msrt::cpu
