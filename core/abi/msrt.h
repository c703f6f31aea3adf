/* msrt: an embeddable runtime for neural networks. This header is the application interface: plain
 * C99, usable from C++. Training uses msrt_train.h; extensions (delegates, kernels, passes,
 * plugins) use msrt_plugin.h.
 *
 * Objects are opaque handles. A session keeps its model alive, and a model its runtime, so handles
 * may be destroyed in any order, even while another thread is inside a call that uses them. A
 * handle that is null, destroyed or of another kind is refused with an error, not a crash;
 * destroying such a handle does nothing.
 *
 * Functions return msrt_status; 0 is success. On an error, outputs are untouched and the calling
 * thread's msrt_error_message() says which object was wrong and what to do. Nothing is printed and
 * nothing aborts. Every config begins with struct_size: set it with MSRT_INIT, which also sets all
 * other fields to their defaults (zero).
 *
 * Threads: a runtime, a model and a tensor may be used from any thread. A session, a list, an image
 * and a graph under construction belong to one thread at a time, except for msrt_session_cancel and
 * msrt_image_cancel; a second thread gets an error. Callbacks must not throw. Strings are UTF-8.
 * Dims are int64_t in the order of the model, row-major. */
#ifndef MSRT_H
#define MSRT_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define MSRT_API
#else
#define MSRT_API __attribute__((visibility("default")))
#endif

/* Incremented with every change of this header that affects compiled programs. A program compares
 * the value that it was compiled with to msrt_abi_version() of the library. */
#define MSRT_ABI_VERSION 2u

/* Initializes a struct: sets struct_size, and all other fields to their defaults (zero).
 *   msrt_runtime_config config = MSRT_INIT(msrt_runtime_config); */
#ifdef __cplusplus
template <typename Struct>
inline Struct msrt_init_struct() {
  Struct value = Struct();
  value.struct_size = static_cast<uint32_t>(sizeof(Struct));
  return value;
}
#define MSRT_INIT(type) (msrt_init_struct<type>())
#else
#define MSRT_INIT(type) \
  { .struct_size = (uint32_t)sizeof(type) }
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- library: version, errors, element types ------------------------------------------------- */

typedef int32_t msrt_status;
enum {
  MSRT_OK = 0,
  MSRT_INVALID_ARGUMENT = 1, /* the caller passed something wrong */
  MSRT_INVALID_MODEL = 2,    /* the bytes of the model are wrong */
  MSRT_UNSUPPORTED = 3,      /* valid, but not supported by any delegate or by this version */
  MSRT_NOT_FOUND = 4,
  MSRT_OUT_OF_MEMORY = 5,
  MSRT_LIMIT_EXCEEDED = 6, /* a configured limit would be exceeded */
  MSRT_CANCELLED = 7,
  MSRT_DEADLINE_EXCEEDED = 8,
  MSRT_IO = 9,
  MSRT_DELEGATE = 10, /* a delegate failed */
  MSRT_INTERNAL = 11  /* a bug in msrt: please report it */
};

/* Returns the release, "major.minor.patch". Static storage. */
MSRT_API const char* msrt_version(void);
/* Returns the MSRT_ABI_VERSION that the library was built with. */
MSRT_API uint32_t msrt_abi_version(void);
/* Returns the name of a status: "invalid argument" for 1. Static storage. */
MSRT_API const char* msrt_status_string(msrt_status status);
/* Returns the message of the calling thread's last failed call; "" before the first. Valid until
 * that thread's next failed call. */
MSRT_API const char* msrt_error_message(void);
/* The same as JSON: {"code": 3, "status": "unsupported", "message": "...", "function":
 * "msrt_model_load_file", "details": {"node": "conv1", "op": "Conv", ...}}. */
MSRT_API const char* msrt_error_json(void);

/* This type and the kinds below are int32_t, not enums: the compiler chooses the width of an enum,
 * and an out-of-range value in one is undefined behaviour before the library can refuse it. */
typedef int32_t msrt_dtype;
enum {
  MSRT_F64 = 1,
  MSRT_F32 = 2,
  MSRT_F16 = 3,
  MSRT_BF16 = 4,
  MSRT_I8 = 5,
  MSRT_I16 = 6,
  MSRT_I32 = 7,
  MSRT_I64 = 8,
  MSRT_U8 = 9,
  MSRT_U16 = 10,
  MSRT_U32 = 11,
  MSRT_U64 = 12,
  MSRT_BOOL = 13, /* one byte, 0 or 1 */
  /* storage only; two 4-bit elements share a byte, the first in the low half */
  MSRT_I4 = 14,
  MSRT_U4 = 15,
  MSRT_F8E4M3FN = 16,
  MSRT_F8E4M3FNUZ = 17,
  MSRT_F8E5M2 = 18,
  MSRT_F8E5M2FNUZ = 19,
  MSRT_F4E2M1 = 20
};

