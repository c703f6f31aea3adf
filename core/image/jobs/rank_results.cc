#include "core/image/jobs/rank_results.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/base/catch_as_status.h"

namespace msrt {
namespace {

constexpr int kMaxDims = 4;  // outputs have 3 or 4

constexpr std::chrono::milliseconds kMeanwhile{200};

enum class Kind : int32_t { kWrite, kSkip, kWanted, kProgress, kDone };

// Precedes the elements of a box. Ranks of one job have the same byte order.
struct Message {
  Kind kind = Kind::kDone;
  int32_t dtype = 0;
  int64_t output = 0;
  int64_t dims = 0;
  Interval box[kMaxDims] = {};
  double fraction = 0;
  RankWork work = {};
};

Status Transfer(Communicator* pair, bool send, void* data, size_t bytes) {
  const CommPart part{1 - pair->rank(), static_cast<std::byte*>(data), bytes};
  MSRT_ASSIGN_OR_RETURN(const CommWorkPtr work,
                        send ? pair->Exchange({&part, 1}, {}) : pair->Exchange({}, {&part, 1}));
  return work->Wait({});
}
Status Send(Communicator* pair, void* data, size_t bytes) {
  return Transfer(pair, true, data, bytes);
}
Status Receive(Communicator* pair, void* data, size_t bytes) {
  return Transfer(pair, false, data, bytes);
}

Message MessageOf(Kind kind, size_t output, const Box& box) {
  Message message{.kind = kind, .output = static_cast<int64_t>(output), .dims = box.rank()};
  for (int d = 0; d < std::min(box.rank(), kMaxDims); ++d) message.box[d] = box[d];
  return message;
}
Box BoxOf(const Message& message) {
  Box box;
  for (int64_t d = 0; d < std::clamp<int64_t>(message.dims, 0, kMaxDims); ++d)
    box.push_back(message.box[d]);
  return box;
}

// Copies rows `rows` of the box, all of the other dims, to dense memory.
void CopyRows(const TensorView& memory, Interval rows, std::byte* to) {
  const int rank = memory.dims.rank();
  const Dims strides = memory.strides != nullptr ? Dims({memory.strides, static_cast<size_t>(rank)})
                                                 : RowMajorStrides(memory.dims);
  const int64_t channels = rank == 4 ? memory.dims[1] : 1;
  const int64_t channel_stride = rank == 4 ? strides[1] : 0;
  const size_t element = BytesOf(memory.dtype, 1);
  const int64_t columns = memory.dims[rank - 1], step = strides[rank - 1];
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      const std::byte* from =
          memory.As<std::byte>() +
          static_cast<size_t>(c * channel_stride + r * strides[rank - 2]) * element;
      const size_t count = static_cast<size_t>(columns);
      if (step == 1) std::memcpy(to, from, count * element);
      for (size_t i = 0; step != 1 && i < count; ++i)
        std::memcpy(to + i * element, from + i * static_cast<size_t>(step) * element, element);
      to += count * element;
    }
  }
}

}  // namespace

Status RemoteResults::Write(size_t output, const Box& box, const TensorView& memory) {
  const int row_dim = box.rank() - 2;
  const int64_t rows = box[row_dim].size();
  const size_t row_bytes = BytesOf(memory.dtype, box.volume() / rows);
  const auto band = static_cast<int64_t>(std::max<size_t>(1, kResultBandBytes / row_bytes));
  for (int64_t begin = 0; begin < rows; begin += band) {
    const Interval part{begin, std::min(rows, begin + band)};
    Box sent = box;
    sent[row_dim] = {box[row_dim].begin + part.begin, box[row_dim].begin + part.end};
    band_.resize(row_bytes * static_cast<size_t>(part.size()));
    CopyRows(memory, part, band_.data());
    Message message = MessageOf(Kind::kWrite, output, sent);
    message.dtype = static_cast<int32_t>(memory.dtype);
    MSRT_RETURN_IF_ERROR(Send(pair_.get(), &message, sizeof message));
    MSRT_RETURN_IF_ERROR(Send(pair_.get(), band_.data(), band_.size()));
    result_bytes_ += static_cast<int64_t>(band_.size());
  }
  return OkStatus();
}

