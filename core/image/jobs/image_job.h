// One job over an image: reads a source, normalizes, runs the model by rows or tiles, and writes
// the results, under a memory limit. A result has its name only when it is complete; a job that was
// interrupted can be continued. Several ranks can share a job: by exchanging halos, or by computing
// rows or tiles of different parts. Rank 0 writes the results.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/comm/job/rank_watch.h"
#include "core/compile/compile.h"
#include "core/image/executors/image_runner.h"
#include "core/image/files/image_sink.h"
#include "core/image/files/image_source.h"
#include "core/image/jobs/image_normalize.h"
#include "core/image/jobs/image_result.h"
#include "core/image/jobs/rank_results.h"

namespace msrt {

// The image comes from a file or, if `source` is set, from a source of the caller.
struct JobInput {
  std::string path = {};
  OpenOptions open = {};
  std::shared_ptr<ImageSource> source = nullptr;
  // Of a source of the caller: differs for images that differ, such as a name and a time of change.
  // A job that is continued needs it, because the pixels of such a source are not looked at.
  std::string identity = {};
  std::vector<int64_t> bands = {};  // channels that the model gets, from 0; empty: all
};

// A result goes to a file or, if `write` is set, to a function of the caller.
struct JobOutput {
  std::string name = {};  // of the model's output; empty: the first
  std::string path = {};
  WriteWindow write = nullptr;
  ClassMap classes = ClassMap::kNone;
};

struct JobProgress {
  double fraction = 0;  // of all work
  double seconds = 0, seconds_left = 0;
  double pixels_per_second = 0;  // of the image; 0: not known yet
};

struct JobOptions {
  JobInput input = {};
  std::vector<JobOutput> outputs = {};
  ImagePlanOptions plan = {};
  // Parts of the image for several ranks, rows x columns. 1 x 1: no split.
  int64_t split_rows = 1, split_columns = 1;
  // All ranks of the job, as many as parts; it outlives the job, which alone uses it. Every rank
  // creates and runs the same job, with a runtime and a memory limit of its own. Null: the ranks
  // are threads of this process, which share the limit and the threads of the environment.
  Communicator* communicator = nullptr;
  // When ranks that are processes are given up. Operations of the communicator must not have a
  // limit that is shorter than the work of a rank between two messages.
  WatchLimits watch = {};
  Normalization normalization = {};
  std::string mask = {};      // a file; where its first channel is 0, there is no content
  bool use_no_data = true;    // pixels of the image's no-data value have no content
  CreateOptions create = {};  // of results; `overviews`, `resume` and `job` are set by the job
  bool resume = false;        // continue results that an interrupted job of the same kind has left
  bool overwrite = false;     // replace results, finished or not
  double sync_seconds = 10;   // results survive a kill up to this long before it
  CompileOptions compile = {};
  std::function<void(const JobProgress&)> progress = {};
};

// On rank 0 everything is of all ranks, but for `run` and `plan`.
struct JobReport {
  ImageReport run;
  ImagePlan plan;
  int64_t recomputed_rows = 0;
  std::vector<RankWork> ranks;  // empty: there was one
  double compile_seconds = 0, seconds = 0;
  int64_t pixels = 0;        // of the image
  int64_t resumed_rows = 0;  // of the first output, that were there before
  int64_t decoded_blocks = 0;
};

// Cancel may be called from any thread; everything else by one thread at a time.
class ImageJob {
 public:
  // Opens the image, compiles the model for it and plans the work. No file is written.
  static Result<std::unique_ptr<ImageJob>> Create(std::shared_ptr<const Environment> environment,
                                                  const std::string& model, JobOptions options);
  ~ImageJob();

  const ImageInfo& image() const;
  const ImageInfo& result(size_t output) const;
  const std::string& output_name(size_t output) const;
  const ImagePlan& plan() const;
  // One line for each phase.
  std::string DescribePlan() const;
  // A picture of the plan (SVG): strips, tiles or parts, halos, messages and memory.
  Result<std::string> DrawPlan(std::string_view title) const;
  const JobOptions& options() const;
  // Identifies everything that determines the pixels of the results: model, image, options.
  uint64_t identity() const;

  // Runs once. After an error or a cancellation the unfinished results stay, for resuming.
  Result<JobReport> Run();
  void Cancel();

 private:
  class Impl;
  ImageJob();
  Impl& first() const { return *ranks_[0]; }
  template <typename Body>
  Status ForEachRank(const Body& body);

  // Communicators of ranks that are threads of this process; they outlive the ranks.
  std::vector<std::unique_ptr<Communicator>> communicators_;
  std::vector<std::unique_ptr<Impl>> ranks_;  // of this process, the one to report first
};

}  // namespace msrt