/* The purpose of a state slot: a tensor that outlives the runs of a session. It decides how runs
 * write the slot (msrt_session_run) and whether sessions may share it (msrt_session_config). */
typedef int32_t msrt_state_role;
enum {
  MSRT_STATE_CACHE = 0,     /* of one stream of requests: KV cache, recurrent state */
  MSRT_STATE_PARAMETER = 1, /* a weight that training changes */
  MSRT_STATE_OPTIMIZER = 2, /* what an optimizer keeps beside a parameter: momentum, moments */
  MSRT_STATE_STATISTIC = 3  /* running mean and variance */
};

#define MSRT_MAX_RANK 8
#define MSRT_UNKNOWN_DIM INT64_C(-1)

typedef struct msrt_runtime msrt_runtime;
typedef struct msrt_model msrt_model;
typedef struct msrt_session msrt_session;
typedef struct msrt_tensor msrt_tensor;
typedef struct msrt_graph msrt_graph;
typedef struct msrt_list msrt_list;
typedef struct msrt_image msrt_image;

/* ---- runtime: delegates, threads, memory, log ------------------------------------------------ */

enum { MSRT_LOG_ERROR = 0, MSRT_LOG_WARNING = 1, MSRT_LOG_INFO = 2, MSRT_LOG_DEBUG = 3 };

typedef struct msrt_runtime_config {
  uint32_t struct_size;
  int32_t threads;   /* maximum for one run, the calling thread included; 0: one for each core */
  int32_t log_level; /* least severe level that is logged */
  /* Receives log lines; NULL: nothing is logged. Called from any thread. It may call the library,
   * but must not wait for another thread that does. `line` is valid during the call. */
  void (*log)(void* user, int32_t level, const char* line);
  void* log_user;
  /* The application's allocator for tensors, arenas and packed weights: set both functions or
   * neither. Called from any thread. `allocate` returns NULL when there is no memory. */
  void* (*allocate)(void* user, size_t bytes, size_t alignment);
  void (*deallocate)(void* user, void* pointer, size_t bytes, size_t alignment);
  void* allocator_user;
  /* Runs tasks on the application's threads; NULL: the runtime uses its own. Must call
   * task(context, i) once for every i in [0, count), on up to `threads` threads at once, and return
   * when all calls have returned. Libraries that cannot use it (oneDNN) start OpenMP teams of
   * `threads` threads beside it. */
  void (*parallel_for)(void* user, int64_t count, void (*task)(void* context, int64_t index),
                       void* context);
  void* parallel_user;
  /* Called once with the three user pointers above when the runtime and everything created from it
   * are gone; not called if msrt_runtime_create fails. */
  void (*destroy_user_data)(void* log_user, void* allocator_user, void* parallel_user);
  /* Cost of waking the threads for a run, in seconds; 0: 0.00005. A model whose input shapes are
   * known runs on the calling thread alone if more threads would save less than this; such runs do
   * not count against `threads`. Negative: never single-threaded for this reason. */
  double wake_threads_seconds;
} msrt_runtime_config;

/* `config` may be NULL. Any number of runtimes may exist at once. */
MSRT_API msrt_status msrt_runtime_create(const msrt_runtime_config* config, msrt_runtime** out);
MSRT_API void msrt_runtime_destroy(msrt_runtime* runtime);
/* {"version", "threads", "machine": {...}, "build": {...}, "delegates": [...], "passes": [...],
 * "ops": [...], "kernels": [{"op", "name"}]}. "build" names build type, compiler, libraries,
 * processor and instruction sets. Valid while the runtime handle is. */
MSRT_API msrt_status msrt_runtime_info_json(msrt_runtime* runtime, const char** out);
/* Measures the peak throughput of this machine's cores in about 50 ms. Models that are loaded from
 * now on are placed by the measurement instead of typical values. */
MSRT_API msrt_status msrt_runtime_calibrate(msrt_runtime* runtime);

/* ---- tensor: typed memory, reference counted ------------------------------------------------- */

struct msrt_signature;

typedef struct msrt_tensor_info {
  uint32_t struct_size;
  msrt_dtype dtype;
  int32_t rank;                       /* -1: unknown (inputs and outputs of models only) */
  int64_t dims[MSRT_MAX_RANK];        /* MSRT_UNKNOWN_DIM where any size is accepted */
  const char* symbols[MSRT_MAX_RANK]; /* the name of an unknown dim, or NULL; equal names mean equal
                                         sizes */
  const char* name;                   /* of an input, output or state; NULL for a tensor */
  size_t bytes;                       /* 0 if a dim is unknown */
  int32_t list_depth; /* 0: a tensor; 1: a list of such tensors; 2: a list of lists, and so on */
  msrt_state_role state_role; /* of a state; 0 for everything else */
  /* Inside graphs: the signature of a value that is a function, for which only this field and
   * `name` count; otherwise NULL. */
  const struct msrt_signature* function;
} msrt_tensor_info;

