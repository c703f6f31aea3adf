#include "core/train/data/picture_ops.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace msrt {
namespace {

constexpr double kRed = 0.299, kGreen = 0.587, kBlue = 0.114;
constexpr float kMaxPixel = 255;

// The input pixels of each output pixel along one axis, with weights that add up to 1.
struct Filter {
  struct Taps {
    int64_t first = 0, count = 0;
    size_t weights = 0;  // of the first tap
  };
  std::vector<Taps> taps = {};
  std::vector<double> weights = {};
};

// A triangle as wide as an output pixel, and at least as wide as an input pixel.
Filter MakeFilter(int64_t in, int64_t out) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const double support = std::max(scale, 1.0);
  Filter filter;
  for (int64_t i = 0; i < out; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(center - support + 0.5), 0);
    const int64_t last = std::min<int64_t>(static_cast<int64_t>(center + support + 0.5), in);
    filter.taps.push_back({first, last - first, filter.weights.size()});
    double sum = 0;
    for (int64_t x = first; x < last; ++x) {
      const double distance = std::abs((static_cast<double>(x) - center + 0.5) / support);
      filter.weights.push_back(std::max(1 - distance, 0.0));
      sum += filter.weights.back();
    }
    for (size_t w = filter.taps.back().weights; w < filter.weights.size(); ++w)
      filter.weights[w] /= sum;
  }
  return filter;
}

// Filters lines of `count` elements that are `stride` apart; `lines` of them, `line_stride` apart.
struct Lines {
  int64_t lines, line_stride, stride;
};
void FilterLines(const Filter& filter, const float* in, const Lines& from, float* out,
                 const Lines& to) {
  for (size_t i = 0; i < filter.taps.size(); ++i) {
    const Filter::Taps& taps = filter.taps[i];
    for (int64_t line = 0; line < from.lines; ++line) {
      const float* const begin = in + line * from.line_stride + taps.first * from.stride;
      double sum = 0;
      for (int64_t t = 0; t < taps.count; ++t)
        sum += filter.weights[taps.weights + static_cast<size_t>(t)] * begin[t * from.stride];
      out[line * to.line_stride + static_cast<int64_t>(i) * to.stride] = static_cast<float>(sum);
    }
  }
}

// Rebuilds the label map: label(row, col) of the old map for each pixel of the new one.
template <typename OldLabel>
void MapLabels(int64_t rows, int64_t cols, const OldLabel& old_label, Picture* picture) {
  if (picture->label_map.empty()) return;
  std::vector<int32_t> map(static_cast<size_t>(rows * cols));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) map[static_cast<size_t>(r * cols + c)] = old_label(r, c);
  }
  picture->label_map = std::move(map);
}

int32_t LabelAt(const Picture& picture, int64_t row, int64_t col) {
  if (row < 0 || row >= picture.rows || col < 0 || col >= picture.cols)
    return static_cast<int32_t>(kIgnoredLabel);
  return picture.label_map[static_cast<size_t>(row * picture.cols + col)];
}

float PixelAt(const Picture& picture, const float* plane, int64_t row, int64_t col) {
  if (row < 0 || row >= picture.rows || col < 0 || col >= picture.cols) return 0;
  return plane[row * picture.cols + col];
}

double GreyOf(const Picture& picture, int64_t pixel) {
  const double red = picture.Plane(0)[pixel];
  if (picture.channels < 3) return red;
  return kRed * red + kGreen * picture.Plane(1)[pixel] + kBlue * picture.Plane(2)[pixel];
}

void LimitPixels(Picture* picture) {
  for (float& value : picture->pixels) value = std::clamp(value, 0.0F, kMaxPixel);
}

}  // namespace

void ResizePicture(int64_t rows, int64_t cols, Picture* picture) {
  const int64_t old_rows = picture->rows, old_cols = picture->cols;
  if (rows == old_rows && cols == old_cols) return;
  MapLabels(
      rows, cols,
      [&](int64_t r, int64_t c) {
        return LabelAt(*picture, (2 * r + 1) * old_rows / (2 * rows),
                       (2 * c + 1) * old_cols / (2 * cols));
      },
      picture);
  const Filter across = MakeFilter(old_cols, cols), down = MakeFilter(old_rows, rows);
  std::vector<float> narrow(static_cast<size_t>(old_rows * cols));
  std::vector<float> out(static_cast<size_t>(picture->channels * rows * cols));
  for (int64_t channel = 0; channel < picture->channels; ++channel) {
    FilterLines(across, picture->Plane(channel), {old_rows, old_cols, 1}, narrow.data(),
                {old_rows, cols, 1});
    FilterLines(down, narrow.data(), {cols, 1, cols}, out.data() + channel * rows * cols,
                {cols, 1, cols});
  }
  picture->rows = rows, picture->cols = cols;
  picture->pixels = std::move(out);
}

void CropPicture(int64_t row, int64_t col, int64_t rows, int64_t cols, Picture* picture) {
  MapLabels(
      rows, cols, [&](int64_t r, int64_t c) { return LabelAt(*picture, row + r, col + c); },
      picture);
  std::vector<float> out(static_cast<size_t>(picture->channels * rows * cols));
  float* to = out.data();
  for (int64_t channel = 0; channel < picture->channels; ++channel) {
    const float* const plane = picture->Plane(channel);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols; ++c) *to++ = PixelAt(*picture, plane, row + r, col + c);
    }
  }
  picture->rows = rows, picture->cols = cols;
  picture->pixels = std::move(out);
}

