#include "delegates/cpu/cpu.h"

#include "core/abi/msrt_plugin.h"
#include "core/base/str_cat.h"
#include "delegates/cpu/rule.h"
#include "delegates/sdk/piece.h"
#include "delegates/sdk/rounded.h"

namespace msrt {
namespace cpu {
namespace {

using sdk::GraphView;
using sdk::Kernel;
using sdk::QueryResult;

// Every rule, in one list: a candidate's tag has its rule's number in the high half.
const std::vector<const Rule*>& AllRules() {
  static const std::vector<const Rule*> rules = [] {
    static constexpr std::span<const Rule> (*kFamilies[])() = {AttentionRules,
                                                               UnaryRules,
                                                               BinaryRules,
                                                               BatchNormRules,
                                                               PoolRules,
                                                               ReductionRules,
                                                               NormalizationRules,
                                                               SoftmaxRules,
                                                               TransposeRules,
                                                               MovementRules,
                                                               QuantizationRules,
                                                               IntegerMatMulRules,
                                                               CastRules,
                                                               GatherRules,
                                                               WinogradRules,
                                                               ChainConvRules,
                                                               ChainMatMulRules,
                                                               ChainWeightGradRules,
                                                               ResizeRules,
                                                               BatchNormTrainingRules,
                                                               LayerNormGradRules,
                                                               PoolGradRules,
                                                               ActivationGradRules,
                                                               ScatterRules,
                                                               TrainingOptimizerRules,
                                                               ChannelSumsRules};
    std::vector<const Rule*> all;
    for (const auto family : kFamilies) {
      for (const Rule& rule : family()) all.push_back(&rule);
    }
    return all;
  }();
  return rules;
}

// The local attributes that kernels read; a convolution's only where they change nothing that is
// packed.
constexpr std::string_view kLocalAttrs[] = {"row_offset", "divisor", "partial"};

std::string TypeRefusal(const NodeInfo& node) {
  const auto is_open = [](const Type& declared, const Type& typical) {
    return !declared.is_tensor() || !declared.rank_known || !typical.concrete();
  };
  constexpr const char* kOpen = "the rank or typical shape of a tensor is not known";
  for (size_t i = 0; i < node.op->input_count(); ++i) {
    if (node.op->has_input(i) && is_open(node.op->input(i), node.typical->input(i))) return kOpen;
  }
  for (size_t o = 0; o < node.op->output_count(); ++o) {
    if (node.op->has_output(o) && is_open(node.op->output(o), node.typical->output(o)))
      return kOpen;
  }
  return {};
}

class CpuKernel final : public Kernel {
 public:
  CpuKernel(const Rule& rule, Candidate candidate)
      : rule_(rule), candidate_(std::move(candidate)) {}
  Result<std::unique_ptr<BoundKernel>> Bind(const OpView& op) override {
    const std::string reason = rule_.takes_pieces ? "" : sdk::PieceRefusal(op, kLocalAttrs);
    if (!reason.empty()) return Unsupported("cpu: ", reason);
    return rule_.bind(op, candidate_);
  }

 private:
  const Rule& rule_;
  const Candidate candidate_;
};

class CpuDelegate final : public sdk::Delegate {
 public:
  const char* name() const override { return "cpu"; }

  void Query(const GraphView& graph, QueryResult* out) const override {
    for (size_t n = 0; n < graph.node_count(); ++n) {
      const NodeInfo node = graph.node(n);
      const size_t before = out->candidates.size();
      std::string reason = TypeRefusal(node);
      if (reason.empty()) reason = Offer(node, static_cast<uint32_t>(n), out);
      if (out->candidates.size() == before)
        out->refusals.push_back({static_cast<uint32_t>(n), std::move(reason)});
    }
  }

  Result<std::unique_ptr<Kernel>> Compile(const GraphView& graph, const Candidate& candidate,
                                          const sdk::CompileContext& context) const override {
    const Rule& rule = *AllRules()[candidate.tag >> 32];
    if (rule.compile != nullptr) return rule.compile(graph.node(candidate.node), context);
    return std::unique_ptr<Kernel>(std::make_unique<CpuKernel>(rule, candidate));
  }

 private:
  // Adds what the rules of the op offer for the node; returns the reasons of those that do not.
  static std::string Offer(const NodeInfo& node, uint32_t n, QueryResult* out) {
    std::vector<Candidate> candidates;
    std::string reasons;
    const std::vector<const Rule*>& rules = AllRules();
    for (size_t r = 0; r < rules.size(); ++r) {
      const Rule& rule = *rules[r];
      if (rule.op != node.op->op() || rule.domain != node.op->domain()) continue;
      std::string reason = rule.takes_pieces ? "" : sdk::PieceRefusal(*node.op, kLocalAttrs);
      if (reason.empty()) reason = rule.query(node, &candidates);
      if (!reason.empty()) StrAppend(&reasons, reasons.empty() ? "" : "; ", reason);
      for (Candidate& c : candidates) {
        c.node = n;
        c.tag = static_cast<uint64_t>(r) << 32 | (c.tag & UINT32_MAX);
        out->candidates.push_back(std::move(c));
      }
      candidates.clear();
    }
    return reasons.empty() ? "the cpu delegate has no kernel for this op" : reasons;
  }
};

}  // namespace

double PassSeconds(const NodeInfo& node, double elements, double nanoseconds, double bytes) {
  // Nanoseconds are counted on a core of this many operations a second; a faster machine is faster
  // in proportion.
  constexpr double kFlopsPerCore = 90e9;
  const double compute =
      elements * nanoseconds * 1e-9 * kFlopsPerCore / node.machine.flops_per_second;
  return kLaunchSeconds + std::max(compute, bytes / node.machine.bytes_per_second);
}

std::string ArithmeticOfLoops() { return StrCat("cpu ", LoopsHere().name); }

std::string ArithmeticOf(const OpView& op) {
  return sdk::IsRounded(op) ? MSRT_ARITHMETIC_ROUNDED : ArithmeticOfLoops();
}

Candidate PlainCandidate(const NodeInfo& node, double seconds, std::string_view algorithm) {
  Candidate c;
  c.input_layouts.assign(node.op->input_count(), Layout::kPlain);
  c.output_layouts.assign(node.op->output_count(), Layout::kPlain);
  c.seconds = seconds;
  c.algorithm = algorithm;
  return c;
}

}  // namespace cpu

std::unique_ptr<sdk::Delegate> MakeCpuDelegate() { return std::make_unique<cpu::CpuDelegate>(); }

}  // namespace msrt
