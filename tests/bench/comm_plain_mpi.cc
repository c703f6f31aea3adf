// comm_plain_mpi PERCENT, under mpirun: all-reduce by MPI itself, for comm_bench.
#include <mpi.h>

#include <cstdlib>

#include "tests/bench/comm_measure.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  msrt::bench::MeasureAllReduce("plain OpenMPI", rank == 0, argc > 1 ? std::atoi(argv[1]) : 100,
                                [](float* data, size_t count) {
                                  MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(count),
                                                MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
                                });
  MPI_Finalize();
  return 0;
}
