// The functions under test. Each returns for any bytes; a finding stops the process: a sanitizer's
// report, a broken invariant, or an error that no input may cause.
#pragma once

#include <cstddef>
#include <span>

#include "core/base/status.h"
#include "core/graph/graph.h"

namespace msrt::testing {

// Returns whether all stages accepted the bytes.
using FuzzTarget = bool (*)(std::span<const std::byte> bytes);

// Structure only.
bool FuzzVerify(std::span<const std::byte> bytes);
// Also semantics, passes, placement, compilation on reference.
bool FuzzLoad(std::span<const std::byte> bytes);
// Also one run with small inputs, under caps.
bool FuzzRun(std::span<const std::byte> bytes);

// Runs all passes, each of which must return a valid module. Returns false if folding shows that
// the module cannot run.
bool PassesAccept(Module* module);

// Requires that the error has a message; an internal error is a finding.
void RequireGoodError(const Status& status);

}  // namespace msrt::testing
