#include "delegates/onednn/weights.h"

namespace msrt::onednn {
namespace {

std::string IsaName() {
  using Isa = dnnl::cpu_isa;
  constexpr std::pair<Isa, std::string_view> kNames[] = {{Isa::sse41, "sse41"},
                                                         {Isa::avx, "avx"},
                                                         {Isa::avx2, "avx2"},
                                                         {Isa::avx2_vnni, "avx2_vnni"},
                                                         {Isa::avx2_vnni_2, "avx2_vnni_2"},
                                                         {Isa::avx512_core, "avx512_core"},
                                                         {Isa::avx512_core_vnni, "avx512_core_vnni"},
                                                         {Isa::avx512_core_bf16, "avx512_core_bf16"},
                                                         {Isa::avx512_core_fp16, "avx512_core_fp16"},
                                                         {Isa::avx512_core_amx, "avx512_core_amx"},
                                                         {Isa::avx512_core_amx_fp16, "avx512_core_amx_fp16"}};
  const Isa isa = dnnl::get_effective_cpu_isa();
  for (const auto& [known, name] : kNames) {
    if (known == isa) return std::string(name);
  }
  return StrCat("isa", static_cast<int64_t>(isa));
}

void AppendNumbers(std::string* out, std::string_view what, const memory::dims& numbers) {
  StrAppend(out, " ", what);
  for (size_t i = 0; i < numbers.size(); ++i) StrAppend(out, i == 0 ? " " : ",", numbers[i]);
}

// "2 dims 64,3,7,7 padded 64,8,7,7 strides 392,392,56,8 blocks 8 of 1": all of a blocked form, elements by the library's number first.
std::string FormText(const memory::desc& desc) {
  std::string text = StrCat(static_cast<int64_t>(desc.get_data_type()));
  AppendNumbers(&text, "dims", desc.get_dims());
  if (desc.get_padded_dims() != desc.get_dims()) AppendNumbers(&text, "padded", desc.get_padded_dims());
  AppendNumbers(&text, "strides", desc.get_strides());
  if (desc.get_inner_nblks() == 0) return text;
  AppendNumbers(&text, "blocks", desc.get_inner_blks());
  AppendNumbers(&text, "of", desc.get_inner_idxs());
  return text;
}

// Only blocked forms can be told apart by what the library says of them: others have no name.
sdk::Packing PackingOf(const memory::desc& from, const memory::desc& to) {
  constexpr auto kBlocked = memory::format_kind::blocked;
  if (from.get_format_kind() != kBlocked || to.get_format_kind() != kBlocked) return {};
  static const std::string isa = IsaName();
  const dnnl_version_t& library = *dnnl_version();
  const auto version = static_cast<uint32_t>(library.major * 10000 + library.minor * 100 + library.patch);
  return {StrCat("onednn ", FormText(to), " from ", FormText(from)), isa, 0, version};
}

}  // namespace

Result<const void*> PackedWeights::Get(const memory::desc& wanted) {
  if (wanted == desc_) return data_;
  const std::lock_guard lock(mutex_);
  for (const Form& form : forms_) {
    if (form.desc == wanted) return static_cast<const void*>(form.packed.data());
  }
  const auto reorder = [&](std::byte* packed) {
    const dnnl::reorder::primitive_desc descriptor(Engine(), desc_, Engine(), wanted);
    dnnl::stream stream(Engine());
    memory from(desc_, Engine(), const_cast<void*>(data_)), to(wanted, Engine(), packed);
    dnnl::reorder(descriptor).execute(stream, from, to);
    stream.wait();
    return OkStatus();
  };
  MSRT_ASSIGN_OR_RETURN(sdk::PackedForm packed,
                        sdk::PackedForm::Make(context_, data_, PackingOf(desc_, wanted), wanted.get_size(), reorder));
  forms_.push_back({wanted, std::move(packed)});
  return static_cast<const void*>(forms_.back().packed.data());
}

size_t PackedWeights::bytes() const {
  const std::lock_guard lock(mutex_);
  size_t bytes = 0;
  for (const Form& form : forms_) bytes += form.packed.own_bytes();
  return bytes;
}

Result<Place> PlaceWeights(PackedWeights* packed, size_t input, const memory::desc& plain, const memory::desc& wanted, Plan* plan) {
  if (packed != nullptr) {
    MSRT_ASSIGN_OR_RETURN(const void* data, packed->Get(wanted));
    return Place::Fixed(data);
  }
  if (plain == wanted) return Place::Input(input);
  const Place converted = Place::Scratch(plan->Reserve(wanted.get_size()));
  plan->AddReorder(Place::Input(input), plain, converted, wanted);
  return converted;
}

}  // namespace msrt::onednn
