// Version, build and machine information for `--version`, reports and msrt_runtime_info_json.
#pragma once

#include <string>

#include "core/api/json_writer.h"

namespace msrt {

// Returns several lines of text, without a newline at the end:
//   msrt 0.1.0 (Release, GNU 12.2.0)
//   oneDNN 3.2.0, using avx512_core_bf16
//   threads: OpenMP
//   processor: AMD EPYC 7763 64-Core Processor, 2 cores, avx avx2 fma
std::string BuildInfoText();

// {"version", "build_type", "compiler", "sanitizers", "threads", "libraries": [{"name", "version",
// "instructions"}],
//  "processor": {"name", "cores", "instructions": [...]}}, all of them text but "cores".
std::string BuildInfoJson();

// Writes the same fields into an object that the caller began.
void WriteBuildInfo(JsonWriter* json);

}  // namespace msrt
