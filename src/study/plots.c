/* Runs gnuplot on the tables. The scripts only draw, and compute nothing but the limits of their
 * axes. */
#include "study/plots.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/path.h"
#include "core/say.h"
#include "io/file.h"
#include "io/text.h"
#include "study/claims.h"
#include "study/locate.h"
#include "study/page.h"
#include "study/process.h"
#include "study/theorems.h"

const struct ks_plot ks_plots[] = {
    {"spectra", "Spectra over training",
     "Above: all Ritz values of the Hessian of the critic's loss, a column per checkpoint (one "
     "seed; "
     "symmetric-log axis). Below: kappa, the IQM over seeds, with its 90% interval if there are "
     "several seeds; a triangle at the upper edge marks an infinite kappa."},
    {"kappa_return", "Conditioning and return",
     "Statistics of the spectra after the first update (IQM over checkpoints and seeds) against "
     "the "
     "IQM of the last return; bars are 90% stratified bootstrap intervals."},
    {"resolved", "What is resolved, and return",
     "The 99% intervals of three statistics at the last checkpoint against the IQM of the last "
     "return: the number of eigenvalues within a factor of 100 of the largest in absolute value, "
     "the "
     "factor by which 99% of the eigenvalues are smaller than the largest, and the factor within "
     "which 90% of the gradient's energy lies. The mark is at the middle of the interval; an arrow "
     "means that the upper end is not resolved. With several seeds the thick line joins the "
     "medians "
     "of the ends, and the thin line covers the intervals of all seeds."},
    {"returns", "Returns",
     "Return of the deterministic policy over training: IQM over seeds, with its 90% interval if "
     "there are several seeds."},
    {"density", "Spectral density",
     "The smoothed density of the eigenvalues at the last checkpoint (one seed), per decade of the "
     "symmetric-log axis, with a band of one standard error over the probes if there are several. "
     "On the right axis: the cumulative weight (staircase), and the weight that cannot be "
     "distinguished from zero at this order and precision (grey bar, with its 99% interval)."},
    {NULL, NULL, NULL},
};

static const char *const formats[] = {"png", "pdf"};

/* What all plots of a study share. */
struct drawing {
    const struct ks_results *r;
    char *gnuplot, *plots; /* paths of the program and of the scripts' folder; owned */
    char *panels;          /* gnuplot statements that describe the panels; owned */
};

enum { NAME, NORM, WN, LOSS, WORDS };

static const char *word_of(const struct ks_study_architecture *a, int word)
{
    return word == NAME   ? a->name
           : word == NORM ? a->normalization
           : word == WN   ? (a->weight_normalization ? "1" : "0")
                          : a->loss;
}

/* "archs='bn+ce ln+ce'; norms='bn ln'; ...": a word per architecture, in the order of the panels.
 */
static ks_status list_panels(const struct ks_results *r, const struct ks_summary_table *table,
                             char **list)
{
    static const char *const names[WORDS] = {"archs", "norms", "wns", "losses"};
    size_t size;
    FILE *out = open_memstream(list, &size);
    bool failed;

    if (!out)
        return ks_fail(KS_MEMORY, "out of memory");
    for (int word = 0; word < WORDS; word++) {
        fprintf(out, "%s='", names[word]);
        for (size_t i = 0; i < table->n_rows; i++)
            fprintf(out, "%s%s", i ? " " : "",
                    word_of(&r->study->architecture[table->row[i].architecture], word));
        fputs("'; ", out);
    }
    failed = ferror(out) != 0;
    return fclose(out) != 0 || failed ? ks_fail(KS_MEMORY, "out of memory") : KS_OK;
}

static ks_status drawing_new(const struct ks_results *r, const struct ks_summary_table *table,
                             struct drawing *d)
{
    d->r = r;
    if (ks_locate_program("gnuplot", &d->gnuplot) != KS_OK)
        return ks_fail(KS_MISSING, "gnuplot: not found; the plots need it (package gnuplot-nox)");
    KS_TRY(ks_locate_shared("plots", &d->plots));
    return list_panels(r, table, &d->panels);
}

