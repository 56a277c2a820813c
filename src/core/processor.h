/* The machine's processor. */
#ifndef KS_CORE_PROCESSOR_H
#define KS_CORE_PROCESSOR_H

/* Its name as the system gives it, "Intel(R) Xeon(R) CPU @ 2.30GHz", or the architecture's where
 * the system gives none, "aarch64". Never NULL; valid until the thread's next call. */
const char *ks_processor_name(void);

#endif
