// MatMul, Gemm and msrt.FusedMatMul. A matrix B that is a constant or a parameter is an inner
// product with packed weights, which runs on brgemm kernels with everything fused; all others go
// through the matmul primitive, which is a plain gemm on AVX2 and takes any strides and batches.
#include <algorithm>
#include <optional>

#include "delegates/onednn/cost.h"
#include "delegates/onednn/post_ops.h"
#include "delegates/onednn/recipe.h"
#include "delegates/onednn/weights.h"

namespace msrt::onednn {
namespace {

constexpr size_t kA = 0, kB = 1, kBias = 2, kZ = 3;
using InnerProduct = dnnl::inner_product_forward;
using MatMul = dnnl::matmul;

double AlphaOf(const OpView& op) { return op.op() == "MatMul" ? 1.0 : op.Float("alpha"); }
double BetaOf(const OpView& op) { return op.op() == "Gemm" ? op.Float("beta") : 1.0; }
bool HasBias(const OpView& op) { return op.has_input(kBias) && BetaOf(op) != 0; }
bool IsTransposed(const OpView& op, std::string_view attr) {
  return op.op() != "MatMul" && op.Int(attr) != 0;
}

// An operand as matrices: dims with all leading ones that are needed, and strides that express a
// transpose.
struct Matrices {
  memory::dims dims, strides;
  memory::desc desc() const { return memory::desc(dims, memory::data_type::f32, strides); }
};

// A vector gets its missing dim of 1 before (a row) or after (a column).
Matrices MatricesOf(Dims dims, bool transposed, bool row_vector, int rank) {
  if (dims.rank() == 1) dims.insert(row_vector ? 0 : 1, 1);
  while (dims.rank() < rank) dims.insert(0, 1);
  Matrices m{ToDnnl(dims), ToDnnl(RowMajorStrides(dims))};
  if (transposed) {
    std::swap(m.dims[m.dims.size() - 1], m.dims[m.dims.size() - 2]);
    std::swap(m.strides[m.strides.size() - 1], m.strides[m.strides.size() - 2]);
  }
  return m;
}

// ---- rules --------------------------------------------------------------------------------------

// With B the same for every batch, all rows of all batches are the rows of one product.
bool IsOneProduct(const OpView& op) {
  return op.input(kB).rank() <= 2 && !IsTransposed(op, "transA");
}

void OfferProduct(const NodeInfo& node, bool reduced, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  const bool packed = IsPacked(node, kB) && IsOneProduct(op);
  const double activation = op.domain() == "msrt" ? EltwiseNanoseconds(op.String("activation")) : 0;
  double efficiency = packed ? 0.93 : 0.75, bytes = node.bytes;
  if (reduced) {
    efficiency *= kBf16Speedup;
    const auto a = static_cast<double>(node.typical->input(kA).bytes()),
               b = static_cast<double>(node.typical->input(kB).bytes());
    // An operand that is not packed is rounded in each run: read, then written and read again with
    // half of the bytes.
    bytes += packed ? a - b / 2 : a + b;
  }
  double seconds = Roofline(node.machine, node.flops, efficiency, bytes) +
                   PerElement(node.machine, static_cast<double>(node.typical->output(0).elements()),
                              activation, 0) -
                   kLaunchSeconds;
  if (reduced) seconds += (packed ? 1 : 2) * kLaunchSeconds;
  const std::string_view algorithm = packed ? (reduced ? "brgemm, packed bf16" : "brgemm, packed")
                                            : (reduced ? "gemm bf16" : "gemm");
  Candidate c = MakeCandidate(node, Layout::kPlain, Layout::kPlain, seconds, algorithm);
  c.reduced = reduced;
  if (op.has_input(kZ) && op.constant(kZ) == nullptr && AlphaOf(op) == 1)
    c.in_place = {{uint32_t{kZ}, 0u}};
  candidates->push_back(std::move(c));
}

std::string QueryMatMul(const NodeInfo& node, std::vector<Candidate>* candidates) {
  if (std::string reason =
          node.op->domain() == "msrt" ? ActivationRefusal(*node.op) : std::string();
      !reason.empty())
    return reason;
  OfferProduct(node, /*reduced=*/false, candidates);
  if (HasBf16()) OfferProduct(node, /*reduced=*/true, candidates);
  return {};
}

// ---- recipe -------------------------------------------------------------------------------------

class MatMulRecipe final : public Recipe {
 public:
  MatMulRecipe(const NodeInfo& node, const Candidate& candidate, const CompileContext& context)
      : Recipe(node, candidate), reduced_(candidate.reduced) {
    const Type& b = op().input(kB);
    if (!IsPacked(node, kB) || b.rank() == 0 || !IsOneProduct(op())) return;
    // The library wants the weights of an inner product as [outputs, inputs].
    Matrices m = MatricesOf(b.dims, !IsTransposed(op(), "transB"), false, 2);
    weights_.emplace(node, kB, m.desc(), context);
    plain_ = m.desc();
  }

