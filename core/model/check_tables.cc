// Checks the tables that graphs refer to: segments, data, types, constants, ops, states. Also the
// checks that all tables share.
#include <algorithm>
#include <unordered_set>

#include "core/base/checked_math.h"
#include "core/base/countable.h"
#include "core/graph/dtype.h"
#include "core/graph/graph.h"
#include "core/model/structure_check.h"

namespace msrt {
namespace {

// The length of the UTF-8 sequence that begins at text[i], or 0 if there is none: stray or missing
// continuation bytes, overlong forms, surrogates, numbers beyond U+10FFFF.
size_t SequenceLength(std::string_view text, size_t i) {
  const auto at = [&](size_t k) {
    return k < text.size() ? static_cast<uint8_t>(text[k]) : uint8_t{0};
  };
  const auto continues = [&](size_t k) { return (at(k) & 0xC0) == 0x80; };
  const uint8_t first = at(i), second = at(i + 1);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(i + 1) ? 2 : 0;
  if ((first & 0xF0) == 0xE0) {
    const bool overlong = first == 0xE0 && second < 0xA0,
               surrogate = first == 0xED && second > 0x9F;
    return continues(i + 1) && continues(i + 2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool overlong = first == 0xF0 && second < 0x90, beyond = first == 0xF4 && second > 0x8F;
    return continues(i + 1) && continues(i + 2) && continues(i + 3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

bool IsControl(char c) { return static_cast<uint8_t>(c) < 0x20 || c == 0x7F; }

// Nearly every name is printable ASCII, and compilers vectorise this loop.
bool IsPrintableAscii(std::string_view text) {
  bool printable = true;
  for (char c : text) printable &= c >= 0x20 && c < 0x7F;
  return printable;
}

bool IsUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = SequenceLength(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

Dims DimsOf(const fbs::Type& type) { return Dims(SpanOf(type.dims())); }

}  // namespace

// ---- shared checks ----------------------------------------------------------------------

Status StructureCheck::Charge(uint64_t elements, uint64_t element_bytes) {
  const uint64_t bytes = 4 + elements * element_bytes;  // FlatBuffers' verifier proved that it fits
  if (bytes > bytes_left_)
    return InvalidModel("objects of the structure share bytes: each must be referred to once");
  bytes_left_ -= bytes;
  return OkStatus();
}

Status StructureCheck::CheckText(const flatbuffers::String* text, uint64_t limit) {
  if (text == nullptr) return OkStatus();
  MSRT_RETURN_IF_ERROR(Charge(text->size(), 1));
  if (text->size() > limit)
    return LimitExceeded("text of ", text->size(), " bytes, the limit is ", limit);
  if (!IsPrintableAscii(TextOf(text)) && !IsUtf8(TextOf(text)))
    return InvalidModel("text is not UTF-8");
  return OkStatus();
}

Status StructureCheck::CheckName(const flatbuffers::String* name) {
  if (name == nullptr) return OkStatus();
  const std::string_view text = TextOf(name);
  if (text.size() <= limits_.max_name_bytes && IsPrintableAscii(text))
    return Charge(text.size(), 1);
  MSRT_RETURN_IF_ERROR(CheckText(name, limits_.max_name_bytes));
  if (std::any_of(text.begin(), text.end(), IsControl))
    return InvalidModel("name contains a control character");
  return OkStatus();
}

Status StructureCheck::CheckIndex(std::string_view what, uint64_t index, uint64_t count) {
  if (index < count) return OkStatus();
  return InvalidModel(what, " ", index, " does not exist, there are ", count);
}

Status StructureCheck::CheckUnique(const std::vector<std::string_view>& names) {
  std::unordered_set<std::string_view> seen;
  for (std::string_view name : names) {
    if (!seen.insert(name).second) return InvalidModel("the name '", name, "' is used twice");
  }
  return OkStatus();
}

// ---- the module ---------------------------------------------------------------------------------

Status StructureCheck::Run() {
  MSRT_RETURN_IF_ERROR(CheckFeatures());
  MSRT_RETURN_IF_ERROR(CheckHeadings());
  MSRT_RETURN_IF_ERROR(CheckSegments());
  MSRT_RETURN_IF_ERROR(CheckData());
  MSRT_RETURN_IF_ERROR(CheckSymbols());
  MSRT_RETURN_IF_ERROR(CheckTypes());
  MSRT_RETURN_IF_ERROR(CheckConstants());
  MSRT_RETURN_IF_ERROR(CheckOps());
  MSRT_RETURN_IF_ERROR(CheckStates());
  MSRT_RETURN_IF_ERROR(CheckExtras());
  MSRT_RETURN_IF_ERROR(CheckGraphs());
  return CheckEntries();
}

// Versions up to 1.1 know no features, so the error names the first one that the file requires.
Status StructureCheck::CheckFeatures() {
  if (CountOf(model_.required_features()) == 0) return OkStatus();
  const flatbuffers::String* feature = model_.required_features()->Get(0);
  MSRT_RETURN_IF_ERROR(In(CheckName(feature), [] { return "required feature"; }));
  return Unsupported("the model requires the feature '", TextOf(feature), "' (format ",
                     header_.major, ".", header_.minor,
                     "), which this build does not know; update msrt");
}

Status StructureCheck::CheckHeadings() {
  MSRT_RETURN_IF_ERROR(In(CheckName(model_.name()), [] { return "module name"; }));
  MSRT_RETURN_IF_ERROR(In(CheckName(model_.producer()), [] { return "producer"; }));
  for (uint32_t i = 0; i < CountOf(model_.metadata()); ++i) {
    const fbs::KeyValue* entry = model_.metadata()->Get(i);
    const auto context = [&] { return StrCat("metadata ", i); };
    MSRT_RETURN_IF_ERROR(In(CheckName(entry->key()), context));
    MSRT_RETURN_IF_ERROR(In(CheckText(entry->value(), limits_.max_metadata_bytes), context));
  }
  return OkStatus();
}

// Segments follow the structure and each other with the least padding that their alignment needs,
// up to the end of the file: every byte of the file has one role.
Status StructureCheck::CheckSegments() {
  uint64_t end = header_.structure_offset + header_.structure_bytes;
  for (uint32_t i = 0; i < CountOf(model_.segments()); ++i) {
    const fbs::Segment* segment = model_.segments()->Get(i);
    const int log2 = segment->alignment_log2();
    if (log2 < kMinSegmentAlignmentLog2 || log2 > kMaxSegmentAlignmentLog2) {
      return InvalidModel("segment ", i, ": alignment 2^", log2, ", must be 2^",
                          kMinSegmentAlignmentLog2, " to 2^", kMaxSegmentAlignmentLog2);
    }
    uint64_t begin;
    if (!CheckedAlignUp(end, uint64_t{1} << log2, &begin) || segment->offset() != begin) {
      return InvalidModel("segment ", i, ": begins at byte ", segment->offset(),
                          ", must be the first multiple of 2^", log2, " from byte ", end);
    }
    if (!RangeFits(begin, segment->bytes(), header_.file_bytes)) {
      return InvalidModel("segment ", i, ": ", segment->bytes(), " bytes at ", begin,
                          " end beyond the file of ", header_.file_bytes, " bytes");
    }
    end = begin + segment->bytes();
  }
  if (end != header_.file_bytes) {
    return InvalidModel("structure and segments end at byte ", end, ", the file at ",
                        header_.file_bytes);
  }
  return OkStatus();
}

Status StructureCheck::CheckData() {
  uint64_t segment_index = 0, end = 0;  // of the previous record
  for (uint32_t i = 0; i < CountOf(model_.data()); ++i) {
    const fbs::Data* data = model_.data()->Get(i);
    const auto context = [&] { return StrCat("data ", i); };
    MSRT_RETURN_IF_ERROR(
        In(CheckIndex("segment", data->segment(), CountOf(model_.segments())), context));
    if (data->segment() > segment_index) end = 0;
    if (data->segment() < segment_index || data->offset() < end) {
      return InvalidModel("data ", i, ": byte ", data->offset(), " of segment ", data->segment(),
                          " is before the end of data ", i - 1,
                          "; records must be in order and not overlap");
    }
    if (data->offset() % kDataAlignment != 0) {
      return InvalidModel("data ", i, ": offset ", data->offset(), " is not a multiple of ",
                          kDataAlignment);
    }
    const uint64_t segment_bytes = model_.segments()->Get(data->segment())->bytes();
    if (!RangeFits(data->offset(), data->bytes(), segment_bytes)) {
      return InvalidModel("data ", i, ": ", data->bytes(), " bytes at ", data->offset(),
                          " end beyond segment ", data->segment(), " of ", segment_bytes, " bytes");
    }
    segment_index = data->segment();
    end = data->offset() + data->bytes();
  }
  return OkStatus();
}

Status StructureCheck::CheckSymbols() {
  std::vector<std::string_view> names;
  for (uint32_t i = 0; i < CountOf(model_.symbols()); ++i) {
    const flatbuffers::String* name = model_.symbols()->Get(i);
    MSRT_RETURN_IF_ERROR(In(CheckName(name), [&] { return StrCat("symbol ", i); }));
    if (name->size() == 0) return InvalidModel("symbol ", i, ": has no name");
    names.push_back(TextOf(name));
  }
  return In(CheckUnique(names), [] { return "symbols"; });
}

// ---- types --------------------------------------------------------------------------------------

Status StructureCheck::CheckTypes() {
  const uint32_t count = CountOf(model_.types());
  type_parts_.assign(count, 1);
  for (uint32_t i = 0; i < count; ++i) {
    const fbs::Type* type = model_.types()->Get(i);
    const auto context = [&] { return StrCat("type ", i); };
    switch (type->kind()) {
      case static_cast<uint8_t>(TypeKind::kTensor):
        MSRT_RETURN_IF_ERROR(In(CheckTensorType(*type), context));
        break;
      case static_cast<uint8_t>(TypeKind::kList):
      case static_cast<uint8_t>(TypeKind::kFunction):
        MSRT_RETURN_IF_ERROR(In(CheckTypeParts(i, *type), context));
        break;
      default:
        return InvalidModel("type ", i, ": kind ", type->kind(), " is unknown");
    }
  }
  return OkStatus();
}

Status StructureCheck::CheckTensorType(const fbs::Type& type) {
  if (!IsDType(type.dtype())) return InvalidModel("element type ", type.dtype(), " is unknown");
  MSRT_RETURN_IF_ERROR(ChargeVector(type.dims()));
  const auto dims = SpanOf(type.dims());
  if (type.unranked() && !dims.empty()) return InvalidModel("has dims though its rank is unknown");
  if (dims.size() > kMaxRank)
    return InvalidModel("rank ", dims.size(), ", at most ", kMaxRank, " is allowed");
  for (size_t i = 0; i < dims.size(); ++i) {
    if (IsSymbol(dims[i]) && -1 - dims[i] >= static_cast<int64_t>(CountOf(model_.symbols()))) {
      return InvalidModel("dim ", i, " is symbol ", -1 - dims[i], ", there are ",
                          CountOf(model_.symbols()));
    }
    if (dims[i] > limits_.max_dim)
      return LimitExceeded("dim ", i, " is ", dims[i], ", the limit is ", limits_.max_dim);
  }
  return IsCountable(DimsOf(type))
             ? OkStatus()
             : InvalidModel("dims ", DimsOf(type), " are more than 2^56 elements");
}

// Parts come before the whole, so types cannot contain themselves.
Status StructureCheck::CheckTypeParts(uint32_t index, const fbs::Type& type) {
  MSRT_RETURN_IF_ERROR(ChargeVector(type.parameters()));
  MSRT_RETURN_IF_ERROR(ChargeVector(type.results()));
  const auto add = [&](uint32_t part) -> Status {
    if (part >= index)
      return InvalidModel("refers to type ", part, ", must refer to a type before it");
    type_parts_[index] += type_parts_[part];
    if (type_parts_[index] > limits_.max_type_parts)
      return LimitExceeded("has more than ", limits_.max_type_parts, " parts");
    return OkStatus();
  };
  if (type.kind() == static_cast<uint8_t>(TypeKind::kList)) {
    MSRT_RETURN_IF_ERROR(add(type.element()));
  } else {
    for (uint32_t part : SpanOf(type.parameters())) MSRT_RETURN_IF_ERROR(add(part));
    for (uint32_t part : SpanOf(type.results())) MSRT_RETURN_IF_ERROR(add(part));
  }
  return OkStatus();
}

// ---- constants, ops, state, extras --------------------------------------------------------------

Status StructureCheck::CheckConstants() {
  for (uint32_t i = 0; i < CountOf(model_.constants()); ++i) {
    const fbs::Constant* constant = model_.constants()->Get(i);
    const auto context = [&] { return StrCat("constant ", i); };
    MSRT_RETURN_IF_ERROR(
        In(CheckIndex("type", constant->type(), CountOf(model_.types())), context));
    MSRT_RETURN_IF_ERROR(In(CheckIndex("data", constant->data(), CountOf(model_.data())), context));
    const fbs::Type* type = model_.types()->Get(constant->type());
    if (type->kind() != static_cast<uint8_t>(TypeKind::kTensor) || type->unranked() ||
        !DimsOf(*type).known()) {
      return InvalidModel("constant ", i, ": its type is not a tensor with known dims");
    }
    const Type tensor = Type::Tensor(static_cast<DType>(type->dtype()), DimsOf(*type));
    const uint64_t bytes = model_.data()->Get(constant->data())->bytes();
    if (tensor.bytes() != bytes) {
      return InvalidModel("constant ", i, ": ", tensor, " needs ", tensor.bytes(),
                          " bytes, its data has ", bytes);
    }
    if (bytes > limits_.max_tensor_bytes) {
      return LimitExceeded("constant ", i, ": ", bytes, " bytes, the limit is ",
                           limits_.max_tensor_bytes);
    }
  }
  return OkStatus();
}

Status StructureCheck::CheckOps() {
  for (uint32_t i = 0; i < CountOf(model_.ops()); ++i) {
    const fbs::Op* op = model_.ops()->Get(i);
    const auto context = [&] { return StrCat("op ", i); };
    MSRT_RETURN_IF_ERROR(In(CheckName(op->domain()), context));
    MSRT_RETURN_IF_ERROR(In(CheckName(op->name()), context));
    if (TextOf(op->name()).empty()) return InvalidModel("op ", i, ": has no name");
    if (op->version() < 0)
      return InvalidModel("op ", i, " '", TextOf(op->name()), "': version ", op->version(),
                          " is negative");
  }
  return OkStatus();
}

Status StructureCheck::CheckStates() {
  std::vector<std::string_view> names;
  for (uint32_t i = 0; i < CountOf(model_.states()); ++i) {
    const fbs::State* state = model_.states()->Get(i);
    MSRT_RETURN_IF_ERROR(In(CheckName(state->name()), [&] { return StrCat("state ", i); }));
    names.push_back(TextOf(state->name()));
    if (names.back().empty()) return InvalidModel("state ", i, ": has no name");
    MSRT_RETURN_IF_ERROR(
        In(CheckInitial(*state), [&] { return StrCat("state ", i, " '", names.back(), "'"); }));
    if (state->role() >= kStateRoleCount) {
      return Unsupported("state ", i, " '", names.back(), "': role ", state->role(),
                         " is not known to this version; a newer one may load the file");
    }
  }
  return In(CheckUnique(names), [] { return "states"; });
}

Status StructureCheck::CheckInitial(const fbs::State& state) {
  MSRT_RETURN_IF_ERROR(CheckIndex("type", state.type(), CountOf(model_.types())));
  MSRT_RETURN_IF_ERROR(CheckIndex("constant", state.initial(), CountOf(model_.constants())));
  const fbs::Type* type = model_.types()->Get(state.type());
  if (type->kind() != static_cast<uint8_t>(TypeKind::kTensor))
    return InvalidModel("is not a tensor");
  const fbs::Type* initial = model_.types()->Get(model_.constants()->Get(state.initial())->type());
  if (initial->dtype() != type->dtype()) {
    return InvalidModel("has element type ", static_cast<DType>(type->dtype()),
                        ", its initial data ", static_cast<DType>(initial->dtype()));
  }
  const Dims dims = DimsOf(*type), data = DimsOf(*initial);
  bool fits = type->unranked() || dims.rank() == data.rank();
  for (int d = 0; fits && d < dims.rank(); ++d) fits = !IsKnown(dims[d]) || dims[d] == data[d];
  if (!fits) return InvalidModel("has dims ", dims, ", its initial data ", data);
  return OkStatus();
}

Status StructureCheck::CheckExtras() {
  for (uint32_t i = 0; i < CountOf(model_.packed()); ++i) {
    const fbs::PackedWeight* packed = model_.packed()->Get(i);
    const auto context = [&] { return StrCat("packed weight ", i); };
    MSRT_RETURN_IF_ERROR(In(CheckName(packed->kernel()), context));
    MSRT_RETURN_IF_ERROR(In(CheckName(packed->isa()), context));
    MSRT_RETURN_IF_ERROR(
        In(CheckIndex("constant", packed->constant(), CountOf(model_.constants())), context));
    MSRT_RETURN_IF_ERROR(In(CheckIndex("data", packed->data(), CountOf(model_.data())), context));
  }
  for (uint32_t i = 0; i < CountOf(model_.programs()); ++i) {
    const uint32_t data = model_.programs()->Get(i)->data();
    MSRT_RETURN_IF_ERROR(In(CheckIndex("data", data, CountOf(model_.data())),
                            [&] { return StrCat("program ", i); }));
  }
  return OkStatus();
}

}  // namespace msrt
