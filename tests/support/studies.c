#include "studies.h"

void attribute_number(struct ks_attribute *a, const char *name, double value)
{
    snprintf(a->name, sizeof a->name, "%s", name);
    a->type = KS_ATTRIBUTE_NUMBER;
    a->number = value;
}

void attribute_integer(struct ks_attribute *a, const char *name, int64_t value)
{
    snprintf(a->name, sizeof a->name, "%s", name);
    a->type = KS_ATTRIBUTE_INTEGER;
    a->integer = value;
}

void attribute_string(struct ks_attribute *a, const char *name, const char *value)
{
    snprintf(a->name, sizeof a->name, "%s", name);
    a->type = KS_ATTRIBUTE_STRING;
    a->string = (char *)(uintptr_t)value; /* not freed: the spectrum is on the stack */
}

const char *spectrum_path(const struct place *place)
{
    return text_of("runs/toy/%s/seed%zu/step_%09zu%s%s.spectrum.h5", place->architecture,
                   place->seed, place->step, place->analysis ? "." : "",
                   place->analysis ? place->analysis : "");
}

static void set_attributes(struct ks_attribute a[21], const struct place *place)
{
    attribute_string(a++, "checkpoint", "some.h5");
    attribute_string(a++, "checkpoint_sha256",
                     "0000000000000000000000000000000000000000000000000000000000000000");
    attribute_string(a++, "operator", "hessian");
    attribute_string(a++, "batchnorm", "train");
    attribute_string(a++, "loss_kind", ks_path_ends(place->architecture, "+ce") ? "ce" : "mse");
    attribute_string(a++, "precision", "f64");
    attribute_integer(a++, "order", 4);
    attribute_integer(a++, "probes", 2);
    attribute_integer(a++, "probe_seed", 0);
    attribute_integer(a++, "dimension", 100);
    attribute_number(a++, "weight_decay", 0);
    attribute_number(a++, "scale", 1);
    attribute_integer(a++, "batches", 1);
    attribute_integer(a++, "critic", -1);
    attribute_integer(a++, "layer", -1);
    attribute_string(a++, "env", "toy");
    attribute_string(a++, "architecture", place->architecture);
    attribute_integer(a++, "seed", (int64_t)place->seed);
    attribute_integer(a++, "env_step", (int64_t)place->step);
    attribute_integer(a++, "update", place->step > 2 ? (int64_t)place->step - 2 : 0);
    attribute_number(a++, "return_mean", 1);
}

static void set_statistics(struct ks_attribute a[14], const struct place *place, double kappa)
{
    attribute_number(&a[0], "kappa", kappa);
    attribute_number(&a[1], "kappa_lower_bound", 7);
    attribute_number(&a[2], "kappa_effective_bound", 9);
    attribute_number(&a[3], "lambda_max", 0.5 * kappa);
    attribute_number(&a[4], "kurtosis", 3);
    attribute_number(&a[5], "zero_mass", 0.5);
    attribute_number(&a[6], "zero_mass_lower", 0.25);
    attribute_number(&a[7], "zero_mass_upper", 0.75);
    attribute_number(&a[8], "directions_1e2_lower", 20 + (double)place->seed);
    attribute_number(&a[9], "directions_1e2_upper", 30 + 2 * (double)place->seed);
    attribute_number(&a[10], "kappa_q99_lower", 123.45);
    attribute_number(&a[11], "kappa_q99_upper", place->seed < 2 ? 234.51 : NAN);
    attribute_number(&a[12], "kappa_gradient_90_lower", place->seed == 1 ? NAN : INFINITY);
    attribute_number(&a[13], "kappa_gradient_90_upper", place->seed == 1 ? NAN : INFINITY);
}

