#include "io/h5_ask.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "io/h5_reader.h"

static struct ks_h5_question about(enum ks_h5_question_kind kind, const char *object,
                                   const char *name)
{
    struct ks_h5_question question = {.kind = kind};

    assert(strlen(object) < sizeof question.object && strlen(name) < sizeof question.name);
    snprintf(question.object, sizeof question.object, "%s", object);
    snprintf(question.name, sizeof question.name, "%s", name);
    return question;
}

static ks_status ask_whether(const struct ks_h5 *h5, struct ks_h5_question question, bool *yes)
{
    struct ks_h5_answer answer;

    *yes = false;
    KS_TRY(ks_h5_ask(h5, &question, &answer));
    *yes = answer.count > 0;
    return KS_OK;
}

ks_status ks_h5_ask_has(const struct ks_h5 *h5, const char *object, bool *found)
{
    return ask_whether(h5, about(KS_H5_HAS, object, ""), found);
}

ks_status ks_h5_ask_has_attribute(const struct ks_h5 *h5, const char *object, const char *name,
                                  bool *found)
{
    return ask_whether(h5, about(KS_H5_HAS_ATTRIBUTE, object, name), found);
}

ks_status ks_h5_ask_shape(const struct ks_h5 *h5, const char *object, struct ks_h5_shape *shape,
                          enum ks_h5_stored *stored)
{
    const struct ks_h5_question question = about(KS_H5_SHAPE, object, "");
    struct ks_h5_answer answer;

    KS_TRY(ks_h5_ask(h5, &question, &answer));
    if (answer.shape.n_dims > KS_H5_DIMS)
        return ks_h5_reader_invalid(h5, object);
    *shape = answer.shape;
    *stored = answer.stored;
    return KS_OK;
}

ks_status ks_h5_ask_values(const struct ks_h5 *h5, const char *object,
                           const struct ks_h5_shape *shape, double *values)
{
    struct ks_h5_question question = about(KS_H5_VALUES, object, "");
    struct ks_h5_answer answer;
    size_t left = 1;

    question.shape = *shape;
    for (size_t i = 0; i < shape->n_dims; i++)
        left *= shape->dims[i];
    KS_TRY(ks_h5_ask(h5, &question, &answer));
    while (left > 0) {
        if (answer.count == 0 || answer.count > left)
            return ks_h5_reader_invalid(h5, object);
        KS_TRY(ks_h5_follow(h5, object, values, answer.count * sizeof *values));
        values += answer.count;
        left -= answer.count;
        if (left > 0)
            KS_TRY(ks_h5_next_answer(h5, object, &answer));
    }
    return KS_OK;
}

/* Receives the string or the list that follows an attribute, and appends a zero. */
static ks_status receive_values(const struct ks_h5 *h5, const char *object, size_t n, size_t size,
                                void *values)
{
    ks_status status = ks_alloc(n + 1, size, values);
    void *room;

    if (status != KS_OK)
        return status;
    memcpy(&room, values, sizeof room);
    return ks_h5_follow(h5, object, room, n * size);
}

/* Receives an attribute that follows an answer. The caller clears it, also after a failure. */
static ks_status receive_attribute(const struct ks_h5 *h5, const char *object,
                                   struct ks_attribute *a)
{
    ks_status status = ks_h5_follow(h5, object, a, sizeof *a);
    size_t n = a->n;

    a->name[sizeof a->name - 1] = '\0';
    a->string = NULL; /* the address received is the other process's */
    a->list = NULL;
    KS_TRY(status);
    if (n > KS_H5_LONGEST)
        return ks_h5_reader_invalid(h5, object);
    if (a->type == KS_ATTRIBUTE_LIST)
        return receive_values(h5, object, n, sizeof *a->list, &a->list);
    a->n = 0;
    if (a->type == KS_ATTRIBUTE_STRING)
        return receive_values(h5, object, n, 1, &a->string);
    return KS_OK;
}

ks_status ks_h5_ask_attribute(const struct ks_h5 *h5, const char *object, const char *name,
                              struct ks_attribute *attribute, bool *known)
{
    const struct ks_h5_question question = about(KS_H5_ONE_ATTRIBUTE, object, name);
    struct ks_h5_answer answer;
    ks_status status;

    *attribute = (struct ks_attribute){.n = 0};
    *known = false;
    KS_TRY(ks_h5_ask(h5, &question, &answer));
    if (answer.count == 0)
        return KS_OK;
    status = receive_attribute(h5, object, attribute);
    *known = status == KS_OK;
    if (status != KS_OK)
        ks_attribute_clear(attribute);
    return status;
}

ks_status ks_h5_ask_attributes(const struct ks_h5 *h5, const char *object,
                               struct ks_attributes *attributes)
{
    const struct ks_h5_question question = about(KS_H5_ALL_ATTRIBUTES, object, "");
    struct ks_h5_answer answer;

    KS_TRY(ks_h5_ask(h5, &question, &answer));
    for (size_t i = 0; i < answer.count; i++) {
        struct ks_attribute one = {.n = 0};
        ks_status status = receive_attribute(h5, object, &one);

        if (status != KS_OK) {
            ks_attribute_clear(&one);
            return status;
        }
        KS_TRY(ks_attribute_add(attributes, &one));
    }
    return KS_OK;
}

ks_status ks_h5_ask_names(const struct ks_h5 *h5, const char *object, bool attributes,
                          struct ks_h5_names *names)
{
    const struct ks_h5_question question = about(
        attributes ? KS_H5_ATTRIBUTE_NAMES : KS_H5_OBJECT_NAMES, object, "");
    struct ks_h5_answer answer;

    *names = (struct ks_h5_names){.n = 0};
    KS_TRY(ks_h5_ask(h5, &question, &answer));
    if (answer.count > KS_H5_NAMES)
        return ks_h5_reader_invalid(h5, object);
    KS_TRY(ks_alloc(answer.count, sizeof *names->name, &names->name));
    KS_TRY(ks_h5_follow(h5, object, names->name, answer.count * sizeof *names->name));
    for (size_t i = 0; i < answer.count; i++)
        names->name[i][KS_H5_NAME - 1] = '\0';
    names->n = answer.count;
    return KS_OK;
}
