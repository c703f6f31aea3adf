// Communication between ranks. An Exchange has a part of a value on each rank; each rank gets the
// boxes that it requires of it, from whichever ranks have them. It has no kernel: the communicator
// belongs to the session, so core/run executes it.
#include "ops/exchange.h"

#include <algorithm>

#include "core/base/checked_math.h"
#include "ops/families.h"
#include "ops/infer.h"

namespace msrt {
namespace {

constexpr int64_t kMaxCoordinate = int64_t{1} << 56;
constexpr int kMaxNumbers = 1 << 16;  // of a list of boxes
constexpr int kMaxExchangeOutputs = 64;

constexpr AttrDef kExchangeAttrs[] = {
    {.name = "dtype", .kind = AttrKind::kDType, .required = true},
    // Boxes are pairs of begin and end for each dim, in global coordinates.
    {.name = "own",
     .kind = AttrKind::kInts,
     .required = true,
     .min_int = 0,
     .max_int = kMaxCoordinate,
     .max_count = 2 * kMaxRank,
     .local = true},
    {.name = "required",
     .kind = AttrKind::kInts,
     .min_int = 0,
     .max_int = kMaxCoordinate,
     .max_count = 2 * kMaxRank * kMaxExchangeOutputs},
    // A rank, then a box, for each part.
    {.name = "sends",
     .kind = AttrKind::kInts,
     .min_int = 0,
     .max_int = kMaxCoordinate,
     .max_count = kMaxNumbers},
    {.name = "receives",
     .kind = AttrKind::kInts,
     .min_int = 0,
     .max_int = kMaxCoordinate,
     .max_count = kMaxNumbers},
    {.name = "group", .kind = AttrKind::kString},
};
// Absent if the rank has nothing of the value.
constexpr ParamDef kExchangeInputs[] = {
    {.name = "own", .types = kAllTypes, .kind = ParamDef::kOptional}};

Result<Box> ReadBox(std::span<const int64_t> numbers) {
  Box box;
  int64_t volume = 1;
  for (size_t i = 0; i < numbers.size(); i += 2) {
    if (numbers[i + 1] < numbers[i]) return InvalidModel("a box ends before it begins");
    box.push_back({numbers[i], numbers[i + 1]});
    if (!CheckedMul(volume, box[box.rank() - 1].size(), &volume) || volume > kMaxElements)
      return InvalidModel("a box has more than 2^56 elements");
  }
  return box;
}

Status ReadPeers(std::span<const int64_t> numbers, size_t width, std::vector<PeerBox>* out) {
  if (numbers.size() % (width + 1) != 0)
    return InvalidModel("a list of parts has ", numbers.size(), " numbers, not a multiple of ",
                        width + 1);
  for (size_t i = 0; i < numbers.size(); i += width + 1) {
    if (numbers[i] > INT32_MAX) return InvalidModel("there is no rank ", numbers[i]);
    MSRT_ASSIGN_OR_RETURN(Box box, ReadBox(numbers.subspan(i + 1, width)));
    out->push_back({static_cast<int>(numbers[i]), box});
  }
  return OkStatus();
}

// Every element of every output comes from exactly one part.
Status CheckCovered(const ExchangePlan& plan) {
  const std::vector<PeerBox>& parts = plan.receives;
  for (size_t i = 0; i < parts.size(); ++i) {
    bool apart = Intersect(parts[i].box, plan.own).empty();
    for (size_t j = 0; j < i && apart; ++j) apart = Intersect(parts[i].box, parts[j].box).empty();
    if (!apart) return InvalidModel("it receives ", parts[i].box, ", of which it has a part");
  }
  for (const Box& box : plan.required) {
    int64_t covered = Intersect(box, plan.own).volume();
    for (const PeerBox& part : parts) covered += Intersect(box, part.box).volume();
    if (covered != box.volume())
      return InvalidModel("it requires ", box, ", of which it neither has nor receives all");
  }
  return OkStatus();
}

Status InferExchange(InferContext& c) {
  MSRT_ASSIGN_OR_RETURN(const ExchangePlan plan, ExchangePlanOf(c.op()));
  if (c.output_count() != plan.required.size())
    return InvalidModel("it has ", c.output_count(), " outputs and requires ", plan.required.size(),
                        " boxes");
  if (c.has_input(0)) {
    const Type& own = c.input(0);
    if (own.dtype != plan.dtype || !MergeTypes(own, Type::Tensor(plan.dtype, plan.own.dims())).ok())
      return InvalidModel("its input is ", own, ", its own box ", plan.own);
  } else if (!plan.own.empty()) {
    return InvalidModel("it has no input, although its own box is ", plan.own);
  }
  for (size_t i = 0; i < plan.required.size(); ++i)
    c.SetOutput(i, plan.dtype, plan.required[i].dims());
  return OkStatus();
}

void Append(const Box& box, std::vector<int64_t>* to) {
  for (int d = 0; d < box.rank(); ++d) to->insert(to->end(), {box[d].begin, box[d].end});
}

std::vector<int64_t> NumbersOf(std::span<const PeerBox> parts) {
  std::vector<int64_t> numbers;
  for (const PeerBox& part : parts) {
    numbers.push_back(part.rank);
    Append(part.box, &numbers);
  }
  return numbers;
}

constexpr OpDef kExchangeOps[] = {
    {.name = "Exchange",
     .domain = "msrt",
     .version = 1,
     .attrs = kExchangeAttrs,
     .inputs = kExchangeInputs,
     .min_outputs = 0,
     .max_outputs = kMaxExchangeOutputs,
     .infer = InferExchange,
     .effect = Effect::kComm},
};

}  // namespace

Result<ExchangePlan> ExchangePlanOf(const OpView& op) {
  ExchangePlan plan;
  plan.dtype = op.Dtype("dtype");
  plan.group = op.String("group");
  if (plan.dtype == DType::kNone || BitsOf(plan.dtype) < 8)
    return InvalidModel("elements of less than a byte cannot be exchanged");
  const std::span<const int64_t> own = op.Ints("own"), required = op.Ints("required");
  if (own.empty() || own.size() % 2 != 0)
    return InvalidModel("attribute 'own' has ", own.size(), " numbers, not two for each dim");
  MSRT_ASSIGN_OR_RETURN(plan.own, ReadBox(own));
  if (required.size() % own.size() != 0)
    return InvalidModel("attribute 'required' has ", required.size(),
                        " numbers, not a multiple of ", own.size());
  for (size_t i = 0; i < required.size(); i += own.size()) {
    MSRT_ASSIGN_OR_RETURN(Box box, ReadBox(required.subspan(i, own.size())));
    plan.required.push_back(box);
  }
  MSRT_RETURN_IF_ERROR(ReadPeers(op.Ints("sends"), own.size(), &plan.sends));
  MSRT_RETURN_IF_ERROR(ReadPeers(op.Ints("receives"), own.size(), &plan.receives));
  for (const PeerBox& part : plan.sends) {
    if (!Contains(plan.own, part.box))
      return InvalidModel("it sends ", part.box, ", but has ", plan.own);
  }
  MSRT_RETURN_IF_ERROR(CheckCovered(plan));
  return plan;
}

AttrList AttrsOf(const ExchangePlan& plan) {
  std::vector<int64_t> own, required;
  Append(plan.own, &own);
  for (const Box& box : plan.required) Append(box, &required);
  return {{"dtype", plan.dtype},
          {"own", std::move(own)},
          {"required", std::move(required)},
          {"sends", NumbersOf(plan.sends)},
          {"receives", NumbersOf(plan.receives)},
          {"group", plan.group}};
}

int64_t ElementsOf(std::span<const PeerBox> boxes) {
  int64_t elements = 0;
  for (const PeerBox& b : boxes) elements += b.box.volume();
  return elements;
}

std::span<const OpDef> ExchangeOps() { return kExchangeOps; }

}  // namespace msrt
