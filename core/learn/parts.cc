#include "core/learn/parts.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/random/stream_ids.h"
#include "core/status/check.h"
#include "core/status/error.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

constexpr std::array<absl::string_view, kPartCount> kPartNames = {
    "train", "validate", "calibrate-link", "calibrate-sets", "test"};
// The order in which held rows are cut into parts.
constexpr std::array<Part, kPartCount - 1> kCutOrder = {Part::kTest, Part::kCalibrateSets,
                                                        Part::kCalibrateLink, Part::kValidate};
// What a row takes beside its content: a node of a map (96 bytes with the allocator's share), a
// list of one PartRow (64), and what the allocator adds to a text.
constexpr int64_t kRowOverheadBytes = 192;
// The share of all rows that a small part shall have.
constexpr double kSmallShare = 0.1;
// The part of a shelf that a group may fill.
constexpr int64_t kLargeGroup = 16;
// Candidates over what the parts shall have, so that the number of rows under a bound on keys,
// which varies with the seed, is hardly ever too small.
constexpr double kSlack = 1.25;

size_t Index(Part part) { return static_cast<size_t>(part); }

std::array<double, kPartCount> Shares(const PartsOptions& options) {
  return {0, options.validate, options.calibrate_link, options.calibrate_sets, options.test};
}

int64_t RowsOfAllParts(const PartsOptions& options) {
  const auto shares = Shares(options);
  return options.max_rows *
         std::count_if(shares.begin(), shares.end(), [](double share) { return share > 0; });
}

double CandidateBound(const PartsOptions& options) {
  double share = 0;
  for (const double part : Shares(options)) share += part > 0 ? std::max(part, kSmallShare) : 0;
  return std::min(1.0, kSlack * share) * 0x1p64;
}

constexpr int64_t kEntryBytes = sizeof(int32_t) + sizeof(double);

