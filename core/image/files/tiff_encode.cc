#include "core/image/files/tiff_encode.h"

#include "core/image/files/tiff_handle.h"

namespace msrt {
namespace {

uint16_t SampleFormatOf(DType type) {
  if (IsFloat(type)) return SAMPLEFORMAT_IEEEFP;
  return kUnsignedTypes.Has(type) ? SAMPLEFORMAT_UINT : SAMPLEFORMAT_INT;
}

}  // namespace

bool HasTiffCompression(uint16_t compression) { return TIFFIsCODECConfigured(compression) != 0; }

// A tile has the same bytes as a strip of its size, so each block is compressed as the only strip
// of an image in memory, from which its bytes are taken.
Status EncodeTiffBlock(const TiffBlockFormat& format, std::span<const std::byte> pixels,
                       std::vector<std::byte>* out) {
  MSRT_ASSIGN_OR_RETURN(std::unique_ptr<TiffHandle> handle, TiffHandle::CreateInMemory());
  TIFF* tiff = handle->tiff();
  const auto rows = static_cast<uint32_t>(format.rows);
  bool ok =
      TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, static_cast<uint32_t>(format.cols)) &&
      TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, rows) &&
      TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, rows) &&
      TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, static_cast<int>(format.channels)) &&
      TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, BitsOf(format.dtype)) &&
      TIFFSetField(tiff, TIFFTAG_SAMPLEFORMAT, static_cast<int>(SampleFormatOf(format.dtype))) &&
      TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG) &&
      TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK) &&
      TIFFSetField(tiff, TIFFTAG_COMPRESSION, static_cast<int>(format.compression));
  if (ok && format.predictor != 1)
    ok = TIFFSetField(tiff, TIFFTAG_PREDICTOR, static_cast<int>(format.predictor)) != 0;
  // The predictor works in place, on a copy.
  std::vector<std::byte> copy(pixels.begin(), pixels.end());
  ok = ok && TIFFWriteEncodedStrip(tiff, 0, copy.data(), static_cast<tmsize_t>(copy.size())) ==
                 static_cast<tmsize_t>(copy.size());
  ok = ok && TIFFFlushData(tiff) != 0;
  if (!ok) return IoError("TIFF compression: ", handle->TakeError("failed"));
  const uint64_t offset = TIFFGetStrileOffset(tiff, 0), bytes = TIFFGetStrileByteCount(tiff, 0);
  const std::vector<std::byte>& memory = handle->memory();
  if (offset > memory.size() || bytes > memory.size() - offset || bytes == 0)
    return InternalError("TIFF compression: libtiff lost the strip");
  out->assign(memory.begin() + static_cast<ptrdiff_t>(offset),
              memory.begin() + static_cast<ptrdiff_t>(offset + bytes));
  return OkStatus();
}

}  // namespace msrt
