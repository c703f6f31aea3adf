/* msrt: an embeddable runtime for neural networks. This is the one public header: plain C99, usable
 * from C++.
 *
 * Objects are opaque handles. A session holds its model, a model its runtime, so they may be
 * destroyed in any order, even while another thread is inside a call with them; what is still
 * needed stays alive. A handle that was destroyed, is null or is of another kind is refused with an
 * error, not a crash; destroying such a handle does nothing.
 *
 * Functions return msrt_status; 0 is success. On an error, outputs are untouched and the calling
 * thread's msrt_error_message() says which object was wrong and what to do. Nothing is printed and
 * nothing aborts. Every config begins with struct_size: set it with MSRT_INIT, which also gives all
 * other fields their defaults (zero).
 *
 * Threads: a runtime, a model and a tensor may be used from any thread. A session, a list and a
 * graph under construction belong to one thread at a time, except msrt_session_cancel; a second
 * thread gets an error. Callbacks must not throw. Strings are UTF-8. Dims are int64_t in the order
 * of the model, row-major. */
#ifndef MSRT_H
#define MSRT_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define MSRT_API
#else
#define MSRT_API __attribute__((visibility("default")))
#endif

/* Grows with every change of this header that a compiled program would notice. A program compares
 * the number it was compiled with to the library's own, msrt_abi_version(). */
#define MSRT_ABI_VERSION 2u

/* A config with its size and otherwise defaults:  msrt_runtime_config config =
 * MSRT_INIT(msrt_runtime_config); */
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

/* ---- the library ----------------------------------------------------------------------------- */

typedef int32_t msrt_status;
enum {
  MSRT_OK = 0,
  MSRT_INVALID_ARGUMENT = 1, /* the caller passed something wrong */
  MSRT_INVALID_MODEL = 2,    /* the bytes of the model are wrong */
  MSRT_UNSUPPORTED = 3,      /* right, but no delegate or this version can do it */
  MSRT_NOT_FOUND = 4,
  MSRT_OUT_OF_MEMORY = 5,
  MSRT_LIMIT_EXCEEDED = 6, /* a configured limit would be passed */
  MSRT_CANCELLED = 7,
  MSRT_DEADLINE_EXCEEDED = 8,
  MSRT_IO = 9,
  MSRT_DELEGATE = 10, /* a delegate failed */
  MSRT_INTERNAL = 11  /* our own bug: please report */
};

/* The release, "major.minor.patch". Static storage. */
MSRT_API const char* msrt_version(void);
/* The MSRT_ABI_VERSION that the library was built with. */
MSRT_API uint32_t msrt_abi_version(void);
/* "invalid argument" for 1 and so on. Static storage. */
MSRT_API const char* msrt_status_string(msrt_status status);
/* What went wrong in the calling thread's last failed call; "" before the first. Valid until that
 * thread's next failed call. */
MSRT_API const char* msrt_error_message(void);
/* The same as JSON: {"code": 3, "status": "unsupported", "message": "...", "function":
 * "msrt_model_load_file", "details": {"node": "conv1", "op": "Conv", ...}}. */
MSRT_API const char* msrt_error_json(void);

/* These and the kinds below are int32_t and not enums: the width of an enum is the compiler's
 * choice, and a wrong number in one is undefined behaviour before it can be refused. */
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

#define MSRT_MAX_RANK 8
#define MSRT_UNKNOWN_DIM INT64_C(-1)

typedef struct msrt_runtime msrt_runtime;
typedef struct msrt_model msrt_model;
typedef struct msrt_session msrt_session;
typedef struct msrt_tensor msrt_tensor;
typedef struct msrt_graph msrt_graph;
typedef struct msrt_list msrt_list;

/* ---- runtime: delegates, threads, memory, log ------------------------------------------------ */

enum { MSRT_LOG_ERROR = 0, MSRT_LOG_WARNING = 1, MSRT_LOG_INFO = 2, MSRT_LOG_DEBUG = 3 };

