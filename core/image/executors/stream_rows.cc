#include "core/image/executors/stream_rows.h"

#include <limits>
#include <map>

namespace msrt {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
// Planning starts again at most this often: a pad reflects few rows, and a window has few taps.
constexpr size_t kMaxRoundsPerValue = 64;

// The target with the most rows determines the strips; the others follow in proportion.
int64_t MaxRows(const PieceRunner& runner, const StreamPhase& phase) {
  int64_t rows = 1;
  for (const StreamTarget& t : phase.targets) rows = std::max(rows, RowsOf(runner, t));
  return rows;
}

// Returns the dim in which two strips of a value differ, or -1. They may be of different widths in
// another dim, where one contains the other.
int DimOfRows(const Box& a, const Box& b) {
  int dim = -1;
  for (int d = 0; d < a.rank(); ++d) {
    if (a[d] == b[d]) continue;
    if (!a[d].Contains(b[d]) && !b[d].Contains(a[d])) return d;
    if (dim < 0) dim = d;
  }
  return dim;
}

std::vector<PieceMemory> MemoryFor(std::span<const ValueBox> boxes) {
  std::vector<PieceMemory> memory;
  for (const ValueBox& b : boxes) memory.push_back({b.value, b.box, {}});
  return memory;
}

}  // namespace

int64_t StripCount(const PieceRunner& runner, const StreamPhase& phase, int64_t rows) {
  const int64_t all = MaxRows(runner, phase);
  return (all + rows - 1) / rows;
}

std::vector<ValueBox> TargetsOf(const PieceRunner& runner, const StreamPhase& phase, int64_t rows,
                                int64_t s) {
  const int64_t all = MaxRows(runner, phase);
  const auto cut = [&](int64_t strip, int64_t extent) {
    return std::min(all, strip * rows) * extent / all;
  };
  std::vector<ValueBox> boxes;
  for (const StreamTarget& t : phase.targets) {
    const int64_t extent = RowsOf(runner, t);
    Interval part{cut(s, extent), cut(s + 1, extent)};
    if (t.dim < 0) part = s == 0 ? Interval{0, 1} : Interval{0, 0};
    if (!part.empty()) boxes.push_back({t.value, CutOf(runner, t, part)});
  }
  return boxes;
}

// Plans the strips one by one, then finds what each must retain for those after it.
class RowScheduler {
 public:
  RowScheduler(const PieceRunner& runner, const StreamPhase& phase, int64_t rows, Interval range)
      : runner_(runner),
        graph_(runner.graph()),
        phase_(phase),
        range_(range),
        known_(graph_.value_count()) {
    out_.runner_ = &runner, out_.phase_ = &phase, out_.rows_ = rows, out_.first_ = range.begin;
    out_.layers_.resize(graph_.value_count());
    out_.last_read_.assign(graph_.value_count(), -1);
    for (ValueId v : phase.known) known_[IndexOf(v)] = true;
  }

  Result<RowSchedule> Run() {
    MSRT_RETURN_IF_ERROR(FindDims(StripCount(runner_, phase_, out_.rows_)));
    const size_t max_rounds = kMaxRoundsPerValue * graph_.value_count();
    for (size_t round = 0; round < max_rounds; ++round) {
      Reset();
      for (int64_t s = range_.begin; s < range_.end && !again_; ++s) MSRT_RETURN_IF_ERROR(Plan(s));
      if (!again_) break;
    }
    if (again_) return Refuse(again_value_);
    FindReach();
    FindRetained();
    return std::move(out_);
  }

 private:
  using Rows = RowSchedule::Rows;
  using Layers = RowSchedule::Layers;

  ValueId image() const { return graph_.inputs[0]; }
  bool IsConstant(ValueId v) const { return runner_.spaces().facts().known[IndexOf(v)] != nullptr; }

  void Reset() {
    again_ = false;
    out_.strips_.clear();
    out_.image_ = Box();
    for (Layers& layers : out_.layers_) layers.box.reset(), layers.narrow = false;
    shapes_.clear();
  }

