// The emulated cublasLt against sums written out.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/base/half.h"
#include "tests/cuda/testing.h"

namespace msrt::cuda {
namespace {

class CublasTest : public testing::Test {
 protected:
  CublasTest() : cuda_({.compute_capability = 80}), gpu_(cuda_.api()), lt_(cuda_.api().blas) {
    EXPECT_EQ(lt_.cublasLtCreate(&handle_), CUBLAS_STATUS_SUCCESS);
  }
  ~CublasTest() override {
    for (auto layout : layouts_) lt_.cublasLtMatrixLayoutDestroy(layout);
    for (auto desc : descs_) lt_.cublasLtMatmulDescDestroy(desc);
    lt_.cublasLtDestroy(handle_);
  }
  cublasLtMatrixLayout_t Layout(cudaDataType_t type, uint64_t rows, uint64_t cols, int64_t ld,
                                int order = CUBLASLT_ORDER_COL, int batch = 1, int64_t stride = 0) {
    cublasLtMatrixLayout_t layout = nullptr;
    EXPECT_EQ(lt_.cublasLtMatrixLayoutCreate(&layout, type, rows, cols, ld), CUBLAS_STATUS_SUCCESS);
    layouts_.push_back(layout);
    const auto set = [&](cublasLtMatrixLayoutAttribute_t attribute, const auto& value) {
      EXPECT_EQ(lt_.cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof value),
                CUBLAS_STATUS_SUCCESS);
    };
    set(CUBLASLT_MATRIX_LAYOUT_ORDER, int32_t{order});
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t{batch});
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride);
    return layout;
  }
  cublasLtMatmulDesc_t Desc(cublasComputeType_t compute, cudaDataType_t scale) {
    cublasLtMatmulDesc_t desc = nullptr;
    EXPECT_EQ(lt_.cublasLtMatmulDescCreate(&desc, compute, scale), CUBLAS_STATUS_SUCCESS);
    descs_.push_back(desc);
    return desc;
  }
  template <typename T>
  void Set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, T value) {
    EXPECT_EQ(lt_.cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof value),
              CUBLAS_STATUS_SUCCESS);
  }
  template <typename S>
  cublasStatus_t Matmul(cublasLtMatmulDesc_t desc, S alpha, CUdeviceptr a,
                        cublasLtMatrixLayout_t la, CUdeviceptr b, cublasLtMatrixLayout_t lb, S beta,
                        CUdeviceptr d, cublasLtMatrixLayout_t ld) {
    const auto pointer = [](CUdeviceptr p) { return reinterpret_cast<void*>(p); };
    return lt_.cublasLtMatmul(handle_, desc, &alpha, pointer(a), la, pointer(b), lb, &beta,
                              pointer(d), ld, pointer(d), ld, nullptr, nullptr, 0,
                              reinterpret_cast<cudaStream_t>(gpu_.stream));
  }
  std::vector<float> Random(size_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(random_() % 17) - 8;
    return values;
  }

  EmulatedCuda cuda_;
  TestGpu gpu_;
  const Cublas lt_;
  cublasLtHandle_t handle_ = nullptr;
  std::vector<cublasLtMatrixLayout_t> layouts_;
  std::vector<cublasLtMatmulDesc_t> descs_;
  std::mt19937 random_{5};
};

TEST_F(CublasTest, TransposesOrdersAndBatches) {
  const int m = 5, n = 7, k = 3, batch = 2;
  for (int mode = 0; mode < 16; ++mode) {
    const bool ta = mode & 1, tb = mode & 2, row = mode & 4, scaled = mode & 8;
    const auto desc = Desc(CUBLAS_COMPUTE_32F, CUDA_R_32F);
    Set(desc, CUBLASLT_MATMUL_DESC_TRANSA, int32_t{ta ? CUBLAS_OP_T : CUBLAS_OP_N});
    Set(desc, CUBLASLT_MATMUL_DESC_TRANSB, int32_t{tb ? CUBLAS_OP_T : CUBLAS_OP_N});
    const int order = row ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL;
    const int ar = ta ? k : m, ac = ta ? m : k, br = tb ? n : k, bc = tb ? k : n;
    const int lda = (row ? ac : ar) + 1, ldb = row ? bc : br, ldd = row ? n : m;
    const auto la = Layout(CUDA_R_32F, ar, ac, lda, order, batch, 100);
    const auto lb = Layout(CUDA_R_32F, br, bc, ldb, order, batch, 0);  // shared by the batch
    const auto ld = Layout(CUDA_R_32F, m, n, ldd, order, batch, m * n);
    const auto a = Random(200), b = Random(static_cast<size_t>(br * bc)), c = Random(2 * m * n);
    const CUdeviceptr da = gpu_.Upload(a), db = gpu_.Upload(b), dd = gpu_.Upload(c);
    const float alpha = scaled ? 2 : 1, beta = scaled ? 3 : 0;
    ASSERT_EQ(Matmul(desc, alpha, da, la, db, lb, beta, dd, ld), CUBLAS_STATUS_SUCCESS);
    const auto d = gpu_.Download<float>(dd, c.size());
    const auto at = [&](int r, int col, int lead) { return row ? r * lead + col : col * lead + r; };
    for (int s = 0; s < batch; ++s) {
      for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) {
          float sum = 0;
          for (int l = 0; l < k; ++l) {
            sum += a[static_cast<size_t>(s * 100 + (ta ? at(l, i, lda) : at(i, l, lda)))] *
                   b[static_cast<size_t>(tb ? at(j, l, ldb) : at(l, j, ldb))];
          }
          const size_t o = static_cast<size_t>(s * m * n + at(i, j, ldd));
          ASSERT_EQ(d[o], alpha * sum + beta * c[o]) << mode;
        }
      }
    }
  }
  EXPECT_EQ(cuda_.misuse(), "");
}

