// Rules for trees (ai.onnx.ml). TreeEnsembleRegressor and TreeEnsembleClassifier, which list nodes
// and leaves together and by pairs of ids, become a TreeEnsemble followed by plain ops.
#include <algorithm>
#include <map>
#include <set>

#include "tools/msconvert/onnx/lift.h"

namespace msrt::onnx_import {
namespace {

// In the order of the numbers that TreeEnsemble uses.
constexpr std::string_view kTransforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO",
                                            "PROBIT"};
constexpr std::string_view kAggregates[] = {"AVERAGE", "SUM", "MIN", "MAX"};
constexpr std::string_view kModes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                       "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};

Result<int64_t> NumberOf(std::span<const std::string_view> names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return Unsupported("'", name, "' is not known here");
  return found - names.begin();
}

Result<ValueId> Transformed(NodeLift& n, ValueId scores, std::string_view transform) {
  if (transform == "NONE") return scores;
  if (transform == "SOFTMAX") return n.Add("Softmax", {scores}, {{"axis", int64_t{-1}}});
  if (transform == "LOGISTIC") return n.Add("Sigmoid", {scores});
  return Unsupported("post_transform ", transform, "; NONE, SOFTMAX and LOGISTIC are supported");
}

Status LiftTreeEnsemble(NodeLift& n) {
  const int64_t transform = n.Int("post_transform", 0);
  if (transform < 0 || transform >= static_cast<int64_t>(std::size(kTransforms)))
    return InvalidModel("post_transform = ", transform);
  n.attrs().Remove("post_transform");
  n.attrs().Remove("nodes_hitrates");  // a hint
  MSRT_RETURN_IF_ERROR(n.Pass());
  MSRT_ASSIGN_OR_RETURN(const ValueId out, Transformed(n, n.outputs()[0], kTransforms[transform]));
  n.SetOutput(0, out);
  return OkStatus();
}

// Returns a list of numbers: floats, or a tensor in the attribute with "_as_tensor".
std::vector<double> NumbersOf(NodeLift& n, const std::string& attr) {
  const AttrValue* tensor = n.attrs().Find(attr + "_as_tensor");
  const auto* t = tensor == nullptr ? nullptr : std::get_if<ConstTensor>(tensor);
  if (t == nullptr || (t->dtype != DType::kF32 && t->dtype != DType::kF64)) return n.Floats(attr);
  std::vector<double> values;
  for (size_t i = 0; i < static_cast<size_t>(t->dims.elements()); ++i) {
    values.push_back(t->dtype == DType::kF64 ? t->As<double>()[i] : t->As<float>()[i]);
  }
  return values;
}

ConstTensor DoublesTensor(const std::vector<double>& values) {
  return ConstTensor::Of<double>(DType::kF64, {static_cast<int64_t>(values.size())}, values);
}

// Nodes as the older ops list them, by (tree, node).
struct ListedTrees {
  using Id = std::pair<int64_t, int64_t>;
  std::vector<Id> ids;
  std::vector<int64_t> features, if_true, if_false, missing;
  std::vector<std::string> modes;
  std::vector<double> values;
  std::map<Id, std::vector<std::pair<int64_t, double>>> leaf_entries;  // target and weight

