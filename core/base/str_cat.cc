#include "core/base/str_cat.h"

#include <charconv>

namespace msrt {
namespace {

template <typename T>
void AppendNumber(std::string* out, T value) {
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  out->append(buffer, end);
}

}  // namespace

void AppendTo(std::string* out, int64_t value) { AppendNumber(out, value); }
void AppendTo(std::string* out, uint64_t value) { AppendNumber(out, value); }
void AppendTo(std::string* out, double value) { AppendNumber(out, value); }
void AppendTo(std::string* out, float value) { AppendNumber(out, value); }

void AppendTo(std::string* out, std::span<const int64_t> values) {
  out->push_back('[');
  for (size_t i = 0; i < values.size(); ++i) {
    if (i != 0) out->append(", ");
    AppendNumber(out, values[i]);
  }
  out->push_back(']');
}

}  // namespace msrt