TEST_F(CublasTest, Epilogues) {
  const int m = 4, n = 6, k = 5;
  const auto a = Random(m * k), b = Random(k * n), bias = Random(m);
  const CUdeviceptr da = gpu_.Upload(a), db = gpu_.Upload(b), dbias = gpu_.Upload(bias);
  const CUdeviceptr dd = gpu_.Allocate(m * n * 4), aux = gpu_.Allocate(m * n * 4);
  const CUdeviceptr mask = gpu_.Allocate(128 / 8 * n), grad = gpu_.Allocate(n * 4);
  const auto la = Layout(CUDA_R_32F, m, k, m), lb = Layout(CUDA_R_32F, k, n, k);
  const auto ld = Layout(CUDA_R_32F, m, n, m);
  std::vector<float> plain(m * n);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      for (int l = 0; l < k; ++l) plain[j * m + i] += a[l * m + i] * b[j * k + l];
    }
  }
  const auto gelu = [](float x) {
    return 0.5f * x * (1 + std::tanh(0.79788456f * (x + 0.044715f * x * x * x)));
  };
  const auto run = [&](int epilogue, CUdeviceptr bias_at, CUdeviceptr aux_at, int64_t aux_ld) {
    const auto desc = Desc(CUBLAS_COMPUTE_32F, CUDA_R_32F);
    Set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<uint32_t>(epilogue));
    Set(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias_at);
    Set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux_at);
    Set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, aux_ld);
    EXPECT_EQ(Matmul(desc, 1.0f, da, la, db, lb, 0.0f, dd, ld), CUBLAS_STATUS_SUCCESS);
    return gpu_.Download<float>(dd, m * n);
  };
  auto d = run(CUBLASLT_EPILOGUE_BIAS, dbias, 0, 0);
  for (int o = 0; o < m * n; ++o) EXPECT_EQ(d[o], plain[o] + bias[o % m]);
  d = run(CUBLASLT_EPILOGUE_RELU_AUX_BIAS, dbias, mask, 128);
  for (int o = 0; o < m * n; ++o) EXPECT_EQ(d[o], std::max(plain[o] + bias[o % m], 0.0f));
  // The gradient passes where the mask says so.
  d = run(CUBLASLT_EPILOGUE_DRELU_BGRAD, grad, mask, 128);
  std::vector<float> sums(m);
  for (int o = 0; o < m * n; ++o) {
    EXPECT_EQ(d[o], plain[o] + bias[o % m] > 0 ? plain[o] : 0.0f);
    sums[o % m] += d[o];
  }
  EXPECT_EQ(gpu_.Download<float>(grad, m), sums);
  d = run(CUBLASLT_EPILOGUE_GELU_AUX, 0, aux, m);
  for (int o = 0; o < m * n; ++o) EXPECT_NEAR(d[o], gelu(plain[o]), 1e-4);
  EXPECT_EQ(gpu_.Download<float>(aux, m * n), plain);
  d = run(CUBLASLT_EPILOGUE_DGELU, 0, aux, m);
  for (int o = 0; o < m * n; ++o) {
    const float slope = (gelu(plain[o] + 0.01f) - gelu(plain[o] - 0.01f)) / 0.02f;
    EXPECT_NEAR(d[o], plain[o] * slope, 0.01 + std::abs(plain[o]) / 100);
  }
  run(CUBLASLT_EPILOGUE_BGRADA, grad, 0, 0);
  const auto sum_a = gpu_.Download<float>(grad, m);
  run(CUBLASLT_EPILOGUE_BGRADB, grad, 0, 0);
  const auto sum_b = gpu_.Download<float>(grad, n);
  for (int i = 0; i < m; ++i) {
    float sum = 0;
    for (int l = 0; l < k; ++l) sum += a[l * m + i];
    EXPECT_EQ(sum_a[i], sum);
  }
  for (int j = 0; j < n; ++j) {
    float sum = 0;
    for (int l = 0; l < k; ++l) sum += b[j * k + l];
    EXPECT_EQ(sum_b[j], sum);
  }
  EXPECT_EQ(cuda_.misuse(), "");
}

