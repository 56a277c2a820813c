/* Calls neither BLAS nor MPI nor any function that deals with threads: the process was forked from
 * a program that may have several threads, and only one of them exists here. */
#include "io/h5_serve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "io/h5_local.h"
#include "io/h5_wire.h"

#ifdef KS_COVERAGE /* _exit writes no counters */
void __gcov_dump(void);
#endif

/* Decompressed bytes a second: a tenth of the usual speed of reading. */
static const double SLOWEST = 20e6;

struct server {
    struct ks_h5 *h5;
    int socket;
    unsigned processor;
};

static void end(int code) __attribute__((noreturn));
static void end(int code)
{
#ifdef KS_COVERAGE
    __gcov_dump();
#endif
    _exit(code);
}

/* Allows the next piece of work, which reads `bytes`, its seconds of processor time from now on. */
static void allow(const struct server *s, size_t bytes)
{
    const double seconds = s->processor + (double)bytes / SLOWEST;
    struct rusage used;
    struct rlimit limit;

    if (getrusage(RUSAGE_SELF, &used) != 0 || getrlimit(RLIMIT_CPU, &limit) != 0)
        end(1);
    limit.rlim_cur = (rlim_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + 1 + (rlim_t)seconds;
    if (limit.rlim_cur > limit.rlim_max)
        limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_CPU, &limit) != 0)
        end(1);
}

/* Ends the process if the program has closed its end of the socket. */
static void tell(const struct server *s, const void *bytes, size_t size)
{
    if (!ks_h5_send(s->socket, bytes, size))
        end(0);
}

static void answer(const struct server *s, ks_status status, struct ks_h5_answer *a)
{
    a->status = status;
    if (status != KS_OK)
        snprintf(a->text, sizeof a->text, "%s", ks_error_text());
    tell(s, a, sizeof *a);
}

static void tell_attribute(const struct server *s, const struct ks_attribute *a)
{
    struct ks_attribute sent = *a;

    if (a->type == KS_ATTRIBUTE_STRING)
        sent.n = strlen(a->string);
    tell(s, &sent, sizeof sent);
    if (a->type == KS_ATTRIBUTE_STRING)
        tell(s, a->string, sent.n);
    else if (a->type == KS_ATTRIBUTE_LIST)
        tell(s, a->list, sent.n * sizeof *a->list);
}

static void answer_attribute(const struct server *s, const struct ks_h5_question *q)
{
    struct ks_h5_answer a = {.count = 0};
    struct ks_attribute one;
    bool known;
    ks_status status = ks_h5_local_attribute(s->h5, q->object, q->name, &one, &known);

    a.count = known;
    answer(s, status, &a);
    if (known)
        tell_attribute(s, &one);
    ks_attribute_clear(&one);
}

static void answer_attributes(const struct server *s, const struct ks_h5_question *q)
{
    struct ks_h5_answer a = {.count = 0};
    struct ks_attributes list = {.n = 0};
    ks_status status = ks_h5_local_attributes(s->h5, q->object, &list);

    a.count = status == KS_OK ? list.n : 0;
    answer(s, status, &a);
    for (size_t i = 0; i < a.count; i++)
        tell_attribute(s, &list.list[i]);
    ks_attributes_clear(&list);
}

static void answer_names(const struct server *s, const struct ks_h5_question *q)
{
    struct ks_h5_answer a = {.count = 0};
    struct ks_h5_names names = {.n = 0};
    ks_status status = ks_h5_local_names(s->h5, q->object, q->kind == KS_H5_ATTRIBUTE_NAMES,
                                         &names);

    a.count = status == KS_OK ? names.n : 0;
    answer(s, status, &a);
    if (a.count > 0)
        tell(s, names.name, a.count * sizeof *names.name);
    free(names.name);
}

static void before(size_t bytes, void *context)
{
    allow(context, bytes);
}

static ks_status take(size_t n, const double *values, void *context)
{
    struct ks_h5_answer a = {.count = n};

    answer(context, KS_OK, &a);
    tell(context, values, n * sizeof *values);
    return KS_OK;
}

static void answer_values(struct server *s, const struct ks_h5_question *q)
{
    const struct ks_h5_taker taker = {.before = before, .take = take, .context = s};
    struct ks_h5_answer a = {.count = 0};
    ks_status status = ks_h5_local_values(s->h5, q->object, &q->shape, &taker);
    bool empty = false;

    for (size_t i = 0; i < q->shape.n_dims; i++)
        empty = empty || q->shape.dims[i] == 0;
    if (status != KS_OK || empty)
        answer(s, status, &a);
}

static void serve_one(struct server *s, const struct ks_h5_question *q)
{
    struct ks_h5_answer a = {.count = 0};
    ks_status status = KS_OK;
    bool found = false;

    allow(s, 0);
    switch (q->kind) {
    case KS_H5_VALUES:
        answer_values(s, q);
        return;
    case KS_H5_ONE_ATTRIBUTE:
        answer_attribute(s, q);
        return;
    case KS_H5_ALL_ATTRIBUTES:
        answer_attributes(s, q);
        return;
    case KS_H5_OBJECT_NAMES:
    case KS_H5_ATTRIBUTE_NAMES:
        answer_names(s, q);
        return;
    case KS_H5_SHAPE:
        status = ks_h5_local_shape(s->h5, q->object, &a.shape, &a.stored);
        break;
    case KS_H5_HAS:
        status = ks_h5_local_has(s->h5, q->object, &found);
        break;
    case KS_H5_HAS_ATTRIBUTE:
        status = ks_h5_local_has_attribute(s->h5, q->object, q->name, &found);
        break;
    }
    a.count = found;
    answer(s, status, &a);
}

void ks_h5_serve(struct ks_h5 *h5, int socket, unsigned processor)
{
    struct server s = {.h5 = h5, .socket = socket, .processor = processor};
    struct ks_h5_answer opened = {.count = 0};
    struct ks_h5_question question;

    allow(&s, 0);
    answer(&s, ks_h5_file_open(h5), &opened);
    while (ks_h5_receive(socket, 0, &question, sizeof question))
        serve_one(&s, &question);
    end(0);
}