  Result<RequiredBoxes> Required(int64_t s, bool from_image) const {
    std::vector<PieceMemory> sources;
    for (ValueId v : phase_.known) sources.push_back({v, Box::Whole(runner_.type(v).dims), {}});
    for (uint32_t v = 0; !from_image && v < out_.layers_.size(); ++v) {
      if (const auto& box = out_.layers_[v].box; box && ValueId(v) != image())
        sources.push_back({ValueId(v), *box, {}});
    }
    std::vector<ValueBox> wanted = TargetsOf(runner_, phase_, out_.rows_, s);
    if (const auto early = early_.find(s); early != early_.end() && !from_image)
      wanted.insert(wanted.end(), early->second.begin(), early->second.end());
    if (from_image) return runner_.Required(sources, MemoryFor(wanted));
    for (;;) {
      MSRT_ASSIGN_OR_RETURN(RequiredBoxes required, runner_.Required(sources, MemoryFor(wanted)));
      const size_t before = wanted.size();
      for (const auto& [v, wide] : wide_) {
        if (!required.values[v]) continue;
        Box box = wide;
        if (const int dim = out_.layers_[v].dim; dim >= 0) box[dim] = (*required.values[v])[dim];
        if (!Contains(*required.values[v], box)) wanted.push_back({ValueId(v), box});
      }
      if (wanted.size() == before) return required;
    }
  }

  // The rows of a value are the dim in which the first and the last strip differ. Where one of them
  // reads nothing of the value but padding, AddComputed finds the dim.
  Status FindDims(int64_t strips) {
    MSRT_ASSIGN_OR_RETURN(const RequiredBoxes first, Required(0, true));
    MSRT_ASSIGN_OR_RETURN(const RequiredBoxes last, Required(strips - 1, true));
    for (uint32_t v = 0; v < graph_.value_count(); ++v) {
      if (!first.values[v] || !last.values[v] || known_[v]) continue;
      out_.layers_[v].dim = DimOfRows(*first.values[v], *last.values[v]);
    }
    if (int& dim = out_.layers_[IndexOf(image())].dim; dim < 0) dim = 2;
    return OkStatus();
  }

  Status Refuse(uint32_t v) const {
    return Unsupported("the rows of value '", graph_.value(ValueId(v)).name,
                       "' do not follow each other from strip to strip; use tiles");
  }

