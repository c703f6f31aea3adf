#include "core/delegate/name.h"

namespace msrt {

Status CheckName(std::string_view kind, const char* name) {
  if (name == nullptr || *name == '\0') return InvalidArgument("a ", kind, " has no name");
  for (const char* c = name; *c != '\0'; ++c) {
    const bool good = (*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '_';
    if (!good || c - name >= 64)
      return InvalidArgument(kind, " name '", name, "' must be up to 64 of a-z, 0-9 and _");
  }
  return OkStatus();
}

}  // namespace msrt
