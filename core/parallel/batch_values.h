// Which values of a graph follow its batch. Found by inferring all types for two numbers of
// samples: a dim that grows in proportion to them follows the batch, through whatever ops it came
// about.
#pragma once

#include <span>
#include <vector>

#include "ops/evaluator.h"
#include "ops/propagate.h"

namespace msrt {

// How a value follows the batch. A dim has `multiple` elements for each sample, in the order of
// samples.
struct BatchDim {
  int dim = -1;  // -1: none does
  int64_t multiple = 0;
  bool follows() const { return dim >= 0; }
};

class BatchValues {
 public:
  // The number of samples of facts().
  static constexpr int64_t kSamples = 5;

  // `typical`: see BatchSplitOptions. The graph and the evaluator must outlive the result.
  static Result<BatchValues> Find(const Graph& graph, std::span<const Dims> typical,
                                  const Evaluator& evaluator);

  const GraphFacts& facts() const { return facts_; }  // for kSamples samples
  const BatchDim& operator[](ValueId v) const { return dims_[IndexOf(v)]; }
  bool follows(ValueId v) const { return v != kNoValue && dims_[IndexOf(v)].follows(); }
  // Whether the value has integers that are known without a run and change with the number of
  // samples: a part of a shape, or a count.
  bool counts(ValueId v) const { return v != kNoValue && counts_[IndexOf(v)]; }
  // By element of such a value: how many there are for each sample. kUnsupported if it is
  // not proportional to the samples.
  Result<std::vector<int64_t>> PerSample(ValueId v) const;
  // Elements of the value for each sample. Requires one that follows the batch.
  int64_t ElementsPerSample(ValueId v) const {
    return facts_.types[IndexOf(v)].dims.elements() / kSamples;
  }

 private:
  explicit BatchValues(const Graph& graph) : facts_(graph), more_(graph) {}
  Status Compare(const Graph& graph);

  GraphFacts facts_, more_;  // the latter for another number of samples
  std::vector<BatchDim> dims_;
  std::vector<bool> counts_;
};

}  // namespace msrt