  Status Plan(int64_t s) {
    MSRT_ASSIGN_OR_RETURN(const RequiredBoxes required, Required(s, false));
    RowSchedule::Strip& strip = out_.strips_.emplace_back();
    for (uint32_t v = 0; v < graph_.value_count(); ++v) {
      if (required.values[v] && !known_[v] && !IsConstant(ValueId(v)))
        MSRT_RETURN_IF_ERROR(AddNeed(v, *required.values[v], &strip));
    }
    shape_.clear();
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (required.pieces[n]) MSRT_RETURN_IF_ERROR(AddNode(n, *required.pieces[n], &strip));
    }
    for (const Rows& r : strip.needs) shape_.push_back(r.value), shape_.push_back(r.rows.size());
    strip.shape = shapes_.emplace(shape_, shapes_.size()).first->second;
    return OkStatus();
  }

  // Notes the rows that exist already.
  Status AddNeed(uint32_t v, const Box& needed, RowSchedule::Strip* strip) {
    Layers& layers = out_.layers_[v];
    if (ValueId(v) == image()) {
      strip->image = needed[layers.dim];
      out_.image_ = out_.image_.rank() == 0 ? needed : Hull(out_.image_, needed);
      return OkStatus();
    }
    if (!layers.box) return OkStatus();
    if (layers.dim < 0) {
      strip->needs.push_back({v, {0, 1}});
      return OkStatus();
    }
    const Interval have = (*layers.box)[layers.dim], rows = needed[layers.dim];
    if (rows.begin < have.begin) {
      // Dilations and reflections need later rows first. The strip that computed them has to
      // compute these rows too.
      Box box = *layers.box;
      box[layers.dim] = {std::max(rows.begin, layers.end_before), have.begin};
      if (box.empty()) return Refuse(v);
      early_[layers.first_strip].push_back({ValueId(v), box});
      again_ = true, again_value_ = v;
      return OkStatus();
    }
    const Interval both = Intersect(have, rows);
    if (both.empty()) return OkStatus();
    strip->needs.push_back({v, both});
    // Rows are retained in the width of the box, so the strips that compute them have to compute it
    // and to read what it needs.
    return layers.narrow ? Widen(v, *layers.box) : OkStatus();
  }

  Status AddNode(size_t n, const Box& piece, RowSchedule::Strip* strip) {
    const Node& node = graph_.nodes[n];
    const ResolvedSpace* space = runner_.spaces().of_node(n);
    const bool whole = space == nullptr || piece.rank() == 0;
    std::vector<Box> boxes;
    if (!whole) boxes = OutputBoxes(*space, piece);
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      const ValueId v = node.outputs[o];
      if (v == kNoValue || known_[IndexOf(v)]) continue;
      const Box box = whole ? Box::Whole(runner_.type(v).dims) : boxes[o];
      if (!box.empty()) MSRT_RETURN_IF_ERROR(AddComputed(IndexOf(v), box, strip));
    }
    return OkStatus();
  }

  Status AddComputed(uint32_t v, const Box& box, RowSchedule::Strip* strip) {
    Layers& layers = out_.layers_[v];
    shape_.push_back(v);
    const Interval rows = layers.dim < 0 ? Interval{0, 1} : box[layers.dim];
    shape_.push_back(rows.size());
    if (layers.box) {
      if (layers.dim < 0) return Learn(v, DimOfRows(*layers.box, box));
      for (int d = 0; d < box.rank(); ++d) {
        if (d == layers.dim) continue;
        if (!(*layers.box)[d].Contains(box[d])) return Widen(v, box);
        layers.narrow = layers.narrow || (*layers.box)[d] != box[d];
      }
      const Interval have = layers.dim < 0 ? Interval{0, 1} : (*layers.box)[layers.dim];
      // Rows in between that no strip needed do not exist.
      if (layers.dim >= 0 && rows.begin > have.end) {
        (*layers.box)[layers.dim] = rows;
        layers.end_before = have.end;
        layers.first_strip = StripNumber();
      } else if (layers.dim >= 0) {
        (*layers.box)[layers.dim] = Hull(have, rows);
      }
    } else {
      layers.box = box;
      layers.end_before = INT64_MIN;
      layers.first_strip = StripNumber();
    }
    const Interval now = layers.dim < 0 ? rows : (*layers.box)[layers.dim];
    strip->computed.push_back({v, {rows.begin, now.end}});
    return OkStatus();
  }

  // A strip computes more of a value that seemed to be computed at once.
  Status Learn(uint32_t v, int dim) {
    if (dim < 0) return Refuse(v);
    out_.layers_[v].dim = dim;
    again_ = true, again_value_ = v;
    return OkStatus();
  }

  // Consumers read the value in different widths. All strips compute the largest.
  Status Widen(uint32_t v, const Box& box) {
    const Box wide = Hull(*out_.layers_[v].box, box);
    const auto [it, added] = wide_.try_emplace(v, wide);
    if (!added) it->second = Hull(it->second, wide);
    again_ = true, again_value_ = v;
    return OkStatus();
  }

  // Requires that the strips' parts of the image are what each reads.
  void FindReach() {
    // By value: the last row of each strip that computed some, and the strip.
    std::vector<std::vector<std::pair<int64_t, size_t>>> ends(graph_.value_count());
    const auto reaches = [&](uint32_t v, int64_t row, size_t s) {
      const auto from = std::upper_bound(ends[v].begin(), ends[v].end(), std::pair(row, SIZE_MAX));
      if (from != ends[v].end())
        out_.reach_ = std::max(out_.reach_, static_cast<int64_t>(s - from->second));
    };
    const auto ends_at = [&](uint32_t v, int64_t row, size_t s) {
      if (ends[v].empty() || ends[v].back().first < row) ends[v].emplace_back(row, s);
    };
    const auto image_value = static_cast<uint32_t>(IndexOf(image()));
    for (size_t s = 0; s < out_.strips_.size(); ++s) {
      const RowSchedule::Strip& strip = out_.strips_[s];
      for (const Rows& need : strip.needs) reaches(need.value, need.rows.begin, s);
      for (const Rows& c : strip.computed) ends_at(c.value, c.rows.end, s);
      if (strip.image.empty()) continue;
      reaches(image_value, strip.image.begin, s);
      ends_at(image_value, strip.image.end, s);
    }
  }

  // Backwards: `first` is the first row of each value that a later strip reads.
  void FindRetained() {
    std::vector<int64_t> first(graph_.value_count(), kNever);
    int64_t first_of_image = kNever;
    for (size_t s = out_.strips_.size(); s-- > 0;) {
      RowSchedule::Strip& strip = out_.strips_[s];
      for (const Rows& c : strip.computed) {
        const int64_t from = std::max(first[c.value], FirstRow(c.value));
        if (first[c.value] != kNever && from < c.rows.end)
          strip.retains.push_back({c.value, {from, c.rows.end}});
      }
      for (const Rows& need : strip.needs) {
        first[need.value] = std::min(first[need.value], need.rows.begin);
        int64_t& last = out_.last_read_[need.value];
        last = std::max(last, static_cast<int64_t>(s));
      }
      if (strip.image.empty()) continue;
      first_of_image = std::min(first_of_image, strip.image.begin);
      strip.image.begin = first_of_image;
    }
  }
  int64_t StripNumber() const {
    return range_.begin + static_cast<int64_t>(out_.strips_.size()) - 1;
  }
  int64_t FirstRow(uint32_t v) const { return out_.layers_[v].dim < 0 ? 0 : INT64_MIN; }

  const PieceRunner& runner_;
  const Graph& graph_;
  const StreamPhase& phase_;
  const Interval range_;
  std::vector<bool> known_;  // by value
  // By strip: boxes that it computes for later strips, beside what it needs itself. They become
  // known when a later strip is planned; then planning starts again. So it does when a dim of rows
  // or a width becomes known.
  std::map<int64_t, std::vector<ValueBox>> early_;
  std::map<uint32_t, Box> wide_;  // by value: what all strips compute, but for the rows
  bool again_ = false;
  uint32_t again_value_ = 0;
  std::vector<int64_t> shape_;
  std::map<std::vector<int64_t>, size_t> shapes_;
  RowSchedule out_;
};

