// Checks of the arguments of C API functions: pointers, struct sizes, element types, dims. They
// turn the structs of msrt.h into types of core; messages name the argument.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "core/abi/msrt.h"
#include "core/base/status.h"
#include "core/graph/graph.h"

namespace msrt {

Status NotNull(const void* pointer, std::string_view argument);
Result<DType> DTypeArgument(msrt_dtype dtype, std::string_view argument);
// Dims that are all known. `prefix` is "" or "config.typical[2].".
Result<Dims> DimsArgument(int32_t rank, const int64_t* dims, std::string_view prefix);
// Bytes of a tensor of these dims; an error if they exceed the element-count limit.
Result<size_t> BytesArgument(DType dtype, const Dims& dims);

// The type that `info` describes; symbols are looked up in `module` and added to it.
Result<Type> TypeArgument(const msrt_tensor_info& info, Module* module, std::string_view argument);
// Entry i of an array of infos, which are as large as in the release that the caller was compiled
// with. Requires CheckStructSize(infos).
const msrt_tensor_info* InfoAt(const msrt_tensor_info* infos, size_t i);
// The reverse of TypeArgument. The strings in the result belong to `name` and `symbols`.
Result<msrt_tensor_info> InfoOf(const Type& type, const char* name,
                                std::span<const std::string> symbols);

// The index of `name` among `names`, or an error that lists them. `what` is "input", "output",
// "state".
Result<size_t> FindName(std::span<const std::string> names, std::string_view name,
                        std::string_view what);
Status CheckIndex(size_t index, size_t count, std::string_view what);

// The size of the struct in its first release. Fields are only ever appended, so every size from
// this to the current one is that of some release.
template <typename Struct>
inline constexpr uint32_t kFirstSize = sizeof(Struct);

template <typename Struct>
Status CheckStructSize(const Struct* given, std::string_view argument) {
  MSRT_RETURN_IF_ERROR(NotNull(given, argument));
  uint32_t size;
  std::memcpy(&size, given, sizeof size);
  if (size < kFirstSize<Struct>) {
    return InvalidArgument(argument, ".struct_size is ", size, ", must be at least ",
                           kFirstSize<Struct>, ": set it with MSRT_INIT");
  }
  if (size > sizeof(Struct)) {
    return InvalidArgument(argument, ".struct_size is ", size, ", but this library knows ",
                           sizeof(Struct),
                           " bytes of it: the program was compiled for a newer msrt");
  }
  return OkStatus();
}

// Returns a copy with defaults in the fields that the caller's release does not have; all defaults
// for null.
template <typename Struct>
Result<Struct> ConfigArgument(const Struct* given, std::string_view argument) {
  Struct config = MSRT_INIT(Struct);
  if (given == nullptr) return config;
  MSRT_RETURN_IF_ERROR(CheckStructSize(given, argument));
  std::memcpy(&config, given, given->struct_size);
  return config;
}

// Writes the fields that the caller's release has. Requires CheckStructSize(out).
template <typename Struct>
void WriteStruct(Struct* out, Struct value) {
  value.struct_size = out->struct_size;
  std::memcpy(out, &value, value.struct_size);
}

}  // namespace msrt