/* Parameters and results of a function; each entry has its struct_size set. */
typedef struct msrt_signature {
  const msrt_tensor_info* parameters;
  size_t parameter_count;
  const msrt_tensor_info* results;
  size_t result_count;
} msrt_signature;

/* Creates a tensor with uninitialised memory from the runtime's allocator, aligned to 64 bytes. */
MSRT_API msrt_status msrt_tensor_create(msrt_runtime* runtime, msrt_dtype dtype, int32_t rank,
                                        const int64_t* dims, msrt_tensor** out);
/* Creates a tensor over the application's memory, which is used in place and must be aligned at
 * least to an element. `bytes` must be enough for the dims. `free_fn` (may be NULL) is called with
 * `user` and `data` when nothing uses the memory any more; not called if this call fails. */
MSRT_API msrt_status msrt_tensor_wrap(msrt_runtime* runtime, msrt_dtype dtype, int32_t rank,
                                      const int64_t* dims, void* data, size_t bytes,
                                      void (*free_fn)(void* user, void* data), void* user,
                                      msrt_tensor** out);
/* The same in the memory of a device of the runtime (msrt_device.h), by its name. The host must not
 * dereference the data; msrt_tensor_copy moves it. The application synchronizes its own streams
 * before it passes such a tensor on, and a call that writes one returns when it is written. */
MSRT_API msrt_status msrt_tensor_create_on_device(msrt_runtime* runtime, const char* device,
                                                  msrt_dtype dtype, int32_t rank,
                                                  const int64_t* dims, msrt_tensor** out);
MSRT_API msrt_status msrt_tensor_wrap_on_device(msrt_runtime* runtime, const char* device,
                                                msrt_dtype dtype, int32_t rank, const int64_t* dims,
                                                void* data, size_t bytes,
                                                void (*free_fn)(void* user, void* data), void* user,
                                                msrt_tensor** out);
/* The name of the device that the tensor is on, valid while the handle is; NULL: the host. */
MSRT_API msrt_status msrt_tensor_device(const msrt_tensor* tensor, const char** out);
/* Strings and dims in `info` are valid while the handle is. Set info->struct_size first. */
MSRT_API msrt_status msrt_tensor_get_info(const msrt_tensor* tensor, msrt_tensor_info* info);
MSRT_API msrt_status msrt_tensor_data(msrt_tensor* tensor, void** out);
/* Copies the data, also from and to devices. Both tensors must have the same type and number of
 * elements; dims may differ. */
MSRT_API msrt_status msrt_tensor_copy(msrt_tensor* destination, const msrt_tensor* source);
/* DLPack 0.8 (struct DLManagedTensor from dlpack.h), contiguous, on the CPU or on a device that is
 * registered with its DLPack type and number. On success, from_dlpack takes
 * ownership of the managed tensor. to_dlpack returns one whose deleter the consumer must call. */
MSRT_API msrt_status msrt_tensor_from_dlpack(msrt_runtime* runtime, void* managed_tensor,
                                             msrt_tensor** out);
MSRT_API msrt_status msrt_tensor_to_dlpack(msrt_tensor* tensor, void** out);
MSRT_API void msrt_tensor_destroy(msrt_tensor* tensor);

/* ---- list: tensors or lists in order; an ONNX optional is a list of at most one -------------- */

MSRT_API msrt_status msrt_list_create(msrt_runtime* runtime, msrt_list** out);
/* The data is copied. */
MSRT_API msrt_status msrt_list_append(msrt_list* list, const msrt_tensor* tensor);
/* Appends `element` as it is now: its elements are shared, not copied. Appending to `element` later
 * does not change `list`. */
MSRT_API msrt_status msrt_list_append_list(msrt_list* list, const msrt_list* element);
MSRT_API msrt_status msrt_list_length(const msrt_list* list, size_t* out);
/* Returns an element. The caller owns the handle, which may outlive the list. The memory is shared
 * with the list: do not write to it. */
MSRT_API msrt_status msrt_list_element(const msrt_list* list, size_t index, msrt_tensor** out);
MSRT_API msrt_status msrt_list_element_list(const msrt_list* list, size_t index, msrt_list** out);
MSRT_API void msrt_list_destroy(msrt_list* list);

/* ---- model: loaded, checked, placed, compiled; immutable and shared -------------------------- */

