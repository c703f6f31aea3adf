/* Extension interface of msrt: delegates (providers of kernels, on the host or on devices), kernels
 * (one op, known or new), passes, importers, and plugins (a shared library that registers any of
 * them). msrt_device.h, which this header includes, has devices (memory and streams) and the host
 * services. Plain C99; the delegates inside msrt use only this interface.
 *
 * A plugin links against no symbol of the library: it receives every function that it calls in a
 * table. The interface is unstable until 1.0: a plugin built for another MSRT_PLUGIN_ABI is refused
 * by name.
 *
 * Function tables, descriptions, candidates, call arguments, and views of nodes and graphs begin
 * with struct_size: a reader uses no field beyond the size that the writer set. Small structs in
 * arrays or inside other structs have none (msrt_shape, msrt_strides, msrt_value_view,
 * msrt_attr_view, msrt_in_place, msrt_bound_node, msrt_scratch, msrt_attr_rule, msrt_axis,
 * msrt_box, msrt_attr_sink): they change only with MSRT_PLUGIN_ABI.
 *
 * Functions return msrt_status and pass the message of an error to host->fail before they return.
 * Nothing may throw or unwind through this interface; an exception that a callback throws
 * nevertheless becomes an error of that call. Codes that functions of a delegate, of its device and
 * of kernels return mean:
 *   MSRT_INVALID_ARGUMENT,  The data or the model is wrong, whichever delegate computes: the
 *   MSRT_INVALID_MODEL      application's call fails.
 *   MSRT_OUT_OF_MEMORY,     The host has no more memory: the application's call fails. From a
 *   MSRT_LIMIT_EXCEEDED     device or a delegate on one: the device is full; as MSRT_DELEGATE.
 *   MSRT_DELEGATE,          Another delegate may succeed: the model is placed again without this
 *   any other code          one, and the run is repeated. A strict model fails with MSRT_DELEGATE.
 * Before a candidate is chosen, the code matters less: a failed query refuses every node, and a
 * failed compile drops that candidate, unless the host has no more memory. Codes of op definitions,
 * passes, importers and plugin entries reach the application unchanged; but MSRT_CANCELLED,
 * MSRT_DEADLINE_EXCEEDED and MSRT_INTERNAL, which only the library returns, become MSRT_DELEGATE.
 */
#ifndef MSRT_PLUGIN_H
#define MSRT_PLUGIN_H

#include "msrt_device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- graph views ----------------------------------------------------------------------------- */

/* Distances between neighbours along each dim of a tensor in memory, in elements: of a tensor that
 * is a part of a larger one. For dim 1 of a blocked tensor: between blocks of channels. The
 * innermost dim of the layout (the channels of a block) has distance 1. All 0: dense. */
typedef struct msrt_strides {
  int64_t dims[MSRT_MAX_RANK];
} msrt_strides;

typedef struct msrt_value_view {
  /* Equal ids are the same value; -1: an omitted optional input, or an output that is not used. */
  int64_t id;
  msrt_shape declared; /* a kernel must run for every shape that this admits */
  /* Every dim known, as far as it can be guessed. Costs and algorithms are chosen for this. */
  msrt_shape typical;
  /* The bytes if the value is a constant, otherwise NULL; valid until every kernel compiled from
   * this graph is destroyed. */
  const void* constant;
  int32_t is_graph_output; /* non-zero: an output of the graph, whether or not nodes read it */
  /* The state slot that the value was read from, and its role; -1: none. A kernel may keep packed
   * forms of a parameter, which changes seldom: see msrt_run_args.packed_input. */
  int32_t state_slot;
  msrt_state_role state_role;
  int32_t reserved;
} msrt_value_view;

enum {
  MSRT_ATTR_IS_DEFAULT = 1, /* not in the model: the op's default */
  MSRT_ATTR_IS_LOCAL = 2,   /* position of a piece of a node in the whole */
  MSRT_ATTR_IS_REQUIRED = 4 /* in rules: a node without it is refused */
};

typedef struct msrt_attr_view {
  const char* name;
  msrt_attr_kind kind; /* a single value has count 1 and is in the list of its kind */
  uint32_t flags;
  size_t count;
  /* Also for MSRT_ATTR_GRAPH and MSRT_ATTR_GRAPHS: numbers of graphs of the module. */
  const int64_t* ints;
  const double* floats;
  const char* const* strings;
  msrt_dtype dtype;
  msrt_shape tensor_shape; /* MSRT_ATTR_TENSOR */
  const void* tensor_data;
} msrt_attr_view;

