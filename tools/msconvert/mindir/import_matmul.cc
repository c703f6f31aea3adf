// Products of matrices, and biases.
#include <numeric>

#include "tools/msconvert/mindir/import_rule.h"

namespace msrt::mindir_import {
namespace {

Result<ValueId> Turned(PrimitiveCall& call, ValueId x) {
  MSRT_ASSIGN_OR_RETURN(const int rank, call.Rank(x));
  if (rank < 2) return InvalidModel("an operand of rank ", rank, " cannot be transposed");
  std::vector<int64_t> perm(static_cast<size_t>(rank));
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return call.Add("Transpose", {x}, {{"perm", std::move(perm)}});
}

Status MatMul(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(ValueId a, call.Tensor("a"));
  MSRT_ASSIGN_OR_RETURN(ValueId b, call.Tensor("b"));
  MSRT_ASSIGN_OR_RETURN(const bool turn_a, call.Bool("transpose_a", false));
  MSRT_ASSIGN_OR_RETURN(const bool turn_b, call.Bool("transpose_b", false));
  const bool matrices = call.type(a).rank_known && call.type(b).rank_known &&
                        call.type(a).rank() == 2 && call.type(b).rank() == 2;
  if (matrices && (turn_a || turn_b) && IsFloat(call.type(a).dtype)) {
    return call.SetResult(
        call.Add("Gemm", {a, b}, {{"transA", int64_t{turn_a}}, {"transB", int64_t{turn_b}}}));
  }
  if (turn_a) {
    MSRT_ASSIGN_OR_RETURN(a, Turned(call, a));
  }
  if (turn_b) {
    MSRT_ASSIGN_OR_RETURN(b, Turned(call, b));
  }
  return call.SetResult(call.Add("MatMul", {a, b}));
}

// input x weight' + bias.
Status Dense(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const ValueId w, call.Tensor("weight"));
  MSRT_ASSIGN_OR_RETURN(const ValueId bias, call.TensorOrNone("bias"));
  MSRT_ASSIGN_OR_RETURN(const int rank, call.Rank(x));
  if (rank == 2) return call.SetResult(call.Add("Gemm", {x, w, bias}, {{"transB", int64_t{1}}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId turned, Turned(call, w));
  MSRT_ASSIGN_OR_RETURN(const ValueId product, call.Add("MatMul", {x, turned}));
  if (bias == kNoValue) {
    call.SetResult(product);
    return OkStatus();
  }
  return call.SetResult(call.Add("Add", {product, bias}));
}

// beta * input + alpha * a x b.
Status AddMatMul(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(ValueId c, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const ValueId a, call.Tensor("a"));
  MSRT_ASSIGN_OR_RETURN(const ValueId b, call.Tensor("b"));
  MSRT_ASSIGN_OR_RETURN(const double alpha, call.Float("alpha", 1));
  MSRT_ASSIGN_OR_RETURN(const double beta, call.Float("beta", 1));
  MSRT_ASSIGN_OR_RETURN(ValueId product, call.Add("MatMul", {a, b}));
  if (alpha != 1) {
    MSRT_ASSIGN_OR_RETURN(product,
                          call.Add("Mul", {product, call.Number(call.type(product).dtype, alpha)}));
  }
  if (beta != 1) {
    MSRT_ASSIGN_OR_RETURN(c, call.Add("Mul", {c, call.Number(call.type(c).dtype, beta)}));
  }
  return call.SetResult(call.Add("Add", {product, c}));
}

// Along the channels: the second dim, or the last.
Status BiasAdd(PrimitiveCall& call) {
  constexpr std::string_view kBiasFormats[] = {"NCHW", "NHWC"};
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input_x"));
  MSRT_ASSIGN_OR_RETURN(ValueId bias, call.Tensor("bias"));
  MSRT_ASSIGN_OR_RETURN(const int rank, call.Rank(x));
  MSRT_ASSIGN_OR_RETURN(
      const std::string format,
      call.Choice(call.Has("format") ? "format" : "data_format", kBiasFormats, "NCHW"));
  if (rank > 2 && format != "NHWC") {
    std::vector<int64_t> dims(static_cast<size_t>(rank) - 1, 1);
    dims[0] = -1;
    MSRT_ASSIGN_OR_RETURN(bias, call.Add("Reshape", {bias}, {{"shape", std::move(dims)}}));
  }
  return call.SetResult(call.Add("Add", {x, bias}));
}

constexpr std::string_view kProduct = "a b transpose_a transpose_b";

constexpr Rule kMatMulRules[] = {
    {"MatMul", kProduct, MatMul},
    {"BatchMatMul", kProduct, MatMul},
    {"MatMulExt", "a b", MatMul},
    {"BatchMatMulExt", "a b", MatMul},
    {"Mm", "a b", MatMul},
    {"Dense", "input weight bias", Dense},
    {"Addmm", "input a b beta alpha", AddMatMul},
    {"Baddbmm", "input a b beta alpha", AddMatMul},
    {"BiasAdd", "input_x bias data_format", BiasAdd},
};

}  // namespace

std::span<const Rule> MatMulRules() { return kMatMulRules; }

}  // namespace msrt::mindir_import
