#include "core/model/sample_models.h"

#include <cstdlib>
#include <cstring>
#include <numeric>

namespace msrt {
namespace {

ConstTensor Ramp(Dims dims, float first) {
  std::vector<float> values(static_cast<size_t>(dims.elements()));
  std::iota(values.begin(), values.end(), first);
  return ConstTensor::Floats(dims, values);
}

Type ListOf(Type element) {
  Type t;
  t.kind = TypeKind::kList;
  t.element = std::make_shared<const Type>(std::move(element));
  return t;
}

Type FunctionOf(std::vector<Type> parameters, std::vector<Type> results) {
  Type t;
  t.kind = TypeKind::kFunction;
  t.signature = std::make_shared<const FunctionSignature>(
      FunctionSignature{std::move(parameters), std::move(results)});
  return t;
}

Node MakeNode(std::string name, std::string domain, std::string op, std::vector<ValueId> inputs,
              std::vector<ValueId> outputs, AttrList attrs = {}) {
  Node node;
  node.name = std::move(name);
  node.domain = std::move(domain);
  node.op = std::move(op);
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  node.attrs = std::move(attrs);
  return node;
}

Graph MainGraph(Module* module) {
  const int64_t batch = module->SymbolFor("batch"), length = module->SymbolFor("length");
  Graph g;
  g.name = "main";
  const ValueId x = g.AddInput("x", Type::Tensor(DType::kF32, {batch, 4}));
  const ValueId tokens =
      g.AddInput("tokens", Type::Tensor(DType::kI64, {batch, length, kUnknownDim}));
  const ValueId any = g.AddInput("any", Type::UnrankedTensor(DType::kU8));
  const ValueId w = g.AddConstant("w", Ramp({4, 4}, 1));
  const ValueId w_again = g.AddConstant("w_again", Ramp({4, 4}, 1));
  const ValueId w_flat = g.AddConstant("w_flat", Ramp({16}, 1));
  const ValueId empty = g.AddConstant("empty", ConstTensor::Floats({0, 3}, {}));
  const uint8_t nibbles[] = {0x21, 0x03};
  const ValueId four_bit =
      g.AddConstant("four_bit", ConstTensor::Of<uint8_t>(DType::kI4, {3}, nibbles));
  const ValueId h = g.AddValue("h", UndeclaredType());
  const ValueId list = g.AddValue("list", ListOf(ListOf(Type::Tensor(DType::kBF16, {2, length}))));
  const ValueId function = g.AddValue("function", FunctionOf({Type::Tensor(DType::kF32, {batch, 4}),
                                                              ListOf(Type::Tensor(DType::kI8, {}))},
                                                             {Type::UnrankedTensor(DType::kF16)}));
  const ValueId y = g.AddValue("y", Type::Tensor(DType::kF32, {batch, 4}));
  g.nodes.push_back(MakeNode("product", "", "MatMul", {x, w}, {h}));
  g.nodes.push_back(MakeNode("widget", "test", "Widget",
                             {h, kNoValue, tokens, any, w_again, w_flat, empty, four_bit},
                             {list, kNoValue, function, y},
                             {{"int", int64_t{-7}},
                              {"zero", int64_t{0}},
                              {"float", 0.1},
                              {"negative_zero", -0.0},
                              {"string", std::string("grün")},
                              {"empty_string", std::string()},
                              {"ints", std::vector<int64_t>{1, -2, INT64_MAX}},
                              {"no_ints", std::vector<int64_t>{}},
                              {"floats", std::vector<double>{0.5, -1e300}},
                              {"strings", std::vector<std::string>{"a", "", "c"}},
                              {"dtype", DType::kF8E4M3FN},
                              {"no_dtype", DType::kNone},
                              {"tensor", Ramp({2, 2}, 5)},
                              {"graph", GraphRef{1}},
                              {"graphs", std::vector<GraphRef>{{2}, {1}}}}));
  g.nodes.back().version = 3;
  g.outputs = {y, h, x};
  return g;
}

// A graph that refers to itself: the format allows it, the depth is limited when it runs.
Graph RecursiveGraph(const Module& module) {
  Graph g;
  g.name = "body";
  const ValueId x = g.AddInput("x", Type::Tensor(DType::kF32, {SymbolDim(0), 4}));
  const ValueId y = g.AddValue("", Type::Tensor(DType::kF32, {SymbolDim(0), 4}));
  g.nodes.push_back(MakeNode("", "test", "Recurse", {x}, {y},
                             {{"body", GraphRef{static_cast<uint32_t>(module.graphs.size())}}}));
  g.outputs = {y};
  return g;
}

}  // namespace

Module EverythingModule() {
  Module m;
  m.name = "everything";
  m.producer = "sample_models";
  m.metadata = {{"author", "nobody"}, {"author", ""}, {"", "a value\nof two lines"}};
  m.graphs.push_back(MainGraph(&m));
  m.graphs.push_back(RecursiveGraph(m));
  Graph empty;
  empty.name = "nothing";
  m.graphs.push_back(empty);
  m.entries = {0, 2};
  m.states.push_back(
      {"cache", Type::Tensor(DType::kF32, {SymbolDim(1), 2}), ConstTensor::Floats({0, 2}, {})});
  m.states.push_back({"count", Type::Tensor(DType::kI64, {}),
                      ConstTensor::Of<int64_t>(DType::kI64, {}, std::vector<int64_t>{42})});
  const Type pair = Type::Tensor(DType::kF32, {2});
  m.states.push_back({"weight", pair, Ramp({2}, 1), StateRole::kParameter});
  m.states.push_back({"momentum", pair, Ramp({2}, 0), StateRole::kOptimizer});
  m.states.push_back({"mean", pair, Ramp({2}, -1), StateRole::kStatistic});
  return m;
}

ModelExtras EverythingExtras() {
  ModelExtras extras;
  const ConstTensor packed = Ramp({32}, 100), program = ConstTensor::Of<uint8_t>(
                                                  DType::kU8, {3}, std::vector<uint8_t>{1, 2, 3});
  extras.packed.push_back({Ramp({4, 4}, 1), {"gemm", "avx2", 8, 2}, {packed.bytes, packed.owner}});
  extras.programs.push_back({0x1234567890abcdef, {program.bytes, program.owner}});
  return extras;
}

Module KnownOpsModule() {
  Module m;
  m.name = "known";
  m.producer = "sample_models";
  const int64_t rows = m.SymbolFor("rows");
  m.states.push_back(
      {"last", Type::Tensor(DType::kF32, {kUnknownDim, 3}), ConstTensor::Floats({0, 3}, {})});
  Graph g;
  g.name = "main";
  const ValueId x = g.AddInput("x", Type::Tensor(DType::kF32, {rows, 5}));
  const ValueId w = g.AddConstant("w", Ramp({5, 3}, -7));
  const ValueId h = g.AddValue("h", UndeclaredType()), p = g.AddValue("p", UndeclaredType()),
                sum = g.AddValue("sum", UndeclaredType());
  const ValueId last = g.AddValue("last", UndeclaredType());
  g.nodes.push_back(MakeNode("product", "", "MatMul", {x, w}, {h}));
  g.nodes.push_back(MakeNode("softmax", "", "Softmax", {h}, {p}, {{"axis", int64_t{-1}}}));
  g.nodes.push_back(MakeNode("sum", "", "ReduceSum", {p}, {sum},
                             {{"axes", std::vector<int64_t>{0}}, {"keepdims", int64_t{0}}}));
  g.nodes.push_back(MakeNode(
      "read", "msrt", "StateRead", {}, {last},
      {{"slot", int64_t{0}}, {"dtype", DType::kF32}, {"dims", std::vector<int64_t>{-1, 3}}}));
  g.nodes.push_back(MakeNode("write", "msrt", "StateWrite", {p}, {}, {{"slot", int64_t{0}}}));
  g.outputs = {sum, last};
  m.graphs.push_back(std::move(g));
  m.entries = {0};
  return m;
}

Module ChainModule(size_t nodes) {
  Module m;
  m.name = "chain";
  const int64_t batch = m.SymbolFor("batch");
  Graph g;
  g.name = "main";
  const Type image = Type::Tensor(DType::kF32, {batch, 8, 32, 32});
  ValueId x = g.AddInput("x", image);
  for (size_t n = 0; n < nodes; ++n) {
    const ValueId y = g.AddValue(StrCat("block", n / 4, "/output_", n), image);
    std::string name = StrCat("block", n / 4, "/node_", n);
    if (n % 4 == 0) {
      const ValueId w = g.AddConstant(StrCat("block", n / 4, "/weight"),
                                      Ramp({8, 8, 3, 3}, static_cast<float>(n % 64)));
      g.nodes.push_back(MakeNode(std::move(name), "", "Conv", {x, w}, {y},
                                 {{"dilations", std::vector<int64_t>{1, 1}},
                                  {"group", int64_t{1}},
                                  {"kernel_shape", std::vector<int64_t>{3, 3}},
                                  {"pads", std::vector<int64_t>{1, 1, 1, 1}},
                                  {"strides", std::vector<int64_t>{1, 1}}}));
    } else if (n % 4 == 1) {
      const ValueId scale =
          g.AddConstant(StrCat("block", n / 4, "/scale"), Ramp({8}, static_cast<float>(n % 64)));
      g.nodes.push_back(MakeNode(std::move(name), "", "BatchNormalization",
                                 {x, scale, scale, scale, scale}, {y}, {{"epsilon", 1e-5}}));
    } else {
      g.nodes.push_back(MakeNode(std::move(name), "", n % 4 == 2 ? "Relu" : "Add",
                                 n % 4 == 2 ? std::vector{x} : std::vector{x, x}, {y}));
    }
    x = y;
  }
  g.outputs = {x};
  m.graphs.push_back(std::move(g));
  m.entries = {0};
  return m;
}

Bytes AlignedCopy(std::span<const std::byte> file) {
  void* p = nullptr;
  MSRT_CHECK(posix_memalign(&p, kDataAlignment, std::max<size_t>(file.size(), 1)) == 0);
  if (!file.empty()) std::memcpy(p, file.data(), file.size());
  std::shared_ptr<const void> owner(p, [](const void* q) { std::free(const_cast<void*>(q)); });
  return {{static_cast<const std::byte*>(p), file.size()}, std::move(owner)};
}

void Reseal(std::vector<std::byte>* file) {
  auto header = DecodeHeader(*file);
  MSRT_CHECK(header.ok());
  const std::span<const std::byte> bytes = *file;
  header->hash = HashOf(bytes.first<kHeaderBytes>(),
                        bytes.subspan(header->structure_offset, header->structure_bytes));
  const HeaderBytes encoded = EncodeHeader(*header);
  std::copy(encoded.end() - 8, encoded.end(), file->begin() + kHeaderBytes - 8);
}

}  // namespace msrt
