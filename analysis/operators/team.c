#include "operators/team.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

enum { CHUNK = KS_TEAM_CHUNK, TEXT = 1024 }; /* numbers per rank at a time; bytes per message */

static bool is_alone(const struct ks_team *team)
{
    return !team || team->size == 1;
}

int ks_team_rank(const struct ks_team *team)
{
    return team ? team->rank : 0;
}

int ks_team_size(const struct ks_team *team)
{
    return team ? team->size : 1;
}

void ks_team_end(struct ks_team *world)
{
    if (world->comm)
        world->transport->end(world);
    free(world->comm);
    free(world->scratch);
    free(world->count);
    *world = (struct ks_team){.size = 1, .local_size = 1};
}

ks_status ks_team_agree(const struct ks_team *team, ks_status status)
{
    char text[TEXT];
    int first = 0;

    if (is_alone(team))
        return status;
    ks_team_collect(team, (double)status, team->scratch);
    while (first < team->size && team->scratch[first] == (double)KS_OK)
        first++;
    if (first == team->size)
        return KS_OK;
    status = (ks_status)team->scratch[first];
    snprintf(text, sizeof text, "%s", ks_error_text());
    ks_team_broadcast(team, first, sizeof text, text);
    return ks_fail(status, "%s", text);
}

void ks_team_broadcast(const struct ks_team *team, int root, size_t bytes, void *data)
{
    char *next = data;

    if (is_alone(team))
        return;
    while (bytes > 0) {
        size_t part = bytes < INT_MAX ? bytes : INT_MAX;

        team->transport->broadcast(team, root, (int)part, next);
        next += part;
        bytes -= part;
    }
}

ks_status ks_team_broadcast_string(const struct ks_team *team, char **string)
{
    size_t bytes = *string ? strlen(*string) + 1 : 0;
    ks_status status = KS_OK;

    if (is_alone(team))
        return KS_OK;
    ks_team_broadcast(team, 0, sizeof bytes, &bytes);
    if (team->rank > 0 && bytes > 0)
        status = ks_alloc(bytes, 1, string);
    KS_TRY(ks_team_agree(team, status));
    ks_team_broadcast(team, 0, bytes, *string);
    return KS_OK;
}

void ks_team_collect(const struct ks_team *team, double number, double *all)
{
    if (is_alone(team))
        all[0] = number;
    else
        team->transport->collect(team, 1, &number, all);
}

void ks_team_sum(const struct ks_team *team, size_t n, double *values)
{
    if (is_alone(team))
        return;
    for (size_t at = 0; at < n; at += CHUNK) {
        size_t part = n - at < CHUNK ? n - at : CHUNK;

        team->transport->collect(team, (int)part, values + at, team->scratch);
        for (size_t i = 0; i < part; i++) {
            values[at + i] = 0;
            for (size_t r = 0; r < (size_t)team->size; r++)
                values[at + i] += team->scratch[r * part + i];
        }
    }
}

static size_t slice_start(size_t n, int size, int rank)
{
    size_t parts = (size_t)size, part = (size_t)rank;

    return n / parts * part + (part < n % parts ? part : n % parts);
}

void ks_team_slice(const struct ks_team *team, size_t n, size_t *first, size_t *count)
{
    int rank = ks_team_rank(team), size = ks_team_size(team);

    *first = slice_start(n, size, rank);
    *count = slice_start(n, size, rank + 1) - *first;
}

size_t ks_team_scratch(const struct ks_team *team, size_t n)
{
    return is_alone(team) ? n : n + (size_t)team->size;
}

/* The slices of all ranks in MPI's form: counts and displacements. */
static void cut(const struct ks_team *team, size_t n, int *count, int *displacement)
{
    for (int r = 0; r < team->size; r++) {
        displacement[r] = (int)slice_start(n, team->size, r);
        count[r] = (int)slice_start(n, team->size, r + 1) - displacement[r];
    }
}

/* Each rank receives its slice of every rank's part and adds them itself. This moves as many bytes
 * as the best reduction, and the order of the sum is fixed. */
void ks_team_sum_slices(const struct ks_team *team, size_t n, const double *part, double *scratch,
                        double *slice)
{
    int *send, *receive;
    size_t first, mine;

    ks_team_slice(team, n, &first, &mine);
    if (is_alone(team)) {
        memmove(slice, part, n * sizeof *slice);
        return;
    }
    send = team->count, receive = send + 2 * team->size;
    cut(team, n, send, send + team->size);
    for (int r = 0; r < team->size; r++) {
        receive[r] = (int)mine;
        receive[team->size + r] = (int)mine * r;
    }
    team->transport->exchange(team, part, send, scratch, receive);
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < mine; i++) {
        double sum = 0;

        for (size_t r = 0; r < (size_t)team->size; r++)
            sum += scratch[r * mine + i];
        slice[i] = sum;
    }
}

void ks_team_gather(const struct ks_team *team, size_t n, const double *slice, double *vector)
{
    if (is_alone(team)) {
        memmove(vector, slice, n * sizeof *vector);
        return;
    }
    cut(team, n, team->count, team->count + team->size);
    team->transport->gather(team, slice, team->count, vector);
}

void ks_team_sum_vector(const struct ks_team *team, size_t n, double *scratch, double *values)
{
    if (is_alone(team))
        return;
    ks_team_sum_slices(team, n, values, scratch, scratch);
    ks_team_gather(team, n, scratch, values);
}
