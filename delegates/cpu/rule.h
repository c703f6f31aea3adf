// The parts of a family of ops: candidates for a node, and a bound kernel for concrete shapes.
// Only families that pack weights compile something in between.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "delegates/cpu/geometry.h"
#include "delegates/cpu/loops.h"
#include "delegates/sdk/delegate.h"

namespace msrt::cpu {

using sdk::BoundKernel;
using sdk::Candidate;
using sdk::NodeInfo;
using sdk::RunArgs;

// Adds candidates for the node, or returns why there are none. Ranks are known and `typical` is
// concrete.
using QueryFn = std::string (*)(const NodeInfo& node, std::vector<Candidate>* out);
// `op` is valid only during the call; its types are concrete.
using BindFn = Result<std::unique_ptr<BoundKernel>> (*)(const OpView& op,
                                                        const Candidate& candidate);

// For families that pack weights, in place of a BindFn.
using CompileFn = Result<std::unique_ptr<sdk::Kernel>> (*)(const NodeInfo& node,
                                                           const sdk::CompileContext& context);

// An op may have several rules, for several algorithms.
struct Rule {
  std::string_view domain, op;
  QueryFn query;  // may use the low 32 bits of tags for its own purposes
  BindFn bind;    // null where there is a `compile`
  CompileFn compile = nullptr;
  bool takes_pieces = false;  // reads the local attributes of pieces
};

// The families; listed once in cpu.cc.
std::span<const Rule> ActivationGradRules();
std::span<const Rule> AttentionRules();
std::span<const Rule> UnaryRules();
std::span<const Rule> BinaryRules();
std::span<const Rule> BatchNormRules();
std::span<const Rule> BatchNormTrainingRules();
std::span<const Rule> LayerNormGradRules();
std::span<const Rule> PoolGradRules();
std::span<const Rule> CastRules();
std::span<const Rule> ChannelSumsRules();
std::span<const Rule> ChainConvRules();
std::span<const Rule> ChainMatMulRules();
std::span<const Rule> ChainWeightGradRules();
std::span<const Rule> GatherRules();
std::span<const Rule> MovementRules();
std::span<const Rule> NormalizationRules();
std::span<const Rule> PoolRules();
std::span<const Rule> ReductionRules();
std::span<const Rule> ResizeRules();
std::span<const Rule> ScatterRules();
std::span<const Rule> SoftmaxRules();
std::span<const Rule> TrainingOptimizerRules();
std::span<const Rule> TransposeRules();
std::span<const Rule> QuantizationRules();
std::span<const Rule> IntegerMatMulRules();
std::span<const Rule> WinogradRules();

inline constexpr double kLaunchSeconds = 1e-6;
// Below so many elements a second thread costs more than it saves.
inline constexpr int64_t kGrain = 16384;

// Seconds for a pass over so many bytes whose function takes so many nanoseconds an element on one
// core.
double PassSeconds(const NodeInfo& node, double elements, double nanoseconds, double bytes);

// The arithmetic of functions and sums of which the compiler may fuse multiplications and
// additions: that of the compiled loops.
std::string ArithmeticOfLoops();
// The arithmetic of an op with one operation for each element: "rounded" if its definition leaves
// no choice.
std::string ArithmeticOf(const OpView& op);

// A candidate with all layouts plain; the caller changes what it needs.
Candidate PlainCandidate(const NodeInfo& node, double seconds, std::string_view algorithm);

}  // namespace msrt::cpu