  Status Pack(const OpView& typical) {
    if (!weights_ || typical.input(kA).elements() == 0 || typical.output(0).elements() == 0)
      return OkStatus();
    PostOps post_ops;
    if (!FillPostOps(typical, false, true, &post_ops)) return OkStatus();
    const InnerProduct::primitive_desc descriptor = DescribeInnerProduct(typical, post_ops);
    if (descriptor.get(true) == nullptr) return OkStatus();
    packed_ = descriptor.weights_desc();
    return weights_->Prepare(packed_);
  }

  Status Build(const OpView& op, bool shared_residual, Plan* plan) const override {
    PostOps post_ops;
    if (weights_ && FillPostOps(op, shared_residual, true, &post_ops)) {
      const InnerProduct::primitive_desc descriptor = DescribeInnerProduct(op, post_ops);
      if (descriptor.get(true) != nullptr && !IsNaive(descriptor))
        return AddInnerProduct(op, descriptor, post_ops, plan);
    }
    return AddMatMul(op, shared_residual, plan);
  }

  size_t packed_bytes() const override { return weights_ ? weights_->bytes() : 0; }
  int residual_input() const override {
    return op().has_input(kZ) && AlphaOf(op()) == 1 ? int{kZ} : -1;
  }

 private:
  // Rows of all batches together.
  static int64_t Rows(const OpView& op) {
    return op.input(kA).elements() / op.input(kA).dims.back();
  }
  // A bias of one number for each column, which the primitives add themselves.
  static bool IsColumnBias(const OpView& op) {
    if (!HasBias(op) || AlphaOf(op) != 1 || BetaOf(op) != 1) return false;
    const Dims& bias = op.input(kBias).dims;
    return bias.rank() > 0 && op.output(0).rank() > 0 && op.input(kB).rank() > 1 &&
           bias.back() == op.output(0).dims.back() && bias.elements() == bias.back();
  }

  // The result's dims as the library sees them: [rows, columns] of one product, or [batch..., rows,
  // columns].
  static Dims ResultDims(const OpView& op, bool one_product) {
    const bool column = op.input(kB).rank() == 1;
    if (one_product) return {Rows(op), column ? 1 : op.output(0).dims.back()};
    Dims dims = op.output(0).dims;
    if (column) dims.push_back(1);
    if (op.input(kA).rank() == 1) dims.insert(dims.rank() - 1, 1);
    return dims;
  }

  // A tensor that broadcasts to the output, in the dims of ResultDims. False where one product has
  // rows of several batches and the tensor tells them apart.
  static bool BroadcastDesc(const OpView& op, const Type& type, bool one_product,
                            memory::desc* desc) {
    Dims dims = type.dims;
    while (dims.rank() < op.output(0).rank()) dims.insert(0, 1);
    if (op.input(kB).rank() == 1) dims.push_back(1);
    if (op.input(kA).rank() == 1) dims.insert(dims.rank() - 1, 1);
    if (one_product && dims.rank() != 2) {
      const int64_t rows = dims.product(0, dims.rank() - 1);
      if (rows != 1 && rows != Rows(op)) return false;
      dims = {rows, dims.back()};
    }
    *desc = DescribePlain(dims);
    return true;
  }

