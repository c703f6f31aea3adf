// The cost of sharing a machine: two models in turn, many sessions at once, and a graph partitioned
// over delegates against one that was placed by hand. All figures are ratios of alternating
// measurements, so that noise affects both sides: the median over rounds, with its 95 % confidence
// interval.
//   sharing_bench [rounds]
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tests/conformance/pipeline.h"
#include "tools/msconvert/zoo.h"

namespace msrt::testing {
namespace {

// `over[i]` and `under[i]` were measured in the same round. The number of rounds below the true
// median is binomial, which bounds it by two of the sorted ratios, for any distribution.
void Row(const char* what, const std::vector<double>& over, const std::vector<double>& under) {
  std::vector<double> ratios;
  for (size_t i = 0; i < over.size(); ++i) ratios.push_back(over[i] / under[i]);
  std::sort(ratios.begin(), ratios.end());
  const double n = static_cast<double>(ratios.size());
  const double beyond = std::max(0.0, std::floor((n - 1.96 * std::sqrt(n)) / 2));
  const size_t low = static_cast<size_t>(beyond);
  std::printf("%-64s %.3f (%.3f to %.3f)\n", what, ratios[ratios.size() / 2], ratios[low],
              ratios[ratios.size() - 1 - low]);
}

// A session with its inputs set: zeros, and ones for tokens.
Result<std::unique_ptr<Session>> Ready(const std::shared_ptr<Environment>& environment,
                                       const Module& module, const CompileOptions& options) {
  MSRT_ASSIGN_OR_RETURN(auto model, CompileModule(environment, module, options));
  MSRT_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(std::move(model), 0, {}));
  for (size_t i = 0; i < session->graph().inputs.size(); ++i) {
    const Type& type = session->graph().value(session->graph().inputs[i]).type;
    const auto data = std::make_shared<std::vector<std::byte>>(type.bytes());
    MSRT_RETURN_IF_ERROR(
        session->SetInput(i, {type.dtype, type.dims, Layout::kPlain, data->data()}, data));
  }
  MSRT_RETURN_IF_ERROR(session->Run({}));
  return session;
}

Result<double> SecondsOf(std::initializer_list<Session*> sessions, int runs) {
  const StopWatch watch;
  for (int run = 0; run < runs; ++run) {
    for (Session* session : sessions) MSRT_RETURN_IF_ERROR(session->Run({}));
  }
  return watch.Millis() * 1e-3;
}

Status InTurn(const std::shared_ptr<Environment>& environment, int rounds) {
  MSRT_ASSIGN_OR_RETURN(const Module first, zoo::Build("resnet18", {.batch = 1, .image = 112}));
  MSRT_ASSIGN_OR_RETURN(const Module second, zoo::Build("mobilenetv2", {.batch = 1, .image = 128}));
  MSRT_ASSIGN_OR_RETURN(const auto a, Ready(environment, first, {}));
  MSRT_ASSIGN_OR_RETURN(const auto b, Ready(environment, second, {}));
  std::vector<double> turns, sums;
  constexpr int kRuns = 20;
  for (int round = 0; round < rounds; ++round) {
    MSRT_ASSIGN_OR_RETURN(const double a_alone, SecondsOf({a.get()}, kRuns));
    MSRT_ASSIGN_OR_RETURN(const double in_turn, SecondsOf({a.get(), b.get()}, kRuns));
    MSRT_ASSIGN_OR_RETURN(const double b_alone, SecondsOf({b.get()}, kRuns));
    turns.push_back(in_turn);
    sums.push_back(a_alone + b_alone);
  }
  Row("time of two models in turn / the sum of each alone", turns, sums);
  return OkStatus();
}

// The threads take runs from one counter, like requests of a server: no thread is left to finish
// alone.
Result<double> SecondsAtOnce(const std::vector<std::unique_ptr<Session>>& sessions, size_t threads,
                             int runs_in_all) {
  std::vector<std::thread> workers;
  std::vector<Status> statuses(threads);
  std::atomic<int> left = runs_in_all;
  const StopWatch watch;
  for (size_t t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      while (statuses[t].ok() && left.fetch_sub(1) > 0) statuses[t] = sessions[t]->Run({});
    });
  }
  for (std::thread& w : workers) w.join();
  for (const Status& s : statuses) MSRT_RETURN_IF_ERROR(s);
  return watch.Millis() * 1e-3;
}

