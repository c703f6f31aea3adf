// Converts the leaves of a MindIR file: element types, tensors, attributes, declared types.
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

// Refuses types that the runtime lacks (texts, complex numbers), naming them.
Result<DType> DTypeOf(int64_t mindir_type);
// By MindSpore's type ids, which are integer arguments of ops in newer files.
Result<DType> DTypeOfTypeId(int64_t id);

// Moves the bytes out of `tensor` if they can be used as they are, so that a large weight exists
// once. Weights that are stored quantised come with their scales and zero points.
struct LinearQuant {
  std::vector<float> scales;
  std::vector<int64_t> zero_points;
};
struct Weight {
  ConstTensor data;
  std::optional<LinearQuant> quant;
};
Result<Weight> TakeTensor(mindir::TensorProto* tensor, const ExternalData& external);

// Converts an attribute, or the value of a Constant node. Returns kUnsupported for values without a
// counterpart. A closure of a graph becomes a text: its name.
Result<Item> ItemOf(mindir::AttributeProto* attribute, const ExternalData& external);

// The type that a file declares for a value: one type per tensor of the value, in a tuple or alone;
// functions and tokens have none.
struct Declaration {
  ItemKind kind = ItemKind::kUnknown;  // kTensor, kTuple, kMonad, kNone, kFunction; kUnknown: no
                                       // usable declaration
  Type type;                           // of a tensor
  std::vector<Declaration> parts;
};
Result<Declaration> DeclaredBy(const mindir::AttributeProto& attribute);
Result<Declaration> DeclaredBy(const mindir::ValueInfoProto& value);

}  // namespace msrt::mindir_import
