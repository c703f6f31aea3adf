#include "ops/window.h"

#include <gtest/gtest.h>

#include <vector>

namespace msrt {
namespace {

constexpr AttrDef kDefs[] = {kAutoPadAttr, kDilationsAttr,    kPadsAttr,
                             kStridesAttr, kPieceOffsetsAttr, kPieceOutputsAttr};

Result<Windows> Resolve(const AttrList& attrs, int64_t in, int64_t kernel, bool ceil_mode = false) {
  const OpView op("", "Conv", "test", &attrs, kDefs, {}, {});
  return WindowsOf(op, {1, 1, in}, std::vector<int64_t>{kernel}, ceil_mode);
}
Result<Windows> ResolveTransposed(const AttrList& attrs, int64_t in, int64_t kernel) {
  const OpView op("", "ConvTranspose", "test", &attrs, kDefs, {}, {});
  return TransposedWindowsOf(op, {1, 1, in}, std::vector<int64_t>{kernel});
}
AttrList Attrs(int64_t stride, int64_t dilation, int64_t begin, int64_t end) {
  return {{"strides", std::vector<int64_t>{stride}},
          {"dilations", std::vector<int64_t>{dilation}},
          {"pads", std::vector<int64_t>{begin, end}}};
}

TEST(Window, CountsWindows) {
  EXPECT_EQ((*Resolve(Attrs(2, 1, 3, 3), 224, 7)).axis[0].out, 112);
  EXPECT_EQ((*Resolve(Attrs(2, 1, 1, 1), 112, 3)).axis[0].out, 56);
  EXPECT_EQ((*Resolve(Attrs(2, 1, 0, 0), 112, 3, true)).axis[0].out, 56);
  EXPECT_EQ((*Resolve(Attrs(3, 1, 1, 1), 6, 2, true)).axis[0].out, 3);
  EXPECT_EQ((*Resolve(Attrs(4, 1, 1, 1), 7, 2, true)).axis[0].out,
            2);  // a third window would begin in the end padding
}

TEST(Window, SameUpperPadsTheOddElementAtTheEnd) {
  const Windows upper = *Resolve({{"auto_pad", std::string("SAME_UPPER")}}, 5, 4);
  EXPECT_EQ(upper.axis[0].pad_begin, 1);
  EXPECT_EQ(upper.axis[0].pad_end, 2);
  const Windows lower = *Resolve({{"auto_pad", std::string("SAME_LOWER")}}, 5, 4);
  EXPECT_EQ(lower.axis[0].pad_begin, 2);
  EXPECT_EQ(lower.axis[0].pad_end, 1);
}

TEST(Window, UnknownSizesStayUnknownUnlessSamePaddingDecides) {
  EXPECT_EQ((*Resolve(Attrs(2, 1, 0, 0), kUnknownDim, 3)).axis[0].out, kUnknownDim);
  EXPECT_EQ((*Resolve(Attrs(2, 1, 0, 0), 9, kUnknownDim)).axis[0].out, kUnknownDim);
  EXPECT_EQ((*Resolve({{"auto_pad", std::string("SAME_UPPER")}}, 9, kUnknownDim)).axis[0].out, 9);
}

TEST(Window, RefusesImpossibleWindows) {
  EXPECT_EQ(Resolve(Attrs(1, 1, 0, 0), 2, 3).status().code(),
            Code::kInvalidModel);  // larger than the image
  EXPECT_EQ(Resolve(Attrs(1, kMaxWindow, 0, 0), 2, kMaxWindow).status().code(),
            Code::kInvalidModel);  // span beyond 2^31
  EXPECT_EQ(Resolve(Attrs(1, 1, 0, 0), 2, int64_t{1} << 60).status().code(), Code::kInvalidModel);
  EXPECT_EQ(Resolve(Attrs(1, 1, 0, 0), 2, 0).status().code(), Code::kInvalidModel);
  EXPECT_EQ(Resolve({{"strides", std::vector<int64_t>{1, 1}}}, 5, 3).status().code(),
            Code::kInvalidModel);
  AttrList both = Attrs(1, 1, 1, 1);
  both.Set("auto_pad", std::string("SAME_UPPER"));
  EXPECT_EQ(Resolve(both, 5, 3).status().code(), Code::kInvalidModel);
  EXPECT_EQ(ResolveTransposed(Attrs(kMaxWindow, 1, 0, 0), int64_t{1} << 56, 3).status().code(),
            Code::kInvalidModel);
  EXPECT_EQ(ResolveTransposed(Attrs(1, 1, 9, 9), 3, 3).status().code(), Code::kInvalidModel);
}

TEST(Window, LargestAttributesDoNotOverflow) {
  const Windows w =
      *Resolve(Attrs(kMaxWindow, 1, kMaxWindow, kMaxWindow), int64_t{1} << 56, kMaxWindow, true);
  EXPECT_EQ(w.axis[0].out, CeilDiv((int64_t{1} << 56) + kMaxWindow, kMaxWindow));
}

// For every piece of every small window, the local attributes determine the piece's size, and each
// of its windows reads the same inputs and padding as in the whole.
TEST(Window, PiecesReadTheSameInputsAsTheWhole) {
  for (int64_t code = 0; code < 5 * 3 * 3 * 3 * 4 * 4 * 2; ++code) {
    int64_t rest = code;
    const auto digit = [&](int64_t n) {
      const int64_t d = rest % n;
      rest /= n;
      return d;
    };
    const int64_t in = 1 + digit(5), kernel = 1 + digit(3), stride = 1 + digit(3),
                  dilation = 1 + digit(3), begin = digit(4), end = digit(4);
    const bool ceil_mode = digit(2) == 1;
    const auto whole = Resolve(Attrs(stride, dilation, begin, end), in, kernel, ceil_mode);
    if (!whole.ok()) continue;
    const WindowAxis& a = whole->axis[0];
    for (int64_t y0 = 0; y0 < a.out; ++y0) {
      for (int64_t y1 = y0 + 1; y1 <= a.out; ++y1) {
        const Interval space[] = {{y0, y1}};
        AttrList attrs = Attrs(stride, dilation, begin, end);
        LocalizeWindows(*whole, space, &attrs);
        const Interval needs = NeedsOf(a, space[0]);
        const auto piece = Resolve(attrs, needs.size(), kernel, ceil_mode);
        ASSERT_TRUE(piece.ok()) << piece.status().message();
        const WindowAxis& p = piece->axis[0];
        ASSERT_EQ(p.out, y1 - y0);
        for (int64_t y = y0; y < y1; ++y) {
          const Interval inside = a.TapsInside(y), local = p.TapsInside(y - y0);
          ASSERT_EQ(inside.size(), local.size());
          if (!inside.empty()) {
            ASSERT_EQ(inside, local);
            ASSERT_EQ(a.start(y), p.start(y - y0) + needs.begin);
          }
          ASSERT_EQ(a.Taps(y, -a.pad_begin, a.in + a.pad_end).size(),
                    p.Taps(y - y0, -p.pad_begin, p.in + p.pad_end).size());
        }
      }
    }
  }
}

TEST(Window, TransposedPiecesSumTheSameInputs) {
  for (int64_t code = 0; code < 4 * 3 * 4 * 3 * 3 * 3; ++code) {
    int64_t rest = code;
    const auto digit = [&](int64_t n) {
      const int64_t d = rest % n;
      rest /= n;
      return d;
    };
    const int64_t in = 1 + digit(4), kernel = 1 + digit(3), stride = 1 + digit(4),
                  dilation = 1 + digit(3), begin = digit(3), end = digit(3);
    const auto whole = ResolveTransposed(Attrs(stride, dilation, begin, end), in, kernel);
    if (!whole.ok()) continue;
    const WindowAxis& a = whole->axis[0];
    for (int64_t y0 = 0; y0 < a.out; ++y0) {
      for (int64_t y1 = y0 + 1; y1 <= a.out; ++y1) {
        const Interval space[] = {{y0, y1}};
        AttrList attrs = Attrs(stride, dilation, begin, end);
        LocalizeTransposedWindows(*whole, space, &attrs);
        const Interval needs = TransposedNeedsOf(a, space[0]);
        const auto piece = ResolveTransposed(attrs, needs.size(), kernel);
        ASSERT_TRUE(piece.ok()) << piece.status().message();
        const WindowAxis& p = piece->axis[0];
        ASSERT_EQ(p.out, y1 - y0);
        // Every (input, tap) that reaches the piece must reach the same output from inside it.
        for (int64_t x = 0; x < in; ++x) {
          for (int64_t t = 0; t < kernel; ++t) {
            const int64_t y = stride * x + dilation * t - a.pad_begin;
            if (y < y0 || y >= y1) continue;
            ASSERT_TRUE(x >= needs.begin && x < needs.end);
            ASSERT_EQ(stride * (x - needs.begin) + dilation * t - p.pad_begin, y - y0);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace msrt
