#include "core/place/choose_arithmetic.h"

#include <algorithm>
#include <functional>
#include <tuple>

#include "core/abi/msrt_plugin.h"

namespace msrt {
namespace {

// Machine-independent names first, the slow loops of the oracle last.
int RankOf(std::string_view arithmetic) {
  constexpr std::string_view kFirst[] = {MSRT_ARITHMETIC_ROUNDED, MSRT_ARITHMETIC_WINOGRAD4,
                                         MSRT_ARITHMETIC_FMA};
  constexpr int kOwn = std::size(kFirst);
  for (int i = 0; i < kOwn; ++i) {
    if (arithmetic == kFirst[i]) return i;
  }
  return arithmetic == MSRT_ARITHMETIC_REFERENCE ? kOwn + 1 : kOwn;
}

bool IsPreferred(const NamedCandidate& a, const NamedCandidate& b) {
  const auto key = [](const NamedCandidate& c) {
    const Candidate& candidate = *c.candidate;
    return std::make_tuple(RankOf(candidate.arithmetic), c.delegate,
                           std::cref(candidate.arithmetic), std::cref(candidate.nodes));
  };
  return key(a) < key(b);
}

}  // namespace

std::vector<std::string_view> ChooseArithmetic(const std::vector<bool>& on_host,
                                               std::span<const NamedCandidate> candidates) {
  std::vector<NamedCandidate> sorted(candidates.begin(), candidates.end());
  std::stable_sort(sorted.begin(), sorted.end(), IsPreferred);
  std::vector<std::string_view> names(on_host.size());
  for (const NamedCandidate& c : sorted) {
    if (c.candidate->nodes.size() == 1 && names[c.candidate->nodes[0]].empty())
      names[c.candidate->nodes[0]] = c.candidate->arithmetic;
  }
  std::vector<bool> set_by_group(on_host.size());
  for (const NamedCandidate& c : sorted) {
    const std::vector<uint32_t>& nodes = c.candidate->nodes;
    const std::string_view name = c.candidate->arithmetic;
    const bool needed = std::any_of(nodes.begin(), nodes.end(),
                                    [&](uint32_t n) { return names[n].empty() && !on_host[n]; });
    const bool admitted = std::all_of(nodes.begin(), nodes.end(), [&](uint32_t n) {
      return !set_by_group[n] || names[n] == name;
    });
    if (!needed || !admitted) continue;
    for (uint32_t n : nodes) names[n] = name, set_by_group[n] = true;
  }
  return names;
}

}  // namespace msrt
