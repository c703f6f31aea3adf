#include "tools/msconvert/original_runtime.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/io.h"
#include "tools/tensors/compare.h"
#include "tools/tensors/npy.h"

namespace msrt {
namespace {

namespace fs = std::filesystem;

constexpr int kNoPackage = 3, kNotLoaded = 4;  // exit codes of the scripts

constexpr const char* kOnnxScript = R"py(
import json, os, sys
try:
    import numpy as np
    import onnxruntime as ort
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(3)
folder = sys.argv[1]
with open(os.path.join(folder, "request.json")) as f:
    request = json.load(f)
options = ort.SessionOptions()
levels = ort.GraphOptimizationLevel
all_levels = {True: levels.ORT_ENABLE_ALL, False: levels.ORT_DISABLE_ALL}
options.graph_optimization_level = all_levels[bool(request["optimised"])]
options.log_severity_level = 4
model = request["model"]
if request["patch"]:
    with open(model, "rb") as f, open(os.path.join(folder, request["patch"]), "rb") as g:
        model = f.read() + g.read()
    folder_of_weights = os.path.dirname(os.path.abspath(request["model"]))
    options.add_session_config_entry(
        "session.model_external_initializers_file_folder_path", folder_of_weights)
try:
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
except Exception as error:
    print(error, file=sys.stderr)
    sys.exit(4)
try:
    feeds = {name: np.load(os.path.join(folder, "input_%d.npy" % i))
             for i, name in enumerate(request["inputs"])}
    values = session.run(request["outputs"], feeds)
except Exception as error:
    print(error, file=sys.stderr)
    sys.exit(1)
for i, value in enumerate(values):
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        np.save(os.path.join(folder, "output_%d.npy" % i), np.asarray(value, order="C"))
)py";

constexpr const char* kMindSporeScript = R"py(
import json, os, sys
os.environ.setdefault("GLOG_v", "4")
try:
    import numpy as np
    import mindspore as ms
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(3)
folder = sys.argv[1]
with open(os.path.join(folder, "request.json")) as f:
    request = json.load(f)

def flat(value):
    return [x for v in value for x in flat(v)] if isinstance(value, (tuple, list)) else [value]

try:
    cell = ms.nn.GraphCell(ms.load(request["model"]))
    feeds = [ms.Tensor(np.load(os.path.join(folder, "input_%d.npy" % i)))
             for i in range(len(request["inputs"]))]
    values = [v.asnumpy() if isinstance(v, ms.Tensor) else np.asarray(v)
              for v in flat(cell(*feeds))]
except Exception as error:
    lines = [line for line in str(error).splitlines() if line.strip(" -")]
    print(lines[0] if lines else repr(error), file=sys.stderr)
    sys.exit(1)
for i, value in enumerate(values):
    if value.dtype.kind in "fiub":
        np.save(os.path.join(folder, "output_%d.npy" % i), np.asarray(value, order="C"))
)py";

std::string Python(const RuntimeKind& kind) {
  for (const char* variable : kind.variables) {
    const char* given = std::getenv(variable);
    if (given != nullptr && *given != '\0') return given;
  }
  return "python3";
}

Status WriteText(const std::string& path, const std::string& text) {
  const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(text))};
  return DefaultIo()->WriteFile(path, pieces);
}

std::string LastLineOf(const std::string& path) {
  const auto file = DefaultIo()->ReadFile(path, DefaultAllocator());
  if (!file.ok()) return {};
  std::string text(reinterpret_cast<const char*>(file->data.data()), file->data.size());
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);  // all of it if it is one line
}

// Returns the exit code; the output of the script goes to a file.
Result<int> RunScript(const std::string& python, const char* script, const std::string& folder,
                      const std::string& errors) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const char* arguments[] = {python.c_str(), "-c", script, folder.c_str(), nullptr};
  pid_t child = 0;
  const int error = posix_spawnp(&child, python.c_str(), &actions, nullptr,
                                 const_cast<char* const*>(arguments), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return NotFound("'", python, "': ", std::strerror(error));
  int state = 0;
  while (waitpid(child, &state, 0) < 0) {
    if (errno != EINTR) return IoError("'", python, "': ", std::strerror(errno));
  }
  if (!WIFEXITED(state)) return IoError("'", python, "' was killed by signal ", WTERMSIG(state));
  return WEXITSTATUS(state);
}

}  // namespace