typedef struct msrt_named_dims {
  const char* name;
  int32_t rank;
  const int64_t* dims;
} msrt_named_dims;

typedef int32_t msrt_accuracy;
enum {
  MSRT_ACCURACY_DEFAULT = 0, /* f32 arithmetic for f32 and f16 models; bf16 products, accumulated in
                                f32, for bf16 models */
  MSRT_ACCURACY_EXACT = 1,   /* one arithmetic for each node, by a fixed rule (msrt_candidate): bits
                                do not depend on how the work is split, nor on costs or threads */
  MSRT_ACCURACY_FAST = 2 /* bf16 products for all models, where that is faster: errors of about 1e-2
                            of a result's range */
};

typedef struct msrt_model_config {
  uint32_t struct_size;
  /* Non-zero: reads the file instead of mapping it, for files that another process may truncate. */
  int32_t copy_file;
  msrt_accuracy accuracy;
  /* Non-zero: a delegate that fails to compile or to run fails the call. Zero: another delegate
   * does its work. */
  int32_t strict;
  const char* delegates;       /* comma-separated names of allowed delegates; NULL: all */
  const char* disabled_passes; /* comma-separated names, or "all"; NULL: none */
  /* Expected dims of inputs that the model leaves open: algorithms are chosen, and code is
   * generated ahead, for these. */
  const msrt_named_dims* typical;
  size_t typical_count;
  size_t binding_cache_bytes; /* cache for shapes seen before; 0: 64 MiB */
  /* Where nodes must or must not run: "node:NAME=DELEGATE" or "op:OP!=DELEGATE", separated by ';'
   * or ','. '*' in NAME matches any characters; names are those of nodes after the passes. A pin
   * that matches no node is logged as a warning. NULL: none. */
  const char* pins;
  /* A file of measured costs (msrun calibrate), which replace the delegates' estimates where it has
   * them. Only this path is read, no default one. NULL: none. */
  const char* costs_file;
  /* Inputs and outputs that are on devices: "NAME=DEVICE", separated by ';' or ','. Tensors on that
   * device are then bound without a copy through the host; those bound elsewhere are copied. NULL:
   * all are on the host. */
  const char* io_devices;
} msrt_model_config;

/* `config` may be NULL. */
MSRT_API msrt_status msrt_model_load_file(msrt_runtime* runtime, const char* path,
                                          const msrt_model_config* config, msrt_model** out);
/* With a free_fn, the bytes are used in place (if aligned to 64 bytes, otherwise copied) until
 * free_fn is called with `user` and `data`. With a NULL free_fn they are copied at once. If this
 * call fails, free_fn is not called. */
MSRT_API msrt_status msrt_model_load_memory(msrt_runtime* runtime, const void* data, size_t bytes,
                                            void (*free_fn)(void* user, const void* data),
                                            void* user, const msrt_model_config* config,
                                            msrt_model** out);
/* {"name", "producer", "entries": [{"name", "inputs", "outputs"}], "states", "metadata", "ops":
 * {"Conv": 53, ...}, "weights_bytes", "packed_bytes" (in memory), "packed_in_file_bytes" (taken
 * from the file), "passes", "load_ms": {...}}. Valid while the model handle is. */
MSRT_API msrt_status msrt_model_info_json(msrt_model* model, const char** out);
MSRT_API void msrt_model_destroy(msrt_model* model);

/* ---- graph: a model built from C ------------------------------------------------------------- */

typedef uint32_t msrt_value;
#define MSRT_NO_VALUE UINT32_MAX /* an optional input that is left out */

typedef int32_t msrt_attr_kind;
enum {
  MSRT_ATTR_INT = 0,    /* ints[0] */
  MSRT_ATTR_FLOAT = 1,  /* floats[0] */
  MSRT_ATTR_STRING = 2, /* strings[0] */
  MSRT_ATTR_INTS = 3,
  MSRT_ATTR_FLOATS = 4,
  MSRT_ATTR_STRINGS = 5,
  MSRT_ATTR_DTYPE = 6,  /* dtype */
  MSRT_ATTR_TENSOR = 7, /* tensor; its data is copied */
  MSRT_ATTR_GRAPH = 8,  /* graphs[0]: a graph of the same model */
  MSRT_ATTR_GRAPHS = 9
};

typedef struct msrt_attr {
  const char* name;
  msrt_attr_kind kind;
  size_t count; /* number of elements, for the list kinds */
  const int64_t* ints;
  const double* floats;
  const char* const* strings;
  msrt_dtype dtype;
  const msrt_tensor* tensor;
  const msrt_graph* const* graphs;
} msrt_attr;

