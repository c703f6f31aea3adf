// Modules for the tests of the file format, and the tools to damage their files.
#pragma once

#include <cstddef>
#include <vector>

#include "core/graph/graph.h"
#include "core/model/format.h"

namespace msrt {

// Uses every feature of the format once: all kinds of attributes and types, symbols, states, graphs
// that call each other and themselves, unknown ops, omitted inputs and outputs, undeclared types,
// empty and 4-bit tensors, weights that are shared.
Module EverythingModule();
// What a file may carry beside that module.
ModelExtras EverythingExtras();
// Ops that this build knows, types left to inference: a layer with a cache.
Module KnownOpsModule();
// `nodes` nodes one after another, with weights and attributes as convolutional networks have them.
Module ChainModule(size_t nodes);

// A copy at a multiple of 64 that ends where the allocation ends, so that address sanitizers see
// each byte read beyond it.
Bytes AlignedCopy(std::span<const std::byte> file);
// Makes the hash of the header right again.
void Reseal(std::vector<std::byte>* file);

}  // namespace msrt
