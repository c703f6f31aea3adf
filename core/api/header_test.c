/* The headers must be usable from strict C99: this file is compiled so. header_test.cc calls it. */
#include "core/abi/msrt_device.h" /* first: it must not need another header before it */
#include "core/abi/msrt_train.h"

#include "core/abi/msrt.h"
#include "core/abi/msrt_plugin.h"

int CallsFromC(void);

int CallsFromC(void) { return msrt_abi_version() == MSRT_ABI_VERSION && msrt_version()[0] != '\0'; }
