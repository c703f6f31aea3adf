// Sizes for the open dims of a model's inputs: given by the user, for whole inputs (ids=2x9) or for
// symbols (batch=2), and bound to the model.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace msrt {

// Parses "1x3x224x224"; an empty text is the shape of a scalar.
Result<Dims> ParseShape(const std::string& text);
std::string ShapeText(const Dims& dims);

// Dims by the name of an input, or of a symbol, which has one dim.
using GivenSizes = std::map<std::string, Dims>;
// Each text is "NAME=1x3x224x224" or "SYMBOL=8"; `option` is for messages.
Result<GivenSizes> ParseSizes(std::string_view option, std::span<const std::string> texts);

struct NamedType {
  std::string name;
  Type type;
};

class BoundSizes {
 public:
  // A name refers to an input if the model has such an input, else to a symbol. A symbol that one
  // input fixes has the same size in all others; two sizes for one symbol are an error that names
  // both. `module` has the symbols.
  static Result<BoundSizes> Bind(std::string_view option, const GivenSizes& given,
                                 std::span<const NamedType> inputs, const Module& module);

  // Returns the input's type with all known sizes filled in. The type of an input that Bind did not
  // see does not change.
  Type OfInput(const std::string& name, Type type) const;
  // Returns any type of the model with its known symbols replaced by sizes.
  Type Apply(Type type) const;

 private:
  std::map<std::string, Dims> inputs_;
  std::map<int64_t, int64_t> symbols_;  // by SymbolDim
};

// Returns the inputs of the module's first entry.
std::vector<NamedType> InputsOf(const Module& module);

// Returns the dims to run every input of the module's first entry at, for lists those of each
// element: given by the user, declared by the model, or else guessed: 1 for the first dim, 224 in
// images, 128 elsewhere; the same for the same symbol, and the sum for a symbol named "a + b".
Result<std::vector<Dims>> SizesToRun(std::string_view option, const GivenSizes& given,
                                     const Module& module);

}  // namespace msrt
