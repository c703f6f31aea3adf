#include "core/comm/job/message.h"

#include <cstring>

namespace msrt {
namespace {

constexpr size_t kLengthBytes = 4;

uint64_t ReadNumber(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i > 0; --i) value = value << 8 | static_cast<uint8_t>(bytes[i - 1]);
  return value;
}

Status CheckLength(uint64_t length, size_t max_bytes) {
  if (length <= max_bytes) return OkStatus();
  return LimitExceeded("a message of ", length, " bytes; at most ", max_bytes, " are accepted");
}

}  // namespace

void MessageWriter::Number(uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) bytes_.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

void MessageWriter::Text(std::string_view text) {
  U32(static_cast<uint32_t>(text.size()));
  bytes_.append(text);
}

std::string MessageWriter::Take() && {
  const size_t length = bytes_.size() - kLengthBytes;
  for (size_t i = 0; i < kLengthBytes; ++i) bytes_[i] = static_cast<char>(length >> (8 * i) & 0xff);
  return std::move(bytes_);
}

uint64_t MessageReader::Number(size_t bytes) {
  if (rest_.size() < bytes) {
    valid_ = false;
    rest_ = {};
    return 0;
  }
  const uint64_t value = ReadNumber(rest_.substr(0, bytes));
  rest_.remove_prefix(bytes);
  return value;
}

std::string_view MessageReader::Text() {
  const size_t length = U32();
  if (rest_.size() < length) {
    valid_ = false;
    rest_ = {};
  }
  const std::string_view text = rest_.substr(0, valid_ ? length : 0);
  rest_.remove_prefix(text.size());
  return text;
}

Result<std::optional<std::string>> MessageBuffer::Next() {
  using Message = std::optional<std::string>;
  if (bytes_.size() < kLengthBytes) return Message();
  const uint64_t length = ReadNumber(std::string_view(bytes_).substr(0, kLengthBytes));
  MSRT_RETURN_IF_ERROR(CheckLength(length, max_bytes_));
  if (bytes_.size() - kLengthBytes < length) return Message();
  Message message = bytes_.substr(kLengthBytes, length);
  bytes_.erase(0, kLengthBytes + length);
  return message;
}

Result<std::string> ReceiveMessage(Socket* socket, size_t max_bytes, const WaitLimit& limit) {
  char length_bytes[kLengthBytes];
  MSRT_RETURN_IF_ERROR(socket->Receive(length_bytes, limit));
  const uint64_t length = ReadNumber({length_bytes, kLengthBytes});
  MSRT_RETURN_IF_ERROR(CheckLength(length, max_bytes));
  std::string message(length, '\0');
  MSRT_RETURN_IF_ERROR(socket->Receive(message, limit));
  return message;
}

}  // namespace msrt
