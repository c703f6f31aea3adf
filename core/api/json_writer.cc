#include "core/api/json_writer.h"

#include <cmath>

#include "core/base/str_cat.h"
#include "core/base/utf8.h"

namespace msrt {
namespace {

void AppendControl(std::string* out, char c) {
  constexpr char kHex[] = "0123456789abcdef";
  switch (c) {
    case '\n':
      out->append("\\n");
      return;
    case '\r':
      out->append("\\r");
      return;
    case '\t':
      out->append("\\t");
      return;
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
      out_ += kReplacementCharacter;
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
