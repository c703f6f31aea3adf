#include "core/api/arguments.h"
#include "core/base/countable.h"

#include <algorithm>

namespace msrt {
namespace {

Status CheckRank(int32_t rank, int32_t min_rank, std::string_view argument) {
  if (rank >= min_rank && rank <= MSRT_MAX_RANK) return OkStatus();
  return InvalidArgument(argument, " is ", rank, ", must be from ", min_rank, " to ",
                         MSRT_MAX_RANK);
}

Result<int64_t> OpenDim(const msrt_tensor_info& info, int32_t i, Module* module,
                        std::string_view argument) {
  const int64_t dim = info.dims[i];
  const char* symbol = info.symbols[i];
  if (dim < 0 && dim != MSRT_UNKNOWN_DIM)
    return InvalidArgument(argument, ".dims[", i, "] is ", dim,
                           ", must be >= 0 or MSRT_UNKNOWN_DIM");
  if (dim >= 0 && symbol != nullptr) {
    return InvalidArgument(argument, ".symbols[", i, "] is '", symbol, "', but dims[", i, "] is ",
                           dim, ": only an unknown dim has a name");
  }
  if (dim >= 0) return dim;
  return symbol == nullptr || *symbol == '\0' ? kUnknownDim : module->SymbolFor(symbol);
}

// Deeper than any useful list or function. A limit is needed because a struct may point to itself.
constexpr int kMaxTypeDepth = 8;

Result<Type> TensorArgument(const msrt_tensor_info& info, Module* module,
                            std::string_view argument) {
  MSRT_ASSIGN_OR_RETURN(const DType dtype, DTypeArgument(info.dtype, StrCat(argument, ".dtype")));
  MSRT_RETURN_IF_ERROR(CheckRank(info.rank, -1, StrCat(argument, ".rank")));
  if (info.rank < 0) return Type::UnrankedTensor(dtype);
  Dims dims, min_dims;
  for (int32_t i = 0; i < info.rank; ++i) {
    MSRT_ASSIGN_OR_RETURN(const int64_t dim, OpenDim(info, i, module, argument));
    dims.push_back(dim);
    min_dims.push_back(IsKnown(dim) ? dim : 1);
  }
  MSRT_RETURN_IF_ERROR(BytesArgument(dtype, min_dims).status());
  return Type::Tensor(dtype, dims);
}

class TypeReader {
 public:
  explicit TypeReader(Module* module) : module_(module) {}

  Result<Type> Read(const msrt_tensor_info& info, const std::string& argument, int depth) {
    if (info.state_role != 0)
      return InvalidArgument(argument, ".state_role is ", info.state_role,
                             ", must be 0: only states have a role");
    if (++parts_ > kMaxTypeParts)
      return InvalidArgument(argument, ": the type has more than ", kMaxTypeParts, " parts");
    if (info.list_depth < 0 || info.list_depth > kMaxTypeDepth) {
      return InvalidArgument(argument, ".list_depth is ", info.list_depth, ", must be from 0 to ",
                             kMaxTypeDepth);
    }
    if (info.function != nullptr) return Function(info, argument, depth);
    MSRT_ASSIGN_OR_RETURN(Type type, TensorArgument(info, module_, argument));
    for (int32_t i = 0; i < info.list_depth; ++i) type = Type::ListOf(std::move(type));
    return type;
  }

 private:
  Result<Type> Function(const msrt_tensor_info& info, const std::string& argument, int depth) {
    if (info.list_depth != 0)
      return InvalidArgument(
          argument, " is a list by list_depth and a function by function; it can be one of them");
    if (depth == kMaxTypeDepth)
      return InvalidArgument(argument, ".function: functions of functions are more than ",
                             kMaxTypeDepth, " levels deep");
    const msrt_signature& s = *info.function;
    MSRT_ASSIGN_OR_RETURN(
        std::vector<Type> parameters,
        List(s.parameters, s.parameter_count, argument + ".function->parameter", depth));
    MSRT_ASSIGN_OR_RETURN(std::vector<Type> results,
                          List(s.results, s.result_count, argument + ".function->result", depth));
    return Type::Function(std::move(parameters), std::move(results));
  }
  Result<std::vector<Type>> List(const msrt_tensor_info* infos, size_t count,
                                 const std::string& argument, int depth) {
    if (count > kMaxTypeParts)
      return InvalidArgument(argument, "_count is ", count, ", must be at most ", kMaxTypeParts);
    if (count != 0) MSRT_RETURN_IF_ERROR(NotNull(infos, argument + "s"));
    std::vector<Type> types;
    for (size_t i = 0; i < count; ++i) {
      const std::string name = StrCat(argument, "s[", i, "]");
      MSRT_ASSIGN_OR_RETURN(const msrt_tensor_info info, ConfigArgument(InfoAt(infos, i), name));
      MSRT_ASSIGN_OR_RETURN(Type type, Read(info, name, depth + 1));
      types.push_back(std::move(type));
    }
    return types;
  }

