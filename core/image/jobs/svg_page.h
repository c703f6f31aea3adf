// A picture with text, from top to bottom (SVG).
#pragma once

#include <string>
#include <string_view>

namespace msrt {

class SvgPage {
 public:
  static constexpr double kMargin = 20, kLine = 18;
  static constexpr std::string_view kLineColour = "#8a8a8a";

  void TextAt(double x, double y, std::string_view text, int size = 12);
  // On the next line.
  void Text(double x, std::string_view text, int size = 12) { TextAt(x, y_ += kLine, text, size); }
  void Rectangle(double x, double y, double width, double height, std::string_view fill,
                 std::string_view extra = "");
  void LineTo(double x, double y, double to_x, double to_y);
  std::string Finish(double width) const;

 protected:
  double y_ = kMargin / 2;  // of the last line

 private:
  std::string body_;
};

// One decimal.
std::string Fixed(double value);
std::string Mebibytes(size_t bytes);

}  // namespace msrt
