/* Teams of MPI ranks: the only file that calls MPI, and only in a process that a launcher such as
 * mpirun has started. */
#include <stdio.h>
#include <stdlib.h>

#include "core/memory.h"
#include "operators/team.h"

#ifdef KS_NO_MPI

/* Without MPI, `make MPI=no`: one process, and no other beside it. */
ks_status ks_team_start(struct ks_team *world)
{
    const char *const sizes[] = {getenv("OMPI_COMM_WORLD_SIZE"), getenv("PMI_SIZE")};
    const char *const ranks[] = {getenv("PMIX_RANK"), getenv("PMI_RANK")};

    *world = (struct ks_team){.size = 1, .local_size = 1};
    for (size_t i = 0; i < 2; i++)
        if ((sizes[i] && atoi(sizes[i]) > 1) || (ranks[i] && atoi(ranks[i]) > 0))
            return ks_fail(KS_USAGE, "expected a single process, found several that a launcher "
                                     "started: this program was built without MPI");
    return KS_OK;
}

#else

#include <mpi.h>

/* Environment variables that MPI launchers set: Open MPI's, PMIx's, PMI's. */
static const char *const LAUNCHERS[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK",
                                        "PMI_SIZE"};

static bool is_launched(void)
{
    for (size_t i = 0; i < sizeof LAUNCHERS / sizeof *LAUNCHERS; i++)
        if (getenv(LAUNCHERS[i]))
            return true;
    return false;
}

static MPI_Comm comm_of(const struct ks_team *team)
{
    return *(const MPI_Comm *)team->comm;
}

static void broadcast(const struct ks_team *team, int root, int bytes, void *data)
{
    MPI_Bcast(data, bytes, MPI_BYTE, root, comm_of(team));
}

static void collect(const struct ks_team *team, int n, const double *mine, double *all)
{
    MPI_Allgather(mine, n, MPI_DOUBLE, all, n, MPI_DOUBLE, comm_of(team));
}

static void exchange(const struct ks_team *team, const double *send, const int *send_count,
                     double *receive, const int *receive_count)
{
    MPI_Alltoallv(send, send_count, send_count + team->size, MPI_DOUBLE, receive, receive_count,
                  receive_count + team->size, MPI_DOUBLE, comm_of(team));
}

static void gather(const struct ks_team *team, const double *slice, const int *count,
                   double *vector)
{
    MPI_Allgatherv(slice, count[team->rank], MPI_DOUBLE, vector, count, count + team->size,
                   MPI_DOUBLE, comm_of(team));
}

static void end(const struct ks_team *world)
{
    MPI_Barrier(comm_of(world));
    MPI_Finalize();
}

static const struct ks_team_transport MPI = {
    .broadcast = broadcast, .collect = collect, .exchange = exchange, .gather = gather, .end = end};

static int count_local_ranks(MPI_Comm comm)
{
    MPI_Comm machine;
    int size;

    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    MPI_Comm_size(machine, &size);
    MPI_Comm_free(&machine);
    return size;
}

/* A rank without memory for these few numbers cannot report its failure to the others, so it aborts
 * all ranks. */
static ks_status fill(MPI_Comm comm, struct ks_team *team)
{
    MPI_Comm *own = NULL;
    ks_status status = KS_OK;

    MPI_Comm_rank(comm, &team->rank);
    MPI_Comm_size(comm, &team->size);
    team->local_size = count_local_ranks(comm);
    KS_GO(ks_alloc((size_t)team->size * KS_TEAM_CHUNK, sizeof *team->scratch, &team->scratch));
    KS_GO(ks_alloc((size_t)team->size * 4, sizeof *team->count, &team->count));
    KS_GO(ks_alloc(1, sizeof(MPI_Comm), &own));
    *own = comm;
    team->comm = own;
    team->transport = &MPI;
done:
    if (status != KS_OK) {
        fprintf(stderr, "%s\n", ks_error_text());
        MPI_Abort(MPI_COMM_WORLD, ks_exit_status(status));
    }
    return status;
}

ks_status ks_team_start(struct ks_team *world)
{
    int threads;

    *world = (struct ks_team){.size = 1, .local_size = 1};
    if (!is_launched())
        return KS_OK;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &threads) != MPI_SUCCESS ||
        threads < MPI_THREAD_FUNNELED)
        return ks_fail(KS_RUN,
                       "MPI does not start, or does not support threads (MPI_THREAD_FUNNELED)");
    return fill(MPI_COMM_WORLD, world);
}

#endif
