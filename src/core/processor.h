/* The processor's name. */
#ifndef KS_CORE_PROCESSOR_H
#define KS_CORE_PROCESSOR_H

/* The model name that the system reports, "Intel(R) Xeon(R) CPU @ 2.30GHz", else the architecture,
 * "aarch64". Never NULL; valid until the thread's next call. */
const char *ks_processor_name(void);

#endif
