// Covers what the op cases cannot show of Resize: bad uses and unknown dims.
#include <gtest/gtest.h>

#include "ops/infer.h"
#include "ops/registry.h"
#include "ops/resample.h"

namespace msrt {
namespace {

Result<Dims> InferResize(AttrList attrs, Type input, const Type* sizes = nullptr) {
  const OpDef* def = FindOp("", "Resize");
  const Type* inputs[] = {&input, nullptr, nullptr, sizes};
  std::vector<Type> outputs(1);
  const OpView op(def->domain, def->name, "test", &attrs, def->attrs, inputs, {});
  MSRT_RETURN_IF_ERROR(InferTypes(*def, op, outputs));
  return outputs[0].dims;
}

using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;
const Type kImage = Type::Tensor(DType::kF32, {1, 2, 8, 8});

void ExpectRefused(AttrList attrs, std::string_view part, Type input = kImage,
                   const Type* sizes = nullptr) {
  const auto dims = InferResize(std::move(attrs), input, sizes);
  ASSERT_FALSE(dims.ok());
  EXPECT_EQ(dims.status().code(), Code::kInvalidModel);
  EXPECT_NE(dims.status().message().find(part), std::string::npos) << dims.status().message();
}

TEST(ResizeInfer, RefusesBadUses) {
  const Type sizes = Type::Tensor(DType::kI64, {4});
  ExpectRefused({}, "scales or sizes");
  ExpectRefused({{"scales", Floats{1, 1, 2, 2}}, {"sizes", Ints{1, 2, 4, 4}}}, "scales or sizes");
  ExpectRefused({{"sizes", Ints{1, 2, 4, 4}}}, "attribute and as input", kImage, &sizes);
  ExpectRefused({{"scales", Floats{2, 2}}}, "scales has 2 elements");
  ExpectRefused({{"scales", Floats{1, 1, 0, 2}}}, "scales holds 0");
  ExpectRefused({{"scales", Floats{1, 1, std::numeric_limits<double>::infinity(), 2}}},
                "scales holds");
  ExpectRefused({{"sizes", Ints{4, 4}}, {"axes", Ints{2, -2}}}, "twice");
  ExpectRefused({{"sizes", Ints{4, 4}}, {"axes", Ints{2, 4}}}, "axes");
  ExpectRefused({{"sizes", Ints{1, 2, 4, 4}}, {"antialias", int64_t{1}}}, "antialias");
  ExpectRefused({{"sizes", Ints{1, 2, 4, 4}}, {"mode", std::string("linear")}}, "mode = 'linear'",
                Type::Tensor(DType::kI64, {1, 2, 8, 8}));
  ExpectRefused({{"sizes", Ints{1, 2, 4, 4}},
                 {"coordinate_transformation_mode", std::string("tf_crop_and_resize")}},
                "roi");
  ExpectRefused({{"sizes", Ints{1, 2, 4, 4}}}, "empty", Type::Tensor(DType::kF32, {1, 2, 0, 8}));
  ExpectRefused({{"scales", Floats{1, 1, 2147483647, 2}}}, "too long",
                Type::Tensor(DType::kF32, {1, 1, int64_t{1} << 50, 1}));
  ExpectRefused({{"sizes", Ints{1, 2, 4, 4}}, {"output_dims", Ints{1, 2, 2, 2}}}, "output_dims");
  ExpectRefused({{"sizes", Ints{1, 2, 4, 4}},
                 {"input_dims", Ints{1, 2, 8, 8}},
                 {"input_origin", Ints{0, 0, 4, 0}},
                 {"output_origin", Ints{0, 0, 0, 0}},
                 {"output_dims", Ints{1, 2, 2, 2}}},
                "not parts");
}

TEST(ResizeInfer, KnownDimsDoNotDependOnUnknownOnes) {
  const Type symbolic = Type::Tensor(DType::kF32, {SymbolDim(0), 3, kUnknownDim, 10});
  EXPECT_EQ(*InferResize({{"sizes", Ints{4, 4}}, {"axes", Ints{2, 3}}}, symbolic),
            (Dims{SymbolDim(0), 3, 4, 4}));
  EXPECT_EQ(*InferResize({{"scales", Floats{1, 1, 2, 0.7f}}}, symbolic),
            (Dims{SymbolDim(0), 3, kUnknownDim, 7}));
  const Type sizes = Type::Tensor(DType::kI64, {4});
  EXPECT_EQ(*InferResize({}, symbolic, &sizes), Dims::Filled(4, kUnknownDim));
}

}  // namespace
}  // namespace msrt
