#include "core/image/executors/phase_memory.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/image/executors/tile_schedule.h"

namespace msrt {
namespace {

// Up to so many tiles are looked at one by one.
constexpr int64_t kEachTile = 256;

std::vector<PieceMemory> WithoutMemory(const PieceRunner& runner, std::span<const ValueBox> boxes) {
  std::vector<PieceMemory> memory;
  for (const ValueBox& b : boxes)
    memory.push_back({b.value, b.box, {runner.type(b.value).dtype, b.box.dims()}});
  return memory;
}

// Extents of all boxes that are needed and of all pieces that compute them; what is not needed
// differs from what is empty.
std::vector<int64_t> ShapesOf(const RequiredBoxes& required) {
  std::vector<int64_t> shapes;
  for (const auto* boxes : {&required.values, &required.pieces}) {
    for (const auto& box : *boxes) {
      if (!box) shapes.push_back(-1);
      for (int d = 0; box && d < box->rank(); ++d) shapes.push_back((*box)[d].size());
    }
  }
  return shapes;
}

}  // namespace

void PieceBytes::Include(const PieceBytes& other) {
  held = std::max(held, other.held);
  arena = std::max(arena, other.arena);
}

size_t BytesOfBox(const PieceRunner& runner, ValueId value, const Box& box) {
  return BytesOf(runner.type(value).dtype, box.volume());
}

PhaseMemory::PhaseMemory(const PieceRunner& runner, const StreamPhase& phase, bool last)
    : runner_(runner), phase_(phase), last_(last) {
  for (ValueId v : phase.known) known_.push_back({v, Box::Whole(runner_.type(v).dims)});
}

Result<PieceBytes> PhaseMemory::OfSchedule(const RowSchedule& schedule) const {
  std::vector<std::optional<Box>> held(runner_.graph().value_count());
  std::optional<Box> image;
  std::set<size_t> bound;
  PieceBytes most;
  const auto bytes_of = [&](uint32_t v, const Box& box) {
    return BytesOfBox(runner_, ValueId(v), box);
  };
  for (size_t s = 0; s < schedule.strip_count(); ++s) {
    const StreamStrip strip = schedule.strip(s);
    size_t bytes = 0;
    for (uint32_t v = 0; v < held.size(); ++v) {
      if (held[v]) bytes += bytes_of(v, *held[v]);
    }
    // While the rows that stay are copied, the image has two buffers; later it has one.
    const size_t before = image ? BytesOfBox(runner_, Image(), *image) : 0;
    if (strip.image) image = strip.image;
    const size_t after = image ? BytesOfBox(runner_, Image(), *image) : 0;
    most.held = std::max(most.held, bytes + before + after);
    bytes += after + Sum(strip.retains);
    if (last_) bytes += Sum(strip.targets);
    if (bound.insert(schedule.shape_of(s)).second) {
      std::vector<ValueBox> sources = known_, targets = strip.targets;
      if (image) sources.push_back({Image(), *image});
      for (ValueId v : strip.reads) {
        if (held[IndexOf(v)]) sources.push_back({v, *held[IndexOf(v)]});
      }
      targets.insert(targets.end(), strip.retains.begin(), strip.retains.end());
      MSRT_ASSIGN_OR_RETURN(const size_t arena, ArenaOf(sources, targets));
      most.arena = std::max(most.arena, arena);
    }
    most.held = std::max(most.held, bytes);
    for (const ValueBox& r : strip.retains) held[IndexOf(r.value)] = r.box;
    for (uint32_t v = 0; v < held.size(); ++v) {
      if (schedule.last_read(ValueId(v)) <= static_cast<int64_t>(s)) held[v].reset();
    }
  }
  return most;
}

Result<PieceBytes> PhaseMemory::OfStrips(int64_t rows, bool skips, size_t enough) const {
  const int64_t strips = StripCount(runner_, phase_, rows);
  MSRT_ASSIGN_OR_RETURN(const RowSchedule whole, RowSchedule::Make(runner_, phase_, rows));
  MSRT_ASSIGN_OR_RETURN(PieceBytes most, OfSchedule(whole));
  if (!skips) return most;
  // The first strip of a range computes all rows that it needs. Later ones are those of the whole,
  // with fewer rows retained.
  std::set<Shapes> seen;
  for (int64_t s = 0; s < strips && most.total() <= enough; ++s) {
    MSRT_ASSIGN_OR_RETURN(Shapes shapes, ShapesFor(TargetsOf(runner_, phase_, rows, s)));
    const int64_t reach = std::min(strips, s + whole.reach() + 1);
    for (int64_t later = s + 1; later < reach; ++later)
      shapes.push_back(static_cast<int64_t>(whole.shape_of(static_cast<size_t>(later))));
    if (!seen.insert(std::move(shapes)).second) continue;
    // Alone, and with all strips that read what it computes.
    for (const int64_t end : {s + 1, reach}) {
      MSRT_ASSIGN_OR_RETURN(const RowSchedule range,
                            RowSchedule::Make(runner_, phase_, rows, Interval{s, end}));
      MSRT_ASSIGN_OR_RETURN(const PieceBytes bytes, OfSchedule(range));
      most.Include(bytes);
      if (s + 1 == reach) break;
    }
  }
  return most;
}

Result<PieceBytes> PhaseMemory::OfTiles(int64_t rows, int64_t columns, size_t enough) const {
  const TileSchedule schedule(runner_, phase_, rows, columns);
  const int64_t down = schedule.down(), across = schedule.across();
  std::vector<int64_t> tile_rows(static_cast<size_t>(down)),
      tile_columns(static_cast<size_t>(across));
  std::iota(tile_rows.begin(), tile_rows.end(), 0);
  std::iota(tile_columns.begin(), tile_columns.end(), 0);
  // Rows and columns of a tile do not depend on each other, so one row of tiles of each shape and
  // one column of each make all shapes.
  if (down * across > kEachTile) {
    std::vector<std::vector<ValueBox>> of_rows, of_columns;
    for (const int64_t r : tile_rows) of_rows.push_back(schedule.row_targets(r));
    for (const int64_t c : tile_columns) of_columns.push_back(schedule.column_targets(c));
    MSRT_ASSIGN_OR_RETURN(tile_rows, OneOfEachShape(of_rows));
    MSRT_ASSIGN_OR_RETURN(tile_columns, OneOfEachShape(of_columns));
  }
  PieceBytes most;
  std::set<Shapes> seen;
  for (const int64_t r : tile_rows) {
    for (const int64_t c : tile_columns) {
      MSRT_ASSIGN_OR_RETURN(const PieceBytes bytes,
                            OfTile(schedule.targets(r * across + c), &seen));
      most.Include(bytes);
      if (most.total() > enough) return most;
    }
  }
  return most;
}

Result<size_t> PhaseMemory::OfDerived() const {
  if (phase_.derived.empty()) return size_t{0};
  std::vector<ValueBox> sources = known_, targets;
  std::erase_if(sources, [&](const ValueBox& s) {
    return std::find(phase_.derived.begin(), phase_.derived.end(), s.value) != phase_.derived.end();
  });
  for (ValueId v : phase_.derived) targets.push_back({v, Box::Whole(runner_.type(v).dims)});
  return ArenaOf(sources, targets);
}

Result<PieceBytes> PhaseMemory::OfTile(const std::vector<ValueBox>& targets,
                                       std::set<Shapes>* seen) const {
  const auto from = WithoutMemory(runner_, known_), to = WithoutMemory(runner_, targets);
  MSRT_ASSIGN_OR_RETURN(const RequiredBoxes required, runner_.Required(from, to));
  if (targets.empty() || !seen->insert(ShapesOf(required)).second) return PieceBytes();
  std::vector<ValueBox> sources = known_;
  PieceBytes bytes{.held = last_ ? Sum(targets) : 0};
  if (const auto& image = required.values[IndexOf(Image())]; image) {
    sources.push_back({Image(), *image});
    bytes.held += BytesOfBox(runner_, Image(), *image);
  }
  MSRT_ASSIGN_OR_RETURN(bytes.arena, ArenaOf(sources, targets));
  return bytes;
}

Result<PhaseMemory::Shapes> PhaseMemory::ShapesFor(const std::vector<ValueBox>& targets) const {
  const auto from = WithoutMemory(runner_, known_), to = WithoutMemory(runner_, targets);
  MSRT_ASSIGN_OR_RETURN(const RequiredBoxes required, runner_.Required(from, to));
  return ShapesOf(required);
}

Result<std::vector<int64_t>> PhaseMemory::OneOfEachShape(
    const std::vector<std::vector<ValueBox>>& pieces) const {
  std::map<Shapes, int64_t> found;
  for (size_t i = 0; i < pieces.size(); ++i) {
    MSRT_ASSIGN_OR_RETURN(Shapes shapes, ShapesFor(pieces[i]));
    found.emplace(std::move(shapes), static_cast<int64_t>(i));
  }
  std::vector<std::pair<int64_t, int64_t>> by_size;
  for (const auto& [shapes, piece] : found)
    by_size.emplace_back(-std::accumulate(shapes.begin(), shapes.end(), int64_t{0}), piece);
  std::sort(by_size.begin(), by_size.end());
  std::vector<int64_t> chosen;
  for (const auto& [size, piece] : by_size) chosen.push_back(piece);
  return chosen;
}

size_t PhaseMemory::Sum(std::span<const ValueBox> boxes) const {
  size_t bytes = 0;
  for (const ValueBox& b : boxes) bytes += BytesOfBox(runner_, b.value, b.box);
  return bytes;
}

Result<size_t> PhaseMemory::ArenaOf(std::span<const ValueBox> sources,
                                    std::span<const ValueBox> targets) const {
  const auto from = WithoutMemory(runner_, sources), to = WithoutMemory(runner_, targets);
  MSRT_ASSIGN_OR_RETURN(const auto binding, runner_.Bind(from, to));
  return binding->arena_bytes;
}

}  // namespace msrt
