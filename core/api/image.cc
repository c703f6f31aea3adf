#include "core/api/image.h"

#include "core/api/arguments.h"
#include "core/api/errors.h"
#include "core/api/model.h"
#include "core/api/runtime.h"

namespace msrt {
namespace {

Status CallbackStatus(std::string_view what, msrt_status status) {
  if (status == MSRT_OK) return OkStatus();
  const bool known = status > MSRT_OK && status < MSRT_INTERNAL;
  return Status(known ? static_cast<Code>(status) : Code::kInvalidArgument,
                StrCat(what, " returned ", status, " (", msrt_status_string(status), ")"));
}

msrt_image_box BoxOf(const ImageWindow& w) {
  return {w.channel, w.row, w.col, w.channels, w.rows, w.cols};
}

Result<std::shared_ptr<ImageSource>> SourceOf(const msrt_image_config& config) {
  MSRT_RETURN_IF_ERROR(CheckStructSize(config.source, "config.source"));
  MSRT_ASSIGN_OR_RETURN(const msrt_image_info given,
                        ConfigArgument(config.source, "config.source"));
  if (config.read == nullptr)
    return InvalidArgument("config.image and config.read are both NULL; set one of them");
  ImageInfo info;
  info.channels = given.channels, info.height = given.rows, info.width = given.columns;
  MSRT_ASSIGN_OR_RETURN(info.dtype, DTypeArgument(given.dtype, "config.source.dtype"));
  if (given.has_no_data != 0) info.no_data = given.no_data;
  auto read = [call = config.read, user = config.read_user](const ImageWindow& window,
                                                            const PixelBuffer& out) {
    const msrt_image_box box = BoxOf(window);
    return CallbackStatus("config.read",
                          call(user, &box, out.data, out.channel_stride, out.row_stride));
  };
  MSRT_ASSIGN_OR_RETURN(std::unique_ptr<ImageSource> source,
                        MakeCallbackSource(info, std::move(read)));
  return std::shared_ptr<ImageSource>(std::move(source));
}

Result<JobOutput> OutputOf(const msrt_image_output& given, const std::string& argument) {
  JobOutput output;
  if (given.name != nullptr) output.name = given.name;
  switch (given.class_bits) {
    case 0:
      break;
    case -1:
      output.classes = ClassMap::kAuto;
      break;
    case 8:
      output.classes = ClassMap::k8;
      break;
    case 16:
      output.classes = ClassMap::k16;
      break;
    default:
      return InvalidArgument(argument, ".class_bits is ", given.class_bits,
                             ", must be 0, 8, 16 or -1");
  }
  if ((given.path != nullptr) == (given.write != nullptr))
    return InvalidArgument(argument, " needs a path or a write function, and not both");
  if (given.path != nullptr) {
    output.path = given.path;
    return output;
  }
  output.write = [call = given.write, user = given.write_user, argument](
                     const ImageWindow& window, const ConstPixelBuffer& data) {
    const msrt_image_box box = BoxOf(window);
    return CallbackStatus(argument + ".write",
                          call(user, &box, data.data, data.channel_stride, data.row_stride));
  };
  return output;
}

Status SetPlan(const msrt_image_config& config, JobOptions* options) {
  switch (config.executor) {
    case MSRT_EXECUTOR_AUTO:
      break;
    case MSRT_EXECUTOR_STREAM:
      options->plan.executor = ImageExecutor::kStream;
      break;
    case MSRT_EXECUTOR_TILES:
      options->plan.executor = ImageExecutor::kTiles;
      break;
    case MSRT_EXECUTOR_HALO:
      options->plan.executor = ImageExecutor::kHalo;
      break;
    default:
      return InvalidArgument("config.executor is ", config.executor,
                             ", must be one of MSRT_EXECUTOR_AUTO, _STREAM, _TILES and _HALO");
  }
  options->plan.memory_limit_bytes = config.memory_limit_bytes;
  if (config.split_rows != 0) options->split_rows = config.split_rows;
  if (config.split_columns != 0) options->split_columns = config.split_columns;
  return OkStatus();
}

Result<JobOptions> OptionsOf(const msrt_image_config& config, const Environment& environment) {
  JobOptions options;
  MSRT_RETURN_IF_ERROR(SetPlan(config, &options));
  if (config.image != nullptr) {
    if (config.read != nullptr)
      return InvalidArgument("config.image and config.read are both set; set one of them");
    options.input.path = config.image;
  } else {
    MSRT_ASSIGN_OR_RETURN(options.input.source, SourceOf(config));
    if (config.source_identity != nullptr) options.input.identity = config.source_identity;
  }
  options.input.open.level = config.level;
  options.input.open.page = config.page;
  if (config.bands != nullptr) {
    MSRT_ASSIGN_OR_RETURN(options.input.bands, ParseBands(config.bands));
  }
  if (config.output_count != 0) MSRT_RETURN_IF_ERROR(NotNull(config.outputs, "config.outputs"));
  for (size_t o = 0; o < config.output_count; ++o) {
    MSRT_ASSIGN_OR_RETURN(JobOutput output,
                          OutputOf(config.outputs[o], StrCat("config.outputs[", o, "]")));
    options.outputs.push_back(std::move(output));
  }
  if (config.normalize != nullptr) {
    MSRT_ASSIGN_OR_RETURN(options.normalization, ParseNormalization(config.normalize));
  }
  if (config.mask != nullptr) options.mask = config.mask;
  options.use_no_data = config.ignore_no_data == 0;
  options.resume = config.resume != 0;
  options.overwrite = config.overwrite != 0;
  MSRT_ASSIGN_OR_RETURN(options.compile, CompileOptionsOf(config.model_config, environment));
  if (config.progress != nullptr) {
    options.progress = [call = config.progress,
                        user = config.progress_user](const JobProgress& progress) {
      const msrt_image_progress given{progress.fraction, progress.seconds, progress.seconds_left,
                                      progress.pixels_per_second};
      call(user, &given);
    };
  }
  return options;
}

msrt_image_info ImageInfoOf(const ImageInfo& info) {
  msrt_image_info out = MSRT_INIT(msrt_image_info);
  out.dtype = static_cast<msrt_dtype>(info.dtype);
  out.channels = info.channels, out.rows = info.height, out.columns = info.width;
  out.has_no_data = info.no_data.has_value() ? 1 : 0;
  out.no_data = info.no_data.value_or(0);
  return out;
}

}  // namespace
}  // namespace msrt

