/* Teams of MPI ranks that share one computation, on one machine or several. A NULL pointer stands
 * for a team of one rank. A team of one makes no MPI call; for it the functions below copy their
 * input or do nothing.
 *
 * All ranks of a team must call the same functions in the same order; only ks_team_end and
 * ks_team_slice are exempt. Sums are always formed in the order of the ranks, so every rank has the
 * same bits. */
#ifndef KS_OPERATORS_TEAM_H
#define KS_OPERATORS_TEAM_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

enum { KS_TEAM_CHUNK = 512 }; /* numbers of every rank that `scratch` holds */

struct ks_team;

/* How ranks communicate in a team of two or more. Its only implementation is team_mpi.c, so a
 * program that never calls ks_team_start links without MPI. All ranks call each function together.
 * A `count` [2, size] has the number of elements of each rank, then the offset of each rank's
 * elements. */
struct ks_team_transport {
    void (*broadcast)(const struct ks_team *team, int root, int bytes, void *data);
    /* all [size, n] = the n numbers of every rank */
    void (*collect)(const struct ks_team *team, int n, const double *mine, double *all);
    void (*exchange)(const struct ks_team *team, const double *send, const int *send_count,
                     double *receive, const int *receive_count);
    void (*gather)(const struct ks_team *team, const double *slice, const int *count,
                   double *vector);
    void (*end)(const struct ks_team *world);
};

struct ks_team {
    int rank, size; /* 0 <= rank < size                                    */
    int local_size; /* ranks of the team on this machine                   */
    void *comm;     /* MPI's communicator. Owned; NULL in a team of one    */
    const struct ks_team_transport *transport; /* NULL in a team of one        */
    double *scratch; /* [size, KS_TEAM_CHUNK]. Owned                        */
    int *count;      /* [4, size] for MPI's counts and displacements. Owned */
};

/* The team of all ranks that a launcher (mpirun, srun) has started; a team of one if the
 * environment shows no launcher. KS_RUN if MPI does not start. The caller ends with ks_team_end,
 * which waits for all ranks. */
ks_status ks_team_start(struct ks_team *world);
void ks_team_end(struct ks_team *world);
int ks_team_rank(const struct ks_team *team);
int ks_team_size(const struct ks_team *team);

/* If any rank's status is not KS_OK, every rank returns the status and message of the first rank
 * that failed. A status that can differ between ranks must pass through this function before the
 * next call of a function below, which would wait forever for a rank that has failed. */
ks_status ks_team_agree(const struct ks_team *team, ks_status status);
/* Copies `bytes` bytes from rank `root` to all ranks. */
void ks_team_broadcast(const struct ks_team *team, int root, size_t bytes, void *data);
/* Copies rank 0's string, or NULL, to all ranks, which own their copies. KS_MEMORY. */
ks_status ks_team_broadcast_string(const struct ks_team *team, char **string);

/* all [size] = the numbers of all ranks. */
void ks_team_collect(const struct ks_team *team, double number, double *all);
/* values [n] = the sum of all ranks' values; every rank receives all of them, so n should be small.
 */
void ks_team_sum(const struct ks_team *team, size_t n, double *values);

/* This rank's slice of a long vector [n]: entries first .. first + count - 1. Slices differ by at
 * most one entry in length. */
void ks_team_slice(const struct ks_team *team, size_t n, size_t *first, size_t *count);
/* The length of `scratch` for the functions below. */
size_t ks_team_scratch(const struct ks_team *team, size_t n);
/* Reduce-scatter: slice = this rank's slice of the sum of all ranks' `part` [n]. `slice` may be
 * `scratch`. Every rank sends and receives n numbers less its slice. n <= INT_MAX. */
void ks_team_sum_slices(const struct ks_team *team, size_t n, const double *part, double *scratch,
                        double *slice);
/* All-gather: vector [n] from the slices of all ranks. */
void ks_team_gather(const struct ks_team *team, size_t n, const double *slice, double *vector);
/* All-reduce: values [n] = the sum of all ranks' values, for long vectors. */
void ks_team_sum_vector(const struct ks_team *team, size_t n, double *scratch, double *values);

#endif
