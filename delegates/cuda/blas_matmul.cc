// MatMul, Gemm and msrt.FusedMatMul by cuBLASLt, with bias, residual and activation as epilogues.
// It names no arithmetic: its algorithms vary with the shape.
#include <algorithm>
#include <mutex>

#include "delegates/cuda/activation.h"
#include "delegates/cuda/launch.h"
#include "delegates/cuda/product.h"
#include "delegates/cuda/spaces.h"

namespace msrt::cuda {
namespace {

constexpr uint64_t kTf32 = 1;  // tag of candidates with fewer bits

// How a product becomes one call: the batch as one dim, and what is added.
struct Call {
  int64_t rows = 0;  // of all A that are multiplied by one B
  int64_t batches = 1, a_stride = 0, b_stride = 0;
  bool has_bias = false;  // one number for each column
  int32_t addend = -1;    // input that is the matrix C of D = alpha A B + beta C
  double beta = 0;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
};

// Dims of a batch along which all strides are uniform; returns why there are none.
std::string JoinBatch(const Product& p, Call* call) {
  Dims a = p.a_batch, b = p.b_batch, y = RowMajorStrides(p.batch);
  Dims* const strides[] = {&a, &b, &y};
  const Dims batch = Merge(p.batch, strides);
  call->rows = p.rows;
  if (batch.rank() > 1) return "a batch that broadcasts in part";
  if (batch.rank() == 0) return {};
  // One B for all: the rows of all A are those of one matrix.
  if (b[0] == 0 && !p.transpose_a && a[0] == p.rows * p.depth) {
    call->rows *= batch[0];
    return {};
  }
  call->batches = batch[0];
  call->a_stride = a[0];
  call->b_stride = b[0];
  return {};
}

std::string AddBias(const OpView& op, const Product& p, Call* call) {
  if (op.has_input(kProductResidual)) {
    call->addend = static_cast<int32_t>(kProductResidual);
    call->beta = 1;
  }
  if (!p.has_bias) return {};
  const auto is_zero = [](int64_t s) { return s == 0; };
  const bool per_column = p.bias_row == 0 && p.bias_column == 1 &&
                          std::all_of(p.bias_batch.begin(), p.bias_batch.end(), is_zero);
  if (per_column && p.beta == 1) {
    call->has_bias = true;
    return {};
  }
  const bool is_matrix = op.input(kProductBias).dims == op.output(0).dims;
  if (!is_matrix || call->addend >= 0) return "a bias that is neither a row nor a matrix";
  call->addend = static_cast<int32_t>(kProductBias);
  call->beta = p.beta;
  return {};
}

std::string AddActivation(const OpView& op, Call* call) {
  const auto activation = ActivationOf(op);
  const int32_t code = activation ? activation->op : kOpWhere;
  if (code >= 0 && code != kOpRelu && code != kOpGeluTanh)
    return StrCat("activation ", op.String("activation"));
  const bool bias = call->has_bias;
  if (code == kOpRelu) call->epilogue = bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
  else if (code == kOpGeluTanh)
    call->epilogue = bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  else if (bias) call->epilogue = CUBLASLT_EPILOGUE_BIAS;
  return {};
}

std::string CallOf(const OpView& op, const Product& p, Call* call) {
  if (p.rows == 0 || p.columns == 0 || p.depth == 0) return "an empty product";
  std::string reason = JoinBatch(p, call);
  if (reason.empty()) reason = AddBias(op, p, call);
  if (reason.empty()) reason = AddActivation(op, call);
  if (!reason.empty()) return reason;
  const bool epilogue = call->epilogue != CUBLASLT_EPILOGUE_DEFAULT;
  if (op.input(0).dtype == DType::kF64 && epilogue) return "an epilogue in f64";
  return {};
}

size_t WorkspaceBytes(const GpuProperties& gpu) {
  // What NVIDIA recommends.
  return size_t{gpu.major >= 9 ? 32u : 4u} << 20;
}

std::string QueryBlas(const NodeInfo& node, const GpuProperties& gpu, std::vector<Candidate>* out) {
  const OpView& op = *node.op;
  const DType type = op.input(0).dtype;
  if (!kFloatTypes.Has(type)) return StrCat("cuBLASLt: elements of type ", type);
  if (!gpu.blas_missing.empty()) return StrCat("no cuBLASLt: ", gpu.blas_missing);
  if (type == DType::kBF16 && gpu.major < 8) return "cuBLASLt: bf16 before compute capability 8.0";
  Call call;
  const std::string reason = CallOf(*node.typical, ProductOf(*node.typical), &call);
  if (!reason.empty()) return StrCat("cuBLASLt: ", reason);
  constexpr double kOverhead = 4e-6, kEfficiency = 0.7;
  const auto seconds = [&](double flops) {
    return kOverhead +
           std::max(node.bytes / (0.8 * gpu.bytes_per_second), node.flops / (kEfficiency * flops));
  };
  Candidate c = PlainCandidate(node, seconds(gpu.FlopsOf(type)), "cuBLASLt");
  c.workspace_bytes = WorkspaceBytes(gpu);
  if (op.has_input(kProductResidual)) c.in_place = {{uint32_t{kProductResidual}, 0u}};
  out->push_back(c);
  if (type == DType::kF32 && gpu.major >= 8) {
    c.seconds = seconds(gpu.FlopsOf(DType::kF16) / 2);
    c.algorithm = "cuBLASLt, TF32";
    c.reduced = true;
    c.tag = kTf32;
    out->push_back(c);
  }
  return {};
}

cudaDataType_t DataTypeOf(DType type) {
  return type == DType::kF16    ? CUDA_R_16F
         : type == DType::kBF16 ? CUDA_R_16BF
         : type == DType::kF64  ? CUDA_R_64F
                                : CUDA_R_32F;
}

// Matrices of cuBLAS are column-major, so the row-major C = A B is computed as C' = B' A'.
class BoundBlas final : public BoundKernel {
 public:
  BoundBlas(const OpView& op, const Product& product, const Call& call, bool tf32, Gpu& gpu)
      : gpu_(gpu),
        blas_(gpu.api().blas),
        product_(product),
        call_(call),
        type_(op.input(0).dtype),
        tf32_(tf32),
        workspace_bytes_(WorkspaceBytes(gpu.properties())) {}
  ~BoundBlas() override {
    for (cublasLtMatrixLayout_t layout : {a_, b_, c_}) {
      if (layout != nullptr) (void)blas_.cublasLtMatrixLayoutDestroy(layout);
    }
    if (desc_ != nullptr) (void)blas_.cublasLtMatmulDescDestroy(desc_);
  }
  size_t workspace_bytes() const override { return workspace_bytes_; }
  size_t bytes() const override { return 4096; }  // of the descriptors

