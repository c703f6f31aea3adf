// comm_plain_gloo RANK FOLDER PERCENT: all-reduce by Gloo itself over two ranks, for comm_bench.
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdlib>

#include "tests/bench/comm_measure.h"

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int rank = std::atoi(argv[1]);
  gloo::transport::tcp::attr attributes;
  attributes.hostname = "127.0.0.1";
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore store(argv[2]);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, 2);
  context->connectFullMesh(store, device);
  uint32_t tag = 0;
  msrt::bench::MeasureAllReduce(
      "plain Gloo", rank == 0, std::atoi(argv[3]), [&](float* data, size_t count) {
        gloo::AllreduceOptions options(context);
        options.setOutput(data, count);
        options.setReduceFunction(
            static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
        options.setTag(++tag);
        gloo::allreduce(options);
      });
  return 0;
}
