#include "core/model/mutate_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>

#include "core/base/checked_math.h"
#include "core/model/format.h"
#include "core/model/structure_check.h"
#include "ops/registry.h"

namespace msrt {
namespace {

using Random = std::mt19937_64;

size_t Below(Random& random, size_t count) {
  return count == 0 ? 0 : static_cast<size_t>(random() % count);
}
bool OneIn(Random& random, size_t chances) { return Below(random, chances) == 0; }

// ---- numbers ------------------------------------------------------------------------------------

// Numbers at the edges of types and limits.
constexpr int64_t kInteresting[] = {
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    16,
    64,
    255,
    256,
    4096,
    65536,
    2147483647,
    2147483648,
    4294967295,
    4294967296,
    int64_t{1} << 40,
    int64_t{1} << 56,
    INT64_MAX,
    INT64_MAX - 63,
    INT64_MIN,
    INT64_MIN + 1,
    -1,
    -2,
    -3,
    -8,
    -2147483648,
};

int64_t OtherNumber(Random& random, int64_t old) {
  switch (Below(random, 6)) {
    case 0:
      return kInteresting[Below(random, std::size(kInteresting))];
    case 1:
      return static_cast<int64_t>(static_cast<uint64_t>(old) + 1);
    case 2:
      return static_cast<int64_t>(static_cast<uint64_t>(old) - 1);
    case 3:
      return static_cast<int64_t>(static_cast<uint64_t>(old) ^ (uint64_t{1} << Below(random, 64)));
    default:
      return static_cast<int64_t>(Below(random, 10)) - 1;
  }
}

double OtherFloat(Random& random, double old) {
  constexpr double kFloats[] = {0, -0.0, 1, -1, 0.5, 1e-30, 1e30, -1e300, HUGE_VAL, -HUGE_VAL, NAN};
  return OneIn(random, 3) ? old * 2 : kFloats[Below(random, std::size(kFloats))];
}

// ---- names with a meaning ------------------------------------------------------------------

struct Vocabulary {
  std::vector<const OpDef*> ops;
  std::vector<std::string> words;  // names and choices of attributes
};

const Vocabulary& Words() {
  static const Vocabulary vocabulary = [] {
    Vocabulary v;
    ForEachOp([&](const OpDef& def) {
      v.ops.push_back(&def);
      for (const AttrDef& attr : def.attrs) {
        v.words.emplace_back(attr.name);
        v.words.insert(v.words.end(), attr.choices.begin(), attr.choices.end());
      }
    });
    return v;
  }();
  return vocabulary;
}

std::string OtherText(Random& random, const std::string& old) {
  if (OneIn(random, 4)) {
    std::string text = old;
    if (text.empty()) return std::string(1, static_cast<char>(random()));
    text[Below(random, text.size())] = static_cast<char>(random());
    return text;
  }
  return Words().words[Below(random, Words().words.size())];
}

// ---- edits of tables ----------------------------------------------------------------------------

template <typename T>
void EditNumber(Random& random, T* value) {
  *value = static_cast<T>(OtherNumber(random, static_cast<int64_t>(*value)));
}

// Changes, inserts, drops or swaps elements of a list of numbers.
template <typename T>
void EditNumbers(Random& random, std::vector<T>* list) {
  if (list->empty() || OneIn(random, 4)) {
    list->insert(list->begin() + static_cast<ptrdiff_t>(Below(random, list->size() + 1)),
                 static_cast<T>(Below(random, 5)));
    return;
  }
  T& element = (*list)[Below(random, list->size())];
  switch (Below(random, 5)) {
    case 0:
      list->erase(list->begin() + (&element - list->data()));
      return;
    case 1:
      std::swap(element, (*list)[Below(random, list->size())]);
      return;
    default:
      if constexpr (std::is_floating_point_v<T>) element = OtherFloat(random, element);
      else EditNumber(random, &element);
  }
}

// Duplicates, drops or swaps tables of a list. Returns false if the list is unchanged, so that the
// caller may edit one of its tables.
template <typename T>
bool EditTables(Random& random, std::vector<std::unique_ptr<T>>* list) {
  if (list->empty() || !OneIn(random, 4)) return false;
  const size_t at = Below(random, list->size()), other = Below(random, list->size());
  switch (Below(random, 3)) {
    case 0:
      list->erase(list->begin() + static_cast<ptrdiff_t>(at));
      break;
    case 1:
      std::swap((*list)[at], (*list)[other]);
      break;
    default:
      list->push_back(std::make_unique<T>(*(*list)[at]));
      break;
  }
  return true;
}

template <typename T>
T* Pick(Random& random, std::vector<std::unique_ptr<T>>& list) {
  return list.empty() ? nullptr : list[Below(random, list.size())].get();
}

void EditType(Random& random, fbs::TypeT* type) {
  switch (Below(random, 8)) {
    case 0:
      EditNumber(random, &type->kind);
      break;
    case 1:
      type->dtype = static_cast<uint8_t>(Below(random, kDTypeCount + 1));
      break;
    case 2:
      type->unranked = !type->unranked;
      break;
    case 3:
      EditNumber(random, &type->element);
      break;
    case 4:
      EditNumbers(random, &type->parameters);
      break;
    default:
      EditNumbers(random, &type->dims);
      break;
  }
}

void EditAttr(Random& random, fbs::AttrT* attr) {
  switch (Below(random, 7)) {
    case 0:
      attr->name = OtherText(random, attr->name);
      break;
    case 1:
      attr->kind = static_cast<uint8_t>(Below(random, 11));
      break;
    case 2:
      attr->s = OtherText(random, attr->s);
      break;
    case 3:
      attr->f = OtherFloat(random, attr->f.value_or(1));
      break;
    case 4:
      EditNumbers(random, &attr->floats);
      break;
    case 5:
      EditNumbers(random, &attr->ints);
      break;
    default:
      EditNumber(random, &attr->i);
      break;
  }
}

// An attribute that the op has, with a value near its range.
std::unique_ptr<fbs::AttrT> AttrOf(Random& random, const OpDef& def) {
  auto attr = std::make_unique<fbs::AttrT>();
  if (def.attrs.empty()) {
    attr->name = OtherText(random, "");
    return attr;
  }
  const AttrDef& entry = def.attrs[Below(random, def.attrs.size())];
  attr->name = entry.name;
  attr->kind = static_cast<uint8_t>(entry.kind);
  attr->i = OtherNumber(random, OneIn(random, 2) ? entry.min_int : entry.max_int);
  attr->f = OtherFloat(random, entry.default_float);
  attr->s = entry.choices.empty() ? OtherText(random, "")
                                  : std::string(entry.choices[Below(random, entry.choices.size())]);
  attr->ints.resize(Below(random, 5), 1);
  attr->floats.resize(Below(random, 5), 1);
  if (OneIn(random, 2)) EditNumbers(random, &attr->ints);
  return attr;
}

void EditNode(Random& random, fbs::ModelT* model, fbs::NodeT* node) {
  const OpDef* def = node->op < model->ops.size()
                         ? FindOp(model->ops[node->op]->domain, model->ops[node->op]->name)
                         : nullptr;
  switch (Below(random, 6)) {
    case 0:
      EditNumber(random, &node->op);
      break;
    case 1:
      EditNumbers(random, &node->inputs);
      break;
    case 2:
      EditNumbers(random, &node->outputs);
      break;
    case 3:
      if (def != nullptr) node->attrs.push_back(AttrOf(random, *def));
      break;
    default:
      if (!EditTables(random, &node->attrs) && !node->attrs.empty())
        EditAttr(random, Pick(random, node->attrs));
      break;
  }
}

void EditGraph(Random& random, fbs::ModelT* model, fbs::GraphT* graph) {
  switch (Below(random, 8)) {
    case 0:
      EditNumbers(random, &graph->inputs);
      break;
    case 1:
      EditNumbers(random, &graph->outputs);
      break;
    case 2:
      if (EditTables(random, &graph->values)) break;
      if (fbs::ValueT* value = Pick(random, graph->values))
        EditNumber(random, OneIn(random, 2) ? &value->type : &value->constant);
      break;
    default:
      if (EditTables(random, &graph->nodes)) break;
      if (fbs::NodeT* node = Pick(random, graph->nodes)) EditNode(random, model, node);
      break;
  }
}

void EditOp(Random& random, fbs::OpT* op) {
  if (OneIn(random, 6)) {
    EditNumber(random, &op->version);
    return;
  }
  const OpDef& def = *Words().ops[Below(random, Words().ops.size())];
  op->name = def.name;
  op->domain = def.domain;
  op->version = def.version;
}

void EditStorage(Random& random, fbs::ModelT* model) {
  switch (Below(random, 4)) {
    case 0:
      if (fbs::SegmentT* s = Pick(random, model->segments))
        EditNumber(random, OneIn(random, 2) ? &s->offset : &s->bytes);
      break;
    case 1:
      if (EditTables(random, &model->data)) break;
      if (fbs::DataT* d = Pick(random, model->data))
        EditNumber(random, OneIn(random, 2) ? &d->offset : &d->bytes);
      break;
    case 2:
      if (fbs::ConstantT* c = Pick(random, model->constants))
        EditNumber(random, OneIn(random, 2) ? &c->type : &c->data);
      break;
    default:
      if (fbs::PackedWeightT* p = Pick(random, model->packed))
        EditNumber(random, OneIn(random, 2) ? &p->constant : &p->data);
      break;
  }
}

void EditModel(Random& random, fbs::ModelT* model) {
  switch (Below(random, 12)) {
    case 0:
      EditNumbers(random, &model->entries);
      break;
    case 1:
      EditStorage(random, model);
      break;
    case 2:
      if (fbs::StateT* s = Pick(random, model->states)) {
        if (OneIn(random, 4)) EditNumber(random, &s->role);
        else EditNumber(random, OneIn(random, 2) ? &s->type : &s->initial);
      }
      break;
    case 3:
    case 4:
      if (fbs::OpT* op = Pick(random, model->ops)) EditOp(random, op);
      break;
    case 5:
    case 6:
      if (EditTables(random, &model->types)) break;
      if (fbs::TypeT* type = Pick(random, model->types)) EditType(random, type);
      break;
    case 7:
      if (EditTables(random, &model->graphs)) break;
      [[fallthrough]];
    default:
      if (fbs::GraphT* graph = Pick(random, model->graphs)) EditGraph(random, model, graph);
      break;
  }
}

// ---- files --------------------------------------------------------------------------------------

// The end of the structure, or 0 where the header does not describe the file.
uint64_t StructureEnd(std::span<const std::byte> file) {
  if (file.size() < kHeaderBytes) return 0;
  const auto header = DecodeHeader(file);
  const bool plain = header.ok() && header->structure_offset == kHeaderBytes &&
                     RangeFits(kHeaderBytes, header->structure_bytes, file.size());
  return plain ? kHeaderBytes + header->structure_bytes : 0;
}

template <typename T>
bool MayRead(const flatbuffers::Vector<T>* vector) {
  return vector == nullptr || IsAligned(*vector);
}

// Unpacking reads elements of 8 bytes in place, so they must be aligned.
bool IsUnpackable(const fbs::Model& model) {
  for (uint32_t i = 0; i < CountOf(model.types()); ++i) {
    if (!MayRead(model.types()->Get(i)->dims())) return false;
  }
  for (uint32_t g = 0; g < CountOf(model.graphs()); ++g) {
    const auto* nodes = model.graphs()->Get(g)->nodes();
    for (uint32_t n = 0; n < CountOf(nodes); ++n) {
      const auto* attrs = nodes->Get(n)->attrs();
      for (uint32_t a = 0; a < CountOf(attrs); ++a) {
        if (!MayRead(attrs->Get(a)->ints()) || !MayRead(attrs->Get(a)->floats())) return false;
      }
    }
  }
  return true;
}

bool IsFlatBuffer(std::span<const std::byte> structure) {
  constexpr flatbuffers::uoffset_t kMaxDepth = 64, kMaxTables = 10000;
  if (structure.size() < 8 || structure.size() > kMaxFlatBufferBytes) return false;
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(structure.data()),
                                 structure.size(), kMaxDepth, kMaxTables);
  if (!verifier.VerifyBuffer<fbs::Model>(nullptr)) return false;
  return IsUnpackable(*flatbuffers::GetRoot<fbs::Model>(structure.data()));
}

// Puts new tables before the weights, which move: segments follow the end of the structure.
std::vector<std::byte> Assemble(const fbs::ModelT& tables, std::span<const std::byte> old_file,
                                uint64_t old_end) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(fbs::Model::Pack(builder, &tables));
  const uint64_t old_first =
      std::min<uint64_t>(AlignUp(old_end, kSegmentAlignment), old_file.size());
  const std::span<const std::byte> weights = old_file.subspan(old_first);
  const uint64_t end = kHeaderBytes + builder.GetSize();
  std::vector<std::byte> file(weights.empty() ? end : AlignUp(end, kSegmentAlignment));
  std::copy(old_file.begin(), old_file.begin() + kHeaderBytes, file.begin());
  std::memcpy(file.data() + kHeaderBytes, builder.GetBufferPointer(), builder.GetSize());
  file.insert(file.end(), weights.begin(), weights.end());
  const uint64_t bytes = builder.GetSize();
  std::memcpy(file.data() + 24, &bytes, sizeof bytes);
  return file;
}

