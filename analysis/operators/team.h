/* Processes that compute one thing together, on one machine or many, by MPI. A team of one, which a
 * NULL pointer means too, makes no call of MPI, and every function below does what it says for one
 * process, mostly nothing.
 *
 * Except for ks_team_end and ks_team_slice, all processes of a team must call the same functions in
 * the same order. Numbers are always added in the order of the ranks, so every process has the same
 * bits. */
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
                   double *whole);
    ks_status (*split)(const struct ks_team *whole, size_t group, struct ks_team *team);
    void (*leave)(const struct ks_team *team);
    void (*end)(const struct ks_team *world);
};

struct ks_team {
    int rank, size; /* this process's number, 0 .. size-1                  */
    int near;       /* processes of the team on this machine            */
    void *comm;     /* MPI's communicator. Owned; NULL in a team of one    */
    const struct ks_team_transport *transport; /* NULL in a team of one        */
    double *scratch; /* numbers of every process. Owned                     */
    int *count;      /* [4, size] for MPI's counts and displacements. Owned */
};

/* The team of all processes that a launcher (mpirun, srun) has started; a team of one where the
 * environment shows no launcher. Ends with ks_team_end, which waits for all. */
ks_status ks_team_start(struct ks_team *world);
void ks_team_end(struct ks_team *world);
/* The team of those in `whole` that give the same `group`, in the same order. Ends with
 * ks_team_leave. */
ks_status ks_team_split(const struct ks_team *whole, size_t group, struct ks_team *team);
void ks_team_leave(struct ks_team *team);

int ks_team_rank(const struct ks_team *team);
int ks_team_size(const struct ks_team *team);

/* If the status of a process is not KS_OK, all get that of the first such process, with its
 * message. Whatever can fail on one process alone goes through this before the next function below.
 */
ks_status ks_team_agree(const struct ks_team *team, ks_status status);
/* The least of the processes' values. */
size_t ks_team_least(const struct ks_team *team, size_t value);
/* The bytes of process `root`, to all. */
void ks_team_broadcast(const struct ks_team *team, int root, size_t bytes, void *data);
/* A string of process 0 into a fresh one on the others; NULL stays NULL. */
ks_status ks_team_broadcast_string(const struct ks_team *team, char **string);

/* all [size]: the number of every process. */
void ks_team_collect(const struct ks_team *team, double number, double *all);
/* values [n] becomes the sum of all processes': for few numbers. */
void ks_team_sum(const struct ks_team *team, size_t n, double *values);

/* Long vectors [n] are cut into slices, one per process, whose sizes differ by one at most. */
void ks_team_slice(const struct ks_team *team, size_t n, size_t *first, size_t *count);
/* How many numbers `room` below must hold. */
size_t ks_team_room(const struct ks_team *team, size_t n);
/* slice = this process's slice of the sum of all processes' `part` [n]; `slice` may lie in `room`,
 * at its start. Every process sends and receives n numbers less its slice. n <= INT_MAX. */
void ks_team_sum_slices(const struct ks_team *team, size_t n, const double *part, double *room,
                        double *slice);
/* whole [n] from all processes' slices. */
void ks_team_gather(const struct ks_team *team, size_t n, const double *slice, double *whole);
/* values [n] becomes the sum of all processes'. */
void ks_team_sum_whole(const struct ks_team *team, size_t n, double *room, double *values);

#endif
