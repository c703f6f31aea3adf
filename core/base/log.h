// Log lines for a sink that the application sets. Without a sink nothing is ever printed.
#pragma once

#include <functional>
#include <string>

#include "core/base/str_cat.h"

namespace msrt {

enum class LogLevel : int { kError = 0, kWarning = 1, kInfo = 2, kDebug = 3 };

// Copyable and cheap when disabled. The sink may be called from any thread and must not throw.
class Log {
 public:
  Log() = default;
  Log(std::function<void(LogLevel, const std::string&)> sink, LogLevel max_level)
      : sink_(std::move(sink)), max_level_(max_level) {}

  bool Wants(LogLevel level) const { return sink_ && level <= max_level_; }
  template <typename... Parts>
  void operator()(LogLevel level, const Parts&... parts) const {
    if (Wants(level)) sink_(level, StrCat(parts...));
  }

 private:
  std::function<void(LogLevel, const std::string&)> sink_;
  LogLevel max_level_ = LogLevel::kWarning;
};

}  // namespace msrt
