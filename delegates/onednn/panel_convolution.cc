#include "delegates/onednn/panel_convolution.h"

#include <algorithm>
#include <numeric>

namespace msrt::onednn {

namespace {

// Columns of a row in a task: enough that a panel is read seldom, few enough for short rows.
constexpr int64_t kTaskColumns = 48;

PanelTiles TilesFor(int64_t panel) {
#if defined(__x86_64__)
  if (HasWideVectors()) return WidePanelTiles(panel);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return NarrowPanelTiles(panel);
#endif
  (void)panel;
  return {};
}

// Whether the form has panels of output channels, with rows for all input channels or for blocks of
// them. Sets the width of panels and the size of blocks.
bool IsPanels(const memory::desc& form, size_t rank, bool grouped, int64_t* width, int64_t* block) {
  if (form.get_data_type() != memory::data_type::f32 ||
      form.get_format_kind() != memory::format_kind::blocked)
    return false;
  const int64_t outputs = grouped ? 1 : 0, inputs = outputs + 1;
  const memory::dims dims = form.get_dims(), blocks = form.get_inner_blks(),
                     order = form.get_inner_idxs();
  if (dims.size() != rank + (grouped ? 1 : 0)) return false;
  if (order == memory::dims{outputs}) {
    *width = blocks[0], *block = dims[static_cast<size_t>(inputs)];
    return form.get_strides()[static_cast<size_t>(inputs)] == *width;
  }
  if (order != memory::dims{inputs, outputs}) return false;
  *block = blocks[0], *width = blocks[1];
  return true;
}

bool IsIdentity(const WindowAxis& axis) {
  return axis.kernel == 1 && axis.stride == 1 && axis.in == axis.out && axis.pad_begin == 0;
}

}  // namespace

struct PanelConvolution::Task {
  int64_t image, group, panel;
  int64_t outer, middle;  // coordinates of the row
  Interval columns;
};

std::shared_ptr<const PanelConvolution> PanelConvolution::Make(const OpView& op,
                                                               const Windows& windows,
                                                               bool transposed,
                                                               const memory::desc& weights) {
  const Dims &x = op.input(0).dims, &y = op.output(0).dims;
  const int64_t groups = op.Int("group");
  int64_t width = 0, block = 0;
  if (!IsPanels(weights, static_cast<size_t>(x.rank()), groups > 1, &width, &block)) return nullptr;
  const PanelTiles tiles = TilesFor(width);
  const memory::dims dims = weights.get_dims(), strides = weights.get_strides();
  const size_t outputs = groups > 1 ? 1 : 0, inputs = outputs + 1;
  if (tiles.count == 0 || x[1] != dims[inputs] * groups || y[1] != dims[outputs] * groups)
    return nullptr;
  std::shared_ptr<PanelConvolution> made(new PanelConvolution);
  made->tiles_ = tiles, made->transposed_ = transposed;
  made->images_ = x[0], made->groups_ = groups;
  made->inputs_ = dims[inputs], made->outputs_ = dims[outputs];
  made->panel_ = width, made->panels_ = CeilDiv(made->outputs_, width);
  made->group_step_ = groups > 1 ? strides[0] : 0;
  made->panel_step_ = strides[outputs];
  made->block_ = block, made->block_step_ = strides[inputs];
  for (int i = 0; i < windows.rank; ++i) {
    const int to = kMaxSpace - windows.rank + i;
    made->axis_[to] = windows.axis[static_cast<size_t>(i)];
    made->tap_step_[to] = strides[inputs + 1 + static_cast<size_t>(i)];
  }
  // Without windows, all pixels are one row.
  if (std::all_of(std::begin(made->axis_), std::end(made->axis_), IsIdentity)) {
    WindowAxis row;
    row.in = row.out = made->axis_[0].out * made->axis_[1].out * made->axis_[2].out;
    made->axis_[0] = made->axis_[1] = WindowAxis{};
    made->axis_[2] = row;
  }
  const WindowAxis& last = made->axis_[2];
  (transposed ? made->column_step_ : made->in_column_step_) = last.stride;
  for (int64_t o = 0; o < last.out; ++o) made->columns_.push_back(made->TapsOf(last, o));
  return made;
}

PanelConvolution::Taps PanelConvolution::TapsOf(const WindowAxis& axis, int64_t output) const {
  if (!transposed_) {
    const Interval taps = axis.TapsInside(output);
    return {taps.begin, 1, taps.size(), axis.start(output) + taps.begin * axis.dilation,
            axis.dilation};
  }
  // Tap t reads input (output + pad_begin - dilation * t) / stride, where that is an input.
  Taps taps;
  taps.step = axis.stride / std::gcd(axis.stride, axis.dilation);
  taps.in_step = -taps.step * axis.dilation / axis.stride;
  for (int64_t t = 0; t < axis.kernel; ++t) {
    const int64_t at = output + axis.pad_begin - axis.dilation * t;
    if (at < 0) break;
    if (at % axis.stride != 0 || at / axis.stride >= axis.in) continue;
    if (taps.count++ == 0) taps.first = t, taps.in = at / axis.stride;
  }
  return taps;
}

void PanelConvolution::RunRow(const Tensors& t, const Task& task) const {
  const int64_t channels = groups_ * inputs_, results = groups_ * outputs_;
  const int64_t first = task.panel * panel_, columns = std::min(panel_, outputs_ - first);
  const int64_t at = task.group * outputs_ + first;  // output channel
  float start[kMaxPanelWidth] = {};
  if (t.bias != nullptr) std::copy(t.bias + at, t.bias + at + columns, start);
  const int64_t x_steps[] = {axis_[1].in * axis_[2].in * channels, axis_[2].in * channels,
                             channels};
  const Taps outer = TapsOf(axis_[0], task.outer), middle = TapsOf(axis_[1], task.middle);
  const int64_t y_row = ((task.image * axis_[0].out + task.outer) * axis_[1].out + task.middle) *
                        axis_[2].out * results;
  const auto run = [&](int64_t column, int64_t pixels) {
    const Taps taps[] = {outer, middle, columns_[static_cast<size_t>(column)]};
    PanelTile tile{};
    tile.x = t.x + task.image * axis_[0].in * x_steps[0] + task.group * inputs_;
    tile.w = t.weights + task.group * group_step_ + task.panel * panel_step_;
    for (int i = 0; i < kMaxSpace; ++i) {
      tile.taps[i] = taps[i].count;
      tile.x_tap[i] = taps[i].in_step * x_steps[i], tile.w_tap[i] = taps[i].step * tap_step_[i];
      if (taps[i].count == 0) continue;
      tile.x += taps[i].in * x_steps[i];
      tile.w += taps[i].first * tap_step_[i];
    }
    tile.x_step = in_column_step_ * channels;
    tile.inputs = inputs_, tile.block = block_, tile.w_block = block_step_;
    tile.start = start;
    tile.y = t.y + y_row + column * results + at;
    tile.residual = t.residual == nullptr ? nullptr : t.residual + y_row + column * results + at;
    tile.y_step = column_step_ * results, tile.columns = columns;
    tiles_.by_pixels[pixels - 1](tile);
  };
  // Pixels with the same taps, each as far from its neighbour as its inputs are. Those at the
  // borders of the input have fewer taps.
  for (int64_t phase = 0; phase < column_step_; ++phase) {
    for (int64_t column = task.columns.begin + phase; column < task.columns.end;) {
      const Taps& taps = columns_[static_cast<size_t>(column)];
      int64_t pixels = 1, next = column + column_step_;
      for (; pixels < tiles_.count && next < task.columns.end; ++pixels, next += column_step_) {
        const Taps& other = columns_[static_cast<size_t>(next)];
        if (other.first != taps.first || other.count != taps.count ||
            other.in != taps.in + pixels * in_column_step_)
          break;
      }
      run(column, pixels);
      column = next;
    }
  }
}

Status PanelConvolution::Run(const Tensors& t, ParallelFor& parallel) const {
  const int64_t chunks = CeilDiv(axis_[2].out, kTaskColumns);
  // Rows of one panel are neighbours, so that a thread keeps its panel in the cache.
  const int64_t rows = images_ * axis_[0].out * axis_[1].out * chunks;
  return ParallelRanges(parallel, groups_ * panels_ * rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t rest = i % rows;
      const int64_t column = rest % chunks * kTaskColumns;
      rest /= chunks;
      const int64_t middle = rest % axis_[1].out;
      rest /= axis_[1].out;
      RunRow(t, {.image = rest / axis_[0].out,
                 .group = i / rows / panels_,
                 .panel = i / rows % panels_,
                 .outer = rest % axis_[0].out,
                 .middle = middle,
                 .columns = {column, std::min(column + kTaskColumns, axis_[2].out)}});
    }
  });
}

}  // namespace msrt::onednn
