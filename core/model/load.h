// A verified file as a Module. Weights are not copied: constants point into the bytes and keep
// their owner alive.
#pragma once

#include <string>

#include "core/graph/graph.h"
#include "core/model/format.h"
#include "core/model/verify.h"

namespace msrt {

// Builds the module; `extras`, if asked for, gets the packed weights and programs of the file.
// Node::def stays null and types stay as declared: Validate (ops/validate.h) comes next.
Module BuildModule(const VerifiedModel& model, ModelExtras* extras = nullptr);

// Verify and BuildModule. Bytes that do not begin at a multiple of 64 are copied first, all others
// stay where they are.
Result<Module> Load(Bytes bytes, const Limits& limits = {}, ModelExtras* extras = nullptr);

// How LoadFile gets at the bytes.
struct LoadOptions {
  bool by_copy = false;  // true: read the file instead of mapping it; safe even if somebody
                         // truncates it meanwhile
  Allocator* allocator = nullptr;  // for by_copy; null: the default one. Must outlive the module
  Limits limits = {};
};
Result<Module> LoadFile(Io* io, const std::string& path, const LoadOptions& options = {},
                        ModelExtras* extras = nullptr);

}  // namespace msrt
