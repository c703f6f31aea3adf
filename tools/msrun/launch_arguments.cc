#include "tools/msrun/launch_arguments.h"

#include <algorithm>
#include <filesystem>

#include "core/comm/job/job.h"

namespace msrt {
namespace {

constexpr const char* kLaunchFooter =
    R"(The words after the options are the command of each rank. A verb of msrun (bench, run,
calibrate, image, train, info) means this program; after --, the first word is always a program.

When a rank fails, its message is shown and the others are told. Ranks that do not end by
themselves within 1 s get SIGTERM, after --grace SIGKILL.

A hosts file has a line for each host: NAME or NAME slots=N; '#' begins a comment. Ranks on other
hosts are started in the folder with the path of this one. The command of --rsh gets one more word,
which a shell on the host executes:
  msrun launch --hosts FILE -- ./train              by ssh, which must not ask for a password
  msrun launch --hosts FILE --rsh 'ip netns exec {host} sh -c' -- ./train    network namespaces

Ranks that are started by hand, without launch, need these variables:
  MSRT_RANK, MSRT_SIZE  this rank (0, 1, ...) and the number of ranks
  MSRT_STORE            HOST:PORT on the host of rank 0, which listens there; the same for all
  MSRT_TOKEN            32 hexadecimal digits, the same for all ranks, new for each job
                        (openssl rand -hex 16)
and may have these:
  MSRT_LOCAL_RANK, MSRT_LOCAL_SIZE  this rank among those of its host, and their number
  MSRT_HOST             the host's name in messages
  MSRT_ENGINE           the communication engine
  MSRT_TIMEOUT          on rank 0: seconds of silence after which a rank has failed (10)
  MSRT_STALL_TIMEOUT    seconds after which a rank has failed that keeps others waiting and does no
                        work (600)

The exit code is that of the rank that failed first, 128 + the number of the signal that ended it,
127 if the command cannot be run, 2 for a wrong command line.)";

constexpr std::string_view kLaunchedVerbs[] = {"bench", "run",   "calibrate",
                                               "image", "train", "info"};

// One message for each mistake, with the way to mend it.
Status CheckLaunchArguments(const LaunchArguments& a, bool ranks_given) {
  if (ranks_given && (a.ranks < 1 || a.ranks > kMaxRanks))
    return InvalidArgument("launch: -n ", a.ranks, ": the number of ranks is 1 to ", kMaxRanks);
  if (!ranks_given && a.hosts_file.empty())
    return InvalidArgument("launch: how many ranks? msrun launch -n 4 ..., or --hosts FILE");
  if (!(a.timeout_seconds >= 0.3 && a.timeout_seconds <= 86400))
    return InvalidArgument("launch: --timeout ", a.timeout_seconds, ": must be 0.3 to 86400 s");
  if (a.stall_seconds != 0 &&
      !(a.stall_seconds >= kMinStallSeconds && a.stall_seconds <= kMaxStallSeconds))
    return InvalidArgument("launch: --stall-timeout ", a.stall_seconds, ": must be ",
                           kMinStallSeconds, " to ", kMaxStallSeconds, " s");
  if (!(a.grace_seconds >= 0 && a.grace_seconds <= 3600))
    return InvalidArgument("launch: --grace ", a.grace_seconds, ": must be 0 to 3600 s");
  if (a.rsh.find_first_not_of(' ') == std::string::npos)
    return InvalidArgument("launch: --rsh '", a.rsh, "' has no command, for example: ssh {host}");
  return OkStatus();
}

}  // namespace

CLI::App* AddLaunch(CLI::App* app, LaunchArguments* a) {
  CLI::App* launch =
      app->add_subcommand("launch", "start the ranks of a job, here or on other hosts");
  launch->footer(kLaunchFooter);
  launch->add_option("-n", a->ranks, "number of ranks; with --hosts, all slots if it is left out");
  launch->add_option("--hosts", a->hosts_file,
                     "a file that names hosts; without it all ranks are on this one");
  launch->add_option("--address", a->address,
                     "HOST or HOST:PORT of this host where ranks meet; default: 127.0.0.1, or for "
                     "several hosts the address toward the first other one");
  launch->add_option("--rsh", a->rsh, "the command that reaches {host}, as words")
      ->capture_default_str();
  launch
      ->add_option("--timeout", a->timeout_seconds,
                   "seconds of silence after which a rank has failed")
      ->capture_default_str();
  launch->add_option("--stall-timeout", a->stall_seconds,
                     "seconds after which a rank has failed that lives, but keeps others waiting "
                     "and does no work (MSRT_STALL_TIMEOUT); without it, 600");
  launch
      ->add_option("--grace", a->grace_seconds,
                   "seconds between SIGTERM and SIGKILL, when the ranks are stopped")
      ->capture_default_str();
  launch->add_option("--engine", a->engine, "the communication engine for the ranks (MSRT_ENGINE)");
  return launch;
}

// CLI11 would take options of the command for those of launch.
std::vector<std::string> CutLaunchCommand(std::vector<std::string>* texts) {
  size_t at = 1;
  while (at < texts->size() && (*texts)[at] != "--" && (*texts)[at].starts_with('-')) {
    const std::string& option = (*texts)[at++];
    // All options of launch but --help have a value: the next word, or in the same one.
    const bool alone = option == "-h" || option == "--help" ||
                       option.find('=') != std::string::npos ||
                       (option.starts_with("-n") && option.size() > 2);
    if (!alone && at < texts->size() && (*texts)[at] != "--") ++at;
  }
  const auto begin = texts->begin() + static_cast<std::ptrdiff_t>(std::min(at, texts->size()));
  std::vector<std::string> words(begin, texts->end());
  texts->erase(begin, texts->end());
  return words;
}

Status TakeLaunchCommand(const CLI::App& launch, std::vector<std::string> words,
                         LaunchArguments* a) {
  MSRT_RETURN_IF_ERROR(CheckLaunchArguments(*a, launch.get_option("-n")->count() > 0));
  const bool is_program = !words.empty() && words[0] == "--";
  if (is_program) words.erase(words.begin());
  if (words.empty())
    return InvalidArgument("launch: which command? msrun launch -n 4 -- COMMAND ...");
  const bool is_verb = std::find(std::begin(kLaunchedVerbs), std::end(kLaunchedVerbs), words[0]) !=
                       std::end(kLaunchedVerbs);
  if (!is_program && is_verb) {
    std::error_code error;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
    if (error) return IoError("launch: the path of msrun is not known: ", error.message());
    words.insert(words.begin(), self.string());
  }
  a->command = std::move(words);
  return OkStatus();
}

}  // namespace msrt
