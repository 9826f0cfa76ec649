#include "tests/core/structure/include_rules.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace phimap::testing {
namespace {

namespace fs = std::filesystem;

// The order of dependence of core/: a folder may include itself and the folders before it.
constexpr std::array<absl::string_view, 17> kCoreOrder = {
    "status",      "thread",  "digest", "linalg", "random",     "kernel",
    "theory",      "plan",    "engine", "head",   "drift",      "landmark",
    "certificate", "mapping", "learn",  "train",  "feature_map"};
constexpr std::array<absl::string_view, 9> kMappingOrder = {
    "spec",    "sample",     "builder_parts", "projection", "f1_f2_f3",
    "fourier", "kernel_pca", "polynomial",    "build"};
constexpr std::array<absl::string_view, 16> kServerOrder = {
    "observe", "trace",         "admission", "store",   "schedule", "rpc",
    "http",    "kernel_client", "registry",  "drift",   "build",    "transform",
    "predict", "inference",     "mapping",   "learning"};
// The order within rooms of server/ that have folders; "" stands for the files directly in the
// room.
constexpr std::array<absl::string_view, 5> kStoreOrder = {"", "files", "sqlite", "postgres",
                                                          "admin"};
constexpr std::array<absl::string_view, 2> kRpcOrder = {"transport", ""};
// Order of dependence in client/. "cli" stands for the files directly in client/cli, which put its
// folders together.
constexpr std::array<absl::string_view, 10> kClientOrder = {
    "cpp",       "local",     "binding",   "files",        "cli/arguments",
    "cli/views", "cli/bench", "cli/local", "cli/commands", "cli"};
constexpr std::array<absl::string_view, 11> kForeignToCore = {
    "grpc",      "google/",    "sqlite", "libpq",   "postgres", "prometheus",
    "phimap/v1", "inference/", "proto/", "server/", "client/"};
// Folders of core/ that proto/artifact needs to describe an artifact. proto/calls needs all.
constexpr std::array<absl::string_view, 5> kSeenByProto = {"status", "digest", "plan", "head",
                                                           "certificate"};
constexpr std::array<absl::string_view, 3> kSeenByClient = {"status", "thread", "digest"};
// What the C++ client is made of. It is a library for others' programs, which do not have the
// engine and what the engine needs.
constexpr std::array<absl::string_view, 4> kClientParts = {"client/cpp/", "core/status/",
                                                           "core/digest/", "proto/chunk/"};
// What the C++ client must not reach besides the rest of phimap: a header that needs CLI11, and
// messages of others, of which a program that uses the client may have copies.
constexpr std::array<absl::string_view, 6> kForeignToClient = {"core/status/command_line.h",
                                                               "inference/",
                                                               "onnx/",
                                                               "opentelemetry/",
                                                               "grpc/health/",
                                                               "grpc/reflection/"};
// What of client/ computes in its own process, with core/.
constexpr std::array<absl::string_view, 3> kComputesLocally = {"client/local/", "client/binding/",
                                                               "client/cli/local/"};
constexpr std::array<absl::string_view, 3> kBuildOnly = {"core/mapping/", "core/landmark/",
                                                         "core/certificate/"};
constexpr std::array<absl::string_view, 5> kTransformPath = {"server/schedule/", "server/registry/",
                                                             "server/drift/", "server/transform/",
                                                             "server/inference/"};

constexpr std::array<absl::string_view, 7> kProjectFolders = {
    "core/", "server/", "client/", "proto/", "lab/", "bench/", "tests/"};
// Folders that are not part of the product: they measure, explain and test it.
constexpr std::array<absl::string_view, 3> kWorkshop = {"lab/", "bench/", "tests/"};

constexpr char kLaterFolder[] = "it includes a folder that is later in the order of dependence";

template <typename Prefixes>
bool StartsWithAny(absl::string_view text, const Prefixes& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](absl::string_view p) { return absl::StartsWith(text, p); });
}

// Returns the folder of `root` that `path` is in: "linalg" for the path "core/linalg/blas.h" and
// the root "core". Empty for paths outside of `root` and for files directly in `root`.
std::string FolderIn(absl::string_view root, absl::string_view path) {
  const std::vector<std::string> parts = absl::StrSplit(path, '/');
  return parts.size() >= 3 && parts[0] == root ? parts[1] : "";
}

