// Sizes for the open dims of a model's inputs: what a user gives, for whole inputs (ids=2x9) or for
// symbols (batch=2), bound to the model.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace msrt {

// "1x3x224x224"; nothing at all is a single number.
Result<Dims> ParseShape(const std::string& text);
std::string ShapeText(const Dims& dims);

// By the name of an input, or of a symbol, which has one dim.
using GivenSizes = std::map<std::string, Dims>;
// Each text is "NAME=1x3x224x224" or "SYMBOL=8"; `option` is for messages.
Result<GivenSizes> ParseSizes(std::string_view option, std::span<const std::string> texts);

struct NamedType {
  std::string name;
  Type type;
};

class BoundSizes {
 public:
  // A name is that of an input if the model has such an input, else of a symbol. A symbol that one
  // input fixes has the same size in all others; two sizes for one symbol are an error that names
  // both. `module` has the symbols.
  static Result<BoundSizes> Bind(std::string_view option, const GivenSizes& given,
                                 std::span<const NamedType> inputs, const Module& module);

  // The input's type with all sizes that are known put in; an input that Bind did not see stays as
  // it is.
  Type OfInput(const std::string& name, Type type) const;
  // Any type of the model with its symbols replaced.
  Type Apply(Type type) const;

 private:
  std::map<std::string, Dims> inputs_;
  std::map<int64_t, int64_t> symbols_;  // by SymbolDim
};

// The inputs of the module's first entry.
std::vector<NamedType> InputsOf(const Module& module);

// Dims to run every input of the module's first entry at, for lists those of each element: what is
// given, what the model declares, and for the rest a guess: 1 for the first dim, 224 in images, 128
// elsewhere; the same for the same symbol, and the sum for a symbol that is called "a + b".
Result<std::vector<Dims>> SizesToRun(std::string_view option, const GivenSizes& given,
                                     const Module& module);

}  // namespace msrt
