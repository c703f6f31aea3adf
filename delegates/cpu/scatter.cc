// ScatterND of rows that are added: the gradient of a table of embeddings. The rows that go to one
// row of the data are summed in double, in their order, and rounded once.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "core/abi/msrt_plugin.h"
#include "delegates/cpu/rule.h"

namespace msrt::cpu {
namespace {

constexpr size_t kData = 0, kIndices = 1, kUpdates = 2;

std::string QueryScatter(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  if (op.input(kData).dtype != DType::kF32)
    return StrCat("elements of type ", op.input(kData).dtype);
  if (op.String("reduction") != "add") return "a reduction other than add";
  if (op.input(kIndices).dtype != DType::kI64) return "indices other than i64";
  if (op.input(kIndices).rank() == 0 || op.input(kIndices).dims.back() != 1)
    return "indices of more than rows";
  Candidate c = PlainCandidate(
      node,
      PassSeconds(node, static_cast<double>(node.typical->input(kUpdates).elements()), 0.5,
                  node.bytes),
      "rows");
  if (op.constant(kData) == nullptr) c.in_place = {{uint32_t{kData}, 0u}};
  c.arithmetic = MSRT_ARITHMETIC_REFERENCE;
  candidates->push_back(std::move(c));
  return {};
}

// The position of index `i` in indices whose last dim is 1.
Dims PositionOf(int64_t i, Dims dims) {
  for (int d = dims.rank() - 1; d >= 0; --d) {
    const int64_t extent = dims[d];
    dims[d] = i % extent;
    i /= extent;
  }
  return dims;
}

class BoundScatter final : public BoundKernel {
 public:
  explicit BoundScatter(const OpView& op)
      : rows_(op.input(kData).dims[0]),
        width_(op.input(kData).dims.product(1, op.input(kData).rank())),
        count_(op.input(kIndices).elements()) {}

  Status Run(const RunArgs& args) override {
    const float *data = args.inputs[kData].As<float>(),
                *updates = args.inputs[kUpdates].As<float>();
    float* y = args.outputs[0].As<float>();
    MSRT_ASSIGN_OR_RETURN(const std::vector<int64_t> rows,
                          Rows(args.inputs[kIndices].As<int64_t>(), args.inputs[kIndices].dims));
    if (width_ == 0) return OkStatus();
    if (y != data) {
      MSRT_RETURN_IF_ERROR(
          ParallelRanges(args.parallel, rows_ * width_, kGrain, [&](int64_t begin, int64_t end) {
            std::memcpy(y + begin, data + begin, static_cast<size_t>(end - begin) * sizeof(float));
          }));
    }
    // Updates of one row follow each other, in their order.
    std::vector<int64_t> order(rows.size());
    std::iota(order.begin(), order.end(), int64_t{0});
    const auto row_of = [&](int64_t i) { return rows[static_cast<size_t>(i)]; };
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return row_of(a) < row_of(b); });
    std::vector<size_t> firsts;  // in `order`
    for (size_t i = 0; i < order.size(); ++i) {
      if (i == 0 || row_of(order[i]) != row_of(order[i - 1])) firsts.push_back(i);
    }
    const auto targets = static_cast<int64_t>(firsts.size());
    firsts.push_back(order.size());
    const int64_t grain = std::max<int64_t>(1, kGrain / width_);
    return ParallelRanges(args.parallel, targets, grain, [&](int64_t begin, int64_t end) {
      for (auto t = static_cast<size_t>(begin); t < static_cast<size_t>(end); ++t) {
        const std::span<const int64_t> of_row =
            std::span(order).subspan(firsts[t], firsts[t + 1] - firsts[t]);
        AddRows(updates, of_row, y + row_of(of_row[0]) * width_);
      }
    });
  }

 private:
  Result<std::vector<int64_t>> Rows(const int64_t* indices, const Dims& dims) const {
    std::vector<int64_t> rows(indices, indices + count_);
    for (int64_t i = 0; i < count_; ++i) {
      int64_t& row = rows[static_cast<size_t>(i)];
      if (row < -rows_ || row >= rows_) {
        const Dims position = PositionOf(i, dims);
        if (rows_ == 0)
          return InvalidArgument("indices", position, " = ", row, ", but axis 0 of data is empty");
        return InvalidArgument("indices", position, " = ", row, ", must be in [", -rows_, ", ",
                               rows_ - 1, "] for axis 0 of data");
      }
      row += row < 0 ? rows_ : 0;
    }
    return rows;
  }

  void AddRows(const float* updates, std::span<const int64_t> of_row, float* y) const {
    constexpr int64_t kTile = 256;
    double sums[kTile];
    for (int64_t c = 0; c < width_; c += kTile) {
      const int64_t columns = std::min(kTile, width_ - c);
      for (int64_t k = 0; k < columns; ++k) sums[k] = static_cast<double>(y[c + k]);
      for (const int64_t u : of_row) {
        const float* update = updates + u * width_ + c;
        for (int64_t k = 0; k < columns; ++k) sums[k] += static_cast<double>(update[k]);
      }
      for (int64_t k = 0; k < columns; ++k) y[c + k] = static_cast<float>(sums[k]);
    }
  }

  const int64_t rows_, width_, count_;
};

Result<std::unique_ptr<BoundKernel>> BindScatter(const OpView& op, const Candidate&) {
  return std::unique_ptr<BoundKernel>(std::make_unique<BoundScatter>(op));
}

constexpr Rule kScatterRules[] = {{"", "ScatterND", QueryScatter, BindScatter}};

}  // namespace

std::span<const Rule> ScatterRules() { return kScatterRules; }

}  // namespace msrt::cpu
