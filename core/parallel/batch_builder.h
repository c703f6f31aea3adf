// Builds the graph of one rank of a divided batch: its inputs, the parts of values that belong to
// virtual shards, nodes for each shard, and sums over the shards of all ranks. BatchSplitter
// (batch_split.cc) decides what becomes of each node.
//
// After an error the functions that add nodes return kNoValue, and accept it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/parallel/batch_split.h"
#include "core/parallel/batch_values.h"
#include "ops/builder.h"

namespace msrt {

class BatchBuilder {
 protected:
  using Ints = std::vector<int64_t>;

  BatchBuilder(const BatchSplitOptions& options, const BatchValues& values, const OpSet* ops,
               Graph* out);

  // ---- nodes ------------------------------------------------------------------------------------

  std::vector<ValueId> AddMany(std::string_view domain, std::string_view op,
                               std::vector<ValueId> inputs, AttrList attrs, size_t outputs);
  ValueId Add(std::string_view op, std::vector<ValueId> inputs, AttrList attrs = {}) {
    return AddMany("", op, std::move(inputs), std::move(attrs), 1)[0];
  }
  void Copy(const Node& node) { out_.nodes.push_back(node); }
  // Makes the only output of the last node that of a node of the source.
  void Become(ValueId made, ValueId old);
  ValueId Number(double number);
  ValueId IntConstant(Ints numbers);
  ValueId CastTo(ValueId v, DType dtype) { return Add("Cast", {v}, {{"to", dtype}}); }
  DType TypeOf(ValueId v) const { return out_.value(v).type.dtype; }
  const Dims& DimsOf(ValueId v) const { return values_.facts().types[IndexOf(v)].dims; }

  // ---- samples ----------------------------------------------------------------------------------

  void AddInputs();
  // The number of all samples times a number, in double.
  ValueId Count(int64_t per_sample);
  // The parts of a value that belong to the shards of this rank.
  std::vector<ValueId> Parts(ValueId v, const BatchDim& batch);
  std::vector<ValueId> Parts(ValueId v) { return Parts(v, values_[v]); }
  // Where the elements of this rank are in those of all, for random ops (ops/random.cc): a row of
  // where they begin and one of the dims of the whole. `like` has the dims of this rank, `batch` is
  // how they follow the samples.
  ValueId Position(ValueId like, const BatchDim& batch);

  // ---- sums -------------------------------------------------------------------------------------

  // Combines the partial results of the shards of all ranks.
  ValueId Combined(std::vector<ValueId> partial, std::string_view reduce);
  // The node for each shard, where `inputs` follow the batch; returns its outputs by shard.
  std::vector<std::vector<ValueId>> AddForShards(const Node& node);
  static std::vector<ValueId> OutputOf(const std::vector<std::vector<ValueId>>& shards, size_t o);
  // The sum over all samples of a new value that has `batch`.
  ValueId SumOfAll(ValueId v, const BatchDim& batch);

  const BatchSplitOptions& options_;
  const BatchValues& values_;
  Graph& out_;
  GraphBuilder builder_;
  BatchSplit split_;
  std::string name_;  // of the node that is being added
  Status status_;     // the first error of AddMany
  ValueId all_samples_ = kNoValue;
  int64_t typical_samples_ = 1;  // of all ranks together

 private:
  // How many elements each shard has of a dim that follows the batch.
  ValueId ShardSizes(int64_t multiple);

  std::vector<ValueId> shard_inputs_;  // one input with samples, by shard
  std::map<int64_t, ValueId> sizes_, counts_;
  std::map<ValueId, std::vector<ValueId>> parts_;
};

}  // namespace msrt
