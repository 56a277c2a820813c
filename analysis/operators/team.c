#include "operators/team.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

enum { CHUNK = KS_TEAM_CHUNK, FEW = 512 }; /* FEW numbers are sent to all ranks */

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
    if (world->transport)
        world->transport->end();
    free(world->scratch);
    free(world->count);
    *world = (struct ks_team){.size = 1, .local_size = 1};
}

/* --- failures --- */

/* The ranks tell each other how they are: the start of every communication, in which ranks meet
 * that are at different places since one has failed. */
ks_status ks_team_agree(struct ks_team *team, ks_status status)
{
    int first = 0;

    if (is_alone(team))
        return status;
    if (team->failed == KS_OK) {
        team->scratch[team->size] = (double)status;
        team->transport->collect(1, team->scratch + team->size, team->scratch);
        while (first < team->size && team->scratch[first] == (double)KS_OK)
            first++;
        if (first == team->size)
            return KS_OK;
        team->failed = (ks_status)team->scratch[first];
        snprintf(team->text, sizeof team->text, "%s", ks_error_text());
        team->transport->broadcast(first, (int)sizeof team->text, team->text);
    }
    return ks_fail(team->failed, "%s", team->text);
}

ks_status ks_team_settle(struct ks_team *team, ks_status status)
{
    status = ks_team_agree(team, status);
    if (team)
        team->failed = KS_OK;
    return status;
}

/* --- few numbers --- */

ks_status ks_team_broadcast(struct ks_team *team, size_t bytes, void *data)
{
    char *next = data;

    if (is_alone(team))
        return KS_OK;
    KS_TRY(ks_team_agree(team, KS_OK));
    while (bytes > 0) {
        size_t chunk = bytes < INT_MAX ? bytes : INT_MAX;

        team->transport->broadcast(0, (int)chunk, next);
        next += chunk;
        bytes -= chunk;
    }
    return KS_OK;
}

/* No rank uses numbers of a team in which one has failed. */
static ks_status spoil(ks_status status, size_t n, double *values)
{
    for (size_t i = 0; status != KS_OK && i < n; i++)
        values[i] = NAN;
    return status;
}

ks_status ks_team_collect(struct ks_team *team, double number, double *all)
{
    all[0] = number;
    if (is_alone(team))
        return KS_OK;
    KS_TRY(spoil(ks_team_agree(team, KS_OK), (size_t)team->size, all));
    team->transport->collect(1, &number, all);
    return KS_OK;
}

static ks_status sum_vector(struct ks_team *team, size_t n, double *values)
{
    size_t first, count;

    ks_team_slice(team, n, &first, &count);
    KS_TRY(ks_team_sum_slices(team, n, values, values + first));
    return ks_team_gather(team, n, values);
}

ks_status ks_team_sum(struct ks_team *team, size_t n, double *values)
{
    if (is_alone(team))
        return KS_OK;
    if (n > FEW)
        return spoil(sum_vector(team, n, values), n, values);
    KS_TRY(spoil(ks_team_agree(team, KS_OK), n, values));
    team->transport->collect((int)n, values, team->scratch);
    for (size_t i = 0; i < n; i++) {
        values[i] = 0;
        for (size_t r = 0; r < (size_t)team->size; r++)
            values[i] += team->scratch[r * n + i];
    }
    return KS_OK;
}

/* --- vectors --- */

static size_t slice_start(size_t n, int size, int rank)
{
    size_t ranks = (size_t)size, at = (size_t)rank;

    return n / ranks * at + (at < n % ranks ? at : n % ranks);
}

void ks_team_slice(const struct ks_team *team, size_t n, size_t *first, size_t *count)
{
    int rank = ks_team_rank(team), size = ks_team_size(team);

    *first = slice_start(n, size, rank);
    *count = slice_start(n, size, rank + 1) - *first;
}

/* The numbers of a slice of `count` numbers from its number `at` on, but at most a chunk. */
static size_t part_of(size_t count, size_t at)
{
    size_t left = at < count ? count - at : 0;

    return left < CHUNK ? left : CHUNK;
}

/* Each rank receives its slice of every rank's share, a chunk at a time, and adds them itself. This
 * moves as many bytes as the best reduction, and the order of the sum is fixed. */
ks_status ks_team_sum_slices(struct ks_team *team, size_t n, const double *share, double *slice)
{
    size_t first, count, ranks = (size_t)ks_team_size(team);

    ks_team_slice(team, n, &first, &count);
    if (is_alone(team)) {
        memmove(slice, share, n * sizeof *slice);
        return KS_OK;
    }
    KS_TRY(ks_team_agree(team, KS_OK));
    for (size_t at = 0; at <= n / ranks; at += CHUNK) {
        const size_t mine = part_of(count, at);
        int *send = team->count, *receive = send + 2 * ranks;

        for (int r = 0; r < team->size; r++) {
            size_t start = slice_start(n, team->size, r);

            send[r] = (int)part_of(slice_start(n, team->size, r + 1) - start, at);
            send[team->size + r] = send[r] > 0 ? (int)(start + at) : 0;
            receive[r] = (int)mine;
            receive[team->size + r] = (int)mine * r;
        }
        team->transport->exchange(team, share, send, team->scratch, receive);
#pragma omp parallel for schedule(static)
        for (size_t i = 0; i < mine; i++) {
            double sum = 0;

            for (size_t r = 0; r < ranks; r++)
                sum += team->scratch[r * mine + i];
            slice[at + i] = sum;
        }
    }
    return KS_OK;
}

ks_status ks_team_gather(struct ks_team *team, size_t n, double *vector)
{
    if (is_alone(team))
        return KS_OK;
    KS_TRY(ks_team_agree(team, KS_OK));
    for (int r = 0; r < team->size; r++) {
        team->count[team->size + r] = (int)slice_start(n, team->size, r);
        team->count[r] = (int)slice_start(n, team->size, r + 1) - team->count[team->size + r];
    }
    team->transport->gather(team, team->count, vector);
    return KS_OK;
}
