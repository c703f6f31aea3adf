#include "delegates/onednn/library.h"

#include "core/base/checked_math.h"

namespace msrt::onednn {
namespace {

// Bindings own their primitives, so the library's global cache only helps where several layers have one geometry: it needs to hold
// the distinct primitives of the models in use, not of every shape they ever saw. An entry of JIT code and tables is
// 20 to 70 KB, so these are some 6 MB.
constexpr int kPrimitiveCacheEntries = 128;

}  // namespace

const dnnl::engine& Engine() {
  static const dnnl::engine engine = [] {
    dnnl::set_primitive_cache_capacity(kPrimitiveCacheEntries);
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return engine;
}

memory::desc Describe(const Dims& dims, Layout layout) {
  using Tag = memory::format_tag;
  constexpr Tag kChannelsLast[] = {Tag::nwc, Tag::nhwc, Tag::ndhwc}, kBlocked[] = {Tag::nCw8c, Tag::nChw8c, Tag::nCdhw8c};
  constexpr auto kF32 = memory::data_type::f32;
  if (dims.rank() == 0) return memory::desc({1}, kF32, memory::dims{1});
  if (layout == Layout::kPlain) return memory::desc(ToDnnl(dims), kF32, ToDnnl(RowMajorStrides(dims)));
  const Tag* tags = layout == Layout::kChannelsLast ? kChannelsLast : kBlocked;
  return memory::desc(ToDnnl(dims), kF32, tags[dims.rank() - 3]);
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
