/* A plugin for the tests of --plugin: a delegate that can run nothing and says so with the options
 * that it was given. With the option hang=N it never answers on rank N. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/abi/msrt_plugin.h"

static char reason[128];
static int hanging_rank = -1;

static int rank_of_process(void) {
  const char* rank = getenv("MSRT_RANK");
  if (rank == NULL) rank = getenv("OMPI_COMM_WORLD_RANK");
  return rank == NULL ? 0 : atoi(rank);
}

static msrt_status query(void* self, const msrt_host_api* host, const msrt_graph_view* graph,
                         const msrt_query_sink* sink) {
  (void)self, (void)host;
  if (rank_of_process() == hanging_rank) {
    fprintf(stderr, "rank %d hangs\n", hanging_rank);
    for (;;) pause();
  }
  for (size_t n = 0; n < graph->node_count; ++n) sink->refuse(sink->sink, (uint32_t)n, reason);
  return MSRT_OK;
}

static msrt_status compile(void* self, const msrt_host_api* host, const msrt_graph_view* graph,
                           const msrt_candidate* candidate, void** kernel) {
  (void)self, (void)graph, (void)candidate, (void)kernel;
  host->fail(host->host, "idle compiles nothing");
  return MSRT_UNSUPPORTED;
}

static msrt_status bind(void* self, const msrt_host_api* host, void* kernel,
                        const msrt_bound_node* nodes, size_t node_count, void** bound) {
  (void)self, (void)host, (void)kernel, (void)nodes, (void)node_count, (void)bound;
  return MSRT_INTERNAL;
}

static msrt_status run(void* self, void* bound, const msrt_run_args* args) {
  (void)self, (void)bound, (void)args;
  return MSRT_INTERNAL;
}

static void destroy(void* self, void* object) { (void)self, (void)object; }

MSRT_API msrt_status msrt_plugin_register(const msrt_plugin_host* host) {
  if (strcmp(host->options, "fail") == 0) {
    host->fail(host->host, "told to fail");
    return MSRT_DELEGATE;
  }
  if (strncmp(host->options, "hang=", 5) == 0) hanging_rank = atoi(host->options + 5);
  snprintf(reason, sizeof(reason), "idle with options '%s'", host->options);
  msrt_delegate_api api = MSRT_INIT(msrt_delegate_api);
  api.plugin_abi = MSRT_PLUGIN_ABI;
  api.name = "idle";
  api.query = query;
  api.compile = compile;
  api.kernel_destroy = destroy;
  api.bind = bind;
  api.bound_destroy = destroy;
  api.run = run;
  return host->register_delegate(host->host, &api, NULL);
}
