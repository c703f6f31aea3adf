// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear and msrt.QuantizedAdd on bytes with one
// scale for the whole tensor. Elements are a vector in whatever layout, since blocks are full.
#include <cmath>
#include <mutex>

#include "delegates/cpu/rule.h"

namespace msrt::cpu {
namespace {

constexpr DTypeSet kBytes{DType::kU8, DType::kI8};

size_t Signed(DType dtype) { return dtype == DType::kI8 ? 1 : 0; }

int32_t ByteIn(const TensorView& t) {
  if (!t.present()) return 0;
  return t.dtype == DType::kI8 ? int32_t{*t.As<int8_t>()} : int32_t{*t.As<uint8_t>()};
}
float NumberIn(const TensorView& t) { return *t.As<float>(); }
size_t Width(DType dtype) { return dtype == DType::kF32 ? 4 : 1; }
void* At(const TensorView& t, int64_t element) {
  return t.As<std::byte>() + static_cast<size_t>(element) * Width(t.dtype);
}

bool IsOneNumber(const OpView& op, size_t input) {
  return !op.has_input(input) || (op.input(input).dims.known() && op.input(input).elements() == 1);
}

// The candidates of an op whose tensors at `inputs` and output 0 are in one layout.
void OfferLayouts(const NodeInfo& node, std::initializer_list<size_t> inputs, double nanoseconds,
                  bool in_place, std::vector<Candidate>* candidates) {
  const double elements = static_cast<double>(node.typical->output(0).elements());
  for (const Layout layout : OfferedLayouts()) {
    bool admitted = Admits(node.op->output(0), layout);
    for (const size_t i : inputs)
      admitted = admitted && (layout == Layout::kPlain || node.op->constant(i) == nullptr);
    if (!admitted) continue;
    Candidate c =
        PlainCandidate(node, PassSeconds(node, elements, nanoseconds, node.bytes), "vectorised");
    for (const size_t i : inputs) c.input_layouts[i] = layout;
    c.output_layouts[0] = layout;
    c.arithmetic = ArithmeticOf(*node.op);
    if (in_place) c.in_place = {{0u, 0u}};
    candidates->push_back(std::move(c));
  }
}

// ---- one scale ----------------------------------------------------------------------------------

std::string QueryLinear(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  const bool quantizes = op.op() == "QuantizeLinear";
  const DType real = quantizes ? op.input(0).dtype : op.output(0).dtype,
              bytes = quantizes ? op.output(0).dtype : op.input(0).dtype;
  if (real != DType::kF32 || op.input(1).dtype != DType::kF32)
    return StrCat("real numbers of type ", real);
  if (!kBytes.Has(bytes)) return StrCat("elements of type ", bytes);
  if (!IsOneNumber(op, 1) || !IsOneNumber(op, 2) || op.Int("block_size") != 0)
    return "a scale for each index of an axis, or for each block";
  if (quantizes && op.Dtype("precision") != DType::kNone && op.Dtype("precision") != DType::kF32)
    return "a division in another precision";
  OfferLayouts(node, {0}, quantizes ? 0.1 : 0.06, false, candidates);
  return {};
}

class BoundLinear final : public BoundKernel {
 public:
  explicit BoundLinear(const OpView& op)
      : quantizes_(op.op() == "QuantizeLinear"), elements_(op.output(0).elements()) {}
  Status Run(const RunArgs& args) override {
    const TensorView &x = args.inputs[0], &y = args.outputs[0];
    const float scale = NumberIn(args.inputs[1]);
    const int32_t zero = args.inputs.size() > 2 ? ByteIn(args.inputs[2]) : 0;
    return ParallelRanges(args.parallel, elements_, kGrain, [&](int64_t begin, int64_t end) {
      if (quantizes_) {
        LoopsHere().quantize[Signed(y.dtype)](x.As<float>() + begin, At(y, begin), end - begin,
                                              scale, zero);
      } else {
        LoopsHere().dequantize[Signed(x.dtype)](At(x, begin), y.As<float>() + begin, end - begin,
                                                scale, zero);
      }
    });
  }

