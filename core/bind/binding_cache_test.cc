#include "core/bind/binding_cache.h"

#include <gtest/gtest.h>

namespace msrt {
namespace {

TEST(BindingCache, EachTypeHasItsOwnBinding) {
  const Type floats = Type::Tensor(DType::kF32, {2, 3}), halves = Type::Tensor(DType::kF16, {2, 3});
  const std::vector<Type> types = {floats,
                                   halves,
                                   Type::Tensor(DType::kF32, {3, 2}),
                                   Type::ListOf(floats),
                                   Type::ListOf(halves),
                                   Type::ListOf(Type::ListOf(floats)),
                                   Type::Function({floats}, {floats})};
  const Graph graph;
  BindingCache cache(size_t{1} << 20);
  for (int round = 0; round < 2; ++round) {
    for (const Type& type : types) {
      bool made = false;
      const auto binding = cache.Get({{type}, {}}, [&]() -> Result<std::shared_ptr<const Binding>> {
        made = true;
        return std::make_shared<const Binding>(GraphFacts(graph));
      });
      ASSERT_TRUE(binding.ok());
      EXPECT_EQ(made, round == 0) << StrCat(type);
    }
  }
  EXPECT_EQ(cache.count(), types.size());
}

}  // namespace
}  // namespace msrt
