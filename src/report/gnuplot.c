#include "report/gnuplot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/path.h"
#include "core/process.h"
#include "io/file.h"
#include "io/text.h"
#include "report/svg.h"

ks_status ks_gnuplot_find(struct ks_gnuplot *g)
{
    if (ks_locate_program("gnuplot", &g->program) != KS_OK)
        return ks_fail(KS_MISSING, "gnuplot: not found; the plots need it (package gnuplot-nox)");
    return ks_installed_shared("plots", &g->plots);
}

void ks_gnuplot_clear(struct ks_gnuplot *g)
{
    free(g->program);
    free(g->plots);
    free(g->panels);
    *g = (struct ks_gnuplot){.dir = NULL};
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
static ks_status print_settings(const struct ks_gnuplot *g, const char *name, const char *format,
                                const char *output, char **settings)
{
    char *plots = NULL;
    ks_status status;

    KS_TRY(quote(g->plots, &plots));
    status = ks_print_string(settings,
                             "%sname='%s'; format='%s'; output_file='%s'; plots=%s; steps=%zu",
                             g->panels, name, format, output, plots, g->steps);
    free(plots);
    return status;
}

/* Runs the script without the user's own settings (-d). gnuplot prints only errors; the last line
 * becomes the message. */
static ks_status run_gnuplot(const struct ks_gnuplot *g, const char *settings, const char *script)
{
    const char *argv[] = {g->program, "-d", "-e", settings, script, NULL};
    struct ks_process process;
    char line[512], said[512] = "no message";
    int code = 0;

    KS_TRY(ks_process_start(g->dir, argv, NULL, false, &process));
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
ks_status ks_gnuplot_draw(const struct ks_gnuplot *g, const char *name, const char *format)
{
    char *script = NULL, *output = NULL, *settings = NULL, *to = NULL;
    struct ks_file file = {.descriptor = -1};
    ks_status status = KS_OK;

    KS_GO(ks_print_string(&script, "%s/%s.gp", g->plots, name));
    if (!ks_path_exists(script)) {
        status = ks_fail(KS_MISSING, "%s: does not exist", script);
        goto done;
    }
    KS_GO(ks_print_string(&to, "%s/figures/%s.%s", g->dir, name, format));
    KS_GO(ks_file_create(to, &file));
    KS_GO(ks_print_string(&output, "figures/%s", ks_path_base(file.temporary)));
    KS_GO(print_settings(g, name, format, output, &settings));
    KS_GO(run_gnuplot(g, settings, script));
    KS_GO(take_plot(&file, name, format));
done:
    ks_file_close(&file);
    free(script);
    free(output);
    free(settings);
    free(to);
    return status;
}

ks_status ks_gnuplot_remove(const struct ks_gnuplot *g, const char *name, const char *format)
{
    ks_status status = KS_OK;
    char *path;

    KS_TRY(ks_print_string(&path, "%s/figures/%s.%s", g->dir, name, format));
    if (unlink(path) != 0 && errno != ENOENT)
        status = ks_file_fail(errno, path, "removed");
    free(path);
    return status;
}
