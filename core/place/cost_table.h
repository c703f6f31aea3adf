// Measured costs: the time that a candidate took on some machine, used instead of a delegate's
// estimate. Made by core/run/measure.h, stored as a text file beside a model, read by placement.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "core/base/machine.h"
#include "core/delegate/delegate.h"

namespace msrt {

// Where costs were measured. On another machine they are no better than estimates.
struct CostOrigin {
  std::string library;    // its version
  std::string processor;  // ProcessorName()
  int threads = 0;
  Machine machine;  // the scale of estimates that are used beside measured costs
};
// Describes in what two origins differ; empty: in nothing that matters.
std::string Difference(const CostOrigin& measured, const CostOrigin& here);

class CostTable {
 public:
  // Reads the output of Print. An error names the line.
  static Result<CostTable> Parse(std::string_view text);
  std::string Print() const;

  // Null: not measured.
  const double* Find(const std::string& key) const;
  // Requires seconds above 0 and below kMaxSeconds, and a key made by CostKey.
  void Set(std::string key, double seconds) { seconds_[std::move(key)] = seconds; }
  size_t size() const { return seconds_.size(); }

  CostOrigin origin;
  static constexpr double kMaxSeconds = 1e6;

 private:
  std::unordered_map<std::string, double> seconds_;
};

// Returns everything that a cost depends on, in one line of printable characters: delegate,
// algorithm, and for each node its op, attributes, the types and layouts of its tensors at typical
// shapes, and which of them are constants. Nodes that cost the same have equal keys wherever they
// are in the graph.
std::string CostKey(const OfferedGraph& graph, std::string_view delegate,
                    const Candidate& candidate);

}  // namespace msrt