typedef struct msrt_node_view {
  uint32_t struct_size;
  int32_t version; /* of the op's definition; 0: this library's */
  const char *domain, *op, *name;
  const msrt_value_view* inputs;
  size_t input_count;
  const msrt_value_view* outputs;
  size_t output_count;
  /* The model's attributes, then the op's defaults for those that the model omits. */
  const msrt_attr_view* attrs;
  size_t attr_count;
  double flops, bytes; /* at typical shapes, from the op's definition; 0 if there is none */
} msrt_node_view;

/* Nodes are in an order in which they can run. Everything is valid while the graph is. Value ids
 * have a meaning within their graph only. */
typedef struct msrt_graph_view {
  uint32_t struct_size;
  uint32_t reserved;
  const void* graph;
  size_t node_count;
  /* NULL if index >= node_count. */
  const msrt_node_view* (*node)(const void* graph, size_t index);
  /* In order. An output may be an input or a constant, and may occur twice. */
  const msrt_value_view* inputs;
  size_t input_count;
  const msrt_value_view* outputs;
  size_t output_count;
  /* Returns the graph of the module that attributes of kind MSRT_ATTR_GRAPH and MSRT_ATTR_GRAPHS
   * refer to by this number, valid as long as this one. Graphs may call themselves: bound your
   * recursion. NULL: the graph is not visible (never visible in a pass). */
  const struct msrt_graph_view* (*callee)(const void* graph, int64_t number);
} msrt_graph_view;

/* ---- delegate -------------------------------------------------------------------------------- */

typedef struct msrt_in_place {
  uint32_t input, output;
} msrt_in_place;

/* One or several nodes that the delegate can run as one step, and how. For one node, inputs and
 * outputs are the node's. For several nodes, inputs are the values that the nodes read but do not
 * produce, constants included; outputs are the values that they produce and that are read
 * elsewhere; each once, in order of first mention. A candidate of several nodes is used only if no
 * other node reads a value that it produces before its last node has run.
 *
 * A control node (If, Loop, Scan, msrt.While, msrt.SwitchN, msrt.Call) may be offered too, alone:
 * the delegate then runs it as one step, with the graphs that it calls (msrt_graph_view.callee).
 * The alternative is that the host runs the node itself and places its graphs; the cheaper one is
 * chosen. The inputs of the node are, in this order: condition or index of If and SwitchN, trip
 * count and condition of Loop; carried values (attribute `carried` is their number); scanned values
 * of Scan; captured values of the graphs. The host uses such a candidate only if
 *   - all inputs and outputs of the node are tensors, and the sizes of the outputs follow from
 *     those of the inputs, not from data: memory is planned before the run, and bind gets shapes;
 *   - no node inside has effects: session state and random numbers belong to the host;
 *   - no graph inside calls itself, and no pin of the user excludes the delegate for a node inside.
 * `--explain` shows which condition failed. `seconds` counts all branches as equally likely, and a
 * loop as MSRT_TYPICAL_TRIPS iterations if its trip count is not constant. The delegate moves the
 * constants of the graphs inside; the host counts their bytes against the device's memory, in
 * addition to workspace_bytes. Cancellation, deadlines and call limits act between steps, never
 * inside one. */
#define MSRT_TYPICAL_TRIPS 16
#define MSRT_ANY_DEVICE (-1)

/* The arithmetic of a candidate or kernel names the rule by which an output element is computed:
 * the types, the order of operations, the roundings. Equal names for the same node guarantee equal
 * bits of an element (all NaNs count as equal), whatever piece of the node it is computed in, and
 * whatever the layout, the number of threads, the delegate and the machine; a name whose rule
 * depends on the instruction set says which one it is. NULL promises nothing. The name of a
 * candidate of several nodes holds for each of them. A name has 1 to 64 printable ASCII characters;
 * other than the following, it begins with the name of the delegate or of the kernel's author, so
 * that no two rules share a name.
 *
 * With MSRT_ACCURACY_EXACT every node has one arithmetic, which does not depend on costs, and only
 * candidates with its name are used: the first of "rounded", "winograd4", "fma", the names of
 * delegates in the order in which those were registered (of one delegate: in alphabetical order),
 * "reference". Nodes that only candidates of several nodes run take the name of the first of these;
 * control flow runs on the host unless it is pinned elsewhere. */