void EditBytes(Random& random, std::span<std::byte> bytes) {
  if (bytes.empty()) return;
  std::byte& at = bytes[Below(random, bytes.size())];
  at =
      OneIn(random, 2) ? at ^ (std::byte{1} << Below(random, 8)) : static_cast<std::byte>(random());
}

void MoveSegments(fbs::ModelT* tables, uint64_t by) {
  for (auto& segment : tables->segments) segment->offset += by;
}

}  // namespace

void FitHeader(std::vector<std::byte>* file) {
  if (file->size() < kHeaderBytes) return;
  std::memcpy(file->data(), "MSRT", 4);
  const uint16_t major = kFormatMajor;
  std::memcpy(file->data() + 4, &major, sizeof major);
  const uint64_t bytes = file->size();
  std::memcpy(file->data() + 8, &bytes, sizeof bytes);
  auto header = DecodeHeader(*file);
  if (!header.ok() || !RangeFits(header->structure_offset, header->structure_bytes, file->size()))
    return;
  const std::span<const std::byte> view = *file;
  const uint64_t hash = HashOf(view.first<kHeaderBytes>(),
                               view.subspan(header->structure_offset, header->structure_bytes));
  std::memcpy(file->data() + kHeaderBytes - sizeof hash, &hash, sizeof hash);
}

