#include "core/model/write.h"

#include "core/base/checked_math.h"
#include "core/model/file_image.h"
#include "core/model/module_tables.h"
#include "core/model/verify.h"

namespace msrt {
namespace {

// Assigns every item a segment and an offset in it. The segments' offsets are set later, when the
// size of the structure is known.
void AssignSegments(const DataStore& store, std::span<const uint32_t> order, fbs::ModelT* tables) {
  std::vector<uint32_t> record_of(order.size());
  for (uint32_t item_index : order) {
    const DataStore::Item& item = store.items()[item_index];
    if (tables->segments.empty() || tables->segments.back()->kind != item.kind) {
      tables->segments.push_back(std::make_unique<fbs::SegmentT>());
      tables->segments.back()->kind = item.kind;
      // Not the default, which would be omitted and could not be set later.
      tables->segments.back()->offset = 1;
    }
    fbs::SegmentT& segment = *tables->segments.back();
    fbs::DataT data;
    data.segment = static_cast<uint32_t>(tables->segments.size() - 1);
    data.offset = AlignUp(segment.bytes, kDataAlignment);
    data.bytes = item.bytes.size();
    data.digest = item.digest;
    segment.bytes = data.offset + data.bytes;
    record_of[item_index] = static_cast<uint32_t>(tables->data.size());
    tables->data.push_back(std::make_unique<fbs::DataT>(data));
  }
  for (auto& constant : tables->constants) constant->data = record_of[constant->data];
  for (auto& packed : tables->packed) packed->data = record_of[packed->data];
  for (auto& program : tables->programs) program->data = record_of[program->data];
}

// An upper bound of the bytes of the tables as a FlatBuffer. The builder stops the process beyond
// 2 GiB, so this is checked first.
uint64_t StructureBytesBound(const fbs::ModelT& m) {
  constexpr uint64_t kTable = 96, kText = 16;
  uint64_t bytes = 4096 + kTable * (m.metadata.size() + m.data.size() + m.symbols.size() +
                                    m.types.size() + m.constants.size() + m.ops.size() +
                                    m.states.size() + m.packed.size() + m.programs.size());
  bytes += m.name.size() + m.producer.size() + 4 * m.entries.size();
  for (const auto& entry : m.metadata) bytes += kText + entry->key.size() + entry->value.size();
  for (const auto& symbol : m.symbols) bytes += symbol.size();
  for (const auto& type : m.types)
    bytes += 8 * type->dims.size() + 4 * (type->parameters.size() + type->results.size());
  for (const auto& op : m.ops) bytes += op->domain.size() + op->name.size();
  for (const auto& state : m.states) bytes += state->name.size();
  for (const auto& packed : m.packed) bytes += packed->kernel.size() + packed->isa.size();
  for (const auto& graph : m.graphs) {
    bytes += kTable + graph->name.size() + 4 * (graph->inputs.size() + graph->outputs.size());
    for (const auto& value : graph->values) bytes += kTable + value->name.size();
    for (const auto& node : graph->nodes) {
      bytes += kTable + node->name.size() + 4 * (node->inputs.size() + node->outputs.size());
      for (const auto& attr : node->attrs) {
        bytes += kTable + attr->name.size() + attr->s.size() +
                 8 * (attr->ints.size() + attr->floats.size());
        for (const auto& text : attr->strings) bytes += kTable + text->value.size();
      }
    }
  }
  return bytes;
}

std::span<const std::byte> PackStructure(const fbs::ModelT& tables,
                                         flatbuffers::FlatBufferBuilder* builder) {
  builder->Finish(fbs::Model::Pack(*builder, &tables));
  uint64_t end = kHeaderBytes + builder->GetSize();
  fbs::Model* model = flatbuffers::GetMutableRoot<fbs::Model>(builder->GetBufferPointer());
  for (uint32_t i = 0; i < tables.segments.size(); ++i) {
    const uint64_t begin = AlignUp(end, kSegmentAlignment);
    const bool set = model->mutable_segments()->GetMutableObject(i)->mutate_offset(begin);
    MSRT_CHECK(set);
    end = begin + tables.segments[i]->bytes;
  }
  return {reinterpret_cast<const std::byte*>(builder->GetBufferPointer()), builder->GetSize()};
}

Status BuildImage(const Module& module, const WriteOptions& options, FileImage* image) {
  TableBuilder builder;
  MSRT_RETURN_IF_ERROR(builder.Add(module));
  if (options.extras != nullptr) MSRT_RETURN_IF_ERROR(builder.Add(*options.extras));
  fbs::ModelT& tables = builder.tables();
  const std::vector<uint32_t> order = builder.store().FileOrder();
  AssignSegments(builder.store(), order, &tables);
  if (StructureBytesBound(tables) > kMaxFlatBufferBytes)
    return LimitExceeded("the structure of the module would exceed 2 GiB");
  flatbuffers::FlatBufferBuilder flat;
  const auto structure = PackStructure(tables, &flat);

  uint64_t file_bytes = kHeaderBytes + structure.size();
  for (const auto& segment : tables.segments)
    file_bytes = AlignUp(file_bytes, kSegmentAlignment) + segment->bytes;
  Header header;
  header.file_bytes = file_bytes;
  header.structure_bytes = structure.size();
  header.hash = HashOf(EncodeHeader(header), structure);
  const HeaderBytes header_bytes = EncodeHeader(header);
  std::vector<std::byte> head(header_bytes.begin(), header_bytes.end());
  head.insert(head.end(), structure.begin(), structure.end());
  MSRT_RETURN_IF_ERROR(VerifyHead(head, file_bytes, options.limits));

  image->AppendOwned(std::move(head));
  uint32_t segment = UINT32_MAX;
  for (size_t i = 0; i < order.size(); ++i) {
    image->Align(tables.data[i]->segment == segment ? kDataAlignment : kSegmentAlignment);
    image->Append(builder.store().items()[order[i]].bytes);
    segment = tables.data[i]->segment;
  }
  MSRT_CHECK(image->bytes() == file_bytes);
  return OkStatus();
}

}  // namespace

Status WriteModel(const Module& module, const std::string& path, Io* io,
                  const WriteOptions& options) {
  FileImage image;
  MSRT_RETURN_IF_ERROR(BuildImage(module, options, &image));
  return io->WriteFile(path, image.Finish());
}

Result<std::vector<std::byte>> SerializeModel(const Module& module, const WriteOptions& options) {
  FileImage image;
  MSRT_RETURN_IF_ERROR(BuildImage(module, options, &image));
  std::vector<std::byte> file;
  file.reserve(image.bytes());
  for (const auto& piece : image.Finish()) file.insert(file.end(), piece.begin(), piece.end());
  return file;
}

}  // namespace msrt
