#include "core/image/jobs/svg_page.h"

#include <algorithm>
#include <cstdio>

#include "core/base/str_cat.h"
#include "core/base/utf8.h"

namespace msrt {
namespace {

std::string ForXml(std::string_view text) {
  std::string out;
  for (const char c : Printable(text)) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '"') out += "&quot;";
    else out += c;
  }
  return out;
}

}  // namespace

std::string Fixed(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string Mebibytes(size_t bytes) {
  return Fixed(static_cast<double>(bytes) / (1 << 20)) + " MiB";
}

void SvgPage::TextAt(double x, double y, std::string_view text, int size) {
  StrAppend(&body_, "<text x=\"", Fixed(x), "\" y=\"", Fixed(y), "\" font-size=\"", size, "\">",
            ForXml(text), "</text>\n");
}

void SvgPage::Rectangle(double x, double y, double width, double height, std::string_view fill,
                        std::string_view extra) {
  StrAppend(&body_, "<rect x=\"", Fixed(x), "\" y=\"", Fixed(y), "\" width=\"",
            Fixed(std::max(width, 0.5)), "\" height=\"", Fixed(std::max(height, 0.5)), "\" fill=\"",
            fill, "\" ", extra, "/>\n");
}

void SvgPage::LineTo(double x, double y, double to_x, double to_y) {
  StrAppend(&body_, "<line x1=\"", Fixed(x), "\" y1=\"", Fixed(y), "\" x2=\"", Fixed(to_x),
            "\" y2=\"", Fixed(to_y), "\" stroke=\"", kLineColour, "\" stroke-width=\"0.5\"/>\n");
}

std::string SvgPage::Finish(double width) const {
  return StrCat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", Fixed(width), "\" height=\"",
                Fixed(y_ + kMargin),
                "\" font-family=\"sans-serif\">\n<rect width=\"100%\" height=\"100%\" "
                "fill=\"white\"/>\n",
                body_, "</svg>\n");
}

}  // namespace msrt
