/* The user's options for sbatch. */
#include "study/slurm.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <popt.h>

#include "core/memory.h"
#include "core/process.h"
#include "core/say.h"
#include "io/text.h"
#include "study/graph.h"
#include "study/shell.h"

ks_status ks_slurm_add_options(struct ks_slurm *s, const char *text)
{
    const char **word = NULL;
    int n = 0;
    ks_status status = KS_OK;

    KS_TRY(ks_shell_check("--sbatch", text));
    if (poptParseArgvString(text, &n, &word) != 0)
        return ks_fail(KS_USAGE, "--sbatch: expected options for sbatch, found '%s'", text);
    for (int i = 0; i < n && status == KS_OK; i++) {
        status = ks_grow(s->n_options, sizeof *s->option, &s->room, &s->option);
        if (status == KS_OK)
            status = ks_copy_string(word[i], &s->option[s->n_options]);
        if (status == KS_OK)
            s->n_options++;
    }
    free(word);
    return status;
}

void ks_slurm_clear(struct ks_slurm *s)
{
    for (size_t i = 0; i < s->n_options; i++)
        free(s->option[i]);
    free(s->option);
    s->option = NULL;
    s->n_options = s->room = 0;
}

/* Writes the script that the tasks of a study's job arrays run. */

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

/* Submits a study's graph as job arrays of Slurm, or prints the commands that do. */

/* Seconds before the time limit at which a task is told to stop: an evaluation of ten episodes and
 * a checkpoint are completed first. */
enum { WARNING = 120 };
enum { LINE = 4096, ID = 32 };

/* The jobs, in the order in which they are submitted. */
enum stage { TRAIN, AFTER, READY, PLOT, STAGES };
static const char *const kinds[] = {"train", "analyze", "analyze", "plot"};
static const char *const variables[] = {"$train", "$after", "$ready", "$plot"};

struct plan {
    const struct ks_graph *graph;
    const struct ks_slurm *s;
    bool *wanted[PLOT];  /* [n_runs]: the runs of each array; owned */
    char id[STAGES][ID]; /* of submitted jobs; empty: not submitted, or no work */
};

/* The words of an sbatch command; owned. */
struct words {
    char **word; /* [n], followed by NULL; there is room for OWN words and the further options */
    size_t n;
};
enum { OWN = 16 };

static void words_free(struct words *w)
{
    for (size_t i = 0; i < w->n; i++)
        free(w->word[i]);
    free(w->word);
    *w = (struct words){NULL, 0};
}

/* Appends a word, which the list owns from now on. */
static void take_word(struct words *w, char *word)
{
    w->word[w->n++] = word;
}

static ks_status add_word(struct words *w, const char *text)
{
    KS_TRY(ks_copy_string(text, &w->word[w->n]));
    w->n++;
    return KS_OK;
}

/* "--array=0-3,7%2". */
static ks_status add_array(struct words *w, const struct plan *plan, enum stage stage)
{
    const bool *wanted = plan->wanted[stage];
    const char *comma = "";
    char *word = NULL;
    size_t size, n = plan->graph->n_runs;
    FILE *out = open_memstream(&word, &size);

    if (!out)
        return ks_fail(KS_MEMORY, "out of memory");
    fprintf(out, "--array=");
    for (size_t first = 0, last; first < n; first = last) {
        for (last = first; last < n && wanted[last]; last++)
            ;
        if (last - first > 1)
            fprintf(out, "%s%zu-%zu", comma, first, last - 1);
        else if (last > first)
            fprintf(out, "%s%zu", comma, first);
        comma = last > first ? "," : comma;
        last += last == first;
    }
    if (plan->s->jobs > 0)
        fprintf(out, "%%%zu", plan->s->jobs);
    if (fclose(out) != 0) {
        free(word);
        return ks_fail(KS_MEMORY, "out of memory");
    }
    take_word(w, word);
    return KS_OK;
}

/* A task that would wait forever is cancelled. */
static ks_status add_dependency(struct words *w, const struct plan *plan, enum stage stage)
{
    char list[4 * ID] = "", *word;
    size_t used = 0;

    for (size_t i = TRAIN; i < PLOT; i++)
        if (*plan->id[i] && (stage == PLOT || (stage == AFTER && i == TRAIN)))
            used += (size_t)snprintf(list + used, sizeof list - used, ":%s", plan->id[i]);
    if (used == 0)
        return KS_OK;
    KS_TRY(ks_print_string(&word, "--dependency=%s%s",
                           stage == AFTER        ? "aftercorr"
                           : plan->s->keep_going ? "afterany"
                                                 : "afterok",
                           list));
    take_word(w, word);
    return add_word(w, "--kill-on-invalid-dep=yes");
}

