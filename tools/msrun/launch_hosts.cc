#include "tools/msrun/launch_hosts.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "core/base/utf8.h"
#include "core/comm/job/job.h"

namespace msrt {
namespace {

std::string ThisHost() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

std::vector<std::string_view> Words(std::string_view line) {
  line = line.substr(0, line.find('#'));
  std::vector<std::string_view> words;
  while (true) {
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const size_t length = std::min(line.find_first_of(" \t\r"), line.size());
    words.push_back(line.substr(0, length));
    line.remove_prefix(length);
  }
}

// A name becomes an argument of ssh or of the user's command, so it must not look like an option.
bool IsHostName(std::string_view name) {
  return name.front() != '-' && std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) || c == '.' || c == '-' || c == '_' || c == ':' || c == '@' ||
                  c == '%' || c == '[' || c == ']';
         });
}

Status ReadSlots(std::string_view word, int* slots) {
  constexpr std::string_view kPrefix = "slots=";
  const bool named = word.substr(0, kPrefix.size()) == kPrefix;
  const std::string_view number = named ? word.substr(kPrefix.size()) : word;
  const char* end = number.data() + number.size();
  const auto [stop, error] = std::from_chars(number.data(), end, *slots);
  if (named && error == std::errc() && stop == end && *slots >= 1 && *slots <= kMaxRanks)
    return OkStatus();
  return InvalidArgument("'", Printable(word, 100), "': must be slots=N, with N from 1 to ",
                         kMaxRanks);
}

}  // namespace

Result<std::vector<HostSlots>> ParseHosts(std::string_view path, std::string_view text) {
  std::vector<HostSlots> hosts;
  for (int line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    const auto words = Words(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (words.empty()) continue;
    const std::string where = StrCat("hosts file '", path, "', line ", line);
    if (!IsHostName(words[0]))
      return InvalidArgument(where, ": '", Printable(words[0], 100), "' is no name of a host");
    if (words.size() > 2) {
      return InvalidArgument(where, ": '", Printable(words[2], 100),
                             "' is too much; a line is NAME or NAME slots=N");
    }
    HostSlots host{std::string(words[0]), 1};
    if (words.size() == 2) {
      Status slots = ReadSlots(words[1], &host.slots);
      if (!slots.ok()) return std::move(slots).Within(where);
    }
    for (const HostSlots& other : hosts) {
      if (other.host == host.host)
        return InvalidArgument(where, ": host '", host.host, "' is named twice; use slots=N");
    }
    hosts.push_back(std::move(host));
  }
  if (hosts.empty()) return InvalidArgument("hosts file '", path, "' names no host");
  return hosts;
}

Result<std::vector<RankPlace>> PlaceRanks(const std::vector<HostSlots>& hosts, int ranks) {
  int64_t slots = 0;
  for (const HostSlots& host : hosts) slots += host.slots;
  if (ranks == 0 && slots <= kMaxRanks) ranks = static_cast<int>(slots);
  if (ranks == 0 || ranks > slots) {
    return InvalidArgument("the hosts have ", slots, " slots, ",
                           ranks == 0 ? StrCat("at most ", kMaxRanks, " ranks are possible; use -n")
                                      : StrCat("-n ", ranks, " needs more; raise slots=N"));
  }
  std::vector<RankPlace> places;
  const std::string self = ThisHost();
  for (const HostSlots& host : hosts) {
    const int count = std::min(host.slots, ranks - static_cast<int>(places.size()));
    const bool local = host.host == "localhost" || host.host == self;
    for (int i = 0; i < count; ++i) places.push_back({host.host, local, i, count});
  }
  return places;
}

std::vector<RankPlace> PlaceLocally(int ranks) {
  std::vector<RankPlace> places;
  const std::string self = ThisHost();
  for (int i = 0; i < ranks; ++i) places.push_back({self, true, i, ranks});
  return places;
}

}  // namespace msrt