typedef struct msrt_node_desc {
  uint32_t struct_size;
  const char* domain; /* NULL or "": ONNX; "msrt": this library's own ops */
  const char* op;
  /* Also the name of the first output. Should be unique; NULL or "": one is generated. */
  const char* name;
  const msrt_value* inputs;
  size_t input_count;
  const msrt_attr* attrs;
  size_t attr_count;
  /* 0: the op's minimum, but at least 1 unless the op has no outputs; for a node that calls graphs,
   * the number of their results. */
  size_t output_count;
  /* The types of the outputs, each with its struct_size set. Required for an op that neither this
   * library nor a registered kernel defines, and for a node that calls a graph whose outputs are
   * not added yet. */
  const msrt_tensor_info* output_types;
} msrt_node_desc;

/* Creates a model with one graph, which is the entry that sessions run. */
MSRT_API msrt_status msrt_graph_create(msrt_runtime* runtime, const char* name, msrt_graph** out);
/* Adds a graph to the same model: a branch, a body, a function. All functions below accept it. It
 * may call graphs, itself included, and be called before it is complete. Nodes call graphs through
 * attributes of kind MSRT_ATTR_GRAPH. A graph sees nothing of its caller but its inputs, so
 * captured values are passed with every call, after the graph's own parameters:
 *   If            condition, captured...
 *                   then_branch, else_branch: captured... -> results...
 *   msrt.SwitchN  index, captured...
 *                   branches (MSRT_ATTR_GRAPHS): captured... -> results...
 *   Loop          trip count or MSRT_NO_VALUE, condition or MSRT_NO_VALUE, carried..., captured...
 *                   body: iteration, condition, carried..., captured...
 *                         -> condition, carried..., scanned...
 *   Scan          carried..., scanned..., captured...   (INT num_scan_inputs)
 *                   body: carried..., slices..., captured... -> carried..., slices...
 *   msrt.While    carried..., captured...
 *                   condition: carried..., captured... -> bool
 *                   body:      carried..., captured... -> carried...
 *   msrt.Call     arguments...
 *                   graph: arguments... -> results...
 *   msrt.Call     function, arguments...   (without `graph`)
 *                   returns the results of the function
 *   msrt.Partial  captured...
 *                   graph; returns a function of that graph's remaining inputs
 * The INT attribute `carried` of Loop, Scan and While is the number of carried values. A call that
 * is the last step of a graph is a tail call: it replaces the graph's frame and takes no memory of
 * its own. All graphs of a model together belong to one thread at a time. */
MSRT_API msrt_status msrt_graph_add_graph(msrt_graph* graph, const char* name, msrt_graph** out);
/* `info` has the name, dtype, rank and dims, with MSRT_UNKNOWN_DIM and optional symbols for open
 * dims; list_depth or function for values that are not tensors. */
MSRT_API msrt_status msrt_graph_add_input(msrt_graph* graph, const msrt_tensor_info* info,
                                          msrt_value* out);
/* The data is copied. */
MSRT_API msrt_status msrt_graph_add_constant(msrt_graph* graph, const char* name,
                                             const msrt_tensor* data, msrt_value* out);
/* Adds a state slot: a tensor that outlives the runs of a session. Nodes msrt.StateRead and
 * msrt.StateWrite with the attribute `slot` read and write it. `info` has its role and its type,
 * which may leave dims open; NULL: a cache of the type of `initial`. A session starts with
 * `initial`. */
MSRT_API msrt_status msrt_graph_add_state(msrt_graph* graph, const char* name,
                                          const msrt_tensor_info* info, const msrt_tensor* initial,
                                          int64_t* slot);
/* Checks the node and infers its output types at once; calls of graphs that have no outputs yet are
 * checked when the model is compiled or saved. `outputs` receives the node's values
 * (node->output_count, or what 0 means), which only the same graph may use. It may be NULL for a
 * node without outputs. */
MSRT_API msrt_status msrt_graph_add_node(msrt_graph* graph, const msrt_node_desc* node,
                                         msrt_value* outputs);
/* `name` may be NULL: the value's name. Outputs have their own names, so one value may be several
 * outputs. */
MSRT_API msrt_status msrt_graph_add_output(msrt_graph* graph, msrt_value value, const char* name);
/* Strings in `info` are valid until the model changes. A value that is a function has no info. */
MSRT_API msrt_status msrt_graph_value_info(msrt_graph* graph, msrt_value value,
                                           msrt_tensor_info* info);
/* Writes the whole model to a .msrt file; `graph` may be any of its graphs. If it fails, an
 * existing file stays as it was. */
MSRT_API msrt_status msrt_graph_save(msrt_graph* graph, const char* path);
/* Compiles the model as built so far; `graph` may be any of its graphs. The graphs do not change
 * and may be extended further. */