static void drawing_free(struct drawing *d)
{
    free(d->gnuplot);
    free(d->plots);
    free(d->panels);
}

/* Quotes a string for gnuplot: in single quotes, only the quote itself is special. */
static ks_status quote(const char *string, char **quoted)
{
    char *out;

    KS_TRY(ks_alloc(2 * strlen(string) + 3, 1, quoted));
    out = *quoted;
    *out++ = '\'';
    for (; *string; string++) {
        if (*string == '\'')
            *out++ = '\'';
        *out++ = *string;
    }
    *out = '\'';
    return KS_OK;
}

/* The gnuplot statements that are run before a script; plots/style.gp lists the variables. */
static ks_status print_settings(const struct drawing *d, const char *format, const char *output,
                                char **settings)
{
    char *plots = NULL;
    ks_status status;

    KS_TRY(quote(d->plots, &plots));
    status = ks_print_string(settings, "%sformat='%s'; output_file='%s'; plots=%s; steps=%zu",
                             d->panels, format, output, plots, d->r->study->end);
    free(plots);
    return status;
}

/* Runs the script without the user's own settings (-d). gnuplot prints only errors; the last line
 * becomes the message. */
static ks_status run_gnuplot(const struct drawing *d, const char *settings, const char *script)
{
    const char *argv[] = {d->gnuplot, "-d", "-e", settings, script, NULL};
    struct ks_process process;
    char line[512], said[512] = "no message";
    int code = 0;

    KS_TRY(ks_process_start(d->r->dir, argv, NULL, false, &process));
    while (fgets(line, sizeof line, process.output)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[strspn(line, " \t^")])
            snprintf(said, sizeof said, "%s", line);
    }
    KS_TRY(ks_process_end(&process, &code));
    return code == 0
               ? KS_OK
               : ks_fail(KS_RUN, "%s: gnuplot failed (exit status %d): %s", script, code, said);
}

/* gnuplot does not report failed writes, so the file must end as a complete PNG or PDF does.
 * `name`: the final path, for the message. */
static ks_status check_complete(const char *path, const char *name, const char *format)
{
    const char *ending = strcmp(format, "png") == 0 ? "IEND\xae\x42\x60\x82" : "%%EOF\n";
    size_t length = strlen(ending), size = 0;
    char *bytes = NULL;
    bool complete;

    KS_TRY(ks_text_read(path, &bytes, &size));
    complete = size >= length && memcmp(bytes + size - length, ending, length) == 0;
    free(bytes);
    return complete
               ? KS_OK
               : ks_fail(KS_FULL, "%s: gnuplot wrote an incomplete file: is the disk full?", name);
}

/* Draws to a temporary file in the folder of the plots and renames it into place. */
static ks_status draw(const struct drawing *d, const char *name, const char *format)
{
    char *script = NULL, *output = NULL, *settings = NULL, *to = NULL;
    struct ks_file file = {.descriptor = -1};
    ks_status status = KS_OK;

    KS_GO(ks_print_string(&script, "%s/%s.gp", d->plots, name));
    if (!ks_path_exists(script)) {
        status = ks_fail(KS_MISSING, "%s: does not exist", script);
        goto done;
    }
    KS_GO(ks_print_string(&to, "%s/figures/%s.%s", d->r->dir, name, format));
    KS_GO(ks_file_create(to, &file));
    KS_GO(ks_print_string(&output, "figures/%s", ks_path_base(file.temporary)));
    KS_GO(print_settings(d, format, output, &settings));
    KS_GO(run_gnuplot(d, settings, script));
    KS_GO(check_complete(file.temporary, to, format));
    KS_GO(ks_file_commit(&file, "", 0)); /* gnuplot has written it */
done:
    ks_file_close(&file);
    free(script);
    free(output);
    free(settings);
    free(to);
    return status;
}

