// The time of a load by stage, for a portable file and for one with packed weights (msconvert
// --target native), in turns; and the cost of the first run and of a new input shape. Each load has
// its own process, so that it generates all of its code.
//   load_bench [rounds] [MODEL.msrt...]     without a model: zoo:resnet50
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "core/model/write.h"
#include "delegates/builtin.h"
#include "tests/conformance/pipeline.h"
#include "tools/msconvert/zoo.h"
#include "tools/tensors/made_input.h"

namespace msrt::testing {
namespace {

using Millis = std::vector<double>;

double Median(Millis v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

// Returns the result of `measure` in a fork of this process, which has started no thread.
Result<Millis> InFreshProcess(const std::function<Result<Millis>()>& measure) {
  int ends[2];
  if (pipe(ends) != 0) return IoError("pipe failed");
  std::fflush(stdout);
  const pid_t child = fork();
  if (child < 0) return IoError("fork failed");
  if (child == 0) {
    const auto millis = measure();
    if (!millis.ok()) std::fprintf(stderr, "load_bench: %s\n", millis.status().message().c_str());
    const size_t bytes = millis.ok() ? millis->size() * sizeof(double) : 0;
    const bool written =
        millis.ok() && write(ends[1], millis->data(), bytes) == static_cast<ssize_t>(bytes);
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  Millis millis;
  for (double value; read(ends[0], &value, sizeof value) == sizeof value;) millis.push_back(value);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) return InternalError("a load did not end well");
  return millis;
}

// Writes it like msconvert: optimised, so that a load has nothing left to fold.
Status WriteResNet50(const std::string& path) {
  MSRT_ASSIGN_OR_RETURN(Module module, zoo::Build("resnet50", {}));
  MSRT_RETURN_IF_ERROR(RunPasses({.evaluator = &BuiltinEvaluator()}, {}, &module).status());
  return WriteModel(module, path, DefaultIo());
}

// The typical values of open dims.
Result<CompileOptions> OptionsFor(const std::string& path) {
  CompileOptions options;
  MSRT_ASSIGN_OR_RETURN(const Module module, LoadFile(DefaultIo(), path));
  MSRT_ASSIGN_OR_RETURN(const std::vector<Dims> sizes, SizesToRun("", {}, module));
  for (size_t i = 0; i < sizes.size(); ++i)
    options.typical.emplace_back(module.main().value(module.main().inputs[i]).name, sizes[i]);
  return options;
}

Result<Millis> WriteNative(const std::string& from, CompileOptions options, const std::string& to) {
  options.keep_packed = true;
  MSRT_ASSIGN_OR_RETURN(const auto model, CompileFile(UserEnvironment(), from, options));
  const ModelExtras extras = NativeExtras(*model);
  MSRT_RETURN_IF_ERROR(WriteModel(model->module, to, DefaultIo(), {.extras = &extras}));
  return Millis();
}

Result<double> FirstRun(const std::shared_ptr<const CompiledModel>& model,
                        const CompileOptions& options) {
  MSRT_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(model, 0, {}));
  std::mt19937_64 random(1);
  std::vector<ConstTensor> inputs;
  for (size_t i = 0; i < options.typical.size(); ++i) {
    MSRT_ASSIGN_OR_RETURN(ConstTensor input,
                          RandomInput(session->graph(), session->graph().inputs[i],
                                      options.typical[i].second, random));
    inputs.push_back(std::move(input));
  }
  const StopWatch watch;
  MSRT_RETURN_IF_ERROR(RunSession(*session, inputs).status());
  return watch.Millis();
}

// Returns the median time of a new batch size on a loaded model: types, memory plan and kernels are
// bound; code is generated at the first run.
Result<double> BindNewShapes(const CompiledModel& model, const CompileOptions& options) {
  Millis millis;
  for (int64_t batch = 2; batch < 34; ++batch) {
    BindRequest request;
    for (size_t i = 0; i < options.typical.size(); ++i) {
      const Type& type = model.module.main().value(model.module.main().inputs[i]).type;
      Dims dims = options.typical[i].second;
      if (!type.dims.empty() && !IsKnown(type.dims[0])) dims[0] = batch;
      request.inputs.push_back(Type::Tensor(type.dtype, dims));
    }
    const StopWatch watch;
    MSRT_RETURN_IF_ERROR(BindingFor(model, *model.entries[0]->current(), request).status());
    millis.push_back(watch.Millis());
  }
  return Median(millis);
}

constexpr const char* kRows[] = {"map + verify + validate + passes + place",
                                 "compile and pack",
                                 "prepare the first run (code generation)",
                                 "load, open to ready",
                                 "the first run",
                                 "a new batch size"};

// A name for each row.
Result<Millis> LoadOnce(const std::string& path, const CompileOptions& options) {
  const auto environment = UserEnvironment();
  const StopWatch watch;
  MSRT_ASSIGN_OR_RETURN(const auto model, CompileFile(environment, path, options));
  const double total = watch.Millis();
  const LoadTimes& t = model->times;
  MSRT_ASSIGN_OR_RETURN(const double first_run, FirstRun(model, options));
  MSRT_ASSIGN_OR_RETURN(const double bind, BindNewShapes(*model, options));
  return Millis{t.map + t.verify + t.validate + t.passes + t.place,
                t.compile,
                t.prepare,
                total,
                first_run,
                bind};
}

Status Measure(const std::string& portable, const std::string& native, int rounds) {
  MSRT_ASSIGN_OR_RETURN(const CompileOptions options, OptionsFor(portable));
  MSRT_RETURN_IF_ERROR(
      InFreshProcess([&] { return WriteNative(portable, options, native); }).status());
  std::map<std::string, std::vector<Millis>> of_row;  // by file
  for (int round = 0; round < rounds; ++round) {
    for (const std::string& path : {portable, native}) {
      MSRT_ASSIGN_OR_RETURN(const Millis millis,
                            InFreshProcess([&] { return LoadOnce(path, options); }));
      of_row[path].resize(std::size(kRows));
      for (size_t r = 0; r < std::size(kRows); ++r) of_row[path][r].push_back(millis[r]);
    }
  }
  for (size_t r = 0; r < std::size(kRows); ++r) {
    std::printf("  %-42s", kRows[r]);
    for (const auto& [name, path] :
         {std::pair("portable", portable), std::pair("native", native)}) {
      const Millis& millis = of_row[path][r];
      std::printf("  %s min %8.2f median %8.2f ms", name,
                  *std::min_element(millis.begin(), millis.end()), Median(millis));
    }
    std::printf("\n");
  }
  return OkStatus();
}

Status MeasureAll(std::vector<std::string> models, int rounds) {
  const std::string stem =
      (std::filesystem::temp_directory_path() / ("msrt-load-bench-" + std::to_string(getpid())))
          .string();
  const std::string own = stem + ".msrt", native = stem + "-native.msrt";
  Status status;
  if (models.empty()) {
    status = WriteResNet50(own);
    models = {own};
  }
  for (size_t i = 0; status.ok() && i < models.size(); ++i) {
    std::printf("%s\n", models[i] == own ? "zoo:resnet50" : models[i].c_str());
    status = Measure(models[i], native, rounds);
  }
  std::filesystem::remove(own);
  std::filesystem::remove(native);
  return status;
}

}  // namespace
}  // namespace msrt::testing

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 20;
  const msrt::Status status =
      msrt::testing::MeasureAll({argv + std::min(argc, 2), argv + argc}, rounds);
  if (!status.ok()) std::fprintf(stderr, "load_bench: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
