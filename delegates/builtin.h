// The delegates that are built into the library: the one explicit list, and how others join them.
// Only what composes a runtime (core/api, tools, tests) includes this.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/compile/compile.h"
#include "core/extend/plugin.h"
#include "ops/evaluator.h"

namespace msrt {

std::vector<std::shared_ptr<const Delegate>> BuiltinDelegates();
// The devices that the delegates work on, for Environment::devices.
std::vector<std::shared_ptr<const Device>> DevicesOf(
    std::span<const std::shared_ptr<const Delegate>> delegates);
const Evaluator& BuiltinEvaluator();

// A delegate that is built in but cannot work on this machine: no such hardware, or no driver.
struct UnavailableDelegate {
  std::string name, reason;
};
std::vector<UnavailableDelegate> UnavailableDelegates();

// A library that a built-in delegate computes with.
struct LibraryInfo {
  std::string name, version;
  std::string instructions;  // that its kernels use on this processor
};
std::vector<LibraryInfo> BuiltinLibraries();

// Adds what was registered, all or nothing: delegates whose names are new, kernels that make up the
// delegate "kernels" with those before them, and the ops that these define.
Status Join(const Registration& added, Environment* environment);

}  // namespace msrt
