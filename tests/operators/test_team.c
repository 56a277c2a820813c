/* Teams of ranks. The program starts itself under mpirun as "work", on 1 to 4 ranks, which check
 * all functions and exit with a failure where one is wrong. A deadlock is ended by a timeout. */
#include <limits.h>

#include "core/memory.h"
#include "critics.h"
#include "operators/team.h"
#include "pipeline/pipeline.h"
#include "programs.h"
#include "spectra.h"

static const char *self, *checkpoint, *output; /* this program; files of an analysis */

/* --- under mpirun --------------------------------------------------------------------------- */

/* Ends this rank, and thereby all, if the condition is false. */
#define must(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: rank %d of %d: false: %s ('%s')\n", __FILE__, __LINE__,        \
                    world.rank, world.size, #condition, ks_error_text());                          \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static struct ks_team world;

enum { N = 301, ORDER = 20 };
static double value[N];

/* diag(value), of which rank r has the entries r, r + size, ... On rank `culprit`, product number
 * `fail_at` fails and product number `nan_at` holds a NaN. */
struct share {
    size_t products, fail_at, nan_at;
    int culprit;
    struct ks_team *team;
};

static ks_status share_apply(void *self_, const double *v, double *out)
{
    struct share *s = self_;
    bool culprit = ks_team_rank(s->team) == s->culprit;

    s->products++;
    for (size_t i = 0; i < N; i++)
        out[i] = i % (size_t)ks_team_size(s->team) == (size_t)ks_team_rank(s->team)
                     ? value[i] * v[i]
                     : 0;
    if (culprit && s->products == s->nan_at)
        out[7] = NAN;
    if (culprit && s->products == s->fail_at)
        return ks_fail(KS_IO, "rank %d failed", s->culprit);
    return KS_OK;
}

static struct ks_operator *new_share(struct ks_team *team, struct share *s)
{
    struct ks_operator *part, *a;

    for (size_t i = 0; i < N; i++)
        value[i] = sin((double)(i * i)) + (i == 9 ? 5 : 0);
    s->team = team;
    must(ks_alloc(1, sizeof *part, &part) == KS_OK);
    *part = (struct ks_operator){.n = N, .self = s, .apply = share_apply};
    must(ks_operator_sum(&(struct ks_problem){.team = team}, part, &a) == KS_OK);
    return a;
}

static bool same_on_all_ranks(double x)
{
    double all[16];

    must(ks_team_collect(&world, x, all) == KS_OK);
    for (int r = 0; r < world.size; r++)
        if (all[r] != all[0])
            return false;
    return true;
}

/* Numbers whose sum depends on the order of summation: every rank adds in the order of the ranks.
 */
static double piece(int rank, size_t i)
{
    return rank % 3 == 2 ? -1e17 : 1e17 / (double)(i + 1) + rank;
}

static double total(size_t i)
{
    double sum = 0;

    for (int r = 0; r < world.size; r++)
        sum += piece(r, i);
    return sum;
}

static void sums(void)
{
    const size_t sizes[] = {1, 2, 5, 512, 1000, 4 * KS_TEAM_CHUNK, 4 * KS_TEAM_CHUNK + 3};

    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        size_t n = sizes[k], first, count, end = 0;
        double *values = malloc(n * sizeof *values), *full = calloc(n, sizeof *full);

        for (size_t i = 0; i < n; i++)
            values[i] = piece(world.rank, i);
        must(ks_team_sum(&world, n, values) == KS_OK);
        for (size_t i = 0; i < n; i++)
            must(values[i] == total(i));
        for (size_t i = 0; i < n; i++)
            values[i] = piece(world.rank, i);
        ks_team_slice(&world, n, &first, &count);
        must(count == n / (size_t)world.size || count == n / (size_t)world.size + 1);
        must(ks_team_sum_slices(&world, n, values, full + first) == KS_OK);
        for (size_t i = 0; i < n; i++)
            must(full[i] == (i - first < count ? total(i) : 0) &&
                 values[i] == piece(world.rank, i));
        must(ks_team_gather(&world, n, full) == KS_OK);
        for (size_t i = 0; i < n; i++)
            must(full[i] == total(i));
        for (int r = 0; r < world.size;
             r++) { /* slices are contiguous, in the order of the ranks */
            struct ks_team other = {.rank = r, .size = world.size};

            ks_team_slice(&other, n, &first, &count);
            must(first == end);
            end += count;
        }
        must(end == n);
        free(values), free(full);
    }
}

