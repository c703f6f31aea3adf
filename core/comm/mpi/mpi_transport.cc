// Engine "mpi" as a module: messages by OpenMPI or another MPI 3. All calls are nonblocking and
// polled, so that an abort ends them; the collectives are ours (collectives.h), because MPI's own
// neither compare the operations of ranks nor can be ended. They send a small array whole, with its
// header in the same message, and of a large one each rank's segment.
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <thread>

#include "core/comm/comm_module.h"
#include "core/comm/message_exchange.h"
#include "core/comm/mpi/local_peers.h"

namespace msrt {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Counts of MPI are ints; larger messages go in pieces.
inline constexpr size_t kMaxPiece = size_t{1} << 30;

// A short wait calls MPI at once again. Then the rank gives its core away, in case that ranks share
// cores. A long wait sleeps between the calls for a part of the time that it has lasted: an image
// job has threads that wait for hours, beside those that compute.
inline constexpr int kBusyPolls = 100;
inline constexpr milliseconds kYieldTime{2};
inline constexpr int kSleepPart = 128;
inline constexpr microseconds kMinSleep{50};
// A head may come at any time, long after its receive. A body is on its way, and MPI moves its
// pieces only while it is called.
inline constexpr microseconds kMaxHeadSleep{5000}, kMaxBodySleep{100};

// How long MPI_Finalize may take after a rank was lost, and after another failure, whose ranks may
// still be at work.
inline constexpr milliseconds kFinalizeTimeOfLoss{100}, kFinalizeTimeOfFailure{1000};

Status MpiError(std::string_view what, int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  return IoError("MPI: ", what, ": ", std::string_view(text, static_cast<size_t>(length)));
}

// A rank has died or does not answer: MPI_Finalize would wait for it without end. Of a rank on
// another host that has died, this one may only know that something failed.
std::atomic<bool> lost_a_rank{false}, has_failed{false};

class MpiTransport final : public CommTransport, private MessagePort {
 public:
  MpiTransport(MPI_Comm comm, int rank, int size, const std::string& group)
      : CommTransport(rank, size, group), comm_(comm) {
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }
  ~MpiTransport() override;

  const std::string& engine() const override {
    static const std::string name = "mpi";
    return name;
  }
  Status Exchange(const CommHeader& op, std::span<const CommPart> sends,
                  std::span<const CommPart> receives) override;
  Status Continue(const CommHeader& op, std::span<const CommPart> sends,
                  std::span<const CommPart> receives) override;
  Result<std::unique_ptr<CommTransport>> Split(const CommSubgroup& subgroup) override;
  void Abort(const Status& reason) override;

 private:
  Status Send(int to, Channel channel, const void* data, size_t bytes, int* handle) override;
  Status Receive(int from, Channel channel, void* data, size_t bytes, int* handle) override;
  Status Wait(int handle, std::span<const int> awaited) override;
  void Finish(bool failed, std::shared_ptr<void> memory) override;
  Status Poll(MPI_Request* request, microseconds max_sleep, std::span<const int> awaited);
  Status CheckAborts();
  Status reason() const {
    const std::lock_guard lock(mutex_);
    return reason_;
  }

  MPI_Comm comm_;
  // One message, by handle: its pieces in requests_. Completed pieces are MPI_REQUEST_NULL.
  struct Message {
    bool is_send;
    microseconds max_sleep;
    size_t first, last;
  };
  static microseconds MaxSleep(Channel channel) {
    return channel == kBodies ? kMaxBodySleep : kMaxHeadSleep;
  }
  std::vector<Message> messages_;
  std::vector<MPI_Request> requests_;
  MessageExchange exchange_{*this, *this};
  std::vector<std::shared_ptr<void>> kept_;
  mutable std::mutex mutex_;
  Status reason_;
  std::atomic<bool> aborted_{false};
};

MpiTransport::~MpiTransport() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  // After an abort messages may be in flight: the process is about to end, and MPI with it.
  if (finalized == 0 && !aborted_.load()) MPI_Comm_free(&comm_);
}

