/* How something that computes joins msrt: delegates (a device, a library), kernels (one op, known
 * or new), passes, importers, and plugins (a shared library that brings any of them). Plain C99;
 * the delegates inside msrt use exactly this and nothing behind it.
 *
 * A plugin needs no symbol of the library: all it calls comes to it as a table of functions.
 * Unstable until 1.0: a plugin of another MSRT_PLUGIN_ABI is refused by name.
 *
 * Tables of functions, descriptions, candidates, arguments of calls, and views of nodes and graphs
 * begin with struct_size: whoever reads one uses no field beyond the size that its maker knew. The
 * small structs that lie in arrays or inside of others have none (msrt_shape, msrt_value_view,
 * msrt_attr_view, msrt_in_place, msrt_bound_node, msrt_scratch, msrt_attr_rule, msrt_axis,
 * msrt_box, msrt_attr_sink): they are the same as long as MSRT_PLUGIN_ABI is.
 *
 * Errors are msrt_status; the text goes to host->fail before the function returns. Nothing may
 * throw or unwind through these doors; what a callback throws all the same is an error of that
 * call. Codes that the functions of a delegate, of its device and of kernels return mean:
 *   MSRT_INVALID_ARGUMENT, MSRT_INVALID_MODEL  the data or the model is wrong, whoever computes:
 * the call of the application fails. MSRT_OUT_OF_MEMORY, MSRT_LIMIT_EXCEEDED    the host has no
 * more: it fails, too. With a device of one's own: that is full, which MSRT_DELEGATE says as well.
 *   MSRT_DELEGATE, and any other number        another may do it: the model is placed again without
 * the delegate, and the run repeated; a model that is strict fails with MSRT_DELEGATE. Where there
 * is a choice yet, the code matters less: what fails in query refuses every node, and what fails in
 * compile leaves that candidate out, unless the host has no more memory. Codes of ops' meanings,
 * passes, importers and plugins' entries reach the application as they are; MSRT_CANCELLED,
 * MSRT_DEADLINE_EXCEEDED and MSRT_INTERNAL, which are the library's to give, as MSRT_DELEGATE. */
#ifndef MSRT_PLUGIN_H
#define MSRT_PLUGIN_H

#include "msrt.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MSRT_PLUGIN_ABI 1u

/* ---- what the host lends --------------------------------------------------------------------- */

/* Names a form that constants are packed into: all that the bytes of the result depend on, beside
 * the constant. Two packings are the same if everything here is. */
typedef struct msrt_packing {
  uint32_t struct_size;
  uint32_t version;   /* of the code that packs */
  const char* kernel; /* who packs, and which form, in printable characters (UTF-8, up to 4 KiB) */
  const char* isa;    /* the instructions that the form is for, for people too; NULL or "": any */
  uint32_t block;     /* elements that lie together; 0 where that means nothing */
  uint32_t reserved;
} msrt_packing;

/* Valid as long as what it was passed to (a kernel: until the kernel is destroyed). Any thread. In
 * meanings of ops, passes and importers parallel_for keeps to the calling thread: the team is for
 * those who compute. */
typedef struct msrt_host_api {
  uint32_t struct_size;
  int32_t threads; /* how many tasks parallel_for runs at once, at least 1 */
  void* host;      /* first argument of the functions below */
  /* Why the call in progress in this thread returns an error. Copied. */
  void (*fail)(void* host, const char* message);
  void (*log)(void* host, int32_t level, const char* line);
  /* Memory that counts as the application's; NULL when there is none. The alignment is a power of
   * two. */
  void* (*allocate)(void* host, size_t bytes, size_t alignment);
  void (*deallocate)(void* host, void* pointer, size_t bytes, size_t alignment);
  /* Calls task(context, i) for every i in [0, count), possibly at once on several threads, and
   * returns when all are done. An error has its text set already; after one, some may not have been
   * called. */
  msrt_status (*parallel_for)(void* host, int64_t count, void (*task)(void* context, int64_t index),
                              void* context);
  /* What this machine's cores do together at best, for cost models: measured if the application
   * asked for it, else typical. */
  double flops_per_second; /* f32, a multiply-add counts two */
  double bytes_per_second; /* read and written, beyond the caches */
  /* A constant in a packed form that the model's file brings along (msconvert --target native):
   * exactly `bytes` bytes, aligned to 64, valid as long as the constant. `constant` is what
   * msrt_value_view has. NULL: there is none, pack it. The bytes may be anything that somebody
   * wrote into a file: numbers to compute with, never sizes, indices or addresses. The function may
   * be NULL. */
  const void* (*find_packed)(void* host, const void* constant, const msrt_packing* packing,
                             size_t bytes);
  /* To be told of what was packed because it was not found: a file that is being made gets a copy,
   * otherwise nothing happens. An error is to be returned. The function may be NULL. */
  msrt_status (*keep_packed)(void* host, const void* constant, const msrt_packing* packing,
                             const void* data, size_t bytes);
} msrt_host_api;

