#include "tools/msconvert/mindir/checkpoint.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/countable.h"
#include "mindir.pb.h"

namespace msrt::mindir_import {
namespace {

constexpr size_t kMaxMismatches = 50;  // that are listed one by one
constexpr std::string_view kSum = "crc_num";
constexpr size_t kSumBytes =
    17;  // the name and ten bytes, after the message if the checkpoint was saved with a checksum

constexpr std::pair<std::string_view, DType> kTypes[] = {
    {"Float16", DType::kF16},   {"Float32", DType::kF32}, {"Float64", DType::kF64},
    {"BFloat16", DType::kBF16}, {"Bool", DType::kBool},   {"Int8", DType::kI8},
    {"Int16", DType::kI16},     {"Int32", DType::kI32},   {"Int64", DType::kI64},
    {"UInt8", DType::kU8},      {"UInt16", DType::kU16},  {"UInt32", DType::kU32},
    {"UInt64", DType::kU64},
};

Result<DType> TypeOf(const std::string& name) {
  const auto* found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                   [&](const auto& t) { return t.first == name; });
  if (found == std::end(kTypes)) return Unsupported("elements of type '", name, "'");
  return found->second;
}

using Tensors = std::map<std::string, ConstTensor>;

Result<mindir::CheckpointProto> Parse(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.size() >= kSumBytes && text.substr(text.size() - kSumBytes).starts_with(kSum))
    bytes = bytes.first(bytes.size() - kSumBytes);
  mindir::CheckpointProto checkpoint;
  const bool fits = bytes.size() <= static_cast<size_t>(INT32_MAX);
  if (!fits) return Unsupported("it has ", bytes.size(), " bytes, at most 2 GiB are read");
  if (!checkpoint.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidModel("it is no checkpoint of MindSpore: encrypted, damaged or cut off");
  }
  return checkpoint;
}

// A large tensor is stored as several pieces of the same name, one after the other.
Result<Tensors> ReadTensors(mindir::CheckpointProto* checkpoint) {
  Tensors tensors;
  for (int i = 0; i < checkpoint->value_size();) {
    auto& first = *checkpoint->mutable_value(i);
    const std::string name = first.tag();
    auto dtype = TypeOf(first.tensor().tensor_type());
    if (!dtype.ok()) return std::move(dtype).status().Within(StrCat("tensor '", name, "'"));
    Dims dims;
    if (first.tensor().dims_size() > kMaxRank)
      return Unsupported("tensor '", name, "' has rank ", first.tensor().dims_size());
    for (int64_t d : first.tensor().dims()) dims.push_back(d);
    if (!dims.known() || !IsCountable(dims))
      return InvalidModel("tensor '", name, "' has dims ", dims, ", which no tensor can have");
    auto bytes =
        std::make_shared<std::string>(std::move(*first.mutable_tensor()->mutable_tensor_content()));
    for (++i; i < checkpoint->value_size() && checkpoint->value(i).tag() == name; ++i)
      *bytes += checkpoint->value(i).tensor().tensor_content();
    if (bytes->size() != BytesOf(*dtype, dims.elements())) {
      return InvalidModel("tensor '", name, "' ", Type::Tensor(*dtype, dims), " needs ",
                          BytesOf(*dtype, dims.elements()), " bytes, has ", bytes->size());
    }
    const bool added =
        tensors
            .emplace(name,
                     ConstTensor{*dtype, dims,
                                 std::as_bytes(std::span(bytes->data(), bytes->size())), bytes})
            .second;
    if (!added) return InvalidModel("tensor '", name, "' is there twice");
  }
  return tensors;
}

class Loader {
 public:
  Loader(Tensors tensors, Module* module) : tensors_(std::move(tensors)), module_(*module) {}

  Result<CheckpointLoad> Run() {
    for (StateSlot& slot : module_.states) {
      if (const ConstTensor* data = Fitting(slot.name, slot.initial, true)) slot.initial = *data;
    }
    for (Graph& graph : module_.graphs) {
      for (uint32_t v = 0; v < graph.value_count(); ++v) {
        Value& value = graph.value(ValueId(v));
        if (value.constant == nullptr) continue;
        const bool weight = !value.name.empty() && value.name.find('/') == std::string::npos;
        if (const ConstTensor* data = Fitting(value.name, *value.constant, weight))
          value.constant = std::make_shared<const ConstTensor>(*data);
      }
    }
    if (count_ != 0)
      return InvalidArgument(
          count_, count_ == 1 ? " weight does not fit:" : " weights do not fit:", mismatches_);
    CheckpointLoad load;
    load.loaded = used_.size();
    for (const auto& entry : tensors_) {
      if (used_.count(entry.first) == 0) load.unused.push_back(entry.first);
    }
    return load;
  }

 private:
  // Returns the tensor that replaces `old`; null if there is none.
  const ConstTensor* Fitting(const std::string& name, const ConstTensor& old, bool weight) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) {
      if (weight) Mismatch(name, StrCat("the model has ", old.type(), ", the checkpoint has none"));
      return nullptr;
    }
    used_.insert(name);
    const ConstTensor& data = found->second;
    if (data.dtype == old.dtype && data.dims == old.dims) return &data;
    Mismatch(name, StrCat("the model has ", old.type(), ", the checkpoint ", data.type()));
    return nullptr;
  }

  void Mismatch(const std::string& name, const std::string& what) {
    if (!told_.insert(name).second) return;
    if (++count_ <= kMaxMismatches) StrAppend(&mismatches_, "\n  '", name, "': ", what);
    else if (count_ == kMaxMismatches + 1) mismatches_ += "\n  ...";
  }

  const Tensors tensors_;
  Module& module_;
  std::set<std::string> used_, told_;
  size_t count_ = 0;
  std::string mismatches_;
};

}  // namespace

Result<CheckpointLoad> LoadCheckpoint(const std::string& path, Io* io, Module* module) {
  MSRT_ASSIGN_OR_RETURN(const Bytes bytes, io->MapFile(path));
  auto load = [&]() -> Result<CheckpointLoad> {
    MSRT_ASSIGN_OR_RETURN(mindir::CheckpointProto checkpoint, Parse(bytes.data));
    MSRT_ASSIGN_OR_RETURN(Tensors tensors, ReadTensors(&checkpoint));
    return Loader(std::move(tensors), module).Run();
  }();
  if (!load.ok()) return std::move(load).status().Within(StrCat("checkpoint '", path, "'"));
  return load;
}

}  // namespace msrt::mindir_import
