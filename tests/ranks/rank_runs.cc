#include "tests/ranks/rank_runs.h"

#include <algorithm>

#include "core/run/exchange.h"
#include "delegates/builtin.h"
#include "tests/conformance/pipeline.h"

namespace msrt::testing {
namespace {

TensorView ViewOf(const ConstTensor& t) {
  return {t.dtype, t.dims, Layout::kPlain, const_cast<std::byte*>(t.bytes.data())};
}

std::string Compare(const SplitRun& run, const std::vector<ConstTensor>& whole) {
  if (!run.status.ok()) return StrCat("split: ", run.status.message());
  if (!run.problem.empty()) return run.problem;
  for (size_t o = 0; o < whole.size(); ++o) {
    if (!std::equal(whole[o].bytes.begin(), whole[o].bytes.end(), run.outputs[o].bytes.begin()))
      return StrCat("output ", o, " differs");
  }
  return {};
}

}  // namespace

std::shared_ptr<Environment> RankEnvironment() {
  auto env = std::make_shared<Environment>();
  env->parallel = MakeThreadPool(1);
  env->delegates = BuiltinDelegates();
  env->evaluator = &BuiltinEvaluator();
  return env;
}

Result<std::vector<ConstTensor>> RunWhole(const Module& module,
                                          const std::vector<ConstTensor>& inputs,
                                          const CompileOptions& options) {
  CompileOptions whole = options;
  const Graph& graph = module.main();
  for (size_t i = 0; i < inputs.size(); ++i)
    whole.typical.emplace_back(graph.value(graph.inputs[i]).name, inputs[i].dims);
  MSRT_ASSIGN_OR_RETURN(auto model, CompileModule(RankEnvironment(), module, whole));
  MSRT_ASSIGN_OR_RETURN(auto session, Session::Create(model, 0, {}));
  return RunSession(*session, inputs);
}

RankIo IoOf(const std::vector<ConstTensor>& inputs, SplitRun* run) {
  RankIo io;
  io.read = [&inputs](size_t input, const Box& box, const TensorView& memory) {
    CopyCommon(ViewOf(inputs[input]), Box::Whole(inputs[input].dims), memory, box);
    return OkStatus();
  };
  io.write = [run, written = std::vector<std::vector<Box>>(run->outputs.size())](
                 size_t output, const Box& box, const TensorView& memory) mutable {
    for (const Box& other : written[output]) {
      if (!Intersect(box, other).empty())
        run->problem = StrCat("output ", output, ": ", box, " and ", other, " overlap");
    }
    written[output].push_back(box);
    if (!(memory.dims == box.dims()))
      run->problem = StrCat("output ", output, ": ", box, " has the dims ", memory.dims);
    const ConstTensor& to = run->outputs[output];
    CopyCommon(memory, box, ViewOf(to), Box::Whole(to.dims));
    return OkStatus();
  };
  return io;
}

SplitRun RunSplit(const Module& module, const std::vector<ConstTensor>& inputs,
                  const CompileOptions& options, const SplitOptions& split,
                  const std::vector<ConstTensor>& outputs) {
  SplitRun run;
  // An element that no rank writes differs from the whole.
  for (const ConstTensor& t : outputs)
    run.outputs.push_back(ConstTensor::Copy(
        t.dtype, t.dims, std::vector<std::byte>(t.bytes.size(), std::byte{0xff})));
  std::vector<Dims> dims;
  for (const ConstTensor& t : inputs) dims.push_back(t.dims);
  auto ranks = RanksOf(split);
  run.status = ranks.status();
  if (!ranks.ok()) return run;
  std::vector<std::shared_ptr<const Environment>> environments;
  for (int r = 0; r < *ranks; ++r) environments.push_back(RankEnvironment());
  const RankOptions rank_options{.compile = options, .split = split};
  auto reports =
      RunThreadRanks(environments, module, dims, rank_options, IoOf(inputs, &run), RunOptions());
  run.status = reports.status();
  if (reports.ok()) run.reports = *std::move(reports);
  return run;
}

std::string CompareWithWhole(const Module& module, const std::vector<ConstTensor>& inputs,
                             const CompileOptions& options, const SplitOptions& split,
                             ExchangeTotals* totals) {
  const auto whole = RunWhole(module, inputs, options);
  if (!whole.ok()) return StrCat("whole: ", whole.status().message());
  const SplitRun run = RunSplit(module, inputs, options, split, *whole);
  for (const RankReport& report : run.reports) {
    if (totals == nullptr) break;
    totals->exchanges += report.exchanges.exchanges;
    totals->messages_sent += report.exchanges.messages_sent;
    totals->bytes_sent += report.exchanges.bytes_sent;
    totals->bytes_received += report.exchanges.bytes_received;
  }
  return Compare(run, *whole);
}

}  // namespace msrt::testing