Status RemoteResults::Skip(size_t output, const Box& box) {
  Message message = MessageOf(Kind::kSkip, output, box);
  return Send(pair_.get(), &message, sizeof message);
}

Result<bool> RemoteResults::Wanted(size_t output, const Box& box) {
  Message message = MessageOf(Kind::kWanted, output, box);
  MSRT_RETURN_IF_ERROR(Send(pair_.get(), &message, sizeof message));
  int32_t wanted = 0;
  MSRT_RETURN_IF_ERROR(Receive(pair_.get(), &wanted, sizeof wanted));
  return wanted != 0;
}

Status RemoteResults::Progress(double fraction) {
  Message message{.kind = Kind::kProgress, .fraction = fraction};
  return Send(pair_.get(), &message, sizeof message);
}

Status RemoteResults::Done(RankWork work) {
  work.result_bytes = result_bytes_;
  Message message{.kind = Kind::kDone, .work = work};
  return Send(pair_.get(), &message, sizeof message);
}

void ResultServer::Start(PieceResults* results, std::atomic<bool>* stop) {
  for (size_t p = 0; p < pairs_.size(); ++p) {
    threads_.emplace_back([this, p, results, stop] {
      Status status;
      const Status thrown = CatchAsStatus([&] { status = Serve(p, results); });
      if (!thrown.ok()) status = thrown;
      if (!status.ok()) pairs_[p]->Abort(status);
      const std::lock_guard lock(mutex_);
      if (!status.ok() && first_error_.ok()) first_error_ = status;
      if (!status.ok()) stop->store(true);
      ++ended_;
      thread_ended_.notify_all();
    });
  }
}

Status ResultServer::Join(const std::function<void()>& meanwhile) {
  if (meanwhile) {
    std::unique_lock lock(mutex_);
    while (!thread_ended_.wait_for(lock, kMeanwhile, [&] { return ended_ == threads_.size(); })) {
      lock.unlock();
      meanwhile();
      lock.lock();
    }
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  return first_error_;
}

double ResultServer::fractions() const {
  const std::lock_guard lock(mutex_);
  return std::accumulate(fractions_.begin(), fractions_.end(), 0.0);
}

Status ResultServer::Serve(size_t p, PieceResults* results) {
  Communicator* const pair = pairs_[p].get();
  std::vector<std::byte> band;
  for (;;) {
    Message message;
    MSRT_RETURN_IF_ERROR(Receive(pair, &message, sizeof message));
    const Box box = BoxOf(message);
    const auto output = static_cast<size_t>(message.output);
    switch (message.kind) {
      case Kind::kWrite: {
        const auto dtype = static_cast<DType>(message.dtype);
        band.resize(BytesOf(dtype, box.volume()));
        MSRT_RETURN_IF_ERROR(Receive(pair, band.data(), band.size()));
        MSRT_RETURN_IF_ERROR(
            results->Write(output, box, {dtype, box.dims(), Layout::kPlain, band.data()}));
        break;
      }
      case Kind::kSkip:
        MSRT_RETURN_IF_ERROR(results->Skip(output, box));
        break;
      case Kind::kWanted: {
        MSRT_ASSIGN_OR_RETURN(const bool wanted, results->Wanted(output, box));
        int32_t answer = wanted ? 1 : 0;
        MSRT_RETURN_IF_ERROR(Send(pair, &answer, sizeof answer));
        break;
      }
      case Kind::kProgress: {
        const std::lock_guard lock(mutex_);
        fractions_[p] = message.fraction;
        break;
      }
      case Kind::kDone: {
        const std::lock_guard lock(mutex_);
        fractions_[p] = 1;
        work_[p] = message.work;
        return OkStatus();
      }
    }
  }
}

}  // namespace msrt