static ks_status add_array_options(struct words *w, const struct plan *plan, enum stage stage)
{
    const struct ks_study *study = plan->graph->study;
    size_t threads = 1;
    char *word;

    KS_TRY(add_array(w, plan, stage));
    for (size_t a = 0; a < study->n_architectures; a++)
        if (study->architecture[a].settings.threads > threads)
            threads = study->architecture[a].settings.threads;
    KS_TRY(ks_print_string(&word, "--cpus-per-task=%zu", threads));
    take_word(w, word);
    KS_TRY(ks_print_string(&word, "--signal=B:USR1@%d", WARNING));
    take_word(w, word);
    return KS_OK;
}

static ks_status make_words(const struct plan *plan, enum stage stage, struct words *w)
{
    char *word;

    KS_TRY(ks_alloc(OWN + plan->s->n_options, sizeof *w->word, &w->word));
    KS_TRY(add_word(w, "sbatch"));
    KS_TRY(add_word(w, "--parsable"));
    KS_TRY(ks_print_string(&word, "--job-name=%s:%s", plan->graph->study->name, kinds[stage]));
    take_word(w, word);
    if (stage != PLOT)
        KS_TRY(add_array_options(w, plan, stage));
    KS_TRY(add_dependency(w, plan, stage));
    KS_TRY(add_word(w, "--requeue"));
    KS_TRY(add_word(w, "--open-mode=append"));
    KS_TRY(ks_print_string(&word, "--output=" KS_SLURM_FOLDER "/%s-%s.log", kinds[stage],
                           stage == PLOT ? "%j" : "%A_%a"));
    take_word(w, word);
    for (size_t i = 0; i < plan->s->n_options; i++)
        KS_TRY(add_word(w, plan->s->option[i]));
    KS_TRY(add_word(w, KS_SLURM_FOLDER "/task.sh"));
    return add_word(w, kinds[stage]);
}

static size_t count(const struct plan *plan, enum stage stage)
{
    size_t n = 0;

    for (size_t i = 0; stage != PLOT && i < plan->graph->n_runs; i++)
        n += plan->wanted[stage][i];
    return n;
}

static void plan_free(struct plan *plan)
{
    for (size_t i = 0; i < PLOT; i++)
        free(plan->wanted[i]);
}

/* Which runs each array works on. */
static ks_status plan_new(const struct ks_graph *graph, const char *dir, const struct ks_slurm *s,
                          struct plan *plan)
{
    bool *done;

    *plan = (struct plan){.graph = graph, .s = s};
    for (size_t i = 0; i < PLOT; i++)
        KS_TRY(ks_alloc(graph->n_runs, sizeof *plan->wanted[i], &plan->wanted[i]));
    KS_TRY(ks_graph_done(graph, dir, &done));
    for (size_t i = 0; i < graph->n_runs; i++)
        plan->wanted[TRAIN][i] = !done[i];
    for (size_t i = graph->n_runs; i < graph->n_jobs; i++)
        if (!done[i]) {
            size_t run = graph->job[i].run;

            plan->wanted[plan->wanted[TRAIN][run] ? AFTER : READY][run] = true;
        }
    free(done);
    return KS_OK;
}

/* --- printing --- */

/* "train=$(sbatch ...)"; a dependency refers to such variables. */
static ks_status print_stage(struct plan *plan, enum stage stage, FILE *out)
{
    struct words w = {NULL, 0};
    ks_status status = make_words(plan, stage, &w);

    if (status == KS_OK)
        fprintf(out, "%s=$(", variables[stage] + 1);
    for (size_t i = 0; status == KS_OK && i < w.n; i++) {
        fputs(i > 0 ? " " : "", out);
        if (strncmp(w.word[i], "--dependency=after", 18) == 0 && strchr(w.word[i], '$'))
            fputs(w.word[i], out);
        else
            ks_shell_word(out, w.word[i]);
    }
    if (status == KS_OK)
        fprintf(out, ") || exit\n");
    words_free(&w);
    snprintf(plan->id[stage], ID, "%s", variables[stage]);
    return status;
}