TEST_F(CublasTest, Types) {
  const int m = 4, n = 4, k = 8;
  const auto check = [&](auto zero, auto out_zero, cudaDataType_t type, cudaDataType_t out,
                         cublasComputeType_t compute, cudaDataType_t scale, auto alpha, bool ta) {
    using T = decltype(zero);
    using O = decltype(out_zero);
    std::vector<T> a(m * k), b(k * n);
    for (T& value : a) value = static_cast<T>(static_cast<float>(random_() % 7) - 3);
    for (T& value : b) value = static_cast<T>(static_cast<float>(random_() % 7) - 3);
    const auto desc = Desc(compute, scale);
    Set(desc, CUBLASLT_MATMUL_DESC_TRANSA, int32_t{ta ? CUBLAS_OP_T : CUBLAS_OP_N});
    const auto la = ta ? Layout(type, k, m, k) : Layout(type, m, k, m);
    const auto lb = Layout(type, k, n, k), ld = Layout(out, m, n, m);
    const CUdeviceptr da = gpu_.Upload(a), db = gpu_.Upload(b);
    const CUdeviceptr dd = gpu_.Allocate(m * n * sizeof(O));
    using S = decltype(alpha);
    ASSERT_EQ(Matmul(desc, alpha, da, la, db, lb, S{0}, dd, ld), CUBLAS_STATUS_SUCCESS);
    const auto d = gpu_.Download<O>(dd, m * n);
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j) {
        double sum = 0;
        for (int l = 0; l < k; ++l) {
          sum += static_cast<double>(a[static_cast<size_t>(ta ? i * k + l : l * m + i)]) *
                 static_cast<double>(b[static_cast<size_t>(j * k + l)]);
        }
        EXPECT_EQ(static_cast<double>(d[static_cast<size_t>(j * m + i)]), sum) << type;
      }
    }
  };
  const auto f32 = CUBLAS_COMPUTE_32F;
  check(0.0f, 0.0f, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, 1.0f, false);
  check(msrt::Half(0), msrt::Half(0), CUDA_R_16F, CUDA_R_16F, f32, CUDA_R_32F, 1.0f, true);
  check(msrt::BFloat16(0), 0.0f, CUDA_R_16BF, CUDA_R_32F, f32, CUDA_R_32F, 1.0f, false);
  check(0.0, 0.0, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F, 1.0, false);
  check(int8_t{0}, int32_t{0}, CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I, CUDA_R_32I, 1, true);
}

TEST_F(CublasTest, WrongProblemsAreRefused) {
  const auto desc = Desc(CUBLAS_COMPUTE_32F, CUDA_R_32F);
  const CUdeviceptr x = gpu_.Allocate(4000);
  const auto good = Layout(CUDA_R_32F, 4, 4, 4);
  EXPECT_EQ(Matmul(desc, 1.0f, x, good, x, good, 0.0f, x, good), CUBLAS_STATUS_SUCCESS);
  // A leading dim smaller than a column; other inner dims; memory that ends too soon.
  const auto thin = Layout(CUDA_R_32F, 4, 4, 3), other = Layout(CUDA_R_32F, 5, 4, 5);
  const auto large = Layout(CUDA_R_32F, 4, 4, 400);
  EXPECT_EQ(Matmul(desc, 1.0f, x, thin, x, good, 0.0f, x, good), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(Matmul(desc, 1.0f, x, good, x, other, 0.0f, x, good), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(Matmul(desc, 1.0f, x, large, x, good, 0.0f, x, good), CUBLAS_STATUS_INVALID_VALUE);
  const auto bytes = Layout(CUDA_R_8I, 4, 4, 4);
  EXPECT_EQ(Matmul(Desc(CUBLAS_COMPUTE_32I, CUDA_R_32I), 1, x, bytes, x, bytes, 0, x,
                   Layout(CUDA_R_32I, 4, 4, 4)),
            CUBLAS_STATUS_NOT_SUPPORTED);  // A is not transposed
  const int32_t value = 0;
  EXPECT_EQ(lt_.cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &value, 8),
            CUBLAS_STATUS_INVALID_VALUE);
  cublasLtMatmulPreference_t preference;
  ASSERT_EQ(lt_.cublasLtMatmulPreferenceCreate(&preference), CUBLAS_STATUS_SUCCESS);
  const uint64_t limit = 1 << 20;
  lt_.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                           &limit, sizeof limit);
  cublasLtMatmulHeuristicResult_t result;
  int count = 0;
  EXPECT_EQ(lt_.cublasLtMatmulAlgoGetHeuristic(handle_, desc, good, good, good, good, preference, 1,
                                               &result, &count),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(count, 1);
  EXPECT_LE(result.workspaceSize, limit);
  EXPECT_EQ(lt_.cublasLtMatmulAlgoGetHeuristic(handle_, desc, thin, good, good, good, preference, 1,
                                               &result, &count),
            CUBLAS_STATUS_INVALID_VALUE);
  lt_.cublasLtMatmulPreferenceDestroy(preference);
}

}  // namespace
}  // namespace msrt::cuda
