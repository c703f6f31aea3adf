// Models that a reader must refuse, a file for each known way to attack a runtime with model files.
// The structure of files (offsets, sizes, references, truncation) has its own table beside the code
// that checks it, core/model/bad_model_test.cc.
#pragma once

#include <span>

#include "tests/hostile/model_draft.h"

namespace msrt::testing {

struct BadModel {
  const char* name;
  Code code;             // kOk: legal; it must run within the caps
  const char* fragment;  // of the message: the object that is wrong
  void (*make)(ModelDraft&);
};

inline constexpr auto kBad = Code::kInvalidModel;
inline constexpr auto kData = Code::kInvalidArgument;  // the data of a run is wrong, not the file

std::span<const BadModel> DivisorModels();  // divisors and steps of a kernel: zero, negative, huge
std::span<const BadModel> SizeModels();   // products and sums of dims that overflow or wrap to zero
std::span<const BadModel> IndexModels();  // axes, slots and data indices out of range
std::span<const BadModel>
MissingModels();  // inputs, attributes, types and elements that are missing
std::span<const BadModel>
OrderModels();                           // cycles, calls, two producers, shared and writable memory
std::span<const BadModel> BombModels();  // small files that ask for much memory or time
std::span<const BadModel>
UnknownModels();  // ops, versions, attributes and types that no reader knows
std::span<const BadModel>
HistoricModels();  // one for each published vulnerability that applies to this format

}  // namespace msrt::testing
