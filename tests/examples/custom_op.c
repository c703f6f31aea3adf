/* A plugin with a user-defined op, in C99: com.example.Blur.
 *
 *   y = Blur(image, taps)   image, y: f32[..., rows, columns], taps: f32[2r + 1]
 *
 * Each output is the mean of the (2r + 1) x (2r + 1) pixels around it, weighted with taps along
 * rows and along columns; pixels outside the image do not count. It shows all that an op can
 * define: a shape rule that works with open dims, packing, and an iteration space with windows, so
 * that an image can be blurred in pieces with the same bits.
 *
 * Load it with msrt_runtime_load_plugin(runtime, ".../custom_op.so", NULL). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "msrt_plugin.h"

/* ---- meaning of the op ------------------------------------------------------------------------
 */

/* A piece of an image has rows and columns around it that are read but not blurred: the pixels that
 * its border needs. */
typedef struct margins {
  int64_t top, bottom, left, right;
} margins;

static margins margins_of(const msrt_node_view* node) {
  margins m = {0, 0, 0, 0};
  for (size_t i = 0; i < node->attr_count; ++i) {
    const msrt_attr_view* a = &node->attrs[i];
    if (strcmp(a->name, "margins") != 0) continue;
    m.top = a->ints[0];
    m.bottom = a->ints[1];
    m.left = a->ints[2];
    m.right = a->ints[3];
  }
  return m;
}

static msrt_status refuse(const msrt_host_api* host, const char* what, int64_t number) {
  char text[128];
  snprintf(text, sizeof text, "%s, not %lld", what, (long long)number);
  host->fail(host->host, text);
  return MSRT_INVALID_MODEL;
}

static msrt_status blur_infer(void* user, const msrt_host_api* host, const msrt_node_view* node,
                              msrt_shape* outputs) {
  const msrt_shape *image = &node->inputs[0].declared, *taps = &node->inputs[1].declared;
  const margins m = margins_of(node);
  (void)user;
  if (image->dtype != MSRT_F32)
    return refuse(host, "the image must have element type 2 (f32)", image->dtype);
  if (taps->dtype != MSRT_F32)
    return refuse(host, "taps must have element type 2 (f32)", taps->dtype);
  if (taps->rank >= 0 && taps->rank != 1) return refuse(host, "taps must have rank 1", taps->rank);
  if (taps->rank == 1 && taps->dims[0] >= 0 && taps->dims[0] % 2 == 0)
    return refuse(host, "there must be an odd number of taps", taps->dims[0]);
  if (image->rank >= 0 && image->rank < 2)
    return refuse(host, "the image must have rank 2 or more", image->rank);
  outputs[0] = *image; /* open dims stay open */
  if (image->rank >= 2) {
    int64_t* dims = &outputs[0].dims[image->rank - 2];
    if (dims[0] >= 0) dims[0] -= m.top + m.bottom;
    if (dims[1] >= 0) dims[1] -= m.left + m.right;
  }
  return MSRT_OK;
}

static double blur_flops(void* user, const msrt_node_view* node) {
  const msrt_shape* y = &node->outputs[0].declared;
  double elements = 1;
  (void)user;
  for (int32_t i = 0; i < y->rank; ++i) elements *= (double)y->dims[i];
  return elements * 4 * (double)node->inputs[1].declared.dims[0];
}

/* The space is the output: planes are independent, rows and columns read their neighbours. */
static msrt_status blur_axes(void* user, const msrt_host_api* host, const msrt_node_view* node,
                             msrt_axis* axes, int32_t* axis_count) {
  const msrt_shape* y = &node->outputs[0].declared;
  (void)user, (void)host;
  for (int32_t i = 0; i < y->rank; ++i) {
    axes[i].extent = y->dims[i];
    axes[i].kind = i < y->rank - 2 ? MSRT_AXIS_PARALLEL : MSRT_AXIS_WINDOW;
  }
  *axis_count = y->rank;
  return MSRT_OK;
}