std::string CoreFolder(absl::string_view path) { return FolderIn("core", path); }

// Returns the position of `folder` in `order`, or the size of `order` if the folder is not in it.
template <typename Order>
size_t RankIn(const Order& order, absl::string_view folder) {
  return std::find(order.begin(), order.end(), folder) - order.begin();
}

template <typename Folders>
bool IsOneOf(const Folders& folders, absl::string_view folder) {
  return RankIn(folders, folder) < folders.size();
}

// Returns the position in kClientOrder of the folder of client/ that `path` is in.
size_t ClientRank(absl::string_view path) {
  const std::vector<std::string> parts = absl::StrSplit(path, '/');
  if (parts.size() < 3) return kClientOrder.size();
  const bool inside_cli = parts[1] == "cli" && parts.size() > 3;
  return RankIn(kClientOrder, inside_cli ? absl::StrCat(parts[1], "/", parts[2]) : parts[1]);
}

size_t Rank(absl::string_view folder) { return RankIn(kCoreOrder, folder); }

// Whether `name` is a header of grpc++ or a header that the protoc plugin of grpc++ generates. The
// messages of gRPC's own services (grpc/….pb.h) are not: they are plain protobuf.
bool IsGrpcLibrary(absl::string_view name) {
  return absl::StartsWith(name, "grpcpp/") || absl::StartsWith(name, "grpc++/") ||
         absl::EndsWith(name, ".grpc.pb.h") ||
         (absl::StartsWith(name, "grpc/") && !absl::EndsWith(name, ".pb.h"));
}

bool IsBlas(absl::string_view name) {
  return absl::StrContains(name, "cblas") || absl::StrContains(name, "lapack");
}

// Returns the rule that an include of `name` in `file`, a file of server/, breaks. Files directly
// in server/ put its folders together and may include each of them.
std::string ServerViolation(const std::string& file, const std::string& name) {
  if (absl::StartsWith(name, "client/")) return "server/ must not include client/";
  const std::string from = FolderIn("server", file);
  if (IsGrpcLibrary(name) && from != "kernel_client")
    return "only server/kernel_client may include grpc++";
  if (from.empty()) return "";
  if (RankIn(kServerOrder, from) == kServerOrder.size()) {
    return absl::StrCat("server/", from, " is not in kServerOrder");
  }
  if (!absl::StartsWith(name, "server/")) return "";
  const std::string to = FolderIn("server", name);
  if (to.empty()) return "folders of server/ must not include files at its top";
  if (RankIn(kServerOrder, to) > RankIn(kServerOrder, from)) return kLaterFolder;
  if (to != from) return "";
  const auto is_later = [&](const auto& order) {
    const absl::string_view parent = "server/";
    return RankIn(order, FolderIn(to, name.substr(parent.size()))) >
           RankIn(order, FolderIn(from, file.substr(parent.size())));
  };
  const bool later =
      (to == "store" && is_later(kStoreOrder)) || (to == "rpc" && is_later(kRpcOrder));
  return later ? kLaterFolder : "";
}

// DirectViolation for the rules of lab/, bench/ and tests/.
std::string WorkshopViolation(const std::string& file, const std::string& name) {
  const auto is = [&](absl::string_view from, absl::string_view to) {
    return absl::StartsWith(file, from) && absl::StartsWith(name, to);
  };
  if (StartsWithAny(name, kWorkshop) && !StartsWithAny(file, kWorkshop)) {
    return "the product must not include lab/, bench/ or tests/";
  }
  if (absl::StartsWith(name, "tests/") && !absl::StartsWith(file, "tests/")) {
    return "only tests may include tests/";
  }
  if (is("lab/", "server/") || is("lab/", "bench/"))
    return "lab/ must not include server/ or bench/";
  if (is("lab/letter/", "lab/") && !is("lab/letter/", "lab/letter/")) return kLaterFolder;
  if (is("lab/", "lab/experiments/") && !is("lab/experiments/", "lab/") &&
      file != "lab/phimap_lab.cc") {
    return kLaterFolder;
  }
  if (is("bench/", "lab/") || is("bench/", "client/cli/"))
    return "bench/ must not include lab/ or client/cli/";
  if (absl::StartsWith(file, "tests/support/") && !absl::StartsWith(name, "tests/support/") &&
      StartsWithAny(name, kProjectFolders) && !absl::StartsWith(name, "core/")) {
    return "tests/support may include only core/ and tests/support";
  }
  if (is("tests/core/", "server/") || is("tests/core/", "client/")) {
    return "tests/core must not include server/ or client/";
  }
  if (is("tests/client/", "server/")) return "tests/client must not include server/";
  return "";
}

