#include "core/model/load.h"

#include <cstring>

#include "core/model/structure_check.h"

namespace msrt {
namespace {

// Builds the module without checks: Verify has proved that everything is in range.
class ModuleBuilder {
 public:
  explicit ModuleBuilder(const VerifiedModel& model) : model_(model), tables_(model.structure()) {}

  Module Build() {
    Module module;
    module.name = TextOf(tables_.name());
    module.producer = TextOf(tables_.producer());
    for (uint32_t i = 0; i < CountOf(tables_.metadata()); ++i) {
      const fbs::KeyValue* entry = tables_.metadata()->Get(i);
      module.metadata.emplace_back(TextOf(entry->key()), TextOf(entry->value()));
    }
    for (uint32_t i = 0; i < CountOf(tables_.symbols()); ++i)
      module.symbols.emplace_back(TextOf(tables_.symbols()->Get(i)));
    for (uint32_t i = 0; i < CountOf(tables_.types()); ++i)
      types_.push_back(BuildType(*tables_.types()->Get(i)));
    for (uint32_t i = 0; i < CountOf(tables_.constants()); ++i)
      constants_.push_back(BuildConstant(*tables_.constants()->Get(i)));
    for (uint32_t i = 0; i < CountOf(tables_.states()); ++i) {
      const fbs::State* state = tables_.states()->Get(i);
      module.states.push_back({std::string(TextOf(state->name())), types_[state->type()],
                               *constants_[state->initial()],
                               static_cast<StateRole>(state->role())});
    }
    module.graphs.reserve(CountOf(tables_.graphs()));
    for (uint32_t i = 0; i < CountOf(tables_.graphs()); ++i)
      module.graphs.push_back(BuildGraph(*tables_.graphs()->Get(i)));
    const auto entries = SpanOf(tables_.entries());
    module.entries.assign(entries.begin(), entries.end());
    return module;
  }

  // Requires Build first.
  ModelExtras BuildExtras() const {
    ModelExtras extras;
    for (uint32_t i = 0; i < CountOf(tables_.packed()); ++i) {
      const fbs::PackedWeight* packed = tables_.packed()->Get(i);
      const PackingId id{std::string(TextOf(packed->kernel())), std::string(TextOf(packed->isa())),
                         packed->block(), packed->version()};
      extras.packed.push_back({*constants_[packed->constant()],
                               id,
                               {model_.Data(packed->data()), model_.bytes().owner}});
    }
    for (uint32_t i = 0; i < CountOf(tables_.programs()); ++i) {
      const fbs::Program* program = tables_.programs()->Get(i);
      extras.programs.push_back(
          {program->key(), {model_.Data(program->data()), model_.bytes().owner}});
    }
    return extras;
  }

 private:
  Type BuildType(const fbs::Type& type) const {
    Type t;
    t.kind = static_cast<TypeKind>(type.kind());
    switch (t.kind) {
      case TypeKind::kTensor:
        t.dtype = static_cast<DType>(type.dtype());
        t.rank_known = !type.unranked();
        t.dims = Dims(SpanOf(type.dims()));
        break;
      case TypeKind::kList:
        t.element = std::make_shared<const Type>(types_[type.element()]);
        break;
      case TypeKind::kFunction: {
        FunctionSignature signature;
        for (uint32_t i : SpanOf(type.parameters())) signature.parameters.push_back(types_[i]);
        for (uint32_t i : SpanOf(type.results())) signature.results.push_back(types_[i]);
        t.signature = std::make_shared<const FunctionSignature>(std::move(signature));
        break;
      }
    }
    return t;
  }

  std::shared_ptr<const ConstTensor> BuildConstant(const fbs::Constant& constant) const {
    const Type& type = types_[constant.type()];
    return std::make_shared<const ConstTensor>(
        ConstTensor{type.dtype, type.dims, model_.Data(constant.data()), model_.bytes().owner});
  }

  Graph BuildGraph(const fbs::Graph& table) const {
    Graph graph;
    graph.name = TextOf(table.name());
    graph.ReserveValues(CountOf(table.values()));
    for (uint32_t v = 0; v < CountOf(table.values()); ++v) {
      const fbs::Value* value = table.values()->Get(v);
      const bool typed = value->type() != kNoIndex;
      const ValueId id = graph.AddValue(std::string(TextOf(value->name())),
                                        typed ? types_[value->type()] : UndeclaredType());
      if (value->constant() != kNoIndex) graph.value(id).constant = constants_[value->constant()];
    }
    graph.inputs = BuildIds(table.inputs());
    graph.outputs = BuildIds(table.outputs());
    graph.nodes.reserve(CountOf(table.nodes()));
    for (uint32_t n = 0; n < CountOf(table.nodes()); ++n)
      graph.nodes.push_back(BuildNode(*table.nodes()->Get(n)));
    return graph;
  }