/* ---- the graph, as it is offered ------------------------------------------------------------- */

/* How the elements of a tensor of rank 3 to 5 lie in memory; all others are plain. Dims are in
 * logical order in every layout. */
typedef int32_t msrt_layout;
enum {
  MSRT_LAYOUT_PLAIN = 0,         /* row-major in the order of dims */
  MSRT_LAYOUT_CHANNELS_LAST = 1, /* batch, space..., channels */
  MSRT_LAYOUT_BLOCKED8 = 2 /* batch, channels / 8, space..., 8 channels; channels padded with zeros
                              to a multiple of 8 */
};

typedef struct msrt_shape {
  msrt_dtype dtype;            /* 0: no tensor (left out, or a list or function) */
  int32_t rank;                /* -1: unknown */
  int64_t dims[MSRT_MAX_RANK]; /* negative where open: MSRT_UNKNOWN_DIM, or below it a number that
                                  is the same where the size is */
} msrt_shape;

typedef struct msrt_value_view {
  int64_t id; /* equal where the value is the same; -1: an optional input that is left out, an
                 output that nobody wants */
  msrt_shape declared; /* what is compiled must run for every shape that this admits */
  msrt_shape typical;  /* every dim known, as far as can be guessed: costs and algorithms are chosen
                          for this */
  const void* constant;    /* the bytes where the value is a constant; valid until every kernel
                              compiled from this graph is destroyed */
  int32_t is_graph_output; /* non-zero: the application reads it, whatever else does */
  int32_t reserved;
} msrt_value_view;

enum {
  MSRT_ATTR_IS_DEFAULT = 1, /* the model does not say it: the op's default */
  MSRT_ATTR_IS_LOCAL = 2,   /* tells a piece of a node where it stands in the whole */
  MSRT_ATTR_IS_REQUIRED = 4 /* in rules: a node without it is refused */
};

typedef struct msrt_attr_view {
  const char* name;
  msrt_attr_kind kind; /* single values have count 1 and stand in the list of their kind */
  uint32_t flags;
  size_t count;
  const int64_t*
      ints; /* also of MSRT_ATTR_GRAPH and MSRT_ATTR_GRAPHS: numbers of graphs of the module */
  const double* floats;
  const char* const* strings;
  msrt_dtype dtype;
  msrt_shape tensor_shape; /* MSRT_ATTR_TENSOR */
  const void* tensor_data;
} msrt_attr_view;

typedef struct msrt_node_view {
  uint32_t struct_size;
  int32_t version; /* of the op's meaning; 0: the one this library has */
  const char *domain, *op, *name;
  const msrt_value_view* inputs;
  size_t input_count;
  const msrt_value_view* outputs;
  size_t output_count;
  const msrt_attr_view*
      attrs; /* those of the model, then defaults of the op that the model leaves out */
  size_t attr_count;
  double flops, bytes; /* at typical shapes, by the op's entry; 0 for an op without one */
} msrt_node_view;

/* Nodes in an order in which they can run. Everything is valid while the graph is. Ids of values
 * mean something within their graph only. */
typedef struct msrt_graph_view {
  uint32_t struct_size;
  uint32_t reserved;
  const void* graph;
  size_t node_count;
  /* NULL if index >= node_count. */
  const msrt_node_view* (*node)(const void* graph, size_t index);
  /* What it is called with and what it gives, in order. An output may be an input or a constant, or
   * be named twice. */
  const msrt_value_view* inputs;
  size_t input_count;
  const msrt_value_view* outputs;
  size_t output_count;
  /* The graph of the module that an attribute of kind MSRT_ATTR_GRAPH or MSRT_ATTR_GRAPHS means by
   * this number. It is valid as long as this one. Graphs may call themselves: whoever walks them
   * counts the levels. NULL: there is none to be seen (in a pass, none ever is). */
  const struct msrt_graph_view* (*callee)(const void* graph, int64_t number);
} msrt_graph_view;

