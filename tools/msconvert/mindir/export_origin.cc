#include "tools/msconvert/mindir/export_origin.h"

namespace msrt::mindir_export {
namespace {

// Returns false if the file cannot encode the value.
bool Encode(const AttrValue& value, mindir::AttributeProto* out) {
  switch (KindOf(value)) {
    case AttrKind::kInt:
      out->set_i(std::get<int64_t>(value));
      return true;
    case AttrKind::kFloat:
      out->set_d(std::get<double>(value));
      return true;
    case AttrKind::kString:
      out->set_s(std::get<std::string>(value));
      return true;
    case AttrKind::kInts:
      for (int64_t v : std::get<std::vector<int64_t>>(value)) out->add_ints(v);
      return true;
    case AttrKind::kFloats:
      for (double v : std::get<std::vector<double>>(value)) out->add_doubles(v);
      return true;
    case AttrKind::kStrings:
      for (const std::string& v : std::get<std::vector<std::string>>(value)) out->add_strings(v);
      return true;
    case AttrKind::kDType:
      out->set_i(TypeIdOf(std::get<DType>(value)));
      return out->i() != 0;
    case AttrKind::kTensor: {
      const ConstTensor& tensor = std::get<ConstTensor>(value);
      mindir::TensorProto* data = out->mutable_t();
      data->set_data_type(DataTypeOf(tensor.dtype));
      for (int64_t d : tensor.dims) data->add_dims(d);
      data->set_raw_data(tensor.bytes.data(), tensor.bytes.size());
      return data->data_type() != mindir::TensorProto::UNDEFINED;
    }
    case AttrKind::kGraph:
    case AttrKind::kGraphs:
      break;
  }
  return false;
}

}  // namespace

void NoteOrigin(GraphNames* names, const Node& node, size_t before) {
  mindir::NodeProto origin;
  origin.set_name(node.name);
  origin.set_domain(node.domain);
  origin.set_op_type(node.op);
  for (const Attr& attr : node.attrs) {
    mindir::AttributeProto* attribute = origin.add_attribute();
    attribute->set_name(attr.name);
    if (!Encode(attr.value, attribute)) return;
  }
  for (ValueId v : node.inputs) {
    const auto known = v == kNoValue ? std::optional(Ref{}) : names->Known(v);
    if (!known) return;
    origin.add_input(known->name);
  }
  std::vector<mindir::NodeProto*> givers;
  for (ValueId v : node.outputs) {
    mindir::NodeProto* giver =
        v == kNoValue ? nullptr : names->out().NodeAfter(before, names->Of(v));
    origin.add_output(giver != nullptr ? giver->name() : "");
    if (giver != nullptr) givers.push_back(giver);
  }
  for (mindir::NodeProto* giver : givers) *giver->mutable_origin() = origin;
}

}  // namespace msrt::mindir_export
