/* A plugin whose registration is refused. It passes the error on, or continues and fails later,
 * with or without its own reason. */
#include <string.h>

#include "msrt_plugin.h"

MSRT_API msrt_status msrt_plugin_register(const msrt_plugin_host* host) {
  const msrt_status refused = host->register_delegate(host->host, NULL, NULL);
  if (refused == MSRT_OK || strcmp(host->options, "passes it on") == 0) return refused;
  if (strcmp(host->options, "gives a reason") == 0) host->fail(host->host, "there is no such card");
  return MSRT_NOT_FOUND;
}
