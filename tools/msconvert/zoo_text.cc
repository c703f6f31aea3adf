// Transformers of the zoo.
#include "tools/msconvert/net.h"

namespace msrt::zoo {
namespace {

struct Sizes {
  int64_t hidden, layers, heads, vocabulary, positions;
};

struct Tokens {
  ValueId ids, hidden;
};

// Token plus position embeddings. The position table is cut to the length of the sequence, which
// may be open.
Tokens Embed(Net& net, const Options& o, const Sizes& s) {
  const int64_t batch = o.batch != 0 ? o.batch : net.Symbol("batch");
  const int64_t length = o.sequence != 0 ? o.sequence : net.Symbol("sequence");
  const ValueId ids = net.Input("input_ids", DType::kI64, {batch, length});
  const ValueId tokens = net.Embedding(ids, s.vocabulary, s.hidden);
  const ValueId table = net.Normal("positions", {s.positions, s.hidden}, 0.1);
  ValueId positions;
  if (o.sequence != 0) {
    positions = net.Op("Slice", {table},
                       {{"starts", std::vector<int64_t>{0}},
                        {"ends", std::vector<int64_t>{length}},
                        {"axes", std::vector<int64_t>{0}}});
  } else {
    const ValueId end = net.Op("Shape", {ids}, {{"start", int64_t{1}}, {"end", int64_t{2}}});
    const ValueId start = net.Op("Sub", {end, end});
    positions = net.Op("Slice", {table, start, end});
  }
  return {ids, net.Op("Add", {tokens, positions})};
}

ValueId SelfAttention(Net& net, ValueId x, const Sizes& s, std::vector<ValueId> mask, bool causal) {
  std::vector<ValueId> inputs{net.Dense(x, s.hidden), net.Dense(x, s.hidden),
                              net.Dense(x, s.hidden)};
  inputs.insert(inputs.end(), mask.begin(), mask.end());
  AttrList attrs{{"q_num_heads", s.heads}, {"kv_num_heads", s.heads}};
  if (causal) attrs.Set("is_causal", int64_t{1});
  return net.Dense(net.Op("Attention", std::move(inputs), std::move(attrs)), s.hidden);
}

ValueId FeedForward(Net& net, ValueId x, const Sizes& s, const char* gelu) {
  return net.Dense(
      net.Op("Gelu", {net.Dense(x, 4 * s.hidden)}, {{"approximate", std::string(gelu)}}), s.hidden);
}

}  // namespace

Result<Module> Bert(const Options& o) {
  const Sizes s{Or(o.width, 768), Or(o.layers, 12), Or(o.heads, 12), Or(o.classes, 30522), 512};
  Net net("bert", o);
  const auto [ids, embedded] = Embed(net, o, s);
  const ValueId mask = net.Input("attention_mask", DType::kI64, net.DimsOf(ids));
  // [batch, 1, 1, sequence], true where there is a token.
  const ValueId keep = net.Op("Unsqueeze", {net.Op("Cast", {mask}, {{"to", DType::kBool}})},
                              {{"axes", std::vector<int64_t>{1, 2}}});
  ValueId x = net.LayerNorm(embedded);
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    net.Scope(StrCat("layer", layer, "."));
    x = net.LayerNorm(net.Op("Add", {SelfAttention(net, x, s, {keep}, false), x}));
    x = net.LayerNorm(net.Op("Add", {FeedForward(net, x, s, "none"), x}));
  }
  net.Output(x, "last_hidden");
  return std::move(net).Finish();
}

Result<Module> Gpt2(const Options& o) {
  const Sizes s{Or(o.width, 768), Or(o.layers, 12), Or(o.heads, 12), Or(o.classes, 50257), 1024};
  Net net("gpt2", o);
  ValueId x = Embed(net, o, s).hidden;
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    net.Scope(StrCat("layer", layer, "."));
    x = net.Op("Add", {SelfAttention(net, net.LayerNorm(x), s, {}, true), x});
    x = net.Op("Add", {FeedForward(net, net.LayerNorm(x), s, "tanh"), x});
  }
  net.Scope("head.");
  x = net.LayerNorm(x);
  net.Output(net.Op("MatMul", {x, net.Normal("weight", {s.hidden, s.vocabulary}, 0.02)}), "logits");
  return std::move(net).Finish();
}

}  // namespace msrt::zoo
