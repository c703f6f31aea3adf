// The bytes of a file before it is written, as a list of pieces: small ones are gathered into
// buffers, large ones stay where they are. Private to core/model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace msrt {

class FileImage {
 public:
  // The bytes must stay alive until Finish's pieces have been used.
  void Append(std::span<const std::byte> bytes) {
    bytes_ += bytes.size();
    if (bytes.size() <= kMaxGatheredBytes) {
      pending_.insert(pending_.end(), bytes.begin(), bytes.end());
      return;
    }
    Flush();
    pieces_.push_back(bytes);
  }
  void AppendOwned(std::vector<std::byte> bytes) {
    Flush();
    bytes_ += bytes.size();
    pending_ = std::move(bytes);
  }
  // Appends zeros up to the next multiple of `alignment`, a power of two.
  void Align(uint64_t alignment) {
    const uint64_t padding = -bytes_ & (alignment - 1);
    pending_.resize(pending_.size() + padding);
    bytes_ += padding;
  }
  uint64_t bytes() const { return bytes_; }
  std::span<const std::span<const std::byte>> Finish() {
    Flush();
    return pieces_;
  }

 private:
  // Up to this size a copy is cheaper than a separate write.
  static constexpr size_t kMaxGatheredBytes = 64 * 1024;

  void Flush() {
    if (pending_.empty()) return;
    buffers_.push_back(std::move(pending_));
    pieces_.push_back(buffers_.back());
    pending_.clear();
  }

  uint64_t bytes_ = 0;
  std::vector<std::byte> pending_;
  std::deque<std::vector<std::byte>> buffers_;  // a deque, so that pieces keep pointing at them
  std::vector<std::span<const std::byte>> pieces_;
};

}  // namespace msrt
