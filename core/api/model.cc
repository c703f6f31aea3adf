#include "core/api/model.h"

#include <algorithm>
#include <cstring>

#include "core/api/arguments.h"
#include "core/api/errors.h"
#include "core/api/lease.h"
#include "core/api/runtime.h"
#include "core/run/measure.h"

namespace msrt {
namespace {

// Splits "a, b" at commas, without spaces and empty parts.
std::vector<std::string> NamesOf(const char* list) {
  std::vector<std::string> names(1);
  for (const char* c = list == nullptr ? "" : list; *c != '\0'; ++c) {
    if (*c == ',') names.emplace_back();
    else if (*c != ' ') names.back().push_back(*c);
  }
  std::erase(names, "");
  return names;
}

// Parses "NAME=DEVICE; NAME=DEVICE".
Result<std::vector<std::pair<std::string, std::string>>> IoDevicesOf(const char* list) {
  std::vector<std::pair<std::string, std::string>> devices;
  std::string text = list == nullptr ? "" : list;
  std::replace(text.begin(), text.end(), ';', ',');
  for (const std::string& entry : NamesOf(text.c_str())) {
    const size_t equals = entry.rfind('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == entry.size())
      return InvalidArgument("config.io_devices: '", entry, "' must look like NAME=DEVICE");
    devices.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return devices;
}

Status Publish(Result<std::shared_ptr<const CompiledModel>> compiled, const CompileOptions& options,
               msrt_model** out) {
  if (!compiled.ok()) return std::move(compiled).status();
  MSRT_RETURN_IF_ERROR(CheckTypicalNames(options, **compiled));
  auto model = std::make_shared<ModelObject>();
  model->compiled = *std::move(compiled);
  *out = NewHandle(std::move(model));
  return OkStatus();
}

Result<Bytes> CopyOf(const Environment& environment, std::span<const std::byte> data) {
  MSRT_ASSIGN_OR_RETURN(Block block,
                        Block::Make(environment.allocator, data.size(), "the model's bytes"));
  std::memcpy(block.data(), data.data(), data.size());
  const std::span<const std::byte> bytes(block.data(), block.bytes());
  return Bytes{bytes, std::make_shared<Block>(std::move(block))};
}

}  // namespace

Result<CompileOptions> CompileOptionsOf(const msrt_model_config* config,
                                        const Environment& environment) {
  MSRT_ASSIGN_OR_RETURN(const msrt_model_config given, ConfigArgument(config, "config"));
  CompileOptions options;
  options.load_by_copy = given.copy_file != 0;
  if (given.accuracy < MSRT_ACCURACY_DEFAULT || given.accuracy > MSRT_ACCURACY_FAST) {
    return InvalidArgument("config.accuracy is ", given.accuracy,
                           ", must be one of MSRT_ACCURACY_DEFAULT, _EXACT and _FAST");
  }
  options.place.exact = given.accuracy == MSRT_ACCURACY_EXACT;
  options.place.reduced = given.accuracy == MSRT_ACCURACY_FAST;
  options.place.strict = given.strict != 0;
  options.place.delegates = NamesOf(given.delegates);
  if (given.delegates != nullptr && options.place.delegates.empty())
    return InvalidArgument("config.delegates names none; NULL allows all");
  if (given.pins != nullptr) {
    auto pins = ParsePins(given.pins);
    if (!pins.ok()) return std::move(pins).status().Within("config.pins");
    options.place.pins = *std::move(pins);
  }
  if (given.costs_file != nullptr) {
    MSRT_ASSIGN_OR_RETURN(options.place.costs,
                          ReadCosts(environment, given.costs_file, msrt_version()));
  }
  options.passes.disabled = NamesOf(given.disabled_passes);
  if (given.typical_count != 0) MSRT_RETURN_IF_ERROR(NotNull(given.typical, "config.typical"));
  for (size_t i = 0; i < given.typical_count; ++i) {
    const std::string prefix = StrCat("config.typical[", i, "].");
    MSRT_RETURN_IF_ERROR(NotNull(given.typical[i].name, prefix + "name"));
    MSRT_ASSIGN_OR_RETURN(const Dims dims,
                          DimsArgument(given.typical[i].rank, given.typical[i].dims, prefix));
    options.typical.emplace_back(given.typical[i].name, dims);
  }
  MSRT_ASSIGN_OR_RETURN(options.io_devices, IoDevicesOf(given.io_devices));
  if (given.binding_cache_bytes != 0) options.binding_cache_bytes = given.binding_cache_bytes;
  return options;
}

Status CheckTypicalNames(const CompileOptions& options, const CompiledModel& model) {
  std::vector<std::string> names;
  for (uint32_t entry : model.module.entries) {
    const Graph& graph = model.module.graphs[entry];
    for (ValueId v : graph.inputs) names.push_back(graph.value(v).name);
  }
  for (size_t i = 0; i < options.typical.size(); ++i) {
    auto found = FindName(names, options.typical[i].first, "input");
    if (!found.ok()) return std::move(found).status().Within(StrCat("config.typical[", i, "]"));
  }
  return OkStatus();
}

}  // namespace msrt

using namespace msrt;

msrt_status msrt_model_load_file(msrt_runtime* runtime, const char* path,
                                 const msrt_model_config* config, msrt_model** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<RuntimeObject> owner,
                          ObjectOf<RuntimeObject>(runtime, "runtime"));
    MSRT_RETURN_IF_ERROR(NotNull(path, "path"));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    MSRT_ASSIGN_OR_RETURN(const CompileOptions options,
                          CompileOptionsOf(config, *owner->environment()));
    return Publish(CompileFile(owner->environment(), path, options), options, out);
  });
}

msrt_status msrt_model_load_memory(msrt_runtime* runtime, const void* data, size_t bytes,
                                   void (*free_fn)(void* user, const void* data), void* user,
                                   const msrt_model_config* config, msrt_model** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<RuntimeObject> owner,
                          ObjectOf<RuntimeObject>(runtime, "runtime"));
    MSRT_RETURN_IF_ERROR(NotNull(data, "data"));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    MSRT_ASSIGN_OR_RETURN(const CompileOptions options,
                          CompileOptionsOf(config, *owner->environment()));
    const std::span<const std::byte> given(static_cast<const std::byte*>(data), bytes);
    if (free_fn == nullptr) {
      MSRT_ASSIGN_OR_RETURN(Bytes copy, CopyOf(*owner->environment(), given));
      return Publish(CompileBytes(owner->environment(), std::move(copy), options), options, out);
    }
    auto lease = MakeLease([free_fn, user, data] { free_fn(user, data); });
    MSRT_RETURN_IF_ERROR(
        Publish(CompileBytes(owner->environment(), {given, lease}, options), options, out));
    lease->Accept();
    return OkStatus();
  });
}

msrt_status msrt_model_info_json(msrt_model* model, const char** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<ModelObject> object,
                          ObjectOf<ModelObject>(model, "model"));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    std::lock_guard lock(object->mutex);
    if (object->info.empty()) object->info = ModelInfo(*object->compiled);
    *out = object->info.c_str();
    return OkStatus();
  });
}

void msrt_model_destroy(msrt_model* model) { DestroyHandle<ModelObject>(model); }
