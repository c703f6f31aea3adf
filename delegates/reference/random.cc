// Random ops: index in the whole tensor, step and stream are the counter of the generator, the seed
// is its key (ops/random.cc). The last word of the counter tells draws from derived steps.
#include <bit>
#include <vector>

#include "delegates/reference/elements.h"
#include "delegates/reference/kernel.h"
#include "delegates/reference/number.h"
#include "delegates/reference/philox.h"

namespace msrt::reference {
namespace {

// The random numbers of a node, by index in the whole tensor.
class Draws {
 public:
  Draws(const KernelArgs& args, size_t step_input)
      : out_(args.outputs[0].dims), stream_(static_cast<uint64_t>(args.op.Int("stream"))) {
    const OpView& op = args.op;
    FindPosition(args, step_input + 1);
    if (args.has_input(step_input)) step_ = *args.inputs[step_input].As<uint64_t>();
    // No seed is another key than every seed.
    if (op.Has("seed")) key_ = {std::bit_cast<uint64_t>(op.Float("seed")), 0};
  }
  PhiloxBlock At(int64_t element) const {
    return Philox({IndexInWhole(element), step_, stream_, 0}, key_);
  }

 private:
  // From the attributes of a piece, and from the input.
  void FindPosition(const KernelArgs& args, size_t input) {
    const bool given = args.has_input(input);
    if (!given && !args.op.Has("whole_shape")) return;
    const auto begin = args.op.Ints("piece_begin"), shape = args.op.Ints("whole_shape");
    const auto rank = static_cast<size_t>(out_.rank());
    const int64_t* position = given ? args.inputs[input].As<int64_t>() : nullptr;
    for (size_t i = 0; i < rank; ++i) {
      begin_.push_back(i < begin.size() ? static_cast<uint64_t>(begin[i]) : 0);
      if (given) begin_[i] += static_cast<uint64_t>(position[i]);
      whole_.push_back(static_cast<uint64_t>(given ? position[rank + i] : shape[i]));
    }
  }

  // Unsigned: the numbers of the input may be anything.
  uint64_t IndexInWhole(int64_t element) const {
    if (begin_.empty()) return static_cast<uint64_t>(element);
    uint64_t index = 0, stride = 1;
    for (int i = out_.rank() - 1; i >= 0; --i) {
      const auto at = static_cast<size_t>(i);
      index += (begin_[at] + static_cast<uint64_t>(element % out_[i])) * stride;
      element /= out_[i];
      stride *= whole_[at];
    }
    return index;
  }