/* ---- a delegate ------------------------------------------------------------------------------ */

typedef struct msrt_in_place {
  uint32_t input, output;
} msrt_in_place;

/* One or several nodes that the delegate can run as one step, and how. Inputs and outputs of one
 * node are the node's. For several nodes: inputs are the values that the nodes read and do not
 * make, constants included; outputs those that they make and somebody else reads; each once, in
 * order of first mention. A candidate of several nodes is used only if no value that it makes is
 * read by another node before its last one has run.
 *
 * A control node (If, Loop, Scan, msrt.While, msrt.SwitchN, msrt.Call) may be offered too, alone:
 * the delegate then runs it whole, with the graphs that it calls (msrt_graph_view.callee), as one
 * step. The other choice is the host's way, which carries the node out itself and places its
 * graphs; the cheaper one is taken. The inputs of the node are, in this order: condition or index
 * of If and SwitchN, trip count and condition of Loop; what is carried (attribute `carried` counts
 * it); what a Scan scans; what the graphs capture. The host uses such a candidate only if
 *   - all inputs and outputs of the node are tensors, and the sizes of the outputs follow from
 * those of the inputs, whatever the data: they have memory before it runs, and bind tells their
 * shapes;
 *   - no node inside has effects: the session's state and random numbers are the host's;
 *   - no graph inside calls itself, and no pin of the user keeps a node inside away from the
 * delegate.
 * `--explain` shows what was in the way. `seconds` counts all branches as equally likely, and a
 * loop as MSRT_TYPICAL_TRIPS iterations where its trip count is no constant. Constants of the
 * graphs inside are the delegate's to move; the host counts their bytes against the memory of the
 * device, beside workspace_bytes. Cancellation, deadlines and limits on calls act between steps, so
 * never inside of it. */
#define MSRT_TYPICAL_TRIPS 16
typedef struct msrt_candidate {
  uint32_t struct_size;
  int32_t exact; /* non-zero: bits of an output element do not depend on the extent of the piece it
                    is computed in */
  const uint32_t* nodes; /* ascending */
  size_t node_count;
  const msrt_layout*
      input_layouts; /* one for each input; NULL: all plain. Constants are always plain */
  const msrt_layout* output_layouts;
  size_t input_count, output_count;
  double seconds;         /* estimated for one run at the typical shapes */
  size_t workspace_bytes; /* of the device's memory, beyond the tensors */
  const char* algorithm;  /* for people */
  /* Pairs that may share memory if they have the same number of bytes and nobody needs the input
   * afterwards. */
  const msrt_in_place* in_place;
  size_t in_place_count;
  int32_t
      packs_constants; /* non-zero: constants are taken at compile, and run gets NULL for them */
  int32_t reduced;     /* non-zero: numbers are rounded to fewer bits than their type has; only for
                          models that allow it */
  uint64_t tag;        /* the delegate's own; comes back in compile */
} msrt_candidate;

typedef struct msrt_query_sink {
  uint32_t struct_size;
  uint32_t reserved;
  void* sink;
  void (*candidate)(void* sink, const msrt_candidate* candidate); /* copied */
  void (*refuse)(void* sink, uint32_t node, const char* reason);  /* "grouped convolution in f64" */
} msrt_query_sink;

/* The shapes of one node of a candidate at bind: every dim known. */
typedef struct msrt_bound_node {
  const msrt_shape* inputs; /* dtype 0 where left out */
  size_t input_count;
  const msrt_shape* outputs;
  size_t output_count;
  const void* const* known; /* the bytes of each input whose value is known by now, else NULL; valid
                               during the call */
} msrt_bound_node;

/* Memory that a kernel needs only while run is called, on the host. Valid until the next call. NULL
 * when there is none: return the error. */
typedef struct msrt_scratch {
  void* context;
  void* (*get)(void* context, size_t bytes); /* aligned to 64 */
} msrt_scratch;

