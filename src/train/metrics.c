#include "train/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "io/file.h"
#include "io/text.h"

enum { OWN_COLUMNS = 13, MODE = 0666 }; /* columns of fill_row; file mode before umask */

static const char FIRST[] = "env_step,update"; /* the columns before the measures */

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
    ks_status status;
    size_t found;
    char *bytes, *end;

    KS_TRY(ks_text_read(m->path, &bytes, &found));
    end = memchr(bytes, '\n', found);
    if (end)
        *end = '\0';
    if (!end || strncmp(bytes, FIRST, strlen(FIRST)) != 0)
        status = ks_fail(KS_FORMAT, "%s: expected a header line '%s,...'", m->path, FIRST);
    else
        status = ks_copy_string(bytes, &m->columns);
    free(bytes);
    return status;
}

ks_status ks_metrics_new(const char *path, size_t size, const struct KS(agent) *agent,
                         struct ks_metrics **metrics)
{
    ks_status status = KS_OK;
    struct ks_metrics *m = NULL;

    *metrics = NULL;
    KS_GO(ks_alloc(1, sizeof *m, &m));
    m->descriptor = -1;
    KS_GO(ks_copy_string(path, &m->path));
    KS_GO(ks_alloc(OWN_COLUMNS + KS(agent_measures)(agent), sizeof *m->row, &m->row));
    if (size > 0)
        KS_GO(read_columns(m));
    KS_GO(open_file(m, size));
    *metrics = m;
    return KS_OK;
done:
    ks_metrics_free(m);
    return status;
}

ks_status ks_metrics_flush(const struct ks_metrics *m)
{
    return ks_file_flush(m->descriptor, m->path);
}

ks_status ks_metrics_digest(const char *path, size_t size, unsigned char digest[KS_SHA256_BYTES])
{
    ks_status status;
    size_t found;
    char *bytes;

    KS_TRY(ks_text_read(path, &bytes, &found));
    status = found < size ? ks_fail(KS_FORMAT, "%s: expected at least %zu bytes, found %zu", path,
                                    size, found)
                          : ks_sha256(1, &(struct ks_piece){bytes, size}, digest);
    free(bytes);
    return status;
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

static void set(struct ks_metrics *m, const char *name, double value)
{
    struct ks_measure *measure = &m->row[m->n++];

    snprintf(measure->name, sizeof measure->name, "%s", name);
    measure->value = value;
}

static ks_status fill_row(struct ks_metrics *m, struct KS(agent) *agent,
                          const struct ks_batch *batch, size_t env_step, double return_mean)
{
    double updates = (double)m->updates,
           actor_steps = (double)m->actor_steps; /* if 0: 0/0 is NaN */
    bool atoms = agent->critic_arch->loss.kind->distribution;
    size_t measures;

    m->n = 0;
    set(m, "critic_loss", m->sum.critic_loss / updates);
    set(m, "actor_loss", m->sum.actor_loss / actor_steps);
    set(m, "temperature_loss", m->sum.temperature_loss / actor_steps);
    set(m, "q_mean", m->sum.q_mean / updates);
    set(m, "entropy", m->sum.entropy / actor_steps);
    set(m, "temperature", KS(agent_temperature)(agent));
    set(m, "clipped_fraction", atoms ? m->sum.clipped_fraction / updates : NAN);
    set(m, "return_mean", return_mean);
    if (m->has_goal)
        set(m, "success", m->success);
    set(m, "steps_per_second", (double)(env_step - m->env_step) / m->step_seconds);
    set(m, "updates_per_second", m->updates > 0 ? updates / m->update_seconds : NAN);
    set(m, "divergences", (double)m->divergences);
    set(m, "evaluation_divergences", (double)m->evaluation_divergences);
    KS_TRY(KS(agent_measure)(agent, batch, m->row + m->n, &measures));
    m->n += measures;
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
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    bool failed;

    if (!out)
        return ks_fail(KS_MEMORY, "%s: out of memory", m->path);
    print_row(m, env_step, update, out);
    failed = ferror(out) != 0;
    failed = fclose(out) != 0 || failed;
    status = failed ? ks_fail(KS_MEMORY, "%s: out of memory", m->path)
                    : ks_file_put(m->descriptor, m->path, text, size);
    if (status == KS_OK)
        m->size += size;
    else
        cut_off(m); /* removes a partial row, if possible */
    free(text);
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

ks_status ks_metrics_attributes(const struct ks_metrics *m, struct ks_attributes *attributes)
{
    for (size_t i = 0; i < m->n; i++)
        if (isfinite(m->row[i].value))
            KS_TRY(ks_attribute_add_number(attributes, m->row[i].name, m->row[i].value));
    return KS_OK;
}
