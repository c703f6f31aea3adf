// Element types. The numbers are part of the file format and of the C ABI (msrt_dtype): append,
// never renumber.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace msrt {

enum class DType : uint8_t {
  kNone = 0,
  kF64 = 1,
  kF32 = 2,
  kF16 = 3,
  kBF16 = 4,
  kI8 = 5,
  kI16 = 6,
  kI32 = 7,
  kI64 = 8,
  kU8 = 9,
  kU16 = 10,
  kU32 = 11,
  kU64 = 12,
  kBool = 13,
  // Storage only: weights and quantised tensors at rest. Two 4-bit elements share a byte, the first
  // in the low half.
  kI4 = 14,
  kU4 = 15,
  kF8E4M3FN = 16,
  kF8E4M3FNUZ = 17,
  kF8E5M2 = 18,
  kF8E5M2FNUZ = 19,
  kF4E2M1 = 20,
};
inline constexpr int kDTypeCount = 21;

inline constexpr bool IsDType(uint32_t number) { return number >= 1 && number < kDTypeCount; }

std::string_view DTypeName(DType type);  // "f32"
std::optional<DType> DTypeFromName(std::string_view name);
inline void AppendTo(std::string* out, DType type) { out->append(DTypeName(type)); }

int BitsOf(DType type);  // 4, 8, 16, 32 or 64; 0 for kNone

// Bytes of `elements` densely packed elements. The caller has checked that elements * 8 does not
// overflow.
inline size_t BytesOf(DType type, int64_t elements) {
  return (static_cast<size_t>(elements) * static_cast<size_t>(BitsOf(type)) + 7) / 8;
}

// A set of element types, for the entries of ops.
class DTypeSet {
 public:
  constexpr DTypeSet() = default;
  constexpr DTypeSet(std::initializer_list<DType> types) {
    for (DType t : types) bits_ |= uint32_t{1} << static_cast<int>(t);
  }
  constexpr bool Has(DType t) const { return (bits_ >> static_cast<int>(t)) & 1; }
  constexpr DTypeSet operator|(DTypeSet other) const {
    DTypeSet r;
    r.bits_ = bits_ | other.bits_;
    return r;
  }
  constexpr bool operator==(const DTypeSet&) const = default;
  std::string Names() const;  // "f32, f16"

 private:
  uint32_t bits_ = 0;
};

inline constexpr DTypeSet kFloatTypes{DType::kF64, DType::kF32, DType::kF16, DType::kBF16};
inline constexpr DTypeSet kSignedTypes{DType::kI8, DType::kI16, DType::kI32, DType::kI64};
inline constexpr DTypeSet kUnsignedTypes{DType::kU8, DType::kU16, DType::kU32, DType::kU64};
inline constexpr DTypeSet kIntTypes = kSignedTypes | kUnsignedTypes;
inline constexpr DTypeSet kNumberTypes = kFloatTypes | kIntTypes;
inline constexpr DTypeSet kBoolType{DType::kBool};
inline constexpr DTypeSet kComputeTypes = kNumberTypes | kBoolType;
inline constexpr DTypeSet kIndexTypes{DType::kI32, DType::kI64};
inline constexpr DTypeSet kF8Types{DType::kF8E4M3FN, DType::kF8E4M3FNUZ, DType::kF8E5M2,
                                   DType::kF8E5M2FNUZ};
inline constexpr DTypeSet kStorageTypes =
    kF8Types | DTypeSet{DType::kI4, DType::kU4, DType::kF4E2M1};
inline constexpr DTypeSet kAllTypes = kComputeTypes | kStorageTypes;

inline bool IsFloat(DType t) { return kFloatTypes.Has(t); }

}  // namespace msrt
