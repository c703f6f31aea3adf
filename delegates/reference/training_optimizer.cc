// Optimizers of domain msrt: every element is updated by itself in double precision.
#include <cmath>
#include <cstring>

#include "delegates/reference/elements.h"
#include "delegates/reference/kernel.h"

namespace msrt::reference {
namespace {

constexpr std::string_view kUpdates[] = {"Sgd",  "Momentum", "RmsProp", "Adagrad",
                                         "Adam", "AdamW",    "Lamb",    "Lars"};
constexpr size_t kLead = 4, kMaxLists = 5;

bool IsUpdate(const OpView& op) {
  return op.domain() == "msrt" && std::find(std::begin(kUpdates), std::end(kUpdates), op.op()) !=
                                      std::end(kUpdates);
}

double NumberAt(const TensorView& t) {
  double number = 0;
  LoadElements(t.dtype, t.data, 0, 1, 1, &number);
  return number;
}

bool IsSkipped(const KernelArgs& args, size_t input) {
  return args.has_input(input) && *args.inputs[input].As<uint8_t>() != 0;
}

// The element of a list attribute that has one for each parameter, one for all, or none.
template <typename T>
T ForTensor(std::span<const T> list, size_t t, T usual) {
  return list.empty() ? usual : list[list.size() == 1 ? 0 : t];
}

// One parameter with its gradient and state.
struct Updated {
  size_t lists = 0;
  const TensorView* in[kMaxLists];
  const TensorView* out[kMaxLists];  // null: no output
  double rate = 0, decay = 0;
  bool adapted = true;

  int64_t elements() const { return in[0]->elements(); }
};

class Update {
 public:
  Update(const KernelArgs& args, size_t lists)
      : args_(args),
        lists_(lists),
        tensors_((args.inputs.size() - kLead) / lists),
        rate_(NumberAt(args.inputs[0])),
        factor_(args.has_input(2) ? NumberAt(args.inputs[2]) : 1),
        clip_(args.op.Float("clip")),
        updates_(IntValues(args.inputs[1].dtype, args.inputs[1].data, 1)[0]) {}

  int64_t updates() const { return updates_; }

  // Calls update(tensor) for every parameter; only copies if the update is skipped.
  template <typename F>
  Status ForEach(F&& update) const {
    const bool skip = IsSkipped(args_, 3);
    for (size_t t = 0; t < tensors_; ++t) {
      const Updated tensor = TensorAt(t);
      if (skip) Copy(tensor);
      else MSRT_RETURN_IF_ERROR(update(tensor));
    }
    return OkStatus();
  }

  // Calls update(state) for every element, where state is {parameter, gradient, state...} and
  // leaves as {parameter, -, state...}.
  template <typename F>
  Status Elements(const Updated& u, F&& update) const {
    return ForEachBlock(args_.parallel, u.elements(), [&](int64_t first, int64_t count) {
      double blocks[kMaxLists][kBlockElements];
      for (size_t list = 0; list < u.lists; ++list)
        LoadElements(u.in[list]->dtype, u.in[list]->data, first, 1, count, blocks[list]);
      for (int64_t i = 0; i < count; ++i) {
        double state[kMaxLists];
        for (size_t list = 0; list < u.lists; ++list) state[list] = blocks[list][i];
        state[1] = Limited(state[1]);
        update(state);
        for (size_t list = 0; list < u.lists; ++list) blocks[list][i] = state[list];
      }
      for (size_t list = 0; list < u.lists; ++list) {
        if (u.out[list] != nullptr)
          StoreElements(u.out[list]->dtype, u.out[list]->data, first, count, blocks[list]);
      }
    });
  }

  // The norm over all elements of f(parameter, gradient, state...), in order.
  template <typename F>
  double Norm(const Updated& u, F&& f) const {
    double sum = 0;
    std::vector<std::vector<double>> lists;
    for (size_t list = 0; list < u.lists; ++list) lists.push_back(Doubles(*u.in[list]));
    for (size_t i = 0; i < lists[0].size(); ++i) {
      double state[kMaxLists];
      for (size_t list = 0; list < u.lists; ++list) state[list] = lists[list][i];
      state[1] = Limited(state[1]);
      const double x = f(state);
      sum += x * x;
    }
    return std::sqrt(sum);
  }

 private:
  double Limited(double gradient) const {
    gradient *= factor_;
    return clip_ > 0 ? std::min(std::max(gradient, -clip_), clip_) : gradient;
  }

