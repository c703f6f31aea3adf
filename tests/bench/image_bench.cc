// Time and memory of large images: by rolling rows, by tiles, and a crop at once.
//   image_bench [NET [WIDTH HEIGHT [CROP [STREAM_MIB TILES_MIB]]]]
// NET is classes or unet (image_networks.h). The image is made up as it is read. Prints for each
// way the nanoseconds for each pixel of the image, the ratio to the crop in exact mode, the peak
// memory as counted and as resident in the process, what was computed twice, and a checksum of the
// output that does not depend on how it was cut. A size of 0 MiB skips the way.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/base/clock.h"
#include "core/image/image_runner.h"
#include "core/image/stream_model.h"
#include "core/image/stream_testing.h"
#include "tests/bench/image_networks.h"

namespace msrt {
namespace {

using testing::kImageBands;

template <typename T>
T Must(Result<T> result) {
  if (result.ok()) return *std::move(result);
  std::fprintf(stderr, "image_bench: %s\n", result.status().message().c_str());
  std::exit(1);
}

constexpr double kMiB = 1 << 20;

// The peak of resident memory since the last reset, in MiB; 0 where the system does not tell.
double ResidentPeak() {
  double peak = 0;
  if (std::FILE* file = std::fopen("/proc/self/status", "r"); file != nullptr) {
    char line[256];
    while (std::fgets(line, sizeof(line), file) != nullptr) {
      if (std::strncmp(line, "VmHWM:", 6) == 0) peak = std::atof(line + 6) / 1024;
    }
    std::fclose(file);
  }
  return peak;
}
void ResetResidentPeak() {
  if (std::FILE* file = std::fopen("/proc/self/clear_refs", "w"); file != nullptr) {
    std::fputs("5", file);
    std::fclose(file);
  }
}

// Pixels follow from their coordinates.
Status MakePixels(const Box& box, const TensorView& memory) {
  const Dims dense = RowMajorStrides(box.dims());
  const int64_t* strides = memory.strides != nullptr ? memory.strides : dense.begin();
  for (int64_t c = 0; c < box[1].size(); ++c) {
    for (int64_t y = 0; y < box[2].size(); ++y) {
      float* row = memory.As<float>() + c * strides[1] + y * strides[2];
      const auto start =
          static_cast<uint32_t>((c + box[1].begin) * 7919 + (y + box[2].begin) * 131);
      for (int64_t x = 0; x < box[3].size(); ++x) {
        const uint32_t mixed = (start + static_cast<uint32_t>(x + box[3].begin)) * 2654435761u;
        row[x] = static_cast<float>(mixed >> 24) / 255;
      }
    }
  }
  return OkStatus();
}

uint64_t SumOf(const Dims& whole, const Box& box, const TensorView& memory) {
  uint64_t sum = 0;
  testing::ForEachLine(whole, box, memory, [&](int64_t at, int64_t from, int64_t count) {
    const auto* bits = memory.As<uint32_t>() + from;
    for (int64_t i = 0; i < count; ++i)
      sum += (uint64_t{bits[i]} + 1) * (static_cast<uint64_t>(at + i) * 2 + 1);
  });
  return sum;
}

struct Arguments {
  std::string net = "classes";
  int64_t width = 4096, height = 1024, crop = 2048;
  double stream_mib = 1536, tiles_mib = 4096;
};

class Bench {
 public:
  explicit Bench(const Arguments& arguments) : a_(arguments) {}

  void Run() {
    std::printf("%-22s %9s %7s %12s %13s %9s %9s  %s\n", "", "ns/pixel", "ratio", "counted MiB",
                "resident MiB", "twice", "seconds", "checksum");
    exact_ = Crop("crop, exact", true);
    Crop("crop, default", false);
    if (a_.stream_mib > 0) Image("rolling rows", ImageExecutor::kStream, a_.stream_mib);
    if (a_.tiles_mib > 0) Image("tiles", ImageExecutor::kTiles, a_.tiles_mib);
  }

