/* msrt: an embeddable runtime for neural networks. This is the one public header: plain C99, usable from C++.
 * Every function is safe to call from any thread unless its comment says otherwise. */
#ifndef MSRT_H
#define MSRT_H

#include <stdint.h>

#if defined(_WIN32)
#define MSRT_API
#else
#define MSRT_API __attribute__((visibility("default")))
#endif

/* Grows with every change of this header that a compiled program would notice. A program compares the number it was compiled with
 * to the library's own, msrt_abi_version(). */
#define MSRT_ABI_VERSION 0u

#ifdef __cplusplus
extern "C" {
#endif

/* The release, "major.minor.patch". Static storage. */
MSRT_API const char* msrt_version(void);

/* The MSRT_ABI_VERSION that the library was built with. */
MSRT_API uint32_t msrt_abi_version(void);

#ifdef __cplusplus
}
#endif

#endif /* MSRT_H */
