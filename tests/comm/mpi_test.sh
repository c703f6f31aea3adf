#!/usr/bin/env bash
# Runs the cases of mpi_ranks under mpirun: mpi_test.sh MPIRUN MPI_RANKS
set -u
mpirun=$1 ranks=$2 failures=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# run RANKS CASE: a job that hangs is a failure too.
run() {
  timeout 60 "$mpirun" -n "$1" --oversubscribe "$ranks" "$2" && return
  echo "FAILED: $1 ranks, $2" >&2
  failures=$((failures + 1))
}

run 8 operations
run 2 deadlines
run 4 idle
run 2 failures
run 3 failures

# A rank that is killed ends the job within two seconds, and mpirun reports it.
if output=$(timeout 60 "$mpirun" -n 3 --oversubscribe "$ranks" killed 2>/dev/null); then
  echo 'FAILED: the job succeeded although a rank was killed' >&2
  failures=$((failures + 1))
fi
ended=$(($(date +%s%N) / 1000000))
killed=$(sed -n 's/^killed //p' <<<"$output")
echo "a job with a killed rank ended after $((ended - ${killed:-0})) ms"
if ((ended - ${killed:-0} > 2000)); then
  echo 'FAILED: that is more than 2000 ms' >&2
  failures=$((failures + 1))
fi
exit $((failures != 0))