  Status Prepare() override {
    std::lock_guard lock(mutex_);
    if (ready_) return OkStatus();
    MSRT_ASSIGN_OR_RETURN(handle_, gpu_.Blas());
    const Gpu::Scope scope(gpu_);
    MSRT_RETURN_IF_ERROR(Describe());
    MSRT_RETURN_IF_ERROR(ChooseAlgorithm());
    ready_ = true;
    return OkStatus();
  }

  Status Run(const RunArgs& run) override {
    MSRT_RETURN_IF_ERROR(Prepare());
    MSRT_RETURN_IF_ERROR(gpu_.Alive());
    const Gpu::Scope scope(gpu_);
    const void* addend = run.outputs[0].data;
    if (call_.addend >= 0) addend = run.inputs[static_cast<size_t>(call_.addend)].data;
    const float alpha = static_cast<float>(product_.alpha), beta = static_cast<float>(call_.beta);
    const bool f64 = type_ == DType::kF64;
    const void* const alpha_at = f64 ? static_cast<const void*>(&product_.alpha) : &alpha;
    const void* const beta_at = f64 ? static_cast<const void*>(&call_.beta) : &beta;
    // The address of the bias is a part of the description, which runs share.
    std::lock_guard lock(mutex_);
    if (call_.has_bias) {
      const void* bias = run.inputs[kProductBias].data;
      MSRT_RETURN_IF_ERROR(Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias));
    }
    return gpu_.CheckBlas(
        blas_.cublasLtMatmul(handle_, desc_, alpha_at, run.inputs[1].data, b_, run.inputs[0].data,
                             a_, beta_at, addend, c_, run.outputs[0].data, c_, &algorithm_,
                             run.workspace, run.workspace == nullptr ? 0 : workspace_bytes_,
                             static_cast<const Stream*>(run.stream)->handle),
        "cublasLtMatmul");
  }

 private:
  template <typename T>
  Status Set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    return gpu_.CheckBlas(
        blas_.cublasLtMatmulDescSetAttribute(desc_, attribute, &value, sizeof value),
        "cublasLtMatmulDescSetAttribute");
  }

  // A row-major matrix.
  Status MakeLayout(cublasLtMatrixLayout_t* layout, int64_t rows, int64_t columns, int64_t stride) {
    MSRT_RETURN_IF_ERROR(gpu_.CheckBlas(
        blas_.cublasLtMatrixLayoutCreate(layout, DataTypeOf(type_), static_cast<uint64_t>(columns),
                                         static_cast<uint64_t>(rows), columns),
        "cublasLtMatrixLayoutCreate"));
    if (call_.batches == 1) return OkStatus();
    const auto count = static_cast<int32_t>(call_.batches);
    MSRT_RETURN_IF_ERROR(
        gpu_.CheckBlas(blas_.cublasLtMatrixLayoutSetAttribute(
                           *layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
                       "cublasLtMatrixLayoutSetAttribute"));
    return gpu_.CheckBlas(
        blas_.cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                               &stride, sizeof stride),
        "cublasLtMatrixLayoutSetAttribute");
  }

