// The entry of the image module. Each codec is there if its library was at build time.
#include "core/image/files/image_codec.h"
#ifdef MSRT_HAVE_TIFF
#include "core/image/files/tiff_encode.h"
#include "core/image/files/tiff_reader.h"
#endif
#ifdef MSRT_HAVE_PNG
#include "core/image/files/png_reader.h"
#endif
#ifdef MSRT_HAVE_JPEG
#include "core/image/files/jpeg_reader.h"
#endif

extern "C" __attribute__((visibility("default"))) const msrt::ImageCodecs* msrt_image_codecs() {
  static const msrt::ImageCodecs codecs = [] {
    msrt::ImageCodecs filled{};
    filled.build = MSRT_IMAGE_MODULE_BUILD;
#ifdef MSRT_HAVE_TIFF
    filled.open_tiff = msrt::OpenTiffBlocks;
    filled.has_tiff_compression = msrt::HasTiffCompression;
    filled.encode_tiff_block = msrt::EncodeTiffBlock;
#endif
#ifdef MSRT_HAVE_PNG
    filled.open_png = msrt::OpenPngBlocks;
#endif
#ifdef MSRT_HAVE_JPEG
    filled.open_jpeg = msrt::OpenJpegBlocks;
#endif
    return filled;
  }();
  return &codecs;
}