// Another rank may have failed, whichever rank this one waits for.
Status MpiTransport::CheckAborts() {
  int there = 0;
  MPI_Status status;
  if (aborted_.load()) return reason();
  Status peers = LocalPeers::OfProcess().Check();
  if (!peers.ok()) {
    lost_a_rank.store(true);
    return std::move(peers).Within(StrCat("group '", group(), "'"));
  }
  const int probed = MPI_Iprobe(MPI_ANY_SOURCE, kAborts, comm_, &there, &status);
  if (probed != MPI_SUCCESS) return MpiError("looking for aborts", probed);
  if (there == 0) return OkStatus();
  MessageHead head;
  const int code =
      MPI_Recv(&head, sizeof(head), MPI_BYTE, status.MPI_SOURCE, kAborts, comm_, MPI_STATUS_IGNORE);
  return code == MPI_SUCCESS ? ReasonOfAbort(head) : MpiError("receiving an abort", code);
}

Status MpiTransport::Poll(MPI_Request* request, microseconds max_sleep,
                          std::span<const int> awaited) {
  constexpr int kPollsOfCheck = 16;
  steady_clock::time_point begin;
  bool sleeps = false;
  for (int polls = 0;; ++polls) {
    if (polls == kBusyPolls) begin = steady_clock::now();
    int done = 0;
    const int code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return MpiError("a message failed", code);
    if (done != 0) return OkStatus();
    if (polls < kBusyPolls) continue;
    if (sleeps || polls % kPollsOfCheck == 0) {
      MSRT_RETURN_IF_ERROR(CheckAborts());
      const auto waited = std::chrono::duration_cast<microseconds>(steady_clock::now() - begin);
      if (waited > stall_limit()) return StallError(group(), rank(), stall_limit(), awaited);
      sleeps = waited > kYieldTime;
      const microseconds part = std::clamp(waited / kSleepPart, kMinSleep, max_sleep);
      if (sleeps) usleep(static_cast<useconds_t>(part.count()));
    }
    if (!sleeps) sched_yield();
  }
}

Status MpiTransport::Send(int to, Channel channel, const void* data, size_t bytes, int* handle) {
  *handle = static_cast<int>(messages_.size());
  Message& message = messages_.emplace_back(Message{true, MaxSleep(channel), requests_.size(), 0});
  for (size_t begin = 0; begin < bytes; begin += kMaxPiece) {
    const int piece = static_cast<int>(std::min(kMaxPiece, bytes - begin));
    const int code = MPI_Isend(static_cast<const std::byte*>(data) + begin, piece, MPI_BYTE, to,
                               channel, comm_, &requests_.emplace_back(MPI_REQUEST_NULL));
    message.last = requests_.size();
    if (code != MPI_SUCCESS) return MpiError(StrCat("sending to rank ", to), code);
  }
  return OkStatus();
}

Status MpiTransport::Receive(int from, Channel channel, void* data, size_t bytes, int* handle) {
  *handle = static_cast<int>(messages_.size());
  Message& message = messages_.emplace_back(Message{false, MaxSleep(channel), requests_.size(), 0});
  for (size_t begin = 0; begin < bytes; begin += kMaxPiece) {
    const int piece = static_cast<int>(std::min(kMaxPiece, bytes - begin));
    const int code = MPI_Irecv(static_cast<std::byte*>(data) + begin, piece, MPI_BYTE, from,
                               channel, comm_, &requests_.emplace_back(MPI_REQUEST_NULL));
    message.last = requests_.size();
    if (code != MPI_SUCCESS) return MpiError(StrCat("receiving from rank ", from), code);
  }
  return OkStatus();
}

Status MpiTransport::Wait(int handle, std::span<const int> awaited) {
  const Message& message = messages_[static_cast<size_t>(handle)];
  for (size_t i = message.first; i < message.last; ++i)
    MSRT_RETURN_IF_ERROR(Poll(&requests_[i], message.max_sleep, awaited));
  return OkStatus();
}

// After an error the caller gets its memory back, so receives that no message has matched yet are
// cancelled. Messages that MPI is moving get a moment to end.
void MpiTransport::Finish(bool failed, std::shared_ptr<void> memory) {
  if (failed) {
    kept_.push_back(std::move(memory));
    const auto until = steady_clock::now() + milliseconds(20);
    for (Message& message : messages_) {
      for (size_t i = message.first; i < message.last; ++i) {
        MPI_Request& request = requests_[i];
        int done = request == MPI_REQUEST_NULL ? 1 : 0;
        if (done == 0 && !message.is_send) MPI_Cancel(&request);
        while (done == 0 && steady_clock::now() < until)
          MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      }
    }
  }
  messages_.clear();
  requests_.clear();
}

