// The parts of a labeled stream: which rows a head is trained on, and which rows are kept for what
// training must not see.
//
//   train           what the head is fitted to: all rows that no other part has
//   validate        chooses among values of a parameter, such as alpha
//   calibrate-link  fits the link (core/head/link.h)
//   calibrate-sets  gives the nonconformity scores (core/head/conformal.h); nothing else ever sees
//                   these rows
//   test            gives the figures of the report (core/head/report.h); no choice ever sees these
//                   rows
//
// The rule. Every row has a key: the SipHash-2-4, under a key drawn from the seed, of its group, or
// else of its content. Equal rows, and rows of one group, have one key and share a part. A group,
// from here on, is all rows of one key. Groups whose key is under a fixed bound are candidates.
//
//  1. The shelf holds the longest run of candidates, from the smallest key on, that has at most as
//     many rows and bytes as the limits allow. A group counts with at most a sixteenth of either
//     limit; a group that has more is large, and is trained on.
//  2. Each part shall have a share of all rows (PartsOptions). A group of over a quarter of the
//     largest part's rows is large too. Of the others on the shelf, the longest run from the
//     smallest key on that has no more rows than all parts together shall have is held; the rest is
//     trained on.
//  3. What is held is cut, in the order of keys, into test, calibrate-sets, calibrate-link and
//     validate, in proportion to what they shall have. A group goes where its middle row falls.
//
// The parts are a function of the set of rows and the seed: neither the order of the stream nor its
// blocks matter. For 2 and 3 this is plain, because they look at the shelf and the number of rows
// alone. Rule 1 is kept up row by row: what a group counts with never falls as rows come, so a
// candidate that is dropped, because the run up to it is over a limit, would be dropped at the end
// too; and a candidate of the run at the end was in every run before. So the shelf is at all times
// what rule 1 says of the rows so far.
//
// Why calibration and test rows are exchangeable. A key depends on no label, and on a row's content
// only by a hash, so for fixed rows the keys of groups are as independent uniform numbers. Where
// groups have one row each, the order of keys is then a uniform permutation, and exchanging the
// keys of a calibration row and of a test row leaves everything else as it is: the other parts, and
// the order in which rows are trained on, because both rows are held at the end, so neither was
// ever the one to be dropped. (Where rows have different lengths and the limit of bytes is reached,
// that order may change, and with it the rounding of sums.) Whatever was trained and chosen, the
// scores of calibrate-sets and of test therefore come in a uniformly random order, which is the
// premise of conformal.h. A row to come is exchangeable with them if rows are drawn independently
// from one distribution. Where contents repeat, or groups are large, a row to come may be like one
// that was trained on, which no held row is: it is then rather easier than they are. Groups of
// different sizes are exchangeable as groups, and not row by row.
#ifndef PHIMAP_CORE_LEARN_PARTS_H_
#define PHIMAP_CORE_LEARN_PARTS_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/digest/siphash.h"
#include "core/head/report.h"
#include "core/plan/examples.h"

namespace phimap {

// "train", "validate", "calibrate-link", "calibrate-sets" or "test", as a column of parts has them.
absl::string_view PartName(Part part);
// INVALID_ARGUMENT (FIELD_INVALID, field "parts") for another name.
absl::StatusOr<Part> PartFromName(absl::string_view name);

struct PartsOptions {
  uint64_t seed = 0;
  // Share of the rows that each part shall have; 0 for a part that nobody needs, such as
  // calibrate-link for a head for numbers. A part that has a share shall have at least kFewRows
  // rows or a tenth of the rows, whichever is less, and at most `max_rows`. So of 200 rows the four
  // parts have 20 each and train 120; of 20,000 they have 1,000, 1,000, 1,000 and 2,000.
  double validate = 0.05;
  double calibrate_link = 0.05;
  double calibrate_sets = 0.05;
  double test = 0.1;
  // Limit of each part.
  int64_t max_rows = 20'000;
  // Limit of the memory of all rows that are held. Rows that come with a part have a limit of their
  // own of the same size: their parts have a quarter of it each.
  int64_t max_bytes = int64_t{256} << 20;

