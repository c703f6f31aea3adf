#include "core/graph/dtype.h"

#include <array>

namespace msrt {
namespace {

struct Row {
  std::string_view name;
  int bits;
};
constexpr std::array<Row, kDTypeCount> kRows{{
    {"none", 0},   {"f64", 64},     {"f32", 32},       {"f16", 16},   {"bf16", 16},
    {"i8", 8},     {"i16", 16},     {"i32", 32},       {"i64", 64},   {"u8", 8},
    {"u16", 16},   {"u32", 32},     {"u64", 64},       {"bool", 8},   {"i4", 4},
    {"u4", 4},     {"f8e4m3fn", 8}, {"f8e4m3fnuz", 8}, {"f8e5m2", 8}, {"f8e5m2fnuz", 8},
    {"f4e2m1", 4},
}};

}  // namespace

std::string_view DTypeName(DType type) {
  const auto i = static_cast<size_t>(type);
  return i < kRows.size() ? kRows[i].name : "invalid";
}

std::optional<DType> DTypeFromName(std::string_view name) {
  for (size_t i = 1; i < kRows.size(); ++i) {
    if (kRows[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

int BitsOf(DType type) {
  const auto i = static_cast<size_t>(type);
  return i < kRows.size() ? kRows[i].bits : 0;
}

std::string DTypeSet::Names() const {
  std::string out;
  for (int i = 1; i < kDTypeCount; ++i) {
    if (!Has(static_cast<DType>(i))) continue;
    if (!out.empty()) out += ", ";
    out += kRows[static_cast<size_t>(i)].name;
  }
  return out;
}

}  // namespace msrt
