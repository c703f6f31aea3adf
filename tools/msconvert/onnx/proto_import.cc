#include "tools/msconvert/onnx/proto_import.h"

#include <charconv>
#include <cstring>

#include "core/base/checked_math.h"
#include "core/base/countable.h"
#include "onnx-ml.pb.h"
#include "tools/msconvert/external_data.h"
#include "tools/msconvert/messages.h"

namespace msrt::onnx_import {
namespace {

using ProtoType = onnx::TensorProto;

constexpr int kMaxTypeDepth = 8;             // sequences of optionals of ...
constexpr size_t kMaxTextBytes = 64 * 1024;  // of an attribute: the limit of .msrt files
constexpr size_t kMaxSymbols = 4096;  // searched linearly; dims with further names become unknown

Result<uint64_t> NumberOf(const std::string& text, const std::string& tensor,
                          std::string_view key) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return InvalidModel("tensor '", tensor, "': external_data ", key, " = '", text,
                        "' is no number");
  }
  return value;
}

Result<ExternalTensor> ExternalOf(const onnx::TensorProto& tensor) {
  ExternalTensor external{.name = tensor.name(), .location = {}, .offset = 0, .length = {}};
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") external.location = entry.value();
    if (entry.key() == "offset") {
      MSRT_ASSIGN_OR_RETURN(external.offset, NumberOf(entry.value(), tensor.name(), "offset"));
    }
    if (entry.key() == "length") {
      MSRT_ASSIGN_OR_RETURN(external.length, NumberOf(entry.value(), tensor.name(), "length"));
    }
  }
  return external;
}

// Returns a tensor over the bytes of a string that outlives the file's message.
ConstTensor Over(DType dtype, const Dims& dims, std::shared_ptr<const std::string> bytes) {
  ConstTensor t;
  t.dtype = dtype;
  t.dims = dims;
  t.bytes = std::as_bytes(std::span(bytes->data(), bytes->size()));
  t.owner = std::move(bytes);
  return t;
}

template <typename To, typename Field>
ConstTensor Converted(DType dtype, const Dims& dims, const Field& field) {
  std::vector<To> values;
  values.reserve(static_cast<size_t>(field.size()));
  for (const auto v : field) values.push_back(static_cast<To>(v));
  return ConstTensor::Of<To>(dtype, dims, values);
}

// Packs two elements per byte, the first in the low half; each number of the field is either a
// packed byte or one element.
ConstTensor FourBits(DType dtype, const Dims& dims,
                     const google::protobuf::RepeatedField<int32_t>& field) {
  const auto elements = static_cast<size_t>(dims.elements());
  std::vector<uint8_t> bytes((elements + 1) / 2);
  const bool packed = static_cast<size_t>(field.size()) == bytes.size();
  for (int i = 0; i < field.size(); ++i) {
    const auto value = static_cast<uint8_t>(field[i]);
    if (packed) bytes[static_cast<size_t>(i)] = value;
    else bytes[static_cast<size_t>(i) / 2] |= static_cast<uint8_t>((value & 15) << (i % 2 * 4));
  }
  return ConstTensor::Of<uint8_t>(dtype, dims, bytes);
}

// Reads the typed fields, which small tensors use.
Result<ConstTensor> FromFields(const onnx::TensorProto& t, DType dtype, const Dims& dims) {
  const auto elements = dims.elements();
  const auto counted = [&](int size) -> Status {
    if (size == elements) return OkStatus();
    return InvalidModel("tensor '", t.name(), "' of dims ", dims, " has ", size, " elements");
  };
  switch (dtype) {
    case DType::kF32:
      MSRT_RETURN_IF_ERROR(counted(t.float_data_size()));
      return Converted<float>(dtype, dims, t.float_data());
    case DType::kF64:
      MSRT_RETURN_IF_ERROR(counted(t.double_data_size()));
      return Converted<double>(dtype, dims, t.double_data());
    case DType::kI64:
      MSRT_RETURN_IF_ERROR(counted(t.int64_data_size()));
      return Converted<int64_t>(dtype, dims, t.int64_data());
    case DType::kU64:
      MSRT_RETURN_IF_ERROR(counted(t.uint64_data_size()));
      return Converted<uint64_t>(dtype, dims, t.uint64_data());
    case DType::kU32:
      MSRT_RETURN_IF_ERROR(counted(t.uint64_data_size()));
      return Converted<uint32_t>(dtype, dims, t.uint64_data());
    default:
      break;
  }
  const auto& ints = t.int32_data();
  if (BitsOf(dtype) == 4) {
    if (ints.size() != elements && ints.size() != (elements + 1) / 2) return counted(ints.size());
    return FourBits(dtype, dims, ints);
  }
  MSRT_RETURN_IF_ERROR(counted(ints.size()));
  switch (BitsOf(dtype)) {
    case 8:
      if (dtype == DType::kBool) {
        std::vector<uint8_t> flags;
        for (int32_t v : ints) flags.push_back(v != 0);
        return ConstTensor::Of<uint8_t>(dtype, dims, flags);
      }
      return Converted<uint8_t>(dtype, dims, ints);
    case 16:
      return Converted<uint16_t>(dtype, dims, ints);
    default:
      return Converted<int32_t>(dtype, dims, ints);
  }
}

