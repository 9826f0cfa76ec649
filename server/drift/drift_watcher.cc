#include "server/drift/drift_watcher.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/registry/reference.h"

namespace phimap {
namespace {

// Scores and columns that a report lists.
constexpr size_t kListedScores = 10;
constexpr int64_t kListedColumns = 10;

DriftFigures FiguresOf(const DriftMonitor& monitor, const std::optional<absl::Time>& crossed) {
  DriftFigures figures;
  figures.evidence = monitor.test().largest_evidence();
  if (crossed.has_value())
    figures.crossed_seconds = absl::ToDoubleSeconds(*crossed - absl::UnixEpoch());
  if (const std::optional<ShiftSize> size = monitor.size(); size && size->scale > 0) {
    figures.shift = std::sqrt(size->squared_mmd) / size->scale;
  }
  if (monitor.counted_rows() > 0 && monitor.expected_beyond() > 0) {
    figures.beyond = monitor.share_beyond();
  }
  figures.rows = static_cast<double>(monitor.test().rows());
  figures.rows_not_finite = static_cast<double>(monitor.rows_not_finite());
  return figures;
}

// Returns the scores that have evidence, those with most of it first.
std::vector<std::pair<ScoreFunction, ScoreEvidence>> Strongest(const DriftMonitor& monitor) {
  std::vector<ScoreEvidence> evidence = monitor.test().Evidence();
  std::stable_sort(evidence.begin(), evidence.end(),
                   [](const auto& a, const auto& b) { return a.largest() > b.largest(); });
  std::vector<std::pair<ScoreFunction, ScoreEvidence>> strongest;
  for (const ScoreEvidence& score : evidence) {
    if (strongest.size() == kListedScores || score.largest() <= 0) break;
    strongest.emplace_back(monitor.reference().scores.functions[static_cast<size_t>(score.score)],
                           score);
  }
  return strongest;
}

}  // namespace

// A served row, copied for the test for drift. Owns the row as the engine got it, and its features.
// The version stays pinned.
class DriftWatcher::SampledRow {
 public:
  // Copies row `index` of `rows`. `features` are the features of all of them.
  SampledRow(VersionHandle version, const ExamplesView& rows, const RowsView& features,
             int64_t index);
  SampledRow(const SampledRow&) = delete;
  SampledRow& operator=(const SampledRow&) = delete;

  const VersionHandle& version() const { return version_; }
  ExamplesView row() const;
  RowsView features() const;

  // Returns the memory that a copy of a row takes.
  static int64_t BytesOf(const ExamplesView& rows, const RowsView& features, int64_t index);

