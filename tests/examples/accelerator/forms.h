// Packed forms of parameters in the memory of the device, by the version of the parameter: what a
// real device keeps its weights in. The emulated form has every bit inverted, so that a kernel that
// reads the wrong bytes is noticed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "tests/examples/accelerator/device_memory.h"
#include "tests/examples/accelerator/stream.h"

namespace accelerator {

class Form {
 public:
  explicit Form(DeviceMemory* memory) : memory_(memory) {}
  Failure Allocate(size_t bytes) {
    bytes_ = bytes;
    return memory_.Allocate(bytes);
  }
  void Pack(const std::byte* from) { Invert(from, memory_.data()); }
  void Unpack(std::byte* to) const { Invert(memory_.data(), to); }
  size_t bytes() const { return bytes_; }

 private:
  void Invert(const std::byte* from, std::byte* to) const {
    for (size_t i = 0; i < bytes_; ++i) to[i] = ~from[i];
  }
  Temporary memory_;
  size_t bytes_ = 0;
};

// The forms of one kernel: of each input, that of the last version, for each stream.
class Forms {
 public:
  // Returns the form of this version of the input at `address`. If there is none yet, the stream
  // makes it before what it does next.
  Failure Get(Stream* stream, DeviceMemory* memory, size_t input, uint64_t version,
              const void* address, size_t bytes, std::shared_ptr<const Form>* out);

 private:
  struct Packed {
    uint64_t version = 0;
    std::shared_ptr<const Form> form;
  };
  std::mutex mutex_;
  std::map<std::pair<const Stream*, size_t>, Packed> forms_;
};

}  // namespace accelerator
