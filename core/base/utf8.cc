#include "core/base/utf8.h"

#include <algorithm>
#include <cstdint>

#include "core/base/str_cat.h"

namespace msrt {
namespace {

// C0 and C1 control characters, DEL, U+FFFE and U+FFFF.
bool IsUnprintable(std::string_view character) {
  const auto first = static_cast<uint8_t>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7F;
  if (character.size() == 2) return first == 0xC2 && static_cast<uint8_t>(character[1]) < 0xA0;
  return character == "\xEF\xBF\xBE" || character == "\xEF\xBF\xBF";
}

}  // namespace

size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0};
  };
  const auto continues = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (!continues(1) || !continues(2)) return 0;
    if (first == 0xE0 && byte(1) < 0xA0) return 0;
    if (first == 0xED && byte(1) > 0x9F) return 0;
    return 3;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (!continues(1) || !continues(2) || !continues(3)) return 0;
    if (first == 0xF0 && byte(1) < 0x90) return 0;
    if (first == 0xF4 && byte(1) > 0x8F) return 0;
    return 4;
  }
  return 0;
}

std::string Printable(std::string_view text, size_t max_characters) {
  constexpr std::string_view kCut = "...";
  std::string out;
  size_t count = 0, cut_at = 0;  // bytes of `out` that leave room for the dots
  while (!text.empty()) {
    if (count == max_characters)
      return out.substr(0, cut_at) + std::string(kCut.substr(0, max_characters));
    const size_t length = Utf8Length(text);
    const std::string_view character = text.substr(0, std::max<size_t>(length, 1));
    out += length == 0 || IsUnprintable(character) ? kReplacementCharacter : character;
    text.remove_prefix(character.size());
    if (++count + kCut.size() <= max_characters) cut_at = out.size();
  }
  return out;
}

std::string PrintableEnd(std::string_view text, size_t max_characters) {
  constexpr std::string_view kCut = "...";
  const std::string whole = Printable(text);
  size_t count = CharacterCount(whole);
  if (count <= max_characters) return whole;
  if (max_characters <= kCut.size()) return std::string(kCut.substr(0, max_characters));
  std::string_view end = whole;
  for (; count + kCut.size() > max_characters; --count) end.remove_prefix(Utf8Length(end));
  return StrCat(kCut, end);
}

size_t CharacterCount(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
}

}  // namespace msrt