void FlipColumns(Picture* picture) {
  const int64_t lines = picture->channels * picture->rows, cols = picture->cols;
  for (int64_t line = 0; line < lines; ++line)
    std::reverse(picture->pixels.data() + line * cols, picture->pixels.data() + (line + 1) * cols);
  if (picture->label_map.empty()) return;
  for (int64_t line = 0; line < picture->rows; ++line)
    std::reverse(picture->label_map.data() + line * cols,
                 picture->label_map.data() + (line + 1) * cols);
}

void FlipRows(Picture* picture) {
  const int64_t rows = picture->rows, cols = picture->cols;
  for (int64_t channel = 0; channel < picture->channels; ++channel) {
    float* const plane = picture->Plane(channel);
    for (int64_t r = 0; r < rows / 2; ++r)
      std::swap_ranges(plane + r * cols, plane + (r + 1) * cols, plane + (rows - 1 - r) * cols);
  }
  MapLabels(
      rows, cols, [&](int64_t r, int64_t c) { return LabelAt(*picture, rows - 1 - r, c); },
      picture);
}

void TurnPicture(int quarters, Picture* picture) {
  for (int turn = 0; turn < (quarters & 3); ++turn) {
    const int64_t rows = picture->cols, cols = picture->rows;
    MapLabels(
        rows, cols, [&](int64_t r, int64_t c) { return LabelAt(*picture, c, rows - 1 - r); },
        picture);
    std::vector<float> out(picture->pixels.size());
    float* to = out.data();
    for (int64_t channel = 0; channel < picture->channels; ++channel) {
      const float* const plane = picture->Plane(channel);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < cols; ++c) *to++ = plane[c * picture->cols + rows - 1 - r];
      }
    }
    picture->rows = rows, picture->cols = cols;
    picture->pixels = std::move(out);
  }
}

void RotatePicture(double degrees, Picture* picture) {
  const int64_t rows = picture->rows, cols = picture->cols;
  const double angle = degrees * std::numbers::pi / 180;
  const double cosine = std::cos(angle), sine = std::sin(angle);
  const double center_row = static_cast<double>(rows - 1) / 2,
               center_col = static_cast<double>(cols - 1) / 2;
  // The pixel of the picture that comes to (row, col).
  const auto source = [&](int64_t row, int64_t col) {
    const double y = static_cast<double>(row) - center_row;
    const double x = static_cast<double>(col) - center_col;
    return std::pair(center_row + sine * x + cosine * y, center_col + cosine * x - sine * y);
  };
  MapLabels(
      rows, cols,
      [&](int64_t r, int64_t c) {
        const auto [y, x] = source(r, c);
        return LabelAt(*picture, static_cast<int64_t>(std::floor(y + 0.5)),
                       static_cast<int64_t>(std::floor(x + 0.5)));
      },
      picture);
  std::vector<float> out(picture->pixels.size());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      const auto [y, x] = source(r, c);
      const auto row = static_cast<int64_t>(std::floor(y)),
                 col = static_cast<int64_t>(std::floor(x));
      const double below = y - static_cast<double>(row), right = x - static_cast<double>(col);
      for (int64_t channel = 0; channel < picture->channels; ++channel) {
        const float* const plane = picture->Plane(channel);
        const double upper = (1 - right) * PixelAt(*picture, plane, row, col) +
                             right * PixelAt(*picture, plane, row, col + 1);
        const double lower = (1 - right) * PixelAt(*picture, plane, row + 1, col) +
                             right * PixelAt(*picture, plane, row + 1, col + 1);
        out[static_cast<size_t>((channel * rows + r) * cols + c)] =
            static_cast<float>((1 - below) * upper + below * lower);
      }
    }
  }
  picture->pixels = std::move(out);
}

void ChangeColors(const ColorFactors& factors, Picture* picture) {
  const int64_t plane = picture->rows * picture->cols;
  if (factors.brightness != 1) {
    for (float& value : picture->pixels) value = static_cast<float>(value * factors.brightness);
    LimitPixels(picture);
  }
  if (factors.contrast != 1) {
    double mean = 0;
    for (int64_t i = 0; i < plane; ++i) mean += GreyOf(*picture, i);
    mean /= static_cast<double>(plane);
    for (float& value : picture->pixels)
      value = static_cast<float>(mean + factors.contrast * (value - mean));
    LimitPixels(picture);
  }
  if (factors.saturation != 1 && picture->channels == 3) {
    for (int64_t i = 0; i < plane; ++i) {
      const double grey = GreyOf(*picture, i);
      for (int64_t channel = 0; channel < 3; ++channel) {
        float& value = picture->Plane(channel)[i];
        value = static_cast<float>(grey + factors.saturation * (value - grey));
      }
    }
    LimitPixels(picture);
  }
}

Status ConvertChannels(int64_t channels, Picture* picture) {
  const int64_t has = picture->channels, plane = picture->rows * picture->cols;
  if (has == channels) return OkStatus();
  const auto all = static_cast<size_t>(channels * plane);
  // Grey with alpha has two channels, colours with alpha have four.
  if (has <= 2 && channels == 3) {
    picture->pixels.resize(all);
    std::copy_n(picture->Plane(0), plane, picture->Plane(1));
    std::copy_n(picture->Plane(0), plane, picture->Plane(2));
  } else if ((has == 3 || has == 4) && channels == 1) {
    for (int64_t i = 0; i < plane; ++i)
      picture->pixels[static_cast<size_t>(i)] = static_cast<float>(GreyOf(*picture, i));
  } else if (!((has == 4 && channels == 3) || (has == 2 && channels == 1))) {
    return InvalidArgument("a picture of ", has, " channels cannot become one of ", channels);
  }
  picture->channels = channels;
  picture->pixels.resize(all);
  return OkStatus();
}

}  // namespace msrt
