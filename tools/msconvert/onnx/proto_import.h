// Converts the leaves of an ONNX file: element types, types, tensors, attributes.
#pragma once

#include <string>

#include "core/graph/graph.h"

namespace onnx {
class AttributeProto;
class TensorProto;
class TypeProto;
}  // namespace onnx

namespace msrt {
class ExternalData;
}

namespace msrt::onnx_import {

// Refuses types that the runtime lacks (strings, complex numbers), naming them.
Result<DType> DTypeOf(int64_t onnx_type);
// Symbols are looked up in the module and added to it.
Result<Type> TypeOf(const onnx::TypeProto& type, Module* module);
// Moves the bytes out of `tensor` if they can be used as they are, so that a large weight exists
// once.
Result<ConstTensor> TakeTensor(onnx::TensorProto* tensor, const ExternalData& external);
// Attributes without graphs.
Result<AttrValue> AttrOf(onnx::AttributeProto* attribute, const ExternalData& external);

}  // namespace msrt::onnx_import
