// TreeEnsemble: one row and one tree at a time. A walk has at most as many steps as there are
// nodes, so a tree with a cycle ends in an error.
#include <algorithm>
#include <cmath>
#include <vector>

#include "delegates/reference/elements.h"
#include "delegates/reference/kernel.h"

namespace msrt::reference {
namespace {

enum Mode : uint8_t { kLessOrEqual, kLess, kGreaterOrEqual, kGreater, kEqual, kNotEqual, kMember };
enum Aggregate : int64_t { kAverage, kSum, kLeast, kGreatest };

std::vector<double> DoublesOf(const ConstTensor* t) {
  if (t == nullptr) return {};
  return Doubles(
      TensorView{t->dtype, t->dims, Layout::kPlain, const_cast<std::byte*>(t->bytes.data())});
}

struct Ensemble {
  std::vector<double> splits, weights;
  std::vector<std::vector<double>>
      sets;  // of each node; empty where it does not ask for membership
  std::span<const uint8_t> modes;
  std::span<const int64_t> features, if_true, if_false, true_is_leaf, false_is_leaf,
      missing_is_true, targets, begins;

  static Result<Ensemble> Of(const OpView& op) {
    Ensemble e;
    e.splits = DoublesOf(op.Tensor("nodes_splits"));
    e.weights = DoublesOf(op.Tensor("leaf_weights"));
    e.modes = op.Tensor("nodes_modes")->As<uint8_t>();
    e.features = op.Ints("nodes_featureids");
    e.if_true = op.Ints("nodes_truenodeids"), e.true_is_leaf = op.Ints("nodes_trueleafs");
    e.if_false = op.Ints("nodes_falsenodeids"), e.false_is_leaf = op.Ints("nodes_falseleafs");
    e.missing_is_true = op.Ints("nodes_missing_value_tracks_true");
    e.targets = op.Ints("leaf_targetids"), e.begins = op.Ints("leaf_begins");
    MSRT_RETURN_IF_ERROR(e.ReadSets(DoublesOf(op.Tensor("membership_values"))));
    return e;
  }

  bool Compare(size_t node, double x) const {
    if (std::isnan(x) && !missing_is_true.empty() && missing_is_true[node] != 0) return true;
    const double split = splits[node];
    switch (static_cast<Mode>(modes[node])) {
      case kLessOrEqual:
        return x <= split;
      case kLess:
        return x < split;
      case kGreaterOrEqual:
        return x >= split;
      case kGreater:
        return x > split;
      case kEqual:
        return x == split;
      case kNotEqual:
        return x != split;
      case kMember:
        break;
    }
    return std::find(sets[node].begin(), sets[node].end(), x) != sets[node].end();
  }

  Result<size_t> LeafOf(int64_t root, const double* x) const {
    auto node = static_cast<size_t>(root);
    for (size_t step = 0; step < features.size(); ++step) {
      const bool yes = Compare(node, x[features[node]]);
      const auto next = static_cast<size_t>(yes ? if_true[node] : if_false[node]);
      if ((yes ? true_is_leaf : false_is_leaf)[node] != 0) return next;
      node = next;
    }
    return InvalidModel("the tree with root ", root, " has a cycle");
  }

  // Returns the range of the targets and weights of a leaf.
  std::pair<size_t, size_t> EntriesOf(size_t leaf) const {
    if (begins.empty()) return {leaf, leaf + 1};
    return {static_cast<size_t>(begins[leaf]),
            leaf + 1 < begins.size() ? static_cast<size_t>(begins[leaf + 1]) : targets.size()};
  }

 private:
  Status ReadSets(const std::vector<double>& members) {
    sets.resize(modes.size());
    auto next = members.begin();
    for (size_t node = 0; node < modes.size(); ++node) {
      if (modes[node] != kMember) continue;
      if (next == members.end())
        return InvalidModel("membership_values has fewer sets than nodes ask for");
      const auto end = std::find_if(next, members.end(), [](double v) { return std::isnan(v); });
      sets[node].assign(next, end);
      next = end == members.end() ? end : end + 1;
    }
    return OkStatus();
  }
};

Status RunRow(const KernelArgs& args, const Ensemble& e, int64_t row) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const int64_t features = x.dims[1], targets = y.dims[1],
                aggregate = args.op.Int("aggregate_function");
  const auto roots = args.op.Ints("tree_roots");
  std::vector<double> values(static_cast<size_t>(features)),
      sums(static_cast<size_t>(targets), 0.0);
  std::vector<bool> touched(sums.size(), false);
  LoadElements(x.dtype, x.data, row * features, 1, features, values.data());
  for (int64_t root : roots) {
    MSRT_ASSIGN_OR_RETURN(const size_t leaf, e.LeafOf(root, values.data()));
    const auto [first, last] = e.EntriesOf(leaf);
    for (size_t i = first; i < last; ++i) {
      const auto target = static_cast<size_t>(e.targets[i]);
      double& sum = sums[target];
      if (aggregate == kLeast) sum = touched[target] ? std::min(sum, e.weights[i]) : e.weights[i];
      else if (aggregate == kGreatest)
        sum = touched[target] ? std::max(sum, e.weights[i]) : e.weights[i];
      else sum += e.weights[i];
      touched[target] = true;
    }
  }
  if (aggregate == kAverage && !roots.empty()) {
    for (double& sum : sums) sum /= static_cast<double>(roots.size());
  }
  StoreElements(y.dtype, y.data, row * targets, targets, sums.data());
  return OkStatus();
}

Status RunTreeEnsemble(const KernelArgs& args) {
  MSRT_ASSIGN_OR_RETURN(const Ensemble ensemble, Ensemble::Of(args.op));
  const int64_t rows = args.inputs[0].dims[0];
  std::vector<Status> results(static_cast<size_t>(rows));
  MSRT_RETURN_IF_ERROR(ParallelRanges(args.parallel, rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      results[static_cast<size_t>(r)] = RunRow(args, ensemble, r);
  }));
  for (Status& status : results) MSRT_RETURN_IF_ERROR(std::move(status));
  return OkStatus();
}

constexpr KernelDef kTreeEnsembleKernels[] = {{"ai.onnx.ml", "TreeEnsemble", RunTreeEnsemble}};

}  // namespace

std::span<const KernelDef> TreeEnsembleKernels() { return kTreeEnsembleKernels; }

}  // namespace msrt::reference
