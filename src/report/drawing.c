/* Runs gnuplot on the tables. The scripts only draw, and compute nothing but the limits of their
 * axes. */
#include "report/plots.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/path.h"
#include "io/file.h"
#include "io/text.h"
#include "report/panels.h"
#include "report/svg.h"
#include "study/locate.h"
#include "study/process.h"

static const char *const formats[] = {"png", "pdf", "svg"};
enum { FORMATS = sizeof formats / sizeof *formats };

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

/* "archs='bn+ce ln+ce'; norms='bn ln'; ...": a word per architecture, in the order of the table. */
static void print_words(size_t n, const struct ks_study_architecture *const *a, FILE *out)
{
    static const char *const names[WORDS] = {"archs", "norms", "wns", "losses"};

    for (int word = 0; word < WORDS; word++) {
        fprintf(out, "%s='", names[word]);
        for (size_t i = 0; i < n; i++)
            fprintf(out, "%s%s", i ? " " : "", word_of(a[i], word));
        fputs("'; ", out);
    }
}

static void print_places(const char *name, size_t n, const size_t *place, FILE *out)
{
    fprintf(out, "%s='", name);
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%s%zu", i ? " " : "", place[i]);
    fputs("'; ", out);
}

/* The smallest number of steps between two checkpoints; with one checkpoint, its step. */
static size_t checkpoint_gap(const struct ks_study *s)
{
    size_t gap = s->end;

    for (size_t i = 1; i < s->n_checkpoints; i++)
        if (s->checkpoint[i] - s->checkpoint[i - 1] < gap)
            gap = s->checkpoint[i] - s->checkpoint[i - 1];
    return gap;
}

static ks_status list_panels(const struct ks_results *r, const struct ks_summary_table *table,
                             char **list)
{
    const struct ks_study_architecture *architecture[KS_STUDY_ARCHITECTURES];
    struct ks_panels panels;
    size_t size;
    FILE *out = open_memstream(list, &size);
    bool failed;

    if (!out)
        return ks_fail(KS_MEMORY, "out of memory");
    for (size_t i = 0; i < table->n_rows; i++)
        architecture[i] = &r->study->architecture[table->row[i].architecture];
    ks_panels_place(table->n_rows, architecture, &panels);
    print_words(table->n_rows, architecture, out);
    print_places("grid_x", table->n_rows, panels.x, out);
    print_places("grid_y", table->n_rows, panels.y, out);
    fprintf(out, "grid_columns=%zu; grid_rows=%zu; checkpoint_gap=%zu; ", panels.columns,
            panels.rows, checkpoint_gap(r->study));
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
static ks_status print_settings(const struct drawing *d, const char *name, const char *format,
                                const char *output, char **settings)
{
    char *plots = NULL;
    ks_status status;

    KS_TRY(quote(d->plots, &plots));
    status = ks_print_string(settings,
                             "%sname='%s'; format='%s'; output_file='%s'; plots=%s; steps=%zu",
                             d->panels, name, format, output, plots, d->r->study->end);
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

/* gnuplot does not report failed writes, so the file must end as a complete file of its format
 * does. `name`: the final path, for the message. */
static ks_status read_complete(const char *path, const char *name, const char *format, char **bytes)
{
    const char *ending = strcmp(format, "png") == 0   ? "IEND\xae\x42\x60\x82"
                         : strcmp(format, "pdf") == 0 ? "%%EOF\n"
                                                      : "</svg>\n\n";
    size_t length = strlen(ending), size = 0;

    KS_TRY(ks_text_read(path, bytes, &size));
    return size >= length && memcmp(*bytes + size - length, ending, length) == 0
               ? KS_OK
               : ks_fail(KS_FULL, "%s: gnuplot wrote an incomplete file: is the disk full?", name);
}

/* Checks what gnuplot has written to the temporary file, and renames it into place. */
static ks_status take_plot(struct ks_file *file, const char *name, const char *format)
{
    char *bytes = NULL, *clean = NULL;
    ks_status status = read_complete(file->temporary, file->path, format, &bytes);

    if (status == KS_OK && strcmp(format, "svg") == 0) {
        status = ks_svg_clean(name, bytes, &clean);
        if (status == KS_OK && ftruncate(file->descriptor, 0) != 0)
            status = ks_file_fail(errno, file->temporary, "truncated");
    }
    if (status == KS_OK)
        status = ks_file_commit(file, clean ? clean : "", clean ? strlen(clean) : 0);
    free(bytes);
    free(clean);
    return status;
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
    KS_GO(print_settings(d, name, format, output, &settings));
    KS_GO(run_gnuplot(d, settings, script));
    KS_GO(take_plot(&file, name, format));
done:
    ks_file_close(&file);
    free(script);
    free(output);
    free(settings);
    free(to);
    return status;
}

/* Removes what an earlier call drew from data that have gone. */
static ks_status remove_plot(const struct ks_results *r, const char *name, const char *format)
{
    ks_status status = KS_OK;
    char *path;

    KS_TRY(ks_print_string(&path, "%s/figures/%s.%s", r->dir, name, format));
    if (unlink(path) != 0 && errno != ENOENT)
        status = ks_file_fail(errno, path, "removed");
    free(path);
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
    for (size_t i = 0; ks_plots[i].name; i++) {
        bool has_data;

        KS_GO(ks_plot_has_data(results, &ks_plots[i], &has_data));
        for (size_t f = 0; f < FORMATS; f++)
            KS_GO(has_data ? draw(&drawing, ks_plots[i].name, formats[f])
                           : remove_plot(results, ks_plots[i].name, formats[f]));
    }
done:
    free(folder);
    drawing_free(&drawing);
    return status;
}
