// The results of a job: a sink for each output, with the conversion of boxes to pixels and the
// rules for files that exist already.
#pragma once

#include "core/base/clock.h"
#include "core/image/jobs/image_content.h"
#include "core/image/jobs/image_job.h"
#include "core/image/jobs/rank_results.h"

namespace msrt {

// Refuses results that exist, unless the options replace or resume them, results of equal names,
// and results that would replace a file that the job reads.
Status CheckResultFiles(const std::string& model, const JobOptions& options);

// Thread-safe but for Finish: the ranks of a job write at once.
class JobResults final : public PieceResults {
 public:
  // `infos` describe the results in the order of the outputs. `content` outlives the object.
  static Result<std::unique_ptr<JobResults>> Create(const JobOptions& options,
                                                    std::vector<ImageInfo> infos, uint64_t identity,
                                                    ImageContent* content);

  Status Write(size_t output, const Box& box, const TensorView& memory) override;
  Status Skip(size_t output, const Box& box) override;
  Result<bool> Wanted(size_t output, const Box& box) override;

  int64_t finished_rows() const;  // of the first output
  // Makes everything durable that is complete.
  Status Sync();
  // Gives the results their names.
  Status Finish();

 private:
  JobResults(const JobOptions& options, std::vector<ImageInfo> infos, ImageContent* content)
      : options_(options), infos_(std::move(infos)), content_(*content) {}
  // Rows of a window that are in the same row of blocks, so that few blocks are incomplete.
  template <typename Body>
  Status ForEachBand(const ImageWindow& window, const Body& body);
  Status WriteBand(size_t output, const ImageWindow& window, const TensorView& memory);
  Status SkipBand(size_t output, const ImageWindow& window);
  Status SyncAll();
  Status SyncNowAndThen();

  const JobOptions& options_;
  const std::vector<ImageInfo> infos_;
  ImageContent& content_;
  std::mutex mutex_;
  // Null: the result is complete from an earlier run.
  std::vector<std::unique_ptr<ImageSink>> sinks_;
  std::vector<std::byte> pixels_;
  StopWatch since_sync_;
};

// Memory that sinks hold: blocks that are not complete, and pixels of one piece.
int64_t ResultBytes(const JobOptions& options, const ImageInfo& info);

}  // namespace msrt