template <typename T>
void AppendNumber(T value, std::string& content) {
  content.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace

absl::string_view PartName(Part part) { return kPartNames[Index(part)]; }

absl::StatusOr<Part> PartFromName(absl::string_view name) {
  const auto found = std::find(kPartNames.begin(), kPartNames.end(), name);
  if (found != kPartNames.end()) return static_cast<Part>(found - kPartNames.begin());
  return MakeError(Code::kInvalidArgument, reason::kFieldInvalid, "parts",
                   absl::StrCat("expected ", Alternatives(kPartNames), ", got ", Quoted(name)),
                   {{"actual", Excerpt(name)}});
}

absl::Status PartsOptions::Validate() const {
  const auto out_of_range = [](absl::string_view field, absl::string_view expected, double actual) {
    return MakeError(Code::kInvalidArgument, reason::kFieldOutOfRange,
                     absl::StrCat("parts.", field),
                     absl::StrCat("expected ", expected, ", got ", actual),
                     {{"expected", std::string(expected)}, {"actual", absl::StrCat(actual)}});
  };
  double sum = 0;
  constexpr std::array<absl::string_view, kPartCount> kFields = {
      "train", "validate", "calibrate_link", "calibrate_sets", "test"};
  const auto shares = Shares(*this);
  for (size_t p = 1; p < shares.size(); ++p) {
    if (!(shares[p] >= 0 && shares[p] < 1)) {
      return out_of_range(kFields[p], "a share of at least 0 and under 1", shares[p]);
    }
    sum += shares[p];
  }
  if (!(sum < 1)) {
    return out_of_range("train", "shares that leave rows to train on: a sum under 1", sum);
  }
  if (max_rows < 1) return out_of_range("max_rows", "at least 1", static_cast<double>(max_rows));
  if (max_bytes < 1) return out_of_range("max_bytes", "at least 1", static_cast<double>(max_bytes));
  return absl::OkStatus();
}

absl::Status CheckParts(const PartCounts& counts) {
  for (const Part part : {Part::kTrain, Part::kTest}) {
    if (counts[part] > 0) continue;
    int64_t all = counts.unused;
    for (const int64_t rows : counts.rows) all += rows;
    const absl::string_view why =
        counts.large_groups > 0
            ? "too many rows are equal or of one group, and these share a part; a column of parts "
              "can say which rows to test on"
            : "send more rows, at least 10, or a column of parts";
    return MakeError(Code::kInvalidArgument, reason::kRowsTooFew, "examples",
                     absl::StrCat("expected rows to train on and to test on; of ", all,
                                  " rows, the part ", PartName(part), " has none: ", why),
                     {{"actual", absl::StrCat(all)}, {"part", std::string(PartName(part))}});
  }
  return absl::OkStatus();
}

std::vector<std::string> PartNotes(const PartCounts& counts, const PartsOptions& options) {
  std::vector<std::string> notes;
  if (options.validate > 0 && counts[Part::kValidate] == 0) {
    notes.push_back("no rows to validate on: no choice was made among values of a parameter");
  }
  if (options.calibrate_link > 0 && counts[Part::kCalibrateLink] == 0) {
    notes.push_back(
        "no rows in calibrate-link: there are no probabilities, and no sets, which need them");
  }
  const int64_t sets = counts[Part::kCalibrateSets];
  if (options.calibrate_sets > 0 && sets < 19) {
    notes.push_back(sets == 0
                        ? "no rows in calibrate-sets: there are no sets or intervals"
                        : absl::StrCat("calibrate-sets has ", sets, sets == 1 ? " row" : " rows",
                                       ": at a confidence over ", sets, "/", sets + 1,
                                       " a set has every class, and an interval has no ends"));
  }
  if (counts.unused > 0) {
    notes.push_back(
        absl::StrCat(counts.unused, " rows came with a part that was full, and were not used"));
  }
  if (counts.large_groups > 0) {
    notes.push_back(absl::StrCat(
        counts.large_groups,
        " rows are equal to, or of one group with, so many others that all of these were trained "
        "on; no other part has rows like them"));
  }
  return notes;
}

PartSplitter::Shelf::Shelf(int64_t max_rows, int64_t max_bytes)
    : max_rows_(max_rows),
      max_bytes_(max_bytes),
      max_group_rows_(std::max<int64_t>(max_rows / kLargeGroup, 1)),
      max_group_bytes_(max_bytes / kLargeGroup) {}

void PartSplitter::Shelf::Count(const Group& group, int64_t sign) {
  rows_ += sign * std::min(group.rows, max_group_rows_);
  bytes_ += sign * std::min(group.bytes, max_group_bytes_);
}

bool PartSplitter::Shelf::Add(uint64_t key, const Row& row, std::vector<PartRow>& out) {
  if (dropped_.has_value() && key >= *dropped_) return false;
  Group& group = groups_[key];
  Count(group, -1);
  ++group.rows;
  group.bytes += static_cast<int64_t>(row.content.size()) + kRowOverheadBytes;
  Count(group, 1);
  const bool was_large = group.large;
  group.large = group.rows > max_group_rows_ || group.bytes > max_group_bytes_;
  if (!was_large) group.held.push_back({std::string(row.content), row.label, row.weight});
  const auto release = [&out](Group& from) {
    std::move(from.held.begin(), from.held.end(), std::back_inserter(out));
    std::vector<PartRow>().swap(from.held);
  };
  if (group.large) release(group);
  while (rows_ > max_rows_ || bytes_ > max_bytes_) {
    const auto last = std::prev(groups_.end());
    release(last->second);
    Count(last->second, -1);
    dropped_ = last->first;
    groups_.erase(last);
  }
  return !was_large;
}

std::vector<std::vector<PartRow>> PartSplitter::Shelf::Take() {
  std::vector<std::vector<PartRow>> taken;
  for (auto& [key, group] : groups_) {
    if (group.large) continue;
    std::sort(group.held.begin(), group.held.end());
    taken.push_back(std::move(group.held));
  }
  groups_.clear();
  return taken;
}

int64_t PartSplitter::Shelf::large_rows() const {
  int64_t rows = 0;
  for (const auto& [key, group] : groups_) rows += group.large ? group.rows : 0;
  return rows;
}

PartSplitter::PartSplitter(const PartsOptions& options)
    : options_(options),
      candidates_below_(CandidateBound(options)),
      shelf_(RowsOfAllParts(options), options.max_bytes),
      given_(kPartCount, Shelf(options.max_rows, options.max_bytes / (kPartCount - 1))) {
  PHIMAP_CHECK(options.Validate().ok());
  const RandomStream stream(options.seed, StreamId::kParts);
  key_ = {stream.Bits64(0), stream.Bits64(1)};
}

bool PartSplitter::Add(const Row& row, std::vector<PartRow>& evicted) {
  const uint64_t key = SipHash(key_, row.group.empty() ? row.content : row.group);
  if (row.part.has_value()) {
    ++given_rows_[Index(*row.part)];
    if (*row.part == Part::kTrain) return true;
    std::vector<PartRow> unused;
    given_[Index(*row.part)].Add(key, row, unused);
    return false;
  }
  ++rows_;
  if (static_cast<double>(key) >= candidates_below_) return true;
  return !shelf_.Add(key, row, evicted);
}

std::array<int64_t, kPartCount> PartSplitter::Targets() const {
  std::array<int64_t, kPartCount> targets = {};
  const auto shares = Shares(options_);
  for (size_t p = 0; p < shares.size(); ++p) {
    if (shares[p] == 0 || given_rows_[p] > 0) continue;
    // The factor keeps a product that should be a whole number, as .05·20, from being just under
    // it.
    const auto wanted = static_cast<int64_t>(shares[p] * static_cast<double>(rows_) * (1 + 1e-12));
    const int64_t few = std::min(kFewRows, rows_ / 10);
    targets[p] = std::min(std::max(wanted, few), options_.max_rows);
  }
  return targets;
}

Parts PartSplitter::Finish() && {
  Parts parts;
  parts.counts.large_groups = shelf_.large_rows();
  const auto targets = Targets();
  const int64_t largest = *std::max_element(targets.begin(), targets.end());
  int64_t wanted = 0;
  for (const int64_t rows : targets) wanted += rows;

  const auto train = [&parts](std::vector<PartRow>& group) {
    std::move(group.begin(), group.end(), std::back_inserter(parts[Part::kTrain]));
  };
  std::vector<std::vector<PartRow>> held;
  int64_t held_rows = 0;
  bool full = false;
  for (std::vector<PartRow>& group : shelf_.Take()) {
    const auto rows = static_cast<int64_t>(group.size());
    if (rows > std::max<int64_t>(largest / 4, 1)) {
      parts.counts.large_groups += rows;
      train(group);
      continue;
    }
    full = full || held_rows + rows > wanted;
    if (full) {
      train(group);
      continue;
    }
    held_rows += rows;
    held.push_back(std::move(group));
  }

  int64_t before = 0;
  for (std::vector<PartRow>& group : held) {
    const auto rows = static_cast<int64_t>(group.size());
    // The group's middle is at (2·before + rows)/2 of held_rows; a part ends at `end` of `wanted`.
    int64_t end = 0;
    for (const Part part : kCutOrder) {
      end += targets[Index(part)];
      if ((2 * before + rows) * wanted > 2 * end * held_rows) continue;
      std::move(group.begin(), group.end(), std::back_inserter(parts[part]));
      break;
    }
    before += rows;
  }
  int64_t elsewhere = 0;
  for (size_t p = 1; p < kPartCount; ++p) {
    int64_t kept = 0;
    for (std::vector<PartRow>& group : given_[p].Take()) {
      kept += static_cast<int64_t>(group.size());
      std::move(group.begin(), group.end(), std::back_inserter(parts.rows[p]));
    }
    parts.counts.unused += given_rows_[p] - kept;
    parts.counts.rows[p] = static_cast<int64_t>(parts.rows[p].size());
    elsewhere += parts.counts.rows[p] - kept;
  }
  parts.counts.rows[Index(Part::kTrain)] = given_rows_[Index(Part::kTrain)] + rows_ - elsewhere;
  return parts;
}

void RowContent(const ExamplesView& examples, int64_t i, std::string& content) {
  content.clear();
  if (const StringsView* strings = examples.strings()) {
    content = (*strings)[i];
    return;
  }
  const int64_t columns = examples.columns();
  const auto shorter = [columns](int64_t entries) {
    return entries * kEntryBytes < columns * static_cast<int64_t>(sizeof(double));
  };
  // Sparse rows may have many columns: those that stay sparse are not written out.
  if (const SparseRowsView* rows = examples.sparse()) {
    int64_t entries = 0;
    for (int64_t e = rows->offset(i); e < rows->offset(i + 1); ++e) entries += rows->value(e) != 0;
    if (shorter(entries)) {
      for (int64_t e = rows->offset(i); e < rows->offset(i + 1); ++e) {
        if (rows->value(e) != 0) AppendNumber(rows->column(e), content);
      }
      for (int64_t e = rows->offset(i); e < rows->offset(i + 1); ++e) {
        if (rows->value(e) != 0) AppendNumber(rows->value(e), content);
      }
      return;
    }
  }
  std::vector<double> row(static_cast<size_t>(columns));
  examples.CopyRow(i, row.data());
  const bool sparse = shorter(columns - std::count(row.begin(), row.end(), 0.0));
  for (int64_t j = 0; sparse && j < columns; ++j) {
    if (row[static_cast<size_t>(j)] != 0) AppendNumber(static_cast<int32_t>(j), content);
  }
  for (const double value : row) {
    // The sum makes 0 of −0.
    if (!sparse || value != 0) AppendNumber(value + 0.0, content);
  }
}

void RowFromContent(absl::string_view content, int64_t columns, double* out) {
  if (content.size() == static_cast<size_t>(columns) * sizeof(double)) {
    std::memcpy(out, content.data(), content.size());
    return;
  }
  const size_t entries = content.size() / kEntryBytes;
  std::fill_n(out, columns, 0.0);
  for (size_t e = 0; e < entries; ++e) {
    int32_t column;
    std::memcpy(&column, content.data() + e * sizeof(int32_t), sizeof(column));
    PHIMAP_CHECK(column >= 0 && column < columns);
    std::memcpy(out + column, content.data() + entries * sizeof(int32_t) + e * sizeof(double),
                sizeof(double));
  }
}

}  // namespace phimap