Box RowSchedule::BoxOf(const Rows& rows) const {
  const Layers& layers = layers_[rows.value];
  Box box = *layers.box;
  if (layers.dim >= 0) box[layers.dim] = rows.rows;
  return box;
}

StreamStrip RowSchedule::strip(size_t s) const {
  const Strip& strip = strips_[s];
  StreamStrip out;
  out.targets = TargetsOf(*runner_, *phase_, rows_, first_ + static_cast<int64_t>(s));
  for (const Rows& r : strip.needs) out.reads.push_back(ValueId(r.value));
  for (const Rows& r : strip.retains) {
    out.retains.push_back({ValueId(r.value), BoxOf(r)});
    const auto& reads = out.reads;
    // Rows from before are retained further.
    if (std::find(reads.begin(), reads.end(), ValueId(r.value)) == reads.end())
      out.reads.push_back(ValueId(r.value));
  }
  if (!strip.image.empty()) {
    out.image = image_;
    (*out.image)[layers_[IndexOf(runner_->graph().inputs[0])].dim] = strip.image;
  }
  return out;
}

Result<RowSchedule> RowSchedule::Make(const PieceRunner& runner, const StreamPhase& phase,
                                      int64_t rows) {
  return Make(runner, phase, rows, {0, StripCount(runner, phase, rows)});
}

Result<RowSchedule> RowSchedule::Make(const PieceRunner& runner, const StreamPhase& phase,
                                      int64_t rows, Interval range) {
  return RowScheduler(runner, phase, rows, range).Run();
}

Interval RowSchedule::last_rows(ValueId value) const {
  const Layers& layers = layers_[IndexOf(value)];
  if (!layers.box || layers.dim < 0) return {0, 0};
  return (*layers.box)[layers.dim];
}

}  // namespace msrt
