// A rank for the tests of the launcher. rank_program MODE [NUMBER]: joins its job and does what
// MODE says. It reports the reason of an abort, with the time, and ends with code 3 then.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "core/comm/job_communicator.h"

namespace msrt {
namespace {

using std::chrono::milliseconds;

double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void Print(const std::string& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

int Aborted(const char* where, const Status& status) {
  std::fprintf(stderr, "%s: %s\n", where, status.message().c_str());
  return 3;
}

class Rank {
 public:
  explicit Rank(Job* job) : job_(*job), slot_(job->control()->progress().Open("world", 1)) {
    callback_ = job_.control()->OnAbort([this](const Status& reason) {
      Print(StrCat("abort ", static_cast<int64_t>(WallSeconds() * 1000), " ", reason.message()));
      aborted_ = true;
    });
  }

  ~Rank() { job_.control()->RemoveCallback(callback_); }

  // A collective that really waits for all: a barrier over the store.
  Status Collective(CommKind op, uint64_t bytes) {
    slot_->Enter(op, ++sequence_, bytes);
    MSRT_RETURN_IF_ERROR(StoreBarrier(job_.store(), StrCat("step/", sequence_), job_.rank(),
                                      job_.size(), LimitOf(std::chrono::seconds(60))));
    slot_->Leave();
    return OkStatus();
  }

  // Collectives until the job is aborted.
  int Work(int steps) {
    while (steps-- > 0) {
      const Status status = Collective(CommKind::kAllReduce, 4096);
      if (!status.ok()) return WaitForAbort(status);
      std::this_thread::sleep_for(milliseconds(1));
    }
    return 0;
  }

  // All ranks wait in operation 4, and rank 1 in another one than the rest.
  int Diverge(int bytes) {
    if (const int failed = Work(3)) return failed;
    const bool different = job_.rank() == 1;
    slot_->Enter(different && bytes == 0 ? CommKind::kBroadcast : CommKind::kAllReduce, ++sequence_,
                 different && bytes != 0 ? static_cast<uint64_t>(bytes) : 4096);
    Print(StrCat("calls ", static_cast<int64_t>(WallSeconds() * 1000)));
    return WaitForAbort(OkStatus());
  }

  int Sleep() { return WaitForAbort(OkStatus()); }

 private:
  int WaitForAbort(const Status& status) {
    while (!aborted_) std::this_thread::sleep_for(milliseconds(1));
    return Aborted("work", status.ok() ? job_.control()->status() : status);
  }

  Job& job_;
  std::shared_ptr<ProgressSlot> slot_;
  uint64_t callback_ = 0, sequence_ = 0;
  std::atomic<bool> aborted_{false};
};

// All-reduces through the engine of MSRT_ENGINE until one fails, or `steps` of them if not 0.
// `other` is the rank that calls a broadcast as its fourth collective, `hanging` one that never
// calls it; negative: none.
int Reduce(Job* job, int steps, int other, int hanging) {
  auto comm = MakeJobCommunicator(job);
  if (!comm.ok()) return Aborted("communicator", comm.status());
  Print(StrCat("pid ", getpid()));
  std::vector<float> data(1024);
  for (int step = 1; steps == 0 || step <= steps; ++step) {
    std::fill(data.begin(), data.end(), 1.0f);
    const bool differs = step == 4 && job->rank() == other;
    // The others call first: of two different calls alone, nothing tells which is wrong.
    if (differs) std::this_thread::sleep_for(milliseconds(100));
    if (step == 4 && (other >= 0 || job->rank() == hanging))
      Print(StrCat("calls ", static_cast<int64_t>(WallSeconds() * 1000)));
    while (step == 4 && job->rank() == hanging) std::this_thread::sleep_for(milliseconds(1000));
    auto work = differs ? (*comm)->Broadcast(data.data(), data.size() * sizeof(float), 0)
                        : (*comm)->AllReduce(data.data(), data.size(), CommType::kF32,
                                             CommReduce::kSum, CommOrder::kAny);
    const Status status = work.ok() ? (*work)->Wait({}) : work.status();
    if (!status.ok()) {
      Print(StrCat("abort ", static_cast<int64_t>(WallSeconds() * 1000), " ", status.message()));
      return Aborted("reduce", status);
    }
    if (data[1023] != static_cast<float>(job->size())) return Aborted("sum", IoError("is wrong"));
  }
  return 0;
}

int Run(const std::string& mode, int number) {
  if (mode == "crash_early" && std::getenv("MSRT_RANK") == std::to_string(number)) return 5;
  auto job = Job::FromEnvironment();
  if (!job.ok()) return Aborted("join", job.status());
  if ((*job)->control() == nullptr) {
    Print(StrCat("alone or under MPI: rank ", (*job)->rank(), " of ", (*job)->size()));
    return 0;
  }
  if (mode == "reduce") return Reduce(job->get(), number, -1, -1);
  if (mode == "reduce_other") return Reduce(job->get(), 0, 1, -1);
  if (mode == "hang") return Reduce(job->get(), 0, -1, number);
  Rank rank(job->get());
  Print(StrCat("pid ", getpid()));
  const bool chosen = (*job)->rank() == number;
  if (mode == "join" || mode == "crash_early") return 0;
  if (mode == "steps") return rank.Work(number);
  if (mode == "work") return rank.Work(1 << 30);
  if (mode == "sleep") return rank.Sleep();
  if (mode == "diverge") return rank.Diverge(number);
  if (mode == "code" && chosen) {
    (void)rank.Work(3);
    std::fprintf(stderr, "the disk is full\n");
    return 7;
  }
  if (mode == "fail" && chosen) {
    (void)rank.Work(3);
    (*job)->control()->Fail(IoError("file 'x' cannot be read"));
    return rank.Sleep();
  }
  if (mode == "leave" && chosen) return rank.Work(3);
  if (mode == "hold" && chosen) std::this_thread::sleep_for(milliseconds(500));
  if (mode == "hold") return 0;
  return rank.Work(1 << 30);
}

}  // namespace
}  // namespace msrt

int main(int argc, char** argv) {
  return msrt::Run(argc > 1 ? argv[1] : "join", argc > 2 ? std::atoi(argv[2]) : 0);
}