// Returns the rule that a file of core/mapping breaks by including `name`; empty if it breaks none.
std::string MappingViolation(const std::string& file, const std::string& name) {
  if (!absl::StartsWith(file, "core/mapping/")) return "";
  const size_t from = RankIn(kMappingOrder, FolderIn("mapping", file.substr(5)));
  if (from == kMappingOrder.size())
    return "core/mapping may have files only in folders that are in kMappingOrder";
  if (!absl::StartsWith(name, "core/mapping/")) return "";
  return RankIn(kMappingOrder, FolderIn("mapping", name.substr(5))) > from ? kLaterFolder : "";
}

// Returns the rule that `file` breaks by including `name`; empty if it breaks none.
std::string DirectViolation(const std::string& file, const std::string& name) {
  if (IsBlas(name) && file != "core/linalg/blas.cc" && !StartsWithAny(file, kWorkshop)) {
    return "only core/linalg/blas.cc may include BLAS or LAPACK";
  }
  if (std::string what = WorkshopViolation(file, name); !what.empty()) return what;
  if (absl::StartsWith(file, "core/")) {
    if (StartsWithAny(name, kForeignToCore)) return "core/ must not include this header";
    const std::string from = CoreFolder(file);
    if (Rank(from) == kCoreOrder.size())
      return absl::StrCat("core/", from, " is not in kCoreOrder");
    const std::string to = CoreFolder(name);
    if (!to.empty() && Rank(to) > Rank(from)) return kLaterFolder;
    if (from == "learn" && Rank(to) >= Rank("drift") && Rank(to) < Rank("learn")) {
      return "core/learn must not include drift, landmark, certificate or mapping";
    }
    const std::string inside = MappingViolation(file, name);
    if (!inside.empty()) return inside;
  }
  if (absl::StartsWith(file, "client/")) {
    if (absl::StartsWith(name, "server/")) return "client/ must not include server/";
    if (absl::StartsWith(name, "core/") && !StartsWithAny(file, kComputesLocally) &&
        !IsOneOf(kSeenByClient, CoreFolder(name))) {
      return "client/ may include only status, thread and digest of core/";
    }
    if (absl::StartsWith(name, "client/") && ClientRank(name) > ClientRank(file)) {
      return kLaterFolder;
    }
  }
  if (absl::StartsWith(file, "proto/")) {
    if (absl::StartsWith(name, "server/") || absl::StartsWith(name, "client/")) {
      return "proto/ must not include server/ or client/";
    }
    if (absl::StartsWith(name, "proto/calls/") && !absl::StartsWith(file, "proto/calls/")) {
      return kLaterFolder;
    }
    if (absl::StartsWith(file, "proto/chunk/") && absl::StartsWith(name, "core/") &&
        !StartsWithAny(name, kClientParts)) {
      return "proto/chunk may include only status and digest of core/";
    }
    if (absl::StartsWith(name, "core/") && !absl::StartsWith(file, "proto/calls/") &&
        !IsOneOf(kSeenByProto, CoreFolder(name))) {
      return "proto/artifact may include only status, digest, plan, head and certificate of core/";
    }
  }
  if (absl::StartsWith(file, "server/")) return ServerViolation(file, name);
  return "";
}

// A rule for all headers that some files include, directly or not.
struct ReachRule {
  bool (*forbidden)(absl::string_view name);
  absl::string_view says;
};

constexpr ReachRule kTransformReach = {
    [](absl::string_view name) { return StartsWithAny(name, kBuildOnly); },
    "the code that serves Transform must not reach this header"};
constexpr ReachRule kClientReach = {
    [](absl::string_view name) {
      return StartsWithAny(name, kForeignToClient) ||
             (StartsWithAny(name, kProjectFolders) && !StartsWithAny(name, kClientParts));
    },
    "the C++ client must not reach this header"};

