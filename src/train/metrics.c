#include "train/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"

const struct ks_quantity ks_progress_columns[] = {
    {"env_step", "environment steps so far"},
    {"update", "gradient updates so far"},
    {"critic_loss", "mean over rows, summed over the critics; mean over recent updates"},
    {"actor_loss", "mean over recent updates in which the actor made a step"},
    {"temperature_loss", "over the same updates"},
    {"q_mean", "mean value of the critics over recent updates"},
    {"entropy", "mean of -log pi over recent updates in which the actor made a step"},
    {"temperature", "the entropy temperature now"},
    {"clipped_fraction", "share of the target atoms that were clipped to the ends of the support, "
                         "over recent updates"},
    {"return_mean", "mean return of the evaluation at this step"},
    {"success", "for MyoSuite, the share of its episodes that solve the task"},
    {"steps_per_second", "since the row before, without evaluations and checkpoints"},
    {"updates_per_second", "of the time spent in updates, with `threads` from 2 on including the "
                           "wait for the environment"},
    {"divergences", "diverged simulations since the start of the run, in training"},
    {"evaluation_divergences", "the same in evaluations"},
    {NULL, NULL},
};
enum { COUNTERS = 2, SUCCESS = 10, COLUMNS = 15 }; /* env_step and update; success; all of them */
static const char FIRST[] = "env_step,update";

enum { MODE = 0666 }; /* of the file, before umask */

/* Truncates the file to m->size bytes and moves its position to the end. */
static bool cut_off(const struct ks_metrics *m)
{
    off_t end = (off_t)m->size;

    return ftruncate(m->descriptor, end) == 0 && lseek(m->descriptor, end, SEEK_SET) == end;
}

static ks_status open_file(struct ks_metrics *m, size_t size)
{
    m->descriptor = open(m->path, O_WRONLY | O_CLOEXEC | (size > 0 ? 0 : O_CREAT), MODE);
    if (m->descriptor < 0)
        return ks_file_fail(errno, m->path, "opened");
    m->size = size;
    if (!cut_off(m))
        return ks_file_fail(errno, m->path, "cut off");
    return KS_OK;
}

/* Reads the header line of an existing file. */
static ks_status read_columns(struct ks_metrics *m)
{
    KS_OWNED char *bytes = NULL;
    size_t found;
    char *end;

    KS_TRY(ks_text_read(m->path, &bytes, &found));
    end = memchr(bytes, '\n', found);
    if (end)
        *end = '\0';
    return end && strncmp(bytes, FIRST, strlen(FIRST)) == 0
               ? ks_copy_string(bytes, &m->columns)
               : ks_fail(KS_FORMAT, "%s: expected a header line '%s,...'", m->path, FIRST);
}

ks_status ks_metrics_new(const char *path, size_t size, const struct KS(agent) *agent,
                         struct ks_metrics **metrics)
{
    KS_OWNED_BY(ks_metrics_free) struct ks_metrics *m = NULL;

    *metrics = NULL;
    KS_TRY(ks_alloc(1, sizeof *m, &m));
    m->descriptor = -1;
    KS_TRY(ks_copy_string(path, &m->path));
    KS_TRY(ks_alloc(COLUMNS + KS(agent_most_metrics)(agent), sizeof *m->row, &m->row));
    if (size > 0)
        KS_TRY(read_columns(m));
    KS_TRY(open_file(m, size));
    *metrics = m, m = NULL;
    return KS_OK;
}

ks_status ks_metrics_digest(const char *path, size_t size, unsigned char digest[KS_SHA256_BYTES])
{
    size_t found;
    KS_OWNED char *bytes = NULL;

    KS_TRY(ks_text_read(path, &bytes, &found));
    return found < size
               ? ks_fail(KS_FORMAT, "%s: expected at least %zu bytes, found %zu", path, size, found)
               : ks_sha256(1, &(struct ks_piece){bytes, size}, digest);
}

void ks_metrics_free(struct ks_metrics *m)
{
    if (!m)
        return;
    if (m->descriptor >= 0)
        close(m->descriptor); /* errors were reported when rows were written */
    free(m->path);
    free(m->columns);
    free(m->row);
    free(m);
}

