#include "core/image/files/projection_keys.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace msrt {
namespace {

constexpr uint16_t kModelType = 1024, kRasterType = 1025, kGeographicSystem = 2048,
                   kProjectedSystem = 3072;
constexpr uint16_t kModelProjected = 1, kModelGeographic = 2, kRasterPixelIsArea = 1;
constexpr uint16_t kUserDefined = 32767;

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\n' || text.front() == '\t'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n' || text.back() == '\t'))
    text.remove_suffix(1);
  return text;
}

// Returns the items of "KEYWORD[item,item]"; empty if the text is none of these.
std::vector<std::string_view> ItemsOf(std::string_view node) {
  std::vector<std::string_view> items;
  const size_t open = node.find_first_of("[(");
  if (open == std::string_view::npos || (node.back() != ']' && node.back() != ')')) return items;
  size_t begin = open + 1;
  int depth = 0;
  bool quoted = false;
  for (size_t i = open + 1; i < node.size(); ++i) {
    const char c = node[i];
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '[' || c == '(') ++depth;
    if ((c == ',' && depth == 0) || i + 1 == node.size()) {
      items.push_back(Trimmed(node.substr(begin, i - begin)));
      begin = i + 1;
    }
    if (c == ']' || c == ')') --depth;
  }
  return items;
}

bool HasKeyword(std::string_view node, std::initializer_list<std::string_view> keywords) {
  const std::string_view keyword = Trimmed(node.substr(0, node.find_first_of("[(")));
  return keyword.size() < node.size() &&
         std::find(keywords.begin(), keywords.end(), keyword) != keywords.end();
}

// The code of AUTHORITY["EPSG","32633"] or ID["EPSG",32633] directly in the node.
std::optional<uint16_t> EpsgCode(std::string_view node) {
  const auto unquoted = [](std::string_view text) {
    const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
    return quoted ? text.substr(1, text.size() - 2) : text;
  };
  for (const std::string_view item : ItemsOf(node)) {
    if (!HasKeyword(item, {"AUTHORITY", "ID"})) continue;
    const std::vector<std::string_view> id = ItemsOf(item);
    if (id.size() < 2 || unquoted(id[0]) != "EPSG") continue;
    const std::string_view digits = unquoted(id[1]);
    uint16_t code = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code);
    if (error == std::errc() && end == digits.data() + digits.size() && code > 0 &&
        code < kUserDefined)
      return code;
  }
  return std::nullopt;
}

constexpr int kMaxNested = 4;

bool SetKeys(std::string_view node, int nested, GeoReference* geo) {
  const bool projected = HasKeyword(node, {"PROJCS", "PROJCRS", "PROJECTEDCRS"});
  const bool geographic =
      HasKeyword(node, {"GEOGCS", "GEOGCRS", "GEOGRAPHICCRS", "GEODCRS", "GEODETICCRS"});
  if (projected || geographic) {
    const auto code = EpsgCode(node);
    if (!code) return false;
    geo->keys = {1,
                 1,
                 0,
                 3,
                 kModelType,
                 0,
                 1,
                 projected ? kModelProjected : kModelGeographic,
                 kRasterType,
                 0,
                 1,
                 kRasterPixelIsArea,
                 projected ? kProjectedSystem : kGeographicSystem,
                 0,
                 1,
                 *code};
    return true;
  }
  if (nested == kMaxNested ||
      !HasKeyword(node, {"COMPD_CS", "COMPOUNDCRS", "BOUNDCRS", "SOURCECRS"}))
    return false;
  for (const std::string_view item : ItemsOf(node)) {
    if (HasKeyword(item, {"TARGETCRS"})) continue;
    if (SetKeys(item, nested + 1, geo)) return true;
  }
  return false;
}

}  // namespace

bool SetKeysFromProjection(GeoReference* geo) {
  const std::string_view text = Trimmed(geo->projection);
  return !text.empty() && SetKeys(text, 0, geo);
}

}  // namespace msrt
