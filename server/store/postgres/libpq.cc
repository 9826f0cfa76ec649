#include "server/store/postgres/libpq.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// File name of libpq. Its interface version has been the same since PostgreSQL 8.0.
constexpr char kLibrary[] = "libpq.so.5";

absl::Status NotLoaded() {
  const char* const why = dlerror();
  return MakeError(absl::StatusCode::kFailedPrecondition, reason::kLibpqMissing, "store",
                   absl::StrCat("a PostgreSQL store needs libpq, which cannot be loaded (",
                                why == nullptr ? "no reason was given" : why,
                                "): install it; on Debian it is the package libpq5"));
}

template <typename Function>
absl::Status Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function == nullptr ? NotLoaded() : absl::OkStatus();
}

struct Loaded {
  absl::Status status;
  Libpq functions;
};

absl::Status Load(Libpq& functions) {
  // The library is never closed, because connections may exist until the process ends.
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return NotLoaded();
#define PHIMAP_FIND(NAME) PHIMAP_RETURN_IF_ERROR(Find(library, #NAME, functions.NAME));
  PHIMAP_LIBPQ_FUNCTIONS(PHIMAP_FIND)
#undef PHIMAP_FIND
  return absl::OkStatus();
}

const Loaded& TheLibrary() {
  static const Loaded* const loaded = [] {
    auto* const made = new Loaded;
    made->status = Load(made->functions);
    return made;
  }();
  return *loaded;
}

}  // namespace

absl::Status LoadLibpq() { return TheLibrary().status; }

const Libpq& libpq() { return TheLibrary().functions; }

}  // namespace phimap
