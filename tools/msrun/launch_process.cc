#include "tools/msrun/launch_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <unistd.h>

#include <cerrno>
#include <cstring>

extern char** environ;

namespace msrt {
namespace {

struct Pipe {
  Socket reading, writing;
};

Result<Pipe> OpenPipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return IoError("pipe: ", std::strerror(errno));
  return Pipe{Socket(ends[0]), Socket(ends[1])};
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// The environment of this process with `variables` in it or replaced.
std::vector<std::string> EnvironmentWith(const std::vector<std::string>& variables) {
  std::vector<std::string> all = variables;
  const auto name_of = [](const std::string& v) { return v.substr(0, v.find('=') + 1); };
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string name = name_of(*entry);
    bool replaced = false;
    for (const std::string& v : variables) replaced = replaced || name_of(v) == name;
    if (!replaced) all.emplace_back(*entry);
  }
  return all;
}

// Everything that the child needs is prepared before the fork: other threads may hold locks.
struct ChildPlan {
  char* const* command;
  char* const* environment;
  int in, out, error_out, report;
  pid_t parent;
};

[[noreturn]] void BecomeChild(const ChildPlan& plan) {
  setpgid(0, 0);
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != plan.parent) _exit(1);  // it died in between
#endif
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGCHLD, SIGTSTP})
    ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (dup2(plan.in, 0) >= 0 && dup2(plan.out, 1) >= 0 && dup2(plan.error_out, 2) >= 0) {
    environ = const_cast<char**>(plan.environment);
    execvp(plan.command[0], plan.command);
  }
  const int error = errno;
  (void)!write(plan.report, &error, sizeof error);
  _exit(127);
}

std::string Quoted(std::string_view word) {
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') quoted += "'\\''";
    else quoted.push_back(c);
  }
  return quoted + "'";
}

}  // namespace

Result<Process> StartProcess(const ProcessSpec& spec) {
  MSRT_ASSIGN_OR_RETURN(Pipe in, OpenPipe());
  MSRT_ASSIGN_OR_RETURN(Pipe out, OpenPipe());
  MSRT_ASSIGN_OR_RETURN(Pipe error_out, OpenPipe());
  MSRT_ASSIGN_OR_RETURN(Pipe report, OpenPipe());
  std::vector<std::string> command = spec.command, variables = EnvironmentWith(spec.variables);
  const std::vector<char*> argv = Pointers(command), envp = Pointers(variables);
  const ChildPlan plan{
      argv.data(),         envp.data(), in.reading.fd(), out.writing.fd(), error_out.writing.fd(),
      report.writing.fd(), getpid()};
  const pid_t pid = fork();
  if (pid < 0) return IoError("cannot start '", spec.command[0], "': ", std::strerror(errno));
  if (pid == 0) BecomeChild(plan);
  setpgid(pid, pid);  // in both processes, because either may come first
  // Fits into the pipe.
  (void)!write(in.writing.fd(), spec.input.data(), spec.input.size());
  report.writing.Close();
  int error = 0;
  ssize_t got;
  do got = read(report.reading.fd(), &error, sizeof error);
  while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(sizeof error)) {
    return MakeStatus(error == ENOENT ? Code::kNotFound : Code::kIo, "cannot run '",
                      spec.command[0], "': ", std::strerror(error));
  }
  Process process{pid, std::move(out.reading), std::move(error_out.reading), {}};
  if (spec.keeps_input) process.in = std::move(in.writing);
  for (const Socket* end : {&process.out, &process.error_out})
    fcntl(end->fd(), F_SETFL, fcntl(end->fd(), F_GETFL) | O_NONBLOCK);
  return process;
}

ProcessSpec RemoteProcess(const std::string& rsh, const std::string& host, const ProcessSpec& spec,
                          const std::string& secret, const std::string& folder) {
  // Everything runs in a subshell: where the command of `rsh` runs on this host, it is killed when
  // launch dies, and a shell killed after it started the rank would never start the watch below.
  std::string script = StrCat("( IFS= read -r ", secret.substr(0, secret.find('=')),
                              " || exit 1; export ", secret.substr(0, secret.find('=')));
  for (const std::string& variable : spec.variables) {
    const size_t equals = variable.find('=');
    StrAppend(&script, " ", variable.substr(0, equals + 1), Quoted(variable.substr(equals + 1)));
  }
  StrAppend(&script, "; cd ", Quoted(folder), " || exit 1; exec 3<&0;");
  for (const std::string& word : spec.command) StrAppend(&script, " ", Quoted(word));
  // A signal to the local end does not arrive there, but the end of the standard input does.
  script += R"( </dev/null 3<&- & rank=$!
(cat <&3; kill -TERM $rank; sleep 3; kill -KILL $rank) >/dev/null 2>&1 & watch=$!
exec 3<&-; wait $rank; code=$?; kill -KILL $watch 2>/dev/null; exit $code
); exit $?)";
  ProcessSpec remote;
  remote.input = secret.substr(secret.find('=') + 1) + "\n";
  remote.keeps_input = true;
  bool named = false;
  for (size_t at = 0; at < rsh.size();) {
    const size_t end = std::min(rsh.find(' ', at), rsh.size());
    std::string word = rsh.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    const size_t mark = word.find("{host}");
    if (mark != std::string::npos) word.replace(mark, 6, host);
    named = named || mark != std::string::npos;
    remote.command.push_back(std::move(word));
  }
  if (!named) remote.command.push_back(host);
  // Login shells differ; every one of them can start sh.
  remote.command.push_back(StrCat("exec sh -c ", Quoted(script)));
  return remote;
}

}  // namespace msrt