const RuntimeKind& OnnxRuntimeKind() {
  static const RuntimeKind kind{"ONNX Runtime", "onnxruntime", kOnnxScript, {"MSCONVERT_PYTHON"}};
  return kind;
}

const RuntimeKind& MindSporeKind() {
  static const RuntimeKind kind{
      "MindSpore", "mindspore", kMindSporeScript, {"MSCONVERT_PYTHON", "MSRT_MINDSPORE_PYTHON"}};
  return kind;
}

Result<OriginalRuntime> OriginalRuntime::Make(const RuntimeKind& kind, std::string model_path,
                                              const std::vector<NamedTensor>& inputs) {
  OriginalRuntime reference(kind);
  reference.model_path_ = std::move(model_path);
  std::error_code error;
  std::string pattern = (fs::temp_directory_path(error) / "msconvert-XXXXXX").string();
  if (error || mkdtemp(pattern.data()) == nullptr)
    return IoError("no temporary folder can be made: ", std::strerror(errno));
  reference.folder_ = std::move(pattern);
  for (const auto& [name, tensor] : inputs) {
    MSRT_RETURN_IF_ERROR(WriteNpy(
        StrCat(reference.folder_, "/input_", reference.inputs_.size(), ".npy"), ViewOf(tensor)));
    reference.inputs_.push_back(name);
  }
  return reference;
}

OriginalRuntime::OriginalRuntime(OriginalRuntime&& other) noexcept
    : kind_(other.kind_),
      model_path_(std::move(other.model_path_)),
      folder_(std::exchange(other.folder_, {})),
      inputs_(std::move(other.inputs_)) {}

OriginalRuntime::~OriginalRuntime() {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

Result<std::vector<ConstTensor>> OriginalRuntime::Run(const std::vector<std::string>& outputs,
                                                      const std::string& patch,
                                                      bool optimised) const {
  const std::string errors = folder_ + "/errors.txt", python = Python(kind_);
  const auto output_file = [&](size_t i) { return StrCat(folder_, "/output_", i, ".npy"); };
  for (size_t i = 0; fs::remove(output_file(i)); ++i) continue;
  if (!patch.empty()) MSRT_RETURN_IF_ERROR(WriteText(folder_ + "/patch.pb", patch));
  const nlohmann::json request = {{"model", model_path_},
                                  {"optimised", optimised},
                                  {"patch", patch.empty() ? "" : "patch.pb"},
                                  {"inputs", inputs_},
                                  {"outputs", outputs}};
  MSRT_RETURN_IF_ERROR(
      WriteText(folder_ + "/request.json",
                request.dump(2, ' ', false, nlohmann::json::error_handler_t::replace)));
  const auto exit = RunScript(python, kind_.script, folder_, errors);
  if (!exit.ok() || *exit == kNoPackage) {
    return NotFound(kind_.name, " is missing, so there is nothing to verify against (",
                    exit.ok() ? LastLineOf(errors) : exit.status().message(),
                    "): name a Python that has the package ", kind_.package, " in $",
                    kind_.variables.back(),
                    ", or compare with inputs and outputs in files, --verify=FOLDER");
  }
  if (*exit == kNotLoaded) {
    return Unsupported(
        kind_.name,
        " cannot load the model, so compare with inputs and outputs in files, --verify=FOLDER: ",
        LastLineOf(errors));
  }
  if (*exit != 0) return DelegateError(kind_.name, ": ", LastLineOf(errors));
  std::vector<ConstTensor> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!fs::exists(output_file(i))) {
      results.emplace_back();
      continue;
    }
    MSRT_ASSIGN_OR_RETURN(ConstTensor tensor, ReadNpy(output_file(i)));
    results.push_back(std::move(tensor));
  }
  return results;
}

}  // namespace msrt