  Dims out_;
  std::vector<uint64_t> begin_, whole_;
  uint64_t step_ = 0, stream_;
  std::array<uint64_t, 2> key_ = {0, 1};
};

// Fills output 0 with value(element) in double.
template <typename Value>
Status FillWith(const KernelArgs& args, Value value) {
  const TensorView& out = args.outputs[0];
  return ForEachBlock(args.parallel, out.elements(), [&](int64_t first, int64_t count) {
    double values[kBlockElements];
    for (int64_t i = 0; i < count; ++i) values[i] = value(first + i);
    StoreElements(out.dtype, out.data, first, count, values);
  });
}

Status Normal(const KernelArgs& args, size_t step_input) {
  const Draws draws(args, step_input);
  const double mean = args.op.Float("mean"), scale = args.op.Float("scale");
  return FillWith(args, [&](int64_t i) {
    const PhiloxBlock bits = draws.At(i);
    return mean + scale * NormalOf(bits[0], bits[1]);
  });
}
Status RandomNormal(const KernelArgs& args) { return Normal(args, 0); }
Status RandomNormalLike(const KernelArgs& args) { return Normal(args, 1); }

Status Uniform(const KernelArgs& args, size_t step_input) {
  const Draws draws(args, step_input);
  const double low = args.op.Float("low"), high = args.op.Float("high");
  return FillWith(args, [&](int64_t i) { return low + (high - low) * UniformOf(draws.At(i)[0]); });
}
Status RandomUniform(const KernelArgs& args) { return Uniform(args, 0); }
Status RandomUniformLike(const KernelArgs& args) { return Uniform(args, 1); }

Status Bernoulli(const KernelArgs& args) {
  const Draws draws(args, 1);
  const TensorView& p = args.inputs[0];
  return FillWith(args, [&](int64_t i) {
    double probability;
    LoadElements(p.dtype, p.data, i, 1, 1, &probability);
    return UniformOf(draws.At(i)[0]) < probability ? 1.0 : 0.0;
  });
}

// Returns the class at which the running sum of probabilities passes `part` of their total.
int64_t ChooseClass(std::span<const double> running, double part) {
  const double target = part * running.back();
  for (size_t c = 0; c + 1 < running.size(); ++c) {
    if (target < running[c]) return static_cast<int64_t>(c);
  }
  return std::ssize(running) - 1;
}

Status Multinomial(const KernelArgs& args) {
  const Draws draws(args, 1);
  const TensorView &logits = args.inputs[0], &out = args.outputs[0];
  const int64_t classes = logits.dims[1], samples = out.dims[1];
  return ParallelRanges(
      args.parallel, samples == 0 ? 0 : out.dims[0], 1, [&](int64_t begin, int64_t end) {
        std::vector<double> running(static_cast<size_t>(classes));
        std::vector<int64_t> chosen(static_cast<size_t>(samples));
        for (int64_t row = begin; row < end; ++row) {
          LoadElements(logits.dtype, logits.data, row * classes, 1, classes, running.data());
          double maximum = running[0], sum = 0;
          for (double v : running) maximum = GreaterOf(maximum, v);
          for (double& v : running) v = sum += std::exp(v - maximum);
          for (int64_t s = 0; s < samples; ++s) {
            chosen[static_cast<size_t>(s)] =
                ChooseClass(running, UniformOf(draws.At(row * samples + s)[0]));
          }
          StoreElements(out.dtype, out.data, row * samples, samples, chosen.data());
        }
      });
}

Status Dropout(const KernelArgs& args) {
  const Draws draws(args, 1);
  const TensorView &x = args.inputs[0], &out = args.outputs[0];
  const bool training = args.op.Int("training") != 0, masked = args.has_output(1);
  const double ratio = args.op.Float("ratio"), scale = ratio < 1 ? 1 / (1 - ratio) : 0;
  return ForEachBlock(args.parallel, out.elements(), [&](int64_t first, int64_t count) {
    double values[kBlockElements];
    uint8_t* const mask = masked ? args.outputs[1].As<uint8_t>() + first : nullptr;
    LoadElements(x.dtype, x.data, first, 1, count, values);
    for (int64_t i = 0; i < count; ++i) {
      const bool keep = !training || UniformOf(draws.At(first + i)[0]) >= ratio;
      if (training) values[i] = keep ? values[i] * scale : 0;
      if (masked) mask[i] = keep ? 1 : 0;
    }
    StoreElements(out.dtype, out.data, first, count, values);
  });
}

Status DeriveStep(const KernelArgs& args) {
  const auto stream = static_cast<uint64_t>(args.op.Int("stream"));
  const PhiloxBlock bits = Philox({0, *args.inputs[0].As<uint64_t>(), stream, 1}, {0, 1});
  *args.outputs[0].As<uint64_t>() = bits[0] >> 2;
  return OkStatus();
}

constexpr KernelDef kRandomKernels[] = {
    {"", "RandomNormal", RandomNormal},
    {"", "RandomUniform", RandomUniform},
    {"", "RandomNormalLike", RandomNormalLike},
    {"", "RandomUniformLike", RandomUniformLike},
    {"", "Bernoulli", Bernoulli},
    {"", "Multinomial", Multinomial},
    {"", "Dropout", Dropout},
    {"msrt", "DeriveStep", DeriveStep},
};

}  // namespace

std::span<const KernelDef> RandomKernels() { return kRandomKernels; }

}  // namespace msrt::reference
