/* Priors for programs in other languages: plain C, tensors by DLPack. examples/priors_dlpack.py uses it by
 * ctypes. */
#ifndef FERRITE_MODELS_PRIORS_H
#define FERRITE_MODELS_PRIORS_H

#include <stdint.h>

#include "ferrite/interop/dlpack.h"

#ifndef FERRITE_C_API
#define FERRITE_C_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* x, y, row_mask, feature_mask, levels, info: see priors::Batch. */
#define FERRITE_PRIOR_TENSORS 6

/* Makes datasets `first` to `first + count - 1` of a config (JSON) and seed. `backend` is "cpu", "cuda",
 * "cuda:1" or "reference". Returns 0 and fills `out`, whose tensors the caller owns (call their deleters), or
 * returns 1 and leaves `out` as it was. */
FERRITE_C_API int ferrite_priors_generate(const char* backend, const char* config, uint64_t seed,
                                          int64_t first, int64_t count,
                                          DLManagedTensor* out[FERRITE_PRIOR_TENSORS]);

/* What was wrong with the last call of this thread that returned 1; valid until its next call. */
FERRITE_C_API const char* ferrite_priors_error(void);

#ifdef __cplusplus
}
#endif

#endif
