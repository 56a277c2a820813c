/* A study in the scratch folder, and shell scripts in the place of sbatch, squeue, scancel and
 * scontrol. */
#ifndef KS_TEST_FAKE_SLURM_H
#define KS_TEST_FAKE_SLURM_H

#include "staged_study.h"

#include "study/slurm.h"

/* Records its arguments, and answers with the number of its call above 100; prints a line that is
 * no number first, as clusters' greetings are. Refuses the call whose number is in "refused". */
static const char FAKE_SBATCH[] = "#!/bin/sh\n"
                                  "echo \"sbatch $*\" >>slurm.calls\n"
                                  "n=$(grep -c sbatch slurm.calls)\n"
                                  "if [ \"$n\" = \"$(cat refused)\" ]; then\n"
                                  "    echo 'sbatch: error: invalid partition' >&2\n"
                                  "    exit 1\n"
                                  "fi\n"
                                  "echo 'welcome 7'\n"
                                  "echo \"$((100 + n));cluster\"\n";
static const char FAKE_SCANCEL[] = "#!/bin/sh\necho \"scancel $*\" >>slurm.calls\n";
static const char FAKE_SCONTROL[] = "#!/bin/sh\necho \"scontrol $*\" >>slurm.calls\nexit 1\n";
/* In the study's folder, where `queue` is, as its caller is. */
static const char FAKE_SQUEUE[] = "#!/bin/sh\n"
                                  "[ ! -e squeue.fails ] || { echo no controller >&2; exit 1; }\n"
                                  "cat queue\n";

static inline struct stage stage_with_slurm(const char *behaviour)
{
    char path[4096];

    write_script("bin/sbatch", FAKE_SBATCH);
    write_script("bin/scancel", FAKE_SCANCEL);
    write_script("bin/scontrol", FAKE_SCONTROL);
    write_script("bin/squeue", FAKE_SQUEUE);
    tree_write("slurm.calls", "");
    tree_write("refused", "0");
    tree_write("queue", "");
    if (!strstr(getenv("PATH"), tree)) {
        snprintf(path, sizeof path, "%s:%s", tree_path("bin"), getenv("PATH"));
        setenv("PATH", path, 1);
    }
    return stage_new(behaviour);
}

static inline struct ks_slurm quietly(void)
{
    return (struct ks_slurm){.plot = "/bin/plot", .quiet = true};
}

#endif
