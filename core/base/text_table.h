// Text tables for a terminal, for reports that people read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace msrt {

struct TextRow {
  std::vector<std::string> cells;  // valid UTF-8
  std::vector<std::string> notes;  // lines below the row
};

// Appends a table whose columns are as wide as their widest cell. `alignment` has 'l' or 'r' for
// each column; the first row is the heading.
void AppendTable(std::string* out, const std::vector<TextRow>& rows, std::string_view alignment);

}  // namespace msrt
