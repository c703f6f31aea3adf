#include "tests/conformance/piece_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/conformance/case_node.h"

namespace msrt::testing {
namespace {

constexpr std::byte kPattern{0xA5};

double LargestOf(const ConstTensor& t) {
  double most = 0;
  if (t.dtype != DType::kF32) return 0;
  for (float v : t.As<float>()) {
    if (std::isfinite(v)) most = std::max(most, std::abs(static_cast<double>(v)));
  }
  return most;
}

Box RandomBox(const Dims& dims, std::mt19937& random) {
  Box box = Box::Whole(dims);
  for (int d = 0; d < dims.rank(); ++d) {
    if (dims[d] == 0) continue;
    const auto x = static_cast<int64_t>(random() % static_cast<uint64_t>(dims[d]));
    const auto y = static_cast<int64_t>(random() % static_cast<uint64_t>(dims[d]));
    box[d] = {std::min(x, y), std::max(x, y) + 1};
  }
  return box;
}

bool IsWideEnough(const ConstTensor& t) { return BitsOf(t.dtype) >= 8; }

}  // namespace

Embedded::Embedded(const Type& type, int64_t margin)
    : type_(type), outer_(type.dims), margin_(margin) {
  for (int64_t& d : outer_) d += 2 * margin;
  strides_ = RowMajorStrides(outer_);
  int64_t first = 0;
  for (int64_t s : strides_) first += margin * s;
  const size_t width = BytesOf(type.dtype, 1);
  bytes_.assign(BytesOf(type.dtype, outer_.elements()) + 64, kPattern);
  view_ = {type.dtype, type.dims, Layout::kPlain,
           bytes_.data() + static_cast<size_t>(first) * width};
  if (margin > 0) view_.strides = strides_.begin();
}

void Embedded::Set(const ConstTensor& t) {
  const size_t width = BytesOf(type_.dtype, 1);
  const Dims from = RowMajorStrides(t.dims);
  for (int64_t i = 0; i < t.dims.elements(); ++i) {
    int64_t at = 0, rest = i;
    for (int d = 0; d < t.dims.rank(); ++d) at += rest / from[d] * strides_[d], rest %= from[d];
    std::memcpy(view_.As<std::byte>() + static_cast<size_t>(at) * width,
                t.bytes.data() + static_cast<size_t>(i) * width, width);
  }
}

ConstTensor Embedded::Get() const {
  Box box;
  for (int64_t d : type_.dims) box.push_back({margin_, margin_ + d});
  const ConstTensor all = ConstTensor::Copy(
      type_.dtype, outer_, {bytes_.data(), BytesOf(type_.dtype, outer_.elements())});
  return CutOut(all, box);
}

bool Embedded::SurroundingsAreUnchanged() const {
  Embedded pattern = *this;  // its view still points here
  pattern.view_.data = pattern.bytes_.data() + (view_.As<std::byte>() - bytes_.data());
  pattern.Set(
      ConstTensor::Copy(type_.dtype, type_.dims, std::vector<std::byte>(type_.bytes(), kPattern)));
  return std::all_of(pattern.bytes_.begin(), pattern.bytes_.end(),
                     [](std::byte b) { return b == kPattern; });
}

bool CheckPieces(const CaseModule& m, std::shared_ptr<const CompiledModel> model,
                 const std::vector<ConstTensor>& whole, double tolerance, int rounds, uint32_t seed,
                 PieceTotals* totals) {
  if (!std::all_of(m.inputs.begin(), m.inputs.end(), IsWideEnough) ||
      !std::all_of(whole.begin(), whole.end(), IsWideEnough))
    return false;
  std::vector<Dims> dims;
  for (const ConstTensor& t : m.inputs) dims.push_back(t.dims);
  auto runner = PieceRunner::Create(std::move(model), 0, dims, {});
  if (runner.status().code() == Code::kUnsupported) return false;
  EXPECT_TRUE(runner.ok()) << runner.status().message();
  if (!runner.ok()) return false;
  const Graph& graph = (*runner)->graph();
  std::mt19937 random(seed);
  for (int round = 0; round < rounds; ++round) {
    std::vector<Embedded> given;
    std::vector<PieceMemory> sources;
    given.reserve(m.inputs.size());
    for (size_t i = 0; i < m.inputs.size(); ++i) {
      given.emplace_back(m.inputs[i].type(), static_cast<int64_t>(random() % 2));
      given.back().Set(m.inputs[i]);
      sources.push_back({graph.inputs[i], Box::Whole(m.inputs[i].dims), given.back().view()});
    }
    const size_t o = static_cast<size_t>(round) % whole.size();
    const Box box = RandomBox(whole[o].dims, random);
    Embedded result(Type::Tensor(whole[o].dtype, box.dims()), static_cast<int64_t>(random() % 2));
    const PieceMemory target{graph.outputs[o], box, result.view()};
    SCOPED_TRACE(StrCat("output ", o, " box ", box));
    const Status status = (*runner)->Run(sources, {&target, 1}, {});
    EXPECT_TRUE(status.ok()) << status.message();
    if (!status.ok()) return true;
    EXPECT_EQ(
        Difference(result.Get(), CutOut(whole[o], box), tolerance, tolerance * LargestOf(whole[o])),
        "");
    EXPECT_TRUE(result.SurroundingsAreUnchanged());
    ++totals->pieces;
    for (const BoundStep& step : (*runner)->binding()->steps) {
      const bool strided = std::any_of(step.views.begin(), step.views.end(),
                                       [](const TensorView& v) { return v.strides != nullptr; });
      if (step.kernel != nullptr) totals->strided += strided ? 1 : 0;
      else totals->copies += strided ? 1 : 0;
    }
  }
  ++totals->rows;
  totals->bound += (*runner)->kernel_counts().misses;
  totals->reused += (*runner)->kernel_counts().hits;
  return true;
}

}  // namespace msrt::testing
