// Runs a model at random shapes and checks memory; then rests and checks the processor time.
//   soak [runs] [seconds of rest]
// The suite runs a short version; the release check is `soak 10000 5`.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

#include "tests/conformance/memory_in_use.h"
#include "tests/conformance/pipeline.h"
#include "tools/msconvert/zoo.h"

namespace msrt::testing {
namespace {

double MegabytesInUse() { return static_cast<double>(MemoryInUse()) * 1e-6; }

double ProcessorMillis() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto millis = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) * 1e-3;
  };
  return millis(usage.ru_utime) + millis(usage.ru_stime);
}

int Fail(const Status& status) {
  std::fprintf(stderr, "soak: %s\n", status.message().c_str());
  return 1;
}

int Soak(int runs, double rest_seconds) {
  auto module = zoo::Build("mobilenetv2", {.open_image = true, .classes = 10});
  if (!module.ok()) return Fail(module.status());
  CompileOptions options;
  options.binding_cache_bytes = size_t{8} << 20;
  auto model = CompileModule(TestEnvironment(), *std::move(module), options);
  if (!model.ok()) return Fail(model.status());
  auto session = Session::Create(*model, 0, {});
  if (!session.ok()) return Fail(session.status());
  std::mt19937 random(1);
  // The largest request comes first, so that later growth is a leak and not a high-water mark.
  double early = 0, late = 0;
  for (int run = 0; run < runs; ++run) {
    const int64_t height = run == 0 ? 96 : 32 + static_cast<int64_t>(random() % 65),
                  width = run == 0 ? 96 : 32 + static_cast<int64_t>(random() % 65);
    const Dims dims{1, 3, height, width};
    const std::vector<float> pixels(static_cast<size_t>(dims.elements()), 0.5f);
    const auto out = RunSession(**session, {ConstTensor::Floats(dims, pixels)});
    if (!out.ok()) return Fail(out.status());
    if (run == runs / 4) early = MegabytesInUse();
    if (run % std::max(runs / 10, 1) == 0)
      std::printf("run %6d: %.1f MB in use, %zu bindings\n", run, MegabytesInUse(),
                  (*model)->entries[0]->current()->bindings->count());
  }
  late = MegabytesInUse();
  std::printf("after a quarter %.1f MB, at the end %.1f MB\n", early, late);
  const double before = ProcessorMillis();
  std::this_thread::sleep_for(std::chrono::duration<double>(rest_seconds));
  const double used = ProcessorMillis() - before;
  std::printf("%.3f ms of processor time in %.1f s of rest\n", used, rest_seconds);
  // 5 % and 8 MB: the observed variation of the allocator's fragmentation.
  if (late > early * 1.05 + 8)
    return Fail(InternalError("memory grew from ", early, " to ", late, " MB"));
  if (used > 5)
    return Fail(InternalError("the process used ", used, " ms of processor time at rest"));
  return 0;
}

}  // namespace
}  // namespace msrt::testing

int main(int argc, char** argv) {
  return msrt::testing::Soak(argc > 1 ? std::atoi(argv[1]) : 200,
                             argc > 2 ? std::atof(argv[2]) : 1);
}
