// What the fuzzers do with bytes. Whatever the bytes are, each function returns; a finding stops
// the process: a sanitizer's report, a broken invariant, or an answer that no bytes may get.
#pragma once

#include <cstddef>
#include <span>

#include "core/base/status.h"
#include "core/graph/graph.h"

namespace msrt::testing {

// True if the bytes were taken all the way.
using FuzzTarget = bool (*)(std::span<const std::byte> bytes);

bool FuzzVerify(std::span<const std::byte> bytes);  // structure alone
bool FuzzLoad(
    std::span<const std::byte> bytes);  // and meaning, passes, placement, compilation on reference
bool FuzzRun(std::span<const std::byte> bytes);  // and one run with small inputs, under caps

// All passes, each of whose results must be valid. False if folding shows that the module cannot
// run.
bool TakenByPasses(Module* module);

// Every error must say what is wrong; one of our own making is a finding.
void RequireAnswer(const Status& status);

}  // namespace msrt::testing