void write_spectrum_at(const char *path, const struct place *place, double kappa, bool zero)
{
    /* the second probe starts at the gradient: all its weight is on one Ritz value */
    double ritz[] = {-0.5, 0, 2, 50, -90, 0, 2, 80};
    double weight[] = {0.25, 0.5, 0.125, 0.125, 0, 0, 0, 1}, none[8] = {0};
    double alpha[] = {2, 2, 2, 2, 2, 2, 2, 2}, beta[] = {-1, -1, -1, -1, -1, -1, -1, -1};
    double grid[] = {-1, 0, 50}, density[] = {0, 0.5, 0};
    double at[] = {-50, -1, 1, 50}, lower[] = {0, 0.01, 0.9, 1}, upper[] = {0, 0.04, 0.95, 1};
    int64_t steps[] = {4, 4};
    struct ks_attribute attribute[21] = {0}, start = {0}, statistics[14] = {0};
    struct ks_spectrum s = {.attributes = {attribute, 21, 21},
                            .statistics = {statistics, 14, 14},
                            .lanczos = {&start, 1, 1},
                            .probes = 2,
                            .order = 4,
                            .alpha = alpha,
                            .beta = beta,
                            .steps = steps,
                            .ritz = ritz,
                            .weight = weight,
                            .residual = none,
                            .n_grid = 3,
                            .grid = grid,
                            .density = density,
                            .symlog_grid = grid,
                            .symlog_density = density,
                            .n_band = 4,
                            .band_at = at,
                            .band_lower = lower,
                            .band_upper = upper};

    if (zero) {
        memset(ritz, 0, sizeof ritz);
        memset(grid, 0, sizeof grid);
        memset(density, 0, sizeof density);
    }
    set_attributes(attribute, place);
    set_statistics(statistics, place, kappa);
    attribute_string(&start, "start", "random gradient");
    write_text(path, ""); /* creates its folder */
    assert_ok(ks_spectrum_write(scratch(path), &s));
}

void write_spectrum(const struct place *place, double kappa, bool zero)
{
    write_spectrum_at(spectrum_path(place), place, kappa, zero);
}

void write_returns(const char *architecture, size_t seed, const char *text)
{
    const char *about = text_of("runs/toy/%s/seed%zu/run.json", architecture, seed);

    if (!exists(about))
        write_text(about, "{\"state\": \"stopped\"}\n");
    write_text(text_of("runs/toy/%s/seed%zu/progress.csv", architecture, seed), text);
}

int make_study(void **state)
{
    static const char *const architectures[] = {"ln+mse", "bn+wn+ce"};

    if (scratch_make(state) != 0)
        return -1;
    set_study("");
    for (size_t a = 0; a < 2; a++)
        for (size_t i = 0; i < SEEDS; i++) {
            for (size_t k = 0; k <= CHECKPOINTS; k++)
                write_spectrum(&(struct place){architectures[a], i, STEP[k], NULL},
                               k == 0 ? 1e9 : KAPPA[i][k - 1] * (a == 0 ? 10 : 1), false);
            write_returns(architectures[a], i, text_of(RETURNS, (int)(100 * (i + 1))));
        }
    return 0;
}

void write_operator(const char *architecture, const char *name, const char *operator, int64_t layer)
{
    for (size_t i = 0; i < SEEDS; i++)
        for (size_t k = 0; k <= CHECKPOINTS; k++) {
            struct place place = {architecture, i, STEP[k], name};
            const char *path = scratch(spectrum_path(&place));
            struct ks_spectrum *s;

            write_spectrum(&place, 3 + (double)i, false);
            s = read_spectrum(path);
            for (size_t j = 0; j < s->attributes.n; j++) {
                struct ks_attribute *at = &s->attributes.list[j];

                if (strcmp(at->name, "layer") == 0)
                    at->integer = layer;
                if (strcmp(at->name, "operator") == 0) {
                    free(at->string);
                    assert_ok(ks_copy_string(operator, & at->string));
                }
            }
            ks_attribute_add_number(&s->statistics, "sharpness_ratio", 0.5 + (double)k);
            assert_ok(ks_spectrum_write(path, s));
        }
}

