#include "core/base/text_table.h"

#include <algorithm>

#include "core/base/str_cat.h"
#include "core/base/utf8.h"

namespace msrt {

void AppendTable(std::string* out, const std::vector<TextRow>& rows, std::string_view alignment) {
  std::vector<size_t> widths(alignment.size());
  for (const TextRow& row : rows) {
    for (size_t c = 0; c < row.cells.size(); ++c)
      widths[c] = std::max(widths[c], CharacterCount(row.cells[c]));
  }
  for (const TextRow& row : rows) {
    std::string line;
    for (size_t c = 0; c < row.cells.size(); ++c) {
      const std::string pad(widths[c] - CharacterCount(row.cells[c]), ' ');
      StrAppend(&line, "  ", alignment[c] == 'r' ? pad : "", row.cells[c],
                alignment[c] == 'r' ? "" : pad);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    StrAppend(out, line, "\n");
    for (const std::string& note : row.notes) StrAppend(out, "         ", note, "\n");
  }
}

}  // namespace msrt
