#include "delegates/cpu/moves.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace msrt::cpu {
namespace {

// Dims that follow one another on both sides become one; those of extent 1 are left out.
void Simplify(Move* m) {
  Dims dims, from, to;
  for (int i = 0; i < m->dims.rank(); ++i) {
    const int64_t extent = m->dims[i];
    if (extent == 1) continue;
    const int last = dims.rank() - 1;
    if (last >= 0 && from[last] == m->from[i] * extent && to[last] == m->to[i] * extent) {
      dims[last] *= extent, from[last] = m->from[i], to[last] = m->to[i];
    } else {
      dims.push_back(extent), from.push_back(m->from[i]), to.push_back(m->to[i]);
    }
  }
  if (dims.empty()) dims = from = to = {1};
  m->dims = dims, m->from = from, m->to = to;
}

// A move with its inner loop taken out of the dims.
struct Prepared {
  enum class Inner { kRun, kTiles, kElements } inner = Inner::kElements;
  Move outer;
  int64_t count = 1, from_step = 1, to_step = 1;  // of the innermost dim of the output
  int64_t columns = 1, column_to = 1;             // kTiles: of the innermost dim of the input

  explicit Prepared(Move m) : outer(std::move(m)) {
    Simplify(&outer);
    const int last = outer.dims.rank() - 1;
    count = outer.dims[last], from_step = outer.from[last], to_step = outer.to[last];
    const int inner_input =
        static_cast<int>(std::find(outer.from.begin(), outer.from.end(), 1) - outer.from.begin());
    Drop(last);
    if (from_step == 1 && to_step == 1) {
      inner = Inner::kRun;
    } else if (to_step == 1 && from_step > 1 && inner_input < last) {
      inner = Inner::kTiles;
      columns = outer.dims[inner_input], column_to = outer.to[inner_input];
      Drop(inner_input);
    }
  }
  void Drop(int dim) { outer.dims.erase(dim), outer.from.erase(dim), outer.to.erase(dim); }

  struct Offsets {
    int64_t from, to;
  };
  Offsets At(int64_t index) const {
    Offsets at{outer.from_offset, outer.to_offset};
    for (int i = outer.dims.rank() - 1; i >= 0; --i) {
      const int64_t k = index % outer.dims[i];
      at.from += k * outer.from[i], at.to += k * outer.to[i];
      index /= outer.dims[i];
    }
    return at;
  }
};

template <typename T>
void CopyElements(const std::byte* from, int64_t from_step, std::byte* to, int64_t to_step,
                  int64_t count) {
  const T* source = reinterpret_cast<const T*>(from);
  T* target = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < count; ++i) target[i * to_step] = source[i * from_step];
}

class BoundMoves final : public BoundKernel {
 public:
  BoundMoves(std::vector<Prepared> moves, size_t width) : width_(width), moves_(std::move(moves)) {}

  Status Run(const RunArgs& args) override {
    for (const Prepared& m : moves_) {
      const auto* from = args.inputs[m.outer.input].As<std::byte>();
      auto* to = args.outputs[m.outer.output].As<std::byte>();
      if (to == nullptr || from == to) continue;
      MSRT_RETURN_IF_ERROR(m.inner == Prepared::Inner::kTiles
                               ? RunTiles(m, from, to, args.parallel)
                               : RunLines(m, from, to, args.parallel));
    }
    return OkStatus();
  }
  size_t bytes() const override { return moves_.size() * sizeof(Prepared); }

 private:
  size_t Bytes(int64_t elements) const { return static_cast<size_t>(elements) * width_; }

  Status RunLines(const Prepared& m, const std::byte* from, std::byte* to,
                  ParallelFor& parallel) const {
    const bool run = m.inner == Prepared::Inner::kRun;
    const int64_t lines = m.outer.dims.elements();
    // One long run is cut; many short ones are shared out.
    const int64_t piece = run && lines == 1 ? 4 * kGrain : m.count,
                  pieces = (m.count + piece - 1) / piece;
    const int64_t grain = std::max<int64_t>(1, kGrain / std::min(piece, m.count));
    return ParallelRanges(parallel, lines * pieces, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Prepared::Offsets at = m.At(i / pieces);
        const int64_t first = i % pieces * piece, count = std::min(piece, m.count - first);
        const std::byte* source =
            from + static_cast<int64_t>(width_) * (at.from + first * m.from_step);
        std::byte* target = to + Bytes(at.to + first * m.to_step);
        if (run) std::memcpy(target, source, Bytes(count));
        else Elements(source, m.from_step, target, m.to_step, count);
      }
    });
  }

  void Elements(const std::byte* from, int64_t from_step, std::byte* to, int64_t to_step,
                int64_t count) const {
    switch (width_) {
      case 1:
        return CopyElements<uint8_t>(from, from_step, to, to_step, count);
      case 2:
        return CopyElements<uint16_t>(from, from_step, to, to_step, count);
      case 4:
        return CopyElements<uint32_t>(from, from_step, to, to_step, count);
      default:
        return CopyElements<uint64_t>(from, from_step, to, to_step, count);
    }
  }

  // Strips of 64 columns of every matrix.
  Status RunTiles(const Prepared& m, const std::byte* from, std::byte* to,
                  ParallelFor& parallel) const {
    constexpr int64_t kStrip = 64;
    const int64_t strips = (m.columns + kStrip - 1) / kStrip;
    const int64_t grain = std::max<int64_t>(1, kGrain / (m.count * std::min(m.columns, kStrip)));
    const TransposeLoop loop = LoopsHere().transpose[static_cast<size_t>(std::countr_zero(width_))];
    return ParallelRanges(
        parallel, m.outer.dims.elements() * strips, grain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const Prepared::Offsets at = m.At(i / strips);
            const int64_t first = i % strips * kStrip,
                          columns = std::min(kStrip, m.columns - first);
            loop(from + Bytes(at.from + first), m.from_step,
                 to + Bytes(at.to + first * m.column_to), m.column_to, m.count, columns);
          }
        });
  }

  const size_t width_;
  const std::vector<Prepared> moves_;
};

}  // namespace

std::unique_ptr<BoundKernel> MakeMoves(std::vector<Move> moves, size_t width) {
  std::vector<Prepared> prepared;
  for (Move& m : moves) {
    if (m.dims.elements() > 0) prepared.emplace_back(std::move(m));
  }
  return std::make_unique<BoundMoves>(std::move(prepared), width);
}

}  // namespace msrt::cpu
