// Transpose as a move. Between channels-last and plain tensors a transpose that moves the
// channels is the same memory, and costs nothing where the two can share it.
#include <optional>

#include "delegates/cpu/moves.h"

namespace msrt::cpu {
namespace {

std::vector<int> PermOf(const OpView& op) {
  const int rank = op.input(0).rank();
  const auto given = op.Ints("perm");
  std::vector<int> perm(given.begin(), given.end());
  if (perm.empty()) {
    for (int i = rank - 1; i >= 0; --i) perm.push_back(i);
  }
  for (int& p : perm) p = p < 0 ? p + rank : p;
  return perm;
}

// Layouts in which input and output have the same order in memory; nothing where there are none.
std::optional<std::pair<Layout, Layout>> FreeLayouts(const std::vector<int>& perm) {
  const int rank = static_cast<int>(perm.size());
  if (rank < 3 || rank > 5 || perm[0] != 0) return std::nullopt;
  std::vector<int> to_last(perm.size()), from_last(perm.size());
  for (int i = 1; i < rank; ++i) {
    to_last[static_cast<size_t>(i)] = i + 1 < rank ? i + 1 : 1;
    from_last[static_cast<size_t>(i)] = i > 1 ? i - 1 : rank - 1;
  }
  if (perm == to_last) return std::pair(Layout::kChannelsLast, Layout::kPlain);
  if (perm == from_last) return std::pair(Layout::kPlain, Layout::kChannelsLast);
  return std::nullopt;
}

std::string QueryTranspose(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  if (BitsOf(op.input(0).dtype) < 8) return StrCat("elements of type ", op.input(0).dtype);
  Candidate c = PlainCandidate(
      node,
      PassSeconds(node, static_cast<double>(node.typical->output(0).elements()), 0.15, node.bytes),
      "tiles");
  c.arithmetic = ArithmeticOf(*node.op);
  candidates->push_back(c);
  const auto free = FreeLayouts(PermOf(op));
  if (!free || op.constant(0) != nullptr) return {};
  c.input_layouts[0] = free->first, c.output_layouts[0] = free->second;
  c.seconds = kLaunchSeconds;
  c.algorithm = "same memory";
  c.in_place = {{0u, 0u}};
  candidates->push_back(std::move(c));
  return {};
}

Result<std::unique_ptr<BoundKernel>> BindTranspose(const OpView& op, const Candidate& candidate) {
  const Type& type = op.input(0);
  const size_t width = BitsOf(type.dtype) / 8;
  if (candidate.input_layouts[0] != candidate.output_layouts[0]) {  // the same order in memory
    return MakeMoves({{.dims = {type.elements()}, .from = {1}, .to = {1}}}, width);
  }
  const Dims steps = RowMajorStrides(type.dims);
  Move m{.dims = {}, .from = {}, .to = RowMajorStrides(op.output(0).dims)};
  for (const int p : PermOf(op)) m.dims.push_back(type.dims[p]), m.from.push_back(steps[p]);
  return MakeMoves({std::move(m)}, width);
}

constexpr Rule kTransposeRules[] = {{"", "Transpose", QueryTranspose, BindTranspose}};

}  // namespace

std::span<const Rule> TransposeRules() { return kTransposeRules; }

}  // namespace msrt::cpu
