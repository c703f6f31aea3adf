// Files that are wrong, each in one way. Each must be refused with its code and a message that
// names the object, and none may crash, hang or allocate much memory. Also every prefix and every
// single-bit flip of a good file.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>

#include "core/base/checked_math.h"
#include "core/model/load.h"
#include "core/model/model_generated.h"
#include "core/model/sample_models.h"
#include "core/model/verify.h"
#include "core/model/write.h"
#include "ops/validate.h"

namespace msrt {
namespace {

std::vector<std::byte> GoodFile() {
  const ModelExtras extras = EverythingExtras();
  auto file = SerializeModel(EverythingModule(), {.extras = &extras});
  MSRT_CHECK(file.ok());
  return *std::move(file);
}

fbs::ModelT TablesOf(std::span<const std::byte> file) {
  fbs::ModelT tables;
  flatbuffers::GetRoot<fbs::Model>(file.data() + kHeaderBytes)->UnPackTo(&tables);
  return tables;
}

// A file with these tables, the segments of the good file, and a header that fits them.
std::vector<std::byte> FileOf(const fbs::ModelT& tables) {
  std::vector<std::byte> file = GoodFile();
  const uint64_t first_segment =
      AlignUp(kHeaderBytes + DecodeHeader(file)->structure_bytes, kSegmentAlignment);
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(fbs::Model::Pack(builder, &tables));
  MSRT_CHECK(kHeaderBytes + builder.GetSize() <= first_segment);
  std::fill(file.begin() + kHeaderBytes, file.begin() + static_cast<std::ptrdiff_t>(first_segment),
            std::byte{0});
  std::memcpy(file.data() + kHeaderBytes, builder.GetBufferPointer(), builder.GetSize());
  Header header;
  header.file_bytes = file.size();
  header.structure_bytes = builder.GetSize();
  const HeaderBytes bytes = EncodeHeader(header);
  std::copy(bytes.begin(), bytes.end(), file.begin());
  Reseal(&file);
  return file;
}

void ExpectRefused(std::span<const std::byte> file, Code code, std::string_view fragment,
                   const Limits& limits = {}) {
  const Status status = Load(AlignedCopy(file), limits).status();
  EXPECT_EQ(CodeName(status.code()), CodeName(code)) << status.message();
  EXPECT_NE(status.message().find(fragment), std::string::npos)
      << "'" << status.message() << "' does not contain '" << fragment << "'";
}

// ---- tables -------------------------------------------------------------------------------------

struct BadTables {
  const char* name;
  Code code;
  const char* fragment;
  void (*edit)(fbs::ModelT&);
};

constexpr auto kBad = Code::kInvalidModel;
constexpr auto kLimit = Code::kLimitExceeded;

fbs::NodeT& NodeAt(fbs::ModelT& m, size_t n) { return *m.graphs[0]->nodes[n]; }
fbs::ValueT& ValueAt(fbs::ModelT& m, size_t v) { return *m.graphs[0]->values[v]; }
fbs::AttrT& AttrNamed(fbs::ModelT& m, std::string_view name) {
  for (auto& attr : NodeAt(m, 1).attrs) {
    if (attr->name == name) return *attr;
  }
  MSRT_CHECK(false);
}
fbs::TypeT& TypeOfKind(fbs::ModelT& m, uint8_t kind) {
  for (auto& type : m.types) {
    if (type->kind == kind) return *type;
  }
  MSRT_CHECK(false);
}
fbs::TypeT& TypeOfValue(fbs::ModelT& m, size_t v) { return *m.types[ValueAt(m, v).type]; }
fbs::TypeT& NewType(fbs::ModelT& m, uint8_t kind) {
  m.types.push_back(std::make_unique<fbs::TypeT>());
  m.types.back()->kind = kind;
  return *m.types.back();
}

// Values of graph 0: 0 x, 1 tokens, 2 any, 3 w, 4 w_again, 5 w_flat, 6 empty, 7 four_bit, 8 h, 9
// list, 10 function, 11 y.
constexpr BadTables kBadTables[] = {
    // Features and texts.
    {"Feature", Code::kUnsupported, "requires the feature 'time_travel'",
     [](fbs::ModelT& m) { m.required_features = {"time_travel"}; }},
    {"FeatureWithControl", kBad, "required feature: name contains a control",
     [](fbs::ModelT& m) { m.required_features = {"a\x1b[31m"}; }},
    {"ModuleNameNotUtf8", kBad, "module name: text is not UTF-8",
     [](fbs::ModelT& m) { m.name = "\xff\xfe"; }},
    {"NameOverlong", kBad, "graph 0: text is not UTF-8",
     [](fbs::ModelT& m) { m.graphs[0]->name = "\xc0\xaf"; }},
    {"NameSurrogate", kBad, "graph 0: text is not UTF-8",
     [](fbs::ModelT& m) { m.graphs[0]->name = "\xed\xa0\x80"; }},
    {"NameBeyondUnicode", kBad, "graph 0: text is not UTF-8",
     [](fbs::ModelT& m) { m.graphs[0]->name = "\xf4\x90\x80\x80"; }},
    {"NameCutShort", kBad, "graph 0: text is not UTF-8",
     [](fbs::ModelT& m) { m.graphs[0]->name = "a\xe2\x82"; }},
    {"ProducerWithNul", kBad, "producer: name contains a control",
     [](fbs::ModelT& m) { m.producer = std::string("a\0b", 3); }},
    {"MetadataKey", kBad, "metadata 1: name contains",
     [](fbs::ModelT& m) { m.metadata[1]->key = "\n"; }},
    {"MetadataValue", kBad, "metadata 0: text is not UTF-8",
     [](fbs::ModelT& m) { m.metadata[0]->value = "\x80"; }},
    {"NodeName", kBad, "graph 0 'main': node 0: name contains",
     [](fbs::ModelT& m) { NodeAt(m, 0).name = "a\tb"; }},
    {"ValueName", kBad, "graph 0 'main': value 3: name contains",
     [](fbs::ModelT& m) { ValueAt(m, 3).name = "\x7f"; }},

    // Segments and data.
    {"SegmentInStructure", kBad, "segment 0: begins at byte 64",
     [](fbs::ModelT& m) { m.segments[0]->offset = 64; }},
    {"SegmentUnaligned", kBad, "segment 0: begins at byte 4097",
     [](fbs::ModelT& m) { m.segments[0]->offset += 1; }},
    {"SegmentGap", kBad, "segment 1: begins at byte",
     [](fbs::ModelT& m) { m.segments[1]->offset += 4096; }},
    {"SegmentsOverlap", kBad, "segment 1: begins at byte 4096",
     [](fbs::ModelT& m) { m.segments[1]->offset = m.segments[0]->offset; }},
    {"SegmentTooLong", kBad, "end beyond the file",
     [](fbs::ModelT& m) { m.segments[2]->bytes = 1 << 20; }},
    {"SegmentWraps", kBad, "end beyond the file",
     [](fbs::ModelT& m) { m.segments[2]->bytes = UINT64_MAX - 4095; }},
    {"SegmentOffsetWraps", kBad, "segment 1: begins at byte",
     [](fbs::ModelT& m) { m.segments[1]->offset = UINT64_MAX - 4095; }},
    {"SegmentsWrapToTheFirst", kBad, "end beyond the file",
     [](fbs::ModelT& m) { m.segments[0]->bytes = uint64_t{0} - m.segments[0]->offset; }},
    {"SegmentTooShort", kBad, "structure and segments end at byte",
     [](fbs::ModelT& m) { m.segments[2]->bytes -= 1; }},
    {"SegmentMissing", kBad, "structure and segments end at byte",
     [](fbs::ModelT& m) {
       m.segments.pop_back();
       m.programs.clear();
       m.data.pop_back();
     }},
    {"SegmentAlignment", kBad, "segment 0: alignment 2^63",
     [](fbs::ModelT& m) { m.segments[0]->alignment_log2 = 63; }},
    {"SegmentAlignmentZero", kBad, "segment 0: alignment 2^0",
     [](fbs::ModelT& m) { m.segments[0]->alignment_log2 = 0; }},
    {"DataSegment", kBad, "data 0: segment 9 does not exist",
     [](fbs::ModelT& m) { m.data[0]->segment = 9; }},
    {"DataUnaligned", kBad, "data 1: offset", [](fbs::ModelT& m) { m.data[1]->offset += 8; }},
    {"DataOverlap", kBad, "data 2: byte",
     [](fbs::ModelT& m) { m.data[2]->offset = m.data[1]->offset; }},
    {"DataOrder", kBad, "must be in order",
     [](fbs::ModelT& m) { std::swap(m.data[0], m.data.back()); }},
    {"DataTooLong", kBad, "data 5: ", [](fbs::ModelT& m) { m.data[5]->bytes = UINT64_MAX; }},
    {"DataBeyond", kBad, "end beyond segment 0",
     [](fbs::ModelT& m) { m.data[4]->offset = UINT64_MAX - 63; }},
    {"DataWrapsToItsEnd", kBad, "end beyond segment 0",
     [](fbs::ModelT& m) { m.data[4]->bytes = uint64_t{64} - m.data[4]->offset; }},
    {"DataWrapsToZero", kBad, "end beyond segment 0",
     [](fbs::ModelT& m) { m.data[3]->bytes = uint64_t{0} - m.data[3]->offset; }},
    {"DataBeginsAtTheEnd", kBad, "end beyond segment 0",
     [](fbs::ModelT& m) { m.data[4]->offset = m.segments[0]->bytes / 64 * 64 + 64; }},

    // Symbols and types.
    {"SymbolUnnamed", kBad, "symbol 1: has no name", [](fbs::ModelT& m) { m.symbols[1] = ""; }},
    {"SymbolTwice", kBad, "symbols: the name 'batch' is used twice",
     [](fbs::ModelT& m) { m.symbols[1] = "batch"; }},
    {"SymbolOutOfRange", kBad, "is symbol 1, there are 1",
     [](fbs::ModelT& m) { m.symbols.pop_back(); }},
    {"SymbolFarOutOfRange", kBad, "dim 0 is symbol 9223372036854775806",
     [](fbs::ModelT& m) { TypeOfValue(m, 0).dims[0] = INT64_MIN + 1; }},
    {"TypeKind", kBad, "kind 3 is unknown", [](fbs::ModelT& m) { m.types[0]->kind = 3; }},
    {"ElementTypeNone", kBad, "element type 0 is unknown",
     [](fbs::ModelT& m) { TypeOfValue(m, 0).dtype = 0; }},
    {"ElementTypeUnknown", kBad, "element type 21 is unknown",
     [](fbs::ModelT& m) { TypeOfValue(m, 0).dtype = 21; }},
    {"RankTooHigh", kBad, "rank 9", [](fbs::ModelT& m) { TypeOfValue(m, 0).dims.assign(9, 1); }},
    {"UnrankedWithDims", kBad, "has dims though its rank is unknown",
     [](fbs::ModelT& m) { TypeOfValue(m, 2).dims = {1}; }},
    {"TooManyElements", kBad, "more than 2^56 elements",
     [](fbs::ModelT& m) { TypeOfValue(m, 0).dims.assign(8, int64_t{1} << 32); }},
    {"ElementsWrapToZero", kBad, "more than 2^56 elements",
     [](fbs::ModelT& m) {
       TypeOfValue(m, 3).dims = {int64_t{1} << 32, int64_t{1} << 32, 0};
     }},
    {"DimTooLarge", kLimit, "dim 0 is 1099511627777",
     [](fbs::ModelT& m) { TypeOfValue(m, 0).dims[0] = (int64_t{1} << 40) + 1; }},
    {"ListOfNothing", kBad, "refers to type 4294967295",
     [](fbs::ModelT& m) { TypeOfKind(m, 1).element = UINT32_MAX; }},
    {"ListOfItself", kBad, "must refer to a type before it",
     [](fbs::ModelT& m) { NewType(m, 1).element = static_cast<uint32_t>(m.types.size()); }},
    {"FunctionOfLater", kBad, "must refer to a type before it",
     [](fbs::ModelT& m) { TypeOfKind(m, 2).parameters[0] = 100; }},
    {"FunctionReturnsLater", kBad, "must refer to a type before it",
     [](fbs::ModelT& m) { TypeOfKind(m, 2).results[0] = 100; }},
    {"TypeBomb", kLimit, "has more than 1024 parts",
     [](fbs::ModelT& m) {
       for (int i = 0; i < 12; ++i) {
         const auto last = static_cast<uint32_t>(m.types.size() - 1);
         NewType(m, 2).parameters = {last, last};
       }
     }},

    // Constants.
    {"ConstantType", kBad, "constant 0: type 77 does not exist",
     [](fbs::ModelT& m) { m.constants[0]->type = 77; }},
    {"ConstantData", kBad, "constant 1: data 77 does not exist",
     [](fbs::ModelT& m) { m.constants[1]->data = 77; }},
    {"ConstantSymbolic", kBad, "not a tensor with known dims",
     [](fbs::ModelT& m) { m.constants[2]->type = ValueAt(m, 0).type; }},
    {"ConstantUnranked", kBad, "not a tensor with known dims",
     [](fbs::ModelT& m) { m.constants[2]->type = ValueAt(m, 2).type; }},
    {"ConstantList", kBad, "not a tensor with known dims",
     [](fbs::ModelT& m) { m.constants[2]->type = ValueAt(m, 9).type; }},
    {"ConstantTooFewBytes", kBad, "needs 68 bytes, its data has 64",
     [](fbs::ModelT& m) { TypeOfValue(m, 5).dims = {17}; }},
    {"ConstantTooManyBytes", kBad, "needs 60 bytes, its data has 64",
     [](fbs::ModelT& m) { TypeOfValue(m, 5).dims = {15}; }},
    {"ConstantEmptyWithData", kBad, "needs 0 bytes",
     [](fbs::ModelT& m) { TypeOfValue(m, 5).dims = {0}; }},
    {"FourBitsTooFew", kBad, "needs 3 bytes, its data has 2",
     [](fbs::ModelT& m) { TypeOfValue(m, 7).dims = {5}; }},
    {"ConstantOfOtherType", kBad, "value 3 'w': its type is not that of its constant",
     [](fbs::ModelT& m) { ValueAt(m, 3).type = ValueAt(m, 5).type; }},
    {"ConstantUntyped", kBad, "value 3 'w': its type is not that of its constant",
     [](fbs::ModelT& m) { ValueAt(m, 3).type = UINT32_MAX; }},

    // Ops, states, extras.
    {"OpUnnamed", kBad, "op 0: has no name", [](fbs::ModelT& m) { m.ops[0]->name = ""; }},
    {"OpVersion", kBad, "op 1 'Widget': version -1 is negative",
     [](fbs::ModelT& m) { m.ops[1]->version = -1; }},
    {"OpDomain", kBad, "op 1: name contains", [](fbs::ModelT& m) { m.ops[1]->domain = "a\nb"; }},
    {"StateUnnamed", kBad, "state 0: has no name", [](fbs::ModelT& m) { m.states[0]->name = ""; }},
    {"StateTwice", kBad, "states: the name 'cache' is used twice",
     [](fbs::ModelT& m) { m.states[1]->name = "cache"; }},
    {"StateType", kBad, "state 0 'cache': type 99 does not exist",
     [](fbs::ModelT& m) { m.states[0]->type = 99; }},
    {"StateList", kBad, "state 0 'cache': is not a tensor",
     [](fbs::ModelT& m) { m.states[0]->type = ValueAt(m, 9).type; }},
    {"StateInitial", kBad, "state 1 'count': constant 99 does not exist",
     [](fbs::ModelT& m) { m.states[1]->initial = 99; }},
    {"StateElementType", kBad, "has element type f32, its initial data i64",
     [](fbs::ModelT& m) { m.states[0]->initial = m.states[1]->initial; }},
    {"StateRole", Code::kUnsupported, "state 1 'count': role 4 is not known",
     [](fbs::ModelT& m) { m.states[1]->role = 4; }},
    {"StateRoleOfAllBits", Code::kUnsupported, "state 2 'weight': role 255 is not known",
     [](fbs::ModelT& m) { m.states[2]->role = 255; }},
    {"StateDims", kBad, "has dims [s1, 2], its initial data [0, 3]",
     [](fbs::ModelT& m) { m.states[0]->initial = ValueAt(m, 6).constant; }},
    {"StateRank", kBad, "has dims [s1, 2], its initial data [16]",
     [](fbs::ModelT& m) { m.states[0]->initial = ValueAt(m, 5).constant; }},
    {"PackedConstant", kBad, "packed weight 0: constant 99",
     [](fbs::ModelT& m) { m.packed[0]->constant = 99; }},
    {"PackedData", kBad, "packed weight 0: data 99",
     [](fbs::ModelT& m) { m.packed[0]->data = 99; }},
    {"PackedKernel", kBad, "packed weight 0: name contains",
     [](fbs::ModelT& m) { m.packed[0]->kernel = "\x01"; }},
    {"ProgramData", kBad, "program 0: data 99", [](fbs::ModelT& m) { m.programs[0]->data = 99; }},

    // Graphs and nodes.
    {"NoEntry", kBad, "the model has no entry", [](fbs::ModelT& m) { m.entries.clear(); }},
    {"NoGraph", kBad, "entries: graph 0 does not exist", [](fbs::ModelT& m) { m.graphs.clear(); }},
    {"EntryOutOfRange", kBad, "entries: graph 3 does not exist, there are 3",
     [](fbs::ModelT& m) { m.entries[1] = 3; }},
    {"EntryTwice", kBad, "entries: graph 0 is named twice",
     [](fbs::ModelT& m) { m.entries[1] = 0; }},
    {"ValueType", kBad, "graph 0 'main': value 0 'x': type 99 does not exist",
     [](fbs::ModelT& m) { ValueAt(m, 0).type = 99; }},
    {"ValueConstant", kBad, "value 3 'w': constant 99 does not exist",
     [](fbs::ModelT& m) { ValueAt(m, 3).constant = 99; }},
    {"NodeOp", kBad, "node 0 'product' (?): op 99 does not exist",
     [](fbs::ModelT& m) { NodeAt(m, 0).op = 99; }},
    {"InputOutOfRange", kBad,
     "node 0 'product' (MatMul): input 1 is value 12, the graph has 12 values",
     [](fbs::ModelT& m) { NodeAt(m, 0).inputs[1] = 12; }},
    {"OutputOutOfRange", kBad, "node 0 'product' (MatMul): output 0 is value 4000000000",
     [](fbs::ModelT& m) { NodeAt(m, 0).outputs[0] = 4000000000; }},
    {"TwoProducers", kBad,
     "node 1 'widget' (test.Widget): output 3 is value 8 'h', which node 0 'product' (MatMul) "
     "already defines",
     [](fbs::ModelT& m) { NodeAt(m, 1).outputs[3] = 8; }},
    {"OutputTwiceInNode", kBad, "which node 1 'widget' (test.Widget) already defines",
     [](fbs::ModelT& m) { NodeAt(m, 1).outputs[1] = 9; }},
    {"OutputIsConstant", kBad, "output 0 is value 3 'w', which a constant already defines",
     [](fbs::ModelT& m) { NodeAt(m, 0).outputs[0] = 3; }},
    {"OutputIsInput", kBad, "output 0 is value 0 'x', which an input of the graph already defines",
     [](fbs::ModelT& m) { NodeAt(m, 0).outputs[0] = 0; }},
    {"Order", kBad, "node 0 'widget' (test.Widget): input 0 is value 8 'h', which no earlier node",
     [](fbs::ModelT& m) { std::swap(m.graphs[0]->nodes[0], m.graphs[0]->nodes[1]); }},
    {"UsesItself", kBad, "node 0 'product' (MatMul): input 0 is value 8 'h', which no earlier",
     [](fbs::ModelT& m) { NodeAt(m, 0).inputs[0] = 8; }},
    {"GraphInputOutOfRange", kBad, "graph 0 'main': input 0 is value 50",
     [](fbs::ModelT& m) { m.graphs[0]->inputs[0] = 50; }},
    {"GraphInputNone", kBad, "graph 0 'main': input 0 is value 4294967295",
     [](fbs::ModelT& m) { m.graphs[0]->inputs[0] = UINT32_MAX; }},
    {"GraphInputTwice", kBad, "input 1 is value 0 'x', which an input of the graph already defines",
     [](fbs::ModelT& m) { m.graphs[0]->inputs[1] = 0; }},
    {"GraphInputConstant", kBad, "input 1 is value 3 'w', which a constant already defines",
     [](fbs::ModelT& m) { m.graphs[0]->inputs[1] = 3; }},
    {"GraphOutputOutOfRange", kBad, "graph 1 'body': output 0 is value 2",
     [](fbs::ModelT& m) { m.graphs[1]->outputs[0] = 2; }},
    {"GraphOutputNone", kBad, "output 0 is value 4294967295",
     [](fbs::ModelT& m) { m.graphs[1]->outputs[0] = UINT32_MAX; }},
    {"GraphOutputWithoutSource", kBad, "graph 1 'body': output 0 is value 1 '', which no node",
     [](fbs::ModelT& m) { m.graphs[1]->nodes.clear(); }},

    // Attributes.
    {"AttrUnnamed", kBad, "node 1 'widget' (test.Widget): attribute 2: has no name",
     [](fbs::ModelT& m) { NodeAt(m, 1).attrs[2]->name = ""; }},
    {"AttrTwice", kBad, "attribute 'int' is given twice",
     [](fbs::ModelT& m) { NodeAt(m, 1).attrs[3]->name = "int"; }},
    {"AttrKind", kBad, "attribute 'int': kind 10 is unknown",
     [](fbs::ModelT& m) { AttrNamed(m, "int").kind = 10; }},
    {"AttrFloatMissing", kBad, "attribute 'float': is a float without a value",
     [](fbs::ModelT& m) { AttrNamed(m, "float").f = flatbuffers::nullopt; }},
    {"AttrStringNotUtf8", kBad, "attribute 'string': text is not UTF-8",
     [](fbs::ModelT& m) { AttrNamed(m, "string").s = "\xc3"; }},
    {"AttrStringsNotUtf8", kBad, "attribute 'strings': text is not UTF-8",
     [](fbs::ModelT& m) { AttrNamed(m, "strings").strings[1]->value = "\xc3"; }},
    {"AttrElementType", kBad, "attribute 'dtype': element type 21 is unknown",
     [](fbs::ModelT& m) { AttrNamed(m, "dtype").i = 21; }},
    {"AttrElementTypeNegative", kBad, "attribute 'dtype': element type -1 is unknown",
     [](fbs::ModelT& m) { AttrNamed(m, "dtype").i = -1; }},
    {"AttrTensor", kBad, "attribute 'tensor': constant 99 does not exist",
     [](fbs::ModelT& m) { AttrNamed(m, "tensor").i = 99; }},
    {"AttrTensorNegative", kBad, "attribute 'tensor': constant 18446744073709551615",
     [](fbs::ModelT& m) { AttrNamed(m, "tensor").i = -1; }},
    {"AttrGraph", kBad, "attribute 'graph': graph 3 does not exist, there are 3",
     [](fbs::ModelT& m) { AttrNamed(m, "graph").i = 3; }},
    {"AttrGraphWraps", kBad, "attribute 'graph': graph 4294967297",
     [](fbs::ModelT& m) { AttrNamed(m, "graph").i = (int64_t{1} << 32) + 1; }},
    {"AttrGraphs", kBad, "attribute 'graphs': graph 8 does not exist",
     [](fbs::ModelT& m) { AttrNamed(m, "graphs").ints[1] = 8; }},
};

class BadTablesTest : public testing::TestWithParam<BadTables> {};

TEST_P(BadTablesTest, IsRefused) {
  fbs::ModelT tables = TablesOf(GoodFile());
  GetParam().edit(tables);
  ExpectRefused(FileOf(tables), GetParam().code, GetParam().fragment);
}

INSTANTIATE_TEST_SUITE_P(Files, BadTablesTest, testing::ValuesIn(kBadTables),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(BadModel, UneditedFileLoads) {
  const auto file = FileOf(TablesOf(GoodFile()));
  EXPECT_EQ(file, GoodFile());
  const Status status = Load(AlignedCopy(file)).status();
  EXPECT_TRUE(status.ok()) << status.message();
}

// ---- header -------------------------------------------------------------------------------------

template <typename T>
void Put(std::vector<std::byte>* file, size_t at, T value) {
  std::memcpy(file->data() + at, &value, sizeof value);
}

TEST(BadHeader, IsRefused) {
  const auto refused = [](Code code, const char* fragment,
                          const std::function<void(std::vector<std::byte>*)>& edit) {
    std::vector<std::byte> file = GoodFile();
    edit(&file);
    ExpectRefused(file, code, fragment);
  };
  refused(kBad, "not a .msrt file", [](auto* f) { Put(f, 0, 'm'); });
  refused(Code::kUnsupported, "format version 2.1", [](auto* f) { Put(f, 4, uint16_t{2}); });
  refused(kBad, "no format version 0.1", [](auto* f) { Put(f, 4, uint16_t{0}); });
  refused(kBad, "something was appended", [](auto* f) { f->push_back(std::byte{0}); });
  refused(kBad, "cut short", [](auto* f) { f->pop_back(); });
  refused(kBad, "structure begins at byte 0", [](auto* f) { Put(f, 16, uint64_t{0}); });
  refused(kBad, "structure begins at byte 72", [](auto* f) { Put(f, 16, uint64_t{72}); });
  refused(kBad, "ends beyond the file", [](auto* f) { Put(f, 16, UINT64_MAX - 63); });
  refused(kBad, "ends beyond the file", [](auto* f) { Put(f, 24, UINT64_MAX); });
  refused(kBad, "ends beyond the file", [](auto* f) { Put(f, 24, uint64_t{1} << 31); });
  refused(kBad, "hash of the structure does not match", [](auto* f) { Put(f, 24, uint64_t{100}); });
  refused(kBad, "hash of the structure does not match", [](auto* f) { Put(f, 40, 'x'); });
  refused(kBad, "hash of the structure does not match", [](auto* f) { Put(f, 56, uint64_t{0}); });
  refused(kBad, "not a FlatBuffer", [](auto* f) {
    Put(f, 24, uint64_t{0});
    Reseal(f);
  });
  refused(kBad, "not a FlatBuffer", [](auto* f) {
    Put(f, 64, UINT32_MAX);
    Reseal(f);
  });
  refused(kBad, "between structure and segments is not zero",
          [](auto* f) { f->at(4095) = std::byte{1}; });
}

TEST(BadHeader, StructureBeyondTwoGigabytesIsRefused) {
  // A file that claims the size without having the bytes is refused earlier; one that has them must
  // be refused before FlatBuffers sees it.
  auto file = GoodFile();
  Put(&file, 8, uint64_t{1} << 40);
  Put(&file, 24, uint64_t{1} << 31);
  const Status status = VerifyHead(file, uint64_t{1} << 40);
  EXPECT_EQ(status.code(), kLimit) << status.message();
  Limits loose;
  loose.max_structure_bytes = UINT64_MAX;
  EXPECT_EQ(VerifyHead(file, uint64_t{1} << 40, loose).code(), kLimit);
}

TEST(BadHeader, NewerMinorVersionLoads) {
  auto file = GoodFile();
  Put(&file, 6, uint16_t{999});
  Put(&file, 40, uint64_t{0x123456});  // a header field of the future
  Reseal(&file);
  const Status status = Load(AlignedCopy(file)).status();
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(BadHeader, UnknownSegmentKindIsSkipped) {
  fbs::ModelT tables = TablesOf(GoodFile());
  tables.segments[2]->kind = 200;
  EXPECT_TRUE(Load(AlignedCopy(FileOf(tables))).ok());
}

// ---- limits -------------------------------------------------------------------------------------

TEST(BadModel, FilesBeyondLimitsAreRefused) {
  const auto file = GoodFile();
  const auto refused = [&](const char* fragment, void (*tighten)(Limits&)) {
    Limits limits;
    tighten(limits);
    ExpectRefused(file, kLimit, fragment, limits);
  };
  refused("the limit is 1000", [](Limits& l) { l.max_structure_bytes = 1000; });
  refused("more than 2 nodes", [](Limits& l) { l.max_nodes = 2; });
  refused("more than 13 values", [](Limits& l) { l.max_values = 13; });
  refused("module name: text of 10 bytes, the limit is 9", [](Limits& l) { l.max_name_bytes = 9; });
  refused("15 attributes, the limit is 14", [](Limits& l) { l.max_attrs_per_node = 14; });
  refused("attribute 'ints': has 24 bytes, the limit is 23",
          [](Limits& l) { l.max_attr_bytes = 23; });
  refused("metadata 2: text of 20 bytes", [](Limits& l) { l.max_metadata_bytes = 19; });
  refused("64 bytes, the limit is 63", [](Limits& l) { l.max_tensor_bytes = 63; });
  refused("is 4, the limit is 3", [](Limits& l) { l.max_dim = 3; });
  refused("has more than 2 parts", [](Limits& l) { l.max_type_parts = 2; });
}

// A file with one graph of these nodes, whose op is unknown, and nothing else.
std::vector<std::byte> FileOfNodes(flatbuffers::FlatBufferBuilder& builder,
                                   const std::vector<flatbuffers::Offset<fbs::Node>>& nodes) {
  const auto op = fbs::CreateOp(builder, 0, builder.CreateString("Op"));
  const auto graph = fbs::CreateGraph(builder, 0, 0, 0, 0, builder.CreateVector(nodes));
  const auto entries = builder.CreateVector(std::vector<uint32_t>{0});
  const auto ops = builder.CreateVector(&op, 1);
  const auto graphs = builder.CreateVector(&graph, 1);
  fbs::ModelBuilder model(builder);
  model.add_ops(ops);
  model.add_graphs(graphs);
  model.add_entries(entries);
  builder.Finish(model.Finish());
  Header header;
  header.structure_bytes = builder.GetSize();
  header.file_bytes = kHeaderBytes + builder.GetSize();
  const HeaderBytes bytes = EncodeHeader(header);
  std::vector<std::byte> file(header.file_bytes);
  std::memcpy(file.data(), bytes.data(), kHeaderBytes);
  std::memcpy(file.data() + kHeaderBytes, builder.GetBufferPointer(), builder.GetSize());
  Reseal(&file);
  return file;
}

// Many attributes that point at one long vector: small in the file, unbounded in memory.
TEST(BadModel, SharedVectorsAreRefused) {
  flatbuffers::FlatBufferBuilder builder;
  const auto ints = builder.CreateVector(std::vector<int64_t>(300, 7));
  const auto name = builder.CreateString("n");
  std::vector<flatbuffers::Offset<fbs::Node>> nodes;
  for (int n = 0; n < 20; ++n) {
    const auto attr =
        fbs::CreateAttr(builder, builder.CreateString("a"), static_cast<uint8_t>(AttrKind::kInts),
                        0, flatbuffers::nullopt, 0, ints);
    nodes.push_back(fbs::CreateNode(builder, 0, name, 0, 0, builder.CreateVector(&attr, 1)));
  }
  ExpectRefused(FileOfNodes(builder, nodes), kBad, "share bytes");
}

// FlatBuffers' verifier accepts a vector of int64 that does not begin at a multiple of 8. Of two
// that are 4 bytes apart, one does not.
TEST(BadModel, UnalignedVectorsAreRefused) {
  int refused = 0;
  for (size_t before : {50, 51}) {
    flatbuffers::FlatBufferBuilder builder;
    builder.CreateVector(std::vector<uint32_t>(before, 1));
    const auto words = builder.CreateVector(std::vector<uint32_t>(10, 1));
    const flatbuffers::Offset<flatbuffers::Vector<int64_t>> ints(words.o);
    const auto attr =
        fbs::CreateAttr(builder, builder.CreateString("a"), static_cast<uint8_t>(AttrKind::kInts),
                        5, flatbuffers::nullopt, 0, ints);
    const auto node = fbs::CreateNode(builder, 0, 0, 0, 0, builder.CreateVector(&attr, 1));
    const Status status = Load(AlignedCopy(FileOfNodes(builder, {node}))).status();
    if (status.ok()) continue;
    ++refused;
    EXPECT_NE(status.message().find("attribute 'a': elements of 8 bytes"), std::string::npos)
        << status.message();
  }
  EXPECT_EQ(refused, 1);
}

// ---- damage -------------------------------------------------------------------------------------

// Loads and, if that succeeds, uses the module as the next stages would. Returns whether it loaded.
bool Survives(std::span<const std::byte> file) {
  auto module = Load(AlignedCopy(file));
  if (!module.ok()) {
    EXPECT_FALSE(module.status().message().empty());
    EXPECT_NE(module.status().code(), Code::kInternal);
    return false;
  }
  EXPECT_FALSE(Print(*module).empty());
  EXPECT_TRUE(SerializeModel(*module).ok());
  (void)Validate(&*module).ok();
  return true;
}

TEST(Damage, EveryPrefixIsRefused) {
  const auto file = GoodFile();
  for (size_t length = 0; length < file.size(); ++length) {
    EXPECT_FALSE(Survives(std::span(file).first(length))) << length;
  }
}

TEST(Damage, EveryBitFlipOfHeaderAndStructureIsDetected) {
  auto file = GoodFile();
  const uint64_t end = kHeaderBytes + DecodeHeader(file)->structure_bytes;
  for (size_t bit = 0; bit < end * 8; ++bit) {
    const std::byte mask = std::byte{1} << (bit % 8);
    file[bit / 8] ^= mask;
    EXPECT_FALSE(Survives(file)) << "bit " << bit;
    file[bit / 8] ^= mask;
  }
}

// The same with a matching hash, as an attacker would make it: the result must be an error or a
// valid model.
void FlipEachStructureBit(std::vector<std::byte> file) {
  const uint64_t end = kHeaderBytes + DecodeHeader(file)->structure_bytes;
  ASSERT_LE(end, kHeaderBytes + 4096);
  size_t survived = 0;
  for (size_t bit = 32; bit < end * 8; ++bit) {
    if (bit / 8 >= 4 && bit / 8 < kHeaderBytes) continue;
    const std::byte mask = std::byte{1} << (bit % 8);
    file[bit / 8] ^= mask;
    Reseal(&file);
    survived += Survives(file);
    file[bit / 8] ^= mask;
  }
  EXPECT_GT(survived, 0u);  // names and numbers have other legal values
}

TEST(Damage, EveryResealedBitFlipIsHandled) { FlipEachStructureBit(GoodFile()); }

TEST(Damage, EveryResealedBitFlipOfKnownOpsIsHandled) {
  auto file = SerializeModel(KnownOpsModule());
  ASSERT_TRUE(file.ok());
  FlipEachStructureBit(*std::move(file));
}

}  // namespace
}  // namespace msrt
