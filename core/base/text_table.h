// Tables for a terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace msrt {

struct TextRow {
  std::vector<std::string> cells;  // valid UTF-8
  std::vector<std::string> notes;  // lines below it
};

// Columns as wide as their widest cell. `alignment` has 'l' or 'r' for each; the first row is the
// heading.
void AppendTable(std::string* out, const std::vector<TextRow>& rows, std::string_view alignment);

}  // namespace msrt
