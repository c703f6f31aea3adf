// Where the time of a load goes, and what a new input shape costs, on zoo:resnet50.
//   load_bench [rounds]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "core/model/write.h"
#include "delegates/builtin.h"
#include "tests/conformance/pipeline.h"
#include "tools/msconvert/zoo.h"

namespace msrt::testing {
namespace {

double Median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

void Row(const char* what, const std::vector<double>& millis) {
  std::printf("%-44s min %8.3f  median %8.3f ms\n", what, *std::min_element(millis.begin(), millis.end()), Median(millis));
}

// Written as msconvert writes it: optimised, so that a load has nothing left to fold.
Status WriteResNet50(const std::string& path) {
  MSRT_ASSIGN_OR_RETURN(Module module, zoo::Build("resnet50", {}));
  MSRT_RETURN_IF_ERROR(RunPasses({.evaluator = &BuiltinEvaluator()}, {}, &module).status());
  return WriteModel(module, path, DefaultIo());
}

// New batch sizes on a loaded model: types, memory plan and kernels bound; code is generated at the first run.
Status BindNewShapes(const CompiledModel& model, std::vector<double>* millis) {
  for (int64_t batch = 2; batch < 34; ++batch) {
    const BindRequest request{{Type::Tensor(DType::kF32, {batch, 3, 224, 224})}, {}};
    const StopWatch watch;
    MSRT_RETURN_IF_ERROR(BindingFor(model, *model.entries[0]->current(), request).status());
    millis->push_back(watch.Millis());
  }
  return OkStatus();
}

Status Measure(const std::string& path, int rounds) {
  MSRT_RETURN_IF_ERROR(WriteResNet50(path));
  std::vector<double> before, after, total, bind;
  CompileOptions options;
  options.typical = {{"image", {1, 3, 224, 224}}};
  const auto environment = UserEnvironment();
  for (int round = 0; round < rounds; ++round) {
    const StopWatch watch;
    MSRT_ASSIGN_OR_RETURN(const auto model, CompileFile(environment, path, options));
    total.push_back(watch.Millis());
    const LoadTimes& t = model->times;
    before.push_back(t.map + t.verify + t.validate + t.passes + t.place);
    after.push_back(t.compile + t.prepare);
    MSRT_RETURN_IF_ERROR(BindNewShapes(*model, &bind));
  }
  Row("map + verify + validate + passes + place", before);
  Row("compile, pack and prepare the first run", after);
  Row("load, open to ready", total);
  Row("bind a new shape", bind);
  return OkStatus();
}

}  // namespace
}  // namespace msrt::testing

int main(int argc, char** argv) {
  const std::string path = (std::filesystem::temp_directory_path() / ("msrt-load-bench-" + std::to_string(std::rand()) + ".msrt")).string();
  const msrt::Status status = msrt::testing::Measure(path, argc > 1 ? std::max(1, std::atoi(argv[1])) : 20);
  std::filesystem::remove(path);
  if (!status.ok()) std::fprintf(stderr, "load_bench: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
