// Writes the graph of one rank from the plan of all.
#pragma once

#include <map>

#include "core/parallel/split.h"
#include "ops/builder.h"

namespace msrt {

class RankGraph {
 public:
  RankGraph(const GraphSpaces& spaces, const SplitPlan& plan, const SplitOptions& options, int rank,
            Graph* out);

  Status Write();
  // Fills everything but the module.
  void Describe(RankModule* result) const;

 private:
  // A box of a source value that exists in the new graph.
  struct Part {
    Box box;
    ValueId value;
  };
  Status AddInputs();
  Status AddNode(size_t node);
  Result<ValueId> AddPiece(size_t node, const Box& piece, const std::string& name,
                           std::span<const Box> outputs, std::vector<ValueId>* results);
  Status AddPieces(size_t node);
  Status AddExchange(ValueId value);
  Status AddOutputs();
  // Returns the value of the new graph that holds exactly this box.
  Result<ValueId> Get(ValueId value, const Box& box);
  Result<ValueId> Slice(const Part& part, const Box& box, const std::string& name);
  Result<ValueId> Constant(ValueId value, const ConstTensor& data, const Box& box);
  void Keep(ValueId value, const Box& box, ValueId made) {
    parts_[IndexOf(value)].push_back({box, made});
  }
  std::string NameOf(ValueId value) const { return source_.value(value).name; }

  const GraphSpaces& spaces_;
  const Graph& source_;
  const SplitPlan& plan_;
  const SplitOptions& options_;
  const size_t rank_;
  GraphBuilder builder_;
  Graph& out_;
  std::vector<std::vector<Part>> parts_;  // by source value
  int64_t bytes_sent_ = 0, messages_sent_ = 0, exchanges_ = 0;
  uint32_t slices_ = 0;
};

// Returns the part of a tensor inside the box. Requires elements of whole bytes.
ConstTensor CutConstant(const ConstTensor& tensor, const Box& box);

}  // namespace msrt
