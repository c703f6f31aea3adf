#include "tools/msrun/image.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <iostream>

#include "core/api/image.h"
#include "core/base/platform.h"
#include "core/base/units.h"
#include "core/comm/job_communicator.h"
#include "tools/msrun/duration.h"
#include "tools/msrun/image_arguments.h"
#include "tools/msrun/progress_line.h"
#include "tools/msrun/workload.h"

namespace msrt {
namespace {

// Percentage, speed, time left.
void ShowProgress(const JobProgress& p, ProgressLine* line) {
  if (!line->due(p.fraction >= 1)) return;
  char text[128];
  size_t length =
      static_cast<size_t>(std::snprintf(text, sizeof text, "%5.1f %%", p.fraction * 100));
  if (p.pixels_per_second > 0)
    std::snprintf(text + length, sizeof text - length, "   %.2f Mpixel/s   %s left",
                  p.pixels_per_second / 1e6, DurationText(p.seconds_left).c_str());
  line->Show(text);
}

// The job that an interrupt cancels; a second interrupt ends the process.
std::atomic<ImageJob*> interrupted_job{nullptr};

extern "C" void CancelImageJob(int) {
  ImageJob* const job = interrupted_job.load();
  if (job != nullptr) job->Cancel();
}

void CatchInterrupts(ImageJob* job) {
  interrupted_job.store(job);
  struct sigaction action {};
  action.sa_handler = job == nullptr ? SIG_DFL : CancelImageJob;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

// What the process holds before the job begins: the limit is one of the process.
size_t ResidentBytes() {
  size_t pages = 0, resident = 0;
  std::ifstream statm("/proc/self/statm");
  if (!(statm >> pages >> resident)) return 0;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

Status WriteFileOrOutput(const std::string& path, const std::string& text) {
  if (path == "-") {
    std::cout << text << "\n";
    return OkStatus();
  }
  const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(text))};
  return DefaultIo()->WriteFile(path, pieces);
}

void PrintPlan(const ImageJob& job) {
  const ImageInfo& image = job.image();
  std::printf("image      %lld x %lld x %lld %s\n", static_cast<long long>(image.channels),
              static_cast<long long>(image.height), static_cast<long long>(image.width),
              StrCat(image.dtype).c_str());
  const std::string plan = job.DescribePlan();
  for (size_t begin = 0; begin < plan.size();) {
    const size_t end = std::min(plan.find('\n', begin), plan.size());
    std::printf("plan       %s\n", plan.substr(begin, end - begin).c_str());
    begin = end + 1;
  }
  std::printf("memory     %s expected, limit %s\n",
              BytesText(static_cast<double>(job.plan().peak_bytes)).c_str(),
              BytesText(static_cast<double>(job.plan().limit_bytes)).c_str());
}

void PrintDone(const ImageJob& job, const JobReport& report) {
  const auto rss = PeakResidentBytes();
  if (report.resumed_rows > 0)
    std::printf("resumed    after row %lld\n", static_cast<long long>(report.resumed_rows));
  std::printf("done       %s, %.2f Mpixel/s, peak memory %s, %lld rows computed twice\n",
              DurationText(report.seconds).c_str(),
              static_cast<double>(report.pixels) / std::max(report.seconds, 1e-9) / 1e6,
              BytesText(rss.ok() ? *rss : 0).c_str(),
              static_cast<long long>(report.recomputed_rows));
  for (size_t o = 0; o < job.options().outputs.size(); ++o) {
    const ImageInfo& info = job.result(o);
    std::printf("result     %s: %lld x %lld x %lld %s\n", job.options().outputs[o].path.c_str(),
                static_cast<long long>(info.channels), static_cast<long long>(info.height),
                static_cast<long long>(info.width), StrCat(info.dtype).c_str());
  }
}

std::vector<std::string> DelegateNames(const std::string& text) {
  std::vector<std::string> names;
  for (size_t begin = 0; begin < text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    if (comma > begin) names.push_back(text.substr(begin, comma - begin));
    begin = comma + 1;
  }
  return names;
}

// The ranks of msrun launch, of mpirun or of variables set by hand, if this process is one of
// several.
struct ImageRanks {
  std::unique_ptr<Job> job;
  std::unique_ptr<Communicator> communicator;  // null: this process is alone
};

Status JoinRanks(ImageArguments* a, ImageRanks* ranks) {
  MSRT_ASSIGN_OR_RETURN(ranks->job, Job::FromEnvironment());
  const JobSettings& settings = ranks->job->settings();
  if (settings.size == 1) return OkStatus();
  // A rank may compute for hours without a message, so a long wait is no error. The watch of the
  // job finds ranks that are stuck and, where there is no control connection, those that are
  // stopped.
  a->job.watch = WatchLimitsOf(a->limits, ranks->job.get());
  CommOptions options;
  options.stall_limit = std::chrono::hours(24 * 7);
  MSRT_ASSIGN_OR_RETURN(ranks->communicator, MakeJobCommunicator(ranks->job.get(), options));
  JobOptions& job = a->job;
  job.communicator = ranks->communicator.get();
  if (!a->split_given) job.split_rows = settings.size, job.split_columns = 1;
  // The ranks of a host share its memory.
  if (job.plan.memory_limit_bytes == 0)
    job.plan.memory_limit_bytes = static_cast<size_t>(PhysicalMemoryBytes()) / 2 /
                                  static_cast<size_t>(std::max(1, settings.local_size));
  // The ranks of a host share its cores.
  if (a->common.threads == 0)
    a->common.threads = std::max(1, AvailableCores() / std::max(1, settings.local_size));
  if (settings.rank != 0) a->common.quiet = true, a->common.json.clear(), a->explain.clear();
  return OkStatus();
}

Status RunImageJob(ImageArguments& a) {
  ImageRanks ranks;
  MSRT_RETURN_IF_ERROR(JoinRanks(&a, &ranks));
  MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<const Environment> environment,
                        MakeEnvironment(a.common));
  a.job.plan.caller_bytes = ResidentBytes();
  a.job.compile.place.delegates = DelegateNames(a.common.delegates);
  ProgressLine line(!a.common.quiet, a.progress_seconds);
  a.job.progress = [&](const JobProgress& p) { ShowProgress(p, &line); };
  MSRT_ASSIGN_OR_RETURN(const std::unique_ptr<ImageJob> job,
                        ImageJob::Create(environment, a.common.model, a.job));
  if (!a.explain.empty()) {
    MSRT_ASSIGN_OR_RETURN(const std::string svg, ImageReportSvg(*job));
    MSRT_RETURN_IF_ERROR(WriteFileOrOutput(a.explain, svg));
  }
  if (a.common.prints()) PrintPlan(*job);
  std::fflush(stdout);
  JobReport report;
  if (!a.plan_only) {
    CatchInterrupts(job.get());
    Result<JobReport> done = job->Run();
    CatchInterrupts(nullptr);
    line.Clear();
    if (!done.ok() && done.status().code() == Code::kCancelled)
      return Status(Code::kCancelled, "interrupted; continue with the same command and --resume");
    if (!done.ok()) return std::move(done).status();
    report = *std::move(done);
    if (a.common.prints()) PrintDone(*job, report);
  }
  if (a.common.json.empty()) return OkStatus();
  return WriteFileOrOutput(a.common.json, ImageReportJson(*job, a.plan_only ? nullptr : &report));
}

}  // namespace

int RunImage(int argc, char** argv) {
  ImageArguments a;
  int exit_code = kDone;
  if (!ParseImageArguments(argc, argv, &a, &exit_code)) return exit_code;
  const Status status = RunImageJob(a);
  if (status.ok()) return kDone;
  std::cerr << "msrun: " << status.message() << "\n";
  return kFailed;
}

}  // namespace msrt
