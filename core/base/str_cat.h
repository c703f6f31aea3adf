// StrCat(parts...) builds the text of messages, without streams or a formatting library in every
// object file. Takes strings, characters, booleans, numbers, and anything with a free function
// `void AppendTo(std::string*, const T&)`.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace msrt {

void AppendTo(std::string* out, int64_t value);
void AppendTo(std::string* out, uint64_t value);
void AppendTo(std::string* out, double value);  // shortest text that reads back to the same double
void AppendTo(std::string* out, float value);   // the same for float
void AppendTo(std::string* out, std::span<const int64_t> values);  // [1, 2, 3]

namespace str_cat_internal {

template <typename T>
void Append(std::string* out, const T& part) {
  if constexpr (std::is_same_v<T, bool>) {
    out->append(part ? "true" : "false");
  } else if constexpr (std::is_same_v<T, char>) {
    out->push_back(part);
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    out->append(std::string_view(part));
  } else if constexpr (std::is_enum_v<T>) {
    AppendTo(out, part);
  } else if constexpr (std::signed_integral<T>) {
    AppendTo(out, static_cast<int64_t>(part));
  } else if constexpr (std::unsigned_integral<T>) {
    AppendTo(out, static_cast<uint64_t>(part));
  } else {
    AppendTo(out, part);
  }
}

}  // namespace str_cat_internal

template <typename... Parts>
void StrAppend(std::string* out, const Parts&... parts) {
  (str_cat_internal::Append(out, parts), ...);
}

template <typename... Parts>
std::string StrCat(const Parts&... parts) {
  std::string out;
  StrAppend(&out, parts...);
  return out;
}

}  // namespace msrt
