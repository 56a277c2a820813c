/* kappascope-train: one training run. */
#include "train/train.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "core/milestones.h"
#include "core/process.h"
#include "core/program.h"
#include "env/env.h"
#include "io/file.h"
#include "io/h5.h"
#include "train/architecture.h"

static const char details[] =
    "NAMES AND FILES\n"
    "  --env takes the name of a task (--list) or a file FILE.so of your own: a shared\n"
    "  object with the functions of kappascope_env.h, which runs with your rights: use\n"
    "  only one that you trust. The task's name is then the file's name without folder\n"
    "  and ending.\n"
    "  --arch takes a system (--list), or a file FILE.system of your own: critic,\n"
    "  actor and settings together, which --set overrides. Or it takes one of the\n"
    "  twelve architectures of the XQC paper (--list), or a file FILE.arch with the\n"
    "  critic's description, whose loss may be ce, mse, huber or quantile. The\n"
    "  architecture's name is then the file's name without its folder. The actor has\n"
    "  blocks of the same kind as the file: bn if the file has a batchnorm, else ln if\n"
    "  it has a layernorm, groupnorm or rmsnorm, else dense; with weight normalization\n"
    "  if a dense layer of the file has project=unit or unit-kernel; with skips if\n"
    "  skip=1 is set. The other settings marked 'named architectures' must keep their\n"
    "  defaults.\n\n"
    "OUTPUT\n"
    "  DIR/step_NNNNNNNNN.h5 (checkpoints, by environment step), DIR/progress.csv\n"
    "  and DIR/run.json. DIR is created if it does not exist. A folder that holds a\n"
    "  different run is refused. If DIR holds the same run, finished and with all\n"
    "  its checkpoints, nothing is done. If that run is not finished, it continues\n"
    "  with --resume; without --resume it starts over, and its old checkpoints are\n"
    "  removed.\n"
    "  The same seed and settings give the same checkpoints for any number of\n"
    "  threads, except for the metrics steps_per_second and updates_per_second,\n"
    "  which depend on the clock, and library_versions, which names the libraries of\n"
    "  this machine. Other libraries or processors may round differently.\n\n"
    "RESUMING\n"
    "  DIR/resume holds what an unfinished run needs to continue: the last two\n"
    "  resume points, each with the state of the run (44 MB for XQC's networks), and\n"
    "  the transitions of its replay (2 KB each on the dog; each resume point adds\n"
    "  those since the last one). A resume point is written every 60 s, or less\n"
    "  often so that it takes less than 1% of the time; every SECONDS with\n"
    "  --save-every; and at --stop-at, SIGINT, SIGTERM and SIGHUP. The folder is\n"
    "  removed when the run is finished.\n"
    "  With --resume, short for --resume=exact, a run that was stopped, killed or\n"
    "  found the disk full continues from its last resume point. In the end its\n"
    "  checkpoints, progress.csv and counters are those of a run that was never\n"
    "  stopped, except for values of the clock. This needs the same options,\n"
    "  versions, BLAS kernel and number of threads as at the start.\n"
    "  With --resume=any only the options must be the same. A different processor,\n"
    "  BLAS kernel, number of threads or version of the program, of OpenBLAS or of\n"
    "  MuJoCo is accepted, and recorded under 'changes' in run.json with the\n"
    "  environment step. The results are then not bit for bit those of an\n"
    "  uninterrupted run.\n"
    "  Without a resume point the run starts over. A run that failed because a\n"
    "  number was not finite cannot be resumed: it would fail again.\n\n"
    "EXAMPLE\n"
    "  kappascope train --env dog-trot --arch bn+wn+ce --seed 0 --out runs/bn+wn+ce/0 \\\n"
    "      --set utd=1\n";

static struct command {
    struct ks_train_options options;
    struct ks_key_texts set;
    bool list;
} command = {.options.save_every = -1};

static const char *const resumes[] = {"exact", "any", NULL};

#define AT(member) KS_KEY_AT(struct command, member), 0

static const struct ks_key keys[] = {
    {"env", KS_ROW_TEXT(), NULL, AT(options.env), "NAME|FILE",
     "task (see --list), or a file of your own"},
    {"arch", KS_ROW_TEXT(), NULL, AT(options.architecture), "NAME|FILE",
     "architecture or system (see --list), or a file of your own"},
    {"seed", KS_ROW_COUNT(0, KS_KEY_ANY), "0", AT(options.seed), "N", "seed of all random numbers"},
    {"out", KS_ROW_TEXT(), NULL, AT(options.out), "DIR", "the run's folder"},
    {"steps", KS_ROW_COUNT(1, KS_MOST_STEPS), "1000000", AT(options.steps), "N",
     "environment steps of the complete run"},
    {"stop-at", KS_ROW_COUNT(1, KS_MOST_STEPS), NULL, AT(options.stop_at), "N",
     "stop early, with the milestones and learning rates of --steps"},
    {"resume", KS_ROW_CHOICE_FROM(KS_RESUME_EXACT, resumes), NULL, AT(options.resume), NULL,
     "continue an unfinished run; any: also under changed conditions", .bare = "exact"},
    {"save-every", KS_ROW_NUMBER(0, 1e9), NULL, AT(options.save_every), "SECONDS",
     "seconds between resume points (default: 60, or more if writing takes long)"},
    {"set", KS_ROW_TEXTS(), NULL, AT(set), "KEY=VALUE", "a setting (see --list); repeatable"},
    {"list", KS_ROW_FLAG(), NULL, AT(list), NULL, "print tasks, architectures, systems, settings"},
    KS_KEYS_END};