typedef struct msrt_run_args {
  uint32_t struct_size;
  uint32_t reserved;
  const msrt_host_api* host;
  const void* const*
      inputs; /* of the candidate; NULL where left out. On the delegate's device if it has one */
  size_t input_count;
  void* const* outputs; /* NULL where nobody wants the output */
  size_t output_count;
  const msrt_scratch* scratch;
  void* stream; /* NULL for a delegate without a device. Otherwise run may return before the work is
                   done */
} msrt_run_args;

/* Memory and streams of its own. The host calls the functions of one stream from one thread at a
 * time, and reads or frees host memory that a copy uses only after waiting for it. Work of one
 * stream runs in order; a failure there is reported by the next event_wait or stream_synchronize.
 */
typedef struct msrt_device_api {
  uint32_t struct_size;
  uint32_t reserved;
  double launch_seconds; /* paid whenever the work of the program comes back to this device */
  msrt_status (*memory)(
      void* self,
      size_t* free_bytes); /* that can still be allocated; SIZE_MAX: as much as one likes */
  /* Aligned to 64, never NULL without an error; so are streams and events never NULL. The host
   * never dereferences it. */
  msrt_status (*allocate)(void* self, const msrt_host_api* host, size_t bytes, void** out);
  void (*deallocate)(void* self, void* pointer, size_t bytes);
  msrt_status (*stream_create)(void* self, const msrt_host_api* host, void** stream);
  void (*stream_destroy)(void* self, void* stream); /* the stream is idle */
  msrt_status (*stream_synchronize)(void* self, const msrt_host_api* host,
                                    void* stream); /* returns the first error since the last */
  msrt_status (*copy_to_device)(void* self, const msrt_host_api* host, void* stream, void* to,
                                const void* from, size_t bytes);
  msrt_status (*copy_to_host)(void* self, const msrt_host_api* host, void* stream, void* to,
                              const void* from, size_t bytes);
  msrt_status (*event_create)(void* self, const msrt_host_api* host, void** event);
  void (*event_destroy)(void* self, void* event);
  msrt_status (*event_record)(void* self, const msrt_host_api* host, void* event, void* stream);
  msrt_status (*event_wait)(void* self, const msrt_host_api* host,
                            void* event); /* until all before the last record is done */
  /* What a copy costs, either way, if the device knows; where copy_bytes_per_second is 0, the host
   * measures both. */
  double copy_seconds, copy_bytes_per_second;
} msrt_device_api;

/* `self` is what was registered with it. All functions may be called from several threads at once.
 * query must be cheap (rules and a cost model): every delegate is asked about everything. compile
 * packs weights and chooses the algorithm for good. bind runs for each new set of shapes and must
 * cost microseconds: what is expensive waits for prepare. */
typedef struct msrt_delegate_api {
  uint32_t struct_size;
  uint32_t plugin_abi; /* MSRT_PLUGIN_ABI */
  const char* name;    /* [a-z0-9_]+ */
  msrt_status (*query)(void* self, const msrt_host_api* host, const msrt_graph_view* graph,
                       const msrt_query_sink* sink);
  /* The graph outlives the kernel. */
  msrt_status (*compile)(void* self, const msrt_host_api* host, const msrt_graph_view* graph,
                         const msrt_candidate* candidate, void** kernel);
  void (*kernel_destroy)(void* self, void* kernel);
  size_t (*kernel_bytes)(void* self, const void* kernel); /* packed weights; may be NULL */
  msrt_status (*bind)(void* self, const msrt_host_api* host, void* kernel,
                      const msrt_bound_node* nodes, size_t node_count, void** bound);
  void (*bound_destroy)(void* self, void* bound);
  size_t (*bound_bytes)(void* self, const void* bound); /* beyond a few hundred; may be NULL */
  msrt_status (*prepare)(void* self, const msrt_host_api* host,
                         void* bound); /* what run would otherwise do the first time; may be NULL */
  msrt_status (*run)(void* self, void* bound, const msrt_run_args* args);
  const msrt_device_api*
      device; /* NULL: works on the host's memory, and run returns when the work is done */
  void (*destroy)(void* self); /* nothing of it is in use any more; may be NULL */
  /* The types beside f32 that it computes in, as MSRT_BITs.
   * MSRT_F16, MSRT_BF16: models reach it in these types as they are. In those that no delegate
   * names, nodes are computed in f32, and all delegates see f32 nodes with Casts around them.
   * MSRT_I8: it multiplies bytes faster than f32. Products between DequantizeLinear and
   * QuantizeLinear then reach delegates as msrt.QuantizedMatMul, msrt.QuantizedConv and
   * msrt.QuantizedAdd; otherwise all of them see f32 nodes. */
  uint32_t native_types;
  uint32_t reserved; /* must be 0 */
} msrt_delegate_api;

