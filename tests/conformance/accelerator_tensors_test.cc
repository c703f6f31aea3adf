// The application's tensors on a device: bound without copies through the host, and copied where a
// model wants them elsewhere.
#include <cstring>

#include "core/abi/msrt_plugin.h"
#include "tests/conformance/load_accelerator.h"
#include "tests/conformance/loop_models.h"

namespace msrt::testing {
namespace {

// y = (x * w + x) on the device.
Module Affine() {
  SmallGraph g;
  const ValueId x = g.Input("x", DType::kF32, {64});
  const ValueId w = g.graph.AddConstant("w", RandomFloats({64}, 3));
  const ValueId y = g.Add("Add", "d_add", {g.Add("Mul", "d_mul", {x, w}), x});
  g.graph.value(y).name = "y";
  g.graph.outputs = {y};
  return g.module;
}

class AcceleratorTensors : public ::testing::Test {
 protected:
  ~AcceleratorTensors() override { EXPECT_EQ(NewMisuses(), ""); }

  void Compile(std::vector<std::pair<std::string, std::string>> io_devices,
               const std::string& options = "") {
    env_ = AcceleratedEnvironment(StrCat("copy_us=1,copy_gbs=10,", options));
    CompileOptions compile = OptionsWithPins({{"d*", "", env_->devices[0]->name(), false}}, true);
    compile.io_devices = std::move(io_devices);
    auto model = CompileModule(env_, Affine(), compile);
    ASSERT_TRUE(model.ok()) << model.status().message();
    session_ = *Session::Create(*model, 0, {});
    auto reference = CompileModule(TestEnvironment(), Affine(), OptionsWithPins({}));
    auto want = RunSession(**Session::Create(*reference, 0, {}), {input_});
    ASSERT_TRUE(want.ok());
    want_ = *std::move(want);
    host_ = std::make_unique<Host>(env_->allocator, env_->parallel, Log());
  }

  DeviceBlock Upload(const Device& device, const ConstTensor& tensor) {
    auto block = device.Allocate(*host_, tensor.bytes.size(), "test");
    auto stream = device.MakeStream(*host_);
    EXPECT_TRUE(block.ok() && stream.ok());
    EXPECT_TRUE((*stream)
                    ->CopyToDevice(*host_, block->data(), tensor.bytes.data(), tensor.bytes.size())
                    .ok());
    EXPECT_TRUE((*stream)->Synchronize(*host_).ok());
    return *std::move(block);
  }

  void ExpectResult(const Device* device, const void* data) {
    std::vector<std::byte> got(64 * sizeof(float));
    if (device == nullptr) {
      std::memcpy(got.data(), data, got.size());
    } else {
      auto stream = device->MakeStream(*host_);
      EXPECT_TRUE((*stream)->CopyToHost(*host_, got.data(), data, got.size()).ok());
      EXPECT_TRUE((*stream)->Synchronize(*host_).ok());
    }
    EXPECT_EQ(std::memcmp(got.data(), want_[0].bytes.data(), got.size()), 0);
  }

  void BindInput(const Device* device, void* data) {
    RunValue value = RunValue::Of({DType::kF32, {64}, Layout::kPlain, data});
    value.device = device;
    ASSERT_TRUE(session_->SetInput(0, value).ok());
  }
  TensorView View(void* data) const { return {DType::kF32, {64}, Layout::kPlain, data}; }

