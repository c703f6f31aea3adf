// msrun: benchmarks a model (msrun MODEL, or msrun bench MODEL), runs it once (run), measures what its
// placement is decided by (calibrate), or describes it (info).
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "core/api/session.h"
#include "core/graph/outline.h"
#include "core/place/explain.h"
#include "delegates/reference/elements.h"
#include "tools/msrun/bench.h"
#include "tools/msrun/info.h"
#include "tools/msrun/value_files.h"
#include "tools/tensors/compare.h"
#include "tools/tensors/made_input.h"
#include "tools/tensors/npy.h"

namespace msrt {
namespace {

int Fail(const Status& status) {
  std::cerr << "msrun: " << status.message() << "\n";
  return 1;
}

Status WriteText(const std::string& path, const std::string& text) {
  if (path == "-") {
    std::cout << text << "\n";
    return OkStatus();
  }
  const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(text))};
  return DefaultIo()->WriteFile(path, pieces);
}

Status WriteOutputs(const Session& session, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return IoError("folder '", folder, "': ", error.message());
  for (size_t i = 0; i < session.graph().outputs.size(); ++i) {
    MSRT_ASSIGN_OR_RETURN(const RunValue out, session.OutputValue(i));
    const std::string& name = session.graph().value(session.graph().outputs[i]).name;
    MSRT_RETURN_IF_ERROR(WriteValue(StrCat(folder, "/", FileNameFor(name)), out));
  }
  return OkStatus();
}

// A value against what a file or a folder has: the largest difference as a part of the reference's range. `worst` gets what is too far off.
Status CheckValue(const RunValue& out, const RunValue& reference, const std::string& name, double allowed, Status* worst) {
  if (out.kind == TypeKind::kList) {
    const auto &elements = out.list().elements, &wanted = reference.list().elements;
    if (elements.size() != wanted.size()) {
      return InvalidArgument("output '", name, "' has ", elements.size(), " elements, the reference has ", wanted.size());
    }
    for (size_t i = 0; i < elements.size(); ++i) {
      MSRT_RETURN_IF_ERROR(CheckValue(elements[i], wanted[i], StrCat(name, "[", i, "]"), allowed, worst));
    }
    return OkStatus();
  }
  auto difference = Compare(out.tensor, reference.tensor);
  if (!difference.ok()) return std::move(difference).status().Within(StrCat("output '", name, "'"));
  std::printf("check      %s: largest difference %.3g = %.3g of the range, at element %zu\n", name.c_str(), difference->largest,
              difference->relative, difference->element);
  if (!(difference->relative <= allowed)) {
    *worst =
        InvalidArgument("output '", name, "' differs from the reference by ", difference->relative, " of its range, allowed is ", allowed);
  }
  return OkStatus();
}

// Every output against REF_DIR/<name>.npy, or its folder.
Status CheckOutputs(const Session& session, const Arguments& a) {
  Status worst;
  for (size_t i = 0; i < session.graph().outputs.size(); ++i) {
    MSRT_ASSIGN_OR_RETURN(const RunValue out, session.OutputValue(i));
    const Value& port = session.graph().value(session.graph().outputs[i]);
    const bool tensor = out.kind == TypeKind::kTensor;
    const std::string path = StrCat(a.check_dir, "/", FileNameFor(port.name), tensor ? ".npy" : "");
    MSRT_ASSIGN_OR_RETURN(const RunValue reference, ReadValue(path, tensor ? Type::UnrankedTensor(out.tensor.dtype) : port.type));
    MSRT_RETURN_IF_ERROR(CheckValue(out, reference, port.name, a.rtol, &worst));
  }
  return worst;
}

// What `print` says of each graph that runs, under its name if there are several.
template <typename PrintProgram>
void DumpPrograms(const CompiledModel& model, const PrintProgram& print) {
  const std::vector<std::shared_ptr<const EntryProgram>> programs = ProgramsOf(model);
  for (size_t g = 0; g < programs.size(); ++g) {
    if (programs[g] == nullptr) continue;
    if (programs.size() > 1) std::cout << "graph #" << g << " '" << model.module.graphs[g].name << "'\n";
    std::cout << print(*programs[g]->program);
  }
}

Status Dump(const Arguments& a, const Workload& w) {
  for (const std::string& what : a.dump) {
    if (what == "graph") {
      MSRT_ASSIGN_OR_RETURN(const Module module, LoadFile(DefaultIo(), a.model));
      std::cout << Outline(module);
    } else if (what == "passes") {
      for (const PassReport& p : w.model->passes)
        std::printf("%-16s %5zu -> %5zu nodes %8.3f ms\n", std::string(p.name).c_str(), p.nodes_before, p.nodes_after, p.millis);
      std::cout << Outline(w.model->module);
    } else if (what == "placement") {
      DumpPrograms(*w.model, [](const Program& program) { return PlanText(PlanOf(program)); });
    } else if (what == "program") {
      DumpPrograms(*w.model, [](const Program& program) { return Print(program); });
    } else {
      if (w.session->binding() == nullptr) MSRT_RETURN_IF_ERROR(w.session->Run({}));
      std::cout << Print(w.session->program(), *w.session->binding());
    }
  }
  return OkStatus();
}

