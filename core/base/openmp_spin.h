// How long the threads of an OpenMP team spin at a barrier before they sleep.
//
// libgomp spins 300,000 times, or 100 times if it manages more threads than there are cores (its
// manual, GOMP_SPINCOUNT). With a core for each thread the long spin is right: the short one pays a
// wake-up of 20 to 40 us at nearly every step, which doubled the time of MobileNetV3. But where
// another process needs a core, the scheduler cannot move a thread of the team to the core that its
// partner spins on, and both wait out whole time slices: MobileNetV3 then took 22 ms instead of 8
// on average. A library cannot set the count, but it can change the number of threads that libgomp
// manages. So the team spins long while its threads have their cores to themselves, and otherwise
// short for a while, which doubles as long as nothing changes.
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <vector>

namespace msrt {

class SpinControl {
 public:
  explicit SpinControl(int threads);
  virtual ~SpinControl();
  SpinControl(const SpinControl&) = delete;
  SpinControl& operator=(const SpinControl&) = delete;

  // Each thread of the team calls it with its number between two runs: libgomp may replace threads.
  void SetThread(int number);

  // The leader calls these around every run, and Check also within a run.
  void Begin();
  void Check();

  bool spins_long() const { return idle_ == nullptr; }

 protected:
  // The clocks, which tests replace.
  virtual int64_t Now() const;
  // Processor time of a thread of the team so far; nothing if the thread is gone.
  virtual std::optional<int64_t> ThreadTime(size_t number) const;

 private:
  class IdleThreads;

  void ReadThreadTimes(std::vector<int64_t>* times);
  // The least share of the observed time that a thread of the team was on a core.
  double LeastShare() const;

  std::vector<clockid_t> clocks_;
  std::vector<uint8_t> has_clock_;  // bytes, since several threads write them
  std::vector<int64_t> begin_times_, now_times_, busy_times_;  // by thread, in nanoseconds
  bool observes_ = false;                                      // the current run
  int64_t begin_nanos_ = 0, observed_nanos_ = 0, observe_again_nanos_ = 0;
  int64_t pause_nanos_, spin_again_nanos_ = 0;
  std::unique_ptr<IdleThreads> idle_;  // while the team spins short
};

}  // namespace msrt