std::vector<std::byte> MutateFile(std::span<const std::byte> old_file, uint64_t seed) {
  Random random(seed);
  std::vector<std::byte> file(old_file.begin(), old_file.end());
  const uint64_t end = StructureEnd(file);
  const bool readable =
      end != 0 && IsFlatBuffer(std::span(file).subspan(kHeaderBytes, end - kHeaderBytes));
  if (!readable || OneIn(random, 8)) {
    const std::span<std::byte> structure = std::span(file).first(readable ? end : file.size());
    for (size_t edits = 1 + Below(random, 4); edits > 0; --edits) EditBytes(random, structure);
  } else if (OneIn(random, 8)) {
    EditBytes(random, std::span(file).subspan(end));  // weights
  } else {
    fbs::ModelT tables;
    flatbuffers::GetRoot<fbs::Model>(file.data() + kHeaderBytes)->UnPackTo(&tables);
    for (size_t edits = 1 + Below(random, 4); edits > 0; --edits) EditModel(random, &tables);
    file = Assemble(tables, old_file, end);
    // The structure may have grown across an alignment boundary.
    const uint64_t before = AlignUp(end, kSegmentAlignment),
                   after = AlignUp(StructureEnd(file), kSegmentAlignment);
    if (before != after) {
      MoveSegments(&tables, after - before);
      file = Assemble(tables, old_file, end);
    }
  }
  if (!OneIn(random, 64)) FitHeader(&file);
  return file;
}

}  // namespace msrt
