#include "delegates/onednn/panel_tile.h"

namespace msrt::onednn {

PanelTiles NarrowPanelTiles(int64_t panel) {
  switch (panel) {
    case 8:
      return kTilesOf<1, 6>;
    case 16:
      return kTilesOf<2, 6>;
    case 24:
      return kTilesOf<3, 4>;
    case 32:
      return kTilesOf<4, 3>;
    default:
      return {};
  }
}

}  // namespace msrt::onednn