  // `kind` is "target" or "class".
  static Result<ListedTrees> Of(NodeLift& n, const std::string& kind) {
    ListedTrees t;
    const auto trees = n.Ints("nodes_treeids"), nodes = n.Ints("nodes_nodeids");
    t.features = n.Ints("nodes_featureids"), t.if_true = n.Ints("nodes_truenodeids"),
    t.if_false = n.Ints("nodes_falsenodeids");
    t.missing = n.Ints("nodes_missing_value_tracks_true");
    if (t.missing.empty()) t.missing.resize(trees.size(), 0);
    if (const AttrValue* modes = n.attrs().Find("nodes_modes")) {
      if (const auto* list = std::get_if<std::vector<std::string>>(modes)) t.modes = *list;
    }
    t.values = NumbersOf(n, "nodes_values");
    const size_t count = trees.size();
    for (size_t length : {nodes.size(), t.features.size(), t.if_true.size(), t.if_false.size(),
                          t.missing.size(), t.modes.size(), t.values.size()}) {
      if (length != count) return InvalidModel("the lists nodes_* have different lengths");
    }
    for (size_t i = 0; i < count; ++i) t.ids.emplace_back(trees[i], nodes[i]);
    const auto leaf_trees = n.Ints(kind + "_treeids"), leaf_nodes = n.Ints(kind + "_nodeids"),
               targets = n.Ints(kind + "_ids");
    const auto weights = NumbersOf(n, kind + "_weights");
    if (leaf_trees.size() != weights.size() || leaf_nodes.size() != weights.size() ||
        targets.size() != weights.size()) {
      return InvalidModel("the lists ", kind, "_* have different lengths");
    }
    for (size_t i = 0; i < weights.size(); ++i)
      t.leaf_entries[{leaf_trees[i], leaf_nodes[i]}].emplace_back(targets[i], weights[i]);
    return t;
  }
};

// The attributes of a TreeEnsemble, filled one node and leaf at a time.
struct EnsembleLists {
  std::vector<int64_t> roots, features, if_true, if_false, true_leafs, false_leafs, missing,
      targets, begins;
  std::vector<uint8_t> modes;
  std::vector<double> splits, weights;

  int64_t AddNode(int64_t feature, int64_t mode, double split, int64_t missing_is_true) {
    features.push_back(feature), modes.push_back(static_cast<uint8_t>(mode)),
        splits.push_back(split), missing.push_back(missing_is_true);
    for (auto* list : {&if_true, &if_false, &true_leafs, &false_leafs}) list->push_back(0);
    return static_cast<int64_t>(features.size()) - 1;
  }
  int64_t AddLeaf(const std::vector<std::pair<int64_t, double>>& entries) {
    begins.push_back(static_cast<int64_t>(targets.size()));
    for (const auto& [target, weight] : entries)
      targets.push_back(target), weights.push_back(weight);
    return static_cast<int64_t>(begins.size()) - 1;
  }

