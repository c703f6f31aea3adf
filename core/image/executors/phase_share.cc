#include "core/image/executors/phase_share.h"

#include <algorithm>
#include <cstring>

#include "core/comm/comm_op.h"

namespace msrt {
namespace {

// Rows are gathered in pieces of about so many bytes.
constexpr size_t kGatherBytes = size_t{4} << 20;

// A number that is the same on ranks with the same phases, and not 0.
size_t Signature(const PieceRunner& runner, const ImagePlan& plan) {
  std::vector<size_t> numbers{plan.phases.size()};
  for (const PhasePlan& phase : plan.phases) {
    numbers.push_back(phase.phase.targets.size());
    for (const StreamTarget& t : phase.phase.targets) {
      const std::string& name = runner.graph().value(t.value).name;
      numbers.insert(numbers.end(), name.begin(), name.end());
      numbers.push_back(static_cast<size_t>(t.dim + 1));
      for (const int64_t d : runner.type(t.value).dims) numbers.push_back(static_cast<size_t>(d));
    }
  }
  return HashNumbers(numbers);
}

}  // namespace

Result<std::unique_ptr<PhaseShare>> PhaseShare::Create(Communicator* world,
                                                       const PieceRunner& runner,
                                                       const ImagePlan& plan) {
  std::unique_ptr<PhaseShare> share(new PhaseShare(world));
  const uint64_t mine = Signature(runner, plan);
  std::vector<uint64_t> all(static_cast<size_t>(world->size()));
  const std::vector<size_t> bytes(all.size(), sizeof mine);
  MSRT_ASSIGN_OR_RETURN(const CommWorkPtr work, world->AllGather(&mine, all.data(), bytes));
  MSRT_RETURN_IF_ERROR(work->Wait({}));
  if (std::any_of(all.begin(), all.end(), [&](uint64_t other) { return other != mine; }))
    return share;
  for (size_t p = 0; p + 1 < plan.phases.size(); ++p) {
    // A target that is computed at once is computed by every rank, with all that it needs.
    const std::vector<StreamTarget>& targets = plan.phases[p].phase.targets;
    share->shared_.push_back(!targets.empty() &&
                             std::all_of(targets.begin(), targets.end(),
                                         [](const StreamTarget& t) { return t.dim >= 0; }));
  }
  return share;
}

bool PhaseShare::IsWanted(const PieceRunner& runner, const StreamPhase& phase,
                          std::span<const ValueBox> boxes) const {
  return std::any_of(phase.targets.begin(), phase.targets.end(), [&](const StreamTarget& t) {
    const Interval rows = RowsOfRank(RowsOf(runner, t), world_.rank());
    return std::any_of(boxes.begin(), boxes.end(), [&](const ValueBox& b) {
      return b.value == t.value && !Intersect(b.box[t.dim], rows).empty();
    });
  });
}

Status PhaseShare::Gather(const PieceRunner& runner, const StreamPhase& phase,
                          const std::map<uint32_t, BoxMemory>& stored) {
  for (const StreamTarget& t : phase.targets)
    MSRT_RETURN_IF_ERROR(
        GatherTarget(t, runner.type(t.value).dims, stored.at(IndexOf(t.value)).View()));
  return OkStatus();
}

// The memory is dense: `outer` times all rows of `inner` bytes.
Status PhaseShare::GatherTarget(const StreamTarget& target, const Dims& dims,
                                const PieceMemory& whole) {
  size_t outer = 1, inner = BytesOf(whole.memory.dtype, 1);
  for (int d = 0; d < target.dim; ++d) outer *= static_cast<size_t>(dims[d]);
  for (int d = target.dim + 1; d < dims.rank(); ++d) inner *= static_cast<size_t>(dims[d]);
  const int64_t rows = dims[target.dim];
  const size_t plane = static_cast<size_t>(rows) * inner;
  if (outer == 0 || plane == 0) return OkStatus();
  const size_t at_once = std::clamp<size_t>(kGatherBytes / plane, 1, outer);
  std::vector<std::byte> sent, received;
  for (size_t begin = 0; begin < outer; begin += at_once) {
    const size_t count = std::min(at_once, outer - begin);
    std::byte* const planes = whole.memory.As<std::byte>() + begin * plane;
    std::vector<size_t> bytes;
    for (int r = 0; r < world_.size(); ++r)
      bytes.push_back(count * static_cast<size_t>(RowsOfRank(rows, r).size()) * inner);
    const Interval own = RowsOfRank(rows, world_.rank());
    const size_t own_bytes = static_cast<size_t>(own.size()) * inner;
    sent.resize(count * own_bytes);
    received.resize(count * plane);
    for (size_t i = 0; i < count && own_bytes != 0; ++i)
      std::memcpy(sent.data() + i * own_bytes,
                  planes + i * plane + static_cast<size_t>(own.begin) * inner, own_bytes);
    MSRT_ASSIGN_OR_RETURN(const CommWorkPtr work,
                          world_.AllGather(sent.data(), received.data(), bytes));
    MSRT_RETURN_IF_ERROR(work->Wait({}));
    const std::byte* from = received.data();
    for (int r = 0; r < world_.size(); ++r) {
      const Interval part = RowsOfRank(rows, r);
      const size_t part_bytes = static_cast<size_t>(part.size()) * inner;
      for (size_t i = 0; i < count && part_bytes != 0; ++i, from += part_bytes)
        std::memcpy(planes + i * plane + static_cast<size_t>(part.begin) * inner, from, part_bytes);
    }
  }
  return OkStatus();
}

}  // namespace msrt
