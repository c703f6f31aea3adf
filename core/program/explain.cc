#include "core/program/explain.h"

#include <algorithm>
#include <set>

namespace msrt {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

PlacementPartition NewPartition(const Step& step) {
  PlacementPartition p;
  p.delegate = DelegateName(step);
  p.device = step.queue;
  return p;
}

// Steps without a delegate join the partition before them; at the start, the one after them.
void FindPartitions(const Program& program, PlacementReport* report) {
  std::vector<uint32_t> waiting;
  const auto join = [&](uint32_t n) {
    report->partition_of_node[n] = static_cast<uint32_t>(report->partitions.size() - 1);
    report->partitions.back().nodes.push_back(n);
    const NodeExplanation& why = program.explanations[n];
    if (why.delegate.empty())
      report->partitions.back().seconds +=
          why.seconds;  // the time of a delegate's nodes is added with their step
  };
  for (const Step& step : program.steps) {
    if (step.kind == StepKind::kKernel) {
      if (report->partitions.empty() || report->partitions.back().delegate != step.delegate) {
        report->partitions.push_back(NewPartition(step));
        std::for_each(waiting.begin(), waiting.end(), join);
        waiting.clear();
      }
      report->partitions.back().seconds += step.seconds;
    }
    for (uint32_t n : step.nodes) {
      if (report->partitions.empty()) waiting.push_back(n);
      else join(n);
    }
  }
  if (waiting.empty()) return;
  report->partitions.push_back({});
  report->partitions.back().delegate = "host";
  std::for_each(waiting.begin(), waiting.end(), join);
}

// The cost model counts launches in the order of nodes. The order of steps may differ from it, so
// that devices begin early.
void CountLaunches(const Program& program, PlacementReport* report) {
  std::string_view last;
  QueueId last_queue = kHostQueue;
  for (uint32_t n = 0; n < report->step_of_node.size(); ++n) {
    const Step& step = program.steps[report->step_of_node[n]];
    if (step.kind != StepKind::kKernel || step.node != n ||
        (step.delegate == last && step.queue == last_queue))
      continue;
    last = step.delegate;
    last_queue = step.queue;
    if (IsOnDevice(step.queue))
      report->partitions[report->partition_of_node[n]].launch_seconds +=
          program.devices[step.queue]->launch_seconds();
  }
}

void CountBorders(const Program& program, PlacementReport* report) {
  const Graph& graph = *program.graph;
  const std::vector<int32_t> producers = graph.Producers();
  for (uint32_t i = 0; i < graph.value_count(); ++i) {
    const auto v = static_cast<ValueId>(i);
    if (graph.value(v).constant != nullptr) continue;
    const double bytes = program.offered->TypicalBytes(v)[static_cast<size_t>(Layout::kPlain)];
    const uint32_t from =
        producers[i] < 0 ? kNone : report->partition_of_node[static_cast<size_t>(producers[i])];
    std::set<uint32_t> into;
    for (uint32_t reader : program.offered->ReadersOf(v))
      into.insert(report->partition_of_node[reader]);
    into.erase(from);
    for (uint32_t to : into) report->partitions[to].bytes_in += bytes;
    if (from != kNone && (program.offered->IsOutput(v) || !into.empty()))
      report->partitions[from].bytes_out += bytes;
  }
}

}  // namespace

std::string_view DeviceName(const Program& program, uint16_t device) {
  if (IsThread(device)) return "host thread";
  return device == 0 ? std::string_view("host") : program.devices[device]->name();
}

std::string_view DelegateName(const Step& step) {
  return step.delegate.empty() ? std::string_view("host") : step.delegate;
}

std::string_view NameOf(const Program& program, const Step& step) {
  const Node* node = NodeOf(program, step);
  return node != nullptr ? node->name
                         : program.graph->value(program.buffers[step.outputs[0]].value).name;
}

std::string OpOf(const Program& program, const Step& step) {
  const Node* node = NodeOf(program, step);
  return node != nullptr ? OpName(*node) : step.algorithm;
}

std::vector<BufferId> MovingBuffers(const Program& program, const std::vector<BufferId>& buffers) {
  std::vector<BufferId> moving;
  std::copy_if(buffers.begin(), buffers.end(), std::back_inserter(moving), [&](BufferId b) {
    return b != kNoBuffer && program.graph->value(program.buffers[b].value).constant == nullptr;
  });
  return moving;
}

double TypicalBytes(const Program& program, BufferId b) {
  const Buffer& buffer = program.buffers[b];
  return program.offered->TypicalBytes(buffer.value)[static_cast<size_t>(buffer.state.layout)];
}

PlacementReport MakePlacementReport(const Program& program) {
  PlacementReport report;
  report.program = &program;
  report.step_of_node.assign(program.graph->nodes.size(), kNone);
  report.partition_of_node.assign(program.graph->nodes.size(), kNone);
  FindPartitions(program, &report);
  for (uint32_t s = 0; s < program.steps.size(); ++s) {
    const Step& step = program.steps[s];
    for (uint32_t n : step.nodes) report.step_of_node[n] = s;
    if (step.nodes.empty() && step.node != kNoNode)
      report.partitions[report.partition_of_node[step.node]].transfer_seconds += step.seconds;
  }
  CountLaunches(program, &report);
  CountBorders(program, &report);
  for (const PlacementPartition& p : report.partitions) {
    report.kernel_seconds += p.seconds;
    report.transfer_seconds += p.transfer_seconds;
    report.launch_seconds += p.launch_seconds;
  }
  return report;
}

}  // namespace msrt