void write_variant(const char *name, const char *architecture)
{
    for (size_t i = 0; i < SEEDS; i++) {
        for (size_t k = 0; k <= CHECKPOINTS; k++)
            write_spectrum_at(spectrum_path(&(struct place){name, i, STEP[k], NULL}),
                              &(struct place){architecture, i, STEP[k], NULL}, 5, false);
        write_returns(name, i,
                      "env_step,update,critic_loss,return_mean\n0,0,nan,1\n6,4,1,2\n"
                      "12,10,1,8\n");
    }
}

void set_study(const char *more)
{
    write_text("study.study", text_of(STUDY, more));
}

void remove_spectrum(const struct place *place)
{
    assert_int_equal(unlink(scratch(spectrum_path(place))), 0);
}

void remove_spectra(const char *architecture)
{
    for (size_t i = 0; i < SEEDS; i++) {
        write_text(text_of("runs/toy/%s/seed%zu/run.json", architecture, i),
                   "{\"state\": \"finished\"}\n");
        for (size_t k = 0; k <= CHECKPOINTS; k++)
            remove_spectrum(&(struct place){architecture, i, STEP[k], NULL});
    }
}

struct outcome *outcome_new(size_t resamples)
{
    static struct outcome kept[8];
    static size_t turn;
    struct outcome *o = &kept[turn++ % 8];

    ks_summary_clear(&o->table);
    ks_results_free(o->results);
    *o = (struct outcome){NULL, {0}};
    assert_ok(ks_results_read(scratch_folder, NULL, &o->results));
    assert_ok(ks_summary_table(o->results, resamples, &o->table));
    return o;
}

void assert_warned(const struct ks_results *r, const char *words)
{
    for (size_t i = 0; i < r->warnings.n; i++)
        if (strstr(r->warnings.text[i], words))
            return;
    fail_msg("no warning says '%s'", words);
}

void make_known(struct known *k, const struct place *place)
{
    const double ritz[] = {-4, -0.001, 1, 100}, weight[] = {0.1, 0.6, 0.2, 0.1};

    memset(k, 0, sizeof *k);
    set_attributes(k->attribute, place);
    set_statistics(k->summary, place, 7);
    attribute_string(&k->start, "start", "random");
    memcpy(k->ritz, ritz, sizeof ritz);
    memcpy(k->weight, weight, sizeof weight);
    for (size_t i = 0; i < 4; i++) { /* the Laplacian of a path */
        k->alpha[i] = 2;
        k->beta[i] = -1;
    }
    k->steps[0] = 4;
    k->s = (struct ks_spectrum){.attributes = {k->attribute, 21, 21},
                                .statistics = {k->summary, 14, 14},
                                .lanczos = {&k->start, 1, 1},
                                .probes = 1,
                                .order = 4,
                                .alpha = k->alpha,
                                .beta = k->beta,
                                .steps = k->steps,
                                .ritz = k->ritz,
                                .weight = k->weight,
                                .residual = k->residual};
}

void write_known(struct known *k, const struct place *place)
{
    const char *path = spectrum_path(place);

    write_text(path, "");
    assert_ok(ks_spectrum_write(scratch(path), &k->s));
}

const struct ks_csv *make_table(const char *name, size_t resamples)
{
    struct outcome *o = outcome_new(resamples);

    assert_ok(ks_tables_write(o->results, &o->table, resamples));
    return read_csv(text_of("tables/%s.csv", name));
}

void assert_starts(const char *name, const char *magic)
{
    assert_memory_equal(file_text(name), magic, 4);
}

/* Redirect standard output to the file "said"; restore it. */
static int divert_output(void)
{
    int output, file = open(scratch("said"), O_WRONLY | O_CREAT, 0666);

    fflush(stdout);
    output = dup(STDOUT_FILENO);
    assert_true(file >= 0 && output >= 0);
    assert_int_equal(dup2(file, STDOUT_FILENO), STDOUT_FILENO);
    close(file);
    return output;
}

static void restore_output(int output)
{
    fflush(stdout);
    dup2(output, STDOUT_FILENO);
    close(output);
}

void plot_study(size_t resamples)
{
    int output = divert_output();
    ks_status status = ks_study_plot(scratch_folder, NULL, resamples, true);

    restore_output(output);
    assert_ok(status);
}
