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
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
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

static void broadcast(int root, int bytes, void *data)
{
    MPI_Bcast(data, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
}

static void collect(int n, const double *mine, double *all)
{
    MPI_Allgather(mine, n, MPI_DOUBLE, all, n, MPI_DOUBLE, MPI_COMM_WORLD);
}

static void exchange(const struct ks_team *team, const double *send, const int *send_count,
                     double *receive, const int *receive_count)
{
    MPI_Alltoallv(send, send_count, send_count + team->size, MPI_DOUBLE, receive, receive_count,
                  receive_count + team->size, MPI_DOUBLE, MPI_COMM_WORLD);
}

static void gather(const struct ks_team *team, const int *count, double *vector)
{
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, vector, count, count + team->size,
                   MPI_DOUBLE, MPI_COMM_WORLD);
}

static void end(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}

static const struct ks_team_transport MPI = {
    .broadcast = broadcast, .collect = collect, .exchange = exchange, .gather = gather, .end = end};

static int count_local_ranks(void)
{
    MPI_Comm machine;
    int size;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    MPI_Comm_size(machine, &size);
    MPI_Comm_free(&machine);
    return size;
}

static ks_status fill(struct ks_team *team)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &team->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &team->size);
    team->local_size = count_local_ranks();
    team->transport = &MPI;
    KS_TRY(ks_alloc((size_t)team->size * KS_TEAM_CHUNK, sizeof *team->scratch, &team->scratch));
    KS_TRY(ks_alloc((size_t)team->size * 4, sizeof *team->count, &team->count));
    if (team->rank > 0 && !freopen("/dev/null", "w", stdout))
        return ks_fail(KS_IO, "/dev/null cannot be opened");
    return KS_OK;
}

ks_status ks_team_start(struct ks_team *world)
{
    ks_status status;
    int threads;

    *world = (struct ks_team){.size = 1, .local_size = 1};
    if (!is_launched())
        return KS_OK;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &threads) != MPI_SUCCESS ||
        threads < MPI_THREAD_FUNNELED)
        return ks_fail(KS_RUN,
                       "MPI does not start, or does not support threads (MPI_THREAD_FUNNELED)");
    status = fill(world);
    if (status != KS_OK) { /* a rank that fails here cannot tell the others */
        ks_say("%s", ks_error_text());
        MPI_Abort(MPI_COMM_WORLD, ks_exit_status(status));
    }
    return status;
}

#endif
