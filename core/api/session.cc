#include "core/api/session.h"

#include "core/api/arguments.h"
#include "core/api/errors.h"
#include "core/api/model.h"
#include "core/base/checked_math.h"
#include "core/program/explain.h"

namespace msrt {
namespace {

Result<size_t> FindEntry(const CompiledModel& model, const char* function) {
  if (function == nullptr) return size_t{0};
  std::vector<std::string> names;
  for (uint32_t entry : model.module.entries) names.push_back(model.module.graphs[entry].name);
  return FindName(names, function, "function");
}

msrt_session* Publish(std::unique_ptr<Session> session, const msrt_session_config& config) {
  auto object = std::make_shared<SessionObject>();
  object->session = std::move(session);
  object->config = config;
  return NewHandle(std::move(object));
}

// The deadline on the environment's clock; 0 for none.
Result<int64_t> DeadlineOf(const msrt_run_config& config, Clock& clock) {
  if (config.timeout_us < 0)
    return InvalidArgument("config.timeout_us is ", config.timeout_us, ", must be at least 0");
  if (config.reserved != 0)
    return InvalidArgument("config.reserved is ", config.reserved, ", must be 0");
  if (config.timeout_us == 0) return int64_t{0};
  int64_t nanos, deadline;
  const bool fits = CheckedMul<int64_t>(config.timeout_us, 1000, &nanos) &&
                    CheckedAdd<int64_t>(clock.NowNanos(), nanos, &deadline);
  return fits ? deadline : INT64_MAX;
}

Result<RunOptions> RunOptionsOf(const msrt_run_config& config, Clock& clock) {
  RunOptions options;
  MSRT_ASSIGN_OR_RETURN(options.deadline_nanos, DeadlineOf(config, clock));
  if (config.max_depth < 0)
    return InvalidArgument("config.max_depth is ", config.max_depth, ", must be at least 0");
  if (config.max_calls < 0)
    return InvalidArgument("config.max_calls is ", config.max_calls, ", must be at least 0");
  if (config.max_depth != 0) options.max_depth = static_cast<size_t>(config.max_depth);
  options.max_calls = static_cast<uint64_t>(config.max_calls);
  return options;
}

}  // namespace
}  // namespace msrt

using namespace msrt;

msrt_status msrt_session_create(msrt_model* model, const char* function,
                                const msrt_session_config* config, msrt_session** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<ModelObject> object,
                          ObjectOf<ModelObject>(model, "model"));
    MSRT_ASSIGN_OR_RETURN(const msrt_session_config given, ConfigArgument(config, "config"));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    MSRT_ASSIGN_OR_RETURN(const size_t entry, FindEntry(*object->compiled, function));
    if (given.reserved != 0)
      return InvalidArgument("config.reserved is ", given.reserved, ", must be 0");
    const SessionOptions options{.memory_cap_bytes = given.memory_cap_bytes,
                                 .stream_priority = given.stream_priority};
    std::shared_ptr<SessionObject> share;
    if (given.share_state != nullptr) {
      MSRT_ASSIGN_OR_RETURN(share,
                            ObjectOf<SessionObject>(given.share_state, "config.share_state"));
    }
    MSRT_ASSIGN_OR_RETURN(std::unique_ptr<Session> session,
                          Session::Create(object->compiled, entry, options,
                                          share == nullptr ? nullptr : share->session.get()));
    *out = Publish(std::move(session), given);
    return OkStatus();
  });
}

msrt_status msrt_session_clone(msrt_session* session, msrt_session** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<SessionObject> object, EnterSession(session));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    MSRT_ASSIGN_OR_RETURN(std::unique_ptr<Session> copy, object->session->Clone());
    *out = Publish(std::move(copy), object->config);
    return OkStatus();
  });
}

void msrt_session_destroy(msrt_session* session) { DestroyHandle<SessionObject>(session); }

msrt_status msrt_session_run(msrt_session* session, const msrt_run_config* config) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<SessionObject> object, EnterSession(session));
    MSRT_ASSIGN_OR_RETURN(const msrt_run_config given, ConfigArgument(config, "config"));
    MSRT_ASSIGN_OR_RETURN(RunOptions options,
                          RunOptionsOf(given, *object->session->model().environment->clock));
    options.profile = object->config.profile != 0;
    return object->session->Run(options);
  });
}

msrt_status msrt_session_cancel(msrt_session* session) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<SessionObject> object,
                          ObjectOf<SessionObject>(session, "session"));
    object->session->Cancel();
    return OkStatus();
  });
}

msrt_status msrt_session_report(msrt_session* session, msrt_report kind, const char** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<SessionObject> object, EnterSession(session));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    switch (kind) {
      case MSRT_REPORT_PLAN:
        object->report = PlacementReportJson(*object->session);
        break;
      case MSRT_REPORT_PLAN_TEXT:
        object->report = PlacementReportText(*object->session);
        break;
      case MSRT_REPORT_PLAN_SVG:
        object->report = PlacementReportSvg(*object->session);
        break;
      case MSRT_REPORT_PROFILE:
        if (object->config.profile == 0)
          return InvalidArgument(
              "kind: there is no profile; create the session with config.profile = 1");
        object->report = ProfileReport(*object->session);
        break;
      case MSRT_REPORT_MEMORY:
        object->report = MemoryReport(*object->session, object->config.memory_cap_bytes);
        break;
      default:
        return InvalidArgument("kind is ", kind, ", must be one of MSRT_REPORT_...");
    }
    *out = object->report.c_str();
    return OkStatus();
  });
}

msrt_status msrt_session_trim(msrt_session* session) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<SessionObject> object, EnterSession(session));
    object->session->Trim();
    return OkStatus();
  });
}
