#include "core/passes/recognize_quantized.h"

#include <algorithm>

#include "core/passes/rewrite.h"
#include "ops/node_view.h"

namespace msrt {
namespace {

constexpr DTypeSet kBytes{DType::kU8, DType::kI8};

ValueId InputOf(const Node& node, size_t i) {
  return i < node.inputs.size() ? node.inputs[i] : kNoValue;
}
bool IsOneNumber(const Type& type) {
  return type.rank_known && type.dims.known() && type.dims.elements() == 1;
}

// The quantised tensor that a DequantizeLinear reads or a QuantizeLinear writes, with its
// parameters.
struct Bytes {
  ValueId x = kNoValue, scale = kNoValue, zero = kNoValue;
};

// Whether constants are bitwise equal, or both absent.
bool SameConstant(const Rewriter& r, ValueId a, ValueId b) {
  if (a == b) return true;
  if (a == kNoValue || b == kNoValue) return false;
  const ConstTensor *x = r.constant(a), *y = r.constant(b);
  return x != nullptr && y != nullptr && x->dtype == y->dtype &&
         std::ranges::equal(x->bytes, y->bytes);
}

// Whether the zero points of weights are the middle of their type. Native convolutions of bytes
// support no others, and plain loops would be slower than f32.
bool AreCentred(const Rewriter& r, const Bytes& weights) {
  const bool is_unsigned = r.type(weights.x).dtype == DType::kU8;
  if (weights.zero == kNoValue) return !is_unsigned;
  const ConstTensor* zero = r.constant(weights.zero);
  return zero != nullptr && std::ranges::all_of(zero->bytes, [&](std::byte b) {
           return b == std::byte{is_unsigned ? uint8_t{128} : uint8_t{0}};
         });
}

// The operands of a product in the order of msrt.QuantizedMatMul and msrt.QuantizedConv.
struct IntegerProduct {
  Bytes a, b, y;  // y.scale is kNoValue for an f32 result
  ValueId bias = kNoValue, residual = kNoValue;
  AttrList attrs;

  std::vector<ValueId> inputs() const {
    std::vector<ValueId> all{a.x,    a.scale, a.zero, b.x,  b.scale,
                             b.zero, y.scale, y.zero, bias, residual};
    while (all.back() == kNoValue) all.pop_back();
    return all;
  }
};

class Recognizer {
 public:
  Recognizer(const PassContext& context, Rewriter* r) : context_(context), r_(r) {}

  void Visit(size_t n) {
    if (r_->Is(n, "MatMulInteger") || r_->Is(n, "ConvInteger")) ScaledSums(n);
    else if (r_->Is(n, "QLinearMatMul") || r_->Is(n, "QLinearConv")) QLinear(n);
    else if (r_->IsPresent(n) && IsFloatProduct(r_->node(n)) && IsNative(n)) DequantizedProduct(n);
  }
  // Called after all products have been visited.
  void VisitQuantize(size_t n) {
    if (!r_->Is(n, "QuantizeLinear") || !IsNative(n)) return;
    if (!QuantizedMove(n)) QuantizedSum(n);
  }

 private:
  bool IsNative(size_t n) const {
    return context_.computes_natively && context_.computes_natively(r_->node(n), DType::kI8);
  }

  static bool IsFloatProduct(const Node& node) {
    if (IsPiece(node)) return false;
    if (node.domain == "msrt") return node.op == "FusedConv" || node.op == "FusedMatMul";
    return node.domain.empty() && (node.op == "Conv" || node.op == "MatMul" || node.op == "Gemm");
  }

  ValueId Number(float value) {
    return r_->AddConstant("scale", ConstTensor::Floats({}, {&value, 1}));
  }

  // ---- sums that are scaled ---------------------------------------------------------------------

  // Returns one number, or a list with one for each column or channel, as a constant of rank 1.
  ValueId AsList(ValueId v, const Type& result, bool conv) {
    const Type type = r_->type(v);
    if (type.dtype != DType::kF32 || !type.rank_known || !type.dims.known()) return kNoValue;
    if (type.dims.elements() == 1) return v;
    const ConstTensor* constant = r_->constant(v);
    const int axis = conv ? 1 : result.rank() - 1, at = axis - (result.rank() - type.rank());
    const bool fits =
        at >= 0 && type.dims[at] == type.dims.elements() && result.dims[axis] == type.dims[at];
    if (constant == nullptr || !fits) return kNoValue;
    if (type.rank() == 1) return v;
    ConstTensor flat = *constant;
    flat.dims = {type.dims.elements()};
    return r_->AddConstant(r_->graph().value(v).name + ".flat", std::move(flat));
  }