  static bool FillPostOps(const OpView& op, bool shared_residual, bool one_product,
                          PostOps* post_ops) {
    const double alpha = AlphaOf(op), beta = BetaOf(op);
    memory::desc desc;
    if (HasBias(op) && !IsColumnBias(op)) {
      if (!BroadcastDesc(op, op.input(kBias), one_product, &desc)) return false;
      // alpha * AB + beta * C = beta * (alpha / beta * AB + C)
      if (alpha != beta) post_ops->Linear(static_cast<float>(alpha / beta));
      post_ops->Add(Place::Input(kBias), desc);
      if (beta != 1) post_ops->Linear(static_cast<float>(beta));
    } else if (alpha != 1) {
      post_ops->Linear(static_cast<float>(alpha));
    }
    if (op.has_input(kZ)) {
      if (!BroadcastDesc(op, op.input(kZ), one_product, &desc)) return false;
      if (shared_residual) post_ops->AddResult();
      else post_ops->Add(Place::Input(kZ), desc);
    }
    if (op.domain() == "msrt") post_ops->Activation(op);
    return true;
  }

  InnerProduct::primitive_desc DescribeInnerProduct(const OpView& op,
                                                    const PostOps& post_ops) const {
    if (reduced_) {
      const InnerProduct::primitive_desc reduced =
          DescribeInnerProduct(op, post_ops, memory::data_type::bf16);
      if (reduced.get(true) != nullptr && !IsNaive(reduced)) return reduced;
    }
    return DescribeInnerProduct(op, post_ops, memory::data_type::f32);
  }

  static memory::desc SourceRows(const OpView& op) {
    return DescribePlain({Rows(op), op.input(kA).dims.back()});
  }

  // With operands of this type; sums and everything else are f32.
  InnerProduct::primitive_desc DescribeInnerProduct(const OpView& op, const PostOps& post_ops,
                                                    memory::data_type factors) const {
    const memory::desc src =
        factors == memory::data_type::bf16 ? InBf16(SourceRows(op)) : SourceRows(op);
    const memory::desc dst = DescribePlain(ResultDims(op, true));
    const memory::desc bias =
        IsColumnBias(op) ? DescribePlain({op.output(0).dims.back()}) : memory::desc();
    const dnnl::primitive_attr attr = UserScratchpad(post_ops.ops());
    const auto make = [&](const memory::desc& weights) {
      return InnerProduct::primitive_desc(Engine(), dnnl::prop_kind::forward_inference, src,
                                          weights, bias, dst, attr, true);
    };
    const bool is_packed = packed_.get_ndims() > 0 && packed_.get_data_type() == factors;
    return DescribeWithWeights(make, is_packed ? packed_ : memory::desc(),
                               memory::desc(plain_.get_dims(), factors, memory::format_tag::any));
  }

  Status AddInnerProduct(const OpView& op, const InnerProduct::primitive_desc& descriptor,
                         const PostOps& post_ops, Plan* plan) const {
    MSRT_ASSIGN_OR_RETURN(const Place weights,
                          weights_->In(plain_, descriptor.weights_desc(), plan));
    const Place src = plan->Converted(Place::Input(kA), SourceRows(op), descriptor.src_desc());
    std::vector<Argument> arguments{{DNNL_ARG_SRC, src, descriptor.src_desc()},
                                    {DNNL_ARG_WEIGHTS, weights, descriptor.weights_desc()},
                                    {DNNL_ARG_DST, Place::Output(0), descriptor.dst_desc()}};
    if (IsColumnBias(op))
      arguments.push_back({DNNL_ARG_BIAS, Place::Input(kBias), descriptor.bias_desc()});
    post_ops.AppendArguments(&arguments);
    plan->Add<InnerProduct::primitive_desc, InnerProduct>(descriptor, std::move(arguments));
    return OkStatus();
  }

