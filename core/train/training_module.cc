#include "core/train/training_module.h"

#include <algorithm>

#include "core/autodiff/gradients.h"
#include "core/passes/thread_steps.h"
#include "core/train/batch_norm.h"
#include "core/train/inner_parameters.h"
#include "core/train/losses.h"
#include "core/train/optimizer_node.h"
#include "core/train/parameter_uses.h"
#include "ops/builder.h"
#include "ops/validate.h"

namespace msrt {
namespace {

// What the gradients of one step are multiplied with, and whether the step is skipped.
struct GradientControl {
  ValueId factor = kNoValue, skip = kNoValue, norm = kNoValue;
  ValueId scale = kNoValue;  // the loss scale; kNoValue: 1
};

class TrainingModuleBuilder {
 public:
  TrainingModuleBuilder(Module model, const TrainingSpec& spec, const OpSet* ops,
                        SpecReport* report)
      : module_(std::move(model)), spec_(spec), ops_(ops), report_(*report) {}

  Result<Module> Run() {
    MSRT_RETURN_IF_ERROR(Check());
    MSRT_RETURN_IF_ERROR(Validate(&module_, ops_));
    std::vector<ValueId> passed_on;
    if (module_.graphs.size() > 1) {
      module_.entries.resize(1);
      MSRT_ASSIGN_OR_RETURN(passed_on, MoveInnerParameters(&module_, ops_));
    }
    MSRT_ASSIGN_OR_RETURN(parameters_, FindParameters(module_.main(), spec_, passed_on));
    MSRT_RETURN_IF_ERROR(CheckInnerNorms(module_, parameters_));
    MSRT_RETURN_IF_ERROR(AddSlots());
    const uint32_t eval = module_.entries[0];
    FindFrozen(module_.graphs[eval]);
    const uint32_t test = CopyOf(eval, kTestEntry);
    std::vector<uint32_t> train, accumulate;  // by stage of freezing
    for (int stage = 0; stage <= spec_.freezing_stages; ++stage) {
      train.push_back(CopyOf(eval, EntryOfStage(kTrainEntry, stage)));
      if (spec_.accumulation > 1)
        accumulate.push_back(CopyOf(eval, EntryOfStage(kAccumulateEntry, stage)));
    }
    module_.graphs[eval].name = kEvalEntry;
    module_.entries = {train[0], eval, test};
    module_.entries.insert(module_.entries.end(), accumulate.begin(), accumulate.end());
    module_.entries.insert(module_.entries.end(), train.begin() + 1, train.end());
    for (size_t stage = 0; stage < train.size(); ++stage)
      MSRT_RETURN_IF_ERROR(BuildTrain(train[stage], trained_[stage]));
    MSRT_RETURN_IF_ERROR(ReadParameters(eval, EvalSlots()).status());
    MSRT_RETURN_IF_ERROR(ReadStatistics(eval));
    MSRT_RETURN_IF_ERROR(BuildTest(test));
    for (size_t stage = 0; stage < accumulate.size(); ++stage)
      MSRT_RETURN_IF_ERROR(BuildAccumulate(accumulate[stage], trained_[stage]));
    for (uint32_t entry : module_.entries) module_.graphs[entry].CompactValues();
    module_.metadata.emplace_back(kTrainingKey, module_.name);
    module_.metadata.emplace_back(kAccumulationKey, std::to_string(spec_.accumulation));
    if (spec_.freezing_stages > 0)
      module_.metadata.emplace_back(kFreezingKey, std::to_string(spec_.freezing_stages));
    MSRT_RETURN_IF_ERROR(Validate(&module_, ops_));
    return std::move(module_);
  }

