// The leaves of a MindIR file as ours: element types, tensors, attributes, declared types.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/msconvert/external_data.h"
#include "tools/msconvert/mindir/import_item.h"

namespace msrt::mindir {
class AttributeProto;
class TensorProto;
class ValueInfoProto;
}  // namespace msrt::mindir

namespace msrt::mindir_import {

// Refuses what the runtime has no type for (texts, complex numbers), naming it.
Result<DType> DTypeOf(int64_t mindir_type);
// By MindSpore's own numbers, which newer files hand to ops as integers.
Result<DType> DTypeOfTypeId(int64_t id);

// Takes the bytes out of `tensor` where they can be used as they are, so that a large weight exists
// once. Weights that are stored quantised come with the scale and zero point that make numbers of
// them.
struct LinearQuant {
  std::vector<float> scales;
  std::vector<int64_t> zero_points;
};
struct Weight {
  ConstTensor data;
  std::optional<LinearQuant> quant;
};
Result<Weight> TakeTensor(mindir::TensorProto* tensor, const ExternalData& external);

// An attribute, or what a Constant node holds. What has no counterpart is kUnsupported. A closure
// of a graph is a text: its name.
Result<Item> ItemOf(mindir::AttributeProto* attribute, const ExternalData& external);

// What a file says that a value is: as many types as the value has tensors, in a tuple or alone;
// functions and tokens have none.
struct Declared {
  ItemKind kind = ItemKind::kUnknown;  // kTensor, kTuple, kMonad, kNone, kFunction; kUnknown:
                                       // nothing that helps is said
  Type type;                           // of a tensor
  std::vector<Declared> parts;
};
Result<Declared> DeclaredBy(const mindir::AttributeProto& attribute);
Result<Declared> DeclaredBy(const mindir::ValueInfoProto& value);

}  // namespace msrt::mindir_import
