/* Whether mpirun works here, and its environment. */
#ifndef KS_TEST_MPIRUN_H
#define KS_TEST_MPIRUN_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Allows mpirun as root and with more processes than cores, with one thread each and without
 * ssh. */
static inline void mpirun_environment(void)
{
    static const char *const variables[][2] = {
        {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
        {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
        {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
        {"OMPI_MCA_plm_rsh_agent", "/bin/false"},
        {"OMPI_MCA_mpi_yield_when_idle", "1"},
        {"OMP_NUM_THREADS", "1"},
    };

    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        setenv(variables[i][0], variables[i][1], 1);
#ifdef __SANITIZE_ADDRESS__
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* leaks in MPI itself */
#endif
}

/* Whether mpirun can start two processes here; if not, prints that the tests under mpirun are
 * skipped. */
static inline bool have_mpirun(void)
{
    static int have = -1;

    if (have < 0) {
        mpirun_environment();
        have = system("timeout -k 10 60 mpirun -n 2 true >/dev/null 2>&1") == 0;
        if (!have)
            fprintf(stderr, "mpirun is missing or starts nothing here: skipped\n");
    }
    return have;
}

#endif
