// msrun: benchmarks a model (msrun MODEL, or msrun bench MODEL), runs it once (run), measures the
// costs that decide its placement (calibrate), describes it (info), computes it over an image
// (image), trains it (train), or starts the ranks of a job (launch).
#include <sys/resource.h>

#include <cstdio>
#include <filesystem>
#include <iostream>

#include "core/api/session.h"
#include "core/graph/outline.h"
#include "core/program/explain.h"
#include "tools/msrun/bench.h"
#include "tools/msrun/image.h"
#include "tools/msrun/info.h"
#include "tools/msrun/model_source.h"
#include "tools/msrun/rank_job.h"
#include "tools/msrun/train.h"
#include "tools/msrun/value_files.h"
#include "tools/tensors/compare.h"
#include "tools/tensors/made_input.h"
#include "tools/tensors/npy.h"

namespace msrt {
namespace {

int Fail(const Status& status) {
  std::cerr << "msrun: " << status.message() << "\n";
  return kFailed;
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

// Compares a value with the reference by the largest difference as a fraction of the reference's
// range. Sets `worst` if the difference is more than allowed.
Status VerifyValue(const RunValue& out, const RunValue& reference, const std::string& name,
                   double allowed, Status* worst) {
  if (out.kind == TypeKind::kList) {
    const auto &elements = out.list().elements, &wanted = reference.list().elements;
    if (elements.size() != wanted.size()) {
      return InvalidArgument("output '", name, "' has ", elements.size(),
                             " elements, the reference has ", wanted.size());
    }
    for (size_t i = 0; i < elements.size(); ++i) {
      MSRT_RETURN_IF_ERROR(
          VerifyValue(elements[i], wanted[i], StrCat(name, "[", i, "]"), allowed, worst));
    }
    return OkStatus();
  }
  auto difference = Compare(out.tensor, reference.tensor);
  if (!difference.ok()) return std::move(difference).status().Within(StrCat("output '", name, "'"));
  std::printf("verify     %s: largest difference %.3g = %.3g of the range, at element %zu\n",
              name.c_str(), difference->largest, difference->relative, difference->element);
  if (!(difference->relative <= allowed)) {
    *worst = InvalidArgument("output '", name, "' differs from the reference by ",
                             difference->relative, " of its range, allowed is ", allowed);
  }
  return OkStatus();
}

// Compares every output with <name>.npy in the folder of --verify, or with a folder there.
Status VerifyOutputs(const Session& session, const Arguments& a) {
  Status worst;
  for (size_t i = 0; i < session.graph().outputs.size(); ++i) {
    MSRT_ASSIGN_OR_RETURN(const RunValue out, session.OutputValue(i));
    const Value& port = session.graph().value(session.graph().outputs[i]);
    const bool tensor = out.kind == TypeKind::kTensor;
    const std::string path =
        StrCat(a.verify_dir, "/", FileNameFor(port.name), tensor ? ".npy" : "");
    MSRT_ASSIGN_OR_RETURN(
        const RunValue reference,
        ReadValue(path, tensor ? Type::UnrankedTensor(out.tensor.dtype) : port.type));
    MSRT_RETURN_IF_ERROR(VerifyValue(out, reference, port.name, a.tolerance, &worst));
  }
  return worst;
}

// Prints print(program) for each graph that runs, below the graph's name if there are several.
template <typename PrintProgram>
void DumpPrograms(const CompiledModel& model, const PrintProgram& print) {
  const std::vector<std::shared_ptr<const EntryProgram>> programs = ProgramsOf(model);
  for (size_t g = 0; g < programs.size(); ++g) {
    if (programs[g] == nullptr) continue;
    if (programs.size() > 1)
      std::cout << "graph #" << g << " '" << model.module.graphs[g].name << "'\n";
    std::cout << print(*programs[g]->program);
  }
}

Status Dump(const Arguments& a, const Workload& w) {
  for (const std::string& what : a.dump) {
    if (what == "graph") {
      MSRT_ASSIGN_OR_RETURN(const Module module, ReadModel(DefaultIo(), a.model));
      std::cout << Outline(module);
    } else if (what == "passes") {
      for (const PassReport& p : w.model->passes)
        std::printf("%-16s %5zu -> %5zu nodes %8.3f ms\n", std::string(p.name).c_str(),
                    p.nodes_before, p.nodes_after, p.millis);
      std::cout << Outline(w.model->module);
    } else if (what == "placement") {
      DumpPrograms(*w.model, [](const Program& program) {
        return PlacementText(MakePlacementReport(program));
      });
    } else if (what == "program") {
      DumpPrograms(*w.model, [](const Program& program) { return Print(program); });
    } else {
      if (w.session->binding() == nullptr) MSRT_RETURN_IF_ERROR(w.session->Run({}));
      std::cout << Print(w.session->program(), *w.session->binding());
    }
  }
  return OkStatus();
}

Status Explain(const Arguments& a, const Session& session) {
  if (a.explain.empty()) return OkStatus();
  const std::string form = a.explain_form();
  return WriteText(a.explain_file(), form == "json"  ? PlacementReportJson(session)
                                     : form == "svg" ? PlacementReportSvg(session)
                                                     : PlacementReportText(session));
}

// Resets the state and runs once. The outputs of a model with state depend on the number of runs
// before, which differs between measurements.
Status ResetStateAndRun(Session* session) {
  const size_t states = session->model().module.states.size();
  for (size_t s = 0; s < states; ++s) MSRT_RETURN_IF_ERROR(session->ResetState(s));
  return states == 0 ? OkStatus() : session->Run({});
}

// Writes outputs, checks and dumps, for bench and run.
Status Finish(const Arguments& a, const Workload& w) {
  MSRT_RETURN_IF_ERROR(Dump(a, w));
  MSRT_RETURN_IF_ERROR(Explain(a, *w.session));
  if (!a.output_dir.empty()) MSRT_RETURN_IF_ERROR(WriteOutputs(*w.session, a.output_dir));
  if (!a.verify_dir.empty()) MSRT_RETURN_IF_ERROR(VerifyOutputs(*w.session, a));
  return OkStatus();
}

int Compare(const Arguments& a) {
  const Status status = CompareReports(a.compare[0], a.compare[1]);
  return status.ok() ? kDone : Fail(status);
}

int Bench(const Arguments& a) {
  auto w = Prepare(a);
  if (!w.ok()) return Fail(w.status());
  auto m = Measure(a, *w);
  if (!m.ok()) return Fail(m.status());
  if (a.prints()) PrintReport(a, *w, *m);
  Status status = a.json.empty() ? OkStatus() : WriteText(a.json, ToJson(a, *w, *m).dump(2));
  if (status.ok() && !a.trace.empty()) status = WriteTrace(a.trace, a.model, *m);
  if (status.ok()) status = ResetStateAndRun(w->session.get());
  if (status.ok()) status = Finish(a, *w);
  return status.ok() ? kDone : Fail(status);
}

// Prints the elements of a list below it.
void PrintValue(const char* indent, const std::string& name, const RunValue& value) {
  std::printf("%s%s %s", indent, name.c_str(), ValueText(value).c_str());
  if (value.kind != TypeKind::kTensor) {
    std::printf("\n");
    if (value.kind != TypeKind::kList) return;
    const std::vector<RunValue>& elements = value.list().elements;
    for (size_t i = 0; i < elements.size(); ++i)
      PrintValue("           ", StrCat(name, "[", i, "]"), elements[i]);
    return;
  }
  std::printf(" %s\n", ElementsText(value.tensor, 6).c_str());
}

// The ranks of a job run the model together, each with the inputs of its own command line. Those
// after the first have folders of their own for their outputs.
int RunOnce(Arguments& a) {
  const auto job = JoinRanks(&a);
  if (!job.ok()) return Fail(job.status());
  if (job->rank() > 0 && !a.output_dir.empty()) a.output_dir += StrCat(".", job->rank());
  auto w = Prepare(a, job->communicator.get());
  if (!w.ok()) {
    if (job->communicator != nullptr) job->communicator->Abort(w.status());
    return Fail(w.status());
  }
  Status status = w->session->Run({});
  if (!status.ok()) return Fail(status);
  for (size_t i = 0; i < w->session->graph().outputs.size(); ++i) {
    const auto out = w->session->OutputValue(i);
    if (!out.ok()) return Fail(out.status());
    if (a.prints())
      PrintValue("output     ", w->session->graph().value(w->session->graph().outputs[i]).name,
                 *out);
  }
  status = Finish(a, *w);
  return status.ok() ? kDone : Fail(status);
}

int Describe(const Arguments& a) {
  auto info = Info(a);
  if (!info.ok()) return Fail(info.status());
  if (a.json.empty()) {
    PrintInfo(*info);
    return kDone;
  }
  const Status status = WriteText(a.json, info->dump(2));
  return status.ok() ? kDone : Fail(status);
}

int Main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "image") return RunImage(argc - 1, argv + 1);
  if (argc > 1 && std::string_view(argv[1]) == "train") return RunTrain(argc - 1, argv + 1);
  Arguments a;
  int exit_code = kDone;
  if (!ParseArguments(argc, argv, &a, &exit_code)) return exit_code;
  switch (a.verb) {
    case Arguments::Verb::kRun:
      return RunOnce(a);
    case Arguments::Verb::kInfo:
      return Describe(a);
    case Arguments::Verb::kCalibrate: {
      const Status status = Calibrate(a);
      return status.ok() ? kDone : Fail(status);
    }
    case Arguments::Verb::kLaunch:
      return Launch(a.launch);
    case Arguments::Verb::kBench:
      break;
  }
  return a.compare.empty() ? Bench(a) : Compare(a);
}

}  // namespace
}  // namespace msrt

int main(int argc, char** argv) {
  try {
    return msrt::Main(argc, argv);
  } catch (const std::bad_alloc&) {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    std::fprintf(stderr,
                 "msrun: out of memory: the process held %ld kB, and the next block was refused\n",
                 usage.ru_maxrss);
    return msrt::kFailed;
  }
}