MSRT_API msrt_status msrt_graph_compile(msrt_graph* graph, const msrt_model_config* config,
                                        msrt_model** out);
MSRT_API void msrt_graph_destroy(msrt_graph* graph);

/* ---- session: runs a model, one request at a time -------------------------------------------- */

typedef int32_t msrt_io;
enum { MSRT_INPUT = 0, MSRT_OUTPUT = 1 };

typedef struct msrt_session_config {
  uint32_t struct_size;
  int32_t profile; /* non-zero: measure each step of every run */
  /* Maximum of arena, call frames, scratch, outputs and state together; 0: no cap. Shared state
   * counts in the session that was created first. */
  size_t memory_cap_bytes;
  /* The priority of the session's streams on devices: greater is more urgent; 0: normal. */
  int32_t stream_priority;
  int32_t reserved; /* must be 0 */
  /* A session of the same model, with any entry, whose parameters, optimizer state and statistics
   * the new session shares, without a copy: what a run of one writes, the next run of the other
   * reads. Caches are the session's own. NULL: all state is its own. The sessions may be used from
   * different threads and destroyed in any order. A run that may write shared state excludes the
   * runs of all sessions that share it; a run that cannot start waits, up to its timeout. So do
   * msrt_session_state_read, _write and _reset. */
  msrt_session* share_state;
} msrt_session_config;

/* `function`: name of the entry to run; NULL: the first. `config` may be NULL. */
MSRT_API msrt_status msrt_session_create(msrt_model* model, const char* function,
                                         const msrt_session_config* config, msrt_session** out);
/* Creates a session that shares constants and compiled kernels, with its own memory and a copy of
 * the state, shared state included. Bound tensors are not carried over. */
MSRT_API msrt_status msrt_session_clone(msrt_session* session, msrt_session** out);
MSRT_API void msrt_session_destroy(msrt_session* session);

MSRT_API msrt_status msrt_session_io_count(msrt_session* session, msrt_io kind, size_t* out);
/* Returns the declared type; after a run, an output has the dims of its last result. Valid while
 * the session handle is. */
MSRT_API msrt_status msrt_session_io_info(msrt_session* session, msrt_io kind, size_t index,
                                          msrt_tensor_info* info);
MSRT_API msrt_status msrt_session_io_find(msrt_session* session, msrt_io kind, const char* name,
                                          size_t* out);

/* Every run reads inputs from the bound tensor in place and writes outputs to it. An output tensor
 * must have the result's type and dims and share no memory with inputs or other outputs. The
 * session holds the tensor until another is bound; NULL unbinds. */
MSRT_API msrt_status msrt_session_bind(msrt_session* session, msrt_io kind, size_t index,
                                       msrt_tensor* tensor);
/* Creates and binds an input tensor of these dims, for the caller to fill. */
MSRT_API msrt_status msrt_session_input(msrt_session* session, size_t index, int32_t rank,
                                        const int64_t* dims, msrt_tensor** out);
/* Returns the result of the last run, if that succeeded. The caller owns the handle, which may
 * outlive the session. Unless a tensor was bound, the memory is shared with the session: its next
 * run overwrites the result or moves to other memory. A result that is bound as an input keeps its
 * memory. */
MSRT_API msrt_status msrt_session_output(msrt_session* session, size_t index, msrt_tensor** out);
/* The same, but the caller becomes the only owner of the memory: the next run uses other memory,
 * and there is no result until then. */
MSRT_API msrt_status msrt_session_take_output(msrt_session* session, size_t index,
                                              msrt_tensor** out);
/* Binds an input that is a list. Runs read the elements that the list has now; NULL unbinds. */
MSRT_API msrt_status msrt_session_bind_list(msrt_session* session, size_t index,
                                            const msrt_list* list);
/* Returns an output that is a list. The caller owns the handle; the elements never change. */
MSRT_API msrt_status msrt_session_output_list(msrt_session* session, size_t index, msrt_list** out);

typedef struct msrt_run_config {
  uint32_t struct_size;
  int32_t reserved;   /* must be 0 */
  int64_t timeout_us; /* 0: none */
  /* Maximum number of active calls of one graph at once, which is its recursion depth; tail calls
   * do not count. 0: 100,000. Call frames count against msrt_session_config.memory_cap_bytes. */
  int64_t max_depth;
  int64_t max_calls; /* maximum of calls and loop iterations together; 0: no limit */
} msrt_run_config;

/* Runs the model. `config` may be NULL. After an error, caches and statistics are as before: a run
 * writes them when it has succeeded. Parameters and optimizer state are updated in place, in their
 * own memory. A run that fails before its first update leaves them as before; one that fails later
 * leaves a mixture of two steps. Its error says so, and runs that use these slots are refused until
 * each slot that the failed run may have written is written or reset: restore a checkpoint. */