static msrt_status blur_operands(void* user, const msrt_host_api* host, const msrt_node_view* node,
                                 const msrt_box* box, msrt_box* inputs) {
  const msrt_shape *image = &node->inputs[0].declared, *taps = &node->inputs[1].declared;
  const int64_t radius = taps->dims[0] / 2;
  (void)user, (void)host;
  inputs[0] = *box;
  for (int32_t i = image->rank - 2; i < image->rank; ++i) {
    const int64_t begin = box->begin[i] - radius, end = box->end[i] + radius;
    inputs[0].begin[i] = begin < 0 ? 0 : begin;
    inputs[0].end[i] = end > image->dims[i] ? image->dims[i] : end;
  }
  inputs[1].rank = 1;
  inputs[1].begin[0] = 0;
  inputs[1].end[0] = taps->dims[0];
  return MSRT_OK;
}

static msrt_status blur_results(void* user, const msrt_host_api* host, const msrt_node_view* node,
                                const msrt_box* box, msrt_box* outputs) {
  (void)user, (void)host, (void)node;
  outputs[0] = *box;
  return MSRT_OK;
}

static msrt_status blur_localize(void* user, const msrt_host_api* host, const msrt_node_view* node,
                                 const msrt_box* box, const msrt_box* inputs,
                                 const msrt_box* outputs, const msrt_attr_sink* sink) {
  const int32_t row = outputs[0].rank - 2, column = row + 1;
  const int64_t values[4] = {outputs[0].begin[row] - inputs[0].begin[row],
                             inputs[0].end[row] - outputs[0].end[row],
                             outputs[0].begin[column] - inputs[0].begin[column],
                             inputs[0].end[column] - outputs[0].end[column]};
  (void)user, (void)host, (void)node, (void)box;
  sink->set_ints(sink->sink, "margins", values, 4);
  return MSRT_OK;
}

/* ---- kernel -----------------------------------------------------------------------------------
 */

/* Packs the taps, followed by a table: [i * (radius + 1) + j] is one over the sum of the taps
 * inside the image if i taps are outside before the pixel and j after it. */
static size_t table_floats(int64_t radius) {
  return (size_t)(2 * radius + 1 + (radius + 1) * (radius + 1));
}

static void fill_table(const float* taps, int64_t radius, float* table) {
  const int64_t count = 2 * radius + 1;
  float* inverse = table + count;
  memcpy(table, taps, (size_t)count * sizeof(float));
  for (int64_t i = 0; i <= radius; ++i) {
    for (int64_t j = 0; j <= radius; ++j) {
      double sum = 0;
      for (int64_t t = i; t < count - j; ++t) sum += taps[t];
      inverse[i * (radius + 1) + j] = sum == 0 ? 0 : (float)(1 / sum);
    }
  }
}

typedef struct packed_taps {
  size_t floats;
  float table[1]; /* `floats` of them */
} packed_taps;

static msrt_status blur_pack(void* user, const msrt_host_api* host, const msrt_node_view* node,
                             void** packed) {
  const msrt_value_view* taps = &node->inputs[1];
  const int64_t radius = taps->declared.dims[0] / 2;
  packed_taps* p;
  (void)user;
  if (taps->constant == NULL) return MSRT_OK; /* the table is made in each run */
  p = malloc(sizeof *p + table_floats(radius) * sizeof(float));
  if (p == NULL) {
    host->fail(host->host, "no memory for the table of taps");
    return MSRT_OUT_OF_MEMORY;
  }
  p->floats = table_floats(radius);
  fill_table(taps->constant, radius, p->table);
  *packed = p;
  return MSRT_OK;
}

static void blur_packed_destroy(void* user, void* packed) {
  (void)user;
  free(packed);
}

static size_t blur_packed_bytes(void* user, const void* packed) {
  (void)user;
  return ((const packed_taps*)packed)->floats * sizeof(float);
}

/* Blurs along one direction: writes `count` results, `step` apart, from a line of `extent` values,
 * beginning at element `first`. The terms of a sum and their order do not depend on where the piece
 * begins. */
static void blur_line(const float* line, int64_t extent, int64_t step, int64_t first, int64_t count,
                      const float* table, int64_t radius, float* out) {
  const float* inverse = table + 2 * radius + 1;
  for (int64_t n = 0; n < count; ++n) {
    const int64_t at = first + n;
    const int64_t before = at < radius ? radius - at : 0;
    const int64_t after = at + radius >= extent ? at + radius - extent + 1 : 0;
    float sum = 0;
    for (int64_t t = before; t <= 2 * radius - after; ++t)
      sum += table[t] * line[(at - radius + t) * step];
    out[n * step] = sum * inverse[before * (radius + 1) + after];
  }
}

