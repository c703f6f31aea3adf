#include "core/extend/attr_rules.h"

#include <algorithm>
#include <cmath>

namespace msrt {
namespace {

constexpr size_t kMaxRules = 1024;
constexpr int kMaxListLength = 65536;
constexpr double kMaxExactInt = 9007199254740992.0;  // beyond it a double skips integers

bool IsNumber(AttrKind kind) { return kind == AttrKind::kInt || kind == AttrKind::kFloat; }
bool IsIntegral(AttrKind kind) { return kind == AttrKind::kInt || kind == AttrKind::kInts; }

Status CheckRule(const msrt_attr_rule& rule, std::span<const AttrDef> before) {
  if (rule.name == nullptr || *rule.name == '\0') return InvalidArgument("has no name");
  const auto same = [&](const AttrDef& def) { return def.name == rule.name; };
  if (std::any_of(before.begin(), before.end(), same))
    return InvalidArgument("'", rule.name, "' is given twice");
  if (rule.kind < MSRT_ATTR_INT || rule.kind > MSRT_ATTR_TENSOR) {
    return InvalidArgument("'", rule.name, "': kind is ", rule.kind,
                           ", must be from MSRT_ATTR_INT = 0 to MSRT_ATTR_TENSOR = 7");
  }
  const auto kind = static_cast<AttrKind>(rule.kind);
  const bool local = (rule.flags & MSRT_ATTR_IS_LOCAL) != 0,
             required = (rule.flags & MSRT_ATTR_IS_REQUIRED) != 0;
  if ((rule.flags & ~uint32_t{MSRT_ATTR_IS_LOCAL | MSRT_ATTR_IS_REQUIRED}) != 0) {
    return InvalidArgument("'", rule.name, "': flags are ", rule.flags,
                           ", must be MSRT_ATTR_IS_REQUIRED, MSRT_ATTR_IS_LOCAL or 0");
  }
  if (local && (required || !IsIntegral(kind))) {
    return InvalidArgument(
        "'", rule.name,
        "': a local attribute is one or more integers that no model has, so it cannot be required");
  }
  if (!(rule.min <= rule.max))
    return InvalidArgument("'", rule.name, "': min is ", rule.min, ", above max ", rule.max);
  const double d = rule.default_number;
  const bool any = rule.min == 0 && rule.max == 0;
  if (IsNumber(kind) && !required && !local &&
      !(std::isfinite(d) && (any || (rule.min <= d && d <= rule.max)))) {
    return InvalidArgument("'", rule.name, "': its default ", d, " is not from ", rule.min, " to ",
                           rule.max);
  }
  if (kind == AttrKind::kInt && (d != std::floor(d) || std::abs(d) > kMaxExactInt)) {
    return InvalidArgument("'", rule.name, "': its default ", d, " is not an integer");
  }
  return OkStatus();
}

int64_t BoundOf(double value) {
  if (std::abs(value) > kMaxExactInt)
    return value < 0 ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(value);
}

}  // namespace

Result<AttrRules> AttrRules::Make(const msrt_attr_rule* rules, size_t count) {
  AttrRules made;
  if (count > kMaxRules)
    return InvalidArgument("meaning.attr_count is ", count, ", must be at most ", kMaxRules);
  if (count != 0 && rules == nullptr)
    return InvalidArgument("meaning.attrs is null, but attr_count ", count);
  for (size_t i = 0; i < count; ++i) {
    const msrt_attr_rule& rule = rules[i];
    if (Status status = CheckRule(rule, made.defs_); !status.ok())
      return std::move(status).Within(StrCat("meaning.attrs[", i, "]"));
    AttrDef def;
    def.name = *made.texts_.emplace_back(std::make_unique<const std::string>(rule.name));
    def.kind = static_cast<AttrKind>(rule.kind);
    def.required = (rule.flags & MSRT_ATTR_IS_REQUIRED) != 0;
    def.local = (rule.flags & MSRT_ATTR_IS_LOCAL) != 0;
    def.max_count = kMaxListLength;
    if (rule.min != 0 || rule.max != 0) {
      def.min_float = rule.min;
      def.max_float = rule.max;
      def.min_int = BoundOf(std::ceil(rule.min));
      def.max_int = BoundOf(std::floor(rule.max));
    }
    if (def.kind == AttrKind::kInt) def.default_int = static_cast<int64_t>(rule.default_number);
    if (def.kind == AttrKind::kFloat) def.default_float = rule.default_number;
    if (rule.default_string != nullptr) {
      def.default_string =
          *made.texts_.emplace_back(std::make_unique<const std::string>(rule.default_string));
    }
    made.defs_.push_back(def);
  }
  return made;
}

}  // namespace msrt
