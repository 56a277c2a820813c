/* Teams of MPI ranks that share one computation, on one machine or several. A NULL pointer stands
 * for a team of one rank. A team of one makes no MPI call; for it the functions below copy their
 * input or do nothing.
 *
 * All ranks of a team communicate by the same functions in the same order, until one fails. A rank
 * that fails returns to the function that started the work, which ends it with ks_team_settle.
 * Whatever the other ranks' next communication is, they learn there that a rank has failed: it
 * returns the status and message of the first rank that failed, sums are NaN, and no rank
 * communicates any more until it arrives at ks_team_settle. So nothing between has to care for
 * failures of other ranks.
 *
 * Sums are always formed in the order of the ranks, so every rank has the same bits. */
#ifndef KS_OPERATORS_TEAM_H
#define KS_OPERATORS_TEAM_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

enum { KS_TEAM_CHUNK = 16384 }; /* numbers of every rank that `scratch` holds */

struct ks_team;

/* How ranks communicate in a team of two or more. Its only implementation is team_mpi.c, so a
 * program that never calls ks_team_start links without MPI. All ranks call each function together.
 * A `count` [2, size] has the number of elements of each rank, then the offset of each rank's
 * elements. */
struct ks_team_transport {
    void (*broadcast)(int root, int bytes, void *data);
    /* all [size, n] = the n numbers of every rank */
    void (*collect)(int n, const double *mine, double *all);
    void (*exchange)(const struct ks_team *team, const double *send, const int *send_count,
                     double *receive, const int *receive_count);
    /* completes `vector`, in which each rank has its own elements */
    void (*gather)(const struct ks_team *team, const int *count, double *vector);
    void (*end)(void);
};

struct ks_team {
    int rank, size; /* 0 <= rank < size                                    */
    int local_size; /* ranks of the team on this machine                   */
    const struct ks_team_transport *transport; /* NULL in a team of one        */
    double *scratch;  /* [size, KS_TEAM_CHUNK]. Owned                         */
    int *count;       /* [4, size] for MPI's counts and displacements. Owned  */
    ks_status failed; /* of the first rank that failed; KS_OK: none has       */
    char text[1024];  /* its message                                          */
};

/* The team of all ranks that a launcher (mpirun, srun) has started; a team of one if the
 * environment shows no launcher. Only rank 0 has a standard output. KS_RUN if MPI does not start.
 * The caller ends with ks_team_end, which waits for all ranks. */
ks_status ks_team_start(struct ks_team *world);
void ks_team_end(struct ks_team *world);
int ks_team_rank(const struct ks_team *team);
int ks_team_size(const struct ks_team *team);

/* Returns the status and message of the first rank that failed. `status` is this rank's. Before
 * rank 0 uses what all ranks have computed. */
ks_status ks_team_agree(struct ks_team *team, ks_status status);
/* Agrees as ks_team_agree does, and forgets the failure: the ranks can start other work. */
ks_status ks_team_settle(struct ks_team *team, ks_status status);

/* Copies `bytes` bytes from rank 0 to all ranks. */
ks_status ks_team_broadcast(struct ks_team *team, size_t bytes, void *data);
/* all [size] = the numbers of all ranks. */
ks_status ks_team_collect(struct ks_team *team, double number, double *all);
/* values [n] = the sum of all ranks' values. n <= INT_MAX. */
ks_status ks_team_sum(struct ks_team *team, size_t n, double *values);

/* This rank's slice of a vector [n]: entries first .. first + count - 1. Slices differ by at most
 * one entry in length. */
void ks_team_slice(const struct ks_team *team, size_t n, size_t *first, size_t *count);
/* Reduce-scatter: slice = this rank's slice of the sum of all ranks' `share` [n]; it may lie in its
 * place in `share`. Every rank sends and receives n numbers less its slice. n <= INT_MAX. */
ks_status ks_team_sum_slices(struct ks_team *team, size_t n, const double *share, double *slice);
/* All-gather: completes vector [n], in which every rank has its slice. */
ks_status ks_team_gather(struct ks_team *team, size_t n, double *vector);

#endif
