#include "tools/msrun/image_arguments.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "core/api/image.h"
#include "tools/msrun/progress_line.h"

namespace msrt {
namespace {

constexpr FileKind kPlanPicture = {"an SVG picture", [](std::span<const std::byte> bytes) {
                                     const std::string_view begin = "<svg";
                                     return bytes.size() >= begin.size() &&
                                            std::memcmp(bytes.data(), begin.data(), begin.size()) ==
                                                0;
                                   }};

constexpr const char* kImageFooter =
    R"(Examples:
  msrun image unet.msrt scene.tif classes.tif --classes --memory 2GiB --normalize 'scale=1/255'
  msrun image unet.msrt scene.tif classes.tif --classes --normalize 'scale=1/255' --resume
  msrun launch -n 4 image unet.msrt scene.tif classes.tif --classes --split 2x2

The result has its name only when it is complete: until then it is OUT.part, beside OUT.journal.
Pixels without content (--mask, the image's no-data value) are NaN in float bands and 255 or 65535
in class maps.)";

// The options as text, before they are checked.
struct ImageTexts {
  std::string in, out, head, memory, executor = "auto", split, classes, bands, tile;
  std::string compress = "auto";
  std::vector<std::string> normalize, outputs;
  bool ignore_no_data = false;
};

void AddPlanOptions(CLI::App* app, ImageArguments* a, ImageTexts* t) {
  app->add_option("--memory", t->memory,
                  "limit of the process's memory: 2GiB, 1500MB; without it, half of the machine's");
  app->add_option("--executor", t->executor,
                  "stream: rolling rows; tiles: overlapping tiles; halo: ranks exchange the "
                  "borders of their parts; auto: with several ranks halo, else rows, if they fit")
      ->check(CLI::IsMember({"auto", "stream", "tiles", "halo"}));
  app->add_option("--split", t->split,
                  "RxC: parts, one for each rank of msrun launch or mpirun, or for a thread");
  app->add_option("--strip-rows", a->job.plan.strip_rows, "rows of a strip; 0: chosen")
      ->check(CLI::NonNegativeNumber);
  app->add_option("--tile", t->tile, "RxC: rows and columns of a tile; without it, chosen");
  app->add_option("--threads", a->common.threads, "0: one for each core")
      ->check(CLI::Range(0, 4096));
  app->add_option("--delegate", a->common.delegates, "allow only these, comma-separated");
  app->add_option("--plugin", a->common.plugins,
                  "PATH[:OPTIONS]: a shared library with delegates, kernels and ops")
      ->take_all();
}

void AddImageOptions(CLI::App* app, ImageArguments* a, ImageTexts* t) {
  app->add_option("--normalize", t->normalize,
                  "'mean=123.7,116.3,103.5 std=58.4,57.1,57.4' or 'scale=1/255 offset=0': one "
                  "number, or one for each band")
      ->take_all();
  app->add_option("--bands", t->bands, "3,2,1: the bands for the model, from 1");
  app->add_option("--level", a->job.input.open.level, "of the pyramid in the file; 0: the largest")
      ->check(CLI::NonNegativeNumber);
  app->add_option("--page", a->job.input.open.page, "of a file with several images")
      ->check(CLI::NonNegativeNumber);
  app->add_option("--mask", a->job.mask, "an image that is 0 where there is no content")
      ->check(CLI::ExistingFile);
  app->add_flag("--ignore-no-data", t->ignore_no_data, "the no-data value is a value like others");
  app->add_flag("--classes{auto}", t->classes,
                "write the class with the largest value, with palette and overviews; "
                "--classes=8, =16: bits")
      ->check(CLI::IsMember({"auto", "8", "16"}));
  app->add_option("--head", t->head, "the output that OUT holds; without it, the first");
  app->add_option("--output", t->outputs, "NAME=FILE: a further output (several times)")
      ->take_all();
  app->add_option("--compress", t->compress, "of TIFF files")
      ->check(CLI::IsMember({"auto", "none", "packbits", "lzw", "deflate", "zstd"}));
}

void AddJobOptions(CLI::App* app, ImageArguments* a) {
  auto* resume =
      app->add_flag("--resume", a->job.resume, "continue results that an interrupted job has left");
  app->add_flag("--overwrite", a->job.overwrite, "replace existing results")->excludes(resume);
  app->add_option("--sync", a->job.sync_seconds,
                  "seconds between the times at which results become durable")
      ->check(CLI::NonNegativeNumber);
  AddRankLimits(app, "the longest single step of the model", &a->limits);
  app->add_option("--explain", a->explain, "FILE.svg: a picture of the plan, drawn first");
  app->add_flag("--plan-only", a->plan_only, "plan and explain, but compute nothing");
  app->add_option("--json", a->common.json, "write the report as JSON; - is standard output");
  AddProgressOption(app, &a->progress_seconds);
  auto* quiet = app->add_flag("--quiet", a->common.quiet, "print errors only");
  app->add_flag("--verbose", a->common.verbose, "print what the runtime logs")->excludes(quiet);
}

Status ReadTexts(const ImageTexts& t, ImageArguments* a) {
  JobOptions& job = a->job;
  job.input.path = t.in;
  if (!std::filesystem::exists(t.in)) return NotFound("image '", t.in, "': there is no such file");
  const ClassMap classes = t.classes == "8"    ? ClassMap::k8
                           : t.classes == "16" ? ClassMap::k16
                           : t.classes.empty() ? ClassMap::kNone
                                               : ClassMap::kAuto;
  job.outputs.push_back({.name = t.head, .path = t.out, .classes = classes});
  MSRT_ASSIGN_OR_RETURN(const auto further, SplitPairs("--output", t.outputs));
  for (const auto& [name, path] : further) job.outputs.push_back({.name = name, .path = path});
  if (!t.memory.empty()) {
    MSRT_ASSIGN_OR_RETURN(job.plan.memory_limit_bytes, ParseByteCount("--memory", t.memory));
  }
  if (!t.split.empty()) {
    MSRT_ASSIGN_OR_RETURN(const auto split, ParsePair("--split", t.split));
    job.split_rows = split.first, job.split_columns = split.second;
    a->split_given = true;
  }
  if (t.executor == "stream") job.plan.executor = ImageExecutor::kStream;
  if (t.executor == "tiles") job.plan.executor = ImageExecutor::kTiles;
  if (t.executor == "halo") job.plan.executor = ImageExecutor::kHalo;
  if (!t.tile.empty()) {
    MSRT_ASSIGN_OR_RETURN(const auto tile, ParsePair("--tile", t.tile));
    job.plan.tile_rows = tile.first, job.plan.tile_columns = tile.second;
  }
  std::string normalize;
  for (const std::string& part : t.normalize) StrAppend(&normalize, part, " ");
  MSRT_ASSIGN_OR_RETURN(job.normalization, ParseNormalization(normalize));
  if (!t.bands.empty()) {
    MSRT_ASSIGN_OR_RETURN(job.input.bands, ParseBands(t.bands));
  }
  job.use_no_data = !t.ignore_no_data;
  job.create.compression = t.compress == "none"       ? Compression::kNone
                           : t.compress == "packbits" ? Compression::kPackBits
                           : t.compress == "lzw"      ? Compression::kLzw
                           : t.compress == "deflate"  ? Compression::kDeflate
                           : t.compress == "zstd"     ? Compression::kZstd
                                                      : Compression::kAuto;
  return OkStatus();
}

Status CheckImageFiles(const ImageArguments& a) {
  FilesRead read = FilesReadBy(a.common);
  read.Add(a.job.input.path);
  if (!a.job.mask.empty()) read.Add(a.job.mask);
  if (!a.common.json.empty())
    MSRT_RETURN_IF_ERROR(CheckOutputFile("--json", a.common.json, kJsonFile, read));
  if (!a.explain.empty())
    MSRT_RETURN_IF_ERROR(CheckOutputFile("--explain", a.explain, kPlanPicture, read));
  for (const JobOutput& output : a.job.outputs) {
    MSRT_RETURN_IF_ERROR(read.Refuse("result", output.path));
    for (const std::string* other : {&a.common.json, &a.explain}) {
      if (!other->empty() && SamePath(*other, output.path))
        return InvalidArgument("'", *other, "' would be written twice; use another name");
    }
  }
  return OkStatus();
}

}  // namespace

Result<size_t> ParseByteCount(std::string_view option, const std::string& text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string unit = text.substr(digits);
  constexpr std::pair<std::string_view, double> kUnits[] = {{"", 1},
                                                            {"B", 1},
                                                            {"kB", 1e3},
                                                            {"KB", 1e3},
                                                            {"MB", 1e6},
                                                            {"GB", 1e9},
                                                            {"TB", 1e12},
                                                            {"KiB", 1024.0},
                                                            {"MiB", 1048576.0},
                                                            {"K", 1024.0},
                                                            {"M", 1048576.0},
                                                            {"G", 1073741824.0},
                                                            {"GiB", 1073741824.0},
                                                            {"TiB", 1099511627776.0}};
  const auto* const found = std::find_if(std::begin(kUnits), std::end(kUnits),
                                         [&](const auto& u) { return u.first == unit; });
  char* end = nullptr;
  const std::string number = text.substr(0, digits);
  const double value = std::strtod(number.c_str(), &end);
  if (digits == 0 || *end != '\0' || found == std::end(kUnits) ||
      !(value * found->second >= 1 && value * found->second < 9e18))
    return InvalidArgument(option, " '", text, "' must look like 2GiB, 1500MB or 65536");
  return static_cast<size_t>(value * found->second);
}

Result<std::pair<int64_t, int64_t>> ParsePair(std::string_view option, const std::string& text) {
  const size_t x = text.find('x');
  const auto parse = [](const std::string& part) -> int64_t {
    constexpr size_t kMaxDigits = 9;
    if (part.empty() || part.size() > kMaxDigits ||
        part.find_first_not_of("0123456789") != std::string::npos)
      return 0;
    return std::stoll(part);
  };
  const int64_t first = parse(text.substr(0, x));
  const int64_t second = x == std::string::npos ? 0 : parse(text.substr(x + 1));
  if (first == 0 || second == 0)
    return InvalidArgument(option, " '", text, "' must look like 2x3, with numbers from 1");
  return std::pair(first, second);
}

bool ParseImageArguments(int argc, char** argv, ImageArguments* a, int* exit_code) {
  CLI::App app{"Computes a model over an image of any size, under a memory limit.", "msrun image"};
  ImageTexts texts;
  app.footer(kImageFooter);
  app.add_option("model", a->common.model, "a .msrt file")->required();
  app.add_option("in", texts.in,
                 "TIFF, PNG, JPEG, .npy of channels x rows x columns; what GDAL and OpenSlide read")
      ->required();
  app.add_option("out", texts.out, "a .tif, .tiff or .npy file")->required();
  AddPlanOptions(&app, a, &texts);
  AddImageOptions(&app, a, &texts);
  AddJobOptions(&app, a);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    *exit_code = app.exit(e) == 0 ? kDone : kWrongCommandLine;
    return false;
  }
  Status status;
  if (!std::filesystem::is_regular_file(a->common.model))
    status = NotFound("model '", a->common.model, "': there is no such file");
  if (status.ok()) status = ReadTexts(texts, a);
  if (status.ok()) status = CheckImageFiles(*a);
  if (status.ok()) return true;
  std::cerr << "msrun: " << status.message() << "\n";
  *exit_code = kWrongCommandLine;
  return false;
}

}  // namespace msrt
