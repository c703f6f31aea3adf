// MatMulInteger and msrt.QuantizedMatMul: the matmul primitive on bytes, with 32-bit sums. A
// constant matrix B is packed once.
#include "core/abi/msrt_plugin.h"
#include "delegates/onednn/cost.h"
#include "delegates/onednn/integer_operands.h"
#include "delegates/onednn/post_ops.h"

namespace msrt::onednn {
namespace {

using MatMul = dnnl::matmul;

bool IsTransposed(const OpView& op) { return op.domain() == "msrt" && op.Int("transB") != 0; }

// With B the same for every batch, all rows of all batches are the rows of one product.
bool IsOneProduct(const OpView& op) { return op.input(IntegerInputsOf(op).b).rank() == 2; }

std::string QueryIntegerMatMul(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  const IntegerInputs& in = IntegerInputsOf(op);
  if (op.input(in.a).rank() < 2 || op.input(in.b).rank() < 2) return "a vector operand";
  if (std::string reason = ActivationRefusal(op); !reason.empty()) return reason;
  if (std::string reason = IntegerRefusal(node); !reason.empty()) return reason;
  const bool packed = op.constant(in.b) != nullptr && IsOneProduct(op);
  const double elements = static_cast<double>(node.typical->output(0).elements());
  const double seconds =
      Roofline(node.machine, node.flops, kByteSpeedup * (packed ? 1 : 0.8), node.bytes) +
      PerElement(node.machine, elements, EltwiseNanoseconds(op.String("activation")), 0) -
      kLaunchSeconds;
  Candidate c = MakeCandidate(node, Layout::kPlain, Layout::kPlain, seconds,
                              packed ? "brgemm int8, packed" : "brgemm int8");
  if (op.domain().empty()) c.arithmetic = MSRT_ARITHMETIC_ROUNDED;  // sums of integers
  if (op.has_input(in.residual) && op.constant(in.residual) == nullptr &&
      op.output(0).dtype == DType::kF32) {
    c.in_place = {{static_cast<uint32_t>(in.residual), 0u}};
  }
  candidates->push_back(std::move(c));
  return {};
}

class IntegerMatMulRecipe final : public Recipe {
 public:
  IntegerMatMulRecipe(const NodeInfo& node, const Candidate& candidate,
                      const CompileContext& context)
      : Recipe(node, candidate), in_(IntegerInputsOf(op())) {
    const ConstTensor* b = op().constant(in_.b);
    if (b == nullptr || !IsOneProduct(op())) return;
    weights_ = std::make_unique<PackedWeights>(
        b->bytes.data(), MatricesOf(b->dims, IsTransposed(op()), 2, ToDnnl(b->dtype)), context,
        PackedVariant(op()));
  }

  Status Pack(const OpView& typical) {
    if (weights_ == nullptr || typical.input(in_.a).elements() == 0 ||
        typical.output(0).elements() == 0)
      return OkStatus();
    MSRT_ASSIGN_OR_RETURN(const MatMul::primitive_desc descriptor,
                          Describe(typical, PostOpsOf(typical, false)));
    packed_ = descriptor.weights_desc();
    return weights_->Get(packed_).status();
  }

  Status Build(const OpView& op, bool shared_residual, Plan* plan) const override {
    const PostOps post_ops = PostOpsOf(op, shared_residual);
    MSRT_ASSIGN_OR_RETURN(const MatMul::primitive_desc descriptor, Describe(op, post_ops));
    Place weights = Place::Input(in_.b);
    if (weights_ != nullptr) {
      MSRT_ASSIGN_OR_RETURN(const void* packed, weights_->Get(descriptor.weights_desc()));
      weights = Place::Fixed(packed);
    } else {
      weights = PlaceBytes(op, in_.b, plan);
    }
    std::vector<Argument> arguments{{DNNL_ARG_SRC, Place::Input(in_.a), descriptor.src_desc()},
                                    {DNNL_ARG_WEIGHTS, weights, descriptor.weights_desc()},
                                    {DNNL_ARG_DST, Place::Output(0), descriptor.dst_desc()}};
    if (op.has_input(in_.bias))
      arguments.push_back({DNNL_ARG_BIAS, Place::Input(in_.bias), descriptor.bias_desc()});
    AppendScalesAndZeros(op, plan, &arguments);
    post_ops.AppendArguments(&arguments);
    plan->Add<MatMul::primitive_desc, MatMul>(descriptor, std::move(arguments));
    return OkStatus();
  }

