#include "tools/msconvert/foreign_format.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "core/base/str_cat.h"

namespace msrt {
namespace {

constexpr std::string_view kPyTorch =
    "is a PyTorch file; load it in Python and export it: torch.onnx.export(model, example_inputs, "
    "'model.onnx')";
constexpr std::string_view kKeras =
    "is a Keras model; export it in Python: keras.saving.load_model(file).export('model.onnx', "
    "format='onnx'), or with the package tf2onnx";
constexpr std::string_view kTfLite =
    "is a TensorFlow Lite model; convert it to ONNX: python -m tf2onnx.convert --tflite "
    "model.tflite --output model.onnx";
constexpr std::string_view kSavedModel =
    "is a TensorFlow model; convert it to ONNX: python -m tf2onnx.convert --saved-model FOLDER "
    "--output model.onnx (--graphdef for one "
    "file)";
constexpr std::string_view kSafetensors =
    "is a safetensors file, which has weights but no network; export the model that it belongs to: "
    "optimum-cli export onnx --model FOLDER "
    "OUT, "
    "or torch.onnx.export in Python";
constexpr std::string_view kGguf =
    "is a GGUF file, which has the weights of one network of llama.cpp and no graph; export the "
    "original model to ONNX: optimum-cli export "
    "onnx";
constexpr std::string_view kOrt =
    "is a model in ONNX Runtime's own format; convert the .onnx file that it was made from";
constexpr std::string_view kLite =
    "is a MindSpore Lite model; convert the .mindir or .onnx file that it was made from";
constexpr std::string_view kNumPy =
    "is a NumPy file, which has tensors and no network; inputs are given with --input "
    "NAME=FILE.npy";
constexpr std::string_view kOpenVino =
    "is an OpenVINO model; convert the .onnx file that it was made from";
constexpr std::string_view kNcnn = "is an ncnn model; convert the .onnx file that it was made from";
constexpr std::string_view kPointer =
    "is a pointer of Git LFS and not the file itself; fetch it: git lfs pull";
constexpr std::string_view kHtml =
    "is a web page, so its download has failed; download the file again";
constexpr std::string_view kCheckpoint =
    "has weights and no network; a MindSpore checkpoint is given together with its model: "
    "msconvert model.mindir OUT.msrt --ckpt FILE";
constexpr std::string_view kCoreMl =
    "is a Core ML model; convert the .onnx file or the PyTorch model that it was made from";
constexpr std::string_view kPaddle =
    "is a PaddlePaddle model; convert it to ONNX: paddle2onnx --model_dir FOLDER --model_filename "
    "FILE --save_file model.onnx";

struct Magic {
  size_t at;
  std::string_view bytes, what;
};
constexpr Magic kMagics[] = {
    {4, "TFL3", kTfLite},
    {4, "ORTM", kOrt},
    {4, "MSL", kLite},
    {0, "GGUF", kGguf},
    {0, "\x89HDF\r\n\x1a\n", kKeras},
    {0, "\x93NUMPY", kNumPy},
    {0, "\x80\x02\x8a\x0a", kPyTorch},  // a pickle, as PyTorch wrote before 1.6
    {0, "\x80\x02}q", kPyTorch},
    {0,
     "\x80\x02"
     "ccollections",
     kPyTorch},
    {0, "7767517\n", kNcnn},
    {0, "version https://git-lfs", kPointer},
    {0, "<!DOCTYPE html", kHtml},
    {0, "<html", kHtml},
    {0, "<?xml", kOpenVino},
};

// A member of an archive that identifies the archive's kind.
struct Member {
  std::string_view name, what;
};
constexpr Member kMembers[] = {{"data.pkl", kPyTorch},
                               {"archive_format", kPyTorch},
                               {"model.weights.h5", kKeras},
                               {".npy", kNumPy}};

struct Extension {
  std::string_view name, what;
};
constexpr Extension kExtensions[] = {
    {".pt", kPyTorch},     {".pth", kPyTorch},
    {".pt2", kPyTorch},    {".bin", kPyTorch},
    {".h5", kKeras},       {".hdf5", kKeras},
    {".keras", kKeras},    {".tflite", kTfLite},
    {".pb", kSavedModel},  {".safetensors", kSafetensors},
    {".gguf", kGguf},      {".ort", kOrt},
    {".ms", kLite},        {".npy", kNumPy},
    {".npz", kNumPy},      {".xml", kOpenVino},
    {".param", kNcnn},     {".ckpt", kCheckpoint},
    {".mlmodel", kCoreMl}, {".pdmodel", kPaddle},
};

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string_view InArchive(std::string_view text) {
  constexpr size_t kHead = 4096, kTail = 65536;  // the first member, and the table of all members
  const std::string_view head = text.substr(0, kHead),
                         tail = text.substr(text.size() - std::min(text.size(), kTail));
  for (const Member& m : kMembers) {
    if (Contains(head, m.name) || Contains(tail, m.name)) return m.what;
  }
  return "is a zip archive; unpack it and name the model in it";
}

// A safetensors file begins with eight bytes for the length of a JSON header, and the header.
bool IsSafetensors(std::string_view text) {
  uint64_t length = 0;
  if (text.size() < 10) return false;
  std::memcpy(&length, text.data(), sizeof length);
  return length <= text.size() - 8 && text[8] == '{' &&
         (text[9] == '"' || text[9] == '}' || text[9] == ' ');
}

}  // namespace

std::string ForeignFormatOf(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const Magic& m : kMagics) {
    if (text.size() >= m.at && text.substr(m.at).starts_with(m.bytes)) return std::string(m.what);
  }
  if (text.starts_with("PK\x03\x04")) return std::string(InArchive(text));
  return IsSafetensors(text) ? std::string(kSafetensors) : std::string();
}

std::string ForeignFormatOf(const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  for (const Extension& e : kExtensions) {
    if (e.name == extension) return std::string(e.what);
  }
  return {};
}

std::string ForeignFolder(const std::string& path) {
  namespace fs = std::filesystem;
  if (fs::exists(fs::path(path) / "saved_model.pb")) return std::string(kSavedModel);
  if (fs::exists(fs::path(path) / "config.json")) {
    return "is a folder of a Hugging Face model; export it to ONNX: optimum-cli export onnx "
           "--model FOLDER OUT";
  }
  return "is a folder; name the model file in it";
}

}  // namespace msrt