/* An output element is the correctly rounded result of the op for the input elements, or one of
 * them unchanged. Of equal elements (-0 and 0), Max and Min return the later operand, and pools and
 * reductions the first element. Integers wrap. */
#define MSRT_ARITHMETIC_ROUNDED "rounded"
/* f32 convolutions and products, each output element a chain of fused multiply-adds. A convolution
 * begins with its bias (or 0) and adds input times weight for each kernel position in row-major
 * order, and there for each input channel of the group; taps outside the input are left out. A
 * gradient of a convolution's weight (msrt.ConvWeightGrad) begins with 0 and adds, for each image
 * and there for each output in row-major order, input times gradient in the same way. A product
 * begins with 0 and adds along the depth; then come, each rounded, the factor alpha and the
 * bias (for Gemm beta times C), with alpha and beta in f32. Last, each rounded, the residual and an
 * activation of one operation (Relu, Clip, LeakyRelu). */
#define MSRT_ARITHMETIC_FMA "fma"
/* f32 convolutions of two spatial axes with a 3x3 kernel, strides and dilations 1, one group and at
 * least 32 input and 32 output channels, by Winograd's F(4x4, 3x3) with the points 0, sqrt(1/2),
 * -sqrt(1/2), sqrt(2), -sqrt(2) and infinity. Errors are about twice those of a chain, 1e-6 of the
 * range of the results. Tiles of 4x4 results begin at multiples of 4 of the whole output, so
 * candidates have a granule of 4 in both spatial dims. Inputs outside the whole input are zeros.
 * Fused multiply-adds transform each tile, columns first; transformed weights are computed in
 * double and rounded once. At each of the 36 points a chain of fused multiply-adds begins with 0
 * and adds along the input channels. To the transformed result are added, each rounded, the bias
 * and the residual. If that is not finite, the element is computed as in "fma". Last comes an
 * activation of one operation. delegates/cpu/vector/winograd.cc has the transforms. */
#define MSRT_ARITHMETIC_WINOGRAD4 "winograd4"
/* The plain loops of the delegate `reference`: in double, in the order of the op's definition,
 * rounded at the end, with functions of the C library. */
#define MSRT_ARITHMETIC_REFERENCE "reference"

typedef struct msrt_candidate {
  uint32_t struct_size;
  uint32_t reserved;
  const char* arithmetic; /* NULL: no promise */
  const uint32_t* nodes;  /* ascending */
  size_t node_count;
  /* One for each input or output; NULL: all plain. Constants are always plain. */
  const msrt_layout* input_layouts;
  const msrt_layout* output_layouts;
  size_t input_count, output_count;
  double seconds;         /* estimated for one run at the typical shapes */
  size_t workspace_bytes; /* memory beyond the tensors, at the typical shapes */
  const char* algorithm;  /* name for reports */
  /* Pairs that may share memory if they have the same number of bytes and the input is not needed
   * afterwards. */
  const msrt_in_place* in_place;
  size_t in_place_count;
  /* Non-zero: compile takes the constants, and run gets NULL for them. */
  int32_t packs_constants;
  /* Non-zero: computes with fewer bits than the types have; only for models that allow it. */
  int32_t reduced;
  uint64_t tag; /* for the delegate's own use; passed back to compile */
  /* Index of the device that it runs on among the delegate's; MSRT_ANY_DEVICE: each of them, at the
   * same cost. compile gets the chosen one. 0 for a delegate on the host. */
  int32_t device;
  /* Non-zero, on the host only: it mostly waits (communication, prefetch). run is called in a
   * thread of the session while the host continues with steps that do not depend on it;
   * parallel_for runs its tasks on that thread. */
  int32_t asynchronous;
  /* Bit i: input or output i may have strides in a piece (msrt_bound_node); the host copies the
   * others, and those from 64 on. */
  uint64_t strided_inputs, strided_outputs;
  /* By dim of output 0: pieces of the node begin at multiples of the granule, counted in the whole
   * output, and end at a multiple or with the whole. 0 or 1: anywhere. For kernels that compute
   * blocks of results together. Candidates of several nodes, which have no pieces, ignore it. */
  int64_t granule[MSRT_MAX_RANK];
} msrt_candidate;

