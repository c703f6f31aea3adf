// Modules in double precision for tests of gradients: numbers in, numbers out, and checks against
// finite differences.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "core/autodiff/gradients.h"
#include "ops/validate.h"
#include "tests/conformance/module_builder.h"
#include "tests/conformance/pipeline.h"

namespace msrt::testing {

using Doubles = std::vector<double>;
inline const Type kDouble = Type::Tensor(DType::kF64, {});

inline ConstTensor TensorOf(Dims dims, const Doubles& values) {
  return ConstTensor::Of<double>(DType::kF64, dims, values);
}
inline ConstTensor TensorOf(double value) { return TensorOf({}, {value}); }
inline Doubles NumbersOf(const ConstTensor& t) {
  return Doubles(t.As<double>().begin(), t.As<double>().end());
}
inline ValueId Constant(ModuleBuilder* m, uint32_t g, double value) {
  return m->module.graphs[g].AddConstant("", TensorOf(value));
}

// Replaces the outputs of the entry by themselves and, after them, the gradients of the sum of its
// float outputs with respect to its float inputs.
inline Status AppendGradients(Module* module) {
  MSRT_RETURN_IF_ERROR(Validate(module));
  GradientRequest request;
  for (ValueId v : module->main().outputs) {
    if (IsFloat(module->main().value(v).type.dtype)) request.of.push_back(v);
  }
  for (ValueId v : module->main().inputs) {
    const Type& type = module->main().value(v).type;
    if (type.is_tensor() && IsFloat(type.dtype)) request.with_respect_to.push_back(v);
  }
  MSRT_ASSIGN_OR_RETURN(const std::vector<ValueId> gradients,
                        AddGradients(module, module->entries[0], request));
  // Outputs of an entry are values of their own.
  for (ValueId v : gradients) {
    MSRT_ASSIGN_OR_RETURN(const ValueId named,
                          GraphBuilder(&module->main())
                              .Add("Identity", StrCat("g", module->main().value_count()), {v}));
    module->main().outputs.push_back(named);
  }
  return Validate(module);
}

// Runs with all passes and with none, which must agree to rounding; returns the latter.
inline std::vector<Doubles> RunBoth(const Module& module, const std::vector<ConstTensor>& inputs) {
  const auto plain = RunModule(module, inputs, {"reference"}, {"all"});
  const auto optimised = RunModule(module, inputs, {"reference"});
  EXPECT_TRUE(plain.ok()) << plain.status().message() << "\n" << Print(module);
  EXPECT_TRUE(optimised.ok()) << optimised.status().message() << "\n" << Print(module);
  std::vector<Doubles> results;
  if (!plain.ok() || !optimised.ok()) return results;
  for (size_t i = 0; i < plain->size(); ++i) {
    if ((*plain)[i].dtype != DType::kF64) continue;
    results.push_back(NumbersOf((*plain)[i]));
    const Doubles other = NumbersOf((*optimised)[i]);
    EXPECT_EQ(other.size(), results.back().size());
    for (size_t k = 0; k < std::min(other.size(), results.back().size()); ++k) {
      EXPECT_NEAR(other[k], results.back()[k], 1e-9 * std::max(1.0, std::abs(other[k])))
          << "output " << i;
    }
  }
  return results;
}

}  // namespace msrt::testing
