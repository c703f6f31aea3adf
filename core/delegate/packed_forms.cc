#include "core/delegate/packed_forms.h"

#include "core/base/copy_known_fields.h"

namespace msrt {
namespace {

PackingId IdOf(const msrt_packing& given) {
  const msrt_packing p = CopyKnownFields(given);
  const auto text = [](const char* t) { return std::string(t == nullptr ? "" : t); };
  return {text(p.kernel), text(p.isa), p.block, p.version};
}

// Names contain no control characters, so a newline separates them unambiguously.
std::string NameOf(const void* constant, const PackingId& id) {
  return StrCat(reinterpret_cast<uintptr_t>(constant), " ", id.version, " ", id.block, " ", id.isa,
                "\n", id.kernel);
}

}  // namespace

PackedForms::PackedForms(std::vector<PackedWeight> from_file, Log log) : log_(std::move(log)) {
  for (PackedWeight& form : from_file)
    Add({form.weight.bytes.data(), std::move(form.id), std::move(form.data)});
}

std::shared_ptr<PackedForms> PackedForms::ForKeeping() {
  auto forms = std::make_shared<PackedForms>(std::vector<PackedWeight>(), Log());
  forms->keeps_ = true;
  return forms;
}

void PackedForms::Add(Form form) {
  forms_.push_back(std::move(form));
  const bool added =
      by_name_.try_emplace(NameOf(forms_.back().constant, forms_.back().id), forms_.size() - 1)
          .second;
  if (!added) forms_.pop_back();
}

const std::byte* PackedForms::Find(const void* constant, const msrt_packing& packing,
                                   size_t bytes) {
  if (keeps_) return nullptr;
  const auto found = by_name_.find(NameOf(constant, IdOf(packing)));
  if (found == by_name_.end()) return nullptr;
  const Form& form = forms_[found->second];
  if (form.data.data.size() != bytes) {
    log_(LogLevel::kWarning, "a packed weight of the file has ", form.data.data.size(),
         " bytes, but '", form.id.kernel, "' needs ", bytes, "; it is packed again");
    return nullptr;
  }
  found_bytes_ += bytes;
  return form.data.data.data();
}

void PackedForms::Keep(const void* constant, const msrt_packing& packing,
                       std::span<const std::byte> data) {
  if (!keeps_) return;
  auto copy = std::make_shared<const std::vector<std::byte>>(data.begin(), data.end());
  const std::span<const std::byte> bytes(*copy);
  const std::lock_guard lock(mutex_);
  Add({constant, IdOf(packing), {bytes, std::move(copy)}});
}

std::vector<PackedWeight> PackedForms::KeptForms(const Module& module) const {
  std::unordered_map<const void*, const ConstTensor*> constants;
  for (const Graph& graph : module.graphs) {
    for (uint32_t v = 0; v < graph.value_count(); ++v) {
      const ConstTensor* constant = graph.value(ValueId(v)).constant.get();
      if (constant != nullptr) constants.try_emplace(constant->bytes.data(), constant);
    }
  }
  std::vector<PackedWeight> kept;
  const std::lock_guard lock(mutex_);
  for (const Form& form : forms_) {
    const auto constant = constants.find(form.constant);
    if (constant != constants.end()) kept.push_back({*constant->second, form.id, form.data});
  }
  return kept;
}

}  // namespace msrt
