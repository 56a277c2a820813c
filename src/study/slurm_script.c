/* Writes the script that the tasks of a study's job arrays run. */
#include "study/slurm.h"

#include <stdlib.h>

#include "core/memory.h"
#include "io/text.h"
#include "study/graph.h"
#include "study/shell.h"

static void print_start(FILE *out, const struct ks_graph *graph, const struct ks_slurm *s)
{
    fprintf(out,
            "#!/bin/sh\n"
            "# Written by kappascope-study: task N of a job array of Slurm trains or analyzes run "
            "N.\n"
            "kind=$1\n"
            "if [ \"$kind\" = plot ]; then\n"
            "    exec ");
    ks_shell_word(out, s->plot);
    fprintf(out, " .\nfi\nset --");
    for (size_t i = 0; i < graph->n_runs; i++)
        fprintf(out, " \\\n    %s", graph->job[i].folder);
    fprintf(out, "\nshift \"$SLURM_ARRAY_TASK_ID\"\nrun=$1\n\n");
}

/* flock exits with 1 if the time is over, and with more where the file system has no locks. */
static void print_lock(FILE *out)
{
    fprintf(out, "# A task that was lost with its node may still be alive there when it starts "
                 "again here. All\n"
                 "# processes of the task hold this lock.\n"
                 "mkdir -p \"$run\" || exit\n"
                 "exec 9>>\"$run/" KS_SLURM_LOCK "\" || exit\n"
                 "flock --wait 600 9\n"
                 "if [ $? -eq 1 ]; then\n"
                 "    echo \"$run: locked by another node\"\n"
                 "    exit 1\n"
                 "fi\n\n");
}

/* The program's exit status does not tell whether it was stopped or has failed; that it was asked
 * to stop, and got further than at the start of the task, does. `wait` ends early when a signal
 * arrives. */
static void print_work(FILE *out, const char *make, bool keep_going)
{
    fprintf(out,
            "progress() {\n"
            "    grep '\"env_step\"' \"$run/run.json\"\n"
            "    ls \"$run\"\n"
            "}\n"
            "before=$(progress 2>/dev/null)\n"
            "make= limit=\n"
            "# Slurm sends USR1 before the time limit. It sends TERM, when the job is cancelled or "
            "preempted,\n"
            "# to make and its programs, too.\n"
            "trap 'limit=1; [ -z \"$make\" ] || kill -TERM \"$make\"' USR1\n"
            "trap : TERM\n");
    ks_shell_word(out, make);
    fprintf(out,
            " -f study.mk -r -R --no-print-directory%s -j\"${SLURM_CPUS_PER_TASK:-1}\" \\\n"
            "    \"$kind-$SLURM_ARRAY_TASK_ID\" &\n"
            "make=$!\n"
            "[ -z \"$limit\" ] || kill -TERM \"$make\"\n"
            "wait \"$make\"\n"
            "code=$?\n"
            "while kill -0 \"$make\" 2>/dev/null; do\n"
            "    wait \"$make\"\n"
            "    code=$?\n"
            "done\n\n"
            "if [ \"$code\" -ne 0 ] && [ -n \"$limit\" ]; then\n"
            "    if [ \"$(progress 2>/dev/null)\" = \"$before\" ]; then\n"
            "        echo \"$run: no progress within the time limit: a longer one is needed "
            "(--sbatch=--time=...)\"\n"
            "        exit 1\n"
            "    fi\n"
            "    echo \"$run: stopped before the time limit, requeued\"\n"
            "    scontrol requeue \"${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID\" && sleep 60\n"
            "fi\n"
            "exit \"$code\"\n",
            keep_going ? " -k" : "");
}

ks_status ks_slurm_write(const struct ks_graph *graph, const char *dir, const struct ks_slurm *s)
{
    struct ks_text text = {0};
    char *folder = NULL, *path = NULL, *make = NULL;
    ks_status status = KS_OK;

    KS_GO(ks_graph_find_make(&make));
    KS_GO(ks_print_string(&folder, "%s/" KS_SLURM_FOLDER, dir));
    KS_GO(ks_folder_make(folder));
    KS_GO(ks_print_string(&path, "%s/task.sh", folder));
    status = ks_text_open(path, &text);
    if (status == KS_OK) {
        print_start(text.stream, graph, s);
        print_lock(text.stream);
        print_work(text.stream, make, s->keep_going);
    }
    status = ks_text_close(&text, status);
done:
    free(folder);
    free(path);
    free(make);
    return status;
}