Status ManyAtOnce(const std::shared_ptr<Environment>& environment, const char* what,
                  const Module& module, int rounds) {
  std::vector<std::unique_ptr<Session>> sessions;
  MSRT_ASSIGN_OR_RETURN(auto first, Ready(environment, module, {}));
  sessions.push_back(std::move(first));
  for (int i = 1; i < 8; ++i) {
    MSRT_ASSIGN_OR_RETURN(auto clone, sessions[0]->Clone());
    for (size_t input = 0; input < clone->graph().inputs.size(); ++input) {
      const Type& type = clone->graph().value(clone->graph().inputs[input]).type;
      const auto data = std::make_shared<std::vector<std::byte>>(type.bytes());
      MSRT_RETURN_IF_ERROR(
          clone->SetInput(input, {type.dtype, type.dims, Layout::kPlain, data->data()}, data));
    }
    sessions.push_back(std::move(clone));
  }
  // Enough runs that the time to start the threads is negligible.
  constexpr double kRoundSeconds = 0.3;
  constexpr int kTrialRuns = 4;
  MSRT_ASSIGN_OR_RETURN(const double trial, SecondsOf({sessions[0].get()}, kTrialRuns));
  const int runs = std::max(16, static_cast<int>(kRoundSeconds / (trial / kTrialRuns)));
  std::vector<double> of_two, of_eight;
  for (int round = 0; round < rounds; ++round) {
    MSRT_ASSIGN_OR_RETURN(const double two, SecondsAtOnce(sessions, 2, runs));
    MSRT_ASSIGN_OR_RETURN(const double eight, SecondsAtOnce(sessions, 8, runs));
    MSRT_ASSIGN_OR_RETURN(const double again_eight, SecondsAtOnce(sessions, 8, runs));
    MSRT_ASSIGN_OR_RETURN(const double again_two, SecondsAtOnce(sessions, 2, runs));
    of_two.push_back(two + again_two);
    of_eight.push_back(eight + again_eight);
  }
  Row(what, of_eight, of_two);
  return OkStatus();
}

// Pins each node to a delegate by its name, as a user could.
Status AgainstHandPlaced(const std::shared_ptr<Environment>& environment, int rounds) {
  MSRT_ASSIGN_OR_RETURN(
      const Module bert,
      zoo::Build("bert", {.batch = 1, .width = 128, .layers = 4, .heads = 4, .sequence = 64}));
  MSRT_ASSIGN_OR_RETURN(const auto automatic, Ready(environment, bert, {}));
  CompileOptions by_hand;
  size_t on_reference = 0, on_onednn = 0;
  const Program& program = automatic->program();
  for (size_t n = 0; n < program.explanations.size(); ++n) {
    const std::string& delegate = program.explanations[n].delegate;
    if (delegate.empty()) continue;
    (delegate == "reference" ? on_reference : on_onednn) += 1;
    by_hand.place.pins.push_back({program.graph->nodes[n].name, "", delegate, /*exclude=*/false});
  }
  MSRT_ASSIGN_OR_RETURN(const auto placed, Ready(environment, bert, by_hand));
  std::vector<double> partitioned, by_person;
  constexpr int kRuns = 10;
  for (int round = 0; round < rounds; ++round) {
    // The first one may find the caches and the clock of the core in another state.
    MSRT_ASSIGN_OR_RETURN(const double a, SecondsOf({automatic.get()}, kRuns));
    MSRT_ASSIGN_OR_RETURN(const double b, SecondsOf({placed.get()}, kRuns));
    MSRT_ASSIGN_OR_RETURN(const double again_b, SecondsOf({placed.get()}, kRuns));
    MSRT_ASSIGN_OR_RETURN(const double again_a, SecondsOf({automatic.get()}, kRuns));
    partitioned.push_back(a + again_a);
    by_person.push_back(b + again_b);
  }
  std::printf("the programs are %s\n",
              Print(program) == Print(placed->program()) ? "the same" : "different");
  std::printf("bert: %zu nodes on onednn, %zu on reference\n", on_onednn, on_reference);
  Row("time of a graph partitioned automatically / placed by hand", partitioned, by_person);
  return OkStatus();
}

Status Measure(int rounds) {
  const auto environment = UserEnvironment();
  MSRT_RETURN_IF_ERROR(InTurn(environment, rounds));
  MSRT_ASSIGN_OR_RETURN(const Module resnet, zoo::Build("resnet18", {.batch = 1, .image = 64}));
  MSRT_RETURN_IF_ERROR(ManyAtOnce(
      environment, "time of 8 threads with 8 sessions / of 2 with 2 (resnet18)", resnet, rounds));
  MSRT_ASSIGN_OR_RETURN(const Module lenet, zoo::Build("lenet", {.batch = 1}));
  MSRT_RETURN_IF_ERROR(ManyAtOnce(
      environment, "time of 8 threads with 8 sessions / of 2 with 2 (lenet)", lenet, rounds));
  return DelegateNames().size() > 1 ? AgainstHandPlaced(environment, rounds) : OkStatus();
}

}  // namespace
}  // namespace msrt::testing

int main(int argc, char** argv) {
  const msrt::Status status =
      msrt::testing::Measure(argc > 1 ? std::max(1, std::atoi(argv[1])) : 11);
  if (!status.ok()) std::fprintf(stderr, "sharing_bench: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
