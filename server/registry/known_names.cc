#include "server/registry/known_names.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/registry/version_registry.h"
#include "server/store/records.h"
#include "server/store/sha256.h"

namespace phimap {
namespace {

constexpr absl::string_view kFirstLine = "phimap names 1";
// Maximum size of the file. Ten thousand versions take some megabytes.
constexpr int64_t kMaxFileBytes = int64_t{1} << 30;

absl::Status Invalid() {
  return MakeError(absl::StatusCode::kDataLoss, reason::kNamesFileInvalid, "",
                   "the file of known names is damaged; the server waits for the database instead");
}

// Adds the fact of one line to `names`. Returns false if it is none.
bool AddLine(absl::string_view line, KnownNames& names) {
  const std::pair<absl::string_view, absl::string_view> kind =
      absl::StrSplit(line, absl::MaxSplits('\t', 1));
  if (kind.first == "record") {
    absl::StatusOr<VersionRecord> record = VersionFrom(kind.second);
    if (!record.ok()) return false;
    names.records.push_back(*std::move(record));
    return true;
  }
  const std::vector<absl::string_view> fields = absl::StrSplit(line, '\t');
  int64_t number = 0;
  if (kind.first == "store" && fields.size() == 2) {
    names.store = std::string(fields[1]);
    return true;
  }
  if (kind.first == "mapping" && fields.size() == 2) {
    names.mappings.push_back({.mapping = std::string(fields[1])});
    return true;
  }
  if (fields.size() != 3 || !absl::SimpleAtoi(fields[2], &number)) return false;
  if (kind.first == "revision") {
    names.revision = {std::string(fields[1]), number};
    return true;
  }
  if (names.mappings.empty()) return false;
  MappingNames& mapping = names.mappings.back();
  if (kind.first == "version") {
    mapping.digests.emplace_back(fields[1]);
    mapping.versions.push_back(number);
  } else if (kind.first == "alias") {
    mapping.aliases.push_back({std::string(fields[1]), number});
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::string TextOf(const KnownNames& names) {
  std::string text = absl::StrCat(kFirstLine, "\nstore\t", names.store, "\nrevision\t",
                                  names.revision.id, "\t", names.revision.number, "\n");
  for (const MappingNames& mapping : names.mappings) {
    absl::StrAppend(&text, "mapping\t", mapping.mapping, "\n");
    for (size_t i = 0; i < mapping.versions.size(); ++i) {
      absl::StrAppend(&text, "version\t", mapping.digests[i], "\t", mapping.versions[i], "\n");
    }
    for (const AliasTarget& alias : mapping.aliases) {
      absl::StrAppend(&text, "alias\t", alias.alias, "\t", alias.version, "\n");
    }
  }
  for (const VersionRecord& record : names.records) {
    absl::StrAppend(&text, "record\t", TextOf(record), "\n");
  }
  return absl::StrCat(text, Sha256Hex(text), "\n");
}

absl::StatusOr<KnownNames> ParseKnownNames(absl::string_view text) {
  if (!absl::ConsumeSuffix(&text, "\n")) return Invalid();
  const size_t last = text.rfind('\n');
  if (last == text.npos) return Invalid();
  const absl::string_view digest = text.substr(last + 1);
  text = text.substr(0, last + 1);
  if (digest != Sha256Hex(text) || !absl::ConsumePrefix(&text, absl::StrCat(kFirstLine, "\n"))) {
    return Invalid();
  }
  KnownNames names;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (!AddLine(line, names)) return Invalid();
  }
  return names;
}

KnownNamesFile::KnownNamesFile(std::string path, const std::string& store, FileSystem& files,
                               VersionRegistry& registry, const Logger& logger)
    : path_(std::move(path)),
      store_(Sha256Hex(store)),
      files_(files),
      registry_(registry),
      logger_(logger) {}

absl::Status KnownNamesFile::Learn() {
  const absl::Status learned = registry_.CatchUp();
  if (!absl::IsUnavailable(learned)) return learned;
  const absl::Status recalled = Recall();
  logger_.Log(LogLevel::kWarning, recalled.ok() ? "serving_known_names" : "waiting_for_database",
              {{"revision", registry_.revision().number}, {"error", recalled.message()}});
  return recalled.ok() ? absl::OkStatus() : learned;
}

absl::Status KnownNamesFile::Recall() {
  PHIMAP_ASSIGN_OR_RETURN(const std::string text, files_.ReadFile(path_, kMaxFileBytes));
  PHIMAP_ASSIGN_OR_RETURN(KnownNames names, ParseKnownNames(text));
  if (names.store != store_) {
    return absl::NotFoundError("the names in the cache's folder are those of another store");
  }
  return registry_.Recall(std::move(names));
}

void KnownNamesFile::SaveSometimes() {
  {
    MutexLock lock(&mutex_);
    if (std::chrono::steady_clock::now() - saved_at_ < kDelay) return;
  }
  Save();
}

void KnownNamesFile::Save() {
  MutexLock lock(&mutex_);
  const int64_t changes = registry_.known_changes();
  if (changes == saved_) return;
  saved_at_ = std::chrono::steady_clock::now();
  KnownNames names = registry_.Known();
  names.store = store_;
  const absl::Status written = Write(TextOf(names));
  if (written.ok()) {
    saved_ = changes;
    return;
  }
  logger_.Log(LogLevel::kWarning, "names_not_kept", {{"error", written.message()}});
}

absl::Status KnownNamesFile::Write(const std::string& text) {
  const std::string partial = absl::StrCat(path_, ".part");
  files_.Remove(partial).IgnoreError();
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                          files_.NewWritableFile(partial));
  PHIMAP_RETURN_IF_ERROR(file->Append(text));
  PHIMAP_RETURN_IF_ERROR(file->Sync());
  PHIMAP_RETURN_IF_ERROR(file->Close());
  return files_.Rename(partial, path_);
}

}  // namespace phimap
