#include "core/place/pin.h"

#include <gtest/gtest.h>

namespace msrt {
namespace {

Node NodeOf(const char* name, const char* op, const char* domain = "") {
  Node node;
  node.name = name;
  node.op = op;
  node.domain = domain;
  return node;
}

bool IsExcluded(const char* pins, const Node& node, std::string_view delegate) {
  const auto parsed = ParsePins(pins);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  return FindExcludingPin(*parsed, node, delegate) != nullptr;
}

TEST(Pin, DescribeReturnsTheParsedText) {
  for (const char* text : {"node:conv*=reference", "op:msrt.FusedConv!=onednn", "*=onednn",
                           "node:a=b=reference", "node:a!b!=c"}) {
    const auto pin = ParsePin(text);
    ASSERT_TRUE(pin.ok()) << text;
    EXPECT_EQ(Describe(*pin), text);
  }
}

TEST(Pin, RejectsInvalidPins) {
  for (const char* text : {"", "=", "=reference", "conv=", "conv", "conv=reference",
                           "node:=reference", "op:!=reference", "!=reference"}) {
    const auto pin = ParsePin(text);
    ASSERT_FALSE(pin.ok()) << text;
    EXPECT_NE(pin.status().message().find("node:NAME=DELEGATE"), std::string::npos);
  }
  EXPECT_FALSE(ParsePins("*=a; b").ok());
}

TEST(Pin, ListsAllowTwoSeparatorsAndSpaces) {
  const auto pins = ParsePins(" *=a ;node:x y=b,, op:Conv!=c ; ");
  ASSERT_TRUE(pins.ok());
  ASSERT_EQ(pins->size(), 3u);
  EXPECT_EQ(Describe((*pins)[1]), "node:x y=b");
  EXPECT_TRUE((*pins)[2].exclude);
  EXPECT_TRUE(ParsePins("")->empty());
}

TEST(Pin, ExcludesNodesFromOtherDelegates) {
  const Node conv = NodeOf("layer1.0.conv2", "Conv"),
             fused = NodeOf("layer2.0.conv2", "FusedConv", "msrt");
  EXPECT_TRUE(IsExcluded("node:layer1.*=a", conv, "b"));
  EXPECT_FALSE(IsExcluded("node:layer1.*=a", conv, "a"));
  EXPECT_FALSE(IsExcluded("node:layer1.*=a", fused, "b"));
  EXPECT_TRUE(IsExcluded("op:Conv!=a", conv, "a"));
  EXPECT_FALSE(IsExcluded("op:Conv!=a", conv, "b"));
  EXPECT_FALSE(IsExcluded("op:Conv!=a", fused, "a"));
  EXPECT_TRUE(IsExcluded("op:msrt.FusedConv!=a", fused, "a"));
  EXPECT_TRUE(IsExcluded("*!=a", fused, "a"));
  EXPECT_FALSE(IsExcluded("", conv, "a"));
}

TEST(Pin, StarMatchesAnyCharacters) {
  const auto matches = [](const char* pattern, const char* name) {
    return AppliesTo(*ParsePin(StrCat("node:", pattern, "=d")), NodeOf(name, "Add"));
  };
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("a*c", "ac"));
  EXPECT_TRUE(matches("a*b*c", "aXbXbXc"));
  EXPECT_FALSE(matches("a*b*c", "aXbXbX"));
  EXPECT_FALSE(matches("abc", "abcd"));
  EXPECT_TRUE(matches("**a**", "a"));
  EXPECT_FALSE(matches("a?c", "abc"));
}

}  // namespace
}  // namespace msrt
