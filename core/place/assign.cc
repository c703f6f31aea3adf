#include "core/place/assign.h"

#include <algorithm>
#include <cmath>

#include "core/place/assign_choices.h"

namespace msrt {
namespace {

// Far beyond any machine, yet no sum or quotient of such amounts comes near the solver's
// kForbidden.
constexpr double kMaxAmount = 1e30;
bool IsAmount(double x) { return x >= 0 && x <= kMaxAmount; }
bool IsRate(double x) { return x >= 1 / kMaxAmount; }

bool Ascending(std::span<const uint32_t> nodes) {
  return std::adjacent_find(nodes.begin(), nodes.end(), std::greater_equal<>()) == nodes.end();
}

Status CheckDevices(const AssignProblem& problem) {
  const size_t devices = problem.device_caps.size();
  if (devices == 0 || devices > kMaxDevices)
    return InvalidArgument(devices, " devices, must be 1 to ", kMaxDevices);
  const TransferCosts& t = problem.transfers;
  if (t.links.size() != devices)
    return InvalidArgument(t.links.size(), " links for ", devices, " devices, must be one each");
  if (!IsAmount(t.convert_seconds) || !IsRate(t.convert_bytes_per_second)) {
    return InvalidArgument("layout changes: ", t.convert_seconds, " s and ",
                           t.convert_bytes_per_second, " B/s, must be positive numbers");
  }
  for (size_t d = 0; d < devices; ++d) {
    const TransferCosts::Link& link = t.links[d];
    if (d > 0 && !(IsAmount(link.to_seconds) && IsAmount(link.from_seconds) &&
                   IsRate(link.to_bytes_per_second) && IsRate(link.from_bytes_per_second))) {
      return InvalidArgument(
          "device ", d, ": its link's times must be numbers of at least 0 and its rates above 0");
    }
    if (!(problem.device_caps[d] >= 0))
      return InvalidArgument("device ", d, ": cap ", problem.device_caps[d],
                             ", must be at least 0");
  }
  return OkStatus();
}

Status CheckValues(const AssignProblem& problem) {
  for (size_t v = 0; v < problem.values.size(); ++v) {
    const AssignValue& value = problem.values[v];
    for (double bytes : value.bytes) {
      if (!IsAmount(bytes))
        return InvalidArgument("value ", v, ": ", bytes, " bytes, must be a number of at least 0");
    }
    if (value.producer < -1 || value.producer >= static_cast<int64_t>(problem.node_count)) {
      return InvalidArgument("value ", v, ": producer ", value.producer, " is no node");
    }
    if (value.readers.empty()) continue;
    if (!Ascending(value.readers) || value.readers.back() >= problem.node_count ||
        value.readers.front() <= int64_t{value.producer}) {
      return InvalidArgument(
          "value ", v, ": its readers must be nodes after its producer, ascending, each once");
    }
  }
  return OkStatus();
}

Status CheckCarried(const AssignProblem& problem) {
  std::vector<bool> seen(problem.values.size());
  for (size_t c = 0; c < problem.carried.size(); ++c) {
    const AssignCarried& pair = problem.carried[c];
    for (uint32_t v : {pair.begin, pair.end}) {
      if (v >= seen.size() || seen[v])
        return InvalidArgument("carried pair ", c, ": value ", v,
                               " is out of range or carried twice");
      seen[v] = true;
    }
    const AssignValue &begin = problem.values[pair.begin], &end = problem.values[pair.end];
    if (begin.producer >= 0 || begin.is_output || end.producer < 0 || !end.is_output) {
      return InvalidArgument(
          "carried pair ", c,
          ": must begin as what no node makes and end as an output that one makes");
    }
    const auto cost = [](double s) { return IsAmount(s) || std::isinf(s); };
    if (pair.seconds.size() != problem.device_caps.size() ||
        !std::all_of(pair.seconds.begin(), pair.seconds.end(), cost)) {
      return InvalidArgument("carried pair ", c,
                             ": must have seconds of at least 0 for each device");
    }
  }
  return OkStatus();
}

Status CheckOptions(const AssignProblem& problem) {
  const size_t devices = problem.device_caps.size();
  for (size_t o = 0; o < problem.options.size(); ++o) {
    const AssignOption& option = problem.options[o];
    if (option.nodes.empty() || !Ascending(option.nodes) ||
        option.nodes.back() >= problem.node_count) {
      return InvalidArgument("option ", o, ": its nodes must be ascending, each once, below ",
                             problem.node_count);
    }
    if (option.delegate != kHostWork && option.delegate >= problem.launch_seconds.size()) {
      return InvalidArgument("option ", o, ": delegate ", option.delegate, " has no launch cost");
    }
    if (!IsAmount(option.seconds) || !IsAmount(option.memory_bytes) || option.device >= devices) {
      return InvalidArgument("option ", o, ": ", option.seconds, " s and ", option.memory_bytes,
                             " bytes on device ", option.device,
                             ", must be numbers of at least 0 and one of ", devices, " devices");
    }
    for (const auto* border : {&option.inputs, &option.outputs}) {
      for (const auto& [v, state] : *border) {
        if (v >= problem.values.size() || state.device >= devices ||
            static_cast<uint32_t>(state.layout) >= kLayoutCount) {
          return InvalidArgument("option ", o, ": value ", v, " on device ", state.device,
                                 " is out of range");
        }
      }
    }
  }
  return OkStatus();
}

Status Check(const AssignProblem& problem) {
  MSRT_RETURN_IF_ERROR(CheckDevices(problem));
  for (size_t d = 0; d < problem.launch_seconds.size(); ++d) {
    if (!IsAmount(problem.launch_seconds[d])) {
      return InvalidArgument("delegate ", d, ": launch of ", problem.launch_seconds[d],
                             " s, must be a number of at least 0");
    }
  }
  MSRT_RETURN_IF_ERROR(CheckValues(problem));
  MSRT_RETURN_IF_ERROR(CheckCarried(problem));
  return CheckOptions(problem);
}

std::vector<uint32_t> RefusedOptions(const AssignProblem& problem) {
  const ListsByNode made_by = ListBy(problem.node_count, [&](const auto& emit) {
    for (uint32_t v = 0; v < problem.values.size(); ++v) {
      if (problem.values[v].producer >= 0)
        emit(static_cast<uint32_t>(problem.values[v].producer), v);
    }
  });
  std::vector<uint32_t> refused, made;
  for (uint32_t o = 0; o < problem.options.size(); ++o) {
    const AssignOption& option = problem.options[o];
    made.clear();
    for (uint32_t n : option.nodes)
      made.insert(made.end(), made_by.of(n).begin(), made_by.of(n).end());
    if (!AdmissibleAmong(problem, option, made).ok()) refused.push_back(o);
  }
  return refused;
}

// Whether the options differ only in time and memory, and `option` is better in neither.
bool NoBetter(const AssignOption& option, const AssignOption& than) {
  return option.seconds >= than.seconds && option.memory_bytes >= than.memory_bytes &&
         option.delegate == than.delegate && option.device == than.device &&
         option.nodes == than.nodes && option.inputs == than.inputs &&
         option.outputs == than.outputs;
}

ListsByNode MakeChoices(const AssignProblem& problem, std::span<const uint32_t> refused) {
  std::vector<bool> left_out(problem.options.size());
  for (uint32_t o : refused) left_out[o] = true;
  const ListsByNode by_last = ListBy(problem.node_count, [&](const auto& emit) {
    for (uint32_t o = 0; o < problem.options.size(); ++o) {
      if (!left_out[o]) emit(problem.options[o].nodes.back(), o);
    }
  });
  for (uint32_t n = 0; n < problem.node_count; ++n) {
    const std::span<const uint32_t> options = by_last.of(n);
    for (uint32_t a : options) {
      left_out[a] = std::any_of(options.begin(), options.end(), [&](uint32_t b) {
        return a != b && !left_out[b] && NoBetter(problem.options[a], problem.options[b]);
      });
    }
  }
  return ListBy(problem.node_count, [&](const auto& emit) {
    for (uint32_t o = 0; o < problem.options.size(); ++o) {
      if (left_out[o]) continue;
      for (uint32_t n : problem.options[o].nodes) emit(n, o);
    }
  });
}

}  // namespace

Result<Assignment> Assign(const AssignProblem& problem) {
  MSRT_RETURN_IF_ERROR(Check(problem));
  std::vector<uint32_t> refused = RefusedOptions(problem);
  const ListsByNode choices = MakeChoices(problem, refused);
  for (uint32_t n = 0; n < problem.node_count; ++n) {
    if (choices.of(n).empty())
      return Unsupported("node ", n,
                         " has no option that may be chosen; allow a delegate that can run it");
  }
  MSRT_ASSIGN_OR_RETURN(Assignment assignment, FastestAssignment(problem, choices));
  assignment.refused = std::move(refused);
  return assignment;
}

}  // namespace msrt
