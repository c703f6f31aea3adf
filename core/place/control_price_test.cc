// The cost of control flow that the host runs, at the limits of estimates.
#include "core/place/control_price.h"

#include <gtest/gtest.h>

#include "core/delegate/fake_delegate.h"
#include "core/place/place.h"
#include "delegates/builtin.h"
#include "tests/conformance/module_builder.h"

namespace msrt::testing {
namespace {

const Log kSilent;

// `levels` nested loops with the largest count that is believed; the innermost body adds.
Module NestedLoops(uint32_t levels) {
  ModuleBuilder m(levels + 1);
  for (uint32_t g = 0; g <= levels; ++g) {
    if (g > 0) m.Input(g);
    if (g > 0) m.Output(g, m.Input(g, kFlag));
    const ValueId carried = m.Input(g);
    if (g == levels) {
      m.Output(g, m.Op(g, "Add", {carried, carried}));
    } else {
      const ValueId trips = m.Number(g, 1'000'000'000);
      m.Output(g, m.Control(g, "", "Loop", {trips, kNoValue, carried},
                            {{"body", GraphRef{g + 1}}, {"carried", int64_t{1}}}, {kNumber})[0]);
    }
  }
  return m.module;
}

Candidate OfferFor(const OfferedGraph& offered, double seconds) {
  const CandidateBorder border = offered.BorderOf({{0}});
  Candidate c;
  c.nodes = {0};
  c.input_layouts.assign(border.inputs.size(), Layout::kPlain);
  c.output_layouts.assign(border.outputs.size(), Layout::kPlain);
  c.seconds = seconds;
  return c;
}

TEST(ControlPrice, NestedLoopsHaveFinitePrice) {
  for (uint32_t levels = 2; levels <= 6; ++levels) {
    const Module module = NestedLoops(levels);
    OfferedModule views;
    for (const Graph& graph : module.graphs) {
      auto offered = OfferedGraph::Make(graph, BuiltinEvaluator(), {}, &module);
      ASSERT_TRUE(offered.ok()) << offered.status().message();
      (*offered)->SetModule(&views);
      views.push_back(*std::move(offered));
    }
    FakeDelegate fake{.name = "fake", .offers = {}};
    fake.offers_in[views.back().get()] = {OfferFor(*views.back(), 1e-6)};
    fake.offers_in[views.front().get()] = {OfferFor(*views.front(), 9e8)};
    const std::vector<std::shared_ptr<const Delegate>> delegates = {MakeFake(std::move(fake))};
    const Host host(DefaultAllocator(), std::shared_ptr<ParallelFor>(MakeSerial()), kSilent);
    const PlaceOptions options;
    ControlPrices prices(host, delegates, options);
    EXPECT_EQ(prices.SecondsOf(*views[0], module.graphs[0].nodes[0]), 1e9) << levels;
    Placer placer(*views[0], host, delegates, options);
    ASSERT_TRUE(placer.Query().ok());
    const auto placement = placer.Place();
    ASSERT_TRUE(placement.ok()) << levels << " levels: " << placement.status().message();
    EXPECT_EQ(placement->steps[0].delegate,
              0);  // however expensive, the delegate's offer is cheaper
  }
}

}  // namespace
}  // namespace msrt::testing
