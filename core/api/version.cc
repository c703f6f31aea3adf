// CMake defines MSRT_VERSION, MSRT_BUILD_TYPE, MSRT_COMPILER and MSRT_SANITIZERS for this file
// alone.
#include "core/api/version.h"

#include "core/abi/msrt.h"
#include "core/base/machine.h"
#include "core/base/platform.h"
#include "core/base/str_cat.h"
#include "delegates/builtin.h"

namespace msrt {

std::string BuildInfoText() {
  std::string text = StrCat("msrt ", msrt_version(), " (", MSRT_BUILD_TYPE, ", ", MSRT_COMPILER);
  if (*MSRT_SANITIZERS != '\0') StrAppend(&text, ", sanitizers ", MSRT_SANITIZERS);
  StrAppend(&text, ")\n");
  for (const LibraryInfo& library : BuiltinLibraries()) {
    StrAppend(&text, library.name, " ", library.version, ", using ", library.instructions, "\n");
  }
  for (const UnavailableDelegate& delegate : UnavailableDelegates())
    StrAppend(&text, delegate.name, ": not available: ", delegate.reason, "\n");
  StrAppend(&text, "threads: ", DefaultThreadsName(), "\nprocessor: ", ProcessorName(), ", ",
            AvailableCores(), AvailableCores() == 1 ? " core," : " cores,");
  for (std::string_view name : InstructionSets()) StrAppend(&text, " ", name);
  return text;
}

void WriteBuildInfo(JsonWriter* json) {
  json->Field("version", msrt_version());
  json->Field("build_type", MSRT_BUILD_TYPE);
  json->Field("compiler", MSRT_COMPILER);
  json->Field("sanitizers", MSRT_SANITIZERS);
  json->Field("threads", DefaultThreadsName());
  json->Key("libraries");
  json->BeginArray();
  for (const LibraryInfo& library : BuiltinLibraries()) {
    json->BeginObject();
    json->Field("name", library.name);
    json->Field("version", library.version);
    json->Field("instructions", library.instructions);
    json->EndObject();
  }
  json->EndArray();
  json->Key("unavailable");
  json->BeginArray();
  for (const UnavailableDelegate& delegate : UnavailableDelegates()) {
    json->BeginObject();
    json->Field("delegate", delegate.name);
    json->Field("reason", delegate.reason);
    json->EndObject();
  }
  json->EndArray();
  json->Key("processor");
  json->BeginObject();
  json->Field("name", ProcessorName());
  json->Field("cores", AvailableCores());
  json->Key("instructions");
  json->BeginArray();
  for (std::string_view name : InstructionSets()) json->Value(name);
  json->EndArray();
  json->EndObject();
}

std::string BuildInfoJson() {
  JsonWriter json;
  json.BeginObject();
  WriteBuildInfo(&json);
  json.EndObject();
  return json.Take();
}

}  // namespace msrt

const char* msrt_version(void) { return MSRT_VERSION; }

uint32_t msrt_abi_version(void) { return MSRT_ABI_VERSION; }
