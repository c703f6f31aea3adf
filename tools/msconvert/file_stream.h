// A file as a protobuf stream, read piece by piece: it reports progress, and pages of a large
// mapped file are released once they are parsed.
#pragma once

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <functional>

#include "core/base/io.h"

namespace msrt {

class FileStream final : public google::protobuf::io::ZeroCopyInputStream {
 public:
  // `mapped_by` is the Io that mapped the bytes, and is told to forget those that were read; null
  // if they are not mapped. `progress` (may be empty) gets the fraction that was read. At most 2
  // GiB.
  FileStream(std::span<const std::byte> bytes, Io* mapped_by,
             std::function<void(double part)> progress)
      : stream_(bytes.data(), static_cast<int>(bytes.size()), kPiece),
        bytes_(bytes),
        mapped_by_(mapped_by),
        progress_(std::move(progress)) {}
  bool Next(const void** data, int* count) override {
    const auto read = static_cast<size_t>(ByteCount());
    if (progress_ && !bytes_.empty())
      progress_(static_cast<double>(read) / static_cast<double>(bytes_.size()));
    if (mapped_by_ != nullptr && read > forgotten_) {
      mapped_by_->Forget(bytes_.subspan(forgotten_, read - forgotten_));
      forgotten_ = read;
    }
    return stream_.Next(data, count);
  }
  void BackUp(int count) override { stream_.BackUp(count); }
  bool Skip(int count) override { return stream_.Skip(count); }
  int64_t ByteCount() const override { return stream_.ByteCount(); }

 private:
  static constexpr int kPiece = 4 << 20;
  google::protobuf::io::ArrayInputStream stream_;
  const std::span<const std::byte> bytes_;
  Io* const mapped_by_;
  const std::function<void(double)> progress_;
  size_t forgotten_ = 0;
};

}  // namespace msrt