  Updated TensorAt(size_t t) const {
    Updated u;
    u.lists = lists_;
    for (size_t list = 0; list < lists_; ++list) {
      u.in[list] = &args_.inputs[kLead + list * tensors_ + t];
      const size_t output = (list == 0 ? 0 : list - 1) * tensors_ + t;
      u.out[list] = list != 1 && args_.has_output(output) ? &args_.outputs[output] : nullptr;
    }
    u.rate = rate_ * ForTensor(args_.op.Floats("rate_factor"), t, 1.0);
    u.decay = ForTensor(args_.op.Floats("weight_decay"), t, 0.0);
    const bool adapts = args_.op.op() == "Lamb" || args_.op.op() == "Lars";
    u.adapted = adapts && ForTensor(args_.op.Ints("adapted"), t, int64_t{1}) != 0;
    return u;
  }

  static void Copy(const Updated& u) {
    for (size_t list = 0; list < u.lists; ++list) {
      if (u.out[list] == nullptr || u.out[list]->data == u.in[list]->data) continue;
      std::memcpy(u.out[list]->data, u.in[list]->data, BytesOf(u.in[list]->dtype, u.elements()));
    }
  }

  const KernelArgs& args_;
  const size_t lists_, tensors_;
  const double rate_, factor_, clip_;
  const int64_t updates_;
};

Status Sgd(const KernelArgs& args) {
  const Update update(args, 2);
  return update.ForEach([&](const Updated& u) {
    return update.Elements(u, [&](double* s) { s[0] -= u.rate * (s[1] + u.decay * s[0]); });
  });
}

Status Momentum(const KernelArgs& args) {
  const Update update(args, 3);
  const double momentum = args.op.Float("momentum");
  // The first update takes the gradient whole.
  const double part = update.updates() == 0 ? 1 : 1 - args.op.Float("dampening");
  const bool nesterov = args.op.Int("nesterov") != 0;
  return update.ForEach([&](const Updated& u) {
    return update.Elements(u, [&](double* s) {
      const double g = s[1] + u.decay * s[0];
      s[2] = momentum * s[2] + part * g;
      s[0] -= u.rate * (nesterov ? g + momentum * s[2] : s[2]);
    });
  });
}

// State: the average of squares, then that of gradients if it is centered, then the momentum.
Status RmsProp(const KernelArgs& args) {
  const double momentum = args.op.Float("momentum"), alpha = args.op.Float("alpha"),
               epsilon = args.op.Float("epsilon");
  const bool centered = args.op.Int("centered") != 0;
  const Update update(args, size_t{3} + centered + (momentum != 0));
  return update.ForEach([&](const Updated& u) {
    return update.Elements(u, [&](double* s) {
      const double g = s[1] + u.decay * s[0];
      s[2] = alpha * s[2] + (1 - alpha) * g * g;
      double variance = s[2];
      if (centered) {
        s[3] = alpha * s[3] + (1 - alpha) * g;
        variance -= s[3] * s[3];
      }
      double step = g / (std::sqrt(variance) + epsilon);
      if (momentum != 0) step = s[3 + centered] = momentum * s[3 + centered] + step;
      s[0] -= u.rate * step;
    });
  });
}

Status Adagrad(const KernelArgs& args) {
  const Update update(args, 3);
  const double epsilon = args.op.Float("epsilon"),
               slower =
                   1 + static_cast<double>(update.updates()) * args.op.Float("rate_decay");
  return update.ForEach([&](const Updated& u) {
    return update.Elements(u, [&](double* s) {
      const double g = s[1] + u.decay * s[0];
      s[2] += g * g;
      s[0] -= u.rate / slower * g / (std::sqrt(s[2]) + epsilon);
    });
  });
}

// The averages of gradients and squares, and the factors that correct their start at zero.
struct AdamMoments {
  double beta1, beta2, epsilon, correction1, correction2;

