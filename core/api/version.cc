// MSRT_VERSION is the project's version, handed in by CMake, so that it is written down once.
#include "core/api/msrt.h"

const char* msrt_version(void) { return MSRT_VERSION; }

uint32_t msrt_abi_version(void) { return MSRT_ABI_VERSION; }