using namespace msrt;

msrt_status msrt_image_create(msrt_runtime* runtime, const msrt_image_config* config,
                              msrt_image** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<RuntimeObject> owner,
                          ObjectOf<RuntimeObject>(runtime, "runtime"));
    MSRT_RETURN_IF_ERROR(CheckStructSize(config, "config"));
    MSRT_ASSIGN_OR_RETURN(const msrt_image_config given, ConfigArgument(config, "config"));
    MSRT_RETURN_IF_ERROR(NotNull(given.model, "config.model"));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    MSRT_ASSIGN_OR_RETURN(JobOptions options, OptionsOf(given, *owner->environment()));
    auto image = std::make_shared<ImageObject>();
    MSRT_ASSIGN_OR_RETURN(image->job,
                          ImageJob::Create(owner->environment(), given.model, std::move(options)));
    *out = NewHandle(std::move(image));
    return OkStatus();
  });
}

void msrt_image_destroy(msrt_image* image) { DestroyHandle<ImageObject>(image); }

msrt_status msrt_image_get_info(msrt_image* image, msrt_io kind, size_t index,
                                msrt_image_info* info) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<ImageObject> object,
                          ObjectOf<ImageObject>(image, "image"));
    MSRT_RETURN_IF_ERROR(CheckStructSize(info, "info"));
    if (kind != MSRT_INPUT && kind != MSRT_OUTPUT)
      return InvalidArgument("kind is ", kind, ", must be MSRT_INPUT or MSRT_OUTPUT");
    const bool input = kind == MSRT_INPUT;
    MSRT_RETURN_IF_ERROR(CheckIndex(index, input ? 1 : object->job->options().outputs.size(),
                                    input ? "input" : "output"));
    WriteStruct(info, ImageInfoOf(input ? object->job->image() : object->job->result(index)));
    return OkStatus();
  });
}

msrt_status msrt_image_run(msrt_image* image) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<ImageObject> object,
                          Exclusive<ImageObject>::Enter(image, "image"));
    MSRT_ASSIGN_OR_RETURN(object->run, object->job->Run());
    return OkStatus();
  });
}

msrt_status msrt_image_cancel(msrt_image* image) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<ImageObject> object,
                          ObjectOf<ImageObject>(image, "image"));
    object->job->Cancel();
    return OkStatus();
  });
}

msrt_status msrt_image_report(msrt_image* image, msrt_image_report_kind kind, const char** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<ImageObject> object,
                          Exclusive<ImageObject>::Enter(image, "image"));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    if (kind == MSRT_IMAGE_REPORT_SVG) {
      MSRT_ASSIGN_OR_RETURN(object->report, ImageReportSvg(*object->job));
    } else if (kind == MSRT_IMAGE_REPORT_JSON) {
      object->report = ImageReportJson(*object->job, object->run ? &*object->run : nullptr);
    } else {
      return InvalidArgument("kind is ", kind,
                             ", must be MSRT_IMAGE_REPORT_JSON or MSRT_IMAGE_REPORT_SVG");
    }
    *out = object->report.c_str();
    return OkStatus();
  });
}