// Files may have any byte as a bool; makes them 0 or 1.
ConstTensor NormalizeBools(ConstTensor t) {
  if (t.dtype != DType::kBool) return t;
  std::vector<uint8_t> flags;
  for (std::byte b : t.bytes) flags.push_back(b != std::byte{0});
  return ConstTensor::Of<uint8_t>(t.dtype, t.dims, flags);
}

// Returns false for placeholders that exporters write instead of a name; two dims with the same
// placeholder may differ.
bool IsName(const std::string& dim) {
  return !dim.empty() && dim != "?" && dim != "-1" && dim != "None";
}

Result<Type> TensorType(const onnx::TypeProto::Tensor& tensor, Module* module) {
  MSRT_ASSIGN_OR_RETURN(const DType dtype, DTypeOf(tensor.elem_type()));
  if (!tensor.has_shape()) return Type::UnrankedTensor(dtype);
  if (tensor.shape().dim_size() > kMaxRank)
    return Unsupported("rank ", tensor.shape().dim_size(), "; at most ", kMaxRank, " is supported");
  Dims dims;
  for (const auto& d : tensor.shape().dim()) {
    // Exporters write 0 or -1 for a size they do not know; a name is more useful.
    if (d.has_dim_value() && d.dim_value() >= 0) dims.push_back(d.dim_value());
    else if (IsName(d.dim_param()) && module->symbols.size() < kMaxSymbols)
      dims.push_back(module->SymbolFor(d.dim_param()));
    else dims.push_back(kUnknownDim);
  }
  if (!IsCountable(dims)) return InvalidModel("dims ", dims, " are more than 2^56 elements");
  return Type::Tensor(dtype, dims);
}

Result<Type> TypeAt(const onnx::TypeProto& type, Module* module, int depth) {
  if (depth > kMaxTypeDepth)
    return InvalidModel("its type is nested more than ", kMaxTypeDepth, " deep");
  switch (type.value_case()) {
    case onnx::TypeProto::kTensorType:
      return TensorType(type.tensor_type(), module);
    case onnx::TypeProto::kSequenceType: {
      MSRT_ASSIGN_OR_RETURN(Type element,
                            TypeAt(type.sequence_type().elem_type(), module, depth + 1));
      return Type::ListOf(std::move(element));
    }
    case onnx::TypeProto::kOptionalType: {  // a list of at most one element
      MSRT_ASSIGN_OR_RETURN(Type element,
                            TypeAt(type.optional_type().elem_type(), module, depth + 1));
      return Type::ListOf(std::move(element));
    }
    case onnx::TypeProto::kSparseTensorType:
      return Unsupported("a sparse tensor");
    case onnx::TypeProto::kMapType:
      return Unsupported("a map");
    default:
      return UndeclaredType();
  }
}

}  // namespace