 private:
  Status Check() const {
    if (module_.entries.empty()) return InvalidArgument("the model has no entry");
    for (const auto& [key, value] : module_.metadata) {
      if (key == kTrainingKey)
        return InvalidArgument("model '", value, "' is already in its training form");
    }
    if (spec_.output >= module_.main().outputs.size()) {
      return InvalidArgument("the loss uses output ", spec_.output, ", but the model has ",
                             module_.main().outputs.size(), " outputs");
    }
    if (spec_.accumulation < 1)
      return InvalidArgument("accumulation = ", spec_.accumulation, ", must be at least 1");
    if (!(spec_.clip_norm >= 0) || !(spec_.clip_value >= 0))
      return InvalidArgument("limits of gradients must be at least 0; 0 means no limit");
    if (!(spec_.average_decay >= 0) || spec_.average_decay >= 1)
      return InvalidArgument("average_decay = ", spec_.average_decay,
                             ", must be at least 0 and below 1");
    constexpr int kMaxStages = 16;
    if (spec_.freezing_stages < 0 || spec_.freezing_stages > kMaxStages)
      return InvalidArgument("freezing_stages = ", spec_.freezing_stages,
                             ", must be between 0 and ", kMaxStages);
    if (!(spec_.loss_scale.initial > 0))
      return InvalidArgument("loss scale ", spec_.loss_scale.initial, " must be positive");
    return OkStatus();
  }

  // Which parameters are trained in each stage of freezing, as positions.
  void FindFrozen(const Graph& graph) {
    std::vector<ValueId> constants;
    for (const Parameter& p : parameters_) constants.push_back(p.constant);
    const std::vector<size_t> order = OrderOfUse(graph, constants);
    const auto stages = static_cast<size_t>(spec_.freezing_stages);
    for (size_t stage = 0; stage <= stages; ++stage) {
      const size_t frozen = stage == 0 ? 0 : order.size() * stage / (2 * stages);
      if (stage > 0) report_.frozen.push_back(frozen);
      std::vector<size_t>& trained =
          trained_.emplace_back(order.begin() + static_cast<ptrdiff_t>(frozen), order.end());
      std::sort(trained.begin(), trained.end());
    }
  }

  template <typename T>
  static std::vector<T> Selected(const std::vector<T>& all, const std::vector<size_t>& positions) {
    std::vector<T> selected;
    for (size_t p : positions) selected.push_back(all[p]);
    return selected;
  }

  GradBuilder BuilderOf(uint32_t graph, std::string_view name) {
    Node none;
    none.name = name;
    return GradBuilder(&module_.graphs[graph], none, {}, {}, ops_);
  }

  uint32_t CopyOf(uint32_t graph, std::string_view name) {
    Graph copy = module_.graphs[graph];
    copy.name = name;
    module_.graphs.push_back(std::move(copy));
    return static_cast<uint32_t>(module_.graphs.size() - 1);
  }

  // Whether a graph of the module has random ops.
  bool Draws() const {
    for (const Graph& graph : module_.graphs) {
      for (const Node& node : graph.nodes) {
        if (node.def != nullptr && node.def->effect == Effect::kRandom) return true;
      }
    }
    return false;
  }

  // Makes the next step draw other numbers.
  Status CountStep(uint32_t g) {
    if (step_ < 0) return OkStatus();
    GradBuilder b = BuilderOf(g, kStepSlot);
    WriteSlot(step_, b.Plus(ReadSlot(module_, step_, &b), 1.0), &b);
    return b.status();
  }

  // Layers that behave differently in training.
  void SwitchToTraining(uint32_t g) {
    for (Node& node : module_.graphs[g].nodes) {
      if (node.domain.empty() && node.op == "Dropout") node.attrs.Set("training", int64_t{1});
    }
  }

