// PHIMAP_CHECK is for bugs of phimap itself. For a condition that a caller's input or the
// environment can make false, return a Status instead.
#ifndef PHIMAP_CORE_STATUS_CHECK_H_
#define PHIMAP_CORE_STATUS_CHECK_H_

#include <cstdio>
#include <cstdlib>

// If the condition is false, prints it with file and line, and aborts. Active in every build type.
#define PHIMAP_CHECK(condition)                                                          \
  do {                                                                                   \
    if (!(condition)) [[unlikely]] {                                                     \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)

#endif  // PHIMAP_CORE_STATUS_CHECK_H_