MSRT_API msrt_status msrt_session_run(msrt_session* session, const msrt_run_config* config);
/* Stops the run that is in progress or waiting for its turn, which returns MSRT_CANCELLED; does
 * nothing if there is none. May be called from any thread. */
MSRT_API msrt_status msrt_session_cancel(msrt_session* session);

/* A model that draws random numbers has one more state, "msrt.step" (i64): it counts the successful
 * runs, and the numbers of a run depend on it. Reset it to repeat them, write it to resume. */
MSRT_API msrt_status msrt_session_state_count(msrt_session* session, size_t* out);
MSRT_API msrt_status msrt_session_state_find(msrt_session* session, const char* name, size_t* out);
/* Returns the role and the declared type; msrt_session_state_read returns the current dims. Valid
 * while the session handle is. */
MSRT_API msrt_status msrt_session_state_info(msrt_session* session, size_t index,
                                             msrt_tensor_info* info);
/* Returns a copy of the current value. */
MSRT_API msrt_status msrt_session_state_read(msrt_session* session, size_t index,
                                             msrt_tensor** out);
MSRT_API msrt_status msrt_session_state_write(msrt_session* session, size_t index,
                                              const msrt_tensor* value);
/* Restores the initial value. */
MSRT_API msrt_status msrt_session_state_reset(msrt_session* session, size_t index);
/* Copies all state of `from`, another session of the same model: restores a snapshot that
 * msrt_session_clone made. On an error, some slots are copied. */
MSRT_API msrt_status msrt_session_state_copy(msrt_session* session, msrt_session* from);

typedef int32_t msrt_report;
enum {
  /* Placement report: expected time, partitions, steps, and for each node its delegate and the
   * reasons against the others. "lost": [{"delegate", "reason"}] lists delegates that failed, at
   * run time or before, and that graphs of the model no longer use. "graphs" has the same for each
   * graph that branches, loops and calls can reach. */
  MSRT_REPORT_PLAN = 0,
  /* Time of each step of the last run; requires msrt_session_config.profile. "us" includes the
   * graphs that the step calls, "self_us" does not; "dims" are those of its first output;
   * "total_us" is the whole run. */
  MSRT_REPORT_PROFILE = 1,
  /* Arena and its lower bound, scratch, outputs, state, packed weights and state, bindings. */
  MSRT_REPORT_MEMORY = 2,
  MSRT_REPORT_PLAN_TEXT = 3, /* the placement report as a table for a terminal */
  MSRT_REPORT_PLAN_SVG = 4   /* the placement report as an SVG document */
};
/* Returns JSON, except for the last two kinds. Valid until the next report of this session. */
MSRT_API msrt_status msrt_session_report(msrt_session* session, msrt_report kind, const char** out);
/* Frees arena, scratch and outputs until the next run. */
MSRT_API msrt_status msrt_session_trim(msrt_session* session);

/* ---- image: a model over an image of any size, under a memory limit -------------------------- */

/* The image is read, computed and written in windows, by strips of rows or by tiles; the bits are
 * those of a run on the whole image in MSRT_ACCURACY_EXACT. The model has one input,
 * f32[1, channels, rows, columns], and outputs that follow the image. */
typedef int32_t msrt_executor;
enum {
  MSRT_EXECUTOR_AUTO = 0,
  MSRT_EXECUTOR_STREAM = 1, /* rolling rows: nothing is computed twice */
  MSRT_EXECUTOR_TILES = 2,  /* overlapping tiles, where rows do not fit in memory */
  MSRT_EXECUTOR_HALO = 3    /* parts on several ranks, which exchange halos; needs a split */
};

typedef struct msrt_image_info {
  uint32_t struct_size;
  msrt_dtype dtype; /* u8, i8, u16, i16, u32, i32, f32 or f64 */
  int64_t channels;
  int64_t rows;
  int64_t columns;
  int32_t has_no_data; /* non-zero: pixels that equal no_data in all channels have no content */
  int32_t reserved;    /* must be 0 */
  double no_data;
} msrt_image_info;

/* Channels [channel, channel + channels) of rows [row, row + rows) and columns [column, column +
 * columns). */
typedef struct msrt_image_box {
  int64_t channel;
  int64_t row;
  int64_t column;
  int64_t channels;
  int64_t rows;
  int64_t columns;
} msrt_image_box;

