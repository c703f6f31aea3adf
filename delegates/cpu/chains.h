// Shared by convolutions and products that are chains of fused multiply-adds: parts of chains, the
// steps after the chain, the name of the arithmetic and the cost.
#pragma once

#include <string>
#include <vector>

#include "core/region/box.h"
#include "delegates/cpu/activation.h"
#include "delegates/sdk/delegate.h"

namespace msrt::cpu {

// Terms of a chain whose weights stay in the cache while rows go by; longer chains are computed in
// parts.
inline constexpr int64_t kMaxChainTerms = 1024;

struct ChainPart {
  bool begins, ends;
};
// Sets `part` to those terms of the chain whose weights are in `rows`; tells whether others precede
// or follow. A chain without terms is whole in the first part.
ChainPart PartOf(const std::vector<ChainRun>& chain, Interval rows, bool first,
                 std::vector<ChainRun>* part);

// The activation behind the chain: bounds, which the inner loop applies, or a function.
struct ChainFinish {
  explicit ChainFinish(const OpView& op);
  // Applies the function, if there is one, to `rows` rows of `columns` results.
  void Apply(float* y, int64_t rows, int64_t step, int64_t columns) const;

  float low, high;
  Activation function;
};

// Whether the activation of the op rounds at most once.
bool RoundsOnce(const OpView& op);
// MSRT_ARITHMETIC_FMA if the activation of the op rounds at most once; otherwise that of the
// compiled loops too.
std::string ChainArithmetic(const OpView& op);

// The part of the machine's speed that chains of so many terms reach, for so many columns or output
// channels. Rather too little: outside exact mode they run where nothing else does.
double ChainEfficiency(int64_t terms, int64_t columns);
// Seconds of a node at such a part of the machine's speed.
double ChainSeconds(const sdk::NodeInfo& node, double efficiency);

}  // namespace msrt::cpu
