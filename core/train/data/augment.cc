#include "core/train/data/augment.h"

#include <charconv>
#include <cmath>

#include "core/train/data/picture_ops.h"

namespace msrt {
namespace {

constexpr std::string_view kSteps =
    "crop:SIZE[:PADDING], center-crop:SIZE, resize:SIZE, zoom:SIZE[:AREA], hflip[:P], vflip[:P], "
    "turn, rotate:DEGREES, color:BRIGHTNESS[,CONTRAST[,SATURATION]], mixup:ALPHA";
constexpr int64_t kMaxSide = 1 << 16;

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

template <typename Number>
bool ParseWhole(std::string_view text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

// Parses "32" or "32x48".
bool ParseSize(std::string_view text, AugmentStep* step) {
  const std::vector<std::string_view> sides = Split(text, 'x');
  if (sides.size() > 2 || !ParseWhole(sides[0], &step->rows)) return false;
  step->cols = step->rows;
  if (sides.size() == 2 && !ParseWhole(sides[1], &step->cols)) return false;
  return step->rows > 0 && step->cols > 0 && step->rows <= kMaxSide && step->cols <= kMaxSide;
}

bool ParseFraction(std::string_view text, double* number) {
  return ParseWhole(text, number) && *number > 0 && *number <= 1;
}

bool ParseColor(std::string_view text, AugmentStep* step) {
  double* const amounts[] = {&step->amount, &step->contrast, &step->saturation};
  const std::vector<std::string_view> parts = Split(text, ',');
  if (parts.size() > std::size(amounts)) return false;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!ParseWhole(parts[i], amounts[i]) || !(*amounts[i] >= 0 && *amounts[i] <= 1)) return false;
  }
  return true;
}

// Parses one step, whose parts were separated by colons. Returns whether it is right.
bool ParseStep(const std::vector<std::string_view>& parts, AugmentStep* step) {
  using Kind = AugmentStep::Kind;
  const std::string_view name = parts[0];
  const auto is = [&](std::string_view wanted, Kind kind, size_t least, size_t most) {
    step->kind = kind;
    return name == wanted && parts.size() > least && parts.size() <= most + 1;
  };
  if (is("crop", Kind::kCrop, 1, 2))
    return ParseSize(parts[1], step) &&
           (parts.size() < 3 || (ParseWhole(parts[2], &step->padding) && step->padding >= 0 &&
                                 step->padding <= kMaxSide));
  if (is("center-crop", Kind::kCenterCrop, 1, 1) || is("resize", Kind::kResize, 1, 1))
    return ParseSize(parts[1], step);
  constexpr double kLeastArea = 0.08;  // as torchvision's RandomResizedCrop
  step->amount = kLeastArea;
  if (is("zoom", Kind::kZoom, 1, 2))
    return ParseSize(parts[1], step) &&
           (parts.size() < 3 || ParseFraction(parts[2], &step->amount));
  step->amount = 0.5;
  if (is("hflip", Kind::kFlipColumns, 0, 1) || is("vflip", Kind::kFlipRows, 0, 1))
    return parts.size() < 2 || ParseFraction(parts[1], &step->amount);
  if (is("turn", Kind::kTurn, 0, 0)) return true;
  if (is("rotate", Kind::kRotate, 1, 1))
    return ParseWhole(parts[1], &step->amount) && step->amount >= 0 && step->amount <= 180;
  step->amount = 0;
  return is("color", Kind::kColor, 1, 1) && ParseColor(parts[1], step);
}

Status Crop(const AugmentStep& step, SampleRandom* random, Picture* picture) {
  const int64_t rows = picture->rows + 2 * step.padding, cols = picture->cols + 2 * step.padding;
  if (step.rows > rows || step.cols > cols)
    return InvalidArgument("a crop of ", step.rows, " x ", step.cols,
                           " does not fit in a picture of ", picture->rows, " x ", picture->cols,
                           " with a padding of ", step.padding, "; resize the pictures before");
  const int64_t row = random->Below(rows - step.rows + 1) - step.padding;
  const int64_t col = random->Below(cols - step.cols + 1) - step.padding;
  CropPicture(row, col, step.rows, step.cols, picture);
  return OkStatus();
}

// A window of a random area and a ratio of sides from 3:4 to 4:3, as far as it fits.
void Zoom(const AugmentStep& step, SampleRandom* random, Picture* picture) {
  const auto height = static_cast<double>(picture->rows),
             width = static_cast<double>(picture->cols);
  const double area = random->Uniform(step.amount, 1) * height * width;
  const double ratio = std::exp(random->Uniform(std::log(0.75), std::log(4.0 / 3)));
  const int64_t rows = std::clamp<int64_t>(std::llround(std::sqrt(area / ratio)), 1, picture->rows);
  const int64_t cols = std::clamp<int64_t>(std::llround(std::sqrt(area * ratio)), 1, picture->cols);
  const int64_t row = random->Below(picture->rows - rows + 1);
  const int64_t col = random->Below(picture->cols - cols + 1);
  CropPicture(row, col, rows, cols, picture);
  ResizePicture(step.rows, step.cols, picture);
}

Status ApplyStep(const AugmentStep& step, SampleRandom random, Picture* picture) {
  switch (step.kind) {
    case AugmentStep::Kind::kCrop:
      return Crop(step, &random, picture);
    case AugmentStep::Kind::kCenterCrop:
      CropPicture((picture->rows - step.rows) / 2, (picture->cols - step.cols) / 2, step.rows,
                  step.cols, picture);
      break;
    case AugmentStep::Kind::kResize:
      ResizePicture(step.rows, step.cols, picture);
      break;
    case AugmentStep::Kind::kZoom:
      Zoom(step, &random, picture);
      break;
    case AugmentStep::Kind::kFlipColumns:
      if (random.Uniform() < step.amount) FlipColumns(picture);
      break;
    case AugmentStep::Kind::kFlipRows:
      if (random.Uniform() < step.amount) FlipRows(picture);
      break;
    case AugmentStep::Kind::kTurn:
      TurnPicture(static_cast<int>(random.Below(4)), picture);
      break;
    case AugmentStep::Kind::kRotate:
      RotatePicture(random.Uniform(-step.amount, step.amount), picture);
      break;
    case AugmentStep::Kind::kColor: {
      const auto factor = [&](double amount) { return random.Uniform(1 - amount, 1 + amount); };
      ColorFactors factors;
      factors.brightness = factor(step.amount);
      factors.contrast = factor(step.contrast);
      factors.saturation = factor(step.saturation);
      ChangeColors(factors, picture);
      break;
    }
  }
  return OkStatus();
}

}  // namespace