/* Models that are loaded from now on can use it. `api` is copied, `name` and `device` too. If this
 * call fails, destroy is not called. */
MSRT_API msrt_status msrt_runtime_register_delegate(msrt_runtime* runtime,
                                                    const msrt_delegate_api* api, void* self);

/* ---- a kernel -------------------------------------------------------------------------------- */

/* One way to run one op on the host: a smaller door than a delegate. The kernels that are
 * registered make up the delegate "kernels", and each is a candidate that competes by its cost with
 * whatever else can run the node. All callbacks may be called from several threads at once; `user`
 * is what was registered with them. */

/* For msrt_kernel_desc.types and .layouts: MSRT_BIT(MSRT_F32) | MSRT_BIT(MSRT_F16). */
#define MSRT_BIT(number) (UINT32_C(1) << (number))

/* What a kernel runs on. Every dim is known. */
typedef struct msrt_kernel_args {
  uint32_t struct_size;
  uint32_t reserved;
  const msrt_host_api* host;
  const msrt_node_view* node;     /* as pack saw it: attributes, declared and typical shapes */
  const msrt_shape* input_shapes; /* dtype 0 where left out */
  const msrt_layout* input_layouts;
  const void* const* inputs; /* NULL where left out */
  size_t input_count;
  const msrt_shape* output_shapes;
  const msrt_layout* output_layouts;
  void* const* outputs; /* NULL where nobody wants the output */
  size_t output_count;
  const msrt_scratch* scratch;
} msrt_kernel_args;

/* An attribute of an op that an application defines. */
typedef struct msrt_attr_rule {
  const char* name;
  msrt_attr_kind kind; /* MSRT_ATTR_INT to MSRT_ATTR_TENSOR */
  uint32_t flags;  /* MSRT_ATTR_IS_REQUIRED, or MSRT_ATTR_IS_LOCAL: integers that localize sets and
                      no model may have */
  double min, max; /* of the number, or of each in the list; both 0: any */
  double default_number;      /* of a single number that is left out */
  const char* default_string; /* NULL: "" */
} msrt_attr_rule;

/* The iteration space of an op: the axes along which its work can be cut, and which part of each
 * tensor a part of the work touches. */
#define MSRT_MAX_AXES 16
typedef int32_t msrt_axis_kind;
enum {
  MSRT_AXIS_PARALLEL = 0, /* pieces are independent and read their own part of the inputs */
  MSRT_AXIS_WINDOW = 1,   /* pieces are independent and read overlapping parts */
  MSRT_AXIS_REDUCE =
      2, /* pieces give partial results of the whole output, to be joined with the monoid */
  MSRT_AXIS_WHOLE = 3 /* must not be cut */
};
typedef int32_t msrt_monoid;
enum {
  MSRT_MONOID_NONE = 0,
  MSRT_MONOID_SUM = 1,
  MSRT_MONOID_PRODUCT = 2,
  MSRT_MONOID_MAX = 3,
  MSRT_MONOID_MIN = 4
};
typedef struct msrt_axis {
  int64_t extent;
  msrt_axis_kind kind;
  msrt_monoid monoid; /* of a reduce axis */
} msrt_axis;

/* [begin, end) along each axis, in the coordinates of the whole. */
typedef struct msrt_box {
  int32_t rank;
  int32_t reserved;
  int64_t begin[MSRT_MAX_AXES], end[MSRT_MAX_AXES];
} msrt_box;

/* Where localize puts the attributes of a piece. Copied. */
typedef struct msrt_attr_sink {
  void* sink;
  void (*set_int)(void* sink, const char* name, int64_t value);
  void (*set_ints)(void* sink, const char* name, const int64_t* values, size_t count);
} msrt_attr_sink;

/* What an op means that the library does not know. Nodes have passed the rules for attributes and
 * numbers before a callback sees them. In views that these callbacks get, declared and typical are
 * the same, `constant` is set wherever the value is known by now, ids tell only what is left out,
 * and flops and bytes are 0. */