  // Splits the scale of a sum into a single number for A and a scale of B.
  bool SplitScale(ValueId scale, const Type& result, bool conv, IntegerProduct* p) {
    if (r_->type(scale).dtype != DType::kF32 || r_->type(scale).rank() > result.rank())
      return false;
    const auto made = r_->Producer(scale, "Mul");
    for (size_t i = 0; made && i < 2; ++i) {
      const Node& mul = r_->node(*made);
      if (!IsOneNumber(r_->type(mul.inputs[i])) || r_->type(mul.inputs[i]).dtype != DType::kF32)
        continue;
      p->a.scale = mul.inputs[i];
      p->b.scale = AsList(mul.inputs[1 - i], result, conv);
      if (p->b.scale != kNoValue) return true;
    }
    p->b.scale = AsList(scale, result, conv);
    p->a.scale = p->b.scale == kNoValue ? kNoValue : Number(1);
    return p->b.scale != kNoValue;
  }

  void ScaledSums(size_t n) {
    const Node node = r_->node(n);
    const auto cast = r_->SoleUser(node.outputs[0]);
    if (!cast || !r_->Is(*cast, "Cast")) return;
    const ValueId real = r_->node(*cast).outputs[0];
    const auto mul = r_->SoleUser(real);
    const Type result = r_->type(real);
    if (!mul || !r_->Is(*mul, "Mul") || result.dtype != DType::kF32 || !result.rank_known) return;
    const Node& scaled = r_->node(*mul);
    const bool conv = node.op == "ConvInteger";
    IntegerProduct p{.a = {node.inputs[0], kNoValue, InputOf(node, 2)},
                     .b = {node.inputs[1], kNoValue, InputOf(node, 3)},
                     .y = {},
                     .attrs = node.attrs};
    if (!SplitScale(scaled.inputs[scaled.inputs[0] == real ? 1 : 0], result, conv, &p)) return;
    r_->Replace(*mul, conv ? "QuantizedConv" : "QuantizedMatMul", p.inputs(), p.attrs, "msrt");
  }

  // ---- products that are quantised again --------------------------------------------------------

  // Returns the bias in f32: its unit is the product of both scales.
  std::optional<ConstTensor> RealBias(ValueId bias, ValueId x_scale, ValueId w_scale) const {
    const ConstTensor *b = r_->constant(bias), *x = r_->constant(x_scale),
                      *w = r_->constant(w_scale);
    if (b == nullptr || x == nullptr || w == nullptr || x->As<float>().size() != 1)
      return std::nullopt;
    const auto steps = b->As<int32_t>();
    const auto scales = w->As<float>();
    if (scales.size() != 1 && scales.size() != steps.size()) return std::nullopt;
    std::vector<float> real;
    for (size_t i = 0; i < steps.size(); ++i) {
      real.push_back(static_cast<float>(
          steps[i] * (double{x->As<float>()[0]} * double{scales[scales.size() == 1 ? 0 : i]})));
    }
    return ConstTensor::Floats(b->dims, real);
  }

  void QLinear(size_t n) {
    const Node node = r_->node(n);
    for (const size_t i : {size_t{0}, size_t{3}, size_t{7}}) {
      if (!kBytes.Has(r_->type(node.inputs[i]).dtype)) return;
    }
    for (const size_t i : {size_t{1}, size_t{4}, size_t{6}}) {
      if (r_->type(node.inputs[i]).dtype != DType::kF32) return;
    }
    std::vector<ValueId> inputs = node.inputs;
    if (InputOf(node, 8) != kNoValue) {
      auto bias = RealBias(inputs[8], inputs[1], inputs[4]);
      if (!bias) return;
      inputs[8] = r_->AddConstant(node.name + ".bias", *std::move(bias));
    }
    if (IsNative(n) &&
        (node.op == "QLinearMatMul" || AreCentred(*r_, {inputs[3], inputs[4], inputs[5]}))) {
      r_->Replace(n, node.op == "QLinearConv" ? "QuantizedConv" : "QuantizedMatMul",
                  std::move(inputs), node.attrs, "msrt");
    } else if (node.op == "QLinearConv") {
      ConvolveReals(n, node, inputs);
    }
  }

