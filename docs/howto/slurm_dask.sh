#!/bin/bash
# One job: a Dask scheduler, workers on all its nodes, and the command that uses them. Submit with what follows
# `truesource`, without --scheduler, from a folder that all nodes see:
#
#   sbatch --nodes=4 slurm_dask.sh bound grammar.npz corpus/ -o scores/
#SBATCH --job-name=truesource
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=32
#SBATCH --mem-per-cpu=2G
#SBATCH --time=04:00:00
#SBATCH --output=%x-%j.log
set -euo pipefail

file="$PWD/scheduler-${SLURM_JOB_ID}.json"
export TRUESOURCE_THREADS=1 # a process for each core, each with one thread
export OMP_NUM_THREADS=1
end() {
  for process in "${workers:-}" "${scheduler:-}"; do # workers first: without a scheduler they would wait for it
    kill "$process" 2>/dev/null && wait "$process" || true
  done
  rm -f "$file"
}
trap end EXIT

dask scheduler --port 0 --no-dashboard --scheduler-file "$file" &
scheduler=$!
until [[ -s "$file" ]]; do
  kill -0 "$scheduler"
  sleep 0.2
done
srun dask worker --scheduler-file "$file" --nworkers "${SLURM_CPUS_PER_TASK:-1}" --nthreads 1 --no-dashboard \
  --local-directory "${TMPDIR:-/tmp}" &
workers=$!
truesource "$@" --scheduler "$file"
