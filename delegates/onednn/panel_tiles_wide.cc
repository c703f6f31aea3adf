#include "delegates/onednn/panel_tile.h"

namespace msrt::onednn {

PanelTiles WidePanelTiles(int64_t panel) {
  switch (panel) {
    case 16:
      return kTilesOf<1, 8>;
    case 32:
      return kTilesOf<2, 8>;
    case 48:
      return kTilesOf<3, 8>;
    case 64:
      return kTilesOf<4, 6>;
    default:
      return {};
  }
}

}  // namespace msrt::onednn
