#include <cstring>
#include <functional>

#include "core/api/api_testing.h"

namespace msrt::testing {
namespace {

// DLPack 0.8's DLManagedTensor, as another framework declares it.
struct Managed {
  void* data;
  int32_t device_type, device_id;
  int32_t rank;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t* dims;
  int64_t* strides;
  uint64_t byte_offset;
  void* context;
  void (*deleter)(Managed*);
};

class DlPack : public ::testing::Test {
 protected:
  void SetUp() override { MSRT_ASSERT_OK(msrt_runtime_create(nullptr, &runtime)); }
  void TearDown() override { msrt_runtime_destroy(runtime); }

  // f32[2, 3] that counts its deletions.
  Managed MakeManaged() {
    return {values,  1,  0,        2,
            2,       32, 1,        dims,
            nullptr, 0,  &deleted, [](Managed* self) { ++*static_cast<int*>(self->context); }};
  }

  msrt_runtime* runtime = nullptr;
  float values[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  int64_t dims[2] = {2, 3};
  int deleted = 0;
};

TEST_F(DlPack, ImportDoesNotCopy) {
  int64_t row_major[] = {3, 1};
  for (int64_t* strides : {static_cast<int64_t*>(nullptr), row_major}) {
    Managed managed = MakeManaged();
    managed.strides = strides;
    managed.byte_offset = 8;
    deleted = 0;
    msrt_tensor* tensor = nullptr;
    MSRT_ASSERT_OK(msrt_tensor_from_dlpack(runtime, &managed, &tensor));
    EXPECT_EQ(FloatsOf(tensor), (std::vector<float>{2, 3, 4, 5, 6, 7}));
    void* data = nullptr;
    MSRT_ASSERT_OK(msrt_tensor_data(tensor, &data));
    EXPECT_EQ(data, values + 2);
    EXPECT_EQ(deleted, 0);
    msrt_tensor_destroy(tensor);
    EXPECT_EQ(deleted, 1);
  }
}

TEST_F(DlPack, StridesOfUnitDimsAndEmptyTensorsAreIgnored) {
  int64_t ones[] = {1, 3}, strides[] = {77, 1}, none[] = {0, 3};
  for (int64_t* d : {ones, none}) {
    Managed managed = MakeManaged();
    managed.dims = d;
    managed.strides = strides;
    msrt_tensor* tensor = nullptr;
    MSRT_EXPECT_OK(msrt_tensor_from_dlpack(runtime, &managed, &tensor));
    msrt_tensor_destroy(tensor);
  }
}

TEST_F(DlPack, RefusedTensorStaysWithTheCaller) {
  int64_t transposed[] = {1, 2}, negative[] = {2, -3};
  const struct {
    msrt_status status;
    const char* word;
    std::function<void(Managed&)> spoil;
  } rows[] = {
      {MSRT_UNSUPPORTED, "device", [](Managed& m) { m.device_type = 2; }},
      {MSRT_UNSUPPORTED, "lanes", [](Managed& m) { m.lanes = 4; }},
      {MSRT_UNSUPPORTED, "type", [](Managed& m) { m.code = 5, m.bits = 64; }},
      {MSRT_UNSUPPORTED, "stride", [&](Managed& m) { m.strides = transposed; }},
      {MSRT_INVALID_ARGUMENT, "dims[1]", [&](Managed& m) { m.dims = negative; }},
      {MSRT_INVALID_ARGUMENT, "dims", [](Managed& m) { m.dims = nullptr; }},
      {MSRT_INVALID_ARGUMENT, "rank", [](Managed& m) { m.rank = -1; }},
      {MSRT_INVALID_ARGUMENT, "rank", [](Managed& m) { m.rank = 9; }},
      {MSRT_INVALID_ARGUMENT, "data", [](Managed& m) { m.data = nullptr; }},
      {MSRT_INVALID_ARGUMENT, "multiple", [](Managed& m) { m.byte_offset = 1; }},
  };
  for (const auto& row : rows) {
    Managed managed = MakeManaged();
    row.spoil(managed);
    msrt_tensor* tensor = nullptr;
    EXPECT_EQ(msrt_tensor_from_dlpack(runtime, &managed, &tensor), row.status) << row.word;
    EXPECT_NE(std::string(msrt_error_message()).find(row.word), std::string::npos)
        << msrt_error_message();
    EXPECT_EQ(tensor, nullptr);
  }
  EXPECT_EQ(deleted, 0);
}

TEST_F(DlPack, ExportOutlivesTheHandle) {
  msrt_tensor* tensor = FloatTensor(runtime, {2, 1, 3}, {1, 2, 3, 4, 5, 6});
  void* out = nullptr;
  MSRT_ASSERT_OK(msrt_tensor_to_dlpack(tensor, &out));
  msrt_tensor_destroy(tensor);
  auto* managed = static_cast<Managed*>(out);
  EXPECT_EQ(managed->device_type, 1);
  EXPECT_EQ(managed->rank, 3);
  EXPECT_EQ(managed->code, 2);
  EXPECT_EQ(managed->bits, 32);
  EXPECT_EQ(managed->lanes, 1);
  EXPECT_EQ(managed->dims[2], 3);
  EXPECT_EQ(managed->strides[0], 3);
  EXPECT_EQ(managed->byte_offset, 0u);
  EXPECT_EQ(static_cast<float*>(managed->data)[5], 6);
  managed->deleter(managed);
}

// Exports and imports every type; those that DLPack lacks are refused.
TEST_F(DlPack, TypesSurviveARoundTrip) {
  for (msrt_dtype dtype = MSRT_F64; dtype <= MSRT_F4E2M1; ++dtype) {
    msrt_tensor *tensor = nullptr, *back = nullptr;
    void* managed = nullptr;
    MSRT_ASSERT_OK(msrt_tensor_create(runtime, dtype, 2, dims, &tensor));
    const msrt_status status = msrt_tensor_to_dlpack(tensor, &managed);
    EXPECT_EQ(status, dtype <= MSRT_BOOL ? MSRT_OK : MSRT_UNSUPPORTED) << dtype;
    msrt_tensor_destroy(tensor);
    if (status != MSRT_OK) continue;
    MSRT_ASSERT_OK(msrt_tensor_from_dlpack(runtime, managed, &back));
    msrt_tensor_info info = MSRT_INIT(msrt_tensor_info);
    MSRT_EXPECT_OK(msrt_tensor_get_info(back, &info));
    EXPECT_EQ(info.dtype, dtype);
    msrt_tensor_destroy(back);
  }
}

}  // namespace
}  // namespace msrt::testing