typedef struct msrt_query_sink {
  uint32_t struct_size;
  uint32_t reserved;
  void* sink;
  void (*candidate)(void* sink, const msrt_candidate* candidate); /* copied */
  void (*refuse)(void* sink, uint32_t node, const char* reason);  /* "grouped convolution in f64" */
} msrt_query_sink;

/* One node of a candidate at bind: the whole node, or a piece of it. The same kernel runs both.
 * Every dim is known.
 *
 * A piece is a smaller node: its tensors are parts of the node's, also those that are constants
 * (unless the candidate packs constants), and `attrs` says where it is in the whole. An input may
 * be omitted because its values are in `attrs`. Only candidates of one node get pieces. A kernel
 * that cannot compute a piece returns MSRT_UNSUPPORTED with the reason. */
typedef struct msrt_bound_node {
  const msrt_shape* inputs; /* dtype 0 if omitted */
  size_t input_count;
  const msrt_shape* outputs;
  size_t output_count;
  /* The bytes of each input whose value is known by now, otherwise NULL; valid during the call. */
  const void* const* known;
  /* The attributes in which the piece differs from the compiled node, by name; valid until the
   * bound kernel is destroyed. MSRT_ATTR_IS_DEFAULT: the piece does not have the attribute; the
   * view has the op's default, or count 0 if there is none. */
  const msrt_attr_view* attrs;
  size_t attr_count;
  /* One for each input or output; NULL: all dense. Only where the candidate accepts them. */
  const msrt_strides* input_strides;
  const msrt_strides* output_strides;
} msrt_bound_node;

/* Host memory that a kernel needs only during run. Valid until the next call of get. NULL when
 * there is none: return the error. */
typedef struct msrt_scratch {
  void* context;
  void* (*get)(void* context, size_t bytes); /* aligned to 64 */
} msrt_scratch;

typedef struct msrt_run_args {
  uint32_t struct_size;
  int32_t device; /* the candidate's */
  const msrt_host_api* host;
  /* Inputs of the candidate; NULL if omitted. In the memory of the candidate's device. */
  const void* const* inputs;
  size_t input_count;
  void* const* outputs; /* NULL if the output is not used */
  size_t output_count;
  const msrt_scratch* scratch;
  /* Stream of the device; NULL on the host. With a stream, run may return before the work is done.
   * Arrays and scratch are valid during the call only. */
  void* stream;
  /* As many bytes as workspace_bytes returned, aligned to 64, in the memory of the device; NULL if
   * none. Later work of the stream uses them too. */
  void* workspace;
  /* For each input that is a state slot, the version of its value; 0: not a slot, or a copy of a
   * value that has been overwritten since. Every write changes the version, and equal versions of a
   * slot are equal values, also in other sessions. Work that a device recorded is repeated only
   * while the versions are the same. NULL: all are 0. */
  const uint64_t* input_versions;
  /* Returns an input that is a state slot in a packed form of `bytes` bytes, aligned to 64, in host
   * memory; valid during this call and until the work that it enqueues is done, also if the device
   * records that work. If no session of the model has the form of this version, pack(user, to) is
   * called to write it: once for each version, not for each run. Kernels that name the same packing
   * of a slot share the form. Use this for parameters only: the form of a slot that every run
   * writes is packed in every run, and so is that of an input without a version. Never NULL. */
  msrt_status (*packed_input)(void* packed_context, size_t input, const msrt_packing* packing,
                              size_t bytes, msrt_status (*pack)(void* user, void* to), void* user,
                              const void** out);
  void* packed_context;
} msrt_run_args;