typedef struct msrt_image_output {
  const char* name; /* of the model's output; NULL: the first */
  /* A .tif, .tiff or .npy file. It has its name only when it is complete: until then it is
   * PATH.part, beside PATH.journal. NULL: `write` takes the pixels. */
  const char* path;
  /* 0: all channels as f32. 8, 16: the channel with the largest value (a class) in so many bits,
   * with palette and overviews; -1: the smaller width that suffices. */
  int32_t class_bits;
  int32_t reserved; /* must be 0 */
  /* Takes a box with all channels, of the dtype that msrt_image_get_info returns. Strides are in
   * elements; the elements of a row are adjacent. Every pixel comes once. Called by one thread at a
   * time: the one that runs, unless the image is split. An error (not MSRT_OK) ends the run. */
  msrt_status (*write)(void* user, const msrt_image_box* box, const void* data,
                       int64_t channel_stride, int64_t row_stride);
  void* write_user;
} msrt_image_output;

typedef struct msrt_image_progress {
  double fraction; /* of all work, 0 to 1 */
  double seconds;
  double seconds_left;
  double pixels_per_second; /* 0: not known yet, as is seconds_left */
} msrt_image_progress;

typedef struct msrt_image_config {
  uint32_t struct_size;
  msrt_executor executor;
  const char* model; /* a .msrt file */
  /* The image: TIFF, PNG, JPEG, .npy of channels x rows x columns, or what GDAL and OpenSlide read
   * where they are installed. NULL: `read` fills boxes of the image that `source` describes. */
  const char* image;
  const msrt_image_info* source;
  /* Fills a box in the dtype of `source`; see msrt_image_output.write. */
  msrt_status (*read)(void* user, const msrt_image_box* box, void* data, int64_t channel_stride,
                      int64_t row_stride);
  void* read_user;
  const msrt_image_output* outputs;
  size_t output_count;
  size_t memory_limit_bytes; /* for everything the job holds; 0: half of the machine's memory */
  int32_t split_rows;        /* parts for ranks, which are threads of this process; 0: 1 */
  int32_t split_columns;
  /* "mean=123.7,116.3,103.5 std=58.4,57.1,57.4", "scale=1/255 offset=-0.5": one number, or one for
   * each channel. NULL: pixels as they are stored. */
  const char* normalize;
  const char* bands; /* "3,2,1": the channels for the model, from 1; NULL: all */
  int32_t level;     /* of the pyramid in the file; 0: the full resolution */
  int32_t page;      /* of a file with several images */
  /* A file of any resolution: where its first channel is 0, and where the image has its no-data
   * value, there is no content. Regions without content are not computed. Their pixels are NaN in
   * f32 results and the largest number, 255 or 65535, in class maps. */
  const char* mask;
  int32_t ignore_no_data; /* non-zero: the no-data value is a value like others */
  /* Non-zero: continues results that an interrupted job has left. Model, image, mask and the
   * options that decide on pixels must be the same. */
  int32_t resume;
  int32_t overwrite; /* non-zero: replaces files; zero: an existing result is an error */
  int32_t reserved;  /* must be 0 */
  /* Called by the thread that runs, after each strip or tile. It may call msrt_image_cancel. */
  void (*progress)(void* user, const msrt_image_progress* progress);
  void* progress_user;
  const msrt_model_config* model_config; /* NULL: the defaults; accuracy is always exact */
  /* With `read`: a text that differs for images that differ, such as a name and a time of change.
   * `resume` requires it, because the pixels that `read` returns are not compared. NULL: none. */
  const char* source_identity;
} msrt_image_config;

/* Opens the image, compiles the model for it and plans the work; writes no file. */
MSRT_API msrt_status msrt_image_create(msrt_runtime* runtime, const msrt_image_config* config,
                                       msrt_image** out);
MSRT_API void msrt_image_destroy(msrt_image* image);
/* Describes the image (MSRT_INPUT, index 0) or a result. Set info->struct_size first. */
MSRT_API msrt_status msrt_image_get_info(msrt_image* image, msrt_io kind, size_t index,
                                         msrt_image_info* info);
/* Runs once. After an error, unfinished files stay, for resuming; none of them looks complete. */
MSRT_API msrt_status msrt_image_run(msrt_image* image);
/* Stops the run, which returns MSRT_CANCELLED. May be called from any thread. */
MSRT_API msrt_status msrt_image_cancel(msrt_image* image);
typedef int32_t msrt_image_report_kind;
enum {
  /* JSON: image, results, plan; after a run also time, peak memory, computed and recomputed rows,
   * messages and bytes. */
  MSRT_IMAGE_REPORT_JSON = 0,
  MSRT_IMAGE_REPORT_SVG = 1 /* a picture of the plan: strips, tiles or parts, and memory */
};
/* Valid until the next report of this image. */
MSRT_API msrt_status msrt_image_report(msrt_image* image, msrt_image_report_kind kind,
                                       const char** out);

#ifdef __cplusplus
}
#endif

#endif /* MSRT_H */
