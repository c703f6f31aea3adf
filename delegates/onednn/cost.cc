#include "delegates/onednn/cost.h"

#include <algorithm>

namespace msrt::onednn {
namespace {

double Cores() {
  static const double cores = AvailableCores();
  return cores;
}

bool RankHasLayouts(const Type& type) { return type.rank() >= 3 && type.rank() <= 5; }

}  // namespace

double Roofline(double flops, double efficiency, double bytes) {
  return kLaunchSeconds + std::max(flops / (kFlopsPerCore * efficiency), bytes / kBytesPerCore) / Cores();
}

double PerElement(double elements, double nanoseconds, double bytes) {
  return kLaunchSeconds + std::max(elements * nanoseconds * 1e-9, bytes / kBytesPerCore) / Cores();
}

bool Admits(const Type& type, Layout layout) {
  if (layout == Layout::kPlain) return true;
  if (!RankHasLayouts(type)) return false;
  return layout == Layout::kChannelsLast || (IsKnown(type.dims[1]) && type.dims[1] > 0 && type.dims[1] % 8 == 0);
}

bool HasLayout(const NodeInfo& node, size_t input) {
  return node.op->has_input(input) && RankHasLayouts(node.op->input(input)) && node.op->constant(input) == nullptr;
}

Candidate MakeCandidate(const NodeInfo& node, Layout inputs, Layout outputs, double seconds, std::string_view algorithm) {
  Candidate c;
  for (size_t i = 0; i < node.op->input_count(); ++i) c.input_layouts.push_back(HasLayout(node, i) ? inputs : Layout::kPlain);
  for (size_t o = 0; o < node.op->output_count(); ++o) {
    const bool has_layout = node.op->has_output(o) && RankHasLayouts(node.op->output(o));
    c.output_layouts.push_back(has_layout ? outputs : Layout::kPlain);
  }
  c.seconds = seconds;
  c.algorithm = algorithm;
  return c;
}

}  // namespace msrt::onednn
