#include "core/api/json_writer.h"

#include <cmath>

#include "core/base/str_cat.h"

namespace msrt {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Bytes of the UTF-8 character at the front of `text`, or 0 if there is none (stray or missing continuation bytes, overlong forms,
// surrogates, beyond U+10FFFF).
size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
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

void AppendControl(std::string* out, char c) {
  constexpr char kHex[] = "0123456789abcdef";
  switch (c) {
    case '\n': out->append("\\n"); return;
    case '\r': out->append("\\r"); return;
    case '\t': out->append("\\t"); return;
    default:
      out->append("\\u00");
      out->push_back(kHex[static_cast<uint8_t>(c) >> 4]);
      out->push_back(kHex[static_cast<uint8_t>(c) & 15]);
  }
}

}  // namespace

void JsonWriter::Separate() {
  if (need_comma_) out_ += ", ";
  need_comma_ = false;
}

void JsonWriter::Open(char bracket) {
  Separate();
  out_ += bracket;
}

void JsonWriter::Close(char bracket) {
  out_ += bracket;
  need_comma_ = true;
}

void JsonWriter::Quoted(std::string_view text) {
  out_ += '"';
  while (!text.empty()) {
    const char c = text[0];
    size_t length = 1;
    if (c == '"' || c == '\\') {
      out_ += '\\';
      out_ += c;
    } else if (static_cast<uint8_t>(c) < 0x20 || c == 0x7F) {
      AppendControl(&out_, c);
    } else if ((length = Utf8Length(text)) != 0) {
      out_ += text.substr(0, length);
    } else {
      out_ += kReplacement;
      length = 1;
    }
    text.remove_prefix(length);
  }
  out_ += '"';
}

void JsonWriter::Key(std::string_view name) {
  Separate();
  Quoted(name);
  out_ += ": ";
}

void JsonWriter::Value(std::string_view text) {
  Separate();
  Quoted(text);
  need_comma_ = true;
}

void JsonWriter::Value(double number) {
  if (!std::isfinite(number)) return Null();
  Separate();
  AppendTo(&out_, number);
  need_comma_ = true;
}

void JsonWriter::Value(bool value) {
  Separate();
  out_ += value ? "true" : "false";
  need_comma_ = true;
}

void JsonWriter::Null() {
  Separate();
  out_ += "null";
  need_comma_ = true;
}

void JsonWriter::Integer(int64_t number) {
  Separate();
  AppendTo(&out_, number);
  need_comma_ = true;
}

void JsonWriter::Integer(uint64_t number) {
  Separate();
  AppendTo(&out_, number);
  need_comma_ = true;
}

}  // namespace msrt