  Status AddSlots() {
    for (const Parameter& p : parameters_) {
      const ConstTensor& initial = *module_.main().value(p.constant).constant;
      if (initial.dtype != DType::kF32 && initial.dtype != DType::kF64)
        return Unsupported("parameter '", p.name, "' is ", initial.type(),
                           "; parameters must be f32 or f64");
      slots_.push_back(AddSlot(&module_, p.name, initial, StateRole::kParameter));
      if (initial.dtype == DType::kF64) float_type_ = DType::kF64;
    }
    for (size_t p = 0; p < parameters_.size(); ++p) {
      const ConstTensor initial = module_.states[static_cast<size_t>(slots_[p])].initial;
      if (spec_.average_decay > 0) {
        averages_.push_back(
            AddSlot(&module_, StrCat(parameters_[p].name, ".ema"), initial, StateRole::kOptimizer));
      }
      if (spec_.accumulation > 1) {
        MSRT_ASSIGN_OR_RETURN(ConstTensor zeros, FilledConstant(initial.dtype, initial.dims, 0));
        sums_.push_back(AddSlot(&module_, StrCat(parameters_[p].name, ".gradient"),
                                std::move(zeros), StateRole::kOptimizer));
      }
    }
    MSRT_ASSIGN_OR_RETURN(norms_, AddStatistics(&module_, parameters_));
    MSRT_ASSIGN_OR_RETURN(ConstTensor zero, FilledConstant(DType::kI64, {}, 0));
    updates_ = AddSlot(&module_, std::string(kUpdatesSlot), zero, StateRole::kOptimizer);
    // The steps of random ops are a part of checkpoints, so training counts them itself.
    if (Draws()) step_ = AddSlot(&module_, std::string(kStepSlot), zero, StateRole::kOptimizer);
    if (!spec_.loss_scale.dynamic) return OkStatus();
    MSRT_ASSIGN_OR_RETURN(ConstTensor scale,
                          FilledConstant(float_type_, {}, spec_.loss_scale.initial));
    scale_ =
        AddSlot(&module_, std::string(kLossScaleSlot), std::move(scale), StateRole::kOptimizer);
    growth_ = AddSlot(&module_, std::string(kGrowthSlot), zero, StateRole::kOptimizer);
    return OkStatus();
  }

  const std::vector<int64_t>& EvalSlots() const { return averages_.empty() ? slots_ : averages_; }

  // Replaces the parameters of a graph by reads of slots, before all other nodes. Returns them.
  Result<std::vector<ValueId>> ReadParameters(uint32_t g, const std::vector<int64_t>& slots) {
    Graph& graph = module_.graphs[g];
    std::vector<Node> nodes = std::move(graph.nodes);
    graph.nodes.clear();
    GradBuilder builder = BuilderOf(g, "parameter");
    std::vector<ValueId> reads;
    for (size_t p = 0; p < slots.size(); ++p) {
      reads.push_back(ReadSlot(module_, slots[p], &builder));
      if (!builder.ok()) return builder.status();
      graph.value(reads[p]).name = graph.nodes.back().name = parameters_[p].name;
    }
    graph.nodes.insert(graph.nodes.end(), std::make_move_iterator(nodes.begin()),
                       std::make_move_iterator(nodes.end()));
    for (size_t p = 0; p < slots.size(); ++p) graph.ReplaceUses(parameters_[p].constant, reads[p]);
    return reads;
  }

  // The same for the running statistics, in the entries that do not train.
  Status ReadStatistics(uint32_t g) {
    Graph& graph = module_.graphs[g];
    std::vector<Node> nodes = std::move(graph.nodes);
    graph.nodes.clear();
    GradBuilder builder = BuilderOf(g, "statistic");
    std::vector<std::pair<ValueId, ValueId>> replaced;
    for (const TrainedNorm& norm : norms_) {
      for (const Statistic& statistic : {norm.mean, norm.variance}) {
        const ValueId read = ReadSlot(module_, statistic.slot, &builder);
        if (!builder.ok()) return builder.status();
        graph.value(read).name = graph.nodes.back().name =
            module_.states[static_cast<size_t>(statistic.slot)].name;
        replaced.emplace_back(statistic.constant, read);
      }
    }
    graph.nodes.insert(graph.nodes.end(), std::make_move_iterator(nodes.begin()),
                       std::make_move_iterator(nodes.end()));
    for (const auto& [constant, read] : replaced) graph.ReplaceUses(constant, read);
    return OkStatus();
  }

  // Running statistics follow those of the batch.
  Status FollowStatistics(uint32_t g, const BatchStatistics& batch, ValueId skip) {
    GradBuilder b = BuilderOf(g, "statistics");
    UpdateStatistics(module_, norms_, batch, skip, &b);
    return b.status();
  }

  // ---- the loss ---------------------------------------------------------------------------------

  struct Loss {
    ValueId value = kNoValue, correct = kNoValue;  // correct: kNoValue if there are no classes
  };

