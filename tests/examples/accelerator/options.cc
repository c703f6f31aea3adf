#include "tests/examples/accelerator/options.h"

#include <cstdlib>
#include <sstream>

namespace accelerator {
namespace {

bool SetNumber(const std::string& key, double number, Options* o) {
  const auto count = static_cast<int64_t>(number);
  if (key == "devices") o->devices = static_cast<size_t>(count);
  else if (key == "peers") o->peers = count != 0;
  else if (key == "stream_waits") o->stream_waits = count != 0;
  else if (key == "pinned") o->pinned = count != 0;
  else if (key == "converts") o->converts = count != 0;
  else if (key == "captures") o->captures = count != 0;
  else if (key == "channels_last") o->channels_last = count != 0;
  else if (key == "seed") o->seed = static_cast<uint64_t>(count);
  else if (key == "latency_us") o->latency_us = number;
  else if (key == "delay_us") o->delay_us = number;
  else if (key == "capacity") o->capacity = static_cast<size_t>(count);
  else if (key == "chain") o->chain = static_cast<size_t>(count);
  else if (key == "speed") o->speed = number;
  else if (key == "launch_us") o->launch_us = number;
  else if (key == "copy_us") o->copy_us = number;
  else if (key == "copy_gbs") o->copy_gbs = number;
  else if (key == "pretend") o->pretend = number;
  else if (key == "compile_fails") o->compile_fails = number;
  else if (key == "run_fails") o->run_fails = number;
  else if (key == "run_fails_at") o->run_fails_at = count;
  else if (key == "copy_fails_at") o->copy_fails_at = count;
  else if (key == "allocate_fails_at") o->allocate_fails_at = count;
  else if (key == "dies_after") o->dies_after = count;
  else if (key == "forms") o->forms = count != 0;
  else if (key == "reuse_addresses") o->reuse_addresses = count != 0;
  else if (key == "strides") o->strides = count != 0;
  else if (key == "fails_late") o->fails_late = count != 0;
  else return false;
  return true;
}

}  // namespace

Failure ParseOptions(const char* text, Options* out) {
  std::istringstream all(text);
  for (std::string entry; std::getline(all, entry, ',');) {
    const size_t equals = entry.find('=');
    const std::string key = entry.substr(0, equals),
                      value = equals == std::string::npos ? "" : entry.substr(equals + 1);
    if (key == "unsupported" || key == "owns") {
      std::istringstream ops(value);
      for (std::string op; std::getline(ops, op, '+');)
        (key == "owns" ? out->owns : out->unsupported).push_back(op);
      continue;
    }
    char* end = nullptr;
    const double number = std::strtod(value.c_str(), &end);
    const bool is_number = !value.empty() && *end == '\0' && number >= 0 && number < 1e15;
    if (!is_number || !SetNumber(key, number, out)) {
      return {
          MSRT_INVALID_ARGUMENT,
          "option '" + entry + "' is not KEY=NUMBER with a key of the accelerator (see options.h)"};
    }
  }
  if (out->devices < 1 || out->devices > 8)
    return {MSRT_INVALID_ARGUMENT, "option devices must be from 1 to 8"};
  if (out->speed <= 0) return {MSRT_INVALID_ARGUMENT, "option speed must be above 0"};
  return {};
}

}  // namespace accelerator
