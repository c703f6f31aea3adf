// Measures a workload and shows the result: as text, as JSON, as a Chrome trace.
#pragma once

#include <nlohmann/json.hpp>

#include "tools/msrun/workload.h"

namespace msrt {

// A step of a program, averaged over the profiled runs. A loop runs the steps of its body more than
// once.
struct StepTotal {
  std::string name, op, delegate, algorithm, arithmetic;
  std::string layout, shape;  // of the last run
  std::string graph;          // empty for the main graph
  double count = 0;
  double millis = 0;  // without the graphs that it calls
  double gflops = 0, gbytes_per_second = 0;
  double share = 0;  // of the run's time
};

struct Measurement {
  double first_run_millis = 0;
  std::vector<double> millis;  // each timed run, in order; of all streams
  double runs_per_second = 0;  // total of all streams
  std::vector<StepTotal> steps;
  double between_steps_millis = 0;  // of a profiled run: shapes, memory, calls
  double peak_gflops = 0, peak_gbytes_per_second = 0, gflop = 0;
  SessionMemory memory;
  double peak_rss_bytes = 0;
  std::vector<RunProfile> profiles;  // a few profiled runs
};

// Returns the op of a kernel or of control flow, or what another step does: convert, copy, state.
std::string OpLabel(const Program& program, const Step& step);

// Runs several sessions of the model concurrently for arguments.seconds. Fills `millis` and
// `runs_per_second`.
Status MeasureStreams(const Arguments& arguments, Workload& workload, Measurement* measurement);

// Fills `steps`, `between_steps_millis` and `gflop` from `profiles`.
void AddUpSteps(Measurement* measurement);

Result<Measurement> Measure(const Arguments& arguments, Workload& workload);

// A line on standard error that rewrites itself, on a terminal only.
class Progress {
 public:
  explicit Progress(bool quiet);
  ~Progress();
  // `part` is from 0 to 1.
  void Show(const char* what, double part);

 private:
  bool terminal_;
  StopWatch watch_;
  double last_ = -1000;
};

// Returns a percentile of sorted values; p in [0, 100].
double Percentile(const std::vector<double>& sorted, double p);

nlohmann::json ToJson(const Arguments& arguments, const Workload& workload,
                      const Measurement& measurement);
void PrintReport(const Arguments& arguments, const Workload& workload,
                 const Measurement& measurement);
Status WriteTrace(const std::string& path, const std::string& model,
                  const Measurement& measurement);

// Prints two JSON reports side by side: which is faster, and where the time went.
Status CompareReports(const std::string& a, const std::string& b);

}  // namespace msrt