 private:
  const VersionHandle version_;
  std::vector<double> numbers_;
  std::string string_;
  const std::string* const string_at_ = &string_;
  ExampleKind kind_ = ExampleKind::kDense;
  // Aligned for either serving type.
  std::vector<double> features_;
  RowsView shape_;
};

DriftWatcher::SampledRow::SampledRow(VersionHandle version, const ExamplesView& rows,
                                     const RowsView& features, int64_t index)
    : version_(std::move(version)), kind_(rows.kind()), shape_(features.Slice(index, 1)) {
  if (const StringsView* const strings = rows.strings()) {
    string_ = (*strings)[index];
  } else {
    numbers_.resize(static_cast<size_t>(rows.columns()));
    rows.CopyRow(index, numbers_.data());
  }
  const auto bytes = static_cast<size_t>(shape_.RowBytes());
  features_.resize((bytes + sizeof(double) - 1) / sizeof(double));
  std::memcpy(features_.data(), shape_.data, bytes);
  shape_.data = reinterpret_cast<const char*>(features_.data());
}

ExamplesView DriftWatcher::SampledRow::row() const {
  if (IsString(kind_)) {
    return StringsView{kind_, &string_at_, 1, static_cast<int64_t>(string_.size())};
  }
  return RowsView{.data = reinterpret_cast<const char*>(numbers_.data()),
                  .type = FloatType::kFloat64,
                  .rows = 1,
                  .columns = static_cast<int64_t>(numbers_.size())};
}

RowsView DriftWatcher::SampledRow::features() const { return shape_; }

int64_t DriftWatcher::SampledRow::BytesOf(const ExamplesView& rows, const RowsView& features,
                                          int64_t index) {
  const StringsView* const strings = rows.strings();
  const int64_t row = strings != nullptr ? static_cast<int64_t>((*strings)[index].size())
                                         : rows.columns() * int64_t{sizeof(double)};
  return row + features.RowBytes() + int64_t{sizeof(SampledRow)};
}

DriftWatcher::DriftWatcher(const Limits& limits, DriftMetrics& metrics, const Logger& logger)
    : limits_(limits), metrics_(metrics), logger_(logger) {}

absl::Duration DriftWatcher::Interval() const {
  std::set<std::pair<absl::string_view, int64_t>> versions;
  for (const auto& [key, watch] : watches_) {
    if (watch.monitor != nullptr) versions.insert({key.first, watch.version});
  }
  return std::max(limits_.interval, limits_.interval_of_all * static_cast<double>(versions.size()));
}

DriftWatcher::Watch DriftWatcher::Begin(const VersionHandle& version) const {
  Watch watch;
  watch.version = version.record().number;
  watch.digest = version.record().digest;
  if (version.drift_reference() == nullptr) {
    watch.not_tested = absl::StrCat(
        "the version has no drift reference: it was built by an older "
        "release, or with fewer than ",
        kMinReferenceRows, " held-out rows");
    return watch;
  }
  int64_t tests = 0;
  int64_t bytes = 0;
  for (const auto& [key, other] : watches_) {
    if (other.monitor == nullptr) continue;
    ++tests;
    bytes += other.monitor->memory_bytes();
  }
  if (tests >= DriftMetrics::kMaxTested) {
    watch.not_tested = absl::StrCat(tests, " other aliases are tested, which is the limit");
    return watch;
  }
  SequentialTestSpec promise = limits_.promise;
  promise.seed = version.seed();
  watch.monitor = std::make_unique<DriftMonitor>(version.drift_reference(), promise);
  if (bytes + watch.monitor->memory_bytes() > limits_.test_bytes) {
    watch.monitor = nullptr;
    watch.not_tested = absl::StrCat("the tests of other aliases take the ", limits_.test_bytes,
                                    " bytes that tests may take");
  }
  return watch;
}

void DriftWatcher::End(const Key& key) {
  if (watches_.erase(key) > 0) metrics_.Hide(key.first, key.second);
}

void DriftWatcher::Refresh(VersionRegistry& registry, absl::string_view mapping,
                           absl::string_view alias) {
  MutexLock refreshing(&refreshing_);
  const VersionHandle version =
      registry.FindLive(Reference{.mapping = mapping, .number = std::nullopt, .alias = alias});
  MutexLock lock(&mutex_);
  const Key key(mapping, alias);
  if (!version) return End(key);
  const auto found = watches_.find(key);
  const bool same = found != watches_.end() && found->second.version == version.record().number &&
                    found->second.digest == version.record().digest &&
                    found->second.monitor != nullptr;
  if (!same) {
    End(key);
    Watch& watch = watches_[key];
    watch = Begin(version);
    if (watch.monitor != nullptr) Show(key, watch);
  }
  if (watches_[key].monitor != nullptr) version.sampling().Start(Interval());
}

void DriftWatcher::Take(const VersionHandle& version, const ExamplesView& rows,
                        const RowsView& features) {
  // Any row of a request will do, but not always the first: clients may sort the rows of a batch.
  const uint64_t spread = samples_.fetch_add(1, std::memory_order_relaxed) * 0x9E3779B97F4A7C15u;
  const auto index = static_cast<int64_t>((spread >> 32) % static_cast<uint64_t>(rows.rows()));
  const int64_t bytes = SampledRow::BytesOf(rows, features, index);
  const bool fits = waiting_rows_.load() < limits_.waiting_rows &&
                    waiting_bytes_.load() + bytes <= limits_.waiting_bytes;
  if (!fits) return metrics_.dropped->Increment();
  // Several threads may pass the check at once, so the limits hold up to one row of each.
  waiting_rows_.fetch_add(1);
  waiting_bytes_.fetch_add(bytes);
  auto row = std::make_shared<const SampledRow>(version, rows, features, index);
  thread_.Submit(row, [this, row, bytes] {
    Test(*row);
    waiting_rows_.fetch_sub(1);
    waiting_bytes_.fetch_sub(bytes);
  });
}

void DriftWatcher::Test(const SampledRow& row) {
  const VersionHandle& version = row.version();
  const ScoredRow scored =
      ScoreRow(*version.drift_reference(), row.row(), row.features(), version.residual());
  const std::optional<absl::Duration> interval = AddToTests(version.record(), scored);
  if (!interval.has_value()) return version.sampling().Stop();
  // More versions may be tested by now, which then share the rows.
  version.sampling().Start(*interval);
}

std::optional<absl::Duration> DriftWatcher::AddToTests(const VersionRecord& version,
                                                       const ScoredRow& scored) {
  MutexLock lock(&mutex_);
  bool added = false;
  for (auto at = watches_.lower_bound(Key(version.mapping, ""));
       at != watches_.end() && at->first.first == version.mapping; ++at) {
    Watch& watch = at->second;
    if (watch.monitor == nullptr || watch.version != version.number ||
        watch.digest != version.digest) {
      continue;
    }
    watch.monitor->Add(scored);
    Show(at->first, watch);
    added = true;
  }
  return added ? std::optional<absl::Duration>(Interval()) : std::nullopt;
}

void DriftWatcher::Show(const Key& key, Watch& watch) {
  const bool is_over = watch.monitor->test().largest_evidence() >= 1;
  if (is_over && !watch.is_over) {
    watch.crossed = absl::Now();
    logger_.Log(LogLevel::kWarning, "drift_found",
                {{"mapping", key.first},
                 {"alias", key.second},
                 {"version", watch.version},
                 {"rows", watch.monitor->test().rows()}});
  }
  watch.is_over = is_over;
  metrics_.Show(key.first, key.second, watch.version, FiguresOf(*watch.monitor, watch.crossed));
}

std::vector<AliasDrift> DriftWatcher::Of(absl::string_view mapping) {
  std::vector<AliasDrift> all;
  MutexLock lock(&mutex_);
  for (auto at = watches_.lower_bound(Key(mapping, ""));
       at != watches_.end() && at->first.first == mapping; ++at) {
    const Watch& watch = at->second;
    AliasDrift drift{.alias = at->first.second,
                     .version = watch.version,
                     .not_tested = watch.not_tested,
                     .promise = limits_.promise};
    if (const DriftMonitor* const monitor = watch.monitor.get()) {
      drift.rows = monitor->test().rows();
      drift.rows_not_finite = monitor->rows_not_finite();
      drift.evidence = monitor->test().largest_evidence();
      drift.crossed = watch.crossed;
      drift.scores = Strongest(*monitor);
      drift.counted_rows = monitor->counted_rows();
      drift.shift = monitor->size();
      drift.share_beyond = monitor->share_beyond();
      drift.expected_beyond = monitor->expected_beyond();
      drift.columns = monitor->beyond(kListedColumns);
    }
    all.push_back(std::move(drift));
  }
  return all;
}

void DriftWatcher::AwaitTested() {
  struct Mark {
    Mutex mutex;
    CondVar changed;
    bool is_reached ABSL_GUARDED_BY(mutex) = false;
  };
  auto mark = std::make_shared<Mark>();
  thread_.Submit(mark, [mark] {
    MutexLock lock(&mark->mutex);
    mark->is_reached = true;
    mark->changed.NotifyAll();
  });
  MutexLock lock(&mark->mutex);
  while (!mark->is_reached) mark->changed.Wait(&mark->mutex);
}

}  // namespace phimap