Result<Augmentation> ParseAugmentation(std::string_view text) {
  Augmentation augmentation;
  for (const std::string_view word : Split(text, ' ')) {
    if (word.empty()) continue;
    const std::vector<std::string_view> parts = Split(word, ':');
    constexpr double kMaxAlpha = 4;  // DrawMixRatio rejects too often above
    if (parts[0] == "mixup") {
      if (parts.size() != 2 || !ParseWhole(parts[1], &augmentation.mixup) ||
          !(augmentation.mixup > 0 && augmentation.mixup <= kMaxAlpha))
        return InvalidArgument("augmentation '", word,
                               "': mixup needs a number up to 4: mixup:0.2");
      continue;
    }
    AugmentStep step;
    if (!ParseStep(parts, &step))
      return InvalidArgument("augmentation '", word, "' is not one of ", kSteps);
    augmentation.steps.push_back(step);
  }
  return augmentation;
}

Status Augment(const std::vector<AugmentStep>& steps, const SampleRandom& random,
               Picture* picture) {
  for (size_t i = 0; i < steps.size(); ++i)
    MSRT_RETURN_IF_ERROR(ApplyStep(steps[i], random.Fork(i), picture));
  return OkStatus();
}

// Johnk's method.
double DrawMixRatio(double alpha, SampleRandom random) {
  while (true) {
    const double x = std::pow(random.Uniform(), 1 / alpha);
    const double y = std::pow(random.Uniform(), 1 / alpha);
    if (x + y <= 1 && x + y > 0) return x / (x + y);
  }
}

}  // namespace msrt
