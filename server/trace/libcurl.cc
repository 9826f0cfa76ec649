#include "server/trace/libcurl.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// File name of libcurl, as built with OpenSSL. Its interface version has been the same since 2006.
constexpr char kLibrary[] = "libcurl.so.4";

absl::Status NotLoaded(const char* why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, reason::kFlagInvalid, "--trace_endpoint",
                   absl::StrCat("traces are sent by libcurl, which cannot be loaded (",
                                why == nullptr ? "no reason was given" : why,
                                "): install it; on Debian it is the package libcurl4"));
}

template <typename Function>
absl::Status Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function == nullptr ? NotLoaded(dlerror()) : absl::OkStatus();
}

struct Loaded {
  absl::Status status;
  Libcurl functions;
};

absl::Status Load(Libcurl& functions) {
  // The library is never closed, because a thread that resolves a name may run until the process
  // ends.
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return NotLoaded(dlerror());
#define PHIMAP_FIND(NAME) PHIMAP_RETURN_IF_ERROR(Find(library, #NAME, functions.NAME));
  PHIMAP_LIBCURL_FUNCTIONS(PHIMAP_FIND)
#undef PHIMAP_FIND
  const CURLcode begun = functions.curl_global_init(CURL_GLOBAL_DEFAULT);
  return begun == CURLE_OK ? absl::OkStatus() : NotLoaded(functions.curl_easy_strerror(begun));
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

absl::Status LoadLibcurl() { return TheLibrary().status; }

const Libcurl& libcurl() { return TheLibrary().functions; }

}  // namespace phimap
