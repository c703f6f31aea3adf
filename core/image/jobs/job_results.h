// The results of a job: a sink for each output, with the conversion of boxes to pixels and the
// rules for files that exist already.
#pragma once

#include "core/base/clock.h"
#include "core/image/jobs/image_content.h"
#include "core/image/jobs/image_job.h"
#include "core/image/jobs/rank_results.h"
#include "core/image/jobs/result_memory.h"

namespace msrt {

// Refuses results that exist, unless the options replace or resume them, results of equal names,
// and results that would replace a file that the job reads.
Status CheckResultFiles(const std::string& model, const JobOptions& options);

// Thread-safe but for Finish: the ranks of a job convert, compress and write at once.
class JobResults final : public PieceResults {
 public:
  // `infos` describe the results in the order of the outputs. `content` outlives the object.
  // `pieces`: how the boxes will arrive, so that the sinks may hold what the plan counts for that.
  static Result<std::unique_ptr<JobResults>> Create(const JobOptions& options,
                                                    std::vector<ImageInfo> infos, uint64_t identity,
                                                    const ResultPieces& pieces,
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
  // Calls body(window, &pixels) for rows of a window that are in the same row of blocks, so that
  // few blocks are incomplete; `pixels` is memory for converted ones.
  template <typename Body>
  Status ForEachBand(size_t output, const ImageWindow& window, const Body& body);
  Status WriteBand(size_t output, const ImageWindow& window, const TensorView& memory,
                   std::vector<std::byte>* pixels);
  Status SkipBand(size_t output, const ImageWindow& window, std::vector<std::byte>* pixels);
  Status SyncNowAndThen();

  const JobOptions& options_;
  const std::vector<ImageInfo> infos_;
  ImageContent& content_;
  // Null: the result is complete from an earlier run.
  std::vector<std::unique_ptr<ImageSink>> sinks_;
  std::mutex sync_mutex_;  // protects the time; nothing else is done under it
  StopWatch since_sync_;
};

}  // namespace msrt