  // The product as the library sees it.
  struct Product {
    bool one_product;
    Dims result;
    memory::desc src, weights, bias, dst;
    bool column_bias;
    Place src_place = Place::Input(kA), weights_place = Place::Input(kB);

    // The same with operands that are rounded first.
    Product Reduced(Plan* plan) const {
      Product p = *this;
      p.src = InBf16(src), p.weights = InBf16(weights);
      if (plan == nullptr) return p;
      p.src_place = plan->Converted(src_place, src, p.src);
      p.weights_place = plan->Converted(weights_place, weights, p.weights);
      return p;
    }
  };
  static Product ProductOf(const OpView& op, bool one_product) {
    Product p{one_product, ResultDims(op, one_product), {}, {}, {}, {}, IsColumnBias(op)};
    const int rank = p.result.rank();
    const Dims a = one_product ? Dims{Rows(op), op.input(kA).dims.back()} : op.input(kA).dims;
    p.src = MatricesOf(a, IsTransposed(op, "transA"), true, rank).desc();
    p.weights = MatricesOf(op.input(kB).dims, IsTransposed(op, "transB"), false, rank).desc();
    p.dst = DescribePlain(p.result);
    if (p.column_bias) {
      Dims bias = Dims::Filled(rank, 1);
      bias[rank - 1] = p.result.back();
      p.bias = DescribePlain(bias);
    }
    return p;
  }
  static MatMul::primitive_desc DescribeMatMul(const Product& p, const PostOps& post_ops) {
    const dnnl::primitive_attr attr = UserScratchpad(post_ops.ops());
    if (p.column_bias)
      return MatMul::primitive_desc(Engine(), p.src, p.weights, p.bias, p.dst, attr, true);
    return MatMul::primitive_desc(Engine(), p.src, p.weights, p.dst, attr, true);
  }
  static void AppendMatMul(const Product& p, const MatMul::primitive_desc& descriptor,
                           const PostOps& post_ops, Plan* plan) {
    std::vector<Argument> arguments{{DNNL_ARG_SRC, p.src_place, p.src},
                                    {DNNL_ARG_WEIGHTS, p.weights_place, p.weights},
                                    {DNNL_ARG_DST, Place::Output(0), p.dst}};
    if (p.column_bias) arguments.push_back({DNNL_ARG_BIAS, Place::Input(kBias), p.bias});
    post_ops.AppendArguments(&arguments);
    plan->Add<MatMul::primitive_desc, MatMul>(descriptor, std::move(arguments));
  }

  Status AddMatMul(const OpView& op, bool shared_residual, Plan* plan) const {
    PostOps post_ops;
    bool one_product = IsOneProduct(op);
    if (!FillPostOps(op, shared_residual, one_product, &post_ops)) {
      one_product = false;
      post_ops = PostOps();
      FillPostOps(op, shared_residual, false, &post_ops);
    }
    const Product p = ProductOf(op, one_product);
    if (reduced_) {
      const MatMul::primitive_desc reduced = DescribeMatMul(p.Reduced(nullptr), post_ops);
      if (reduced.get(true) != nullptr && !IsNaive(reduced)) {
        AppendMatMul(p.Reduced(plan), reduced, post_ops, plan);
        return OkStatus();
      }
    }
    const MatMul::primitive_desc descriptor = DescribeMatMul(p, post_ops);
    if (descriptor.get(true) != nullptr && !IsNaive(descriptor)) {
      AppendMatMul(p, descriptor, post_ops, plan);
      return OkStatus();
    }
    return AddMatMulAndRest(op, shared_residual, p, plan);
  }