static void messages(void)
{
    char text[32] = "none";

    memcpy(text, world.rank == 0 ? "from" : "none", 4);
    must(ks_team_broadcast(&world, 4, text) == KS_OK && strcmp(text, "from") == 0);
    must(ks_team_agree(&world, KS_OK) == KS_OK);
    for (int culprit = 0; culprit < world.size; culprit++) {
        ks_status status = KS_OK;

        if (world.rank >= culprit)
            status = ks_fail(culprit % 2 ? KS_IO : KS_NUMBER, "rank %d", world.rank);
        status = ks_team_settle(&world, status);
        snprintf(text, sizeof text, "%d", culprit);
        must(status == (culprit % 2 ? KS_IO : KS_NUMBER));
        must(strncmp(ks_error_text(), "rank ", 5) == 0 && strcmp(ks_error_text() + 5, text) == 0);
    }
}

/* A rank that fails settles at once. The others learn it in whatever they communicate next, then
 * they settle as well, and all can work again. */
static void meetings(void)
{
    enum { WAYS = 6 };

    for (int culprit = 0; culprit < world.size; culprit++)
        for (int way = 0; way < WAYS; way++) {
            double x[2000] = {1}, all[16];
            ks_status status = KS_OK;

            if (world.rank == culprit)
                status = ks_fail(KS_IO, "rank %d", culprit);
            else if (way == 0)
                status = ks_team_sum(&world, 1, x);
            else if (way == 1)
                status = ks_team_sum(&world, 2000, x);
            else if (way == 2)
                status = ks_team_collect(&world, 1, all), x[0] = all[world.size - 1];
            else if (way == 3)
                status = ks_team_broadcast(&world, sizeof x, x);
            else if (way == 4)
                status = ks_team_gather(&world, 2000, x);
            else
                status = ks_team_sum_slices(&world, 2000, x, x);
            must(status == KS_IO && ks_error_text()[5] == '0' + culprit);
            if (world.rank != culprit) {
                must(way > 2 || isnan(x[0]));
                ks_fail(KS_FORMAT, "what else is said on the way");
                must(ks_team_sum(&world, 1, x) == KS_IO); /* communicates no more */
                ks_fail(KS_FORMAT, "what else is said on the way");
                status = KS_FORMAT;
            }
            must(ks_team_settle(&world, status) == KS_IO);
            must(ks_error_text()[5] == '0' + culprit);
            must(same_on_all_ranks(culprit));
        }
}

/* Lanczos in a team gives the numbers of Lanczos on one rank, with the same bits on every rank. */
static void lanczos(void)
{
    for (int single = 0; single < 2; single++) {
        struct share all = {0}, mine = {0};
        struct ks_operator *alone = new_share(NULL, &all), *a = new_share(&world, &mine);
        struct ks_lanczos *l, *m;

        must(ks_lanczos_new(a, ORDER, single, &l) == KS_OK);
        must(ks_lanczos_new(alone, ORDER, single, &m) == KS_OK);
        ks_lanczos_start(l, 3, 1);
        ks_lanczos_start(m, 3, 1);
        while (l->steps < ORDER) {
            size_t j = l->steps;

            must(ks_lanczos_step(l) == KS_OK && ks_lanczos_step(m) == KS_OK);
            must(fabs(l->alpha[j] - m->alpha[j]) < (single ? 1e-6 : 1e-13));
            must(fabs(l->beta[j] - m->beta[j]) < (single ? 1e-6 : 1e-13));
            must(same_on_all_ranks(l->alpha[j]) && same_on_all_ranks(l->beta[j]));
            for (size_t i = 0; i < l->length && !single; i++)
                must(fabs(l->basis[(j + 1) * l->length + i] -
                          m->basis[(j + 1) * N + l->first + i]) < 1e-12);
        }
        ks_lanczos_free(l), ks_lanczos_free(m);
        ks_operator_free(a), ks_operator_free(alone);
    }
}

