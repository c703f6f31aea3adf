// The results of a job that several ranks share. Rank 0 has the sinks. Every other rank has a
// communicator with rank 0 alone, through which it sends its boxes of the outputs and asks which
// boxes are wanted; a thread of rank 0 answers.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/comm/communicator.h"
#include "core/graph/tensor.h"
#include "core/region/box.h"

namespace msrt {

// Where the boxes of the outputs go.
class PieceResults {
 public:
  virtual ~PieceResults() = default;
  // Takes a box of an output.
  virtual Status Write(size_t output, const Box& box, const TensorView& memory) = 0;
  // Writes the fill value to a box of an output that was not computed.
  virtual Status Skip(size_t output, const Box& box) = 0;
  // Returns whether the box has content and is not finished.
  virtual Result<bool> Wanted(size_t output, const Box& box) = 0;
};

// What one rank did, as it tells rank 0 at its end.
struct RankWork {
  int64_t exchanges = 0, messages = 0, message_bytes = 0;  // of halos
  int64_t result_bytes = 0;                                // sent to rank 0
  int64_t computed_rows = 0, recomputed_rows = 0;
  int64_t peak_bytes = 0, expected_bytes = 0;
  double seconds = 0, exposed_seconds = 0;
};

// On a rank other than 0. Used by one thread.
class RemoteResults final : public PieceResults {
 public:
  // Rank 0 of `pair` is that of the job.
  explicit RemoteResults(std::unique_ptr<Communicator> pair) : pair_(std::move(pair)) {}

  Status Write(size_t output, const Box& box, const TensorView& memory) override;
  Status Skip(size_t output, const Box& box) override;
  Result<bool> Wanted(size_t output, const Box& box) override;
  Status Progress(double fraction);
  // The last message. result_bytes is filled in.
  Status Done(RankWork work);
  const Communicator& pair() const { return *pair_; }

 private:
  std::unique_ptr<Communicator> pair_;
  std::vector<std::byte> band_;
  int64_t result_bytes_ = 0;
};

// The memory that rank 0 needs for the boxes of each other rank, and that rank to send them.
inline constexpr size_t kResultBandBytes = size_t{8} << 20;

// On rank 0: answers the other ranks, each in its own thread, from Start to Join.
class ResultServer {
 public:
  // `pairs[i]` is the communicator with rank i + 1 of the job.
  explicit ResultServer(std::vector<std::unique_ptr<Communicator>> pairs)
      : pairs_(std::move(pairs)), work_(pairs_.size()), fractions_(pairs_.size()) {}
  ~ResultServer() { (void)Join(); }

  // `results` is used from several threads. An error aborts all ranks, and sets `*stop`.
  void Start(PieceResults* results, std::atomic<bool>* stop);
  // Waits until all ranks are done, and returns the first error. Calls `meanwhile`, which may be
  // null, a few times per second.
  Status Join(const std::function<void()>& meanwhile = nullptr);
  const std::vector<RankWork>& work() const { return work_; }  // after Join
  // The sum over the other ranks of the fraction of its work that each has done.
  double fractions() const;

 private:
  Status Serve(size_t pair, PieceResults* results);

  std::vector<std::unique_ptr<Communicator>> pairs_;
  std::vector<RankWork> work_;
  mutable std::mutex mutex_;
  std::vector<double> fractions_;
  Status first_error_;
  size_t ended_ = 0;  // threads
  std::condition_variable thread_ended_;
  std::vector<std::thread> threads_;
};

}  // namespace msrt
