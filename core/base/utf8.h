// Text of unknown origin (names in a model) made safe to show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace msrt {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

// Bytes of the UTF-8 character at the front of `text`, or 0 if there is none (stray or missing
// continuation bytes, overlong forms, surrogates, beyond U+10FFFF). Requires non-empty text.
size_t Utf8Length(std::string_view text);

// Returns valid UTF-8 of at most `max_characters` characters. Control characters and noncharacters,
// which a terminal would obey and XML forbids, become U+FFFD. Text that was cut ends in "...".
std::string Printable(std::string_view text, size_t max_characters = SIZE_MAX);
// The same for names, whose ends tell them apart: the front is cut off and replaced by "...".
std::string PrintableEnd(std::string_view text, size_t max_characters);
// The number of characters, for aligning columns. Requires valid UTF-8.
size_t CharacterCount(std::string_view text);

}  // namespace msrt
