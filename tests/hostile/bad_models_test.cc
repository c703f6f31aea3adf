// Every model of the tables through as much of the pipeline as it passes: file, load, validate,
// passes, compile, bind, run, with caps. Each must quickly return its code and a message that names
// the object, and so must the same module from the graph builder without a file.
#include <gtest/gtest.h>

#include "core/model/sample_models.h"
#include "core/model/write.h"
#include "tests/conformance/pipeline.h"
#include "tests/hostile/bad_model.h"

namespace msrt::testing {
namespace {

constexpr size_t kCapBytes = size_t{64} << 20;
// Deadlines for rows that must exceed it, and for all others.
constexpr int64_t kShortNanos = 20'000'000, kLongNanos = 10'000'000'000;
// Far above what any row needs under a sanitizer on a busy machine, far below what a bomb takes.
constexpr double kMaxMillis = 20'000;

Status Run(std::shared_ptr<const CompiledModel> model, const ModelDraft& draft, int64_t nanos) {
  const std::vector<ConstTensor>& data = draft.data;
  Clock* clock = model->environment->clock;
  MSRT_ASSIGN_OR_RETURN(auto session,
                        Session::Create(std::move(model), 0, {.memory_cap_bytes = kCapBytes}));
  for (size_t i = 0; i < data.size(); ++i) {
    if (data[i].bytes.data() == nullptr) continue;
    const TensorView view{data[i].dtype, data[i].dims, Layout::kPlain,
                          const_cast<std::byte*>(data[i].bytes.data())};
    MSRT_RETURN_IF_ERROR(session->SetInput(i, view, data[i].owner));
  }
  return session->Run({.deadline_nanos = clock->NowNanos() + nanos});
}

CompileOptions ReferenceOnly() {
  CompileOptions options;
  options.place.delegates = {"reference"};
  return options;
}

Status RunFile(const ModelDraft& draft, int64_t nanos) {
  MSRT_ASSIGN_OR_RETURN(const auto file, SerializeModel(draft.module));
  MSRT_ASSIGN_OR_RETURN(auto model,
                        CompileBytes(TestEnvironment(), AlignedCopy(file), ReferenceOnly()));
  return Run(std::move(model), draft, nanos);
}

Status RunBuilt(const ModelDraft& draft, int64_t nanos) {
  MSRT_ASSIGN_OR_RETURN(auto model,
                        CompileModule(TestEnvironment(), draft.module, ReferenceOnly()));
  return Run(std::move(model), draft, nanos);
}

void ExpectAnswer(const BadModel& row, const Status& status) {
  EXPECT_EQ(CodeName(status.code()), CodeName(row.code)) << status.message();
  EXPECT_NE(status.message().find(row.fragment), std::string::npos)
      << "'" << status.message() << "' does not contain '" << row.fragment << "'";
}

class BadModelTest : public ::testing::TestWithParam<BadModel> {};

TEST_P(BadModelTest, ReturnsItsCodeAndNamesTheObject) {
  ModelDraft draft;
  GetParam().make(draft);
  const int64_t nanos = GetParam().code == Code::kDeadlineExceeded ? kShortNanos : kLongNanos;
  const StopWatch watch;
  {
    SCOPED_TRACE("from a file");
    ExpectAnswer(GetParam(), RunFile(draft, nanos));
  }
  {
    SCOPED_TRACE("as built");
    // Limits of the file format do not apply without a file.
    const Status status = RunBuilt(draft, nanos);
    EXPECT_EQ(status.ok(), GetParam().code == Code::kOk) << status.message();
    if (status.code() == GetParam().code) ExpectAnswer(GetParam(), status);
    EXPECT_NE(status.code(), Code::kInternal) << status.message();
  }
  EXPECT_LT(watch.Millis(), kMaxMillis);
}

std::string NameOf(const ::testing::TestParamInfo<BadModel>& row) { return row.param.name; }
#define MSRT_BAD_MODELS(Class)                                                                  \
  INSTANTIATE_TEST_SUITE_P(Class, BadModelTest,                                                 \
                           ::testing::ValuesIn(Class##Models().begin(), Class##Models().end()), \
                           NameOf)
MSRT_BAD_MODELS(Divisor);
MSRT_BAD_MODELS(Size);
MSRT_BAD_MODELS(Index);
MSRT_BAD_MODELS(Missing);
MSRT_BAD_MODELS(Order);
MSRT_BAD_MODELS(Bomb);
MSRT_BAD_MODELS(Unknown);
MSRT_BAD_MODELS(Historic);

}  // namespace
}  // namespace msrt::testing
