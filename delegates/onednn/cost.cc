#include "delegates/onednn/cost.h"

#include <algorithm>

namespace msrt::onednn {
namespace {

// Peak of the cores on which nanoseconds were measured.
constexpr double kFlopsPerCore = 90e9;

bool RankHasLayouts(const Type& type) { return type.rank() >= 3 && type.rank() <= 5; }

}  // namespace

double Roofline(const Machine& machine, double flops, double efficiency, double bytes) {
  return kLaunchSeconds + std::max(flops / (machine.flops_per_second * efficiency),
                                   bytes / machine.bytes_per_second);
}

double FlopsIn(double nanoseconds) { return nanoseconds * 1e-9 * kFlopsPerCore; }

double EltwiseNanoseconds(std::string_view name) {
  struct Time {
    std::string_view name;
    double nanoseconds;
  };
  static constexpr Time kTimes[] = {{"", 0},           {"Tanh", 2.8}, {"GeluTanh", 3.5},
                                    {"Softplus", 1.3}, {"Log", 1.3},  {"Sigmoid", 0.6},
                                    {"Gelu", 0.85},    {"Elu", 0.5},  {"Swish", 0.7},
                                    {"Mish", 0.65},    {"Exp", 0.4},  {"Sqrt", 0.2}};
  for (const Time& t : kTimes) {
    if (t.name == name) return t.nanoseconds;
  }
  return 0.05;  // a few instructions: below its memory traffic
}

double PerElement(const Machine& machine, double elements, double nanoseconds, double bytes) {
  return Roofline(machine, FlopsIn(elements * nanoseconds), 1, bytes);
}

bool Admits(const Type& type, Layout layout) {
  if (layout == Layout::kPlain) return true;
  if (!RankHasLayouts(type)) return false;
  return layout == Layout::kChannelsLast ||
         (IsKnown(type.dims[1]) && type.dims[1] > 0 && type.dims[1] % BlockOf(layout) == 0);
}

bool HasLayout(const NodeInfo& node, size_t input) {
  return node.op->has_input(input) && RankHasLayouts(node.op->input(input)) &&
         node.op->constant(input) == nullptr;
}

Candidate MakeCandidate(const NodeInfo& node, Layout inputs, Layout outputs, double seconds,
                        std::string_view algorithm) {
  Candidate c;
  for (size_t i = 0; i < node.op->input_count(); ++i)
    c.input_layouts.push_back(HasLayout(node, i) ? inputs : Layout::kPlain);
  for (size_t o = 0; o < node.op->output_count(); ++o) {
    const bool has_layout = node.op->has_output(o) && RankHasLayouts(node.op->output(o));
    c.output_layouts.push_back(has_layout ? outputs : Layout::kPlain);
  }
  c.seconds = seconds;
  c.algorithm = algorithm;
  return c;
}

}  // namespace msrt::onednn