  // Convolves in f32, which is faster than plain loops over bytes.
  void ConvolveReals(size_t n, const Node& node, const std::vector<ValueId>& inputs) {
    const ValueId x = r_->Add(n, "DequantizeLinear", {inputs[0], inputs[1], inputs[2]}, {});
    const ValueId w =
        r_->Add(n, "DequantizeLinear", {inputs[3], inputs[4], inputs[5]}, {{"axis", int64_t{0}}});
    if (x == kNoValue || w == kNoValue) return;
    std::vector<ValueId> operands{x, w};
    if (inputs.size() > 8) operands.push_back(inputs[8]);
    const ValueId y = r_->Add(n, "Conv", std::move(operands), node.attrs);
    if (y != kNoValue) r_->Replace(n, "QuantizeLinear", {y, inputs[6], inputs[7]}, {});
  }

  // ---- real numbers between DequantizeLinear and QuantizeLinear ---------------------------------

  // Returns the value before DequantizeLinear, if it has one f32 scale for the whole tensor.
  std::optional<Bytes> Dequantized(ValueId v) const {
    const auto d = r_->Producer(v, "DequantizeLinear");
    return d ? BytesOf(*d, r_->node(*d).inputs[0]) : std::nullopt;
  }
  std::optional<Bytes> BytesOf(size_t n, ValueId bytes) const {
    const Node& node = r_->node(n);
    const Bytes b{bytes, node.inputs[1], InputOf(node, 2)};
    if (!kBytes.Has(r_->type(b.x).dtype) || r_->type(b.scale).dtype != DType::kF32 ||
        !IsOneNumber(r_->type(b.scale)))
      return std::nullopt;
    if (NodeView(r_->graph(), node).op().Int("block_size") != 0) return std::nullopt;
    return b;
  }

  // The same for constant weights, which may have a list of scales along `axis`.
  std::optional<Bytes> DequantizedWeights(ValueId v, int axis) const {
    const auto d = r_->Producer(v, "DequantizeLinear");
    if (!d) return std::nullopt;
    const Node& node = r_->node(*d);
    const NodeView view(r_->graph(), node);
    const Bytes b{node.inputs[0], node.inputs[1], InputOf(node, 2)};
    const ConstTensor *w = r_->constant(b.x), *scale = r_->constant(b.scale);
    if (w == nullptr || scale == nullptr || !kBytes.Has(w->dtype) || scale->dtype != DType::kF32)
      return std::nullopt;
    if (view.op().Int("block_size") != 0 || scale->dims.rank() > 1) return std::nullopt;
    const int64_t given = view.op().Int("axis");
    if (scale->dims.elements() != 1 && (given < 0 ? given + w->dims.rank() : given) != axis)
      return std::nullopt;
    return b;
  }

  // Returns operands, bias and residual of an f32 product; nullopt if it does anything else.
  std::optional<IntegerProduct> OperandsOf(const Node& node, bool conv) const {
    const NodeView view(r_->graph(), node);
    const OpView& op = view.op();
    const bool plain = node.op == "MatMul", transposed = !conv && !plain && op.Int("transB") != 0;
    if (!conv && !plain && (op.Int("transA") != 0 || op.Float("alpha") != 1)) return std::nullopt;
    if (node.op == "Gemm" && op.Float("beta") != 1) return std::nullopt;
    if (!op.input(0).rank_known || !op.input(1).rank_known) return std::nullopt;
    if (!conv && (op.input(0).rank() < 2 || op.input(1).rank() != 2)) return std::nullopt;
    const auto a = Dequantized(node.inputs[0]),
               b = DequantizedWeights(node.inputs[1], conv || transposed ? 0 : 1);
    if (!a || !b || (conv && !AreCentred(*r_, *b))) return std::nullopt;
    IntegerProduct p{.a = *a,
                     .b = *b,
                     .y = {},
                     .bias = InputOf(node, 2),
                     .residual = InputOf(node, 3),
                     .attrs = {}};
    const int64_t outputs = op.input(1).dims[conv || transposed ? 0 : 1];
    if (p.bias != kNoValue && (r_->type(p.bias).rank() != 1 || r_->type(p.bias).dims[0] != outputs))
      return std::nullopt;
    if (conv) p.attrs = node.attrs;
    else if (transposed) p.attrs.Set("transB", int64_t{1});
    if (node.domain == "msrt" && !conv) {
      for (const char* name : {"activation", "activation_alpha", "activation_beta"}) {
        if (const auto* value = node.attrs.Find(name)) p.attrs.Set(name, *value);
      }
    }
    return p;
  }

