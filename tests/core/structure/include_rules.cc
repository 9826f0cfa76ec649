#include "tests/core/structure/include_rules.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace phimap::testing {
namespace {

namespace fs = std::filesystem;

// Each may include itself and those before it.
constexpr std::array<absl::string_view, 12> kCoreOrder = {
    "status", "thread",   "linalg",      "random",  "kernel", "theory",
    "plan",   "landmark", "certificate", "mapping", "learn",  "binding"};
constexpr std::array<absl::string_view, 24> kServerOrder = {
    "sync",     "observe",    "memory",        "auth",     "store",      "files",
    "sqlite",   "postgres",   "admin",         "schedule", "transport",  "calls",
    "health",   "reflection", "kernel_client", "registry", "versions",   "build",
    "evaluate", "serving",    "transform",     "mapping",  "evaluation", "inference"};
constexpr std::array<absl::string_view, 12> kForeignToCore = {
    "grpc",      "google/",    "sqlite", "libpq",     "postgres", "prometheus",
    "phimap/v1", "inference/", "proto/", "exchange/", "server/",  "client/"};
// What exchange/ sees of core/: an artifact, and what it says of itself.
constexpr std::array<absl::string_view, 3> kSeenByExchange = {"status", "plan", "certificate"};
constexpr std::array<absl::string_view, 3> kBuildOnly = {"core/mapping/", "core/landmark/",
                                                         "core/certificate/"};
constexpr std::array<absl::string_view, 5> kTransformPath = {"server/schedule/", "server/registry/",
                                                             "server/serving/", "server/transform/",
                                                             "server/inference/"};

template <typename Prefixes>
bool StartsWithAny(absl::string_view text, const Prefixes& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](absl::string_view p) { return absl::StartsWith(text, p); });
}

// "linalg" of "core/linalg/blas.h" in "core"; empty outside of `root` and at its top.
std::string FolderIn(absl::string_view root, absl::string_view path) {
  const std::vector<std::string> parts = absl::StrSplit(path, '/');
  return parts.size() >= 3 && parts[0] == root ? parts[1] : "";
}

std::string CoreFolder(absl::string_view path) { return FolderIn("core", path); }

// Position in `order`; its size for a folder that it does not name.
template <typename Order>
size_t RankIn(const Order& order, absl::string_view folder) {
  return std::find(order.begin(), order.end(), folder) - order.begin();
}

size_t Rank(absl::string_view folder) { return RankIn(kCoreOrder, folder); }

// grpc++, and what its plugin generates; the messages of gRPC's own services are protobuf alone.
bool IsGrpcLibrary(absl::string_view name) {
  return absl::StartsWith(name, "grpcpp/") || absl::StartsWith(name, "grpc++/") ||
         absl::EndsWith(name, ".grpc.pb.h") ||
         (absl::StartsWith(name, "grpc/") && !absl::EndsWith(name, ".pb.h"));
}

bool IsBlas(absl::string_view name) {
  return absl::StrContains(name, "cblas") || absl::StrContains(name, "lapack");
}

// The same as DirectViolation for a file of server/. Those at its top put the folders together.
std::string ServerViolation(const std::string& file, const std::string& name) {
  if (absl::StartsWith(name, "client/")) return "the server knows nothing of its clients";
  const std::string from = FolderIn("server", file);
  if (IsGrpcLibrary(name) && from != "kernel_client")
    return "only server/kernel_client calls with grpc++";
  if (from.empty()) return "";
  if (RankIn(kServerOrder, from) == kServerOrder.size()) {
    return absl::StrCat("server/", from, " has no place");
  }
  if (!absl::StartsWith(name, "server/")) return "";
  const std::string to = FolderIn("server", name);
  if (to.empty()) return "it points up to what composes the server";
  return RankIn(kServerOrder, to) > RankIn(kServerOrder, from) ? "it points up" : "";
}

// What is wrong with `file` including `name`; empty if nothing is.
std::string DirectViolation(const std::string& file, const std::string& name) {
  if (IsBlas(name) && file != "core/linalg/blas.cc") return "only core/linalg/blas.cc may";
  if (absl::StartsWith(file, "core/")) {
    if (StartsWithAny(name, kForeignToCore)) return "core/ knows nothing of it";
    const std::string from = CoreFolder(file);
    if (Rank(from) == kCoreOrder.size()) return absl::StrCat("core/", from, " has no place");
    const std::string to = CoreFolder(name);
    if (!to.empty() && Rank(to) > Rank(from)) return "it points up";
    if (from == "learn" && Rank(to) >= Rank("plan") && Rank(to) < Rank("learn")) {
      return "a learner knows nothing of how its features came about";
    }
  }
  if (absl::StartsWith(file, "client/")) {
    // The command looks after stores in which no server may be running.
    const bool looks_after =
        file == "client/cli/admin_command.cc" &&
        (absl::StartsWith(name, "server/admin/") || absl::StartsWith(name, "server/store/") ||
         absl::StartsWith(name, "server/files/"));
    if (absl::StartsWith(name, "server/") && !looks_after) {
      return "a client knows nothing of the server's inside";
    }
    const std::string to = CoreFolder(name);
    if (absl::StartsWith(name, "core/") && to != "status" && to != "thread") {
      return "of core/ a client sees status and thread only";
    }
  }
  if (absl::StartsWith(file, "exchange/")) {
    if (absl::StartsWith(name, "server/") || absl::StartsWith(name, "client/")) {
      return "both ends build on it";
    }
    const std::string to = CoreFolder(name);
    if (!to.empty() &&
        std::find(kSeenByExchange.begin(), kSeenByExchange.end(), to) == kSeenByExchange.end()) {
      return "of core/ it sees status, plan and certificate only";
    }
  }
  if (absl::StartsWith(file, "server/")) return ServerViolation(file, name);
  return "";
}

// Depth first over project headers; `path` is the chain so far, for the message.
void FindBuildOnly(const Includes& includes, const std::string& file, const std::string& path,
                   std::set<std::string>& seen, std::vector<std::string>& violations) {
  if (!seen.insert(file).second) return;
  const auto found = includes.find(file);
  if (found == includes.end()) return;
  for (const std::string& name : found->second) {
    const std::string chain = absl::StrCat(path, " -> ", name);
    if (StartsWithAny(name, kBuildOnly)) {
      violations.push_back(absl::StrCat(chain, ": the Transform path must not reach it"));
    } else {
      FindBuildOnly(includes, name, chain, seen, violations);
    }
  }
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
  for (const char* folder : {"core", "exchange", "server", "client", "proto"}) {
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
  std::vector<std::string> violations;
  for (const auto& [file, names] : includes) {
    for (const std::string& name : names) {
      const std::string what = DirectViolation(file, name);
      if (!what.empty()) {
        violations.push_back(absl::StrCat(file, " includes ", name, ": ", what));
      }
    }
    if (StartsWithAny(file, kTransformPath)) {
      std::set<std::string> seen;
      FindBuildOnly(includes, file, file, seen, violations);
    }
  }
  return violations;
}

}  // namespace phimap::testing