  static std::vector<ValueId> BuildIds(const flatbuffers::Vector<uint32_t>* ids) {
    std::vector<ValueId> out;
    out.reserve(CountOf(ids));
    for (uint32_t id : SpanOf(ids)) out.push_back(ValueId(id));
    return out;
  }

  Node BuildNode(const fbs::Node& table) const {
    const fbs::Op* op = tables_.ops()->Get(table.op());
    Node node;
    node.name = TextOf(table.name());
    node.domain = TextOf(op->domain());
    node.op = TextOf(op->name());
    node.version = op->version();
    node.inputs = BuildIds(table.inputs());
    node.outputs = BuildIds(table.outputs());
    std::vector<Attr> attrs;
    attrs.reserve(CountOf(table.attrs()));
    for (uint32_t i = 0; i < CountOf(table.attrs()); ++i) {
      const fbs::Attr* attr = table.attrs()->Get(i);
      attrs.push_back({std::string(TextOf(attr->name())), BuildAttr(*attr)});
    }
    node.attrs = AttrList(std::move(attrs));
    return node;
  }

  AttrValue BuildAttr(const fbs::Attr& attr) const {
    const auto ints = SpanOf(attr.ints());
    const auto floats = SpanOf(attr.floats());
    switch (static_cast<AttrKind>(attr.kind())) {
      case AttrKind::kInt:
        return attr.i();
      case AttrKind::kFloat:
        return *attr.f();
      case AttrKind::kString:
        return std::string(TextOf(attr.s()));
      case AttrKind::kInts:
        return std::vector<int64_t>(ints.begin(), ints.end());
      case AttrKind::kFloats:
        return std::vector<double>(floats.begin(), floats.end());
      case AttrKind::kStrings: {
        std::vector<std::string> strings;
        for (uint32_t i = 0; i < CountOf(attr.strings()); ++i)
          strings.emplace_back(TextOf(attr.strings()->Get(i)->value()));
        return strings;
      }
      case AttrKind::kDType:
        return static_cast<DType>(attr.i());
      case AttrKind::kTensor:
        return *constants_[static_cast<size_t>(attr.i())];
      case AttrKind::kGraph:
        return GraphRef{static_cast<uint32_t>(attr.i())};
      case AttrKind::kGraphs: {
        std::vector<GraphRef> graphs;
        for (int64_t i : ints) graphs.push_back({static_cast<uint32_t>(i)});
        return graphs;
      }
    }
    return int64_t{0};  // not reached: Verify knows the kinds
  }

  const VerifiedModel& model_;
  const fbs::Model& tables_;
  std::vector<Type> types_;
  std::vector<std::shared_ptr<const ConstTensor>> constants_;
};

// Bytes from a caller's buffer may begin anywhere; kernels and FlatBuffers need them aligned.
Result<Bytes> Aligned(Bytes bytes) {
  if (reinterpret_cast<uintptr_t>(bytes.data.data()) % kDataAlignment == 0) return bytes;
  MSRT_ASSIGN_OR_RETURN(Block block, Block::Make(DefaultAllocator(), bytes.data.size(),
                                                 "an aligned copy of the model"));
  std::memcpy(block.data(), bytes.data.data(), bytes.data.size());
  auto owner = std::make_shared<Block>(std::move(block));
  const std::span<const std::byte> data{owner->data(), owner->bytes()};
  return Bytes{data, std::move(owner)};
}

}  // namespace

Module BuildModule(const VerifiedModel& model, ModelExtras* extras) {
  ModuleBuilder builder(model);
  Module module = builder.Build();
  if (extras != nullptr) *extras = builder.BuildExtras();
  return module;
}

Result<Module> Load(Bytes bytes, const Limits& limits, ModelExtras* extras) {
  MSRT_ASSIGN_OR_RETURN(Bytes aligned, Aligned(std::move(bytes)));
  MSRT_ASSIGN_OR_RETURN(const VerifiedModel model, Verify(std::move(aligned), limits));
  return BuildModule(model, extras);
}

Result<Module> LoadFile(Io* io, const std::string& path, const LoadOptions& options,
                        ModelExtras* extras) {
  Allocator* allocator = options.allocator != nullptr ? options.allocator : DefaultAllocator();
  MSRT_ASSIGN_OR_RETURN(Bytes bytes,
                        options.by_copy ? io->ReadFile(path, allocator) : io->MapFile(path));
  Result<Module> module = Load(std::move(bytes), options.limits, extras);
  if (!module.ok()) return std::move(module).status().Within(StrCat("file '", path, "'"));
  return module;
}

}  // namespace msrt
