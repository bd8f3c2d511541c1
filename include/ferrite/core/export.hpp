// FERRITE_API marks symbols that the shared library exports; everything else stays hidden.
#pragma once

#if defined(FERRITE_STATIC)
#define FERRITE_API
#else
#define FERRITE_API __attribute__((visibility("default")))
#endif