  // The value that the loss compares: the model's output, or the scores that its last Softmax makes
  // probabilities of.
  ValueId ScoresOf(const Graph& graph) const {
    const ValueId output = graph.outputs[spec_.output];
    const int32_t producer = graph.Producers()[IndexOf(output)];
    if (spec_.loss.kind != LossKind::kCrossEntropy || producer < 0) return output;
    const Node& node = graph.nodes[static_cast<size_t>(producer)];
    const bool softmax = node.domain.empty() && (node.op == "Softmax" || node.op == "LogSoftmax");
    return softmax ? node.inputs[0] : output;
  }

  // Adds the input "target" with the type that the loss compares with `scores`.
  ValueId AddTarget(ValueId scores, Graph* graph) const {
    Type type = graph->value(scores).type;
    if (HasClasses()) {
      type.dtype = DType::kI64;
      type.dims.erase(1);
    }
    return graph->AddInput("target", type);
  }
  bool HasClasses() const {
    return spec_.loss.kind == LossKind::kCrossEntropy && !spec_.target_is_distribution;
  }

  Result<Loss> AddModelLoss(uint32_t g) {
    Graph& graph = module_.graphs[g];
    const ValueId scores = ScoresOf(graph);
    const Type type = graph.value(scores).type;
    if (!type.is_tensor() || !IsFloat(type.dtype) || !type.rank_known ||
        (HasClasses() && type.rank() < 2)) {
      return Unsupported("output '", graph.value(scores).name, "' is ", type,
                         "; the loss needs a tensor of floats with a known rank, and scores of "
                         "classes are [batch, classes, ...]");
    }
    const ValueId target = AddTarget(scores, &graph);
    LossSpec spec = spec_.loss;
    spec.reduction = LossReduction::kMean;
    spec.class_weights = kNoValue;
    if (!spec_.class_weights.empty()) {
      MSRT_ASSIGN_OR_RETURN(spec.class_weights, AddClassWeights(type.dtype, &graph));
    }
    GraphBuilder builder(&graph, ops_);
    Loss loss;
    MSRT_ASSIGN_OR_RETURN(loss.value, AddLoss(builder, spec, scores, target));
    if (!HasClasses()) return loss;
    GradBuilder b = BuilderOf(g, "correct");
    const ValueId likeliest =
        b.Add("ArgMax", {scores}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
    const ValueId hits =
        b.Add("Cast", {b.Add("Equal", {likeliest, target})}, {{"to", DType::kI64}});
    loss.correct = b.Add("ReduceSum", {hits}, {{"keepdims", int64_t{0}}});
    MSRT_RETURN_IF_ERROR(b.status());
    return loss;
  }

  Result<ValueId> AddClassWeights(DType dtype, Graph* graph) const {
    const auto count = static_cast<int64_t>(spec_.class_weights.size());
    if (dtype == DType::kF64) {
      return graph->AddConstant("class_weights",
                                ConstTensor::Of<double>(dtype, {count}, spec_.class_weights));
    }
    if (dtype != DType::kF32)
      return Unsupported("class weights need scores of type f32 or f64, not ", dtype);
    const std::vector<float> floats(spec_.class_weights.begin(), spec_.class_weights.end());
    return graph->AddConstant("class_weights", ConstTensor::Floats({count}, floats));
  }

  void NameOutput(Graph* graph, ValueId value, std::string_view name) {
    if (value == kNoValue) return;
    graph->value(value).name = name;
    graph->outputs.push_back(value);
  }

  // ---- the step ---------------------------------------------------------------------------------

  // A number that the step computes with, in double, since the norm is.
  ValueId Number(uint32_t graph, double number) {
    return module_.graphs[graph].AddConstant(
        "number", ConstTensor::Of<double>(DType::kF64, {}, std::span<const double>(&number, 1)));
  }

  // The gradients of parameters. `model_nodes`: the nodes before it are the model's, those after it
  // the loss.
  Result<std::vector<ValueId>> Gradients(uint32_t g, size_t model_nodes, ValueId loss,
                                         ValueId scale, const std::vector<ValueId>& reads) {
    GradientRequest request{{loss}, {}, reads};
    if (scale != kNoValue) {
      GradBuilder b = BuilderOf(g, "loss_scale");
      request.seeds = {b.CastTo(scale, loss)};
      MSRT_RETURN_IF_ERROR(b.status());
    }
    const size_t forward_nodes = module_.graphs[g].nodes.size();
    MSRT_ASSIGN_OR_RETURN(std::vector<ValueId> gradients, AddGradients(&module_, g, request, ops_));
    Graph& graph = module_.graphs[g];
    if (spec_.activations.is_set()) {
      MSRT_ASSIGN_OR_RETURN(const ActivationMemory memory,
                            LimitActivations(spec_.activations, forward_nodes, &graph));
      if (graph.name == kTrainEntry) report_.activations = memory;
    }
    if (spec_.reduced_activations) {
      MSRT_ASSIGN_OR_RETURN(const size_t values,
                            StoreActivationsReduced(model_nodes, forward_nodes, &graph));
      if (graph.name == kTrainEntry) report_.reduced_values = values;
    }
    return gradients;
  }

  // Subtracts from the gradient of a matrix or filter the mean of each output's part.
  Status Centralize(uint32_t g, const std::vector<ValueId>& reads,
                    std::vector<ValueId>* gradients) {
    if (!spec_.centralized_gradients) return OkStatus();
    const std::vector<std::vector<int64_t>> axes = SummedAxes(module_.graphs[g], reads);
    GradBuilder b = BuilderOf(g, "centralized");
    size_t count = 0;
    for (size_t p = 0; p < reads.size(); ++p) {
      if (axes[p].empty()) continue;
      const ValueId mean = b.Add("ReduceMean", {(*gradients)[p]}, {{"axes", axes[p]}});
      (*gradients)[p] = b.Minus((*gradients)[p], mean);
      ++count;
    }
    report_.centralized = std::max(report_.centralized, count);
    return b.status();
  }

  // The loss scale of a step, as a value of the graph; kNoValue: 1.
  Result<ValueId> Scale(uint32_t g) {
    if (spec_.loss_scale.dynamic) {
      GradBuilder b = BuilderOf(g, kLossScaleSlot);
      const ValueId scale = ReadSlot(module_, scale_, &b);
      MSRT_RETURN_IF_ERROR(b.status());
      return scale;
    }
    return spec_.loss_scale.initial == 1 ? kNoValue : Number(g, spec_.loss_scale.initial);
  }

  // Adds the factor of the gradients: the mean over micro-batches, 1 over the loss scale, and the
  // limit of the norm as torch.nn.utils.clip_grad_norm_ applies it.
  Result<GradientControl> Control(uint32_t g, ValueId scale,
                                  const std::vector<ValueId>& gradients) {
    constexpr double kSmall = 1e-6;
    GradientControl control;
    control.scale = scale;
    const double batches = static_cast<double>(spec_.accumulation);
    const bool needs_norm = spec_.clip_norm > 0 || spec_.loss_scale.dynamic;
    if (scale == kNoValue && batches == 1 && !needs_norm) return control;
    const ValueId count = Number(g, 1 / batches), one = Number(g, 1),
                  limit = Number(g, spec_.clip_norm), small = Number(g, kSmall);
    GradBuilder b = BuilderOf(g, "gradients");
    control.factor = scale == kNoValue ? count : b.Over(count, b.CastTo(scale, count));
    if (needs_norm) {
      const ValueId norm = b.AddMsrt("GlobalNorm", gradients);
      control.norm = b.Times(norm, control.factor);
    }
    if (spec_.loss_scale.dynamic) {
      control.skip = b.Add("Or", {b.Add("IsNaN", {control.norm}), b.Add("IsInf", {control.norm})});
    }
    if (spec_.clip_norm > 0) {
      const ValueId part = b.Add("Min", {one, b.Over(limit, b.Plus(control.norm, small))});
      control.factor = b.Times(control.factor, part);
    }
    MSRT_RETURN_IF_ERROR(b.status());
    return control;
  }

  // Halves the loss scale after a skipped step, doubles it after enough others.
  Status UpdateScale(uint32_t g, const GradientControl& control) {
    if (!spec_.loss_scale.dynamic) return OkStatus();
    GradBuilder b = BuilderOf(g, kLossScaleSlot);
    const ValueId before = ReadSlot(module_, growth_, &b);
    const ValueId counted = b.Plus(before, 1.0), zero = b.Scalar(0, before);
    const ValueId enough =
        b.Add("GreaterOrEqual",
              {counted, b.Scalar(static_cast<double>(spec_.loss_scale.growth_interval), before)});
    const ValueId count = b.Add("Where", {b.Add("Or", {control.skip, enough}), zero, counted});
    const ValueId grown = b.Times(control.scale, spec_.loss_scale.growth),
                  shrunk = b.Times(control.scale, spec_.loss_scale.backoff);
    const ValueId scale =
        b.Add("Where", {control.skip, shrunk, b.Add("Where", {enough, grown, control.scale})});
    WriteSlot(growth_, count, &b);
    WriteSlot(scale_, scale, &b);
    return b.status();
  }

  // `trained`: positions of the parameters that the step updates.
  Status BuildTrain(uint32_t g, const std::vector<size_t>& trained) {
    SwitchToTraining(g);
    MSRT_ASSIGN_OR_RETURN(const std::vector<ValueId> all_reads, ReadParameters(g, slots_));
    MSRT_ASSIGN_OR_RETURN(const BatchStatistics statistics,
                          SwitchToBatchStatistics(norms_, all_reads.size(), &module_.graphs[g]));
    const std::vector<ValueId> reads = Selected(all_reads, trained);
    const size_t model_nodes = module_.graphs[g].nodes.size();
    MSRT_ASSIGN_OR_RETURN(const Loss loss, AddModelLoss(g));
    const ValueId rate = module_.graphs[g].AddInput("learning_rate", Type::Tensor(float_type_, {}));
    MSRT_ASSIGN_OR_RETURN(const ValueId scale, Scale(g));
    MSRT_ASSIGN_OR_RETURN(std::vector<ValueId> gradients,
                          Gradients(g, model_nodes, loss.value, scale, reads));
    MSRT_RETURN_IF_ERROR(AddSums(g, trained, &gradients));
    MSRT_RETURN_IF_ERROR(Centralize(g, reads, &gradients));
    MSRT_ASSIGN_OR_RETURN(const GradientControl control, Control(g, scale, gradients));
    MSRT_RETURN_IF_ERROR(Update(g, rate, trained, all_reads, gradients, control));
    MSRT_RETURN_IF_ERROR(FollowStatistics(g, statistics, control.skip));
    MSRT_RETURN_IF_ERROR(UpdateScale(g, control));
    MSRT_RETURN_IF_ERROR(CountStep(g));
    Graph& graph = module_.graphs[g];
    graph.outputs.clear();
    NameOutput(&graph, loss.value, "loss");
    NameOutput(&graph, loss.correct, "correct");
    NameOutput(&graph, control.norm, "gradient_norm");
    NameOutput(&graph, control.skip, "skipped");
    return OkStatus();
  }

  // Adds the gradients of the micro-batches before to those of this one, and clears them.
  Status AddSums(uint32_t g, const std::vector<size_t>& trained, std::vector<ValueId>* gradients) {
    if (sums_.empty()) return OkStatus();
    GradBuilder b = BuilderOf(g, "accumulated");
    for (size_t i = 0; i < trained.size(); ++i) {
      const int64_t slot = sums_[trained[i]];
      const ValueId sum = ReadSlot(module_, slot, &b);
      (*gradients)[i] = b.Plus(sum, (*gradients)[i]);
      WriteSlot(slot, b.Zeros(sum), &b);
    }
    return b.status();
  }

  // `gradients` are those of the trained parameters, `reads` are of all.
  Status Update(uint32_t g, ValueId rate, const std::vector<size_t>& trained,
                const std::vector<ValueId>& reads, const std::vector<ValueId>& gradients,
                const GradientControl& control) {
    GradBuilder b = BuilderOf(g, OptimizerName(spec_.optimizer.kind));
    const ValueId updates = ReadSlot(module_, updates_, &b);
    MSRT_ASSIGN_OR_RETURN(
        const std::vector<ValueId> changed,
        AddOptimizer(&module_, spec_, Selected(parameters_, trained),
                     {rate, updates, control.factor, control.skip, Selected(reads, trained),
                      gradients, Selected(slots_, trained)},
                     &b));
    std::vector<ValueId> updated = reads;
    for (size_t i = 0; i < trained.size(); ++i) updated[trained[i]] = changed[i];
    if (!averages_.empty()) {
      std::vector<ValueId> all{control.skip};
      for (int64_t slot : averages_) all.push_back(ReadSlot(module_, slot, &b));
      all.insert(all.end(), updated.begin(), updated.end());
      const std::vector<ValueId> averages =
          b.AddNode("msrt", "MovingAverage", std::move(all), {{"decay", spec_.average_decay}},
                    averages_.size());
      for (size_t p = 0; p < averages.size(); ++p) WriteSlot(averages_[p], averages[p], &b);
    }
    ValueId counted = b.Scalar(1, updates);
    if (control.skip != kNoValue)
      counted = b.Add("Cast", {b.Add("Not", {control.skip})}, {{"to", DType::kI64}});
    WriteSlot(updates_, b.Plus(updates, counted), &b);
    return b.status();
  }

  Status BuildAccumulate(uint32_t g, const std::vector<size_t>& trained) {
    SwitchToTraining(g);
    MSRT_ASSIGN_OR_RETURN(const std::vector<ValueId> reads, ReadParameters(g, slots_));
    MSRT_ASSIGN_OR_RETURN(const BatchStatistics statistics,
                          SwitchToBatchStatistics(norms_, reads.size(), &module_.graphs[g]));
    const size_t model_nodes = module_.graphs[g].nodes.size();
    MSRT_ASSIGN_OR_RETURN(const Loss loss, AddModelLoss(g));
    MSRT_ASSIGN_OR_RETURN(const ValueId scale, Scale(g));
    MSRT_ASSIGN_OR_RETURN(const std::vector<ValueId> gradients,
                          Gradients(g, model_nodes, loss.value, scale, Selected(reads, trained)));
    GradBuilder b = BuilderOf(g, "accumulated");
    for (size_t i = 0; i < trained.size(); ++i) {
      const int64_t slot = sums_[trained[i]];
      const ValueId sum = ReadSlot(module_, slot, &b);
      WriteSlot(slot, b.Plus(sum, gradients[i]), &b);
    }
    MSRT_RETURN_IF_ERROR(b.status());
    MSRT_RETURN_IF_ERROR(FollowStatistics(g, statistics, kNoValue));
    MSRT_RETURN_IF_ERROR(CountStep(g));
    Graph& graph = module_.graphs[g];
    graph.outputs.clear();
    NameOutput(&graph, loss.value, "loss");
    NameOutput(&graph, loss.correct, "correct");
    return OkStatus();
  }

  Status BuildTest(uint32_t g) {
    MSRT_RETURN_IF_ERROR(ReadParameters(g, EvalSlots()).status());
    MSRT_RETURN_IF_ERROR(ReadStatistics(g));
    MSRT_ASSIGN_OR_RETURN(const Loss loss, AddModelLoss(g));
    Graph& graph = module_.graphs[g];
    const std::vector<ValueId> outputs = std::move(graph.outputs);
    graph.outputs.clear();
    NameOutput(&graph, loss.value, "loss");
    NameOutput(&graph, loss.correct, "correct");
    graph.outputs.insert(graph.outputs.end(), outputs.begin(), outputs.end());
    return OkStatus();
  }

  Module module_;
  const TrainingSpec& spec_;
  const OpSet* const ops_;
  SpecReport& report_;
  std::vector<Parameter> parameters_;
  std::vector<TrainedNorm> norms_;
  std::vector<std::vector<size_t>> trained_;      // by stage of freezing: positions of parameters
  std::vector<int64_t> slots_, averages_, sums_;  // by parameter; the last two may be empty
  int64_t updates_ = -1, scale_ = -1, growth_ = -1, step_ = -1;  // -1: there is none
  DType float_type_ = DType::kF32;                               // of the rate and the loss scale
};

}  // namespace

Result<Module> MakeTrainingModule(Module model, const TrainingSpec& spec, const OpSet* ops,
                                  SpecReport* report) {
  SpecReport unused;
  return TrainingModuleBuilder(std::move(model), spec, ops, report == nullptr ? &unused : report)
      .Run();
}

}  // namespace msrt
