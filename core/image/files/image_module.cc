#include "core/image/files/image_module.h"

#include <dlfcn.h>

#include <cstring>
#include <mutex>

namespace msrt {
namespace {

constexpr char kFileName[] = "libmsrt_images.so";

// The folder of the library or program that contains this function, with a slash at its end; empty
// if the loader does not say.
std::string OwnFolder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&LoadImageCodecs), &info) == 0 ||
      info.dli_fname == nullptr)
    return "";
  const std::string file = info.dli_fname;
  const size_t slash = file.rfind('/');
  return slash == std::string::npos ? "" : file.substr(0, slash + 1);
}

// Returns null and appends the reason to `reasons` if there is no suitable module at `path`. The
// library is never unloaded: readers may outlive every other owner.
const ImageCodecs* TryLoad(const std::string& path, std::string* reasons) {
  const auto refuse = [&](std::string_view reason) -> const ImageCodecs* {
    StrAppend(reasons, reasons->empty() ? "" : "; ", reason);
    return nullptr;
  };
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return refuse(reason == nullptr ? path : reason);
  }
  const auto entry = reinterpret_cast<ImageModuleEntry>(dlsym(library, kImageModuleEntry));
  const ImageCodecs* codecs = entry == nullptr ? nullptr : entry();
  if (codecs != nullptr && std::strcmp(codecs->build, MSRT_IMAGE_MODULE_BUILD) == 0) return codecs;
  dlclose(library);
  return refuse(StrCat(path, ": belongs to another build of msrt"));
}

}  // namespace

Result<const ImageCodecs*> LoadImageCodecs() {
  static std::mutex mutex;
  static const ImageCodecs* loaded = nullptr;
  const std::lock_guard lock(mutex);
  std::string reasons;
  const std::string folder = OwnFolder();
  // The plain name is searched in the run paths of the program and of the system.
  for (const std::string& path :
       {StrCat(folder, kFileName), StrCat(folder, "../lib/", kFileName), std::string(kFileName)}) {
    if (loaded == nullptr) loaded = TryLoad(path, &reasons);
  }
  if (loaded != nullptr) return loaded;
  return NotFound("msrt's image module ", kFileName, " cannot be loaded (", reasons,
                  "): TIFF, PNG and JPEG need it, with libtiff, libpng and libjpeg (Debian "
                  "packages libtiff6, libpng16-16, libjpeg62-turbo); .npy images do not");
}

}  // namespace msrt
