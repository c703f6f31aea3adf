#include "tools/msconvert/mindir/import_draft.h"

#include <algorithm>
#include <cmath>

#include "core/base/half.h"

namespace msrt::mindir_import {

ValueId GraphDraft::Number(const std::string& name, DType dtype, double value) {
  const auto of = [&]<typename T>(T v) {
    return Constant(name, ConstTensor::Of<T>(dtype, {}, std::span<const T>(&v, 1)));
  };
  switch (dtype) {
    case DType::kF64:
      return of(value);
    case DType::kF32:
      return of(static_cast<float>(value));
    case DType::kF16:
      return of(FloatToHalf(static_cast<float>(value)));
    case DType::kBF16:
      return of(BFloat16(static_cast<float>(value)).bits);
    default:
      break;
  }
  // Integers and truth values: the low bytes, least significant first.
  constexpr double kMax = 9.2e18;
  const auto v = std::isnan(value) ? 0 : static_cast<int64_t>(std::clamp(value, -kMax, kMax));
  return Constant(
      name, ConstTensor::Copy(dtype, {}, std::as_bytes(std::span(&v, 1)).first(BytesOf(dtype, 1))));
}

Result<ValueId> GraphDraft::Add(std::string_view op, const std::string& name,
                                std::vector<ValueId> inputs, AttrList attrs) {
  MSRT_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                        AddMany("", op, name, std::move(inputs), std::move(attrs), 1));
  return outputs[0];
}

Result<std::vector<ValueId>> GraphDraft::AddMany(std::string_view domain, std::string_view op,
                                                 const std::string& name,
                                                 std::vector<ValueId> inputs, AttrList attrs,
                                                 size_t outputs, std::vector<Type> declared) {
  while (!inputs.empty() && inputs.back() == kNoValue) inputs.pop_back();
  return GraphBuilder(&graph()).Add(domain, op, name, std::move(inputs), std::move(attrs), outputs,
                                    std::move(declared));
}

Result<ValueId> GraphDraft::Materialize(const Item& item, const std::string& name) {
  switch (item.kind) {
    case ItemKind::kTensor:
      return item.value;
    case ItemKind::kData: {
      const auto [found, added] = data_.try_emplace(item.data.get(), kNoValue);
      if (added) found->second = Constant(name, *item.data);
      return found->second;
    }
    case ItemKind::kNumber: {
      if (item.dtype != DType::kI64) return Number(name, item.dtype, item.real);
      return Constant(name, ConstTensor::Of<int64_t>(DType::kI64, {},
                                                     std::span<const int64_t>(&item.integer, 1)));
    }
    case ItemKind::kParameter:
      return Read(item.index);
    default:
      return Unsupported(Describe(item), " where a tensor is needed");
  }
}

Result<Item> GraphDraft::Materialized(const Item& item, const std::string& name) {
  switch (item.kind) {
    case ItemKind::kData:
    case ItemKind::kNumber: {
      MSRT_ASSIGN_OR_RETURN(const ValueId value, Materialize(item, name));
      return Item::Tensor(value);
    }
    case ItemKind::kTuple:
    case ItemKind::kFunction:
    case ItemKind::kSwitch: {
      if (item.parts == nullptr) return item;
      Items parts;
      for (const Item& p : *item.parts) {
        MSRT_ASSIGN_OR_RETURN(Item part, Materialized(p, name));
        parts.push_back(std::move(part));
      }
      MSRT_ASSIGN_OR_RETURN(Item whole, Compound(item.kind, std::move(parts), item.index));
      whole.by_index = item.by_index;
      return whole;
    }
    default:
      return item;
  }
}

Result<ValueId> GraphDraft::Read(uint32_t index) {
  Weights::Entry& entry = weights_.entries[index];
  if (!entry.wrong.ok()) return entry.wrong;
  if (entry.slot >= 0) {  // reads the current state
    const ConstTensor& initial = entry.weight.data;
    const AttrList attrs{{"slot", entry.slot},
                         {"dtype", initial.dtype},
                         {"dims", std::vector<int64_t>(initial.dims.begin(), initial.dims.end())}};
    MSRT_ASSIGN_OR_RETURN(const std::vector<ValueId> read,
                          AddMany("msrt", "StateRead", entry.name, {}, attrs, 1));
    return read[0];
  }
  if (const auto known = constants_.find(index); known != constants_.end()) return known->second;
  ValueId value = Constant(entry.name, entry.weight.data);
  if (entry.weight.quant) {
    MSRT_ASSIGN_OR_RETURN(value, Dequantized(entry, value));
  }
  return constants_[index] = value;
}

Result<ValueId> GraphDraft::Dequantized(const Weights::Entry& entry, ValueId stored) {
  const LinearQuant& quant = *entry.weight.quant;
  const Dims& dims = entry.weight.data.dims;
  const auto count = static_cast<int64_t>(quant.scales.size());
  int64_t axis = 0;
  if (count > 1) {
    while (axis < dims.rank() && dims[static_cast<int>(axis)] != count) ++axis;
    if (axis == dims.rank())
      return Unsupported("weight '", entry.name, "' of dims ", dims, " has ", count, " scales");
  }
  const Dims per = count > 1 ? Dims{count} : Dims{};
  std::vector<std::byte> zeros(BytesOf(entry.weight.data.dtype, count));
  const size_t width = zeros.size() / quant.scales.size();
  for (size_t i = 0; i < quant.scales.size(); ++i) {
    std::copy_n(std::as_bytes(std::span(&quant.zero_points[i], 1)).data(), width,
                zeros.begin() + static_cast<ptrdiff_t>(i * width));
  }
  const ValueId scale = Constant(entry.name + "/scale", ConstTensor::Floats(per, quant.scales));
  const ValueId zero =
      Constant(entry.name + "/zero_point", ConstTensor::Copy(entry.weight.data.dtype, per, zeros));
  return Add("DequantizeLinear", entry.name + "/dequantized", {stored, scale, zero},
             {{"axis", axis}});
}

}  // namespace msrt::mindir_import
