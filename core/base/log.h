// One line of text to whoever asked for it. Without a function set nothing is ever printed.
#pragma once

#include <functional>
#include <string>

#include "core/base/str_cat.h"

namespace msrt {

enum class LogLevel : int { kError = 0, kWarning = 1, kInfo = 2, kDebug = 3 };

// Copyable and cheap when disabled. The function may be called from any thread and must not throw.
class Log {
 public:
  Log() = default;
  Log(std::function<void(LogLevel, const std::string&)> sink, LogLevel most)
      : sink_(std::move(sink)), most_(most) {}

  bool Wants(LogLevel level) const { return sink_ && level <= most_; }
  template <typename... Parts>
  void operator()(LogLevel level, const Parts&... parts) const {
    if (Wants(level)) sink_(level, StrCat(parts...));
  }

 private:
  std::function<void(LogLevel, const std::string&)> sink_;
  LogLevel most_ = LogLevel::kWarning;
};

}  // namespace msrt
