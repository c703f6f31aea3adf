#include "tests/fuzz/targets.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/model/load.h"
#include "core/model/sample_models.h"
#include "core/model/verify.h"
#include "core/passes/pass.h"
#include "delegates/builtin.h"
#include "ops/validate.h"
#include "tests/conformance/pipeline.h"

namespace msrt::testing {

void RequireGoodError(const Status& status) {
  if (status.ok()) return;
  if (status.code() != Code::kInternal && !status.message().empty()) return;
  std::fprintf(stderr, "finding: %s: '%s'\n", CodeName(status.code()).data(),
               status.message().c_str());
  std::abort();
}

namespace {

// Little folding: time is spent on variety.
constexpr size_t kMaxFoldedBytes = 1 << 16;
constexpr double kMaxFoldingWork = 1e6;

Status Optimize(std::vector<std::string> disabled, Module* module) {
  FoldBudget folding{.bytes = kMaxFoldedBytes, .work = kMaxFoldingWork};
  const PassContext context{
      .evaluator = &BuiltinEvaluator(), .fold_budget_bytes = kMaxFoldedBytes, .folding = &folding};
  return RunPasses(context, {.disabled = std::move(disabled), .validate = true}, module).status();
}

// Contradictory sizes may be found only when they are computed, so folding may refuse a module that
// validation accepted. No other pass may, except those that widen weights: they fold too, and run
// after shapes are known.
bool FoldingRefuses(Module module) {
  constexpr std::string_view kFolding[] = {"fold_constants", "fold_shapes", "widen_weights"};
  std::vector<std::string> others;
  for (const PassInfo& pass : AllPasses()) {
    if (std::find(std::begin(kFolding), std::end(kFolding), pass.name) == std::end(kFolding))
      others.emplace_back(pass.name);
  }
  return !Optimize(others, &module).ok();
}

}  // namespace

bool PassesAccept(Module* module) {
  const Module before = *module;
  const Status status = Optimize({}, module);
  if (status.ok()) return true;
  RequireGoodError(status);
  if (FoldingRefuses(before)) return false;
  std::fprintf(stderr, "finding: passes: %s\n", status.message().c_str());
  std::abort();
}

namespace {

constexpr size_t kCapBytes = size_t{1} << 20;
constexpr int64_t kMaxInputElements = 4096;
constexpr int64_t kDeadlineNanos = 100'000'000;

// Small models only: time is spent on variety, not on size.
Limits FuzzLimits() {
  Limits limits;
  limits.max_nodes = 200;
  limits.max_values = 1000;
  limits.max_tensor_bytes = kCapBytes;
  return limits;
}

template <typename T>
bool Answered(const Result<T>& result) {
  if (!result.ok()) RequireGoodError(result.status());
  return result.ok();
}

// One environment for all executions, on the calling thread.
const std::shared_ptr<const Environment>& FuzzEnvironment() {
  static const std::shared_ptr<const Environment> environment = [] {
    auto env = TestEnvironment();
    env->parallel = MakeSerial();
    return env;
  }();
  return environment;
}

std::shared_ptr<const CompiledModel> Compile(std::span<const std::byte> bytes) {
  auto module = Load(AlignedCopy(bytes), FuzzLimits());
  if (!Answered(module)) return nullptr;
  const Status valid = Validate(&*module);
  RequireGoodError(valid);
  if (!valid.ok() || !PassesAccept(&*module)) return nullptr;
  CompileOptions options;
  options.place.delegates = {"reference"};
  options.passes.disabled = {"all"};
  auto model = CompileModule(FuzzEnvironment(), *std::move(module), options);
  return Answered(model) ? *std::move(model) : nullptr;
}

// Small numbers of every type: 0, 1, 2, 3 and sometimes another.
ConstTensor SmallInput(const Type& type, uint64_t* state) {
  std::vector<std::byte> bytes(type.bytes());
  for (size_t i = 0; i < bytes.size(); ++i) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    const auto random = static_cast<uint8_t>(*state >> 56);
    const size_t width = static_cast<size_t>(std::max(BitsOf(type.dtype), 8)) / 8;
    const bool first = IsFloat(type.dtype) ? i % width >= width - 2 : i % width == 0;
    bytes[i] = static_cast<std::byte>(first ? (IsFloat(type.dtype) ? 0x3c + random % 4 : random % 4)
                                      : random < 8 ? random
                                                   : 0);
  }
  if (type.dtype == DType::kBool) {
    for (std::byte& b : bytes) b &= std::byte{1};
  }
  return ConstTensor::Copy(type.dtype, type.dims, bytes);
}

Status BindInputs(Session& session, uint64_t state) {
  const Graph& graph = session.graph();
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    Type type = graph.value(graph.inputs[i]).type;
    if (!type.is_tensor()) continue;
    if (!type.rank_known) type = Type::Tensor(type.dtype, {2, 3});
    for (int64_t& d : type.dims) d = IsKnown(d) ? d : 1 + static_cast<int64_t>((state >> 3) % 3);
    if (type.elements() > kMaxInputElements) continue;
    const ConstTensor data = SmallInput(type, &state);
    const TensorView view{data.dtype, data.dims, Layout::kPlain,
                          const_cast<std::byte*>(data.bytes.data())};
    MSRT_RETURN_IF_ERROR(session.SetInput(i, view, data.owner));
  }
  return OkStatus();
}

}  // namespace

bool FuzzVerify(std::span<const std::byte> bytes) {
  return Answered(Verify(AlignedCopy(bytes), FuzzLimits()));
}

bool FuzzLoad(std::span<const std::byte> bytes) { return Compile(bytes) != nullptr; }

bool FuzzRun(std::span<const std::byte> bytes) {
  const auto model = Compile(bytes);
  if (model == nullptr) return false;
  auto session = Session::Create(model, 0, {.memory_cap_bytes = kCapBytes});
  if (!Answered(session)) return false;
  uint64_t state = 0;
  std::memcpy(&state, bytes.data() + kHeaderBytes - sizeof state,
              sizeof state);  // the hash: the same for the same file
  Status status = BindInputs(**session, state);
  RequireGoodError(status);
  if (!status.ok()) return false;
  status =
      (*session)->Run({.deadline_nanos = model->environment->clock->NowNanos() + kDeadlineNanos});
  RequireGoodError(status);
  return status.ok();
}

}  // namespace msrt::testing
