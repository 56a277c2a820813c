#include "example.h"

double *squares(struct ks_rng *rng, size_t n)
{
    double *values = numbers(rng, n);

    for (size_t i = 0; i < n; i++)
        values[i] *= values[i];
    return values;
}

static void make_networks(struct ks_rng *rng, const char *text, size_t in, size_t ensemble,
                          struct ks_networks *n)
{
    assert_ok(ks_copy_string(text, &n->text));
    assert_ok(KS(arch_parse)(text, "test", in, &n->arch));
    n->ensemble = ensemble;
    n->w = numbers(rng, ensemble * n->arch->parameters);
    if (n->arch->frozen > 0)
        n->frozen = numbers(rng, ensemble * n->arch->frozen);
    if (n->arch->states > 0)
        n->state = squares(rng, ensemble * n->arch->states);
}

double *make_targets(struct ks_rng *rng, size_t k)
{
    double *target = squares(rng, MINIBATCHES * LOSS_ROWS * k);

    for (size_t row = 0; k > 1 && row < MINIBATCHES * LOSS_ROWS; row++) {
        double sum = 0;

        for (size_t i = 0; i < k; i++)
            sum += target[row * k + i];
        for (size_t i = 0; i < k; i++)
            target[row * k + i] /= sum;
    }
    return target;
}

static void make_batch(struct ks_rng *rng, struct ks_checkpoint *c)
{
    c->minibatches = MINIBATCHES;
    c->rows = ROWS;
    c->loss_rows = LOSS_ROWS;
    c->input = numbers(rng, MINIBATCHES * ROWS * IN);
    c->target = make_targets(rng, c->critic.arch->loss.targets);
}

/* Random reference results, which belong to no critic: of float32 numbers for all rows of the loss,
 * and of the first minibatch. */
static void make_references(struct ks_rng *rng, struct ks_checkpoint *c)
{
    const size_t outputs = MINIBATCHES * LOSS_ROWS * ENSEMBLE * c->critic.arch->out;
    struct ks_references *p = &c->references;

    p->output = (struct ks_reference){
        .value = numbers(rng, outputs), .minibatches = MINIBATCHES, .rows = LOSS_ROWS};
    p->loss = (struct ks_reference){.value = numbers(rng, 1), .minibatches = 1, .rows = 1};
    p->gradient_norm = (struct ks_reference){
        .value = numbers(rng, MINIBATCHES), .minibatches = MINIBATCHES, .rows = 1, .wide = true};
}

struct ks_checkpoint *make_plain(const char *text)
{
    struct ks_rng rng = ks_rng_start(7, 0);
    struct ks_checkpoint *c;

    assert_ok(ks_alloc(1, sizeof *c, &c));
    make_networks(&rng, text, IN, ENSEMBLE, &c->critic);
    make_batch(&rng, c);
    c->adam = KS_ADAM_DEFAULTS;
    return keep_checkpoint(c);
}

static void add_copies(struct ks_attributes *to, size_t n, const struct ks_attribute *from)
{
    for (size_t i = 0; i < n; i++) {
        struct ks_attribute copy;

        assert_ok(ks_attribute_copy(&from[i], &copy));
        ks_attribute_add(to, &copy);
    }
}

struct ks_checkpoint *make_full(void)
{
    char env[] = "dog-trot", versions[] = "mujoco 3.1.6", none[] = "none";
    double returns[3] = {1, 2.5, -3};
    const struct ks_attribute root[] = {
        {.name = "env", .type = KS_ATTRIBUTE_STRING, .string = env},
        {.name = "seed", .type = KS_ATTRIBUTE_INTEGER, .integer = INT64_MAX},
        {.name = "env_step", .type = KS_ATTRIBUTE_INTEGER, .integer = 50000},
        {.name = "returns", .type = KS_ATTRIBUTE_LIST, .list = returns, .n = 3},
        {.name = "gamma", .type = KS_ATTRIBUTE_NUMBER, .number = 0.99},
        {.name = "library_versions", .type = KS_ATTRIBUTE_STRING, .string = versions},
    };
    const struct ks_attribute metrics[] = {
        {.name = "critic_effective_lr_03", .type = KS_ATTRIBUTE_NUMBER, .number = 1e-7},
        {.name = "critic_loss", .type = KS_ATTRIBUTE_NUMBER, .number = NAN},
        {.name = "update", .type = KS_ATTRIBUTE_INTEGER, .integer = 3},
    };
    const struct ks_attribute settings[] = {
        {.name = "utd", .type = KS_ATTRIBUTE_INTEGER, .integer = 2},
        {.name = "tau", .type = KS_ATTRIBUTE_NUMBER, .number = 0.005},
        {.name = "decay", .type = KS_ATTRIBUTE_STRING, .string = none},
    };
    struct ks_checkpoint *c = make_plain(CE);
    struct ks_rng rng = ks_rng_start(7, 1);
    const size_t n = ENSEMBLE * c->critic.arch->parameters;