static size_t fail_at; /* the number of the allocation that fails on the last rank; 0: none */

static struct ks_spectrum *estimate(struct share *s, size_t probes, ks_status *status)
{
    const struct slq slq = {.order = ORDER, .probes = probes, .seed = 2};
    struct ks_spectrum *spectrum = spectrum_new();
    struct ks_operator *a = new_share(&world, s);

    ks_alloc_fail_at(world.rank == world.size - 1 ? fail_at : 0);
    *status = ks_team_settle(&world, slq_run(a, &slq, spectrum));
    ks_alloc_fail_at(0);
    ks_operator_free(a);
    return spectrum;
}

/* All ranks get all probes, and the spectrum of the dense operator. */
static void spectra(void)
{
    enum { PROBES = 5 };
    const struct slq slq = {.order = ORDER, .probes = PROBES, .seed = 2};
    struct ks_spectrum *expected = spectrum_new(), *s, *all = spectrum_new();
    struct share alone = {0};
    struct ks_operator *a = new_share(NULL, &alone);
    ks_status status;

    must(slq_run(a, &slq, expected) == KS_OK);
    must(ks_exact(a, NULL, NULL, all) == KS_OK);
    ks_operator_free(a);
    s = estimate(&(struct share){0}, PROBES, &status);
    must(status == KS_OK);
    for (size_t i = 0; i < (size_t)PROBES * ORDER; i++) {
        must(fabs(s->alpha[i] - expected->alpha[i]) < 1e-12);
        must(fabs(s->ritz[i] - expected->ritz[i]) < 1e-12);
        must(fabs(s->weight[i] - expected->weight[i]) < 1e-12);
        must(same_on_all_ranks(s->ritz[i]) && same_on_all_ranks(s->residual[i]));
    }
    for (size_t i = 0; i < PROBES; i++)
        must(s->steps[i] == ORDER);
    s = spectrum_new();
    a = new_share(&world, &(struct share){0});
    must(ks_exact(a, NULL, NULL, s) == KS_OK);
    for (size_t i = 0; i < N; i++)
        must(fabs(s->ritz[i] - all->ritz[i]) < 1e-13);
    ks_operator_free(a);
}

/* A failure on one rank fails all ranks, with its message, at whatever point they are. */
static void failures(void)
{
    ks_status status;

    estimate(&(struct share){.fail_at = 3}, 4, &status);
    must(status == KS_IO && strcmp(ks_error_text(), "rank 0 failed") == 0);
    estimate(&(struct share){.nan_at = ORDER + 2}, 4, &status);
    must(status == KS_NUMBER && strstr(ks_error_text(), "holds a NaN"));
    do {
        fail_at++;
        estimate(&(struct share){0}, 1, &status);
        must(same_on_all_ranks((double)status));
        must(status == KS_OK || status == KS_MEMORY);
    } while (status != KS_OK);
    must(fail_at > 10);
    fail_at = 0;
}

