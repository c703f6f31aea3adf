// Measures a workload and says what it found: as text, as JSON, as a Chrome trace.
#pragma once

#include <nlohmann/json.hpp>

#include "tools/msrun/workload.h"

namespace msrt {

struct StepTotal {
  std::string name, op, delegate, algorithm, layout, shape;
  double millis = 0, gflops = 0, gbytes_per_second = 0;  // mean time of one run
  double share = 0;
};

struct Measurement {
  double first_run_millis = 0;
  std::vector<double> millis;  // each timed run, in order
  std::vector<StepTotal> steps;
  double peak_gflops = 0, peak_gbytes_per_second = 0, gflop = 0;
  SessionMemory memory;
  double peak_rss_bytes = 0;
  std::vector<std::vector<StepTime>> traces;  // a few profiled runs
};

Result<Measurement> Measure(const Arguments& arguments, Workload& workload);

// A line on standard error that rewrites itself, on a terminal only.
class Progress {
 public:
  Progress();
  ~Progress();
  // `part` of 1.
  void Show(const char* what, double part);

 private:
  bool terminal_;
  StopWatch watch_;
  double last_ = -1000;
};

// Of sorted values; p in [0, 100].
double Percentile(const std::vector<double>& sorted, double p);

nlohmann::json ToJson(const Arguments& arguments, const Workload& workload, const Measurement& measurement);
void PrintReport(const Arguments& arguments, const Workload& workload, const Measurement& measurement);
Status WriteTrace(const std::string& path, const Measurement& measurement);

// Two JSON reports side by side: which is faster, where the time went.
Status CompareReports(const std::string& a, const std::string& b);

}  // namespace msrt