  size_t packed_bytes() const override { return weights_ == nullptr ? 0 : weights_->bytes(); }
  int residual_input() const override {
    return op().has_input(in_.residual) && op().output(0).dtype == DType::kF32
               ? static_cast<int>(in_.residual)
               : -1;
  }

 private:
  static memory::desc MatricesOf(Dims dims, bool transposed, int rank, memory::data_type elements) {
    while (dims.rank() < rank) dims.insert(0, 1);
    memory::dims extents = ToDnnl(dims), strides = ToDnnl(RowMajorStrides(dims));
    if (transposed) {
      std::swap(extents[extents.size() - 1], extents[extents.size() - 2]);
      std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
    }
    return memory::desc(extents, elements, strides);
  }

  // The rows of all batches as those of one matrix.
  static Dims Flat(const Dims& dims) { return {dims.elements() / dims.back(), dims.back()}; }

  PostOps PostOpsOf(const OpView& op, bool shared_residual) const {
    PostOps post_ops;
    if (op.has_input(in_.residual)) {
      const Dims& dims = op.input(in_.residual).dims;
      if (shared_residual) post_ops.AddResult();
      else
        post_ops.Add(Place::Input(in_.residual),
                     DescribePlain(IsOneProduct(op) ? Flat(dims) : dims));
    }
    if (op.domain() == "msrt") post_ops.Activation(op);
    return post_ops;
  }

  Result<MatMul::primitive_desc> Describe(const OpView& op, const PostOps& post_ops) const {
    const Dims& out = op.output(0).dims;
    const bool one = IsOneProduct(op);
    const Dims result = one ? Flat(out) : out;
    const int rank = result.rank();
    const Type &a = op.input(in_.a), &b = op.input(in_.b);
    const memory::desc src = MatricesOf(one ? Flat(a.dims) : a.dims, false, rank, ToDnnl(a.dtype));
    const memory::desc dst = onednn::Describe(result, Layout::kPlain, ToDnnl(op.output(0).dtype));
    const memory::desc plain = MatricesOf(b.dims, IsTransposed(op), rank, memory::data_type::s8);
    const bool biased = op.has_input(in_.bias);
    if (biased && op.input(in_.bias).elements() != out.back())
      return Unsupported("a bias that is not one number for each column");
    Dims bias = Dims::Filled(rank, 1);
    bias[rank - 1] = out.back();
    dnnl::primitive_attr attr = UserScratchpad(post_ops.ops());
    MSRT_RETURN_IF_ERROR(SetScalesAndZeros(op, 1 << (rank - 1), &attr));
    const auto make = [&](const memory::desc& weights) {
      if (!biased) return MatMul::primitive_desc(Engine(), src, weights, dst, attr, true);
      return MatMul::primitive_desc(Engine(), src, weights, DescribePlain(bias), dst, attr, true);
    };
    const memory::desc any(plain.get_dims(), memory::data_type::s8, memory::format_tag::any);
    const MatMul::primitive_desc descriptor =
        weights_ == nullptr ? make(plain) : DescribeWithWeights(make, packed_, any);
    if (descriptor.get(true) == nullptr || IsNaive(descriptor))
      return Unsupported("oneDNN has no product of bytes for these shapes");
    if (SumsBytesExactly() && !SumsBytesExactly(descriptor))
      return Unsupported("oneDNN's product for these shapes saturates");
    return descriptor;
  }

  const IntegerInputs& in_;
  std::unique_ptr<PackedWeights> weights_;  // null where B is no constant matrix
  memory::desc packed_;                     // empty until Pack
};

Result<std::shared_ptr<const Recipe>> CompileIntegerMatMul(const NodeInfo& node,
                                                           const Candidate& candidate,
                                                           const CompileContext& context) {
  auto recipe = std::make_shared<IntegerMatMulRecipe>(node, candidate, context);
  const Status status = recipe->Pack(*node.typical);
  // Without an implementation at the typical shapes there may still be one at others.
  if (!status.ok() && status.code() != Code::kUnsupported) return status;
  return std::shared_ptr<const Recipe>(std::move(recipe));
}

constexpr DTypeSet kTypes = kLibraryIntegers | DTypeSet{DType::kF32};
constexpr Rule kIntegerMatMulRules[] = {
    {"", "MatMulInteger", QueryIntegerMatMul, CompileIntegerMatMul, false, kTypes},
    {"msrt", "QuantizedMatMul", QueryIntegerMatMul, CompileIntegerMatMul, false, kTypes},
};

}  // namespace

std::span<const Rule> IntegerMatMulRules() { return kIntegerMatMulRules; }

}  // namespace msrt::onednn