typedef struct msrt_op_desc {
  uint32_t struct_size;
  int32_t effects; /* non-zero: does more than give outputs, or gives others each time; never
                      merged, dropped or computed ahead */
  uint32_t min_inputs, max_inputs; /* at most 1024; those beyond min_inputs may be left out */
  uint32_t min_outputs, max_outputs;
  const msrt_attr_rule* attrs; /* a node with others is refused */
  size_t attr_count;
  /* The types of all outputs from the inputs, whose rank and dims may be open: then the output's
   * are, where they depend on them. An open dim of an input may be passed on as it is. Refuses
   * wrong uses, with a message. Runs at load, and at each new set of shapes when every dim is
   * known; what it says then must agree with what it said before. */
  msrt_status (*infer)(void* user, const msrt_host_api* host, const msrt_node_view* node,
                       msrt_shape* outputs);
  /* Every dim is known; a multiply-add counts two. NULL: one for each output element. */
  double (*flops)(void* user, const msrt_node_view* node);
  /* The iteration space; every dim is known. axes, operands and results together, or none: the op
   * needs its inputs whole. `axes` has room for MSRT_MAX_AXES; MSRT_UNSUPPORTED: this node cannot
   * be cut. For a box of the space, operands and results give the box of each input it reads and
   * each output it writes, of the tensor's rank and within its dims (rank 0 where left out). The
   * pieces must be what infer says of those inputs, bit for bit if the kernel is exact. localize
   * (may be NULL) sets the attributes that tell a piece where it is. */
  msrt_status (*axes)(void* user, const msrt_host_api* host, const msrt_node_view* node,
                      msrt_axis* axes, int32_t* axis_count);
  msrt_status (*operands)(void* user, const msrt_host_api* host, const msrt_node_view* node,
                          const msrt_box* box, msrt_box* inputs);
  msrt_status (*results)(void* user, const msrt_host_api* host, const msrt_node_view* node,
                         const msrt_box* box, msrt_box* outputs);
  msrt_status (*localize)(void* user, const msrt_host_api* host, const msrt_node_view* node,
                          const msrt_box* box, const msrt_box* inputs, const msrt_box* outputs,
                          const msrt_attr_sink* sink);
} msrt_op_desc;

typedef struct msrt_kernel_desc {
  uint32_t struct_size;
  uint32_t plugin_abi;     /* MSRT_PLUGIN_ABI */
  const char *domain, *op; /* domain NULL or "": ONNX's */
  const char*
      name; /* for people, in reports and errors; differs from those of other kernels for the op */
  int32_t version; /* of the op's meaning; 0: the one that the library has. A known op must have it;
                      a new one gets it (0: 1) */
  int32_t exact;  /* non-zero: bits of an output element do not depend on the extent of the piece it
                     is computed in */
  uint32_t types; /* bits of the element types that inputs and outputs may have; 0: any */
  uint32_t layouts; /* bits of the layouts that it runs in: the tensors that can have one (rank 3 to
                       5, no constant) all have the same, the others are plain; 0: plain */
  const msrt_in_place*
      in_place; /* as in msrt_candidate; pairs that a node does not have are ignored */
  size_t in_place_count;
  void* user;
  void (*destroy)(void* user); /* nothing of it is in use any more; may be NULL */
  /* For an op that nobody has defined yet; NULL for every other. Without one, models must declare
   * the types of an unknown op's outputs, with every dim. */
  const msrt_op_desc* meaning;
  /* Zero: not this node, `*reason` (copied) says why. NULL: every node of the op with these types.
   */
  int32_t (*accepts)(void* user, const msrt_node_view* node, const char** reason);
  /* Estimated for one run at the typical shapes. NULL: memory at the machine's full speed,
   * arithmetic at half of it. */
  double (*seconds)(void* user, const msrt_host_api* host, const msrt_node_view* node);
  /* Once for each node that it was chosen for: weights in another order, tables. packed_destroy
   * belongs to it; packed_bytes may be NULL. */
  msrt_status (*pack)(void* user, const msrt_host_api* host, const msrt_node_view* node,
                      void** packed);
  void (*packed_destroy)(void* user, void* packed);
  size_t (*packed_bytes)(void* user, const void* packed);
  /* `packed` is NULL without pack. MSRT_DELEGATE: the model is placed again without registered
   * kernels, and the run repeated. */
  msrt_status (*run)(void* user, const void* packed, const msrt_kernel_args* args);
} msrt_kernel_desc;

