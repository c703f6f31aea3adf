// The secret of one launch. A process proves by it that it belongs to the job; a process of an
// earlier launch has another one. It is sent as it is: it keeps strangers and mistakes out, not
// someone who reads the network.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace msrt {

inline constexpr size_t kTokenBytes = 16;
using JobToken = std::array<uint8_t, kTokenBytes>;

Result<JobToken> NewToken();                   // random
std::string TokenText(const JobToken& token);  // 32 hexadecimal digits
Result<JobToken> ParseToken(std::string_view text);
// Takes the same time wherever the tokens differ.
bool SameToken(const JobToken& a, const JobToken& b);

}  // namespace msrt
