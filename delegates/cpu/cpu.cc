#include "delegates/cpu/cpu.h"

#include "core/base/str_cat.h"
#include "delegates/cpu/rule.h"
#include "delegates/sdk/piece.h"

namespace msrt {
namespace cpu {
namespace {

using sdk::GraphView;
using sdk::Kernel;
using sdk::QueryResult;

const Rule* FindRule(const OpView& op) {
  static constexpr std::span<const Rule> (*kFamilies[])() = {
      AttentionRules,    UnaryRules,         BinaryRules,  BatchNormRules, PoolRules,
      ReductionRules,    NormalizationRules, SoftmaxRules, TransposeRules, MovementRules,
      QuantizationRules, IntegerMatMulRules, CastRules,    GatherRules,    WinogradRules};
  for (const auto family : kFamilies) {
    for (const Rule& rule : family()) {
      if (rule.op == op.op() && rule.domain == op.domain()) return &rule;
    }
  }
  return nullptr;
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
    if (std::string reason = sdk::PieceRefusal(op, kLocalAttrs); !reason.empty())
      return Unsupported("cpu: ", reason);
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
    std::vector<Candidate> candidates;
    for (size_t n = 0; n < graph.node_count(); ++n) {
      const NodeInfo node = graph.node(n);
      candidates.clear();
      const Rule* rule = FindRule(*node.op);
      std::string reason =
          rule == nullptr ? "the cpu delegate has no kernel for this op" : TypeRefusal(node);
      if (reason.empty()) reason = sdk::PieceRefusal(*node.op, kLocalAttrs);
      if (reason.empty()) reason = rule->query(node, &candidates);
      if (!reason.empty()) out->refusals.push_back({static_cast<uint32_t>(n), std::move(reason)});
      for (Candidate& c : candidates) {
        c.node = static_cast<uint32_t>(n);
        out->candidates.push_back(std::move(c));
      }
    }
  }

  Result<std::unique_ptr<Kernel>> Compile(const GraphView& graph, const Candidate& candidate,
                                          const sdk::CompileContext& context) const override {
    const NodeInfo node = graph.node(candidate.node);
    const Rule* rule = FindRule(*node.op);
    if (rule == nullptr)
      return InternalError("cpu: asked to compile ", node.op->op(), ", which it refused");
    if (rule->compile != nullptr) return rule->compile(node, context);
    return std::unique_ptr<Kernel>(std::make_unique<CpuKernel>(*rule, candidate));
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
