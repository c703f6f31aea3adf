// Channel groups of a convolution, for a whole node and for a piece of one.
#pragma once

#include "core/graph/op_view.h"
#include "core/region/box.h"

namespace msrt {

// Output channel m of the node belongs to group (m + first_output) / group_outputs of the `groups`
// groups whose inputs the node has. A piece that begins or ends inside a group has the local
// attribute output_channels = [begin, end, per group], counted from its first group; whole nodes
// begin at 0 and end with their last group.
struct ConvChannels {
  int64_t groups = 1;
  int64_t group_inputs = 0, group_outputs = 0;
  int64_t first_output = 0, outputs = 0;

  int64_t group_of(int64_t output) const { return (output + first_output) / group_outputs; }
};
inline constexpr AttrDef kOutputChannelsAttr{.name = "output_channels",
                                             .kind = AttrKind::kInts,
                                             .min_int = 0,
                                             .max_int = int64_t{1} << 56,
                                             .max_count = 3,
                                             .local = true};

// Requires that the types of the node have been inferred. `transposed`: weights are [inputs,
// outputs of a group, ...].
ConvChannels ConvChannelsOf(const OpView& op, const Dims& input, const Dims& weights,
                            bool transposed);

// Returns the groups of output channels `outputs`. An empty interval keeps all groups: it must stay
// a valid convolution.
Interval GroupsOf(const ConvChannels& channels, Interval outputs);
// Sets the attributes `group` and `output_channels` of a piece that has output channels `outputs`.
void LocalizeGroups(const ConvChannels& channels, Interval outputs, AttrList* attrs);

}  // namespace msrt