  Module* module_;
  uint32_t parts_ = 0;
};

}  // namespace

Status NotNull(const void* pointer, std::string_view argument) {
  if (pointer == nullptr) return InvalidArgument(argument, " is null");
  return OkStatus();
}

Result<DType> DTypeArgument(msrt_dtype dtype, std::string_view argument) {
  if (dtype < 0 || !IsDType(static_cast<uint32_t>(dtype))) {
    return InvalidArgument(
        argument, " is ", dtype,
        ", which is not an element type; those are MSRT_F64 = 1 to MSRT_F4E2M1 = ",
        kDTypeCount - 1);
  }
  return static_cast<DType>(dtype);
}

Result<Dims> DimsArgument(int32_t rank, const int64_t* dims, std::string_view prefix) {
  MSRT_RETURN_IF_ERROR(CheckRank(rank, 0, StrCat(prefix, "rank")));
  if (rank > 0) MSRT_RETURN_IF_ERROR(NotNull(dims, StrCat(prefix, "dims")));
  Dims result;
  for (int32_t i = 0; i < rank; ++i) {
    if (dims[i] < 0)
      return InvalidArgument(prefix, "dims[", i, "] is ", dims[i], ", must be at least 0");
    result.push_back(dims[i]);
  }
  return result;
}

Result<size_t> BytesArgument(DType dtype, const Dims& dims) {
  if (!IsCountable(dims)) return InvalidArgument("dims ", dims, " are more than 2^56 elements");
  return BytesOf(dtype, dims.elements());
}

Result<Type> TypeArgument(const msrt_tensor_info& info, Module* module, std::string_view argument) {
  return TypeReader(module).Read(info, std::string(argument), 0);
}

const msrt_tensor_info* InfoAt(const msrt_tensor_info* infos, size_t i) {
  return reinterpret_cast<const msrt_tensor_info*>(reinterpret_cast<const std::byte*>(infos) +
                                                   i * infos->struct_size);
}

Result<msrt_tensor_info> InfoOf(const Type& type, const char* name,
                                std::span<const std::string> symbols) {
  msrt_tensor_info info = MSRT_INIT(msrt_tensor_info);
  const Type* tensor = &type;
  for (; tensor->kind == TypeKind::kList; tensor = tensor->element.get()) ++info.list_depth;
  if (!tensor->is_tensor())
    return Unsupported("'", name == nullptr ? "" : name, "' is ", type,
                       ", neither a tensor nor a list of tensors");
  info.dtype = static_cast<msrt_dtype>(tensor->dtype);
  info.rank = tensor->rank_known ? tensor->rank() : -1;
  info.name = name;
  if (type.concrete()) info.bytes = type.bytes();
  for (int32_t i = 0; i < info.rank; ++i) {
    const int64_t dim = tensor->dims[i];
    info.dims[i] = IsKnown(dim) ? dim : MSRT_UNKNOWN_DIM;
    if (IsSymbol(dim) && SymbolOf(dim) < symbols.size())
      info.symbols[i] = symbols[SymbolOf(dim)].c_str();
  }
  return info;
}

Result<size_t> FindName(std::span<const std::string> names, std::string_view name,
                        std::string_view what) {
  const auto it = std::find(names.begin(), names.end(), name);
  if (it != names.end()) return static_cast<size_t>(it - names.begin());
  std::string known;
  for (const std::string& n : names) StrAppend(&known, known.empty() ? "'" : ", '", n, "'");
  if (known.empty()) return NotFound("there is no ", what, " '", name, "'; there are none at all");
  return NotFound("there is no ", what, " '", name, "'; there are ", known);
}

Status CheckIndex(size_t index, size_t count, std::string_view what) {
  if (index < count) return OkStatus();
  return NotFound(what, " ", index, " does not exist; there are ", count);
}

}  // namespace msrt
