// Time and memory of large images: by rolling rows, by tiles, and a crop at once.
//   image_bench [NET [WIDTH HEIGHT [CROP [STREAM_MIB TILES_MIB]]]]
// NET is classes or unet (image_networks.h). The image is made up as it is read. Prints for each
// way the nanoseconds for each pixel of the image, the ratio to the crop in exact mode, the peak
// memory as counted and as resident in the process, what was computed twice, and a checksum of the
// output that does not depend on how it was cut. A size of 0 MiB skips the way.
//
// With crops from 1024 on, exits with 1 if a limit is missed and says which: rolling rows take at
// most 1.1 of the crop's time for each pixel, and the crop of the U-Net takes in exact mode at most
// 1.1 of its time in default mode (the two in turn, median of 5). With any size: rolling rows
// compute nothing twice, both ways stay below their memory, and their results are the same. The
// limits of time need an idle machine.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/base/clock.h"
#include "core/image/executors/image_runner.h"
#include "core/image/executors/stream_model.h"
#include "core/image/executors/stream_testing.h"
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

void MustBeOk(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "image_bench: %s\n", status.message().c_str());
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

  // Returns whether all limits hold.
  bool Run() {
    std::printf("%-22s %9s %7s %12s %13s %9s %9s  %s\n", "", "ns/pixel", "ratio", "counted MiB",
                "resident MiB", "twice", "seconds", "checksum");
    Crops();
    uint64_t rows = 0, tiles = 0;
    if (a_.stream_mib > 0) rows = Image("rolling rows", ImageExecutor::kStream, a_.stream_mib);
    if (a_.tiles_mib > 0) tiles = Image("tiles", ImageExecutor::kTiles, a_.tiles_mib);
    if (a_.stream_mib > 0 && a_.tiles_mib > 0)
      Expect(rows == tiles, "the results of rows and tiles differ");
    return kept_;
  }

 private:
  void Expect(bool holds, const std::string& limit) {
    if (!holds) std::printf("limit missed: %s\n", limit.c_str());
    kept_ = kept_ && holds;
  }
  bool judges_time() const { return a_.crop >= 1024; }

  std::unique_ptr<Session> CropSession(bool exact, const TensorView& pixels) {
    CompileOptions options;
    options.place.exact = exact;
    Module module = Must(testing::ImageNetwork(a_.net));
    MustBeOk(SetImageSize({kImageBands, a_.crop, a_.crop}, &module));
    auto model = Must(CompileModule(testing::UserEnvironment(), std::move(module), options));
    auto session = Must(Session::Create(std::move(model), 0, {}));
    MustBeOk(session->SetInput(0, pixels, nullptr));
    MustBeOk(session->Run({}));
    return session;
  }

  // Both modes in turn, so that a change of the machine's speed meets both.
  void Crops() {
    ResetResidentPeak();
    const Dims dims{1, kImageBands, a_.crop, a_.crop};
    std::vector<float> pixels(static_cast<size_t>(dims.elements()));
    const TensorView view{DType::kF32, dims, Layout::kPlain, pixels.data()};
    (void)MakePixels(Box::Whole(dims), view);
    constexpr const char* kNames[] = {"crop, exact", "crop, default"};
    constexpr int kRounds = 5;
    std::unique_ptr<Session> sessions[] = {CropSession(true, view), CropSession(false, view)};
    std::vector<double> seconds[2];
    for (int round = 0; round < kRounds; ++round) {
      for (int mode = 0; mode < 2; ++mode) {
        const StopWatch watch;
        MustBeOk(sessions[mode]->Run({}));
        seconds[mode].push_back(watch.Millis() / 1e3);
      }
    }
    double nanos[2];
    for (int mode = 0; mode < 2; ++mode) {
      std::sort(seconds[mode].begin(), seconds[mode].end());
      const double median = seconds[mode][kRounds / 2];
      nanos[mode] = median * 1e9 / static_cast<double>(a_.crop * a_.crop);
      std::printf("%-22s %9.1f %7.3f %12s %13.0f %9s %9.2f\n", kNames[mode], nanos[mode],
                  nanos[mode] / nanos[0], "", ResidentPeak(), "", median);
    }
    std::fflush(stdout);
    exact_ = nanos[0];
    const double ratio = nanos[0] / nanos[1];
    std::printf("exact takes %.3f of default\n", ratio);
    if (judges_time() && a_.net == "unet")
      Expect(ratio <= kMaxRatio, StrCat("exact takes ", ratio, " of default"));
  }

  // Returns the checksum.
  uint64_t Image(const char* name, ImageExecutor executor, double mib) {
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
    Expect(static_cast<double>(report.peak_bytes) <= mib * kMiB,
           StrCat(name, ": more memory than ", mib, " MiB"));
    if (executor == ImageExecutor::kStream) {
      Expect(report.recomputed_rows == 0, "rolling rows computed rows twice");
      if (judges_time())
        Expect(nanos <= kMaxRatio * exact_,
               StrCat("rolling rows take ", nanos / exact_, " of the crop's time for each pixel"));
    }
    return sum;
  }

  static constexpr double kMaxRatio = 1.1;
  const Arguments a_;
  double exact_ = 0;  // nanoseconds for each pixel
  bool kept_ = true;
};

}  // namespace
}  // namespace msrt

int main(int argc, char** argv) {
  msrt::Arguments a;
  if (argc > 1) a.net = argv[1];
  if (argc > 3) a.width = std::atoll(argv[2]), a.height = std::atoll(argv[3]);
  if (argc > 4) a.crop = std::atoll(argv[4]);
  if (argc > 6) a.stream_mib = std::atof(argv[5]), a.tiles_mib = std::atof(argv[6]);
  return msrt::Bench(a).Run() ? 0 : 1;
}
