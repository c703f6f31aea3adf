// Damaged files through the whole pipeline: load, compile, bind, run. Every bit of a small model is
// flipped, with a corrected hash so that the damage reaches the code behind it; every outcome is an
// error or a result, within the caps.
#include <gtest/gtest.h>

#include "core/model/sample_models.h"
#include "core/model/write.h"
#include "tests/conformance/pipeline.h"

namespace msrt::testing {
namespace {

// Runs once with zeros for inputs. Inputs that the damage made huge are left out, so the run must
// report them as missing.
Status TryToRun(const std::shared_ptr<const Environment>& environment,
                std::span<const std::byte> file) {
  CompileOptions options;
  options.place.delegates = {"reference"};
  MSRT_ASSIGN_OR_RETURN(auto model, CompileBytes(environment, AlignedCopy(file), options));
  MSRT_ASSIGN_OR_RETURN(
      auto session, Session::Create(std::move(model), 0, {.memory_cap_bytes = size_t{4} << 20}));
  std::vector<ConstTensor> inputs;
  for (size_t i = 0; i < session->graph().inputs.size(); ++i) {
    Type type = session->graph().value(session->graph().inputs[i]).type;
    for (int64_t& d : type.dims) d = IsKnown(d) ? d : 2;
    if (!type.is_tensor() || type.elements() > 10000) continue;
    inputs.push_back(
        ConstTensor::Copy(type.dtype, type.dims, std::vector<std::byte>(type.bytes())));
    const ConstTensor& t = inputs.back();
    MSRT_RETURN_IF_ERROR(session->SetInput(
        i, {t.dtype, t.dims, Layout::kPlain, const_cast<std::byte*>(t.bytes.data())}, t.owner));
  }
  return session->Run({});
}

TEST(Hostile, EveryFlippedBitGivesAnErrorOrAResult) {
  const auto environment = TestEnvironment();
  auto file = SerializeModel(KnownOpsModule());
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_TRUE(TryToRun(environment, *file).ok());
  // The structure ends where the first weights begin, at a multiple of a page.
  const size_t structure = std::min<size_t>(file->size(), 4096);
  int ran = 0, refused = 0;
  for (size_t bit = 0; bit < structure * 8; ++bit) {
    std::vector<std::byte> damaged = *file;
    damaged[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
    if (bit / 8 >= 56) Reseal(&damaged);
    const Status status = TryToRun(environment, damaged);
    ASSERT_NE(status.code(), Code::kInternal) << "bit " << bit << ": " << status.message();
    ++(status.ok() ? ran : refused);
  }
  std::printf("%d damaged models ran, %d were refused\n", ran, refused);
  EXPECT_GT(refused, 1000);
}

TEST(Hostile, EveryPrefixIsRefused) {
  const auto environment = TestEnvironment();
  auto file = SerializeModel(KnownOpsModule());
  ASSERT_TRUE(file.ok());
  for (size_t bytes = 0; bytes < file->size(); ++bytes) {
    const Status status = TryToRun(environment, std::span(*file).first(bytes));
    ASSERT_FALSE(status.ok()) << bytes << " bytes";
    ASSERT_FALSE(status.message().empty());
  }
}

}  // namespace
}  // namespace msrt::testing
