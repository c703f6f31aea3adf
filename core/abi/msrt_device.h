/* Device interface of msrt: memory and streams beside the host's, and what every extension uses:
 * the host services, shapes and layouts. Plain C99. A device is registered by an application or by
 * a plugin. msrt_plugin.h includes this header; its rules for struct_size, errors and exceptions
 * hold here too. */
#ifndef MSRT_DEVICE_H
#define MSRT_DEVICE_H

#include "msrt.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MSRT_PLUGIN_ABI 2u

/* ---- host services --------------------------------------------------------------------------- */

/* Identifies a packed form of constants by everything that the packed bytes depend on besides the
 * constant. Two packings are the same if all fields are equal. */
typedef struct msrt_packing {
  uint32_t struct_size;
  uint32_t version;   /* of the packing code */
  const char* kernel; /* the packing kernel and its form, printable UTF-8 of up to 4 KiB */
  const char* isa;    /* instruction set that the form is for; NULL or "": any */
  uint32_t block;     /* elements stored together; 0 if there are no blocks */
  uint32_t reserved;
} msrt_packing;

/* Services of the host for callbacks. Valid as long as the object that it was passed to (a kernel:
 * until the kernel is destroyed). May be used from any thread. In op definitions, passes and
 * importers, parallel_for uses the calling thread alone: the other threads are reserved for
 * kernels. */
typedef struct msrt_host_api {
  uint32_t struct_size;
  int32_t threads; /* maximum number of tasks that parallel_for runs at once; at least 1 */
  void* host;      /* first argument of the functions below */
  /* Sets the message of the error that the current call of this thread returns. Copied. */
  void (*fail)(void* host, const char* message);
  void (*log)(void* host, int32_t level, const char* line);
  /* Memory from the application's allocator; NULL when there is none. The alignment is a power of
   * two. */
  void* (*allocate)(void* host, size_t bytes, size_t alignment);
  void (*deallocate)(void* host, void* pointer, size_t bytes, size_t alignment);
  /* Calls task(context, i) for every i in [0, count), possibly on several threads at once, and
   * returns when all calls have returned. If it returns an error, the message is already set, and
   * some tasks may not have been called. */
  msrt_status (*parallel_for)(void* host, int64_t count, void (*task)(void* context, int64_t index),
                              void* context);
  /* Peak throughput of this machine, all cores together, for cost models: measured if the
   * application asked for it, otherwise typical. */
  double flops_per_second; /* f32, a multiply-add counts two */
  double bytes_per_second; /* memory reads and writes, beyond the caches */
  /* Returns a constant in a packed form from the model's file (msconvert --target native): exactly
   * `bytes` bytes, aligned to 64, valid as long as the constant. `constant` is the pointer in
   * msrt_value_view. NULL: there is none, pack it. The contents are not checked: use the bytes as
   * numbers to compute with, never as sizes, indices or addresses. The function may be NULL. */
  const void* (*find_packed)(void* host, const void* constant, const msrt_packing* packing,
                             size_t bytes);
  /* Call this with a constant that was packed because find_packed returned NULL: the form is
   * counted, and a file that is being written gets a copy, unless packing.kernel is NULL or empty.
   * The caller returns its error. The function may be NULL. */
  msrt_status (*keep_packed)(void* host, const void* constant, const msrt_packing* packing,
                             const void* data, size_t bytes);
} msrt_host_api;

/* ---- tensors --------------------------------------------------------------------------------- */

/* Order of the elements of a tensor of rank 3 to 5 in memory; all other tensors are plain. Dims are
 * in logical order in every layout. */
typedef int32_t msrt_layout;
enum {
  MSRT_LAYOUT_PLAIN = 0,         /* row-major in the order of dims */
  MSRT_LAYOUT_CHANNELS_LAST = 1, /* batch, space..., channels */
  /* Batch, channels / 8, space..., 8 channels; channels padded with zeros to a multiple of 8. */
  MSRT_LAYOUT_BLOCKED8 = 2,
  MSRT_LAYOUT_BLOCKED16 = 3 /* the same with blocks of 16 channels */
};

typedef struct msrt_shape {
  msrt_dtype dtype;            /* 0: not a tensor (omitted, or a list or function) */
  int32_t rank;                /* -1: unknown */
  int64_t dims[MSRT_MAX_RANK]; /* negative if open: MSRT_UNKNOWN_DIM, or a smaller number, equal for
                                  equal sizes */
} msrt_shape;

/* ---- device ---------------------------------------------------------------------------------- */

/* A device: its own memory, and streams that work on it beside the host. It is registered once, by
 * name; delegates refer to it, and delegates that share a device share its memory, so that tensors
 * move between them without copies.
 *
 * Work of one stream runs in order. The host calls the functions of one stream from one thread at a
 * time, and touches or frees memory that enqueued work uses only after waiting for that work. The
 * next event_wait or stream_synchronize of the stream reports failures of its work.
 *
 * Functions marked optional may be NULL. Devices whose tables have the same copy_peer are peers:
 * handles of one are passed to functions of the other as stated there. */
