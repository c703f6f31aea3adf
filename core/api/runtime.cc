#include "core/api/runtime.h"

#include <cmath>

#include "core/api/arguments.h"
#include "core/api/errors.h"
#include "core/api/json_writer.h"
#include "core/api/version.h"
#include "core/passes/pass.h"
#include "delegates/builtin.h"
#include "ops/registry.h"

namespace msrt {
namespace {

constexpr int32_t kMaxThreads = 1024;

Status CheckConfig(const msrt_runtime_config& config) {
  if (config.threads < 0 || config.threads > kMaxThreads) {
    return InvalidArgument("config.threads is ", config.threads,
                           ", must be from 0 (one for each core) to ", kMaxThreads);
  }
  if (config.log_level < MSRT_LOG_ERROR || config.log_level > MSRT_LOG_DEBUG) {
    return InvalidArgument("config.log_level is ", config.log_level,
                           ", must be from MSRT_LOG_ERROR to MSRT_LOG_DEBUG");
  }
  if (std::isnan(config.wake_threads_seconds))
    return InvalidArgument("config.wake_threads_seconds is not a number; 0 means the default");
  if ((config.allocate == nullptr) != (config.deallocate == nullptr)) {
    return InvalidArgument(
        "config.allocate and config.deallocate belong together: set both or neither");
  }
  return OkStatus();
}

std::shared_ptr<RuntimeEnvironment> MakeEnvironment(const msrt_runtime_config& config) {
  auto environment = std::make_shared<RuntimeEnvironment>(config);
  const int threads = config.threads == 0 ? AvailableCores() : config.threads;
  if (config.allocate != nullptr)
    environment->Environment::allocator = &environment->UserCallbacks::allocator;
  environment->log = MakeCallbackLog(config);
  if (config.parallel_for != nullptr) environment->parallel = MakeCallbackParallel(config, threads);
  else environment->parallel = MakeDefaultParallel(threads);
  if (config.wake_threads_seconds != 0)
    environment->wake_threads_seconds = config.wake_threads_seconds;
  environment->delegates = BuiltinDelegates();
  environment->devices = DevicesOf(environment->delegates);
  environment->evaluator = &BuiltinEvaluator();
  return environment;
}

std::string RuntimeInfo(const Environment& environment) {
  JsonWriter json;
  json.BeginObject();
  json.Field("version", msrt_version());
  json.Field("abi_version", msrt_abi_version());
  json.Field("threads", environment.parallel->threads());
  const Machine machine =
      environment.machine.value_or(TypicalMachine(environment.parallel->threads()));
  json.Key("machine");
  json.BeginObject();
  json.Field("flops_per_second", machine.flops_per_second);
  json.Field("bytes_per_second", machine.bytes_per_second);
  json.Field("measured", environment.machine.has_value());
  json.EndObject();
  json.Key("build");
  json.BeginObject();
  WriteBuildInfo(&json);
  json.EndObject();
  json.Key("delegates");
  json.BeginArray();
  for (const auto& delegate : environment.delegates) json.Value(delegate->name());
  json.EndArray();
  json.Key("passes");
  json.BeginArray();
  for (const PassInfo& pass : AllPasses()) json.Value(pass.name);
  for (const AddedPass& pass : environment.passes) json.Value(pass.name);
  json.EndArray();
  json.Key("ops");
  json.BeginArray();
  const auto write_op = [&](const OpDef& def) {
    json.Value(def.domain.empty() ? std::string(def.name) : StrCat(def.domain, ".", def.name));
  };
  ForEachOp(write_op);
  if (environment.ops != nullptr) {
    for (const auto& [key, def] : environment.ops->ops()) write_op(*def);
  }
  json.EndArray();
  json.Key("kernels");
  json.BeginArray();
  for (const RegisteredKernel& kernel : environment.kernels) {
    json.BeginObject();
    json.Field("op", kernel.OpName());
    json.Field("name", kernel.name);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return json.Take();
}

}  // namespace

Status RuntimeObject::Extend(FunctionRef<Status(Environment*)> change) {
  // Destroyed after the lock is released: destructors of what it owns may call the application.
  std::shared_ptr<const Environment> before;
  std::lock_guard lock(mutex_);
  auto extended = std::make_shared<ExtendedEnvironment>(first_, *environment_);
  MSRT_RETURN_IF_ERROR(change(extended.get()));
  before = std::exchange(environment_, std::move(extended));
  info_is_current_ = false;
  return OkStatus();
}

Status RuntimeObject::Add(const Registration& registration) {
  return Extend(
      [&](Environment* extended) { return Join(registration, extended).Within("runtime"); });
}

Status RuntimeObject::Calibrate() {
  MSRT_ASSIGN_OR_RETURN(const Machine machine, MeasureMachine(*first_->parallel));
  MSRT_RETURN_IF_ERROR(Extend([&](Environment* extended) {
    extended->machine = machine;
    return OkStatus();
  }));
  first_->log(LogLevel::kInfo, "measured ", machine.flops_per_second * 1e-9, " GFLOP/s and ",
              machine.bytes_per_second * 1e-9, " GB/s");
  return OkStatus();
}

const char* RuntimeObject::info() {
  std::lock_guard lock(mutex_);
  if (!info_is_current_) infos_.push_back(RuntimeInfo(*environment_));
  info_is_current_ = true;
  return infos_.back().c_str();
}

}  // namespace msrt

using namespace msrt;

msrt_status msrt_runtime_create(const msrt_runtime_config* config, msrt_runtime** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const msrt_runtime_config checked, ConfigArgument(config, "config"));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    MSRT_RETURN_IF_ERROR(CheckConfig(checked));
    std::shared_ptr<RuntimeEnvironment> environment = MakeEnvironment(checked);
    auto runtime = std::make_shared<RuntimeObject>(environment);
    msrt_runtime* handle = NewHandle(std::move(runtime));
    environment->accepted = true;
    *out = handle;
    return OkStatus();
  });
}

msrt_status msrt_runtime_calibrate(msrt_runtime* runtime) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<RuntimeObject> object,
                          ObjectOf<RuntimeObject>(runtime, "runtime"));
    return object->Calibrate();
  });
}

void msrt_runtime_destroy(msrt_runtime* runtime) { DestroyHandle<RuntimeObject>(runtime); }

msrt_status msrt_runtime_info_json(msrt_runtime* runtime, const char** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<RuntimeObject> object,
                          ObjectOf<RuntimeObject>(runtime, "runtime"));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    *out = object->info();
    return OkStatus();
  });
}
