// Bad uses of elementwise ops, which inference must refuse by name. Good uses are the rows of
// tests/data/ops.
#include "ops/elementwise.h"

#include <gtest/gtest.h>

#include "ops/infer.h"
#include "ops/registry.h"
#include "ops/resolve_space.h"

namespace msrt {
namespace {

// Returns the type of the output, or the error of inference.
Result<Type> Infer(std::string_view op, std::vector<Type> inputs, AttrList attrs = {}) {
  const OpDef* def = FindOp("", op);
  std::vector<const Type*> pointers;
  for (const Type& t : inputs) pointers.push_back(t.dtype == DType::kNone ? nullptr : &t);
  Type output;
  const Type* outputs[] = {&output};
  const OpView view("", op, "test", &attrs, def->attrs, pointers, outputs);
  MSRT_RETURN_IF_ERROR(InferTypes(*def, view, std::span<Type>(&output, 1)));
  return output;
}

Type F32(Dims dims) { return Type::Tensor(DType::kF32, dims); }
Type I64(Dims dims) { return Type::Tensor(DType::kI64, dims); }

void ExpectRefused(const Result<Type>& result, std::string_view part) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), Code::kInvalidModel);
  EXPECT_NE(result.status().message().find(part), std::string::npos) << result.status().message();
}

TEST(ElementwiseInfer, RefusesWrongTypes) {
  ExpectRefused(Infer("Sin", {I64({2})}), "i64");
  ExpectRefused(Infer("Neg", {Type::Tensor(DType::kU8, {2})}), "u8");
  ExpectRefused(Infer("Not", {F32({2})}), "f32");
  ExpectRefused(Infer("Add", {F32({2}), I64({2})}), "must be f32");
  ExpectRefused(
      Infer("Add", {Type::Tensor(DType::kF8E5M2, {2}), Type::Tensor(DType::kF8E5M2, {2})}),
      "f8e5m2");
  ExpectRefused(Infer("Where", {F32({2}), F32({2}), F32({2})}), "condition");
  ExpectRefused(Infer("Sum", {I64({2})}), "i64");
}

TEST(ElementwiseInfer, RefusesWrongShapes) {
  ExpectRefused(Infer("Add", {F32({2, 3}), F32({2})}), "3 against 2");
  ExpectRefused(Infer("Max", {F32({4}), F32({1}), F32({5})}), "4 against 5");
  ExpectRefused(Infer("PRelu", {F32({2, 3}), F32({1, 2, 3})}), "slope");
  ExpectRefused(Infer("PRelu", {F32({2, 1}), F32({3})}), "slope");
  ExpectRefused(Infer("Clip", {F32({2}), F32({2})}), "scalar");
  ExpectRefused(Infer("Clip", {F32({2}), Type{}, F32({1, 1})}), "scalar");
}

TEST(ElementwiseInfer, RefusesWrongAttributes) {
  ExpectRefused(Infer("Clip", {F32({2}), F32({})}, {{"min", 0.0}}), "min is given twice");
  ExpectRefused(Infer("Celu", {F32({2})}, {{"alpha", 0.0}}), "alpha");
  ExpectRefused(Infer("Cast", {F32({2})}), "to");
  ExpectRefused(Infer("Cast", {F32({2})}, {{"to", DType::kNone}}), "to");
  ExpectRefused(Infer("Cast", {F32({2})}, {{"to", static_cast<DType>(200)}}), "to");
  ExpectRefused(Infer("BitShift", {Type::Tensor(DType::kU8, {2}), Type::Tensor(DType::kU8, {2})}),
                "direction");
  ExpectRefused(Infer("Mod", {I64({2}), I64({2})}, {{"fmod", int64_t{2}}}), "fmod");
}

TEST(ElementwiseInfer, KeepsKnownDims) {
  const auto sum = Infer("Add", {F32({SymbolDim(0), 1, 5}), F32({kUnknownDim, 4, 1})});
  ASSERT_TRUE(sum.ok());
  EXPECT_EQ(*sum, F32({kUnknownDim, 4, 5}));
  const auto same = Infer("Less", {F32({SymbolDim(1)}), F32({SymbolDim(1)})});
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(*same, Type::Tensor(DType::kBool, {SymbolDim(1)}));
  const auto cast = Infer("Cast", {Type::UnrankedTensor(DType::kF32)}, {{"to", DType::kI4}});
  ASSERT_TRUE(cast.ok());
  EXPECT_EQ(*cast, Type::UnrankedTensor(DType::kI4));
}

TEST(ElementwiseSpace, FourBitElementsAreNotCut) {
  const OpDef* cast = FindOp("", "Cast");
  const Type in = F32({4}), out = Type::Tensor(DType::kI4, {4});
  const Type *inputs[] = {&in}, *outputs[] = {&out};
  const AttrList attrs{{"to", DType::kI4}};
  const OpView op("", "Cast", "test", &attrs, cast->attrs, inputs, outputs);
  EXPECT_EQ(ResolveSpace(*cast, op).status().code(), Code::kUnsupported);
}

}  // namespace
}  // namespace msrt