ks_status ks_slurm_print(const struct ks_graph *graph, const char *dir, const struct ks_slurm *s,
                         FILE *out)
{
    struct plan plan;
    ks_status status = plan_new(graph, dir, s, &plan);

    if (status == KS_OK) {
        fprintf(out, "cd -- ");
        ks_shell_word(out, dir);
        fprintf(out, " || exit\n");
    }
    for (enum stage stage = TRAIN; status == KS_OK && stage < STAGES; stage++)
        if (stage == PLOT || count(&plan, stage) > 0)
            status = print_stage(&plan, stage, out);
    plan_free(&plan);
    return status;
}

/* --- submitting --- */

/* "123" or "123;CLUSTER", which --parsable prints. */
static bool read_id(const char *line, char id[ID])
{
    size_t length = strspn(line, "0123456789");

    if (length == 0 || length >= ID || !strchr(";\n", line[length]))
        return false;
    snprintf(id, ID, "%.*s", (int)length, line);
    return true;
}

/* Runs a command in the study's folder. What it prints beside the job's number goes to standard
 * error; the last of these lines becomes the message of a failure. */
static ks_status run_command(const char *dir, char **argv, bool quiet, char id[ID])
{
    struct ks_process process = {0};
    char line[LINE], last[LINE] = "no message";
    int code;

    KS_TRY(ks_process_start(dir, (const char *const *)argv, NULL, false, &process));
    while (fgets(line, sizeof line, process.output)) {
        if (read_id(line, id))
            continue;
        line[strcspn(line, "\n")] = '\0';
        if (!quiet)
            ks_say("%s", line);
        snprintf(last, LINE, "%s", line);
    }
    KS_TRY(ks_process_end(&process, &code));
    if (code != 0)
        return ks_fail(KS_RUN, "%s failed (exit status %d): %s", argv[0], code, last);
    return *id ? KS_OK : ks_fail(KS_RUN, "%s: expected the number of a job, found none", argv[0]);
}

static ks_status submit_stage(struct plan *plan, enum stage stage, const char *sbatch,
                              const char *dir)
{
    struct words w = {NULL, 0};
    ks_status status = make_words(plan, stage, &w);

    if (status == KS_OK) {
        free(w.word[0]);
        w.word[0] = NULL;
        status = ks_copy_string(sbatch, &w.word[0]);
    }
    if (status == KS_OK)
        status = run_command(dir, w.word, plan->s->quiet, plan->id[stage]);
    words_free(&w);
    if (status == KS_OK && !plan->s->quiet && stage == PLOT)
        ks_say("submitted: plot, job %s", plan->id[stage]);
    else if (status == KS_OK && !plan->s->quiet)
        ks_say("submitted: %zu x %s, job %s", count(plan, stage), kinds[stage], plan->id[stage]);
    return status;
}

/* Cancels what was submitted before a failure, whose message stays. */
static void cancel(const struct plan *plan, const char *dir)
{
    char *argv[STAGES + 2] = {NULL}, *scancel = NULL, message[LINE], none[ID] = "0";
    size_t n = 1;

    snprintf(message, sizeof message, "%s", ks_error_text());
    for (size_t i = TRAIN; i < STAGES; i++)
        if (*plan->id[i])
            argv[n++] = (char *)plan->id[i];
    if (n > 1 && ks_locate_program("scancel", &scancel) == KS_OK) {
        argv[0] = scancel;
        run_command(dir, argv, true, none);
    }
    free(scancel);
    ks_fail(KS_RUN, "%s", message);
}

ks_status ks_slurm_submit(const struct ks_graph *graph, const char *dir, const struct ks_slurm *s)
{
    struct plan plan = {.graph = NULL};
    char *sbatch = NULL;
    ks_status status = KS_OK;

    KS_GO(ks_locate_program("sbatch", &sbatch));
    KS_GO(plan_new(graph, dir, s, &plan));
    KS_GO(ks_graph_write(graph, dir));
    KS_GO(ks_slurm_write(graph, dir, s));
    for (enum stage stage = TRAIN; status == KS_OK && stage < STAGES; stage++)
        if (stage == PLOT || count(&plan, stage) > 0)
            status = submit_stage(&plan, stage, sbatch, dir);
    if (status != KS_OK)
        cancel(&plan, dir);
    else if (!s->quiet)
        ks_say("logs: %s/" KS_SLURM_FOLDER "; progress: --status", dir);
done:
    free(sbatch);
    plan_free(&plan);
    return status;
}