Result<DType> DTypeOf(int64_t onnx_type) {
  switch (onnx_type) {
    case ProtoType::FLOAT:
      return DType::kF32;
    case ProtoType::DOUBLE:
      return DType::kF64;
    case ProtoType::FLOAT16:
      return DType::kF16;
    case ProtoType::BFLOAT16:
      return DType::kBF16;
    case ProtoType::INT8:
      return DType::kI8;
    case ProtoType::INT16:
      return DType::kI16;
    case ProtoType::INT32:
      return DType::kI32;
    case ProtoType::INT64:
      return DType::kI64;
    case ProtoType::UINT8:
      return DType::kU8;
    case ProtoType::UINT16:
      return DType::kU16;
    case ProtoType::UINT32:
      return DType::kU32;
    case ProtoType::UINT64:
      return DType::kU64;
    case ProtoType::BOOL:
      return DType::kBool;
    case ProtoType::INT4:
      return DType::kI4;
    case ProtoType::UINT4:
      return DType::kU4;
    case ProtoType::FLOAT8E4M3FN:
      return DType::kF8E4M3FN;
    case ProtoType::FLOAT8E4M3FNUZ:
      return DType::kF8E4M3FNUZ;
    case ProtoType::FLOAT8E5M2:
      return DType::kF8E5M2;
    case ProtoType::FLOAT8E5M2FNUZ:
      return DType::kF8E5M2FNUZ;
    case ProtoType::FLOAT4E2M1:
      return DType::kF4E2M1;
    default:
      break;
  }
  if (onnx_type != static_cast<int32_t>(onnx_type) ||
      !onnx::TensorProto_DataType_IsValid(static_cast<int32_t>(onnx_type)))
    return InvalidModel("element type ", onnx_type, " does not exist in ONNX");
  return Unsupported("elements of type ", onnx::TensorProto_DataType_Name(
                                              static_cast<onnx::TensorProto_DataType>(onnx_type)));
}

Result<Type> TypeOf(const onnx::TypeProto& type, Module* module) { return TypeAt(type, module, 0); }

Result<ConstTensor> TakeTensor(onnx::TensorProto* tensor, const ExternalData& external) {
  auto dtype = DTypeOf(tensor->data_type());
  if (!dtype.ok()) return std::move(dtype).status().Within(StrCat("tensor '", tensor->name(), "'"));
  MSRT_ASSIGN_OR_RETURN(const Dims dims, DimsOf(*tensor));
  const size_t bytes = BytesOf(*dtype, dims.elements());
  if (tensor->data_location() == onnx::TensorProto::EXTERNAL) {
    MSRT_ASSIGN_OR_RETURN(const ExternalTensor place, ExternalOf(*tensor));
    MSRT_ASSIGN_OR_RETURN(const Bytes data, external.Read(place, bytes));
    // A file may have a tensor at any offset, but kernels need aligned elements.
    const auto address = reinterpret_cast<uintptr_t>(data.data.data());
    if (address % static_cast<uintptr_t>(std::max(1, BitsOf(*dtype) / 8)) != 0)
      return NormalizeBools(ConstTensor::Copy(*dtype, dims, data.data));
    return NormalizeBools(ConstTensor{*dtype, dims, data.data, data.owner});
  }
  if (!tensor->has_raw_data()) return FromFields(*tensor, *dtype, dims);
  if (tensor->raw_data().size() != bytes) {
    return InvalidModel("tensor '", tensor->name(), "' ", Type::Tensor(*dtype, dims), " needs ",
                        bytes, " bytes, has ", tensor->raw_data().size());
  }
  return NormalizeBools(
      Over(*dtype, dims, std::shared_ptr<const std::string>(tensor->release_raw_data())));
}

Result<AttrValue> AttrOf(onnx::AttributeProto* a, const ExternalData& external) {
  switch (a->type()) {
    case onnx::AttributeProto::FLOAT:
      return AttrValue(static_cast<double>(a->f()));
    case onnx::AttributeProto::INT:
      return AttrValue(static_cast<int64_t>(a->i()));
    case onnx::AttributeProto::STRING:
      if (a->s().size() > kMaxTextBytes) {
        return InvalidModel("attribute '", a->name(), "' has ", a->s().size(), " bytes, at most ",
                            kMaxTextBytes, " are allowed");
      }
      return AttrValue(a->s());
    case onnx::AttributeProto::TENSOR: {
      MSRT_ASSIGN_OR_RETURN(ConstTensor tensor, TakeTensor(a->mutable_t(), external));
      return AttrValue(std::move(tensor));
    }
    case onnx::AttributeProto::FLOATS:
      return AttrValue(std::vector<double>(a->floats().begin(), a->floats().end()));
    case onnx::AttributeProto::INTS:
      return AttrValue(std::vector<int64_t>(a->ints().begin(), a->ints().end()));
    case onnx::AttributeProto::STRINGS:
      return AttrValue(std::vector<std::string>(a->strings().begin(), a->strings().end()));
    default:
      return Unsupported("attribute '", a->name(), "' of kind ",
                         onnx::AttributeProto_AttributeType_Name(a->type()));
  }
}

}  // namespace msrt::onnx_import