  Status Describe() {
    const cublasComputeType_t compute = type_ == DType::kF64 ? CUBLAS_COMPUTE_64F
                                        : tf32_              ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                             : CUBLAS_COMPUTE_32F;
    const Product& p = product_;
    if (desc_ == nullptr) {
      MSRT_RETURN_IF_ERROR(
          gpu_.CheckBlas(blas_.cublasLtMatmulDescCreate(
                             &desc_, compute, type_ == DType::kF64 ? CUDA_R_64F : CUDA_R_32F),
                         "cublasLtMatmulDescCreate"));
    }
    const cublasOperation_t first = p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                            second = p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    MSRT_RETURN_IF_ERROR(Set(CUBLASLT_MATMUL_DESC_TRANSA, first));
    MSRT_RETURN_IF_ERROR(Set(CUBLASLT_MATMUL_DESC_TRANSB, second));
    MSRT_RETURN_IF_ERROR(Set(CUBLASLT_MATMUL_DESC_EPILOGUE, call_.epilogue));
    const int64_t rows = call_.rows;
    if (a_ == nullptr)
      MSRT_RETURN_IF_ERROR(MakeLayout(&a_, p.transpose_a ? p.depth : rows,
                                      p.transpose_a ? rows : p.depth, call_.a_stride));
    if (b_ == nullptr)
      MSRT_RETURN_IF_ERROR(MakeLayout(&b_, p.transpose_b ? p.columns : p.depth,
                                      p.transpose_b ? p.depth : p.columns, call_.b_stride));
    if (c_ == nullptr) MSRT_RETURN_IF_ERROR(MakeLayout(&c_, rows, p.columns, rows * p.columns));
    return OkStatus();
  }

  Status ChooseAlgorithm() {
    cublasLtMatmulPreference_t preference = nullptr;
    MSRT_RETURN_IF_ERROR(gpu_.CheckBlas(blas_.cublasLtMatmulPreferenceCreate(&preference),
                                        "cublasLtMatmulPreferenceCreate"));
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      return gpu_.CheckBlas(
          blas_.cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
          "cublasLtMatmulPreferenceSetAttribute");
    };
    // Tensors in an arena are aligned to 64 only, unless their elements are pieces of others.
    constexpr uint32_t kAlignment = 16;
    Status status = set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes_);
    for (const auto which :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      if (status.ok()) status = set(which, kAlignment);
    }
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    if (status.ok()) {
      status = gpu_.CheckBlas(blas_.cublasLtMatmulAlgoGetHeuristic(handle_, desc_, b_, a_, c_, c_,
                                                                   preference, 1, &found, &count),
                              "cublasLtMatmulAlgoGetHeuristic");
    }
    (void)blas_.cublasLtMatmulPreferenceDestroy(preference);
    MSRT_RETURN_IF_ERROR(std::move(status));
    if (count == 0)
      return Unsupported(gpu_.name(), ": cuBLASLt has no algorithm for ", call_.batches, " x [",
                         call_.rows, ", ", product_.depth, "] x [", product_.depth, ", ",
                         product_.columns, "] in ", type_);
    algorithm_ = found.algo;
    return OkStatus();
  }

  Gpu& gpu_;  // the kernel that made this object holds it
  const Cublas& blas_;
  const Product product_;
  const Call call_;
  const DType type_;
  const bool tf32_;
  const size_t workspace_bytes_;
  std::mutex mutex_;  // guards what follows
  bool ready_ = false;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
};

Result<std::unique_ptr<BoundKernel>> BindBlas(const OpView& op, const Candidate& candidate,
                                              Gpu& gpu) {
  const Product product = ProductOf(op);
  Call call;
  // Typical shapes say nothing about batches that broadcast in part, or empty products.
  if (!CallOf(op, product, &call).empty()) return BindChainProduct(op, gpu);
  return std::unique_ptr<BoundKernel>(
      std::make_unique<BoundBlas>(op, product, call, (candidate.tag & UINT32_MAX) == kTf32, gpu));
}

constexpr Rule kBlasRules[] = {{"", "MatMul", QueryBlas, BindBlas},
                               {"", "Gemm", QueryBlas, BindBlas},
                               {"msrt", "FusedMatMul", QueryBlas, BindBlas}};

}  // namespace

std::span<const Rule> BlasRules() { return kBlasRules; }

}  // namespace msrt::cuda
