#include "core/comm/job/token.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace msrt {

Result<JobToken> NewToken() {
  JobToken token;
  if (getentropy(token.data(), token.size()) != 0)
    return IoError("job token: the system has no random numbers: ", std::strerror(errno));
  return token;
}

std::string TokenText(const JobToken& token) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : token) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

Result<JobToken> ParseToken(std::string_view text) {
  JobToken token{};
  bool valid = text.size() == 2 * token.size();
  for (size_t i = 0; valid && i < text.size(); ++i) {
    const char c = text[i];
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    valid = digit >= 0;
    if (valid) token[i / 2] = static_cast<uint8_t>(token[i / 2] << 4 | digit);
  }
  // The text may be a secret with a typo, so the message does not repeat it.
  if (!valid) return InvalidArgument("a job token must be 32 hexadecimal digits");
  return token;
}

bool SameToken(const JobToken& a, const JobToken& b) {
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == 0;
}

}  // namespace msrt