/* Models that are loaded and graphs that are begun from now on can use it. Everything in `kernel`
 * is copied. If this call fails, destroy is not called. */
MSRT_API msrt_status msrt_runtime_register_kernel(msrt_runtime* runtime,
                                                  const msrt_kernel_desc* kernel);

/* ---- passes and importers -------------------------------------------------------------------- */

/* How a pass or an importer changes a graph. Values are known by the ids of views and of what was
 * added. Everything given is copied; the result is checked as a whole afterwards, and what is wrong
 * with it is an error that names the pass. */
typedef struct msrt_graph_editor {
  uint32_t struct_size;
  uint32_t reserved;
  void* editor;
  msrt_status (*add_constant)(void* editor, const char* name, const msrt_shape* shape,
                              const void* data, int64_t* value);
  /* Stands before node `before` of the graph's view (SIZE_MAX: after the last), later than what was
   * added there earlier. Input ids may be -1 where an optional input is left out. Types of outputs
   * follow from the op; `declared` (may be NULL) gives them for an op that the library does not
   * know. */
  msrt_status (*add_node)(void* editor, size_t before, const char* domain, const char* op,
                          const char* name, const int64_t* inputs, size_t input_count,
                          const msrt_attr_view* attrs, size_t attr_count,
                          const msrt_shape* declared, int64_t* outputs, size_t output_count);
  /* Whatever reads `from`, reads `to` from now on; an output of the graph keeps its name. Nodes
   * that nobody needs any more are dropped. */
  msrt_status (*replace)(void* editor, int64_t from, int64_t to);
} msrt_graph_editor;

/* A pass of one's own: runs over every graph of a model, when it is converted and when it is
 * loaded, after the library has simplified it and before it fuses nodes. It must keep the meaning,
 * and should do nothing the second time. Its name is the one to switch it off by. */
typedef struct msrt_pass_desc {
  uint32_t struct_size;
  uint32_t plugin_abi; /* MSRT_PLUGIN_ABI */
  const char* name;
  void* user;
  void (*destroy)(void* user); /* may be NULL */
  msrt_status (*run)(void* user, const msrt_host_api* host, const msrt_graph_view* graph,
                     const msrt_graph_editor* editor);
} msrt_pass_desc;

/* What msconvert makes of a node of an ONNX file whose op the library does not know: nodes that it
 * does, or one of the application's. `node` has the attributes as they stand in the file, and as
 * its version the opset that the file imports for the domain. Sets one id for each output. */
typedef struct msrt_importer_desc {
  uint32_t struct_size;
  uint32_t plugin_abi;     /* MSRT_PLUGIN_ABI */
  const char *domain, *op; /* domain NULL or "": ONNX's */
  void* user;
  void (*destroy)(void* user); /* may be NULL */
  msrt_status (*import)(void* user, const msrt_host_api* host, const msrt_node_view* node,
                        const msrt_graph_editor* editor, int64_t* outputs);
} msrt_importer_desc;

/* ---- a plugin -------------------------------------------------------------------------------- */

typedef struct msrt_plugin_host {
  uint32_t struct_size;
  uint32_t plugin_abi;
  void* host;
  void (*fail)(void* host, const char* message);
  msrt_status (*register_delegate)(void* host, const msrt_delegate_api* api, void* self);
  const char* options; /* what the application passed, never NULL */
  msrt_status (*register_kernel)(void* host, const msrt_kernel_desc* kernel);
  msrt_status (*register_pass)(void* host, const msrt_pass_desc* pass);
  msrt_status (*register_importer)(void* host, const msrt_importer_desc* importer);
} msrt_plugin_host;

/* The one symbol that a plugin exports. If it fails, what it registered so far is taken back. */
#define MSRT_PLUGIN_ENTRY "msrt_plugin_register"
typedef msrt_status (*msrt_plugin_register_fn)(const msrt_plugin_host* host);

/* Loads a shared library and calls its entry. It stays loaded until nothing of it is in use.
 * `options` may be NULL. */
MSRT_API msrt_status msrt_runtime_load_plugin(msrt_runtime* runtime, const char* path,
                                              const char* options);

#ifdef __cplusplus
}
#endif

#endif /* MSRT_PLUGIN_H */