typedef struct msrt_runtime_config {
  uint32_t struct_size;
  int32_t threads; /* how many threads a run may use, the caller's included; 0: one for each core */
  int32_t log_level; /* the most that is logged */
  /* May be called from any thread, and may call the library, but not wait for another thread that
   * does. Without it nothing is logged. `line` is valid during the call. */
  void (*log)(void* user, int32_t level, const char* line);
  void* log_user;
  /* Memory for tensors, arenas and packed weights; both or none. From any thread. `allocate`
   * returns NULL when there is no memory. */
  void* (*allocate)(void* user, size_t bytes, size_t alignment);
  void (*deallocate)(void* user, void* pointer, size_t bytes, size_t alignment);
  void* allocator_user;
  /* The application's own threads: must call task(context, i) once for every i in [0, count) and
   * return when all are done; may do so at once on up to `threads` threads. Without it the runtime
   * uses its own team. Libraries that cannot use it (oneDNN) start OpenMP teams of `threads` beside
   * it. */
  void (*parallel_for)(void* user, int64_t count, void (*task)(void* context, int64_t index),
                       void* context);
  void* parallel_user;
  /* Called once for the three user pointers above when the runtime and all that came from it are
   * gone; not if msrt_runtime_create fails. */
  void (*destroy_user_data)(void* log_user, void* allocator_user, void* parallel_user);
  /* What it costs to wake the threads for a run. Models whose input shapes are known and whose runs
   * several threads would shorten by less run on the calling thread alone, and do not count against
   * `threads`. In seconds; 0: 0.00005; less than 0: no model runs so. */
  double wake_threads_seconds;
} msrt_runtime_config;

/* `config` may be NULL. Any number of runtimes live side by side. */
MSRT_API msrt_status msrt_runtime_create(const msrt_runtime_config* config, msrt_runtime** out);
MSRT_API void msrt_runtime_destroy(msrt_runtime* runtime);
/* {"version", "threads", "machine": {...}, "build": {...}, "delegates": [...], "passes": [...],
 * "ops": [...], "kernels": [{"op", "name"}]}. "build" names build type, compiler, libraries,
 * processor and instruction sets. Valid while the runtime handle is. */
MSRT_API msrt_status msrt_runtime_info_json(msrt_runtime* runtime, const char** out);
/* Measures in about 50 ms what this machine's cores do together, instead of taking what is typical.
 * Models that are loaded from now on are placed by it. */
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
  size_t bytes;                       /* 0 where a dim is unknown */
  int32_t list_depth; /* 0: a tensor; 1: a list of such tensors; 2: a list of lists, and so on */
  int32_t reserved;   /* must be 0 */
  const struct msrt_signature* function; /* inside graphs: a function instead, of which only this
                                            and the name count; else NULL */
} msrt_tensor_info;

/* What a function takes and gives; each entry has its struct_size. */
typedef struct msrt_signature {
  const msrt_tensor_info* parameters;
  size_t parameter_count;
  const msrt_tensor_info* results;
  size_t result_count;
} msrt_signature;

/* Uninitialised memory from the runtime's allocator, aligned to 64 bytes. */
MSRT_API msrt_status msrt_tensor_create(msrt_runtime* runtime, msrt_dtype dtype, int32_t rank,
                                        const int64_t* dims, msrt_tensor** out);
/* The application's memory, used in place; aligned at least to an element. `bytes` must be enough
 * for the dims. `free_fn` (may be NULL) is called with `user` and `data` when nobody uses the
 * tensor any more. If this call fails, free_fn is not called. */
MSRT_API msrt_status msrt_tensor_wrap(msrt_runtime* runtime, msrt_dtype dtype, int32_t rank,
                                      const int64_t* dims, void* data, size_t bytes,
                                      void (*free_fn)(void* user, void* data), void* user,
                                      msrt_tensor** out);
/* Strings and dims in `info` are valid while the handle is. Set info->struct_size first. */
MSRT_API msrt_status msrt_tensor_get_info(const msrt_tensor* tensor, msrt_tensor_info* info);
MSRT_API msrt_status msrt_tensor_data(msrt_tensor* tensor, void** out);
/* Same type and number of elements; dims may differ. */
MSRT_API msrt_status msrt_tensor_copy(msrt_tensor* destination, const msrt_tensor* source);
/* DLPack 0.8 (struct DLManagedTensor from dlpack.h), CPU, contiguous. from_dlpack takes the managed
 * tensor over on success; to_dlpack returns one whose deleter the consumer must call. */
MSRT_API msrt_status msrt_tensor_from_dlpack(msrt_runtime* runtime, void* managed_tensor,
                                             msrt_tensor** out);
MSRT_API msrt_status msrt_tensor_to_dlpack(msrt_tensor* tensor, void** out);
MSRT_API void msrt_tensor_destroy(msrt_tensor* tensor);

/* ---- list: tensors in order, or lists; an optional of ONNX is a list of at most one ---------- */

MSRT_API msrt_status msrt_list_create(msrt_runtime* runtime, msrt_list** out);
/* The data is copied. */
MSRT_API msrt_status msrt_list_append(msrt_list* list, const msrt_tensor* tensor);
/* What `element` holds now is shared, not copied; what is appended to it later does not show in
 * `list`. */