  // The product alone, and what comes after it in place, one pass each: for epilogues that no fast
  // product has.
  static Status AddMatMulAndRest(const OpView& op, bool shared_residual, const Product& p,
                                 Plan* plan) {
    PostOps sum;
    if (shared_residual) sum.AddResult();
    const MatMul::primitive_desc descriptor = DescribeMatMul(p, sum);
    if (descriptor.get(true) == nullptr || IsNaive(descriptor))
      return Unsupported("oneDNN has no product for these shapes");
    AppendMatMul(p, descriptor, sum, plan);
    const double alpha = AlphaOf(op), beta = BetaOf(op);
    memory::desc desc;
    if (HasBias(op) && !p.column_bias) {
      BroadcastDesc(op, op.input(kBias), p.one_product, &desc);
      if (alpha != beta)
        AddEltwise({dnnl::algorithm::eltwise_linear, static_cast<float>(alpha / beta)}, p.dst,
                   plan);
      AddBinary(Place::Input(kBias), desc, p.dst, plan);
      if (beta != 1)
        AddEltwise({dnnl::algorithm::eltwise_linear, static_cast<float>(beta)}, p.dst, plan);
    } else if (alpha != 1) {
      AddEltwise({dnnl::algorithm::eltwise_linear, static_cast<float>(alpha)}, p.dst, plan);
    }
    if (op.has_input(kZ) && !shared_residual) AddBinary(Place::Input(kZ), p.dst, p.dst, plan);
    const std::string_view activation =
        op.domain() == "msrt" ? op.String("activation") : std::string_view();
    if (!activation.empty())
      AddEltwise(
          *FindEltwise(activation, op.Float("activation_alpha"), op.Float("activation_beta")),
          p.dst, plan);
    return OkStatus();
  }
  static void AddEltwise(Eltwise eltwise, const memory::desc& desc, Plan* plan) {
    using Primitive = dnnl::eltwise_forward;
    const Primitive::primitive_desc descriptor(Engine(), dnnl::prop_kind::forward_inference,
                                               eltwise.algorithm, desc, desc, eltwise.alpha,
                                               eltwise.beta, UserScratchpad());
    plan->Add<Primitive::primitive_desc, Primitive>(
        descriptor,
        {{DNNL_ARG_SRC, Place::Output(0), desc}, {DNNL_ARG_DST, Place::Output(0), desc}});
  }
  static void AddBinary(Place other, const memory::desc& other_desc, const memory::desc& desc,
                        Plan* plan) {
    using Primitive = dnnl::binary;
    const Primitive::primitive_desc descriptor(Engine(), dnnl::algorithm::binary_add, desc,
                                               other_desc, desc, UserScratchpad());
    plan->Add<Primitive::primitive_desc, Primitive>(descriptor,
                                                    {{DNNL_ARG_SRC_0, Place::Output(0), desc},
                                                     {DNNL_ARG_SRC_1, other, other_desc},
                                                     {DNNL_ARG_DST, Place::Output(0), desc}});
  }

  const bool reduced_;              // rounds both operands to bf16, where the library has it
  std::optional<Weights> weights_;  // empty where B is computed or not one matrix
  memory::desc plain_;              // of B, as the weights of an inner product
  memory::desc packed_;
};

Result<std::shared_ptr<const Recipe>> CompileMatMul(const NodeInfo& node,
                                                    const Candidate& candidate,
                                                    const CompileContext& context) {
  auto recipe = std::make_shared<MatMulRecipe>(node, candidate, context);
  MSRT_RETURN_IF_ERROR(recipe->Pack(*node.typical));
  return std::shared_ptr<const Recipe>(std::move(recipe));
}

constexpr Rule kMatMulRules[] = {
    {"", "MatMul", QueryMatMul, CompileMatMul},
    {"", "Gemm", QueryMatMul, CompileMatMul},
    {"msrt", "FusedMatMul", QueryMatMul, CompileMatMul},
};

}  // namespace

std::span<const Rule> MatMulRules() { return kMatMulRules; }

}  // namespace msrt::onednn
