// The placement report as text for a terminal.
#include <algorithm>
#include <cstdio>

#include "core/base/text_table.h"
#include "core/base/units.h"
#include "core/base/utf8.h"
#include "core/program/explain.h"

namespace msrt {
namespace {

// Control flow has a price only where a delegate offers to take it.
bool CallsUnpricedGraphs(const Program& program) {
  return std::any_of(program.steps.begin(), program.steps.end(),
                     [](const Step& step) { return step.control != nullptr && step.seconds == 0; });
}

std::string Total(const PlacementReport& report) {
  const Program& program = *report.program;
  std::string out = StrCat(SecondsText(program.seconds), " a run expected, ");
  if (program.optimal) {
    out += "the least of all placements";
  } else {
    char gap[32] = "an unknown part";
    if (program.lower_bound > 0)
      std::snprintf(gap, sizeof gap, "%.3g %%", (program.seconds / program.lower_bound - 1) * 100);
    StrAppend(&out, "at most ", gap, " above the least of all placements");
  }
  StrAppend(&out, ": kernels ", SecondsText(report.kernel_seconds), ", transfers ",
            SecondsText(report.transfer_seconds), ", launches ", SecondsText(report.launch_seconds),
            CallsUnpricedGraphs(program) ? "; graphs that it calls are not included" : "", "\n");
  return out;
}

void AppendPartitions(std::string* out, const PlacementReport& report) {
  std::vector<TextRow> rows = {
      {{"partition", "delegate", "device", "nodes", "kernels", "transfers", "reads", "makes"}, {}}};
  for (size_t i = 0; i < report.partitions.size(); ++i) {
    const PlacementPartition& p = report.partitions[i];
    rows.push_back(
        {{StrCat(i), p.delegate, std::string(DeviceName(*report.program, p.device)),
          StrCat(p.nodes.size()), SecondsText(p.seconds), SecondsText(p.transfer_seconds),
          BytesText(p.bytes_in), BytesText(p.bytes_out)},
         {}});
  }
  AppendTable(out, rows, "rllrrrrr");
}

std::string StateText(const Program& program, TensorState state) {
  return state.device == 0
             ? std::string(LayoutName(state.layout))
             : StrCat(LayoutName(state.layout), "@", DeviceName(program, state.device));
}

void AppendTransfers(std::string* out, const PlacementReport& report) {
  const Program& program = *report.program;
  std::vector<TextRow> rows = {{{"transfer", "value", "from", "to", "bytes", "time"}, {}}};
  for (const Step& step : program.steps) {
    if (!step.nodes.empty()) continue;
    const Buffer &from = program.buffers[step.inputs[0]], &to = program.buffers[step.outputs[0]];
    rows.push_back({{std::string(StepKindName(step.kind)),
                     PrintableEnd(program.graph->value(to.value).name, 40),
                     StateText(program, from.state), StateText(program, to.state),
                     BytesText(TypicalBytes(program, step.outputs[0])), SecondsText(step.seconds)},
                    {}});
  }
  if (rows.size() > 1) AppendTable(out, rows, "llllrr");
}

// "blocked-8" or "plain -> blocked-8": the layouts of the first input and the first output.
std::string LayoutsText(const Program& program, const Step& step) {
  const std::vector<BufferId> in = MovingBuffers(program, step.inputs),
                              made = MovingBuffers(program, step.outputs);
  const auto layout = [&](const std::vector<BufferId>& buffers) {
    return buffers.empty() ? std::string_view()
                           : LayoutName(program.buffers[buffers[0]].state.layout);
  };
  if (in.empty() || made.empty() || layout(in) == layout(made))
    return std::string(in.empty() ? layout(made) : layout(in));
  return StrCat(layout(in), " -> ", layout(made));
}

// "graphs #2 and #3".
std::string GraphsText(const std::vector<uint32_t>& graphs) {
  std::string out = graphs.empty()       ? "the function that it is given"
                    : graphs.size() == 1 ? "graph "
                                         : "graphs ";
  for (size_t i = 0; i < graphs.size(); ++i)
    StrAppend(&out, i == 0 ? "" : i + 1 == graphs.size() ? " and " : ", ", "#", graphs[i]);
  return out;
}

void AppendNodes(std::string* out, const PlacementReport& report) {
  const Program& program = *report.program;
  std::vector<TextRow> rows = {
      {{"node", "name", "op", "delegate", "algorithm", "arithmetic", "layout", "time", ""}, {}}};
  for (size_t n = 0; n < program.explanations.size(); ++n) {
    const NodeExplanation& why = program.explanations[n];
    const Node& node = program.graph->nodes[n];
    const Step& step = program.steps[report.step_of_node[n]];
    const bool kernel = step.kind == StepKind::kKernel, priced = kernel || why.seconds > 0;
    TextRow row{{StrCat(n), PrintableEnd(node.name, 40), Printable(OpName(node), 32),
                 std::string(DelegateName(step)), Printable(step.algorithm, 32), step.arithmetic,
                 LayoutsText(program, step), priced ? SecondsText(why.seconds) : "",
                 priced ? why.measured ? "measured" : "estimated" : ""},
                {}};
    if (kernel && IsControl(node))
      row.notes.push_back(StrCat(step.delegate, " runs the graphs that it calls too"));
    if (step.control != nullptr)
      row.notes.push_back(StrCat("calls ", GraphsText(step.control->graphs)));
    for (const auto& [delegate, reason] : why.others)
      row.notes.push_back(StrCat("not ", delegate, ": ", Printable(reason)));
    rows.push_back(std::move(row));
  }
  AppendTable(out, rows, "rllllllrl");
}

}  // namespace

std::string PlacementText(const PlacementReport& report) {
  const Program& program = *report.program;
  std::string out = StrCat(Printable(program.graph->name, 60), ": ", program.graph->nodes.size(),
                           " nodes in ", program.steps.size(), " steps, ", Total(report));
  for (const FailedDelegate& failed : program.failed_delegates)
    StrAppend(&out, "  left out: ", failed.name, ": ", Printable(failed.reason), "\n");
  AppendPartitions(&out, report);
  AppendTransfers(&out, report);
  AppendNodes(&out, report);
  return out;
}

}  // namespace msrt