/* `self` is the pointer registered with the table. All functions may be called from several threads
 * at once. query must be cheap (rules and a cost model), since every delegate is asked about every
 * graph. compile packs weights and makes the final choice of the algorithm. bind runs for each new
 * set of shapes and must take microseconds: expensive work belongs in prepare. */
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
  /* Only needed if more than a few hundred bytes; may be NULL. */
  size_t (*bound_bytes)(void* self, const void* bound);
  /* Does the work that the first run would otherwise do; may be NULL. */
  msrt_status (*prepare)(void* self, const msrt_host_api* host, void* bound);
  msrt_status (*run)(void* self, void* bound, const msrt_run_args* args);
  /* Names of the devices that its candidates run on, all registered before it. None: it uses host
   * memory, and run returns when the work is done. */
  const char* const* devices;
  size_t device_count;
  void (*destroy)(void* self); /* called when nothing uses the delegate; may be NULL */
  /* Types besides f32 that the delegate computes in, as MSRT_BITs.
   *   MSRT_F16, MSRT_BF16: it gets nodes of these types unchanged. If no delegate lists a type,
   *     its nodes are computed in f32, and all delegates see f32 nodes with Casts around them.
   *   MSRT_I8: it multiplies 8-bit integers faster than f32. Products between DequantizeLinear and
   *     QuantizeLinear then reach delegates as msrt.QuantizedMatMul, msrt.QuantizedConv and
   *     msrt.QuantizedAdd; otherwise all delegates see f32 nodes. */
  uint32_t native_types;
  uint32_t reserved; /* must be 0 */
  /* Bytes of workspace that run needs for these shapes; the host provides them. NULL: none. */
  size_t (*workspace_bytes)(void* self, const void* bound);
} msrt_delegate_api;

/* Registers a delegate for models that are loaded from now on. `api` and its names are copied. If
 * this call fails, destroy is not called. */
MSRT_API msrt_status msrt_runtime_register_delegate(msrt_runtime* runtime,
                                                    const msrt_delegate_api* api, void* self);

/* ---- kernel ---------------------------------------------------------------------------------- */

/* A kernel is one implementation of one op on the host: a lighter alternative to a delegate. The
 * registered kernels form the delegate "kernels", and each is a candidate that competes by its cost
 * with all others for the node. All callbacks may be called from several threads at once; `user` is
 * msrt_kernel_desc.user. */

/* For msrt_kernel_desc.types and .layouts: MSRT_BIT(MSRT_F32) | MSRT_BIT(MSRT_F16). */
#define MSRT_BIT(number) (UINT32_C(1) << (number))

/* Arguments of a kernel's run. Every dim is known. */
typedef struct msrt_kernel_args {
  uint32_t struct_size;
  uint32_t reserved;
  const msrt_host_api* host;
  /* As passed to pack: attributes, declared and typical shapes. For a piece of the node, `attrs`
   * are those of the piece. */
  const msrt_node_view* node;
  const msrt_shape* input_shapes; /* dtype 0 if omitted */
  const msrt_layout* input_layouts;
  const void* const* inputs; /* NULL if omitted */
  size_t input_count;
  const msrt_shape* output_shapes;
  const msrt_layout* output_layouts;
  void* const* outputs; /* NULL if the output is not used */
  size_t output_count;
  const msrt_scratch* scratch;
} msrt_kernel_args;

/* An attribute of an op that an application defines. */
typedef struct msrt_attr_rule {
  const char* name;
  msrt_attr_kind kind; /* MSRT_ATTR_INT to MSRT_ATTR_TENSOR */
  /* MSRT_ATTR_IS_REQUIRED, or MSRT_ATTR_IS_LOCAL: integers that localize sets and that no model may
   * have. */
  uint32_t flags;
  double min, max;            /* of the number, or of each list element; both 0: any */
  double default_number;      /* of a single number that is omitted */
  const char* default_string; /* NULL: "" */
} msrt_attr_rule;

/* The iteration space of an op: the axes along which its work can be cut, and which part of each
 * tensor a part of the work touches. */
