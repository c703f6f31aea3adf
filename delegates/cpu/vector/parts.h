// The parts of a table of loops; table.cc puts them together.
#pragma once

#include "delegates/cpu/loops.h"

namespace msrt::cpu::MSRT_CPU_ISA {

void FillAttention(Loops* loops);
void FillElementwise(Loops* loops);
void FillReductions(Loops* loops);
void FillInOrder(Loops* loops);
void FillRows(Loops* loops);
void FillMovement(Loops* loops);
void FillQuantization(Loops* loops);
void FillIntegerMatMul(Loops* loops);
void FillWinograd(Loops* loops);
void FillChains(Loops* loops);
void FillUpdates(Loops* loops);
void FillGradients(Loops* loops);

}  // namespace msrt::cpu::MSRT_CPU_ISA
