#include "core/image/files/tiff_handle.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <new>

#include "core/base/utf8.h"

namespace msrt {
namespace {

TiffHandle* Self(thandle_t self) { return static_cast<TiffHandle*>(self); }
int OnClose(thandle_t) { return 0; }
int OnWarning(TIFF*, void*, const char*, const char*, va_list) { return 1; }

}  // namespace

int TiffHandle::OnError(TIFF*, void* self, const char*, const char* format, va_list arguments) {
  char* error = static_cast<TiffHandle*>(self)->error_;
  // The first message names the cause.
  if (error[0] == '\0') std::vsnprintf(error, sizeof(error_), format, arguments);
  return 1;  // no other handler is called
}

tmsize_t TiffHandle::OnRead(thandle_t handle, void* out, tmsize_t bytes) {
  TiffHandle* self = Self(handle);
  if (bytes <= 0 || self->position_ >= self->bytes_) return 0;
  const auto count =
      std::min<uint64_t>(static_cast<uint64_t>(bytes), self->bytes_ - self->position_);
  const std::span<std::byte> target(static_cast<std::byte*>(out), count);
  if (self->file_.fd() >= 0) {
    if (!self->file_.Read(static_cast<int64_t>(self->position_), target).ok()) return 0;
  } else {
    std::memcpy(out, self->memory_.data() + self->position_, count);
  }
  self->position_ += count;
  return static_cast<tmsize_t>(count);
}

tmsize_t TiffHandle::OnWrite(thandle_t handle, void* data, tmsize_t bytes) {
  TiffHandle* self = Self(handle);
  if (bytes <= 0 || self->file_.fd() >= 0) return 0;
  const auto count = static_cast<uint64_t>(bytes);
  try {  // no exception may pass through libtiff
    if (self->memory_.size() < self->position_ + count)
      self->memory_.resize(self->position_ + count);
  } catch (const std::bad_alloc&) {
    return 0;
  }
  std::memcpy(self->memory_.data() + self->position_, data, count);
  self->position_ += count;
  self->bytes_ = self->memory_.size();
  return bytes;
}

toff_t TiffHandle::OnSeek(thandle_t handle, toff_t offset, int whence) {
  TiffHandle* self = Self(handle);
  const uint64_t base = whence == SEEK_CUR   ? self->position_
                        : whence == SEEK_END ? self->bytes_
                                             : 0;
  self->position_ = base + offset;
  return self->position_;
}

toff_t TiffHandle::OnSize(thandle_t handle) { return Self(handle)->bytes_; }

Status TiffHandle::Open(const char* name, const char* mode, int64_t max_alloc) {
  TIFFOpenOptions* options = TIFFOpenOptionsAlloc();
  if (options == nullptr) return OutOfMemory(0, "libtiff's options");
  TIFFOpenOptionsSetErrorHandlerExtR(options, OnError, this);
  TIFFOpenOptionsSetWarningHandlerExtR(options, OnWarning, nullptr);
  if (max_alloc > 0) TIFFOpenOptionsSetMaxSingleMemAlloc(options, max_alloc);
  tiff_ = TIFFClientOpenExt(name, mode, this, OnRead, OnWrite, OnSeek, OnClose, OnSize, nullptr,
                            nullptr, options);
  TIFFOpenOptionsFree(options);
  if (tiff_ == nullptr) return InvalidArgument(TakeError("not a TIFF file"));
  return OkStatus();
}

Result<std::unique_ptr<TiffHandle>> TiffHandle::OpenFile(const std::string& path,
                                                         int64_t max_alloc) {
  std::unique_ptr<TiffHandle> handle(new TiffHandle);
  MSRT_ASSIGN_OR_RETURN(handle->file_, ImageFile::OpenForReading(path));
  MSRT_ASSIGN_OR_RETURN(const int64_t bytes, handle->file_.Bytes());
  handle->bytes_ = static_cast<uint64_t>(bytes);
  // m: no map of the file, whose pages would vanish if another process truncates it.
  MSRT_RETURN_IF_ERROR(handle->Open("image", "rm", max_alloc));
  return handle;
}

Result<std::unique_ptr<TiffHandle>> TiffHandle::CreateInMemory() {
  std::unique_ptr<TiffHandle> handle(new TiffHandle);
  MSRT_RETURN_IF_ERROR(handle->Open("block", "w8m", 0));
  return handle;
}

TiffHandle::~TiffHandle() {
  if (tiff_ != nullptr) TIFFCleanup(tiff_);  // unlike TIFFClose, writes nothing
}

std::string TiffHandle::TakeError(std::string_view otherwise) {
  std::string error = error_[0] == '\0' ? std::string(otherwise) : Printable(error_);
  error_[0] = '\0';
  return error;
}

}  // namespace msrt