  AdamMoments(const KernelArgs& args, int64_t updates)
      : beta1(args.op.Float("beta1")),
        beta2(args.op.Float("beta2")),
        epsilon(args.op.Float("epsilon")),
        correction1(1 - std::pow(beta1, static_cast<double>(updates + 1))),
        correction2(1 - std::pow(beta2, static_cast<double>(updates + 1))) {}
  // Advances s[2] and s[3] by the gradient and returns the direction of the update.
  double Advance(double g, double* s) const {
    s[2] += (1 - beta1) * (g - s[2]);
    s[3] = beta2 * s[3] + (1 - beta2) * g * g;
    return s[2] / correction1 / (std::sqrt(s[3] / correction2) + epsilon);
  }
};

Status Adam(const KernelArgs& args) {
  const Update update(args, 4);
  const AdamMoments moments(args, update.updates());
  const bool decoupled = args.op.op() == "AdamW";
  return update.ForEach([&](const Updated& u) {
    return update.Elements(u, [&](double* s) {
      const double g = decoupled ? s[1] : s[1] + u.decay * s[0];
      if (decoupled) s[0] *= 1 - u.rate * u.decay;
      s[0] -= u.rate * moments.Advance(g, s);
    });
  });
}

// You et al., Large batch optimization for deep learning, arXiv:1904.00962.
Status Lamb(const KernelArgs& args) {
  const Update update(args, 4);
  const AdamMoments moments(args, update.updates());
  return update.ForEach([&](const Updated& u) {
    const auto direction = [&](double* s) { return moments.Advance(s[1], s) + u.decay * s[0]; };
    double trust = 1;
    if (u.adapted) {
      const double weight = update.Norm(u, [](const double* s) { return s[0]; }),
                   step = update.Norm(u, direction);
      if (weight > 0 && step > 0) trust = weight / step;
    }
    return update.Elements(u, [&](double* s) { s[0] -= u.rate * trust * direction(s); });
  });
}

// You et al., Large batch training of convolutional networks, arXiv:1708.03888.
Status Lars(const KernelArgs& args) {
  const Update update(args, 3);
  const double momentum = args.op.Float("momentum"), epsilon = args.op.Float("epsilon");
  return update.ForEach([&](const Updated& u) {
    double trust = 1;
    if (u.adapted) {
      const double weight = update.Norm(u, [](const double* s) { return s[0]; }),
                   gradient = update.Norm(u, [](const double* s) { return s[1]; });
      if (weight > 0 && gradient > 0)
        trust = args.op.Float("trust") * weight / (gradient + u.decay * weight + epsilon);
    }
    return update.Elements(u, [&](double* s) {
      s[2] = momentum * s[2] + trust * (s[1] + u.decay * s[0]);
      s[0] -= u.rate * s[2];
    });
  });
}

Status GlobalNorm(const KernelArgs& args) {
  double sum = 0;
  for (const TensorView& t : args.inputs) {
    for (double x : Doubles(t)) sum += x * x;
  }
  *args.outputs[0].As<double>() = std::sqrt(sum);
  return OkStatus();
}

Status MovingAverage(const KernelArgs& args) {
  const size_t tensors = (args.inputs.size() - 1) / 2;
  const double part = IsSkipped(args, 0) ? 0 : 1 - args.op.Float("decay");
  for (size_t t = 0; t < tensors; ++t) {
    const TensorView &average = args.inputs[1 + t], &value = args.inputs[1 + tensors + t];
    if (!args.has_output(t)) continue;
    MSRT_RETURN_IF_ERROR(ForEachBlock(
        args.parallel, average.elements(), [&](int64_t first, int64_t count) {
          double averages[kBlockElements], values[kBlockElements];
          LoadElements(average.dtype, average.data, first, 1, count, averages);
          LoadElements(value.dtype, value.data, first, 1, count, values);
          for (int64_t i = 0; i < count; ++i) {
            if (part != 0) averages[i] += part * (values[i] - averages[i]);
          }
          StoreElements(args.outputs[t].dtype, args.outputs[t].data, first, count, averages);
        }));
  }
  return OkStatus();
}

constexpr KernelDef kTrainingOptimizerKernels[] = {
    {"msrt", "Sgd", Sgd},
    {"msrt", "Momentum", Momentum},
    {"msrt", "RmsProp", RmsProp},
    {"msrt", "Adagrad", Adagrad},
    {"msrt", "Adam", Adam},
    {"msrt", "AdamW", Adam},
    {"msrt", "Lamb", Lamb},
    {"msrt", "Lars", Lars},
    {"msrt", "GlobalNorm", GlobalNorm},
    {"msrt", "MovingAverage", MovingAverage},
};

}  // namespace

std::vector<std::pair<uint32_t, uint32_t>> TrainingOptimizerInPlace(const OpView& op) {
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  const bool average = op.domain() == "msrt" && op.op() == "MovingAverage";
  if (!average && !IsUpdate(op)) return pairs;
  const size_t first = average ? 1 : kLead,
               gradients = op.input_count() - first - op.output_count();
  for (uint32_t output = 0; output < op.output_count(); ++output) {
    const size_t input = first + output + (output < gradients ? 0 : gradients);
    pairs.emplace_back(static_cast<uint32_t>(input), output);
  }
  return pairs;
}

std::span<const KernelDef> TrainingOptimizerKernels() { return kTrainingOptimizerKernels; }

}  // namespace msrt::reference