// Searches for headers that `rule` forbids among the project headers that `file` includes, depth
// first. `path` is the chain of includes so far, for the message.
void FindForbidden(const Includes& includes, const ReachRule& rule, const std::string& file,
                   const std::string& path, std::set<std::string>& seen,
                   std::vector<std::string>& violations) {
  if (!seen.insert(file).second) return;
  const auto found = includes.find(file);
  if (found == includes.end()) return;
  for (const std::string& name : found->second) {
    const std::string chain = absl::StrCat(path, " -> ", name);
    if (rule.forbidden(name)) {
      violations.push_back(absl::StrCat(chain, ": ", rule.says));
    } else {
      FindForbidden(includes, rule, name, chain, seen, violations);
    }
  }
}

// Walks the include graph depth first and keeps the chain from the first file to the current one.
class CycleSearch {
 public:
  explicit CycleSearch(const Includes& includes) : includes_(includes) {}

  void Visit(const std::string& file) {
    const auto found = includes_.find(file);
    if (found == includes_.end() || done_.contains(file)) return;
    const auto begin = std::find(chain_.begin(), chain_.end(), file);
    if (begin != chain_.end()) {
      cycles_.push_back(absl::StrCat(absl::StrJoin(begin, chain_.end(), " -> "), " -> ", file,
                                     ": files include each other in a cycle"));
      return;
    }
    chain_.push_back(file);
    for (const std::string& name : found->second) Visit(name);
    chain_.pop_back();
    done_.insert(file);
  }

  std::vector<std::string> TakeCycles() { return std::move(cycles_); }

 private:
  const Includes& includes_;
  std::vector<std::string> chain_;
  std::set<std::string> done_;
  std::vector<std::string> cycles_;
};

std::vector<std::string> CyclesIn(const Includes& includes) {
  CycleSearch search(includes);
  for (const auto& [file, names] : includes) search.Visit(file);
  return search.TakeCycles();
}

}  // namespace

std::vector<std::string> IncludesOf(const std::string& text) {
  std::vector<std::string> names;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripLeadingAsciiWhitespace(line);
    if (!absl::ConsumePrefix(&line, "#")) continue;
    line = absl::StripLeadingAsciiWhitespace(line);
    if (!absl::ConsumePrefix(&line, "include")) continue;
    line = absl::StripLeadingAsciiWhitespace(line);
    if (line.empty() || (line[0] != '"' && line[0] != '<')) continue;
    const size_t end = line.find(line[0] == '"' ? '"' : '>', 1);
    if (end != line.npos) names.emplace_back(line.substr(1, end - 1));
  }
  return names;
}

Includes IncludesUnder(const std::string& root) {
  Includes includes;
  for (const absl::string_view prefix : kProjectFolders) {
    const std::string folder(prefix.substr(0, prefix.size() - 1));
    if (!fs::exists(fs::path(root) / folder)) continue;
    for (const fs::directory_entry& entry :
         fs::recursive_directory_iterator(fs::path(root) / folder)) {
      const std::string extension = entry.path().extension().string();
      if (!entry.is_regular_file() || (extension != ".h" && extension != ".cc")) continue;
      std::ifstream file(entry.path());
      const std::string text((std::istreambuf_iterator<char>(file)), {});
      includes[fs::relative(entry.path(), root).generic_string()] = IncludesOf(text);
    }
  }
  return includes;
}

std::vector<std::string> Violations(const Includes& includes) {
  std::vector<std::string> violations = CyclesIn(includes);
  for (const auto& [file, names] : includes) {
    for (const std::string& name : names) {
      const std::string what = DirectViolation(file, name);
      if (!what.empty()) {
        violations.push_back(absl::StrCat(file, " includes ", name, ": ", what));
      }
    }
    if (StartsWithAny(file, kTransformPath)) {
      std::set<std::string> seen;
      FindForbidden(includes, kTransformReach, file, file, seen, violations);
    }
    if (absl::StartsWith(file, "client/cpp/")) {
      std::set<std::string> seen;
      FindForbidden(includes, kClientReach, file, file, seen, violations);
    }
  }
  return violations;
}

}  // namespace phimap::testing
