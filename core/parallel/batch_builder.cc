#include "core/parallel/batch_builder.h"

#include <array>

#include "core/comm/tree_reduce.h"

namespace msrt {

BatchBuilder::BatchBuilder(const BatchSplitOptions& options, const BatchValues& values,
                           const OpSet* ops, Graph* out)
    : options_(options), values_(values), out_(*out), builder_(out, ops) {
  if (!options.by_shards) return;
  const auto [first, last] = ShardsOfRank(options.rank, options.ranks);
  split_.first_shard = first, split_.shards = last - first;
}

std::vector<ValueId> BatchBuilder::AddMany(std::string_view domain, std::string_view op,
                                           std::vector<ValueId> inputs, AttrList attrs,
                                           size_t outputs) {
  std::vector<ValueId> none(outputs, kNoValue);
  if (!status_.ok()) return none;
  auto added = builder_.Add(domain, op, name_, std::move(inputs), std::move(attrs), outputs);
  if (added.ok()) return *std::move(added);
  status_ = added.status();
  return none;
}

void BatchBuilder::Become(ValueId made, ValueId old) {
  if (!status_.ok() || old == kNoValue) return;
  MSRT_CHECK(out_.nodes.back().outputs[0] == made);
  out_.nodes.back().outputs[0] = old;
}

ValueId BatchBuilder::Number(double number) {
  return out_.AddConstant("number", ConstTensor::Of<double>(DType::kF64, {}, std::array{number}));
}

ValueId BatchBuilder::IntConstant(Ints numbers) {
  return out_.AddConstant("ints", ConstTensor::Int64s(numbers));
}

void BatchBuilder::AddInputs() {
  const std::vector<ValueId> inputs = std::move(out_.inputs);
  out_.inputs.clear();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueId v = inputs[i];
    const BatchDim& batch = values_[v];
    split_.has_samples.push_back(batch.follows());
    if (batch.follows() && i < options_.typical.size() && !options_.typical[i].empty() &&
        IsKnown(options_.typical[i][0]))
      typical_samples_ = options_.typical[i][0];
    if (!batch.follows() || split_.shards == 1) {
      out_.inputs.push_back(v);
      if (batch.follows()) shard_inputs_ = {v};
      continue;
    }
    const Value whole = out_.value(v);
    name_ = whole.name;
    std::vector<ValueId> shards;
    for (int s = 0; s < split_.shards; ++s)
      shards.push_back(out_.AddInput(StrCat(whole.name, ".", split_.first_shard + s), whole.type));
    Become(Add("Concat", shards, {{"axis", int64_t{0}}}), v);
    shard_inputs_ = std::move(shards);
  }
  all_samples_ = out_.AddInput(std::string(kAllSamplesInput), Type::Tensor(DType::kI64, {}));
}

ValueId BatchBuilder::Count(int64_t per_sample) {
  ValueId& count = counts_.try_emplace(per_sample, kNoValue).first->second;
  if (count == kNoValue)
    count =
        Add("Mul", {CastTo(all_samples_, DType::kF64), Number(static_cast<double>(per_sample))});
  return count;
}

ValueId BatchBuilder::ShardSizes(int64_t multiple) {
  const auto found = sizes_.find(multiple);
  if (found != sizes_.end()) return found->second;
  ValueId sizes = kNoValue;
  if (multiple == 1) {
    std::vector<ValueId> each;
    for (ValueId v : shard_inputs_)
      each.push_back(Add("Shape", {v}, {{"start", int64_t{0}}, {"end", int64_t{1}}}));
    sizes = Add("Concat", each, {{"axis", int64_t{0}}});
  } else {
    sizes = Add("Mul", {ShardSizes(1), IntConstant({multiple})});
  }
  return sizes_[multiple] = sizes;
}

std::vector<ValueId> BatchBuilder::Parts(ValueId v, const BatchDim& batch) {
  if (split_.shards == 1) return {v};
  const auto found = parts_.find(v);
  if (found != parts_.end()) return found->second;
  const ValueId sizes = ShardSizes(batch.multiple);
  return parts_[v] = AddMany("", "Split", {v, sizes}, {{"axis", int64_t{batch.dim}}},
                             static_cast<size_t>(split_.shards));
}

// Each dim but that of the samples is whole on every rank.
ValueId BatchBuilder::Position(ValueId like, const BatchDim& batch) {
  const int shard = ShardsOfRank(options_.rank, options_.ranks).first;
  const auto in_list = [&](ValueId scalar) {
    return Add("Mul", {scalar, IntConstant({batch.multiple})});
  };
  // FirstSampleOfShard (core/train/dataset.h).
  const ValueId first =
      Add("Div", {Add("Mul", {all_samples_, IntConstant({shard})}), IntConstant({kVirtualShards})});
  const int rank = out_.value(like).type.rank();
  const auto dims = [&](int begin, int end) {
    return Add("Shape", {like}, {{"start", int64_t{begin}}, {"end", int64_t{end}}});
  };
  std::vector<ValueId> list;
  if (batch.dim > 0) list.push_back(IntConstant(Ints(static_cast<size_t>(batch.dim), 0)));
  list.push_back(in_list(first));
  if (batch.dim + 1 < rank)
    list.push_back(IntConstant(Ints(static_cast<size_t>(rank - batch.dim - 1), 0)));
  if (batch.dim > 0) list.push_back(dims(0, batch.dim));
  list.push_back(in_list(all_samples_));
  if (batch.dim + 1 < rank) list.push_back(dims(batch.dim + 1, rank));
  const ValueId numbers = Add("Concat", std::move(list), {{"axis", int64_t{0}}});
  return Add("Reshape", {numbers}, {{"shape", Ints{2, int64_t{rank}}}});
}

ValueId BatchBuilder::Combined(std::vector<ValueId> partial, std::string_view reduce) {
  AttrList attrs{{"reduce", std::string(reduce)},
                 {"order", std::string(options_.by_shards ? "shards" : "any")}};
  return AddMany("msrt", "AllReduce", std::move(partial), std::move(attrs), 1)[0];
}

std::vector<std::vector<ValueId>> BatchBuilder::AddForShards(const Node& node) {
  std::vector<std::vector<ValueId>> inputs(static_cast<size_t>(split_.shards), node.inputs);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!values_.follows(node.inputs[i])) continue;
    const std::vector<ValueId> parts = Parts(node.inputs[i]);
    for (size_t s = 0; s < parts.size(); ++s) inputs[s][i] = parts[s];
  }
  std::vector<std::vector<ValueId>> outputs;
  for (const std::vector<ValueId>& of_shard : inputs) {
    outputs.push_back(AddMany(node.domain, node.op, of_shard, node.attrs, node.outputs.size()));
    if (!status_.ok()) return outputs;
    Node& added = out_.nodes.back();
    added.region = node.region;
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      if (node.outputs[o] == kNoValue) added.outputs[o] = kNoValue;
    }
  }
  return outputs;
}

std::vector<ValueId> BatchBuilder::OutputOf(const std::vector<std::vector<ValueId>>& shards,
                                            size_t o) {
  std::vector<ValueId> values;
  for (const std::vector<ValueId>& outputs : shards) values.push_back(outputs[o]);
  return values;
}

ValueId BatchBuilder::SumOfAll(ValueId v, const BatchDim& batch) {
  std::vector<ValueId> sums;
  for (ValueId part : Parts(v, batch))
    sums.push_back(Add("ReduceSum", {part}, {{"keepdims", int64_t{0}}}));
  return Combined(std::move(sums), "sum");
}

}  // namespace msrt
