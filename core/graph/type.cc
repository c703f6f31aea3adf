#include "core/graph/type.h"

namespace msrt {
namespace {

template <typename T>
bool SamePointee(const std::shared_ptr<const T>& a, const std::shared_ptr<const T>& b) {
  return a == b || (a && b && *a == *b);
}

}  // namespace

static bool operator==(const FunctionSignature& a, const FunctionSignature& b) {
  return a.parameters == b.parameters && a.results == b.results;
}

Type Type::Function(std::vector<Type> parameters, std::vector<Type> results) {
  Type t;
  t.kind = TypeKind::kFunction;
  t.signature = std::make_shared<const FunctionSignature>(
      FunctionSignature{std::move(parameters), std::move(results)});
  return t;
}

bool Type::operator==(const Type& other) const {
  if (kind != other.kind) return false;
  switch (kind) {
    case TypeKind::kTensor:
      return dtype == other.dtype && rank_known == other.rank_known && dims == other.dims;
    case TypeKind::kList:
      return SamePointee(element, other.element);
    case TypeKind::kFunction:
      return SamePointee(signature, other.signature);
  }
  return false;
}

void AppendTo(std::string* out, const Type& type) {
  switch (type.kind) {
    case TypeKind::kTensor:
      AppendTo(out, type.dtype);
      if (type.rank_known) AppendTo(out, type.dims);
      else out->append("[*]");
      return;
    case TypeKind::kList:
      out->append("list<");
      if (type.element) AppendTo(out, *type.element);
      out->push_back('>');
      return;
    case TypeKind::kFunction:
      out->append("function(");
      if (type.signature) {
        for (size_t i = 0; i < type.signature->parameters.size(); ++i) {
          if (i != 0) out->append(", ");
          AppendTo(out, type.signature->parameters[i]);
        }
        out->append(") -> (");
        for (size_t i = 0; i < type.signature->results.size(); ++i) {
          if (i != 0) out->append(", ");
          AppendTo(out, type.signature->results[i]);
        }
      }
      out->push_back(')');
      return;
  }
}

Result<Type> MergeTypes(const Type& a, const Type& b) {
  if (a.kind == TypeKind::kList && b.kind == TypeKind::kList && a.element && b.element) {
    MSRT_ASSIGN_OR_RETURN(Type element, MergeTypes(*a.element, *b.element));
    return Type::ListOf(std::move(element));
  }
  if (!a.is_tensor() || !b.is_tensor()) {
    if (a == b) return a;
    return InvalidModel("type ", a, " is not ", b);
  }
  if (a.dtype != b.dtype) return InvalidModel("element type ", a.dtype, " is not ", b.dtype);
  if (!a.rank_known) return b;
  if (!b.rank_known) return a;
  if (a.rank() != b.rank())
    return InvalidModel("rank ", a.rank(), " ", a.dims, " is not rank ", b.rank(), " ", b.dims);
  Type merged = a;
  for (int i = 0; i < a.rank(); ++i) {
    const int64_t x = a.dims[i], y = b.dims[i];
    if (IsKnown(x) && IsKnown(y) && x != y)
      return InvalidModel("dim ", i, " is ", x, " in ", a.dims, " and ", y, " in ", b.dims);
    merged.dims[i] = IsKnown(x) ? x : IsKnown(y) ? y : IsSymbol(x) ? x : y;
  }
  return merged;
}

Result<Type> JoinTypes(const Type& a, const Type& b) {
  if (!IsDeclared(a)) return b;
  if (!IsDeclared(b)) return a;
  if (a.kind == TypeKind::kList && b.kind == TypeKind::kList) {
    if (a == b) return a;
    MSRT_ASSIGN_OR_RETURN(Type element, JoinTypes(*a.element, *b.element));
    return Type::ListOf(std::move(element));
  }
  if (!a.is_tensor() || !b.is_tensor()) return MergeTypes(a, b);
  if (a.dtype != b.dtype) return InvalidModel("element type ", a.dtype, " is not ", b.dtype);
  if (!a.rank_known || !b.rank_known || a.rank() != b.rank()) return Type::UnrankedTensor(a.dtype);
  Type joined = a;
  for (int i = 0; i < a.rank(); ++i) {
    if (a.dims[i] != b.dims[i]) joined.dims[i] = kUnknownDim;
  }
  return joined;
}

}  // namespace msrt
