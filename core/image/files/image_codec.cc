#include "core/image/files/image_codec.h"

#include "core/base/checked_math.h"

namespace msrt {

Status CheckBlockLayout(const ImageInfo& info, const BlockLayout& layout, int64_t max_bytes) {
  int64_t bytes = ElementBytes(info.dtype);
  const int64_t channels = layout.planar ? 1 : info.channels;
  if (layout.rows < 1 || layout.cols < 1)
    return InvalidArgument("its tiles of ", layout.rows, " x ", layout.cols, " have no pixels");
  if (!CheckedMul(bytes, layout.rows, &bytes) || !CheckedMul(bytes, layout.cols, &bytes) ||
      !CheckedMul(bytes, channels, &bytes) || bytes > max_bytes)
    return LimitExceeded("one of its tiles or strips has ", layout.rows, " x ", layout.cols, " x ",
                         channels, " elements of ", info.dtype, ", more than the limit of ",
                         max_bytes, " bytes: convert it to smaller tiles or raise the limit");
  return OkStatus();
}

}  // namespace msrt
