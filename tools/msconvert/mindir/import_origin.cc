#include "tools/msconvert/mindir/import_origin.h"

#include <algorithm>
#include <optional>

#include "mindir.pb.h"
#include "ops/op_def.h"
#include "ops/registry.h"
#include "tools/msconvert/mindir/import_proto.h"

namespace msrt::mindir_import {
namespace {

constexpr int kMaxOperands = 4096, kMaxAttributes = 256;

std::optional<AttrValue> ValueOf(const mindir::AttributeProto& attribute, AttrKind kind) {
  switch (kind) {
    case AttrKind::kInt:
      return attribute.has_i() ? std::optional<AttrValue>(int64_t{attribute.i()}) : std::nullopt;
    case AttrKind::kFloat:
      return attribute.has_d() ? std::optional<AttrValue>(attribute.d()) : std::nullopt;
    case AttrKind::kString:
      return attribute.has_s() ? std::optional<AttrValue>(attribute.s()) : std::nullopt;
    case AttrKind::kInts:
      return std::vector<int64_t>(attribute.ints().begin(), attribute.ints().end());
    case AttrKind::kFloats:
      return std::vector<double>(attribute.doubles().begin(), attribute.doubles().end());
    case AttrKind::kStrings:
      return std::vector<std::string>(attribute.strings().begin(), attribute.strings().end());
    case AttrKind::kDType: {
      const auto dtype = DTypeOfTypeId(attribute.i());
      return dtype.ok() ? std::optional<AttrValue>(*dtype) : std::nullopt;
    }
    case AttrKind::kTensor: {
      mindir::TensorProto copy = attribute.t();
      if (copy.has_external_data()) return std::nullopt;
      auto tensor = TakeTensor(&copy, ExternalData("", nullptr));
      return tensor.ok() && !tensor->quant ? std::optional<AttrValue>(tensor->data) : std::nullopt;
    }
    case AttrKind::kGraph:
    case AttrKind::kGraphs:
      break;
  }
  return std::nullopt;
}

}  // namespace

size_t Origin::OutputOf(const std::string& node) const {
  return static_cast<size_t>(std::find(outputs.begin(), outputs.end(), node) - outputs.begin());
}

std::shared_ptr<const Origin> OriginOf(const mindir::NodeProto& node) {
  if (!node.has_origin()) return nullptr;
  const mindir::NodeProto& noted = node.origin();
  if (noted.input_size() > kMaxOperands || noted.output_size() > kMaxOperands ||
      noted.attribute_size() > kMaxAttributes)
    return nullptr;
  auto origin = std::make_shared<Origin>();
  origin->name = noted.name();
  origin->domain = noted.domain();
  origin->op = noted.op_type();
  origin->inputs.assign(noted.input().begin(), noted.input().end());
  origin->outputs.assign(noted.output().begin(), noted.output().end());
  // An op that has effects or calls graphs is never exported as several primitives.
  const OpDef* def = FindOp(origin->domain, origin->op);
  if (def == nullptr || def->effect != Effect::kNone ||
      origin->OutputOf(node.output(0)) == origin->outputs.size())
    return nullptr;
  for (const auto& attribute : noted.attribute()) {
    const auto known = std::find_if(def->attrs.begin(), def->attrs.end(),
                                    [&](const AttrDef& d) { return d.name == attribute.name(); });
    if (known == def->attrs.end()) return nullptr;
    auto value = ValueOf(attribute, known->kind);
    if (!value) return nullptr;
    origin->attrs.Set(attribute.name(), *std::move(value));
  }
  return CheckAttrs(origin->attrs, def->attrs).ok() ? origin : nullptr;
}

}  // namespace msrt::mindir_import