MSRT_API msrt_status msrt_list_append_list(msrt_list* list, const msrt_list* element);
MSRT_API msrt_status msrt_list_length(const msrt_list* list, size_t* out);
/* The handle is the caller's and outlives the list. The memory is that of the list: it must not be
 * written to. */
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
  MSRT_ACCURACY_DEFAULT = 0, /* f32 arithmetic for f32 and f16 models; products in bf16, summed up
                                in f32, for bf16 models */
  MSRT_ACCURACY_EXACT = 1,   /* only kernels whose bits do not depend on how the work is cut */
  MSRT_ACCURACY_FAST = 2 /* products in bf16 for all models, where that is faster: errors of about
                            1e-2 of a result's range */
};

typedef struct msrt_model_config {
  uint32_t struct_size;
  int32_t copy_file; /* non-zero: read the file instead of mapping it (for files that somebody may
                        truncate meanwhile) */
  msrt_accuracy accuracy;
  int32_t strict;        /* non-zero: a delegate that fails in compiling or in a run fails the call,
                            instead of another doing its work */
  const char* delegates; /* comma-separated names to allow; NULL: all */
  const char* disabled_passes; /* comma-separated names, or "all"; NULL: none */
  /* Sizes to expect where the model leaves dims open: algorithms are chosen, and code is made
   * ahead, for these. */
  const msrt_named_dims* typical;
  size_t typical_count;
  size_t binding_cache_bytes; /* what is kept for shapes seen before; 0: 64 MiB */
  /* Where nodes must or must not run: "node:NAME=DELEGATE" or "op:OP!=DELEGATE", separated by ';'
   * or ','. '*' in NAME stands for any characters; nodes are meant as they are after passes. A pin
   * that matches no node is logged as a warning. NULL: none. */
  const char* pins;
  /* A file of measured costs (msrun calibrate), used instead of delegates' estimates where it has
   * them. Never looked for by itself. NULL: none. */
  const char* costs_file;
} msrt_model_config;

/* `config` may be NULL. */
MSRT_API msrt_status msrt_model_load_file(msrt_runtime* runtime, const char* path,
                                          const msrt_model_config* config, msrt_model** out);
/* The bytes are used in place (64-byte aligned; otherwise copied) until free_fn is called with
 * `user` and `data`; with a NULL free_fn they are copied at once. If this call fails, free_fn is
 * not called. */
MSRT_API msrt_status msrt_model_load_memory(msrt_runtime* runtime, const void* data, size_t bytes,
                                            void (*free_fn)(void* user, const void* data),
                                            void* user, const msrt_model_config* config,
                                            msrt_model** out);
/* {"name", "producer", "entries": [{"name", "inputs", "outputs"}], "states", "metadata", "ops":
 * {"Conv": 53, ...}, "weights_bytes", "packed_bytes" (in memory), "packed_in_file_bytes" (used
 * where the file has them), "passes", "load_ms": {...}}. Valid while the model handle is. */
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
  size_t count; /* elements of the list kinds */
  const int64_t* ints;
  const double* floats;
  const char* const* strings;
  msrt_dtype dtype;
  const msrt_tensor* tensor;
  const msrt_graph* const* graphs;
} msrt_attr;

typedef struct msrt_node_desc {
  uint32_t struct_size;
  const char* domain; /* NULL or "": ONNX's ops; "msrt": ours */
  const char* op;
  const char*
      name; /* also the name of its first output; should be unique; NULL or "": one is made up */
  const msrt_value* inputs;
  size_t input_count;
  const msrt_attr* attrs;
  size_t attr_count;
  size_t output_count; /* 0 means 1; for ops without outputs 0; for a node that calls graphs as many
                          as those give */
  /* The types of its outputs, each with its struct_size. Needed for an op that neither this library
   * nor a registered kernel defines, and for a node that calls a graph whose outputs are yet to
   * come. */
  const msrt_tensor_info* output_types;
} msrt_node_desc;

