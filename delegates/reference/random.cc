// Random ops: the element's index in the whole tensor is the counter of the generator, the seed its
// key.
#include <bit>
#include <vector>

#include "delegates/reference/elements.h"
#include "delegates/reference/kernel.h"
#include "delegates/reference/number.h"
#include "delegates/reference/philox.h"

namespace msrt::reference {
namespace {

// FNV-1a of the node's name.
uint64_t HashOf(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// The random numbers of a node, by index in the whole tensor.
class Draws {
 public:
  explicit Draws(const KernelArgs& args)
      : out_(args.outputs[0].dims), begin_(args.op.Ints("piece_begin")), whole_(out_) {
    const OpView& op = args.op;
    if (op.Has("whole_shape")) whole_ = Dims(op.Ints("whole_shape"));
    // A seed and a name never share a key.
    if (op.Has("seed")) key_ = {std::bit_cast<uint64_t>(op.Float("seed")), 0};
    else key_ = {HashOf(op.name()), 1};
  }
  PhiloxBlock At(int64_t element) const {
    return Philox({static_cast<uint64_t>(IndexInWhole(element)), 0, 0, 0}, key_);
  }

 private:
  int64_t IndexInWhole(int64_t element) const {
    if (begin_.empty()) return element;
    int64_t index = 0, stride = 1;
    for (int i = out_.rank() - 1; i >= 0; --i) {
      index += (begin_[static_cast<size_t>(i)] + element % out_[i]) * stride;
      element /= out_[i];
      stride *= whole_[i];
    }
    return index;
  }

  Dims out_;
  std::span<const int64_t> begin_;
  Dims whole_;
  std::array<uint64_t, 2> key_;
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

Status RandomNormal(const KernelArgs& args) {
  const Draws draws(args);
  const double mean = args.op.Float("mean"), scale = args.op.Float("scale");
  return FillWith(args, [&](int64_t i) {
    const PhiloxBlock bits = draws.At(i);
    return mean + scale * NormalOf(bits[0], bits[1]);
  });
}

Status RandomUniform(const KernelArgs& args) {
  const Draws draws(args);
  const double low = args.op.Float("low"), high = args.op.Float("high");
  return FillWith(args, [&](int64_t i) { return low + (high - low) * UniformOf(draws.At(i)[0]); });
}

Status Bernoulli(const KernelArgs& args) {
  const Draws draws(args);
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
  const Draws draws(args);
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

constexpr KernelDef kRandomKernels[] = {
    {"", "RandomNormal", RandomNormal},     {"", "RandomUniform", RandomUniform},
    {"", "RandomNormalLike", RandomNormal}, {"", "RandomUniformLike", RandomUniform},
    {"", "Bernoulli", Bernoulli},           {"", "Multinomial", Multinomial},
};

}  // namespace

std::span<const KernelDef> RandomKernels() { return kRandomKernels; }

}  // namespace msrt::reference
