#include "core/api/errors.h"

#include <cstdio>

#include "core/api/json_writer.h"

namespace msrt {
namespace {

struct ErrorRecord {
  Status status;
  bool out_of_memory = false;  // instead of `status`: there was no memory to make one
  const char* function = "";
  std::string json;  // made on request
  char no_memory_text[128] = "", no_memory_json[384] = "";
  bool prepared = false;
};

thread_local ErrorRecord record;

std::string ErrorJson() {
  JsonWriter json;
  json.BeginObject();
  json.Field("code", static_cast<int32_t>(record.status.code()));
  json.Field("status", CodeName(record.status.code()));
  json.Field("message", record.status.message());
  json.Field("function", record.function);
  json.Key("details");
  json.BeginObject();
  for (const auto& [key, value] : record.status.details()) json.Field(key, value);
  json.EndObject();
  json.EndObject();
  return json.Take();
}

// The same for an out-of-memory error, without allocating any memory.
const char* NoMemoryText() {
  std::snprintf(record.no_memory_text, sizeof record.no_memory_text,
                "%s: the process has no memory left", record.function);
  return record.no_memory_text;
}

const char* NoMemoryJson() {
  std::snprintf(record.no_memory_json, sizeof record.no_memory_json,
                R"({"code": %d, "status": "%s", "message": "%s: the process has no memory left", )"
                R"("function": "%s", "details": {}})",
                static_cast<int>(Code::kOutOfMemory), CodeName(Code::kOutOfMemory).data(),
                record.function, record.function);
  return record.no_memory_json;
}

}  // namespace

void PrepareErrorRecord() noexcept { record.prepared = true; }

msrt_status RecordError(const char* function, Status status) noexcept {
  record.status = std::move(status);
  record.out_of_memory = false;
  record.function = function;
  record.json.clear();
  return static_cast<msrt_status>(record.status.code());
}

msrt_status RecordOutOfMemory(const char* function) noexcept {
  record.status = OkStatus();
  record.out_of_memory = true;
  record.function = function;
  record.json.clear();
  return MSRT_OUT_OF_MEMORY;
}

msrt_status RecordException(const char* function, const char* what) noexcept {
  try {
    return RecordError(function,
                       InternalError(function, " failed: ", what, "; please report this"));
  } catch (...) {
    return RecordOutOfMemory(function);
  }
}

}  // namespace msrt

using namespace msrt;

const char* msrt_status_string(msrt_status status) {
  return CodeName(static_cast<Code>(status)).data();
}

const char* msrt_error_message(void) {
  return record.out_of_memory ? NoMemoryText() : record.status.message().c_str();
}

const char* msrt_error_json(void) {
  if (record.out_of_memory) return NoMemoryJson();
  try {
    if (record.json.empty()) record.json = ErrorJson();
    return record.json.c_str();
  } catch (const std::bad_alloc&) {
    return NoMemoryJson();
  }
}