Status MpiTransport::Exchange(const CommHeader& op, std::span<const CommPart> sends,
                              std::span<const CommPart> receives) {
  if (aborted_.load()) return reason();
  MSRT_RETURN_IF_ERROR(exchange_.Run(op, sends, receives));
  CountParts(sends, receives);
  return OkStatus();
}

Status MpiTransport::Continue(const CommHeader&, std::span<const CommPart> sends,
                              std::span<const CommPart> receives) {
  if (aborted_.load()) return reason();
  MSRT_RETURN_IF_ERROR(exchange_.RunBodies(sends, receives));
  CountParts(sends, receives);
  return OkStatus();
}

Result<std::unique_ptr<CommTransport>> MpiTransport::Split(const CommSubgroup& subgroup) {
  MPI_Group all = MPI_GROUP_NULL, members = MPI_GROUP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_group(comm_, &all);
  MPI_Group_incl(all, static_cast<int>(subgroup.members.size()), subgroup.members.data(), &members);
  const int tag = static_cast<int>(subgroup.number % 16384);
  const int code = MPI_Comm_create_group(comm_, members, tag, &comm);
  MPI_Group_free(&members);
  MPI_Group_free(&all);
  if (code != MPI_SUCCESS) return MpiError("split", code);
  return std::unique_ptr<CommTransport>(new MpiTransport(
      comm, subgroup.rank, static_cast<int>(subgroup.members.size()), subgroup.name));
}

void MpiTransport::Abort(const Status& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (aborted_.load()) return;
    reason_ = reason;
    has_failed.store(true);
    if (reason.code() == Code::kDeadlineExceeded) lost_a_rank.store(true);
    aborted_.store(true);
  }
  // Nothing waits for these messages to leave, so their memory stays.
  auto* head = new MessageHead(AbortHead(reason));
  for (int r = 0; r < size(); ++r) {
    MPI_Request request;
    if (r != rank())
      MPI_Isend(head, static_cast<int>(head->bytes()), MPI_BYTE, r, kAborts, comm_, &request);
  }
}

// MPI is initialised once and ends with the process, unless the application has done both itself.
Status Initialise() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  int initialised = 0, level = 0;
  MPI_Initialized(&initialised);
  if (initialised == 0) {
    const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
    if (code != MPI_SUCCESS) return MpiError("initialisation", code);
    std::atexit([] {
      int finalized = 0;
      MPI_Finalized(&finalized);
      if (finalized != 0) return;
      // A process that ends without MPI_Finalize makes mpirun end the others, stopped ones too.
      if (has_failed.load()) {
        std::fflush(nullptr);
        std::thread([] {
          std::this_thread::sleep_for(lost_a_rank.load() ? kFinalizeTimeOfLoss
                                                         : kFinalizeTimeOfFailure);
          _exit(EXIT_FAILURE);
        }).detach();
      }
      MPI_Finalize();
    });
  }
  MPI_Query_thread(&level);
  if (level < MPI_THREAD_MULTIPLE)
    return Unsupported(
        "engine mpi: this MPI, or the application that initialised it, does not "
        "support MPI_THREAD_MULTIPLE; use an MPI that does, or engine gloo");
  return OkStatus();
}

Result<std::unique_ptr<CommTransport>> Make(const CommModuleRequest& request) {
  MSRT_RETURN_IF_ERROR(Initialise());
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (request.size != 0 && (request.size != size || request.rank != rank))
    return InvalidArgument("engine mpi: this is rank ", rank, " of ", size, " in MPI, not rank ",
                           request.rank, " of ", request.size, "; start the ranks with mpirun -n ",
                           request.size);
  LocalPeers::OfProcess().Open();
  MPI_Comm comm = MPI_COMM_NULL;
  const int code = MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  if (code != MPI_SUCCESS) return MpiError("duplicating the world", code);
  return std::unique_ptr<CommTransport>(new MpiTransport(comm, rank, size, request.group));
}

}  // namespace
}  // namespace msrt

extern "C" __attribute__((visibility("default"))) const msrt::CommModule* msrt_comm_module() {
  static const msrt::CommModule module{.make = msrt::Make};
  return &module;
}
