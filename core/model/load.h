// Loads a file: turns verified bytes into a Module. Weights are not copied: constants point into
// the bytes and keep their owner alive.
#pragma once

#include <string>

#include "core/graph/graph.h"
#include "core/model/format.h"
#include "core/model/verify.h"

namespace msrt {

// Builds the module; `extras`, unless null, receives the packed weights and programs of the file.
// Node::def stays null and types stay as declared: Validate (ops/validate.h) comes next.
Module BuildModule(const VerifiedModel& model, ModelExtras* extras = nullptr);

// Verify and BuildModule. Bytes that do not begin at a multiple of 64 are copied first, all others
// stay where they are.
Result<Module> Load(Bytes bytes, const Limits& limits = {}, ModelExtras* extras = nullptr);

// How LoadFile reads the bytes.
struct LoadOptions {
  // Read the file instead of mapping it; safe even if another process truncates it meanwhile.
  bool by_copy = false;
  Allocator* allocator = nullptr;  // for by_copy; null: the default one. Must outlive the module
  Limits limits = {};
};
Result<Module> LoadFile(Io* io, const std::string& path, const LoadOptions& options = {},
                        ModelExtras* extras = nullptr);

}  // namespace msrt