  const ConstTensor input_ = RandomFloats({64}, 11);
  std::shared_ptr<Environment> env_;
  std::unique_ptr<Host> host_;
  std::unique_ptr<Session> session_;
  std::vector<ConstTensor> want_;
};

TEST_F(AcceleratorTensors, DeviceTensorsAreBoundWithoutCopies) {
  Compile({{"x", "accelerator"}, {"y", "accelerator"}});
  const Device& device = *env_->devices[0];
  const DeviceBlock x = Upload(device, input_);
  auto y = device.Allocate(*host_, 256, "test");
  BindInput(&device, x.data());
  ASSERT_TRUE(session_->SetOutput(0, View(y->data()), nullptr, &device).ok());
  const uint64_t to = AcceleratorCount("copies_to_device"),
                 from = AcceleratorCount("copies_to_host");
  for (int run = 0; run < 3; ++run) {
    const Status status = session_->Run({});
    ASSERT_TRUE(status.ok()) << status.message();
  }
  EXPECT_EQ(AcceleratorCount("copies_to_device"), to);
  EXPECT_EQ(AcceleratorCount("copies_to_host"), from);
  ExpectResult(&device, y->data());
  session_.reset();
}

TEST_F(AcceleratorTensors, UnboundOutputStaysOnItsDevice) {
  Compile({{"y", "accelerator"}});
  BindInput(nullptr, const_cast<std::byte*>(input_.bytes.data()));
  ASSERT_TRUE(session_->Run({}).ok());
  const auto result = session_->OutputValue(0);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->device, env_->devices[0].get());
  ExpectResult(result->device, result->tensor.data);
}

// Tensors bound elsewhere than the model has them are copied.
TEST_F(AcceleratorTensors, TensorsElsewhereAreCopied) {
  for (const bool model_on_device : {true, false}) {
    if (model_on_device) Compile({{"x", "accelerator0"}, {"y", "accelerator0"}}, "devices=2");
    else Compile({}, "devices=2");
    std::vector<std::byte> on_host(256);
    const Device* const places[] = {nullptr, env_->devices[0].get(), env_->devices[1].get()};
    for (const Device* from : places) {
      for (const Device* to : places) {
        DeviceBlock x, y;
        if (from != nullptr) x = Upload(*from, input_);
        if (to != nullptr) y = *to->Allocate(*host_, 256, "test");
        std::byte* const out = to == nullptr ? on_host.data() : y.data();
        BindInput(from, from == nullptr ? const_cast<std::byte*>(input_.bytes.data()) : x.data());
        ASSERT_TRUE(session_->SetOutput(0, View(out), nullptr, to).ok());
        const Status status = session_->Run({});
        ASSERT_TRUE(status.ok()) << status.message();
        ExpectResult(to, out);
        ASSERT_TRUE(session_->SetOutput(0, {}, nullptr).ok());
      }
    }
    session_.reset();
  }
}

TEST_F(AcceleratorTensors, UnknownNamesAreRefused) {
  const auto compile = [&](std::pair<std::string, std::string> io) {
    CompileOptions options = OptionsWithPins({});
    options.io_devices = {std::move(io)};
    return CompileModule(AcceleratedEnvironment(""), Affine(), options).status();
  };
  const Status device = compile({"x", "toaster"}), port = compile({"z", "accelerator"});
  EXPECT_NE(device.message().find("'toaster'"), std::string::npos) << device.message();
  EXPECT_NE(port.message().find("'z'"), std::string::npos) << port.message();
}

// ---- Through the C API.

TEST(AcceleratorTensorsInC, CreateCopyAndExport) {
  msrt_runtime* runtime = nullptr;
  ASSERT_EQ(msrt_runtime_create(nullptr, &runtime), MSRT_OK);
  ASSERT_EQ(msrt_runtime_load_plugin(runtime, AcceleratorPath(), "devices=2"), MSRT_OK)
      << msrt_error_message();
  const int64_t dims[] = {3};
  float values[] = {1, 2, 3}, back[3] = {};
  msrt_tensor *host = nullptr, *first = nullptr, *second = nullptr, *result = nullptr;
  ASSERT_EQ(
      msrt_tensor_wrap(runtime, MSRT_F32, 1, dims, values, sizeof values, nullptr, nullptr, &host),
      MSRT_OK);
  ASSERT_EQ(
      msrt_tensor_wrap(runtime, MSRT_F32, 1, dims, back, sizeof back, nullptr, nullptr, &result),
      MSRT_OK);
  ASSERT_EQ(msrt_tensor_create_on_device(runtime, "accelerator0", MSRT_F32, 1, dims, &first),
            MSRT_OK)
      << msrt_error_message();
  ASSERT_EQ(msrt_tensor_create_on_device(runtime, "accelerator1", MSRT_F32, 1, dims, &second),
            MSRT_OK);
  EXPECT_EQ(msrt_tensor_create_on_device(runtime, "toaster", MSRT_F32, 1, dims, &second),
            MSRT_NOT_FOUND);
  EXPECT_NE(std::string(msrt_error_message()).find("accelerator0, accelerator1"),
            std::string::npos);
  const char* name = nullptr;
  ASSERT_EQ(msrt_tensor_device(second, &name), MSRT_OK);
  EXPECT_STREQ(name, "accelerator1");
  ASSERT_EQ(msrt_tensor_device(host, &name), MSRT_OK);
  EXPECT_EQ(name, nullptr);
  ASSERT_EQ(msrt_tensor_copy(first, host), MSRT_OK) << msrt_error_message();
  ASSERT_EQ(msrt_tensor_copy(second, first), MSRT_OK) << msrt_error_message();
  ASSERT_EQ(msrt_tensor_copy(result, second), MSRT_OK) << msrt_error_message();
  EXPECT_EQ(std::memcmp(values, back, sizeof back), 0);

  // DLPack: out and in again, with the device's type and number.
  struct DlTensor {
    void* data;
    int32_t device_type, device_id;
  };
  void* managed = nullptr;
  ASSERT_EQ(msrt_tensor_to_dlpack(second, &managed), MSRT_OK) << msrt_error_message();
  auto* const exported = static_cast<DlTensor*>(managed);
  EXPECT_EQ(exported->device_type, 12);
  EXPECT_EQ(exported->device_id, 1);
  exported->device_id = 5;
  msrt_tensor* imported = nullptr;
  EXPECT_EQ(msrt_tensor_from_dlpack(runtime, managed, &imported), MSRT_UNSUPPORTED);
  exported->device_id = 1;
  ASSERT_EQ(msrt_tensor_from_dlpack(runtime, managed, &imported), MSRT_OK);
  ASSERT_EQ(msrt_tensor_device(imported, &name), MSRT_OK);
  EXPECT_STREQ(name, "accelerator1");

  // The host does not read device memory behind the application's back.
  msrt_list* list = nullptr;
  ASSERT_EQ(msrt_list_create(runtime, &list), MSRT_OK);
  EXPECT_EQ(msrt_list_append(list, second), MSRT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(msrt_error_message()).find("accelerator1"), std::string::npos);
  msrt_list_destroy(list);
  for (msrt_tensor* t : {host, first, second, result, imported}) msrt_tensor_destroy(t);
  msrt_runtime_destroy(runtime);
  EXPECT_EQ(NewMisuses(), "");
}

}  // namespace
}  // namespace msrt::testing
