#include "core/base/utf8.h"

#include <gtest/gtest.h>

namespace msrt {
namespace {

const std::string kBad(kReplacementCharacter);

TEST(Printable, KeepsHarmlessText) {
  EXPECT_EQ(Printable(""), "");
  EXPECT_EQ(Printable("layer1.0/conv <&>\"'"), "layer1.0/conv <&>\"'");
  EXPECT_EQ(Printable("\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"),
            "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80");
}

TEST(Printable, ReplacesUnprintableCharacters) {
  EXPECT_EQ(Printable("a\x1B[31m\n\t\x7F"), "a" + kBad + "[31m" + kBad + kBad + kBad);
  EXPECT_EQ(Printable("\xC2\x9B"), kBad);                         // the one-character form of ESC [
  EXPECT_EQ(Printable("\xEF\xBF\xBE\xEF\xBF\xBF"), kBad + kBad);  // U+FFFE, U+FFFF
  EXPECT_EQ(Printable("\xFF"), kBad);
  EXPECT_EQ(Printable("\xED\xA0\x80"), kBad + kBad + kBad);  // a surrogate
  EXPECT_EQ(Printable(std::string_view("\0", 1)), kBad);
}

TEST(Printable, CutsBetweenCharacters) {
  EXPECT_EQ(Printable("abcdef", 6), "abcdef");
  EXPECT_EQ(Printable("abcdefg", 6), "abc...");
  EXPECT_EQ(Printable("\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9", 4), "\xC3\xA9...");
  EXPECT_EQ(CharacterCount("\xC3\xA9z\xE2\x82\xAC"), 3u);
}

TEST(Printable, KeepsEndOfName) {
  EXPECT_EQ(PrintableEnd("layer1/conv", 11), "layer1/conv");
  EXPECT_EQ(PrintableEnd("/backbone/layer1/conv", 11), "...er1/conv");
  EXPECT_EQ(PrintableEnd("\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9", 4), "...\xC3\xA9");
  EXPECT_EQ(PrintableEnd("abcdef", 2), "..");
  EXPECT_EQ(PrintableEnd("a\n", 9), "a" + kBad);
}

}  // namespace
}  // namespace msrt