 private:
  double Crop(const char* name, bool exact) {
    ResetResidentPeak();
    CompileOptions options;
    options.place.exact = exact;
    Module module = Must(testing::ImageNetwork(a_.net));
    const Dims dims{1, kImageBands, a_.crop, a_.crop};
    const Status sized = SetImageSize({kImageBands, a_.crop, a_.crop}, &module);
    if (!sized.ok()) std::exit(1);
    auto model = Must(CompileModule(testing::UserEnvironment(), std::move(module), options));
    auto session = Must(Session::Create(std::move(model), 0, {}));
    std::vector<float> pixels(static_cast<size_t>(dims.elements()));
    const TensorView view{DType::kF32, dims, Layout::kPlain, pixels.data()};
    (void)MakePixels(Box::Whole(dims), view);
    if (!session->SetInput(0, view, nullptr).ok()) std::exit(1);
    double best = 1e30;
    for (int round = 0; round < 2; ++round) {
      const StopWatch watch;
      const Status status = session->Run({});
      if (!status.ok()) {
        std::fprintf(stderr, "image_bench: %s\n", status.message().c_str());
        std::exit(1);
      }
      best = std::min(best, watch.Millis() / 1e3);
    }
    const double nanos = best * 1e9 / static_cast<double>(a_.crop * a_.crop);
    std::printf("%-22s %9.1f %7.3f %12s %13.0f %9s %9.2f\n", name, nanos,
                exact_ > 0 ? nanos / exact_ : 1, "", ResidentPeak(), "", best);
    std::fflush(stdout);
    return nanos;
  }

  void Image(const char* name, ImageExecutor executor, double mib) {
    ResetResidentPeak();
    auto model =
        Must(CompileForImage(testing::UserEnvironment(), Must(testing::ImageNetwork(a_.net)),
                             {kImageBands, a_.height, a_.width}, {}));
    const StopWatch plan_watch;
    auto runner = Must(ImageRunner::Create(
        std::move(model),
        {.memory_limit_bytes = static_cast<size_t>(mib * kMiB), .executor = executor}));
    const double plan_seconds = plan_watch.Millis() / 1e3;
    uint64_t sum = 0;
    ImageIo io;
    io.read = MakePixels;
    io.write = [&](size_t output, const Box& box, const TensorView& memory) {
      sum += SumOf(runner->output_type(output).dims, box, memory);
      return OkStatus();
    };
    const ImageReport report = Must(runner->Run(io, {}));
    const double seconds = report.seconds - report.read_seconds - report.write_seconds;
    const double nanos = seconds * 1e9 / static_cast<double>(a_.width * a_.height);
    double computed = 0, whole = 0;
    for (const auto& phase : report.phases)
      computed += phase.computed_elements, whole += phase.whole_elements;
    std::printf("%-22s %9.1f %7.3f %12.0f %13.0f %8.1f%% %9.2f  %016llx\n", name, nanos,
                nanos / exact_, static_cast<double>(report.peak_bytes) / kMiB, ResidentPeak(),
                (computed / whole - 1) * 100, seconds, static_cast<unsigned long long>(sum));
    std::printf("  recomputed rows %lld; planned in %.2f s; read %.2f s, write %.2f s; %s",
                static_cast<long long>(report.recomputed_rows), plan_seconds, report.read_seconds,
                report.write_seconds, runner->Describe().c_str());
    std::fflush(stdout);
  }

  const Arguments a_;
  double exact_ = 0;
};

}  // namespace
}  // namespace msrt

int main(int argc, char** argv) {
  msrt::Arguments a;
  if (argc > 1) a.net = argv[1];
  if (argc > 3) a.width = std::atoll(argv[2]), a.height = std::atoll(argv[3]);
  if (argc > 4) a.crop = std::atoll(argv[4]);
  if (argc > 6) a.stream_mib = std::atof(argv[5]), a.tiles_mib = std::atof(argv[6]);
  msrt::Bench(a).Run();
  return 0;
}
