// Where the time of a load goes, for a portable file and for one with packed weights (msconvert --target native), by turns; and what a new
// input shape costs.
//   load_bench [rounds] [MODEL.msrt...]     without a model: zoo:resnet50
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "core/model/write.h"
#include "delegates/builtin.h"
#include "tests/conformance/pipeline.h"
#include "tools/msconvert/zoo.h"
#include "tools/tensors/made_input.h"

namespace msrt::testing {
namespace {

double Median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

// Millis of the same thing with both files.
struct Pair {
  std::vector<double> portable, native;
};
void Row(const char* what, const Pair& millis) {
  const auto least = [](const std::vector<double>& v) { return *std::min_element(v.begin(), v.end()); };
  std::printf("  %-44s portable min %8.3f  median %8.3f ms   native min %8.3f  median %8.3f ms\n", what, least(millis.portable),
              Median(millis.portable), least(millis.native), Median(millis.native));
}

// As msconvert writes it: optimised, so that a load has nothing left to fold.
Status WriteResNet50(const std::string& path) {
  MSRT_ASSIGN_OR_RETURN(Module module, zoo::Build("resnet50", {}));
  MSRT_RETURN_IF_ERROR(RunPasses({.evaluator = &BuiltinEvaluator()}, {}, &module).status());
  return WriteModel(module, path, DefaultIo());
}

Status WriteNative(const std::shared_ptr<const Environment>& environment, const std::string& from, CompileOptions options,
                   const std::string& to) {
  options.keep_packed = true;
  MSRT_ASSIGN_OR_RETURN(const auto model, CompileFile(environment, from, options));
  const ModelExtras extras = NativeExtras(*model);
  return WriteModel(model->module, to, DefaultIo(), {.extras = &extras});
}

// New batch sizes on a loaded model: types, memory plan and kernels bound; code is generated at the first run.
Status BindNewShapes(const CompiledModel& model, std::span<const std::pair<std::string, Dims>> typical, std::vector<double>* millis) {
  for (int64_t batch = 2; batch < 34; ++batch) {
    BindRequest request;
    for (ValueId v : model.module.main().inputs) {
      const Value& input = model.module.main().value(v);
      if (IsKnown(input.type.dims[0])) return OkStatus();
      Dims dims = std::find_if(typical.begin(), typical.end(), [&](const auto& t) { return t.first == input.name; })->second;
      dims[0] = batch;
      request.inputs.push_back(Type::Tensor(input.type.dtype, dims));
    }
    const StopWatch watch;
    MSRT_RETURN_IF_ERROR(BindingFor(model, *model.entries[0]->current(), request).status());
    millis->push_back(watch.Millis());
  }
  return OkStatus();
}

Result<CompileOptions> OptionsFor(const std::string& path) {
  CompileOptions options;
  MSRT_ASSIGN_OR_RETURN(const Module module, LoadFile(DefaultIo(), path));
  for (ValueId v : module.main().inputs) {
    MSRT_ASSIGN_OR_RETURN(const Dims dims, DimsFor(module.main().value(v), {}));
    options.typical.emplace_back(module.main().value(v).name, dims);
  }
  return options;
}

Status Measure(const std::string& portable, const std::string& native, int rounds) {
  const auto environment = UserEnvironment();
  MSRT_ASSIGN_OR_RETURN(const CompileOptions options, OptionsFor(portable));
  MSRT_RETURN_IF_ERROR(WriteNative(environment, portable, options, native));
  Pair before, compile, prepare, total;
  std::vector<double> bind;
  for (int round = 0; round < rounds; ++round) {
    for (const bool is_native : {false, true}) {
      const auto add = [&](Pair* pair, double millis) { (is_native ? pair->native : pair->portable).push_back(millis); };
      const StopWatch watch;
      MSRT_ASSIGN_OR_RETURN(const auto model, CompileFile(environment, is_native ? native : portable, options));
      add(&total, watch.Millis());
      const LoadTimes& t = model->times;
      add(&before, t.map + t.verify + t.validate + t.passes + t.place);
      add(&compile, t.compile);
      add(&prepare, t.prepare);
      MSRT_RETURN_IF_ERROR(BindNewShapes(*model, options.typical, &bind));
    }
  }
  Row("map + verify + validate + passes + place", before);
  Row("compile and pack", compile);
  Row("prepare the first run (code generation)", prepare);
  Row("load, open to ready", total);
  if (!bind.empty())
    std::printf("  %-44s          min %8.3f  median %8.3f ms\n", "bind a new shape", *std::min_element(bind.begin(), bind.end()),
                Median(bind));
  return OkStatus();
}

Status MeasureAll(std::vector<std::string> models, int rounds) {
  const std::string stem = (std::filesystem::temp_directory_path() / ("msrt-load-bench-" + std::to_string(std::rand()))).string();
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
  const msrt::Status status = msrt::testing::MeasureAll({argv + std::min(argc, 2), argv + argc}, rounds);
  if (!status.ok()) std::fprintf(stderr, "load_bench: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
