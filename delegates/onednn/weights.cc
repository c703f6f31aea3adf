#include "delegates/onednn/weights.h"

#include "delegates/onednn/onednn.h"

namespace msrt::onednn {
namespace {

void AppendNumbers(std::string* out, std::string_view what, const memory::dims& numbers) {
  StrAppend(out, " ", what);
  for (size_t i = 0; i < numbers.size(); ++i) StrAppend(out, i == 0 ? " " : ",", numbers[i]);
}

// "2 dims 64,3,7,7 padded 64,8,7,7 strides 392,392,56,8 blocks 8 of 1": all of a blocked form,
// elements by the library's number first.
std::string FormText(const memory::desc& desc) {
  std::string text = StrCat(static_cast<int64_t>(desc.get_data_type()));
  AppendNumbers(&text, "dims", desc.get_dims());
  if (desc.get_padded_dims() != desc.get_dims())
    AppendNumbers(&text, "padded", desc.get_padded_dims());
  AppendNumbers(&text, "strides", desc.get_strides());
  if (desc.get_inner_nblks() == 0) return text;
  AppendNumbers(&text, "blocks", desc.get_inner_blks());
  AppendNumbers(&text, "of", desc.get_inner_idxs());
  return text;
}

// Only blocked forms can be told apart by what the library says of them: others have no name.
sdk::Packing PackingOf(const memory::desc& from, const memory::desc& to,
                       const std::string& variant) {
  constexpr auto kBlocked = memory::format_kind::blocked;
  if (from.get_format_kind() != kBlocked || to.get_format_kind() != kBlocked) return {};
  static const std::string isa = OneDnnInstructions();
  const dnnl_version_t& library = *dnnl_version();
  const auto version =
      static_cast<uint32_t>(library.major * 10000 + library.minor * 100 + library.patch);
  return {StrCat("onednn ", FormText(to), " from ", FormText(from), variant.empty() ? "" : " ",
                 variant),
          isa, 0, version};
}

}  // namespace

void ShiftBytes(const uint8_t* from, int8_t* to, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = static_cast<int8_t>(from[i] ^ 0x80);
}

Result<const void*> PackedWeights::Get(const memory::desc& wanted) {
  if (wanted == desc_) return data_;
  const std::lock_guard lock(mutex_);
  for (const Form& form : forms_) {
    if (form.desc == wanted) return static_cast<const void*>(form.packed.data());
  }
  const auto reorder = [&](std::byte* packed) {
    std::vector<int8_t> shifted;
    memory::desc plain = desc_;
    const void* data = data_;
    if (desc_.get_data_type() == memory::data_type::u8 &&
        wanted.get_data_type() == memory::data_type::s8) {
      shifted.resize(desc_.get_size());
      ShiftBytes(static_cast<const uint8_t*>(data_), shifted.data(), shifted.size());
      plain = memory::desc(desc_.get_dims(), memory::data_type::s8, desc_.get_strides());
      data = shifted.data();
    }
    const dnnl::reorder::primitive_desc descriptor(Engine(), plain, Engine(), wanted);
    dnnl::stream stream(Engine());
    memory from(plain, Engine(), const_cast<void*>(data)), to(wanted, Engine(), packed);
    dnnl::reorder(descriptor).execute(stream, from, to);
    stream.wait();
    return OkStatus();
  };
  MSRT_ASSIGN_OR_RETURN(sdk::PackedForm packed,
                        sdk::PackedForm::Make(context_, data_, PackingOf(desc_, wanted, variant_),
                                              wanted.get_size(), reorder));
  forms_.push_back({wanted, std::move(packed)});
  return static_cast<const void*>(forms_.back().packed.data());
}

size_t PackedWeights::bytes() const {
  const std::lock_guard lock(mutex_);
  size_t bytes = 0;
  for (const Form& form : forms_) bytes += form.packed.own_bytes();
  return bytes;
}

Weights::Weights(const NodeInfo& node, size_t input, const memory::desc& plain,
                 const CompileContext& context)
    : input_(input), parameter_(node.op->constant(input) == nullptr && IsPacked(node, input)) {
  const ConstTensor* constant = node.op->constant(input);
  if (constant != nullptr)
    constant_ = std::make_unique<PackedWeights>(constant->bytes.data(), plain, context);
}

Status Weights::Prepare(const memory::desc& wanted) {
  return constant_ == nullptr ? OkStatus() : constant_->Get(wanted).status();
}

Result<Place> Weights::In(const memory::desc& plain, const memory::desc& wanted, Plan* plan) const {
  if (constant_ != nullptr) {
    MSRT_ASSIGN_OR_RETURN(const void* data, constant_->Get(wanted));
    return Place::Fixed(data);
  }
  sdk::Packing packing = PackingOf(plain, wanted, {});
  // A form without a name cannot be kept for the next run.
  if (!parameter_ || packing.kernel.empty())
    return plan->Converted(Place::Input(input_), plain, wanted);
  return plan->ParameterForm(input_, plain, wanted, std::move(packing));
}

}  // namespace msrt::onednn
