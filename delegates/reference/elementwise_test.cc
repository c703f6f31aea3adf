// Elementwise kernels on unusual data: divisors of zero, undefined powers, bytes and half bytes.
#include <gtest/gtest.h>

#include "delegates/reference/elements.h"
#include "delegates/reference/kernel.h"

namespace msrt::reference {
namespace {

// Runs a binary op on i32 vectors; `out` has the length of `a`.
Status RunI32(std::string_view op, std::vector<int32_t> a, std::vector<int32_t> b,
              std::vector<int32_t>* out) {
  out->assign(a.size(), 77);
  const AttrList attrs;
  const OpView view("", op, "test", &attrs, {}, {}, {});
  const auto view_of = [](std::vector<int32_t>& v) {
    return TensorView{DType::kI32, {static_cast<int64_t>(v.size())}, Layout::kPlain, v.data()};
  };
  const TensorView inputs[] = {view_of(a), view_of(b)}, outputs[] = {view_of(*out)};
  const auto parallel = MakeSerial();
  return FindKernel("", op)({view, inputs, outputs, *parallel});
}

TEST(ElementwiseKernels, IntegerDivisionByZeroNamesTheElement) {
  std::vector<int32_t> out;
  for (const std::string_view op : {"Div", "Mod"}) {
    const Status status = RunI32(op, {1, 2, 3}, {4, 0, 0}, &out);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find("element 1 of input 1"), std::string::npos) << status.message();
    EXPECT_EQ(out, std::vector<int32_t>({77, 77, 77}))
        << "nothing may be written before the divisors are known to be good";
  }
}

TEST(ElementwiseKernels, ZeroToANegativePowerSaturates) {
  std::vector<int32_t> out;
  ASSERT_TRUE(RunI32("Pow", {0, 0, -1, 2}, {-1, 0, -3, -1}, &out).ok());
  EXPECT_EQ(out, std::vector<int32_t>({INT32_MAX, 1, -1, 0}));
}

TEST(ElementwiseKernels, AnyNonZeroByteLoadsAsTrue) {
  const uint8_t bytes[] = {0, 1, 2, 255};
  uint64_t values[4];
  LoadElements(DType::kBool, bytes, 0, 1, 4, values);
  EXPECT_EQ(std::vector<uint64_t>(values, values + 4), std::vector<uint64_t>({0, 1, 1, 1}));
}

TEST(ElementwiseKernels, HalfBytesLoadWithAStride) {
  const uint8_t packed[] = {0x21, 0xf3, 0x08};  // 1, 2, 3, -1, -8
  int64_t values[3];
  LoadElements(DType::kI4, packed, 0, 2, 3, values);
  EXPECT_EQ(std::vector<int64_t>(values, values + 3), std::vector<int64_t>({1, 3, -8}));
  uint8_t out[] = {0xee, 0xee, 0xee};
  StoreElements(DType::kI4, out, 2, 3, values);
  EXPECT_EQ(std::vector<uint8_t>(out, out + 3), std::vector<uint8_t>({0xee, 0x31, 0x08}));
}

}  // namespace
}  // namespace msrt::reference
