// A session of the C API: a core session, its config and its last report.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "core/api/exclusive.h"
#include "core/run/session.h"

namespace msrt {

struct SessionObject {
  std::unique_ptr<Session> session;
  msrt_session_config config;
  std::atomic<bool> busy{false};
  std::string report;  // the last one returned

  const Graph& graph() const { return session->graph(); }
  const Module& module() const { return session->model().module; }
};

inline Result<Exclusive<SessionObject>> EnterSession(const msrt_session* session) {
  return Exclusive<SessionObject>::Enter(session, "session");
}

// Reports on the session's function and all graphs that it may call.
std::string PlacementReportJson(const Session& session);
std::string PlacementReportText(const Session& session);
std::string PlacementReportSvg(const Session& session);
std::string ProfileReport(const Session& session);
std::string MemoryReport(const Session& session, size_t cap_bytes);

}  // namespace msrt
