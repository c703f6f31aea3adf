#include "core/train/boost.h"

#include <iterator>

#include "core/base/units.h"

namespace msrt {
namespace {

constexpr std::string_view kBoostNames[] = {"off", "O1", "O2", "O3"};
constexpr int kFreezingStages = 2;
constexpr int64_t kAccumulation = 2;

std::string PercentText(double part) {
  constexpr double kPercent = 100;
  return StrCat(static_cast<int>(part * kPercent + 0.5), " %");
}

}  // namespace

std::string_view BoostName(Boost boost) { return kBoostNames[static_cast<size_t>(boost)]; }

Result<Boost> ParseBoost(std::string_view text) {
  for (size_t i = 0; i < std::size(kBoostNames); ++i) {
    if (kBoostNames[i] == text) return static_cast<Boost>(i);
  }
  return InvalidArgument("boost '", text, "' must be off, O1, O2 or O3");
}

Result<Precision> ParsePrecision(std::string_view text) {
  if (text == "f32") return Precision::kF32;
  if (text == "mixed") return Precision::kMixed;
  return InvalidArgument("precision '", text, "' must be f32 or mixed");
}

Status ApplyPrecision(Precision precision, const TrainingSettings& settings) {
  if (precision == Precision::kF32) return OkStatus();
  if (settings.fixed_sums || settings.compile->place.exact) {
    return Unsupported(
        "mixed precision rounds products to bf16, which accuracy 'exact' and fixed "
        "sums over the batch forbid; use precision 'f32' and boost 'O1', or "
        "another accuracy and sums in any order");
  }
  settings.compile->place.reduced = true;
  settings.spec->reduced_activations = true;
  return OkStatus();
}

Status ApplyBoost(Boost boost, const TrainingSettings& settings) {
  if (boost == Boost::kOff) {
    settings.compile->passes.disabled = {"all"};
    settings.compile->place.single_nodes = settings.compile->place.plain_layouts = true;
  }
  if (boost == Boost::kO2 || boost == Boost::kO3)
    MSRT_RETURN_IF_ERROR(ApplyPrecision(Precision::kMixed, settings));
  if (boost != Boost::kO3) return OkStatus();
  settings.spec->centralized_gradients = true;
  settings.spec->freezing_stages = kFreezingStages;
  if (settings.spec->accumulation > 1) return OkStatus();
  settings.spec->accumulation = kAccumulation;
  *settings.rate *= static_cast<double>(kAccumulation);
  return OkStatus();
}

std::vector<std::pair<std::string, std::string>> ListChanges(Boost boost,
                                                             const TrainingSettings& settings,
                                                             const SpecReport& report) {
  std::vector<std::pair<std::string, std::string>> changes;
  const TrainingSpec& spec = *settings.spec;
  if (boost == Boost::kOff)
    changes.emplace_back("plain", "no passes, no joined nodes, all tensors in plain order");
  if (settings.compile->place.reduced)
    changes.emplace_back("bf16 products",
                         "matrix products and convolutions round their operands "
                         "to bf16 where a kernel for that is faster");
  if (spec.reduced_activations)
    changes.emplace_back("bf16 activations",
                         StrCat(report.reduced_values, " values are kept for gradients in bf16"));
  if (spec.activations.is_set()) {
    const ActivationMemory& m = report.activations;
    changes.emplace_back("recomputation", StrCat("activations take ", BytesText(m.planned_bytes),
                                                 " instead of ", BytesText(m.kept_bytes), ": ",
                                                 m.blocks, " blocks, ", PercentText(m.recomputed),
                                                 " of the forward pass, are computed again"));
  }
  if (spec.centralized_gradients)
    changes.emplace_back("centralized gradients",
                         StrCat("of ", report.centralized, " matrices and filters"));
  if (boost == Boost::kO3 && spec.accumulation > 1)
    changes.emplace_back(
        "accumulation", StrCat(spec.accumulation,
                               " batches make one update, at a learning rate of ", *settings.rate));
  for (size_t stage = 0; stage < report.frozen.size(); ++stage) {
    const double part =
        static_cast<double>(stage + 1) / static_cast<double>(report.frozen.size() + 1);
    changes.emplace_back("freezing",
                         StrCat("after ", PercentText(part), " of the updates the first ",
                                report.frozen[stage], " parameters stay as they are"));
  }
  return changes;
}

}  // namespace msrt
