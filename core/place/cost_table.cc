#include "core/place/cost_table.h"

#include <algorithm>
#include <charconv>
#include <map>

namespace msrt {
namespace {

constexpr std::string_view kFirstLine = "msrt costs 1";
// A file may be anything. A model of 100,000 nodes has some 10 MB of costs.
constexpr size_t kMaxBytes = size_t{256} << 20, kMaxReadKeyBytes = 8192, kMaxLines = 4'000'000;

Result<double> NumberIn(std::string_view text, double min, double max) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  // The comparison also rejects NaN.
  if (error != std::errc() || end != text.data() + text.size() || !(value >= min && value <= max)) {
    return InvalidArgument("'", text.substr(0, 40), "' must be a number from ", min, " to ", max);
  }
  return value;
}

bool IsPrintable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7F; });
}

std::string WithoutControls(std::string text) {
  for (char& c : text) {
    if (c < 0x20 || c >= 0x7F) c = '?';
  }
  return text;
}

// One line of a file.
class TableReader {
 public:
  explicit TableReader(CostTable* table) : table_(*table) {}

  Status Line(std::string_view line) {
    if (!IsPrintable(line)) return InvalidArgument("must be printable ASCII");
    const size_t space = line.find(' ');
    if (space == std::string_view::npos || space + 1 == line.size())
      return InvalidArgument("must be a word and what belongs to it");
    const std::string_view word = line.substr(0, space), rest = line.substr(space + 1);
    if (word[0] < '0' || word[0] > '9') return Head(word, rest);
    if (rest.size() > kMaxReadKeyBytes)
      return LimitExceeded("the key has ", rest.size(), " bytes, at most ", kMaxReadKeyBytes,
                           " are allowed");
    MSRT_ASSIGN_OR_RETURN(const double seconds, NumberIn(word, 1e-12, CostTable::kMaxSeconds));
    std::string key(rest);
    if (table_.Find(key) != nullptr) return InvalidArgument("the same key as on an earlier line");
    table_.Set(std::move(key), seconds);
    return OkStatus();
  }

 private:
  Status Head(std::string_view word, std::string_view rest) {
    CostOrigin& origin = table_.origin;
    if (word == "library") origin.library = rest;
    else if (word == "processor") origin.processor = rest;
    else if (word == "threads")
      return SetNumber(rest, 1, 1 << 20, [&](double n) { origin.threads = static_cast<int>(n); });
    else if (word == "flops_per_second")
      return SetNumber(rest, 1, 1e18, [&](double n) { origin.machine.flops_per_second = n; });
    else if (word == "bytes_per_second")
      return SetNumber(rest, 1, 1e18, [&](double n) { origin.machine.bytes_per_second = n; });
    else return InvalidArgument("'", word.substr(0, 40), "' is no word of a costs file");
    return OkStatus();
  }

  template <typename SetFn>
  Status SetNumber(std::string_view text, double min, double max, SetFn&& set) {
    MSRT_ASSIGN_OR_RETURN(const double value, NumberIn(text, min, max));
    set(value);
    return OkStatus();
  }

  CostTable& table_;
};

}  // namespace

std::string Difference(const CostOrigin& measured, const CostOrigin& here) {
  std::string out;
  const auto compare = [&](std::string_view what, const auto& then, const auto& now) {
    if (then != now) StrAppend(&out, out.empty() ? "" : ", ", what, " ", then, " and not ", now);
  };
  compare("version", measured.library, here.library);
  compare("processor", measured.processor, here.processor);
  compare("threads", measured.threads, here.threads);
  return out;
}

Result<CostTable> CostTable::Parse(std::string_view text) {
  if (text.size() > kMaxBytes)
    return LimitExceeded("a costs file has at most ", kMaxBytes, " bytes, this has ", text.size());
  if (!text.starts_with(kFirstLine) || text.substr(kFirstLine.size(), 1) != "\n") {
    return InvalidArgument("line 1: must be '", kFirstLine,
                           "'; measure again with this version of msrun");
  }
  CostTable table;
  TableReader reader(&table);
  text.remove_prefix(kFirstLine.size() + 1);
  for (size_t number = 2; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (number > kMaxLines) return LimitExceeded("a costs file has at most ", kMaxLines, " lines");
    Status status = end == text.size() ? InvalidArgument("is cut off: it does not end")
                                       : reader.Line(text.substr(0, end));
    if (!status.ok()) return std::move(status).Within(StrCat("line ", number));
    text.remove_prefix(end + 1);
  }
  const CostOrigin& origin = table.origin;
  if (origin.threads == 0 || origin.machine.flops_per_second == 0 ||
      origin.machine.bytes_per_second == 0) {
    return InvalidArgument("threads, flops_per_second or bytes_per_second is missing");
  }
  return table;
}

std::string CostTable::Print() const {
  std::string out = StrCat(kFirstLine, "\nlibrary ", WithoutControls(origin.library),
                           "\nprocessor ", WithoutControls(origin.processor), "\nthreads ",
                           origin.threads, "\nflops_per_second ", origin.machine.flops_per_second,
                           "\nbytes_per_second ", origin.machine.bytes_per_second, "\n");
  const std::map<std::string_view, double> sorted(seconds_.begin(), seconds_.end());
  for (const auto& [key, seconds] : sorted) StrAppend(&out, seconds, " ", key, "\n");
  return out;
}

const double* CostTable::Find(const std::string& key) const {
  const auto it = seconds_.find(key);
  return it == seconds_.end() ? nullptr : &it->second;
}

}  // namespace msrt
