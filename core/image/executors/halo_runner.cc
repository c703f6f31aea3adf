#include "core/image/executors/halo_runner.h"

#include <thread>

namespace msrt {

SplitOptions HaloSplit(const RankPart& part) {
  SplitOptions split;
  split.parts = {static_cast<int>(part.rows), static_cast<int>(part.columns)};
  // A rank reads the halo of the image from the file, which is cheaper than a message.
  split.inputs = InputRule::kRequired;
  split.group = "halos";
  return split;
}

Result<std::unique_ptr<HaloRunner>> HaloRunner::Create(
    std::shared_ptr<const Environment> environment, Module module, const ImageSize& size,
    CompileOptions options, const RankPart& part, Communicator* communicator,
    size_t memory_cap_bytes) {
  MSRT_RETURN_IF_ERROR(SetImageSize(size, &module));
  RankOptions rank;
  rank.compile = std::move(options);
  rank.compile.place.exact = true;
  rank.split = HaloSplit(part);
  rank.memory_cap_bytes = memory_cap_bytes;
  const Dims image{1, size.channels, size.rows, size.columns};
  auto runner = std::make_unique<HaloRunner>();
  MSRT_ASSIGN_OR_RETURN(runner->session_,
                        RankSession::Create(std::move(environment), std::move(module), {&image, 1},
                                            rank, communicator));
  MSRT_ASSIGN_OR_RETURN(runner->expected_bytes_, runner->session_->ExpectedBytes());
  return runner;
}

Result<RankReport> HaloRunner::Run(const RankIo& io, const std::atomic<bool>& cancelled) {
  // Signal handlers may only set the flag; a thread carries it on.
  constexpr std::chrono::milliseconds kInterval{20};
  std::atomic<bool> ended{false};
  std::thread watcher([&] {
    for (; !ended.load(); std::this_thread::sleep_for(kInterval)) {
      if (cancelled.load()) session_->Cancel();
    }
  });
  Result<RankReport> report = session_->Run(io, {});
  ended.store(true);
  watcher.join();
  return report;
}

}  // namespace msrt
