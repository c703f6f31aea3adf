// For tests of entries: a single node without a graph, with types and no data.
#pragma once

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "ops/infer.h"
#include "ops/registry.h"

namespace msrt::testing {

struct TypedNode {
  const OpDef* def;
  AttrList attrs;
  std::vector<Type> inputs;  // element type none: absent
  std::vector<Type> outputs;

  // Calls use(OpView) while everything that the view points to is alive.
  template <typename Use>
  auto With(const Use& use) {
    std::vector<const Type*> in, out;
    for (const Type& t : inputs) in.push_back(t.dtype == DType::kNone ? nullptr : &t);
    for (const Type& t : outputs) out.push_back(&t);
    return use(OpView(def->domain, def->name, "test", &attrs, def->attrs, in, out));
  }
  Status Infer() {
    return With([&](const OpView& op) { return InferTypes(*def, op, outputs); });
  }
};

inline TypedNode NodeOf(std::string_view domain, std::string_view op, AttrList attrs,
                        std::vector<Type> inputs, size_t outputs = 1) {
  return {FindOp(domain, op), std::move(attrs), std::move(inputs), std::vector<Type>(outputs)};
}

inline Type F32(Dims dims) { return Type::Tensor(DType::kF32, dims); }
inline Type LeftOut() { return Type(); }

// Expects that inference refuses the node with a message that contains `part`.
inline void ExpectRefused(TypedNode node, std::string_view part) {
  ASSERT_NE(node.def, nullptr);
  const Status status = node.Infer();
  EXPECT_EQ(status.code(), Code::kInvalidModel) << "expected a refusal about: " << part;
  EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}

// Returns the type of output `i`, or the error, as text.
inline std::string Inferred(TypedNode node, size_t i = 0) {
  const Status status = node.Infer();
  return status.ok() ? StrCat(node.outputs[i]) : status.message();
}

}  // namespace msrt::testing