typedef struct blur_job {
  const float *image, *table;
  float *between, *out;
  int64_t rows, columns, out_rows, out_columns, radius;
  margins m;
} blur_job;

static void blur_row(void* context, int64_t row) {
  const blur_job* j = context;
  blur_line(j->image + row * j->columns, j->columns, 1, j->m.left, j->out_columns, j->table,
            j->radius, j->between + row * j->out_columns);
}

static void blur_column(void* context, int64_t index) {
  const blur_job* j = context;
  const int64_t plane = index / j->out_columns, column = index % j->out_columns;
  blur_line(j->between + plane * j->rows * j->out_columns + column, j->rows, j->out_columns,
            j->m.top, j->out_rows, j->table, j->radius,
            j->out + plane * j->out_rows * j->out_columns + column);
}

static msrt_status blur_run(void* user, const void* packed, const msrt_kernel_args* args) {
  const msrt_shape* image = &args->input_shapes[0];
  const msrt_host_api* host = args->host;
  blur_job job;
  int64_t planes = 1;
  size_t between_floats;
  float* memory;
  msrt_status status;
  (void)user;
  for (int32_t i = 0; i < image->rank - 2; ++i) planes *= image->dims[i];
  job.rows = image->dims[image->rank - 2];
  job.columns = image->dims[image->rank - 1];
  job.out_rows = args->output_shapes[0].dims[image->rank - 2];
  job.out_columns = args->output_shapes[0].dims[image->rank - 1];
  job.radius = args->input_shapes[1].dims[0] / 2;
  job.m = margins_of(args->node);
  between_floats = (size_t)(planes * job.rows * job.out_columns);
  memory = args->scratch->get(args->scratch->context,
                              (between_floats + table_floats(job.radius)) * sizeof(float));
  if (memory == NULL) return MSRT_LIMIT_EXCEEDED;
  if (packed == NULL) fill_table(args->inputs[1], job.radius, memory + between_floats);
  job.table = packed == NULL ? memory + between_floats : ((const packed_taps*)packed)->table;
  job.image = args->inputs[0];
  job.between = memory;
  job.out = args->outputs[0];
  status = host->parallel_for(host->host, planes * job.rows, blur_row, &job);
  if (status != MSRT_OK) return status;
  return host->parallel_for(host->host, planes * job.out_columns, blur_column, &job);
}

/* ---- registration -----------------------------------------------------------------------------
 */

MSRT_API msrt_status msrt_plugin_register(const msrt_plugin_host* host) {
  const msrt_attr_rule attrs[] = {
      {.name = "margins", .kind = MSRT_ATTR_INTS, .flags = MSRT_ATTR_IS_LOCAL}};
  msrt_op_desc meaning = MSRT_INIT(msrt_op_desc);
  msrt_kernel_desc kernel = MSRT_INIT(msrt_kernel_desc);
  meaning.min_inputs = meaning.max_inputs = 2;
  meaning.min_outputs = meaning.max_outputs = 1;
  meaning.attrs = attrs;
  meaning.attr_count = 1;
  meaning.infer = blur_infer;
  meaning.flops = blur_flops;
  meaning.axes = blur_axes;
  meaning.operands = blur_operands;
  meaning.results = blur_results;
  meaning.localize = blur_localize;

  kernel.plugin_abi = MSRT_PLUGIN_ABI;
  kernel.domain = "com.example";
  kernel.op = "Blur";
  kernel.name = "two passes";
  kernel.version = 1;
  kernel.arithmetic = "example two passes";
  kernel.types = MSRT_BIT(MSRT_F32);
  kernel.meaning = &meaning;
  kernel.pack = blur_pack;
  kernel.packed_destroy = blur_packed_destroy;
  kernel.packed_bytes = blur_packed_bytes;
  kernel.run = blur_run;
  return host->register_kernel(host->host, &kernel);
}
