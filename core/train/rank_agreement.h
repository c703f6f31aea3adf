// What the ranks of a training run agree on beside tensors. Every function is a collective of the
// communicator.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/comm/communicator.h"

namespace msrt {

// An error on all ranks, which names those whose text differs from that of rank 0. `what` is the
// thing that the text describes, such as "model"; `fix` ends the message.
Status CheckSameOnRanks(Communicator& comm, std::string_view what, std::string_view text,
                        std::string_view fix);
// Returns the text of rank 0.
Result<std::string> TextOfFirstRank(Communicator& comm, std::string text);
// Whether any rank says so.
Result<bool> AnyRankSays(Communicator& comm, bool says);
// Each number becomes its sum over all ranks.
Status SumOverRanks(Communicator& comm, std::span<int64_t> numbers);

}  // namespace msrt
