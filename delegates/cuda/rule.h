// The parts of a family of ops: candidates for a node, and a bound kernel for concrete shapes on
// one GPU.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "delegates/cuda/gpu.h"
#include "delegates/sdk/delegate.h"

namespace msrt::cuda {

using sdk::BoundKernel;
using sdk::Candidate;
using sdk::NodeInfo;
using sdk::RunArgs;

// Adds candidates for the node, or returns why there are none. Ranks are known and `typical` is
// concrete.
using QueryFn = std::string (*)(const NodeInfo& node, const GpuProperties& gpu,
                                std::vector<Candidate>* out);
// `op` is valid only during the call; its types are concrete, and its output is not empty.
using BindFn = Result<std::unique_ptr<BoundKernel>> (*)(const OpView& op,
                                                        const Candidate& candidate, Gpu& gpu);

// An op may have several rules, for several algorithms.
struct Rule {
  std::string_view domain, op;
  QueryFn query;  // may use the low 32 bits of tags for its own purposes
  BindFn bind;
  bool takes_pieces = false;  // reads the local attributes of pieces
};

// The families; listed once in cuda.cc.
std::span<const Rule> BlasRules();
std::span<const Rule> CastRules();
std::span<const Rule> ConvRules();
std::span<const Rule> CopyRules();
std::span<const Rule> GatherRules();
std::span<const Rule> MatMulRules();
std::span<const Rule> NormalizationRules();
std::span<const Rule> PointwiseRules();
std::span<const Rule> PoolRules();
std::span<const Rule> ReductionRules();
std::span<const Rule> ResizeRules();
std::span<const Rule> SoftmaxRules();

// Own kernels number elements with 31 bits.
inline constexpr int64_t kMaxElementsOfKernel = (int64_t{1} << 31) - 1;

// By roofline: a launch, and the longer of moving the bytes and of the operations at f32 speed.
double PassSeconds(const GpuProperties& gpu, double bytes, double flops = 0);

// A candidate with all layouts plain; the caller changes what it needs.
Candidate PlainCandidate(const NodeInfo& node, double seconds, std::string_view algorithm);

// The arithmetic of own kernels whose elements are sums, or of functions of CUDA's library.
inline constexpr const char* kArithmetic = "cuda";
// "rounded" if the op's definition leaves no choice, else kArithmetic.
std::string ArithmeticOf(const OpView& op);

// Types that kernels load and store. Floats: f64, f32, f16, bf16.
bool IsElementType(DType type);
std::string TypeRefusal(const OpView& op, std::span<const size_t> inputs);

// A list from the attribute, or from an input whose value is known; nothing where the input is
// given and its value is not known.
std::optional<std::vector<int64_t>> IntsOf(const OpView& op, std::string_view attr, size_t input);

inline int PositiveAxis(int64_t axis, int rank) {
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace msrt::cuda
