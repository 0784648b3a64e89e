#!/bin/bash
# One job array, one share of the files a task. Submit with what follows `truesource`, without --shard:
#
#   sbatch --array=0-31 slurm_array.sh bound grammar.npz corpus/ -o scores/
#   sbatch --array=0-31 slurm_array.sh sample grammar.npz -n 1000000000 -o corpus/
#
# The output folder must be on a file system that all nodes see. The last task to end completes the result. A task that
# fails is submitted again alone, with the same count: sbatch --array=7 --export=ALL,SHARDS=32 slurm_array.sh ...
#SBATCH --job-name=truesource
#SBATCH --cpus-per-task=4
#SBATCH --mem-per-cpu=2G
#SBATCH --time=04:00:00
#SBATCH --output=%x-%A-%a.log
set -euo pipefail

export TRUESOURCE_THREADS="${SLURM_CPUS_PER_TASK:-1}"
exec truesource "$@" --shard "${SLURM_ARRAY_TASK_ID}/${SHARDS:-${SLURM_ARRAY_TASK_COUNT}}"
