#include "core/image/files/npy_header.h"

#include <array>
#include <bit>
#include <charconv>
#include <vector>

#include "core/base/checked_math.h"
#include "core/base/utf8.h"

namespace msrt {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";

struct NpyType {
  std::string_view code;
  DType type;
};
constexpr NpyType kNpyTypes[] = {{"u1", DType::kU8},  {"b1", DType::kU8},  {"i1", DType::kI8},
                                 {"u2", DType::kU16}, {"i2", DType::kI16}, {"u4", DType::kU32},
                                 {"i4", DType::kI32}, {"f4", DType::kF32}, {"f8", DType::kF64},
                                 {"u8", DType::kU64}, {"i8", DType::kI64}};

// Returns the text after 'key': in the dictionary, or an empty one.
std::string_view AfterKey(std::string_view dictionary, std::string_view key) {
  for (const char quote : {'\'', '"'}) {
    const std::string quoted = StrCat(quote, key, quote);
    const size_t at = dictionary.find(quoted);
    if (at == std::string_view::npos) continue;
    std::string_view rest = dictionary.substr(at + quoted.size());
    const size_t value = rest.find_first_not_of(" :");
    return value == std::string_view::npos ? "" : rest.substr(value);
  }
  return "";
}

Status UnsupportedType(std::string_view type) {
  return Unsupported("elements of ", type, ": an image has elements of ", kImageTypes.Names(),
                     "; convert it with numpy's astype");
}

Status ParseType(std::string_view dictionary, NpyArray* array) {
  const std::string_view value = AfterKey(dictionary, "descr");
  // '<f4' in quotes: the byte order, then kind and bytes.
  if (value.size() >= 5 && value[0] == value[4] && (value[0] == '\'' || value[0] == '"')) {
    for (const NpyType& known : kNpyTypes) {
      if (value.substr(2, 2) != known.code) continue;
      const char order = value[1];
      if (order != '<' && order != '>' && order != '|' && order != '=') break;
      const char native = std::endian::native == std::endian::little ? '<' : '>';
      array->dtype = known.type;
      array->swapped = BitsOf(known.type) > 8 && (order == '<' || order == '>') && order != native;
      return OkStatus();
    }
  }
  return UnsupportedType(Printable(value.substr(0, value.find(',')), 20));
}

Result<std::vector<int64_t>> ParseShape(std::string_view dictionary) {
  std::string_view value = AfterKey(dictionary, "shape");
  const size_t close = value.find(')');
  if (value.empty() || value[0] != '(' || close == std::string_view::npos)
    return InvalidArgument("not a .npy file: its header has no shape");
  value = value.substr(1, close - 1);
  std::vector<int64_t> shape;
  while (true) {
    const size_t begin = value.find_first_not_of(" ,");
    if (begin == std::string_view::npos) return shape;
    value = value.substr(begin);
    int64_t dim = -1;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), dim);
    if (error != std::errc() || dim < 0 || shape.size() == 8)
      return InvalidArgument("not a .npy file: its header has a bad shape");
    shape.push_back(dim);
    value = value.substr(static_cast<size_t>(end - value.data()));
  }
}

Status SetShape(std::vector<int64_t> shape, ImageInfo* info) {
  if (shape.size() == 4 && shape[0] == 1) shape.erase(shape.begin());
  if (shape.size() == 2) shape.insert(shape.begin(), 1);
  if (shape.size() != 3)
    return Unsupported("an array of shape ", std::span<const int64_t>(shape),
                       " is not an image: it must be H x W, C x H x W or 1 x C x H x W");
  info->channels = shape[0];
  info->height = shape[1];
  info->width = shape[2];
  return CheckImageInfo(*info);
}

}  // namespace

Result<NpyArray> ParseNpyArray(std::span<const std::byte> begin, int64_t file_bytes) {
  const std::string_view text(reinterpret_cast<const char*>(begin.data()), begin.size());
  if (!text.starts_with(kNpyMagic) || text.size() < 12)
    return InvalidArgument("not a .npy file: it does not begin with NumPy's signature");
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(text[i])); };
  const size_t major = byte(6);
  if (major < 1 || major > 3) return Unsupported(".npy format version ", major, ": write 1.0");
  const size_t fixed = major == 1 ? 10 : 12;
  size_t length = byte(8) | byte(9) << 8;
  if (major > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > kMaxNpyHeaderBytes || fixed + length > text.size())
    return InvalidArgument("not a .npy file: its header of ", length,
                           " bytes is cut off or too long");
  const std::string_view dictionary = text.substr(fixed, length);
  NpyArray array;
  array.data_offset = static_cast<int64_t>(fixed + length);
  MSRT_RETURN_IF_ERROR(ParseType(dictionary, &array));
  if (!AfterKey(dictionary, "fortran_order").starts_with("False"))
    return Unsupported("an array in Fortran order: save numpy.ascontiguousarray of it");
  MSRT_ASSIGN_OR_RETURN(array.shape, ParseShape(dictionary));
  int64_t bytes = ElementBytes(array.dtype);
  for (const int64_t dim : array.shape) {
    if (!CheckedMul(bytes, dim, &bytes))
      return InvalidArgument("an array of shape ", std::span<const int64_t>(array.shape),
                             " is too large");
  }
  if (bytes > file_bytes - array.data_offset)
    return InvalidArgument("the file is cut off: its array has ", bytes, " bytes, and only ",
                           file_bytes - array.data_offset, " follow the header");
  return array;
}

Result<NpyHeader> ParseNpyHeader(std::span<const std::byte> begin, int64_t file_bytes) {
  MSRT_ASSIGN_OR_RETURN(NpyArray array, ParseNpyArray(begin, file_bytes));
  if (!kImageTypes.Has(array.dtype)) return UnsupportedType(DTypeName(array.dtype));
  NpyHeader header;
  header.info.format = "NumPy";
  header.info.dtype = array.dtype;
  header.swapped = array.swapped;
  header.data_offset = array.data_offset;
  MSRT_RETURN_IF_ERROR(SetShape(std::move(array.shape), &header.info));
  return header;
}

std::string MakeNpyHeader(const ImageInfo& info) {
  std::string_view code = "f4";
  for (const NpyType& known : kNpyTypes) {
    if (known.type == info.dtype && known.code != "b1") code = known.code;
  }
  const bool little = std::endian::native == std::endian::little;
  const char order = BitsOf(info.dtype) == 8 ? '|' : little ? '<' : '>';
  std::string dictionary =
      StrCat("{'descr': '", order, code, "', 'fortran_order': False, 'shape': (", info.channels,
             ", ", info.height, ", ", info.width, "), }");
  while ((10 + dictionary.size() + 1) % 64 != 0) dictionary.push_back(' ');
  dictionary.push_back('\n');
  std::string header(kNpyMagic);
  header.push_back('\1');
  header.push_back('\0');
  header.push_back(static_cast<char>(dictionary.size() & 0xFF));
  header.push_back(static_cast<char>(dictionary.size() >> 8));
  return header + dictionary;
}

}  // namespace msrt