/* A model with one graph, which is the one that sessions run. */
MSRT_API msrt_status msrt_graph_create(msrt_runtime* runtime, const char* name, msrt_graph** out);
/* One more graph of the same model: a branch, a body, a function. All functions below take it; it
 * may call and be called before it is complete, itself included. Nodes call graphs by attributes of
 * kind MSRT_ATTR_GRAPH. A graph sees nothing of its caller but its inputs, so what it captures is
 * handed to it with every call, after its own parameters: If            condition, captured...
 * then_branch, else_branch: captured... -> results... msrt.SwitchN  index, captured... branches
 * (MSRT_ATTR_GRAPHS): captured... -> results... Loop          trip count or MSRT_NO_VALUE,
 * condition or MSRT_NO_VALUE, carried..., captured... body: iteration, condition, carried...,
 * captured... -> condition, carried..., scanned... Scan          carried..., scanned...,
 * captured...   (INT num_scan_inputs) body: carried..., slices..., captured... -> carried...,
 * slices... msrt.While    carried..., captured...         condition: carried..., captured... ->
 * bool; body: the same -> carried... msrt.Call     arguments...                    graph:
 * arguments... -> results... function, arguments...          without `graph`: what the function
 * gives msrt.Partial  captured...                     graph; gives a function of that graph's
 * remaining inputs Loop, Scan and While say by the INT `carried` how many values they carry. A call
 * that is the last step of a graph takes its place and no memory of its own. The graphs of a model
 * belong to one thread at a time together. */
MSRT_API msrt_status msrt_graph_add_graph(msrt_graph* graph, const char* name, msrt_graph** out);
/* info: dtype, rank, dims with MSRT_UNKNOWN_DIM and symbols where they are open, name; list_depth
 * or function for other values. */
MSRT_API msrt_status msrt_graph_add_input(msrt_graph* graph, const msrt_tensor_info* info,
                                          msrt_value* out);
/* The data is copied. */
MSRT_API msrt_status msrt_graph_add_constant(msrt_graph* graph, const char* name,
                                             const msrt_tensor* data, msrt_value* out);
/* A tensor that belongs to each session and outlives its runs; read and written by the nodes
 * msrt.StateRead and msrt.StateWrite with the attribute `slot`. info (may be NULL: the type of
 * `initial`) can leave dims open; `initial` is what a session starts with. */
MSRT_API msrt_status msrt_graph_add_state(msrt_graph* graph, const char* name,
                                          const msrt_tensor_info* info, const msrt_tensor* initial,
                                          int64_t* slot);
/* Checks the node and infers its types at once; calls of graphs that have no outputs so far are
 * checked when the model is compiled or saved. `outputs` gets its values (node->output_count, or
 * what 0 stands for), which must be of the same graph wherever they are used; it may be NULL for a
 * node without outputs. */
MSRT_API msrt_status msrt_graph_add_node(msrt_graph* graph, const msrt_node_desc* node,
                                         msrt_value* outputs);
/* `name` may be NULL: that of the value. Outputs have names of their own, so a value may be
 * several. */
MSRT_API msrt_status msrt_graph_add_output(msrt_graph* graph, msrt_value value, const char* name);
/* Strings in `info` are valid until the model changes. Functions have no info. */
MSRT_API msrt_status msrt_graph_value_info(msrt_graph* graph, msrt_value value,
                                           msrt_tensor_info* info);
/* Writes the model, from whichever of its graphs, to a .msrt file: the whole new one, or the old
 * one stays. */
MSRT_API msrt_status msrt_graph_save(msrt_graph* graph, const char* path);
/* Compiles what has been built of the model so far, from whichever of its graphs; it stays as it
 * is. */
MSRT_API msrt_status msrt_graph_compile(msrt_graph* graph, const msrt_model_config* config,
                                        msrt_model** out);
MSRT_API void msrt_graph_destroy(msrt_graph* graph);

/* ---- session: runs a model, one request at a time -------------------------------------------- */

typedef int32_t msrt_io;
enum { MSRT_INPUT = 0, MSRT_OUTPUT = 1 };

typedef struct msrt_session_config {
  uint32_t struct_size;
  int32_t profile; /* non-zero: measure each step of every run */
  size_t
      memory_cap_bytes; /* arena, frames of calls, scratch, outputs and state together; 0: no cap */
} msrt_session_config;

/* `function`: the entry to run, NULL for the first. `config` may be NULL. */
MSRT_API msrt_status msrt_session_create(msrt_model* model, const char* function,
                                         const msrt_session_config* config, msrt_session** out);
/* Shares weights and compiled kernels; has its own memory and a copy of the state. Bound tensors
 * are not taken over. */
MSRT_API msrt_status msrt_session_clone(msrt_session* session, msrt_session** out);
MSRT_API void msrt_session_destroy(msrt_session* session);

MSRT_API msrt_status msrt_session_io_count(msrt_session* session, msrt_io kind, size_t* out);
/* The declared type; after a run, an output has the dims of its last result. Valid while the
 * session handle is. */
MSRT_API msrt_status msrt_session_io_info(msrt_session* session, msrt_io kind, size_t index,
                                          msrt_tensor_info* info);
MSRT_API msrt_status msrt_session_io_find(msrt_session* session, msrt_io kind, const char* name,
                                          size_t* out);

