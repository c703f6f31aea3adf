// Modules for the tests of the file format, and helpers to damage their files.
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
// Extras for the file of that module.
ModelExtras EverythingExtras();
// Ops that this build knows, types left to inference: a layer with a cache.
Module KnownOpsModule();
// `nodes` nodes one after another, with weights and attributes as convolutional networks have them.
Module ChainModule(size_t nodes);

// A copy at a multiple of 64 that ends where its allocation ends, so that address sanitizers report
// each byte read beyond it.
Bytes AlignedCopy(std::span<const std::byte> file);
// Updates the hash in the header.
void Reseal(std::vector<std::byte>* file);

}  // namespace msrt