 private:
  const bool quantizes_;
  const int64_t elements_;
};

// ---- a scale that follows from the data ---------------------------------------------------------

std::string QueryDynamic(const NodeInfo& node, std::vector<Candidate>* candidates) {
  OfferLayouts(node, {0}, 0.16, false, candidates);
  return {};
}

// One pass for the extremes and one for the bytes, with the arithmetic of ONNX, step by step in
// f32.
class BoundDynamic final : public BoundKernel {
 public:
  explicit BoundDynamic(const OpView& op) : elements_(op.input(0).elements()) {}
  Status Run(const RunArgs& args) override {
    const float* x = args.inputs[0].As<float>();
    float least = 0, greatest = 0;
    std::mutex mutex;
    MSRT_RETURN_IF_ERROR(
        ParallelRanges(args.parallel, elements_, kGrain, [&](int64_t begin, int64_t end) {
          float low = 0, high = 0;
          LoopsHere().min_max(x + begin, end - begin, &low, &high);
          const std::lock_guard lock(mutex);
          least = std::min(least, low), greatest = std::max(greatest, high);
        }));
    const float range = (greatest - least) / 255.0f, scale = range == 0 ? 1.0f : range;
    const float zero = std::nearbyint(std::min(std::max(0.0f - least / scale, 0.0f), 255.0f));
    const auto zero_byte = static_cast<uint8_t>(zero == zero ? zero : 0);
    if (args.outputs[1].present()) *args.outputs[1].As<float>() = scale;
    if (args.outputs[2].present()) *args.outputs[2].As<uint8_t>() = zero_byte;
    if (!args.outputs[0].present()) return OkStatus();
    auto* y = args.outputs[0].As<uint8_t>();
    return ParallelRanges(args.parallel, elements_, kGrain, [&](int64_t begin, int64_t end) {
      LoopsHere().quantize[0](x + begin, y + begin, end - begin, scale, zero_byte);
    });
  }

 private:
  const int64_t elements_;
};

// ---- sums ---------------------------------------------------------------------------------------

std::string QuerySum(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  for (const size_t i : {1, 2, 4, 5, 6, 7}) {
    if (!IsOneNumber(op, i)) return "a scale or zero point whose shape is not known";
  }
  const std::string_view activation = op.String("activation");
  if (!activation.empty() && activation != "Relu") return StrCat("activation ", activation);
  OfferLayouts(node, {0, 3}, 0.12, true, candidates);
  return {};
}

class BoundSum final : public BoundKernel {
 public:
  explicit BoundSum(const OpView& op)
      : relu_(!op.String("activation").empty()), elements_(op.output(0).elements()) {}
  Status Run(const RunArgs& args) override {
    const auto& in = args.inputs;
    const TensorView& y = args.outputs[0];
    const AddBytesLoop loop =
        LoopsHere().add_bytes[Signed(in[0].dtype)][Signed(in[3].dtype)][Signed(y.dtype)];
    return ParallelRanges(args.parallel, elements_, kGrain, [&](int64_t begin, int64_t end) {
      loop({.a = At(in[0], begin),
            .b = At(in[3], begin),
            .y = At(y, begin),
            .count = end - begin,
            .a_scale = NumberIn(in[1]),
            .b_scale = NumberIn(in[4]),
            .y_scale = NumberIn(in[6]),
            .a_zero = ByteIn(in[2]),
            .b_zero = ByteIn(in[5]),
            .y_zero = ByteIn(in[7]),
            .relu = relu_});
    });
  }

 private:
  const bool relu_;
  const int64_t elements_;
};

template <typename B>
Result<std::unique_ptr<BoundKernel>> BindAs(const OpView& op, const Candidate&) {
  return std::unique_ptr<BoundKernel>(std::make_unique<B>(op));
}

constexpr Rule kQuantizationRules[] = {
    {"", "QuantizeLinear", QueryLinear, BindAs<BoundLinear>},
    {"", "DequantizeLinear", QueryLinear, BindAs<BoundLinear>},
    {"", "DynamicQuantizeLinear", QueryDynamic, BindAs<BoundDynamic>},
    {"msrt", "QuantizedAdd", QuerySum, BindAs<BoundSum>},
};

}  // namespace

std::span<const Rule> QuantizationRules() { return kQuantizationRules; }

}  // namespace msrt::cpu