typedef struct msrt_device_api {
  uint32_t struct_size;
  uint32_t plugin_abi;         /* MSRT_PLUGIN_ABI */
  const char* name;            /* [a-z0-9_]+, unique among the devices of a runtime */
  void (*destroy)(void* self); /* called when nothing uses the device; optional */
  /* DLPack's type and number of this device, under which the application's tensors are found;
   * type 0: it has none. */
  int32_t dlpack_type, dlpack_id;
  double launch_seconds; /* paid each time the program switches to a delegate on this device */
  /* Cost of a copy from or to the host: a fixed time and a rate. If copy_bytes_per_second is 0, the
   * host measures both. */
  double copy_seconds, copy_bytes_per_second;

  /* Bytes that can still be allocated; SIZE_MAX: unlimited. */
  msrt_status (*memory)(void* self, size_t* free_bytes);
  /* Aligned to 64, never NULL without an error; the same holds for streams and events. The host
   * never dereferences it. */
  msrt_status (*allocate)(void* self, const msrt_host_api* host, size_t bytes, void** out);
  void (*deallocate)(void* self, void* pointer, size_t bytes);

  /* A greater priority is more urgent; 0 is normal. A device without priorities ignores it. */
  msrt_status (*stream_create)(void* self, const msrt_host_api* host, int32_t priority,
                               void** stream);
  void (*stream_destroy)(void* self, void* stream); /* the stream is idle */
  /* Returns when all work is done, with the first error since the last call. */
  msrt_status (*stream_synchronize)(void* self, const msrt_host_api* host, void* stream);

  msrt_status (*copy_to_device)(void* self, const msrt_host_api* host, void* stream, void* to,
                                const void* from, size_t bytes);
  msrt_status (*copy_to_host)(void* self, const msrt_host_api* host, void* stream, void* to,
                              const void* from, size_t bytes);

  msrt_status (*event_create)(void* self, const msrt_host_api* host, void** event);
  void (*event_destroy)(void* self, void* event);
  msrt_status (*event_record)(void* self, const msrt_host_api* host, void* event, void* stream);
  /* Returns when all work before the last event_record is done. */
  msrt_status (*event_wait)(void* self, const msrt_host_api* host, void* event);

  /* Optional: later work of the stream waits until the work before the last event_record is done;
   * the host does not. The event is this device's or a peer's, and may be recorded again before the
   * wait is over. Without this function the host waits. */
  msrt_status (*stream_wait_event)(void* self, const msrt_host_api* host, void* stream,
                                   void* event);
  /* Optional: enqueues a copy within this device, or from a peer to this device. `from_self` is the
   * `self` of the device that `from` is in. */
  msrt_status (*copy_peer)(void* self, const msrt_host_api* host, void* stream, void* to,
                           void* from_self, const void* from, size_t bytes);
  /* Required with copy_peer. Sets the cost of such a copy; a rate of 0: the peer cannot be reached,
   * and copies go through the host. */
  msrt_status (*peer_cost)(void* self, void* from_self, double* seconds, double* bytes_per_second);
  /* Optional, both or neither: host memory from which copies are faster, and that streams can read
   * while the host continues. Aligned to 64. */
  msrt_status (*host_allocate)(void* self, const msrt_host_api* host, size_t bytes, void** out);
  void (*host_deallocate)(void* self, void* pointer, size_t bytes);
  /* Optional: enqueues a change of layout within this device's memory. The cost is that of
   * peer_cost of the device with itself. */
  msrt_status (*convert)(void* self, const msrt_host_api* host, void* stream,
                         const msrt_shape* shape, msrt_layout from_layout, const void* from,
                         msrt_layout to_layout, void* to);
  /* Optional, all or none. Between begin and end, work enqueued on the stream is recorded instead
   * of run; the recording can be run any number of times on a stream of the device, one run at a
   * time, with the addresses it was recorded with. While a stream records, the host enqueues
   * kernels, conversions and copies within the device on it, and nothing else. capture_end may
   * return an error (*recording stays NULL): the host then runs the steps one by one. */
  msrt_status (*capture_begin)(void* self, const msrt_host_api* host, void* stream);
  msrt_status (*capture_end)(void* self, const msrt_host_api* host, void* stream, void** recording);
  msrt_status (*recording_run)(void* self, const msrt_host_api* host, void* recording,
                               void* stream);
  void (*recording_destroy)(void* self, void* recording);
} msrt_device_api;

/* Registers a device for models that are loaded from now on. `api` and its `name` are copied. If
 * this call fails, destroy is not called. */
MSRT_API msrt_status msrt_runtime_register_device(msrt_runtime* runtime, const msrt_device_api* api,
                                                  void* self);

#ifdef __cplusplus
}
#endif

#endif /* MSRT_DEVICE_H */