    c->target_raw = make_targets(&rng, c->critic.arch->loss.targets);
    make_networks(&rng, CE, IN, ENSEMBLE, &c->target_critic);
    make_networks(&rng, ACTOR, IN - ACTIONS, 1, &c->actor);
    c->adam_m = numbers(&rng, n);
    c->adam_v = squares(&rng, n);
    c->adam_step = 12345678901;
    c->adam = (struct ks_adam_constants){0.8, 0.99, 1e-5};
    add_copies(&c->attributes, sizeof root / sizeof *root, root);
    add_copies(&c->metrics, sizeof metrics / sizeof *metrics, metrics);
    add_copies(&c->settings, sizeof settings / sizeof *settings, settings);
    return c;
}

struct ks_checkpoint *make_with_references(void)
{
    struct ks_checkpoint *c = make_full();
    struct ks_rng rng = ks_rng_start(7, 3);

    make_references(&rng, c);
    return c;
}

void write_one(const char *path, struct ks_checkpoint *c, bool single)
{
    assert_ok(ks_checkpoint_write(path, c, single));
}

void same_numbers(size_t n, const double *a, const double *b, bool single)
{
    assert_int_equal(!a, !b);
    for (size_t i = 0; a && i < n; i++)
        if (a[i] != (single ? (double)(float)b[i] : b[i]) && !(isnan(a[i]) && isnan(b[i])))
            fail_msg("element %zu: %.17g, expected %.17g", i, a[i], b[i]);
}

static void same_networks(const struct ks_networks *a, const struct ks_networks *b, bool single)
{
    assert_int_equal(!a->text, !b->text);
    if (!a->text)
        return;
    assert_string_equal(a->text, b->text);
    assert_int_equal(a->ensemble, b->ensemble);
    assert_int_equal(a->arch->in, b->arch->in);
    same_numbers(a->ensemble * a->arch->parameters, a->w, b->w, single);
    same_numbers(a->ensemble * a->arch->frozen, a->frozen, b->frozen, single);
    same_numbers(a->ensemble * a->arch->states, a->state, b->state, single);
}

static void same_attributes(const struct ks_attributes *a, const struct ks_attributes *b)
{
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < b->n; i++) {
        const struct ks_attribute *y = &b->list[i], *x = ks_attribute_find(a, y->name);

        assert_non_null(x);
        assert_int_equal(x->type, y->type);
        assert_int_equal(x->integer, y->integer);
        assert_memory_equal(&x->number, &y->number, sizeof x->number);
        same_numbers(x->n, x->list, y->list, false);
        if (x->type == KS_ATTRIBUTE_STRING)
            assert_string_equal(x->string, y->string);
    }
    assert_null(ks_attribute_find(a, "no such name"));
}

/* `width`: the numbers of a row. */
static void same_reference(size_t width, const struct ks_reference *a, const struct ks_reference *b)
{
    assert_int_equal(a->minibatches, b->minibatches);
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->wide, b->wide);
    same_numbers(a->minibatches * a->rows * width, a->value, b->value, !b->wide);
}

void same_checkpoint(const struct ks_checkpoint *a, const struct ks_checkpoint *b, bool single)
{
    const size_t n = a->critic.ensemble * a->critic.arch->parameters;

    same_networks(&a->critic, &b->critic, single);
    same_networks(&a->target_critic, &b->target_critic, single);
    same_networks(&a->actor, &b->actor, single);
    assert_int_equal(a->minibatches, b->minibatches);
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->loss_rows, b->loss_rows);
    same_numbers(a->minibatches * a->rows * a->critic.arch->in, a->input, b->input, single);
    same_numbers(a->minibatches * a->loss_rows * a->critic.arch->loss.targets, a->target, b->target,
                 single);
    same_numbers(a->minibatches * a->loss_rows * a->critic.arch->loss.targets, a->target_raw,
                 b->target_raw, single);
    same_reference(a->critic.ensemble * a->critic.arch->out, &a->references.output,
                   &b->references.output);
    same_reference(1, &a->references.loss, &b->references.loss);
    same_reference(1, &a->references.gradient_norm, &b->references.gradient_norm);
    same_numbers(n, a->adam_m, b->adam_m, single);
    same_numbers(n, a->adam_v, b->adam_v, single);
    assert_int_equal(a->adam_step, b->adam_step);
    assert_close(a->adam.beta1, b->adam.beta1, 0);
    assert_close(a->adam.beta2, b->adam.beta2, 0);
    assert_close(a->adam.eps, b->adam.eps, 0);
    same_attributes(&a->attributes, &b->attributes);
    same_attributes(&a->metrics, &b->metrics);
    same_attributes(&a->settings, &b->settings);
}