// "text", "json" or "svg", and after a colon the file it goes to.
Status Explain(const std::string& how, const Session& session) {
  if (how.empty()) return OkStatus();
  const size_t colon = std::min(how.find(':'), how.size());
  const std::string form = how.substr(0, colon), file = colon == how.size() ? "-" : how.substr(colon + 1);
  const Plan plan = PlanOf(session.program());
  return WriteText(file, form == "json" ? PlanReport(session) : form == "svg" ? PlanSvg(plan) : PlanText(plan));
}

// What a model with state gives depends on the runs before; after a measurement nobody knows how many there were.
Status RunFromTheBeginning(Session* session) {
  const size_t states = session->model().module.states.size();
  for (size_t s = 0; s < states; ++s) MSRT_RETURN_IF_ERROR(session->ResetState(s));
  return states == 0 ? OkStatus() : session->Run({});
}

// Outputs, checks and dumps, which bench and run share.
Status Finish(const Arguments& a, const Workload& w) {
  MSRT_RETURN_IF_ERROR(Dump(a, w));
  MSRT_RETURN_IF_ERROR(Explain(a.explain, *w.session));
  if (!a.output_dir.empty()) MSRT_RETURN_IF_ERROR(WriteOutputs(*w.session, a.output_dir));
  if (!a.check_dir.empty()) MSRT_RETURN_IF_ERROR(CheckOutputs(*w.session, a));
  return OkStatus();
}

int Bench(const Arguments& a) {
  if (!a.compare.empty()) {
    const Status status = CompareReports(a.compare[0], a.compare[1]);
    return status.ok() ? 0 : Fail(status);
  }
  if (a.model.empty()) return Fail(InvalidArgument("which model? msrun MODEL.msrt, or msrun --help"));
  auto w = Prepare(a);
  if (!w.ok()) return Fail(w.status());
  auto m = Measure(a, *w);
  if (!m.ok()) return Fail(m.status());
  if (a.json != "-") PrintReport(a, *w, *m);
  Status status = a.json.empty() ? OkStatus() : WriteText(a.json, ToJson(a, *w, *m).dump(2));
  if (status.ok() && !a.trace.empty()) status = WriteTrace(a.trace, *m);
  if (status.ok()) status = RunFromTheBeginning(w->session.get());
  if (status.ok()) status = Finish(a, *w);
  return status.ok() ? 0 : Fail(status);
}

// The elements of a list stand below it.
void PrintValue(const char* indent, const std::string& name, const RunValue& value) {
  std::printf("%s%s %s", indent, name.c_str(), ValueText(value).c_str());
  if (value.kind != TypeKind::kTensor) {
    std::printf("\n");
    if (value.kind != TypeKind::kList) return;
    const std::vector<RunValue>& elements = value.list().elements;
    for (size_t i = 0; i < elements.size(); ++i) PrintValue("           ", StrCat(name, "[", i, "]"), elements[i]);
    return;
  }
  const TensorView& out = value.tensor;
  if (IsFloat(out.dtype) || out.dtype == DType::kI64 || out.dtype == DType::kI32) {
    const std::vector<double> values = reference::Doubles(out);
    std::printf(" [");
    for (size_t k = 0; k < std::min<size_t>(values.size(), 6); ++k) std::printf("%s%.6g", k == 0 ? "" : ", ", values[k]);
    std::printf(values.size() > 6 ? ", ...]" : "]");
  }
  std::printf("\n");
}

int RunOnce(const Arguments& a) {
  auto w = Prepare(a);
  if (!w.ok()) return Fail(w.status());
  Status status = w->session->Run({});
  if (!status.ok()) return Fail(status);
  for (size_t i = 0; i < w->session->graph().outputs.size(); ++i) {
    const auto out = w->session->OutputValue(i);
    if (!out.ok()) return Fail(out.status());
    PrintValue("output     ", w->session->graph().value(w->session->graph().outputs[i]).name, *out);
  }
  status = Finish(a, *w);
  return status.ok() ? 0 : Fail(status);
}

int Describe(const Arguments& a) {
  auto info = Info(a);
  if (!info.ok()) return Fail(info.status());
  if (a.json.empty()) {
    PrintInfo(*info);
    return 0;
  }
  const Status status = WriteText(a.json, info->dump(2));
  return status.ok() ? 0 : Fail(status);
}

void AddPluginOption(CLI::App* app, Arguments* a) {
  app->add_option("--plugin", a->plugins, "PATH[:OPTIONS]: a shared library that brings delegates")->take_all();
}

