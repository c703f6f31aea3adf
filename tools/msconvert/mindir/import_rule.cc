#include "tools/msconvert/mindir/import_rule.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>

#include "core/base/half.h"
#include "ops/infer.h"

namespace msrt::mindir_import {
namespace {

std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

std::optional<std::vector<int64_t>> IntsIn(const ConstTensor& t) {
  if (t.dtype == DType::kI64 || t.dtype == DType::kI32) return IntValues(t);
  if (t.dtype != DType::kBool) return std::nullopt;
  std::vector<int64_t> values;
  for (std::byte b : t.bytes) values.push_back(static_cast<int64_t>(b));
  return values;
}

std::optional<double> FloatIn(const ConstTensor& t) {
  if (t.dims.elements() != 1) return std::nullopt;
  switch (t.dtype) {
    case DType::kF32:
      return t.As<float>()[0];
    case DType::kF64:
      return t.As<double>()[0];
    case DType::kF16:
      return HalfToFloat(t.As<uint16_t>()[0]);
    default: {
      const auto ints = IntsIn(t);
      return ints ? std::optional(static_cast<double>((*ints)[0])) : std::nullopt;
    }
  }
}

}  // namespace

PrimitiveCall::PrimitiveCall(GraphDraft* draft, const Rule& rule, std::string name, Items inputs,
                             std::vector<std::pair<std::string, Item>> attributes,
                             const Declaration& declared)
    : draft_(draft),
      rule_(rule),
      name_(std::move(name)),
      inputs_(std::move(inputs)),
      attributes_(std::move(attributes)),
      declared_(declared) {
  for (std::string_view word : Words(rule.arguments)) {
    const bool attribute = std::any_of(attributes_.begin(), attributes_.end(),
                                       [&](const auto& a) { return a.first == word; });
    if (!attribute || inputs_.size() >= Words(rule.arguments).size()) arguments_.push_back(word);
  }
}

std::string_view PrimitiveCall::target() const { return rule_.target; }

const Item* PrimitiveCall::Find(std::string_view argument) const {
  const Item* found = nullptr;
  for (size_t i = 0; i < arguments_.size() && i < inputs_.size(); ++i) {
    if (arguments_[i] == argument) found = &inputs_[i];
  }
  for (const auto& [name, item] : attributes_) {
    if (found == nullptr && name == argument) found = &item;
  }
  return found == nullptr || found->is(ItemKind::kNone) ? nullptr : found;
}

Status PrimitiveCall::Refuse(std::string_view argument, std::string_view why) const {
  return Unsupported("argument '", argument, "' ", why);
}

Result<Item> PrimitiveCall::Get(std::string_view argument) const {
  const Item* item = Find(argument);
  if (item == nullptr) return InvalidModel("argument '", argument, "' is missing");
  return *item;
}

Result<ValueId> PrimitiveCall::Tensor(std::string_view argument) {
  MSRT_ASSIGN_OR_RETURN(const Item item, Get(argument));
  return draft_->Materialize(item, StrCat(name_, "/", argument));
}

Result<ValueId> PrimitiveCall::TensorOrNone(std::string_view argument) {
  return Has(argument) ? Tensor(argument) : Result<ValueId>(kNoValue);
}

std::optional<std::vector<int64_t>> PrimitiveCall::KnownInts(const Item& item) const {
  switch (item.kind) {
    case ItemKind::kNumber:
      if (IsFloat(item.dtype)) return std::nullopt;
      return std::vector<int64_t>{item.integer};
    case ItemKind::kData:
      return IntsIn(*item.data);
    case ItemKind::kTensor:
      return draft_->constant(item.value) != nullptr ? IntsIn(*draft_->constant(item.value))
                                                     : std::nullopt;
    case ItemKind::kTuple: {
      std::vector<int64_t> all;
      for (const Item& p : *item.parts) {
        const auto one = p.is(ItemKind::kTuple) ? std::nullopt : KnownInts(p);
        if (!one || one->size() != 1) return std::nullopt;
        all.push_back((*one)[0]);
      }
      return all;
    }
    default:
      return std::nullopt;
  }
}

Result<std::vector<int64_t>> PrimitiveCall::Ints(std::string_view argument) const {
  MSRT_ASSIGN_OR_RETURN(const Item item, Get(argument));
  auto values = KnownInts(item);
  if (!values) return Refuse(argument, "must be a constant list of integers");
  return *std::move(values);
}

Result<int64_t> PrimitiveCall::Int(std::string_view argument,
                                   std::optional<int64_t> fallback) const {
  if (!Has(argument) && fallback) return *fallback;
  MSRT_ASSIGN_OR_RETURN(const std::vector<int64_t> values, Ints(argument));
  if (values.size() != 1) return Refuse(argument, "must be one integer");
  return values[0];
}

Result<bool> PrimitiveCall::Bool(std::string_view argument, std::optional<bool> fallback) const {
  MSRT_ASSIGN_OR_RETURN(const int64_t value,
                        Int(argument, fallback ? std::optional<int64_t>(*fallback) : std::nullopt));
  return value != 0;
}

Result<double> PrimitiveCall::Float(std::string_view argument,
                                    std::optional<double> fallback) const {
  if (!Has(argument) && fallback) return *fallback;
  MSRT_ASSIGN_OR_RETURN(const Item item, Get(argument));
  if (item.is(ItemKind::kNumber)) return item.real;
  const ConstTensor* data = item.is(ItemKind::kData)     ? item.data.get()
                            : item.is(ItemKind::kTensor) ? draft_->constant(item.value)
                                                         : nullptr;
  const auto value = data != nullptr ? FloatIn(*data) : std::nullopt;
  if (!value) return Refuse(argument, "must be a constant number");
  return *value;
}

Result<ValueId> PrimitiveCall::IntsTensor(std::string_view argument) {
  MSRT_ASSIGN_OR_RETURN(const Item item, Get(argument));
  if (const auto known = KnownInts(item)) return IntList(*known);
  if (!item.is(ItemKind::kTuple)) {
    MSRT_ASSIGN_OR_RETURN(const ValueId value, Tensor(argument));
    MSRT_ASSIGN_OR_RETURN(const ValueId wide, Cast(value, DType::kI64));
    return type(wide).rank_known && type(wide).rank() == 0
               ? Add("Unsqueeze", {wide}, {{"axes", std::vector<int64_t>{0}}})
               : Result<ValueId>(wide);
  }
  std::vector<ValueId> parts;
  for (const Item& p : *item.parts) {
    MSRT_ASSIGN_OR_RETURN(const ValueId value,
                          draft_->Materialize(p, StrCat(name_, "/", argument)));
    MSRT_ASSIGN_OR_RETURN(const ValueId wide, Cast(value, DType::kI64));
    MSRT_ASSIGN_OR_RETURN(const ValueId flat, Add("Reshape", {wide, IntList({1})}));
    parts.push_back(flat);
  }
  if (parts.size() == 1) return parts[0];
  return Add("Concat", parts, {{"axis", int64_t{0}}});
}

Result<DType> PrimitiveCall::ElementType(std::string_view argument) const {
  MSRT_ASSIGN_OR_RETURN(const Item item, Get(argument));
  if (item.is(ItemKind::kDType)) return item.dtype;
  MSRT_ASSIGN_OR_RETURN(const int64_t id, Int(argument));
  return DTypeOfTypeId(id);
}

Result<std::string> PrimitiveCall::Choice(std::string_view argument,
                                          std::span<const std::string_view> by_number,
                                          std::string_view fallback) const {
  if (!Has(argument)) return std::string(fallback);
  MSRT_ASSIGN_OR_RETURN(const Item item, Get(argument));
  if (item.is(ItemKind::kText)) {
    std::string text = item.text;
    for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return text;
  }
  MSRT_ASSIGN_OR_RETURN(const int64_t number, Int(argument));
  if (number < 0 || number >= static_cast<int64_t>(by_number.size()))
    return Refuse(argument, StrCat("= ", number, " is not known"));
  return std::string(by_number[static_cast<size_t>(number)]);
}

Result<int> PrimitiveCall::Rank(ValueId v) const {
  if (!type(v).is_tensor() || !type(v).rank_known)
    return Unsupported("needs the rank of its input");
  return type(v).rank();
}

Result<int> PrimitiveCall::Axis(std::string_view argument, int rank,
                                std::optional<int64_t> fallback) const {
  MSRT_ASSIGN_OR_RETURN(const int64_t axis, Int(argument, fallback));
  return NormalizeAxis(axis, rank);
}

Result<int64_t> PrimitiveCall::KnownDim(ValueId v, int axis) const {
  const Type& t = type(v);
  if (!t.rank_known || axis >= t.rank() || !IsKnown(t.dims[axis]))
    return Unsupported("needs dim ", axis, " of ", t, " to be known");
  return t.dims[axis];
}

std::string PrimitiveCall::NextName(std::string_view op) {
  return added_++ == 0 ? name_ : StrCat(name_, "/", op, "_", added_ - 1);
}

Result<ValueId> PrimitiveCall::Add(std::string_view op, std::vector<ValueId> inputs,
                                   AttrList attrs) {
  return draft_->Add(op, NextName(op), std::move(inputs), std::move(attrs));
}

Result<std::vector<ValueId>> PrimitiveCall::AddMany(std::string_view domain, std::string_view op,
                                                    std::vector<ValueId> inputs, AttrList attrs,
                                                    size_t outputs) {
  return draft_->AddMany(domain, op, NextName(op), std::move(inputs), std::move(attrs), outputs);
}

ValueId PrimitiveCall::Constant(ConstTensor data) {
  return draft_->Constant(StrCat(name_, "/constant_", draft_->graph().value_count()),
                          std::move(data));
}

ValueId PrimitiveCall::Number(DType dtype, double value) {
  return draft_->Number(StrCat(name_, "/constant_", draft_->graph().value_count()), dtype, value);
}

Result<ValueId> PrimitiveCall::Cast(ValueId v, DType dtype) {
  if (type(v).dtype == dtype) return v;
  return Add("Cast", {v}, {{"to", dtype}});
}

Status PrimitiveCall::SetResult(Result<ValueId> value) {
  MSRT_RETURN_IF_ERROR(value.status());
  SetResult(*value);
  return OkStatus();
}

Status PrimitiveCall::SetTupleResult(std::vector<ValueId> values) {
  Items parts;
  for (ValueId v : values)
    parts.push_back(v == kNoValue ? Item::Plain(ItemKind::kNone) : Item::Tensor(v));
  MSRT_ASSIGN_OR_RETURN(result_, Compound(ItemKind::kTuple, std::move(parts)));
  return OkStatus();
}

namespace {

constexpr std::span<const Rule> (*kFamilies[])() = {
    ElementwiseRules, ConvolutionRules, MatMulRules,    ReduceRules, MovementRules,
    GatherRules,      ImageRules,       RecurrentRules, LossRules,   GenerateRules};

}  // namespace

void ForEachRule(const std::function<void(const Rule&)>& visit) {
  for (const auto family : kFamilies) {
    for (const Rule& rule : family()) visit(rule);
  }
}

const Rule* FindRule(std::string_view op) {
  static const std::unordered_map<std::string_view, const Rule*> by_op = [] {
    std::unordered_map<std::string_view, const Rule*> map;
    ForEachRule([&](const Rule& rule) { map.emplace(rule.op, &rule); });
    return map;
  }();
  const auto found = by_op.find(op);
  return found == by_op.end() ? nullptr : found->second;
}

}  // namespace msrt::mindir_import