void ks_metrics_add(struct ks_metrics *m, const struct ks_update *u, double seconds)
{
    m->sum.critic_loss += u->critic_loss;
    m->sum.q_mean += u->q_mean;
    m->sum.clipped_fraction += u->clipped_fraction;
    m->updates++;
    m->update_seconds += seconds;
    if (!u->actor_stepped)
        return;
    m->sum.actor_loss += u->actor_loss;
    m->sum.temperature_loss += u->temperature_loss;
    m->sum.entropy += u->entropy;
    m->actor_steps++;
}

static ks_status fill_row(struct ks_metrics *m, struct KS(agent) *agent,
                          const struct ks_batch *batch, size_t env_step, double return_mean)
{
    /* Without updates, 0/0 is NaN. */
    const double updates = (double)m->updates, actor_steps = (double)m->actor_steps;
    const bool atoms = agent->critic_arch->loss.kind->distribution;
    const double value[COLUMNS] = {
        (double)env_step,
        (double)agent->updates,
        m->sum.critic_loss / updates,
        m->sum.actor_loss / actor_steps,
        m->sum.temperature_loss / actor_steps,
        m->sum.q_mean / updates,
        m->sum.entropy / actor_steps,
        KS(agent_temperature)(agent),
        atoms ? m->sum.clipped_fraction / updates : NAN,
        return_mean,
        m->success,
        (double)(env_step - m->env_step) / m->step_seconds,
        m->updates > 0 ? updates / m->update_seconds : NAN,
        (double)m->divergences,
        (double)m->evaluation_divergences,
    };
    size_t metrics;

    m->n = 0;
    for (size_t k = COUNTERS; k < COLUMNS; k++)
        if (k != SUCCESS || m->has_goal) {
            struct ks_metric *metric = &m->row[m->n++];

            snprintf(metric->name, sizeof metric->name, "%s", ks_progress_columns[k].name);
            metric->value = value[k];
        }
    KS_TRY(KS(agent_metrics)(agent, batch, m->row + m->n, &metrics));
    m->n += metrics;
    return KS_OK;
}

static void print_number(FILE *file, double value)
{
    if (isnan(value)) /* printf may print "-nan" */
        fprintf(file, ",nan");
    else
        fprintf(file, ",%.9g", value);
}

/* The value with that name in the last row; NaN if it has none. */
static double measured(const struct ks_metrics *m, const char *name, size_t length)
{
    for (size_t i = 0; i < m->n; i++)
        if (strncmp(m->row[i].name, name, length) == 0 && m->row[i].name[length] == '\0')
            return m->row[i].value;
    return NAN;
}

static void print_row(const struct ks_metrics *m, size_t env_step, int64_t update, FILE *out)
{
    const char *name = m->columns ? m->columns + strlen(FIRST) : "";

    if (m->size == 0) {
        fprintf(out, "%s", FIRST);
        for (size_t i = 0; i < m->n; i++)
            fprintf(out, ",%s", m->row[i].name);
        fprintf(out, "\n");
    }
    fprintf(out, "%zu,%lld", env_step, (long long)update);
    for (size_t i = 0; i < m->n && !m->columns; i++)
        print_number(out, m->row[i].value);
    while (*name == ',') {
        size_t length = strcspn(++name, ",");

        print_number(out, measured(m, name, length));
        name += length;
    }
    fprintf(out, "\n");
}

static ks_status write_row(struct ks_metrics *m, size_t env_step, int64_t update)
{
    ks_status status;
    KS_OWNED char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (out)
        print_row(m, env_step, update, out);
    KS_TRY(ks_stream_close(out));
    status = ks_file_put(m->descriptor, m->path, text, size);
    if (status == KS_OK)
        m->size += size;
    else
        cut_off(m); /* removes a partial row, if possible */
    return status;
}

ks_status ks_metrics_row(struct ks_metrics *m, struct KS(agent) *agent,
                         const struct ks_batch *batch, size_t env_step, double return_mean)
{
    KS_TRY(fill_row(m, agent, batch, env_step, return_mean));
    KS_TRY(write_row(m, env_step, agent->updates));
    m->sum = (struct ks_update){.critic_loss = 0};
    m->updates = m->actor_steps = 0;
    m->env_step = env_step;
    m->step_seconds = m->update_seconds = 0;
    return KS_OK;
}

void ks_metrics_attributes(const struct ks_metrics *m, struct ks_attributes *attributes)
{
    for (size_t i = 0; i < m->n; i++)
        if (isfinite(m->row[i].value))
            ks_attribute_add_number(attributes, m->row[i].name, m->row[i].value);
}
