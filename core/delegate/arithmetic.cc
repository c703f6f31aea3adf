#include "core/delegate/arithmetic.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace msrt {
namespace {

constexpr size_t kMaxBytes = 64;

}  // namespace

Status CheckArithmetic(const char* name) {
  if (name == nullptr) return OkStatus();
  const std::string_view text(name, strnlen(name, kMaxBytes + 1));
  if (text.empty()) return InvalidArgument("arithmetic is empty; NULL promises nothing");
  if (text.size() > kMaxBytes)
    return InvalidArgument("arithmetic '", text.substr(0, kMaxBytes), "...' is longer than ",
                           kMaxBytes, " characters");
  const bool printable =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (!printable) return InvalidArgument("arithmetic has a character that is not printable ASCII");
  return OkStatus();
}

}  // namespace msrt
