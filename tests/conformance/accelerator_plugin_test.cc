// The accelerator as an application uses it: through the C API.
#include "core/abi/msrt_plugin.h"
#include "tests/conformance/load_accelerator.h"
#include "tests/conformance/small_graph.h"

namespace msrt::testing {
namespace {

struct RuntimeCloser {
  void operator()(msrt_runtime* r) const { msrt_runtime_destroy(r); }
};

std::unique_ptr<msrt_runtime, RuntimeCloser> MakeRuntime() {
  msrt_runtime* runtime = nullptr;
  EXPECT_EQ(msrt_runtime_create(nullptr, &runtime), MSRT_OK);
  return std::unique_ptr<msrt_runtime, RuntimeCloser>(runtime);
}

TEST(AcceleratorPlugin, LoadsOnceAndNamesBadOptions) {
  const auto runtime = MakeRuntime();
  EXPECT_EQ(msrt_runtime_load_plugin(runtime.get(), AcceleratorPath(), "colour=blue"),
            MSRT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(msrt_error_message()).find("colour=blue"), std::string::npos)
      << msrt_error_message();
  EXPECT_EQ(msrt_runtime_load_plugin(runtime.get(), AcceleratorPath(), "capacity=1e9"), MSRT_OK)
      << msrt_error_message();
  EXPECT_NE(msrt_runtime_load_plugin(runtime.get(), AcceleratorPath(), nullptr),
            MSRT_OK);  // the name is taken
}

// The host must not access the memory that it allocates.
TEST(AcceleratorPluginDeathTest, HostAccessToItsMemoryCrashes) {
  const auto env = AcceleratedEnvironment("");
  const Host host(env->allocator, env->parallel, {});
  const auto block = env->delegates[0]->devices()[0]->Allocate(host, 64, "test");
  ASSERT_TRUE(block.ok()) << block.status().message();
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // the process has threads
  EXPECT_DEATH(*const_cast<volatile std::byte*>(block->data()) = std::byte{1}, "");
}

// Every kind of misuse is counted: a check that cannot fail would prove nothing.
TEST(AcceleratorPlugin, NoticesMisuse) {
  const auto env = AcceleratedEnvironment("delay_us=20000");
  const Host host(env->allocator, env->parallel, {});
  const Device& device = *env->delegates[0]->devices()[0];
  std::vector<std::byte> memory(100);
  {
    auto stream = device.MakeStream(host);
    auto block = device.Allocate(host, 64, "test");
    ASSERT_TRUE(stream.ok() && block.ok());
    EXPECT_EQ((*stream)->CopyToDevice(host, block->data(), memory.data(), 65).code(),
              Code::kDelegate);
    EXPECT_NE(NewMisuses().find("runs over the end"), std::string::npos);
    EXPECT_TRUE((*stream)->CopyToDevice(host, block->data() + 32, memory.data(), 32).ok());
    std::byte* const stale = block->data();
    block->Reset();
    EXPECT_NE(NewMisuses().find("freed while queued work uses it"), std::string::npos);
    EXPECT_EQ((*stream)->CopyToHost(host, memory.data(), stale, 1).code(), Code::kDelegate);
    EXPECT_NE(NewMisuses().find("in no living block"), std::string::npos);
    EXPECT_TRUE((*stream)->Synchronize(host).ok());
    EXPECT_EQ(NewMisuses(), "");
    auto other = device.Allocate(host, 64, "test");
    EXPECT_TRUE((*stream)->CopyToDevice(host, other->data(), memory.data(), 64).ok());
    stream->reset();  // busy
    EXPECT_NE(NewMisuses().find("a stream is destroyed while 1"), std::string::npos);
  }
  EXPECT_EQ(NewMisuses(), "");
}

}  // namespace
}  // namespace msrt::testing