#define MSRT_MAX_AXES 16
typedef int32_t msrt_axis_kind;
enum {
  MSRT_AXIS_PARALLEL = 0, /* pieces are independent and read their own part of the inputs */
  MSRT_AXIS_WINDOW = 1,   /* pieces are independent and read overlapping parts */
  /* Pieces compute partial results of the whole output, which the monoid combines. */
  MSRT_AXIS_REDUCE = 2,
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

/* [begin, end) along each axis, in coordinates of the whole. */
typedef struct msrt_box {
  int32_t rank;
  int32_t reserved;
  int64_t begin[MSRT_MAX_AXES], end[MSRT_MAX_AXES];
} msrt_box;

/* Receives the attributes of a piece from localize. Copied. */
typedef struct msrt_attr_sink {
  void* sink;
  void (*set_int)(void* sink, const char* name, int64_t value);
  void (*set_ints)(void* sink, const char* name, const int64_t* values, size_t count);
} msrt_attr_sink;

/* Definition of an op that the library does not know. Before a callback sees a node, its attributes
 * and its numbers of inputs and outputs have been checked. In the views that these callbacks get,
 * declared and typical are the same, `constant` is set for every value that is known by now, ids
 * only tell which inputs and outputs are omitted, and flops and bytes are 0. */
typedef struct msrt_op_desc {
  uint32_t struct_size;
  /* Non-zero: has side effects, or its outputs differ from call to call; never merged, dropped or
   * computed ahead. */
  int32_t effects;
  uint32_t min_inputs, max_inputs; /* at most 1024; inputs beyond min_inputs may be omitted */
  uint32_t min_outputs, max_outputs;
  const msrt_attr_rule* attrs; /* a node with any other attribute is refused */
  size_t attr_count;
  /* Computes the types of all outputs from the inputs. Rank and dims of inputs may be open; outputs
   * that depend on them are then open too. An open dim of an input may be passed on as it is.
   * Refuses invalid nodes with a message. Runs at load, and again for each new set of shapes with
   * every dim known; both results must agree. */
  msrt_status (*infer)(void* user, const msrt_host_api* host, const msrt_node_view* node,
                       msrt_shape* outputs);
  /* Every dim is known; a multiply-add counts two. NULL: one for each output element. */
  double (*flops)(void* user, const msrt_node_view* node);
  /* The iteration space; every dim is known. Set axes, operands and results together, or none: then
   * the op needs its whole inputs. `axes` has room for MSRT_MAX_AXES; MSRT_UNSUPPORTED: this node
   * cannot be cut. For a box of the space, operands returns the box of each input that it reads and
   * results the box of each output that it writes, with the tensor's rank and within its dims (rank
   * 0 if omitted). The output pieces must be what infer returns for the input pieces, and bit for
   * bit those of the whole if the kernel names its arithmetic. localize (may be NULL) sets the
   * attributes that tell a piece its position. */
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
  /* For reports and errors; differs from the names of other kernels for the op. */
  const char* name;
  /* Version of the op's definition; 0: the library's. A known op must have this version; a new op
   * gets it (0: 1). */
  int32_t version;
  uint32_t reserved;
  const char* arithmetic; /* as in msrt_candidate */
  /* Bits of the element types that inputs and outputs may have; 0: any. */
  uint32_t types;
  /* Bits of the layouts that it runs in; 0: plain. The tensors that can have a layout (rank 3 to 5,
   * not constant) all have the same one; the others are plain. */
  uint32_t layouts;
  /* As in msrt_candidate; pairs that a node does not have are ignored. */
  const msrt_in_place* in_place;
  size_t in_place_count;
  void* user;
  void (*destroy)(void* user); /* called when nothing uses the kernel; may be NULL */
  /* Definition of an op that neither the library nor another kernel defines; NULL for every other
   * op. Without one, models must declare the types of an unknown op's outputs, with every dim. */
  const msrt_op_desc* meaning;
  /* Returns zero to refuse a node, with a reason in `*reason` (copied). NULL: accepts every node of
   * the op with these types. */
  int32_t (*accepts)(void* user, const msrt_node_view* node, const char** reason);
  /* Estimated time of one run at the typical shapes. NULL: assumes the machine's full memory speed
   * and half its arithmetic speed. */
  double (*seconds)(void* user, const msrt_host_api* host, const msrt_node_view* node);
  /* Called once for each node that the kernel was chosen for: reorders weights, builds tables.
   * Requires packed_destroy; packed_bytes may be NULL. */
  msrt_status (*pack)(void* user, const msrt_host_api* host, const msrt_node_view* node,
                      void** packed);
  void (*packed_destroy)(void* user, void* packed);
  size_t (*packed_bytes)(void* user, const void* packed);
  /* `packed` is NULL without pack. If it returns MSRT_DELEGATE, the model is placed again without
   * registered kernels, and the run is repeated. */
  msrt_status (*run)(void* user, const void* packed, const msrt_kernel_args* args);
} msrt_kernel_desc;

/* Registers a kernel for models that are loaded and graphs that are created from now on. Everything
 * in `kernel` is copied. If this call fails, destroy is not called. */
MSRT_API msrt_status msrt_runtime_register_kernel(msrt_runtime* runtime,
                                                  const msrt_kernel_desc* kernel);

/* ---- passes and importers -------------------------------------------------------------------- */

/* Functions by which a pass or an importer changes a graph. Values are identified by the ids in
 * views and those that the functions return. All arguments are copied. The result is checked as a
 * whole afterwards; the error for an invalid one names the pass. */
typedef struct msrt_graph_editor {
  uint32_t struct_size;
  uint32_t reserved;
  void* editor;
  msrt_status (*add_constant)(void* editor, const char* name, const msrt_shape* shape,
                              const void* data, int64_t* value);
  /* Inserts a node before node `before` of the graph's view (SIZE_MAX: after the last), after those
   * inserted there earlier. An input id of -1 omits an optional input. The op determines the types
   * of the outputs; `declared` (may be NULL) has them for an op that the library does not know. */
  msrt_status (*add_node)(void* editor, size_t before, const char* domain, const char* op,
                          const char* name, const int64_t* inputs, size_t input_count,
                          const msrt_attr_view* attrs, size_t attr_count,
                          const msrt_shape* declared, int64_t* outputs, size_t output_count);
  /* All readers of `from` read `to` from now on; an output of the graph keeps its name. Nodes that
   * are no longer needed are dropped. */
  msrt_status (*replace)(void* editor, int64_t from, int64_t to);
} msrt_graph_editor;

/* A user-defined pass. It runs over every graph of a model, at conversion and at load, after the
 * library has simplified the graph and before it fuses nodes. It must preserve the meaning, and
 * should change nothing the second time. Users switch it off by its name. */
typedef struct msrt_pass_desc {
  uint32_t struct_size;
  uint32_t plugin_abi; /* MSRT_PLUGIN_ABI */
  const char* name;
  void* user;
  void (*destroy)(void* user); /* may be NULL */
  msrt_status (*run)(void* user, const msrt_host_api* host, const msrt_graph_view* graph,
                     const msrt_graph_editor* editor);
} msrt_pass_desc;

/* Converts a node of an ONNX file whose op the library does not know, for msconvert: to nodes that
 * the library knows, or to one of the application's ops. `node` has the attributes as they are in
 * the file, and as its version the opset that the file imports for the domain. Sets one id for each
 * output. */
typedef struct msrt_importer_desc {
  uint32_t struct_size;
  uint32_t plugin_abi;     /* MSRT_PLUGIN_ABI */
  const char *domain, *op; /* domain NULL or "": ONNX's */
  void* user;
  void (*destroy)(void* user); /* may be NULL */
  msrt_status (*import)(void* user, const msrt_host_api* host, const msrt_node_view* node,
                        const msrt_graph_editor* editor, int64_t* outputs);
} msrt_importer_desc;

/* ---- plugin ---------------------------------------------------------------------------------- */

typedef struct msrt_plugin_host {
  uint32_t struct_size;
  uint32_t plugin_abi;
  void* host;
  void (*fail)(void* host, const char* message);
  msrt_status (*register_delegate)(void* host, const msrt_delegate_api* api, void* self);
  const char* options; /* the application's string, never NULL */
  msrt_status (*register_kernel)(void* host, const msrt_kernel_desc* kernel);
  msrt_status (*register_pass)(void* host, const msrt_pass_desc* pass);
  msrt_status (*register_importer)(void* host, const msrt_importer_desc* importer);
  msrt_status (*register_device)(void* host, const msrt_device_api* api, void* self);
} msrt_plugin_host;

/* The only symbol that a plugin exports. If it fails, everything it registered is removed again. */
#define MSRT_PLUGIN_ENTRY "msrt_plugin_register"
typedef msrt_status (*msrt_plugin_register_fn)(const msrt_plugin_host* host);

/* Loads a shared library and calls its entry function. The library stays loaded until nothing of it
 * is in use. `options` may be NULL. */
MSRT_API msrt_status msrt_runtime_load_plugin(msrt_runtime* runtime, const char* path,
                                              const char* options);

#ifdef __cplusplus
}
#endif

#endif /* MSRT_PLUGIN_H */
