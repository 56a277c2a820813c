/* KappaScope's contestant for update.py: gradient updates.
 *
 *   build/bench/peer/cycle RUN ARCHITECTURE [KEY=VALUE...]
 *
 * RUN is a run.h5 of tests/peer/update.c with the same settings KEY=VALUE; its minibatches are used
 * in turn. OMP_NUM_THREADS threads share the critics. Prints a line "ready" with a JSON object
 * about the program. Then, for every line of standard input, makes a cycle of three updates, one of
 * which steps the actor, and prints the seconds that they took. */

#include <stdio.h>
#include <stdlib.h>

#include <omp.h>

#include "config.h"
#include "core/blas.h"
#include "core/memory.h"
#include "core/progress.h"
#include "io/h5.h"
#include "train/run.h"

#include "../must.h"

enum { CYCLE = 3 };

/* [updates, batch, ...]; the reader of the file owns them. */
struct minibatches {
    size_t updates, batch, observations, actions;
    float *s, *a, *next_s, *mask;
    double *reward;
};

/* Reads a dataset; only its first dimensions are given in shape. */
static double *read_values(const struct ks_h5 *h5, const char *object, struct ks_h5_shape *shape)
{
    double *values;

    must(ks_h5_shape(h5, object, shape));
    must(ks_h5_read_new(h5, object, shape, &values));
    return values;
}

static float *read_floats(const struct ks_h5 *h5, const char *object, struct ks_h5_shape *shape)
{
    double *values = read_values(h5, object, shape);
    size_t n = 1;
    float *x;

    for (size_t i = 0; i < shape->n_dims; i++)
        n *= shape->dims[i];
    must(ks_alloc(n, sizeof *x, &x));
    for (size_t i = 0; i < n; i++)
        x[i] = (float)values[i];
    free(values);
    return x;
}

static void read_minibatches(const char *path, struct minibatches *m)
{
    struct ks_h5_shape shape;
    struct ks_h5 *h5;

    must(ks_h5_open(path, "kappascope-updates", &h5));
    m->mask = read_floats(h5, "/batch/mask", &shape);
    m->reward = read_values(h5, "/batch/reward", &shape);
    m->a = read_floats(h5, "/batch/a", &shape);
    m->actions = shape.dims[2];
    m->next_s = read_floats(h5, "/batch/next_s", &shape);
    m->s = read_floats(h5, "/batch/s", &shape);
    m->updates = shape.dims[0], m->batch = shape.dims[1], m->observations = shape.dims[2];
    ks_h5_close(h5);
}

static void free_minibatches(struct minibatches *m)
{
    free(m->s);
    free(m->a);
    free(m->next_s);
    free(m->mask);
    free(m->reward);
}

static void serve(struct KS(agent) *agent, const struct minibatches *m)
{
    struct ks_update results;
    char line[256];

    for (size_t k = 0; fgets(line, sizeof line, stdin);) {
        double start = ks_seconds();

        for (size_t i = 0; i < CYCLE; i++, k++) {
            size_t at = k % m->updates * m->batch;

            must(KS(agent_update)(agent,
                                  &(struct ks_batch){.s = m->s + at * m->observations,
                                                     .a = m->a + at * m->actions,
                                                     .next_s = m->next_s + at * m->observations,
                                                     .reward = m->reward + at,
                                                     .mask = m->mask + at},
                                  &results));
        }
        printf("%.9f\n", ks_seconds() - start);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    struct ks_train_options options = {.env = "dog-trot", .out = ".", .quiet = true};
    struct ks_settings *settings = &options.settings;
    struct minibatches m;
    struct ks_run *run;

    ks_blas_start(argv);
    if (argc < 3) {
        fprintf(stderr, "usage: cycle RUN ARCHITECTURE [KEY=VALUE...]\n");
        return 2;
    }
    options.architecture = argv[2];
    ks_settings_defaults(settings);
    for (int i = 3; i < argc; i++)
        must(ks_settings_assign(settings, argv[i]));
    settings->threads = (size_t)omp_get_max_threads();
    must(ks_settings_check(settings));
    options.steps = 4 * settings->random_steps;
    read_minibatches(argv[1], &m);
    must(ks_run_new(&options, &run));
    printf("ready {\"name\": \"KappaScope %s\", \"blas\": \"%s, kernel %s\", \"threads\": %d}\n",
           KS_VERSION, ks_blas_version(), ks_blas_kernel(), run->learner.agent->config.threads);
    fflush(stdout);
    serve(run->learner.agent, &m);
    ks_run_free(run);
    free_minibatches(&m);
    return 0;
}
