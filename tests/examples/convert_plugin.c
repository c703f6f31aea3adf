/* A plugin for msconvert, in C99: an importer and a pass.
 *
 * com.example.Soften(image), an op of some exporter with an attribute `radius`, becomes
 * com.example.Blur with a constant for its taps. That is a user-defined op: custom_op.c
 * has its kernel, which the application loads to run the model.
 *
 * The pass `drop_double_negation` removes Neg(Neg(x)).
 *
 *   msconvert photo.onnx photo.msrt --plugin .../convert_plugin.so
 *   msrun run photo.msrt --plugin .../custom_op.so */
#include <string.h>

#include "msrt_plugin.h"

enum { MOST_TAPS = 63 };

static msrt_status fail(const msrt_host_api* host, const char* message) {
  host->fail(host->host, message);
  return MSRT_INVALID_MODEL;
}

static msrt_status import_soften(void* user, const msrt_host_api* host, const msrt_node_view* node,
                                 const msrt_graph_editor* editor, int64_t* outputs) {
  int64_t radius = 1, inputs[2];
  float taps[MOST_TAPS];
  msrt_shape shape = {MSRT_F32, 1, {0}};
  msrt_status status;
  (void)user;
  if (node->input_count != 1 || node->output_count != 1)
    return fail(host, "Soften takes one image and gives one");
  for (size_t i = 0; i < node->attr_count; ++i) {
    if (strcmp(node->attrs[i].name, "radius") == 0 && node->attrs[i].kind == MSRT_ATTR_INT)
      radius = node->attrs[i].ints[0];
  }
  if (radius < 0 || 2 * radius + 1 > MOST_TAPS) return fail(host, "radius must be from 0 to 31");
  shape.dims[0] = 2 * radius + 1;
  for (int64_t i = 0; i < shape.dims[0]; ++i) taps[i] = 1.0f / (float)shape.dims[0];
  inputs[0] = node->inputs[0].id;
  status = editor->add_constant(editor->editor, "taps", &shape, taps, &inputs[1]);
  if (status != MSRT_OK) return status;
  return editor->add_node(editor->editor, SIZE_MAX, "com.example", "Blur", node->name, inputs, 2,
                          NULL, 0, &node->inputs[0].declared, outputs, 1);
}

static int is_negation(const msrt_node_view* node) {
  return node->domain[0] == '\0' && strcmp(node->op, "Neg") == 0;
}

static msrt_status drop_double_negation(void* user, const msrt_host_api* host,
                                        const msrt_graph_view* graph,
                                        const msrt_graph_editor* editor) {
  (void)user, (void)host;
  for (size_t i = 0; i < graph->node_count; ++i) {
    const msrt_node_view* outer = graph->node(graph->graph, i);
    if (!is_negation(outer)) continue;
    for (size_t j = 0; j < i; ++j) {
      const msrt_node_view* inner = graph->node(graph->graph, j);
      if (!is_negation(inner) || inner->outputs[0].id != outer->inputs[0].id) continue;
      /* Keep values that the application reads by name. */
      if (outer->outputs[0].is_graph_output) continue;
      const msrt_status status =
          editor->replace(editor->editor, outer->outputs[0].id, inner->inputs[0].id);
      if (status != MSRT_OK) return status;
    }
  }
  return MSRT_OK;
}

MSRT_API msrt_status msrt_plugin_register(const msrt_plugin_host* host) {
  msrt_importer_desc importer = MSRT_INIT(msrt_importer_desc);
  msrt_pass_desc pass = MSRT_INIT(msrt_pass_desc);
  msrt_status status;
  importer.plugin_abi = MSRT_PLUGIN_ABI;
  importer.domain = "com.example";
  importer.op = "Soften";
  importer.import = import_soften;
  status = host->register_importer(host->host, &importer);
  if (status != MSRT_OK) return status;
  pass.plugin_abi = MSRT_PLUGIN_ABI;
  pass.name = "drop_double_negation";
  pass.run = drop_double_negation;
  return host->register_pass(host->host, &pass);
}
