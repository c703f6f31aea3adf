// The part of Verify that walks over the tables of a file; private to core/model. FlatBuffers'
// verifier has already proved that all offsets are inside the structure; this checks ranges, sizes,
// order and limits.
#pragma once

#include <string_view>
#include <vector>

#include "core/model/format.h"
#include "core/model/model_generated.h"

namespace msrt {

// Elements of a table's vector, which may be absent if it is empty.
template <typename T>
uint32_t CountOf(const flatbuffers::Vector<T>* vector) {
  return vector == nullptr ? 0 : vector->size();
}
template <typename T>
std::span<const T> SpanOf(const flatbuffers::Vector<T>* vector) {
  return vector == nullptr ? std::span<const T>()
                           : std::span<const T>(vector->data(), vector->size());
}
template <typename T>
bool IsAligned(const flatbuffers::Vector<T>& vector) {
  return reinterpret_cast<uintptr_t>(vector.data()) % sizeof(T) == 0;
}
inline std::string_view TextOf(const flatbuffers::String* text) {
  return text == nullptr ? std::string_view() : std::string_view(text->data(), text->size());
}

inline constexpr uint32_t kNoIndex = UINT32_MAX;

class StructureCheck {
 public:
  StructureCheck(const fbs::Model& model, const Header& header, const Limits& limits)
      : model_(model), header_(header), limits_(limits), bytes_left_(header.structure_bytes) {}
  Status Run();

 private:
  // check_tables.cc
  Status CheckFeatures();
  Status CheckHeadings();
  Status CheckSegments();
  Status CheckData();
  Status CheckSymbols();
  Status CheckTypes();
  Status CheckTensorType(const fbs::Type& type);
  Status CheckTypeParts(uint32_t index, const fbs::Type& type);
  Status CheckConstants();
  Status CheckOps();
  Status CheckStates();
  Status CheckInitial(const fbs::State& state);
  Status CheckExtras();
  // check_graphs.cc
  Status CheckGraphs();
  Status CheckGraph(const fbs::Graph& graph);
  Status CheckNode(const fbs::Node& node);
  Status CheckAttr(const fbs::Attr& attr);
  Status CheckAttrValue(const fbs::Attr& attr);
  Status CheckEntries();

  // Text that people see: short, UTF-8, no control characters.
  Status CheckName(const flatbuffers::String* name);
  // Any UTF-8 text of at most `limit` bytes.
  Status CheckText(const flatbuffers::String* text, uint64_t limit);
  // Counts the bytes of each string and vector once for each reference to it. If the total exceeds
  // the structure, references share bytes, and a small file could cause unbounded work and memory.
  Status Charge(uint64_t elements, uint64_t element_bytes);
  // Also checks the alignment of elements of 8 bytes, which FlatBuffers' verifier does not.
  template <typename T>
  Status ChargeVector(const flatbuffers::Vector<T>* vector) {
    if (vector == nullptr) return OkStatus();
    if (!IsAligned(*vector))
      return InvalidModel("elements of ", sizeof(T), " bytes do not begin at a multiple of that");
    return Charge(vector->size(), sizeof(T));
  }
  static Status CheckIndex(std::string_view what, uint64_t index, uint64_t count);
  static Status CheckUnique(const std::vector<std::string_view>& names);

  // Puts `context()` before the message of a failure; costs nothing on success.
  template <typename Context>
  static Status In(Status status, Context context) {
    if (status.ok()) return status;
    return std::move(status).Within(context());
  }

  const fbs::Model& model_;
  const Header& header_;
  const Limits& limits_;
  uint64_t bytes_left_;
  uint64_t nodes_ = 0, values_ = 0;
  std::vector<uint32_t> type_parts_;  // by type: the number of its parts, written out in full
};

}  // namespace msrt