  void DequantizedProduct(size_t n) {
    const Node node = r_->node(n);
    const bool conv = node.op == "Conv" || node.op == "FusedConv";
    auto p = OperandsOf(node, conv);
    if (!p) return;
    size_t root = n;
    auto next = r_->SoleUser(node.outputs[0]);
    if (next && r_->Is(*next, "Relu") &&
        NodeView(r_->graph(), node).op().String("activation").empty()) {
      p->attrs.Set("activation", std::string("Relu"));
      root = *next;
      next = r_->SoleUser(r_->node(root).outputs[0]);
    }
    if (next && r_->Is(*next, "QuantizeLinear") && SetResult(*next, &*p)) root = *next;
    r_->Replace(root, conv ? "QuantizedConv" : "QuantizedMatMul", p->inputs(), p->attrs, "msrt");
  }

  bool SetResult(size_t quantize, IntegerProduct* p) {
    const auto y = BytesOf(quantize, r_->node(quantize).outputs[0]);
    if (y) p->y = {kNoValue, y->scale, ZeroOf(*y)};
    return y.has_value();
  }
  // Returns the zero point; an absent one is zero.
  ValueId ZeroOf(const Bytes& b) {
    const std::byte zero{0};
    return b.zero != kNoValue
               ? b.zero
               : r_->AddConstant("zero", ConstTensor::Copy(r_->type(b.x).dtype, {}, {&zero, 1}));
  }

  // Moves bytes without dequantising them.
  bool QuantizedMove(size_t n) {
    constexpr std::string_view kMoves[] = {"MaxPool",   "Reshape", "Flatten",
                                           "Transpose", "Squeeze", "Unsqueeze"};
    const ValueId moved = r_->node(n).inputs[0];
    const auto move = r_->Producer(moved);
    const auto y = BytesOf(n, r_->node(n).outputs[0]);
    if (!move || !y || r_->SoleUser(moved) != n || !r_->IsLive(*move) ||
        r_->node(*move).outputs.size() != 1)
      return false;
    const Node node = r_->node(*move);
    if (std::ranges::find(kMoves, node.op) == std::end(kMoves)) return false;
    const auto x = Dequantized(node.inputs[0]);
    if (!x || r_->type(x->x).dtype != r_->type(y->x).dtype) return false;
    if (!SameConstant(*r_, x->scale, y->scale) || !SameConstant(*r_, x->zero, y->zero))
      return false;
    std::vector<ValueId> inputs = node.inputs;
    inputs[0] = x->x;
    return r_->Replace(n, node.op, std::move(inputs), node.attrs);
  }

  void QuantizedSum(size_t n) {
    const auto y = BytesOf(n, r_->node(n).outputs[0]);
    ValueId v = r_->node(n).inputs[0];
    if (!y || r_->SoleUser(v) != n) return;
    AttrList attrs;
    if (const auto relu = r_->Producer(v, "Relu")) {
      v = r_->node(*relu).inputs[0];
      if (r_->SoleUser(v) != relu) return;
      attrs.Set("activation", std::string("Relu"));
    }
    const auto add = r_->Producer(v, "Add");
    if (!add) return;
    const Node node = r_->node(*add);
    const auto a = Dequantized(node.inputs[0]), b = Dequantized(node.inputs[1]);
    if (!a || !b || !ProvenEqual(r_->type(node.inputs[0]), r_->type(node.inputs[1]))) return;
    r_->Replace(n, "QuantizedAdd",
                {a->x, a->scale, ZeroOf(*a), b->x, b->scale, ZeroOf(*b), y->scale, ZeroOf(*y)},
                attrs, "msrt");
  }

  const PassContext& context_;
  Rewriter* r_;
};

}  // namespace

Status RecognizeQuantized(const PassContext& context, Graph* graph) {
  Rewriter r(context, graph);
  Recognizer recognizer(context, &r);
  const size_t count = r.node_count();
  for (size_t n = 0; n < count; ++n) recognizer.Visit(n);
  for (size_t n = 0; n < count; ++n) recognizer.VisitQuantize(n);
  return OkStatus();
}

}  // namespace msrt