ks_status ks_plots_draw(const struct ks_results *results, const struct ks_summary_table *table)
{
    struct drawing drawing = {0};
    char *folder = NULL;
    ks_status status = KS_OK;

    KS_GO(drawing_new(results, table, &drawing));
    KS_GO(ks_print_string(&folder, "%s/figures", results->dir));
    KS_GO(ks_folder_make(folder));
    for (size_t i = 0; ks_plots[i].name; i++)
        for (size_t f = 0; f < sizeof formats / sizeof *formats; f++)
            KS_GO(draw(&drawing, ks_plots[i].name, formats[f]));
done:
    free(folder);
    drawing_free(&drawing);
    return status;
}

/* --- from a study's folder to its tables, plots and report --- */

static void announce(const struct ks_results *r, const struct ks_summary_table *table)
{
    for (size_t i = 0; ks_plots[i].name; i++)
        printf("%s/figures/%s.png (and .pdf): %s\n", r->dir, ks_plots[i].name, ks_plots[i].title);
    printf("%s/report.html: all plots and the table\n\n", r->dir);
    ks_summary_print(r, table, stdout);
    if (!isnan(table->spearman))
        printf("\nSpearman's rank correlation of 10^IQM(log10 kappa) with the return, over %zu "
               "architectures: %.2f\n",
               table->ranked, table->spearman);
    for (size_t k = 1; k < table->n_analyses; k++)
        printf("%s%s%s",
               k > 1 ? ", " : "\nFurther analyses, in tables/summary.csv and report.html: ",
               r->study->analysis[k].name, k + 1 < table->n_analyses ? "" : "\n");
}

static ks_status plot(const struct ks_results *r, size_t resamples, struct ks_summary_table *table)
{
    struct ks_claims claims;

    KS_TRY(ks_summary_table(r, resamples, table));
    KS_TRY(ks_tables_write(r, table, resamples));
    KS_TRY(ks_claims_judge(r, resamples, &claims));
    KS_TRY(ks_claims_write(&claims, r->dir));
    KS_TRY(ks_theorems_write(r));
    if (table->n_rows == 0)
        return ks_fail(KS_FORMAT,
                       "%s: nothing to draw: no architecture has all its spectra and returns; the "
                       "tables contain the existing results",
                       r->dir);
    KS_TRY(ks_plots_draw(r, table));
    KS_TRY(ks_page_write(r, table));
    announce(r, table);
    ks_claims_print(&claims, stdout);
    ks_theorems_print(r, stdout);
    return fflush(stdout) == 0 && !ferror(stdout)
               ? KS_OK
               : ks_fail(KS_FULL, "standard output: %s", strerror(errno));
}

/* Removes temporary files of plot programs that were killed. */
static ks_status sweep(const char *dir)
{
    static const char *const folders[] = {".", "tables", "figures"};

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char *path = NULL;

        KS_TRY(ks_print_string(&path, "%s/%s", dir, folders[i]));
        if (ks_path_exists(path))
            ks_folder_sweep(path); /* a failure does no harm */
        free(path);
    }
    return KS_OK;
}

ks_status ks_study_plot(const char *dir, const struct ks_study *study, size_t resamples, bool quiet)
{
    struct ks_summary_table table = {0};
    struct ks_results *results = NULL;
    ks_status status = KS_OK;

    KS_GO(ks_results_read(dir, study, &results));
    KS_GO(sweep(dir));
    if (resamples > 0)
        KS_GO(ks_results_warn_intervals(results));
    for (size_t i = 0; i < results->n_warnings; i++)
        ks_say("warning: %s", results->warning[i]);
    if (!quiet)
        ks_say("drawing the plots of %s", dir);
    KS_GO(plot(results, resamples, &table));
done:
    free(table.row);
    ks_results_free(results);
    return status;
}
