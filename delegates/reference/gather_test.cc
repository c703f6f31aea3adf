// Indices and axes that are known only at run time: those out of range are refused with their
// position and never touch memory.
#include <gtest/gtest.h>

#include "delegates/reference/kernel.h"
#include "ops/infer.h"
#include "ops/registry.h"

namespace msrt::reference {
namespace {

// Infers and runs one node whose inputs are not known before the run; returns the kernel's status.
Status RunNode(std::string_view op, const AttrList& attrs, const std::vector<ConstTensor>& inputs) {
  const OpDef* def = FindOp("", op);
  std::vector<Type> types, outputs(1);
  std::vector<const Type*> in, out{&outputs[0]};
  std::vector<TensorView> in_views;
  for (const ConstTensor& t : inputs) {
    types.push_back(t.type());
    in_views.push_back({t.dtype, t.dims, Layout::kPlain, const_cast<std::byte*>(t.bytes.data())});
  }
  for (const Type& t : types) in.push_back(&t);
  const OpView view("", op, "test", &attrs, def->attrs, in, out);
  const Status inferred = InferTypes(*def, view, outputs);
  EXPECT_TRUE(inferred.ok()) << inferred.message();
  for (int64_t& d : outputs[0].dims) d = IsKnown(d) ? d : 1;
  std::vector<std::byte> result(outputs[0].bytes() + 1);
  const TensorView out_view{outputs[0].dtype, outputs[0].dims, Layout::kPlain, result.data()};
  const auto serial = MakeSerial();
  return FindKernel("", op)({view, in_views, {&out_view, 1}, *serial});
}

void ExpectRefused(const Status& status, std::string_view message) {
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.message(), message);
}

ConstTensor Floats(Dims dims) {
  return ConstTensor::Floats(dims, std::vector<float>(static_cast<size_t>(dims.elements()), 1.0f));
}
ConstTensor Indices(Dims dims, std::vector<int64_t> values) {
  return ConstTensor::Of<int64_t>(DType::kI64, dims, values);
}

TEST(GatherKernels, GatherErrorNamesTheIndexOutOfRange) {
  ExpectRefused(
      RunNode("Gather", {{"axis", int64_t{1}}}, {Floats({2, 3}), Indices({2, 2}, {0, -3, 3, 1})}),
      "indices[1, 0] = 3, must be in [-3, 2] for axis 1 of data");
  ExpectRefused(RunNode("Gather", {}, {Floats({2, 3}), Indices({}, {INT64_MIN})}),
                StrCat("indices[] = ", INT64_MIN, ", must be in [-2, 1] for axis 0 of data"));
  ExpectRefused(RunNode("Gather", {}, {Floats({0, 3}), Indices({1}, {0})}),
                "indices[0] = 0, but axis 0 of data is empty");
  ExpectRefused(RunNode("GatherElements", {}, {Floats({2, 3}), Indices({1, 2}, {0, -3})}),
                "indices[0, 1] = -3, must be in [-2, 1] for axis 0 of data");
  ExpectRefused(RunNode("GatherND", {{"batch_dims", int64_t{1}}},
                        {Floats({2, 3, 4}), Indices({2, 1}, {2, 3})}),
                "indices[1, 0] = 3, must be in [-3, 2] for axis 1 of data");
}

TEST(GatherKernels, ScatterErrorNamesTheIndexOutOfRange) {
  ExpectRefused(
      RunNode("ScatterElements", {}, {Floats({2, 3}), Indices({1, 2}, {0, 2}), Floats({1, 2})}),
      "indices[0, 1] = 2, must be in [-2, 1] for axis 0 of data");
  ExpectRefused(RunNode("ScatterND", {{"reduction", std::string("add")}},
                        {Floats({2, 3}), Indices({2, 2}, {0, 0, 1, INT64_MAX}), Floats({2})}),
                StrCat("indices[1, 1] = ", INT64_MAX, ", must be in [-3, 2] for axis 1 of data"));
}

TEST(ReduceKernels, AxesFromInputsAreChecked) {
  ExpectRefused(RunNode("ReduceSum", {}, {Floats({2, 3}), Indices({1}, {2})}),
                "axis = 2, must be in [-2, 1] for rank 2");
  ExpectRefused(RunNode("ReduceSum", {}, {Floats({2, 3}), Indices({1}, {0})}),
                "axes leave 3 elements, but the output has dims [1, 1]");
  ExpectRefused(RunNode("CumSum", {}, {Floats({2, 3}), Indices({}, {-3})}),
                "axis = -3, must be in [-2, 1] for rank 2");
  ExpectRefused(
      RunNode("OneHot", {}, {Indices({2}, {0, 1}), Indices({}, {INT64_MIN}), Floats({2})}),
      StrCat("depth = ", INT64_MIN, ", must be at least 0"));
}

}  // namespace
}  // namespace msrt::reference