hid_t edit(const char *path)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);

    assert_true(file >= 0);
    return file;
}

void remove_object(const char *path, const char *object)
{
    hid_t file = edit(path);

    assert_true(H5Ldelete(file, object, H5P_DEFAULT) >= 0);
    H5Fclose(file);
}

void remove_attribute(const char *path, const char *object, const char *name)
{
    hid_t file = edit(path);

    assert_true(H5Adelete_by_name(file, object, name, H5P_DEFAULT) >= 0);
    H5Fclose(file);
}

/* Gives an object an attribute, in place of one of the same name. */
static void set_attribute(const char *path, const char *object, const char *name, hid_t type,
                          hid_t memory, const void *value)
{
    hid_t file = edit(path), space = H5Screate(H5S_SCALAR), id;

    H5Adelete_by_name(file, object, name, H5P_DEFAULT);
    id = H5Acreate_by_name(file, object, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(id >= 0 && H5Awrite(id, memory, value) >= 0);
    H5Aclose(id);
    H5Sclose(space);
    H5Fclose(file);
}

void set_integer(const char *path, const char *object, const char *name, int64_t value)
{
    set_attribute(path, object, name, H5T_STD_I16BE, H5T_NATIVE_INT64, &value);
}

void set_number(const char *path, const char *object, const char *name, double value)
{
    set_attribute(path, object, name, H5T_IEEE_F64BE, H5T_NATIVE_DOUBLE, &value);
}

void set_string(const char *path, const char *object, const char *name, const char *value)
{
    hid_t type = string_type(H5T_VARIABLE, H5T_STR_NULLTERM, H5T_CSET_ASCII);

    set_attribute(path, object, name, type, type, &value);
    H5Tclose(type);
}

void add_dataset(hid_t file, const char *name, hid_t type, const struct stored *how)
{
    hid_t space = H5Screate_simple(how->rank, how->dims, NULL);
    hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, how->list, H5P_DEFAULT);

    assert_true(set >= 0);
    if (how->values)
        assert_true(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, how->values) >=
                    0);
    H5Dclose(set);
    H5Sclose(space);
}

void poke(const char *path, const char *object, size_t at, double value)
{
    hid_t file = edit(path), set = H5Dopen2(file, object, H5P_DEFAULT), space = H5Dget_space(set);
    const size_t n = (size_t)H5Sget_simple_extent_npoints(space);
    double *values = calloc(n, sizeof *values);

    assert_true(values && at < n);
    assert_true(H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    values[at] = value;
    assert_true(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    free(values);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(file);
}

void replace(const char *path, const char *object, hid_t type, const struct stored *how)
{
    hid_t file = edit(path);

    if (H5Lexists(file, object, H5P_DEFAULT) > 0)
        assert_true(H5Ldelete(file, object, H5P_DEFAULT) >= 0);
    add_dataset(file, object, type, how);
    H5Fclose(file);
}

void resize(const char *path, const char *object, size_t dim, int by)
{
    hid_t file = edit(path), set = H5Dopen2(file, object, H5P_DEFAULT), space = H5Dget_space(set);
    struct stored how = {.rank = H5Sget_simple_extent_ndims(space)};

    H5Sget_simple_extent_dims(space, how.dims, NULL);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(file);
    how.dims[dim] = (hsize_t)((int64_t)how.dims[dim] + by);
    replace(path, object, H5T_IEEE_F64LE, &how);
}

hid_t string_type(size_t size, H5T_str_t padding, H5T_cset_t characters)
{
    hid_t type = H5Tcopy(H5T_C_S1);

    assert_true(H5Tset_size(type, size) >= 0 && H5Tset_strpad(type, padding) >= 0 &&
                H5Tset_cset(type, characters) >= 0);
    return type;
}

void assert_same(const char *a, const char *b)
{
    const struct ks_checkpoint *x = read_checkpoint(scratch(a)), *y = read_checkpoint(scratch(b));
    size_t n = ks_networks_parameters(&x->critic);

    assert_int_equal(n, ks_networks_parameters(&y->critic));
    assert_memory_equal(x->critic.w, y->critic.w, n * sizeof *x->critic.w);
    assert_memory_equal(x->adam_v, y->adam_v, n * sizeof *x->adam_v);
    n = x->minibatches * x->rows * x->critic.arch->in;
    assert_memory_equal(x->input, y->input, n * sizeof *x->input);
}
