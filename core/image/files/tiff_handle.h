// A TIFF that libtiff reads from a file descriptor or writes to memory. Its messages are kept per
// handle; nothing is printed and no global handler is changed.
#pragma once

#include <tiffio.h>

#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/image/files/image_file.h"

namespace msrt {

class TiffHandle {
 public:
  // `max_alloc` limits a single allocation of libtiff.
  static Result<std::unique_ptr<TiffHandle>> OpenFile(const std::string& path, int64_t max_alloc);
  static Result<std::unique_ptr<TiffHandle>> CreateInMemory();
  ~TiffHandle();
  TiffHandle(const TiffHandle&) = delete;
  TiffHandle& operator=(const TiffHandle&) = delete;

  TIFF* tiff() const { return tiff_; }
  const std::vector<std::byte>& memory() const { return memory_; }
  // The last message of libtiff, or `otherwise`.
  std::string TakeError(std::string_view otherwise);

 private:
  TiffHandle() = default;
  Status Open(const char* name, const char* mode, int64_t max_alloc);
  static int OnError(TIFF*, void* self, const char* module, const char* format, va_list arguments);
  static tmsize_t OnRead(thandle_t self, void* out, tmsize_t bytes);
  static tmsize_t OnWrite(thandle_t self, void* data, tmsize_t bytes);
  static toff_t OnSeek(thandle_t self, toff_t offset, int whence);
  static toff_t OnSize(thandle_t self);

  TIFF* tiff_ = nullptr;
  ImageFile file_;                 // when reading
  std::vector<std::byte> memory_;  // when writing
  uint64_t position_ = 0, bytes_ = 0;
  char error_[256] = "";
};

}  // namespace msrt
