#include "core/image/jobs/image_normalize.h"

#include <cmath>
#include <cstdlib>
#include <string>

namespace msrt {
namespace {

float Of(const std::vector<float>& list, int64_t channel, float otherwise) {
  if (list.empty()) return otherwise;
  return list.size() == 1 ? list[0] : list[static_cast<size_t>(channel)];
}

Status CheckList(std::string_view name, const std::vector<float>& list, int64_t channels) {
  if (list.size() > 1 && list.size() != static_cast<size_t>(channels))
    return InvalidArgument("normalization: ", name, " has ", list.size(),
                           " numbers, the image has ", channels,
                           " channels; write one number, or one for each channel");
  for (const float number : list) {
    if (!std::isfinite(number))
      return InvalidArgument("normalization: ", name, " has a number that is not finite");
  }
  return OkStatus();
}

// Parses a whole number, decimal number or fraction.
Result<float> ParseNumber(const std::string& text) {
  const auto parse = [](const std::string& part, double* number) {
    char* end = nullptr;
    *number = std::strtod(part.c_str(), &end);
    return !part.empty() && end == part.c_str() + part.size() && std::isfinite(*number);
  };
  const size_t slash = text.find('/');
  double number = 0, divisor = 1;
  if (!parse(text.substr(0, slash), &number) ||
      (slash != std::string::npos && (!parse(text.substr(slash + 1), &divisor) || divisor == 0)))
    return InvalidArgument("normalization: '", text, "' is no number; write 0.5 or 1/255");
  return static_cast<float>(number / divisor);
}

Result<std::vector<float>> ParseNumbers(const std::string& text) {
  std::vector<float> numbers;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    MSRT_ASSIGN_OR_RETURN(const float number, ParseNumber(text.substr(begin, comma - begin)));
    numbers.push_back(number);
    begin = comma + 1;
  }
  return numbers;
}

}  // namespace

Status Normalization::Check(int64_t channels) const {
  MSRT_RETURN_IF_ERROR(CheckList("mean", mean, channels));
  MSRT_RETURN_IF_ERROR(CheckList("std", std, channels));
  MSRT_RETURN_IF_ERROR(CheckList("scale", scale, channels));
  MSRT_RETURN_IF_ERROR(CheckList("offset", offset, channels));
  for (const float number : std) {
    if (number == 0) return InvalidArgument("normalization: std is 0; it must be another number");
  }
  return OkStatus();
}

// Each step is a loop of its own, so that the compiler does not fuse products and sums: the bits
// are those of the same steps in NumPy.
void Normalization::Apply(int64_t channel, std::span<float> pixels) const {
  if (!mean.empty()) {
    const float m = Of(mean, channel, 0);
    for (float& p : pixels) p -= m;
  }
  if (!std.empty()) {
    const float s = Of(std, channel, 1);
    for (float& p : pixels) p /= s;
  }
  if (!scale.empty()) {
    const float s = Of(scale, channel, 1);
    for (float& p : pixels) p *= s;
  }
  if (!offset.empty()) {
    const float o = Of(offset, channel, 0);
    for (float& p : pixels) p += o;
  }
}

Result<Normalization> ParseNormalization(std::string_view text) {
  Normalization normalization;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of(" ;", begin), text.size());
    const std::string part(text.substr(begin, end - begin));
    begin = end + 1;
    if (part.empty()) continue;
    const size_t equals = part.find('=');
    const std::string name = part.substr(0, equals);
    std::vector<float>* const list = name == "mean"     ? &normalization.mean
                                     : name == "std"    ? &normalization.std
                                     : name == "scale"  ? &normalization.scale
                                     : name == "offset" ? &normalization.offset
                                                        : nullptr;
    if (list == nullptr || equals == std::string::npos)
      return InvalidArgument("normalization: '", part,
                             "' must look like mean=..., std=..., scale=... or offset=...");
    if (!list->empty()) return InvalidArgument("normalization: ", name, " is given twice");
    MSRT_ASSIGN_OR_RETURN(*list, ParseNumbers(part.substr(equals + 1)));
  }
  return normalization;
}

}  // namespace msrt
