// The type of a value: a tensor, a list of values of one type, or a function (a closure that
// Partial makes and Call uses).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/dims.h"
#include "core/graph/dtype.h"

namespace msrt {

enum class TypeKind : uint8_t { kTensor = 0, kList = 1, kFunction = 2 };

// Maximum parts of a type written out in full (list<list<f32[2]>> has three), so that printing and
// comparing types stay cheap.
inline constexpr uint32_t kMaxTypeParts = 1024;

struct FunctionSignature;

struct Type {
  TypeKind kind = TypeKind::kTensor;
  // Tensor. Without a known rank, dims is empty and means nothing.
  DType dtype = DType::kNone;
  bool rank_known = true;
  Dims dims;
  // List: the type of each element. Function: parameters and results.
  std::shared_ptr<const Type> element;
  std::shared_ptr<const FunctionSignature> signature;

  static Type Tensor(DType dtype, Dims dims) {
    Type t;
    t.dtype = dtype;
    t.dims = dims;
    return t;
  }
  static Type UnrankedTensor(DType dtype) {
    Type t;
    t.dtype = dtype;
    t.rank_known = false;
    return t;
  }

  static Type ListOf(Type element) {
    Type t;
    t.kind = TypeKind::kList;
    t.element = std::make_shared<const Type>(std::move(element));
    return t;
  }
  static Type Function(std::vector<Type> parameters, std::vector<Type> results);

  bool is_tensor() const { return kind == TypeKind::kTensor; }
  int rank() const { return dims.rank(); }
  // A tensor whose every dim is a number.
  bool concrete() const { return is_tensor() && rank_known && dims.known(); }
  // Requires concrete().
  int64_t elements() const { return dims.elements(); }
  size_t bytes() const { return BytesOf(dtype, elements()); }

  bool operator==(const Type& other) const;
};

// The type of a value without a declared type: Validate infers it from the node that produces the
// value.
inline Type UndeclaredType() { return Type::UnrankedTensor(DType::kNone); }
inline bool IsDeclared(const Type& type) { return !type.is_tensor() || type.dtype != DType::kNone; }

struct FunctionSignature {
  std::vector<Type> parameters, results;
};

// "f32[2, 3, ?]", "list<i64[]>", "f32[*]" where the rank is unknown.
void AppendTo(std::string* out, const Type& type);

// Returns the type that satisfies both descriptions, or an error that says why none does ("dim 2 is
// 3 and 4"). Named symbols win over unknown dims.
Result<Type> MergeTypes(const Type& a, const Type& b);

// Returns the narrowest type that covers both, as for the result of a branch or a value that a loop
// carries, or an error if there is none ("element type f32 is not i64"). If one type is undeclared,
// the result is the other.
Result<Type> JoinTypes(const Type& a, const Type& b);

}  // namespace msrt
