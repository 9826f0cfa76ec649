// Keeps the library's OpenBLAS from starting threads when the library is loaded, whatever the
// process's environment says to its other OpenBLAS: a process with threads that it does not know of
// cannot fork safely. The linker has every call of getenv in this library call this function
// (--wrap=getenv).
#include <cstring>
#include <initializer_list>

extern "C" {

char* __real_getenv(const char* name);

char* __wrap_getenv(const char* name) {
  static char one[] = "1";
  for (const char* const threads : {"OPENBLAS_NUM_THREADS", "OPENBLAS_DEFAULT_NUM_THREADS",
                                    "GOTO_NUM_THREADS", "OMP_NUM_THREADS"}) {
    if (std::strcmp(name, threads) == 0) return one;
  }
  return __real_getenv(name);
}

}  // extern "C"
