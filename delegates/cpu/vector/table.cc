#include "delegates/cpu/vector/parts.h"

#define MSRT_NAME_OF(isa) #isa
#define MSRT_NAME(isa) MSRT_NAME_OF(isa)

namespace msrt::cpu::MSRT_CPU_ISA {

// Called once, by loops.cc.
void FillTable(Loops* loops) {
  loops->name = MSRT_NAME(MSRT_CPU_ISA);
  FillAttention(loops);
  FillElementwise(loops);
  FillReductions(loops);
  FillInOrder(loops);
  FillRows(loops);
  FillMovement(loops);
  FillQuantization(loops);
  FillIntegerMatMul(loops);
  FillWinograd(loops);
  FillChains(loops);
  FillUpdates(loops);
  FillGradients(loops);
}

}  // namespace msrt::cpu::MSRT_CPU_ISA