/* Inputs are read from the bound tensor in place at every run; outputs are written to it, and must
 * have the result's type and dims and share no memory with inputs or other outputs. The session
 * holds the tensor until another is bound; NULL unbinds. */
MSRT_API msrt_status msrt_session_bind(msrt_session* session, msrt_io kind, size_t index,
                                       msrt_tensor* tensor);
/* Makes an input of these dims and returns it, to be filled by the caller: shorter than create and
 * bind. */
MSRT_API msrt_status msrt_session_input(msrt_session* session, size_t index, int32_t rank,
                                        const int64_t* dims, msrt_tensor** out);
/* The result of the last run, if that was successful. The handle is the caller's and outlives the
 * session; unless a tensor was bound, the memory is shared with the session, whose next run
 * overwrites it or leaves it for other memory. Bound as an input, it keeps its memory. */
MSRT_API msrt_status msrt_session_output(msrt_session* session, size_t index, msrt_tensor** out);
/* The same, but the memory becomes the caller's alone: the next run uses other memory, and there is
 * no result until then. */
MSRT_API msrt_status msrt_session_take_output(msrt_session* session, size_t index,
                                              msrt_tensor** out);
/* The same for inputs and outputs that are lists. What the list holds now is what runs read; NULL
 * unbinds. */
MSRT_API msrt_status msrt_session_bind_list(msrt_session* session, size_t index,
                                            const msrt_list* list);
/* The handle is the caller's; what it holds never changes. */
MSRT_API msrt_status msrt_session_output_list(msrt_session* session, size_t index, msrt_list** out);

typedef struct msrt_run_config {
  uint32_t struct_size;
  int32_t reserved;   /* must be 0 */
  int64_t timeout_us; /* 0: none */
  /* Graphs that call each other. How often one graph may be active at once, which is how deep it
   * may call itself other than as its last step; 0: 100,000. What the frames of calls take counts
   * against msrt_session_config.memory_cap_bytes. */
  int64_t max_depth;
  int64_t max_calls; /* calls and iterations in all; 0: no limit */
} msrt_run_config;

/* All or nothing: after an error the state is as before. `config` may be NULL. */
MSRT_API msrt_status msrt_session_run(msrt_session* session, const msrt_run_config* config);
/* From any thread: stops the run in progress, or waiting for its turn, which returns
 * MSRT_CANCELLED; without one it does nothing. */
MSRT_API msrt_status msrt_session_cancel(msrt_session* session);

MSRT_API msrt_status msrt_session_state_count(msrt_session* session, size_t* out);
MSRT_API msrt_status msrt_session_state_find(msrt_session* session, const char* name, size_t* out);
/* The declared type; msrt_session_state_read has the present dims. Valid while the session handle
 * is. */
MSRT_API msrt_status msrt_session_state_info(msrt_session* session, size_t index,
                                             msrt_tensor_info* info);
/* A copy of the state's present value. */
MSRT_API msrt_status msrt_session_state_read(msrt_session* session, size_t index,
                                             msrt_tensor** out);
MSRT_API msrt_status msrt_session_state_write(msrt_session* session, size_t index,
                                              const msrt_tensor* value);
/* Back to the initial value. */
MSRT_API msrt_status msrt_session_state_reset(msrt_session* session, size_t index);

typedef int32_t msrt_report;
enum {
  /* Expected time, partitions, steps, and for each node its delegate and why not the others.
   * "lost": [{"delegate", "reason"}] names those that failed, at run time or before, and that
   * graphs of the model do without from then on. "graphs" has the same for each graph that
   * branches, loops and calls lead to. */
  MSRT_REPORT_PLAN = 0,
  /* Each step of the last run (msrt_session_config.profile): "us" with and "self_us" without the
   * graphs that it calls, "dims" of its first output; "total_us" is the whole run. */
  MSRT_REPORT_PROFILE = 1,
  MSRT_REPORT_MEMORY =
      2, /* arena and its lower bound, scratch, outputs, state, packed weights, bindings */
  MSRT_REPORT_PLAN_TEXT = 3, /* the plan as a table for a terminal */
  MSRT_REPORT_PLAN_SVG = 4   /* the plan as a picture: an SVG document */
};
/* JSON, except for the last two kinds. Valid until the next report of this session. */
MSRT_API msrt_status msrt_session_report(msrt_session* session, msrt_report kind, const char** out);
/* Frees arena, scratch and outputs until the next run. */
MSRT_API msrt_status msrt_session_trim(msrt_session* session);

#ifdef __cplusplus
}
#endif

#endif /* MSRT_H */
