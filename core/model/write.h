// Writes a Module as a .msrt file. The same module always produces the same bytes, identical
// weights are stored once, and every written file can be read: the writer verifies its own
// structure before a byte reaches the disk.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/model/format.h"

namespace msrt {

struct WriteOptions {
  const ModelExtras* extras = nullptr;  // packed weights and programs to store beside the module
  Limits limits = {};                   // of the file's readers
};

// Writes with Io::WriteFile: afterwards there is the whole new file or the untouched old one. Large
// weights are written from where they are, without a copy.
Status WriteModel(const Module& module, const std::string& path, Io* io,
                  const WriteOptions& options = {});

Result<std::vector<std::byte>> SerializeModel(const Module& module,
                                              const WriteOptions& options = {});

}  // namespace msrt
