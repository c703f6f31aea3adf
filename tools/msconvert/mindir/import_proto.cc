#include "tools/msconvert/mindir/import_proto.h"

#include "core/base/checked_math.h"
#include "core/base/countable.h"
#include "mindir.pb.h"
#include "tools/msconvert/messages.h"

namespace msrt::mindir_import {
namespace {

using mindir::AttributeProto;
using mindir::TensorProto;

constexpr size_t kMaxTextBytes = 64 * 1024;
constexpr int kMaxValueDepth = 32;  // tuples of tuples of ...

constexpr struct {
  int mindir, id;  // in files; of MindSpore's enumeration of types
  DType dtype;
} kProtoTypes[] = {
    {TensorProto::BOOL, 30, DType::kBool},   {TensorProto::INT8, 32, DType::kI8},
    {TensorProto::INT16, 33, DType::kI16},   {TensorProto::INT32, 34, DType::kI32},
    {TensorProto::INT64, 35, DType::kI64},   {TensorProto::UINT8, 37, DType::kU8},
    {TensorProto::UINT16, 38, DType::kU16},  {TensorProto::UINT32, 39, DType::kU32},
    {TensorProto::UINT64, 40, DType::kU64},  {TensorProto::FLOAT16, 42, DType::kF16},
    {TensorProto::FLOAT, 43, DType::kF32},   {TensorProto::DOUBLE, 44, DType::kF64},
    {TensorProto::FLOAT64, 44, DType::kF64}, {TensorProto::BFLOAT16, 45, DType::kBF16},
};

// Files may have any byte as a bool; makes them 0 or 1.
ConstTensor NormalizeBools(ConstTensor t) {
  if (t.dtype != DType::kBool) return t;
  std::vector<uint8_t> flags;
  for (std::byte b : t.bytes) flags.push_back(b != std::byte{0});
  return ConstTensor::Of<uint8_t>(t.dtype, t.dims, flags);
}

// Reads numbers from the typed fields, which no known exporter writes for tensors but the schema
// allows.
template <typename To, typename Field>
Result<ConstTensor> FromField(const TensorProto& t, DType dtype, const Dims& dims,
                              const Field& field) {
  if (field.size() != dims.elements()) {
    return InvalidModel("tensor '", t.name(), "' ", Type::Tensor(dtype, dims), " has ",
                        field.size(), " elements and no raw data");
  }
  std::vector<To> values;
  for (const auto v : field) values.push_back(static_cast<To>(v));
  return ConstTensor::Of<To>(dtype, dims, values);
}

Result<ConstTensor> FromFields(const TensorProto& t, DType dtype, const Dims& dims) {
  switch (dtype) {
    case DType::kF32:
      return FromField<float>(t, dtype, dims, t.float_data());
    case DType::kF64:
      return FromField<double>(t, dtype, dims, t.double_data());
    case DType::kI64:
      return FromField<int64_t>(t, dtype, dims, t.int64_data());
    case DType::kI32:
      return FromField<int32_t>(t, dtype, dims, t.int32_data());
    case DType::kU64:
      return FromField<uint64_t>(t, dtype, dims, t.uint64_data());
    default:
      return InvalidModel("tensor '", t.name(), "' ", Type::Tensor(dtype, dims), " has no data");
  }
}

Result<ConstTensor> TakeData(TensorProto* tensor, const ExternalData& external) {
  auto dtype = DTypeOf(tensor->data_type());
  if (!dtype.ok()) return std::move(dtype).status().Within(StrCat("tensor '", tensor->name(), "'"));
  if (tensor->compression_type() != TensorProto::NO_COMPRESSION) {
    return Unsupported("tensor '", tensor->name(), "' is compressed (",
                       TensorProto::CompressionType_Name(tensor->compression_type()), ")");
  }
  MSRT_ASSIGN_OR_RETURN(const Dims dims, DimsOf(*tensor));
  const size_t bytes = BytesOf(*dtype, dims.elements());
  if (tensor->has_external_data()) {
    const auto& e = tensor->external_data();
    if (e.offset() < 0 || e.length() < 0)
      return InvalidModel("tensor '", tensor->name(), "': its external data has a negative place");
    const ExternalTensor place{
        tensor->name(), e.location(), static_cast<uint64_t>(e.offset()),
        e.has_length() ? std::optional(static_cast<uint64_t>(e.length())) : std::nullopt};
    MSRT_ASSIGN_OR_RETURN(const Bytes data, external.Read(place, bytes));
    const auto address = reinterpret_cast<uintptr_t>(data.data.data());
    if (address % static_cast<uintptr_t>(std::max(1, BitsOf(*dtype) / 8)) != 0)
      return NormalizeBools(ConstTensor::Copy(*dtype, dims, data.data));
    return NormalizeBools(ConstTensor{*dtype, dims, data.data, data.owner});
  }
  if (!tensor->has_raw_data() && bytes != 0) return FromFields(*tensor, *dtype, dims);
  if (tensor->raw_data().size() != bytes) {
    return InvalidModel("tensor '", tensor->name(), "' ", Type::Tensor(*dtype, dims), " needs ",
                        bytes, " bytes, has ", tensor->raw_data().size());
  }
  std::shared_ptr<const std::string> owned(tensor->release_raw_data());
  if (owned == nullptr) owned = std::make_shared<const std::string>();
  return NormalizeBools(
      ConstTensor{*dtype, dims, std::as_bytes(std::span(owned->data(), owned->size())), owned});
}

// Numbers of a tuple are lists of one element.
Result<Item> NumberOf(const AttributeProto& a) {
  switch (a.type()) {
    case AttributeProto::FLOAT:
    case AttributeProto::FLOAT16:
    case AttributeProto::BFLOAT16:
      return Item::Real(a.floats_size() > 0 ? a.floats(0) : a.f());
    case AttributeProto::DOUBLE:
      return Item::Real(a.doubles_size() > 0 ? a.doubles(0) : a.d(), DType::kF64);
    case AttributeProto::STRING: {
      const std::string& text = a.strings_size() > 0 ? a.strings(0) : a.s();
      if (text.size() > kMaxTextBytes)
        return InvalidModel("a text of ", text.size(), " bytes, at most ", kMaxTextBytes,
                            " are allowed");
      return Item::Text(text);
    }
    default: {
      MSRT_ASSIGN_OR_RETURN(const DType dtype, DTypeOf(a.type()));
      const int64_t value = a.ints_size() > 0 ? a.ints(0) : a.i();
      return Item::Integer(dtype == DType::kBool ? value != 0 : value, dtype);
    }
  }
}

bool HoldsData(const TensorProto& t) {
  return t.dims_size() != 0 || t.has_raw_data() || t.has_external_data() ||
         t.float_data_size() + t.int32_data_size() + t.int64_data_size() + t.double_data_size() +
                 t.uint64_data_size() !=
             0;
}

Result<Item> TensorItem(TensorProto* t, const ExternalData& external) {
  if (!HoldsData(*t)) {
    MSRT_ASSIGN_OR_RETURN(const DType dtype, DTypeOf(t->data_type()));
    return Item::Type(dtype);
  }
  MSRT_ASSIGN_OR_RETURN(ConstTensor data, TakeData(t, external));
  return Item::Data(std::move(data));
}

// Returns all numbers, texts and tensors of an attribute, one after the other: the form of tuples
// in files before version 1.
Result<Items> FlatItems(AttributeProto* a, const ExternalData& external) {
  Items flat;
  for (auto& t : *a->mutable_tensors()) {
    MSRT_ASSIGN_OR_RETURN(Item item, TensorItem(&t, external));
    flat.push_back(std::move(item));
  }
  for (float v : a->floats()) flat.push_back(Item::Real(v));
  for (double v : a->doubles()) flat.push_back(Item::Real(v, DType::kF64));
  for (const std::string& v : a->strings()) flat.push_back(Item::Text(v));
  const bool truth = a->type() == AttributeProto::BOOL;
  for (int64_t v : a->ints())
    flat.push_back(truth ? Item::Integer(v != 0, DType::kBool) : Item::Integer(v));
  if (flat.empty() && a->type() != AttributeProto::UNDEFINED) {
    MSRT_ASSIGN_OR_RETURN(Item item, NumberOf(*a));
    flat.push_back(std::move(item));
  }
  return flat;
}

// Parses "scalar:Tuple[value1,List[value2,],],": brackets show how the numbers are nested, names
// count them.
Result<Item> Nested(std::string_view form, const Items& flat) {
  std::vector<Items> open(1);
  size_t used = 0;
  for (size_t i = 0; i < form.size(); ++i) {
    if (form[i] == '[') {
      if (open.size() > static_cast<size_t>(kMaxValueDepth))
        return InvalidModel("a value is nested more than ", kMaxValueDepth, " deep");
      open.emplace_back();
    } else if (form[i] == ']') {
      if (open.size() == 1)
        return InvalidModel("the form '", form, "' of a value has a bracket too many");
      MSRT_ASSIGN_OR_RETURN(Item tuple, Compound(ItemKind::kTuple, std::move(open.back())));
      open.pop_back();
      open.back().push_back(std::move(tuple));
    } else if (form.substr(i).starts_with("value")) {
      if (used == flat.size())
        return InvalidModel("the form '", form, "' speaks of more values than there are");
      open.back().push_back(flat[used++]);
      i += std::string_view("value").size() - 1;
    }
  }
  if (open.size() != 1 || open[0].size() != 1)
    return InvalidModel("the form '", form, "' of a value cannot be read");
  return std::move(open[0][0]);
}

Result<Item> ItemAt(AttributeProto* a, const ExternalData& external, int depth) {
  if (depth > kMaxValueDepth)
    return InvalidModel("a value is nested more than ", kMaxValueDepth, " deep");
  const size_t colon = a->ref_attr_name().find(':');
  const bool counted =
      colon != std::string::npos && a->ref_attr_name().find("value", colon) != std::string::npos;
  if (counted && a->values_size() == 0) {
    if (a->ref_attr_name().size() > kMaxTextBytes)
      return InvalidModel("the form of a value has ", a->ref_attr_name().size(), " bytes");
    MSRT_ASSIGN_OR_RETURN(const Items flat, FlatItems(a, external));
    return Nested(std::string_view(a->ref_attr_name()).substr(colon + 1), flat);
  }
  switch (a->type()) {
    case AttributeProto::UMONAD:
    case AttributeProto::IOMONAD:
      return Item::Plain(ItemKind::kMonad);
    case AttributeProto::NONE:
      return Item::Plain(ItemKind::kNone);
    case AttributeProto::FUNCGRAPHCLOSURE:
      return Item::Text(a->s());
    case AttributeProto::TENSOR:
      return TensorItem(a->mutable_t(), external);
    case AttributeProto::TENSORS: {
      if (a->tensors_size() == 1) return TensorItem(a->mutable_tensors(0), external);
      Items parts;
      for (auto& t : *a->mutable_tensors()) {
        MSRT_ASSIGN_OR_RETURN(Item part, TensorItem(&t, external));
        parts.push_back(std::move(part));
      }
      return Compound(ItemKind::kTuple, std::move(parts));
    }
    case AttributeProto::TUPLE:
    case AttributeProto::LIST: {
      Items parts;
      for (auto& v : *a->mutable_values()) {
        MSRT_ASSIGN_OR_RETURN(Item part, ItemAt(&v, external, depth + 1));
        parts.push_back(std::move(part));
      }
      return Compound(ItemKind::kTuple, std::move(parts));
    }
    case AttributeProto::FLOAT:
    case AttributeProto::DOUBLE:
    case AttributeProto::STRING:
    case AttributeProto::BOOL:
    case AttributeProto::UINT8:
    case AttributeProto::INT8:
    case AttributeProto::UINT16:
    case AttributeProto::INT16:
    case AttributeProto::INT32:
    case AttributeProto::INT64:
    case AttributeProto::UINT32:
    case AttributeProto::UINT64:
    case AttributeProto::FLOAT16:
    case AttributeProto::BFLOAT16:
      return NumberOf(*a);
    default:
      return Unsupported("a value of kind ", AttributeProto::AttributeType_Name(a->type()));
  }
}

Result<Type> TypeOf(const TensorProto& t) {
  MSRT_ASSIGN_OR_RETURN(const DType dtype, DTypeOf(t.data_type()));
  constexpr int64_t kOpenRank = -2;
  if (t.dims_size() == 1 && t.dims(0) == kOpenRank) return Type::UnrankedTensor(dtype);
  if (t.dims_size() > kMaxRank)
    return Unsupported("rank ", t.dims_size(), "; at most ", kMaxRank, " is supported");
  Dims dims;
  for (int64_t d : t.dims()) dims.push_back(d < 0 ? kUnknownDim : d);
  if (!IsCountable(dims)) return InvalidModel("dims ", dims, " are more than 2^56 elements");
  return Type::Tensor(dtype, dims);
}

Result<Declaration> DeclaredTensor(const TensorProto& t) {
  Declaration declared;
  declared.kind = ItemKind::kTensor;
  MSRT_ASSIGN_OR_RETURN(declared.type, TypeOf(t));
  return declared;
}

Declaration Plain(ItemKind kind) {
  Declaration declared;
  declared.kind = kind;
  return declared;
}

Result<Declaration> DeclaredAt(const AttributeProto& a, int depth) {
  if (depth > kMaxValueDepth)
    return InvalidModel("a type is nested more than ", kMaxValueDepth, " deep");
  switch (a.type()) {
    case AttributeProto::TENSOR:
    case AttributeProto::TENSORS: {
      if (a.tensors_size() == 1) return DeclaredTensor(a.tensors(0));
      if (a.type() == AttributeProto::TENSOR && a.has_t()) return DeclaredTensor(a.t());
      Declaration tuple = Plain(ItemKind::kTuple);
      for (const auto& t : a.tensors()) {
        MSRT_ASSIGN_OR_RETURN(Declaration part, DeclaredTensor(t));
        tuple.parts.push_back(std::move(part));
      }
      return tuple;
    }
    case AttributeProto::TUPLE:
    case AttributeProto::LIST: {
      if (a.seq_info().is_dyn_len()) return Unsupported("a tuple of open length");
      Declaration tuple = Plain(ItemKind::kTuple);
      for (const auto& v : a.values()) {
        MSRT_ASSIGN_OR_RETURN(Declaration part, DeclaredAt(v, depth + 1));
        tuple.parts.push_back(std::move(part));
      }
      return tuple;
    }
    case AttributeProto::UMONAD:
    case AttributeProto::IOMONAD:
      return Plain(ItemKind::kMonad);
    case AttributeProto::NONE:
      return Plain(ItemKind::kNone);
    case AttributeProto::FUNCGRAPHCLOSURE:
    case AttributeProto::PARTIALCLOSURE:
    case AttributeProto::UNIONFUNCCLOSURE:
      return Plain(ItemKind::kFunction);
    case AttributeProto::SCALAR: {  // a number, whose element type is that of a tensor of one
                                    // element or of the first value
      if (a.tensors_size() == 0) return Plain(ItemKind::kUnknown);
      MSRT_ASSIGN_OR_RETURN(const DType dtype, DTypeOf(a.tensors(0).data_type()));
      Declaration number = Plain(ItemKind::kTensor);
      number.type = Type::Tensor(dtype, {});
      return number;
    }
    case AttributeProto::UNDEFINED: {  // files before version 1
      if (a.tensors_size() == 0) return Plain(ItemKind::kUnknown);
      if (a.tensors_size() == 1) return DeclaredTensor(a.tensors(0));
      Declaration tuple = Plain(ItemKind::kTuple);
      for (const auto& t : a.tensors()) {
        MSRT_ASSIGN_OR_RETURN(Declaration part, DeclaredTensor(t));
        tuple.parts.push_back(std::move(part));
      }
      return tuple;
    }
    default:
      return Plain(ItemKind::kUnknown);
  }
}

// "linear_quant": a list of scales and one of zero points, for the tensor or for each of its
// channels.
Result<LinearQuant> QuantOf(const TensorProto& tensor) {
  const auto& proto = tensor.quant_params(0);
  if (tensor.quant_params_size() != 1 || proto.quant_algo_name() != "linear_quant") {
    return Unsupported("tensor '", tensor.name(), "' is quantised by '", proto.quant_algo_name(),
                       "'");
  }
  LinearQuant quant;
  for (const auto& a : proto.attribute()) {
    const bool scales = a.name() == "scale_list", zeros = a.name() == "zero_point_list";
    for (const auto& v : a.values()) {
      if (!scales && !zeros) break;
      MSRT_ASSIGN_OR_RETURN(const Item number, NumberOf(v));
      if (!number.is(ItemKind::kNumber))
        return InvalidModel("tensor '", tensor.name(), "': '", a.name(), "' holds ",
                            Describe(number));
      if (scales) quant.scales.push_back(static_cast<float>(number.real));
      else quant.zero_points.push_back(number.integer);
    }
  }
  if (quant.scales.empty() || quant.scales.size() != quant.zero_points.size()) {
    return InvalidModel("tensor '", tensor.name(), "' has ", quant.scales.size(), " scales and ",
                        quant.zero_points.size(), " zero points");
  }
  return quant;
}

}  // namespace

Result<DType> DTypeOf(int64_t mindir_type) {
  for (const auto& t : kProtoTypes) {
    if (t.mindir == mindir_type) return t.dtype;
  }
  const auto number = static_cast<int>(mindir_type);
  if (number != mindir_type || !TensorProto::DataType_IsValid(number))
    return InvalidModel("element type ", mindir_type, " does not exist");
  return Unsupported("elements of type ",
                     TensorProto::DataType_Name(static_cast<TensorProto::DataType>(number)));
}

Result<DType> DTypeOfTypeId(int64_t id) {
  for (const auto& t : kProtoTypes) {
    if (t.id == id) return t.dtype;
  }
  return Unsupported("the element type that MindSpore counts as ", id);
}

Result<Weight> TakeTensor(TensorProto* tensor, const ExternalData& external) {
  Weight weight;
  MSRT_ASSIGN_OR_RETURN(weight.data, TakeData(tensor, external));
  // Weights in floating point may still have the parameters they were dequantised with.
  if (tensor->quant_params_size() != 0 && !IsFloat(weight.data.dtype)) {
    MSRT_ASSIGN_OR_RETURN(weight.quant, QuantOf(*tensor));
  }
  return weight;
}

Result<Item> ItemOf(AttributeProto* attribute, const ExternalData& external) {
  return ItemAt(attribute, external, 0);
}

Result<Declaration> DeclaredBy(const AttributeProto& attribute) { return DeclaredAt(attribute, 0); }

Result<Declaration> DeclaredBy(const mindir::ValueInfoProto& value) {
  if (value.has_attr_info()) return DeclaredAt(value.attr_info(), 0);
  if (value.tensor_size() == 1) return DeclaredTensor(value.tensor(0));
  if (value.tensor_size() == 0) return Plain(ItemKind::kUnknown);
  Declaration tuple = Plain(ItemKind::kTuple);
  for (const auto& t : value.tensor()) {
    MSRT_ASSIGN_OR_RETURN(Declaration part, DeclaredTensor(t));
    tuple.parts.push_back(std::move(part));
  }
  return tuple;
}

}  // namespace msrt::mindir_import
