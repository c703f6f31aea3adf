// JSON writer for the reports of the C API. Begin and End calls must nest correctly; the writer
// adds commas, quotes and escapes. Bytes that are not UTF-8 become U+FFFD, so the result is valid
// JSON.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace msrt {

class JsonWriter {
 public:
  void BeginObject() { Open('{'); }
  void EndObject() { Close('}'); }
  void BeginArray() { Open('['); }
  void EndArray() { Close(']'); }
  // The name of the next value; inside objects only.
  void Key(std::string_view name);

  void Value(std::string_view text);
  void Value(const char* text) { Value(std::string_view(text)); }
  void Value(double number);  // writes null for infinities and NaN
  void Value(bool value);
  template <std::integral T>
  requires(!std::same_as<T, bool>) void Value(T number) {
    if constexpr (std::signed_integral<T>) Integer(static_cast<int64_t>(number));
    else Integer(static_cast<uint64_t>(number));
  }
  void Null();

  template <typename T>
  void Field(std::string_view name, const T& value) {
    Key(name);
    Value(value);
  }

  std::string Take() { return std::move(out_); }

 private:
  void Open(char bracket);
  void Close(char bracket);
  void Separate();  // before a value or a key
  void Quoted(std::string_view text);
  void Integer(int64_t number);
  void Integer(uint64_t number);

  std::string out_;
  bool need_comma_ = false;
};

}  // namespace msrt
