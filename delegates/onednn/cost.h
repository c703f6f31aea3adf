// The cost model and the layouts of candidates: no oneDNN here, since Query must stay cheap. Rates
// were measured on two Zen 3 cores with oneDNN 3.2 and are parts of what the machine can do; they
// only have to rank layouts and delegates rightly.
#pragma once

#include <initializer_list>
#include <string_view>

#include "delegates/sdk/delegate.h"

namespace msrt::onednn {

using sdk::Candidate;
using sdk::NodeInfo;

inline constexpr double kLaunchSeconds = 2e-6;
// How much faster a product in bf16 is than in f32: measured with AVX512_BF16 (Zen 4). With AMX it
// is more.
inline constexpr double kBf16Speedup = 2;

// Seconds for work at a fraction of the peak, not less than its memory traffic takes.
double Roofline(const Machine& machine, double flops, double efficiency, double bytes);
// Nanoseconds an element that the function of that name takes on one core of the kind that the
// rates were measured on, alone or behind a product; 0 for no name.
double EltwiseNanoseconds(std::string_view name);
// Operations of such a core at its peak in so many nanoseconds.
double FlopsIn(double nanoseconds);
// Seconds for `elements` at so many nanoseconds each on one such core, not less than the traffic.
double PerElement(const Machine& machine, double elements, double nanoseconds, double bytes);

// Whether a tensor may be in this layout for every shape it can have: rank 3 to 5, and for blocks a
// known number of full blocks.
bool Admits(const Type& type, Layout layout);

// A candidate for one node with all its activations in one layout; constants and tensors that have
// no layout stay plain.
Candidate MakeCandidate(const NodeInfo& node, Layout inputs, Layout outputs, double seconds,
                        std::string_view algorithm);
// True if input i is an activation of rank 3 to 5, so that a candidate chooses its layout.
bool HasLayout(const NodeInfo& node, size_t input);

}  // namespace msrt::onednn
