// Optimizers of domain msrt in f32: one pass over all parameters at the speed of memory, in blocks
// that threads share, whatever the sizes of the parameters. Sums over a tensor are made of the sums
// of its blocks in their order, so that threads do not change them.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "delegates/cpu/rule.h"

namespace msrt::cpu {
namespace {

constexpr size_t kLead = 4;
constexpr int64_t kUpdateBlock = 8192;

size_t ListsOfUpdate(const OpView& op) {
  const std::string_view name = op.op();
  if (name == "Sgd") return 2;
  return name == "Adam" || name == "AdamW" || name == "Lamb" ? 4 : 3;
}

// Elements [first, first + count) of a tensor of the lists.
struct UpdateBlock {
  size_t tensor;
  int64_t first, count;
};

std::vector<UpdateBlock> BlocksOf(const OpView& op, size_t first_input, size_t tensors) {
  std::vector<UpdateBlock> blocks;
  for (size_t t = 0; t < tensors; ++t) {
    const int64_t elements = op.input(first_input + t).elements();
    for (int64_t at = 0; at < elements; at += kUpdateBlock)
      blocks.push_back({t, at, std::min(kUpdateBlock, elements - at)});
  }
  return blocks;
}

std::string AddUpdateCandidate(const NodeInfo& node, size_t first, size_t gradients,
                               std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  double elements = 0;
  for (size_t i = first; i < op.input_count(); ++i) {
    if (op.input(i).dtype != DType::kF32) return StrCat("elements of type ", op.input(i).dtype);
    elements += static_cast<double>(node.typical->input(i).elements());
  }
  if (std::find(node.outputs.begin(), node.outputs.end(), -1) != node.outputs.end())
    return "a result that is not used";
  Candidate c =
      PlainCandidate(node, PassSeconds(node, elements, 0.1, node.bytes), "vectorised");
  // All lists but the gradients have outputs.
  for (uint32_t output = 0; gradients > 0 && output < op.output_count(); ++output) {
    const size_t input = first + output + (output < gradients ? 0 : gradients);
    c.in_place.emplace_back(static_cast<uint32_t>(input), output);
  }
  c.arithmetic = ArithmeticOfLoops();
  candidates->push_back(std::move(c));
  return {};
}

bool IsNumber(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF64; }

std::string QueryUpdate(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  if (!IsNumber(op.input(0).dtype) || (op.has_input(2) && !IsNumber(op.input(2).dtype)))
    return "a rate or factor in half precision";
  if (op.op() == "RmsProp" && (op.Int("centered") != 0 || op.Float("momentum") != 0))
    return "centered, or with momentum";
  const size_t tensors = (op.input_count() - kLead) / ListsOfUpdate(op);
  return AddUpdateCandidate(node, kLead, tensors, candidates);
}

std::string QueryAverage(const NodeInfo& node, std::vector<Candidate>* candidates) {
  return AddUpdateCandidate(node, 1, (node.op->input_count() - 1) / 2, candidates);
}

std::string QueryGlobalNorm(const NodeInfo& node, std::vector<Candidate>* candidates) {
  return AddUpdateCandidate(node, 0, 0, candidates);
}

double NumberAt(const TensorView& t) {
  switch (t.dtype) {
    case DType::kF32:
      return static_cast<double>(*t.As<float>());
    case DType::kF64:
      return *t.As<double>();
    case DType::kI32:
      return *t.As<int32_t>();
    default:
      return static_cast<double>(*t.As<int64_t>());
  }
}

bool IsSkipped(const TensorView& t) { return t.present() && *t.As<uint8_t>() != 0; }

void CopyLists(const RunArgs& args, size_t first, size_t gradients) {
  for (size_t output = 0; output < args.outputs.size(); ++output) {
    const TensorView& from = args.inputs[first + output + (output < gradients ? 0 : gradients)];
    const TensorView& to = args.outputs[output];
    if (!to.present() || to.data == from.data) continue;
    std::memcpy(to.data, from.data, BytesOf(from.dtype, from.elements()));
  }
}

// In double and chunk by chunk, so that the norm of millions of gradients has the digits of an f64.
// Independent sums let the compiler use vectors.
double SumOfSquares(const float* x, int64_t count) {
  constexpr int64_t kSums = 8, kChunk = 512;
  double total = 0;
  for (int64_t first = 0; first < count; first += kChunk) {
    const int64_t end = std::min(first + kChunk, count);
    double sums[kSums] = {};
    int64_t i = first;
    for (; i + kSums <= end; i += kSums) {
      for (int64_t s = 0; s < kSums; ++s) {
        const double v = x[i + s];
        sums[s] += v * v;
      }
    }
    for (; i < end; ++i) sums[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    for (double s : sums) total += s;
  }
  return total;
}

class BoundUpdate final : public BoundKernel {
 public:
  explicit BoundUpdate(const OpView& op)
      : op_(op.op()),
        lists_(ListsOfUpdate(op)),
        tensors_((op.input_count() - kLead) / lists_),
        blocks_(BlocksOf(op, kLead, tensors_)),
        decays_(op.Floats("weight_decay").begin(), op.Floats("weight_decay").end()),
        factors_(op.Floats("rate_factor").begin(), op.Floats("rate_factor").end()),
        clip_(op.Float("clip") > 0 ? op.Float("clip") : std::numeric_limits<double>::infinity()) {
    if (op_ == "Momentum" || op_ == "Lars") momentum_ = op.Float("momentum");
    if (op_ == "Momentum") {
      dampening_ = op.Float("dampening");
      nesterov_ = op.Int("nesterov") != 0;
    } else if (op_ != "Sgd") {
      epsilon_ = op.Float("epsilon");
    }
    if (op_ == "RmsProp") alpha_ = op.Float("alpha");
    if (op_ == "Adagrad") rate_decay_ = op.Float("rate_decay");
    if (op_ == "Lars") trust_ = op.Float("trust");
    if (lists_ == 4) {
      beta1_ = op.Float("beta1");
      beta2_ = op.Float("beta2");
    }
    if (op_ == "Lamb" || op_ == "Lars")
      adapted_.assign(op.Ints("adapted").begin(), op.Ints("adapted").end());
  }

  Status Run(const RunArgs& args) override {
    if (IsSkipped(args.inputs[3])) return CopyLists(args, kLead, tensors_), OkStatus();
    const UpdateRun common = CommonOf(args);
    if (op_ == "Lamb") return RunLamb(args, common);
    if (op_ == "Lars") return RunLars(args, common);
    const UpdateLoop loop = LoopsHere().update[static_cast<size_t>(Kind())];
    return ForEachBlock(args, [&](size_t b) { loop(RunOf(args, common, blocks_[b])); });
  }

  size_t bytes() const override {
    return blocks_.size() * sizeof(UpdateBlock) +
           (decays_.size() + factors_.size() + adapted_.size()) * sizeof(double);
  }

 private:
  Updating Kind() const {
    if (op_ == "Sgd") return Updating::kSgd;
    if (op_ == "Momentum") return nesterov_ ? Updating::kNesterov : Updating::kMomentum;
    if (op_ == "Adam") return Updating::kAdam;
    return op_ == "AdamW" ? Updating::kAdamW : Updating::kRmsProp;
  }

  template <typename F>
  Status ForEachBlock(const RunArgs& args, F&& body) const {
    return ParallelRanges(args.parallel, static_cast<int64_t>(blocks_.size()), 2,
                          [&](int64_t begin, int64_t end) {
                            for (int64_t b = begin; b < end; ++b) body(static_cast<size_t>(b));
                          });
  }

  // All that does not depend on the tensor. The rate is that of factor 1.
  UpdateRun CommonOf(const RunArgs& args) const {
    const double updates = NumberAt(args.inputs[1]);
    double rate = NumberAt(args.inputs[0]);
    UpdateRun r{};
    r.factor = args.inputs[2].present() ? static_cast<float>(NumberAt(args.inputs[2])) : 1;
    r.clip = static_cast<float>(clip_);
    r.epsilon = static_cast<float>(epsilon_);
    if (op_ == "Momentum") {
      r.keep1 = static_cast<float>(momentum_);
      r.take1 = static_cast<float>(updates == 0 ? 1 : 1 - dampening_);
    } else if (op_ == "RmsProp") {
      r.keep1 = static_cast<float>(alpha_);
      r.take1 = static_cast<float>(1 - alpha_);
    } else if (op_ == "Adagrad") {
      r.keep1 = r.take1 = 1;
      rate /= 1 + updates * rate_decay_;
    } else if (lists_ == 4) {
      r.take1 = static_cast<float>(1 - beta1_);
      r.keep2 = static_cast<float>(beta2_);
      r.take2 = static_cast<float>(1 - beta2_);
      r.correct1 = static_cast<float>(1 / (1 - std::pow(beta1_, updates + 1)));
      r.correct2 = static_cast<float>(1 / std::sqrt(1 - std::pow(beta2_, updates + 1)));
    }
    r.rate = static_cast<float>(rate);
    return r;
  }

  static double ForTensor(const std::vector<double>& list, size_t t, double usual) {
    return list.empty() ? usual : list[list.size() == 1 ? 0 : t];
  }
  bool IsAdapted(size_t t) const {
    return adapted_.empty() || adapted_[adapted_.size() == 1 ? 0 : t] != 0;
  }

  UpdateRun RunOf(const RunArgs& args, const UpdateRun& common, const UpdateBlock& b) const {
    UpdateRun r = common;
    const auto input = [&](size_t list) {
      return args.inputs[kLead + list * tensors_ + b.tensor].As<float>() + b.first;
    };
    r.gradient = input(1);
    for (size_t k = 0; k + 1 < lists_; ++k) {
      r.in[k] = input(k == 0 ? 0 : k + 1);
      r.out[k] = args.outputs[k * tensors_ + b.tensor].As<float>() + b.first;
    }
    r.count = b.count;
    r.rate = static_cast<float>(static_cast<double>(common.rate) *
                                ForTensor(factors_, b.tensor, 1));
    r.decay = static_cast<float>(ForTensor(decays_, b.tensor, 0));
    return r;
  }

  // Adds up two sums of each block, by tensor.
  std::vector<std::array<double, 2>> ByTensor(const double* sums) const {
    std::vector<std::array<double, 2>> totals(tensors_);
    for (size_t b = 0; b < blocks_.size(); ++b) {
      totals[blocks_[b].tensor][0] += sums[2 * b];
      totals[blocks_[b].tensor][1] += sums[2 * b + 1];
    }
    return totals;
  }

  // A parameter whose own norm or that of its update is 0 moves as if it were not adapted.
  Status RunLamb(const RunArgs& args, const UpdateRun& common) const {
    MSRT_ASSIGN_OR_RETURN(void* memory, args.scratch.Get(blocks_.size() * 2 * sizeof(double)));
    auto* sums = static_cast<double*>(memory);
    MSRT_RETURN_IF_ERROR(ForEachBlock(args, [&](size_t b) {
      alignas(64) float direction[kUpdateBlock];
      const UpdateRun run = RunOf(args, common, blocks_[b]);
      LoopsHere().lamb_direction(run, direction);
      sums[2 * b] = SumOfSquares(run.in[0], run.count);
      sums[2 * b + 1] = SumOfSquares(direction, run.count);
    }));
    const auto totals = ByTensor(sums);
    const UpdateLoop step = LoopsHere().update[static_cast<size_t>(Updating::kLambStep)];
    return ForEachBlock(args, [&](size_t b) {
      UpdateRun run = RunOf(args, common, blocks_[b]);
      const size_t t = blocks_[b].tensor;
      const double weight = std::sqrt(totals[t][0]), update = std::sqrt(totals[t][1]);
      if (IsAdapted(t) && weight > 0 && update > 0)
        run.rate = static_cast<float>(static_cast<double>(run.rate) * weight / update);
      step(run);
    });
  }

  Status RunLars(const RunArgs& args, const UpdateRun& common) const {
    MSRT_ASSIGN_OR_RETURN(void* memory, args.scratch.Get(blocks_.size() * 2 * sizeof(double)));
    auto* sums = static_cast<double*>(memory);
    MSRT_RETURN_IF_ERROR(ForEachBlock(args, [&](size_t b) {
      const UpdateRun run = RunOf(args, common, blocks_[b]);
      sums[2 * b] = SumOfSquares(run.in[0], run.count);
      sums[2 * b + 1] = LimitedSquares(run);
    }));
    const auto totals = ByTensor(sums);
    const UpdateLoop step = LoopsHere().update[static_cast<size_t>(Updating::kMomentum)];
    return ForEachBlock(args, [&](size_t b) {
      UpdateRun run = RunOf(args, common, blocks_[b]);
      const size_t t = blocks_[b].tensor;
      const double weight = std::sqrt(totals[t][0]), gradient = std::sqrt(totals[t][1]);
      run.keep1 = static_cast<float>(momentum_);
      run.take1 = 1;
      if (IsAdapted(t) && weight > 0 && gradient > 0) {
        run.take1 = static_cast<float>(
            trust_ * weight /
            (gradient + static_cast<double>(run.decay) * weight + epsilon_));
      }
      step(run);
    });
  }

  // The squares of gradients after their factor and limits.
  static double LimitedSquares(const UpdateRun& run) {
    if (std::isinf(run.clip)) {
      const double factor = static_cast<double>(run.factor);
      return SumOfSquares(run.gradient, run.count) * factor * factor;
    }
    double sum = 0;
    for (int64_t i = 0; i < run.count; ++i) {
      const float g = std::min(std::max(run.gradient[i] * run.factor, -run.clip), run.clip);
      sum += static_cast<double>(g) * static_cast<double>(g);
    }
    return sum;
  }

  const std::string op_;
  const size_t lists_, tensors_;
  const std::vector<UpdateBlock> blocks_;
  const std::vector<double> decays_, factors_;
  const double clip_;
  std::vector<int64_t> adapted_;
  double momentum_ = 0, dampening_ = 0, epsilon_ = 0, alpha_ = 0, rate_decay_ = 0, trust_ = 0,
         beta1_ = 0, beta2_ = 0;
  bool nesterov_ = false;
};

class BoundAverage final : public BoundKernel {
 public:
  explicit BoundAverage(const OpView& op)
      : tensors_((op.input_count() - 1) / 2),
        blocks_(BlocksOf(op, 1, tensors_)),
        part_(static_cast<float>(1 - op.Float("decay"))) {}

  Status Run(const RunArgs& args) override {
    if (IsSkipped(args.inputs[0])) return CopyLists(args, 1, tensors_), OkStatus();
    const UpdateLoop loop = LoopsHere().update[static_cast<size_t>(Updating::kAverage)];
    return ParallelRanges(args.parallel, static_cast<int64_t>(blocks_.size()), 2,
                          [&](int64_t begin, int64_t end) {
                            for (int64_t i = begin; i < end; ++i) {
                              const UpdateBlock& b = blocks_[static_cast<size_t>(i)];
                              UpdateRun r{};
                              r.in[0] = args.inputs[1 + b.tensor].As<float>() + b.first;
                              r.gradient =
                                  args.inputs[1 + tensors_ + b.tensor].As<float>() + b.first;
                              r.out[0] = args.outputs[b.tensor].As<float>() + b.first;
                              r.count = b.count;
                              r.take1 = part_;
                              loop(r);
                            }
                          });
  }

 private:
  const size_t tensors_;
  const std::vector<UpdateBlock> blocks_;
  const float part_;
};

class BoundGlobalNorm final : public BoundKernel {
 public:
  explicit BoundGlobalNorm(const OpView& op) : blocks_(BlocksOf(op, 0, op.input_count())) {}

  Status Run(const RunArgs& args) override {
    MSRT_ASSIGN_OR_RETURN(void* memory, args.scratch.Get(blocks_.size() * sizeof(double)));
    auto* sums = static_cast<double*>(memory);
    MSRT_RETURN_IF_ERROR(
        ParallelRanges(args.parallel, static_cast<int64_t>(blocks_.size()), 4,
                       [&](int64_t begin, int64_t end) {
                         for (int64_t i = begin; i < end; ++i) {
                           const UpdateBlock& b = blocks_[static_cast<size_t>(i)];
                           sums[i] = SumOfSquares(args.inputs[b.tensor].As<float>() + b.first,
                                                  b.count);
                         }
                       }));
    double total = 0;
    for (size_t b = 0; b < blocks_.size(); ++b) total += sums[b];
    *args.outputs[0].As<double>() = std::sqrt(total);
    return OkStatus();
  }

 private:
  const std::vector<UpdateBlock> blocks_;
};

template <typename Bound>
Result<std::unique_ptr<BoundKernel>> BindAs(const OpView& op, const Candidate&) {
  return std::unique_ptr<BoundKernel>(std::make_unique<Bound>(op));
}

constexpr Rule kTrainingOptimizerRules[] = {
    {"msrt", "Sgd", QueryUpdate, BindAs<BoundUpdate>},
    {"msrt", "Momentum", QueryUpdate, BindAs<BoundUpdate>},
    {"msrt", "RmsProp", QueryUpdate, BindAs<BoundUpdate>},
    {"msrt", "Adagrad", QueryUpdate, BindAs<BoundUpdate>},
    {"msrt", "Adam", QueryUpdate, BindAs<BoundUpdate>},
    {"msrt", "AdamW", QueryUpdate, BindAs<BoundUpdate>},
    {"msrt", "Lamb", QueryUpdate, BindAs<BoundUpdate>},
    {"msrt", "Lars", QueryUpdate, BindAs<BoundUpdate>},
    {"msrt", "GlobalNorm", QueryGlobalNorm, BindAs<BoundGlobalNorm>},
    {"msrt", "MovingAverage", QueryAverage, BindAs<BoundAverage>},
};

}  // namespace

std::span<const Rule> TrainingOptimizerRules() { return kTrainingOptimizerRules; }

}  // namespace msrt::cpu
