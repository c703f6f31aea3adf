// Layers on top of GraphBuilder, with weights from a seeded generator. The first error sticks: a
// network is written without a check in every line, and Finish returns the error.
#pragma once

#include <string>
#include <vector>

#include "ops/builder.h"
#include "tools/msconvert/zoo.h"

namespace msrt::zoo {

// Returns an option, or what is usual where it is 0.
inline int64_t Or(int64_t value, int64_t usual) { return value != 0 ? value : usual; }

struct ConvSpec {
  int64_t out = 0, kernel = 1, stride = 1, pad = 0, group = 1;
  bool bias = false;
  int64_t dilation = 1;
};

class Net {
 public:
  Net(std::string_view name, const Options& options);

  ValueId Input(std::string_view name, DType dtype, Dims dims);
  int64_t Symbol(std::string_view name) { return module_.SymbolFor(name); }

  ValueId Op(std::string_view op, std::vector<ValueId> inputs, AttrList attrs = {});
  ValueId Conv(ValueId x, const ConvSpec& spec);
  ValueId Deconv2x2(ValueId x, int64_t out);
  ValueId BatchNorm(ValueId x);
  ValueId Relu(ValueId x) { return Op("Relu", {x}); }
  ValueId MaxPool(ValueId x, int64_t kernel, int64_t stride, int64_t pad);
  ValueId Linear(ValueId x, int64_t out);  // Gemm with bias on rank 2
  ValueId Dense(ValueId x, int64_t out);   // MatMul + Add on the last dim, any rank
  ValueId LayerNorm(ValueId x);
  ValueId Embedding(ValueId ids, int64_t rows, int64_t columns);

  // Returns the dims of a value: dims[1] is the number of channels.
  const Dims& DimsOf(ValueId v) { return module_.graphs[0].value(v).type.dims; }
  // Adds a constant of normally distributed numbers.
  ValueId Normal(std::string_view what, Dims dims, double deviation, double mean = 0);
  // Groups following nodes under a prefix: "layer1.0.".
  void Scope(std::string prefix) { prefix_ = std::move(prefix); }

  void Output(ValueId v, std::string_view name);
  Result<Module> Finish() &&;

 private:
  std::string NextName(std::string_view op);
  double NextNormal();
  Module module_;
  GraphBuilder builder_;
  Status status_;
  std::string prefix_;
  uint64_t random_;
  uint64_t count_ = 0;
};

}  // namespace msrt::zoo