  // INVALID_ARGUMENT (FIELD_OUT_OF_RANGE, field "parts.…") unless shares are at least 0 and add up
  // to less than 1, and the limits are at least 1.
  absl::Status Validate() const;
};
inline constexpr int64_t kFewRows = 100;

// A row that is held.
struct PartRow {
  // As RowContent gives it.
  std::string content;
  // The number of a class, or a target.
  double label = 0;
  double weight = 1;
  auto operator<=>(const PartRow&) const = default;
};

struct Parts {
  // Indexed by Part, in an order that depends on the set of rows alone. Those of train are the ones
  // that were held until the end; the caller trains on them now.
  std::array<std::vector<PartRow>, kPartCount> rows;
  PartCounts counts;

  std::vector<PartRow>& operator[](Part part) { return rows[static_cast<size_t>(part)]; }
};

// Returns INVALID_ARGUMENT (ROWS_TOO_FEW, field "examples") if train or test has no rows.
absl::Status CheckParts(const PartCounts& counts);
// What a report should say about the parts: which guarantee or choice is missing because of too few
// rows, and which rows the parts do not represent. Empty in most cases.
std::vector<std::string> PartNotes(const PartCounts& counts, const PartsOptions& options);

// Not thread-safe.
//
//   PartSplitter splitter(options);
//   for each row {
//     RowContent(examples, i, content);
//     if (splitter.Add({.content = content, …}, evicted)) train on the row;
//     train on the rows of `evicted`, and clear it;
//   }
//   Parts parts = std::move(splitter).Finish();
//
// Memory: 2·max_bytes at most; 1·max_bytes if no row comes with a part.
// Cost:   a hash of the row's content, and O(log rows) if it is held.
class PartSplitter {
 public:
  // REQUIRES: options.Validate() is OK.
  explicit PartSplitter(const PartsOptions& options);

  struct Row {
    absl::string_view content;
    // Rows with the same text share a part. None if empty.
    absl::string_view group = {};
    double label = 0;
    double weight = 1;
    // Set for a row that comes with a part, which overrides the rule. A part of which a row came
    // with the stream has no others, and its share of the others is trained on.
    std::optional<Part> part = std::nullopt;
  };
  // Adds the next row. Returns whether the caller trains on it now. Appends rows to `evicted` that
  // were held and that the caller trains on now; the new row may be among them.
  bool Add(const Row& row, std::vector<PartRow>& evicted);

  Parts Finish() &&;

 private:
  // The longest run of groups, from the smallest key on, within two limits (rule 1).
  class Shelf {
   public:
    Shelf(int64_t max_rows, int64_t max_bytes);

    // Returns whether the row is held or in `out`; if not, it is beyond the run or of a large
    // group. Appends rows that leave the shelf to `out`.
    bool Add(uint64_t key, const Row& row, std::vector<PartRow>& out);
    // Returns the groups that are not large, in the order of keys. The rows of a group are sorted.
    // Leaves the shelf empty.
    std::vector<std::vector<PartRow>> Take();
    // Rows of large groups, as far as the shelf holds their keys.
    int64_t large_rows() const;

   private:
    struct Group {
      int64_t rows = 0;
      int64_t bytes = 0;
      bool large = false;
      std::vector<PartRow> held;
    };
    // Adds what the group counts with, `sign` times, to the sums.
    void Count(const Group& group, int64_t sign);

    int64_t max_rows_;
    int64_t max_bytes_;
    // A group that has more is large, and counts with these.
    int64_t max_group_rows_;
    int64_t max_group_bytes_;
    std::map<uint64_t, Group> groups_;
    // Sums of what groups count with.
    int64_t rows_ = 0;
    int64_t bytes_ = 0;
    // The smallest key that was dropped.
    std::optional<uint64_t> dropped_;
  };

  // What each part shall have of the rows that came without one, indexed by Part.
  std::array<int64_t, kPartCount> Targets() const;

  PartsOptions options_;
  SipHashKey key_;
  // A group is a candidate if its key is under this.
  double candidates_below_;
  Shelf shelf_;
  // Rows that are kept because they came with a part, indexed by Part; train has none.
  std::vector<Shelf> given_;
  // Rows that came with each part, and rows that came without one.
  std::array<int64_t, kPartCount> given_rows_ = {};
  int64_t rows_ = 0;
};

// Sets `content` to bytes that are the same for equal examples, in whatever form they come: a row's
// numbers in float64, or, where that is shorter, the columns of its numbers other than 0 as int32
// and then these numbers; −0 counts as 0. A string's bytes are itself.
void RowContent(const ExamplesView& examples, int64_t i, std::string& content);
// Sets out to the row of `columns` numbers that has this content.
void RowFromContent(absl::string_view content, int64_t columns, double* out);

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_PARTS_H_
