#include "core/train/training_spec.h"

#include <charconv>
#include <iterator>

namespace msrt {
namespace {

constexpr std::string_view kOptimizerNames[] = {
    "sgd", "momentum", "nesterov", "rmsprop", "adagrad", "adam", "adamw", "lamb", "lars",
};

// The numbers that may follow a name, in order.
std::vector<double*> NumbersOf(OptimizerSpec* spec) {
  switch (spec->kind) {
    case OptimizerKind::kMomentum:
    case OptimizerKind::kNesterov:
    case OptimizerKind::kLars:
      return {&spec->momentum};
    case OptimizerKind::kRmsProp:
      return {&spec->alpha};
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
    case OptimizerKind::kLamb:
      return {&spec->beta1, &spec->beta2};
    default:
      return {};
  }
}

}  // namespace

std::string_view OptimizerName(OptimizerKind kind) {
  return kOptimizerNames[static_cast<size_t>(kind)];
}

Result<OptimizerSpec> ParseOptimizer(std::string_view text) {
  OptimizerSpec spec;
  const std::string_view name = text.substr(0, text.find(':'));
  size_t kind = 0;
  while (kind < std::size(kOptimizerNames) && kOptimizerNames[kind] != name) ++kind;
  if (kind == std::size(kOptimizerNames)) {
    return InvalidArgument("optimizer '", text, "': unknown method '", name,
                           "'; use sgd, momentum, nesterov, rmsprop, adagrad, adam, adamw, lamb or "
                           "lars");
  }
  spec.kind = static_cast<OptimizerKind>(kind);
  const std::vector<double*> numbers = NumbersOf(&spec);
  size_t given = 0;
  for (std::string_view rest = text.substr(name.size()); !rest.empty(); ++given) {
    rest.remove_prefix(1);
    const std::string_view number = rest.substr(0, rest.find(':'));
    if (given == numbers.size())
      return InvalidArgument("optimizer '", text, "': ", name, " has at most ", numbers.size(),
                             " numbers");
    const char* end = number.data() + number.size();
    const auto [parsed, error] = std::from_chars(number.data(), end, *numbers[given]);
    if (error != std::errc() || parsed != end || !(*numbers[given] >= 0) || *numbers[given] > 1) {
      return InvalidArgument("optimizer '", text, "': '", number,
                             "' must be a number between 0 and 1");
    }
    rest.remove_prefix(number.size());
  }
  return spec;
}

}  // namespace msrt
