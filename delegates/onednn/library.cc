#include "delegates/onednn/library.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstdlib>

#include "core/base/checked_math.h"
#include "delegates/onednn/onednn.h"

namespace msrt::onednn {
namespace {

// Bindings own their primitives, so the library's global cache only helps where several layers have
// one geometry: it needs to hold the distinct primitives of the models in use, not of every shape
// they ever saw. An entry of JIT code and tables is 20 to 70 KB, so these are some 6 MB.
constexpr int kPrimitiveCacheEntries = 128;

// Some virtual machines announce AMX but hide the sizes of its tiles (CPUID leaf 0x1d). The library
// then computes with tiles of no rows, which is an illegal instruction.
bool HidesTiles() {
#if defined(__x86_64__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(0x1d, 1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & 0xffff) == 0;
#else
  return false;
#endif
}

// Everything asks this function before the library chooses its instructions for good.
dnnl::cpu_isa EffectiveIsa() {
  static const dnnl::cpu_isa isa = [] {
    const bool capped = std::getenv("ONEDNN_MAX_CPU_ISA") != nullptr;
    if (!capped && HidesTiles()) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_fp16);
    return dnnl::get_effective_cpu_isa();
  }();
  return isa;
}

// Instruction sets are sets of bits: those that are later include it.
bool Includes(dnnl::cpu_isa isa) {
  const auto bits = static_cast<unsigned>(isa);
  return (static_cast<unsigned>(EffectiveIsa()) & bits) == bits;
}

bool HasAvx512Vnni() {
  static const bool has = Includes(dnnl::cpu_isa::avx512_core_vnni);
  return has;
}

}  // namespace

const dnnl::engine& Engine() {
  static const dnnl::engine engine = [] {
    EffectiveIsa();
    dnnl::set_primitive_cache_capacity(kPrimitiveCacheEntries);
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return engine;
}

memory::data_type ToDnnl(DType dtype) {
  switch (dtype) {
    case DType::kU8:
      return memory::data_type::u8;
    case DType::kI8:
      return memory::data_type::s8;
    case DType::kI32:
      return memory::data_type::s32;
    default:
      return memory::data_type::f32;
  }
}

memory::desc Describe(const Dims& dims, Layout layout, memory::data_type elements) {
  using Tag = memory::format_tag;
  constexpr Tag kChannelsLast[] = {Tag::nwc, Tag::nhwc, Tag::ndhwc},
                kBlocked8[] = {Tag::nCw8c, Tag::nChw8c, Tag::nCdhw8c},
                kBlocked16[] = {Tag::nCw16c, Tag::nChw16c, Tag::nCdhw16c};
  if (dims.rank() == 0) return memory::desc({1}, elements, memory::dims{1});
  if (layout == Layout::kPlain)
    return memory::desc(ToDnnl(dims), elements, ToDnnl(RowMajorStrides(dims)));
  const Tag* tags = layout == Layout::kChannelsLast ? kChannelsLast
                    : layout == Layout::kBlocked8   ? kBlocked8
                                                    : kBlocked16;
  return memory::desc(ToDnnl(dims), elements, tags[dims.rank() - 3]);
}

bool SumsBytesExactly() {
  static const bool exact =
      OneDnnInstructions().find("vnni") != std::string::npos || HasAvx512Vnni();
  return exact;
}

bool SumsBytesExactly(const dnnl::primitive_desc& descriptor) {
  return HasAvx512Vnni() ||
         std::string_view(descriptor.impl_info_str()).find("vnni") != std::string_view::npos;
}

memory::desc InBf16(const memory::desc& desc) {
  return memory::desc(desc.get_dims(), memory::data_type::bf16, desc.get_strides());
}

bool HasWideVectors() {
  static const bool wide = Includes(dnnl::cpu_isa::avx512_core);
  return wide;
}

bool HasBf16() {
  static const bool has = [] {
    using Isa = dnnl::cpu_isa;
    const Isa isa = EffectiveIsa();
    return isa == Isa::avx512_core_bf16 || isa == Isa::avx512_core_fp16 ||
           isa == Isa::avx512_core_amx || isa == Isa::avx512_core_amx_fp16;
  }();
  return has;
}

dnnl::primitive_attr UserScratchpad(const dnnl::post_ops& post_ops) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (post_ops.len() > 0) attr.set_post_ops(post_ops);
  return attr;
}

Status FromError(const dnnl::error& error, const OpView& op) {
  std::string text = StrCat(op.op(), " '", op.name(), "'");
  for (size_t i = 0; i < op.input_count(); ++i) {
    if (op.has_input(i)) StrAppend(&text, i == 0 ? " " : ", ", op.input(i));
  }
  const Code code = error.status == dnnl_out_of_memory ? Code::kOutOfMemory : Code::kDelegate;
  return MakeStatus(code, text, ": oneDNN says '", std::string(error.what()), "'");
}

}  // namespace msrt::onednn

namespace msrt {

std::string OneDnnVersion() {
  const dnnl_version_t& version = *dnnl_version();
  return StrCat(version.major, ".", version.minor, ".", version.patch);
}

std::string OneDnnInstructions() {
  using Isa = dnnl::cpu_isa;
  constexpr std::pair<Isa, std::string_view> kNames[] = {
      {Isa::sse41, "sse41"},
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
  const Isa isa = onednn::EffectiveIsa();
  for (const auto& [known, name] : kNames) {
    if (known == isa) return std::string(name);
  }
  return StrCat("isa", static_cast<int64_t>(isa));
}

}  // namespace msrt
