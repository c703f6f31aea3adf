// ONNX files that msconvert must refuse, grouped by their defect. Each gets an error that names the
// object.
#pragma once

#include <span>

#include "tests/hostile/onnx_text.h"

namespace msrt::testing {

struct BadOnnx {
  const char* name;
  const char* fragment;   // of the message; empty: legal
  const char* graph;      // in text form; null: `make` builds the file
  const char* rest = "";  // of the model
  std::vector<std::byte> (*make)() = nullptr;
};

std::span<const BadOnnx> BadStructure();  // names, order, types, tensors, attributes
std::span<const BadOnnx> BadControl();    // graphs in nodes, functions, sequences, optionals
std::span<const BadOnnx>
BadBombs();  // small files that ask for much time or memory, and large ones

}  // namespace msrt::testing
