// Text of unknown origin (names in a model) made safe to show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace msrt {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

// Bytes of the UTF-8 character at the front of `text`, or 0 if there is none (stray or missing
// continuation bytes, overlong forms, surrogates, beyond U+10FFFF). Requires text that is not
// empty.
size_t Utf8Length(std::string_view text);

// Valid UTF-8 of at most `most` characters without control characters and noncharacters, which a
// terminal would obey and XML forbids: U+FFFD stands for them. What is cut off ends in "...".
std::string Printable(std::string_view text, size_t most = SIZE_MAX);
// The same for names, whose ends tell them apart: what is cut off is the front, and "..." stands
// for it.
std::string PrintableEnd(std::string_view text, size_t most);
// How many characters; for columns. Requires valid UTF-8.
size_t CharacterCount(std::string_view text);

}  // namespace msrt
