#include "core/extend/custom_entry.h"

#include "core/base/copy_known_fields.h"
#include "core/extend/attr_rules.h"
#include "core/extend/callback_op.h"

namespace msrt {
namespace {

constexpr uint32_t kMaxInputs = 1024, kMaxOutputs = 1024;

Status CheckDesc(const msrt_op_desc& d) {
  if (d.infer == nullptr)
    return InvalidArgument(
        "meaning.infer is null: an op needs a rule for the types of its outputs");
  if (d.min_inputs > d.max_inputs || d.max_inputs > kMaxInputs) {
    return InvalidArgument("meaning.min_inputs is ", d.min_inputs, " and max_inputs ", d.max_inputs,
                           ", must be ascending and at most ", kMaxInputs);
  }
  if (d.min_outputs > d.max_outputs || d.max_outputs > kMaxOutputs) {
    return InvalidArgument("meaning.min_outputs is ", d.min_outputs, " and max_outputs ",
                           d.max_outputs, ", must be ascending and at most ", kMaxOutputs);
  }
  if (d.min_outputs == 0 && d.effects == 0) {
    return InvalidArgument(
        "meaning.min_outputs is 0: an op without outputs and effects would always be dropped");
  }
  const bool any =
      d.axes != nullptr || d.operands != nullptr || d.results != nullptr || d.localize != nullptr;
  if (any && (d.axes == nullptr || d.operands == nullptr || d.results == nullptr)) {
    return InvalidArgument(
        "meaning.axes, operands and results belong together: give all three or none");
  }
  return OkStatus();
}

// An OpDef and the data behind its views.
struct CustomEntry {
  std::string domain, op;
  std::vector<std::string> input_names;
  std::vector<ParamDef> inputs;
  AttrRules attrs;
  std::unique_ptr<const CustomOp> custom;
  OpDef def;
};

}  // namespace

Result<std::shared_ptr<const OpDef>> MakeCustomEntry(const CustomEntryArgs& args) {
  if (args.desc->struct_size < offsetof(msrt_op_desc, flops)) {
    return InvalidArgument("meaning.struct_size is ", args.desc->struct_size,
                           "; set it with MSRT_INIT");
  }
  const msrt_op_desc desc = CopyKnownFields(*args.desc);
  MSRT_RETURN_IF_ERROR(CheckDesc(desc));
  auto entry = std::make_shared<CustomEntry>();
  entry->domain = args.domain;
  entry->op = args.op;
  MSRT_ASSIGN_OR_RETURN(entry->attrs, AttrRules::Make(desc.attrs, desc.attr_count));
  for (uint32_t i = 0; i < desc.max_inputs; ++i) entry->input_names.push_back(StrCat("input", i));
  for (uint32_t i = 0; i < desc.max_inputs; ++i) {
    entry->inputs.push_back({entry->input_names[i], kAllTypes,
                             i < desc.min_inputs ? ParamDef::kRequired : ParamDef::kOptional});
  }
  entry->custom =
      MakeCallbackOp(desc, {args.user, args.owner, args.kernel, args.version, args.services});
  OpDef& def = entry->def;
  def.name = entry->op;
  def.domain = entry->domain;
  def.version = args.version;
  def.attrs = entry->attrs.defs();
  def.inputs = entry->inputs;
  def.min_outputs = static_cast<int>(desc.min_outputs);
  def.max_outputs = static_cast<int>(desc.max_outputs);
  def.effect = desc.effects != 0 ? Effect::kRandom : Effect::kNone;
  AskCustomOp(entry->custom.get(), desc.axes != nullptr, &def);
  return std::shared_ptr<const OpDef>(entry, &entry->def);
}

}  // namespace msrt
