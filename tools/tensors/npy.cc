#include "tools/tensors/npy.h"

#include <charconv>
#include <cstring>
#include <vector>

#include "core/base/checked_math.h"
#include "core/base/countable.h"

namespace msrt {
namespace {

struct NpyType {
  std::string_view code;
  DType dtype;
};
constexpr NpyType kTypes[] = {{"<f8", DType::kF64}, {"<f4", DType::kF32}, {"<f2", DType::kF16},
                              {"|i1", DType::kI8},  {"<i2", DType::kI16}, {"<i4", DType::kI32},
                              {"<i8", DType::kI64}, {"|u1", DType::kU8},  {"<u2", DType::kU16},
                              {"<u4", DType::kU32}, {"<u8", DType::kU64}, {"|b1", DType::kBool}};

// Returns the element type that a file has for one of ours.
DType StorageType(DType dtype) {
  if (dtype == DType::kBF16) return DType::kU16;
  return BitsOf(dtype) <= 8 && dtype != DType::kBool && dtype != DType::kI8 ? DType::kU8 : dtype;
}

std::string_view CodeOf(DType stored) {
  for (const NpyType& t : kTypes) {
    if (t.dtype == stored) return t.code;
  }
  return "";
}

// Returns whether NumPy has this type.
bool HasCode(DType dtype) { return !CodeOf(dtype).empty(); }

struct Npy {
  DType stored;
  Dims dims;
  std::span<const std::byte> data;
};

// Returns the text after "'key':" in the header, which is a Python literal of a fixed form.
Result<std::string_view> Field(std::string_view header, std::string_view key,
                               const std::string& path) {
  const size_t at = header.find(StrCat("'", key, "':"));
  if (at == std::string_view::npos)
    return InvalidArgument("file '", path, "': the .npy header has no '", key, "'");
  std::string_view rest = header.substr(at + key.size() + 3);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return rest;
}

Result<Dims> ParseShape(std::string_view text, const std::string& path) {
  const size_t close = text.find(')');
  if (text.empty() || text[0] != '(' || close == std::string_view::npos)
    return InvalidArgument("file '", path, "': bad shape in the .npy header");
  Dims dims;
  const char* p = text.data() + 1;
  const char* end = text.data() + close;
  while (p < end) {
    if (*p == ' ' || *p == ',') {
      ++p;
      continue;
    }
    int64_t dim = -1;
    const auto [next, error] = std::from_chars(p, end, dim);
    if (error != std::errc() || dim < 0 || dims.rank() == kMaxRank)
      return InvalidArgument("file '", path, "': bad shape in the .npy header");
    dims.push_back(dim);
    p = next;
  }
  return dims;
}

// Parses a type such as "'<f4'". Refuses records, whose description is a list.
Result<DType> ParseType(std::string_view descr, const std::string& path) {
  const size_t end =
      descr.empty() || descr[0] != '\'' ? std::string_view::npos : descr.find('\'', 1);
  if (end == std::string_view::npos) {
    return Unsupported(
        "file '", path,
        "' has an array of records, which no tensor is; save each field as an array of its own");
  }
  const std::string_view code = descr.substr(1, end - 1);
  for (const NpyType& t : kTypes) {
    if (code == t.code) return t.dtype;
    if (code.substr(1) == t.code.substr(1) && code.starts_with('>')) {
      return Unsupported("file '", path, "' has big-endian elements ('", code,
                         "'); save it with array.astype('", t.code, "')");
    }
  }
  return Unsupported("file '", path, "' has element type '", code,
                     "', which no tensor has; save it with array.astype('<f4') or another type");
}

Result<Npy> Parse(std::span<const std::byte> file, const std::string& path) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(file.data());
  if (file.size() < 12 || std::memcmp(bytes, "\x93NUMPY", 6) != 0)
    return InvalidArgument("file '", path, "' is not a .npy file");
  const size_t prefix = bytes[6] == 1 ? 10 : 12;
  uint32_t length = bytes[8] | bytes[9] << 8;
  if (prefix == 12)
    length |= static_cast<uint32_t>(bytes[10]) << 16 | static_cast<uint32_t>(bytes[11]) << 24;
  if (!RangeFits(prefix, length, file.size()))
    return InvalidArgument("file '", path, "': the .npy header is cut off");
  const std::string_view header(reinterpret_cast<const char*>(bytes) + prefix, length);
  Npy npy;
  MSRT_ASSIGN_OR_RETURN(const std::string_view order, Field(header, "fortran_order", path));
  if (!order.starts_with("False"))
    return Unsupported("file '", path,
                       "' is in Fortran order; save it with numpy.ascontiguousarray");
  MSRT_ASSIGN_OR_RETURN(const std::string_view descr, Field(header, "descr", path));
  MSRT_ASSIGN_OR_RETURN(npy.stored, ParseType(descr, path));
  MSRT_ASSIGN_OR_RETURN(const std::string_view shape, Field(header, "shape", path));
  MSRT_ASSIGN_OR_RETURN(npy.dims, ParseShape(shape, path));
  npy.data = file.subspan(prefix + length);
  if (!IsCountable(npy.dims) || npy.data.size() < BytesOf(npy.stored, npy.dims.elements())) {
    return InvalidArgument("file '", path, "' is shorter than its shape ", npy.dims, " says");
  }
  npy.data = npy.data.first(BytesOf(npy.stored, npy.dims.elements()));
  return npy;
}

// Packs one element per byte in the file into two per byte in memory. A byte of the file holds the
// four bits (0 to 15) or, as i1, the number that they represent (-8 to 7).
Result<ConstTensor> PackPairs(const Npy& npy, DType want, const std::string& path) {
  const int64_t least = npy.stored == DType::kI8 && want == DType::kI4 ? -8 : 0;
  const int64_t largest = least < 0 ? 7 : 15;
  std::vector<std::byte> pairs(BytesOf(want, npy.dims.elements()));
  for (size_t i = 0; i < npy.data.size(); ++i) {
    const auto bits = static_cast<uint8_t>(npy.data[i]);
    const int64_t element = npy.stored == DType::kI8 ? static_cast<int8_t>(bits) : bits;
    if (element < least || element > largest) {
      return InvalidArgument("file '", path, "': element ", i, " is ", element,
                             ", which 4 bits of ", want, " stored as ", npy.stored,
                             " cannot be; it must be in ", least, " to ", largest);
    }
    pairs[i / 2] |= static_cast<std::byte>((bits & 15) << (i % 2 * 4));
  }
  return ConstTensor::Copy(want, npy.dims, pairs);
}

}  // namespace