  AttrList Attrs(int64_t n_targets, int64_t aggregate) const {
    return {{"aggregate_function", aggregate},
            {"n_targets", n_targets},
            {"tree_roots", roots},
            {"nodes_featureids", features},
            {"nodes_splits", DoublesTensor(splits)},
            {"nodes_modes",
             ConstTensor::Of<uint8_t>(DType::kU8, {static_cast<int64_t>(modes.size())}, modes)},
            {"nodes_truenodeids", if_true},
            {"nodes_falsenodeids", if_false},
            {"nodes_trueleafs", true_leafs},
            {"nodes_falseleafs", false_leafs},
            {"nodes_missing_value_tracks_true", missing},
            {"leaf_targetids", targets},
            {"leaf_weights", DoublesTensor(weights)},
            {"leaf_begins", begins}};
  }
};

Result<EnsembleLists> Rearranged(const ListedTrees& t) {
  EnsembleLists out;
  struct Place {
    int64_t index;
    bool leaf;
  };
  std::map<ListedTrees::Id, Place> places;
  std::set<ListedTrees::Id> children;
  for (size_t i = 0; i < t.ids.size(); ++i) {
    Place place{0, t.modes[i] == "LEAF"};
    if (place.leaf) {
      const auto entries = t.leaf_entries.find(t.ids[i]);
      place.index =
          out.AddLeaf(entries == t.leaf_entries.end() ? std::vector<std::pair<int64_t, double>>()
                                                      : entries->second);
    } else {
      MSRT_ASSIGN_OR_RETURN(const int64_t mode, NumberOf(kModes, t.modes[i]));
      place.index = out.AddNode(t.features[i], mode, t.values[i], t.missing[i]);
      for (int64_t child : {t.if_true[i], t.if_false[i]}) children.insert({t.ids[i].first, child});
    }
    if (!places.emplace(t.ids[i], place).second)
      return InvalidModel("two nodes have the id ", t.ids[i].second, " in one tree");
  }
  for (size_t i = 0; i < t.ids.size(); ++i) {
    const Place place = places[t.ids[i]];
    if (children.count(t.ids[i]) == 0) {
      // A tree that is a single leaf gets a node with that leaf on both sides.
      out.roots.push_back(place.leaf ? out.AddNode(0, 0, 0, 0) : place.index);
      if (place.leaf)
        out.if_true.back() = out.if_false.back() = place.index,
        out.true_leafs.back() = out.false_leafs.back() = 1;
    }
    if (place.leaf) continue;
    const auto node = static_cast<size_t>(place.index);
    for (const bool yes : {true, false}) {
      const int64_t child = yes ? t.if_true[i] : t.if_false[i];
      const auto found = places.find({t.ids[i].first, child});
      if (found == places.end())
        return InvalidModel("node ", t.ids[i].second, " of tree ", t.ids[i].first, " leads to ",
                            child, ", which is no node");
      (yes ? out.if_true : out.if_false)[node] = found->second.index;
      (yes ? out.true_leafs : out.false_leafs)[node] = found->second.leaf;
    }
  }
  return out;
}

// Returns the raw scores [rows, targets] in f32, with the base values.
Result<ValueId> Scores(NodeLift& n, const EnsembleLists& lists, int64_t n_targets,
                       int64_t aggregate, const std::vector<double>& base) {
  ValueId x = n.input(0);
  if (!kFloatTypes.Has(n.type(0).dtype)) {
    MSRT_ASSIGN_OR_RETURN(x, n.Add("Cast", {x}, {{"to", DType::kF32}}));
  }
  MSRT_ASSIGN_OR_RETURN(const auto raw, n.AddMany(kMlDomain, "TreeEnsemble", {x},
                                                  lists.Attrs(n_targets, aggregate), 1));
  MSRT_ASSIGN_OR_RETURN(const ValueId scores, n.Add("Cast", {raw[0]}, {{"to", DType::kF32}}));
  if (base.empty()) return scores;
  if (base.size() != 1 && static_cast<int64_t>(base.size()) != n_targets) {
    return InvalidModel("base_values has ", base.size(), " elements, must have ", n_targets);
  }
  const std::vector<float> narrow(base.begin(), base.end());
  return n.Add(
      "Add",
      {scores, n.Constant(ConstTensor::Floats({static_cast<int64_t>(narrow.size())}, narrow))});
}

Status LiftRegressor(NodeLift& n) {
  MSRT_RETURN_IF_ERROR(n.RequireInputs(1));
  MSRT_ASSIGN_OR_RETURN(const ListedTrees trees, ListedTrees::Of(n, "target"));
  MSRT_ASSIGN_OR_RETURN(const EnsembleLists lists, Rearranged(trees));
  MSRT_ASSIGN_OR_RETURN(const int64_t aggregate,
                        NumberOf(kAggregates, n.String("aggregate_function", "SUM")));
  MSRT_ASSIGN_OR_RETURN(const ValueId scores, Scores(n, lists, n.Int("n_targets", 1), aggregate,
                                                     NumbersOf(n, "base_values")));
  MSRT_ASSIGN_OR_RETURN(const ValueId out,
                        Transformed(n, scores, n.String("post_transform", "NONE")));
  n.SetOutput(0, out);
  return OkStatus();
}

// Sets the label of the class with the greatest score.
Status SetLabels(NodeLift& n, ValueId places, const std::vector<int64_t>& labels) {
  if (!n.wants_output(0)) return OkStatus();
  if (labels.empty()) return Unsupported("labels that are text");
  MSRT_ASSIGN_OR_RETURN(
      const ValueId chosen,
      n.Add("Gather", {n.Constant(ConstTensor::Int64s(labels)), places}, {{"axis", int64_t{0}}}));
  n.SetOutput(0, chosen);
  return OkStatus();
}

// For two classes of which the trees score only one: the other score is 1 minus the first, or its
// negative if scores may be negative.
Status LiftTwoClasses(NodeLift& n, EnsembleLists lists, const std::vector<int64_t>& labels,
                      const std::vector<double>& base) {
  if (base.size() > 1) return Unsupported("base_values for both of two classes");
  std::fill(lists.targets.begin(), lists.targets.end(), 0);
  const bool positive =
      std::all_of(lists.weights.begin(), lists.weights.end(), [](double w) { return w >= 0; });
  const std::string transform = n.String("post_transform", "NONE");
  if (transform != "NONE" && (positive || transform != "LOGISTIC"))
    return Unsupported("post_transform ", transform, " of two classes with one score");
  MSRT_ASSIGN_OR_RETURN(const ValueId score, Scores(n, lists, 1, 1, base));
  MSRT_ASSIGN_OR_RETURN(const ValueId is_second,
                        n.Add("Greater", {score, n.Scalar(DType::kF32, positive ? 0.5 : 0)}));
  MSRT_ASSIGN_OR_RETURN(const ValueId column, n.Add("Cast", {is_second}, {{"to", DType::kI64}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId places,
                        n.Add("Squeeze", {column}, {{"axes", std::vector<int64_t>{1}}}));
  MSRT_RETURN_IF_ERROR(SetLabels(n, places, labels));
  MSRT_ASSIGN_OR_RETURN(const ValueId other, positive
                                                 ? n.Add("Sub", {n.Scalar(DType::kF32, 1), score})
                                                 : n.Add("Neg", {score}));
  MSRT_ASSIGN_OR_RETURN(const ValueId both,
                        n.Add("Concat", {other, score}, {{"axis", int64_t{1}}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId out, Transformed(n, both, transform));
  n.SetOutput(1, out);
  return OkStatus();
}

Status LiftClassifier(NodeLift& n) {
  MSRT_RETURN_IF_ERROR(n.RequireInputs(1));
  MSRT_ASSIGN_OR_RETURN(const ListedTrees trees, ListedTrees::Of(n, "class"));
  MSRT_ASSIGN_OR_RETURN(const EnsembleLists lists, Rearranged(trees));
  const std::vector<int64_t> labels = n.Ints("classlabels_int64s");
  const AttrValue* texts = n.attrs().Find("classlabels_strings");
  const auto* text_list = texts == nullptr ? nullptr : std::get_if<std::vector<std::string>>(texts);
  const size_t classes = text_list != nullptr && labels.empty() ? text_list->size() : labels.size();
  const std::vector<double> base = NumbersOf(n, "base_values");
  const std::set<int64_t> scored(lists.targets.begin(), lists.targets.end());
  if (classes == 2 && scored.size() == 1) return LiftTwoClasses(n, lists, labels, base);
  if (classes <= 2) return Unsupported("scores for each of ", classes, " classes");
  MSRT_ASSIGN_OR_RETURN(const ValueId scores,
                        Scores(n, lists, static_cast<int64_t>(classes), 1, base));
  MSRT_ASSIGN_OR_RETURN(
      const ValueId places,
      n.Add("ArgMax", {scores}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}}));
  MSRT_RETURN_IF_ERROR(SetLabels(n, places, labels));
  MSRT_ASSIGN_OR_RETURN(const ValueId out,
                        Transformed(n, scores, n.String("post_transform", "NONE")));
  n.SetOutput(1, out);
  return OkStatus();
}

constexpr LiftRule kTreeLifts[] = {
    {kMlDomain, "TreeEnsemble", LiftTreeEnsemble},
    {kMlDomain, "TreeEnsembleRegressor", LiftRegressor},
    {kMlDomain, "TreeEnsembleClassifier", LiftClassifier},
};

}  // namespace

std::span<const LiftRule> TreeLifts() { return kTreeLifts; }

}  // namespace msrt::onnx_import