/* An analysis on all ranks, in which allocation number n fails on rank `culprit`. */
static ks_status analyze(const struct ks_spectrum_options *o, int culprit, size_t n)
{
    struct ks_pipeline p = {.options = o,
                            .path = checkpoint,
                            .quiet = true,
                            .trusts_files = true,
                            .problem.team = &world};
    ks_status status;

    ks_alloc_fail_at(world.rank == culprit ? n : 0);
    status = ks_pipeline_open(&p);
    if (status == KS_OK)
        status = o->eigenvectors ? ks_pipeline_eigenvectors(&p, output) : ks_pipeline_spectrum(&p);
    status = ks_team_settle(&world, status);
    ks_alloc_fail_at(0);
    ks_pipeline_close(&p);
    must(same_on_all_ranks((double)status));
    must(status == KS_OK || (status == KS_MEMORY && access(output, F_OK) != 0 &&
                             strstr(ks_error_text(), "out of memory")));
    must(same_on_all_ranks(0)); /* all have looked */
    must(world.rank > 0 || status != KS_OK || !o->eigenvectors || remove(output) == 0);
    return status;
}

/* Whichever allocation of an analysis fails on one rank: all ranks end with its message, and rank 0
 * writes no file. */
static void analyses(void)
{
    struct ks_spectrum_options o = ks_spectrum_options_defaults();

    o.order = 5;
    o.residual = 10; /* eigenvectors are found at once */
    for (o.eigenvectors = 0; o.eigenvectors < 2; o.eigenvectors++)
        for (int culprit = 0; culprit<world.size; culprit += world.size> 1 ? world.size - 1 : 1) {
            size_t n = 1, step = 1;
            bool last = false; /* the last allocations, one by one */

            for (;;) {
                if (analyze(&o, culprit, n) != KS_OK) {
                    step = last ? 1 : 1 + n / 8;
                    n += step;
                } else if (step > 1) {
                    n -= step - 1;
                    step = 1;
                    last = true;
                } else {
                    break;
                }
            }
            must(n > 50);
        }
}

static const struct worker {
    const char *name;
    void (*run)(void);
} workers[] = {{"sums", sums},        {"messages", messages}, {"meetings", meetings},
               {"lanczos", lanczos},  {"spectra", spectra},   {"failures", failures},
               {"analyses", analyses}};

static int work(void)
{
    must(ks_team_start(&world) == KS_OK);
    for (size_t i = 0; i < sizeof workers / sizeof *workers; i++)
        workers[i].run();
    must(ks_team_agree(&world, KS_OK) == KS_OK);
    ks_team_end(&world);
    return 0;
}

/* --- the tests ------------------------------------------------------------------------------ */

TEST(test_ranks)
{
    static const char critic[] = "dense 6\nlayernorm\nrelu\ndense 4\nloss ce min=-5 max=5\n";
    struct critic_sizes sizes = {2, 5, 4, 10, 6};

    need_mpirun();
    assert_ok(ks_checkpoint_write(scratch("critic.h5"),
                                  keep_checkpoint(random_critic(critic, sizes, 63)), false));
    for (int n = 1; n <= 4; n++)
        assert_int_equal(system(text_of("timeout -k 10 120 mpirun -n %d '%s' work '%s/critic.h5' "
                                        "'%s/vectors.h5'",
                                        n, self, scratch_folder, scratch_folder)),
                         0);
}

/* A team of one does not call MPI. */
TEST(test_alone)
{
    double values[] = {1, 2}, all;
    size_t first, count;
    struct ks_team team;

    assert_ok(ks_team_start(&team));
    assert_int_equal(team.size, 1);
    assert_int_equal(team.local_size, 1);
    assert_null(team.transport);
    assert_ok(ks_team_sum(&team, 2, values));
    assert_ok(ks_team_sum(NULL, 2, values));
    assert_ok(ks_team_collect(NULL, 3, &all));
    ks_team_slice(&team, 2, &first, &count);
    assert_true(values[0] == 1 && values[1] == 2 && all == 3 && first == 0 && count == 2);
    assert_fails(ks_team_agree(&team, ks_fail(KS_IO, "words")), KS_IO, "words");
    assert_fails(ks_team_settle(NULL, ks_fail(KS_IO, "words")), KS_IO, "words");
    ks_team_end(&team);
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;

int main(int argc, char **argv)
{
    self = argv[0];
    if (argc > 3) {
        checkpoint = argv[2], output = argv[3];
        return work();
    }
    return run_all_tests();
}