void AddRunOptions(CLI::App* app, Arguments* a) {
  AddPluginOption(app, a);
  app->add_option("--input", a->inputs,
                  "NAME=FILE.npy, for a list NAME=FOLDER with 0.npy, 1.npy, ...; inputs that are not given are seeded random numbers");
  app->add_option("--shape", a->shapes, "NAME=1x3x224x224, for open dims");
  app->add_option("--threads", a->threads, "0: one for each core");
  app->add_option("--delegate", a->delegates, "allow only these, comma-separated");
  app->add_option("--accuracy", a->accuracy, "exact: only kernels whose bits do not depend on how work is cut")
      ->check(CLI::IsMember({"exact", "default", "fast"}));
  app->add_option("--disable", a->disabled_passes, "a pass to leave out, or 'all'");
  app->add_option("--seed", a->seed, "of random inputs");
  app->add_option("--memory-cap", a->memory_cap, "bytes that the session may take");
  app->add_flag("--copy", a->copy_file, "read the file instead of mapping it");
  app->add_flag("--strict", a->strict, "a delegate that fails to compile is an error");
  // A flag with a value, so that a model's name may follow it.
  app->add_flag("--explain{text}", a->explain, "where each node runs, and why; --explain=json, =svg, =svg:FILE")
      ->check([](const std::string& how) {
        const std::string form = how.substr(0, how.find(':'));
        return form == "text" || form == "json" || form == "svg" ? "" : "'" + how + "' must be text, json or svg, and may end in :FILE";
      });
  app->add_option("--costs", a->costs, "a file of measured costs, made by 'msrun calibrate', instead of estimates");
  app->add_option("--pin", a->pins, "node:NAME=DELEGATE, op:OP!=DELEGATE: where nodes must or must not run")->take_all();
  app->add_option("--dump", a->dump, "print a stage")->check(CLI::IsMember({"graph", "passes", "placement", "program", "binding"}));
  app->add_option("--output-dir", a->output_dir, "write each output as <name>.npy, lists as folders");
  app->add_option("--check", a->check_dir, "compare each output with REF_DIR/<name>.npy");
  app->add_option("--rtol", a->rtol, "largest difference that --check allows, as a part of the reference's range");
}

int Main(int argc, char** argv) {
  Arguments a;
  CLI::App app("Runs and measures .msrt models. 'msrun MODEL' is short for 'msrun bench MODEL'.", "msrun");
  app.require_subcommand(1);
  CLI::App* bench = app.add_subcommand("bench", "measure latency, memory and where the time goes");
  bench->add_option("model", a.model);
  AddRunOptions(bench, &a);
  bench->add_option("--seconds", a.seconds, "how long to measure")->check(CLI::NonNegativeNumber);
  bench->add_option("--warmup", a.warmup, "runs before measuring")->check(CLI::NonNegativeNumber);
  bench->add_option("--json", a.json, "write the report as JSON; - is standard output");
  bench->add_option("--trace", a.trace, "write a Chrome trace of a few runs");
  bench->add_flag("!--no-ops", a.per_op, "leave out the tables of ops");
  bench->add_option("--compare", a.compare, "two JSON reports to compare")->expected(2);
  CLI::App* run = app.add_subcommand("run", "run once and show the outputs");
  run->add_option("model", a.model)->required();
  AddRunOptions(run, &a);
  CLI::App* calibrate = app.add_subcommand("calibrate", "measure every way of running every node, for --costs");
  calibrate->add_option("model", a.model)->required();
  AddRunOptions(calibrate, &a);
  double calibrate_seconds = 60;
  calibrate->add_option("--seconds", calibrate_seconds, "what is not measured by then stays an estimate")->check(CLI::NonNegativeNumber);
  calibrate->add_option("--output", a.output_file, "the file to write instead of MODEL.costs");
  CLI::App* info = app.add_subcommand("info", "describe a model without compiling it, or, without one, what can run models here");
  info->add_option("model", a.model);
  AddPluginOption(info, &a);
  info->add_option("--json", a.json, "as JSON; - is standard output");

  // The short form: anything that is not a verb or a call for help is a bench.
  std::vector<std::string> arguments(argv + 1, argv + argc);
  constexpr std::string_view kVerbs[] = {"bench", "run", "calibrate", "info", "--help", "-h"};
  const bool verb = arguments.empty() || std::find(std::begin(kVerbs), std::end(kVerbs), arguments[0]) != std::end(kVerbs);
  if (!verb) arguments.insert(arguments.begin(), "bench");
  std::reverse(arguments.begin(), arguments.end());  // what CLI11 wants
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& e) {
    return app.exit(e);
  }
  if (calibrate->parsed()) {
    a.seconds = calibrate_seconds;
    const Status status = Calibrate(a);
    return status.ok() ? 0 : Fail(status);
  }
  return bench->parsed() ? Bench(a) : run->parsed() ? RunOnce(a) : Describe(a);
}

}  // namespace
}  // namespace msrt

int main(int argc, char** argv) {
  try {
    return msrt::Main(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "msrun: out of memory\n");
    return 1;
  }
}
