/* What a study asks for, and the progress of its runs. */
#include "inspect/inspect.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/memory.h"
#include "core/path.h"
#include "inspect/lines.h"
#include "io/text.h"
#include "study/graph.h"
#include "study/status.h"
#include "study/study_file.h"

static void print_study(const struct ks_study *s, const char *path, FILE *out)
{
    ks_line_print(out, "study", "%s", path);
    ks_line_print(out, "task", "%s", s->env);
    ks_line_print(out, "steps", "%zu environment steps per run%s", s->end,
                  s->stop ? ", stopped early" : "");
    ks_line_print(out, "seeds", "%zu", s->n_seeds);
    ks_line_print(out, "checkpoints", "%zu per run", s->n_checkpoints);
    for (size_t i = 0; i < s->n_architectures; i++)
        ks_line_print(out, i ? "" : "architectures", "%s", s->architecture[i].name);
    for (size_t i = 0; i < s->n_analyses; i++)
        ks_line_print(out, i ? "" : "analyses", "%s", s->analysis[i].name);
}

/* The lines of `kappascope study --status`, on standard output. */
static ks_status print_progress(const struct ks_study *s, const char *dir, FILE *out)
{
    const struct ks_graph_programs programs = {"kappascope-train", "kappascope-analyze", false, 0};
    struct ks_study_view view = {.dir = dir, .held = true};
    struct ks_graph *graph = NULL;
    ks_status status;

    ks_title_print(out, "Progress");
    fflush(out);
    KS_TRY(ks_graph_new(s, &programs, &graph));
    view.graph = graph;
    status = ks_study_print_status(&view);
    ks_graph_free(graph);
    return status;
}

/* The study's file and its folder. The folder is the one that holds study.study; for a file with
 * another name it is checkpoints/NAME, and *dir is NULL if that does not exist. */
static ks_status find_paths(const char *path, char **file, char **dir)
{
    struct stat info;
    const char *base = ks_path_base(path);

    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        KS_TRY(ks_copy_string(path, dir));
        return ks_print_string(file, "%s/study.study", path);
    }
    KS_TRY(ks_copy_string(path, file));
    if (strcmp(base, "study.study") == 0)
        return ks_print_string(dir, "%.*s.", (int)(base - path), path);
    KS_TRY(ks_print_string(dir, "checkpoints/%.*s", (int)ks_path_stem(base, ".study"), base));
    if (!ks_path_exists(*dir)) {
        free(*dir);
        *dir = NULL;
    }
    return KS_OK;
}

ks_status ks_inspect_study(const char *path, FILE *out)
{
    char *file = NULL, *dir = NULL;
    struct ks_study *study = NULL;
    ks_status status = KS_OK;

    KS_GO(find_paths(path, &file, &dir));
    if (!ks_path_exists(file)) {
        status = ks_fail(KS_IO, "%s: expected a study's folder, found no study.study in it", path);
        goto done;
    }
    KS_GO(ks_study_read(file, false, &study));
    print_study(study, path, out);
    if (dir)
        KS_GO(print_progress(study, dir, out));
    else
        ks_line_print(out, "folder", "none in checkpoints/: it has not run here");
done:
    ks_study_free(study);
    free(file);
    free(dir);
    return status;
}