Result<ConstTensor> ReadNpy(const std::string& path, DType want) {
  MSRT_ASSIGN_OR_RETURN(const Bytes file, DefaultIo()->ReadFile(path, DefaultAllocator()));
  MSRT_ASSIGN_OR_RETURN(const Npy npy, Parse(file.data, path));
  if (want == DType::kNone) want = npy.stored;
  if (BitsOf(want) == 4 && (npy.stored == DType::kU8 || npy.stored == DType::kI8))
    return PackPairs(npy, want, path);
  if (npy.stored != StorageType(want)) {
    return InvalidArgument("file '", path, "' has element type ", npy.stored, ", wanted is ", want,
                           "; save it with array.",
                           BitsOf(want) == BitsOf(npy.stored) && !HasCode(want) ? "view" : "astype",
                           "('", CodeOf(StorageType(want)), "')");
  }
  return ConstTensor::Copy(want, npy.dims, npy.data);
}

Result<ConstTensor> ReadNpy(const std::string& path) { return ReadNpy(path, DType::kNone); }

Status WriteNpy(const std::string& path, const TensorView& tensor) {
  std::string header = StrCat("{'descr': '", CodeOf(StorageType(tensor.dtype)),
                              "', 'fortran_order': False, 'shape': (");
  for (int64_t d : tensor.dims) StrAppend(&header, d, ",");
  header += "), }";
  // Magic, version and length take 10 bytes; the data starts at a multiple of 64.
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 11, ' ');
  header += '\n';
  std::string head("\x93NUMPY\x01\x00", 8);
  head.push_back(static_cast<char>(header.size() & 255));
  head.push_back(static_cast<char>(header.size() >> 8));
  head += header;
  std::vector<std::byte> unpacked;
  std::span<const std::byte> data{tensor.As<std::byte>(), BytesOf(tensor.dtype, tensor.elements())};
  if (BitsOf(tensor.dtype) == 4) {
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      const std::byte pair = data[static_cast<size_t>(i / 2)];
      unpacked.push_back(i % 2 == 0 ? pair & std::byte{15} : pair >> 4);
    }
    data = unpacked;
  }
  const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(head)), data};
  return DefaultIo()->WriteFile(path, pieces);
}

std::string FileNameFor(std::string_view name) {
  std::string out(name);
  for (char& c : out) {
    const bool kept = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                      c == '_' || c == '.' || c == '-';
    if (!kept) c = '_';
  }
  return out;
}

}  // namespace msrt
