#include "tools/msconvert/mindir/export_writer.h"

#include <algorithm>

#include "core/base/str_cat.h"

namespace msrt::mindir_export {
namespace {

using mindir::AttributeProto;
using mindir::TensorProto;

struct ElementType {
  DType dtype;
  TensorProto::DataType in_file;
  int64_t type_id;
};
constexpr ElementType kElementTypes[] = {
    {DType::kF64, TensorProto::DOUBLE, 44},  {DType::kF32, TensorProto::FLOAT, 43},
    {DType::kF16, TensorProto::FLOAT16, 42}, {DType::kBF16, TensorProto::BFLOAT16, 45},
    {DType::kI8, TensorProto::INT8, 32},     {DType::kI16, TensorProto::INT16, 33},
    {DType::kI32, TensorProto::INT32, 34},   {DType::kI64, TensorProto::INT64, 35},
    {DType::kU8, TensorProto::UINT8, 37},    {DType::kU16, TensorProto::UINT16, 38},
    {DType::kU32, TensorProto::UINT32, 39},  {DType::kU64, TensorProto::UINT64, 40},
    {DType::kBool, TensorProto::BOOL, 30},
};

const ElementType* Find(DType dtype) {
  const auto* found = std::find_if(std::begin(kElementTypes), std::end(kElementTypes),
                                   [&](const auto& e) { return e.dtype == dtype; });
  return found == std::end(kElementTypes) ? nullptr : found;
}

void Encode(const Type& type, TensorProto* tensor) {
  tensor->set_data_type(DataTypeOf(type.dtype));
  if (!type.rank_known) {
    tensor->add_dims(-2);
    return;
  }
  for (int64_t d : type.dims) tensor->add_dims(IsKnown(d) ? d : -1);
}

// A single type is a tensor, not a tuple of one: our functions return a single result as it is.
void EncodeTypes(std::span<const Type> types, AttributeProto* attribute) {
  if (types.size() == 1) {
    attribute->set_type(AttributeProto::TENSORS);
    Encode(types[0], attribute->add_tensors());
    return;
  }
  attribute->set_type(AttributeProto::TUPLE);
  for (const Type& type : types) EncodeTypes({&type, 1}, attribute->add_values());
  attribute->mutable_seq_info()->set_is_dyn_len(false);
}

// Returns the attributes by which MindSpore keeps the order of effects of plumbing primitives.
PrimAttrs PlumbingAttrs(std::string_view primitive) {
  if (primitive == "Partial" || primitive == "Depend") return {{"side_effect_propagate", 1}};
  return {};
}

}  // namespace

int64_t TypeIdOf(DType dtype) {
  const ElementType* e = Find(dtype);
  return e != nullptr ? e->type_id : 0;
}

TensorProto::DataType DataTypeOf(DType dtype) {
  const ElementType* e = Find(dtype);
  return e != nullptr ? e->in_file : TensorProto::UNDEFINED;
}

void Arg::EncodeTo(AttributeProto* attribute) const {
  if (const auto* i = std::get_if<int64_t>(&value_)) {
    attribute->set_type(AttributeProto::INT64);
    attribute->set_i(*i);
  } else if (const auto* b = std::get_if<bool>(&value_)) {
    attribute->set_type(AttributeProto::BOOL);
    attribute->set_i(*b ? 1 : 0);
  } else if (const auto* f = std::get_if<float>(&value_)) {
    attribute->set_type(AttributeProto::FLOAT);
    attribute->set_f(*f);
  } else if (const auto* text = std::get_if<std::string>(&value_)) {
    attribute->set_type(AttributeProto::STRING);
    attribute->set_s(*text);
  } else if (const auto* ints = std::get_if<Ints>(&value_)) {
    attribute->set_type(AttributeProto::TUPLE);
    for (int64_t v : *ints) {
      AttributeProto* element = attribute->add_values();
      element->set_type(AttributeProto::INT64);
      element->add_ints(v);
    }
  } else {
    attribute->set_type(AttributeProto::NONE);
  }
}

// ---- one function -------------------------------------------------------------------------------

Ref FunctionWriter::Input(std::string_view input_name, const Type& type) {
  mindir::ValueInfoProto* input = graph_.add_input();
  std::string unique = StrCat(name(), ":", input_name);
  const auto taken = [&](const auto& other) { return &other != input && other.name() == unique; };
  if (std::any_of(graph_.input().begin(), graph_.input().end(), taken))
    StrAppend(&unique, "_", file_.NextId());
  input->set_name(unique);
  if (type.is_tensor()) Encode(type, input->add_tensor());
  return {unique};
}

Ref FunctionWriter::MonadInput() {
  mindir::ValueInfoProto* input = graph_.add_input();
  input->set_name(StrCat(name(), ":u"));
  input->mutable_attr_info()->set_type(AttributeProto::UMONAD);
  return {input->name()};
}

void FunctionWriter::Return(Ref value, std::span<const Type> types,
                            std::span<const std::string> names) {
  mindir::ValueInfoProto* output = graph_.add_output();
  output->set_name(value.name);
  const bool tensors =
      std::all_of(types.begin(), types.end(), [](const Type& t) { return t.is_tensor(); });
  if (!tensors) return;
  if (types.size() == 1) {
    Encode(types[0], output->add_tensor());
    if (!names.empty()) output->mutable_tensor(0)->set_name(names[0]);
    return;
  }
  EncodeTypes(types, output->mutable_attr_info());
  for (size_t i = 0; i < names.size(); ++i)
    output->mutable_attr_info()->mutable_values(static_cast<int>(i))->set_name(names[i]);
}

Ref FunctionWriter::AddNode(std::string_view what, std::string op_type, const Args& args) {
  std::vector<Ref> inputs;  // constants come before the node
  inputs.reserve(args.size());
  for (const Arg& a : args) {
    if (a.ref() != nullptr) {
      inputs.push_back(*a.ref());
      continue;
    }
    AttributeProto value;
    a.EncodeTo(&value);
    inputs.push_back(ConstantOf(value));
  }
  const uint64_t id = file_.NextId();
  mindir::NodeProto* node = graph_.add_node();
  const Ref self{StrCat(name(), ":", scope_.empty() ? what : std::string_view(scope_), ":", id)};
  node->set_name(self.name);
  node->add_output(self.name);
  node->set_op_type(std::move(op_type));
  node->set_domain(StrCat("Default/", scope_, scope_.empty() ? "" : "/", what, "-op", id));
  for (const Ref& input : inputs) node->add_input(input.name);
  nodes_[self.name] = node;
  return self;
}

Ref FunctionWriter::Op(std::string_view primitive, const Args& args) {
  return AddNode(primitive, "REF::" + file_.PrimitiveFor(primitive, {}, true), args);
}

Ref FunctionWriter::Prim(std::string_view primitive, const PrimAttrs& attrs, const Args& args) {
  return AddNode(primitive,
                 "REF::" + file_.PrimitiveFor(
                               primitive, attrs.empty() ? PlumbingAttrs(primitive) : attrs, false),
                 args);
}

Ref FunctionWriter::Call(const Ref& callee, const Args& args) {
  return AddNode("call", "REF::" + callee.name, args);
}

Ref FunctionWriter::Assign(const Ref& parameter, const Ref& value, const Ref& token) {
  return AddNode("Assign",
                 "REF::" + file_.PrimitiveFor("Assign", {{"side_effect_mem", true}}, true),
                 {parameter, value, token});
}

Ref FunctionWriter::Tuple(std::vector<Ref> elements) {
  return Prim(
      "MakeTuple", {},
      Args(std::make_move_iterator(elements.begin()), std::make_move_iterator(elements.end())));
}

Ref FunctionWriter::Item(const Ref& tuple, size_t index) {
  return Prim("TupleGetItem", {}, {tuple, static_cast<int64_t>(index)});
}

Ref FunctionWriter::ConstantOf(const AttributeProto& value) {
  AttributeProto attribute = value;
  attribute.set_name("value");
  std::string& known = constants_[attribute.SerializeAsString()];
  if (known.empty()) {
    known = StrCat("ValueNode_", file_.NextId());
    mindir::NodeProto* node = graph_.add_node();
    node->set_name(known);
    node->add_output(known);
    node->set_op_type("Constant");
    *node->add_attribute() = std::move(attribute);
  }
  return {known};
}

Ref FunctionWriter::Constant(const ConstTensor& tensor) {
  AttributeProto value;
  value.set_type(AttributeProto::TENSORS);
  TensorProto* data = value.add_tensors();
  data->set_name("value0");
  Encode(tensor.type(), data);
  data->set_raw_data(tensor.bytes.data(), tensor.bytes.size());
  return ConstantOf(value);
}

Ref FunctionWriter::Monad() {
  AttributeProto value;
  value.set_type(AttributeProto::UMONAD);
  return ConstantOf(value);
}

mindir::NodeProto* FunctionWriter::NodeAfter(size_t before, const Ref& value) {
  for (int i = graph_.node_size(); i-- > static_cast<int>(before);) {
    mindir::NodeProto* node = graph_.mutable_node(i);
    if (node->name() == value.name) return node->op_type() == "Constant" ? nullptr : node;
  }
  return nullptr;
}

void FunctionWriter::Describe(const Ref& value, std::span<const Type> types) {
  const auto found = nodes_.find(value.name);
  const bool tensors =
      std::all_of(types.begin(), types.end(), [](const Type& t) { return t.is_tensor(); });
  if (found == nodes_.end() || found->second->attribute_size() != 0 || !tensors) return;
  AttributeProto* shape = found->second->add_attribute();
  shape->set_name("shape");
  EncodeTypes(types, shape);
}

// ---- the file -----------------------------------------------------------------------------------

FileWriter::FileWriter() {
  model_.set_ir_version("1.1");
  model_.set_producer_name("msrt");
  model_.set_model_version("2.10.0");
  model_.set_little_endian(true);
  model_.set_mind_ir_version(3);
}

std::string FileWriter::Unique(std::string name) {
  std::replace(name.begin(), name.end(), ':', '_');
  if (name.empty()) name = "graph";
  if (const int earlier = names_[name]++; earlier > 0) return Unique(StrCat(name, "_", earlier));
  return name;
}

mindir::GraphProto* FileWriter::AddFunction(std::string_view name) {
  mindir::GraphProto* graph = model_.add_functions();
  graph->set_name(Unique(std::string(name)));
  return graph;
}

void FileWriter::NameMain(std::string_view name) { main()->set_name(Unique(std::string(name))); }

Ref FileWriter::AddWeight(std::string_view name, const ConstTensor& tensor) {
  TensorProto* parameter = main()->add_parameter();
  // Weights and inputs share one namespace in MindSpore.
  std::string unique = name.empty() ? "weight" : std::string(name);
  if (const int earlier = names_[StrCat("parameter:", unique)]++; earlier > 0)
    StrAppend(&unique, "_", NextId());
  parameter->set_name(StrCat(main()->name(), ":", unique));
  parameter->set_ref_key(unique);
  Encode(tensor.type(), parameter);
  weights_.push_back({parameter, tensor});
  return {parameter->name()};
}

std::string FileWriter::PrimitiveFor(std::string_view op_type, const PrimAttrs& attrs,
                                     bool function) {
  mindir::PrimitiveProto primitive;
  primitive.set_op_type(std::string(op_type));
  primitive.set_instance_name("");
  primitive.set_prim_type(function ? mindir::PrimitiveProto::PRIMITIVE_FUNCTION
                                   : mindir::PrimitiveProto::PRIMITIVE);
  for (const auto& [name, value] : attrs) {
    AttributeProto* attribute = primitive.add_attribute();
    attribute->set_name(std::string(name));
    value.EncodeTo(attribute);
  }
  std::string& known = primitives_[primitive.SerializeAsString()];
  if (known.empty()) {
    known = StrCat(op_type, ":", NextId());
    primitive.set_name(known);
    *model_.add_primitives() = std::move(primitive);
  }
  return known;
}

}  // namespace msrt::mindir_export
