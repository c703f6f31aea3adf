// Measured costs: how long a way of running a node took on some machine, to be used instead of a
// delegate's estimate. Made by core/run/measure.h, kept as a text file beside a model, read by
// placement.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "core/base/machine.h"
#include "core/delegate/delegate.h"

namespace msrt {

// Where costs were measured. Elsewhere they are as wrong as any guess.
struct CostOrigin {
  std::string library;    // its version
  std::string processor;  // ProcessorName()
  int threads = 0;
  Machine machine;  // the scale of estimates that stand beside measured costs
};
// In what two origins differ, for people; empty: in nothing that matters.
std::string Difference(const CostOrigin& measured, const CostOrigin& here);

class CostTable {
 public:
  // Reads what Print wrote. Anything else is refused, by line.
  static Result<CostTable> Parse(std::string_view text);
  std::string Print() const;

  // Null: not measured.
  const double* Find(const std::string& key) const;
  // Seconds must be more than 0 and less than kMostSeconds, the key one of CostKey.
  void Set(std::string key, double seconds) { seconds_[std::move(key)] = seconds; }
  size_t size() const { return seconds_.size(); }

  CostOrigin origin;
  static constexpr double kMostSeconds = 1e6;

 private:
  std::unordered_map<std::string, double> seconds_;
};

// What a cost depends on, in one line of printable characters: delegate, algorithm, and for each
// node its op, attributes, the types and layouts of its tensors at typical shapes, and which of
// them are constants. Equal for nodes that cost the same wherever they stand.
std::string CostKey(const OfferedGraph& graph, std::string_view delegate,
                    const Candidate& candidate);

}  // namespace msrt