static const struct ks_program program = {
    .name = "kappascope-train",
    .synopsis = "--env NAME|FILE --arch NAME|FILE --out DIR [OPTION...]",
    .description = "train an agent and write checkpoints of its critics",
    .details = details,
    .libraries = {{"HDF5", ks_h5_version}, {"MuJoCo", ks_env_mujoco_version}},
    .keys = keys,
    .values = &command,
};

/* In alphabetical order; nothing if the files are not there. */
static void print_systems(void)
{
    KS_OWNED char *folder = NULL, *pattern = NULL;
    KS_CLEARED_BY(globfree) glob_t found = {.gl_pathc = 0};

    if (ks_installed_shared("configs/systems", &folder) != KS_OK ||
        ks_print_string(&pattern, "%s/*%s", folder, KS_SYSTEM_ENDING) != KS_OK ||
        glob(pattern, 0, NULL, &found) != 0)
        return;
    printf("\nSystems\n ");
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *name = ks_path_base(found.gl_pathv[i]);

        printf(" %.*s", (int)ks_path_stem(name, KS_SYSTEM_ENDING), name);
    }
    printf("\n");
}

/* The tasks of a suite, under its name. */
static void print_environments(void)
{
    struct ks_env_about env;
    const char *suite = "";

    printf("%-21s %12s %8s %15s\n", "Environments", "observations", "actions", "seconds a step");
    for (size_t i = 0; ks_env_about(i, &env); i++) {
        if (strcmp(env.suite, suite) != 0)
            printf("%s%s%s%s%s\n", env.suite, env.source ? ": set " : "",
                   env.source ? env.variable : "", env.source ? " to the folder of " : "",
                   env.source ? env.source : "");
        suite = env.suite;
        printf("  %-19s %12zu %8zu %15g\n", env.name, env.observations, env.actions,
               env.control_step);
    }
    printf(
        "NAME-pixels, with NAME one of dm_control's: from the last %d frames of %d x %d pixels\n",
        KS_FRAMES, KS_FRAME_SIDE, KS_FRAME_SIDE);
}

static void print_list(void)
{
    const size_t per_line = 4;
    struct ks_settings settings;
    char value[KS_VALUE_LENGTH];

    ks_settings_defaults(&settings);
    print_environments();
    printf("\nArchitectures\n");
    for (size_t i = 0; ks_architectures[i].name; i++) {
        bool ends = (i + 1) % per_line == 0 || !ks_architectures[i + 1].name;
        printf("  %-*s%s", ends ? 0 : 13, ks_architectures[i].name, ends ? "\n" : "");
    }
    print_systems();
    printf("\nSettings, with their defaults\n");
    for (const struct ks_key *key = ks_keys; key->name; key++) {
        ks_key_print(key, &settings, value);
        printf("  %-21s %-8s %s\n", key->name, value, key->help);
    }
}

/* The settings of a system, if --arch names one. */
static ks_status read_system(const char *name, struct ks_settings *settings)
{
    KS_OWNED char *path = NULL;

    if (!ks_architecture_find(name))
        KS_TRY(ks_system_find(name, &path));
    return path ? ks_system_settings(path, settings) : KS_OK;
}

/* Settings: the defaults, the task's action repeat, those of a system, and those that are given. */
static ks_status read_settings(struct ks_train_options *o)
{
    struct ks_env_about about;

    ks_settings_defaults(&o->settings);
    if (ks_env_about_task(o->env, &about))
        o->settings.action_repeat = about.action_repeat;
    KS_TRY(read_system(o->architecture, &o->settings));
    for (size_t i = 0; i < command.set.n; i++)
        KS_TRY(ks_settings_assign(&o->settings, command.set.text[i]));
    return KS_OK;
}

static ks_status check_options(const struct ks_train_options *o)
{
    static const char *const needed[] = {"env", "arch", "out"};
    const char *const found[] = {o->env, o->architecture, o->out};

    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!found[i] || !*found[i])
            return ks_fail(KS_USAGE, "--%s is missing (see --help)", needed[i]);
    if (o->stop_at > o->steps)
        return ks_fail(KS_USAGE, "--stop-at: expected at most --steps, %zu, found %zu", o->steps,
                       o->stop_at);
    return KS_OK;
}

static ks_status train(const struct ks_arguments *arguments)
{
    struct ks_train_options *o = &command.options;

    if (arguments->n_rest > 0)
        return ks_fail(KS_USAGE, "'%s': no arguments expected (see --help)", arguments->rest[0]);
    if (command.list) {
        print_list();
        return KS_OK;
    }
    o->argc = arguments->argc, o->argv = arguments->argv;
    o->quiet = arguments->quiet;
    KS_TRY(check_options(o));
    KS_TRY(read_settings(o));
    return ks_train(o);
}

int main(int argc, char **argv)
{
    return ks_program_run(&program, argc, argv, train);
}
